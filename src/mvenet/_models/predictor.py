"""All ways to predict: from a distribution for each row, and from networks by themselves."""

from __future__ import annotations

import functools
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mvenet._models.columns import Column, Columns
from mvenet._models.interface import FittedModel
from mvenet._models.joint import JointModel
from mvenet._models.numbers import Numbers
from mvenet._utils.finite import check_finite, has_gaps
from mvenet._utils.machine import effective_threads
from mvenet.distributions import Distribution, Joint

_Model = TypeVar("_Model")
_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")
_FEW_ROWS = 128  # predicted without starting a thread
_AT_ONCE = 2**20  # members times rows of a distribution that is only needed in passing


@dataclass(frozen=True, eq=False)
class Encoded:
    """Rows of a table that the model's own encoder has made numbers of already."""

    numbers: NDArray[Any]

    def __len__(self) -> int:
        return len(self.numbers)


def groups_not_needed(
    method: Callable[Concatenate[_Model, _Given], _Made],
) -> Callable[Concatenate[_Model, _Given], _Made]:
    """Let a method say that it does without what ``fit`` takes for rows that belong together."""

    @functools.wraps(method)
    def called(self: _Model, /, *args: _Given.args, **given: _Given.kwargs) -> _Made:
        for name in given.keys() & {"groups", "time", "horizon"}:
            raise TypeError(
                f"{method.__name__}() takes no {name}: it is for fit, and to predict it is not "
                f"needed, since rows are taken to be new ones. Leave {name} out."
            )
        return method(self, *args, **given)

    return called


class PredictsDistribution(ABC):
    """All ways to predict, and to save, of an estimator that has ``predict_dist``."""

    encoder_: Any  # Numbers or mvenet._columns.encoding.Encoding; files of old formats have none
    n_features_in_: int
    target_name_: str  # of y, if it had a name
    unit_: str  # of y, if that was said
    held_out_: dict[str, float]  # scores of rows that were held out by whoever fitted it
    promise_: str  # for which rows intervals hold, if not for any like those of the fit
    ties_: dict[str, Any]  # the columns that tie rows together, and which groups were seen

    def _takes_frames(self) -> bool:
        """Whether it was fitted to a frame of more than numbers, which its encoder knows."""
        return not isinstance(vars(self).get("encoder_"), Numbers | None)

    @property
    def columns_(self) -> Columns:
        """What each column of X was taken for, and what was done to it; prints as a table."""
        encoder, names = vars(self).get("encoder_"), getattr(self, "feature_names_in_", None)
        if self._takes_frames():
            made: Columns = self.encoder_.columns_
            return made
        shown = [f"x{i}" for i in range(self.n_features_in_)] if names is None else names
        if encoder is None:
            return Columns({str(name): Column("number") for name in shown})
        return encoder.columns([str(name) for name in shown])  # type: ignore[no-any-return]

    @abstractmethod
    def predict_dist(self, X: ArrayLike) -> Distribution:
        """Predictive distribution of each row."""

    @groups_not_needed
    def predict(
        self, X: ArrayLike, return_std: bool = False
    ) -> NDArray[np.float64] | tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean of the predictive distribution and, if wanted, its standard deviation.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        return_std : bool, default=False

        Returns
        -------
        mean : ndarray of shape (n,), or (n, k) of k targets
        std : ndarray of the same shape, only with ``return_std=True``
            In units of y. It is the spread of a new observation, noise included.
        """
        dist = self.predict_dist(X)
        return (dist.mean, dist.std) if return_std else dist.mean

    @groups_not_needed
    def predict_interval(
        self, X: ArrayLike, coverage: float | ArrayLike = 0.9, *, kind: str = "central"
    ) -> NDArray[np.float64]:
        """Prediction interval, with equal probability on both sides or the shortest.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        coverage : float or list of k floats in (0, 1), default=0.9
        kind : {"central", "shortest", "simultaneous"}, default="central"
            The last is for several targets: intervals that hold for all of them at once.

        Returns
        -------
        ndarray of shape (n, 2), or (n, k, 2) for a list
            Lower and upper end, in units of y. With several targets there is an axis for them
            after that of the rows.
        """
        if kind not in ("central", "shortest", "simultaneous"):
            raise ValueError(f"kind must be 'central', 'shortest' or 'simultaneous', got {kind!r}.")
        if kind == "simultaneous":
            return self._simultaneous(X, coverage)
        if kind == "shortest":
            return self._in_passing(X, lambda dist, _: dist.shortest_interval(coverage))
        return self._in_passing(X, lambda dist, _: dist.interval(coverage))

    def _simultaneous(self, X: ArrayLike, coverage: float | ArrayLike) -> NDArray[np.float64]:
        dist: Any = self.predict_dist(X)
        if not isinstance(dist, Joint):
            raise ValueError("kind='simultaneous' is for several targets: use kind='central'.")
        return dist.simultaneous_interval(coverage)

    @groups_not_needed
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

    def report(
        self,
        path: str | os.PathLike[str],
        X: Any = None,
        y: ArrayLike | None = None,
        *,
        unit: str = "",
        source: str = "",
    ) -> None:
        """Write a report on the model as one HTML file (needs polars, jinja2 and matplotlib).

        Parameters
        ----------
        path : str or path
            Customarily ending in ``.html``. Replaced whole or not at all.
        X : array-like or DataFrame of shape (n, n_features), or None
            Rows that it was not trained on; without them the report tells of the training alone.
        y : array-like of shape (n,) or None
            What was observed in these rows.
        unit : str, default=""
            Of y, such as "€".
        source : str, default=""
            Where the rows come from, in a word.
        """
        from mvenet import report  # the other look upwards

        report.write(self, path, X, y, unit=unit, source=source)


def is_estimator(thing: Any) -> bool:
    """Whether it is an estimator, of ours or of scikit-learn's kind.

    The class decides: an object has whatever attributes its file gave it.
    """
    return isinstance(thing, PredictsDistribution) or hasattr(type(thing), "get_params")


class Predictor(PredictsDistribution):
    """What every estimator of ours can do once it is fitted.

    It needs no scikit-learn: a model file can be built as this, and predicts the same.
    """

    model_: FittedModel
    fingerprint_: str  # of the table that it was trained on
    n_jobs: int | None

    @property
    def columns_(self) -> Columns:
        # The base class documents it. Of several targets each has an encoder of its own.
        first = next(iter(self._joint.estimators), None) if self._joint is not None else None
        return first.columns_ if isinstance(first, PredictsDistribution) else super().columns_

    columns_.__doc__ = PredictsDistribution.columns_.__doc__

    @groups_not_needed
    def predict_dist(self, X: ArrayLike) -> Distribution:
        """Predictive distribution of each row.

        Parameters
        ----------
        X : array-like of shape (n, n_features)

        Returns
        -------
        Normal, NormalMixture or another Distribution
            A mixture with one component for each network if there is more than one. Of several
            targets a :class:`mvenet.distributions.Joint`.
        """
        joint = self._joint
        if joint is not None:
            return cast(Distribution, joint.distribution(X))
        table = self._checked(X)
        return self.model_.distribution(table, self._threads(table))._labelled(X)

    @property
    def _joint(self) -> JointModel | None:
        """The model of several targets, if it is one; whose answers have a column for each."""
        model: Any = self.__dict__.get("model_")
        return model if isinstance(model, JointModel) else None

    @groups_not_needed
    def predict(
        self, X: ArrayLike, return_std: bool = False
    ) -> NDArray[np.float64] | tuple[NDArray[np.float64], NDArray[np.float64]]:
        # The base class documents it. Reduced in the engine: no array of members times rows.
        joint = self._joint
        if joint is not None:
            means, stds = joint.moments(X, std=return_std)
            return means if stds is None else (means, stds)
        table = self._checked(X)
        mean, std = self.model_.moments(table, std=return_std, threads=self._threads(table))
        return mean if std is None else (mean, std)

    predict.__doc__ = PredictsDistribution.predict.__doc__

    def _checked(self, X: ArrayLike) -> NDArray[Any]:
        """The table as finite numbers, with the columns that the model reads."""
        if isinstance(X, Encoded):
            return X.numbers
        if self._takes_frames():
            read = self.encoder_.marked if self._knows_unknown() else self.encoder_.transform
            numbers: NDArray[Any] = read(X)
            return numbers
        table = np.asarray(X, dtype=np.float64)
        if table.ndim != 2 or table.shape[1] != self.n_features_in_:
            raise ValueError(f"X has shape {table.shape}, not (n, {self.n_features_in_}).")
        return self._without_gaps(table)

    def _without_gaps(self, table: NDArray[Any]) -> NDArray[Any]:
        """Numbers as the model reads them: infinity is refused, a gap filled."""
        names, encoder = getattr(self, "feature_names_in_", None), vars(self).get("encoder_")
        if encoder is None:
            check_finite(table, names)
            return table
        gaps, mark = has_gaps(table, names), self._knows_unknown()
        return encoder.transform(table, gaps, mark)  # type: ignore[no-any-return]

    def _knows_unknown(self) -> bool:
        """Whether the model knows what to do about a cell that is not known."""
        return getattr(self.model_, "donors", None) is not None

    @property
    def _n_read(self) -> int:
        """How many columns the model reads."""
        encoder = vars(self).get("encoder_")
        return self.n_features_in_ if encoder is None else int(encoder.width)

    def _threads(self, table: NDArray[Any]) -> int:
        return 1 if len(table) <= _FEW_ROWS else effective_threads(self.n_jobs)

    def _in_passing(
        self,
        X: ArrayLike,
        of: Callable[[Distribution, slice], NDArray[np.float64]],
        y: NDArray[Any] | None = None,
    ) -> NDArray[np.float64]:
        if self._joint is not None:
            return super()._in_passing(X, of, y)
        table = self._checked(X)
        step = max(_FEW_ROWS, _AT_ONCE // len(self.model_))
        if y is not None and y.shape != (len(table),):
            step = len(table)  # logpdf raises the error about y
        parts = [slice(start, start + step) for start in range(0, len(table), step)]
        threads = self._threads(table)
        if getattr(self.model_, "foreign", False) or len(parts) < threads:
            dists = (self.model_.distribution(table[rows], threads) for rows in parts)
            return np.concatenate([of(d, rows) for d, rows in zip(dists, parts, strict=True)])
        with ThreadPoolExecutor(threads) as pool:
            each = pool.map(lambda rows: of(self.model_.distribution(table[rows], 1), rows), parts)
            return np.concatenate(list(each))
