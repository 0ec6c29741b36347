"""Predictions for a table that a model was not fitted to, and for a file of any length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

import polars as pl
from numpy.typing import NDArray

from mvenet._columns.cells import with_numbers
from mvenet._columns.profile import outside
from mvenet._models.conformal import Conformal
from mvenet._models.predictor import PredictsDistribution
from mvenet._utils.wording import percent
from mvenet.table._ahead import ahead
from mvenet.table._files import COLUMNAR, Part, chunks
from mvenet.table._writing import write, write_columnar
from mvenet.workflow._known import TableModel, known

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

    from mvenet._columns.encoding import Encoding
    from mvenet.table._files import Progress

    Model: TypeAlias = PredictsDistribution | Pipeline | tuple[Encoding, PredictsDistribution]


# A row is reported only if it lies beyond a range by more than this share of it: a few of any table
# are beyond a little.
FAR = 0.1


def predictions(
    model: Model,
    frame: Any,
    intervals: Sequence[float] = (),
    quantiles: Sequence[float] = (),
    rows: NDArray[Any] | None = None,
) -> pl.DataFrame:
    """Columns ``mean``, ``std``, ``low_90``, ``high_90``, ``q_10`` … for each row of a table.

    Parameters
    ----------
    model : estimator
        As made by :func:`fit_table`, or fitted in Python.
    frame : DataFrame
        Of polars or pandas.
    intervals, quantiles : sequence of float in (0, 1)
    rows : ndarray of shape (n,) or None
        Numbers of the rows in their file, from 0, for error messages.

    Returns
    -------
    polars.DataFrame
    """
    names = _names(frame.columns, intervals, quantiles)
    table = known(model)
    return _told(table, table.encoded(frame, rows), names, intervals, quantiles)


def _names(
    there: Sequence[str], intervals: Sequence[float], quantiles: Sequence[float]
) -> list[str]:
    """The columns that are added, none of which may be there."""
    names = ["mean", "std", *(f"{end}_{percent(v)}" for v in intervals for end in ("low", "high"))]
    names += [f"q_{percent(level)}" for level in quantiles]
    taken = [name for name in names if name in there]
    if taken:
        raise ValueError(f"The table has a column {taken[0]!r} already: rename it first.")
    return names


def _told(
    table: TableModel,
    encoded: NDArray[Any],
    names: list[str],
    intervals: Sequence[float],
    quantiles: Sequence[float],
) -> pl.DataFrame:
    """The model's predictions for encoded rows."""
    estimator, given = table.estimator, table.inputs(encoded)
    if len(names) == 2 and isinstance(estimator, PredictsDistribution):
        return pl.DataFrame(dict(zip(names, estimator.predict(given, True), strict=True)))
    dist = table.distribution(encoded)
    source = estimator.predict_interval if isinstance(estimator, Conformal) else None
    held = (source(given, v) if source else dist.interval(v) for v in intervals)
    ends = [end for both in held for end in both.T]
    values = [dist.mean, dist.std, *ends, *(dist.ppf(level) for level in quantiles)]
    return pl.DataFrame(dict(zip(names, values, strict=True)))


@dataclass(frozen=True)
class Served:
    """What was written: so many rows, of which some are far outside what the model has seen.

    Models of old do not know how many: then that is None.
    """

    rows: int
    outside: int | None


def predict_file(
    model: Model,
    data: str | Path,
    output: BinaryIO | Path,
    *,
    intervals: Sequence[float] = (),
    quantiles: Sequence[float] = (),
    header_rows: int = 1,
    form: str = ".csv",
    progress: Progress | None = None,
) -> Served:
    """Add predictions to a table of any length, part by part, and write it.

    Parameters
    ----------
    model : estimator
        As made by :func:`fit_table`, or fitted in Python.
    data : str or path
        As :func:`mvenet.table.read` takes it.
    output : file opened for bytes, or path
        A path for Parquet and Arrow, in which columns of numbers are numbers.
    intervals, quantiles : sequence of float in (0, 1)
    header_rows : int
    form : str
        Ending of the kind of file: ``.csv``, ``.tsv``, ``.parquet``, ``.arrow``.
    progress : callable or None
        Told the share that was read.

    Returns
    -------
    Served
    """
    table = known(model)
    decimal = table.encoder.named("number")
    wanted = [*decimal, *filter(None, [table.target])]
    separator = "" if form in COLUMNAR else "\t" if form == ".tsv" else ","
    read = chunks(data, decimal, lines=separator, header_rows=header_rows, progress=progress)

    odd: list[int | None] = []

    def parts() -> Iterator[tuple[Part, pl.DataFrame]]:
        for part in ahead(read):
            names = _names(part.values.columns, intervals, quantiles)
            encoded = table.encoded(part.values, part.rows)
            beyond = outside(table.encoder, part.values, encoded, FAR)
            odd.append(None if beyond is None else int(beyond.sum()))
            yield part, _told(table, encoded, names, intervals, quantiles)

    done = 0
    if isinstance(output, Path):
        whole = (
            with_numbers(part.shown, wanted, part.rows).hstack(added) for part, added in parts()
        )
        done = write_columnar(whole, output, form)
    else:
        for part, added in ahead(parts()):
            write(part.shown, added, output, header=not done, separator=separator, lines=part.lines)
            done += len(added)
    return Served(done, None if None in odd else sum(filter(None, odd)))
