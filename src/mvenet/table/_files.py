"""Reading CSV and Parquet as people write them, whole or part by part, and writing CSV."""

from __future__ import annotations

import codecs
import csv
import difflib
import io
import os
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

CHUNK_ROWS, CHUNK_CELLS = 100_000, 500_000  # of a large file that are in memory at a time
MISSING = ("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND",
           "1.#QNAN", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null")  # fmt: skip
_MISSING = frozenset(MISSING)
_SAMPLE = 1 << 20  # bytes looked at to find out how a file is written
_SEPARATORS = (",", ";", "\t", "|")
_COMMA = re.compile(r"\s*([-+]?\d*),(\d+(?:[eE][-+]?\d+)?)\s*")
_POINT = re.compile(r"\s*[-+]?\d*\.\d+([eE][-+]?\d+)?\s*")

Progress = Callable[[float], object]


@dataclass(frozen=True)
class _Format:
    """How a text file is written."""

    encoding: str
    separator: str
    decimal: str
    n_columns: int


def read(
    path: str | Path, texts: Collection[str] = (), progress: Progress | None = None
) -> pd.DataFrame:
    """Read a CSV or Parquet file; ``-`` is CSV from standard input.

    The separator (comma, semicolon, tab or bar), the encoding (UTF-8, UTF-16 with its mark, else
    that of Windows or Latin-1) and a decimal comma are found out.

    Parameters
    ----------
    path : str or path
    texts : collection of str
        Columns that are text even if they hold digits only: 007 is not 7.
    progress : callable or None
        Told the share of the file that was read, if that is known.

    Returns
    -------
    DataFrame
        Its index counts the rows of the file from 0.

    Raises
    ------
    OSError
        If there is no such file.
    ValueError
        If it is no table, has no rows, or two columns have the same name.
    """
    if _is_parquet(path):
        parts = list(_parquet(Path(path), whole=True, progress=progress))
    else:
        with _opened(path, progress) as stream:
            found = _format(stream, path)
            types = dict.fromkeys(texts, object)
            how = {"dtype": types, "keep_default_na": False, "na_values": list(MISSING)}
            parts = list(_parsed(stream, found, path, sys.maxsize, decimal=found.decimal, **how))
    if not parts or not len(parts[0]):
        raise ValueError(f"{path} has no rows: it needs some below the column names.")
    return parts[0]


def chunks(
    path: str | Path, numbers: Collection[str] = (), progress: Progress | None = None
) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    """Read a file of any length, part by part, as it is written and as a model takes it.

    What a cell is taken for does not depend on the rows that happen to be read with it.

    Parameters
    ----------
    path : str or path
        As in :func:`read`.
    numbers : collection of str
        Columns in which a decimal comma is one.
    progress : callable or None
        Told the share of the file that was read, if that is known.

    Yields
    ------
    shown : DataFrame
        The cells as text, as they are in the file; decimal commas are points.
    values : DataFrame
        The same with missing ones missing.
    """
    if _is_parquet(path):
        for part in _parquet(Path(path), progress=progress):
            yield part, part
        return
    with _opened(path, progress) as stream:
        found = _format(stream, path)
        rows = max(1, min(CHUNK_ROWS, CHUNK_CELLS // found.n_columns))
        for part in _parsed(stream, found, path, rows, dtype=object, na_filter=False):
            shown, values = part, _without_missing(part)
            if found.decimal == ",":
                shown = part.apply(lambda column: column.str.replace(_COMMA, r"\1.\2", regex=True))
                for name in set(numbers) & set(values.columns):
                    values[name] = shown[name].where(values[name].notna())
            yield shown, values


def write(frame: pd.DataFrame, file: TextIO, *, header: bool) -> None:
    """Write rows as CSV, as pandas does, but faster where all cells are text or numbers."""
    if any(kind.kind not in "Of" for kind in frame.dtypes) or frame.isna().to_numpy().any():
        frame.to_csv(file, index=False, header=header, lineterminator="\n")
        return
    writer = csv.writer(file, lineterminator="\n")
    if header:
        writer.writerow(frame.columns)
    columns = [list(map(str, frame[name].tolist())) for name in frame.columns]
    text = "\n".join(map(",".join, zip(*columns, strict=True)))
    marks = [text.count(mark) for mark in (",", "\n", '"', "\r")]
    needless = marks == [len(frame) * (len(columns) - 1), len(frame) - 1, 0, 0]
    if needless and len(columns) > 1:  # no cell needs quotes; an only one that is empty would
        file.write(f"{text}\n")
    else:
        writer.writerows(zip(*columns, strict=True))


def _without_missing(part: pd.DataFrame) -> pd.DataFrame:
    """Text with NaN for all that means missing, in one go: pandas would go column by column."""
    import pandas as pd

    cells = part.to_numpy(dtype=object)
    gone = np.fromiter(map(_MISSING.__contains__, cells.flat), bool, cells.size)
    if not gone.any():
        return part
    values = np.where(gone.reshape(cells.shape), np.nan, cells)
    return pd.DataFrame(values, part.index, part.columns, dtype=object)


def _is_parquet(path: str | Path) -> bool:
    return Path(path).suffix.lower() in (".parquet", ".pq")


def _opened(path: str | Path, progress: Progress | None = None) -> io.BufferedReader:
    """A file from its beginning, a megabyte of which can be looked at in advance."""
    place = Path(path)
    if str(path) == "-":
        raw: Any = sys.stdin.buffer
        return io.BufferedReader(raw, _SAMPLE)
    if place.is_dir():
        raise IsADirectoryError(f"{path} is a folder: name a CSV or Parquet file.")
    try:
        raw = io.BufferedReader(_Watched(place, progress))  # a pipe gives its beginning in pieces
        return io.BufferedReader(raw, _SAMPLE)
    except FileNotFoundError:
        raise FileNotFoundError(f"There is no file {path}.{_neighbour(place)}") from None
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


def _neighbour(place: Path) -> str:
    near = difflib.get_close_matches(place.name, [p.name for p in place.parent.glob("*")], n=1)
    return f" Did you mean {near[0]}?" if near else " Check the path."


def _parsed(
    stream: io.BufferedReader, found: _Format, path: str | Path, rows: int, **how: Any
) -> Iterator[pd.DataFrame]:
    """The parts that pandas makes of a text file; their index counts its rows."""
    import pandas as pd

    try:
        with pd.read_csv(
            stream,
            sep=found.separator,
            encoding=found.encoding,
            chunksize=rows,
            skipinitialspace=True,
            index_col=False,  # else a row with a cell too many would shift all names by one
            low_memory=False,
            **how,
        ) as parts:
            while True:
                with warnings.catch_warnings():
                    warnings.simplefilter("error", pd.errors.ParserWarning)
                    part = next(parts, None)
                if part is None:
                    return
                part.columns = [str(name).strip() for name in part.columns]
                yield part
    except UnicodeError as error:
        raise ValueError(
            f"{path} begins as {found.encoding} but does not go on as such ({error}): save it as "
            "UTF-8."
        ) from error
    except (pd.errors.ParserError, pd.errors.EmptyDataError, pd.errors.ParserWarning) as error:
        reason = str(error).removeprefix("Error tokenizing data. C error: ").strip().rstrip(".")
        raise ValueError(
            f"{path} cannot be read as a table ({reason}): every row needs as many cells as there "
            "are column names, and text that holds the separator needs quotes."
        ) from error


def _format(stream: io.BufferedReader, path: str | Path) -> _Format:
    """Find out how a text file is written from its beginning."""
    head = stream.peek(_SAMPLE)[:_SAMPLE]
    if not head.strip():
        raise ValueError(f"{path} is empty: it needs a line of column names and rows.")
    encoding, text = _decoded(head, path)
    rows = {separator: _first_rows(text, separator) for separator in _SEPARATORS}
    separator = max(_SEPARATORS, key=lambda s: _regularity(rows[s]))
    names = [name.strip() for name in rows[separator][0]] if rows[separator] else []
    if all(name and not name.strip("+-.,0123456789eE") for name in names):
        raise ValueError(
            f"The first line of {path} holds numbers ({', '.join(names[:3])} …): add a line of "
            "column names."
        )
    twice = [name for name, times in Counter(names).items() if times > 1 and name]
    if twice:
        raise ValueError(f"{path} has the column {twice[0]!r} twice: rename one of them.")
    decimal = "."
    if separator != ",":
        cells = [cell for row in rows[separator][1:] for cell in row]
        commas = sum(bool(_COMMA.fullmatch(cell)) for cell in cells)
        points = sum(bool(_POINT.fullmatch(cell)) for cell in cells)
        decimal = "," if commas > points else "."
    return _Format(encoding, separator, decimal, len(names))


def _decoded(head: bytes, path: str | Path) -> tuple[str, str]:
    encodings = ["utf-8-sig", "cp1252", "latin-1"]
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encodings.insert(0, "utf-16")
    elif b"\0" in head:
        raise ValueError(f"{path} is no text: give a CSV file, or Parquet by its name's ending.")
    for encoding in encodings:
        try:
            return encoding, codecs.getincrementaldecoder(encoding)().decode(head)
        except UnicodeDecodeError:
            continue
    raise AssertionError("every byte is a letter of Latin-1")


def _first_rows(text: str, separator: str) -> list[list[str]]:
    """The first rows as lists of cells; none if they cannot be read this way."""
    lines = io.StringIO(text, newline=None)
    try:
        reader = csv.reader(lines, delimiter=separator, skipinitialspace=True)
        rows = list(islice((row for row in reader if row), 1000))
    except csv.Error:  # a cell of more than 128 kB
        return []
    return rows if len(rows) in (1, 1000) else rows[:-1] + rows[-1:] * text.endswith(("\n", "\r"))


def _regularity(rows: list[list[str]]) -> tuple[float, int]:
    """How well a separator explains the rows: share of equal lengths, then columns."""
    width = len(rows[0]) if rows else 0
    equal = [len(row) == width for row in rows[1:]]
    return (float(np.mean(equal)) if equal else 1.0) * (width > 1), width


def _parquet(
    path: Path, *, whole: bool = False, progress: Progress | None = None
) -> Iterator[pd.DataFrame]:
    import pandas as pd

    if not path.exists():
        raise FileNotFoundError(f"There is no file {path}.{_neighbour(path)}")
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise ImportError("Parquet files need pyarrow: pip install pyarrow") from error
    # Whole numbers stay whole numbers in parts where some are missing.
    widths = (8, 16, 32, 64)
    types = {getattr(pa, f"int{w}")(): pd.Int64Dtype() for w in widths}
    types |= {getattr(pa, f"uint{w}")(): pd.UInt64Dtype() for w in widths}
    types[pa.bool_()] = pd.BooleanDtype()
    try:
        with closing(parquet.ParquetFile(path)) as file:
            n, names = file.metadata.num_rows, file.schema_arrow.names
            twice = [name for name, times in Counter(names).items() if times > 1]
            if twice:
                raise ValueError(f"{path} has the column {twice[0]!r} twice: rename one of them.")
            rows = n if whole else min(CHUNK_ROWS, CHUNK_CELLS // max(1, len(names)))
            start = 0
            for batch in file.iter_batches(batch_size=max(1, rows)):
                part = batch.to_pandas(types_mapper=types.get, ignore_metadata=True)
                part.index = pd.RangeIndex(start, start + len(part))
                start += len(part)
                yield part
                if progress is not None:
                    progress(start / n)
    except (pa.ArrowException, OSError) as error:
        raise ValueError(
            f"{path} cannot be read as Parquet ({error}): write it again, or as CSV."
        ) from error
