"""Distributions against scipy.stats, numerical integration, and the relations they must obey."""

from __future__ import annotations

import ast
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import lognorm, norm

import mvenet.distributions as module
from mvenet.distributions import Distribution, LogNormalMixture, Normal, NormalMixture

pytestmark = pytest.mark.filterwarnings("error")

relaxed = settings(deadline=None)  # the machine that runs the tests may be busy
BY_ROW = ["logpdf", "pdf", "cdf", "sf", "crps"]


def make(kind: str, n: int = 6, seed: int = 0, scale: float = 1.0) -> Distribution:
    rng = np.random.default_rng(seed)
    means, stds = scale * rng.normal(size=(4, n)), scale * rng.uniform(0.3, 2.0, size=(4, n))
    if kind == "normal":
        return Normal(means[0], stds[0])
    if kind == "log-normal":
        return LogNormalMixture(means, 0.4 * stds, weights=[0.1, 0.4, 0.2, 0.3])
    return NormalMixture(means, stds, weights=[0.1, 0.4, 0.2, 0.3])


@pytest.fixture(params=["normal", "mixture", "log-normal"])
def dist(request: pytest.FixtureRequest) -> Distribution:
    return make(request.param)


def outcomes(dist: Distribution, seed: int = 1) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    return dist.mean + 2.0 * dist.std * rng.normal(size=len(dist))


def row_cdf(dist: Distribution, row: int, z: float) -> float:
    """The distribution function of one row, by scipy.stats."""
    if isinstance(dist, LogNormalMixture):
        logs = dist.logs
        each = lognorm.cdf(z, logs.stds[:, row], scale=np.exp(logs.means[:, row]))
        return float(dist.weights @ each)
    assert isinstance(dist, Normal | NormalMixture)
    return float(dist.weights @ norm.cdf(z, dist.means[:, row], dist.stds[:, row]))


@st.composite
def mixtures(draw: st.DrawFn) -> NormalMixture:
    """Up to 4 members and 3 rows, whose modes are close enough that quantiles are well defined."""
    shape = draw(st.integers(1, 4)), draw(st.integers(1, 3))

    def array(low: float, high: float, size: tuple[int, ...]) -> NDArray[np.float64]:
        count = int(np.prod(size))
        values = draw(st.lists(st.floats(low, high), min_size=count, max_size=count))
        return np.reshape(values, size)

    return NormalMixture(
        array(-3.0, 3.0, shape), array(0.5, 5.0, shape), array(0.05, 1.0, shape[:1])
    )


# --- against independent implementations


def test_normal_agrees_with_scipy() -> None:
    dist = make("normal", n=50)
    y, reference = outcomes(dist), norm(dist.mean, dist.std)
    for method in ["logpdf", "pdf", "cdf", "sf"]:
        assert_allclose(getattr(dist, method)(y), getattr(reference, method)(y), rtol=1e-13)
    q = np.array([1e-300, 1e-12, 0.025, 0.5, 0.9, 1 - 1e-12])
    expected = norm.ppf(q, dist.mean[:, None], dist.std[:, None])
    assert_allclose(dist.ppf(q), expected, rtol=1e-13, atol=1e-13)
    assert_allclose(dist.interval(0.9), np.transpose(reference.interval(0.9)), rtol=1e-13)


def test_mixture_is_the_weighted_sum_of_scipy_normals() -> None:
    dist = make("mixture", n=50)
    y = outcomes(dist)
    for method in ["pdf", "cdf", "sf"]:
        members = getattr(norm, method)(y, dist.means, dist.stds)
        assert_allclose(getattr(dist, method)(y), dist.weights @ members, rtol=1e-13)
    assert_allclose(dist.logpdf(y), np.log(dist.pdf(y)), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("q", [1e-9, 0.01, 0.3, 0.5, 0.77, 0.999])
def test_mixture_quantiles_agree_with_brentq(q: float) -> None:
    dist = make("mixture")
    expected = [
        brentq(lambda z, row=row: row_cdf(dist, row, z) - q, -30, 30, xtol=1e-15, rtol=1e-15)
        for row in range(len(dist))
    ]
    assert_allclose(dist.ppf(q), expected, rtol=0, atol=1e-12 * dist.std.min())


def test_upper_tail_quantiles_keep_their_digits() -> None:
    dist, q = make("mixture"), 1.0 - 2.0**-50
    assert_allclose(dist.sf(dist.ppf(q)), 2.0**-50, rtol=1e-11)


def test_density_integrates_to_one(dist: Distribution) -> None:
    grid = np.linspace(-30.0, 30.0, 3001)
    log = isinstance(dist, LogNormalMixture)
    density = np.array([dist.pdf(np.exp(z)) * np.exp(z) if log else dist.pdf(z) for z in grid])
    assert_allclose(density.sum(axis=0) * (grid[1] - grid[0]), 1.0, rtol=1e-12)


def test_crps_agrees_with_numerical_integration(dist: Distribution) -> None:
    y = outcomes(dist)
    for row, score in enumerate(dist.crps(y)):
        below, _ = quad(lambda z, row=row: row_cdf(dist, row, z) ** 2, -30, y[row], limit=200)
        above, _ = quad(lambda z, row=row: (1 - row_cdf(dist, row, z)) ** 2, y[row], 300, limit=400)
        assert score == pytest.approx(below + above, rel=1e-7)


def log_normal_crps(log_means: Any, log_stds: Any, weights: Any, y: float) -> float:
    """By integration of F² below y and (1 - F)² above, over log y, in panels of Gauss-Legendre."""
    means, stds, w = (
        np.asarray(a, dtype=float)[:, None, None] for a in (log_means, log_stds, weights)
    )
    nodes, shares = np.polynomial.legendre.leggauss(20)

    def integral(sign: float, low: float, high: float) -> float:
        edges = np.linspace(low, high, 2 + int((high - low) / min(0.5, 0.5 * stds.min())))
        half = 0.5 * np.diff(edges)[:, None]
        u = edges[:-1, None] + half * (1.0 + nodes)
        tail = (w * norm.cdf(sign * (u - means) / stds)).sum(axis=0)
        with np.errstate(divide="ignore"):
            return float((half * shares * np.exp(u + 2.0 * np.log(tail))).sum())

    low, high = (means - 12.0 * stds).min() - 40.0, (means + 12.0 * stds + 2.0 * stds**2).max()
    at = np.log(y)
    return integral(1.0, min(low, at - 1.0), at) + integral(-1.0, at, max(high, at + 1.0))


@pytest.mark.parametrize("std", [0.05, 0.7, 1.5, 5.0, 11.0, 12.0, 20.0])
@pytest.mark.parametrize("y", [1e-4, 1.0, 30.0])
def test_crps_of_log_normals_of_any_width(std: float, y: float) -> None:
    """The mean of a wide one is far beyond its median: 1e31 at 12 standard deviations of log y."""
    assert_allclose(
        LogNormalMixture([[0.0]], [[std]]).crps(y),
        log_normal_crps([0.0], [std], [1.0], y),
        rtol=1e-11,
    )
    parts = [[0.3], [-2.0], [1.0]], [[std], [0.5 * std], [0.4]], [0.2, 0.3, 0.5]
    expected = log_normal_crps([0.3, -2.0, 1.0], [std, 0.5 * std, 0.4], [0.2, 0.3, 0.5], y)
    assert_allclose(LogNormalMixture(*parts).crps(y), expected, rtol=1e-11)


@pytest.mark.parametrize("std", [1e-300, 1e-160, 1e-9])
def test_crps_of_narrow_log_normals_is_that_of_normals(std: float) -> None:
    for z in (-1.5, 0.0, 0.4):
        dist = LogNormalMixture([[0.0], [0.0]], [[std], [3 * std]])
        normal = NormalMixture([[0.0], [0.0]], [[std], [3 * std]])
        if std > 1e-15:  # else no y is between
            assert_allclose(
                dist.crps(np.exp(z * std)), normal.crps(np.log(np.exp(z * std))), rtol=1e-7
            )
    assert_allclose(dist.crps(1.0), normal.crps(0.0), rtol=1e-7)
    assert_allclose(dist.std, normal.std, rtol=1e-7)


def test_log_normals_whose_mean_is_beyond_all_floats() -> None:
    dist = LogNormalMixture([[0.0], [800.0]], [[1.0], [1.0]])
    for name in ["mean", "std", "var", "aleatoric", "epistemic"]:
        assert_array_equal(getattr(dist, name), [np.inf])
    assert_array_equal(dist.crps(1.0), [np.inf])
    known = LogNormalMixture([[0.0], [1.0]], [[1.0], [40.0]], disagreement=[0.5])
    for name in ["mean", "std", "var", "aleatoric", "epistemic"]:
        assert_array_equal(getattr(known, name), [np.inf])
    # Though its mean is infinite, the score of a member is not: it is about 1e172.
    assert np.isfinite(known.crps(1.0)).all()
    assert_allclose(known.crps([2.0]), known.crps([1.0]), rtol=1e-15)
    # With weight zero it is as if it were not there.
    without = LogNormalMixture(dist.logs.means, dist.logs.stds, weights=[1.0, 0.0])
    alone = LogNormalMixture([[0.0]], [[1.0]])
    for name in ["mean", "std", "aleatoric", "epistemic"]:
        assert_array_equal(getattr(without, name), getattr(alone, name))
    assert_array_equal(without.crps(2.0), alone.crps(2.0))


# --- moments


@relaxed
@given(mixtures())
def test_variance_is_mean_of_variances_plus_variance_of_means(dist: NormalMixture) -> None:
    w = dist.weights[:, None]
    mean = (w * dist.means).sum(axis=0)
    assert_allclose(dist.mean, mean, rtol=1e-12, atol=1e-12)
    assert_allclose(dist.aleatoric, (w * dist.stds**2).sum(axis=0), rtol=1e-12)
    assert_allclose(dist.epistemic, (w * (dist.means - mean) ** 2).sum(axis=0), atol=1e-12)
    second_moment = (w * (dist.stds**2 + dist.means**2)).sum(axis=0)
    assert_allclose(dist.var, second_moment - mean**2, rtol=1e-10)
    assert_array_equal(dist.aleatoric + dist.epistemic, dist.var)
    assert_allclose(dist.std, np.sqrt(dist.var), rtol=1e-14)


def test_normal_returns_what_it_was_given() -> None:
    mean, std = [0.1, -1e12, 3.0], [0.7, 1e-12, 1e-200]
    dist = Normal(mean, std)
    assert_array_equal(dist.mean, mean)
    assert_array_equal(dist.std, std)
    assert_array_equal(dist.aleatoric, dist.var)
    assert_array_equal(dist.epistemic, np.zeros(3))


def test_equal_members_have_no_epistemic_variance_however_large_their_mean() -> None:
    dist = NormalMixture(np.full((3, 1), 1e12 + 0.1), np.full((3, 1), 1e-3))
    assert_array_equal(dist.epistemic, [0.0])
    assert_allclose(dist.std, 1e-3, rtol=1e-14)


def test_sample_has_the_moments_and_quantiles_of_the_distribution(dist: Distribution) -> None:
    size = 40_000
    draws = dist.sample(size, random_state=0)
    assert draws.shape == (size, len(dist))
    deviations = draws - dist.mean
    assert np.all(abs(deviations.mean(axis=0)) < 4.0 * dist.std / np.sqrt(size))
    error = np.std(deviations**2, axis=0) / np.sqrt(size)
    assert np.all(abs((deviations**2).mean(axis=0) - dist.var) < 4.0 * error)
    below = (draws <= dist.ppf(0.2)).mean(axis=0)
    assert np.all(abs(below - 0.2) < 4.0 * np.sqrt(0.2 * 0.8 / size))
    # Rows are independent of each other.
    correlation = np.corrcoef(draws.T) - np.eye(len(dist))
    assert abs(correlation).max() < 5.0 / np.sqrt(size)


def test_crps_is_proper_in_expectation(dist: Distribution) -> None:
    """The mean score of draws from a distribution is ½ E|X - X'|, and is worse when shifted."""
    draws = dist.sample(4000, random_state=0)
    repeated = dist[np.tile(np.arange(len(dist)), len(draws))]
    scores = repeated.crps(draws.ravel()).reshape(draws.shape).mean(axis=0)
    spread = 0.5 * abs(draws[::2] - draws[1::2])
    assert np.all(abs(scores - spread.mean(axis=0)) < 5.0 * spread.std(axis=0) / np.sqrt(2000))
    shifted = repeated.crps((draws + dist.std).ravel()).reshape(draws.shape).mean(axis=0)
    assert np.all(shifted > 1.2 * scores)


# --- randomness


def test_sample_accepts_every_kind_of_random_state(dist: Distribution) -> None:
    seeded = dist.sample(3, random_state=5)
    assert_array_equal(seeded, dist.sample(3, random_state=np.int64(5)))
    assert_array_equal(seeded, dist.sample(3, random_state=np.random.default_rng(5)))
    first, second = np.random.RandomState(5), np.random.RandomState(5)
    legacy = dist.sample(3, random_state=first)
    assert_array_equal(legacy, dist.sample(3, random_state=second))
    assert np.all(legacy != dist.sample(3, random_state=first))
    assert np.all(dist.sample() != dist.sample())
    assert dist.sample(0).shape == (0, len(dist))


def test_global_random_state_is_left_alone(dist: Distribution) -> None:
    before = np.random.get_state()  # noqa: NPY002
    dist.sample(10)
    assert_array_equal(np.random.get_state()[1], before[1])  # noqa: NPY002
    assert np.random.get_state()[2] == before[2]  # noqa: NPY002


# --- relations


@relaxed
@given(mixtures(), st.integers(0, 3), st.floats(-3.0, 3.0))
def test_ppf_inverts_cdf(dist: NormalMixture, member: int, z: float) -> None:
    member %= len(dist.weights)
    y = dist.means[member] + z * dist.stds[member]
    recovered = np.diagonal(dist.ppf(dist.cdf(y)))
    assert np.all(abs(recovered - y) <= 1e-9 * dist.std)
    assert_allclose(dist.cdf(y) + dist.sf(y), 1.0, rtol=1e-14)


@st.composite
def wild_mixtures(draw: st.DrawFn) -> NormalMixture:
    """Modes up to 1e6 apart, stds from 1e-6 to 1e6, weights down to 1e-12."""
    size = draw(st.integers(1, 4))
    exponents = st.lists(st.floats(-6.0, 6.0), min_size=size, max_size=size)
    signs = st.lists(st.sampled_from([-1.0, 1.0]), min_size=size, max_size=size)
    weights = 10.0 ** (np.array(draw(exponents)) - 6.0)
    means = np.array(draw(signs)) * 10.0 ** np.array(draw(exponents))
    return NormalMixture(means[:, None], 10.0 ** np.array(draw(exponents))[:, None], weights)


@relaxed
@given(wild_mixtures(), st.floats(1e-15, 1.0, exclude_max=True))
@example(NormalMixture([[-1000.0], [-1.0]], [[0.03], [0.1]], [1.0, 10.0]), 0.5)
@example(NormalMixture([[-1000.0], [-1.0]], [[0.01], [1.0]], [1.0, 10.0]), 0.5)
def test_quantiles_of_wild_mixtures_converge(dist: NormalMixture, q: float) -> None:
    assert_converged(dist, q)


@st.composite
def extreme_mixtures(draw: st.DrawFn) -> NormalMixture:
    """Means and stds from 1e-300 to 1e300, side by side."""
    size = draw(st.integers(1, 4))
    exponents = st.lists(st.floats(-300.0, 300.0), min_size=size, max_size=size)
    signs = st.lists(st.sampled_from([-1.0, 0.0, 1.0]), min_size=size, max_size=size)
    means = np.array(draw(signs)) * 10.0 ** np.array(draw(exponents))
    weights = st.lists(st.floats(1e-9, 1.0), min_size=size, max_size=size)
    return NormalMixture(means[:, None], 10.0 ** np.array(draw(exponents))[:, None], draw(weights))


@relaxed
@given(extreme_mixtures(), st.floats(1e-15, 1.0, exclude_max=True))
@example(NormalMixture([[1.0], [2.0]], [[1e-160], [1.0]]), 0.9)
@example(NormalMixture([[0.0], [2.0]], [[1e-160], [1.0]]), 0.5)
@example(NormalMixture([[1e200], [0.0]], [[1e-3], [1.0]]), 0.3)
@example(NormalMixture([[1e308], [-1e308]], [[1e-308], [1e308]]), 0.5)
@example(NormalMixture([[1e-305], [0.0]], [[3e-308], [1.0]]), 0.4)
def test_quantiles_converge_whatever_the_scales(dist: NormalMixture, q: float) -> None:
    assert_converged(dist, q)


@pytest.mark.parametrize(
    ("mean", "std"),
    [
        (1.0, 1e-160),
        (1e200, 1e-3),
        (-1e200, 1e-3),
        (0.64, 2.2e-308),
        (3.0, 5e-324),
        (1e308, 1e-308),
    ],
)
def test_quantiles_where_the_mean_is_far_larger_than_the_std(mean: float, std: float) -> None:
    """Beside such a mean all quantiles are the mean."""
    for dist in (Normal([mean], [std]), NormalMixture([[mean]] * 3, [[std], [2 * std], [3 * std]])):
        assert_array_equal(dist.ppf([1e-9, 0.1, 0.5, 0.975]), [[mean] * 4])
        assert_array_equal(dist.interval(0.9), [[mean, mean]])


def test_quantiles_of_members_whose_widths_are_worlds_apart() -> None:
    dist = NormalMixture([[1.0], [2.0]], [[1e-160], [1.0]])
    # Half of the probability lies at 1; the other half is a normal around 2.
    assert_allclose(dist.ppf([0.01, 0.1, 0.5, 0.9]), [[norm.ppf(0.02, 2), 1, 1, norm.ppf(0.8, 2)]])
    assert_allclose(dist.cdf(dist.ppf(0.9)), 0.9, rtol=1e-14)
    # Around zero there are numbers enough to see that the narrow one has a width, too.
    dist = NormalMixture([[0.0], [5.0]], [[1e-160], [1.0]])
    expected = 1e-160 * norm.ppf((0.3 - 0.5 * norm.cdf(-5)) / 0.5)
    assert_allclose(dist.ppf(0.3), expected, rtol=1e-12)


@pytest.mark.parametrize("q", [1e-8, 1 / 3, 0.5, 0.9])
def test_quantiles_of_many_mixtures_converge(q: float) -> None:
    """Among this many rows, some make plain Newton steps run in circles."""
    rng = np.random.default_rng(0)
    means, stds = 10.0 * rng.normal(size=(5, 20_000)), np.exp(rng.normal(size=(5, 20_000)))
    assert_converged(NormalMixture(means, stds), q)


def assert_converged(dist: NormalMixture, q: float) -> None:
    """The quantile is right to 1e-12 of the narrowest member, or to rounding of x or of cdf."""
    x = dist.ppf(q)
    margin = 1e-12 * dist.stds.min(axis=0) + 4.0 * np.finfo(float).eps * abs(x)
    assert np.all(dist.cdf(x - margin) <= q * (1.0 + 2e-14))
    assert np.all(dist.cdf(x + margin) >= q * (1.0 - 2e-14))


@relaxed
@given(mixtures(), st.lists(st.floats(1e-6, 1.0 - 1e-6), min_size=2, max_size=5))
def test_quantiles_are_monotone_and_intervals_nested(
    dist: NormalMixture, levels: list[float]
) -> None:
    levels = sorted(levels)
    slack = 1e-7 * dist.std[:, None]
    assert np.all(np.diff(dist.ppf(levels), axis=1) >= -slack)
    intervals = dist.interval(levels)
    assert intervals.shape == (len(dist), len(levels), 2)
    assert np.all(np.diff(intervals[..., 0], axis=1) <= slack)
    assert np.all(np.diff(intervals[..., 1], axis=1) >= -slack)
    assert np.all(intervals[..., 1] - intervals[..., 0] >= -slack)


def test_intervals_hold_their_coverage(dist: Distribution) -> None:
    coverages = [0.1, 0.5, 0.9, 1.0 - 1e-12]
    for j, coverage in enumerate(coverages):
        low, high = dist.interval(coverages)[:, j].T
        assert_allclose(dist.cdf(low), (1.0 - coverage) / 2.0, rtol=1e-11)
        assert_allclose(dist.sf(high), (1.0 - coverage) / 2.0, rtol=1e-11)


@relaxed
@given(
    mixtures(),
    st.floats(1e-3, 1e3),
    st.sampled_from([-1.0, 1.0]),
    st.floats(-100.0, 100.0),
    st.floats(-3.0, 3.0),
)
def test_equivariance_under_scaling_of_y(
    dist: NormalMixture, scale: float, sign: float, b: float, z: float
) -> None:
    a = sign * scale
    moved = NormalMixture(a * dist.means + b, scale * dist.stds, dist.weights)
    y = dist.mean + z * dist.std
    unit = moved.std
    assert_allclose(moved.std, scale * dist.std, rtol=1e-6)
    assert np.all(abs(moved.mean - (a * dist.mean + b)) <= 1e-6 * unit)
    assert_allclose(moved.crps(a * y + b), scale * dist.crps(y), rtol=1e-5)
    assert_allclose(moved.logpdf(a * y + b), dist.logpdf(y) - np.log(scale), atol=1e-5, rtol=1e-6)
    for q in [0.1, 0.5, 0.8]:
        expected = a * dist.ppf(q if a > 0 else 1.0 - q) + b
        assert np.all(abs(moved.ppf(q) - expected) <= 1e-5 * unit)


def test_single_member_equals_normal() -> None:
    normal = make("normal")
    mixture = NormalMixture(normal.mean[None], normal.std[None], weights=[3.0])
    y = outcomes(normal)
    for method in BY_ROW:
        assert_array_equal(getattr(mixture, method)(y), getattr(normal, method)(y))
    for name in ["mean", "std", "var", "aleatoric", "epistemic"]:
        assert_array_equal(getattr(mixture, name), getattr(normal, name))
    assert_array_equal(mixture.ppf([0.1, 0.9]), normal.ppf([0.1, 0.9]))
    assert_array_equal(mixture.sample(4, 0), normal.sample(4, 0))


def test_weights_are_normalised_and_zero_leaves_a_member_out() -> None:
    means, stds = make("mixture").means, make("mixture").stds
    full = NormalMixture(means, stds, weights=[2.0, 0.0, 6.0, 0.0])
    part = NormalMixture(means[[0, 2]], stds[[0, 2]], weights=[0.25, 0.75])
    y = outcomes(full)
    for method in BY_ROW:
        assert_allclose(getattr(full, method)(y), getattr(part, method)(y), rtol=1e-12)
    assert_allclose(full.ppf([0.01, 0.6]), part.ppf([0.01, 0.6]), rtol=1e-11, atol=1e-12)
    assert_array_equal(NormalMixture(means, stds).weights, np.full(4, 0.25))
    assert_allclose(NormalMixture(means, stds, np.full(4, 1e308)).weights, 0.25)


# --- extreme inputs


@pytest.mark.parametrize("scale", [1e-300, 1e-12, 1e12, 1e300])
@pytest.mark.parametrize("kind", ["normal", "mixture"])
def test_any_scale_gives_the_same_result(kind: str, scale: float) -> None:
    dist, scaled = make(kind), make(kind, scale=scale)
    y = outcomes(dist)
    assert_allclose(scaled.std, scale * dist.std, rtol=1e-14)
    assert_allclose(scaled.logpdf(scale * y), dist.logpdf(y) - np.log(scale), rtol=1e-11)
    assert_allclose(scaled.crps(scale * y), scale * dist.crps(y), rtol=1e-11)
    expected = scale * dist.interval([0.5, 0.99])
    assert_allclose(scaled.interval([0.5, 0.99]), expected, rtol=1e-10, atol=1e-11 * scale)


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_outcomes_40_sigma_away(scale: float) -> None:
    mean, std = np.array([[0.0], [1.0 * scale]]), np.array([[scale], [scale]])
    mixture, y = NormalMixture(mean, std), -40.0 * scale
    nearest = norm.logpdf(-40.0) - np.log(scale) + np.log(0.5 * (1.0 + np.exp(-40.5)))
    assert mixture.logpdf(y)[0] == pytest.approx(nearest, rel=1e-13)
    assert mixture.sf(38.0 * scale)[0] == pytest.approx(0.5 * norm.sf([37.0, 38.0]).sum())
    # Far away, E|X - y| is the distance: the score is 40.5 minus half the spread.
    score = mixture.crps(y)[0] / scale
    pair = (2 * norm.cdf(0.5**0.5) - 1) + 2 * 2**0.5 * norm.pdf(0.5**0.5)
    assert score == pytest.approx(40.5 - 0.5 / np.pi**0.5 - 0.25 * pair, rel=1e-12)


def test_outcomes_beyond_all_floats() -> None:
    for dist in [Normal([0.0], [1e-300]), NormalMixture([[0.0], [1.0]], [[1e-300], [1e-200]])]:
        y = 1e300
        assert dist.crps(y)[0] == pytest.approx(y, rel=1e-12)
        assert dist.logpdf(y)[0] == -np.inf
        assert (dist.cdf(y)[0], dist.sf(y)[0], dist.pdf(y)[0]) == (1.0, 0.0, 0.0)
        assert dist.crps(0.0)[0] >= 0.0


def test_infinite_and_missing_outcomes_have_documented_results(dist: Distribution) -> None:
    assert np.all(dist.logpdf(np.inf) == -np.inf)
    assert np.all(dist.crps(-np.inf) == np.inf)
    assert_allclose(dist.cdf(np.inf), 1.0, rtol=1e-15)
    assert np.all(dist.cdf(-np.inf) == 0.0)
    for method in BY_ROW:
        assert np.isnan(getattr(dist, method)(np.nan)).all()


def test_rounding_makes_no_crps_negative_and_no_probability_exceed_one() -> None:
    dist = NormalMixture([[0.0], [6.1], [3.2]], np.full((3, 1), 1e-40), [1.0, 1e-18, 3e-18])
    assert dist.crps(0.0)[0] >= 0.0
    for n_members in range(1, 30):
        dist = NormalMixture(np.zeros((n_members, 1)), np.ones((n_members, 1)))
        assert 1.0 - 1e-15 < dist.cdf(10.0)[0] <= 1.0


# --- rows


def test_selection_gives_the_same_numbers_for_the_same_rows(dist: Distribution) -> None:
    y = outcomes(dist)
    mask = np.array([True, False, True, True, False, False])
    for rows in [slice(1, 4), slice(None, None, -2), mask, np.array([4, 0, 0]), [5], []]:
        part = dist[rows]
        assert type(part) is type(dist)
        assert len(part) == len(y[rows])
        assert_array_equal(part.mean, dist.mean[rows])
        assert_array_equal(part.ppf([0.1, 0.7]), dist.ppf([0.1, 0.7])[rows])
        for method in BY_ROW:
            assert_array_equal(getattr(part, method)(y[rows]), getattr(dist, method)(y)[rows])
    assert_array_equal(dist[-2].std, dist.std[[-2]])
    assert [len(row) for row in dist] == [1] * 6


def test_selection_out_of_range(dist: Distribution) -> None:
    with pytest.raises(IndexError, match="out of bounds"):
        dist[6]
    with pytest.raises(IndexError, match="boolean"):
        dist[np.ones(5, dtype=bool)]
    with pytest.raises(IndexError, match="along one axis"):
        dist[np.zeros((2, 2), dtype=int)]


def test_shapes_and_scalar_outcomes(dist: Distribution) -> None:
    assert dist.ppf(0.5).shape == (6,)
    assert dist.ppf([0.5]).shape == (6, 1)
    assert dist.ppf((0.1, 0.5, 0.9)).shape == (6, 3)
    assert dist.interval(0.9).shape == (6, 2)
    assert_array_equal(dist.interval([0.9])[:, 0], dist.interval(0.9))
    assert dist.interval([]).shape == (6, 0, 2)
    for method in BY_ROW:
        assert_array_equal(getattr(dist, method)(0.3), getattr(dist, method)(np.full(6, 0.3)))


def test_input_may_be_integer_strided_fortran_or_read_only() -> None:
    means, stds = np.arange(12).reshape(3, 4), np.arange(1, 13).reshape(3, 4)
    expected = NormalMixture(means.astype(float), stds.astype(float)).logpdf(np.arange(4.0))
    wide = np.repeat(means, 2, axis=1)[:, ::2]
    y = np.arange(4, dtype=np.float32)
    y.setflags(write=False)
    assert_array_equal(NormalMixture(wide, np.asfortranarray(stds)).logpdf(y), expected)
    assert_array_equal(NormalMixture(means.tolist(), stds.astype(object)).logpdf(y), expected)


def test_inputs_are_copied_and_left_alone() -> None:
    means, stds, weights = np.ones((2, 3)), np.full((2, 3), 2.0), np.array([1.0, 3.0])
    y, q = np.zeros(3), np.array([0.2, 0.8])
    originals = [a.copy() for a in (means, stds, weights, y, q)]
    dist = NormalMixture(means, stds, weights)
    for method in BY_ROW:
        getattr(dist, method)(y)
    dist.ppf(q)
    dist.interval(q)
    for array, original in zip((means, stds, weights, y, q), originals, strict=True):
        assert_array_equal(array, original)
    means[:], stds[:], weights[:] = 9.0, 9.0, 9.0
    assert_array_equal(dist.mean, np.ones(3))
    assert_array_equal(dist.std, np.full(3, 2.0))
    for array in (dist.means, dist.stds, dist.weights):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0.0
    with pytest.raises(AttributeError, match="means"):
        dist.means = means  # type: ignore[misc]


def test_repr_and_pickle(dist: Distribution) -> None:
    assert repr(make("normal", n=100)) == "Normal(n=100)"
    assert repr(make("mixture", n=100)) == "NormalMixture(n_members=4, n=100)"
    copy = pickle.loads(pickle.dumps(dist))
    assert type(copy) is type(dist)
    assert_array_equal(copy.sample(3, 0), dist.sample(3, 0))


# --- errors: each names the argument, the value and the remedy


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.0], [0.0]), r"std must be positive, got 0\.0; pass standard deviations above 0"),
        (([0.0, 1.0], [1.0, -2.5]), r"std must be positive, got -2\.5"),
        (([0.0], [np.inf]), r"std must be finite, got inf; drop such rows"),
        (([0.0], [np.nan]), r"std must be finite, got nan"),
        (([np.nan], [1.0]), r"mean must be finite, got nan"),
        ((0.0, 1.0), r"mean must have shape \(n,\), got \(\); reshape"),
        (([[0.0]], [[1.0]]), r"mean must have shape \(n,\), got \(1, 1\)"),
        (
            ([0.0, 1.0], [1.0]),
            r"std must have shape \(2,\), got \(1,\); pass one value for each of mean",
        ),
        ((["a"], [1.0]), r"mean must hold real numbers, but it has dtype <U1; convert"),
        (([0.0], np.array([1j])), r"std must hold real numbers, but it has dtype complex128"),
        (([0.0], [None, "x"]), r"std must hold real numbers"),
    ],
)
def test_bad_normal(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Normal(*arguments)


@pytest.mark.parametrize(
    ("means", "stds", "weights", "message"),
    [
        ([0.0], [1.0], None, r"means must have shape \(n_members, n\), got \(1,\)"),
        (np.ones((0, 3)), np.ones((0, 3)), None, r"means must have shape .* got \(0, 3\)"),
        ([[0.0]], [[0.0]], None, r"stds must be positive, got 0\.0"),
        ([[0.0]], [[1.0, 1.0]], None, r"stds must have shape \(1, 1\), got \(1, 2\)"),
        ([[0.0]], [[1.0]], [1.0, 1.0], r"weights must have shape \(1,\), got \(2,\)"),
        ([[0.0]], [[1.0]], 1.0, r"weights must have shape .* got \(\); pass one weight per"),
        ([[0.0]], [[1.0]], [-0.5], r"weights must be finite and non-negative, got -0\.5; use 0"),
        ([[0.0]], [[1.0]], [np.nan], r"weights must be finite and non-negative, got nan"),
        ([[0.0]], [[1.0]], [0.0], r"weights must not all be 0\.0; give at least one"),
    ],
)
def test_bad_mixture(means: Any, stds: Any, weights: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        NormalMixture(means, stds, weights)


@pytest.mark.parametrize("method", BY_ROW)
@pytest.mark.parametrize("shape", [(5,), (1,), (5, 2), (2, 6), (0, 6), (6, 1, 1)])
def test_mismatched_outcomes(dist: Distribution, method: str, shape: tuple[int, ...]) -> None:
    message = f"y must have shape (6,), (1, k) or (6, k), got {shape}; pass one row of outcomes"
    if len(shape) == 1:
        message = f"y must have shape (6,), got {shape}; pass one outcome per row, or a scalar; sev"
    with pytest.raises(ValueError, match=re.escape(message)):
        getattr(dist, method)(np.zeros(shape))


@pytest.mark.parametrize("method", [*BY_ROW, "pmf"])
def test_several_outcomes_at_once(dist: Distribution, method: str) -> None:
    """Two axes are rows and columns, as many of both as rows are, or not."""
    ask = getattr(dist, method)
    same, own = np.linspace(-1.0, 3.0, 6), np.arange(12.0).reshape(6, 2)
    assert_array_equal(ask(same[None]), np.column_stack([ask(float(v)) for v in same]))
    assert_array_equal(ask(own), np.column_stack([ask(own[:, 0]), ask(own[:, 1])]))
    assert_array_equal(ask(same[:, None]), ask(same)[:, None])
    assert ask(np.empty((1, 0))).shape == (6, 0)


def test_thresholds_of_one_row_and_of_none(dist: Distribution) -> None:
    assert dist[0].sf([[0.0, 1.0]]).shape == (1, 2)
    assert dist[:0].cdf([[0.0, 1.0]]).shape == (0, 2)


@pytest.mark.parametrize("value", [0.0, 1.0, 2.0, -0.1, np.nan, 95])
def test_levels_out_of_range(dist: Distribution, value: float) -> None:
    for levels in [value, [0.5, value]]:
        got = rf"must lie strictly between 0 and 1, got {float(value)}"
        with pytest.raises(ValueError, match=f"q {got}; use 0.5 for the median"):
            dist.ppf(levels)
        with pytest.raises(ValueError, match=f"coverage {got}; write 0.95 for 95 %"):
            dist.interval(levels)


def test_other_bad_arguments(dist: Distribution) -> None:
    with pytest.raises(ValueError, match=r"q must be a scalar or 1-D, got shape \(1, 1\); flatten"):
        dist.ppf([[0.5]])
    with pytest.raises(ValueError, match="y must hold real numbers"):
        dist.logpdf(["high"] * 6)
    for size in [-1, 2.0, "3"]:
        with pytest.raises(ValueError, match=f"size must be a non-negative integer, got {size!r}"):
            dist.sample(size)  # type: ignore[arg-type]
    for seed in [-1, "seed", 0.5]:
        with pytest.raises(ValueError, match=f"random_state must be .*, got {seed!r}; pass"):
            dist.sample(random_state=seed)  # type: ignore[arg-type]


# --- the module itself


def test_module_imports_nothing_heavy() -> None:
    imported: set[str | None] = set()
    for path in Path(str(module.__file__)).parent.glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        imported |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        imported |= {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    names = {name for name in imported if name}
    assert {n for n in names if n.split(".")[0] in {"scipy", "sklearn"}} == {"scipy.special"}
    ours = {n for n in names if n.startswith("mvenet") and not n.startswith("mvenet.distributions")}
    # For _engine; sums in one order; numbers in a notebook.
    assert ours == {"mvenet", "mvenet._utils.sums", "mvenet._utils.wording"}


def test_a_large_mean_costs_std_no_digits() -> None:
    offsets = 2.0**-20 * np.array([[0.0], [1.0], [1.0]])  # exact beside 1e9
    dist = NormalMixture(1e9 + offsets, np.full((3, 1), 1e-12))
    assert_allclose(dist.std, np.std(offsets, axis=0), rtol=1e-6)
    assert_allclose(np.sqrt(dist.epistemic), np.std(offsets, axis=0), rtol=1e-9)
