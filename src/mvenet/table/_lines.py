"""Plain rows, parsed to numbers at once and written again as they stand.

Most files that are predicted for are numbers between separators, and nothing else. Their cells need
no text each: the model takes the numbers, and a prediction is put at the end of its line.
"""

from __future__ import annotations

import io
from collections.abc import Collection

import polars as pl

from mvenet.table._sniffing import Format

NOWHERE = "\x01"  # a separator that no such file has


def plain_rows(
    block: bytes, found: Format, numbers: Collection[str]
) -> tuple[pl.DataFrame, pl.DataFrame] | None:
    """The lines of a block and its cells, those of some columns as numbers.

    Returns
    -------
    lines : polars.DataFrame of shape (n, 1)
        Called as the line of column names.
    cells : polars.DataFrame of shape (n, n_columns)

    or None if a look at each cell is needed: quotes, blank or short lines, a number that is none.
    """
    if any(mark in block for mark in (b'"', b"\r", NOWHERE.encode())):
        return None
    kinds: dict[str, pl.DataType] = {
        name: pl.Float64() if name in numbers else pl.String() for name in found.names
    }
    try:
        lines = _parsed(block, NOWHERE, {header(found.names, found.separator): pl.String()})
        cells = _parsed(block, found.separator, kinds)
    except pl.exceptions.PolarsError:
        return None
    if len(lines) != len(cells) or lines[:, 0].null_count() or _short(block, found, cells):
        return None
    finite = all(column.is_finite().all() for column in cells if column.dtype == pl.Float64)
    return (lines, cells) if finite else None


def header(names: list[str], separator: str) -> str:
    """The line of column names as it is written, with quotes where they are needed."""
    made = io.BytesIO()
    pl.DataFrame(schema=dict.fromkeys(names, pl.String())).write_csv(made, separator=separator)
    return made.getvalue().decode().removesuffix("\n")


def _parsed(block: bytes, separator: str, kinds: dict[str, pl.DataType]) -> pl.DataFrame:
    return pl.read_csv(block, has_header=False, separator=separator, quote_char=None, schema=kinds)


def _short(block: bytes, found: Format, cells: pl.DataFrame) -> bool:
    """Whether a line lacks cells, which polars takes for missing ones."""
    if not cells[:, -1].null_count():
        return False
    return block.count(found.separator.encode()) != (len(found.names) - 1) * len(cells)
