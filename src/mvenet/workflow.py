"""From a table to a model, its evaluation and its predictions: what the command line runs."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline

from mvenet import metrics
from mvenet._estimator import NetworkRegressor
from mvenet.distributions import Normal, NormalMixture
from mvenet.predictive import predictive_distribution
from mvenet.regressor import MVERegressor
from mvenet.search import GridEndWarning, MVERegressorCV
from mvenet.table import TableEncoder, chunks, split_target, write

if TYPE_CHECKING:
    from pathlib import Path

    from mvenet.table._files import Progress

__all__ = [
    "Evaluation",
    "FittedTable",
    "evaluate",
    "fit_table",
    "predict_file",
    "predictions",
]

Array = NDArray[np.float64]
LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)
PENALTIES = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)  # one more than the paper: for few noisy rows


@dataclass(frozen=True)
class Evaluation:
    """Predictions for rows that were not trained on, and how good they are.

    Attributes
    ----------
    y : ndarray of shape (n,)
    dist : Normal or NormalMixture
    scores : dict of float
        ``rmse``, ``mae``, ``r2``, ``nll``, ``crps``, in units of y where they have one.
    coverage : dict of float
        Share of the rows within the central interval, by what the interval claims.
    rows : ndarray of shape (n,)
        Which rows of the table these are, counted from 0.
    without_target : int
        Rows of the table that could not be judged by.
    """

    y: Array
    dist: Normal | NormalMixture
    scores: Mapping[str, float]
    coverage: Mapping[float, float]
    rows: NDArray[Any]
    without_target: int = 0


def judge(
    y: Array, dist: Normal | NormalMixture, rows: NDArray[Any], without_target: int = 0
) -> Evaluation:
    """Score predictive distributions by what was observed."""
    spread = float(np.var(y))
    rmse = metrics.rmse(y, dist)
    scores = {
        "rmse": rmse,
        "mae": metrics.mae(y, dist),
        "r2": 1 - rmse**2 / spread if spread > 0 else float("nan"),
        "nll": metrics.nll(y, dist),
        "crps": metrics.crps(y, dist),
    }
    reached = metrics.coverage(y, dist, nominal=LEVELS)
    covered = dict(zip(LEVELS, np.asarray(reached).tolist(), strict=True))
    return Evaluation(y, dist, scores, covered, rows, without_target)


@dataclass(frozen=True)
class FittedTable:
    """A model fitted to a table, and its evaluation on rows that it has not seen.

    Attributes
    ----------
    model : Pipeline
        A :class:`mvenet.table.TableEncoder`, then the networks.
    evaluation : Evaluation or None
        On the rows held out; on the rows that each fold left out if none were held out but folds
        searched; else None.
    train, test : polars.DataFrame
        The rows that were trained on, and those held out, with the target.
    without_target : int
        Rows of the table that could not be used.
    notes : list of str
        Warnings of the fit.
    seconds : float
    """

    model: Pipeline
    evaluation: Evaluation | None
    train: pl.DataFrame
    test: pl.DataFrame
    without_target: int = 0
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def networks(self) -> NetworkRegressor:
        """The estimator at the end of the pipeline."""
        estimator: NetworkRegressor = self.model[-1]
        return estimator


def fit_table(
    frame: Any,
    target: str,
    *,
    search: bool = True,
    members: int | None = None,
    holdout: float = 0.2,
    seed: int | None = None,
    verbose: int = 0,
) -> FittedTable:
    """Fit a model to a table.

    Parameters
    ----------
    frame : DataFrame
        Of polars or pandas.
    target : str
        The column to predict. Rows without it are left out.
    search : bool
        Choose both penalties by cross-validation, or use the rule of thumb.
    members : int or None
        Networks for each fold, or in all without a search.
    holdout : float
        Share of the rows held out to evaluate, 0 for none.
    seed : int or None
    verbose : int

    Returns
    -------
    FittedTable
    """
    start = time.perf_counter()
    X, y, rows = split_target(frame, target)
    train, test = _split(len(y), holdout, seed)
    model = Pipeline(
        [
            ("table", TableEncoder(target=target)),
            ("model", _networks(search, members, len(train), seed, verbose)),
        ]
    )
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", GridEndWarning)  # said in other words
        model.fit(X[train], y[train], table__rows=rows[train])
    notes = [str(w.message) for w in told if issubclass(w.category, UserWarning)]
    notes += _ends(model[-1].penalties_, target) if search else []
    evaluation = None
    if len(test):
        evaluation = judge(y[test], _predicted(model, X[test], rows[test]), rows[test])
    elif search:
        networks = model[-1]
        evaluation = judge(y, Normal(networks.oof_mean_, networks.oof_std_), rows)
    named = X.with_columns(pl.Series(target, y))
    without = len(frame) - len(y)
    seconds = time.perf_counter() - start
    return FittedTable(model, evaluation, named[train], named[test], without, notes, seconds)


def _predicted(model: Pipeline, frame: Any, rows: NDArray[Any] | None) -> Normal | NormalMixture:
    """Predictive distribution of each row, whose numbers in the file errors tell."""
    return predictive_distribution(model[1:], model[0].transform(frame, rows))


def _split(n: int, holdout: float, seed: int | None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows to train on, and rows held out."""
    rows = np.arange(n)
    if not holdout:
        return rows, rows[:0]
    held_out = math.ceil(holdout * n) if 0 < holdout < 1 else n
    if n - held_out < 2:
        raise ValueError(
            f"holdout={holdout} leaves {n - held_out} of {n} rows to train on, and at least 2 are "
            "needed: use a share such as 0.2, or 0 for none."
        )
    train, test = train_test_split(rows, test_size=held_out, random_state=seed)
    return np.sort(train), np.sort(test)


def _networks(
    search: bool, members: int | None, n: int, seed: int | None, verbose: int
) -> MVERegressor | MVERegressorCV:
    common: dict[str, Any] = {"random_state": seed, "verbose": verbose}
    if not search:
        if members is None:
            return MVERegressor(**common)
        return MVERegressor(strategy="warmup", n_members=members, **common)
    if n < 4:
        raise ValueError(f"{n} rows are too few for a search: use more rows, or --no-search.")
    if members is None:
        return MVERegressorCV(**common)
    return MVERegressorCV(
        PENALTIES,
        PENALTIES,
        strategy="warmup",
        cv=min(10, n),
        scoring="crps",  # not the likelihood: whoever looks at a report looks at the mean first
        n_members=members,
        **common,
    )


def model_in_words(networks: NetworkRegressor) -> str:
    """What a fitted model consists of, a sentence a line."""
    if hasattr(networks, "summary_"):
        return str(networks.summary_)
    n, (reg_mean, reg_var) = len(networks.networks_), networks.penalties_
    return (
        f"{n} network{'s' * (n != 1)}; penalties {reg_mean:.3g} (mean) and {reg_var:.3g} "
        "(variance)."
    )


def _ends(penalties: tuple[float, float], target: str) -> list[str]:
    """What it means that a search chose its strongest penalty."""
    meanings = (f"The columns say little about {target}", "The noise is about the same in all rows")
    return [
        f"{meaning}: the strongest penalty that was tried on the {network} is the best."
        for meaning, network, chosen in zip(meanings, ("mean", "variance"), penalties, strict=True)
        if chosen == PENALTIES[-1]
    ]


def evaluate(model: Pipeline, frame: Any) -> Evaluation:
    """Score a fitted model on a table that has its target."""
    X, y, rows = split_target(frame, target_of(model))
    return judge(y, _predicted(model, X, rows), rows, len(frame) - len(y))


def target_of(model: Any) -> str:
    """Name of the column that a model of :func:`fit_table` predicts."""
    target = getattr(model[0], "target", None) if isinstance(model, Pipeline) else None
    if not isinstance(target, str):
        raise ValueError(
            "The model was not made by `mvenet fit`, so it does not know its table: use it from "
            "Python."
        )
    return target


def predictions(
    model: Pipeline,
    frame: Any,
    intervals: Sequence[float] = (),
    quantiles: Sequence[float] = (),
    rows: NDArray[Any] | None = None,
) -> pl.DataFrame:
    """Columns ``mean``, ``std``, ``low_90``, ``high_90``, ``q_10`` … for each row of a table.

    Parameters
    ----------
    model : Pipeline
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
    dist = _predicted(model, frame, rows)
    ends = [end for level in intervals for end in dist.interval(level).T]
    values = [dist.mean, dist.std, *ends, *(dist.ppf(level) for level in quantiles)]
    return pl.DataFrame(dict(zip(names, values, strict=True)))


def predict_file(
    model: Pipeline,
    data: str | Path,
    output: BinaryIO,
    *,
    intervals: Sequence[float] = (),
    quantiles: Sequence[float] = (),
    header_rows: int = 1,
    separator: str = ",",
    progress: Progress | None = None,
) -> int:
    """Add predictions to a table of any length, part by part, and write it as CSV.

    Parameters
    ----------
    model : Pipeline
        As made by :func:`fit_table`.
    data : str or path
        As :func:`mvenet.table.read` takes it.
    output : file opened for bytes
    intervals, quantiles : sequence of float in (0, 1)
    header_rows : int
    separator : str
    progress : callable or None
        Told the share that was read.

    Returns
    -------
    int
        Rows written.
    """
    done = 0
    decimal = model[0].named("number")
    for part in chunks(data, decimal, header_rows=header_rows, progress=progress):
        rows = np.arange(part.first, part.first + len(part.values))
        added = predictions(model, part.values, intervals, quantiles, rows)
        out = part.shown.hstack(added)
        write(out, output, header=not done, separator=separator)
        done += len(out)
    return done


def verdict(level: float, share: float, n: int) -> tuple[str, float, float]:
    """Whether so many rows within an interval may be chance, and what chance allows."""
    from scipy import stats  # half a second, and most commands need none of it

    low, high = (float(v) / n for v in stats.binom(n, level).interval(0.95))
    if share < low - 1e-12:
        return "too narrow", low, high
    return ("too wide" if share > high + 1e-12 else "as claimed"), low, high


def readable(value: float | None) -> str:
    """Four digits, thousands apart, no exponent where it can be helped."""
    if value is None:
        return "–"
    if value and (abs(value) >= 1e9 or abs(value) < 1e-3):
        return f"{value:.3g}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def percent(level: float) -> str:
    """``0.9`` as ``90``, ``0.025`` as ``2.5``."""
    return f"{100 * level:.10g}"
