"""Tables that must hold finite numbers, and where they do not."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

AT_ONCE = 2**18  # numbers that are looked at together
_REMEDIES = {
    "NaN": "impute it first, as SimpleImputer(add_indicator=True) does in a pipeline",
    "infinity": "replace it by a number first",
}


class NotFiniteError(ValueError):
    """A table holds NaN or infinity; says which, where, and what to do.

    Parameters
    ----------
    kind : {"NaN", "infinity"}
    place : str
        Of the cell within its row.
    row : int
        Counted from 0.
    others : int
        Further cells that are not finite.
    """

    def __init__(self, kind: str, place: str, row: int, others: int) -> None:
        super().__init__(kind, place, row, others)  # so that it can be pickled

    def __str__(self) -> str:
        kind, place, row, others = self.args
        more = f", and {others:,} more such cell{'s'[: others > 1]}" if others else ""
        return (
            f"Input X contains {kind} in {place}, row {row} (counted from 0){more}: "
            f"{_REMEDIES[kind]}, or leave such rows out."
        )

    def among(self, rows: NDArray[np.int64]) -> NotFiniteError:
        """The same said of a table that these rows were taken from."""
        kind, place, row, others = self.args
        return NotFiniteError(kind, place, int(rows[row]), others)


@contextlib.contextmanager
def rows_of_whole(rows: NDArray[np.int64]) -> Iterator[None]:
    """As a block: what is wrong with some rows of a table is said of the whole."""
    try:
        yield
    except NotFiniteError as error:
        raise error.among(rows) from None


def check_finite(table: NDArray[Any], names: Sequence[str] | None = None) -> None:
    """Refuse a table of shape (n, ...) that holds NaN or infinity.

    ``names`` are those of the columns, if they have some.
    """
    _refuse(table, names, lambda some: ~np.isfinite(some))


def has_gaps(table: NDArray[Any], names: Sequence[str] | None = None) -> bool:
    """Whether a table holds NaN, which is a gap; infinity is refused."""
    if _sum_is_finite(table):
        return False
    _refuse(table, names, np.isinf)
    return bool(np.isnan(table).any())


def _sum_is_finite(table: NDArray[Any]) -> bool:
    """Whether all numbers are finite, told without an array of truth values as large as it."""
    with np.errstate(all="ignore"):
        return bool(np.isfinite(table.sum(dtype=np.float64)))


def _refuse(
    table: NDArray[Any],
    names: Sequence[str] | None,
    wrong: Callable[[NDArray[Any]], NDArray[np.bool_]],
) -> None:
    """Raise an error that tells the first cell that is wrong, and how many there are."""
    if _sum_is_finite(table):
        return
    first: tuple[int, ...] | None = None
    count = 0
    step = max(1, AT_ONCE // max(1, table[:1].size))
    for start in range(0, len(table), step):
        bad = wrong(table[start : start + step])
        found = int(np.count_nonzero(bad))
        if found and first is None:
            row, *place = (int(i) for i in np.unravel_index(bad.argmax(), bad.shape))
            first = (start + row, *place)
        count += found
    if first is not None:  # else only the sum was too large
        kind = "NaN" if np.isnan(table[first]) else "infinity"
        raise NotFiniteError(kind, _place(first[1:], names), first[0], count - 1)


def _place(index: tuple[int, ...], names: Sequence[str] | None) -> str:
    if len(index) != 1:
        return f"position {index}"
    return f"column {index[0]}" if names is None else f"column {str(names[index[0]])!r}"
