"""Plain rows, parsed to numbers at once and written again as they stand.

Most files that are predicted for are numbers between separators, and nothing else. Their cells need
no text each: the model takes the numbers, and a prediction is put at the end of its line.
"""

from __future__ import annotations

import re
from collections.abc import Collection

import polars as pl

from mvenet import _engine
from mvenet.table._sniffing import Format


def plain_rows(block: bytes, found: Format, numbers: Collection[str]) -> pl.DataFrame | None:
    """The cells of a block of whole lines, those of some columns as numbers.

    Returns
    -------
    polars.DataFrame of shape (n_lines, n_columns)
        Or None if a look at each cell is needed: quotes, blank or short lines, a number that is
        none.
    """
    if b'"' in block or b"\r" in block:
        return None
    kinds = {name: pl.Float64() if name in numbers else pl.String() for name in found.names}
    try:
        cells = pl.read_csv(
            block, has_header=False, separator=found.separator, quote_char=None, schema=kinds
        )
    except pl.exceptions.PolarsError:
        return None
    if len(cells) != _engine.count_lines(block):
        return None
    finite = all(column.is_finite().all() for column in cells if column.dtype == pl.Float64)
    return cells if finite and all_whole(block, found, cells) else None


def all_whole(block: bytes, found: Format, cells: pl.DataFrame) -> bool:
    """Whether no line is blank or lacks cells, which polars takes for missing ones."""
    if block[:1] in b"\r\n":
        return False
    if not cells[:, -1].null_count():  # most files: a look at each byte takes as long as parsing
        return True
    n = len(found.names) - 1
    plain = re.sub(b'"[^"]*"', b"", block) if b'"' in block else block
    return n > 0 and plain.count(found.separator.encode()) == n * len(cells)
