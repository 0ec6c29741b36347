"""What the scores are given, checked, and averages that neither overflow nor vanish."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mvenet.distributions import Distribution, Joint, Normal
from mvenet.distributions._checks import check, check_shape, real

FloatArray: TypeAlias = NDArray[np.float64]
Forecast: TypeAlias = Distribution | ArrayLike
Given: TypeAlias = ArrayLike | None


def checked_inputs(
    y_true: ArrayLike, dist: Forecast, std: Given, sample_weight: Given
) -> tuple[FloatArray, Distribution, FloatArray | None]:
    """Outcomes, distribution and weights, checked, of the rows that count."""
    predicted = distribution_of(dist, std)
    y = numbers("y_true", y_true)
    check_shape("y_true", y, (len(predicted),), "pass one outcome for each prediction")
    weight = weights_of(sample_weight, len(predicted))
    if weight is None or weight.all():
        return y, predicted, weight
    rows = np.flatnonzero(weight)  # an infinite score times a weight of 0 would be NaN
    return y[rows], predicted[rows], weight[rows]


def weighted(
    dist: Forecast, std: Given, sample_weight: Given
) -> tuple[Distribution, FloatArray | None]:
    predicted = distribution_of(dist, std)
    return checked_inputs(np.zeros(len(predicted)), predicted, None, sample_weight)[1:]


def residuals(
    y_true: ArrayLike, dist: Forecast, std: Given, sample_weight: Given
) -> tuple[FloatArray, FloatArray | None]:
    if std is None and not isinstance(dist, Distribution | Joint):
        dist = numbers("mean", dist)
        std = np.ones(dist.shape)
    y, predicted, weight = checked_inputs(y_true, dist, std, sample_weight)
    return y - predicted.mean, weight


def distribution_of(dist: Forecast, std: Given) -> Distribution:
    if isinstance(dist, Joint):
        raise ValueError(f"dist must be of one target, got {dist!r}; pass its marginal(name)")
    if not isinstance(dist, Distribution):
        if std is None:
            raise ValueError("std must be given if dist holds means, got None; pass std=...")
        mean = numbers("mean", dist)
        if mean.ndim > 1:
            remedy = "pass NormalMixture(means, stds) for an ensemble, or flatten a column"
            raise ValueError(f"mean must have shape (n,), got {mean.shape}; {remedy}")
        dist = Normal(mean, numbers("std", std))
    elif std is not None:
        rule = f"std must be None beside {dist!r}, which has its own"
        raise ValueError(f"{rule}, got {type(std).__name__}; leave it out")
    if not len(dist):
        raise ValueError(f"dist must have at least one row, got {dist!r}; pass some predictions")
    return dist


def weights_of(sample_weight: Given, n: int) -> FloatArray | None:
    if sample_weight is None:
        return None
    weight = numbers("sample_weight", sample_weight)
    check_shape("sample_weight", weight, (n,), "pass one weight per row")
    check("sample_weight", weight, weight >= 0.0, "not be negative", "use 0 to leave a row out")
    if not weight.any():
        raise ValueError("sample_weight must not be 0.0 for all rows; give one a positive weight")
    shares: FloatArray = weight / weight.max()  # before any sum, which could overflow
    return shares


def numbers(name: str, value: ArrayLike) -> FloatArray:
    # A distribution has a length and rows: NumPy would take it for a nested list without end.
    if isinstance(value, Distribution | Joint):
        raise ValueError(f"{name} must hold numbers, got {value!r}; pass it as dist")
    array = real(name, value)
    check(name, array, np.isfinite(array), "be finite", "drop such rows")
    return array


def mean_of(values: FloatArray, weight: FloatArray | None) -> float:
    return float(np.average(values, weights=weight))


def mean_by_level(
    values: NDArray[Any], weight: FloatArray | None, levels: FloatArray
) -> float | FloatArray:
    means = np.array([mean_of(column, weight) for column in values.T])
    return means if levels.ndim else float(means[0])


def root_mean_square(values: FloatArray, weight: FloatArray | None) -> float:
    largest = float(np.abs(values).max()) or 1.0  # squares of 1e200 overflow, of 1e-200 vanish
    return largest * math.sqrt(mean_of((values / largest) ** 2, weight))
