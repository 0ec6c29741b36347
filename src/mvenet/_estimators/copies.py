"""Exact copies of rows: counted, and taken as one row where a table mostly consists of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvenet._automatic.constants import FEWEST_ROWS_TESTED, STAND_TWICE
from mvenet._training.plan import Table

FEWEST_DIFFERENT = 20  # rows: with fewer, equal rows are no surprise
Rows = NDArray[np.int64]


def first_equal(table: Table) -> Rows:
    """For each row that counts the first that is equal in all columns and in y, often itself."""
    tied = table.dependence
    also = () if tied is None else (part for part in (tied.groups, tied.time) if part is not None)
    return _first(table, [table.y, *also])


def once(table: Table, choice: str = "auto") -> Table:
    """The table with each row once, if that is chosen, or if it mostly consists of copies.

    A table that was joined to itself does. Rows of few columns with few values are equal by chance:
    there, equal columns come with different targets, too. The weight of a row is then the average
    of its copies'. Else it is the table itself.
    """
    rows = table.rows
    if choice == "apart" or (choice == "auto" and table.dependence is not None):
        return table
    first = first_equal(table)
    kept = np.unique(first)
    if len(kept) == len(rows) or (choice == "auto" and not _joined_to_itself(table, first, kept)):
        return table
    of = np.arange(len(table.y))
    of[rows] = first
    weight = table.weight
    if weight is not None:
        total = np.bincount(first, weights=weight[rows], minlength=len(of))
        weight = total / np.maximum(np.bincount(first, minlength=len(of)), 1)
    return replace(table, rows=kept, weight=weight, first=of)


def _joined_to_itself(table: Table, first: Rows, kept: Rows) -> bool:
    """Whether copies are so many that no chance explains them."""
    n = len(table.rows)
    if n < FEWEST_ROWS_TESTED or standing_twice(first) <= STAND_TWICE * n:
        return False
    return len(kept) >= FEWEST_DIFFERENT and len(kept) <= 1.05 * len(np.unique(_first(table)))


def standing_twice(first: Rows) -> int:
    """How many rows stand more than once, the first of each included."""
    _, counts = np.unique(first, return_counts=True)
    return int(counts[counts > 1].sum())


def sentence(table: Table) -> str:
    """What was done with copies, in words."""
    assert table.first is not None
    copies = int(np.sum(table.first != np.arange(len(table.first))))
    return (
        f"{copies:,} of {len(table.first):,} rows are exact copies of others: each row is taken "
        "once, since one that is left out must not be trained on; copies='apart' takes them for "
        "observations of their own."
    )


def counted(table: Table) -> str:
    """A line on rows that stand more than once and stay apart; empty if there are none."""
    if table.first is not None:
        return f"\n{sentence(table)}"
    twice = standing_twice(first_equal(table))
    if not twice:
        return ""
    return (
        f"\n{twice:,} of {len(table.rows):,} rows stand more than once; rows to come are taken to "
        "have twins as often (copies='together' takes each row once)."
    )


def spread(estimator: Any, table: Table) -> None:
    """Give copies, in what is known of rows left out, what the first of them has."""
    for name in ("oof_mean_", "oof_std_", "oof_pit_", "oof_fold_"):
        if table.first is not None and hasattr(estimator, name):
            setattr(estimator, name, getattr(estimator, name)[table.first])


def _first(table: Table, before: Sequence[NDArray[Any]] = ()) -> Rows:
    """For each row that counts the first with the same columns, and the same in those before.

    Column by column, and only of rows that have had an equal one so far: mostly few, and soon none.
    """
    rows, first = table.rows, table.rows.copy()
    alike, label = np.arange(len(rows)), np.zeros(len(rows), dtype=np.int64)
    for column in (*before, *table.source.T):
        _, value = np.unique(column[rows[alike]], return_inverse=True)
        pairs = label * (int(value.max()) + 1) + value.ravel()
        _, label, counts = np.unique(pairs, return_inverse=True, return_counts=True)
        label = label.ravel()
        several = counts[label] > 1
        alike, label = alike[several], label[several]
        if not len(alike):
            return first
    _, index, inverse = np.unique(label, return_index=True, return_inverse=True)
    first[alike] = rows[alike[index[inverse.ravel()]]]
    return first
