"""Distributions with atoms: against draws, against sums over values, and against the smooth one."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.integrate import quad

from mvenet.distributions import LogNormalMixture, NormalMixture, WithAtoms

MEANS = np.array([[0.1, -0.4], [1.2, 0.9], [0.4, 2.0]])
STDS = np.array([[0.3, 0.5], [1.0, 1.0], [0.1, 0.2]])
WEIGHTS = np.array([[0.2, 0.5], [0.5, 0.1], [0.3, 0.4]])
KINDS = {
    "normal": NormalMixture(MEANS, STDS, WEIGHTS),
    "log-normal": LogNormalMixture(0.5 * MEANS, 0.5 * STDS, WEIGHTS),
}
INF = np.inf
ATOMS = {
    "ends": ([0.0, 1.0], [[-INF, 0.2], [0.9, INF]]),
    "inside": ([0.5], [[0.4, 0.7]]),
    "grid": ([0.0, 1.0, 2.0], [[-INF, 0.5], [0.5, 1.5], [1.5, INF]]),
}


@pytest.fixture(params=[(kind, atoms) for kind in KINDS for atoms in ATOMS], ids=str)
def dist(request):
    kind, atoms = request.param
    return WithAtoms(KINDS[kind], *ATOMS[atoms], resolution=0.05)


def test_moments_masses_and_cdf_are_those_of_draws(dist):
    n = 200_000
    draws = dist.sample(n, random_state=0)
    error = 5 * draws.std(axis=0) / np.sqrt(n)
    assert (np.abs(draws.mean(axis=0) - dist.mean) < error).all()
    assert_allclose(draws.std(axis=0), dist.std, rtol=0.03)
    for atom in dist.atoms:
        assert_allclose((draws == atom).mean(axis=0), dist.pmf(atom), atol=5 * 0.5 / np.sqrt(n))
    for y in (-0.3, 0.0, 0.45, 0.5, 0.95, 1.0, 3.0):
        assert_allclose((draws <= y).mean(axis=0), dist.cdf(y), atol=5 * 0.5 / np.sqrt(n))
    assert_allclose(dist.var, dist.std**2)


def test_crps_is_the_integral_of_the_squared_distance_of_the_cdf(dist):
    for y in (-0.7, 0.1, 0.5, 1.0, 2.4):
        for row in range(2):
            one = dist[row]
            breaks = sorted({*dist.atoms, *dist.cells[np.isfinite(dist.cells)], y})
            ends = [-8.0, *breaks, 60.0]

            def square(x, one=one, y=y):
                return (one.cdf(x)[0] - (x >= y)) ** 2

            # Between two breaks the cdf has no step: a hair inside of both.
            parts = [
                quad(square, a + 1e-9, b - 1e-9, limit=200)[0] for a, b in itertools.pairwise(ends)
            ]
            assert_allclose(dist.crps(y)[row], sum(parts), rtol=2e-5, atol=1e-6)


def test_quantiles_invert_the_cdf_and_are_values_that_occur(dist):
    levels = np.linspace(0.01, 0.99, 50)
    found = dist.ppf(levels)
    assert (np.diff(found, axis=1) >= 0).all()
    for level, values in zip(levels, found.T, strict=True):
        assert (dist.cdf(values) >= level - 1e-9).all()
        assert (dist.cdf(values - 1e-7) <= level + 1e-6).all()
    if dist.everywhere:
        assert np.isin(found, dist.atoms).all()
    assert_array_equal(dist.median, dist.ppf(0.5))


def test_log_density_is_of_the_cell_around_y_and_never_infinite(dist):
    for y in (-2.0, 0.0, 0.3, 0.5, 1.0, 9.0):
        found = dist.logpdf(y)
        assert not np.isposinf(found).any()
        mass = dist.cdf(y + 0.025) - dist.cdf(y - 0.025)
        likely = mass > 0.01
        assert_allclose(found[likely], np.log(mass[likely] / 0.05), atol=0.05)
        if isinstance(dist.smooth, NormalMixture):
            assert np.isfinite(found).all()  # also of a value that no row has had


def test_a_grid_sums_over_its_values():
    smooth = NormalMixture([[0.3], [1.4]], [[0.6], [0.4]], [0.4, 0.6])
    dist = WithAtoms(smooth, *ATOMS["grid"], resolution=1.0)
    mass = np.diff([0.0, *(smooth.cdf(x)[0] for x in (0.5, 1.5)), 1.0])
    values = np.arange(3)
    assert_allclose([dist.pmf(v)[0] for v in values], mass)
    assert_allclose(dist.mean, mass @ values)
    assert_allclose(dist.var, mass @ values**2 - (mass @ values) ** 2)
    assert_allclose(dist.crps(1.0), sum((np.cumsum(mass)[:2] - [0, 1]) ** 2))
    assert dist.mode == values[mass.argmax()]
    assert dist.pmf(0.5) == 0.0


def test_a_share_of_the_variance_is_epistemic():
    smooth = NormalMixture([[0.0], [2.0]], [[1.0], [1.0]])
    dist = WithAtoms(smooth, [0.0], [[-INF, 0.1]], 0.1)
    assert_allclose(dist.epistemic / dist.var, smooth.epistemic / smooth.var)
    assert_allclose(dist.aleatoric + dist.epistemic, dist.std**2)


def test_rows_are_selected_with_their_weights(dist):
    for row in range(2):
        one = dist[row]
        assert_array_equal(one.mean, dist.mean[[row]])
        assert_array_equal(one.ppf([0.1, 0.9]), dist.ppf([0.1, 0.9])[[row]])


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"atoms": []}, "atoms"),
        ({"atoms": [np.nan]}, "finite"),
        ({"atoms": [3.0]}, "lie in their cells"),
        ({"cells": [[0.0, 1.0], [0.5, 2.0]], "atoms": [0.0, 2.0]}, "overlap"),
        ({"cells": [0.0, 1.0]}, "cells"),
        ({"resolution": 0.0}, "resolution"),
        ({"resolution": np.nan}, "resolution"),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused(change, what):
    with pytest.raises(ValueError, match=what):
        WithAtoms(
            KINDS["normal"], **{"atoms": [0.5], "cells": [[0, 1]], "resolution": 0.1} | change
        )


# --- weights by row -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_weights_of_each_row_are_those_of_a_mixture_of_its_own(kind):
    both, make = KINDS[kind], type(KINDS[kind])
    means, stds = (MEANS, STDS) if kind == "normal" else (0.5 * MEANS, 0.5 * STDS)
    y = np.array([0.4, 1.1])
    for row in range(2):
        alone = make(means[:, [row]], stds[:, [row]], WEIGHTS[:, row])
        for name in ("logpdf", "cdf", "sf", "crps"):
            assert_allclose(
                getattr(both, name)(y)[row], getattr(alone, name)(y[row])[0], rtol=1e-12
            )
        for name in ("mean", "std", "var", "aleatoric", "epistemic", "median"):
            assert_allclose(getattr(both, name)[row], getattr(alone, name)[0], rtol=1e-12)
        assert_allclose(both.ppf([0.05, 0.6])[row], alone.ppf([0.05, 0.6])[0], rtol=1e-12)
        assert_allclose(both.mode[row], alone.mode[0], rtol=1e-6)
    draws = both.sample(100_000, random_state=1)
    assert_allclose(draws.mean(axis=0), both.mean, atol=0.02)


def test_weights_of_another_shape_are_refused():
    with pytest.raises(ValueError, match="weights"):
        NormalMixture(MEANS, STDS, WEIGHTS[:, :1])
    with pytest.raises(ValueError, match="all be 0"):
        NormalMixture(MEANS, STDS, [[1.0, 0.0]] * 3)


# --- modes, shortest intervals and regions -------------------------------------------------------


def test_the_mode_is_where_the_density_is_highest():
    for dist in KINDS.values():
        grid = np.linspace(0.001, 4, 40_001)
        for row in range(2):
            density = [dist[row].pdf(x)[0] for x in grid[::40]]
            best = grid[::40][int(np.argmax(density))]
            assert_allclose(dist.mode[row], best, atol=0.06)
            assert dist[row].logpdf(dist.mode[row]) >= np.log(max(density)) - 1e-9


def test_the_shortest_interval_of_a_skewed_distribution_is_shorter_and_covers():
    dist = LogNormalMixture([[0.0]], [[0.8]])
    short, central = dist.shortest_interval(0.9)[0], dist.interval(0.9)[0]
    assert np.diff(short) < 0.9 * np.diff(central)
    assert_allclose(dist.cdf(short[1]) - dist.cdf(short[0]), 0.9, atol=1e-6)
    assert_allclose(
        NormalMixture([[2.0]], [[1.0]]).shortest_interval(0.9), [[0.355, 3.645]], atol=0.01
    )
    assert dist.shortest_interval([0.5, 0.9]).shape == (1, 2, 2)


def test_a_region_of_highest_density_has_a_part_for_each_mode():
    dist = NormalMixture([[-3.0], [3.0]], [[0.5], [0.5]])
    (region,) = dist.hdi(0.9)
    assert region.shape == (2, 2)
    mass = sum(dist.cdf(high)[0] - dist.cdf(low)[0] for low, high in region)
    assert_allclose(mass, 0.9, atol=0.01)
    assert (region[:, 1] - region[:, 0]).sum() < np.diff(dist.interval(0.9)[0])
    (one,) = NormalMixture([[0.0]], [[1.0]]).hdi(0.9)
    assert_allclose(one, [[-1.645, 1.645]], atol=0.05)


def test_a_region_names_atoms_as_intervals_of_no_length():
    smooth = NormalMixture([[0.0], [4.0]], [[0.5], [0.5]])
    dist = WithAtoms(smooth, [0.0], [[-INF, 1.0]], 0.1)
    (region,) = dist.hdi(0.9)
    assert_array_equal(region[0], [0.0, 0.0])
    assert 3.0 < region[1, 0] < region[1, 1] < 5.0


def test_a_plain_normal_has_the_usual_answers():
    dist = NormalMixture([[1.0, 2.0]], [[1.0, 3.0]])
    assert_allclose(dist.mode, [1.0, 2.0])
    assert_array_equal(dist.pmf(1.0), [0.0, 0.0])
    assert_allclose(dist.sf(3.0), stats.norm.sf(3.0, [1, 2], [1, 3]))
    with pytest.raises(ValueError, match="coverage"):
        dist.hdi([0.5, 0.9])
    with pytest.raises(ValueError, match="coverage"):
        dist.hdi(1.5)
