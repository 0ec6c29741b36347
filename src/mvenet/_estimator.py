"""What all estimators share: their parameters, how they are fitted, ways to predict."""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.validation import check_is_fitted

from mvenet import _automatic, fleet
from mvenet._composite import Composite
from mvenet._plan import Fitting, Plan, Table, Workload, drive, estimate
from mvenet._settings import NetworkSettings
from mvenet._validation import check_table, checked, fingerprint
from mvenet.distributions import Distribution, Normal, NormalMixture

_SMALLEST_STD = np.finfo(np.float64).tiny
_FEW_ROWS = 128  # predicted without starting a thread
_AT_ONCE = 2**20  # members times rows of a distribution that is only needed in passing


class PredictsDistribution(ABC):
    """All ways to predict, and to save, of an estimator that has ``predict_dist``."""

    @abstractmethod
    def predict_dist(self, X: ArrayLike) -> Distribution:
        """Predictive distribution of each row."""

    def predict(
        self, X: ArrayLike, return_std: bool = False
    ) -> NDArray[np.float64] | tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean of the predictive distribution and, if asked, its standard deviation.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        return_std : bool, default=False

        Returns
        -------
        mean : ndarray of shape (n,)
        std : ndarray of shape (n,), only with ``return_std=True``
            In units of y. It is the spread of a new observation, noise included.
        """
        dist = self.predict_dist(X)
        return (dist.mean, dist.std) if return_std else dist.mean

    def predict_interval(
        self, X: ArrayLike, coverage: float | ArrayLike = 0.9
    ) -> NDArray[np.float64]:
        """Central prediction interval.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        coverage : float or list of k floats in (0, 1), default=0.9

        Returns
        -------
        ndarray of shape (n, 2), or (n, k, 2) for a list
            Lower and upper end, in units of y.
        """
        return self._in_passing(X, lambda dist, _: dist.interval(coverage))

    def predict_quantiles(
        self, X: ArrayLike, quantiles: ArrayLike = (0.1, 0.5, 0.9)
    ) -> NDArray[np.float64]:
        """Quantiles of the predictive distribution.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        quantiles : list of k floats in (0, 1), default=(0.1, 0.5, 0.9)

        Returns
        -------
        ndarray of shape (n, k), in units of y
        """
        levels = np.atleast_1d(np.asarray(quantiles))
        return self._in_passing(X, lambda dist, _: dist.ppf(levels))

    def logpdf(self, X: ArrayLike, y: ArrayLike) -> NDArray[np.float64]:
        """Log-density of outcomes; that of ``predict_dist(X).logpdf(y)``, in less memory.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        y : array-like of shape (n,)

        Returns
        -------
        ndarray of shape (n,)
            In nats, of y in its own units.
        """
        outcomes = np.asarray(y)
        return self._in_passing(X, lambda dist, rows: dist.logpdf(outcomes[rows]), outcomes)

    def _in_passing(
        self,
        X: ArrayLike,
        of: Callable[[Distribution, slice], NDArray[np.float64]],
        y: NDArray[Any] | None = None,
    ) -> NDArray[np.float64]:
        """Apply a function of the distribution of all rows, and of which these are."""
        return of(self.predict_dist(X), slice(None))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file that :func:`mvenet.load` reads (needs skops).

        Parameters
        ----------
        path : str or path
            Customarily ending in ``.mve``. Replaced whole or not at all.
        """
        from mvenet import persistence  # the one look upwards: a model can save itself

        persistence.save(self, path)


class DistributionRegressor(PredictsDistribution, RegressorMixin, BaseEstimator):
    """What every estimator of ours can do once it is fitted."""

    networks_: fleet.Networks
    composite_: Composite  # in place of networks_, if the fit was automatic
    scale_: float = 1.0  # factor on all standard deviations
    fingerprint_: str  # of the table that it was trained on
    n_jobs: int | None

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "networks_") or hasattr(self, "composite_")

    def predict_dist(self, X: ArrayLike) -> Distribution:
        """Predictive distribution of each row.

        Parameters
        ----------
        X : array-like of shape (n, n_features)

        Returns
        -------
        Normal or NormalMixture
            A mixture with one component for each network if there is more than one.
        """
        return self._mixture(self._checked(X))

    def predict(
        self, X: ArrayLike, return_std: bool = False
    ) -> NDArray[np.float64] | tuple[NDArray[np.float64], NDArray[np.float64]]:
        # The base class documents it. Reduced in the engine: no array of members times rows.
        mean, std = self._moments(self._checked(X), return_std)
        return mean if std is None else (mean, std)

    predict.__doc__ = PredictsDistribution.predict.__doc__

    def _checked(self, X: ArrayLike) -> NDArray[Any]:
        check_is_fitted(self)
        table: NDArray[Any] = checked(self, X, reset=False)
        return table

    def _threads(self, table: NDArray[Any]) -> int:
        return 1 if len(table) <= _FEW_ROWS else fleet.effective_threads(self.n_jobs)

    def _moments(
        self, table: NDArray[Any], std: bool
    ) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
        """Mean and, if asked, standard deviation of each row."""
        threads = self._threads(table)
        if hasattr(self, "composite_"):
            mean, deviation = self.composite_.moments(table, threads)
            return mean, deviation if std else None
        return self.networks_.moments(table, std=std, factor=self.scale_, threads=threads)

    def _members(self) -> int:
        """Components of the mixture."""
        fitted = self.composite_ if hasattr(self, "composite_") else self.networks_
        return len(fitted)

    def _mixture(self, table: NDArray[Any]) -> Distribution:
        if hasattr(self, "composite_"):
            return self.composite_.distribution(table, self._threads(table))
        means, stds = self.networks_.predict(table, threads=self._threads(table))
        stds = np.maximum(self.scale_ * stds, _SMALLEST_STD)
        return Normal(means[0], stds[0]) if len(means) == 1 else NormalMixture(means, stds)

    def _in_passing(
        self,
        X: ArrayLike,
        of: Callable[[Distribution, slice], NDArray[np.float64]],
        y: NDArray[Any] | None = None,
    ) -> NDArray[np.float64]:
        table = self._checked(X)
        step = max(_FEW_ROWS, _AT_ONCE // self._members())
        if y is not None and y.shape != (len(table),):
            step = len(table)  # logpdf says what is wrong with y
        parts = [slice(start, start + step) for start in range(0, len(table), step)]
        return np.concatenate([of(self._mixture(table[rows]), rows) for rows in parts])


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
    if np.ptp(table.y[table.rows]) == 0:
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
