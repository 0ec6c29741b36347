"""Trained networks, and what they say of a row alone as among others."""

from __future__ import annotations

import copy
import pickle
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from mvenet import _engine
from mvenet._models.architecture import Architecture
from mvenet._models.networks import Networks
from mvenet._models.piecewise import Piecewise

ROWS, COLUMNS, SEVERAL = 70, 5, 3


def table():
    return np.random.default_rng(3).normal(2.0, 3.0, (ROWS, COLUMNS))


def made(architecture, inputs, dtype=np.float32, same=False):
    """Networks with random weights; with the same standardisation or each with its own."""
    rng = np.random.default_rng(7)
    sizes = [list(pairwise(part)) for part in architecture.sizes(inputs)]
    count = sum((a + 1) * b for pairs in sizes for a, b in pairs)
    mean, scale = rng.normal(size=(SEVERAL, inputs)), rng.uniform(0.5, 2, (SEVERAL, inputs))
    if same:
        mean[:], scale[:] = mean[0], scale[0]
    parameters = (0.3 * rng.normal(size=(SEVERAL, count))).astype(dtype)
    return Networks(
        architecture, parameters, mean, scale, rng.normal(size=SEVERAL), rng.uniform(1, 2, SEVERAL)
    )


@pytest.mark.parametrize("simd", _engine.instruction_sets())
@pytest.mark.parametrize("hidden", [(), (3,), (40, 20), (64, 64, 64), (200,)])
@pytest.mark.parametrize("reading", ["plain", "pieces", "pieces and one more"])
def test_a_row_alone_has_the_same_bits_as_among_others(hidden, reading, simd, monkeypatch):
    monkeypatch.setenv("MVENET_SIMD", simd)
    X = table()
    piecewise = Piecewise.of(X) if reading != "plain" else None
    last = np.linspace(-1, 1, ROWS) if reading == "pieces and one more" else None
    inputs = COLUMNS if piecewise is None else COLUMNS + len(piecewise.column)
    inputs += last is not None
    kinds = [("elu", hidden, None), ("relu", None, hidden), ("tanh", hidden, (7,))]
    kinds += [("silu", hidden, hidden)]
    for activation, mean, variance in kinds:
        for dtype in (np.float32, np.float64):
            networks = made(Architecture(mean, variance, activation), inputs, dtype, dtype is float)
            told = np.array(networks.predict(X, piecewise=piecewise, last=last))
            assert np.ptp(told[:, 0], axis=-1).max() > 0
            for some in (slice(0, 1), slice(33, 34), slice(69, 70), slice(8, 11)):
                own = None if last is None else last[some]
                alone = networks.predict(X[some], piecewise=piecewise, last=own)
                assert_array_equal(alone, told[..., some])


def test_bounded_inputs_and_natural_parameters_alone_as_among_others():
    X = 50 * table()
    for architecture in (
        Architecture((20, 10), (20, 10), "silu", input_bound=3.0),
        Architecture((20, 10), (20, 10), "elu", natural=True),
    ):
        networks = made(architecture, COLUMNS)
        told, moments = networks.predict(X), np.array(networks.moments(X))
        for row in (0, 40):
            alone = X[row : row + 1]
            assert_array_equal(np.array(networks.predict(alone))[..., 0], np.array(told)[..., row])
            assert_array_equal(np.array(networks.moments(alone))[:, 0], moments[:, row])
            assert_array_equal(networks.means(alone)[:, 0], told[0][:, row])


def test_networks_too_large_to_be_kept_predict_a_row_all_the_same():
    networks = made(Architecture((3000, 2000), None, "relu"), COLUMNS)  # 72 MB
    X = table()
    assert_array_equal(networks.means(X[:1])[:, 0], networks.means(X[:2])[:, 0])


def test_what_is_remembered_is_no_part_of_the_networks():
    X = table()
    networks = made(Architecture((4,), (4,), "elu"), COLUMNS)
    before = pickle.dumps(networks)
    told = networks.predict(X[:1])
    assert pickle.dumps(networks) == before
    networks.check()
    for again in (pickle.loads(before), copy.copy(networks), copy.deepcopy(networks)):
        assert again.remembered() is None
        assert_array_equal(again.predict(X[:1]), told)


def test_another_way_to_read_is_another_network():
    X = table()
    one, other = Piecewise.of(X), Piecewise.of(2 * X)
    networks = made(Architecture((4,), (4,), "elu"), COLUMNS + len(one.column))
    first = networks.predict(X[:1], piecewise=one)
    second = networks.predict(X[:1], piecewise=other)
    assert (np.array(first) != np.array(second)).any()
    assert_array_equal(networks.predict(X[:1], piecewise=one), first)
