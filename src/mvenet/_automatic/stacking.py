"""Stacking: how out-of-fold predictions are blended, scaled and mixed.

All three problems are small. The blend is least squares with weights that are not negative. The
shape of one candidate (a factor on its standard deviations and an exponent, ``f · σ^b``) is fitted
with a Student-t likelihood, which single outliers do not move. The weights of the candidates and
the tails of the noise are one convex problem: every candidate is offered with its standard
deviations multiplied by each of ``MULTIPLES``, and expectation-maximisation finds the mixture under
which the rows left out are most likely. Normals of several widths around one mean make heavy tails.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mvenet._automatic.constants import (
    DEGREES,
    ITERATIONS,
    PRIOR,
    PRIOR_ROWS,
    SLACK,
    SMALLEST_SHARE,
    SMALLEST_WEIGHT,
)
from mvenet._models.mixture import MULTIPLES, Shape, log_densities

Array = NDArray[np.float64]


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


def floor(y: Array) -> float:
    """The smallest standard deviation that is allowed: a millionth of the spread of y."""
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


def mix(
    y: Array,
    means: Array,
    log_stds: Array,
    weight: Array,
    most: float = np.inf,
    prior_rows: float = PRIOR_ROWS,
) -> Array:
    """Weights of candidates and multiples, (candidates, multiples), by likelihood; sum one.

    Means and logarithms of standard deviations are of shape (candidates, n); multiples above
    ``most`` weigh nothing. A candidate that would weigh next to nothing costs as much to
    evaluate as any other, and is left out.
    """
    kept = np.arange(len(means))
    while True:
        found = _mixture(y, means[kept], log_stds[kept], weight, most, prior_rows)
        total = found.sum(axis=1)
        if (total >= SMALLEST_SHARE).all():
            weights = np.zeros((len(means), len(MULTIPLES)))
            weights[kept] = found
            return weights
        kept = kept[total >= SMALLEST_SHARE]


def _mixture(
    y: Array, means: Array, log_stds: Array, weight: Array, most: float, prior_rows: float
) -> Array:
    """Weights of all of them, by expectation-maximisation."""
    logs = np.concatenate([log_densities(y, m, s) for m, s in zip(means, log_stds, strict=True)])
    density = np.exp(logs - logs.max(axis=0))
    rows = len(y) * weight / weight.sum()
    usual = np.where(most >= MULTIPLES, PRIOR, 0.0)
    prior = np.tile(usual / usual.sum(), len(means)) / len(means)
    shares = prior
    for _ in range(ITERATIONS):
        total = shares @ density
        shares = shares * (density @ (rows / total)) + prior_rows * prior
        shares = shares / shares.sum()
    shares = np.where(shares < SMALLEST_WEIGHT, 0.0, shares)
    weights: Array = shares / shares.sum()
    return weights.reshape(len(means), len(MULTIPLES))


def _spread(y: Array, weight: Array) -> float:
    centre = np.average(y, weights=weight)
    return float(np.sqrt(np.average((y - centre) ** 2, weights=weight))) or 1.0
