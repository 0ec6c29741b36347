"""Rows in time: how many of them count as one, and how errors grow with distance."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.signal import lfilter

from mvenet._automatic import serial, stacking
from mvenet._automatic.out_of_fold import Candidate, OutOfFold
from mvenet._estimators.folds import folds_of_table
from mvenet._models.seen import Range
from mvenet._training.dependence import Dependence
from mvenet._training.plan import Table

N = 160
DAYS = np.random.default_rng(0).permutation(N).astype(float)
Y = np.random.default_rng(1).normal(size=N)


def left_out(y=Y, weight=None):
    X = np.column_stack([DAYS, Y])
    table = Table(X, y, weight, np.arange(N), dependence=Dependence(None, DAYS))
    return OutOfFold(table, folds_of_table("cv", 5, table, 0), log=False)


def chain(rho, n, seed=0):
    """Values of which each remembers the one before."""
    return lfilter([1.0], [1.0, -rho], np.random.default_rng(seed).normal(size=n + 500))[500:]


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_memory_of_a_chain(rho):
    expected = (1 + rho) / (1 - rho)  # of an autoregression: variance of the mean, times n
    assert serial.memory(chain(rho, 100_000)) == pytest.approx(expected, rel=0.1)


def test_memory_of_few_equal_and_no_values():
    assert serial.memory(np.ones(3)) == 1.0
    assert serial.memory(np.zeros(50)) == 1.0
    assert 25 < serial.memory(np.ones(50)) <= 50  # an error that never ends is one
    assert serial.memory(np.tile([1.0, -1.0], 25)) == 1.0


def test_the_standard_error_in_time_is_that_of_means_of_such_chains():
    held_out = left_out()
    order = np.argsort(np.argsort(DAYS[held_out.rows]))
    chains = [chain(0.7, len(held_out.rows), seed)[order] for seed in range(300)]
    told = np.median([held_out.standard_error(values) for values in chains])
    assert told == pytest.approx(np.std([values.mean() for values in chains]), rel=0.25)


def test_blocks_of_time_are_as_long_as_the_memory():
    values = np.empty(N)
    values[np.argsort(DAYS)] = chain(0.8, N)
    held_out = left_out(values)
    held_out.mix([Candidate("noise", np.zeros(N), 1.0, log_std=np.zeros(N))], 0)
    in_order = held_out.rows[np.argsort(DAYS[held_out.rows])]
    length = int(np.ceil(serial.memory(values[in_order])))
    blocks = dict(zip(held_out.rows.tolist(), held_out.unit_of.tolist(), strict=True))
    assert length > 3
    assert_array_equal([blocks[row] for row in in_order], np.arange(len(in_order)) // length)
    assert held_out.caution > 1.0


def test_a_stretch_has_no_say_in_the_shares_of_its_own_mean():
    weight = np.random.default_rng(3).uniform(0.5, 2, N)
    held_out = left_out(weight=weight)
    rng = np.random.default_rng(4)
    means = Y + rng.normal(size=(3, N)) * np.array([[0.5], [0.7], [1.0]])
    candidates = [Candidate(str(k), mean, 1.0) for k, mean in enumerate(means)]
    blended = held_out.blend(candidates)
    for train, test in folds_of_table("cv", 5, held_out.table, 0):
        others = np.setdiff1d(held_out.rows, test)
        assert not set(others) & set(test) and len(train)
        shares = stacking.blend(means[:, others], Y[others], weight[others])
        assert_allclose(blended[test], shares @ means[:, test])
    every = stacking.blend(means[:, held_out.rows], Y[held_out.rows], weight[held_out.rows])
    assert_allclose([c.share for c in candidates], every)


def test_later_rows_are_after_each_stretch():
    held_out = left_out()
    for number, (_, test) in enumerate(folds_of_table("cv", 5, held_out.table, 0)):
        rows = held_out.later[number]
        assert len(rows) == (4 - number) * N // 8
        assert not len(rows) or DAYS[rows].min() > DAYS[test].max()


@pytest.mark.parametrize("grown", [0.0, 3.0])
def test_what_errors_grow_by_is_found_again(grown):
    """Errors of later stretches made by the formula that a prediction has."""
    held_out = left_out()
    (below, above), pace = held_out.beyond, held_out.pace
    assert pace[0] == pytest.approx(8 / N) and pace[1] == 0  # the days drift, the other does not
    X = held_out.table.source
    seen = Range.of(X, 10 * Y, 0.3).reaching(below, above)
    means = []
    for number, rows in enumerate(held_out.later):
        train = held_out.trained_on(number)
        own = Range.of(X[train], Y[train], 0.3).reaching(below, above)
        own = replace(own, pace=pace, drift_std=grown)
        variance = 0.09 + own.added_variance(X[rows], own.within(X[rows]), own.y_std)
        means.append(Y[rows] - np.sqrt(variance))
    candidate = Candidate("mean", Y, 1.0, later=means, share=1.0)
    assert serial.distant_error(held_out, [candidate], seen) == pytest.approx(grown, abs=1e-6)
