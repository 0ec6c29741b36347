"""From a table to a model, its evaluation and its predictions: what the command line runs."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import train_test_split

from mvenet._automatic import detection
from mvenet._automatic.constants import STAND_TWICE
from mvenet._columns.cells import split_target, texts
from mvenet._columns.settled import Settled
from mvenet._estimators.auto import AutoRegressor
from mvenet._estimators.base import TrainedRegressor, described, fit_until_stopped
from mvenet._estimators.calibration import FOLDS, CalibratedRegressor
from mvenet._estimators.dependence import Belonging as Given
from mvenet._estimators.dependence import DependenceWarning
from mvenet._estimators.regressor import MVERegressor
from mvenet._training.plan import Plan, Stop, Workload, estimate
from mvenet._utils.machine import effective_threads
from mvenet.distributions import Distribution
from mvenet.predictive import left_out
from mvenet.table import TableEncoder
from mvenet.workflow._belonging import Belonging
from mvenet.workflow._evaluation import Evaluation, evaluate_predictions, evaluated
from mvenet.workflow._known import known
from mvenet.workflow._ties import Ties

Array = NDArray[np.float64]
STOPPED = "Stopped before all was tried: this is the best model so far."


@dataclass(frozen=True)
class FittedTable:
    """A model fitted to a table, and its evaluation on rows that it has not seen.

    Attributes
    ----------
    model : AutoRegressor, MVERegressor or CalibratedRegressor
        Takes rows of the table as they are.
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

    model: TrainedRegressor | CalibratedRegressor
    evaluation: Evaluation | None
    train: pl.DataFrame
    test: pl.DataFrame
    without_target: int = 0
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0
    stopped: bool = False

    @property
    def evaluated_rows(self) -> pl.DataFrame:
        """The rows that the evaluation is of: those held out, or those that folds left out."""
        left_out = getattr(innermost(self.model), "oof_mean_", ())
        if len(self.test) or len(left_out) != len(self.train):
            return self.test if len(self.test) else self.train
        return self.train.filter(pl.Series(np.isfinite(left_out)))

    @property
    def promise(self) -> str:
        """For which rows the intervals hold; empty if for any like those of the table."""
        return str(vars(self.model).get("promise_", ""))


def fit_table(
    frame: Any,
    column: str,
    *,
    search: bool = True,
    members: int | None = None,
    calibrate: bool = False,
    target: str = "auto",
    effort: str | None = None,
    bounds: tuple[float | None, float | None] | None = None,
    holdout: float = 0.2,
    seed: int | None = None,
    verbose: int = 0,
    columns: Callable[[TableEncoder], object] | None = None,
    expect: Callable[[Workload], object] | None = None,
    group: str | None = None,
    time: str | None = None,
    horizon: float | None = None,
    copies: str = "auto",
    unit: str = "",
) -> FittedTable:
    """Fit a model to a table.

    Ctrl-C ends the search; if there is a whole model by then, it is returned.

    Parameters
    ----------
    frame : DataFrame
        Of polars or pandas.
    column : str
        The column to predict. Rows without it are left out.
    search : bool
        Find the model (:class:`mvenet.AutoRegressor`), or train one kind of network, quickly
        (:class:`mvenet.MVERegressor`).
    members : int or None
        Without a search, networks for each fold; None is one.
    calibrate : bool
        Make intervals conformal by rows that the folds left out.
    target : {"auto", "identity", "log"}
        How the column is modelled, as in :class:`mvenet.AutoRegressor`: by its logarithm no
        prediction is below zero; "auto" lets the rows left out decide.
    effort : {"low", "medium", "high"} or None
        How much a search tries, as in :class:`mvenet.AutoRegressor`; None is its default.
    bounds : tuple of two numbers, each a float or None, or None
        Ends that the column cannot leave, as in :class:`mvenet.AutoRegressor`.
    holdout : float
        Share of the rows held out to evaluate, 0 for none.
    seed : int or None
    verbose : int
    columns : callable or None
        Told before the training what each column was taken for, by an encoder that knows.
    expect : callable or None
        Told before the training what it will take: ``networks``, gradient ``steps``, ``seconds``.
    group : str or None
        Column that says which rows belong together. It is no input; whole groups are held out and
        left out, and what is promised holds for rows of new ones.
    time : str or None
        Column of dates or numbers that orders the rows. The last ones are held out, stretches of
        time left out, and what is promised holds for the next stretch. With ``group``, too, it
        holds for later rows of new groups, and rows that folds leave out serve to check.
    horizon : float or None
        Length of that stretch, in units of the column (days, if it holds dates).
    copies : {"auto", "together", "apart"}
        What exact copies of rows are, as in :class:`mvenet.AutoRegressor`. Together, none is held
        out while another is trained on.
    unit : str
        Of the column to predict, such as "€", for reports and the model's card.

    Returns
    -------
    FittedTable
    """
    start = perf_counter()
    X, y, rows = split_target(frame, column)
    tied = Belonging.of(X, column, group, time, horizon)
    X = tied.inputs(X)
    train, test = (tied.split(holdout, seed) if holdout else None) or _split(
        len(y), holdout, seed, _copied(X, y, copies)
    )
    given = tied.given(train)
    table = Settled.of(X, rows)
    if target == "log":
        _refuse_log(y, column)
    common = {"random_state": seed, "verbose": verbose, "target": target}
    networks = _estimator(search, members, effort, bounds, len(train), common, copies)
    estimator = CalibratedRegressor(networks) if calibrate else networks
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        probe = clone(networks)
        planned, plans = described([probe], table[train], y[train], belonging=Given(**given))
        encoder, encoded = probe.encoder_, planned.source
        encoder.transform(X[test], rows[test])  # what it refuses need not wait
        if columns is not None:
            columns(encoder)
        if expect is not None:
            expect(_expected(estimator, plans))
        stop = Stop(fit_until_stopped(estimator, table[train], y[train], **given))
    estimator.target_name_ = column
    if unit:
        estimator.unit_ = unit
    fitted = innermost(estimator)
    notes = [STOPPED] if stop.pressed else []
    warned = [_of_table(w, encoder) for w in caught if issubclass(w.category, UserWarning)]
    notes += dict.fromkeys(warned)  # once, though the plan has warned of it, too
    notes += _warned(y, column)
    promise = tied.promise(train)
    if promise:
        estimator.promise_ = promise
        estimator.ties_ = Ties.of_rows(tied, train).kept
    elif search:
        notes += _identifiers(encoder, X[train], encoded, y[train])
    evaluation: Evaluation | None
    if len(test):
        evaluation = stop.finish(lambda: _checked(estimator, X[test], y[test], rows[test]))
    else:
        evaluation = evaluated_left_out(fitted, y, train, rows)
    if evaluation is not None:
        compared = test if len(test) else np.flatnonzero(np.isin(rows, evaluation.rows))
        evaluation = replace(evaluation, by=tied.by(compared))
        notes += _noticed(
            evaluation, y, column, whole_groups=len(test) > 0 and tied.groups is not None
        )
        if len(test):
            estimator.held_out_ = held_out(evaluation)
    named = X.with_columns(pl.Series(column, y))
    return FittedTable(
        estimator,
        evaluation,
        train=named[train],
        test=named[test],
        without_target=len(frame) - len(y),
        notes=notes,
        seconds=perf_counter() - start,
        stopped=stop.pressed is not None,
    )


def _noticed(evaluation: Evaluation, y: Array, column: str, whole_groups: bool) -> list[str]:
    """What rows that were left out show: intervals below zero, and groups that are off."""
    notes = _below_zero(y, evaluation.dist, column) if y.max() > 1 else []
    return notes + (_by_group(evaluation) if whole_groups else [])


def evaluated_left_out(
    estimator: Any, y: Array, train: NDArray[Any], rows: NDArray[Any]
) -> Evaluation | None:
    """An evaluation by rows that folds left out; None if there were none."""
    if len(getattr(estimator, "oof_mean_", ())) != len(train):  # of a fold's member, perhaps
        return None
    left = np.flatnonzero(np.isfinite(estimator.oof_mean_))
    places = train[left]
    return evaluate_predictions(y[places], left_out(estimator, left), rows[places])


def held_out(evaluation: Evaluation) -> dict[str, float]:
    """What a model's card tells of rows that were held out."""
    return {
        "rows": len(evaluation.y),
        "rmse": evaluation.scores["rmse"],
        "crps": evaluation.scores["crps"],
        "covered_by_90": evaluation.coverage[0.9],
    }


def _copied(X: pl.DataFrame, y: Array, choice: str) -> NDArray[Any] | None:
    """A number for each row, the same for copies; None if they are observations of their own."""
    if choice == "apart":
        return None
    _, numbers, counts = np.unique(
        X.with_columns(pl.Series(" y", y)).hash_rows().to_numpy(),
        return_inverse=True,
        return_counts=True,
    )
    many = counts[counts > 1].sum() > STAND_TWICE * len(y)
    return numbers.ravel() if many or (choice == "together" and len(counts) < len(y)) else None


def _checked(estimator: Any, X: pl.DataFrame, y: Array, rows: NDArray[Any]) -> Evaluation:
    table = known(estimator)
    return evaluated(table, table.encoded(X, rows), y, rows)


def _split(
    n: int, holdout: float, seed: int | None, copied: NDArray[Any] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows to train on, and rows held out; rows of one number are on the same side."""
    if copied is not None:
        train, test = _split(int(copied.max()) + 1, holdout, seed)
        return np.flatnonzero(np.isin(copied, train)), np.flatnonzero(np.isin(copied, test))
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


def _warned(y: Array, column: str) -> list[str]:
    """A note on a target that a smooth distribution of all numbers does not suit."""
    if np.ptp(y) == 0:
        return [f"{column} is {y[0]:g} in every row: there is nothing to predict."]
    if (y >= 0).all() and (y == np.round(y)).all() and len(np.unique(y)) <= 30:
        return [
            f"{column} holds few whole numbers, perhaps counts: the predicted distribution is a "
            "smooth one, and its quantiles lie between them."
        ]
    if (y >= 0).all() and (y <= 1).all() and np.ptp(y) > 0.3:
        return [
            f"{column} lies between 0 and 1, perhaps a share: intervals may reach beyond; clip "
            "them, or predict log(p / (1 - p))."
        ]
    return []


def _of_table(warning: warnings.WarningMessage, encoder: TableEncoder) -> str:
    """A warning of an estimator, which knows its columns by number, in words of the table."""
    text = str(warning.message)
    if not issubclass(warning.category, DependenceWarning):
        return text
    names = encoder.get_feature_names_out()
    text = re.sub(r"\bcolumn (\d+)", lambda number: f"the column {names[int(number[1])]!r}", text)
    for word in ("group", "time"):
        text = re.sub(f"fit with {word}s?", f"use {word}=COLUMN", text)
    return text


def _identifiers(encoder: TableEncoder, X: pl.DataFrame, encoded: Array, y: Array) -> list[str]:
    """A word on the category whose rows belong together most, if there is one."""
    found = []
    for name, places in encoder.places().items():
        if name in encoder.named("category"):
            labels = np.unique(texts(X[name]).fill_null("").to_numpy(), return_inverse=True)[1]
            known = np.column_stack([np.delete(encoded, places, axis=1), labels])
            tested = detection.of_labels(known, y, labels, 0)
            found += [] if tested is None else [(*tested, name)]
    if not found:
        return []
    worse, covered, name = max(found)
    return [
        f"Rows with the same {name} belong together: for one that is new, errors are {worse:.1f} "
        f"times as large, and 90 % intervals would cover about {covered:.0%} of its rows. If new "
        f"rows are to be of a new {name}, use group={name!r}."
    ]


def _by_group(evaluation: Evaluation) -> list[str]:
    """Which of the groups held out are covered by chance no more."""
    table, by = evaluation.coverage_by(), evaluation.by
    if table is None or by is None:
        return []
    off = (table["coverage"] < table["low"]) | (table["coverage"] > table["high"])
    worst = table["group"][np.argsort(table["coverage"], kind="stable")][:3]
    share = table["coverage"]
    return [
        f"Of {len(share)} new values of {by.name}, the 90 % intervals cover {share.min():.0%} to "
        f"{share.max():.0%} of the rows; {int(off.sum())} are off by more than chance allows if "
        f"their rows were independent. Least covered: {', '.join(map(str, worst))}."
    ]


def _below_zero(y: Array, dist: Distribution, column: str) -> list[str]:
    """A word if many intervals reach where the target never is."""
    share = float(np.mean(dist.interval(0.9)[:, 0] < 0))
    if share < 0.05 or not (y > 0).all():
        return []
    return [
        f"{share:.0%} of the 90 % intervals reach below zero, where {column} never is: "
        "target='log' keeps them above."
    ]


def _refuse_log(y: Array, column: str) -> None:
    if not (y > 0).all():
        raise ValueError(
            f"target='log' needs a column above zero everywhere, and {column} holds {y.min():g}: "
            "use target='auto', or add a constant to the column first."
        )


def _expected(
    estimator: AutoRegressor | MVERegressor | CalibratedRegressor, plans: list[Plan]
) -> Workload:
    """What a fit will take, as far as a moment of training can tell."""
    alone = estimator.estimator if isinstance(estimator, CalibratedRegressor) else estimator
    inner = estimate(plans, threads=effective_threads(alone.n_jobs))
    if alone is estimator or isinstance(alone, AutoRegressor):
        return inner  # which is calibrated by its own folds
    return sum([inner] * FOLDS, Workload())


def _estimator(
    search: bool,
    members: int | None,
    effort: str | None,
    bounds: tuple[float | None, float | None] | None,
    n: int,
    common: dict[str, Any],
    copies: str = "auto",
) -> AutoRegressor | MVERegressor:
    """The estimator to fit; a setting that only the other one has is refused."""
    if not search:
        if effort is not None:
            raise ValueError(f"effort={effort!r} is for a search: drop it, or use search=True.")
        if bounds is not None:
            raise ValueError("bounds are for a search: drop them, or use search=True.")
        if copies == "together":
            raise ValueError("copies='together' is for a search: drop it, or use search=True.")
        return MVERegressor(n_members=1 if members is None else members, **common)
    if members is not None:
        raise ValueError(
            f"members={members} is for a single kind of network, and a search finds out by itself "
            "how many it needs: drop it, or use search=False."
        )
    if n < 4:
        raise ValueError(f"{n} rows are too few for a search: use more rows, or search=False.")
    found = AutoRegressor(**common, bounds=bounds, copies=copies)
    return found if effort is None else found.set_params(effort=effort)


def model_in_words(networks: Any) -> str:
    """What a fitted model consists of, a sentence a line.

    Parameters
    ----------
    networks : estimator
        As made by :func:`mvenet.workflow.fit_table`, or fitted in Python.

    Returns
    -------
    str
    """
    if isinstance(networks, CalibratedRegressor):
        rows = f"{networks.n_calibration_:,} rows left out"
        return f"{model_in_words(networks.members_[0])}\nIntervals calibrated by {rows}."
    if hasattr(networks, "networks_"):  # of one's own, trained in PyTorch
        n = len(networks.networks_)
        return (
            f"{n} network{'s' * (n != 1)}; penalties {networks.reg_mean_:.3g} (mean) and "
            f"{networks.reg_var_:.3g} (variance)."
        )
    return str(getattr(networks, "summary_", f"{type(networks).__name__}."))
