"""Exact copies of rows: counted, and taken as one row where a table mostly consists of them."""

from __future__ import annotations

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
    rows = table.rows
    _, inverse, counts = np.unique(table.y[rows], return_inverse=True, return_counts=True)
    some = counts[inverse.ravel()] > 1  # few, as a rule, have an equal y
    first = rows.copy()
    if some.any():
        first[some] = _first(np.column_stack([table.source[rows[some]], table.y[rows[some]]]),
                             rows[some])  # fmt: skip
    return first


def once(table: Table) -> Table:
    """The table with each row once, if it mostly consists of copies; else the table itself.

    A table that was joined to itself does. Rows of few columns with few values are equal by chance:
    there, equal columns come with different targets, too. The weight of a row is then the average
    of its copies'.
    """
    rows, n = table.rows, len(table.rows)
    if n < FEWEST_ROWS_TESTED:
        return table
    first = first_equal(table)
    twice = standing_twice(first)
    kept = np.unique(first)
    if twice <= STAND_TWICE * n or len(kept) < FEWEST_DIFFERENT:
        return table
    if len(kept) > 1.05 * len(np.unique(_first(table.source[rows], rows))):
        return table
    of = np.arange(len(table.y))
    of[rows] = first
    weight = table.weight
    if weight is not None:
        total = np.bincount(first, weights=weight[rows], minlength=len(of))
        weight = total / np.maximum(np.bincount(first, minlength=len(of)), 1)
    return replace(table, rows=kept, weight=weight, first=of)


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
        "once, since one that is left out must not be trained on. If copies are observations of "
        "their own, give groups to say what belongs together."
    )


def counted(table: Table) -> str:
    """A line on rows that stand more than once and stay apart; empty if there are none."""
    twice = 0 if table.first is not None else standing_twice(first_equal(table))
    if not twice:
        return ""
    return (
        f"\n{twice:,} of {len(table.rows):,} rows stand more than once; rows to come are taken to "
        "have twins as often."
    )


def spread(estimator: Any, table: Table) -> None:
    """Give copies, in what is known of rows left out, what the first of them has."""
    for name in ("oof_mean_", "oof_std_", "oof_fold_"):
        if table.first is not None and hasattr(estimator, name):
            setattr(estimator, name, getattr(estimator, name)[table.first])


def _first(keys: NDArray[Any], rows: Rows) -> Rows:
    keys = np.ascontiguousarray(keys, dtype=np.float64) + 0.0  # no minus zero
    whole = keys.view(np.dtype((np.void, keys.dtype.itemsize * keys.shape[1]))).ravel()
    _, index, inverse = np.unique(whole, return_index=True, return_inverse=True)
    return np.asarray(rows[index[inverse.ravel()]])
