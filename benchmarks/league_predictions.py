"""What a contestant of the league says of new rows, in the few forms that such answers have.

Each form has ``mean``, ``quantiles``, ``cdf`` and ``crps``, and ``logpdf`` and ``std`` where they
mean something (None otherwise), all for n rows at once. ``origin`` says how its CRPS is computed.
Nothing but NumPy and SciPy is imported: each contestant lives in an environment of its own, most
of them without mvenet.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.special import ndtr, ndtri

Array = np.ndarray
MIDPOINTS = (np.arange(1000) + 0.5) / 1000
ROWS_AT_ONCE = 500  # of arrays with thousands of columns


class Prediction(Protocol):
    """A predictive distribution for each of n rows."""

    origin: str

    @property
    def mean(self) -> Array:
        """Shape (n,)."""

    def quantiles(self, levels: Array) -> Array:
        """Shape (n, m) for m levels."""

    def cdf(self, y: Array) -> Array:
        """Probability of at most y, shape (n,)."""

    def crps(self, y: Array) -> Array:
        """Continuous ranked probability score, shape (n,)."""

    def logpdf(self, y: Array) -> Array | None:
        """Log density, shape (n,), or None if there is no density."""

    @property
    def std(self) -> Array | None:
        """Standard deviation, shape (n,), or None if it is not known."""


@dataclass(frozen=True)
class Point:
    """A mean and nothing else: most scores stay empty."""

    mean: Array


@dataclass(frozen=True)
class PiecewiseLinear:
    """A cdf that is linear between edges: bars, or quantiles joined by straight lines.

    Equal edges are a jump. Nothing lies below the first edge nor above the last.

    Parameters
    ----------
    edges, levels : (n, k) or (k,)
        Increasing along the last axis; levels from 0 to 1.
    origin : str
    """

    edges: Array
    levels: Array
    origin: str
    density: Callable[[Array], Array] | None = None  # if it is not the slope of the cdf
    mean_and_std: tuple[Array, Array] | None = None  # if they are not those of the cdf

    @property
    def _both(self) -> tuple[Array, Array]:
        return tuple(np.broadcast_arrays(np.atleast_2d(self.edges), np.atleast_2d(self.levels)))

    @property
    def mean(self) -> Array:
        """Each piece is uniform."""
        if self.mean_and_std is not None:
            return self.mean_and_std[0]
        edges, levels = self._both
        return np.sum(np.diff(levels) * (edges[:, 1:] + edges[:, :-1]) / 2, axis=1)

    @property
    def std(self) -> Array | None:
        """Only where it is given: that of joined quantiles hangs on the tails."""
        return None if self.mean_and_std is None else self.mean_and_std[1]

    def quantiles(self, levels: Array) -> Array:
        """Inverse of the cdf."""
        rows = zip(*self._both, strict=True)
        return np.array([np.interp(levels, known, edges) for edges, known in rows])

    def cdf(self, y: Array) -> Array:
        """At a jump its upper end."""
        rows = zip(y, *self._both, strict=True)
        return np.array([np.interp(at, edges, levels, 0.0, 1.0) for at, edges, levels in rows])

    def crps(self, y: Array) -> Array:
        """The integral of (F(z) - [y <= z])², piece by piece."""
        edges, levels = self._both
        starts = range(0, len(y), ROWS_AT_ONCE)
        parts = [slice(start, start + ROWS_AT_ONCE) for start in starts]
        return np.concatenate([_crps_of_pieces(edges[p], levels[p], y[p]) for p in parts])

    def logpdf(self, y: Array) -> Array | None:
        """Only where a density is given."""
        return None if self.density is None else self.density(y)


def _crps_of_pieces(edges: Array, levels: Array, y: Array) -> Array:
    left, right, low, high = edges[:, :-1], edges[:, 1:], levels[:, :-1], levels[:, 1:]
    width = right - left
    # The level at y within the piece that holds it; at the ends of all others.
    share = np.clip((y[:, None] - left) / np.where(width > 0, width, 1.0), 0.0, 1.0)
    level = low + share * (high - low)
    below = share * (low**2 + low * level + level**2)
    above = (1 - share) * ((1 - level) ** 2 + (1 - level) * (1 - high) + (1 - high) ** 2)
    inside = np.sum(width * (below + above), axis=1) / 3
    return inside + np.maximum(edges[:, 0] - y, 0) + np.maximum(y - edges[:, -1], 0)


def joined(levels: Array, values: Array, origin: str) -> PiecewiseLinear:
    """Quantiles of shape (n, m), sorted and joined; beyond the outer ones their slope goes on."""
    values = np.sort(values, axis=1)
    steps = [levels[0] / (levels[1] - levels[0]), (1 - levels[-1]) / (levels[-1] - levels[-2])]
    first = values[:, :1] - steps[0] * (values[:, 1:2] - values[:, :1])
    last = values[:, -1:] + steps[1] * (values[:, -1:] - values[:, -2:-1])
    edges = np.hstack([first, values, last])
    return PiecewiseLinear(edges, np.concatenate([[0.0], levels, [1.0]]), origin)


@dataclass(frozen=True)
class NormalMixture:
    """Equal shares of k normals, means and stds of shape (k, n); k may be 1."""

    means: Array
    stds: Array
    origin: str = "exact"

    @property
    def mean(self) -> Array:
        """Of the mixture."""
        return self.means.mean(axis=0)

    @property
    def std(self) -> Array:
        """Of the mixture."""
        return np.sqrt(np.mean(self.stds**2, axis=0) + np.var(self.means, axis=0))

    def cdf(self, y: Array) -> Array:
        """Mean of the members'."""
        return ndtr((y - self.means) / self.stds).mean(axis=0)

    def logpdf(self, y: Array) -> Array:
        """Log of the mean of the members' densities."""
        z = (y - self.means) / self.stds
        members = -0.5 * z**2 - np.log(self.stds) - 0.5 * np.log(2 * np.pi)
        return np.logaddexp.reduce(members, axis=0) - np.log(len(members))

    def quantiles(self, levels: Array) -> Array:
        """By bisection between the members' own."""
        return np.stack([self._quantile(float(level)) for level in levels], axis=1)

    def _quantile(self, level: float) -> Array:
        members = self.means + self.stds * ndtri(level)
        low, high = members.min(axis=0), members.max(axis=0)
        for _ in range(50 if len(members) > 1 else 0):
            middle = (low + high) / 2
            above = self.cdf(middle) >= level
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        return (low + high) / 2

    def crps(self, y: Array) -> Array:
        """E|Y - y| - ½ E|Y - Y'| (Grimit et al. 2006)."""
        first = _mean_absolute(y - self.means, self.stds).mean(axis=0)
        pairs = [
            _mean_absolute(self.means - mean, np.hypot(self.stds, std)).mean(axis=0)
            for mean, std in zip(self.means, self.stds, strict=True)
        ]
        return first - 0.5 * np.mean(pairs, axis=0)


def _mean_absolute(mean: Array, std: Array) -> Array:
    """E|Y| of a normal Y."""
    z = mean / std
    return mean * (2 * ndtr(z) - 1) + std * np.sqrt(2 / np.pi) * np.exp(-0.5 * z**2)


@dataclass(frozen=True)
class Samples:
    """Draws of shape (n, m), smoothed for cdf and density only.

    The kernel is normal with Silverman's width: draws have no density, and without one a cell
    as narrow as the resolution of y holds no draw at all.
    """

    draws: Array

    @property
    def origin(self) -> str:
        """How many draws there are."""
        return f"{self.draws.shape[1]} draws"

    @property
    def mean(self) -> Array:
        """Of the draws."""
        return self.draws.mean(axis=1)

    @property
    def std(self) -> Array:
        """Of the draws."""
        return self.draws.std(axis=1)

    def quantiles(self, levels: Array) -> Array:
        """Of the draws."""
        return np.quantile(self.draws, levels, axis=1).T

    def crps(self, y: Array) -> Array:
        """E|Y - y| - ½ E|Y - Y'|, each pair of two different draws: without bias."""
        m = self.draws.shape[1]
        ordered = np.sort(self.draws, axis=1)
        spread = ordered @ (2 * np.arange(1, m + 1) - m - 1.0) / (m * (m - 1))
        return np.mean(np.abs(self.draws - y[:, None]), axis=1) - spread

    @property
    def _smooth(self) -> NormalMixture:
        low, high = np.quantile(self.draws, [0.25, 0.75], axis=1)
        spread = np.minimum(self.std, (high - low) / 1.34)
        spread = np.where(spread > 0, spread, self.std)
        width = 0.9 * spread * self.draws.shape[1] ** -0.2
        least = 1e-9 * (1 + np.abs(self.mean))
        stds = np.broadcast_to(np.maximum(width, least), self.draws.T.shape)
        return NormalMixture(self.draws.T, stds)

    def cdf(self, y: Array) -> Array:
        """Smoothed."""
        return self._smooth.cdf(y)

    def logpdf(self, y: Array) -> Array:
        """Smoothed."""
        return self._smooth.logpdf(y)


@dataclass(frozen=True)
class Parametric:
    """A frozen distribution of SciPy with one set of parameters a row."""

    frozen: Any
    origin: str = f"{len(MIDPOINTS)} quantiles"

    @property
    def mean(self) -> Array:
        """As SciPy has it."""
        return self.frozen.mean()

    @property
    def std(self) -> Array:
        """As SciPy has it."""
        return self.frozen.std()

    def quantiles(self, levels: Array) -> Array:
        """As SciPy has them."""
        return np.stack([self.frozen.ppf(level) for level in levels], axis=1)

    def cdf(self, y: Array) -> Array:
        """As SciPy has it."""
        return self.frozen.cdf(y)

    def logpdf(self, y: Array) -> Array:
        """As SciPy has it."""
        return self.frozen.logpdf(y)

    def crps(self, y: Array) -> Array:
        """Twice the pinball loss, averaged over a thousand levels."""
        error = y[:, None] - self.quantiles(MIDPOINTS)
        return 2 * np.mean(np.maximum(MIDPOINTS * error, (MIDPOINTS - 1) * error), axis=1)


@dataclass(frozen=True)
class Library:
    """A distribution of mvenet, which answers for itself."""

    own: Any
    origin: str = "exact"

    @property
    def mean(self) -> Array:
        """As mvenet has it."""
        return self.own.mean

    @property
    def std(self) -> Array:
        """As mvenet has it."""
        return self.own.std

    def quantiles(self, levels: Array) -> Array:
        """As mvenet has them."""
        return self.own.ppf(levels)

    def cdf(self, y: Array) -> Array:
        """As mvenet has it."""
        return self.own.cdf(y)

    def crps(self, y: Array) -> Array:
        """As mvenet has it."""
        return self.own.crps(y)

    def logpdf(self, y: Array) -> Array:
        """As mvenet has it."""
        return self.own.logpdf(y)
