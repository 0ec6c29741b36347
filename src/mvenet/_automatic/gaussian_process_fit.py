"""How a Gaussian process for the mean of a small table learns from its rows.

Its kernel is a sum of the three Matérn kernels (1/2, 3/2, 5/2) of one distance ``r``, so that the
rows decide how smooth the function is, and of a linear kernel:

    k = p(r) · exp(-r) + l · (z · z' + 1) / (d + 1),    p(r) = p₀ + p₁ r + p₂ r²,

where r is the Euclidean distance of rows whose columns are divided by a length scale each. Columns
are there twice, the second time on a logarithmic scale, and the length scales choose between them.
Length scales, amplitudes and noise maximise the likelihood of the training rows, with a weak prior
that keeps the length scale of a column that hardly matters moderate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve
from scipy.optimize import minimize

from mvenet import _engine
from mvenet._automatic.constants import (
    MOST_ROWS_OF_A_PROCESS,
    PROCESS_ITERATIONS,
    PROCESS_LEARNS_FROM,
    PROCESS_RATES,
    PROCESS_SPREAD,
)
from mvenet._models.gaussian_process import LogColumns, Process
from mvenet._utils.sums import center_and_scale

Array = NDArray[np.float64]

JITTER = 1e-8  # on the diagonal, against rounding
# Bounds of logarithms: of length scales (columns have a spread of one), and of variances, those of
# the three kernels, of the noise and of the linear kernel (y has one of one).
LENGTHS, KERNELS, NOISES, SLOPES = (-3.0, 7.0), (-12.0, 5.0), (-14.0, 1.0), (-12.0, 3.0)


def fit(X: NDArray[Any], y: Array, weight: Array | None, seed: int) -> Process:
    """A process that knows these rows, or a sample of them if they are many."""
    order = np.random.default_rng(seed).permutation(len(y))
    if weight is not None:
        order = order[weight[order] > 0]
    rows = order[:MOST_ROWS_OF_A_PROCESS]
    X, y = np.asarray(X, dtype=np.float64)[rows], y[rows]
    logs = log_columns(X)
    X = logs.beside(X)
    share = np.ones(len(y)) if weight is None else weight[rows] / weight[rows].mean()
    center, spread = center_and_scale(X)
    y_mean, y_scale = float(y.mean()), float(y.std()) or 1.0
    z, t = (X - center) / spread, (y - y_mean) / y_scale

    some = slice(PROCESS_LEARNS_FROM)
    found = _Scales.likeliest(z[some], t[some], share[some])
    points = found.scaled(z)
    factor = np.linalg.cholesky(found.covariances(points, _linear_kernel(z), share))
    alpha = y_scale * cho_solve((factor, True), t, check_finite=False)
    slope = found.slope / (z.shape[1] + 1)
    return Process(
        center,
        spread * found.lengths,
        points,
        alpha,
        found.polynomial,
        slope * found.lengths * (z.T @ alpha),
        float(y_mean + slope * alpha.sum()),
        logs,
    )


def log_columns(X: Array) -> LogColumns:
    """All columns of more than two values, each with the rate that brings it closest to normal."""
    ends = zip(X.min(axis=0), X.max(axis=0), strict=True)
    found = [
        (column, *_likeliest_rate(X[:, column], low, high))
        for column, (low, high) in enumerate(ends)
        if len(np.unique(X[:, column])) > 2 and np.isfinite(high - low)
    ]
    column, origin, length, rate = np.ascontiguousarray(np.array(found).reshape(-1, 4).T)
    return LogColumns(column.astype(np.int64), origin, length, rate)


def _likeliest_rate(x: Array, low: float, high: float) -> tuple[float, float, float]:
    """Origin, length and rate under which the column's logarithms are likeliest to be normal."""
    best, found = -np.inf, (low, high - low, 0.0)
    for origin, length in ((low, high - low), (high, low - high)):
        logs = np.log1p(np.outer(PROCESS_RATES, (x - origin) / length))
        likely = np.log(PROCESS_RATES) - logs.mean(axis=1) - np.log(logs.std(axis=1))
        if likely.max() > best:
            best, found = likely.max(), (origin, length, PROCESS_RATES[likely.argmax()])
    return found


@dataclass(frozen=True)
class _Scales:
    """Length scales (d,), amplitudes of the three kernels, noise and slope, as variances."""

    lengths: Array
    amplitudes: Array
    noise: float
    slope: float

    @staticmethod
    def of(logs: Array) -> _Scales:
        *lengths, a, b, c, noise, slope = np.exp(logs)
        return _Scales(np.array(lengths), np.array([a, b, c]), float(noise), float(slope))

    @staticmethod
    def likeliest(z: Array, t: Array, share: Array) -> _Scales:
        """Those under which t is most likely."""
        d = z.shape[1]
        usual = 0.5 * np.log(d)
        start = [*np.full(d, usual), *np.full(3, np.log(1 / 3)), np.log(0.1), np.log(0.1)]
        bounds = [*[LENGTHS] * d, *[KERNELS] * 3, NOISES, SLOPES]
        loss = _loss(z, t, share, usual)
        options = {"maxiter": PROCESS_ITERATIONS}
        found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        return _Scales.of(found.x)

    @property
    def polynomial(self) -> Array:
        """Coefficients of ``a + b (1 + r) + c (1 + r + r²/3)``."""
        a, b, c = self.amplitudes
        return np.array([a + b + c, b + c, c / 3])

    def scaled(self, z: Array) -> Array:
        """Rows divided by the length scales, one column after the other."""
        return np.ascontiguousarray(z.T / self.lengths[:, None])

    def covariances(self, points: Array, linear: Array, share: Array) -> Array:
        """Of rows that are scaled so and count so much; only the lower triangle is filled in."""
        found = _engine.covariances(
            points=points, linear=linear, amplitudes=self.amplitudes, slope=self.slope
        )
        np.fill_diagonal(found, np.diag(found) + self.noise / share + JITTER)
        return found


def _loss(z: Array, t: Array, share: Array, usual: float) -> Callable[[Array], tuple[float, Array]]:
    """Minus the logarithm of the posterior density of logarithms of scales, and its gradient."""
    d = z.shape[1]
    linear = _linear_kernel(z)

    def loss(logs: Array) -> tuple[float, Array]:
        at = _Scales.of(logs)
        points = at.scaled(z)
        covariances = at.covariances(points, linear, share)
        try:
            factor = np.asarray(np.linalg.cholesky(covariances), dtype=np.float64)
        except np.linalg.LinAlgError:
            return 1e10, np.zeros_like(logs)
        pairs, alpha, diagonal = _engine.pair_sums(
            points=points, linear=linear, amplitudes=at.amplitudes, factor=factor, t=t
        )
        away = (logs[:d] - usual) / PROCESS_SPREAD
        value = 0.5 * t @ alpha + np.log(np.diag(factor)).sum() + 0.5 * away @ away
        own = alpha * alpha - diagonal
        gradient = -np.array(
            [
                *pairs[:d],
                *(at.amplitudes * (pairs[d : d + 3] + 0.5 * own.sum())),
                0.5 * at.noise * (own / share).sum(),
                at.slope * (pairs[-1] + 0.5 * np.diag(linear) @ own),
            ]
        )
        gradient[:d] += away / PROCESS_SPREAD
        return float(value), gradient

    return loss


def _linear_kernel(z: Array) -> Array:
    kernel: Array = (z @ z.T + 1.0) / (z.shape[1] + 1)
    return kernel
