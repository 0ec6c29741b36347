"""Log-normals, for a target that is never negative: the logarithm of y is a mixture of normals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from numpy.typing import ArrayLike

from mvenet.distributions._checks import FloatArray
from mvenet.distributions._interface import Distribution
from mvenet.distributions._normal import NormalMixture
from mvenet.distributions._special import erf, ndtr


@final
@dataclass(frozen=True, eq=False, repr=False, init=False)
class LogNormalMixture(Distribution):
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
    weights : array-like of shape (n_members,), default=None
        Non-negative weights, normalised to sum to 1. None weighs all members equally.
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

    def __repr__(self) -> str:
        return f"LogNormalMixture(n_members={len(self.weights)}, n={len(self)})"

    def __len__(self) -> int:
        return len(self.logs)

    @property
    def weights(self) -> FloatArray:  # type: ignore[override]
        """Weights of the members, shape (n_members,)."""
        return self.logs.weights

    def _at(self, index: Any) -> Self:
        selected = object.__new__(type(self))
        object.__setattr__(selected, "logs", self.logs[index])
        return selected

    def _member_means(self) -> Iterator[FloatArray]:
        members = zip(self.logs.means, self.logs.stds, strict=True)
        return (np.exp(mean + 0.5 * std**2) for mean, std in members)

    @property
    def mean(self) -> FloatArray:
        """Mean of the predictive distribution, in units of y, shape (n,)."""
        return self._average(self._member_means())

    def _within(self) -> Iterator[FloatArray]:
        members = zip(self._member_means(), self.logs.stds, strict=True)
        return (mean * np.sqrt(np.expm1(std**2)) for mean, std in members)

    def _distances(self) -> Iterator[FloatArray]:
        centre = self.mean
        return (mean - centre for mean in self._member_means())

    def _known(self, within: FloatArray) -> FloatArray | float:
        if self.logs.disagreement is None:
            return 0.0
        return np.minimum(self.mean**2 * np.expm1(self.logs.disagreement), within)

    def _log_density(self, y: FloatArray) -> FloatArray:
        """``log Σ w_i N(log y; μ_i, s_i²) - log y``; no density at and below zero."""
        log_y = _log(y)
        with np.errstate(invalid="ignore"):
            density = self.logs._log_density(log_y) - log_y
        return np.where(np.isinf(log_y), -np.inf, density)

    def _tail(self, y: FloatArray, sign: float) -> FloatArray:
        return self.logs._tail(_log(y), sign)

    def _quantile(self, mass: float, sign: float) -> FloatArray:
        return np.exp(self.logs._quantile(mass, sign))

    def _crps(self, y: FloatArray) -> FloatArray:
        """``Σ w_i E|Y_i - y| - ½ ΣΣ w_i w_j E|Y_i - Y_j|``.

        ``E|Y_i - Y_j| = E_i T((μ_i - μ_j + s_i²) / s) + E_j T((μ_j - μ_i + s_j²) / s)`` with
        ``T = 2Φ - 1``, ``E_i = exp(μ_i + s_i²/2)`` and ``s² = s_i² + s_j²``.
        """
        log_y, score = _log(y), np.zeros(len(self))
        members = list(
            zip(self.weights, self._member_means(), self.logs.means, self.logs.stds, strict=True)
        )
        for i, (weight, mean, log_mean, std) in enumerate(members):
            z = (log_y - log_mean) / std
            score += weight * (y * _sign(z) - mean * _sign(z - std))
            score -= weight**2 * mean * erf(0.5 * std)
            for weight_j, mean_j, log_mean_j, std_j in members[:i]:
                both, apart = np.hypot(std, std_j), log_mean - log_mean_j
                larger = mean * _sign((apart + std**2) / both)
                larger += mean_j * _sign((std_j**2 - apart) / both)
                score -= weight * weight_j * larger
        return score

    def _drawn(self, rng: np.random.Generator, shape: tuple[int, int]) -> FloatArray:
        return np.exp(self.logs._drawn(rng, shape))


def _log(y: FloatArray) -> FloatArray:
    """Logarithm; minus infinity of all that is not positive."""
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(y, 0.0))


def _sign(z: FloatArray) -> FloatArray:
    """``2Φ(z) - 1``: the mean sign of a normal variable, z standard deviations above zero."""
    signs: FloatArray = 2.0 * ndtr(z) - 1.0
    return signs
