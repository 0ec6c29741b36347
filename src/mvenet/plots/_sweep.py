"""What to draw along one axis: a feature that varies while the others stay, or rows at hand."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mvenet.distributions import Distribution
from mvenet.distributions._checks import check_shape
from mvenet.metrics._inputs import Forecast, Given, checked_inputs, numbers
from mvenet.plots._style import evenly, plain

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Sweep:
    """A table along one feature.

    Attributes
    ----------
    table : ndarray or DataFrame of shape (n_points, n_features)
    values : ndarray of shape (n_points,)
        The feature, ascending.
    observed : ndarray of shape (n,)
        The feature in the rows of X.
    label : str
        Its name; of several columns also what was done with the others.
    """

    table: Any
    values: Array
    observed: Array
    label: str


def sweep(estimator: Any, X: Any, feature: int | str, grid: int | ArrayLike) -> Sweep:
    """Vary one feature, the others at their median, or their most frequent value if no numbers.

    Parameters
    ----------
    estimator : fitted estimator
        Its ``feature_names_in_`` name the columns of an array.
    X : array-like or DataFrame of shape (n, n_features)
    feature : int or str
        Number or name of the column.
    grid : int or array-like of shape (n_points,)
        So many points from the smallest to the largest value, or the values themselves.

    Examples
    --------
    >>> line = sweep(None, [[0.0, 5.0], [1.0, 9.0], [2.0, 6.0]], 0, 3)
    >>> line.table
    array([[0., 6.],
           [1., 6.],
           [2., 6.]])
    """
    is_frame = hasattr(X, "columns") and hasattr(X, "dtypes")
    if is_frame:
        names = list(X.columns)
        columns = [np.asarray(X[name]) for name in names]
    else:
        array = np.asarray(X)
        if array.ndim != 2 or 0 in array.shape:
            raise ValueError(
                f"X must have shape (n, n_features), got {array.shape}: pass a dense table that "
                "has rows and columns."
            )
        names = list(getattr(estimator, "feature_names_in_", []))
        columns = list(array.T)
    position = _position(feature, names, len(columns))
    observed = _numeric(columns[position], feature)
    values = _grid(observed, grid, feature)
    filled = [np.full(len(values), _typical(column)) for column in columns]
    filled[position] = values
    if is_frame:
        table = type(X)(dict(zip(names, filled, strict=True)))
    else:
        numbers = array.dtype.kind in "biuf"
        table = np.array(filled, dtype=np.float64 if numbers else object).T
    name = plain(names[position]) if names else ("x" if len(columns) == 1 else f"x{position}")
    label = name if len(columns) == 1 else f"{name}\n(other columns at their median)"
    return Sweep(table, values, observed, label)


def _position(feature: Any, names: list[Any], n_columns: int) -> int:
    if isinstance(feature, str):
        if feature in names:
            return names.index(feature)
        known = f"one of {[str(name) for name in names]}" if names else "a number: X has no names"
        raise ValueError(f"feature={feature!r} is no column of X: use {known}.")
    whole = isinstance(feature, int | np.integer) and not isinstance(feature, bool)
    if not whole or not -n_columns <= feature < n_columns:
        raise ValueError(
            f"feature={feature!r} is no column of X: use a name, or a number from 0 to "
            f"{n_columns - 1}."
        )
    return int(feature) % n_columns


def _numeric(column: NDArray[Any], feature: Any) -> Array:
    try:
        if column.dtype.kind in "Mm":
            raise TypeError
        return np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"feature={feature!r} holds no numbers: choose another column.") from None


def _grid(observed: Array, grid: int | ArrayLike, feature: Any) -> Array:
    if np.ndim(grid):
        values = np.unique(np.asarray(grid, dtype=np.float64))
        if values.ndim == 1 and len(values) > 1 and np.isfinite(values).all():
            return values
    elif isinstance(grid, int | np.integer) and grid > 1:
        finite = observed[np.isfinite(observed)]
        if not len(finite):
            raise ValueError(f"feature={feature!r} holds no finite number: choose another column.")
        low, high = float(finite.min()), float(finite.max())
        if low == high:  # a constant has no range: show its surroundings
            low, high = low - max(0.5, 0.05 * abs(low)), high + max(0.5, 0.05 * abs(high))
        return np.linspace(low, high, int(grid))
    raise ValueError(f"grid={grid!r} must be a number of points or a list of values, at least two.")


def _typical(column: NDArray[Any]) -> Any:
    if column.dtype.kind in "iuf":
        finite = column[np.isfinite(column)]
        return float(np.median(finite)) if len(finite) else np.nan
    return Counter(list(column)).most_common(1)[0][0]


def checked_rows(
    y_true: ArrayLike | None, dist: Forecast, std: Given
) -> tuple[Array, Distribution]:
    """Outcomes (zeros for None) and distributions, checked."""
    if y_true is None:
        n = len(dist) if isinstance(dist, Distribution) else np.size(dist)
        y_true = np.zeros(n)
    return checked_inputs(y_true, dist, std, None)[:2]


def places(x: ArrayLike, n: int) -> tuple[Array, NDArray[np.int64]]:
    """Positions of all rows, and which rows to draw, in ascending order of the position."""
    place = numbers("x", x)
    place = place[:, 0] if place.ndim == 2 and place.shape[1] == 1 else place
    check_shape("x", place, (n,), "pass one position for each prediction")
    first = np.unique(place, return_index=True)[1]
    return place, first[evenly(len(first))]


def stretched(x: Array) -> tuple[Array, NDArray[np.int64]]:
    """Positions to draw at and their rows; a single one is given a width, to be seen."""
    if len(x) > 1:
        return x, np.arange(len(x))
    return x[0] + np.array([-0.5, 0.5]), np.zeros(2, dtype=np.int64)
