"""Known ends of y: what the mixture expects beyond them goes where rows left out say.

If rows lie on an end (a share of exactly 100 %), what is expected beyond is collected there. If
hardly any does, an atom promises values that do not occur, and the density next to the end is too
low: what is beyond then is squeezed into the last bit before the end. How long that bit is, if
there is any, is decided end by end: by the log-likelihood of the rows' cells, at no cost in CRPS.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mvenet._automatic.constants import REACHES
from mvenet._models.free_shape import Atoms, Ends
from mvenet.distributions import Bounded, Distribution, LogNormalMixture, NormalMixture, WithAtoms

Array = NDArray[np.float64]
Bounds = tuple[float | None, float | None]


@dataclass(frozen=True)
class Known:
    """Atoms, with those at ends that rows lie on; and the ends that rows only come near."""

    atoms: Atoms | None
    ends: Ends | None = None

    def of(self, smooth: NormalMixture | LogNormalMixture) -> Distribution:
        """A mixture with all of them."""
        inside: NormalMixture | LogNormalMixture | Bounded = smooth
        if self.ends is not None:
            assert isinstance(smooth, NormalMixture)
            inside = Bounded(smooth, self.ends.values, self.ends.reach)
        if self.atoms is None:
            return inside
        return WithAtoms(inside, self.atoms.values, self.atoms.cells, self.atoms.resolution)


@dataclass(frozen=True)
class Evidence:
    """What is known of rows left out, by a mixture that knows no ends.

    Attributes
    ----------
    y : ndarray of shape (n,)
    whole : NormalMixture
    cell : float
        Width of the cells whose probability counts.
    places : ndarray of shape (thresholds,)
    below : ndarray of shape (thresholds, n)
        Probability up to each place if what is beyond an end is at the end.
    lengths : ndarray of shape (thresholds,)
        Of the stretches that the places stand for.
    mean : callable
        The average over rows.
    """

    y: Array
    whole: NormalMixture
    cell: float
    places: Array
    below: Array
    lengths: Array
    mean: Callable[[Array], float]

    def likelihood(self, end: int, value: float, reach: float) -> float:
        """Of the cells next to an end, as a logarithm; if nothing is squeezed, all is at the end.

        Cells that are out of the longest reach have the same in all cases.
        """
        sign = 1.0 - 2.0 * end
        near = sign * (self.y - value) <= max(REACHES) * self._spread + self.cell
        some = self.whole[near]
        y, half = self.y[near], 0.5 * self.cell
        low, high = y - half, y + half
        if end == 0:  # a cell has no part in an atom that the row is not at
            low = np.where(y == value, low, np.maximum(low, value))
        else:
            high = np.where(y == value, high, np.minimum(high, np.nextafter(value, -np.inf)))
        dist = _at_one_end(some, end, value, reach)
        mass = dist.cdf(high) - dist.cdf(low)
        logs = np.zeros(len(self.y))
        logs[near] = np.log(np.maximum(mass, 1e-12))
        return self.mean(logs)

    def crps(self, end: int, value: float, reach: float) -> float:
        """The average score."""
        below = self.below
        near = np.abs(self.places - value) < reach
        if reach and near.any():
            dist = _at_one_end(self.whole, end, value, reach)
            assert isinstance(dist, Bounded)
            below = below.copy()
            below[near] = dist._tails(self.places[near, None])
        seen = self.y <= self.places[:, None]
        return self.mean(self.lengths @ np.square(below - seen))

    @property
    def _spread(self) -> float:
        return float(self.y.std())

    def reach(self, end: int, value: float, most: float) -> float:
        """That of largest likelihood of those that cost no CRPS; zero if there is none."""
        tried = [share * self._spread for share in REACHES if share * self._spread <= most]
        likely = {reach: self.likelihood(end, value, reach) for reach in (0.0, *tried)}
        dearest = self.crps(end, value, 0.0)
        for reach in sorted(tried, key=lambda r: -likely[r]):
            if likely[reach] <= likely[0.0]:
                break
            if self.crps(end, value, reach) <= dearest:
                return reach
        return 0.0


def bounded(atoms: Atoms | None, bounds: Bounds, cell: float) -> Atoms | None:
    """Atoms, with those at the ends that the user knows: all beyond is collected there.

    Where every value is an atom, nothing is beyond the outermost.
    """
    if atoms is not None and atoms.everywhere:
        return atoms
    for end, value in enumerate(bounds):
        if value is None or (atoms is not None and value in atoms.values):
            continue
        values = np.empty(0) if atoms is None else atoms.values
        cells = np.empty((0, 2)) if atoms is None else atoms.cells.copy()
        beyond = [-np.inf, value] if end == 0 else [value, np.inf]
        if len(cells):  # the outermost atom's cell ends at the bound
            cells[-end, end] = value if np.isinf(cells[-end, end]) else cells[-end, end]
        at = 0 if end == 0 else len(values)
        atoms = Atoms(np.insert(values, at, value), np.insert(cells, at, beyond, axis=0), cell)
    return atoms


def known(
    atoms: Atoms | None, bounds: Bounds, seen: Callable[[], Evidence], cell: float, log: bool
) -> Known:
    """Which ends are atoms, and which are only come near.

    On the log scale nothing is at zero or below, whatever is known, and all other ends are atoms.
    """
    left = list(bounds)
    if log:
        left[0] = None if left[0] is not None and left[0] <= 0 else left[0]
        return Known(bounded(atoms, (left[0], left[1]), cell))
    rooms = [_room(atoms, bounds, end) for end in range(2)]
    if not any(rooms):
        return Known(bounded(atoms, bounds, cell))
    evidence, values, reach = seen(), np.array([-np.inf, np.inf]), np.zeros(2)
    for end, value in enumerate(bounds):
        if value is not None and rooms[end]:
            reach[end] = evidence.reach(end, value, rooms[end])
            if reach[end]:
                values[end], left[end] = value, None
    near = Ends(values, np.where(reach > 0, reach, 1.0)) if reach.any() else None
    return Known(bounded(atoms, (left[0], left[1]), cell), near)


def _room(atoms: Atoms | None, bounds: Bounds, end: int) -> float:
    """How far from an end nothing else is; zero if there is no end, or an atom is at it."""
    value, other = bounds[end], bounds[1 - end]
    if value is None:
        return 0.0
    room = np.inf if other is None else 0.5 * abs(other - value)
    if atoms is not None:
        outermost = atoms.cells[-end, end]
        room = min(room, (1.0 - 2.0 * end) * (outermost - value))
    return float(max(0.99 * room, 0.0))  # rounding is not to bring both together


def _at_one_end(whole: NormalMixture, end: int, value: float, reach: float) -> Distribution:
    """With what is beyond an end squeezed, or collected at it if nothing is."""
    ends, far = np.array([-np.inf, np.inf]), np.ones(2)
    if reach:
        ends[end], far[end] = value, reach
        return Bounded(whole, ends, far)
    ends[1 - end] = value
    return WithAtoms(whole, [value], ends[None], 1.0)
