"""Distributions before ends: against SciPy's normal, integrals of it, and draws."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.integrate import quad

from mvenet.distributions import Bounded, LogNormalMixture, Normal, NormalMixture, WithAtoms
from mvenet.distributions._scores import outcomes

INF = np.inf
MEANS = np.array([[0.1, -0.4, 0.5, -30.0], [1.2, 0.9, 0.5, -30.0], [0.4, 2.0, 0.5, -30.0]])
STDS = np.array([[0.3, 0.5, 0.01, 1.0], [1.0, 1.0, 0.01, 1.0], [0.1, 0.2, 0.01, 1.0]])
WEIGHTS = np.array([[0.2, 0.5, 0.3, 0.3], [0.5, 0.1, 0.3, 0.3], [0.3, 0.4, 0.4, 0.4]])
WHOLE = NormalMixture(MEANS, STDS, WEIGHTS)
ENDS = {
    "both": ([0.0, 1.0], [0.1, 0.05]),
    "low": ([0.0, INF], [0.02, 1.0]),
    "high": ([-INF, 1.5], [1.0, 0.2]),
}


def moved(z, ends, reach):
    """The formula of the docstring, for one outcome."""
    (low, high), (a, b) = ends, reach
    if z < low + a:
        return low + a * np.exp((z - low) / a - 1)
    return high - b * np.exp((high - z) / b - 1) if z > high - b else z


def expected(row, of, ends, reach):
    """The mean of a function of what becomes of a row's normals, member by member."""
    total = 0.0
    for mean, std, weight in zip(MEANS[:, row], STDS[:, row], WEIGHTS[:, row], strict=True):
        breaks = [mean - 12 * std, ends[0] + reach[0], ends[1] - reach[1], mean + 12 * std]
        places = np.unique(np.clip(breaks, mean - 12 * std, mean + 12 * std))
        for low, high in itertools.pairwise(places):
            part = quad(
                lambda z, m=mean, s=std: of(moved(z, ends, reach)) * stats.norm.pdf(z, m, s),
                low, high, limit=400, epsabs=1e-13,
            )[0]  # fmt: skip
            total += weight * part
    return total


@pytest.fixture(params=ENDS)
def dist(request):
    return Bounded(WHOLE, *ENDS[request.param])


def test_moments_are_integrals_over_the_normals(dist):
    for row in range(3):
        mean = expected(row, lambda y: y, dist.ends, dist.reach)
        assert_allclose(dist.mean[row], mean, atol=1e-9)
        square = expected(row, lambda y, m=mean: (y - m) ** 2, dist.ends, dist.reach)
        assert_allclose(dist.std[row] ** 2, square, rtol=1e-7, atol=1e-10)
    assert_allclose(dist.var, dist.std**2, atol=1e-12)


def test_cdf_quantiles_and_draws_are_those_of_moved_normals(dist):
    levels = np.array([1e-9, 0.01, 0.3, 0.5, 0.9, 1 - 1e-9])
    inside = [[moved(z, dist.ends, dist.reach) for z in row] for row in WHOLE.ppf(levels).tolist()]
    found = dist.ppf(levels)
    assert_allclose(found, inside, rtol=1e-12)
    # An upper end has fewer digits next to it than zero has.
    assert_allclose(dist.cdf(found)[:3], np.tile(levels, (3, 1)), atol=1e-6)
    draws = dist.sample(1000, random_state=0)
    assert (draws >= dist.ends[0]).all() and (draws <= dist.ends[1]).all()
    scores = np.linspace(-3, 3, 8)[:, None].repeat(4, axis=1)
    back = dist.cdf(outcomes(dist, scores)[2])[:3]
    assert_allclose(back, stats.norm.cdf(scores[2, :3]), atol=1e-6)


def test_density_is_the_slope_of_the_cdf_and_never_infinite_inside(dist):
    steps = 1e-6
    for y in (0.004, 0.05, 0.3, 0.96, 0.97, 1.4):
        if dist.ends[0] < y < dist.ends[1]:
            slope = (dist.cdf(y + steps) - dist.cdf(y - steps)) / (2 * steps)
            assert_allclose(dist.pdf(y)[:2], slope[:2], rtol=2e-4)
    for end in dist.ends[np.isfinite(dist.ends)]:
        assert np.isfinite(dist.logpdf(end)).all() and (dist.pmf(end) == 0).all()
    assert (dist.logpdf(dist.ends[np.isfinite(dist.ends)][0] * 1e3 - 1e3) < -1e2).all()
    assert np.isnan(dist.cdf(np.nan)).all() and np.isnan(dist.logpdf(np.nan)).all()


def test_crps_is_the_integral_of_the_squared_distance_of_the_cdf(dist):
    for row, y in itertools.product(range(2), (-0.7, 0.05, 0.5, 1.2)):
        one = dist[row]
        known = {y, *dist.inner[np.isfinite(dist.inner)], *dist.ends[np.isfinite(dist.ends)]}
        parts = [
            quad(
                lambda x, y=y, one=one: (one.cdf(x)[0] - (x >= y)) ** 2,
                a,
                b,
                limit=300,
                epsabs=1e-11,
            )[0]
            for a, b in itertools.pairwise([-9.0, *sorted(known), 9.0])
        ]
        assert_allclose(one.crps(y)[0], sum(parts), atol=1e-8)


def test_modes_are_the_densest_places(dist):
    places = np.concatenate([np.geomspace(1e-3, 1, 400), np.linspace(1, 3, 100)])
    places = np.unique(np.concatenate([places, 1 - places, 1.5 - places]))
    nearest = 0.01 * dist.reach  # closer to an end, no place is denser
    low, high = dist.ends + np.array([1, -1]) * nearest
    places = places[(places >= low) & (places <= high)]
    highest = dist.logpdf(np.tile(places, (4, 1))).max(axis=1)
    assert (dist.logpdf(dist.mode)[:3] >= highest[:3] - 0.02).all()


def test_what_is_far_beyond_is_at_the_end():
    dist = Bounded(NormalMixture([[-50.0, 50.0]], [[1.0, 0.5]]), [0.0, 1.0], [0.1, 0.1])
    assert_allclose(dist.mean, [0.0, 1.0], atol=1e-9)
    assert (dist.std < 1e-2).all() and (dist.std > 0).all()
    for values in (dist.ppf([0.05, 0.95]), dist.sample(5, 0), dist.crps(0.5), dist.mode):
        assert np.isfinite(values).all()
    assert_allclose(dist.crps(0.5), 0.5, atol=1e-9)


def test_atoms_between_ends():
    dist = WithAtoms(Bounded(WHOLE, *ENDS["both"]), [0.5], [[0.45, 0.55]], resolution=0.01)
    draws = dist.sample(200_000, random_state=0)[:, :2]
    error = 5 * draws.std(axis=0) / np.sqrt(len(draws))
    assert (np.abs(draws.mean(axis=0) - dist.mean[:2]) < error).all()
    assert_allclose(draws.std(axis=0), dist.std[:2], rtol=0.01)
    assert_allclose((draws == 0.5).mean(axis=0), dist.pmf(0.5)[:2], atol=0.003)
    with pytest.raises(ValueError, match=r"out of the reach of ends, got 0\.05; shorten"):
        WithAtoms(Bounded(WHOLE, *ENDS["both"]), [0.05], [[0.0, 0.1]], resolution=0.01)


def test_a_single_normal_and_rows_of_it():
    dist = Bounded(Normal([0.1, 0.5], [0.2, 0.1]), [0, 1], [0.05, 0.05])
    assert_array_equal(dist[1].ppf([0.1, 0.9]), dist.ppf([0.1, 0.9])[[1]])
    assert_array_equal(dist[::-1].mean, dist.mean[::-1])
    assert repr(dist) == "Bounded(low=0, high=1, n=2)"


@pytest.mark.parametrize(
    ("whole", "ends", "reach", "error", "what"),
    [
        (LogNormalMixture([[0.0]], [[1.0]]), [0, 1], [0.1, 0.1], TypeError, "must be normal"),
        (WHOLE, [1, 0], [0.1, 0.1], ValueError, "must rise"),
        (WHOLE, [0, 1], [0.6, 0.6], ValueError, "farther apart"),
        (WHOLE, [0, np.nan], [0.1, 0.1], ValueError, "must rise"),
        (WHOLE, [0, 1], [0.1, 0.0], ValueError, "reach must be positive, got 0.0"),
        (WHOLE, [0, 1], [0.1], ValueError, "one for each end"),
        (WHOLE, 0, [0.1, 0.1], ValueError, "a lower and an upper"),
        (WHOLE, [INF, INF], [0.1, 0.1], ValueError, "must rise"),
    ],
)
def test_what_makes_no_sense_is_told(whole, ends, reach, error, what):
    with pytest.raises(error, match=what):
        Bounded(whole, ends, reach)
