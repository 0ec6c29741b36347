"""Writing tables as CSV, Parquet and Arrow, part by part."""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import polars as pl

from mvenet import _engine
from mvenet.table._files import COLUMNAR


def write(
    shown: pl.DataFrame,
    added: pl.DataFrame,
    file: BinaryIO,
    *,
    header: bool,
    separator: str = ",",
    lines: bytes = b"",
) -> None:
    """Write rows as CSV, further columns beside them, to a file that was opened for bytes.

    ``lines`` are what is shown, as of :class:`Part`.
    """
    if header:
        _put(_csv(shown.clear().hstack(added.clear()), separator, header=True), file)
    if lines:
        _put(_engine.side_by_side(lines, _csv(added, separator), separator), file)
    else:
        _put(_csv(shown.hstack(added), separator), file)


def _csv(frame: pl.DataFrame, separator: str, header: bool = False) -> bytes:
    made = io.BytesIO()  # a full disk and a closed pipe are Python's errors, not polars's
    try:
        frame.write_csv(made, include_header=header, separator=separator)
    except pl.exceptions.ComputeError as error:  # lists and structures have no cell
        raise ValueError(f"The table cannot be written as CSV ({error}).") from error
    return made.getvalue()


def _put(text: bytes, file: BinaryIO) -> None:
    left = memoryview(text)
    while len(left):  # an unbuffered pipe takes what fits
        left = left[file.write(left) :]


def write_columnar(
    parts: Iterator[pl.DataFrame], place: Path, ending: str, said: dict[str, str] | None = None
) -> int:
    """Write rows as Parquet or Arrow, by the ending of its name, part by part.

    The parts must be of one kind. ``said`` is what a Parquet file says of itself, by name. Returns
    the number of rows.
    """
    from polars.io.plugins import register_io_source

    first = next(parts)
    done = 0
    wrong: list[Exception] = []  # of the parts: polars hands on some words at best

    def source(*_: Any) -> Iterator[pl.DataFrame]:
        nonlocal done
        try:
            for part in itertools.chain([first], parts):
                done += len(part)
                yield part
        except Exception as error:
            wrong.append(error)
            raise

    lazy = register_io_source(source, schema=first.schema)
    parquet = COLUMNAR[ending] is pl.scan_parquet
    sink: Any = partial(lazy.sink_parquet, metadata=said) if parquet else lazy.sink_ipc
    with place.open("wb") as file:
        written = _Written(file)
        try:
            sink(written)
        except (pl.exceptions.PolarsError, OSError) as error:
            raise written.error or next(iter(wrong), error) from error
    return done


class _Written(io.RawIOBase):
    """A file that keeps the system's error, of which polars hands on some words at best."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.error: OSError | None = None

    def writable(self) -> bool:
        """It is."""
        return True

    def write(self, content: Any) -> int:
        """Write, and remember what the system had against it."""
        try:
            return self.file.write(content)
        except OSError as error:
            self.error = error
            raise
