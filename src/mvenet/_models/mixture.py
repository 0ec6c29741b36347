"""How a candidate's standard deviations enter a mixture; its density and its moments.

A candidate enters with its standard deviations multiplied by each of ``MULTIPLES``: a mixture of
normals of several widths around one mean is what a heavy tail is made of.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mvenet import _engine
from mvenet._utils.sums import between, weighted

Array = NDArray[np.float64]

MULTIPLES = np.array([0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 8.0])
# On the log scale tails are longer by themselves, and the mean of a wide log-normal is made of
# values that no row has ever shown: a limit on the standard deviation, and on its multiples.
WIDEST_LOG = 1.0
LARGEST_LOG_MULTIPLE = 2.0


@dataclass(frozen=True)
class Shape:
    """How a network's standard deviation is corrected: ``offset + exponent · log std``, bounded.

    The bounds are those of its out-of-fold predictions, and a little more: far from its training
    rows the exponential of a network's output may be anything.
    """

    offset: float
    exponent: float
    low: float
    high: float

    def applied(self, log_std: Array) -> Array:
        """Logarithm of the standard deviation."""
        return between(self.offset + self.exponent * log_std, self.low, self.high)

    def times(self, factor: float) -> Shape:
        """The same for standard deviations that are so many times as large."""
        by = float(np.log(factor))
        return Shape(self.offset + by, self.exponent, self.low + by, self.high + by)


def log_densities(y: Array, mean: Array, log_std: Array) -> Array:
    """Of normals with each of the multiples of the standard deviation, shape (multiples, n)."""
    z = (y - mean) * np.exp(-log_std) / MULTIPLES[:, None]
    logs: Array = -0.5 * z**2 - log_std - np.log(MULTIPLES)[:, None] - 0.5 * np.log(2 * np.pi)
    return logs


def log_density(y: Array, means: Array, log_stds: Array, weights: Array) -> Array:
    """Of the mixture at y, for each row."""
    total = np.full(len(y), -np.inf)
    with np.errstate(divide="ignore"):
        for m, s, w in zip(means, log_stds, np.log(weights), strict=True):
            logs = log_densities(y, m, s) + w[:, None]
            total = np.logaddexp(total, np.logaddexp.reduce(logs, axis=0))
    return total


def moments(means: Array, stds: Array, weights: Array, log: bool) -> tuple[Array, Array]:
    """Mean and standard deviation of the mixture, for each row, in units of y.

    Means and standard deviations are those of the components, (c, n), of y or, with ``log``, of its
    logarithm; the weights are of shape (c,) or (c, n).
    """
    if not log:
        shares = weights.reshape(len(weights), -1)
        mean, std = _engine.moments(means=means, stds=stds, weights=shares)
        return mean, std
    centre, variance = weighted(weights, means), np.square(stds)
    own = np.exp(means - centre + 0.5 * variance)  # what is common is taken out
    mean = weighted(weights, own)
    square = np.square(own) * np.expm1(variance) + np.square(own - mean)
    scale = np.exp(centre)
    return scale * mean, scale * np.sqrt(weighted(weights, square))
