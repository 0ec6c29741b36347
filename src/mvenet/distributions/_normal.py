"""Normals: one, or a mixture of several, for each of n rows.

A single network predicts a :class:`Normal` per row, an ensemble a :class:`NormalMixture`. Both are
computed as a mixture, of one member or of many, so every formula stands here once.

Sums run over one member at a time, with vectors over the rows: this needs no large temporary
arrays, and the result for a row does not depend on how many others there are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Self, final

import numpy as np
from numpy.typing import ArrayLike

from mvenet import _engine
from mvenet._utils.sums import total
from mvenet.distributions._checks import (
    FloatArray,
    check,
    check_shape,
    frozen,
    normalised,
    parameters,
    real,
    sealed,
)
from mvenet.distributions._members import Members
from mvenet.distributions._special import ndtr

_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
_UPHILL = 200  # steps at most towards a mode


@dataclass(frozen=True, eq=False, repr=False)
class _Normals(Members):
    """A mixture of ``n_members`` normals for each of n rows; all that both classes share."""

    means: FloatArray
    stds: FloatArray
    weights: FloatArray
    disagreement: FloatArray | None = None

    def __len__(self) -> int:
        return int(self.means.shape[1])

    def _at(self, index: Any) -> Self:
        # Not through the constructor: normalising the weights again could change their last bit.
        selected = object.__new__(type(self))
        means, stds = (frozen(a[:, index]) for a in (self.means, self.stds))
        weights = self.weights if self.weights.ndim == 1 else frozen(self.weights[:, index])
        spread = None if self.disagreement is None else frozen(self.disagreement[index])
        _Normals.__init__(selected, means, stds, weights, spread)
        return selected

    @property
    def mean(self) -> FloatArray:
        """Mean of the predictive distribution, in units of y, shape (n,)."""
        # Relative to one member: equal members then give exactly their common mean.
        origin: FloatArray = self.means[0]
        return self._centre() + origin

    def _centre(self) -> FloatArray:
        """The mean, counted from the first member's: a large mean costs it no digits."""
        return self._average(mean - self.means[0] for mean in self.means)

    def _within(self) -> Iterator[FloatArray]:
        return iter(self.stds)

    def _distances(self) -> Iterator[FloatArray]:
        centre = self._centre()
        return (mean - self.means[0] - centre for mean in self.means)

    def _known(self, within: FloatArray) -> FloatArray | float:
        return 0.0 if self.disagreement is None else np.minimum(self.disagreement, within)

    def _log_density(self, y: FloatArray) -> FloatArray:
        """``log Σ w_i N(y; μ_i, s_i²)``."""
        total = np.full(len(self), -np.inf)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            log_weights = np.log(self.weights)
            for log_weight, mean, std in zip(log_weights, self.means, self.stds, strict=True):
                log_density = -0.5 * ((y - mean) / std) ** 2 - np.log(std) - _LOG_SQRT_2PI
                total = np.logaddexp(total, log_weight + log_density)
        return total

    def _crps(self, y: FloatArray) -> FloatArray:
        """``Σ w_i A(y - μ_i, s_i²) - ½ ΣΣ w_i w_j A(μ_i - μ_j, s_i² + s_j²)``.

        With ``A(m, s²) = E|N(m, s²)| = m (2Φ(m/s) - 1) + 2 s φ(m/s)``.
        """
        return _engine.crps(
            means=self.means,
            stds=self.stds,
            weights=self.weights.reshape(len(self.weights), -1),
            y=np.ascontiguousarray(y),
        )

    def _drawn(self, rng: np.random.Generator, shape: tuple[int, int]) -> FloatArray:
        draws = rng.standard_normal(shape)
        rows = np.arange(len(self))
        # After the normal draws: a single member then gives the draws of a Normal.
        if self.weights.ndim == 1:
            member = rng.choice(len(self.weights), size=shape, p=self.weights)
        else:
            place, member = rng.random(shape), np.zeros(shape, dtype=np.int64)
            for share in np.cumsum(self.weights, axis=0)[:-1]:
                member += place >= share
        draws *= self.stds[member, rows]
        draws += self.means[member, rows]
        return draws

    def _tails(self, places: FloatArray, sign: float = 1.0) -> FloatArray:
        return _engine.probabilities(
            means=self.means,
            stds=self.stds,
            weights=self.weights.reshape(len(self.weights), -1),
            places=places,
            sign=sign,
        )

    def _partials(self, cells: FloatArray, origin: FloatArray) -> FloatArray:
        """Of each normal ``Φ(b) - Φ(a)``, ``∫ (y - c)`` and ``∫ (y - c)²`` in between."""
        return _engine.partials(
            means=self.means,
            stds=self.stds,
            weights=self.weights.reshape(len(self.weights), -1),
            cells=np.ascontiguousarray(cells),
            origin=np.ascontiguousarray(origin),
        )

    def _log_weights(self) -> FloatArray:
        with np.errstate(divide="ignore"):
            return np.log(self.weights.reshape(len(self.weights), -1))

    def _modes(self) -> FloatArray:
        return modes(self._log_weights(), self.means, self.stds)

    def _tail(self, y: FloatArray, sign: float) -> FloatArray:
        members = zip(self.means, self.stds, strict=True)
        with np.errstate(over="ignore"):
            mass = self._average(ndtr(sign * (y - mean) / std) for mean, std in members)
        return np.minimum(mass, 1.0)  # the weights sum to 1 only up to rounding

    def _quantile(self, mass: float, sign: float) -> FloatArray:
        """Solve ``_tail(x, sign) = mass`` for x."""
        return _engine.quantiles(
            means=self.means,
            stds=self.stds,
            weights=self.weights.reshape(len(self.weights), -1),
            mass=mass,
            sign=sign,
            probit=NormalDist().inv_cdf(mass),
        )


@final
class Normal(_Normals):
    """Normal predictive distributions N(mean, std²) of n rows.

    Parameters
    ----------
    mean : array-like of shape (n,)
        Means, in units of y.
    std : array-like of shape (n,)
        Standard deviations (not variances), positive, in units of y.

    Examples
    --------
    >>> from mvenet.distributions import Normal
    >>> dist = Normal(mean=[0.0, 10.0], std=[1.0, 2.0])
    >>> dist
    Normal(n=2)
    >>> print(dist.interval(0.9).round(2))
    [[-1.64  1.64]
     [ 6.71 13.29]]
    >>> print(dist.crps([0.0, 12.0]).round(3))
    [0.234 1.205]
    """

    def __init__(self, mean: ArrayLike, std: ArrayLike) -> None:
        means, stds = parameters("mean", mean, std, "(n,)")
        super().__init__(frozen(means[None]), frozen(stds[None]), frozen(np.ones(1)))

    def __repr__(self) -> str:
        return f"Normal(n={len(self)})"


@final
class NormalMixture(_Normals):
    """Mixtures of the normal predictions of several members, as of a deep ensemble, for n rows.

    The density of a row is ``Σ w_i N(y; μ_i, s_i²)`` over the members i. Its variance is
    ``aleatoric + epistemic``: the mean of the members' variances plus the variance of their means.

    Parameters
    ----------
    means : array-like of shape (n_members, n)
        Means, in units of y.
    stds : array-like of shape (n_members, n)
        Standard deviations (not variances), positive, in units of y.
    weights : array-like of shape (n_members,) or (n_members, n), default=None
        Non-negative weights, the same for all rows or of each row, normalised to sum to 1. None
        weighs all members equally.
    disagreement : array-like of shape (n,), default=None
        Variance within the members that is known not to be noise, such as that of the models whose
        average a member's mean is: it counts as epistemic instead of aleatoric. The distribution
        itself does not depend on it.

    Examples
    --------
    >>> from mvenet.distributions import NormalMixture
    >>> dist = NormalMixture(means=[[0.0, 9.0], [2.0, 9.0]], stds=[[1.0, 2.0], [1.0, 2.0]])
    >>> dist
    NormalMixture(n_members=2, n=2)
    >>> print(dist.aleatoric, dist.epistemic, dist.var)
    [1. 4.] [1. 0.] [2. 4.]
    >>> print(dist.ppf([0.1, 0.5]).round(2))
    [[-0.85  1.  ]
     [ 6.44  9.  ]]
    """

    def __init__(
        self,
        means: ArrayLike,
        stds: ArrayLike,
        weights: ArrayLike | None = None,
        disagreement: ArrayLike | None = None,
    ) -> None:
        self._set(frozen, means, stds, weights, disagreement)

    @classmethod
    def _owning(
        cls,
        means: FloatArray,
        stds: FloatArray,
        weights: FloatArray,
        disagreement: FloatArray,
    ) -> NormalMixture:
        """The same of arrays that nobody else holds: they are not copied."""
        made = object.__new__(cls)
        made._set(sealed, means, stds, weights, disagreement)
        return made

    def _set(
        self,
        keep: Callable[[FloatArray], FloatArray],
        means: ArrayLike,
        stds: ArrayLike,
        weights: ArrayLike | None,
        disagreement: ArrayLike | None,
    ) -> None:
        mean, std = parameters("means", means, stds, "(n_members, n)")
        spread = None
        if disagreement is not None:
            spread = real("disagreement", disagreement)
            check_shape("disagreement", spread, mean.shape[1:], "pass one variance per row")
            valid = np.isfinite(spread) & (spread >= 0.0)
            check("disagreement", spread, valid, "be finite and not negative", "pass variances")
            spread = keep(spread)
        shares = sealed(normalised(weights, *mean.shape))
        super().__init__(keep(mean), keep(std), shares, spread)

    def __repr__(self) -> str:
        return f"NormalMixture(n_members={len(self.weights)}, n={len(self)})"


def modes(log_weights: FloatArray, means: FloatArray, stds: FloatArray) -> FloatArray:
    """Where mixtures of normals, (m, n), are densest: from the densest mean uphill.

    Each step goes to the average of the means, weighted by what the members contribute and by how
    narrow they are; such a step never goes downhill.
    """

    def contributions(x: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            logs: FloatArray = log_weights - 0.5 * ((x - means) / stds) ** 2 - np.log(stds)
        return logs

    heights = np.array([np.logaddexp.reduce(contributions(mean), axis=0) for mean in means])
    x: FloatArray = means[heights.argmax(axis=0), np.arange(means.shape[1])]
    moving = np.ones(x.shape, dtype=bool)
    for _ in range(_UPHILL):
        logs = contributions(x) - 2.0 * np.log(stds)
        shares = np.exp(logs - logs.max(axis=0))
        # Relative to the place itself, so that a large mean costs no digits.
        step = np.where(moving, total(shares * (means - x)) / total(shares), 0.0)
        x = x + step
        moving = np.abs(step) > 1e-9 * stds.min(axis=0)  # each row stops by itself
        if not moving.any():
            break
    return x


def normal_or_mixture(
    means: Sequence[FloatArray] | FloatArray,
    stds: Sequence[FloatArray] | FloatArray,
    weights: FloatArray | None = None,
    disagreement: FloatArray | None = None,
) -> Normal | NormalMixture:
    """The mixture of what members say of n rows, which is a plain normal if there is only one."""
    if len(means) == 1 and disagreement is None:
        return Normal(means[0], stds[0])
    return NormalMixture(means, stds, weights, disagreement)
