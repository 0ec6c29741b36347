"""Networks trained on all rows, and how much better they are than those of the folds."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mvenet import AutoRegressor
from mvenet._automatic import refit
from mvenet._automatic.out_of_fold import OutOfFold
from mvenet._training.plan import Table


def test_what_the_model_knows_more_than_the_folds_networks_is_measured():
    rng = np.random.default_rng(0)
    n = 200_000
    y, common, more = rng.normal(size=(3, n)) * np.array([[1.0], [0.6], [0.5]])
    own = 0.4 * rng.normal(size=(4, n))  # differs from start to start
    rows = np.arange(n)
    folds = [(rows[rows % 5 != f], rows[rows % 5 == f]) for f in range(5)]
    held_out = OutOfFold(Table(np.zeros((n, 1)), y, None, rows), folds, log=False)
    growth = np.log(5 / 4) / np.log(4 / 3)
    curve = refit._LearningCurve(held_out, {}, growth)
    gain = curve._gain(common + own[0], common + more + own[2:], np.full(n, 3.0), 1.0)
    first, further = 1 + 0.36 + 0.16, 1 + 0.36 + 0.25 + 0.16
    assert_allclose(gain.more_rows, np.sqrt(first / further) ** growth, rtol=0.01)
    assert_allclose(gain.random, 0.16 / further, rtol=0.05)
    assert gain.rows == n
    assert_allclose(gain.factor(1), gain.more_rows, rtol=1e-3)
    assert (
        gain.more_rows * np.sqrt(1 - gain.random)
        < gain.factor(10)
        < gain.factor(2)
        < gain.more_rows
    )
    # Networks that are averages of two starts are better already: there is less to gain.
    twice = common + own[:2].mean(axis=0)
    averages = curve._gain(twice, common + more + own[2:], np.full(n, 3.0), 0.5)
    assert_allclose(averages.factor(2), gain.more_rows, rtol=0.01)
    share = np.sqrt((1 - 0.9 * gain.random) / (1 - 0.5 * gain.random))
    assert_allclose(averages.factor(10), gain.more_rows * share, rtol=0.01)
    nothing = curve._gain(common, np.array([common, common]), np.full(n, 3.0), 1.0)
    assert nothing.factor(4) == 1.0


@pytest.mark.slow
def test_intervals_of_a_table_without_noise_are_not_too_wide():
    x, y = smooth(500, 0)
    new, new_y = smooth(4_000, 1)
    model = AutoRegressor(cv=5, random_state=0, candidates="networks").fit(x, y)
    low, high = model.predict_interval(new, 0.9).T
    assert 0.85 < np.mean((low <= new_y) & (new_y <= high)) < 0.95
    left_out = np.sqrt(np.mean((y - model.oof_mean_) ** 2))
    assert np.sqrt(np.mean((new_y - model.predict(new)) ** 2)) < 0.9 * left_out


def smooth(n, seed):
    x = np.random.default_rng(seed).uniform(-2, 2, (n, 3))
    return x, np.sin(3 * x[:, 0]) * x[:, 1] + np.cos(2 * x[:, 2])
