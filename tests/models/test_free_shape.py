"""Free shapes: a row's components are the same, whatever rows are beside it."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_array_equal

from mvenet._models.free_shape import Hurdle, Residuals
from mvenet.distributions import NormalMixture, WithAtoms


def test_residuals_beside_many_atoms_alone_as_among_others():
    rng = np.random.default_rng(0)
    values = np.arange(20.0)  # so many that NumPy's sums depend on the number of rows
    cells = values[:, None] + np.array([-0.1, 0.1])
    hurdle = Hurdle(values, cells, np.full(20, 0.03), 4.0)
    residuals = Residuals(np.linspace(-2, 2, 9), np.array([0.1, 0.3]), hurdle)
    draws, location = rng.integers(0, 20, (30, 40)).astype(float), rng.normal(8, 3, 40)
    scale = rng.uniform(1, 5, 40)
    told = np.array(residuals.components(draws, location, scale))
    assert told.shape == (3, 2, 29, 40)
    np.testing.assert_allclose(told[2].sum(axis=1), 1.0)
    for i in range(40):
        one = slice(i, i + 1)
        alone = residuals.components(draws[:, one], location[one], scale[one])
        assert_array_equal(alone, told[..., one])


def test_moments_and_modes_with_many_atoms_alone_as_among_others():
    rng = np.random.default_rng(1)
    means, stds = rng.normal(10, 4, (12, 40)), rng.uniform(0.5, 3, (12, 40))
    weights = rng.dirichlet(np.ones(12), 40).T
    atoms = np.arange(20.0)
    edges = np.array([-np.inf, *(atoms[:-1] + 0.5), np.inf])
    for cells in (np.column_stack([edges[:-1], edges[1:]]), atoms[:, None] + [-0.1, 0.1]):
        dist = WithAtoms(NormalMixture(means, stds, weights), atoms, cells, 0.1)
        smooth = NormalMixture(means, stds, weights)
        for i in range(40):
            one = NormalMixture(means[:, [i]], stds[:, [i]], weights[:, [i]])
            alone = WithAtoms(one, atoms, cells, 0.1)
            assert alone.mean[0] == dist.mean[i] and alone.std[0] == dist.std[i]
            assert one.mode[0] == smooth.mode[i]
