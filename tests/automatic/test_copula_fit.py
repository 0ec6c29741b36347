"""What ties several targets, from the places of outcomes in their out-of-fold distributions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr

from mvenet._automatic import copula_fit
from mvenet._training.dependence import Dependence
from mvenet.distributions import Joint, Normal


def placed(n, width, seed, rho=0.6):
    """Probabilities of outcomes, (n, 2, 2), whose distributions are so many times too wide."""
    z = np.random.default_rng(seed).multivariate_normal([0, 0], [[1, rho], [rho, 1]], n) / width
    return z, np.repeat(ndtr(z)[:, :, None], 2, axis=2)


def covered(tied, z, level):
    """How often simultaneous intervals of standard normals hold both scores."""
    nothing, one = np.zeros(len(z)), np.ones(len(z))
    dist = Joint([Normal(nothing, one)] * 2, tied.constant, None, tied.independent, tied.claims)
    ends = dist.simultaneous_interval(level)
    return ((ends[..., 0] <= z) & (z <= ends[..., 1])).all(axis=1).mean()


@pytest.mark.parametrize("width", [0.8, 1.0, 1.1])
def test_intervals_for_all_targets_hold_what_rows_left_out_say(width):
    """Marginals a quarter too narrow or a tenth too wide; but not narrower than for one target."""
    _, pit = placed(4_000, width, seed=0)
    tied = copula_fit.fit(np.zeros((4_000, 1)), pit)
    fresh, _ = placed(40_000, width, seed=1)
    for level in (0.8, 0.9, 0.99):
        error = np.sqrt(level * (1 - level) / 4_000)
        assert covered(tied, fresh, level) == pytest.approx(level, abs=3 * error + 0.003)


def test_few_rows_say_little_about_intervals():
    """Twelve rows that all lie close to their medians leave the copula's word nearly as it is."""
    pit = np.repeat(np.linspace(0.45, 0.55, 12)[:, None, None], 2, axis=1).repeat(2, axis=2)
    tied = copula_fit.fit(np.zeros((12, 1)), pit)
    assert tied.claims is not None and 0.8 < tied.claims[90] < 0.9
    groups = Dependence(groups=np.arange(240) // 20)
    many = copula_fit.fit(np.zeros((240, 1)), np.repeat(pit, 20, axis=0), dependence=groups)
    assert many.claims[90] == pytest.approx(tied.claims[90], abs=0.02)
