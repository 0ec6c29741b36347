"""Distributions with atoms: values that have a probability of their own.

Ratings, counts, a price of which many rows have the same, zero rain, a cap: a density knows none of
them. Here each atom has a cell around it, from halfway to the value before to halfway to the next,
and what a smooth distribution expects there is collected at the atom. All else stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from numpy.typing import ArrayLike

from mvenet._utils.sums import total
from mvenet.distributions._bounded import Bounded, within
from mvenet.distributions._checks import FloatArray, check, check_shape, frozen, real
from mvenet.distributions._members import Smooth
from mvenet.distributions._moved import Moved

# Share of the smooth distribution that counts in ``logpdf``: a value that no row has had so far is
# improbable, not impossible.
UNSEEN = 1e-3


@final
@dataclass(frozen=True, eq=False, repr=False, init=False)
class WithAtoms(Moved):
    """Predictive distributions of n rows, with probabilities at some values.

    Parameters
    ----------
    smooth : NormalMixture, LogNormalMixture or Bounded
        What is expected before the values of each cell are collected at its atom.
    atoms : array-like of shape (k,)
        Values that have a probability of their own, in increasing order and units of y.
    cells : array-like of shape (k, 2)
        Where the cell of each atom begins and ends; the first may begin at minus infinity and the
        last end at infinity. Cells do not overlap.
    resolution : float
        Width of the cell around y whose probability is told by ``logpdf``.

    Examples
    --------
    >>> from mvenet.distributions import NormalMixture, WithAtoms
    >>> smooth = NormalMixture(means=[[0.2, 2.0]], stds=[[1.0, 1.0]])
    >>> dist = WithAtoms(smooth, atoms=[0.0], cells=[[-float("inf"), 0.1]], resolution=0.1)
    >>> dist
    WithAtoms(n_atoms=1, n=2)
    >>> print(dist.pmf(0.0).round(3))
    [0.46  0.029]
    >>> print(dist.interval(0.9).round(2))
    [[0.   1.84]
     [0.36 3.64]]
    """

    smooth: Smooth
    atoms: FloatArray
    cells: FloatArray
    resolution: float

    def __init__(
        self, smooth: Smooth, atoms: ArrayLike, cells: ArrayLike, resolution: float
    ) -> None:
        values, ends = real("atoms", atoms), real("cells", cells)
        if not isinstance(smooth, Smooth):
            raise TypeError(f"smooth must be a mixture, got {type(smooth).__name__}")
        if values.ndim != 1 or not len(values):
            raise ValueError(f"atoms must have shape (k,), got {values.shape}; name at least one")
        check("atoms", values, np.isfinite(values), "be finite", "leave such values out")
        check_shape("cells", ends, (len(values), 2), "pass two ends for each atom")
        inside = (ends[:, 0] <= values) & (values <= ends[:, 1]) & (ends[:, 0] < ends[:, 1])
        check("atoms", values, inside, "lie in their cells", "sort both")
        check("cells", ends[1:, 0], ends[1:, 0] >= ends[:-1, 1], "not overlap", "sort them")
        if isinstance(smooth, Bounded):
            clear = (ends[:, 0] >= smooth.inner[0]) & (ends[:, 1] <= smooth.inner[1])
            check("atoms", values, clear, "be out of the reach of ends", "shorten the reach")
        width = np.float64(resolution)
        usable = np.atleast_1d(np.isfinite(width) & (width > 0))
        check("resolution", np.atleast_1d(width), usable, "be positive", "use such as 0.01")
        self._fill(smooth, frozen(values), frozen(ends), float(width))

    def _fill(
        self, smooth: Smooth, atoms: FloatArray, cells: FloatArray, resolution: float
    ) -> None:
        values = {"smooth": smooth, "atoms": atoms, "cells": cells, "resolution": resolution}
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"WithAtoms(n_atoms={len(self.atoms)}, n={len(self)})"

    @property
    def _before(self) -> Smooth:
        return self.smooth

    def _at(self, index: Any) -> Self:
        selected = object.__new__(type(self))
        selected._fill(self.smooth[index], self.atoms, self.cells, self.resolution)
        return selected

    @property
    def everywhere(self) -> bool:
        """Whether the cells leave nothing out: every outcome is an atom."""
        return nothing_between(self.cells)

    @property
    def masses(self) -> FloatArray:
        """Probability of each atom, of shape (k, n)."""
        if self.everywhere:  # a cell ends where the next one begins
            below = self.smooth._tails(np.append(self.cells[:, 0], np.inf)[:, None])
            return np.maximum(np.diff(below, axis=0), 0.0)
        low, high = (self.smooth._tails(np.ascontiguousarray(end)[:, None]) for end in self.cells.T)
        return np.maximum(high - low, 0.0)

    @property
    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation, each of shape (n,): for both less work than for each."""
        whole = self.smooth.whole if isinstance(self.smooth, Bounded) else self.smooth
        return self.moments_from(whole.mean, whole.std)

    def moments_from(self, mean: FloatArray, std: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The same, from mean and standard deviation of the smooth distribution, or its whole."""
        if isinstance(self.smooth, Bounded):
            mean, std = self.smooth.moments_from(mean, std)
        mean, variance = self._moments(mean, std)
        return mean, np.sqrt(variance)

    def _moments(self, origin: FloatArray, std: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance, from mean and standard deviation of the smooth distribution."""
        if self.everywhere:
            masses = self.masses
            masses = masses / total(masses)
            mean = total(masses * self.atoms[:, None])
            return mean, total(masses * np.square(self.atoms[:, None] - mean))
        mass, one, two = self.smooth._partials(self.cells, origin)
        apart = self.atoms[:, None] - origin
        first = total(mass * apart) - total(one)
        second = np.square(std) + total(mass * np.square(apart)) - total(two)
        return origin + first, np.maximum(second - np.square(first), 0.0)

    def _moved(self, y: FloatArray) -> FloatArray:
        cell = np.searchsorted(self.cells[:, 0], y, side="right") - 1
        inside = (cell >= 0) & (y < self.cells[cell, 1])
        return np.where(inside, self.atoms[cell], y)

    def _place(self, y: FloatArray) -> FloatArray:
        return place_among(y, self.atoms, self.cells)

    def _tail(self, y: FloatArray, sign: float) -> FloatArray:
        return self.smooth._tail(self._place(y), sign)

    def _between(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Probability from above low to high, from the tail that is smaller."""
        below = self._tail(high, 1.0) - self._tail(low, 1.0)
        above = self._tail(low, -1.0) - self._tail(high, -1.0)
        return np.maximum(np.where(self._tail(low, 1.0) > 0.5, above, below), 0.0)

    def _mass_at(self, y: FloatArray) -> FloatArray:
        cell = np.minimum(np.searchsorted(self.atoms, y), len(self.atoms) - 1)
        low, high = self.cells[cell].T
        below = self.smooth._tail(high, 1.0) - self.smooth._tail(low, 1.0)
        above = self.smooth._tail(low, -1.0) - self.smooth._tail(high, -1.0)
        mass = np.where(self.smooth._tail(low, 1.0) > 0.5, above, below)
        found: FloatArray = np.where(self.atoms[cell] == y, np.maximum(mass, 0.0), 0.0)
        return found

    def _log_density(self, y: FloatArray) -> FloatArray:
        """Logarithm of the probability of the cell of the width of the resolution, divided by it.

        With ``UNSEEN`` of the smooth density.
        """
        half = 0.5 * self.resolution
        with np.errstate(divide="ignore"):
            seen = np.log(self._between(y - half, y + half) / self.resolution)
        unseen = np.log(UNSEEN) + self.smooth._log_density(y)
        both: FloatArray = np.logaddexp(np.log1p(-UNSEEN) + seen, unseen)
        return both

    def _modes(self) -> FloatArray:
        """The atom, or the peak of the density outside the cells, whichever is more probable."""
        masses = self.masses
        best = masses.argmax(axis=0)
        atom: FloatArray = self.atoms[best]
        if self.everywhere:
            return atom
        peak = self.smooth._modes()
        density = np.exp(self.smooth._log_density(peak)) * self.resolution
        outside = self._moved(peak) == peak
        most: FloatArray = np.where(outside & (density > masses.max(axis=0)), peak, atom)
        return most

    def _crps(self, y: FloatArray) -> FloatArray:
        """``∫ (F(x) - 1{x ≥ y})² dx``: the smooth distribution's, corrected cell by cell.

        Within a cell F has one step, and the integral is exact; that of the smooth F there is
        computed by quadrature. Where cells leave nothing out it is not needed.
        """
        score = np.zeros(len(self)) if self.everywhere else self.smooth._crps(y)
        for atom, (low, high) in zip(self.atoms, self.cells, strict=True):
            below, above = (self._tail(np.full(len(self), end), 1.0) for end in (low, high))
            score += _steps(below, above, float(atom), (low, high), y)
            if not self.everywhere:
                score -= within(self.smooth, float(low), float(high), y)
        return score


def place_among(y: FloatArray, atoms: FloatArray, cells: FloatArray) -> FloatArray:
    """Where a smooth distribution has as much below as one with atoms up to and including y."""
    cell = np.searchsorted(cells[:, 0], y, side="right") - 1
    inside = (cell >= 0) & (y < cells[cell, 1])
    end = np.where(y >= atoms[cell], cells[cell, 1], cells[cell, 0])
    place: FloatArray = np.where(inside, end, y)
    return place


def nothing_between(cells: FloatArray) -> bool:
    """Whether cells, (k, 2), leave nothing out."""
    low, high = cells.T
    return bool(np.isinf(low[0]) and np.isinf(high[-1]) and (low[1:] == high[:-1]).all())


def _steps(
    below: FloatArray, above: FloatArray, atom: float, cell: tuple[float, float], y: FloatArray
) -> FloatArray:
    """``∫ (F(x) - 1{x ≥ y})² dx`` over a cell in which F steps from below to above at the atom."""
    low, high = cell
    total = np.zeros(len(y))
    for level, begin, end in ((below, low, atom), (above, atom, high)):
        # Where a cell is open, F is zero or one there, and only what y leaves out counts.
        before = np.clip(y, begin, end) - begin if np.isfinite(begin) else np.zeros(len(y))
        after = end - np.clip(y, begin, end) if np.isfinite(end) else np.zeros(len(y))
        if np.isinf(begin):
            after = np.maximum(end - y, 0.0)
        if np.isinf(end):
            before = np.maximum(y - begin, 0.0)
        total += np.square(level) * before + np.square(1.0 - level) * after
    return total
