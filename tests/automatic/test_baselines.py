"""Candidates that are not networks: trees, and any regressor."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from shorter import short_trainings
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, Ridge
from two_noises import X, Y

from mvenet import AutoRegressor
from mvenet._automatic import baselines
from mvenet._automatic.out_of_fold import OutOfFold
from mvenet._training.fleet import derived_seed
from mvenet._training.plan import Table

pytestmark = pytest.mark.usefixtures("short")


def test_trees_are_those_of_scikit_learns_forest_and_leave_the_filters_of_warnings_alone():
    before = list(warnings.filters)
    every = np.arange(len(Y))
    folds = [(np.setdiff1d(every, test), test) for test in np.array_split(every, 8)]
    held_out = OutOfFold(Table(X, Y, None, every), folds, log=False)
    with short_trainings(times=1):
        trees = baselines.candidates(["trees"], held_out, folds, 0, threads=4)[0]
    assert warnings.filters == before
    forest = ExtraTreesRegressor(100, random_state=derived_seed(0, 1, 0, 0, 0) % 2**32)
    for train, test in folds:
        center, scale = Y[train].mean(), Y[train].std()
        expected = forest.fit(X[train], (Y[train] - center) / scale).predict(X[test])
        assert_allclose(trees.mean[test], center + scale * expected, atol=1e-5)


def test_any_regressor_can_be_a_mean(tmp_path):
    y = 3 * X[:, 0] + 0.1 * np.random.default_rng(7).normal(size=len(X))
    given = AutoRegressor(candidates=[LinearRegression()], cv=3, random_state=0).fit(X, y)
    share = dict(zip(given.cv_results_["name"], given.cv_results_["share"], strict=True))
    assert share["LinearRegression"] > 0.5
    assert given.predict(X) == pytest.approx(3 * X[:, 0], abs=0.1)
    with pytest.raises(ValueError, match="LinearRegression"):
        given.save(tmp_path / "model.mve")
    boosted = HistGradientBoostingRegressor(max_iter=20, random_state=0)
    both = AutoRegressor(candidates=["networks", boosted], cv=3, random_state=0).fit(X, Y)
    assert "HistGradientBoostingRegressor" in both.cv_results_["name"]


class Broken(Ridge):
    def __init__(self, answer="nan"):
        self.answer = answer
        super().__init__()

    def fit(self, X, y, sample_weight=None):
        if self.answer == "fail":
            raise RuntimeError("no licence")
        return self

    def predict(self, X):
        return np.full(len(X), np.nan) if self.answer == "nan" else np.ones((len(X), 2))


@pytest.mark.parametrize(
    ("answer", "words"),
    [("nan", "not finite"), ("shape", r"shape \(80, 2\)"), ("fail", "no licence")],
)
def test_a_mean_that_fails_is_named(answer, words):
    with pytest.raises(ValueError, match=words) as caught:
        AutoRegressor(candidates=[Broken(answer)], cv=3).fit(X, Y)
    assert "Broken" in str(caught.value)


@pytest.mark.parametrize("means", [[], ["forest"], [3], "tree"])
def test_means_that_are_none(means):
    with pytest.raises(ValueError, match="candidates"):
        AutoRegressor(candidates=means, cv=3).fit(X, Y)
