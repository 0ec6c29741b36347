"""How normal scores of several targets depend on each other: a Gaussian copula that has doubts.

With a small probability the targets of a row are independent; else their scores are normal with a
correlation matrix, the same for all rows or one for each. Without the doubt, a single row far off
in one target would count as all but impossible.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvenet.distributions._checks import FloatArray
from mvenet.distributions._special import ndtr, ndtri

_POINTS = 512  # at which an integral over more than one atom is summed up
_DRAWS, _FEWER = 2**15, 2**12  # that tell how far the largest score lies; fewer for each row's own
_AT_ONCE = 2**22  # numbers
_CUT = 1e-300


@dataclass(frozen=True)
class Copula:
    """Scores of k targets of n rows.

    Attributes
    ----------
    correlation : ndarray of shape (k, k), or (n, k, k)
    independent : float
        Probability that the targets of a row have nothing to do with each other.
    """

    correlation: FloatArray
    independent: float

    def __len__(self) -> int:
        return int(self.correlation.shape[-1])

    def at(self, index: Any) -> Copula:
        """For some of the rows."""
        same = self.correlation.ndim == 2
        return self if same else Copula(self.correlation[index], self.independent)

    @cached_property
    def _root(self) -> FloatArray:
        return np.asarray(np.linalg.cholesky(self.correlation), dtype=np.float64)

    def drawn(self, rng: np.random.Generator, m: int, n: int) -> FloatArray:
        """Scores, of shape (m, n, k)."""
        plain = rng.standard_normal((m, n, len(self)))
        tied = np.matmul(self._root, plain[..., None])[..., 0]
        free = rng.random((m, n, 1)) < self.independent
        return np.where(free, plain, tied)

    def farthest(self, coverage: float) -> FloatArray:
        """What no score of a row exceeds with this probability, of shape (1,) or (n,)."""
        return np.concatenate([np.quantile(part, coverage, axis=1) for part in self._largest()])

    def reached(self, scores: FloatArray) -> FloatArray:
        """Probability that all scores of a row are closer to 0 than the farthest of these, (n,)."""
        far, found = np.abs(scores).max(axis=1), np.empty(len(scores))
        if self.correlation.ndim == 2:
            (largest,) = self._largest()
            return np.asarray(np.searchsorted(np.sort(largest[0]), far) / largest.size)
        start = 0
        for largest in self._largest():
            some = slice(start, start := start + len(largest))
            found[some] = (largest < far[some, None]).mean(axis=1)
        return found

    def _largest(self) -> Iterator[FloatArray]:
        """Farthest scores of draws, (rows, draws): one row for all, or some rows at a time."""
        rng = np.random.default_rng(0)
        if self.correlation.ndim == 2:
            yield np.abs(self.drawn(rng, _DRAWS, 1)).max(axis=2).T
            return
        plain = rng.standard_normal((1, _FEWER, len(self)))
        free = rng.random((1, _FEWER, 1)) < self.independent
        step = max(1, _AT_ONCE // plain.size)
        for start in range(0, max(1, len(self.correlation)), step):
            root = np.swapaxes(self._root[start : start + step], 1, 2)
            yield np.abs(np.where(free, plain, plain @ root)).max(axis=2)

    def log_ratio(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Logarithm of the joint density, divided by that of independent targets, (n,).

        Scores are of shape (n, k). Where low and high differ, in a value with a probability of its
        own, it is the probability of the range that counts.
        """
        found, atom = np.zeros(len(high)), low < high
        patterns, member = np.unique(atom, axis=0, return_inverse=True)
        for number, pattern in enumerate(patterns):
            rows = np.flatnonzero(member.ravel() == number)
            step = max(1, _AT_ONCE // (_POINTS if pattern.sum() > 1 else 1) // len(pattern))
            for some in np.split(rows, range(step, len(rows), step)):
                found[some] = self.at(some)._log_tied(low[some], high[some], pattern)
        with np.errstate(divide="ignore"):
            tied = np.log1p(-self.independent) + found
            both: FloatArray = np.logaddexp(tied, np.log(self.independent))
        return both

    def _log_tied(self, low: FloatArray, high: FloatArray, atom: NDArray[np.bool_]) -> FloatArray:
        """The same without doubt, for rows with atoms in the same targets.

        Smooth targets come first, in closed form. The probability of the atoms' ranges, given
        these, is the mean of products of one-dimensional ones at evenly spread points (Genz 1992,
        https://doi.org/10.2307/1390838): exact for one atom.
        """
        order = np.concatenate([np.flatnonzero(~atom), np.flatnonzero(atom)])
        root = np.linalg.cholesky(self.correlation[..., order[:, None], order])
        low, high = low[:, order], high[:, order]
        smooth = int((~atom).sum())
        place = np.linalg.solve(root[..., :smooth, :smooth], high[:, :smooth, None])[..., 0]
        diagonal = np.diagonal(root, axis1=-2, axis2=-1)
        found: FloatArray = -np.log(diagonal[..., :smooth]).sum(axis=-1)
        found = found + 0.5 * (np.square(high[:, :smooth]) - np.square(place)).sum(axis=1)
        if smooth == len(order):
            return found
        points = _even_points(len(order) - smooth)
        known = np.repeat(place[:, :, None], points.shape[1], axis=2)
        logs = np.zeros((len(high), points.shape[1]))
        for t in range(smooth, len(order)):
            centre = np.matmul(root[..., t, None, :t], known)[:, 0]
            width = np.broadcast_to(diagonal, high.shape)[:, t, None]
            ends = (
                ndtr((low[:, t, None] - centre) / width),
                ndtr((high[:, t, None] - centre) / width),
            )
            mass = np.maximum(ends[1] - ends[0], _CUT)
            alone = np.maximum(ndtr(high[:, t]) - ndtr(low[:, t]), _CUT)
            logs += np.log(mass) - np.log(alone)[:, None]
            level = np.clip(ends[0] + points[t - smooth] * mass, _CUT, 1 - 1e-16)
            known = np.concatenate([known, ndtri(level)[:, None]], axis=1)
        total: FloatArray = np.logaddexp.reduce(logs, axis=1) - np.log(points.shape[1])
        return found + total


def _even_points(dimensions: int) -> FloatArray:
    """Points of a cube, (dimensions, m): multiples of irrational numbers, without what is whole.

    The last dimension is not integrated over: one atom needs no points.
    """
    if dimensions == 1:
        return np.full((1, 1), 0.5)
    golden = 2.0
    for _ in range(60):  # the root of x^(d+1) = x + 1
        golden = (1.0 + golden) ** (1.0 / (dimensions + 1))
    steps = golden ** -np.arange(1.0, dimensions + 1)
    points: FloatArray = (0.5 + steps[:, None] * np.arange(1, _POINTS + 1)) % 1.0
    return points
