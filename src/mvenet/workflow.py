"""From a table to a model, its evaluation and its predictions: what the command line runs."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline

from mvenet._estimator import NetworkRegressor, fit_until_stopped, workload
from mvenet._evaluation import Check, Evaluation, check, evaluate, evaluated, judge
from mvenet._plan import Stop, Workload
from mvenet._serving import predict_file, predictions
from mvenet.calibration import FOLDS, CalibratedRegressor
from mvenet.distributions import Distribution
from mvenet.predictive import left_out
from mvenet.regressor import MVERegressor
from mvenet.search import GridEndWarning, MVERegressorCV
from mvenet.table import TableEncoder, split_target

__all__ = [
    "Check",
    "Evaluation",
    "FittedTable",
    "check",
    "evaluate",
    "fit_table",
    "judge",
    "predict_file",
    "predictions",
]

Array = NDArray[np.float64]
STOPPED = "Stopped before all was tried: this is the best model so far."
PENALTIES = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)  # one more than the paper: for few noisy rows


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
    stopped : bool
        Whether Ctrl-C ended the search: the model is the best one up to then.
    """

    model: Pipeline
    evaluation: Evaluation | None
    train: pl.DataFrame
    test: pl.DataFrame
    without_target: int = 0
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0
    stopped: bool = False

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
    calibrate: bool = False,
    log: bool | None = None,
    effort: str | None = None,
    holdout: float = 0.2,
    seed: int | None = None,
    verbose: int = 0,
    columns: Callable[[TableEncoder], object] | None = None,
    expect: Callable[[Workload], object] | None = None,
) -> FittedTable:
    """Fit a model to a table.

    Ctrl-C ends the search; if there is a whole model by then, it is returned.

    Parameters
    ----------
    frame : DataFrame
        Of polars or pandas.
    target : str
        The column to predict. Rows without it are left out.
    search : bool
        Choose both penalties by cross-validation, or use the rule of thumb.
    members : int or None
        Networks for each fold, or in all without a search. With a search a number asks for one
        over the penalties of networks alone.
    calibrate : bool
        Make intervals conformal by rows that the folds left out.
    log : bool or None
        Model the target's logarithm, so that no prediction is below zero; None lets the rows left
        out decide.
    effort : {"low", "medium", "high"} or None
        How much a search tries, as in :class:`mvenet.MVERegressorCV`; None is its default.
    holdout : float
        Share of the rows held out to evaluate, 0 for none.
    seed : int or None
    verbose : int
    columns : callable or None
        Told before the training what each column was taken for, by an encoder that knows.
    expect : callable or None
        Told before the training what it will take: ``networks``, gradient ``steps``, ``seconds``.

    Returns
    -------
    FittedTable
    """
    start = time.perf_counter()
    X, y, rows = split_target(frame, target)
    train, test = _split(len(y), holdout, seed)
    encoder = TableEncoder(target=target)
    if log:
        _refuse_log(y, target, members)
    if effort is not None:
        _refuse_effort(effort, search, members)
    common: dict[str, Any] = {"random_state": seed, "verbose": verbose}
    common |= {} if effort is None else {"effort": effort}
    networks = _networks(search, members, log, len(train), **common)
    estimator = CalibratedRegressor(networks) if calibrate else networks
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", GridEndWarning)  # said in other words
        encoded = encoder.fit_transform(X[train], y[train], rows[train])
        if columns is not None:
            columns(encoder)
        if expect is not None:
            expect(_expected(estimator, encoded, y[train]))
        stop = Stop(fit_until_stopped(estimator, encoded, y[train]))
    model = Pipeline([("table", encoder), ("model", estimator)])
    fitted = innermost(estimator)
    notes = [STOPPED] if stop.pressed else []
    notes += [str(w.message) for w in caught if issubclass(w.category, UserWarning)]
    notes += [*_ends(fitted.penalties_, target)] if search else []
    notes += _warned(y, target)
    evaluation = None
    if len(test):
        fresh = X[test], y[test], rows[test]
        evaluation = stop.insisting(lambda: evaluated(model, *fresh))
    elif search:
        evaluation = judge(y, left_out(fitted), rows)
    named = X.with_columns(pl.Series(target, y))
    if evaluation is not None and members is None and y.max() > 1:
        notes += _below_zero(y, evaluation.dist, target)
    return FittedTable(
        model,
        evaluation,
        train=named[train],
        test=named[test],
        without_target=len(frame) - len(y),
        notes=notes,
        seconds=time.perf_counter() - start,
        stopped=stop.pressed is not None,
    )


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


def innermost(estimator: Any) -> Any:
    """The estimator within a calibration, or itself."""
    return estimator.members_[0] if isinstance(estimator, CalibratedRegressor) else estimator


def _warned(y: Array, target: str) -> list[str]:
    """What kind of target asks for more than a distribution of any number."""
    if np.ptp(y) == 0:
        return [f"{target} is {y[0]:g} in every row: there is nothing to predict."]
    if (y >= 0).all() and (y == np.round(y)).all() and len(np.unique(y)) <= 30:
        return [
            f"{target} holds few whole numbers, perhaps counts: the predicted distribution is a "
            "smooth one, and its quantiles lie between them."
        ]
    if (y >= 0).all() and (y <= 1).all() and np.ptp(y) > 0.3:
        return [
            f"{target} lies between 0 and 1, perhaps a share: intervals may reach beyond; clip "
            "them, or predict log(p / (1 - p))."
        ]
    return []


def _below_zero(y: Array, dist: Distribution, target: str) -> list[str]:
    """A word if many intervals reach where the target never is."""
    share = float(np.mean(dist.interval(0.9)[:, 0] < 0))
    if share < 0.05 or not (y > 0).all():
        return []
    return [
        f"{share:.0%} of the 90 % intervals reach below zero, where {target} never is: --positive "
        "keeps them above."
    ]


def _refuse_log(y: Array, target: str, members: int | None) -> None:
    if not (y > 0).all():
        raise ValueError(
            f"--positive needs a target above zero everywhere, and {target} holds {y.min():g}: "
            "drop --positive, or add a constant to the column first."
        )
    if members is not None:
        raise ValueError(
            "--members trains the paper's networks, which know no --positive: drop one."
        )


def _refuse_effort(effort: str, search: bool, members: int | None) -> None:
    if members is not None or not search:
        other = "--members" if members is not None else "--no-search"
        raise ValueError(f"--effort {effort} is for the automatic search: drop {other}.")


def _expected(
    estimator: MVERegressor | MVERegressorCV | CalibratedRegressor, X: Array, y: Array
) -> Workload:
    """What a fit will take, as far as a moment of training can tell."""
    if not isinstance(estimator, CalibratedRegressor):
        return workload(estimator, X, y)
    inner = workload(estimator.estimator, X, y)
    if isinstance(estimator.estimator, MVERegressorCV):
        return inner  # calibrated by its own folds
    return sum([inner] * FOLDS, Workload())


def _networks(
    search: bool, members: int | None, log: bool | None, n: int, **common: Any
) -> MVERegressor | MVERegressorCV:
    if search and n < 4:
        raise ValueError(f"{n} rows are too few for a search: use more rows, or --no-search.")
    if members is None:
        scale = {None: "auto", True: "log", False: "identity"}[log]
        return (MVERegressorCV if search else MVERegressor)(target=scale, **common)
    if not search:
        return MVERegressor(strategy="warmup", n_members=members, **common)
    return MVERegressorCV(
        PENALTIES,
        PENALTIES,
        strategy="warmup",
        cv=min(10, n),
        scoring="crps",  # not the likelihood: whoever looks at a report looks at the mean first
        n_members=members,
        **common,
    )


def model_in_words(networks: Any) -> str:
    """What a fitted model consists of, a sentence a line."""
    if isinstance(networks, CalibratedRegressor):
        rows = f"{networks.n_calibration_:,} rows left out"
        return f"{model_in_words(networks.members_[0])}\nIntervals calibrated by {rows}."
    if hasattr(networks, "summary_"):
        return str(networks.summary_)
    if not hasattr(networks, "penalties_"):
        return f"{type(networks).__name__}."
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
