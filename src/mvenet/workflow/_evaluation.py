"""A model of a table on rows that it was not trained on: its scores, and what has changed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mvenet import metrics
from mvenet._columns.cells import split_target
from mvenet._columns.profile import Chance, Drift, drifts
from mvenet._models.conformal import Conformal
from mvenet._utils.wording import verdict
from mvenet.distributions import Distribution, WithAtoms
from mvenet.metrics._calibration import counted_by
from mvenet.workflow._belonging import By
from mvenet.workflow._known import TableModel, known, target_of
from mvenet.workflow._known_targets import TableModels
from mvenet.workflow._ties import Ties

if TYPE_CHECKING:
    from mvenet.workflow._serving import Model

Array = NDArray[np.float64]
LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)
ALMOST_ALL = 1.0 - 1e-9  # of the rows: a binomial has no quantiles of more


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
        Rows of the table that could not be used, since the target is missing.
    calibrated : bool
        Whether the coverage is that of conformal intervals rather than of ``dist``.
    misses : tuple of two floats
        Share of the rows below their 90 % interval, and above it.
    inside : ndarray of shape (n,), bool, or None
        Which rows their 90 % interval holds.
    by : By or None
        The groups that rows are of, or the stretches of time.
    elsewhere : sequence of str
        How the rows differ from those trained on: new groups, later rows.
    """

    y: Array
    dist: Distribution
    scores: Mapping[str, float]
    coverage: Mapping[float, float]
    rows: NDArray[Any]
    without_target: int = 0
    calibrated: bool = False
    misses: tuple[float, float] = (math.nan, math.nan)
    inside: NDArray[np.bool_] | None = None
    by: By | None = None
    elsewhere: Sequence[str] = ()

    def coverage_by(self) -> dict[str, NDArray[Any]] | None:
        """Coverage of the 90 % intervals by group or along time, with the limits of chance."""
        if self.by is None or self.inside is None:
            return None
        return counted_by(self.inside, self.by.labels, 0.9)

    @property
    def middle(self) -> float:
        """Mean absolute error of who always guesses the median."""
        return float(np.mean(np.abs(self.y - np.median(self.y))))

    def expected(self, level: float) -> float:
        """Share of the rows that intervals of this level hold if the distributions are true.

        More than the level where they end at values that have a probability of their own.
        """
        if self.calibrated or not isinstance(self.dist, WithAtoms):
            return level
        low, high = self.dist.interval(level).T
        inside = self.dist.cdf(high) - self.dist.cdf(low) + self.dist.pmf(low)
        return min(max(level, float(np.mean(inside))), ALMOST_ALL)

    def verdict(self, level: float) -> tuple[str, float, float]:
        """Whether the coverage of intervals of this level may be chance, and what chance allows.

        They are too narrow if they hold less than they claim, too wide only if they hold more than
        they should.
        """
        share, n = self.coverage[level], len(self.y)
        word, low, _ = verdict(level, share, n)
        most, _, high = verdict(self.expected(level), share, n)
        return (
            (word if word == "too narrow" else most.replace("too narrow", "as claimed")),
            low,
            high,
        )


def evaluate_predictions(
    y: Array,
    dist: Distribution,
    rows: NDArray[Any],
    without_target: int = 0,
    intervals: Mapping[float, Array] | None = None,
) -> Evaluation:
    """Score predictive distributions, and intervals if they are others, by what was observed.

    Parameters
    ----------
    y : ndarray of shape (n,)
        What was observed.
    dist : Distribution
        What was predicted for these rows.
    rows : ndarray of shape (n,)
        Which rows of the table these are, counted from 0.
    without_target : int, default=0
        Rows of the table that could not be used, since the target is missing.
    intervals : dict of ndarray of shape (n, 2), or None
        By coverage, intervals that are not those of ``dist``, such as conformal ones.

    Returns
    -------
    Evaluation
    """
    summary = metrics.summary(y, dist)
    scores = {name: summary[name] for name in ("rmse", "mae", "r2", "nll", "crps")}
    reached = metrics.coverage(y, dist, nominal=LEVELS)
    covered = dict(zip(LEVELS, np.asarray(reached).tolist(), strict=True))
    for level, ends in (intervals or {}).items():
        covered[level] = float(np.mean((ends[:, 0] <= y) & (y <= ends[:, 1])))
    nine = (intervals or {}).get(0.9)
    low, high = (dist.interval(0.9) if nine is None else nine).T
    misses = float(np.mean(y < low)), float(np.mean(y > high))
    inside = (low <= y) & (y <= high)
    own = bool(intervals)
    return Evaluation(y, dist, scores, covered, rows, without_target, own, misses, inside)


def evaluate(model: Model, frame: Any) -> Evaluation:
    """Score a fitted model on a table that has its target.

    Parameters
    ----------
    model : estimator
        As made by :func:`mvenet.workflow.fit_table`, or fitted in Python to a y with a name.
    frame : DataFrame of polars or pandas
        Rows that it was not trained on; those without a target are left out.

    Returns
    -------
    Evaluation
    """
    X, y, rows = split_target(frame, target_of(model))
    table = known(model)
    made = evaluated(table, table.encoded(X, rows), y, rows, len(frame) - len(y))
    ties = Ties.of_model(model)
    return replace(made, by=ties.by(X), elsewhere=ties.compared(X).sentences())


def remarks(model: Model, evaluation: Evaluation) -> list[str]:
    """For whom the coverage is promised, how the rows differ, and on which side misses lie."""
    promise = known(model).promise
    remarks = [f"What is promised holds for {promise}."] if promise else []
    remarks += evaluation.elsewhere
    if verdict(0.9, evaluation.coverage[0.9], len(evaluation.y))[0] == "too narrow":
        below, above = evaluation.misses
        remarks.append(
            f"{above:.1%} of the values lie above their 90 % interval, {below:.1%} below."
        )
    return remarks


def evaluated(
    table: TableModel, encoded: Array, y: Array, rows: NDArray[Any], without: int = 0
) -> Evaluation:
    """The same for rows that are encoded."""
    dist = table.distribution(encoded)
    return evaluate_predictions(y, dist, rows, without, _conformal(table, encoded))


def _conformal(table: TableModel, encoded: Array) -> dict[float, Array] | None:
    """Intervals of a calibrated model, as far as it has rows enough for them."""
    estimator = table.estimator
    if not isinstance(estimator, Conformal):
        return None
    levels = filter(estimator.can_cover, LEVELS)
    return {level: estimator.predict_interval(table.inputs(encoded), level) for level in levels}


@dataclass(frozen=True)
class Check:
    """Whether a new table is like the one that a model was fitted to.

    Attributes
    ----------
    rows : int
    drifts : list of Drift
        How each column differs, the most changed first.
    outside : ndarray of shape (n,), bool
        Rows with a cell beyond the range that was seen, or a level that was not.
    evaluation : Evaluation or None
        Where the target is known; of several targets ``failure`` tells.
    changes : list of str
        How the table differs, in words.
    failure : str
        How the intervals fail; empty if they hold, or if that is not known.
    """

    rows: int
    drifts: list[Drift]
    outside: NDArray[np.bool_]
    evaluation: Evaluation | None
    changes: list[str]
    failure: str

    @property
    def findings(self) -> list[str]:
        """Both; none if all is well."""
        return [*self.changes, *filter(None, [self.failure])]


def check(model: Model, frame: Any) -> Check:
    """Compare a new table with the one that a model was fitted to.

    Parameters
    ----------
    model : estimator
        As made by :func:`mvenet.workflow.fit_table`, or fitted in Python.
    frame : DataFrame
        Of polars or pandas; it may have the target.

    Returns
    -------
    Check
    """
    several = TableModels.of(model)
    table = known(model) if several is None else several.each[0]
    found, outside = drifts(table.encoder, frame)
    changes = [f"{drift.column}: {drift.remark}" for drift in found if drift.changed]
    share = float(outside.mean())
    if share > max(0.05, 3 / len(outside), Chance.of(table.encoder, len(outside)).rows_outside()):
        changes.append(f"{share:.1%} of the rows are outside what the model has seen")
    each = [(model, table.target)]
    if several is not None:
        each = list(zip(several.joint.estimators, several.joint.names, strict=True))
    checked = [_held(part, target, frame) for part, target in each]
    failure = "; ".join(filter(None, (sentence for _, sentence in checked)))
    evaluation = checked[0][0] if several is None else None
    return Check(len(outside), found, outside, evaluation, changes, failure)


def _held(model: Any, target: str, frame: Any) -> tuple[Evaluation | None, str]:
    """An evaluation, if the target is known in rows enough, and how intervals fail."""
    if not target or target not in frame.columns or _n_given(frame, target) < 20:
        return None, ""
    evaluation = evaluate(model, frame)
    word = evaluation.verdict(0.9)[0]
    if word == "as claimed":
        return evaluation, ""
    covered = f"{evaluation.coverage[0.9]:.1%} of the values"
    return evaluation, f"the 90 % interval is {word}: it holds {covered} of {target}"


def _n_given(frame: Any, target: str) -> int:
    column = frame[target]
    return len(column) - int(column.null_count() if hasattr(column, "null_count") else 0)
