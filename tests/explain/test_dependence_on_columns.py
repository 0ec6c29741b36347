"""Partial dependence and what narrows an interval, against loops and closed forms."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from sklearn.exceptions import NotFittedError
from sklearn.inspection import partial_dependence as of_sklearn

from mvenet import CalibratedRegressor, MVERegressor
from mvenet.explain import narrowing, partial_dependence


def test_it_is_a_loop_over_values(known):
    model, X, _ = known
    found = partial_dependence(model, X, 1, grid=[0.5, -1.0], quantiles=[0.1, 0.9], max_rows=400)
    assert found.values == [-1.0, 0.5]
    for i, value in enumerate(found.values):
        table = X.copy()
        table[:, 1] = value
        dist = model.predict_dist(table)
        assert_array_equal(found.ice_mean[:, i], dist.mean)
        assert_array_equal(found.ice_std[:, i], dist.std)
        assert_array_equal(found.ice_quantiles[:, i], dist.ppf([0.1, 0.9]))
    assert_allclose(found.std, np.exp(found.values))
    assert_allclose(found.quantiles[:, 1], 2 * X[:, 0].mean() + norm.ppf(0.9) * found.std)
    assert found.ice_quantiles.shape == (400, 2, 2)


def test_the_mean_is_that_of_scikit_learn(known):
    model, X, _ = known
    theirs = of_sklearn(model, X, [0], grid_resolution=7, percentiles=(0, 1), method="brute")
    ours = partial_dependence(model, X, 0, grid=theirs["grid_values"][0], max_rows=400)
    assert_allclose(ours.mean, theirs["average"][0])


def test_many_rows_are_asked_in_parts(known, monkeypatch):
    model, X, _ = known
    whole = partial_dependence(model, X, 1)
    monkeypatch.setattr("mvenet.explain._dependence.AT_ONCE", 150)
    parts = partial_dependence(model, X, 1)
    assert_array_equal(whole.ice_quantiles, parts.ice_quantiles)
    assert len(whole.values) == 25 and len(whole.rows) == 100


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_values_of_frames(frame, kind):
    model, X, _ = frame
    if kind != "pandas":
        X = pl.from_pandas(X.assign(day=X["day"].dt.tz_localize(None)).reset_index(drop=True))
        X = X.to_arrow() if kind == "arrow" else X
    levels = partial_dependence(model, X, "kind")
    assert levels.kind == "level" and levels.values == ["calm", "wild"]
    assert_allclose(levels.std, [1.0, 4.0])
    counts = partial_dependence(model, X, "count")
    assert counts.kind == "number" and counts.values == [0, 1, 2, 3, 4]
    days = partial_dependence(model, X, "day")
    assert days.kind == "date" and 50 < len(days.values) <= 73
    assert list(days.values) == sorted(days.values)
    assert_array_equal(days.ice_mean[0], [value.month for value in days.values])
    one = partial_dependence(model, X, "day", grid=[days.values[5]])
    assert one.values == [days.values[5]]


def test_grids(known):
    model, X, _ = known
    assert len(partial_dependence(model, X, 0, grid=5).values) == 5
    whole = np.column_stack([np.arange(400) % 30, X[:, 1:]])
    values = np.array(partial_dependence(model, whole, 0).values)
    assert_array_equal(values, np.round(values))
    constant = np.column_stack([np.ones(400), X[:, 1:]])
    assert partial_dependence(model, constant, 0).values == [1.0]
    integers = np.arange(30).reshape(10, 3)
    assert partial_dependence(model, integers, 0, grid=[0.5, 1.5]).mean.tolist() == [1.0, 3.0]


def test_bad_grids(known, frame):
    model, X, _ = known
    for grid, message in (
        (1, "grid=1 must be a number of points or a list"),
        (True, "grid=True must be"),
        ([], "grid holds no value"),
        (["a"], "must hold numbers"),
        ([np.nan], "must hold finite numbers"),
    ):
        with pytest.raises(ValueError, match=message):
            partial_dependence(model, X, 0, grid=grid)
    with pytest.raises(ValueError, match=r"column='b' is no column of X"):
        partial_dependence(model, X, "b")
    with pytest.raises(ValueError, match=r"quantiles must lie strictly between 0 and 1, got 1.0"):
        partial_dependence(model, X, 0, quantiles=[1.0])
    with pytest.raises(ValueError, match="grid holds 'mild', which is no value of column 'kind'"):
        partial_dependence(*frame[:2], "kind", grid=["calm", "mild"])
    with pytest.raises(ValueError, match="column='size' has gaps only"):
        partial_dependence(frame[0], frame[1].assign(size=np.nan), "size")
    with pytest.raises(NotFittedError):
        partial_dependence(MVERegressor(), X, 0)


def test_what_narrows_a_row(known):
    model, X, _ = known
    found = narrowing(model, [[3.0, 1.0, 0.0]], X, coverage=0.8, max_values=400)
    assert found.columns[0] == "x1" and found.values[0] == 1.0
    assert_allclose(found.width, 2 * norm.ppf(0.9) * np.e)
    assert_allclose([found.low, found.high], 6 + norm.ppf([0.1, 0.9]) * np.e)
    assert_allclose(found.factor[0], np.exp(1 - X[:, 1].mean()))
    assert_allclose(found.narrowest[0], np.exp(X[:, 1].min() - 1))
    assert found.best[0] == X[:, 1].min()
    assert_allclose(found.factor[1:], 1)
    assert_allclose(found.narrowest[1:], 1)
    assert sorted(found.best[1:]) == [0.0, 3.0]
    assert repr(found).splitlines()[2].startswith("x1") and "+167%" in repr(found)
    assert list(found.to_frame()["column"]) == found.columns


def test_rows_of_frames_by_number_and_as_tables(frame):
    model, X, _ = frame
    wild = int(np.flatnonzero(X["kind"] == "wild")[0])
    found = narrowing(model, wild, X)
    assert (found.columns[0], found.values[0], found.best[0]) == ("kind", "wild", "calm")
    assert_allclose(found.narrowest[0], 0.25)
    same = narrowing(model, X.iloc[[wild]], X)
    assert_array_equal(same.factor, found.factor)
    unknown = X.iloc[[wild]].assign(kind="odd")  # a level that X has not
    told = narrowing(model, unknown, X)
    assert told.values[told.columns.index("kind")] == "odd"
    gap = X.iloc[[wild]].assign(kind=None)
    told = narrowing(model, gap, X)
    assert told.values[told.columns.index("kind")] is None and "(missing)" in repr(told)


def test_intervals_are_the_models_own():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.normal(size=60)
    base = MVERegressor(strategy="warmup", epochs=2, warmup_epochs=2, random_state=0)
    model = CalibratedRegressor(base, cv=2).fit(X, y)
    found = narrowing(model, 0, X, max_values=5)
    assert_allclose([[found.low, found.high]], model.predict_interval(X[:1], 0.9))


def test_bad_rows(known, frame):
    model, X, _ = known
    for row, message in (
        (400, "row=400 is no row of X: use a number from 0 to 399"),
        (X[:2], r"row has 2 rows: pass one, such as X\[\[0\]\]"),
        (X[0], r"row must have shape \(n, n_features\), got \(3,\)"),
        (X[:1, :2], "row has 2 columns, but the model was fitted to 3"),
        (pd.DataFrame(X[:1]), "row is no table like X: pass the same columns"),
    ):
        with pytest.raises(ValueError, match=message):
            narrowing(model, row, X)
    with pytest.raises(ValueError, match="coverage must lie strictly between 0 and 1, got 90"):
        narrowing(model, 0, X, coverage=90)
    with pytest.raises(ValueError, match="coverage must be one number"):
        narrowing(model, 0, X, coverage=[0.5, 0.9])
    with pytest.raises(ValueError, match="row is no table like X"):
        narrowing(frame[0], frame[1].iloc[[0], ::-1], frame[1])
