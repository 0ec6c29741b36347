"""What all estimators share: their parameters, how they are fitted, ways to predict."""

from __future__ import annotations

import inspect
import math
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from mvenet import _plan, fleet, recipes
from mvenet._sklearn import Interval, StrOptions
from mvenet._validation import check_table, fingerprint, hidden_units
from mvenet.distributions import Normal, NormalMixture

_SMALLEST_STD = np.finfo(np.float64).tiny
_FEW_ROWS = 128  # predicted without starting a thread
_AT_ONCE = 2**20  # members times rows of a distribution that is only needed in passing


class PredictsDistribution(ABC):
    """All ways to predict, and to save, of an estimator that has ``predict_dist``."""

    @abstractmethod
    def predict_dist(self, X: ArrayLike) -> Normal | NormalMixture:
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
        of: Callable[[Normal | NormalMixture, slice], NDArray[np.float64]],
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
    """What every estimator of ours can do once ``networks_`` is there."""

    networks_: fleet.Networks
    scale_: float = 1.0  # factor on all standard deviations
    fingerprint_: str  # of the table that it was trained on
    n_jobs: int | None

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "networks_")

    def predict_dist(self, X: ArrayLike) -> Normal | NormalMixture:
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
        table = self._checked(X)
        mean, std = self.networks_.moments(
            table, std=return_std, factor=self.scale_, threads=self._threads(table)
        )
        return mean if std is None else (mean, std)

    predict.__doc__ = PredictsDistribution.predict.__doc__

    def _checked(self, X: ArrayLike) -> NDArray[Any]:
        check_is_fitted(self)
        table: NDArray[Any] = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        return table

    def _threads(self, table: NDArray[Any]) -> int:
        return 1 if len(table) <= _FEW_ROWS else fleet.effective_threads(self.n_jobs)

    def _mixture(self, table: NDArray[Any]) -> Normal | NormalMixture:
        means, stds = self.networks_.predict(table, threads=self._threads(table))
        stds = np.maximum(self.scale_ * stds, _SMALLEST_STD)
        return Normal(means[0], stds[0]) if len(means) == 1 else NormalMixture(means, stds)

    def _in_passing(
        self,
        X: ArrayLike,
        of: Callable[[Normal | NormalMixture, slice], NDArray[np.float64]],
        y: NDArray[Any] | None = None,
    ) -> NDArray[np.float64]:
        table = self._checked(X)
        step = max(_FEW_ROWS, _AT_ONCE // len(self.networks_))
        if y is not None and y.shape != (len(table),):
            step = len(table)  # logpdf says what is wrong with y
        parts = [slice(start, start + step) for start in range(0, len(table), step)]
        return np.concatenate([of(self._mixture(table[rows]), rows) for rows in parts])


class NetworkSettings(DistributionRegressor):
    """The parameters that say how networks are built and trained, and what follows from them."""

    hidden_mean: tuple[int, ...] | None
    hidden_var: tuple[int, ...] | None
    activation: str
    strategy: str
    objective: str
    beta: float
    epochs: int | str
    warmup_epochs: int | str
    batch_size: int
    learning_rate: float
    schedule: str
    clip_value: float | None
    n_members: int
    early_stopping: bool
    validation_fraction: float
    n_iter_no_change: int
    random_state: Any
    verbose: int

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012 (scikit-learn's own form)
        "hidden_mean": ["array-like", None],
        "hidden_var": ["array-like", None],
        "activation": [StrOptions(set(fleet.ACTIVATIONS))],
        "strategy": [StrOptions({"no-warmup", "warmup", "warmup-fixed-mean"})],
        "objective": [StrOptions(set(fleet.OBJECTIVES))],
        "beta": [Interval(Real, 0, 1, closed="both")],
        "epochs": [Interval(Integral, 1, 10**8, closed="both"), StrOptions({"auto"})],
        "warmup_epochs": [Interval(Integral, 1, 10**8, closed="both"), StrOptions({"auto"})],
        "batch_size": [Interval(Integral, 1, 2**31 - 1, closed="both")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "schedule": [StrOptions(set(fleet.SCHEDULES))],
        "clip_value": [Interval(Real, 0, None, closed="neither"), None],
        "n_members": [Interval(Integral, 1, None, closed="left")],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [
            Interval(Integral, None, -1, closed="right"),
            Interval(Integral, 1, None, closed="left"),
            None,
        ],
        "random_state": ["random_state", np.random.Generator],
        "verbose": ["verbose"],
    }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Parameters that are younger than a file have their defaults."""
        parameters = inspect.signature(type(self)).parameters.values()
        super().__setstate__({p.name: p.default for p in parameters} | state)

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train on a table.

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
        told = fit_together([self], X, y, sample_weight, n_jobs=self.n_jobs, verbose=self.verbose)
        for warning in told[0]:
            warnings.warn(warning, stacklevel=2)
        return self

    @property
    @abstractmethod
    def penalties_(self) -> tuple[float, float]:
        """Penalties on the mean and on the variance that the networks were trained with."""

    @abstractmethod
    def _fitting(
        self,
        X: NDArray[Any],
        y: NDArray[np.float64],
        weight: NDArray[np.float64] | None,
        rows: fleet.Rows,
    ) -> Generator[_plan.Request, fleet.Fleet, list[Warning]]:
        """Ask for networks, set the fitted attributes when they are there, return warnings."""

    @abstractmethod
    def _requests(
        self, X: NDArray[Any], y: NDArray[np.float64], rows: fleet.Rows
    ) -> list[_plan.Request]:
        """What ``_fitting`` will ask for, round by round; for a search a round of that size."""

    def _architecture(self) -> recipes.Architecture:
        return recipes.Architecture(
            hidden_units("hidden_mean", self.hidden_mean),
            hidden_units("hidden_var", self.hidden_var),
            self.activation,
        )

    def _training(self) -> recipes.Training:
        return recipes.Training(
            objective=self.objective,
            beta=self.beta,
            batch_size=self.batch_size,
            clip_value=math.inf if self.clip_value is None else self.clip_value,
        )

    def _stages(self, n_rows: int, reg_mean: float, reg_var: float) -> tuple[recipes.Stage, ...]:
        return recipes.stages(
            self.strategy,
            n_rows=n_rows,
            batch_size=self.batch_size,
            epochs=self.epochs,
            warmup_epochs=self.warmup_epochs,
            learning_rate=self.learning_rate,
            schedule=self.schedule,
            reg_mean=reg_mean,
            reg_var=reg_var,
            patience=self.n_iter_no_change if self.early_stopping else 0,
        )

    def _split(self, rows: fleet.Rows, entropy: Any) -> tuple[fleet.Rows, fleet.Rows]:
        """Training and validation rows."""
        if not self.early_stopping:
            return rows, rows[:0]
        n_valid = math.ceil(self.validation_fraction * len(rows))
        if len(rows) - n_valid < 2:
            raise ValueError(
                f"validation_fraction={self.validation_fraction} leaves {len(rows) - n_valid} of "
                f"{len(rows)} rows for training: lower it or set early_stopping=False."
            )
        rng = np.random.default_rng(fleet.derived_seed(entropy, 0))
        order = rng.permutation(rows)
        return np.sort(order[n_valid:]), np.sort(order[:n_valid])

    def _without_diverged(self, result: fleet.Fleet) -> tuple[fleet.Networks, list[Warning]]:
        """Return the networks that trained; none at all is an error, some a warning."""
        lost = int(result.diverged.sum())
        if lost == len(result.diverged):
            raise DivergedError(
                f"Training diverged (learning_rate={self.learning_rate}, "
                f"clip_value={self.clip_value}): lower learning_rate or clip_value."
            )
        return result.networks[~result.diverged], self._lost(lost, len(result.diverged))

    def _lost(self, lost: int, members: int) -> list[Warning]:
        if not lost:
            return []
        message = (
            f"{lost} of {members} members diverged and were left out: lower learning_rate (now "
            f"{self.learning_rate})."
        )
        return [ConvergenceWarning(message)]


class DivergedError(ValueError):
    """No network of a fit was trained to its end."""


def fit_together(
    estimators: Sequence[NetworkSettings],
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
    fits = []
    for estimator in estimators:
        estimator.__dict__.pop("networks_", None)  # an interrupted fit leaves nothing half-fitted
        estimator._validate_params()
        table, target, weight, rows = check_table(estimator, X, y, sample_weight)
        fitting = estimator._fitting(table, target, weight, rows)
        fits.append(_forgiven(fitting) if forgiving else fitting)
    threads = fleet.effective_threads(n_jobs)
    told = _plan.drive(
        table, target, weight, fits, threads=threads, verbose=verbose, progress=progress
    )
    trained_on = fingerprint(table, target, *([] if weight is None else [weight]))
    for estimator in estimators:
        estimator.fingerprint_ = trained_on
    return told


def _forgiven(
    fitting: Generator[_plan.Request, fleet.Fleet, list[Warning]],
) -> Generator[_plan.Request, fleet.Fleet, list[Warning]]:
    try:
        return (yield from fitting)
    except DivergedError as error:
        return [ConvergenceWarning(str(error))]
