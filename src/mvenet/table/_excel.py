"""Sheets of Excel and LibreOffice files, by an optional reader (fastexcel)."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import polars as pl

from mvenet._utils.wording import no_file
from mvenet.table._sniffing import names_of

EXCEL = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")  # endings of names
MOST_SHEETS = 10  # that are named


def read_sheet(place: Path, sheet: str | None, header_rows: int) -> pl.DataFrame:
    """A sheet as a table: numbers, dates and truth values as the file has them.

    A column of different types is text, of which the encoder makes what it can.
    """
    fastexcel = _reader()
    if not place.exists():
        raise FileNotFoundError(no_file(place))
    try:
        book = fastexcel.read_excel(place)
        name = _chosen(book.sheet_names, sheet, place)
        head = book.load_sheet(name, header_row=None, n_rows=header_rows, dtypes="string")
        header = [[cell or "" for cell in row] for row in head.to_polars().rows()]
        if not header or not any(map(any, header)):
            raise ValueError(f"{place} has nothing in the sheet {name!r}: name another one.")
        names = names_of(header, max(map(len, header)), str(place))
        below = _below(book, name, header_rows)
    except fastexcel.FastExcelError as error:
        reason = str(error).splitlines()[0]
        raise ValueError(
            f"{place} cannot be read as Excel ({reason}): write it again, or as CSV."
        ) from error
    if below is None:
        return pl.DataFrame(schema=dict.fromkeys(names, pl.String()))
    extra = [f"unnamed {i + 1}" for i in range(len(names), below.width)]
    frame = below.rename(dict(zip(below.columns, [*names, *extra], strict=True)))
    kept = [column for column in frame if column.null_count() < len(column) or column.name in names]
    whole = pl.DataFrame(kept)
    return whole.filter(~pl.all_horizontal(pl.all().is_null()))  # blank rows, as in a CSV


def _reader() -> Any:
    try:
        return import_module("fastexcel")
    except ImportError as error:
        raise ImportError(
            "An Excel file needs fastexcel: pip install 'mvenet[excel]', or save it as CSV.",
            name="fastexcel",
        ) from error


def _below(book: Any, name: str, header_rows: int) -> pl.DataFrame | None:
    """The rows below the header; None if there are none."""
    try:
        sheet = book.load_sheet(
            name, header_row=None, skip_rows=header_rows, schema_sample_rows=None
        )
        found: pl.DataFrame = sheet.to_polars()
    except _reader().InvalidParametersError:  # fewer rows than are to be skipped
        return None
    return found if found.width else None


def _chosen(names: list[str], sheet: str | None, place: Path) -> str:
    """The sheet that is meant: the one named, or the only one."""
    shown = ", ".join(map(repr, names[:MOST_SHEETS]))
    if sheet is not None and sheet not in names:
        raise ValueError(f"{place} has no sheet={sheet!r}: it has {shown}.")
    if sheet is None and len(names) > 1:
        raise ValueError(
            f"{place} has {len(names)} sheets, {shown}: name one, such as sheet={names[0]!r}."
        )
    return names[0] if sheet is None else sheet
