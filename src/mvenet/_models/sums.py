"""Sums over networks or components in one order, whatever the number of rows.

NumPy adds up an array in an order that depends on its shape, and a product of matrices has no order
at all: the last bit of a row's prediction would depend on the rows beside it.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def total(values: Iterable[Array]) -> Array:
    """Sum of arrays of one shape, the first first."""
    first, *others = values
    result = first.copy()
    for value in others:
        result += value
    return result


def average(values: Array) -> Array:
    """Mean over the first axis."""
    return total(values) / len(values)


def variance(values: Array) -> Array:
    """Variance over the first axis."""
    return average(np.square(values - average(values)))


def weighted(weights: Array, values: Array) -> Array:
    """Weighted sum over the first axis."""
    return total(weight * value for weight, value in zip(weights, values, strict=True))
