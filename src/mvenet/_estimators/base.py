"""What all estimators share: their parameters, how they are fitted, what they check."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from datetime import date
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.validation import check_is_fitted

from mvenet._automatic import detection
from mvenet._automatic.constants import MOST_ROWS_LOOKED_AT
from mvenet._columns import lazy
from mvenet._estimators import copies, frames, targets
from mvenet._estimators.dependence import NOTHING, Belonging, DependenceWarning
from mvenet._estimators.lazy_frames import in_memory
from mvenet._estimators.parameters import NetworkSettings
from mvenet._estimators.shown import Shown, held_by_90
from mvenet._estimators.validation import check_table, checked, fingerprint, keep_name
from mvenet._models.ensemble import Ensemble
from mvenet._models.joint import JointModel
from mvenet._models.predictor import Encoded, Predictor
from mvenet._training import fleet
from mvenet._training.plan import Fitting, Plan, Table, Workload, drive, estimate
from mvenet._utils.machine import effective_threads


class DistributionRegressor(Predictor, Shown, RegressorMixin, BaseEstimator):
    """An estimator of ours, which checks what it is given as scikit-learn does."""

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def _checked(self, X: ArrayLike) -> NDArray[Any]:
        if "model_" not in vars(self):
            check_is_fitted(self)  # which takes a while to find out that it is
        if isinstance(X, Encoded):
            return X.numbers
        if lazy.is_lazy(X):
            X = lazy.taken(X, None)
        if self._takes_frames():
            return frames.encoded(self, X)
        table: Any = X if self._taken_as_it_is(X) else checked(self, X, reset=False)
        return self._without_gaps(table)

    def _taken_as_it_is(self, X: Any) -> bool:
        """Whether X is an array that scikit-learn's checks would return as it is.

        They take a quarter of the time of a single row.
        """
        named = hasattr(self, "feature_names_in_")
        if type(X) is not np.ndarray or X.ndim != 2 or not len(X) or named:
            return False
        return X.dtype in (np.float64, np.float32) and X.shape[1] == self.n_features_in_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = tags.input_tags.categorical = True
        return tags


class TrainedRegressor(DistributionRegressor):
    """An estimator that trains networks: it plans, requests them, and keeps the results."""

    summary_: str
    n_rows_: int
    fitted_on_: str
    oof_scores_: dict[str, float]
    oof_mean_: NDArray[np.float64]
    oof_std_: NDArray[np.float64]
    _targets = 1  # that are fitted beside this one, it included

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = self._leaves_rows_out()
        return tags

    @property
    def estimators_(self) -> list[Any]:
        """With several targets: the fitted estimator of each."""
        model = self.__dict__.get("model_")
        if not isinstance(model, JointModel):
            raise AttributeError(f"This {type(self).__name__} was not fitted to several targets.")
        return list(model.estimators)

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        time: ArrayLike | None = None,
        horizon: Any = None,
    ) -> Self:
        """Train on a table.

        Ctrl-C (``KeyboardInterrupt``) leaves the estimator unfitted, or with the best model so far
        if a search has found a whole one by then.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n, n_features)
            Numbers, of which NaN is a gap. A frame of pandas, polars or Arrow may hold categories,
            text, truth values, dates and gaps as well: ``columns_`` says what was made of each.
            A lazy frame of polars or a frame of Dask is brought into memory, or as many of its
            rows, drawn at random, as fit there (:func:`mvenet.table.sample`); a warning says how
            many. With it ``y``, ``sample_weight``, ``groups`` and ``time`` may be names of its
            columns, which are then no inputs.
        y : array-like of shape (n,), or (n, k) for k targets at once
            With several targets, a frame or an array without gaps: each gets an estimator of its
            own (``estimators_``), and rows left out tell how their errors depend on each other.
            Predictions then have a column for each target, and ``predict_dist`` gives a
            :class:`mvenet.distributions.Joint`.
        sample_weight : array-like of shape (n,) or None
            Not negative; a row of weight zero is left out.
        groups : array-like of shape (n,) or None
            Which rows belong together: to one patient, machine or shop. Whole groups are then left
            out, and what is promised holds for rows of *new* groups. Not needed to predict.
        time : array-like of shape (n,) or None
            When each row was: dates, or numbers that order the rows. Stretches of time are then
            left out, what was before each is trained on, and what is promised holds for the *next*
            stretch: of the same groups, or with ``groups`` of new ones.
        horizon : float, timedelta or None
            Length of that stretch, in units of ``time`` (days, if it holds dates). None is that of
            a fold, an eighth of the rows if there are five.

        Returns
        -------
        self
        """
        belonging = Belonging(groups, time, horizon)
        if lazy.is_lazy(X):
            seed = self.random_state
            X, y, sample_weight, belonging = in_memory(X, y, sample_weight, belonging, seed)
        columns = targets.columns_of(y)
        # Where no rows are left out there is one target only, and scikit-learn's word on a column.
        if columns is not None and (columns != 1 or self._leaves_rows_out()):
            found = targets.fit(self, X, y, sample_weight, belonging)
        else:
            self.__dict__.pop("target_names_", None)
            (found,) = fit_together(
                [self],
                X,
                y,
                sample_weight,
                belonging,
                n_jobs=self.n_jobs,
                verbose=self.verbose,
            )
        for warning in found:
            warnings.warn(warning, stacklevel=2)
        return self

    def _noticed(self, table: Table, refit: bool = False) -> list[Warning]:
        """A warning if rows belong together though nobody said so, by what was left out."""
        rows = table.rows[np.isfinite(self.oof_mean_[table.rows])]
        rows = rows[detection.some_runs(len(rows), MOST_ROWS_LOOKED_AT)]
        cv = getattr(self, "cv", None)
        if table.dependence is not None or not (cv is None or isinstance(cv, Integral)):
            return []  # who gives folds knows why
        # Where all of the probability is at one value, a standard deviation is next to nothing.
        least = 1e-6 * float(np.median(self.oof_std_[rows])) or 1.0
        residual = (table.y - self.oof_mean_)[rows] / np.maximum(self.oof_std_[rows], least)
        noticed = detection.findings(
            table.source[rows], table.y[rows], residual, refit=refit, seed=0
        )
        names = self._names_read()
        sentences = [finding.sentence(names) for finding in noticed]
        return [DependenceWarning(" ".join(sentences))] if sentences else []

    def _names_read(self) -> Any:
        """Names of the columns that the model reads, None if X had none."""
        if self._takes_frames():
            return self.encoder_.get_feature_names_out()
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else self.encoder_.names_out(names)

    def _leaves_rows_out(self) -> bool:
        """Whether what is learned comes from rows that folds leave out."""
        return False

    @abstractmethod
    def _plan(self, table: Table) -> Plan:
        """Describe the fit, round by round; parameters and table have been checked."""

    @abstractmethod
    def _fitting(self, table: Table, plan: Any) -> Fitting[list[Warning]]:
        """Ask for networks, set the fitted attributes when they are there, return warnings."""


class NetworkRegressor(NetworkSettings, TrainedRegressor):
    """An estimator whose networks are described by its parameters."""

    def _without_diverged(self, result: fleet.Fleet) -> tuple[fleet.Fleet, list[Warning]]:
        """Return the networks that trained; none at all is an error, some a warning."""
        lost = int(result.diverged.sum())
        if lost == len(result.diverged):
            raise fleet.DivergedError(
                f"Training diverged (learning_rate={self.learning_rate}, "
                f"clip_value={self.clip_value}): lower learning_rate or clip_value."
            )
        return result[~result.diverged], self._lost(lost, len(result.diverged))

    def _lost(self, lost: int, members: int) -> list[Warning]:
        if not lost:
            return []
        message = (
            f"{lost} of {members} members diverged and were left out: lower learning_rate (now "
            f"{self.learning_rate})."
        )
        return [ConvergenceWarning(message)]


def described(
    estimators: Sequence[TrainedRegressor],
    X: Any,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    belonging: Belonging = NOTHING,
) -> tuple[Table, list[Plan]]:
    """Check what estimators are given, and describe what fitting them together takes."""
    tables = []
    for estimator in estimators:
        estimator._validate_params()
        tables.append(check_table(estimator, X, y, sample_weight, belonging))
    # The same for all, and one object, so that they can share networks.
    table = tables[0]
    if all(e._leaves_rows_out() for e in estimators):
        table = copies.once(table, getattr(estimators[0], "copies", "auto"))
    return table, [estimator._plan(table) for estimator in estimators]


def fit_together(
    estimators: Sequence[TrainedRegressor],
    X: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    belonging: Belonging = NOTHING,
    *,
    n_jobs: int | None = None,
    verbose: int = 0,
    progress: fleet.Progress | None = None,
    forgiving: bool = False,
) -> list[list[Warning]]:
    """Fit estimators on the same table; what two of them have in common is trained once.

    Each ends as if it had been fitted alone, to the bit. Returns the warnings of each, for the
    caller to show. ``forgiving`` makes a warning of an estimator whose networks all diverged, and
    leaves it unfitted, so that the others are not lost.
    """
    for estimator in estimators:
        estimator.__dict__.pop("model_", None)  # an interrupted fit leaves nothing half-fitted
    table, plans = described(estimators, X, y, sample_weight, belonging)
    trained_on = fingerprint(
        table.source, table.y, *([] if table.weight is None else [table.weight])
    )
    for estimator in estimators:
        estimator.fingerprint_ = trained_on
        keep_name(estimator, y)
    fits = [e._fitting(table, plan) for e, plan in zip(estimators, plans, strict=True)]
    found = drive(
        plans,
        [_forgiven(fit) for fit in fits] if forgiving else fits,
        threads=None if n_jobs is None else effective_threads(n_jobs),
        verbose=verbose,
        progress=progress,
    )
    for estimator, warned in zip(estimators, found, strict=True):
        if table.dependence is not None and hasattr(estimator, "oof_mean_"):
            estimator.summary_ += f"\n{table.dependence.sentence()}"
        if table.first is not None:
            copies.spread(estimator, table)
            if getattr(estimator, "copies", "auto") == "auto":
                warned.append(DependenceWarning(copies.sentence(table)))
        _keep_facts(estimator, table)
        model = getattr(estimator, "model_", None)
        if isinstance(model, Ensemble):
            warned += _at_the_floor(model, table)
    return found


def _keep_facts(estimator: TrainedRegressor, table: Table) -> None:
    """Remember what a model card tells: rows, date, scores of rows left out."""
    estimator.n_rows_, estimator.fitted_on_ = len(table.rows), date.today().isoformat()
    estimator.__dict__.pop("oof_scores_", None)
    mean = getattr(estimator, "oof_mean_", None)
    if mean is None:
        return
    rows = np.flatnonzero(np.isfinite(mean))
    unit = (
        float(np.abs(table.y[rows]).max(initial=0.0)) or 1.0
    )  # squares neither overflow nor vanish
    rmse = unit * float(np.sqrt(np.mean(np.square((table.y - mean)[rows] / unit))))
    estimator.oof_scores_ = {"rows": len(rows), "rmse": rmse}
    pit = getattr(estimator, "oof_pit_", None)
    if pit is not None:
        estimator.oof_scores_["covered_by_90"] = held_by_90(pit)
    if hasattr(estimator, "best_score_"):
        estimator.oof_scores_["score"] = float(estimator.best_score_)


def workload(
    estimator: TrainedRegressor, X: ArrayLike, y: ArrayLike, belonging: Belonging = NOTHING
) -> Workload:
    """What fitting an estimator will take, from its plan and a moment of training."""
    _, plans = described([clone(estimator)], X, y, belonging=belonging)
    return estimate(plans, threads=effective_threads(estimator.n_jobs))


def fit_until_stopped(estimator: Any, *args: Any, **options: Any) -> KeyboardInterrupt | None:
    """Fit; Ctrl-C is returned rather than raised if a whole model was kept."""
    try:
        estimator.fit(*args, **options)
    except KeyboardInterrupt as stop:
        try:
            check_is_fitted(estimator)
        except NotFittedError:
            raise stop from None
        return stop
    return None


def _at_the_floor(model: Ensemble, table: Table) -> list[Warning]:
    """A warning if most standard deviations are the smallest that a network can predict."""
    some = table.rows[:: max(1, len(table.rows) // 500)]
    y = table.y if table.weight is None else table.y[table.rows]
    if np.ptp(y) == 0:
        return []  # no network could predict more
    networks = model.networks
    _, stds = networks.predict(np.ascontiguousarray(table.source[some]), piecewise=model.piecewise)
    share = np.mean((stds / networks.y_scale[:, None]) ** 2 < 2 * fleet.VARIANCE_FLOOR)
    if share <= 0.5:
        return []
    smallest = np.sqrt(fleet.VARIANCE_FLOOR)
    message = (
        f"The standard deviation is at its floor, {smallest:g} of that of y, in {share:.0%} of the "
        "rows: either y has no noise, or the networks follow every row, and larger penalties "
        "(reg_mean, reg_var) help."
    )
    return [ConvergenceWarning(message)]


def _forgiven(fitting: Fitting[list[Warning]]) -> Fitting[list[Warning]]:
    try:
        return (yield from fitting)
    except fleet.DivergedError as error:
        return [ConvergenceWarning(str(error))]
