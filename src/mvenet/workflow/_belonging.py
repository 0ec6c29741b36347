"""Which rows of a table belong together, by the names of its columns; for whom a promise holds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from polars.selectors import by_name

from mvenet._columns import cells as columns
from mvenet._columns import dates

Array = NDArray[np.float64]
Rows = NDArray[np.int64]
MOST_STRETCHES = 12  # that coverage is told of, one by one
ROWS_OF_A_STRETCH = 20  # at least


@dataclass(frozen=True)
class By:
    """What coverage is told apart by: the groups of rows, or stretches along time.

    Attributes
    ----------
    name : str
        Of the column.
    labels : ndarray of shape (n,)
        Of each row: the name of its group, or when its stretch begins.
    along : bool
        Whether they are stretches of time.
    """

    name: str
    labels: NDArray[Any]
    along: bool


@dataclass(frozen=True)
class Belonging:
    """The columns that tie rows together, and what they say of each row.

    Attributes
    ----------
    group, time : str or None
        Names of the columns.
    horizon : float or None
        In units of the time column; days, if it holds dates.
    groups : ndarray of str or None
    moments : ndarray or None
    dated : bool
        Whether the time column holds dates.
    form : str
        How they are written.
    """

    group: str | None = None
    time: str | None = None
    horizon: float | None = None
    groups: NDArray[Any] | None = None
    moments: Array | None = None
    dated: bool = False
    form: str = ""

    @staticmethod
    def of(
        X: pl.DataFrame, target: str, group: str | None, time: str | None, horizon: float | None
    ) -> Belonging:
        """Read the columns of a table, each of which must be there and whole."""
        for name, column in (("group", group), ("time", time)):
            if column == target:
                raise ValueError(f"{name}={column!r} is the target: name another column.")
            if column is not None and column not in X.columns:
                raise ValueError(f"There is no column {column!r}: {columns._hint(column, X)}")
        if horizon is not None and time is None:
            raise ValueError(f"horizon={horizon:g} needs time: name the column that orders rows.")
        if group is not None and group == time:
            raise ValueError(f"group={group!r} and time={time!r} are one column: name two.")
        groups = None if group is None else _whole(columns.texts(X[group]), group).to_numpy()
        moments, dated, form = (None, False, "") if time is None else _moments(X[time], time)
        if moments is not None and horizon is not None and horizon > np.ptp(moments) / 3:
            raise ValueError(
                f"horizon={horizon:g} is more than a third of what {time} spans "
                f"({np.ptp(moments):g}): too little would be left to learn from. Use a shorter one."
            )
        return Belonging(group, time, horizon, groups, moments, dated, form)

    def inputs(self, X: pl.DataFrame) -> pl.DataFrame:
        """The table without the column of groups, of which new rows have new values."""
        if self.group is None:
            return X
        if X.width == 1:
            raise ValueError(f"No column can be used to predict: there is none but {self.group!r}.")
        return X.drop(by_name(self.group))

    def given(self, rows: Rows) -> dict[str, Any]:
        """Arguments of ``fit`` for some of the rows."""
        arguments: dict[str, Any] = {}
        if self.groups is not None:
            arguments["groups"] = self.groups[rows]
        if self.moments is not None:
            arguments |= {"time": self.moments[rows], "horizon": self.horizon}
        return arguments

    def split(self, holdout: float, seed: int | None) -> tuple[Rows, Rows] | None:
        """Rows to train on and rows held out: whole groups, or the last stretch; None if neither.

        Of later rows of new groups none are held out: those would be few, and cost many others.
        """
        if self.groups is not None and self.moments is not None:
            return np.arange(len(self.groups)), np.arange(0)
        if self.groups is not None:
            return _groups_held_out(self.groups, holdout, seed)
        if self.moments is None:
            return None
        last = float(self.moments.max())
        ordered = np.sort(self.moments)
        start = ordered[-math.ceil(holdout * len(ordered))]
        if self.horizon is not None:
            start = last - self.horizon
        held = self.moments >= start if self.horizon is None else self.moments > start
        return np.flatnonzero(~held), np.flatnonzero(held)

    def by(self, rows: Rows) -> By | None:
        """What the coverage of some rows is told apart by."""
        if self.groups is not None:
            if len(np.unique(self.groups[rows])) == len(rows):
                return None  # a share of one row says nothing
            return By(str(self.group), self.groups[rows], along=False)
        if self.moments is None:
            return None
        return By(str(self.time), stretches_of(self.moments[rows], self.dated), along=True)

    def promise(self, rows: Rows) -> str:
        """For whom the intervals of a model that was fitted to these rows hold."""
        if self.moments is None:
            return "" if self.group is None else f"rows of new values of {self.group}"
        length = self.horizon
        if length is None:
            ordered = np.sort(self.moments[rows])
            length = float(ordered[-1] - ordered[-max(2, len(ordered) // 8)])
        unit = " days" if self.dated else f" of {self.time}"
        later = f"the next {length:.4g}{unit}"
        return later if self.group is None else f"{later}, of new values of {self.group}"


def stretches_of(moments: Array, dated: bool) -> NDArray[Any]:
    """When the stretch begins that each moment is in; stretches have about as many rows."""
    count = max(1, min(MOST_STRETCHES, len(moments) // ROWS_OF_A_STRETCH))
    ordered = np.sort(moments)
    starts = np.unique(ordered[np.linspace(0, len(ordered), count, endpoint=False).astype(int)])
    begins = starts[np.searchsorted(starts, moments, side="right") - 1]
    if not dated:
        return np.asarray(begins)
    return np.asarray(np.floor(begins).astype("datetime64[D]")).astype(str)


def _groups_held_out(groups: NDArray[Any], holdout: float, seed: int | None) -> tuple[Rows, Rows]:
    from sklearn.model_selection import GroupShuffleSplit

    if len(np.unique(groups)) < 3:
        raise ValueError(
            "There are fewer than three groups, too few to hold one out and learn from others: use "
            "holdout=0, or another column."
        )
    split = GroupShuffleSplit(1, test_size=holdout, random_state=seed)
    train, test = next(split.split(groups, groups=groups))
    return np.sort(train), np.sort(test)


def _moments(cells: pl.Series, name: str) -> tuple[Array, bool, str]:
    """When each row was, in days if the column holds dates; whether it does, and how written."""
    plain = _whole(columns.plain_series(cells), name)
    kind, found = columns.taken_for(plain, np.arange(len(plain)))
    if found is not None:
        text = columns.texts(plain) if plain.dtype.is_numeric() else plain
        moments = dates.days(text, found.form)
    elif kind.kind == "number":
        return np.asarray(plain.cast(pl.Float64).to_numpy()), False, ""
    else:
        raise ValueError(
            f"The column {name!r} cannot order rows in time: it holds neither dates nor numbers "
            f"({kind.remark or kind.kind})."
        )
    return moments, True, found.form


def _whole(cells: pl.Series, name: str) -> pl.Series:
    if cells.null_count():
        row = int(np.argmax(cells.is_null().to_numpy()))
        raise ValueError(
            f"The column {name!r} is empty in {cells.null_count():,} row(s), the first of them row "
            f"{row + 1}: fill it in, or leave these rows out."
        )
    return cells
