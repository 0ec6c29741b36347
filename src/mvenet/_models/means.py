"""Means that a blend is made of; trees and Gaussian processes have files of their own."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvenet._models.checks import check_array, check_fields, check_number, check_part, require
from mvenet._models.interface import Columns, Inputs
from mvenet._models.networks import Networks
from mvenet._models.predictor import is_estimator

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Linear:
    """A linear mean."""

    coefficients: Array
    intercept: float

    def predict(self, X: NDArray[Any]) -> Array:
        """Mean of each row, of shape (n,)."""
        # Not a product of matrices, whose last bit depends on how many rows there are.
        mean: Array = (np.ascontiguousarray(X) * self.coefficients).sum(axis=1) + self.intercept
        return mean

    def evaluate(self, inputs: Inputs) -> Array:
        """Mean of each row, of shape (1, n)."""
        return self.predict(inputs.clipped)[None]

    def check(self, columns: Columns) -> None:
        """Raise an error if a fit cannot have made it."""
        check_fields(self, Linear)
        check_array(self.coefficients, (columns.plain,), "coefficients")
        check_number(self.intercept, "intercept")


@dataclass(frozen=True)
class NetworkMean:
    """Networks whose average is a mean; of encoded columns or plain ones."""

    networks: Networks
    encoded: bool

    def evaluate(self, inputs: Inputs) -> Array:
        """Mean of each row by each network, of shape (k, n)."""
        piecewise = inputs.piecewise if self.encoded else None
        return self.networks.means(inputs.plain, inputs.threads, piecewise=piecewise)

    def check(self, columns: Columns) -> None:
        """Raise an error if a fit cannot have made it."""
        check_fields(self, NetworkMean)
        check_reading(self.networks, self.encoded, columns)


@dataclass(frozen=True)
class MeanOfNoise:
    """The mean of networks that learned it together with the noise: those of that number."""

    number: int

    def evaluate(self, inputs: Inputs) -> Array:
        """Mean of each row by each network, of shape (k, n)."""
        return inputs.of_joint(self.number)[0]

    def check(self, columns: Columns) -> None:
        """Raise an error if a fit cannot have made it."""
        check_fields(self, MeanOfNoise)
        require(type(self.number) is int, "a mean of noise has no number")
        columns.joint(self.number)


@dataclass(frozen=True)
class GivenRegressor:
    """A regressor of the user's."""

    regressor: Any

    def predict(self, X: NDArray[Any]) -> Any:
        """Whatever it predicts."""
        return self.regressor.predict(X)

    def evaluate(self, inputs: Inputs) -> Array:
        """Mean of each row, of shape (1, n)."""
        return np.asarray(self.regressor.predict(inputs.clipped), dtype=np.float64)[None]

    def check(self, columns: Columns) -> None:
        """Raise an error if a fit cannot have made it; the regressor answers for itself."""
        check_fields(self, GivenRegressor)
        require(is_estimator(self.regressor), "a given regressor is no estimator")
        require(hasattr(self.regressor, "predict"), "a given regressor cannot predict")


def check_reading(networks: Any, encoded: Any, columns: Columns, further: int = 0) -> None:
    """Refuse networks that cannot read these columns, and so many further ones."""
    require(type(encoded) is bool, "networks read columns of no known kind")
    check_part(networks, Networks)
    read = (columns.encoded if encoded else columns.plain) + further
    require(networks.x_mean.shape[1] == read, "networks are of another number of columns")
    free = math.isinf(networks.architecture.input_bound)
    require(free or not encoded, "networks of encoded columns have a bound on their inputs")
