"""Several targets together: against SciPy's multivariate normal, and against sums over draws."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.special import ndtr, ndtri
from scipy.stats import kstest, multivariate_normal

from mvenet.distributions import Joint, LogNormalMixture, Normal, NormalMixture, WithAtoms
from mvenet.distributions._copula import Copula
from mvenet.distributions._scores import outcomes, scores

RNG = np.random.default_rng(0)
R3 = np.array([[1.0, 0.7, -0.3], [0.7, 1.0, 0.1], [-0.3, 0.1, 1.0]])
SKEWED = LogNormalMixture([[0.0, 1.0], [0.5, 1.5]], [[0.4, 0.3], [0.8, 0.2]])
BUMPY = NormalMixture([[0.0, 9.0], [4.0, 9.0]], [[1.0, 2.0], [0.3, 2.0]], [0.7, 0.3])


def normals(n, k):
    return [Normal(RNG.normal(size=n), RNG.uniform(0.5, 2.0, n)) for _ in range(k)]


def counts(n=2):
    """Every outcome is a whole number from 0 to 3."""
    cells = [[-np.inf, 0.5], [0.5, 1.5], [1.5, 2.5], [2.5, np.inf]]
    return WithAtoms(Normal_mixture(n), [0.0, 1.0, 2.0, 3.0], cells, 1.0)


def Normal_mixture(n):  # noqa: N802
    return NormalMixture(np.linspace(0.8, 1.8, n)[None], np.full((1, n), 1.1))


@pytest.mark.parametrize("dist", [Normal([0.0, 1e6], [1.0, 2.0]), SKEWED, BUMPY])
def test_outcomes_and_scores_are_inverse(dist):
    z = RNG.normal(size=(50, 2)) * 1.5
    found = outcomes(dist, z)
    again = np.array([scores(dist, row)[1] for row in found])
    assert_allclose(again, z, atol=2e-9)
    level = float(ndtr(0.8))
    assert_allclose(outcomes(dist, np.full((1, 2), 0.8))[0], dist.ppf(level), rtol=1e-9)


def test_density_of_normals_is_scipys():
    marginals, y = normals(4, 3), RNG.normal(size=(4, 3))
    dist = Joint(marginals, R3)
    for i in range(4):
        std = np.array([d.std[i] for d in marginals])
        cov = R3 * np.outer(std, std)
        expected = multivariate_normal([d.mean[i] for d in marginals], cov).logpdf(y[i])
        assert_allclose(dist.logpdf(y)[i], expected, rtol=1e-9)
        assert_allclose(dist.cov[i], cov, rtol=1e-6)
    doubting = Joint(marginals, R3, independent=0.25).logpdf(y)
    alone = Joint(marginals, np.eye(3)).logpdf(y)
    assert_allclose(np.exp(doubting), 0.75 * np.exp(dist.logpdf(y)) + 0.25 * np.exp(alone))


def test_the_density_of_each_row_has_its_own_correlation():
    marginals, y = normals(3, 2), RNG.normal(size=(3, 2))
    each = np.array([[[1.0, r], [r, 1.0]] for r in (-0.9, 0.0, 0.6)])
    dist = Joint(marginals, each)
    for i in range(3):
        alone = Joint([d[i] for d in marginals], each[i])
        assert_allclose(dist.logpdf(y)[i], alone.logpdf(y[[i]])[0], rtol=1e-12)
        assert_allclose(dist[i].logpdf(y[[i]]), alone.logpdf(y[[i]]), rtol=1e-12)
        assert_allclose(dist.cov[i], alone.cov[0], rtol=1e-12)


def test_the_density_of_skewed_targets_sums_to_one():
    a, b = np.meshgrid(np.linspace(0.01, 12, 300), np.linspace(-5, 7, 300))
    n = a.size
    marginals = [SKEWED[np.zeros(n, int)], BUMPY[np.zeros(n, int)]]
    dist = Joint(marginals, [[1.0, 0.8], [0.8, 1.0]], independent=0.1)
    density = np.exp(dist.logpdf(np.column_stack([a.ravel(), b.ravel()])))
    cell = (12 - 0.01) / 299 * 12 / 299
    assert density.sum() * cell == pytest.approx(1.0, abs=0.01)


def test_atoms_have_the_probability_of_their_cells():
    """Both targets are whole numbers: the joint probabilities are those of rectangles."""
    rho = 0.8
    dist = Joint([counts(), counts()], [[1.0, rho], [rho, 1.0]])
    a, b = np.meshgrid(np.arange(4.0), np.arange(4.0), indexing="ij")
    normal = multivariate_normal([0.0, 0.0], [[1.0, rho], [rho, 1.0]])
    ends = [-9.0, *((np.array([0.5, 1.5, 2.5]) - 0.8) / 1.1), 9.0]
    for i, j in zip(a.ravel().astype(int), b.ravel().astype(int), strict=True):
        inside = normal.cdf([ends[i + 1], ends[j + 1]], lower_limit=[ends[i], ends[j]])
        pair = [[float(i), float(j)]]
        found = np.exp(dist[0].copula.log_ratio(*_ends(dist[0], pair)))[0]
        masses = [d[0].pmf(v)[0] for d, v in zip(dist.marginals, pair[0], strict=True)]
        assert found * np.prod(masses) == pytest.approx(inside, rel=0.01, abs=1e-6)


def _ends(dist, y):
    both = [scores(d, np.array([v])) for d, v in zip(dist.marginals, y[0], strict=True)]
    return (np.array([[pair[end][0] for pair in both]]) for end in (0, 1))


def test_one_atom_beside_smooth_targets_is_exact():
    rho, y = 0.7, 1.3
    dist = Joint([Normal([0.5], [2.0]), counts(1)], [[1.0, rho], [rho, 1.0]])
    z = (y - 0.5) / 2.0
    low, high = (ndtri(v) for v in (dist.marginal(1).cdf(0.0)[0], dist.marginal(1).cdf(1.0)[0]))
    spread = np.sqrt(1 - rho**2)
    given = ndtr((high - rho * z) / spread) - ndtr((low - rho * z) / spread)
    expected = given / dist.marginal(1).pmf(1.0)[0]
    gain = dist.logpdf([[y, 1.0]]) - dist.marginal(0).logpdf(y) - dist.marginal(1).logpdf(1.0)
    assert gain[0] == pytest.approx(np.log(expected), rel=1e-9)


def test_draws_have_the_marginals_and_the_covariance():
    dist = Joint([SKEWED, BUMPY], [[1.0, 0.8], [0.8, 1.0]], independent=0.1)
    draws = dist.sample(8_000, random_state=0)
    assert draws.shape == (8_000, 2, 2)
    assert_allclose(draws.mean(axis=0), dist.mean, rtol=0.05)
    for i in range(2):
        assert_allclose(np.corrcoef(draws[:, i].T)[0, 1], dist.correlation[i, 0, 1], atol=0.04)
    for j in range(2):
        level = [0.05, 0.5, 0.95]
        assert_allclose(np.quantile(draws[..., j], level, axis=0).T, dist.marginal(j).ppf(level),
                        rtol=0.06, atol=0.06)  # fmt: skip
    again = dist.sample(5, random_state=3)
    assert (again == dist.sample(5, random_state=3)).all()


def test_draws_of_counts_are_counts():
    draws = Joint([counts(), counts()], [[1.0, 0.9], [0.9, 1.0]]).sample(200, random_state=0)
    assert set(np.unique(draws)) <= {0.0, 1.0, 2.0, 3.0}
    assert np.corrcoef(draws[:, 0].T)[0, 1] > 0.7


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_simultaneous_intervals_hold_all_at_once(level):
    dist = Joint(normals(2, 3), R3)
    ends = dist.simultaneous_interval(level)
    for i in range(2):
        std = dist.std[i]
        normal = multivariate_normal(dist.mean[i], R3 * np.outer(std, std))
        held = normal.cdf(ends[i, :, 1], lower_limit=ends[i, :, 0])
        assert held == pytest.approx(level, abs=0.006)
    alone = Joint(normals(2, 1), [[1.0]])
    assert_allclose(
        alone.simultaneous_interval(level)[:, 0], alone.marginal(0).interval(level), rtol=0.05
    )


def test_simultaneous_intervals_of_each_row_know_its_correlation():
    each = np.array([[[1.0, r], [r, 1.0]] for r in (0.0, 0.99)])
    dist = Joint([Normal([0.0, 0.0], [1.0, 1.0])] * 2, each, names=["a", "b"])
    low, high = dist.simultaneous_interval([0.9])[:, 0, 0].T
    assert_allclose(high, [1.949, 1.70], atol=0.05)
    assert_allclose(low, -high)


def test_simultaneous_intervals_claim_what_rows_left_out_need():
    """Claims at 0, 25, 50 and 75 %: another level of the same copula is asked."""
    given, claims = (normals(3, 2), [[1.0, 0.6], [0.6, 1.0]]), [0.0, 0.02, 0.6, 0.9]
    plain, learned = Joint(*given), Joint(*given, claims=claims)
    # Beyond the last, misses are so many times rarer as there: 10 % instead of 25 %.
    asked, level = [0.25, 0.625, 0.75, 0.95], [0.02, 0.75, 0.9, 0.98]
    held, wanted = learned.simultaneous_interval(asked), plain.simultaneous_interval(level)
    assert_allclose(held[:, :, 1:], wanted[:, :, 1:])
    # All are not held more often than one.
    assert_allclose(held[:, :, 0], learned.interval(0.25))
    assert_allclose(learned[1:].simultaneous_interval(asked), held[1:])
    assert_allclose(learned.logpdf(np.zeros((3, 2))), plain.logpdf(np.zeros((3, 2))))


@pytest.mark.parametrize("same", [True, False])
def test_how_far_out_a_row_is_has_that_probability(same):
    tied = np.array([[1.0, 0.9], [0.9, 1.0]])
    copula = Copula(tied if same else tied[None].repeat(400, axis=0), 0.1)
    drawn = copula.drawn(np.random.default_rng(1), 1, 400)[0]
    found = copula.reached(drawn)
    assert kstest(found, "uniform").pvalue > 0.01
    for level in (0.3, 0.9):
        inside = (np.abs(drawn).max(axis=1) < copula.farthest(level)).mean()
        assert (found < level).mean() == pytest.approx(inside, abs=0.005)


def test_what_is_asked_of_each_target():
    dist = Joint([SKEWED, BUMPY], np.eye(2), names=["price", "area"])
    y = np.array([[1.0, 2.0], [3.0, 8.0]])
    assert repr(dist) == "Joint(price, area; n=2)" and len(dist) == 2
    for j, name in enumerate(dist.names):
        own = dist.marginal(name)
        assert own is dist.marginal(j) is dist.marginals[j]
        assert_allclose(dist.mean[:, j], own.mean)
        assert_allclose(dist.std[:, j], own.std)
        assert_allclose(dist.var[:, j], own.var)
        assert_allclose(dist.median[:, j], own.median)
        assert_allclose(dist.ppf(0.3)[:, j], own.ppf(0.3))
        assert_allclose(dist.interval([0.5, 0.9])[:, j], own.interval([0.5, 0.9]))
        assert_allclose(dist.shortest_interval(0.5)[:, j], own.shortest_interval(0.5))
        assert_allclose(dist.crps(y)[:, j], own.crps(y[:, j]))
    assert_allclose(dist.logpdf(y), sum(dist.marginal(j).logpdf(y[:, j]) for j in range(2)))
    assert_allclose(ndtr(dist.scores(y)[:, 1]), BUMPY.cdf(y[:, 1]))
    frame = dist.to_frame(quantiles=0.1, index=pd.Index(["x", "y"]))
    assert list(frame.columns[:2]) == ["price_mean", "price_std"] and list(frame.index) == [
        "x",
        "y",
    ]
    assert_allclose(frame["area_q_10"], BUMPY.ppf(0.1))


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"marginals": []}, "list of distributions"),
        ({"marginals": [1.0, 2.0]}, "list of distributions"),
        ({"marginals": [SKEWED, BUMPY[:1]]}, "same rows, got 2, 1"),
        ({"names": ["a", "a"]}, "2 different texts"),
        ({"names": ["a"]}, "2 different texts"),
        ({"independent": 1.0}, r"independent must be in \[0, 1\)"),
        ({"claims": [0.0, 0.5, 0.4]}, "claims must rise from 0"),
        ({"claims": [0.0, 1.0]}, "to less than 1"),
        ({"claims": [0.0, np.nan]}, "claims must rise"),
        ({"claims": 0.5}, "claims must rise"),
        ({"correlation": np.eye(3)}, r"shape \(2, 2\)"),
        ({"correlation": np.eye(2)[None].repeat(3, axis=0)}, r"shape \(2, 2, 2\)"),
        ({"correlation": [[1.0, 0.5], [0.4, 1.0]]}, "symmetric"),
        ({"correlation": [[1.0, 2.0], [2.0, 1.0]]}, "symmetric, up to 1"),
        ({"correlation": [[1.0, np.nan], [np.nan, 1.0]]}, "symmetric"),
        ({"correlation": [[2.0, 0.5], [0.5, 2.0]]}, "up to 1"),
        ({"correlation": [[0.9, 0.5], [0.5, 0.9]]}, "ones on its diagonal"),
        ({"correlation": [[1.0, 1.0], [1.0, 1.0]]}, "positive definite"),
    ],
)
def test_what_no_joint_distribution_can_be(change, match):
    given = {"marginals": [SKEWED, BUMPY], "correlation": np.eye(2)} | change
    with pytest.raises(ValueError, match=match):
        Joint(**given)


def test_wrong_questions():
    dist = Joint([SKEWED, BUMPY], np.eye(2), names=["a", "b"])
    with pytest.raises(KeyError, match="one of 'a', 'b'"):
        dist.marginal("c")
    with pytest.raises(KeyError, match="got 2"):
        dist.marginal(2)
    with pytest.raises(ValueError, match=r"y must have shape \(2, 2\)"):
        dist.logpdf([1.0, 2.0])
    with pytest.raises(ValueError, match="size must be"):
        dist.sample(-1)
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        dist.simultaneous_interval(90)
