"""Predictions for a table that a model was not fitted to, and for a file of any length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

import polars as pl
from numpy.typing import NDArray

from mvenet._conformal import Conformal
from mvenet._predictor import PredictsDistribution
from mvenet._wording import percent
from mvenet.predictive import predictive_distribution
from mvenet.table import COLUMNAR, Part, ahead, chunks, with_numbers, write, write_columnar

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

    from mvenet.table._encoding import Encoding
    from mvenet.table._files import Progress

    Model: TypeAlias = Pipeline | tuple[Encoding, PredictsDistribution]


def target_of(model: Any) -> str:
    """Name of the column that a model of :func:`fit_table` predicts."""
    steps = isinstance(model, tuple) or hasattr(model, "named_steps")
    target = getattr(model[0], "target", None) if steps else None
    if not isinstance(target, str):
        raise ValueError(
            "The model was not made by `mvenet fit`, so it does not know its table: use it from "
            "Python."
        )
    return target


def after_encoder(model: Model) -> Any:
    """What a model of :func:`fit_table` does with encoded rows: an estimator, seldom a pipeline."""
    return model[1] if len(model) == 2 else model[1:]


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
    model : Pipeline, or tuple of its steps
        As made by :func:`fit_table`.
    frame : DataFrame
        Of polars or pandas.
    intervals, quantiles : sequence of float in (0, 1)
    rows : ndarray of shape (n,) or None
        Numbers of the rows in their file, from 0, for error messages.

    Returns
    -------
    polars.DataFrame
    """
    names = ["mean", "std", *(f"{end}_{percent(v)}" for v in intervals for end in ("low", "high"))]
    names += [f"q_{percent(level)}" for level in quantiles]
    taken = [name for name in names if name in frame.columns]
    if taken:
        raise ValueError(f"The table has a column {taken[0]!r} already: rename it first.")
    encoded = model[0].transform(frame, rows)
    estimator = after_encoder(model)
    if len(names) == 2 and isinstance(estimator, PredictsDistribution):
        return pl.DataFrame(dict(zip(names, estimator.predict(encoded, True), strict=True)))
    dist = predictive_distribution(estimator, encoded)
    source = estimator.predict_interval if isinstance(estimator, Conformal) else None
    held = (source(encoded, v) if source else dist.interval(v) for v in intervals)
    ends = [end for both in held for end in both.T]
    values = [dist.mean, dist.std, *ends, *(dist.ppf(level) for level in quantiles)]
    return pl.DataFrame(dict(zip(names, values, strict=True)))


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
) -> int:
    """Add predictions to a table of any length, part by part, and write it.

    Parameters
    ----------
    model : Pipeline, or tuple of its steps
        As made by :func:`fit_table`.
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
    int
        Rows written.
    """
    decimal = model[0].named("number")
    wanted = [*decimal, target_of(model)]
    separator = "" if form in COLUMNAR else "\t" if form == ".tsv" else ","
    read = chunks(data, decimal, lines=separator, header_rows=header_rows, progress=progress)

    def parts() -> Iterator[tuple[Part, pl.DataFrame]]:
        for part in ahead(read):
            yield part, predictions(model, part.values, intervals, quantiles, part.rows)

    if isinstance(output, Path):
        whole = (
            with_numbers(part.shown, wanted, part.rows).hstack(added) for part, added in parts()
        )
        return write_columnar(whole, output, form)
    done = 0
    for part, added in ahead(parts()):
        write(part.shown, added, output, header=not done, separator=separator, lines=part.lines)
        done += len(added)
    return done
