"""Student's t as normals of several widths around one mean.

If the precision of a normal is not known but has a Gamma distribution, of mean 1 / scale² and shape
df / 2, what is predicted is Student's t (Takahashi et al. 2018, https://arxiv.org/abs/1802.10530,
section 3): ``t(y) = ∫ N(y; mean, scale² / p) Gamma(p; df/2, df/2) dp``. A sum over some precisions
stands for the integral, so that all that is known of mixtures of normals serves here, too.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
LEAST, MOST = 3.0, 1000.0  # degrees of freedom; below, the variance hangs on the rarest values
_NEGLIGIBLE = 1e-15  # share of the largest weight


@lru_cache(maxsize=64)
def widths(df: float) -> tuple[Array, Array]:
    """Multiples of the scale, and the weights of normals that wide.

    The trapezoidal rule on the logarithm of the precision, whose error falls exponentially with
    the step: the density is right to a thousandth of itself where a probability of 1e-10 begins.
    """
    step = min(0.75, math.sqrt(2 / df))
    at = step * np.arange(math.ceil(-200 / step), math.ceil(20 / step))
    logs = 0.5 * df * (at - np.exp(at))
    weights = np.exp(logs - logs.max())
    kept = weights > _NEGLIGIBLE
    return np.exp(-0.5 * at[kept]), weights[kept] / weights[kept].sum()


def relative_std(df: float) -> float:
    """Standard deviation in units of the scale; but for rounding √(df / (df - 2))."""
    multiples, weights = widths(df)
    return float(np.sqrt(weights @ multiples**2))


def spread_by_row(means: Array, scales: Array, df: Array) -> tuple[Array, Array, Array]:
    """The same as :func:`spread`, of degrees of freedom by member and row, (k, n).

    The rule is that of :func:`widths`, with a step for each row. So many of its places are all that
    count between ``LEAST`` and ``MOST``.
    """
    places = np.arange(-34, 12)[:, None]
    step = np.minimum(0.75, np.sqrt(2 / df))
    at = step[:, None, :] * places
    weights = np.exp(0.5 * df[:, None, :] * (at - np.expm1(at)))  # one where at is 0, its maximum
    weights /= len(df) * weights.sum(axis=1, keepdims=True)
    stds = np.exp(-0.5 * at) * scales[:, None, :]
    shape = (-1, means.shape[1])
    return np.repeat(means, len(places), axis=0), stds.reshape(shape), weights.reshape(shape)


def spread(means: Array, scales: Array, df: float) -> tuple[Array, Array, Array]:
    """Means, standard deviations and weights of the normals, from members of shape (k, n)."""
    multiples, weights = widths(df)
    k, m = len(means), len(multiples)
    stds = (multiples[None, :, None] * scales[:, None, :]).reshape(k * m, -1)
    return np.repeat(means, m, axis=0), stds, np.tile(weights, k) / k
