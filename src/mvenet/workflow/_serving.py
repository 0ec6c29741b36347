"""Predictions for a table that a model was not fitted to, and for a file of any length."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mvenet._columns.cells import with_numbers
from mvenet._models.conformal import Conformal
from mvenet._models.predictor import PredictsDistribution
from mvenet._utils.wording import percent
from mvenet.table._ahead import ahead
from mvenet.table._files import COLUMNAR, Part, chunks
from mvenet.table._writing import write, write_columnar
from mvenet.workflow._known import TableModel, known
from mvenet.workflow._known_targets import TableModels, check_known
from mvenet.workflow._ties import Compared, Ties

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

    from mvenet._columns.encoding import Encoding
    from mvenet.table._files import Progress

    Model: TypeAlias = PredictsDistribution | Pipeline | tuple[Encoding, PredictsDistribution]


# A row is reported only if it lies beyond a range by more than this share of it: a few of any table
# are beyond a little.
FAR = 0.1
OUTSIDE = "outside"  # the column that tells which rows those are


def predictions(
    model: Model,
    frame: Any,
    intervals: Sequence[float] = (),
    quantiles: Sequence[float] = (),
    rows: NDArray[Any] | None = None,
    simultaneous: bool = False,
) -> pl.DataFrame:
    """Columns ``mean``, ``std``, ``low_90``, ``high_90``, ``q_10`` … for each row of a table.

    With several targets each name begins with that of its target: ``heating_mean``. And
    ``outside``: whether a row is far outside what the model has seen.

    Parameters
    ----------
    model : estimator
        As made by :func:`fit_table`, or fitted in Python.
    frame : DataFrame
        Of polars or pandas.
    intervals, quantiles : sequence of float in (0, 1)
    rows : ndarray of shape (n,) or None
        Numbers of the rows in their file, from 0, for error messages.
    simultaneous : bool
        With several targets: intervals that hold for all of them at once.

    Returns
    -------
    polars.DataFrame
    """
    asked = _Asked.of(model, intervals, quantiles, simultaneous)
    encoded = [table.encoded(frame, rows) for table in asked.tables]
    first = asked.tables[0]
    beyond = first.outside(first.encoder.tidy(frame), encoded[0], FAR)
    return asked.added(frame, encoded, beyond)


@dataclass(frozen=True)
class _Asked:
    """What is to be added to each row of a table, by the models of one target or of several."""

    tables: tuple[TableModel, ...]
    prefixes: tuple[str, ...]
    intervals: Sequence[float]
    quantiles: Sequence[float]
    together: TableModels | None = None  # if intervals are to hold for all targets at once

    @staticmethod
    def of(
        model: Model, intervals: Sequence[float], quantiles: Sequence[float], simultaneous: bool
    ) -> _Asked:
        check_known(model, simultaneous)
        several = TableModels.of(model)
        if several is None:
            return _Asked((known(model),), ("",), intervals, quantiles)
        prefixes = tuple(f"{name}_" for name in several.joint.names)
        together = several if simultaneous else None
        return _Asked(several.each, prefixes, intervals, quantiles, together)

    def added(
        self, frame: Any, encoded: list[NDArray[Any]], beyond: NDArray[np.bool_] | None
    ) -> pl.DataFrame:
        """The columns of predictions, none of which may be there, and which rows are outside."""
        names = [p + name for p in self.prefixes for name in _names(self.intervals, self.quantiles)]
        taken = [name for name in (*names, OUTSIDE) if name in frame.columns]
        if taken:
            raise ValueError(f"The table has a column {taken[0]!r} already: rename it first.")
        made = self._predicted(encoded)
        return made if beyond is None else made.with_columns(pl.Series(OUTSIDE, beyond))

    def _predicted(self, encoded: list[NDArray[Any]]) -> pl.DataFrame:
        if self.together is not None:
            return self._simultaneous(self.together, encoded)
        names = _names(self.intervals, self.quantiles)
        each = zip(self.tables, self.prefixes, encoded, strict=True)
        told = [
            _told(table, numbers, names, self.intervals, self.quantiles).rename(
                {name: prefix + name for name in names}
            )
            for table, prefix, numbers in each
        ]
        return pl.concat(told, how="horizontal")

    def _simultaneous(self, models: TableModels, encoded: list[NDArray[Any]]) -> pl.DataFrame:
        each = [table.distribution(e) for table, e in zip(self.tables, encoded, strict=True)]
        joint = models.together(each, encoded[0])
        held = [joint.simultaneous_interval(level) for level in self.intervals]
        columns: dict[str, NDArray[Any]] = {}
        for j, (prefix, dist) in enumerate(zip(self.prefixes, each, strict=True)):
            ends = [end for both in held for end in both[:, j].T]
            values = [dist.mean, dist.std, *ends, *(dist.ppf(level) for level in self.quantiles)]
            names = [prefix + name for name in _names(self.intervals, self.quantiles)]
            columns |= dict(zip(names, values, strict=True))
        return pl.DataFrame(columns)


def _names(intervals: Sequence[float], quantiles: Sequence[float]) -> list[str]:
    """The columns that are added for a target."""
    names = ["mean", "std", *(f"{end}_{percent(v)}" for v in intervals for end in ("low", "high"))]
    return names + [f"q_{percent(level)}" for level in quantiles]


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

    Models of old do not know how many: then that is None. ``compared`` tells of groups and time.
    """

    rows: int
    outside: int | None
    compared: Compared

    def __add__(self, other: Served) -> Served:
        """Of both."""
        unknown = self.outside is None or other.outside is None
        outside = None if unknown else (self.outside or 0) + (other.outside or 0)
        return Served(self.rows + other.rows, outside, self.compared + other.compared)


def predict_file(
    model: Model,
    data: str | Path,
    output: BinaryIO | Path,
    *,
    intervals: Sequence[float] = (),
    quantiles: Sequence[float] = (),
    simultaneous: bool = False,
    header_rows: int = 1,
    sheet: str | None = None,
    form: str = ".csv",
    said: dict[str, str] | None = None,
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
    simultaneous : bool
        With several targets: intervals that hold for all of them at once.
    header_rows, sheet
        As :func:`mvenet.table.read` takes them.
    form : str
        Ending of the kind of file: ``.csv``, ``.tsv``, ``.parquet``, ``.arrow``.
    said : dict of str or None
        What a Parquet file is to say of itself, by name.
    progress : callable or None
        Told the share that was read.

    Returns
    -------
    Served
    """
    asked = _Asked.of(model, intervals, quantiles, simultaneous)
    encoder = asked.tables[0].encoder
    decimal = encoder.named("number")
    wanted = [*decimal, *filter(None, [table.target for table in asked.tables])]
    separator = "" if form in COLUMNAR else "\t" if form == ".tsv" else ","
    read = chunks(
        data, decimal, lines=separator, header_rows=header_rows, sheet=sheet, progress=progress
    )

    odd: list[int | None] = []
    ties = Ties.of_model(model)
    compared: list[Compared] = []

    def parts() -> Iterator[tuple[Part, pl.DataFrame]]:
        for part in ahead(read):
            encoded = [table.encoded(part.values, part.rows) for table in asked.tables]
            beyond = asked.tables[0].outside(part.values, encoded[0], FAR)
            odd.append(None if beyond is None else int(beyond.sum()))
            compared.append(ties.compared(part.values))
            yield part, asked.added(part.values, encoded, beyond)

    done = 0
    if isinstance(output, Path):
        whole = (
            with_numbers(part.shown, wanted, part.rows).hstack(added) for part, added in parts()
        )
        done = write_columnar(whole, output, form, said)
    else:
        for part, added in ahead(parts()):
            write(part.shown, added, output, header=not done, separator=separator, lines=part.lines)
            done += len(added)
    both = functools.reduce(operator.add, compared) if compared else ties.compared(pl.DataFrame())
    return Served(done, None if None in odd else sum(filter(None, odd)), both)
