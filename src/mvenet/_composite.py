"""The model that an automatic search ends with: a blended mean, and noise of several shapes.

The mean is a weighted average of networks, a linear model, trees and whatever else was tried. The
predictive distribution is a mixture of normals: each candidate for the noise brings a mean (the
blend, or its own if its networks learned both together) and a standard deviation for each row,
which enters with several multiples, so that tails may be heavier than a normal's.

Away from the training rows it is careful. The columns are bounded before any network sees them.
What lies outside the range of the training rows gets a wider distribution: the variance grows by
``t · var(y)``, where t rises from 0 to 1 with the distance from that range, until the model says no
more than somebody who knows nothing but y. The mean never leaves the range of y by more than
once its length.

On the log scale all of this is said of log y, and the mixture is one of log-normals. A member's
median then is at most twice the largest y, and its standard deviation at most ``WIDEST_LOG`` before
the multiple, which is at most ``LARGEST_LOG_MULTIPLE``: the mean of y is never above 25 times the
largest y, nor its standard deviation above 300 times.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvenet import _stack
from mvenet._process import Process
from mvenet._stack import MULTIPLES, WIDEST_LOG, Shape
from mvenet._steps import Steps
from mvenet._trees import Forest
from mvenet.distributions import LogNormalMixture, NormalMixture
from mvenet.fleet import Networks

Array = NDArray[np.float64]
ROWS_AT_ONCE = 8_192
_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class Linear:
    """A linear mean."""

    coefficients: Array
    intercept: float

    def predict(self, X: NDArray[Any]) -> Array:
        """Mean of each row, of shape (n,)."""
        mean: Array = X @ self.coefficients + self.intercept
        return mean


@dataclass(frozen=True)
class NetworkMean:
    """Networks, one for each fold, whose average is a mean; of encoded columns or plain ones."""

    networks: Networks
    encoded: bool


@dataclass(frozen=True)
class MeanOfNoise:
    """The mean of networks that learned it together with the noise: those of that number."""

    number: int


# Means that are arrays of ours; anything else is a regressor of the user's.
OURS = (Linear, NetworkMean, MeanOfNoise, Forest, Process)


@dataclass(frozen=True)
class Noise:
    """Networks, one for each fold, that give a standard deviation to each row.

    Attributes
    ----------
    networks : Networks
    encoded : bool
        Whether they read the encoded columns.
    joint : bool
        Whether they learned a mean too, which then is used; otherwise the blended mean is, and is
        a further column of theirs.
    shape : Shape
        From what the networks say to a standard deviation.
    weights : ndarray of shape (multiples,)
        Weight in the mixture of each of ``MULTIPLES`` of the standard deviation.
    """

    networks: Networks
    encoded: bool
    joint: bool
    shape: Shape
    weights: Array


@dataclass(frozen=True)
class Range:
    """The smallest and largest value of each column and of y, and the spread of y."""

    x_low: Array
    x_high: Array
    y_low: float
    y_high: float
    y_std: float

    @staticmethod
    def of(X: NDArray[Any], y: Array) -> Range:
        """The range of training rows."""
        return Range(
            X.min(axis=0).astype(np.float64),
            X.max(axis=0).astype(np.float64),
            float(y.min()),
            float(y.max()),
            float(y.std()),
        )

    def within(self, X: NDArray[Any]) -> Array:
        """Each column cut to the range."""
        return np.asarray(np.clip(X, self.x_low, self.x_high), dtype=np.float64)

    def ignorance(self, X: NDArray[Any]) -> Array:
        """From 0 within the range to 1 far outside, for each row."""
        length = self.x_high - self.x_low
        with np.errstate(over="ignore"):
            beyond = np.abs(X - self.within(X)) / np.where(length > 0, length, 1.0)
            far = np.minimum(np.square(np.minimum(beyond, 1e100)).sum(axis=1), 1e100)
        return np.asarray(far / (1.0 + far))


@dataclass(frozen=True)
class Composite:
    """What was found: how columns are read, the means with their shares, the noise.

    With ``log``, all but the columns is of the logarithm of y.
    """

    steps: Steps
    range: Range
    means: tuple[Any, ...]
    shares: Array
    noises: tuple[Noise, ...]
    log: bool = False

    def __len__(self) -> int:
        """Components of the mixture."""
        return sum(int(np.count_nonzero(noise.weights)) for noise in self.noises)

    @property
    def limits(self) -> tuple[float, float]:
        """Between them lies every mean: no further from the range than once its length.

        On the log scale, upwards no further than to twice the largest y.
        """
        low, high = self.range.y_low, self.range.y_high
        length = high - low
        return low - length, high + (min(length, float(np.log(2.0))) if self.log else length)

    @property
    def unknown_std(self) -> float:
        """Standard deviation that is added far from all training rows."""
        return min(self.range.y_std, WIDEST_LOG) if self.log else self.range.y_std

    def moments(self, X: NDArray[Any], threads: int = 1) -> tuple[Array, Array]:
        """Mean and standard deviation of each row, of shape (n,), in units of y."""
        mean, std = np.empty(len(X)), np.empty(len(X))
        weights = np.array([noise.weights for noise in self.noises])

        def tell(rows: slice, threads: int) -> None:
            means, stds, _ = self._components(X[rows], threads)
            unknown = self._ignorance(X[rows])
            mean[rows], deviation = _stack.moments(means, stds, weights, self.log, unknown)
            std[rows] = np.maximum(deviation, _TINY)

        self._in_parts(tell, len(X), threads)
        return mean, std

    def distribution(self, X: NDArray[Any], threads: int = 1) -> NormalMixture | LogNormalMixture:
        """Predictive distribution of each row."""
        kept = [np.flatnonzero(noise.weights) for noise in self.noises]
        weights = np.concatenate([n.weights[k] for n, k in zip(self.noises, kept, strict=True)])
        means, stds = (np.empty((len(weights), len(X))) for _ in range(2))
        spread = np.empty(len(X))

        def tell(rows: slice, threads: int) -> None:
            own, deviation, disagreement = self._components(X[rows], threads)
            unknown = self._ignorance(X[rows])
            spread[rows] = disagreement + unknown
            at = 0
            for mean, std, which in zip(own, deviation, kept, strict=True):
                end = at + len(which)
                wide = np.hypot(std * MULTIPLES[which, None], np.sqrt(unknown))
                means[at:end, rows], stds[at:end, rows] = mean, np.maximum(wide, _TINY)
                at = end

        self._in_parts(tell, len(X), threads)
        kind = LogNormalMixture if self.log else NormalMixture
        return kind(means, stds, weights, disagreement=spread)

    def _components(self, X: NDArray[Any], threads: int) -> tuple[Array, Array, Array]:
        """Mean and standard deviation by each noise, (noises, n); variance of the blended mean."""
        steps = {False: None, True: self.steps}
        said = {
            number: noise.networks.predict(X, threads, steps=steps[noise.encoded])
            for number, noise in enumerate(self.noises)
            if noise.joint
        }
        blended, disagreement = self._blend(X, said, threads)
        centres, deviations = (np.empty((len(self.noises), len(X))) for _ in range(2))
        for number, noise in enumerate(self.noises):
            mean = blended
            if noise.joint:
                means, stds = said[number]
                mean = np.clip(means.mean(axis=0), *self.limits)
            elif noise.encoded:
                stds = noise.networks.predict(X, threads, steps=self.steps, last=blended)[1]
            else:
                stds = noise.networks.predict(np.column_stack([X, blended]), threads)[1]
            centres[number] = mean
            deviations[number] = np.exp(noise.shape.applied(np.log(stds).mean(axis=0)))
        return centres, deviations, disagreement

    def _ignorance(self, X: NDArray[Any]) -> Array:
        """Variance that is added outside the range of the training rows."""
        return self.range.ignorance(X) * self.unknown_std**2

    def _blend(
        self, X: NDArray[Any], said: dict[int, tuple[Array, Array]], threads: int
    ) -> tuple[Array, Array]:
        """Blended mean, and its variance over the folds' networks."""
        within = self.range.within(X)
        each = np.zeros((1, len(X)))  # with networks, a line for each fold
        for share, mean in zip(self.shares, self.means, strict=True):
            if isinstance(mean, MeanOfNoise):
                each = each + share * said[mean.number][0]
            elif isinstance(mean, NetworkMean):
                steps = self.steps if mean.encoded else None
                each = each + share * mean.networks.means(X, threads, steps=steps)
            elif isinstance(mean, Forest | Process):
                each = each + share * mean.predict(within, threads)
            else:
                each = each + share * mean.predict(within)
        return np.clip(each.mean(axis=0), *self.limits), each.var(axis=0)

    def _in_parts(self, tell: Callable[[slice, int], None], n: int, threads: int) -> None:
        """Ask for all of n rows, some at a time; with many, each thread for rows of its own.

        A regressor of the user's may not stand to be asked by several threads.
        """
        parts = [slice(at, at + ROWS_AT_ONCE) for at in range(0, n, ROWS_AT_ONCE)]
        ours = all(isinstance(mean, OURS) for mean in self.means)
        if not ours or len(parts) < 2 * threads:
            for rows in parts:
                tell(rows, threads)
            return
        with ThreadPoolExecutor(threads) as crew:
            list(crew.map(lambda rows: tell(rows, 1), parts))
