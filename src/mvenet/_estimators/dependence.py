"""What a fit is told of rows that belong together, checked: groups, time and a horizon."""

from __future__ import annotations

import datetime
import math
import warnings
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvenet._training.dependence import Dependence
from mvenet._utils.sklearn import n_rows_of, rows_of

Array = NDArray[np.float64]
DAY = np.timedelta64(1, "D")
MOSTLY = 0.9  # share of the rows from which on one group is most of the table


class DependenceWarning(UserWarning):
    """Rows belong together in a way that a promise about new rows does not know of.

    It says which rows, how strongly, and which argument of ``fit`` mends it. As with every warning,
    a filter makes it an error, or silences it.

    Examples
    --------
    >>> import warnings
    >>> from mvenet import DependenceWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", DependenceWarning)  # where nobody reads warnings
    """


@dataclass(frozen=True)
class Belonging:
    """What ``fit`` was given besides a table: which rows belong together."""

    groups: Any = None
    time: Any = None
    horizon: Any = None

    def of(self, rows: Any) -> Belonging:
        """The same for some of the rows."""
        groups = None if self.groups is None else rows_of(self.groups, rows)
        time = None if self.time is None else rows_of(self.time, rows)
        return Belonging(groups, time, self.horizon)

    def given(self) -> dict[str, Any]:
        """By the names that ``fit`` has for them, those that were given."""
        return {name: value for name, value in vars(self).items() if value is not None}

    def checked(self, n: int, rows: NDArray[np.int64] | None = None) -> Dependence | None:
        """What it says of a table of n rows, of which these count; None if that is nothing."""
        counted = np.arange(n) if rows is None else rows
        groups = None if self.groups is None else _group_numbers(self.groups, n, counted)
        time = None if self.time is None else _moments(self.time, n, counted)
        horizon = _length(self.horizon, time, counted)
        if groups is None and time is None:
            return None
        return Dependence(groups, time, horizon)


NOTHING = Belonging()


def _column(name: str, values: Any, n: int) -> NDArray[Any]:
    """One value for each of n rows."""
    if not hasattr(values, "__len__") and not hasattr(values, "shape"):
        raise ValueError(f"{name}={values!r} is one value: give one for each of the {n} rows.")
    count = n_rows_of(values)
    if count != n:
        raise ValueError(f"{name} has {count} values, and X has {n} rows: give one for each row.")
    column = np.asarray(values)
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.ndim != 1:
        raise ValueError(f"{name} has shape {column.shape}: give one value for each row, ({n},).")
    return column


def _group_numbers(groups: Any, n: int, rows: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """The number of each row's group; None if every row is a group of its own, which is said."""
    column = _column("groups", groups, n)
    missing = _missing(column)
    if missing.any():
        raise ValueError(
            f"groups is missing in {missing.sum():,} row(s), the first of them row "
            f"{int(np.argmax(missing))}: say to which group they belong, or leave them out."
        )
    # An array of a list makes all of them text, and then 1 and "1" are one group.
    given = groups if isinstance(groups, list | tuple) else column
    kinds = sorted({type(value).__name__ for value in given}) if column.dtype.kind in "OU" else []
    if len(kinds) > 1:
        raise ValueError(
            f"groups holds values of several types ({', '.join(kinds)}), which may be the same "
            "group written in two ways: give them one type, such as groups.astype(str)."
        )
    names, numbers = np.unique(column, return_inverse=True)
    counts = np.bincount(numbers[rows], minlength=len(names))
    there = int(np.count_nonzero(counts))
    if there < 2:
        raise ValueError(
            f"groups holds one group only, {names[np.argmax(counts)]!s}: what a new group is like "
            "cannot be learned from one. Leave groups out, and promise nothing about new ones."
        )
    if there == len(rows):
        _warn("groups is different in every row, which is the same as no groups.")
        return None
    if counts.max() > MOSTLY * len(rows):
        _warn(
            f"groups: {names[np.argmax(counts)]!s} holds {counts.max() / len(rows):.0%} of the "
            f"rows. What new groups are like is learned from the {there - 1} other(s), and hardly "
            "from few rows when it is left out."
        )
    return np.asarray(numbers.ravel(), dtype=np.int64)


def _missing(column: NDArray[Any]) -> NDArray[np.bool_]:
    if column.dtype.kind in "mM":
        return np.asarray(np.isnat(column))
    if column.dtype.kind == "O":
        return np.array([v is None or v != v or type(v).__name__ == "NAType" for v in column])
    return np.asarray(column != column)


def _moments(time: Any, n: int, rows: NDArray[np.int64]) -> Array:
    """When each row was, as a number: of dates, days."""
    zone = getattr(getattr(time, "dtype", None), "tz", None)  # of pandas: NumPy knows none
    column = _column("time", time if zone is None else _in_utc(time), n)
    missing = _missing(column)
    if missing.any():
        raise ValueError(
            f"time is missing in {missing.sum():,} row(s), the first of them row "
            f"{int(np.argmax(missing))}: say when they were, or leave them out."
        )
    moments = _as_numbers(column)
    if not np.isfinite(moments).all():
        raise ValueError("time holds values that are not finite: give dates or numbers.")
    if np.ptp(moments[rows]) == 0:
        raise ValueError(
            f"time is {column[rows[0]]!s} in every row, so no row is later than another: leave "
            "time out, or give the column that orders the rows."
        )
    return moments


def _in_utc(time: Any) -> Any:
    """Moments with a zone as those of UTC without one."""
    moments = getattr(time, "dt", time)
    return (
        moments.tz_convert("UTC").tz_localize(None)
        if moments is time
        else (moments.tz_convert("UTC").dt.tz_localize(None))
    )


def _as_numbers(column: NDArray[Any]) -> Array:
    if column.dtype.kind in "iufb":
        return column.astype(np.float64)
    if column.dtype.kind == "O" and all(isinstance(value, Real) for value in column):
        return column.astype(np.float64)
    try:
        if column.dtype.kind == "c":
            raise TypeError  # which NumPy would take for a date
        dates = column.astype("datetime64[us]")
    except (ValueError, TypeError):
        raise ValueError(
            f"time holds {_first_odd(column)!r}, which is neither a number nor a date such as "
            "2024-01-31: give dates, or numbers that order the rows."
        ) from None
    return np.asarray((dates - np.datetime64(0, "us")) / DAY, dtype=np.float64)


def _first_odd(column: NDArray[Any]) -> Any:
    """The first value that is no date."""
    for value in column.tolist():
        try:
            np.datetime64(value, "us")
        except (ValueError, TypeError):
            return value
    return column[0]


def _length(horizon: Any, time: Array | None, rows: NDArray[np.int64]) -> float | None:
    """The horizon in units of time."""
    if horizon is None:
        return None
    if time is None:
        raise ValueError(f"horizon={horizon!r} needs time: say when each row was, too.")
    if isinstance(horizon, datetime.timedelta | np.timedelta64):
        horizon = float(np.timedelta64(horizon) / DAY)
    whole = float(np.ptp(time[rows]))
    number = isinstance(horizon, Real) and not isinstance(horizon, bool)
    if not number or not 0 < float(horizon) < math.inf:
        raise ValueError(
            f"horizon={horizon!r} must be a positive length in units of time (days, if time holds "
            "dates)."
        )
    if float(horizon) > whole / 3:
        raise ValueError(
            f"horizon={horizon:g} is more than a third of what the table spans ({whole:g}): too "
            "little would be left to learn from if two stretches of it are left out. Use a shorter "
            "one."
        )
    return float(horizon)


def _warn(message: str) -> None:
    warnings.warn(message, DependenceWarning, stacklevel=2)
