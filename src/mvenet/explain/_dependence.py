"""How a prediction depends on a column, the others being as they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mvenet.distributions._checks import levels_within
from mvenet.explain._asking import AT_ONCE, Array, distribution, some, source_of, whole
from mvenet.explain._source import Cells, Rows, Source

FEW = 12  # distinct values, each of which is tried
DATES = 73  # moments that are tried: a year has seasons, and weeks
INNER = (0.01, 0.99)  # quantiles between which numbers are tried


@dataclass(frozen=True, eq=False)
class PartialDependence:
    """Predictions for some rows, with a column set to each of k values in turn.

    Attributes
    ----------
    column : str
    kind : {"number", "date", "level"}
        What the column holds.
    values : list of k values
        As they stand in the table, in order.
    levels : ndarray of shape (q,)
        Of the quantiles.
    rows : ndarray of shape (r,), int
        The rows of X that were asked about.
    ice_mean, ice_std : ndarray of shape (r, k)
        Mean and standard deviation of each row at each value ("individual conditional
        expectation"), in units of y.
    ice_quantiles : ndarray of shape (r, k, q)

    Examples
    --------
    See :func:`partial_dependence`.
    """

    column: str
    kind: str
    values: list[Any]
    levels: Array
    rows: Rows
    ice_mean: Array
    ice_std: Array
    ice_quantiles: Array

    @property
    def mean(self) -> Array:
        """Mean, averaged over the rows, of shape (k,)."""
        return np.asarray(self.ice_mean.mean(axis=0))

    @property
    def std(self) -> Array:
        """Standard deviation, averaged over the rows, of shape (k,)."""
        return np.asarray(self.ice_std.mean(axis=0))

    @property
    def quantiles(self) -> Array:
        """Quantiles, each averaged over the rows, of shape (k, q)."""
        return np.asarray(self.ice_quantiles.mean(axis=0))

    def __repr__(self) -> str:
        return (
            f"PartialDependence(column={self.column!r}, {len(self.values)} values, "
            f"{len(self.rows)} rows)"
        )


def partial_dependence(
    estimator: Any,
    X: Any,
    column: int | str,
    *,
    grid: int | ArrayLike | None = None,
    quantiles: ArrayLike = (0.05, 0.5, 0.95),
    max_rows: int = 100,
    random_state: int = 0,
) -> PartialDependence:
    """Partial dependence and ICE of mean, standard deviation and quantiles on a column.

    Parameters
    ----------
    estimator : fitted estimator
        With ``predict_dist(X)`` or ``predict(X, return_std=True)``; a pipeline or a search that
        ends in one.
    X : array-like or DataFrame of shape (n, n_features)
        Rows whose other columns are kept.
    column : int or str
        Number or name of the column.
    grid : int, list or None, default=None
        The values to try: so many evenly spaced numbers (or moments) between the quantiles of 1 %
        and 99 %, or the values themselves. Of a category, they must occur in X. None is 25 numbers,
        73 moments, or of up to twelve distinct values all, and of a category the twelve most
        frequent.
    quantiles : float or list of float in (0, 1), default=(0.05, 0.5, 0.95)
    max_rows : int, default=100
        Of more rows than these, so many are drawn at random.
    random_state : int, default=0
        Seed of that draw.

    Returns
    -------
    PartialDependence

    Notes
    -----
    The rows are asked about combinations of values that may never occur together: where columns go
    with each other, look at :func:`outside` before believing a far end of a curve.

    Examples
    --------
    >>> import numpy as np
    >>> from mvenet import MVERegressor
    >>> from mvenet.explain import partial_dependence
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (300, 2))
    >>> y = X[:, 0] + (0.1 + (X[:, 1] > 0)) * rng.normal(size=300)
    >>> model = MVERegressor(random_state=0).fit(X, y)
    >>> found = partial_dependence(model, X, 1, grid=[-0.5, 0.5])
    >>> bool(found.std[1] > 2 * found.std[0]), found.ice_std.shape
    (True, (100, 2))
    """
    source = source_of(estimator, X)
    place = source.position(column)
    levels = np.atleast_1d(levels_within("quantiles", quantiles, "use 0.5 for the median"))
    rng = np.random.default_rng(random_state)
    rows = some(len(source), whole("max_rows", max_rows, 100), rng)
    cells = source.cells(place)
    tried = _grid(cells, grid, source.label(place))
    tables = _blocks(source, place, rows, tried)
    found = [_asked(estimator, table, levels) for table in tables]
    # Values came one after the other, each with all rows.
    mean, std = (np.concatenate([f[i] for f in found]) for i in (0, 1))
    several = np.concatenate([f[2] for f in found])
    shape = (len(tried), len(rows))
    return PartialDependence(
        source.label(place),
        cells.kind,
        tried.shown,
        levels,
        rows,
        mean.reshape(shape).T,
        std.reshape(shape).T,
        several.reshape(*shape, len(levels)).swapaxes(0, 1),
    )


@dataclass(frozen=True)
class _Tried:
    """Values of a column: numbers, or rows that have them."""

    shown: list[Any]
    numbers: Array | None = None
    rows: Rows | None = None

    def __len__(self) -> int:
        return len(self.shown)


def _blocks(source: Source, column: int, rows: Rows, tried: _Tried) -> Any:
    """Tables of some values at a time, each with all rows."""
    step = max(1, AT_ONCE // len(rows))
    for at in range(0, len(tried), step):
        part = slice(at, at + step)
        count = len(tried.shown[part])
        several = np.tile(rows, count)
        if tried.numbers is not None:
            yield source.with_numbers(several, column, np.repeat(tried.numbers[part], len(rows)))
        else:
            assert tried.rows is not None
            yield source.with_cells(several, [column], np.repeat(tried.rows[part], len(rows)))


def _asked(estimator: Any, table: Any, levels: Array) -> tuple[Array, Array, Array]:
    dist = distribution(estimator, table)
    return dist.mean, dist.std, dist.ppf(levels)


def _grid(cells: Cells, grid: int | ArrayLike | None, name: str) -> _Tried:
    """Values to try; an error that names the column if there is none."""
    if not len(cells.given):
        raise ValueError(f"column={name!r} has gaps only: choose another column.")
    if grid is None:
        return _usual(cells)
    if np.ndim(grid) == 0:
        if isinstance(grid, bool) or not isinstance(grid, int | np.integer) or grid < 2:
            raise ValueError(
                f"grid={grid!r} must be a number of points or a list of values, at least two."
            )
        if cells.kind == "level":
            return _frequent(cells, int(grid))
        return _evenly(cells, int(grid))
    return _given(cells, list(np.asarray(grid, dtype=object)), name)


def _usual(cells: Cells) -> _Tried:
    if cells.kind == "level":
        return _frequent(cells, FEW)
    numbers = cells.numbers[cells.given]
    distinct, first = np.unique(numbers, return_index=True)
    if len(distinct) <= FEW:
        return _from_rows(cells, cells.given[first])
    return _evenly(cells, 25 if cells.kind == "number" else DATES)


def _evenly(cells: Cells, points: int) -> _Tried:
    given = cells.given
    numbers = cells.numbers[given]
    low, high = np.quantile(numbers, INNER)
    places = np.linspace(low, high, points)
    if cells.kind == "number":
        if (numbers == np.round(numbers)).all():  # of whole numbers, whole ones
            places = np.round(places)
        places = np.unique(places)
        return _Tried(places.tolist(), numbers=places)
    # Moments that are there: none has to be made of a type that only the table knows.
    order = given[np.argsort(numbers, kind="stable")]
    after = np.searchsorted(cells.numbers[order], places).clip(0, len(order) - 1)
    before = np.maximum(after - 1, 0)
    nearer = np.abs(cells.numbers[order[before]] - places) < np.abs(
        cells.numbers[order[after]] - places
    )
    return _from_rows(cells, order[np.unique(np.where(nearer, before, after))])


def _frequent(cells: Cells, most: int) -> _Tried:
    given = cells.given
    _, first, count = np.unique(cells.numbers[given], return_index=True, return_counts=True)
    kept = np.sort(np.argsort(-count, kind="stable")[:most])  # of levels, in order of their names
    return _from_rows(cells, given[first[kept]])


def _from_rows(cells: Cells, rows: NDArray[Any]) -> _Tried:
    _, first = np.unique(cells.numbers[rows], return_index=True)
    chosen = rows[first]
    return _Tried([cells.shown[row] for row in chosen], rows=chosen)


def _given(cells: Cells, values: list[Any], name: str) -> _Tried:
    if not values:
        raise ValueError("grid holds no value: name at least one.")
    if cells.kind == "number":
        try:
            numbers = np.unique(np.array(values, dtype=np.float64))
        except (TypeError, ValueError):
            raise ValueError(f"grid={values!r} must hold numbers, as {name!r} does.") from None
        if not np.isfinite(numbers).all():
            raise ValueError(f"grid={values!r} must hold finite numbers.")
        return _Tried(numbers.tolist(), numbers=numbers)
    known = {str(cells.shown[row]): int(row) for row in cells.given[::-1]}
    unknown = [value for value in values if str(value) not in known]
    if unknown:
        raise ValueError(
            f"grid holds {unknown[0]!r}, which is no value of column {name!r} in X: use values "
            f"that are there, such as {next(iter(known))!r}."
        )
    return _from_rows(cells, np.array([known[str(value)] for value in values]))
