"""The blend of the means, the shape of a noise, and the mixture."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from mvenet import NormalMixture
from mvenet._automatic import stacking
from mvenet._models import mixture

RNG = np.random.default_rng(0)


def test_blend_is_constrained_least_squares():
    y = RNG.normal(size=400)
    means = np.array([y + 0.5 * RNG.normal(size=400), y + RNG.normal(size=400), y + 10])
    weight = np.ones(400)
    shares = stacking.blend(means, y, weight)
    assert shares.sum() == pytest.approx(1) and shares[2] == 0
    errors = [
        np.mean((y - w * means[0] - (1 - w) * means[1]) ** 2) for w in np.linspace(0, 1, 1001)
    ]
    assert shares[0] == pytest.approx(np.argmin(errors) / 1000, abs=2e-3)


def test_shape_recovers_factor_and_exponent_despite_outliers():
    log_std = RNG.normal(size=4000)
    residual = 3.0 * np.exp(0.5 * log_std) * RNG.standard_t(4, 4000)
    residual[:20] *= 1e6
    shape = stacking.shape(residual, log_std, np.ones(4000), 1e-9, np.inf)
    assert shape.exponent == pytest.approx(0.5, abs=0.05)
    assert np.exp(shape.offset) == pytest.approx(3.0, rel=0.1)
    assert shape.applied(np.array([1e3]))[0] <= 0.5 * log_std.max() + shape.offset + 1


def test_mixture_of_multiples_is_as_likely_as_the_truth():
    y = RNG.standard_t(3, 5000)
    fresh = RNG.standard_t(3, 5000)
    zeros = np.zeros((1, 5000))
    weights = stacking.mix(y, zeros, zeros, np.ones(5000))
    assert weights.sum() == pytest.approx(1) and (weights >= 0).all()
    log_density = mixture.log_density(fresh, zeros, zeros, weights)
    kept = np.flatnonzero(weights[0])
    stds = np.tile(mixture.MULTIPLES[kept, None], 5000)
    _, std = mixture.moments(np.zeros_like(stds), stds, weights[0, kept], log=False)
    ours = NormalMixture(
        np.zeros((len(kept), 5000)),
        np.tile(mixture.MULTIPLES[kept, None], 5000),
        weights[0, kept],
    )
    assert_allclose(log_density, ours.logpdf(fresh), rtol=1e-9)
    assert_allclose(std, ours.std, rtol=1e-9)
    truth = stats.t(3).logpdf(fresh).mean()
    assert log_density.mean() == pytest.approx(truth, abs=0.02)
    assert stats.norm(0, y.std()).logpdf(fresh).mean() < truth - 0.1  # what it is measured against
