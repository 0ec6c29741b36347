"""Scores against SciPy, scikit-learn, numerical integration and simulation; propriety; scorers."""

from __future__ import annotations

import pickle
import re
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import binom, kstest, norm, wasserstein_distance
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.compose import TransformedTargetRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.inspection import permutation_importance
from sklearn.linear_model import BayesianRidge, LinearRegression
from sklearn.metrics import (
    check_scoring,
    mean_absolute_error,
    mean_pinball_loss,
    r2_score,
    root_mean_squared_error,
)
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.fixes import parse_version

from mvenet import metrics
from mvenet.distributions import Normal, NormalMixture
from mvenet.metrics import neg_crps_scorer, neg_nll_scorer

Distribution = Normal | NormalMixture
Array = NDArray[np.float64]

WITH_OUTCOMES = ["nll", "crps", "rmse", "mae", "msll", "interval_score", "coverage",
                 "miscalibration_area", "ence"]  # fmt: skip
WITHOUT = ["interval_width", "sharpness"]
WEIGHTED = [*WITH_OUTCOMES, *WITHOUT]
ALL = [*WEIGHTED, "pit"]
PROPER = ["nll", "crps", "interval_score", "msll"]


def make(kind: str, n: int = 40, seed: int = 0) -> Distribution:
    rng = np.random.default_rng(seed)
    means, stds = rng.normal(size=(3, n)), rng.uniform(0.3, 2.0, size=(3, n))
    if kind == "normal":
        return Normal(means[0], stds[0])
    return NormalMixture(means, stds, weights=[0.2, 0.5, 0.3])


@pytest.fixture(params=["normal", "mixture"])
def dist(request: pytest.FixtureRequest) -> Distribution:
    return make(request.param)


def outcomes(dist: Distribution, seed: int = 1) -> Array:
    return dist.sample(1, random_state=seed)[0]


def call(name: str, y: Any, *forecast: Any, **options: Any) -> Any:
    """Any score of any forecast: some need no outcomes."""
    arguments = forecast if name in WITHOUT else (y, *forecast)
    return getattr(metrics, name)(*arguments, **options)


def some_weights(n: int = 40, seed: int = 2) -> Array:
    return np.random.default_rng(seed).uniform(0.1, 3.0, size=n)


def density(dist: Distribution, y: Array) -> Array:
    return dist.weights @ norm.pdf(y, dist.means, dist.stds)


def quantile(dist: Distribution, row: int, q: float) -> float:
    def excess(z: float) -> float:
        return float(dist.weights @ norm.cdf(z, dist.means[:, row], dist.stds[:, row])) - q

    return float(brentq(excess, -40, 40, xtol=1e-14))


# --- against independent implementations


def test_nll_is_the_mean_log_density_of_scipy(dist: Distribution) -> None:
    y, w = outcomes(dist), some_weights()
    expected = -np.log(density(dist, y))
    assert metrics.nll(y, dist) == pytest.approx(expected.mean(), rel=1e-12)
    assert metrics.nll(y, dist, sample_weight=w) == pytest.approx(w @ expected / w.sum(), rel=1e-12)


def test_crps_of_normals_by_the_textbook_formula() -> None:
    dist, w = make("normal"), some_weights()
    y = outcomes(dist)
    z = (y - dist.mean) / dist.std
    formula = dist.std * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi))
    assert metrics.crps(y, dist, sample_weight=w) == pytest.approx(w @ formula / w.sum(), rel=1e-12)


def test_crps_by_numerical_integration(dist: Distribution) -> None:
    dist, w = dist[:5], some_weights(5)
    y = outcomes(dist)

    def squared_distance(z: float, row: int) -> float:
        cdf = dist.weights @ norm.cdf(z, dist.means[:, row], dist.stds[:, row])
        return float((cdf - (y[row] <= z)) ** 2)

    integrals = [
        sum(quad(squared_distance, *ends, args=(row,))[0] for ends in [(-30, y[row]), (y[row], 30)])
        for row in range(5)
    ]
    expected = w @ integrals / w.sum()
    assert metrics.crps(y, dist, sample_weight=w) == pytest.approx(expected, rel=1e-7)


def test_crps_by_simulation(dist: Distribution) -> None:
    y, draws = outcomes(dist), dist.sample(40_000, random_state=3)
    energy = np.abs(draws - y).mean(axis=0) - 0.5 * np.abs(draws[::2] - draws[1::2]).mean(axis=0)
    assert metrics.crps(y, dist) == pytest.approx(energy.mean(), abs=0.003)


@pytest.mark.parametrize("w", [None, some_weights()], ids=["equal", "weighted"])
def test_errors_of_the_mean_agree_with_scikit_learn(dist: Distribution, w: Array | None) -> None:
    y = outcomes(dist)
    for ours, theirs in [
        (metrics.rmse, root_mean_squared_error),
        (metrics.mae, mean_absolute_error),
    ]:
        expected = pytest.approx(theirs(y, dist.mean, sample_weight=w), rel=1e-13)
        assert ours(y, dist, sample_weight=w) == expected
        assert ours(y, dist.mean, sample_weight=w) == expected
        assert ours(y, dist.mean, dist.std, sample_weight=w) == expected


def test_msll_is_the_gain_over_a_constant_normal(dist: Distribution) -> None:
    y, w = outcomes(dist), some_weights()
    gain = norm.logpdf(y, 0.3, 1.7) - np.log(density(dist, y))
    given = {"train_mean": 0.3, "train_std": 1.7}
    assert metrics.msll(y, dist, **given) == pytest.approx(gain.mean(), rel=1e-12)
    expected = pytest.approx(w @ gain / w.sum(), rel=1e-12)
    assert metrics.msll(y, dist, sample_weight=w, **given) == expected
    # Without those of the training set: mean and standard deviation of y, by the same weights.
    mean = np.average(y, weights=w)
    gain = norm.logpdf(y, mean, np.average((y - mean) ** 2, weights=w) ** 0.5)
    gain -= np.log(density(dist, y))
    expected = pytest.approx(w @ gain / w.sum(), rel=1e-12)
    assert metrics.msll(y, dist, sample_weight=w) == expected
    trivial = np.full(40, y.mean()), np.full(40, y.std())
    assert metrics.msll(y, *trivial) == pytest.approx(0.0, abs=1e-14)


LEVELS = np.array([0.1, 0.5, 0.9, 0.99])


def test_interval_score_is_a_sum_of_pinball_losses(dist: Distribution) -> None:
    y, w = outcomes(dist), some_weights()
    scores = metrics.interval_score(y, dist, coverage=LEVELS, sample_weight=w)
    for level, score in zip(LEVELS, scores, strict=True):
        tail = 0.5 * (1 - level)
        losses = []
        for q in (tail, 1 - tail):
            bound = [quantile(dist, row, q) for row in range(40)]
            losses.append(mean_pinball_loss(y, bound, sample_weight=w, alpha=q))
        assert score == pytest.approx(sum(losses) / tail, rel=1e-9)
        single = metrics.interval_score(y, dist, coverage=float(level), sample_weight=w)
        assert single == pytest.approx(score, rel=1e-14)


def test_interval_score_by_hand() -> None:
    # [-1, 1] and [1, 3]; the first outcome misses by 2, the second is within.
    std = 1.0 / norm.ppf(0.75)
    score = metrics.interval_score([-3.0, 2.0], [0.0, 2.0], [std, std], coverage=0.5)
    assert score == pytest.approx(2.0 + 0.5 * 4 * 2)


def test_intervals_by_brentq(dist: Distribution) -> None:
    y, w = outcomes(dist), some_weights()
    tails = 0.5 * (1 - LEVELS)
    low, high = (
        np.array([[quantile(dist, row, q) for q in qs] for row in range(40)])
        for qs in (tails, 1 - tails)
    )
    within = (low <= y[:, None]) & (y[:, None] <= high)
    assert 0 < within[:, 1].sum() < 40
    for weights, average in [(None, np.full(40, 1 / 40)), (w, w / w.sum())]:
        covered = metrics.coverage(y, dist, nominal=LEVELS, sample_weight=weights)
        assert_allclose(covered, average @ within, rtol=1e-13)
        width = metrics.interval_width(dist, coverage=LEVELS, sample_weight=weights)
        assert_allclose(width, average @ (high - low), rtol=1e-11)


def test_default_level_is_nine_tenths_and_a_scalar_gives_a_float(dist: Distribution) -> None:
    y = outcomes(dist)
    for name, level in [("interval_score", "coverage"), ("interval_width", "coverage"),
                        ("coverage", "nominal")]:  # fmt: skip
        default = call(name, y, dist)
        assert type(default) is float
        assert default == call(name, y, dist, **{level: 0.9})
        assert call(name, y, dist, **{level: [0.9]}) == np.array([default])
        assert call(name, y, dist, **{level: []}).shape == (0,)


def test_pit_is_the_cdf_of_scipy_and_uniform_under_the_truth(dist: Distribution) -> None:
    y = outcomes(dist)
    assert_allclose(metrics.pit(y, dist), dist.weights @ norm.cdf(y, dist.means, dist.stds))
    many = dist[np.tile(np.arange(40), 100)]
    assert kstest(metrics.pit(outcomes(many), many), "uniform").pvalue > 0.01
    assert kstest(metrics.pit(outcomes(many) + 0.2, many), "uniform").pvalue < 0.01


def test_miscalibration_area_by_integration(dist: Distribution) -> None:
    y, w = outcomes(dist), some_weights()
    p = metrics.pit(y, dist)
    for weights in (np.ones(40), w):
        knots = np.unique([0.0, *p, 1.0])
        share = [weights @ (p <= left) / weights.sum() for left in knots[:-1]]
        area = sum(
            quad(lambda t, g=g: abs(g - t), *ends, points=[min(max(g, ends[0]), ends[1])])[0]
            for g, ends in zip(share, pairwise(knots), strict=True)
        )
        got = metrics.miscalibration_area(y, dist, sample_weight=weights)
        assert got == pytest.approx(area, rel=1e-12)
        # It is the earth mover's distance to the uniform distribution.
        grid = (np.arange(200_000) + 0.5) / 200_000
        moved = wasserstein_distance(p, grid, u_weights=weights)
        assert got == pytest.approx(moved, abs=1e-5)


@pytest.mark.parametrize("factor", [0.25, 0.5, 2.0])
def test_miscalibration_area_of_a_wrong_std(factor: float) -> None:
    y = norm.ppf((np.arange(100_000) + 0.5) / 100_000)
    area, _ = quad(lambda p: abs(norm.cdf(factor * norm.ppf(p)) - p), 0, 1, points=[0.5])
    got = metrics.miscalibration_area(y, np.zeros(100_000), np.full(100_000, factor))
    assert got == pytest.approx(area, rel=1e-4)


def test_miscalibration_area_has_its_extremes() -> None:
    y, one = np.zeros(10), np.ones(10)
    assert metrics.miscalibration_area(y, y + 50, one) == pytest.approx(0.5, rel=1e-14)
    assert metrics.miscalibration_area(y, y - 50, one) == pytest.approx(0.5, rel=1e-14)
    middles = norm.ppf((np.arange(10) + 0.5) / 10)
    assert metrics.miscalibration_area(middles, y, one) == pytest.approx(1 / 40, rel=1e-12)


def naive_ence(y: Array, mean: Array, std: Array, n_bins: int) -> float:
    terms = []
    for rows in np.array_split(np.argsort(std), n_bins):
        variance, error = np.mean(std[rows] ** 2), np.mean((y[rows] - mean[rows]) ** 2)
        terms.append(abs(variance**0.5 - error**0.5) / variance**0.5)
    return float(np.mean(terms))


@pytest.mark.parametrize("n_bins", [1, 2, 10, 40])
def test_ence_agrees_with_a_loop_over_bins(dist: Distribution, n_bins: int) -> None:
    y = outcomes(dist)
    expected = naive_ence(y, dist.mean, dist.std, n_bins)
    assert metrics.ence(y, dist, n_bins=n_bins) == pytest.approx(expected, rel=1e-12)
    same = metrics.ence(y, dist, n_bins=n_bins, sample_weight=np.full(40, 4.0))
    assert same == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("n", [10, 13, 27, 101])
def test_ence_bins_differ_by_one_row_at_most(n: int) -> None:
    std = 1.0 + 1e-9 * np.arange(n)
    sizes = []
    for row in range(n):
        y = std.copy()
        y[row] = 0.0  # among m rows the ratio is √(1 - 1/m)
        ratio = 1.0 - 10 * metrics.ence(y, np.zeros(n), std)
        sizes.append(1.0 / (1.0 - ratio**2))
    assert_allclose(sizes, np.round(sizes), rtol=1e-6)
    assert set(np.round(sizes)) <= {n // 10, -(-n // 10)}
    assert np.sum(1.0 / np.array(sizes)) == pytest.approx(10)


def test_ence_bins_hold_equal_weight() -> None:
    # The first row weighs as much as the other three, so it has a bin of its own.
    y, std, w = [2.0, 3.0, 3.0, 3.0], [1.0, 2.0, 2.0, 2.0], [3.0, 1.0, 1.0, 1.0]
    got = metrics.ence(y, np.zeros(4), std, n_bins=2, sample_weight=w)
    assert got == pytest.approx(0.5 * (1.0 + 0.5))
    # Whatever their order; a row goes where the middle of its weight lies: 1.5, 5 and 8 of 9.
    got = metrics.ence([0.0, 3.0, 2.0], np.zeros(3), [3.0, 1.0, 2.0], n_bins=2,
                       sample_weight=[2.0, 3.0, 4.0])  # fmt: skip
    assert got == pytest.approx(0.5 * (2.0 + 1.0 - (16 / 34) ** 0.5))
    # A row that fills several bins leaves the others empty, and those do not count.
    got = metrics.ence(y, np.zeros(4), std, n_bins=4, sample_weight=[1e9, 1.0, 1.0, 1.0])
    assert got == pytest.approx(0.5 * (1.0 + 0.5))


def test_ence_of_errors_twice_the_std() -> None:
    std = np.random.default_rng(0).uniform(0.1, 3.0, size=200)
    assert metrics.ence(2.0 * std, np.zeros(200), std) == pytest.approx(1.0)
    assert metrics.ence(std, np.zeros(200), std) == pytest.approx(0.0, abs=1e-14)


def test_calibrated_forecasts_have_the_documented_size() -> None:
    rng = np.random.default_rng(0)
    n, repeats = 1000, 200
    std = rng.uniform(0.5, 2.0, size=n)
    values = []
    for _ in range(repeats):
        y = std * rng.normal(size=n)
        forecast = Normal(np.zeros(n), std)
        values.append([metrics.ence(y, forecast), metrics.miscalibration_area(y, forecast)])
    error, area = np.mean(values, axis=0)
    assert error == pytest.approx((10 / (np.pi * n)) ** 0.5, rel=0.1)
    assert area == pytest.approx(0.313 / n**0.5, rel=0.1)


def test_sharpness_is_the_root_of_the_mean_variance(dist: Distribution) -> None:
    w = some_weights()
    assert metrics.sharpness(dist) == pytest.approx(dist.var.mean() ** 0.5, rel=1e-13)
    expected = (w @ dist.var / w.sum()) ** 0.5
    assert metrics.sharpness(dist, sample_weight=w) == pytest.approx(expected, rel=1e-13)


# --- propriety: no forecast does better in expectation than the truth


GRID = np.linspace(-25.0, 25.0, 5001)


def expected_score(name: str, forecast: Distribution, truth: Distribution) -> float:
    """Expectation under the truth, one row: the outcomes are a grid, their weights its density."""
    rows = np.zeros(GRID.size, dtype=int)
    weight = truth[rows].pdf(GRID)
    score: float = call(name, GRID, forecast[rows], sample_weight=weight)
    return score


@st.composite
def forecasts(draw: st.DrawFn) -> NormalMixture:
    """One row, up to three members."""
    k = draw(st.integers(1, 3))
    parts = [
        [draw(st.floats(low, high)) for _ in range(k)]
        for low, high in [(-3.0, 3.0), (0.3, 3.0), (0.1, 1.0)]
    ]
    return NormalMixture(np.array(parts[0])[:, None], np.array(parts[1])[:, None], parts[2])


@pytest.mark.parametrize("name", PROPER)
@settings(deadline=None, max_examples=40)  # the machine that runs the tests may be busy
@given(truth=forecasts(), other=forecasts())
def test_no_forecast_beats_the_truth(name: str, truth: NormalMixture, other: NormalMixture) -> None:
    best = expected_score(name, truth, truth)
    assert expected_score(name, other, truth) >= best - 1e-4


@pytest.mark.parametrize("name", PROPER)
@pytest.mark.parametrize(("shift", "factor"), [(0.2, 1), (-0.2, 1), (0, 0.8), (0, 1.25)])
def test_a_wrong_mean_or_std_costs(name: str, shift: float, factor: float) -> None:
    truth = NormalMixture([[-1.0], [1.5]], [[1.0], [0.7]], [0.4, 0.6])
    other = NormalMixture(truth.means + shift, factor * truth.stds, truth.weights)
    assert expected_score(name, other, truth) > expected_score(name, truth, truth) + 0.0015


@pytest.mark.parametrize("name", ["nll", "crps"])
def test_the_mixture_beats_the_normal_with_its_moments(name: str) -> None:
    truth = NormalMixture([[-2.0], [2.0]], [[0.5], [0.5]])
    moments = Normal(truth.mean, truth.std)
    assert expected_score(name, moments, truth) > expected_score(name, truth, truth) + 0.02


# --- relations


@settings(deadline=None, max_examples=25)
@given(scale=st.floats(1e-3, 1e3), shift=st.floats(-1e3, 1e3))
@pytest.mark.parametrize("kind", ["normal", "mixture"])
def test_units_of_y(kind: str, scale: float, shift: float) -> None:
    dist = make(kind)
    y = outcomes(dist)
    other = scale * y + shift
    forecast = NormalMixture(scale * dist.means + shift, scale * dist.stds, dist.weights)
    for name in ["crps", "rmse", "mae", "interval_score", "interval_width", "sharpness"]:
        assert call(name, other, forecast) == pytest.approx(scale * call(name, y, dist), rel=1e-6)
    for name in ["msll", "coverage", "miscalibration_area", "ence"]:
        assert call(name, other, forecast) == pytest.approx(call(name, y, dist), abs=1e-6)
    assert metrics.nll(other, forecast) == pytest.approx(metrics.nll(y, dist) + np.log(scale))


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_any_scale(dist: Distribution, scale: float) -> None:
    y = outcomes(dist)
    forecast = NormalMixture(scale * dist.means, scale * dist.stds, dist.weights)
    for name in WEIGHTED:
        expected = call(name, y, dist)
        if name == "nll":
            expected += np.log(scale)
        elif name not in {"msll", "coverage", "miscalibration_area", "ence"}:
            expected *= scale
        got = call(name, scale * y, forecast, sample_weight=np.full(40, 1e308))
        assert got == pytest.approx(expected, rel=1e-9), name


@pytest.mark.parametrize("name", ALL)
def test_means_and_stds_equal_their_normal(name: str) -> None:
    dist = make("normal")
    y = outcomes(dist)
    expected = call(name, y, dist)
    for forecast in [(dist.mean, dist.std), (dist.mean.tolist(), dist.std.tolist())]:
        assert_array_equal(call(name, y, *forecast), expected)
    alike = NormalMixture(np.tile(dist.mean, (3, 1)), np.tile(dist.std, (3, 1)))
    assert_allclose(call(name, y, alike), expected, rtol=1e-12, atol=1e-14)


def test_a_mixture_is_not_its_moments() -> None:
    dist = NormalMixture([[-2.0], [2.0]], [[0.5], [0.5]])
    for name in ["nll", "crps", "interval_score", "interval_width", "coverage", "pit"]:
        options = {"nominal": 0.45} if name == "coverage" else {}
        difference = call(name, [1.9], dist, **options)
        difference = difference - call(name, [1.9], dist.mean, dist.std, **options)
        assert np.all(np.abs(difference) > 0.02), name


# --- weights


@pytest.mark.parametrize("name", WEIGHTED)
def test_a_whole_weight_repeats_a_row_and_zero_drops_it(dist: Distribution, name: str) -> None:
    y, w = outcomes(dist), np.random.default_rng(0).integers(0, 4, size=40)
    repeated = np.repeat(np.arange(40), w)
    options = {"n_bins": 1} if name == "ence" else {}
    expected = call(name, y[repeated], dist[repeated], **options)
    got = call(name, y, dist, sample_weight=w, **options)
    assert got == pytest.approx(expected, rel=1e-12)
    assert got != pytest.approx(call(name, y, dist, **options), rel=1e-3)
    assert call(name, y, dist, sample_weight=7.0 * w, **options) == pytest.approx(got, rel=1e-12)
    assert type(got) is float


@pytest.mark.parametrize("name", WITH_OUTCOMES)
def test_an_absurd_row_without_weight_has_no_effect(dist: Distribution, name: str) -> None:
    y = outcomes(dist)
    expected = call(name, y[1:], dist[1:])
    y[0] = 1e300
    got = call(name, y, dist, sample_weight=[0.0] + [1.0] * 39)
    assert got == pytest.approx(expected, rel=1e-12)


def test_an_outcome_beyond_all_floats() -> None:
    assert metrics.nll([1e300], [0.0], [1.0]) == np.inf
    assert metrics.msll([1e300], [0.0], [1.0], train_mean=1e300, train_std=1.0) == np.inf
    assert metrics.crps([1e300], [0.0], [1.0]) == pytest.approx(1e300)


# --- input


def test_inputs_of_other_kinds_give_the_same_and_are_left_alone(dist: Distribution) -> None:
    y, w = outcomes(dist).round(), some_weights().round() + 1
    strided, read_only = np.repeat(y, 2)[::2], w.copy()
    read_only.setflags(write=False)
    before = y.copy(), w.copy()
    for name in WEIGHTED:
        expected = call(name, y, dist, sample_weight=w)
        for other, weight in [(y.tolist(), w.tolist()), (y.astype(int), w.astype(np.float32)),
                              (strided, read_only)]:  # fmt: skip
            assert call(name, other, dist, sample_weight=weight) == expected
    assert_array_equal(y, before[0])
    assert_array_equal(w, before[1])


def test_frames_are_accepted() -> None:
    frames = pytest.importorskip("pandas")
    dist = make("normal")
    table = frames.DataFrame({"y": outcomes(dist), "mean": dist.mean, "std": dist.std})
    table.index = table.index[::-1]  # an index must not align anything
    got = metrics.crps(table["y"], table["mean"], table["std"], sample_weight=table["std"])
    assert got == metrics.crps(outcomes(dist), dist, sample_weight=dist.std)


TWO = Normal([0.0, 1.0], [1.0, 1.0])
Y, MEAN, STD = [0.0, 1.0], [0.0, 0.0], [1.0, 2.0]


@pytest.mark.parametrize(
    ("forecast", "message"),
    [
        ((MEAN, [1.0, 0.0]), "std must be positive, got 0.0; pass standard deviations above 0"),
        ((MEAN, [1.0, -2.0]), "std must be positive, got -2.0"),
        ((MEAN, [np.nan, 1.0]), "std must be finite, got nan; drop such rows"),
        ((MEAN, [np.inf, 1.0]), "std must be finite, got inf"),
        ((MEAN, [1.0]), "std must have shape (2,), got (1,)"),
        ((MEAN, TWO), "std must hold numbers, got Normal(n=2); pass it as dist"),
        (([np.nan, 0.0], STD), "mean must be finite, got nan"),
        (([[0.0, 0.0]], [STD]), "mean must have shape (n,), got (1, 2); pass NormalMixture("),
        ((["a", "b"], STD), "mean must hold real numbers"),
        ((TWO, STD), "std must be None beside Normal(n=2), which has its own, got list; leave it"),
        ((TWO, TWO), "std must be None beside Normal(n=2), which has its own, got Normal"),
        (([], []), "dist must have at least one row, got Normal(n=0)"),
        ((TWO[:0],), "dist must have at least one row, got Normal(n=0)"),
    ],
)
def test_bad_forecasts(forecast: tuple[Any, ...], message: str) -> None:
    for name in ALL:
        with pytest.raises(ValueError, match=re.escape(message)):
            call(name, Y, *forecast)


@pytest.mark.parametrize("name", ALL)
def test_means_without_std(name: str) -> None:
    if name in {"rmse", "mae"}:
        for mean in ([[0.0, 0.0]], [[0.0], [0.0]]):
            with pytest.raises(ValueError, match=re.escape("mean must have shape (n,), got (")):
                call(name, Y, mean)
        return
    message = "std must be given if dist holds means, got None; pass std="
    with pytest.raises(ValueError, match=message):
        call(name, Y, MEAN)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0.0, np.nan], "y_true must be finite, got nan; drop such rows"),
        ([0.0, -np.inf], "y_true must be finite, got -inf"),
        ([0.0], "y_true must have shape (2,), got (1,); pass one outcome for each prediction"),
        (0.0, "y_true must have shape (2,), got ()"),
        ([[0.0], [1.0]], "y_true must have shape (2,), got (2, 1)"),
        ([], "y_true must have shape (2,), got (0,)"),
        (["a", "b"], "y_true must hold real numbers"),
        (TWO, "y_true must hold numbers, got Normal(n=2); pass it as dist"),
    ],
)
def test_bad_outcomes(y: Any, message: str) -> None:
    for name in [*WITH_OUTCOMES, "pit"]:
        for forecast in [(TWO,), (MEAN, STD)]:
            with pytest.raises(ValueError, match=re.escape(message)):
                call(name, y, *forecast)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1.0, -0.5], "sample_weight must not be negative, got -0.5; use 0 to leave a row out"),
        ([0.0, 0.0], "sample_weight must not be 0.0 for all rows; give one a positive weight"),
        ([1.0, np.nan], "sample_weight must be finite, got nan"),
        ([1.0, np.inf], "sample_weight must be finite, got inf"),
        ([1.0], "sample_weight must have shape (2,), got (1,); pass one weight per row"),
        (1.0, "sample_weight must have shape (2,), got ()"),
        ([[1.0], [1.0]], "sample_weight must have shape (2,), got (2, 1)"),
    ],
)
def test_bad_weights(weight: Any, message: str) -> None:
    for name in WEIGHTED:
        with pytest.raises(ValueError, match=re.escape(message)):
            call(name, Y, TWO, sample_weight=weight)


@pytest.mark.parametrize("level", [0.0, 1.0, 90, -0.1, np.nan])
def test_levels_out_of_range(level: float) -> None:
    for name, argument in [("interval_score", "coverage"), ("interval_width", "coverage"),
                           ("coverage", "nominal")]:  # fmt: skip
        for value in (level, [0.5, level]):
            message = (
                f"{argument} must lie strictly between 0 and 1, got {float(level)}; write 0.95"
            )
            with pytest.raises(ValueError, match=message):
                call(name, Y, TWO, **{argument: value})
        with pytest.raises(ValueError, match=f"{argument} must be a scalar or 1-D"):
            call(name, Y, TWO, **{argument: [[0.5]]})


@pytest.mark.parametrize("n_bins", [0, -1, 3, 2.0, None])
def test_bad_number_of_bins(n_bins: Any) -> None:
    message = (
        f"n_bins must be an integer from 1 to the 2 rows that have a weight, got {n_bins}; use"
    )
    with pytest.raises(ValueError, match=message):
        metrics.ence(Y, TWO, n_bins=n_bins)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"train_mean": 1.0}, "must be given together, got 1.0 and None; pass both or neither"),
        ({"train_std": 1.0}, "must be given together, got None and 1.0"),
        ({"train_mean": 0.0, "train_std": 0.0}, "must be finite, std positive, got 0.0 and 0.0"),
        ({"train_mean": 0.0, "train_std": np.nan}, "must be finite, std positive, got 0.0 and nan"),
        ({"train_mean": np.nan, "train_std": 1.0}, "must be finite, std positive, got nan and 1.0"),
    ],
)
def test_bad_training_moments(given: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=f"train_mean and train_std {message}"):
        metrics.msll(Y, TWO, **given)


def test_constant_outcomes_have_no_standardised_loss() -> None:
    with pytest.raises(ValueError, match=r"got 3\.0 and 0\.0; pass those of the training"):
        metrics.msll([3.0, 3.0], TWO)


# --- all at once


def test_the_summary_is_the_scores(dist: Distribution) -> None:
    y, w = np.random.default_rng(1).normal(size=40), some_weights()
    told = metrics.summary(y, dist, level=0.8, sample_weight=w)
    for name in ("rmse", "mae", "nll", "crps"):
        assert told[name] == pytest.approx(call(name, y, dist, sample_weight=w), rel=1e-12)
    inside = metrics.coverage(y, dist, nominal=0.8, sample_weight=w)
    assert told["coverage"] == pytest.approx(inside)
    wide = metrics.interval_width(dist, coverage=0.8, sample_weight=w)
    assert told["width"] == pytest.approx(wide)
    assert told["r2"] == pytest.approx(r2_score(y, dist.mean, sample_weight=w))
    assert np.isnan(metrics.summary([3.0, 3.0], TWO)["r2"])


# --- memory


@pytest.mark.parametrize(("members", "n"), [(1, 100_000), (10, 10_000), (40, 10_000)])
def test_memory_grows_with_the_rows_and_not_with_the_members(members: int, n: int) -> None:
    rng = np.random.default_rng(0)
    dist = NormalMixture(rng.normal(size=(members, n)), rng.uniform(0.5, 2.0, size=(members, n)))
    y, w = rng.normal(size=n), rng.uniform(size=n)
    for name in ALL:
        options = {} if name == "pit" else {"sample_weight": w}
        tracemalloc.start()
        call(name, y, dist, **options)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 16 * y.nbytes, name


# --- scorers


class Ensemble(RegressorMixin, BaseEstimator):
    """Two normals, as far apart as `distance`; the true mixture only through predict_dist."""

    def __init__(self, distance: float = 4.0) -> None:
        self.distance = distance

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Ensemble:
        self.centre_ = float(np.average(y, weights=sample_weight))
        return self

    def predict_dist(self, X: Any) -> NormalMixture:
        means = self.centre_ + np.array([[-0.5], [0.5]]) * self.distance * np.ones(len(X))
        return NormalMixture(means, np.ones(means.shape))

    def predict(self, X: Any, return_std: bool = False) -> Any:
        dist = self.predict_dist(X)
        return (dist.mean, dist.std) if return_std else dist.mean


@pytest.fixture
def routing() -> Iterator[None]:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


SCORERS = {"nll": neg_nll_scorer, "crps": neg_crps_scorer}
LOSSES = {"nll": metrics.nll, "crps": metrics.crps}
CV = KFold(4)


def table(n: int = 80) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, 2))
    return X, 2.0 + X[:, 0] + 0.5 * rng.normal(size=n), rng.integers(1, 9, size=n).astype(float)


def process() -> GaussianProcessRegressor:
    kernel = RBF(2.0, "fixed") + WhiteKernel(0.3, "fixed")
    return GaussianProcessRegressor(kernel, normalize_y=True)


def by_hand(
    loss: Callable[..., float], model: Any, X: Array, y: Array, weight: Array | None = None,
    fit_weight: Array | None = None,
) -> list[float]:  # fmt: skip
    scores = []
    for train, test in CV.split(X):
        fitting = {} if fit_weight is None else {"sample_weight": fit_weight[train]}
        fitted = sklearn.clone(model).fit(X[train], y[train], **fitting)
        mean, std = fitted.predict(X[test], return_std=True)
        rows = None if weight is None else weight[test]
        scores.append(-loss(y[test], mean, std, sample_weight=rows))
    return scores


@pytest.mark.parametrize("model", [BayesianRidge(), process()], ids=["ridge", "process"])
def test_cross_validate_with_several_scorers(model: Any) -> None:
    X, y, _ = table()
    scoring = {**SCORERS, "r2": "r2", "mse": "neg_mean_squared_error"}
    results = cross_validate(model, X, y, scoring=scoring, cv=CV, return_train_score=True)
    for name, loss in LOSSES.items():
        assert_allclose(results[f"test_{name}"], by_hand(loss, model, X, y), rtol=1e-12)
        assert np.all(results[f"train_{name}"] < 0)
    single = cross_val_score(model, X, y, scoring=neg_crps_scorer, cv=CV)
    assert_array_equal(single, results["test_crps"])


def test_scorer_takes_the_true_mixture() -> None:
    X, y, w = table()
    model = Ensemble().fit(X, y)
    for name, scorer in SCORERS.items():
        score = scorer(model, X, y, sample_weight=w)
        assert score == -LOSSES[name](y, model.predict_dist(X), sample_weight=w)
        assert score == scorer(model, X, y, w)
        moments = model.predict(X, return_std=True)
        assert score != pytest.approx(-LOSSES[name](y, *moments, sample_weight=w), rel=1e-3)


@pytest.mark.parametrize("scorer", SCORERS.values(), ids=SCORERS)
def test_grid_search_prefers_the_better_forecast(scorer: Any) -> None:
    X, y, _ = table()
    grid = {"distance": [0.1, 30.0, 8.0]}
    search = GridSearchCV(Ensemble(), grid, scoring=scorer, cv=CV).fit(X, y)
    assert search.best_params_ == {"distance": 0.1}
    assert search.score(X, y) == scorer(search.best_estimator_, X, y)


def test_grid_search_with_several_scorers_and_refit() -> None:
    X, y, _ = table()
    grid = {"kernel__k2__noise_level": [1e-3, 0.25, 30.0]}
    search = GridSearchCV(process(), grid, scoring=SCORERS, refit="crps", cv=CV).fit(X, y)
    assert search.best_params_ == {"kernel__k2__noise_level": 0.25}
    best = by_hand(metrics.nll, search.best_estimator_, X, y)
    assert search.cv_results_["mean_test_nll"].max() == pytest.approx(np.mean(best))
    assert search.score(X, y) == neg_crps_scorer(search.best_estimator_, X, y)


def test_search_with_sample_weight() -> None:
    X, y, w = table()
    for scoring, key in [(neg_nll_scorer, "score"), ({**SCORERS, "r2": "r2"}, "nll")]:
        search = GridSearchCV(BayesianRidge(), {"fit_intercept": [True]}, scoring=scoring,
                              refit=False, cv=CV).fit(X, y, sample_weight=w)  # fmt: skip
        # Searches pass weights to scorers, without metadata routing, only from scikit-learn 1.7.
        scored = w if parse_version(sklearn.__version__) >= parse_version("1.7") else None
        expected = by_hand(metrics.nll, BayesianRidge(), X, y, scored, w)
        assert search.cv_results_[f"mean_test_{key}"] == pytest.approx(np.mean(expected))


@pytest.mark.usefixtures("routing")
def test_metadata_routing() -> None:
    X, y, w = table()
    model = BayesianRidge().set_fit_request(sample_weight=False)
    asking = {
        name: scorer.set_score_request(sample_weight=True) for name, scorer in SCORERS.items()
    }
    weighted = cross_validate(model, X, y, scoring=asking, cv=CV, params={"sample_weight": w})
    single = cross_val_score(model, X, y, scoring=asking["nll"], cv=CV, params={"sample_weight": w})
    for name, loss in LOSSES.items():
        assert_allclose(weighted[f"test_{name}"], by_hand(loss, model, X, y, w), rtol=1e-12)
    assert_array_equal(single, weighted["test_nll"])
    search = GridSearchCV(model, {"fit_intercept": [True]}, scoring=asking["crps"], cv=CV)
    search.fit(X, y, sample_weight=w)
    assert search.best_score_ == pytest.approx(weighted["test_crps"].mean())
    other = neg_nll_scorer.set_score_request(sample_weight="exposure")
    renamed = cross_val_score(model, X, y, scoring=other, cv=CV, params={"exposure": w})
    assert_array_equal(renamed, single)
    model.set_fit_request(sample_weight=True)
    declined = neg_nll_scorer.set_score_request(sample_weight=False)
    fitted = cross_val_score(model, X, y, scoring=declined, cv=CV, params={"sample_weight": w})
    assert_allclose(fitted, by_hand(metrics.nll, BayesianRidge(), X, y, None, w), rtol=1e-12)


@pytest.mark.usefixtures("routing")
def test_weights_that_nobody_asked_for_are_an_error_that_names_the_scorer() -> None:
    X, y, w = table()
    neg_nll_scorer.set_score_request(sample_weight=True)  # gives a new scorer
    model = BayesianRidge().set_fit_request(sample_weight=False)
    with pytest.raises(ValueError, match=r"neg_nll_scorer\.set_score_request"):
        GridSearchCV(model, {}, scoring=neg_nll_scorer).fit(X, y, sample_weight=w)
    with pytest.raises(ValueError, match="not an alias"):
        neg_nll_scorer.set_score_request(sample_weight="not an alias").get_metadata_routing()


@pytest.mark.parametrize("enabled", [False, True])
@pytest.mark.parametrize("model", [BayesianRidge(), Ensemble()], ids=["ridge", "ensemble"])
def test_pipelines_and_searches_are_seen_through(model: Any, enabled: bool) -> None:
    X, y, _ = table()
    steps = make_pipeline(StandardScaler(), make_pipeline("passthrough", StandardScaler(), model))
    search = GridSearchCV(steps, {}, scoring=neg_nll_scorer, cv=CV)
    plain = sklearn.clone(model).fit(StandardScaler().fit_transform(X), y)
    expected = neg_nll_scorer(plain, StandardScaler().fit_transform(X), y)
    with sklearn.config_context(enable_metadata_routing=enabled):
        for wrapped in [
            steps,
            make_pipeline(steps),
            search,
            make_pipeline(StandardScaler(), search),
        ]:
            wrapped.fit(X, y)
            assert neg_nll_scorer(wrapped, X, y) == pytest.approx(expected, rel=1e-12)
        assert np.isfinite(cross_val_score(search, X, y, scoring=neg_crps_scorer, cv=CV)).all()


@pytest.mark.parametrize(
    "model",
    [
        LinearRegression(),
        make_pipeline(StandardScaler(), LinearRegression()),
        TransformedTargetRegressor(BayesianRidge()),
        StandardScaler(),
    ],
)
def test_estimators_without_a_std(model: Any) -> None:
    X, y, _ = table()
    message = r"estimator must have predict_dist\(X\) or predict\(X, return_std=True\), got "
    message += "StandardScaler" if isinstance(model, StandardScaler) else ".*Regress"
    with pytest.raises(TypeError, match=message):
        neg_nll_scorer(model.fit(X, y), X, y)


def test_an_estimator_that_claims_certainty_is_an_error() -> None:
    X, y, _ = table(10)
    model = GaussianProcessRegressor(RBF(1e-3, "fixed"), alpha=1e-300).fit(X, y)
    with pytest.raises(ValueError, match=r"std must be positive, got 0\.0"):
        neg_nll_scorer(model, X, y)


def test_scorers_pickle_and_have_names() -> None:
    X, y, w = table()
    model = BayesianRidge().fit(X, y)
    assert [repr(s) for s in SCORERS.values()] == ["neg_nll_scorer", "neg_crps_scorer"]
    for scorer in SCORERS.values():
        copy = pickle.loads(pickle.dumps(scorer))
        assert copy == scorer
        assert copy(model, X, y) == scorer(model, X, y)
        assert check_scoring(model, scorer) is scorer
    found = permutation_importance(model, X, y, scoring=neg_nll_scorer, sample_weight=w,
                                   n_repeats=3, random_state=0)  # fmt: skip
    assert found.importances_mean[0] > 10 * abs(found.importances_mean[1])


def test_our_own_estimators() -> None:
    from mvenet import MVERegressor

    X, y, w = table()
    model = MVERegressor(n_members=2, hidden_mean=(4,), hidden_var=(), epochs=20, random_state=0)
    fitted = sklearn.clone(model).fit(X, y)
    for name, scorer in SCORERS.items():
        mixture = fitted.predict_dist(X)
        assert isinstance(mixture, NormalMixture)
        assert scorer(fitted, X, y, sample_weight=w) == -LOSSES[name](y, mixture, sample_weight=w)
    results = cross_validate(model, X, y, scoring=SCORERS, cv=CV)
    assert np.isfinite(results["test_nll"]).all()
    search = GridSearchCV(model, {"reg_mean": [1e-4, 1e3]}, scoring=neg_nll_scorer, cv=CV).fit(X, y)
    assert search.best_params_ == {"reg_mean": 1e-4}


# --- coverage by group ---------------------------------------------------------------------------


def test_coverage_by_is_the_coverage_of_each_group():
    rng = np.random.default_rng(0)
    y, groups = rng.normal(size=300), rng.integers(0, 4, 300)
    dist = Normal(np.zeros(300), np.ones(300))
    told = metrics.coverage_by(y, dist, groups, nominal=0.8)
    for number, group in enumerate(told["group"]):
        rows = groups == group
        part = Normal(np.zeros(rows.sum()), np.ones(rows.sum()))
        assert told["rows"][number] == rows.sum()
        expected = metrics.coverage(y[rows], part, nominal=0.8)
        assert told["coverage"][number] == pytest.approx(expected)
        limits = binom(rows.sum(), 0.8).ppf([0.025, 0.975]) / rows.sum()
        assert [told["low"][number], told["high"][number]] == pytest.approx(limits)


def test_coverage_by_needs_a_group_for_each_outcome():
    with pytest.raises(ValueError, match=r"groups has shape \(2,\), and y_true \(3,\)"):
        metrics.coverage_by([1.0, 2.0, 3.0], [0.0, 0.0, 0.0], ["a", "b"], std=[1.0, 1.0, 1.0])
