"""Ends of y: an atom where rows lie on it, squeezed where they only come near; by evidence."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from mvenet._automatic.ends import Evidence, bounded, known
from mvenet._models.free_shape import Atoms
from mvenet.distributions import Bounded, NormalMixture, WithAtoms

RNG = np.random.default_rng(0)
MEANS = RNG.uniform(0.02, 0.98, 1500)
SHARES = stats.beta.rvs(6 * MEANS, 6 * (1 - MEANS), random_state=1)
STD = np.sqrt(MEANS * (1 - MEANS) / 7)
CELL = 1e-3 * SHARES.std()


def evidence(y, bounds=(0.0, 1.0)):
    """Of normals with the true mean and standard deviation of each row."""
    whole = NormalMixture([MEANS], [STD])
    edges = np.linspace(-0.3, 1.3, 321)
    places = 0.5 * (edges[1:] + edges[:-1])
    collected = bounded(None, bounds, CELL)
    dist = WithAtoms(whole, collected.values, collected.cells, CELL)
    return Evidence(y, whole, CELL, places, dist.cdf(places[None]).T, np.diff(edges), np.mean)


def found(y, bounds=(0.0, 1.0), atoms=None, log=False):
    return known(atoms, bounds, lambda: evidence(y, bounds), CELL, log)


def test_shares_that_no_row_ends_at_are_squeezed_and_likelier_so():
    result = found(SHARES)
    assert result.atoms is None and result.ends.values.tolist() == [0.0, 1.0]
    whole = evidence(SHARES).whole
    squeezed, atoms = result.of(whole), found(np.round(SHARES)).of(whole)
    assert isinstance(squeezed, Bounded) and isinstance(atoms, WithAtoms)
    low, high = (np.clip(SHARES + side * CELL / 2, 1e-12, 1 - 1e-12) for side in (-1, 1))
    gain = np.log(squeezed.cdf(high) - squeezed.cdf(low)) - np.log(atoms.cdf(high) - atoms.cdf(low))
    assert gain.mean() > 0.05
    assert squeezed.crps(SHARES).mean() < 1.001 * atoms.crps(SHARES).mean()


def test_each_end_is_decided_by_its_own_rows():
    capped = np.where(SHARES > 0.9, 1.0, SHARES)
    result = found(capped)
    assert result.atoms.values.tolist() == [1.0]
    assert result.ends.values.tolist() == [0.0, np.inf]
    dist = result.of(evidence(capped).whole)
    assert (dist.pmf(0.0) == 0).all() and dist.pmf(1.0).mean() > 0.03
    both = found(np.where(capped < 0.1, 0.0, capped))
    assert both.ends is None and both.atoms.values.tolist() == [0.0, 1.0]


def test_a_few_rows_on_an_end_make_no_atom_of_it():
    y = SHARES.copy()
    y[:3] = 0.0
    assert found(y).ends.values[0] == 0.0


def test_the_crps_may_not_be_worse():
    """Squeezing brings nothing, and is not done, where the mixture has nothing beyond."""
    y = np.clip(SHARES, 0.3, 0.7)
    assert found(y).ends is None or found(y).ends.reach.max() < 0.5


def test_ends_that_are_atoms_or_near_some_stay():
    cells = np.array([[-np.inf, 0.01], [0.5, 0.51]])
    atoms = Atoms(np.array([0.0, 0.505]), cells, CELL)
    result = found(SHARES, atoms=atoms)
    assert 0.0 in result.atoms.values and result.ends.values.tolist() == [-np.inf, 1.0]
    assert 1.0 - result.ends.reach[1] >= 0.51
    grid = Atoms(np.array([0.2, 0.8]), np.array([[-np.inf, 0.5], [0.5, np.inf]]), CELL)
    assert found(SHARES, atoms=grid).atoms is grid


def test_on_the_log_scale_zero_needs_nothing_and_other_ends_are_atoms():
    assert known(None, (0.0, None), pytest.fail, CELL, log=True) == known(
        None, (None, None), pytest.fail, CELL, log=True
    )
    other = known(None, (0.0, 1.0), pytest.fail, CELL, log=True)
    assert other.ends is None
    assert_allclose(other.atoms.values, [1.0])
