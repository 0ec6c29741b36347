"""A table that may be larger than memory: all of it, or a random sample of rows that fits."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mvenet._columns import lazy
from mvenet._columns.lazy import Rows
from mvenet.table._files import Progress, count_rows, read, readable
from mvenet.table._folders import PARQUET, parquet_files


@dataclass(frozen=True)
class Sample:
    """Rows of a table, drawn at random unless they are all of it.

    Attributes
    ----------
    frame : polars.DataFrame
        Of a frame of Dask one of pandas.
    rows : ndarray of shape (n,)
        Their positions in the table, from 0, in its order.
    total : int
        Rows of the table.
    """

    frame: Any
    rows: NDArray[np.int64]
    total: int

    @property
    def sentence(self) -> str:
        """How many rows of how many; empty if they are all."""
        return lazy.told(self.rows if len(self.rows) < self.total else None, self.total)


def sample(
    source: Any,
    share: float | None = None,
    *,
    seed: int = 0,
    header_rows: int = 1,
    sheet: str | None = None,
    progress: Progress | None = None,
) -> Sample:
    """Read a table of any size: all of it, or a random sample of rows that fits into memory.

    Each row is as likely to be drawn as any other, whatever its file or row group. Rows are counted
    first, which the ends of Parquet files tell; then each row group is read once, and of it the
    drawn rows are kept.

    As many rows are drawn as half of this machine's memory can fit a model to: 10,000 bytes a row,
    and 500 for each number that it becomes (a column of text becomes one for each of its levels, up
    to 30). On a machine of 16 GB that is half a million rows of ten numbers. A file that is no
    Parquet is read whole, and sampled only if ``share`` says so.

    Parameters
    ----------
    source : str, path, polars.LazyFrame or dask.dataframe.DataFrame
        A folder of Parquet files with the same columns, a file as :func:`read` takes it, or a
        frame that is not in memory.
    share : float in (0, 1] or None
        Of the rows that are drawn; None is all that fit.
    seed : int
        The same one draws the same rows, if as many fit.
    header_rows, sheet
        As in :func:`read`.
    progress : callable or None
        Told the share that was read, if that is known.

    Returns
    -------
    Sample

    Raises
    ------
    OSError, ValueError
        As in :func:`read`; and if the files of a folder differ in their columns.

    Examples
    --------
    >>> import polars as pl
    >>> from mvenet.table import sample
    >>> table = pl.LazyFrame({"size": range(1000), "price": range(1000)})
    >>> sample(table, 0.1).sentence
    '100 of 1,000 rows, drawn at random'
    """
    lazy.check_share(share)
    if lazy.is_lazy(source):
        total = lazy.count(source)
        rows = lazy.drawn(total, share, lazy.numbers_of_a_row(source), seed)
        return _sample(lazy.taken(source, rows), rows, total)
    place = Path(source)
    if place.is_dir() or place.suffix.lower() in PARQUET:
        files = parquet_files(place) if place.is_dir() else [place]
        return _of_files(files, source, share, seed, progress)
    frame = read(place, header_rows=header_rows, sheet=sheet, progress=progress)
    rows = None if share is None else lazy.drawn(len(frame), share, frame.width, seed)
    return _sample(frame if rows is None else frame[rows], rows, len(frame))


def _sample(frame: Any, rows: Rows | None, total: int) -> Sample:
    return Sample(frame, np.arange(total) if rows is None else rows, total)


def _of_files(
    files: list[Path], source: Any, share: float | None, seed: int, progress: Progress | None
) -> Sample:
    """Rows of Parquet files, read one by one, so that an error can name its file."""
    names = _same_columns(files)
    ends = np.cumsum([0, *map(count_rows, files)])
    total = int(ends[-1])
    if not total:
        raise ValueError(f"{source} has no rows: it needs some below the column names.")
    with readable(files[0]):
        numbers = lazy.numbers_of_a_row(pl.scan_parquet(files[0]))
    rows = lazy.drawn(total, share, numbers, seed)
    parts = []
    for number, file in enumerate(files):
        low, high = ends[number], ends[number + 1]
        inside = None if rows is None else rows[(rows >= low) & (rows < high)] - low
        if inside is None or len(inside):
            with readable(file):
                parts.append(lazy.taken(pl.scan_parquet(file).select(names), inside))
        if progress is not None:
            progress(float(high / total))
    try:
        return _sample(pl.concat(parts, how="vertical_relaxed"), rows, total)
    except pl.exceptions.PolarsError as error:
        reason = " ".join(str(error).split())
        raise ValueError(
            f"The files of {source} hold columns of types that do not go together ({reason}): "
            "write them with the same types."
        ) from error


def _same_columns(files: list[Path]) -> list[str]:
    """Names of the columns, which all files have, in any order."""
    first: list[str] = []
    for file in files:
        with readable(file):
            names = pl.scan_parquet(file).collect_schema().names()
        first = first or names
        odd = sorted(set(first) ^ set(names))
        if odd:
            has, lacks = (file, files[0]) if odd[0] in names else (files[0], file)
            raise ValueError(
                f"{has} has a column {odd[0]!r} that {lacks} lacks: give all files of a folder the "
                "same columns."
            )
    return first
