"""Distributions that are mixtures of members with weights: their moments and parts of variance."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable

import numpy as np

from mvenet.distributions._checks import FloatArray
from mvenet.distributions._interface import Distribution


class Smooth(Distribution):
    """Distributions with a density, of which parts can be taken."""

    @abstractmethod
    def _tails(self, places: FloatArray, sign: float = 1.0) -> FloatArray:
        """Probability below each of k places, (k, n), or above them with a negative sign.

        The places are of shape (k, 1), the same for all rows, or (k, n).
        """

    @abstractmethod
    def _partials(self, cells: FloatArray, origin: FloatArray) -> FloatArray:
        """Probability in each of k cells, and the first two moments about origin: (3, k, n)."""


class Members(Smooth):
    """Mixtures of members, whose weights are the same for all rows, (m,), or differ, (m, n)."""

    weights: FloatArray

    @abstractmethod
    def _within(self) -> Iterable[FloatArray]:
        """The members' standard deviations."""

    @abstractmethod
    def _distances(self) -> Iterable[FloatArray]:
        """The members' means, counted from the mean of all."""

    @abstractmethod
    def _known(self, within: FloatArray) -> FloatArray | float:
        """The part of the members' mean variance that is known not to be noise."""

    @property
    def std(self) -> FloatArray:
        """Standard deviation of the predictive distribution, in units of y, shape (n,)."""
        # hypot rather than sqrt(var): no underflow to 0 where the square is below 1e-308.
        total = np.zeros(len(self))
        for weight, std, distance in zip(
            self.weights, self._within(), self._distances(), strict=True
        ):
            if weight.any():  # zero times a member that is infinite is not zero
                own = np.sqrt(weight) * np.hypot(std, distance)
                total = np.hypot(total, np.where(weight > 0.0, own, 0.0))
        return total

    @property
    def aleatoric(self) -> FloatArray:
        """Mean of the members' variances, in units of y squared, shape (n,).

        Less what they hold of ``disagreement``.
        """
        within = self._average(std**2 for std in self._within())
        return within - self._known(within)

    @property
    def epistemic(self) -> FloatArray:
        """Variance of the members' means, in units of y squared, shape (n,); 0 for one member.

        And ``disagreement``, the part of the members' variances that more data would remove.
        """
        between = self._average(distance**2 for distance in self._distances())
        return between + self._known(self._average(std**2 for std in self._within()))

    def _average(self, members: Iterable[FloatArray]) -> FloatArray:
        total = np.zeros(len(self))
        with np.errstate(over="ignore", invalid="ignore"):  # too large a square is infinite
            for weight, member in zip(self.weights, members, strict=True):
                if weight.any():
                    total += np.where(weight > 0.0, weight * member, 0.0)
        return total
