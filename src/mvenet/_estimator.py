"""What all estimators share: their parameters, how they are fitted, what they check."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.validation import check_is_fitted

from mvenet import _automatic, fleet
from mvenet._plan import Fitting, Plan, Table, Workload, drive, estimate
from mvenet._predictor import Predictor
from mvenet._settings import NetworkSettings
from mvenet._validation import check_table, checked, fingerprint


class DistributionRegressor(Predictor, RegressorMixin, BaseEstimator):
    """An estimator of ours, which checks what it is given as scikit-learn does."""

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "networks_") or hasattr(self, "composite_")

    def _checked(self, X: ArrayLike) -> NDArray[Any]:
        check_is_fitted(self)
        table: NDArray[Any] = checked(self, X, reset=False)
        return table


class NetworkRegressor(NetworkSettings, DistributionRegressor):
    """An estimator that trains networks: it plans, asks for them, and keeps what it is given."""

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train on a table.

        Ctrl-C (``KeyboardInterrupt``) leaves the estimator unfitted, or with the best model so far
        if a search has found a whole one by then.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,) or None
            Not negative; a row of weight zero is left out.

        Returns
        -------
        self
        """
        (found,) = fit_together(
            [self], X, y, sample_weight, n_jobs=self.n_jobs, verbose=self.verbose
        )
        for warning in found:
            warnings.warn(warning, stacklevel=2)
        return self

    @property
    @abstractmethod
    def penalties_(self) -> tuple[float, float]:
        """Penalties on the mean and on the variance that the networks were trained with."""

    @abstractmethod
    def _plan(self, table: Table) -> Plan:
        """Describe the fit, round by round; parameters and table have been checked."""

    @abstractmethod
    def _fitting(self, table: Table, plan: Any) -> Fitting[list[Warning]]:
        """Ask for networks, set the fitted attributes when they are there, return warnings."""

    def _set_composite(self, found: _automatic.Result, table: Table) -> None:
        """Keep what an automatic search found; if Ctrl-C ended it, go on ending."""
        self.oof_mean_, self.oof_std_ = found.mean, found.std
        self.cv_results_ = found.candidates
        self.n_steps_ = found.steps
        self.summary_ = _automatic.summary(found, table)
        self.composite_ = found.composite
        if found.stopped is not None:
            raise found.stopped

    def _refuse_log(self) -> None:
        """No network that is described by parameters of its own knows of the log scale."""
        if getattr(self, "target") == "log":  # noqa: B009 (a field of the classes below)
            raise ValueError(
                "target='log' is for strategy='auto' with no parameter of the networks given, and "
                "at least 8 rows: leave the others alone, or fit log(y)."
            )

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
    estimators: Sequence[NetworkRegressor],
    X: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
) -> tuple[Table, list[Plan]]:
    """Check what estimators are given, and describe what fitting them together takes."""
    tables = []
    for estimator in estimators:
        estimator._validate_params()
        tables.append(check_table(estimator, X, y, sample_weight))
    # The same for all, and one object, so that they can share networks.
    return tables[0], [estimator._plan(tables[0]) for estimator in estimators]


def fit_together(
    estimators: Sequence[NetworkRegressor],
    X: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
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
        for fitted in ("networks_", "composite_"):  # an interrupted fit leaves nothing half-fitted
            estimator.__dict__.pop(fitted, None)
    table, plans = described(estimators, X, y, sample_weight)
    trained_on = fingerprint(table.X, table.y, *([] if table.weight is None else [table.weight]))
    for estimator in estimators:
        estimator.fingerprint_ = trained_on
    fits = [e._fitting(table, plan) for e, plan in zip(estimators, plans, strict=True)]
    found = drive(
        plans,
        [_forgiven(fit) for fit in fits] if forgiving else fits,
        threads=None if n_jobs is None else fleet.effective_threads(n_jobs),
        verbose=verbose,
        progress=progress,
    )
    for estimator, warned in zip(estimators, found, strict=True):
        if hasattr(estimator, "networks_"):
            warned += _at_the_floor(estimator.networks_, table)
    return found


def workload(estimator: NetworkRegressor, X: ArrayLike, y: ArrayLike) -> Workload:
    """What fitting an estimator will take, from its plan and a moment of training; kept is none."""
    _, plans = described([clone(estimator)], X, y)
    return estimate(plans, threads=fleet.effective_threads(estimator.n_jobs))


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


def _at_the_floor(networks: fleet.Networks, table: Table) -> list[Warning]:
    """A warning if most standard deviations are the smallest that a network can predict."""
    some = table.rows[:: max(1, len(table.rows) // 500)]
    y = table.y if table.weight is None else table.y[table.rows]
    if np.ptp(y) == 0:
        return []  # no network could predict more
    _, stds = networks.predict(np.ascontiguousarray(table.X[some]))
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
