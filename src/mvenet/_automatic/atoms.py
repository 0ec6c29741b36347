"""Atoms: which values of y have a probability of their own.

If nearly all rows share their values with others, y lies on a grid (ratings, counts), and every
value is an atom. Otherwise those that many rows share are (zero rain, a cap). Known ends of y are
in :mod:`mvenet._automatic.ends`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mvenet._automatic.constants import ATOM_ROWS, ATOM_SHARE, GRID_SHARE, MOST_ATOMS
from mvenet._models.free_shape import Atoms

Array = NDArray[np.float64]


def resolution(y: Array) -> float:
    """The smallest step between values of y, but for rounding errors; zero if all are equal."""
    steps = np.diff(np.unique(y))
    rounding = 4.0 * np.finfo(np.float64).eps * float(np.abs(y).max())
    steps = steps[steps > max(rounding, 1e-9 * float(np.ptp(y)))]
    return float(steps.min()) if len(steps) else 0.0


def atoms_of(y: Array, cell: float) -> Atoms | None:
    """Values that may have a probability of their own, each with its cell."""
    values, counts = np.unique(y, return_counts=True)
    grid = counts[counts > 1].sum() >= GRID_SHARE * len(y)
    many = counts >= max(ATOM_ROWS, ATOM_SHARE * len(y))
    if grid and len(values) <= MOST_ATOMS:
        many = np.ones(len(values), dtype=bool)
    if not many.any() or len(values) < 2:
        return None
    between = 0.5 * (values[1:] + values[:-1])
    cells = np.column_stack([[-np.inf, *between], [*between, np.inf]])
    return Atoms(values[many], cells[many], cell)
