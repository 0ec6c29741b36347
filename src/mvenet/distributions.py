"""Predictive distributions: one normal, or a mixture of normals, for each of n rows.

A single network predicts a :class:`Normal` per row, an ensemble a :class:`NormalMixture`.
Both have SciPy's method names and both are computed as a mixture, of one member or of many,
so every formula stands here once. Standard deviations and means are in units of y, variances
in units of y squared.

Sums run over one member at a time, with vectors over the rows: this needs no large temporary
arrays, and the result for a row does not depend on how many others there are.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self, TypeAlias, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import erf, ndtr, ndtri

__all__ = ["Normal", "NormalMixture"]

FloatArray: TypeAlias = NDArray[np.float64]
Seed: TypeAlias = int | np.integer[Any] | np.random.Generator | np.random.RandomState | None

_SQRT_2PI = math.sqrt(2.0 * math.pi)
_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
_EPS = float(np.finfo(np.float64).eps)
_MAX_ITERATIONS = 200  # about ten are usual; bisection alone gains a factor 1e60


@dataclass(frozen=True, eq=False, repr=False)
class _Predictive(ABC):
    """A mixture of ``n_members`` normals for each of n rows; all that both classes share."""

    means: FloatArray
    stds: FloatArray
    weights: FloatArray
    disagreement: FloatArray | None = None

    @abstractmethod
    def __repr__(self) -> str: ...

    def __len__(self) -> int:
        return int(self.means.shape[1])

    def __getitem__(self, rows: Any) -> Self:
        """Select rows by slice, mask, index array or integer (which gives one row)."""
        index = np.atleast_1d(np.arange(len(self))[rows])
        if index.ndim != 1:
            raise IndexError(f"rows must be chosen along one axis, got {rows!r}; use a 1-D index")
        # Not through the constructor: normalising the weights again could change their last bit.
        selected = object.__new__(type(self))
        means, stds = (_frozen(a[:, index]) for a in (self.means, self.stds))
        spread = None if self.disagreement is None else _frozen(self.disagreement[index])
        _Predictive.__init__(selected, means, stds, self.weights, spread)
        return selected

    def _average(self, members: Iterable[FloatArray]) -> FloatArray:
        total = np.zeros(len(self))
        for weight, member in zip(self.weights, members, strict=True):
            total += weight * member
        return total

    def _outcomes(self, y: ArrayLike) -> FloatArray:
        values = _real("y", y)
        if values.ndim:
            _check_shape("y", values, (len(self),), "pass one outcome per row, or a scalar")
        return np.broadcast_to(values, (len(self),))

    @property
    def mean(self) -> FloatArray:
        """Mean of the predictive distribution, in units of y, shape (n,)."""
        # Relative to one member: equal members then give exactly their common mean.
        origin: FloatArray = self.means[0]
        return self._centre() + origin

    def _centre(self) -> FloatArray:
        """The mean, counted from the first member's: a large mean costs it no digits."""
        return self._average(mean - self.means[0] for mean in self.means)

    @property
    def std(self) -> FloatArray:
        """Standard deviation of the predictive distribution, in units of y, shape (n,)."""
        # hypot rather than sqrt(var): no underflow to 0 where the square is below 1e-308.
        centre, total = self._centre(), np.zeros(len(self))
        for weight, mean, std in zip(self.weights, self.means, self.stds, strict=True):
            distance = mean - self.means[0] - centre
            total = np.hypot(total, np.sqrt(weight) * np.hypot(std, distance))
        return total

    @property
    def var(self) -> FloatArray:
        """Variance, ``aleatoric + epistemic``, in units of y squared, shape (n,)."""
        return self.aleatoric + self.epistemic

    @property
    def aleatoric(self) -> FloatArray:
        """Mean of the members' variances, in units of y squared, shape (n,).

        Less what they hold of ``disagreement``.
        """
        within = self._average(std**2 for std in self.stds)
        return within - self._known_disagreement(within)

    @property
    def epistemic(self) -> FloatArray:
        """Variance of the members' means, in units of y squared, shape (n,); 0 for one member.

        And ``disagreement``, the part of the members' variances that more data would remove.
        """
        centre = self._centre()
        between = self._average((mean - self.means[0] - centre) ** 2 for mean in self.means)
        if self.disagreement is None:
            return between
        return between + self._known_disagreement(self._average(std**2 for std in self.stds))

    def _known_disagreement(self, within: FloatArray) -> FloatArray | float:
        return 0.0 if self.disagreement is None else np.minimum(self.disagreement, within)

    def logpdf(self, y: ArrayLike) -> FloatArray:
        """Logarithm of the density, ``log Σ w_i N(y; μ_i, s_i²)``; positive where std is small.

        Parameters
        ----------
        y : array-like of shape (n,) or scalar
            Outcomes. NaN gives NaN, an infinity the limit.

        Returns
        -------
        ndarray of shape (n,)
        """
        y = self._outcomes(y)
        total = np.full(len(self), -np.inf)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            log_weights = np.log(self.weights)
            for log_weight, mean, std in zip(log_weights, self.means, self.stds, strict=True):
                log_density = -0.5 * ((y - mean) / std) ** 2 - np.log(std) - _LOG_SQRT_2PI
                total = np.logaddexp(total, log_weight + log_density)
        return total

    def pdf(self, y: ArrayLike) -> FloatArray:
        """Density at y of shape (n,) or scalar, per unit of y, shape (n,)."""
        return np.exp(self.logpdf(y))

    def cdf(self, y: ArrayLike) -> FloatArray:
        """Probability of an outcome of at most y, of shape (n,) or scalar; shape (n,)."""
        return self._tail(self._outcomes(y), 1.0)

    def sf(self, y: ArrayLike) -> FloatArray:
        """Probability of an outcome above y, ``1 - cdf(y)``, accurate where it is small."""
        return self._tail(self._outcomes(y), -1.0)

    def ppf(self, q: ArrayLike) -> FloatArray:
        """Quantiles, the inverse of `cdf`.

        Parameters
        ----------
        q : float or array-like of shape (k,)
            Levels in (0, 1), the same for every row.

        Returns
        -------
        ndarray of shape (n,) or (n, k)
            Quantiles in units of y; (n,) for a scalar `q`.
        """
        levels = _levels("q", q, "use 0.5 for the median")
        out = np.empty((len(self), levels.size))
        for j, level in enumerate(levels.ravel().tolist()):
            # 1 - level is exact above one half, so that the upper tail loses no digits.
            out[:, j] = self._quantile(min(level, 1.0 - level), 1.0 if level <= 0.5 else -1.0)
        return out if levels.ndim else out[:, 0]

    def interval(self, coverage: ArrayLike) -> FloatArray:
        """Central prediction intervals, with equal probability below and above.

        Parameters
        ----------
        coverage : float or array-like of shape (k,)
            Probabilities in (0, 1), such as 0.9.

        Returns
        -------
        ndarray of shape (n, 2) or (n, k, 2)
            Lower and upper bound in units of y; (n, 2) for a scalar `coverage`.
        """
        levels = _levels("coverage", coverage, "write 0.95 for 95 %")
        out = np.empty((len(self), levels.size, 2))
        for j, tail in enumerate((0.5 * (1.0 - levels)).ravel().tolist()):
            out[:, j, 0] = self._quantile(tail, 1.0)
            out[:, j, 1] = self._quantile(tail, -1.0)
        out.sort(axis=-1)  # where std is a rounding error of the mean, so is their order
        return out if levels.ndim else out[:, 0]

    def crps(self, y: ArrayLike) -> FloatArray:
        """Continuous ranked probability score, in units of y; lower is better.

        ``Σ w_i A(y - μ_i, s_i²) - ½ ΣΣ w_i w_j A(μ_i - μ_j, s_i² + s_j²)`` with
        ``A(m, s²) = E|N(m, s²)| = m (2Φ(m/s) - 1) + 2 s φ(m/s)`` (Grimit et al. 2006,
        https://doi.org/10.1256/qj.05.235). The time grows with the square of ``n_members``.

        Parameters
        ----------
        y : array-like of shape (n,) or scalar
            Outcomes.

        Returns
        -------
        ndarray of shape (n,)
        """
        y = self._outcomes(y)
        score = np.zeros(len(self))
        members = list(zip(self.weights, self.means, self.stds, strict=True))
        for i, (weight, mean, std) in enumerate(members):
            score += weight * _mean_absolute(y - mean, std)
            score -= weight**2 * std / math.sqrt(math.pi)
            for weight_j, mean_j, std_j in members[:i]:
                distance = _mean_absolute(mean - mean_j, np.hypot(std, std_j))
                score -= weight * weight_j * distance
        # Never negative but by cancellation, where all std are minute beside the distances.
        return np.maximum(score, 0.0)

    def sample(self, size: int = 1, random_state: Seed = None) -> FloatArray:
        """Draw outcomes, independently for every row.

        Parameters
        ----------
        size : int, default=1
            Number of draws for each row.
        random_state : int, Generator, RandomState or None, default=None
            Seed or source of randomness. None takes fresh entropy; the global state of
            NumPy is neither used nor changed.

        Returns
        -------
        ndarray of shape (size, n)
            In units of y.
        """
        rng = _generator(random_state)
        if not isinstance(size, int | np.integer) or size < 0:
            raise ValueError(f"size must be a non-negative integer, got {size!r}; use such as 100")
        shape = (int(size), len(self))
        draws = rng.standard_normal(shape)
        rows = np.arange(len(self))
        # After the normal draws: a single member then gives the draws of a Normal.
        member = rng.choice(len(self.weights), size=shape, p=self.weights)
        draws *= self.stds[member, rows]
        draws += self.means[member, rows]
        return draws

    def _tail(self, y: FloatArray, sign: float) -> FloatArray:
        """Probability below y (sign 1) or above y (sign -1)."""
        members = zip(self.means, self.stds, strict=True)
        with np.errstate(over="ignore"):
            mass = self._average(ndtr(sign * (y - mean) / std) for mean, std in members)
        return np.minimum(mass, 1.0)  # the weights sum to 1 only up to rounding

    def _quantile(self, mass: float, sign: float) -> FloatArray:
        """Solve ``_tail(x, sign) = mass`` for x, by Newton steps safeguarded by bisection."""
        probit = float(ndtri(mass))
        members = self.means + sign * probit * self.stds
        # The quantile of a mixture lies between those of its members.
        lower, upper = members.min(axis=0), members.max(axis=0)
        x = np.clip(self.mean + sign * probit * self.std, lower, upper)
        step, tolerance = upper - lower, 1e-13 * self.stds.min(axis=0)
        rows = np.flatnonzero(step > tolerance)
        for _ in range(_MAX_ITERATIONS):
            if not rows.size:
                break
            active, here = self[rows], x[rows]
            reached = active._tail(here, sign)
            too_high = sign * (reached - mass) > 0.0
            low = lower[rows] = np.where(too_high, lower[rows], here)
            high = upper[rows] = np.where(too_high, here, upper[rows])
            # Newton on the probit of the mass: for a single normal that is a straight line.
            with np.errstate(all="ignore"):  # what is not finite is not accepted
                z = ndtri(reached)
                slope = sign * np.exp(active.logpdf(here) + 0.5 * z**2 + _LOG_SQRT_2PI)
                newton = here - (z - probit) / slope
            accept = (newton >= low) & (newton <= high)
            accept &= abs(newton - here) <= 0.5 * abs(step[rows])
            # Where the mass is met to rounding, as between distant modes, no step can improve it.
            exact = abs(reached - mass) <= 4.0 * _EPS * mass
            x[rows] = np.where(exact, here, np.where(accept, newton, 0.5 * low + 0.5 * high))
            step[rows] = x[rows] - here
            rows = rows[abs(step[rows]) > tolerance[rows] + 2.0 * _EPS * abs(here)]
        return x


@final
class Normal(_Predictive):
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
        means, stds = _parameters("mean", mean, std, "(n,)")
        super().__init__(_frozen(means[None]), _frozen(stds[None]), _frozen(np.ones(1)))

    def __repr__(self) -> str:
        return f"Normal(n={len(self)})"


@final
class NormalMixture(_Predictive):
    """Mixtures of the normal predictions of several members, as of a deep ensemble, for n rows.

    The density of a row is ``Σ w_i N(y; μ_i, s_i²)`` over the members i. Its variance is
    ``aleatoric + epistemic``: the mean of the members' variances plus the variance of their means.

    Parameters
    ----------
    means : array-like of shape (n_members, n)
        Means, in units of y.
    stds : array-like of shape (n_members, n)
        Standard deviations (not variances), positive, in units of y.
    weights : array-like of shape (n_members,), default=None
        Non-negative weights, normalised to sum to 1. None weighs all members equally.
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
        mean, std = _parameters("means", means, stds, "(n_members, n)")
        spread = None
        if disagreement is not None:
            spread = _real("disagreement", disagreement)
            _check_shape("disagreement", spread, mean.shape[1:], "pass one variance per row")
            valid = np.isfinite(spread) & (spread >= 0.0)
            _check("disagreement", spread, valid, "be finite and not negative", "pass variances")
            spread = _frozen(spread)
        shares = _frozen(_normalised(weights, len(mean)))
        super().__init__(_frozen(mean), _frozen(std), shares, spread)

    def __repr__(self) -> str:
        return f"NormalMixture(n_members={len(self.weights)}, n={len(self)})"


def _mean_absolute(mean: FloatArray, std: FloatArray) -> FloatArray:
    """``A(m, s²) = E|N(m, s²)|``, written so that m/s may overflow."""
    with np.errstate(over="ignore"):
        z = mean / std
        absolute: FloatArray = mean * erf(z / math.sqrt(2.0))
        return absolute + 2.0 * std * np.exp(-0.5 * z**2) / _SQRT_2PI


def _check(name: str, array: FloatArray, valid: NDArray[np.bool_], rule: str, remedy: str) -> None:
    if not valid.all():
        raise ValueError(f"{name} must {rule}, got {array[~valid].ravel()[0]}; {remedy}")


def _check_shape(name: str, array: FloatArray, shape: tuple[int, ...], remedy: str) -> None:
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {array.shape}; {remedy}")


def _real(name: str, value: ArrayLike) -> FloatArray:
    """Convert to float64, refusing what NumPy would convert with loss, such as complex."""
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "biufO":
            raise TypeError(f"it has dtype {array.dtype}")
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold real numbers, but {error}; convert it") from error


def _parameters(name: str, mean: ArrayLike, std: ArrayLike, shape: str) -> list[FloatArray]:
    """Validate means and standard deviations, called mean and std, or means and stds."""
    names = (name, name.replace("mean", "std"))
    arrays = [_real(key, value) for key, value in zip(names, (mean, std), strict=True)]
    for key, array in zip(names, arrays, strict=True):
        if array.ndim != len(shape.split()) or (array.ndim > 1 and not len(array)):
            raise ValueError(f"{key} must have shape {shape}, got {array.shape}; reshape it")
        _check(key, array, np.isfinite(array), "be finite", "drop such rows or members")
    _check_shape(names[1], arrays[1], arrays[0].shape, f"pass one value for each of {name}")
    _check(names[1], arrays[1], arrays[1] > 0.0, "be positive", "pass standard deviations above 0")
    return arrays


def _normalised(weights: ArrayLike | None, n_members: int) -> FloatArray:
    array = np.ones(n_members) if weights is None else _real("weights", weights)
    _check_shape("weights", array, (n_members,), "pass one weight per member")
    valid = np.isfinite(array) & (array >= 0.0)
    _check("weights", array, valid, "be finite and non-negative", "use 0 to leave a member out")
    if not array.any():
        raise ValueError("weights must not all be 0.0; give at least one member a positive weight")
    shares: FloatArray = array / array.max()  # before the sum, which could overflow
    shares /= shares.sum()
    return shares


def _levels(name: str, value: ArrayLike, remedy: str) -> FloatArray:
    levels = _real(name, value)
    if levels.ndim > 1:
        raise ValueError(f"{name} must be a scalar or 1-D, got shape {levels.shape}; flatten it")
    valid = (levels > 0.0) & (levels < 1.0)
    _check(name, levels, valid, "lie strictly between 0 and 1", remedy)
    return levels


def _frozen(array: FloatArray) -> FloatArray:
    """Copy and make read-only: neither the caller's array nor ours changes unnoticed."""
    copy = np.array(array, order="C")
    copy.setflags(write=False)
    return copy


def _generator(random_state: Seed) -> np.random.Generator:
    if isinstance(random_state, np.random.RandomState):
        # Advances the caller's stream, as in scikit-learn: the next call draws anew.
        return np.random.default_rng(random_state.randint(0, 2**32, size=4, dtype=np.uint32))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        rule = "random_state must be a non-negative int, a Generator, a RandomState or None"
        raise ValueError(f"{rule}, got {random_state!r}; pass an int such as 0") from error
