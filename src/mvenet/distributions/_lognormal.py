"""Log-normals, for a target that is never negative: the logarithm of y is a mixture of normals."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from numpy.typing import ArrayLike

from mvenet.distributions._checks import FloatArray
from mvenet.distributions._members import Members
from mvenet.distributions._normal import NormalMixture, modes
from mvenet.distributions._special import erf, log_ndtr, ndtr

_SQRT_2 = math.sqrt(2.0)


@final
@dataclass(frozen=True, eq=False, repr=False, init=False)
class LogNormalMixture(Members):
    """Mixtures of log-normal predictions, for n rows of a positive target.

    The logarithm of y is a mixture of normals, ``Σ w_i N(log y; μ_i, s_i²)``: no quantile is
    below zero, and what is symmetric is the ratio to the median instead of the distance from it.
    Mean, standard deviation and the parts of the variance are those of y itself; a member's mean is
    ``exp(μ_i + s_i²/2)``, so wide members have large ones.

    Parameters
    ----------
    log_means : array-like of shape (n_members, n)
        Means of log y.
    log_stds : array-like of shape (n_members, n)
        Standard deviations of log y, positive.
    weights : array-like of shape (n_members,) or (n_members, n), default=None
        Non-negative weights, the same for all rows or of each row, normalised to sum to 1. None
        weighs all members equally.
    disagreement : array-like of shape (n,), default=None
        Variance of log y within the members that is known not to be noise, as of
        :class:`NormalMixture`.

    Attributes
    ----------
    logs : NormalMixture
        The distribution of log y.

    Examples
    --------
    >>> from mvenet.distributions import LogNormalMixture
    >>> dist = LogNormalMixture(log_means=[[0.0, 3.0]], log_stds=[[0.5, 0.5]])
    >>> dist
    LogNormalMixture(n_members=1, n=2)
    >>> print(dist.interval(0.9).round(2))
    [[ 0.44  2.28]
     [ 8.82 45.72]]
    >>> print(dist.mean.round(2), dist.ppf(0.5).round(2))
    [ 1.13 22.76] [ 1.   20.09]
    """

    logs: NormalMixture

    def __init__(
        self,
        log_means: ArrayLike,
        log_stds: ArrayLike,
        weights: ArrayLike | None = None,
        disagreement: ArrayLike | None = None,
    ) -> None:
        logs = NormalMixture(log_means, log_stds, weights, disagreement)
        object.__setattr__(self, "logs", logs)

    @classmethod
    def _of(cls, logs: NormalMixture) -> Self:
        """That of which these are the logarithms."""
        made = object.__new__(cls)
        object.__setattr__(made, "logs", logs)
        return made

    def __repr__(self) -> str:
        return f"LogNormalMixture(n_members={len(self.weights)}, n={len(self)})"

    def __len__(self) -> int:
        return len(self.logs)

    @property
    def weights(self) -> FloatArray:  # type: ignore[override]
        """Weights of the members, shape (n_members,) or (n_members, n)."""
        return self.logs.weights

    def _at(self, index: Any) -> Self:
        return self._of(self.logs[index])

    def _member_means(self) -> Iterator[FloatArray]:
        members = zip(self.logs.means, self.logs.stds, strict=True)
        return (_exp(mean + 0.5 * std**2) for mean, std in members)

    @property
    def mean(self) -> FloatArray:
        """Mean of the predictive distribution, in units of y, shape (n,)."""
        return self._average(self._member_means())

    def _within(self) -> Iterator[FloatArray]:
        return (_std(mean, std) for mean, std in zip(self.logs.means, self.logs.stds, strict=True))

    def _distances(self) -> Iterator[FloatArray]:
        centre = self.mean
        return (_apart(mean, centre) for mean in self._member_means())

    def _known(self, within: FloatArray) -> FloatArray | float:
        if self.logs.disagreement is None:
            return 0.0
        with np.errstate(over="ignore", invalid="ignore"):
            known = self.mean**2 * np.expm1(self.logs.disagreement)
        return np.minimum(np.nan_to_num(known), within)

    def _log_density(self, y: FloatArray) -> FloatArray:
        """``log Σ w_i N(log y; μ_i, s_i²) - log y``; no density at and below zero."""
        log_y = _log(y)
        with np.errstate(invalid="ignore"):
            density = self.logs._log_density(log_y) - log_y
        return np.where(np.isinf(log_y), -np.inf, density)

    def _tail(self, y: FloatArray, sign: float) -> FloatArray:
        return self.logs._tail(_log(y), sign)

    def _tails(self, places: FloatArray, sign: float = 1.0) -> FloatArray:
        return self.logs._tails(_log(places), sign)

    def _partials(self, cells: FloatArray, origin: FloatArray) -> FloatArray:
        """Of each log-normal ``E[y^k; low < y < high] = exp(k μ + k² s²/2) (Φ(b_k) - Φ(a_k))``."""
        ends = _log(cells).T[:, :, None]
        raw = np.zeros((3, len(cells), len(self)))
        members = zip(self.weights, self.logs.means, self.logs.stds, strict=True)
        with np.errstate(over="ignore", invalid="ignore"):
            for weight, mean, std in members:
                for power, total in enumerate(raw):
                    below, above = ndtr((ends - mean) / std - power * std)
                    part = _exp(power * mean + 0.5 * power**2 * std**2) * (above - below)
                    total += np.where(weight > 0.0, weight * part, 0.0)
            mass, first, second = raw
            about = second - 2.0 * origin * first + origin**2 * mass
        return np.stack([mass, first - origin * mass, about])

    def _modes(self) -> FloatArray:
        """Of log y, each member with its density divided by y is a normal again, further down."""
        means, variances = self.logs.means, self.logs.stds**2
        log_weights = self.logs._log_weights() - means + 0.5 * variances
        return _exp(modes(log_weights, means - variances, self.logs.stds))

    def _quantile(self, mass: float, sign: float) -> FloatArray:
        return np.exp(self.logs._quantile(mass, sign))

    def _crps(self, y: FloatArray) -> FloatArray:
        """``Σ w_i E|Y_i - y| - ½ ΣΣ w_i w_j E|Y_i - Y_j|``.

        With ``E_i = exp(μ_i + s_i²/2)``, ``T = 2Φ - 1`` and ``z_i = (log y - μ_i) / s_i`` this is
        ``Σ w_i y T(z_i) - ΣΣ w_i w_j E_i (T(z_i - s_i) + T(b_ij))``, where
        ``b_ij = (μ_i - μ_j + s_i²) / √(s_i² + s_j²)``.
        """
        log_y, score = _log(y), np.zeros(len(self))
        weighted = self.weights.reshape(len(self.weights), -1).any(axis=1)  # 0 · ∞ is not zero
        parts = (self.weights, self.logs.means, self.logs.stds)
        members = list(zip(*(part[weighted] for part in parts), strict=True))
        with np.errstate(over="ignore", invalid="ignore"):
            for weight, log_mean, std in members:
                z = (log_y - log_mean) / std
                a, log_E = z - std, log_mean + 0.5 * std**2
                sign, lower = erf(a / _SQRT_2), np.exp(log_E + log_ndtr(a))
                score += np.where(weight > 0.0, weight * y * erf(z / _SQRT_2), 0.0)
                for weight_j, log_mean_j, std_j in members:
                    both = np.hypot(std, std_j)
                    b = (log_mean - log_mean_j) / both + std * (std / both)
                    # Signs close to -1 and 1 are together the difference of two tails, which is
                    # small where E is large.
                    tails = 2.0 * (lower - np.exp(log_E + log_ndtr(-b)))
                    near = np.exp(log_E) * (sign + erf(b / _SQRT_2))
                    close = np.maximum(np.abs(a), np.abs(b)) < 1.0
                    both_weights = weight * weight_j
                    part = both_weights * np.where(close, near, tails)
                    score -= np.where(both_weights > 0.0, part, 0.0)
        return np.where(np.isinf(y), np.inf, score)

    def _drawn(self, rng: np.random.Generator, shape: tuple[int, int]) -> FloatArray:
        return np.exp(self.logs._drawn(rng, shape))


def _log(y: FloatArray) -> FloatArray:
    """Logarithm; minus infinity of all that is not positive."""
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(y, 0.0))


def _exp(x: FloatArray) -> FloatArray:
    """Exponential; infinity of all that is too large."""
    with np.errstate(over="ignore"):
        return np.exp(x)


def _std(log_mean: FloatArray, log_std: FloatArray) -> FloatArray:
    """``exp(μ + s²/2) √(exp(s²) - 1)``, of any s."""
    narrow = np.minimum(log_std, 7.0)  # beyond, the 1 is lost beside exp(s²)
    relative = np.maximum(np.sqrt(np.expm1(narrow**2)), log_std)  # where the square is lost
    usual = _exp(log_mean + 0.5 * log_std**2) * relative
    return np.where(log_std > narrow, _exp(log_mean + log_std**2), usual)


def _apart(mean: FloatArray, centre: FloatArray) -> FloatArray:
    """How far a mean is from that of all; infinitely, if that is infinite."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isinf(centre), np.inf, mean - centre)
