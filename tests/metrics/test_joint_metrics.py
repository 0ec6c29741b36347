"""Scores of several targets, against sums over all pairs and against SciPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from mvenet import metrics
from mvenet.distributions import Joint, Normal

RNG = np.random.default_rng(0)
R = np.array([[1.0, 0.8], [0.8, 1.0]])
Y = RNG.normal(size=(5, 2))
DRAWS = RNG.normal(size=(7, 5, 2))
W = np.array([1.0, 2.0, 0.0, 1.0, 1.0])


def joint(n=5, correlation=R):
    return Joint(
        [Normal(np.zeros(n), np.ones(n)), Normal(np.ones(n), np.full(n, 2.0))], correlation
    )


def test_joint_nll_is_scipys():
    cov = R * np.outer([1.0, 2.0], [1.0, 2.0])
    each = -multivariate_normal([0.0, 1.0], cov).logpdf(Y)
    assert metrics.joint_nll(Y, joint()) == pytest.approx(each.mean())
    weighted = metrics.joint_nll(Y, joint(), sample_weight=W)
    assert weighted == pytest.approx(np.average(each, weights=W))


def test_energy_score_is_the_sum_over_pairs_of_draws():
    expected = []
    for row, y in enumerate(Y):
        some = DRAWS[:, row]
        far = np.mean([np.linalg.norm(d - y) for d in some])
        pairs = [np.linalg.norm(a - b) for a, b in itertools.permutations(some, 2)]
        expected.append(far - 0.5 * np.mean(pairs))
    assert metrics.energy_score(Y, DRAWS) == pytest.approx(np.mean(expected))
    found = metrics.energy_score(Y, DRAWS, sample_weight=W)
    assert found == pytest.approx(np.average(expected, weights=W))
    halved = metrics.energy_score(Y, DRAWS, scale=[2.0, 2.0])
    assert halved == pytest.approx(0.5 * np.mean(expected))


def test_energy_score_of_one_target_is_its_crps():
    dist = Joint([Normal(np.zeros(5), np.ones(5))], [[1.0]])
    found = metrics.energy_score(Y[:, :1], dist, size=2_000)
    assert found == pytest.approx(metrics.crps(Y[:, 0], dist.marginal(0)), abs=0.02)


def test_variogram_score_is_the_sum_over_pairs_of_targets():
    expected = [
        (abs(y[0] - y[1]) ** 0.7 - np.mean([abs(a - b) ** 0.7 for a, b in DRAWS[:, row]])) ** 2
        for row, y in enumerate(Y)
    ]
    found = metrics.variogram_score(Y, DRAWS, power=0.7)
    assert found == pytest.approx(np.mean(expected))


def test_the_true_dependence_scores_best():
    y = joint(1_000).sample(1, random_state=1)[0]
    wrong = joint(1_000, np.eye(2))
    for score in (metrics.joint_nll, metrics.energy_score, metrics.variogram_score):
        assert score(y, joint(1_000)) < score(y, wrong)
    gain = metrics.joint_nll(y, wrong) - metrics.joint_nll(y, joint(1_000))
    assert gain == pytest.approx(-0.5 * np.log(1 - 0.8**2), abs=0.07)


def test_joint_coverage_counts_rows_with_all_targets_inside():
    dist = joint()
    ends = dist.simultaneous_interval([0.3, 0.9])
    inside = [
        [all(ends[i, j, at, 0] <= Y[i, j] <= ends[i, j, at, 1] for j in range(2)) for i in range(5)]
        for at in range(2)
    ]
    found = metrics.joint_coverage(Y, dist, nominal=[0.3, 0.9])
    assert_allclose(found, np.mean(inside, axis=1))
    assert metrics.joint_coverage(Y, ends[:, :, 0]) == pytest.approx(np.mean(inside[0]))
    y = joint(2_000).sample(1, random_state=2)[0]
    assert metrics.joint_coverage(y, joint(2_000)) == pytest.approx(0.9, abs=0.02)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: metrics.joint_nll(Y[:, 0], joint()), r"y_true must have shape \(n, k\)"),
        (lambda: metrics.joint_nll(Y[:3], joint()), r"shape \(5, 2\)"),
        (lambda: metrics.energy_score(Y, DRAWS[:1]), r"draws must have shape \(2, 5, 2\)"),
        (lambda: metrics.energy_score(Y, DRAWS, scale=[1.0]), r"scale must have shape \(2,\)"),
        (lambda: metrics.energy_score(Y, DRAWS, scale=[1.0, 0.0]), "scale must be positive"),
        (lambda: metrics.energy_score(Y, joint(), size=1), "at least 2"),
        (lambda: metrics.variogram_score(Y, DRAWS, power=0), "power must be positive"),
        (lambda: metrics.joint_coverage(Y, np.zeros((5, 2))), "intervals must have shape"),
        (lambda: metrics.joint_coverage(Y, joint(), nominal=90), "strictly between"),
        (lambda: metrics.joint_nll(np.full((5, 2), np.nan), joint()), "y_true must be finite"),
    ],
)
def test_wrong_inputs(call, match):
    with pytest.raises(ValueError, match=match):
        call()


def test_a_single_target_has_no_joint_score():
    with pytest.raises(TypeError, match="dist must be a Joint, got Normal"):
        metrics.joint_nll(Y, joint().marginal(0))
