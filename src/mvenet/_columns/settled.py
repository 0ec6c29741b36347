"""A table of which it is settled what each column is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mvenet._columns import cells as columns
from mvenet._columns.dates import Dates
from mvenet._models.columns import Column


@dataclass(frozen=True, eq=False)
class Settled:
    """Rows of a table which as a whole has told what each column is.

    Whether a word that stands in one row makes a column of truth values one of categories must not
    depend on which rows are held out.

    Attributes
    ----------
    table : polars.DataFrame
        Plain cells: numbers, truth values, dates or text, null for all that means missing.
    found : tuple
        What each column is, and how its dates are written.
    rows : ndarray of shape (n,)
        Numbers of the rows in their file, from 0, for remarks.
    """

    table: pl.DataFrame
    found: tuple[tuple[Column, Dates | None], ...]
    rows: NDArray[Any]

    @staticmethod
    def of(X: Any, rows: NDArray[Any] | None = None) -> Settled:
        """Look at all rows of a frame of polars, pandas or Arrow."""
        if isinstance(X, Settled):
            return X
        given = columns.as_polars(X)
        table = columns.plain(given)
        counted = np.arange(len(table)) if rows is None else rows
        kinds = zip(table, given.dtypes, strict=True)
        found = tuple(columns.taken_for(cells, counted, kind) for cells, kind in kinds)
        return Settled(table, found, counted)

    def __len__(self) -> int:
        return len(self.table)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.table.shape

    def __getitem__(self, rows: NDArray[Any]) -> Settled:
        """Some of the rows; a column that says nothing in them is dropped."""
        some = self.table[rows]
        nothing = map(columns.says_nothing, some)
        found = [f if n is None else (n, None) for f, n in zip(self.found, nothing, strict=True)]
        return Settled(some, tuple(found), self.rows[rows])
