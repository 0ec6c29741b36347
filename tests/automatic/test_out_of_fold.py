"""Which rows are predicted by networks that have not seen them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import stats
from sklearn.base import clone
from sklearn.model_selection import KFold, RepeatedKFold, TimeSeriesSplit
from two_noises import NEW, X, Y

from mvenet import AutoRegressor

pytestmark = pytest.mark.usefixtures("short")


@pytest.mark.parametrize(
    "cv", [RepeatedKFold(n_splits=2, n_repeats=2, random_state=0), TimeSeriesSplit(3), KFold(2)]
)
def test_folds_that_overlap_or_leave_rows_in(cv):
    model = AutoRegressor(candidates=["linear"], cv=cv, random_state=0).fit(X[:90], Y[:90])
    held_out = np.zeros(90, dtype=bool)
    for _, test in cv.split(X[:90]):
        held_out[test] = True
    assert_array_equal(np.isnan(model.oof_mean_), ~held_out)
    assert np.isfinite(model.predict(NEW)).all()


def test_weights_count_as_rows_and_zero_as_none():
    weight = np.ones(len(Y))
    weight[:60] = 0
    y = Y.copy()
    y[:60] += 1e6
    means = ["linear", "trees"]
    kept = AutoRegressor(candidates=means, cv=3, random_state=0).fit(X, y, sample_weight=weight)
    assert np.abs(kept.predict(NEW)).max() < 20
    assert np.isnan(kept.oof_mean_[:60]).all() and np.isfinite(kept.oof_mean_[60:]).all()


def test_few_groups_make_intervals_as_much_wider_as_students_t(monkeypatch):
    """A spread that eight groups tell is known less well than one that a thousand rows tell."""
    groups = np.arange(len(Y)) % 8
    y = Y + np.random.default_rng(0).normal(size=8)[groups]
    search = AutoRegressor("low", ["linear"], cv=4, random_state=0)
    wider = search.fit(X, y, groups=groups).model_.noises
    monkeypatch.setattr("mvenet._automatic.out_of_fold.OutOfFold.caution", 1.0)
    narrower = clone(search).fit(X, y, groups=groups).model_.noises
    expected = stats.t(7).ppf(0.95) / stats.norm.ppf(0.95) * np.sqrt(1 + 1 / 8)
    for one, other in zip(wider, narrower, strict=True):
        assert np.exp(one.shape.offset - other.shape.offset) == pytest.approx(expected)
