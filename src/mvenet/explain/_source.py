"""Tables as a user has them: rows taken, and cells put into columns, whatever kind they are.

A column is changed before any encoding: what is shuffled is the date, not its sine. New cells come
from other rows of the same table wherever they are no numbers, so that no type is ever guessed.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Cells:
    """A column, read.

    Attributes
    ----------
    kind : {"number", "date", "level"}
    numbers : ndarray of shape (n,)
        The numbers, or moments as numbers; NaN for a gap. Of levels, a number for each.
    shown : ndarray of shape (n,), object
        The cells as Python has them; None for a gap.
    """

    kind: str
    numbers: Array
    shown: NDArray[Any]

    @property
    def given(self) -> Rows:
        """Rows that have no gap here."""
        return np.flatnonzero(~np.isnan(self.numbers))


class Source:
    """A table of rows and columns, read and changed by position.

    Parameters
    ----------
    X : ndarray, DataFrame of pandas or polars, Arrow table, or lists of numbers
    names : sequence of str
        Of the columns, if X has no names of its own.
    what : str
        What it is called in error messages.
    read : Source or None
        The same rows as a model's encoder reads them: it may know that a text is a date.
    """

    def __init__(
        self, X: Any, names: Sequence[Any] = (), what: str = "X", read: Source | None = None
    ) -> None:
        self.what, self._read = what, read
        self.table, self._kind = _known(X, what)
        if self._kind == "array":
            self.names = list(names) if len(names) == self.table.shape[1] else []
        elif self._kind == "arrow":
            self.names = list(self.table.column_names)
        else:
            self.names = list(self.table.columns)
        if len(set(map(str, self.names))) < len(self.names):
            twice = next(name for name, count in Counter(map(str, self.names)).items() if count > 1)
            raise ValueError(f"{what} has several columns named {twice!r}: rename them first.")

    def __len__(self) -> int:
        return int(self.table.shape[0])

    @property
    def width(self) -> int:
        """How many columns there are."""
        return int(self.table.shape[1])

    @property
    def is_array(self) -> bool:
        """Whether it is an array, and no frame."""
        return self._kind == "array"

    def label(self, column: int) -> str:
        """What a column is called."""
        return str(self.names[column]) if self.names else f"x{column}"

    def position(self, column: Any, argument: str = "column") -> int:
        """The place of a column that is given by its name or number."""
        if self.names and column in self.names:  # a name may be a number, too
            return self.names.index(column)
        if isinstance(column, str):
            known = f"one of {list(map(str, self.names))}" if self.names else "a number"
            remedy = known if self.names else f"{known}: {self.what} has no names"
            raise ValueError(f"{argument}={column!r} is no column of {self.what}: use {remedy}.")
        whole = isinstance(column, int | np.integer) and not isinstance(column, bool)
        if not whole or not -self.width <= column < self.width:
            raise ValueError(
                f"{argument}={column!r} is no column of {self.what}: use a name, or a number from "
                f"0 to {self.width - 1}."
            )
        return int(column) % self.width

    def cells(self, column: int) -> Cells:
        """Read a column."""
        own = self._own_cells(column)
        if self._read is None or own.kind != "level" or self.label(column) not in self._read.names:
            return own
        read = self._read.cells(self._read.names.index(self.label(column)))
        numeric = read.kind == "number" and len(np.unique(read.numbers[read.given])) > 2
        return read if numeric or read.kind == "date" else own

    def _own_cells(self, column: int) -> Cells:
        if self._kind == "array":
            return _of_array(self.table[:, column])
        if self._kind == "arrow":
            return _of_objects(self.table.column(column).to_pylist())
        if self._kind == "polars":
            return _of_polars(self.table.to_series(column))
        return _of_pandas(self.table.iloc[:, column])

    def check_like(self, other: Source) -> None:
        """Refuse a table of another kind, or with other columns."""
        if self._kind != other._kind or list(map(str, self.names)) != list(map(str, other.names)):
            raise ValueError(
                f"{self.what} is no table like {other.what}: pass the same columns, in the same "
                "order, in the same kind of table."
            )

    def rows(self, index: Rows) -> Any:
        """Some rows, in this order, as a table of the same kind."""
        if self._kind == "array":
            return self.table[index]
        if self._kind == "arrow":
            return self.table.take(index)
        return self.table[index] if self._kind == "polars" else self.table.iloc[index]

    def with_cells(
        self, index: Rows, columns: Sequence[int], others: Rows, giver: Source | None = None
    ) -> Any:
        """Some rows whose cells in some columns are those of other rows, or of another table's."""
        table, source = self.rows(index), (self if giver is None else giver).table
        for column in columns:
            if self._kind == "array":
                table = table.astype(np.result_type(table, source), copy=False)
                table[:, column] = source[others, column]
            elif self._kind == "arrow":
                cells = source.column(column).take(others)
                table = table.set_column(column, self.names[column], cells)
            elif self._kind == "polars":
                table = table.clone().replace_column(column, source.to_series(column)[others])
            else:
                table = table.copy(deep=False)
                table.isetitem(column, source.iloc[:, column].array[others])
        return table

    def with_numbers(self, index: Rows, column: int, numbers: Array) -> Any:
        """Some rows with other numbers in a column of numbers."""
        table = self.rows(index)
        if self._kind == "array":
            if table.dtype.kind in "biu":
                table = table.astype(np.float64)
            table[:, column] = numbers
            return table
        if self._kind == "arrow":
            return table.set_column(column, self.names[column], [numbers])
        if self._kind == "polars":
            series = type(table.to_series(column))
            return table.clone().replace_column(column, series(self.names[column], numbers))
        table = table.copy(deep=False)
        table.isetitem(column, numbers)
        return table


def _known(X: Any, what: str) -> tuple[Any, str]:
    """The table, and what kind it is of; told by what it can do, as its library may be absent."""
    library = type(X).__module__.partition(".")[0]
    if library in ("pandas", "polars") and hasattr(X, "columns") and hasattr(X, "shape"):
        table, kind = X, library
    elif library == "pyarrow" and hasattr(X, "column_names"):
        table, kind = X, "arrow"
    elif hasattr(X, "iloc") and hasattr(X, "columns"):  # a subclass of pandas' frame
        table, kind = X, "pandas"
    else:
        table, kind = np.asarray(X), "array"
    if len(table.shape) != 2 or 0 in table.shape:
        raise ValueError(
            f"{what} must have shape (n, n_features), got {tuple(table.shape)}: pass a dense table "
            "that has rows and columns."
        )
    return table, kind


def _of_array(column: NDArray[Any]) -> Cells:
    if column.dtype.kind in "iuf":
        return _numbers(column)
    if column.dtype.kind in "mM":
        return _moments(column, column.astype(object))
    return _of_objects(column.tolist())


def _of_pandas(column: Any) -> Cells:
    kind = getattr(column.dtype, "kind", "O")
    if kind in "iuf":
        return _numbers(column.to_numpy(dtype=np.float64, na_value=np.nan))
    if kind in "mM":
        zone = getattr(column.dtype, "tz", None)
        plain = column if zone is None else column.dt.tz_convert("UTC").dt.tz_localize(None)
        return _moments(plain.to_numpy(), np.asarray(column.astype(object), dtype=object))
    return _of_objects([None if gap else v for v, gap in zip(column, column.isna(), strict=True)])


def _of_polars(column: Any) -> Cells:
    if column.dtype.is_numeric():
        return _numbers(column.cast(float, strict=False).to_numpy())
    shown = _objects(column.to_list())
    if column.dtype.is_temporal():
        moments = column.to_physical().cast(float).to_numpy()
        return Cells("date", np.asarray(moments, dtype=np.float64), shown)
    return _of_objects(list(shown))


def _of_objects(values: list[Any]) -> Cells:
    """Python's objects: numbers, moments, or else levels."""
    values = [None if value is None or value != value else value for value in values]
    given = [value for value in values if value is not None]
    truths = any(isinstance(value, bool | np.bool_) for value in given)
    if given and not truths and all(isinstance(value, Real) for value in given):
        return _numbers(np.array([np.nan if v is None else float(v) for v in values]))
    if given and all(isinstance(value, datetime.date) for value in given):
        moments = [np.nan if v is None else _seconds(v) for v in values]
        return Cells("date", np.array(moments), _objects(values))
    texts = [None if value is None else str(value) for value in values]
    known = {text: code for code, text in enumerate(sorted({t for t in texts if t is not None}))}
    codes = [np.nan if text is None else float(known[text]) for text in texts]
    return Cells("level", np.array(codes, dtype=np.float64), _objects(values))


def _seconds(moment: datetime.date) -> float:
    if not isinstance(moment, datetime.datetime):
        return 86_400.0 * moment.toordinal()
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=datetime.UTC)
    return aware.timestamp() + 86_400.0 * datetime.date(1970, 1, 1).toordinal()


def _numbers(values: NDArray[Any]) -> Cells:
    numbers = np.asarray(values, dtype=np.float64)
    shown = _objects([None if np.isnan(value) else value.item() for value in numbers])
    return Cells("number", numbers, shown)


def _moments(values: NDArray[Any], shown: NDArray[Any]) -> Cells:
    gap = np.isnat(values)
    unit = "timedelta64[us]" if values.dtype.kind == "m" else "datetime64[us]"
    numbers = values.astype(unit).astype(np.int64).astype(np.float64)
    numbers[gap] = np.nan
    kept = shown.copy()
    kept[gap] = None
    return Cells("date", numbers, kept)


def _objects(values: list[Any]) -> NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def typical(cells: Cells) -> int:
    """A row with a cell that is typical: the number or moment in the middle, or the usual level."""
    given = cells.given
    if not len(given):
        return 0
    order = np.argsort(cells.numbers[given], kind="stable")
    if cells.kind != "level":
        return int(given[order[(len(given) - 1) // 2]])
    most = Counter(cells.numbers[given].tolist()).most_common(1)[0][0]
    return int(given[np.flatnonzero(cells.numbers[given] == most)[0]])
