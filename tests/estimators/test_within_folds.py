"""Encodings that learn from y learn, for rows left out, from the rows that their fold trains on."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import PredefinedSplit
from sklearn.preprocessing import TargetEncoder

from mvenet import AutoRegressor, MVERegressor, MVERegressorCV
from mvenet._estimators.base import described
from mvenet._estimators.dependence import Belonging

N, LEVELS = 200, 50
RNG = np.random.default_rng(0)
TOWN = RNG.permutation(np.arange(N) % LEVELS)
X = pd.DataFrame({"size": RNG.normal(size=N), "town": [f"town {i}" for i in TOWN]})
Y = 3.0 * np.sin(TOWN) + X["size"].to_numpy() + RNG.normal(size=N)
QUICK = {"epochs": 3, "warmup_epochs": 3, "random_state": 0}
EVERY = {
    "AutoRegressor": AutoRegressor("low", ["linear"], cv=4, random_state=0),
    "cross-fit": MVERegressor(**QUICK),
    "MVERegressorCV": MVERegressorCV([1e-3], [1e-2], cv=4, strategy="warmup", **QUICK),
}


def read(model, y=Y, belonging=None):
    """What networks read, and the folds."""
    _, (plan,) = described([model], X, y, belonging=belonging or Belonging(None, None, None))
    return plan.rounds[0].requests[0].table.source, plan.folds


def means(train, left_out, y):
    """The town's mean by an encoder of another library, fitted on rows to train on."""
    cells = X[["town"]].to_numpy()
    return TargetEncoder(target_type="continuous").fit(cells[train], y[train]).transform(
        cells[left_out]
    )[:, 0]  # fmt: skip


@pytest.mark.parametrize("model", EVERY.values(), ids=EVERY)
def test_rows_left_out_are_encoded_by_rows_trained_on(model):
    numbers, folds = read(model)
    for train, left_out in folds:
        assert_allclose(numbers[left_out, 1], means(train, left_out, Y), rtol=1e-12)


@pytest.mark.parametrize("model", EVERY.values(), ids=EVERY)
def test_what_a_fold_leaves_out_does_not_reach_its_own_rows(model):
    numbers, folds = read(model)
    _, left_out = folds[1]
    other = Y.copy()
    other[left_out] += 5 * RNG.normal(size=len(left_out))
    again, _ = read(model, other)
    assert_array_equal(again[left_out, :2], numbers[left_out, :2])


def test_no_row_knows_of_what_comes_after_it():
    time = np.arange(N, dtype=float)
    model = AutoRegressor("low", ["linear"], random_state=0)
    numbers, folds = read(model, belonging=Belonging(None, time, None))
    train, left_out = folds[-1]
    other = Y.copy()
    other[left_out] += 5 * RNG.normal(size=len(left_out))
    again, _ = read(model, other, Belonging(None, time, None))
    rows = np.concatenate([train, left_out])
    assert_array_equal(again[rows], numbers[rows])


def test_rows_that_no_fold_leaves_out_tell_of_each_other():
    fold = np.where(np.arange(N) < 60, -1, np.arange(N) % 3)
    model = AutoRegressor("low", ["linear"], cv=PredefinedSplit(fold), random_state=0)
    numbers, folds = read(model)
    other = Y.copy()
    other[fold >= 0] += 1.0
    again, _ = read(model, other)
    assert len(folds) == 3
    assert_array_equal(again[:60], numbers[:60])
    own = np.array([numbers[i, 1] == means(np.arange(60), [i], Y)[0] for i in range(60)])
    assert not own.all()  # none tells its own target
