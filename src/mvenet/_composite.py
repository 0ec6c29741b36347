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
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvenet._stack import MULTIPLES, Shape
from mvenet._steps import Steps
from mvenet._trees import Forest
from mvenet.distributions import NormalMixture
from mvenet.fleet import Networks

Array = NDArray[np.float64]
ROWS_AT_ONCE = 16_384
_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class NetworkMean:
    """Networks, one for each fold, whose average is a mean; of encoded columns or plain ones."""

    networks: Networks
    encoded: bool


@dataclass(frozen=True)
class MeanOfNoise:
    """The mean of networks that learned it together with the noise: those of that number."""

    number: int


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

    def bounded(self, mean: Array) -> Array:
        """No further from the range of y than once its length."""
        length = self.y_high - self.y_low
        return np.asarray(np.clip(mean, self.y_low - length, self.y_high + length))


@dataclass(frozen=True)
class Composite:
    """What was found: how columns are read, the means with their shares, the noise."""

    steps: Steps
    range: Range
    means: tuple[Any, ...]
    shares: Array
    noises: tuple[Noise, ...]

    def __len__(self) -> int:
        """Components of the mixture."""
        return sum(int(np.count_nonzero(noise.weights)) for noise in self.noises)

    def moments(self, X: NDArray[Any], threads: int = 1) -> tuple[Array, Array]:
        """Mean and standard deviation of each row, of shape (n,)."""
        mean, std = np.empty(len(X)), np.empty(len(X))
        for rows in _parts(len(X)):
            components, _ = self._components(X[rows], threads)
            centre = sum(noise.weights.sum() * own for noise, own, _ in components)
            total = np.zeros(len(centre))
            for noise, own, deviation in components:
                heavy = float(noise.weights @ MULTIPLES**2)
                total += heavy * deviation**2 + noise.weights.sum() * (own - centre) ** 2
            mean[rows], std[rows] = centre, np.maximum(np.sqrt(total), _TINY)
        return mean, std

    def distribution(self, X: NDArray[Any], threads: int = 1) -> NormalMixture:
        """Predictive distribution of each row."""
        kept = [np.flatnonzero(noise.weights) for noise in self.noises]
        weights = np.concatenate([n.weights[k] for n, k in zip(self.noises, kept, strict=True)])
        means, stds = (np.empty((len(weights), len(X))) for _ in range(2))
        spread = np.empty(len(X))
        for rows in _parts(len(X)):
            components, spread[rows] = self._components(X[rows], threads)
            at = 0
            for (_, mean, std), which in zip(components, kept, strict=True):
                end = at + len(which)
                means[at:end, rows] = mean
                stds[at:end, rows] = np.maximum(std * MULTIPLES[which, None], _TINY)
                at = end
        return NormalMixture(means, stds, weights, disagreement=spread)

    def _components(
        self, X: NDArray[Any], threads: int
    ) -> tuple[list[tuple[Noise, Array, Array]], Array]:
        """Mean and standard deviation by each noise; and the variance that is not noise."""
        inputs = {False: X, True: self.steps.encode(X)}
        said = {
            number: noise.networks.predict(inputs[noise.encoded], threads)
            for number, noise in enumerate(self.noises)
            if noise.joint
        }
        blended, disagreement = self._blend(X, inputs, said, threads)
        ignorance = self.range.ignorance(X) * self.range.y_std**2
        parts = []
        for number, noise in enumerate(self.noises):
            mean = blended
            if noise.joint:
                means, stds = said[number]
                mean = self.range.bounded(means.mean(axis=0))
            else:
                columns = np.column_stack([inputs[noise.encoded], blended])
                stds = noise.networks.predict(columns, threads)[1]
            std = np.exp(noise.shape.applied(np.log(stds).mean(axis=0)))
            parts.append((noise, mean, np.hypot(std, np.sqrt(ignorance))))
        return parts, disagreement + ignorance

    def _blend(
        self,
        X: NDArray[Any],
        inputs: dict[bool, NDArray[Any]],
        said: dict[int, tuple[Array, Array]],
        threads: int,
    ) -> tuple[Array, Array]:
        """Blended mean, and its variance over the folds' networks."""
        within = self.range.within(X)
        each = np.zeros((1, len(X)))  # with networks, a line for each fold
        for share, mean in zip(self.shares, self.means, strict=True):
            if isinstance(mean, MeanOfNoise):
                each = each + share * said[mean.number][0]
            elif isinstance(mean, NetworkMean):
                each = each + share * mean.networks.predict(inputs[mean.encoded], threads)[0]
            elif isinstance(mean, Forest):
                each = each + share * mean.predict(within, threads)
            else:
                each = each + share * mean.predict(within)
        return self.range.bounded(each.mean(axis=0)), each.var(axis=0)


def _parts(n: int) -> list[slice]:
    return [slice(at, at + ROWS_AT_ONCE) for at in range(0, n, ROWS_AT_ONCE)]
