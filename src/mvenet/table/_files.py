"""Reading CSV, Parquet, Arrow and Excel as people write them, whole or part by part.

Cells of a text file are text: what they stand for is the encoder's business, and so cannot depend
on the rows that happen to be read together. polars reads; what is here finds out how a file is
written, cuts it into blocks of whole rows, and explains what polars refuses.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import gzip
import io
import os
import re
import sys
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from polars.selectors import by_name

from mvenet._columns.marks import DECIMAL_COMMA, MISSING
from mvenet._utils.wording import no_file
from mvenet.table._ahead import made_ahead
from mvenet.table._excel import EXCEL, read_sheet
from mvenet.table._lines import all_whole, plain_rows
from mvenet.table._sniffing import DECIMAL_POINT, Format, any_cell_size, sniff

BLOCK = 4 << 20  # bytes of a text file that are in memory at a time
CHUNK_ROWS, CHUNK_CELLS = 200_000, 2_000_000  # the same for Parquet and Arrow
LONGEST_ROW = 16 << 20  # bytes: what is longer is no row, and must not fill the memory
SAMPLE = 1 << 20  # bytes looked at to find out how a file is written

# Files that know the types of their columns, by the ending of their names.
COLUMNAR = {".parquet": pl.scan_parquet, ".pq": pl.scan_parquet, ".arrow": pl.scan_ipc,
            ".feather": pl.scan_ipc, ".ipc": pl.scan_ipc}  # fmt: skip

Progress = Callable[[float], object]


@dataclass(frozen=True)
class Part:
    """Some rows of a file.

    Attributes
    ----------
    shown : polars.DataFrame
        The cells as they are in the file; decimal commas are points.
    values : polars.DataFrame
        The cells as a model takes them: levels with a comma keep it.
    first : int
        Number of the first row in the file, counted from 0.
    lines : bytes
        The rows as they stand in the file, if all of them are plain and that was asked for; what is
        shown has numbers then, too.
    """

    shown: pl.DataFrame
    values: pl.DataFrame
    first: int
    lines: bytes = b""

    @property
    def rows(self) -> NDArray[np.int64]:
        """Numbers of the rows in the file, counted from 0."""
        return np.arange(self.first, self.first + len(self.values))


def read(
    path: str | Path,
    *,
    header_rows: int = 1,
    sheet: str | None = None,
    progress: Progress | None = None,
) -> pl.DataFrame:
    """Read a CSV, Parquet, Arrow or Excel file; ``-`` is CSV from standard input.

    Of a text file the separator (comma, semicolon, tab or bar), the encoding (UTF-8, UTF-16 with
    its mark, else that of Windows or Latin-1), gzip and a decimal comma are found out. Its cells
    stay text: :class:`TableEncoder` makes numbers of them.

    Parameters
    ----------
    path : str or path
    header_rows : int
        Rows above the data; a column's name is what they say, from top to bottom.
    sheet : str or None
        Of an Excel file, for which fastexcel is needed; None if it has only one.
    progress : callable or None
        Told the share of the file that was read, if that is known.

    Returns
    -------
    polars.DataFrame

    Raises
    ------
    OSError
        If there is no such file.
    ValueError
        If it is no table, has no rows, or two columns have the same name.
    """
    found = None
    parts = []
    for part, found, _ in _parts(path, header_rows, sheet, progress):  # noqa: B007
        parts.append(part)
    frame = pl.concat(parts) if parts else pl.DataFrame()
    if not len(frame):
        raise ValueError(f"{path} has no rows: it needs some below the column names.")
    if not _decimal_commas(found, frame):
        return frame
    # A column is one of numbers if all of it is: a level with a comma stays as it is.
    return frame.with_columns(_with_points(column.name) for column in frame if _numbers(column))


def chunks(
    path: str | Path,
    numbers: Collection[str] = (),
    *,
    lines: str = "",
    header_rows: int = 1,
    sheet: str | None = None,
    progress: Progress | None = None,
) -> Iterator[Part]:
    """Read a file of any length, part by part, in memory that does not grow with it.

    Parameters
    ----------
    path : str or path
        As in :func:`read`.
    numbers : collection of str
        Columns that the model takes for numbers: in them a decimal comma is one.
    lines : str
        Separator of the file that the rows go to: if it is this one's too, plain rows are shown as
        whole lines, and ``values`` has numbers instead of text.
    header_rows, sheet
        As in :func:`read`.
    progress : callable or None
        Told the share of the file that was read, if that is known.

    Yields
    ------
    Part
    """
    first = 0
    for frame, found, plain in _parts(path, header_rows, sheet, progress, numbers, lines):
        shown = values = frame
        if not plain and _decimal_commas(found, frame):
            shown = frame.with_columns(_with_points(name) for name in frame.columns)
            values = frame.with_columns(shown[n] for n in frame.columns if n in set(numbers))
        if len(frame):
            yield Part(shown, values, first, plain)
        first += len(frame)
    if not first:
        raise ValueError(f"{path} has no rows: it needs some below the column names.")


_NOTHING = re.compile(rb"[\r\n]*")
_PLAIN_NUMBER = r"\s*[-+]?\d+(?:[eE][-+]?\d+)?\s*"


def _decimal_commas(found: Format | None, frame: pl.DataFrame) -> bool:
    """Whether numbers of a text file have commas; if its beginning did not tell, these rows do."""
    if found is None or found.decimal:
        return found is not None and found.decimal == ","
    commas, points = (
        sum(int(column.str.contains(f"^(?:{mark.pattern})$").sum()) for column in frame)
        for mark in (DECIMAL_COMMA, DECIMAL_POINT)
    )
    return commas > points


def _numbers(column: pl.Series) -> bool:
    """Whether all cells are numbers, with a comma or without, or missing."""
    cells = column.alias("").drop_nulls()
    pattern = f"^(?:{DECIMAL_COMMA.pattern}|{_PLAIN_NUMBER})$"
    return bool((cells.str.contains(pattern) | cells.str.strip_chars().is_in(MISSING)).all())


def _with_points(name: str) -> pl.Expr:
    """The column with the commas of its numbers made points."""
    return by_name(name).str.replace(f"^{DECIMAL_COMMA.pattern}$", "${1}.${2}")


def _parts(
    path: str | Path,
    header_rows: int,
    sheet: str | None,
    progress: Progress | None,
    numbers: Collection[str] = (),
    lines: str = "",
) -> Iterator[tuple[pl.DataFrame, Format | None, bytes]]:
    """Rows of a file, how it is written if it is text, and whole lines if they are wanted."""
    place = Path(path)
    if place.suffix.lower() in EXCEL:
        yield read_sheet(place, sheet, header_rows), None, b""
        return
    if sheet is not None:
        raise ValueError(f"sheet={sheet!r} is for Excel files, and {path} is none: drop it.")
    columnar = COLUMNAR.get(place.suffix.lower())
    if columnar is not None:
        for frame in _columnar(place, columnar, progress):
            yield frame, None, b""
        return
    with _opened(path, progress) as stream:
        head = stream.peek(SAMPLE)[:SAMPLE]
        if head.startswith(b"\x1f\x8b"):
            stream = io.BufferedReader(gzip.GzipFile(fileobj=stream), SAMPLE)
            head = _decompressed(stream, path)
        found = sniff(head, str(path), header_rows)
        yield _rows(b"", found, str(path), 0), found, b""  # without rows it has columns, too
        line = found.header_lines
        plain = found.separator == lines and found.decimal != ","

        def cells_of(block: bytes) -> pl.DataFrame | None:
            return plain_rows(block, found, numbers) if plain else None

        for block, cells in made_ahead(cells_of, _blocks(stream, found, str(path))):
            rows = _rows(block, found, str(path), line) if cells is None else cells
            if cells is None:
                plain = False  # one block that is not tells what to expect of the others
            yield rows, found, b"" if cells is None else block
            line += block.count(b"\n") if cells is None else len(cells)


def _decompressed(stream: io.BufferedReader, path: str | Path) -> bytes:
    try:
        return stream.peek(SAMPLE)[:SAMPLE]
    except (OSError, EOFError) as error:
        raise ValueError(f"{path} cannot be unpacked ({error}): write it again.") from error


def _opened(path: str | Path, progress: Progress | None = None) -> io.BufferedReader:
    """A file from its beginning, a megabyte of which can be looked at in advance."""
    place = Path(path)
    if str(path) == "-":
        raw: Any = sys.stdin.buffer
        return io.BufferedReader(raw, SAMPLE)
    if place.is_dir():
        raise IsADirectoryError(f"{path} is a folder: name a CSV or Parquet file.")
    try:
        raw = io.BufferedReader(_Watched(place, progress))  # a pipe gives its beginning in pieces
        return io.BufferedReader(raw, SAMPLE)
    except FileNotFoundError:
        raise FileNotFoundError(no_file(place)) from None
    except OSError as error:
        raise type(error)(f"{path} cannot be read ({error.strerror}): check the path.") from error


class _Watched(io.FileIO):
    """A file that tells the share of it that was read; a pipe has none to tell."""

    def __init__(self, place: Path, progress: Progress | None) -> None:
        super().__init__(place)
        self.progress = progress
        self.size = os.fstat(self.fileno()).st_size

    def readinto(self, buffer: Any) -> int | None:
        n = super().readinto(buffer)
        if self.progress is not None and self.size:
            self.progress(min(1.0, self.tell() / self.size))
        return n


def _blocks(stream: io.BufferedReader, found: Format, path: str) -> Iterator[bytes]:
    """The rows below the header as UTF-8, in blocks that end where a row does."""
    decode = codecs.getincrementaldecoder(found.encoding)().decode
    plain = found.encoding == "utf-8"
    rest, above = b"", found.header_bytes
    while True:
        try:
            piece = stream.read(BLOCK)
            text = piece if plain else decode(piece, not piece).encode()
        except UnicodeError as error:
            raise _foreign_letters(found, path, error) from error
        except EOFError as error:  # of gzip
            raise ValueError(f"{path} is cut short ({error}): get the whole file.") from error
        last = not piece
        if found.old_line_ends:
            text = text.replace(b"\r", b"\n")
        if above:
            text, above = text[above:], max(0, above - len(text))
        if b'"' in rest or b'"' in text:  # soon found out
            text, rest = rest + text, b""
            cut = len(text) if last else _last_row_end(text, found.separator)
        else:
            cut = len(text) if last else text.rfind(b"\n") + 1
        if cut or last:
            block, rest = b"".join((rest, memoryview(text)[:cut])), text[cut:]  # copied once
            if not _NOTHING.fullmatch(block):
                yield block
        else:
            rest += text
        if len(rest) > LONGEST_ROW:
            raise ValueError(
                f"{path} has a row longer than {LONGEST_ROW:,} bytes, which begins with "
                f"{rest[:50].decode(errors='replace')!r}: is a quote in it that is not closed?"
            )
        if last:
            return


def _last_row_end(block: bytes, separator: str) -> int:
    """Where the last whole row ends, of a block that begins with a row: not within quotes.

    A cell is quoted if a quote is the first in it; any other quote, as in 5" pipe, is a letter.
    """
    end = block.rfind(b"\n") + 1
    if _well_quoted(block, separator, end):
        return end
    # A cell that is quoted, perhaps one that is still open, or the end of a line.
    cell = rb'(?:\A|[\r\n%b]) *"(?:[^"]*+(?:""[^"]*+)*+"|(?P<open>))|\n' % separator.encode()
    last = 0
    for token in re.compile(cell).finditer(block, 0, end):
        if token[0].startswith(b"\n"):
            last = token.start() + 1
        if token.lastgroup == "open":
            break
    return last


def _well_quoted(block: bytes, separator: str, end: int | None = None) -> bool:
    """Whether quotes are around cells, or doubled within, and all of them closed."""
    letters = np.frombuffer(block, np.uint8)[:end]
    quotes = np.flatnonzero(letters == ord('"'))
    opening, closing = quotes[::2], quotes[1::2]
    before = letters[opening[opening > 0] - 1]
    after = letters[closing[closing < len(letters) - 1] + 1]
    edges = np.frombuffer(b'"\r\n' + separator.encode(), np.uint8)
    beside = np.isin(np.concatenate([before, after]), edges)
    return len(opening) == len(closing) and bool(beside.all())


def _rows(block: bytes, found: Format, path: str, line: int) -> pl.DataFrame:
    """The rows of a block, every cell as text."""
    schema = dict.fromkeys(found.names, pl.String())
    if not block:
        return pl.DataFrame(schema=schema)
    if b'"' not in block or _well_quoted(block, found.separator):
        try:
            frame = pl.read_csv(block, has_header=False, separator=found.separator, schema=schema)
        except pl.exceptions.PolarsError as error:
            if "utf-8" in str(error):
                raise _foreign_letters(found, path, error) from error
        else:
            if all_whole(block, found, frame):
                return frame
    return _careful_rows(block, found, path, line)


def _careful_rows(block: bytes, found: Format, path: str, line: int) -> pl.DataFrame:
    """The same for what polars does not take: blank lines, trailing separators, odd quotes."""
    n = len(found.names)
    lines = io.StringIO(block.decode(errors="replace"), newline="")
    reader = csv.reader(lines, delimiter=found.separator, skipinitialspace=True, strict=True)
    rows = []
    try:
        with any_cell_size():
            for row in reader:
                if not row or (n > 1 and row == [""]):  # a blank line
                    continue
                if len(row) < n and not block.endswith(b"\n") and not lines.read(1):
                    raise ValueError(
                        f"{path} ends in the middle of a line, which has {len(row)} cells instead "
                        f"of {n}: get the whole file, or delete that line."
                    )
                if len(row) < n or any(row[n:]):
                    raise csv.Error(f"line {line + reader.line_num} has {len(row)} cells, not {n}")
                rows.append(tuple(cell or None for cell in row[:n]))
    except csv.Error as error:
        where = "" if "line" in str(error) else f" in line {line + reader.line_num}"
        raise ValueError(
            f"{path} cannot be read as a table ({error}{where}): every row needs as many cells as "
            "there are column names, empty ones too, and text that holds the separator needs "
            "quotes."
        ) from error
    return pl.DataFrame(rows, dict.fromkeys(found.names, pl.String()), orient="row")


def _foreign_letters(found: Format, path: str, error: Exception) -> ValueError:
    return ValueError(
        f"{path} begins as {found.encoding} but does not go on as such ({error}): save it as UTF-8."
    )


def count_rows(place: Path) -> int:
    """How many rows a Parquet file has, which its end tells."""
    with readable(place):
        return int(pl.scan_parquet(place).select(pl.len()).collect().item())


def _columnar(place: Path, scan: Any, progress: Progress | None) -> Iterator[pl.DataFrame]:
    """Rows of a Parquet or Arrow file, which knows its types."""
    with readable(place, "Parquet" if scan is pl.scan_parquet else "Arrow"):
        lazy = scan(place)
        names = lazy.collect_schema().names()
        n = int(lazy.select(pl.len()).collect().item())
        step = max(1, min(CHUNK_ROWS, CHUNK_CELLS // max(1, len(names))))
        for start in range(0, max(1, n), step):
            yield lazy.slice(start, step).collect()
            if progress is not None:
                progress(min(1.0, (start + step) / max(1, n)))


@contextlib.contextmanager
def readable(place: Path, kind: str = "Parquet") -> Iterator[None]:
    """Make a sentence of what polars has against a file."""
    if not place.exists():
        raise FileNotFoundError(no_file(place))
    try:
        yield
    except pl.exceptions.DuplicateError as error:
        raise ValueError(f"{place} has a column twice ({_line(error)}): rename it.") from error
    except (pl.exceptions.PolarsError, OSError) as error:
        raise ValueError(
            f"{place} cannot be read as {kind} ({_line(error)}): write it again, or as CSV."
        ) from error


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
