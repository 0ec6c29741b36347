"""What rows left out decide: how means are blended, how wide and how heavy-tailed the noise is.

All three problems are small. The blend is least squares with weights that are not negative. The
shape of one candidate (a factor on its standard deviations and an exponent, ``f · σ^b``) is fitted
with a Student-t likelihood, which single outliers do not move. The last step, the weights of the
candidates and the tails of the noise, is one convex problem: every candidate is offered with its
standard deviations multiplied by each of ``MULTIPLES``, and the expectation-maximisation algorithm
finds the mixture under which the rows left out are most likely. A mixture of normals of several
widths around one mean is what a heavy tail is made of.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

MULTIPLES = np.array([0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 8.0])
# What is believed of the multiples before any row was seen, worth PRIOR_ROWS rows: tails somewhat
# heavier than a normal's, so that a width that no row needed so far is not ruled out.
_USUAL = np.array([0.02, 0.05, 0.10, 0.20, 0.26, 0.20, 0.10, 0.04, 0.02, 0.01])
PRIOR_ROWS = 5.0
DEGREES = 4.0  # of freedom, of the likelihood that a candidate's shape is fitted with
ITERATIONS = 200
SLACK = 0.5  # a logarithm of std may leave what occurred on rows left out by so much
SMALLEST_WEIGHT = 2e-3  # of a component; what weighs less is left out
SMALLEST_SHARE = 0.05  # of a mean in the blend, and of a candidate in the mixture
# On the log scale tails are longer by themselves, and the mean of a wide log-normal is made of
# values that no row has ever shown: a limit on the standard deviation, and on its multiples.
WIDEST_LOG = 1.0
LARGEST_LOG_MULTIPLE = 2.0


def blend(means: Array, y: Array, weight: Array) -> Array:
    """Convex weights of means (c, n) by least squares on rows left out, most of them zero."""
    from scipy.optimize import nnls  # a tenth of a second, and a prediction does without

    count, spread = len(means), _spread(y, weight)
    root = np.sqrt(weight / weight.sum())
    certain = 100.0  # the sum of the weights is one: a row that outweighs all others
    kept = np.arange(count)
    while True:
        design = np.vstack([((means[kept] - y) / spread * root).T, np.full(len(kept), certain)])
        shares = nnls(design, np.append(np.zeros(len(y)), certain))[0]
        shares /= shares.sum()
        if (shares >= SMALLEST_SHARE).all():
            result = np.zeros(count)
            result[kept] = shares
            return result
        kept = kept[shares >= SMALLEST_SHARE]


@dataclass(frozen=True)
class Shape:
    """From what a network says to a standard deviation: ``offset + exponent · log std``, bounded.

    The bounds are what occurred on rows left out, and a little more: the exponential of a network's
    output far from its training rows is not to be believed.
    """

    offset: float
    exponent: float
    low: float
    high: float

    def applied(self, log_std: Array) -> Array:
        """Logarithm of the standard deviation."""
        return np.clip(self.offset + self.exponent * log_std, self.low, self.high)

    def times(self, factor: float) -> Shape:
        """The same for standard deviations that are so many times as large."""
        by = float(np.log(factor))
        return Shape(self.offset + by, self.exponent, self.low + by, self.high + by)


def floor(y: Array) -> float:
    """A standard deviation below which nothing is believed: a millionth of the spread of y."""
    return float(max(1e-6 * y.std(), 1e-12 * np.abs(y).max(), np.finfo(np.float64).tiny))


def shape(residual: Array, log_std: Array, weight: Array, least: float, most: float) -> Shape:
    """Fit offset and exponent to residuals; standard deviations lie from ``least`` to ``most``."""
    from scipy.optimize import minimize

    middle = float(np.average(log_std, weights=weight))
    centred = log_std - middle
    absolute = np.maximum(np.abs(residual), least)
    start = np.average(np.log(absolute) - centred, weights=weight)

    def loss(at: Array) -> tuple[float, Array]:
        width = at[0] + at[1] * centred
        square = np.square(absolute * np.exp(-width))
        rows = width + 0.5 * (DEGREES + 1) * np.log1p(square / DEGREES)
        slope = 1.0 - (DEGREES + 1) * square / (DEGREES + square)
        pull = 1e-3 * (at[1] - 1.0)  # where all are equal, any exponent would do
        along = np.average([slope, slope * centred], axis=1, weights=weight)
        value = np.average(rows, weights=weight) + pull * (at[1] - 1.0)
        return float(value), along + np.array([0.0, 2.0 * pull])

    bounds = [(start - 20.0, start + 20.0), (0.0, 2.0)]
    found = minimize(loss, [start, 1.0], jac=True, method="L-BFGS-B", bounds=bounds).x
    width = found[0] + found[1] * centred
    low = min(max(float(width.min()) - SLACK, np.log(least)), np.log(most))
    high = min(max(float(width.max()) + SLACK, low), np.log(most))
    return Shape(float(found[0] - found[1] * middle), float(found[1]), low, high)


def log_densities(y: Array, mean: Array, log_std: Array) -> Array:
    """Of normals with each of the multiples of the standard deviation, shape (multiples, n)."""
    z = (y - mean) * np.exp(-log_std) / MULTIPLES[:, None]
    logs: Array = -0.5 * z**2 - log_std - np.log(MULTIPLES)[:, None] - 0.5 * np.log(2 * np.pi)
    return logs


def mix(y: Array, means: Array, log_stds: Array, weight: Array, most: float = np.inf) -> Array:
    """Weights of candidates and multiples, (candidates, multiples), by likelihood; sum one.

    Means and logarithms of standard deviations are of shape (candidates, n); multiples above
    ``most`` weigh nothing. A candidate that would weigh next to nothing costs as much to ask as
    any other, and is left out.
    """
    kept = np.arange(len(means))
    while True:
        found = _mixture(y, means[kept], log_stds[kept], weight, most)
        total = found.sum(axis=1)
        if (total >= SMALLEST_SHARE).all():
            weights = np.zeros((len(means), len(MULTIPLES)))
            weights[kept] = found
            return weights
        kept = kept[total >= SMALLEST_SHARE]


def _mixture(y: Array, means: Array, log_stds: Array, weight: Array, most: float) -> Array:
    """Weights of all of them, by expectation-maximisation."""
    logs = np.concatenate([log_densities(y, m, s) for m, s in zip(means, log_stds, strict=True)])
    density = np.exp(logs - logs.max(axis=0))
    rows = len(y) * weight / weight.sum()
    usual = np.where(most >= MULTIPLES, _USUAL, 0.0)
    prior = np.tile(usual / usual.sum(), len(means)) / len(means)
    shares = prior
    for _ in range(ITERATIONS):
        total = shares @ density
        shares = shares * (density @ (rows / total)) + PRIOR_ROWS * prior
        shares = shares / shares.sum()
    shares = np.where(shares < SMALLEST_WEIGHT, 0.0, shares)
    weights: Array = shares / shares.sum()
    return weights.reshape(len(means), len(MULTIPLES))


def log_density(y: Array, means: Array, log_stds: Array, weights: Array) -> Array:
    """Of the mixture at y, for each row."""
    total = np.full(len(y), -np.inf)
    with np.errstate(divide="ignore"):
        for m, s, w in zip(means, log_stds, np.log(weights), strict=True):
            logs = log_densities(y, m, s) + w[:, None]
            total = np.logaddexp(total, np.logaddexp.reduce(logs, axis=0))
    return total


def moments(
    means: Array, stds: Array, weights: Array, log: bool, added: Array | float = 0.0
) -> tuple[Array, Array]:
    """Mean and standard deviation of the mixture, for each row.

    Means and standard deviations are those of the candidates, (candidates, n), of y or, with
    ``log``, of its logarithm; ``added`` is a variance that all members have besides. Those of the
    result are of y.
    """
    share = weights.sum(axis=1)
    if not log:
        mean = share @ means
        var = (weights @ MULTIPLES**2) @ stds**2 + share @ (means - mean) ** 2
        return mean, np.sqrt(var + added)
    centre = share @ means  # what is common is taken out: squares then neither vanish nor overflow
    members = [
        (weight, np.exp(own + 0.5 * var), var)
        for own, std, some in zip(means - centre, stds, weights, strict=True)
        for weight, multiple in zip(some[some > 0], MULTIPLES[some > 0], strict=True)
        for var in [np.square(multiple * std) + added]
    ]
    mean = sum((weight * own for weight, own, _ in members), np.zeros(means.shape[1]))
    square = np.zeros(means.shape[1])
    for weight, own, var in members:
        square += weight * (own**2 * np.expm1(var) + (own - mean) ** 2)
    scale = np.exp(centre)
    return scale * mean, scale * np.sqrt(square)


def _spread(y: Array, weight: Array) -> float:
    centre = np.average(y, weights=weight)
    return float(np.sqrt(np.average((y - centre) ** 2, weights=weight))) or 1.0
