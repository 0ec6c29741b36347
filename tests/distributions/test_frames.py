"""Distributions as frames and as small tables in a notebook."""

from __future__ import annotations

import pickle
import re
import sys
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import polars as pl
import pytest
from fitted import TINY
from numpy.testing import assert_array_equal
from sklearn.linear_model import BayesianRidge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mvenet import (
    CalibratedRegressor,
    LogNormalMixture,
    MVERegressor,
    Normal,
    NormalMixture,
    WithAtoms,
)
from mvenet.predictive import predictive_distribution

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(60, 2)), columns=["a", "b"], index=[f"<i>{i}" for i in range(60)])
Y = X["a"].to_numpy() + RNG.normal(size=60)


@pytest.fixture(scope="module")
def model():
    return MVERegressor(**TINY).fit(X, Y)


def test_columns_and_their_values():
    dist = NormalMixture([[0.0, 1.0], [2.0, 5.0]], [[1.0, 2.0], [0.5, 1.0]])
    frame = dist.to_frame(intervals=[0.5, 0.995], quantiles=[0.025])
    names = ["mean", "std", "median", "low_50", "high_50", "low_99.5", "high_99.5", "q_2.5"]
    assert list(frame.columns) == names
    assert_array_equal(frame["median"], dist.median)
    assert_array_equal(frame[["low_50", "high_50"]], dist.interval(0.5))
    assert_array_equal(frame["q_2.5"], dist.ppf(0.025))
    assert list(dist.to_frame(intervals=()).columns) == ["mean", "std", "median"]
    assert list(dist.to_frame(0.8).columns[3:]) == ["low_80", "high_80"]


def test_the_index_is_kept(model):
    frame = model.predict_dist(X).to_frame()
    assert isinstance(frame, pd.DataFrame) and frame.index.equals(X.index)
    assert_array_equal(frame["mean"], model.predict(X))
    some = model.predict_dist(X)[[5, 3]].to_frame()
    assert list(some.index) == ["<i>5", "<i>3"]
    assert list(model.predict_dist(X)[7].to_frame().index) == ["<i>7"]
    doubled = X.iloc[[1, 1]]  # an index with duplicates is one, too
    assert model.predict_dist(doubled).to_frame().index.equals(doubled.index)
    copied = pickle.loads(pickle.dumps(model.predict_dist(X)))
    assert copied.to_frame().index.equals(X.index)


def test_the_index_survives_pipelines_calibration_and_other_estimators():
    for estimator in (
        make_pipeline(StandardScaler(), MVERegressor(**TINY)),
        BayesianRidge(),
        CalibratedRegressor(BayesianRidge(), method="scale"),
    ):
        dist = predictive_distribution(estimator.fit(X, Y), X)
        assert dist.to_frame().index.equals(X.index)


def test_polars_in_polars_out(model):
    frame = model.predict_dist(pl.DataFrame(X.to_dict("list"))).to_frame()
    assert isinstance(frame, pl.DataFrame)
    assert frame.columns == ["mean", "std", "median", "low_90", "high_90"]


def test_arrays_give_pandas_with_an_index_if_one_is_given():
    dist = Normal([0.0, 1.0], [1.0, 1.0])
    assert list(dist.to_frame().index) == [0, 1]
    assert list(dist.to_frame(index=["u", "v"]).index) == ["u", "v"]
    with pytest.raises(ValueError, match="index must have 2 labels, got 3; pass one for each row"):
        dist.to_frame(index=["u", "v", "w"])


def test_bad_levels():
    dist = Normal([0.0], [1.0])
    with pytest.raises(ValueError, match=r"intervals must lie strictly between 0 and 1, got 90"):
        dist.to_frame(90)
    with pytest.raises(ValueError, match=r"quantiles must be distinct, got \[0.1, 0.1\]"):
        dist.to_frame(quantiles=[0.1, 0.1])


def test_without_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    dist = Normal([0.0], [1.0])
    assert isinstance(dist.to_frame(), pl.DataFrame)
    monkeypatch.delitem(sys.modules, "polars")
    with pytest.raises(ImportError, match="to_frame needs pandas or polars: pip install pandas"):
        dist.to_frame()


def parsed(dist):
    html = dist._repr_html_().replace("<br>", "<br/>")
    return html, ElementTree.fromstring(html)


def test_a_notebook_shows_the_first_rows(model):
    html, tree = parsed(model.predict_dist(X))
    assert len(tree.findall(".//tbody/tr")) == len(tree.findall(".//svg")) == 6
    assert "… and 54 more rows" in html
    assert "<i>" not in html and "&lt;i&gt;0" in html
    assert "script" not in html and "http" not in html and len(html) < 20_000


def test_a_curve_is_the_density():
    """The highest point is where the density is, and an atom is seen."""
    html, tree = parsed(Normal([-3.0, 3.0], [1.0, 0.05]))
    tops = []
    for line in tree.findall(".//polyline"):
        points = np.array(re.findall(r"([\d.]+),([\d.]+)", line.get("points")), dtype=float)
        tops.append(points[points[:, 1].argmin(), 0])
    low, high = (
        float(v.replace(",", "")) for v in re.search(r"from (\S+) to (\S+)\.", html).groups()
    )
    assert np.allclose(low + np.array(tops) / 120 * (high - low), [-3.0, 3.0], atol=0.15)
    smooth = NormalMixture([[0.2]], [[1.0]])
    atom = WithAtoms(smooth, atoms=[0.0], cells=[[-np.inf, 0.1]], resolution=0.1)
    assert len(parsed(atom)[1].findall(".//svg")) == 1


@pytest.mark.parametrize(
    "dist",
    [
        Normal([], []),
        Normal([1e300], [1e-3]),
        Normal([1e-300, 0.0], [1e-300, 1e-308]),
        LogNormalMixture([[0.0]], [[3.0]]),
    ],
)
def test_no_distribution_is_too_odd_for_a_notebook(dist):
    html, _ = parsed(dist)
    assert "nan" not in html and repr(dist) in html
