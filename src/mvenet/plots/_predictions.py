"""What the pictures ask of an estimator: distributions and intervals, for a few rows or all."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mvenet._utils.sklearn import n_rows_of
from mvenet.distributions import Distribution
from mvenet.distributions._checks import check_shape, levels_within
from mvenet.explain import _asking as asking
from mvenet.explain._asking import check_fitted
from mvenet.metrics._inputs import numbers
from mvenet.predictive import predictive_distribution

Array = NDArray[np.float64]


def predicted(estimator: Any, X: Any) -> Distribution:
    """Predictive distribution of each row; an estimator that must be fitted first is refused."""
    check_fitted(estimator)
    return predictive_distribution(estimator, X)


def intervals(estimator: Any, X: Any, coverage: Array) -> Array:
    """Central prediction intervals of shape (n, k, 2) for k levels: its own, if it has any."""
    check_fitted(estimator)
    return asking.intervals(estimator, X, coverage)


def checked_target(X: Any, y: ArrayLike) -> Array:
    """Outcomes, finite and one for each row of X."""
    target = numbers("y", y)
    check_shape("y", target, (n_rows_of(X),), "pass one outcome for each row of X")
    return target


def checked_levels(name: str, value: ArrayLike) -> Array:
    """Levels of coverage, each once, ascending."""
    levels = np.unique(levels_within(name, value, "write 0.95 for 95 %"))
    if not len(levels):
        raise ValueError(f"{name} must hold at least one level, got {value!r}: use, say, 0.9.")
    return levels
