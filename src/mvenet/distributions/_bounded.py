"""Distributions with ends that outcomes come near and do not reach: a share of more than none.

A smooth distribution expects something beyond such an end. Where outcomes lie on the end, that is
an atom's (:class:`~mvenet.distributions.WithAtoms`). Where none does, it is squeezed into the last
bit before the end. With a reach h from a lower end a, what a smooth distribution has at z < a + h
is at

    ``y = a + h exp((z - a) / h - 1)``

and all else stays. The order of outcomes stays, too, and so do quantiles but for that formula. A
reach of nothing would be an atom.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import ArrayLike

from mvenet.distributions._checks import FloatArray, check, check_shape, frozen, real
from mvenet.distributions._members import Smooth
from mvenet.distributions._moved import Moved
from mvenet.distributions._normal import Normal, NormalMixture
from mvenet.distributions._special import erfcx, ndtr

_NEAREST = 1e-2  # of the reach: an outcome closer to the end is as likely as one so far from it
_ALL_BUT = 1e-12  # of the probability: where an open side may be said to end
_TRIED = np.exp2(-np.arange(0.0, 12.0, 0.25))  # shares of the reach where a mode may be
_SIGNS = np.array([1.0, -1.0])  # of the direction from either end to the inside
_NODES, _SHARES = leggauss(16)
_STEPS = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)  # reaches, between which an exponential is smooth
_GONE = 40.0  # reaches, beyond which it is zero
# Of quantiles, counted from either side, between which such nodes stand for what is there.
_LEVELS = (1e-12, 1e-8, 1e-5, 1e-3, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)


@final
@dataclass(frozen=True, eq=False, repr=False, init=False)
class Bounded(Moved, Smooth):
    """Predictive distributions of n rows that lie between two ends, or beyond one.

    Parameters
    ----------
    whole : Normal or NormalMixture
        What is expected before anything is known of ends.
    ends : array-like of shape (2,)
        The lower and the upper end, in units of y; infinite where there is none.
    reach : array-like of shape (2,)
        How far from each end it is squeezed, in units of y.

    Examples
    --------
    >>> from mvenet.distributions import Bounded, NormalMixture
    >>> whole = NormalMixture(means=[[0.1, 0.5]], stds=[[0.2, 0.1]])
    >>> dist = Bounded(whole, ends=[0.0, 1.0], reach=[0.05, 0.05])
    >>> dist
    Bounded(low=0, high=1, n=2)
    >>> print(dist.interval(0.9).round(3))
    [[0.    0.429]
     [0.336 0.664]]
    >>> print(dist.cdf(0.0), dist.cdf(0.05).round(3))
    [0. 0.] [0.401 0.   ]
    """

    whole: Normal | NormalMixture
    ends: FloatArray
    reach: FloatArray

    def __init__(self, whole: Normal | NormalMixture, ends: ArrayLike, reach: ArrayLike) -> None:
        low_high, far = real("ends", ends), real("reach", reach)
        if not isinstance(whole, Normal | NormalMixture):
            raise TypeError(f"whole must be normal or a mixture, got {type(whole).__name__}")
        check_shape("ends", low_high, (2,), "pass a lower and an upper one")
        check_shape("reach", far, (2,), "pass one for each end")
        positive = np.isfinite(far) & (far > 0)
        check("reach", far, positive, "be positive", "use such as 0.01")
        low, high = low_high
        known = low_high + _SIGNS * far
        if not (known[0] <= known[1] and low < np.inf and high > -np.inf):
            raise ValueError(
                f"ends={low_high.tolist()} must rise, and be farther apart than reach="
                f"{far.tolist()}; use -inf or inf where there is none"
            )
        self._fill(whole, frozen(low_high), frozen(far))

    def _fill(self, whole: Normal | NormalMixture, ends: FloatArray, reach: FloatArray) -> None:
        for name, value in (("whole", whole), ("ends", ends), ("reach", reach)):
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"Bounded(low={self.ends[0]:g}, high={self.ends[1]:g}, n={len(self)})"

    @property
    def _before(self) -> Normal | NormalMixture:
        return self.whole

    def _at(self, index: Any) -> Self:
        selected = object.__new__(type(self))
        selected._fill(self.whole[index], self.ends, self.reach)
        return selected

    @property
    def inner(self) -> FloatArray:
        """Between these two, nothing is squeezed; of shape (2,)."""
        return self.ends + _SIGNS * self.reach

    def _known(self) -> Iterator[tuple[float, float, float, float]]:
        """Of each end that is there: itself, its reach, how far that goes, and the direction."""
        for end, reach, inner, sign in zip(self.ends, self.reach, self.inner, _SIGNS, strict=True):
            if np.isfinite(end):
                yield float(end), float(reach), float(inner), float(sign)

    def _moved(self, z: FloatArray) -> FloatArray:
        """Where an outcome of the whole ends up."""
        y = z
        for end, reach, inner, sign in self._known():
            near = np.minimum(sign * (z - inner) / reach, 0.0)
            y = np.where(near < 0.0, end + sign * reach * np.exp(near), y)
        return y

    def _spread(self, y: FloatArray) -> FloatArray:
        """Where the whole has as much below as here is below y."""
        z = y
        for end, reach, inner, sign in self._known():
            share = np.clip(sign * (y - end) / reach, 0.0, 1.0)
            with np.errstate(divide="ignore"):
                z = np.where(share < 1.0, inner + sign * reach * np.log(share), z)
        return z

    @property
    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation, each of shape (n,): for both less work than for each."""
        return self.moments_from(self.whole.mean, self.whole.std)

    def moments_from(self, mean: FloatArray, std: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The same, from mean and standard deviation of the whole.

        What is squeezed is taken out of these, and put in where it is.
        """
        first, second = np.zeros(len(mean)), np.square(std)
        for end, reach, inner, sign in self._known():
            cell = np.array([[-np.inf, inner] if sign > 0 else [inner, np.inf]])
            _, one, two = self.whole._partials(cell, mean)[:, 0]
            none, some, more = self._exponentials(reach, inner, sign)
            apart, far = end - mean, sign * reach
            first += apart * none + far * some - one
            second += np.square(apart) * none + 2.0 * apart * far * some + far**2 * more - two
        moved = np.clip(mean + first, *self.ends)
        return moved, np.sqrt(np.maximum(second - np.square(first), 0.0))

    def _exponentials(self, reach: float, inner: float, sign: float) -> FloatArray:
        """``E[exp(k (z - c) / h); z < c]`` for k of 0, 1 and 2, of shape (3, n); c is inner.

        Of a normal that is ``exp(k² s²/2h² - k (c - μ)/h) Φ(t)`` with ``t = (c - μ)/s - k s/h``;
        with ``Φ(t) = ½ exp(-t²/2) erfcx(-t/√2)`` nothing overflows where t is negative.
        """
        total = np.zeros((3, len(self)))
        weights = self.whole.weights.reshape(len(self.whole.weights), -1)
        for weight, mean, std in zip(weights, self.whole.means, self.whole.stds, strict=True):
            apart = sign * (inner - mean)
            z, ratio = apart / std, std / reach
            bell = 0.5 * np.exp(-0.5 * np.square(z))
            for power, sums in enumerate(total):
                t = z - power * ratio
                below = bell * erfcx(np.maximum(-t, 0.0) / np.sqrt(2.0))
                size = np.minimum(power * (0.5 * power * ratio * ratio - apart / reach), 0.0)
                sums += weight * np.where(t < 0.0, below, np.exp(size) * ndtr(t))
        return total

    def _tail(self, y: FloatArray, sign: float) -> FloatArray:
        return self.whole._tail(self._spread(y), sign)

    def _tails(self, places: FloatArray, sign: float = 1.0) -> FloatArray:
        return self.whole._tails(self._spread(places), sign)

    def _partials(self, cells: FloatArray, origin: FloatArray) -> FloatArray:
        """Of cells in which nothing is squeezed."""
        return self.whole._partials(cells, origin)

    def _log_density(self, y: FloatArray) -> FloatArray:
        slope, inside = np.zeros(len(y)), y
        for end, reach, inner, sign in self._known():
            least = end + sign * _NEAREST * reach
            near = (inside - inner) * sign < 0.0
            inside = np.where(near & ((inside - least) * sign < 0.0), least, inside)
            share = np.where(near, sign * (inside - end) / reach, 1.0)
            slope -= np.log(share)
        density = self.whole._log_density(self._spread(inside)) + slope
        beyond = (y < self.ends[0]) | (y > self.ends[1])
        return np.where(beyond, -np.inf, density)

    def _modes(self) -> FloatArray:
        """The whole distribution's peak, or a place that is squeezed, whichever is denser."""
        tried = [np.clip(self.whole._modes(), *self.inner)]
        for end, reach, _, sign in self._known():
            tried += [np.full(len(self), end + sign * reach * share) for share in _TRIED]
        heights = np.array([self._log_density(place) for place in tried])
        found: FloatArray = np.array(tried)[heights.argmax(axis=0), np.arange(len(self))]
        return found

    def _crps(self, y: FloatArray) -> FloatArray:
        """``∫ (F(x) - 1{x ≥ y})² dx``: the whole distribution's, corrected where it is squeezed.

        Before it is squeezed, F is smooth also next to an end; the integral is made there.
        """
        far = self.inner - _SIGNS * _GONE * self.reach
        z = np.clip(self._spread(y), *far)
        score = self.whole._crps(z)
        for end, reach, inner, sign in self._known():
            score += np.maximum(sign * (end - y), 0.0)
            last = self.whole._quantile(_ALL_BUT, sign)
            outer = inner - sign * (sign * (inner - np.array([z, last]))).max(axis=0).clip(min=0)
            steps = [np.full(len(y), inner - sign * reach * step) for step in _STEPS]
            low, high = (outer, inner) if sign > 0 else (inner, outer)
            breaks = np.clip([*_quantiles(self.whole), *steps, z, outer], low, high)

            def more(x: FloatArray, inner: float = inner, by: float = sign / reach) -> FloatArray:
                return np.expm1(np.minimum((x - inner) * by, 0.0))

            score += _integral(self.whole, breaks, z, more)
        return score


def within(dist: Smooth, low: float, high: float, y: FloatArray) -> FloatArray:
    """``∫ (F(x) - 1{x ≥ y})² dx`` of a distribution from low to high, of shape (n,).

    Of an open stretch, from where there is something; beyond, as far as y, it is one.
    """
    from_, to = np.full(len(y), low), np.full(len(y), high)
    total = np.zeros(len(y))
    if np.isinf(low):
        from_ = np.minimum(dist._quantile(_ALL_BUT, 1.0), high)
        total += np.maximum(np.minimum(from_, high) - y, 0.0)
    if np.isinf(high):
        to = np.maximum(dist._quantile(_ALL_BUT, -1.0), low)
        total += np.maximum(y - np.maximum(to, low), 0.0)
    breaks = np.clip([*_quantiles(dist), y, from_, to], from_, to)
    return total + _integral(dist, breaks, y)


def _quantiles(dist: Smooth) -> list[FloatArray]:
    """Between neighbouring ones nothing is too narrow or too far away to be seen."""
    return [dist._quantile(level, sign) for sign in (1.0, -1.0) for level in _LEVELS]


def _integral(
    dist: Smooth,
    breaks: FloatArray,
    y: FloatArray,
    weight: Callable[[FloatArray], FloatArray] | None = None,
) -> FloatArray:
    """``∫ (F(x) - 1{x ≥ y})² w(x) dx`` from the lowest to the highest of breaks, (k, n)."""
    total = np.zeros(len(y))
    for begin, end in itertools.pairwise(np.sort(breaks, axis=0)):
        half = 0.5 * (end - begin)
        x = begin + half + half * _NODES[:, None]
        square = np.square(dist._tails(x) - (begin + half >= y))
        total += half * (_SHARES @ (square if weight is None else square * weight(x)))
    return total
