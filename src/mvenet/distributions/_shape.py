"""Shortest intervals and regions of a distribution, from its quantiles.

Between two neighbouring ones of many quantiles lies the same probability everywhere: the closer
they are, the higher is the density. Values with a probability of their own are quantiles of several
levels, no distance apart.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from mvenet.distributions._checks import FloatArray

_CELLS = 200  # of equal probability
_SMOOTHED = 9  # neighbouring cells whose density is averaged: a peak is wider than a spike
_PLACES = 33  # where an interval may begin, and again around the best


class Quantiles(Protocol):
    """What is needed of a distribution."""

    def ppf(self, q: ArrayLike) -> FloatArray:
        """Quantiles, (n, k)."""


def shortest(dist: Quantiles, coverage: float) -> FloatArray:
    """Ends of the shortest interval of each row, (n, 2)."""
    most = 1.0 - coverage
    starts = most * (np.arange(_PLACES) + 0.5) / _PLACES
    low, high = dist.ppf(starts), dist.ppf(starts + coverage)
    best = (high - low).argmin(axis=1)
    rows = np.arange(len(low))
    return np.column_stack([low[rows, best], high[rows, best]])


def regions(dist: Quantiles, coverage: float) -> list[FloatArray]:
    """The intervals of highest density of each row, each of shape (k, 2)."""
    ends = dist.ppf(np.arange(0.5, _CELLS + 1) / (_CELLS + 1))
    count = int(np.ceil(coverage * (_CELLS + 1) - 1e-9))
    return [_region(row, min(count, _CELLS)) for row in ends]


def _region(ends: FloatArray, count: int) -> FloatArray:
    width = np.diff(ends)
    half = _SMOOTHED // 2
    around = np.convolve(np.pad(width, half, mode="edge"), np.ones(_SMOOTHED), "valid")
    around[width == 0.0] = 0.0
    chosen = np.zeros(len(width) + 2, dtype=bool)
    chosen[1 + np.argsort(around, kind="stable")[:count]] = True
    starts = np.flatnonzero(chosen[1:] & ~chosen[:-1])
    stops = np.flatnonzero(chosen[:-1] & ~chosen[1:])
    return np.column_stack([ends[starts], ends[stops]])
