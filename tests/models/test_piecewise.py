"""Columns cut into pieces: the encoding, and the engine that reads it."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from mvenet._models.architecture import Architecture
from mvenet._models.networks import Networks
from mvenet._models.piecewise import Piecewise

RNG = np.random.default_rng(0)


def test_pieces_rise_within_their_quantiles_and_are_flat_beyond():
    x = RNG.exponential(size=(500, 2))
    piecewise = Piecewise.of(x)
    encoded = piecewise.encode(x)
    assert encoded.shape == (500, 2 + 32) and encoded.dtype == np.float32
    assert encoded[:, 2:].min() == 0 and encoded[:, 2:].max() == 1
    # The sum of a column's pieces counts the quantiles below a value, and so its rank.
    rank = stats.rankdata(x[:, 0]) / 500
    assert_allclose(encoded[:, 2:18].sum(axis=1) / 16, rank, atol=0.05)
    far = piecewise.encode(np.array([[1e9, -1e9], [x[:, 0].max(), x[:, 1].min()]]))
    assert_array_equal(far[0, 2:], far[1, 2:])
    assert np.abs(far[:, :2]).max() <= 3


def test_pieces_of_constant_binary_and_many_columns():
    x = np.column_stack([np.ones(50), RNG.integers(0, 2, 50), RNG.normal(size=50)])
    piecewise = Piecewise.of(x)
    assert np.bincount(piecewise.column, minlength=3)[:2].tolist() == [0, 1]
    assert np.isfinite(piecewise.encode(x)).all()
    assert Piecewise.of(RNG.normal(size=(30, 700))).encode(np.zeros((2, 700))).shape[1] <= 1_400


@pytest.mark.parametrize("hidden", [(), (5,), (40, 20), (70, 3)])
@pytest.mark.parametrize("further", [False, True])
def test_the_engine_reads_pieces_as_they_are_written_down(hidden, further):
    rng = np.random.default_rng(7)
    x = np.column_stack([rng.normal(size=(90, 3)), np.ones(90), rng.integers(0, 3, 90)])
    piecewise = Piecewise.of(x)
    x[0], x[1], x[2] = 1e300, -1e9, piecewise.low[:5]  # far away, and where pieces meet
    last = 1e6 + rng.normal(size=90) if further else None
    z = piecewise.bounded(x).astype(np.float64)
    parts = np.clip((x[:, piecewise.column] - piecewise.low) / piecewise.width, 0, 1)
    written = np.column_stack([z, parts, *([last] if further else [])])
    architecture = Architecture(hidden, hidden, "silu")
    inputs, several = written.shape[1], 3
    sizes = [list(pairwise(part)) for part in architecture.sizes(inputs)]
    count = sum((a + 1) * b for pairs in sizes for a, b in pairs)
    mean = written[10:].mean(axis=0) + 0.01 * rng.normal(size=(several, inputs))
    networks = Networks(
        architecture,
        0.2 * rng.normal(size=(several, count)),
        mean,
        np.maximum(written[10:].std(axis=0), 0.1) * rng.uniform(0.9, 1.1, (several, inputs)),
        rng.normal(size=several),
        rng.uniform(1, 2, several),
    )
    expected = networks.predict(written)
    told = networks.predict(x, piecewise=piecewise, last=last)
    assert_allclose(told, expected, rtol=2e-6, atol=2e-6)  # columns are written in float32
    single = replace(networks, parameters=networks.parameters.astype(np.float32))
    told = single.predict(x, piecewise=piecewise, last=last)
    assert_allclose(told, expected, rtol=5e-5, atol=5e-5)
    assert_array_equal(told, single.predict(x, 2, piecewise=piecewise, last=last))
    for row in (0, 2, 33, 89):  # alone as among others
        at = slice(row, row + 1)
        alone = single.predict(x[at], piecewise=piecewise, last=None if last is None else last[at])
        assert_array_equal(np.array(alone)[..., 0], np.array(told)[..., row])
