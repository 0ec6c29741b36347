"""From a table to a model of several of its columns at once."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.base import clone

from mvenet._columns.cells import split_targets
from mvenet._columns.settled import Settled
from mvenet._estimators.base import TrainedRegressor, described, fit_until_stopped
from mvenet._estimators.dependence import Belonging as Given
from mvenet._training.plan import Stop, Workload, estimate
from mvenet._utils.machine import effective_threads
from mvenet.table import TableEncoder
from mvenet.workflow import _fitting as single
from mvenet.workflow._belonging import Belonging
from mvenet.workflow._fitting import FittedTable
from mvenet.workflow._known_targets import TableModels
from mvenet.workflow._targets import JointEvaluation, evaluated_together
from mvenet.workflow._ties import Ties

Array = NDArray[np.float64]
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class FittedTargets:
    """A model fitted to several columns of a table, and its evaluation on rows it has not seen.

    Attributes
    ----------
    model : AutoRegressor or MVERegressor
        Takes rows of the table as they are; predicts a column for each target.
    evaluation : JointEvaluation or None
        On the rows held out; None if there are none.
    parts : tuple of k FittedTable
        What was fitted to each target, with an evaluation by rows that folds left out if none were
        held out.
    without_target : int
        Rows of the table that could not be used, since they lack a target.
    notes : list of str
        Warnings of the fit.
    seconds : float
    """

    model: TrainedRegressor
    evaluation: JointEvaluation | None
    parts: tuple[FittedTable, ...]
    without_target: int = 0
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0
    stopped: bool = False  # Ctrl-C leaves nothing, or a whole model

    @property
    def train(self) -> pl.DataFrame:
        """The rows that were trained on."""
        return self.parts[0].train

    @property
    def test(self) -> pl.DataFrame:
        """The rows that were held out."""
        return self.parts[0].test

    @property
    def promise(self) -> str:
        """For which rows the intervals hold; empty if for any like those of the table."""
        return self.parts[0].promise


def fit_targets(
    frame: Any,
    columns: Sequence[str],
    *,
    search: bool = True,
    members: int | None = None,
    target: str = "auto",
    effort: str | None = None,
    bounds: tuple[float | None, float | None] | None = None,
    holdout: float = 0.2,
    seed: int | None = None,
    verbose: int = 0,
    told: Callable[[TableEncoder], object] | None = None,
    expect: Callable[[Workload], object] | None = None,
    group: str | None = None,
    time: str | None = None,
    horizon: float | None = None,
    copies: str = "auto",
    units: Sequence[str] = (),
) -> FittedTargets:
    """Fit a model to several columns of a table at once.

    Parameters
    ----------
    frame : DataFrame
        Of polars or pandas.
    columns : sequence of str
        The columns to predict. Rows that lack one of them are left out.
    search, members, target, effort, bounds, holdout, seed, verbose, expect
        As in :func:`fit_table`.
    group, time, horizon, copies
        As in :func:`fit_table`; what is said of the target holds for each.
    told : callable or None
        Told before the training what each column was taken for, by an encoder that knows.
    units : sequence of str
        Of each column to predict, or of all.

    Returns
    -------
    FittedTargets
    """
    start = perf_counter()
    X, Y, rows = split_targets(frame, columns)
    for name, column in (("group", group), ("time", time)):
        if column in columns:
            raise ValueError(f"{name}={column!r} is a target: name another column.")
    tied = Belonging.of(X, columns[0], group, time, horizon)
    X = tied.inputs(X)
    split = tied.split(holdout, seed) if holdout else None
    copied = single._copied(X, Y[:, 0], copies)
    train, test = split or single._split(len(Y), holdout, seed, copied)
    if target == "log":
        for column, y in zip(columns, Y.T, strict=True):
            single._refuse_log(y, column)
    common = {"random_state": seed, "verbose": verbose, "target": target}
    estimator = single._estimator(search, members, effort, bounds, len(train), common, copies)
    table, given = Settled.of(X, rows)[train], tied.given(train)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        probe = clone(estimator)
        _, plans = described([probe], table, Y[train, 0], belonging=Given(**given))
        probe.encoder_.transform(X[test], rows[test])  # what it refuses need not wait
        if told is not None:
            told(probe.encoder_)
        if expect is not None:
            one = estimate(plans, threads=effective_threads(estimator.n_jobs))
            expect(sum([one] * len(columns), Workload()))
        named = pl.DataFrame(Y[train], schema=list(columns))
        stop = Stop(fit_until_stopped(estimator, table, named, **given))
    names = list(units) if len(units) > 1 else [*units, ""][:1] * len(columns)
    promise = tied.promise(train)
    ties = {"ties_": Ties.of_rows(tied, train).kept} if promise else {}
    estimator.__dict__.update(ties)
    for part, unit in zip(estimator.estimators_, names, strict=True):
        vars(part).update({"unit_": unit} if unit else {})
        vars(part).update({"promise_": promise, **ties} if promise else {})
    warned = [
        single._of_table(w, probe.encoder_) for w in caught if issubclass(w.category, UserWarning)
    ]
    models = TableModels.of(estimator)
    evaluation = None
    if len(test) and models is not None:
        evaluation = stop.finish(lambda: evaluated_together(models, X[test], Y[test], rows[test]))
    split_rows = (X, Y, rows, train, test)
    parts = tuple(
        _part(model, column, j, split_rows, evaluation)
        for j, (model, column) in enumerate(zip(estimator.estimators_, columns, strict=True))
    )
    notes = [*dict.fromkeys(warned), *(note for part in parts for note in part.notes)]
    return FittedTargets(
        estimator, evaluation, parts, len(frame) - len(Y), notes, perf_counter() - start,
        stop.pressed is not None,
    )  # fmt: skip


def _part(
    model: Any,
    column: str,
    j: int,
    split_rows: tuple[pl.DataFrame, Array, Rows, Rows, Rows],
    evaluation: JointEvaluation | None,
) -> FittedTable:
    """What was fitted to one of the targets, as if to it alone."""
    X, Y, rows, train, test = split_rows
    y = Y[:, j]
    alone = single.evaluated_left_out(model, y, train, rows)
    if evaluation is not None:
        alone = evaluation.each[column]
        model.held_out_ = single.held_out(alone)
    notes = single._warned(y, column)
    if alone is not None and y.max() > 1:
        notes += single._below_zero(y, alone.dist, column)
    named = X.with_columns(pl.Series(column, y))
    return FittedTable(model, alone, train=named[train], test=named[test], notes=notes)
