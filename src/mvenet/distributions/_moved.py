"""Distributions that are made from others by moving outcomes without changing their order."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from mvenet.distributions._checks import FloatArray
from mvenet.distributions._interface import Distribution
from mvenet.distributions._members import Smooth


class Moved(Distribution):
    """What is true wherever outcomes go: quantiles and samples are moved as outcomes are."""

    @property
    @abstractmethod
    def _before(self) -> Smooth:
        """What is expected before anything is moved."""

    @abstractmethod
    def _moved(self, z: FloatArray) -> FloatArray:
        """Where an outcome of that ends up."""

    @property
    @abstractmethod
    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation, each of shape (n,): for both less work than for each."""

    def __len__(self) -> int:
        return len(self._before)

    @property
    def mean(self) -> FloatArray:
        """Mean of the predictive distribution, in units of y, shape (n,)."""
        return self.moments[0]

    @property
    def std(self) -> FloatArray:
        """Standard deviation of the predictive distribution, in units of y, shape (n,).

        Positive, if only just, also where all of the probability is at one place.
        """
        return np.maximum(self.moments[1], np.finfo(np.float64).tiny)

    @property
    def aleatoric(self) -> FloatArray:
        """Variance that is noise, in units of y squared, shape (n,)."""
        return np.square(self.moments[1]) - self.epistemic

    @property
    def epistemic(self) -> FloatArray:
        """Variance that more data would remove, in units of y squared, shape (n,).

        As large a part of the variance as before outcomes were moved.
        """
        with np.errstate(invalid="ignore"):
            part = self._before.epistemic / self._before.var
        return np.nan_to_num(part) * np.square(self.moments[1])

    def _quantile(self, mass: float, sign: float) -> FloatArray:
        return self._moved(self._before._quantile(mass, sign))

    def _drawn(self, rng: np.random.Generator, shape: tuple[int, int]) -> FloatArray:
        return self._moved(self._before._drawn(rng, shape))
