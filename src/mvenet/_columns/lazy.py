"""Frames that are not in memory: all of their rows, or a random sample that fits.

Rows of a lazy frame of polars or of a Dask frame are counted, and so many of their positions drawn
as fit into memory, each row as likely as any other. Then the frame is read once, batch by batch or
partition by partition, and of each only the drawn rows are kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvenet._utils.machine import memory

Rows = NDArray[np.int64]
SHARE_OF_MEMORY = 0.5  # that a fit may take
# That a search takes at its peak for each row, and for each number of it. Measured up to 60,000
# rows of 10 and 30 numbers: 8,900 and 50.
BYTES_A_ROW, BYTES_A_NUMBER = 10_000, 500
LOOKED_AT = 1_000  # rows, to see how many numbers a row becomes
MOST_LEVELS = 30  # of a category that becomes a number for each: TableEncoder's
UNKNOWN_MEMORY = 4 << 30  # bytes, where the system does not tell


def is_lazy(X: Any) -> bool:
    """Whether X is a lazy frame of polars, or a frame or series of Dask; neither is imported."""
    package = type(X).__module__.partition(".")[0]
    if package == "polars":
        return type(X).__name__ == "LazyFrame"
    return package in ("dask", "dask_expr") and hasattr(X, "map_partitions")


def is_of_polars(X: Any) -> bool:
    """Which of the two it is."""
    return type(X).__module__.startswith("polars")


def count(X: Any) -> int:
    """How many rows there are; of Parquet files their ends tell it."""
    if not is_of_polars(X):
        return int(sum(_partition_lengths(X)))
    import polars as pl

    return int(X.select(pl.len()).collect().item())


def _partition_lengths(X: Any) -> list[int]:
    narrow = X[list(X.columns[:1])] if X.ndim == 2 else X  # one column need be read
    return [int(n) for n in narrow.map_partitions(len).compute()]


def numbers_of_a_row(X: Any) -> int:
    """About how many numbers an encoder makes of a row, by the first rows."""
    first = X.head(LOOKED_AT).collect if is_of_polars(X) else X.partitions[0].compute
    head = first().head(LOOKED_AT)
    return sum(_numbers_of(head[name]) for name in head.columns)


def _numbers_of(column: Any) -> int:
    kind = column.dtype
    if kind.is_numeric() if hasattr(kind, "is_numeric") else getattr(kind, "kind", "O") in "iufb":
        return 1
    levels = int(column.n_unique() if hasattr(column, "n_unique") else column.nunique())
    return max(1, levels) if levels <= MOST_LEVELS else 2


def rows_that_fit(numbers: int) -> int:
    """Rows of so many numbers that half of this machine's memory can fit a model to."""
    needed = BYTES_A_ROW + BYTES_A_NUMBER * numbers
    return int(SHARE_OF_MEMORY * (memory() or UNKNOWN_MEMORY) / needed)


def check_share(share: float | None) -> None:
    """Refuse what is no share of a table."""
    if share is not None and not 0 < share <= 1:
        raise ValueError(f"share={share} must be above 0 and at most 1: 0.1 takes a row in ten.")


def drawn(total: int, share: float | None, numbers: int, seed: Any) -> Rows | None:
    """Positions of rows drawn at random, in their order; None stands for all of them.

    ``share`` None is as many as fit.
    """
    check_share(share)
    wanted = rows_that_fit(numbers) if share is None else max(1, round(share * total))
    if wanted >= total:
        return None
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(27,)))
    return np.sort(rng.choice(total, wanted, replace=False, shuffle=False))


def taken(X: Any, rows: Rows | None) -> Any:
    """Rows at these positions, or all, as a frame of polars or pandas that is in memory."""
    if is_of_polars(X):
        return X.collect() if rows is None else _taken_of_polars(X, rows)
    return X.compute() if rows is None else _taken_of_dask(X, rows)


def _taken_of_polars(X: Any, rows: Rows) -> Any:
    import polars as pl

    def is_drawn(positions: pl.Series) -> pl.Series:
        at = positions.to_numpy()
        return pl.Series(rows[np.searchsorted(rows, at).clip(max=len(rows) - 1)] == at)

    place = "position"
    while place in X.collect_schema().names():
        place += "_"
    wanted = pl.col(place).map_batches(is_drawn, return_dtype=pl.Boolean, is_elementwise=True)
    return X.with_row_index(place).filter(wanted).drop(place).collect(engine="streaming")


def _taken_of_dask(X: Any, rows: Rows) -> Any:
    """By the workers, of each partition: no whole one comes here."""
    import pandas as pd
    from dask.base import compute
    from dask.delayed import delayed

    ends = np.cumsum(_partition_lengths(X))
    starts = np.concatenate([[0], ends[:-1]])
    cuts = np.searchsorted(rows, np.concatenate([[0], ends]))
    pieces = zip(X.to_delayed(), starts, cuts[:-1], cuts[1:], strict=True)
    some = [
        delayed(_at)(part, rows[low:high] - start)
        for part, start, low, high in pieces
        if high > low
    ]
    return pd.concat(compute(*some))  # type: ignore[no-untyped-call]


def _at(part: Any, rows: Rows) -> Any:
    return part.iloc[rows]


def told(rows: Rows | None, total: int) -> str:
    """How many rows of how many, if not all."""
    return "" if rows is None else f"{len(rows):,} of {total:,} rows, drawn at random"
