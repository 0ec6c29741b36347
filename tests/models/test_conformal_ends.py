"""Ends that members of a calibrated model know of are kept by their mixture."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_array_equal

from mvenet._models.conformal import _with_ends_of
from mvenet._models.conformal_ends import ends_of, normals_of
from mvenet.distributions import Bounded, NormalMixture, WithAtoms

INF = np.inf
WHOLE = NormalMixture([[0.1, 0.5]], [[0.3, 0.2]])
BOTH = Bounded(WHOLE, [0.0, 1.0], [0.02, 0.03])
LOW = WithAtoms(Bounded(WHOLE, [0.0, INF], [0.04, 1.0]), [1.0], [[1.0, INF]], 0.01)
ATOMS = WithAtoms(WHOLE, [0.0, 1.0], [[-INF, 0.0], [1.0, INF]], 0.01)


def test_the_first_that_knows_of_an_end_tells_it():
    assert ends_of([WHOLE, ATOMS]) is None
    ends, reach = ends_of([ATOMS, LOW, BOTH])
    assert_array_equal(ends, [0.0, 1.0])
    assert_array_equal(reach, [0.04, 0.03])
    assert normals_of(LOW) is WHOLE and normals_of(BOTH) is WHOLE


def test_mixtures_of_members_have_their_ends():
    for parts in ([BOTH], [BOTH, BOTH], [ATOMS, BOTH], [LOW, BOTH], [LOW, LOW], [ATOMS, ATOMS]):
        made = _with_ends_of(parts, WHOLE)
        quantiles = made.ppf([1e-9, 1 - 1e-9])
        assert (quantiles >= 0).all() and (quantiles <= 1).all()
    assert isinstance(_with_ends_of([ATOMS, BOTH], WHOLE), Bounded)
    assert (_with_ends_of([LOW, LOW], WHOLE).pmf(1.0) > 0).all()
