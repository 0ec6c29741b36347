"""Candidates that are not networks: trees, and any regressor."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from shorter import short_trainings
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, Ridge
from two_noises import X, Y

from mvenet import AutoRegressor
from mvenet._automatic import baselines
from mvenet._automatic.out_of_fold import OutOfFold
from mvenet._models.forest import Forest
from mvenet._training.fleet import derived_seed
from mvenet._training.plan import Table

pytestmark = pytest.mark.usefixtures("short")


def test_trees_of_a_fold_have_not_seen_its_rows_and_know_no_threads():
    every = np.arange(len(Y))
    folds = [(np.setdiff1d(every, test), test) for test in np.array_split(every, 8)]
    held_out = OutOfFold(Table(X, Y, None, every), folds, log=False)
    with short_trainings(times=1):
        trees, again = (
            baselines.begin(["trees"], held_out, folds, 0, threads=threads)()[0]
            for threads in (4, 1)
        )
    assert_array_equal(trees.mean, again.mean)
    assert_array_equal(trees.values, again.values)
    train, test = folds[3]
    center, scale = Y[train].mean(), Y[train].std()
    rng = np.random.default_rng(derived_seed(0, 1, 0, 0, 0) % 2**32)
    seeds = rng.integers(2**64, size=100, dtype=np.uint64)
    known = (Y[train] - center) / scale
    alone = Forest.grown(X[train], known, None, seeds, 0, center, scale)
    assert_array_equal(trees.mean[test], alone.predict(X[test]))


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
