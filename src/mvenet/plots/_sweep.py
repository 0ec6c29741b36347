"""What to draw along one axis: a feature that varies while the others stay, or rows at hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mvenet.distributions import Distribution
from mvenet.distributions._checks import check_shape
from mvenet.explain._source import Cells, Source, typical
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
    source = Source(X, getattr(estimator, "feature_names_in_", ()))
    position = source.position(feature, "feature")
    observed = _numeric(source.cells(position), feature)
    values = _grid(observed, grid, feature)
    cells = [source.cells(column) for column in range(source.width)]
    table = _filled(source, cells, position, values)
    name = plain(source.label(position)) if source.names or source.width > 1 else "x"
    label = name if source.width == 1 else f"{name}\n(other columns at their median)"
    return Sweep(table, values, observed, label)


def _filled(source: Source, cells: list[Cells], position: int, values: Array) -> Any:
    """A table of so many typical rows, but for one column."""
    rows = np.zeros(len(values), dtype=np.int64)
    filled = Source(source.with_numbers(rows, position, values), source.names)
    for column, own in enumerate(cells):
        if column == position:
            continue
        every = np.arange(len(values))
        if own.kind == "number" and len(own.given):
            middle = np.full(len(values), np.median(own.numbers[own.given]))
            table = filled.with_numbers(every, column, middle)
        else:
            usual = np.full(len(values), typical(own))
            table = filled.with_cells(every, [column], usual, source)
        filled = Source(table, source.names)
    return filled.table


def _numeric(column: Cells, feature: Any) -> Array:
    if column.kind != "number":
        raise ValueError(f"feature={feature!r} holds no numbers: choose another column.")
    return column.numbers


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
