"""How a text file is written: its letters, its separator, its decimal mark, its column names."""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from mvenet._columns.marks import DECIMAL_COMMA, MISSING, PERHAPS_MISSING

SEPARATORS = (",", ";", "\t", "|")
DECIMAL_POINT = re.compile(r"\s*[-+]?\d*\.\d+([eE][-+]?\d+)?\s*")
_NUMBER = re.compile(r"\s*[-+]?(\d+([.,]\d*)?|[.,]\d+)([eE][-+]?\d+)?\s*")
_ROWS = 1000  # looked at


@dataclass(frozen=True)
class Format:
    """How a text file is written.

    Attributes
    ----------
    encoding, separator, decimal : str
        The decimal mark is empty where no number of the beginning has one.
    old_line_ends : bool
        Lines end with a carriage return alone.
    names : list of str
        Of the columns.
    header_bytes, header_lines : int
        What to skip to get to the rows, in UTF-8.
    """

    encoding: str
    separator: str
    decimal: str
    old_line_ends: bool
    names: list[str]
    header_bytes: int
    header_lines: int


def sniff(head: bytes, path: str, header_rows: int = 1) -> Format:
    """Find out how a file is written from its beginning.

    Raises
    ------
    ValueError
        If it is no table with column names.
    """
    if not head.strip(b"\xef\xbb\xbf \t\r\n"):
        raise ValueError(f"{path} is empty: it needs a line of column names and rows.")
    encoding, text = _decoded(head, path)
    old = "\r" in text and "\n" not in text
    text = text.replace("\r", "\n") if old else text
    rows = {separator: _first_rows(text, separator) for separator in SEPARATORS}
    separator = max(SEPARATORS, key=lambda s: _regularity([row for row, _ in rows[s]]))
    cells = [row for row, _ in rows[separator]]
    if len(cells) < header_rows or not cells:
        raise ValueError(
            f"{path} has a first row longer than {len(text):,} letters: it is no table of numbers."
            if not cells
            else f"{path} has {len(cells)} row(s), fewer than the {header_rows} of its header."
        )
    longest = max(map(len, cells[header_rows:]), default=0)
    names = names_of(cells[:header_rows], longest, path)
    _refuse_second_header(cells[header_rows:], names, path, header_rows)
    end = rows[separator][header_rows - 1][1]
    header = "\n".join(text.split("\n")[:end]) + "\n"
    mark = "\ufeff" if encoding == "utf-8" and head.startswith(codecs.BOM_UTF8) else ""
    decimal = _decimal(cells[header_rows:]) if separator != "," else "."
    return Format(encoding, separator, decimal, old, names, len((mark + header).encode()), end)


def names_of(header: list[list[str]], longest: int, path: str) -> list[str]:
    """Names of the columns, of one row or of several read from top to bottom.

    ``longest`` is the number of cells in the longest row below: separators beyond it name nothing.
    """
    width = max(map(len, header))
    padded = [row + [""] * (width - len(row)) for row in header]
    if len(header) > 1 and not any(padded[0][1:]) and all(map(any, zip(*padded[1:], strict=True))):
        padded = padded[1:]  # a title, above names that do without it
    cells = [filter(None, map(str.strip, column)) for column in zip(*padded, strict=True)]
    names = [" ".join(dict.fromkeys(column)) for column in cells]
    while len(names) > longest and not names[-1]:
        names.pop()
    if all(name and not name.strip("+-.,0123456789eE") for name in names):
        raise ValueError(
            f"The first line of {path} holds numbers ({', '.join(names[:3])} …): add a line of "
            "column names."
        )
    for name, times in Counter(names).items():
        if times > 1 and name:
            raise ValueError(f"{path} has the column {name!r} twice: rename one of them.")
    return [name or f"unnamed {i + 1}" for i, name in enumerate(names)]


def _refuse_second_header(
    rows: list[list[str]], names: list[str], path: str, header_rows: int
) -> None:
    """Words above columns of numbers: units, or names in another language."""
    if len(rows) < 4:
        return
    columns = [[row[i].strip() for row in rows if i < len(row)] for i in range(len(names))]
    below = [all(_NUMBER.fullmatch(c) for c in column[1:] if c) for column in columns]
    numbers = [c for c, n in zip(columns, below, strict=True) if n and any(c[1:])]
    words = [c[0] for c in numbers if c and not _NUMBER.fullmatch(c[0])]
    marks = {*MISSING, *PERHAPS_MISSING}
    if numbers and len(words) == len(numbers) and marks.isdisjoint(words):
        raise ValueError(
            f"{path} seems to have {header_rows + 1} rows of column names (the last: "
            f"{', '.join(words[:3])}): use header_rows={header_rows + 1}, or remove that row."
        )


def _decimal(rows: list[list[str]]) -> str:
    cells = [cell for row in rows for cell in row]
    commas = sum(bool(DECIMAL_COMMA.fullmatch(cell)) for cell in cells)
    points = sum(bool(DECIMAL_POINT.fullmatch(cell)) for cell in cells)
    return "," if commas > points else "." if points else ""


def _decoded(head: bytes, path: str) -> tuple[str, str]:
    encodings = ["utf-8", "cp1252", "latin-1"]
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encodings.insert(0, "utf-16")
    elif b"\0" in head:
        model = "a model, not a table" if b"mvenet.json" in head else "no text"
        remedy = "save it as CSV" if b"xl/" in head else "give a CSV file"
        raise ValueError(f"{path} is {model}: {remedy}, or Parquet by its name's ending.")
    for encoding in encodings:
        try:
            text = codecs.getincrementaldecoder(encoding)().decode(head)
        except UnicodeDecodeError:
            continue
        return encoding, text.removeprefix("\ufeff")
    raise AssertionError("every byte is a letter of Latin-1")


def _first_rows(text: str, separator: str) -> list[tuple[list[str], int]]:
    """The first rows as lists of cells, with the number of the line that each ends in."""
    try:
        with any_cell_size():
            lines = io.StringIO(text, newline="\n")
            reader = csv.reader(lines, delimiter=separator, skipinitialspace=True)
            rows = list(islice(((row, reader.line_num) for row in reader if row), _ROWS))
    except csv.Error:
        return []
    whole = len(rows) in (1, _ROWS) or text.endswith("\n")
    return rows if whole else rows[:-1]


@contextlib.contextmanager
def any_cell_size() -> Iterator[None]:
    """A cell may be as long as it likes: Python's own reader stops at 128 kB."""
    before = csv.field_size_limit(2**31 - 1)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _regularity(rows: list[list[str]]) -> tuple[float, int]:
    """How well a separator explains the rows: share of equal lengths, then columns."""
    width = len(rows[0]) if rows else 0
    equal = [len(row) == width for row in rows[1:]]
    return (float(np.mean(equal)) if equal else 1.0) * (width > 1), width
