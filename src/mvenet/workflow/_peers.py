"""The automatic search beside the usual models of other libraries, on the same folds of a table."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from time import perf_counter
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import BayesianRidge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mvenet._columns.cells import split_target
from mvenet._estimators.auto import AutoRegressor
from mvenet._estimators.dependence import Belonging as Given
from mvenet._estimators.folds import Folds, folds_of
from mvenet._estimators.regressor import MVERegressor
from mvenet.distributions import Normal
from mvenet.table import TableEncoder
from mvenet.workflow._belonging import Belonging

Array = NDArray[np.float64]
OURS = ("AutoRegressor", "MVERegressor")
FEWEST = 8  # rows to train on, in each fold
LEVELS = tuple(np.round(np.arange(0.05, 1.0, 0.1), 2))  # of quantiles; the outer two are 90 %
SCORES = ("crps", "rmse", "coverage", "seconds")


@dataclass(frozen=True)
class ModelComparison:
    """Scores of several models on the folds of a table.

    Attributes
    ----------
    names : list of str
        The models; the first is the automatic search.
    scores : dict of ndarray of shape (n_models, n_folds)
        ``crps`` and ``rmse`` in units of the target, ``coverage`` of 90 % intervals, ``seconds`` to
        fit and predict.
    not_installed : list of str
        Packages whose models would have been there.
    """

    names: list[str]
    scores: dict[str, Array]
    not_installed: list[str]

    def mean(self, score: str) -> Array:
        """Average over the folds, for each model."""
        return np.asarray(self.scores[score].mean(axis=1))

    def error(self, score: str) -> Array:
        """Standard error of that average, by how the folds differ."""
        return _standard_error(self.scores[score])

    def worse(self, score: str = "crps") -> tuple[Array, Array]:
        """By how much each is above the first, fold by fold, and the standard error of that."""
        difference = self.scores[score] - self.scores[score][0]
        return np.asarray(difference.mean(axis=1)), _standard_error(difference)

    @property
    def conclusion(self) -> str:
        """The CRPS of the best model of another library beside that of the automatic search."""
        crps, (above, error) = self.mean("crps"), self.worse()
        others = [i for i, name in enumerate(self.names) if name not in OURS]
        best = min(others, key=lambda i: float(crps[i]))
        share = 100 * abs(float(above[best] / crps[0]))
        told = (
            f"Of the other libraries' models, {self.names[best]} has the lowest CRPS, "
            f"{share:.{int(share < 10)}f} % {'above' if above[best] > 0 else 'below'} "
            "AutoRegressor's: "
        )
        if abs(above[best]) > 2 * error[best]:
            return told + "more than two standard errors."
        return told + "within two standard errors, which may be chance."


def compare_models(
    frame: Any,
    column: str,
    *,
    folds: int = 5,
    effort: str = "medium",
    group: str | None = None,
    time: str | None = None,
    horizon: float | None = None,
    seed: int = 0,
    done: Callable[[str, int], object] | None = None,
) -> ModelComparison:
    """Compare the automatic search with the usual models of other libraries.

    All see the same folds of the same columns. mvenet takes the frame as it is, as in ``fit``; the
    others get the numbers that :class:`~mvenet.table.TableEncoder` makes of it on the training rows
    of each fold. They have the settings that their libraries have by default, but for 300 trees of
    the random forest: nobody is tuned. A model with quantiles has ten of them, and its CRPS is
    twice their mean pinball loss.

    Parameters
    ----------
    frame : DataFrame
        Of polars or pandas.
    column : str
        The column to predict. Rows without it are left out.
    folds : int
        Of shuffled rows; of whole groups with ``group``, of stretches of time with ``time``.
    effort : {"low", "medium", "high"}
        Of the automatic search.
    group, time : str or None
        Columns that say which rows belong together, and when each was. Folds respect them, and
        mvenet is told; the others have no such argument.
    horizon : float or None
        How far ahead, in units of ``time``.
    seed : int
        Of folds and models.
    done : callable or None
        Called with the name of a model and the number of a fold after each of them.

    Returns
    -------
    ModelComparison

    Examples
    --------
    >>> import numpy as np, polars as pl
    >>> from mvenet import workflow
    >>> x = np.linspace(0, 1, 60)
    >>> noise = np.random.default_rng(0).standard_normal(60)
    >>> frame = pl.DataFrame({"x": x, "y": 3 * x + 0.2 * noise})
    >>> found = workflow.compare_models(frame, "y", folds=2, effort="low")
    >>> found.names[0]
    'AutoRegressor'
    """
    X, y, _ = split_target(pl.DataFrame(frame) if isinstance(frame, dict) else frame, column)
    if np.ptp(y) == 0:
        raise ValueError(
            f"The target {column!r} is {y[0]:g} in every row: nothing can be compared."
        )
    tied = Belonging.of(X, column, group, time, horizon)
    X = tied.inputs(X)
    given = Given(**tied.given(np.arange(len(y))))
    split = _split(folds, X, y, seed, given, group)
    models = usual_models(effort, seed)
    measured = np.empty((len(SCORES), len(models), len(split)))
    for j, (train, test) in enumerate(split):
        encoder = TableEncoder(target=column)
        numbers = encoder.fit_transform(X[train], y[train]), encoder.transform(X[test])
        for i, (name, model) in enumerate(models.items()):
            ours = name in OURS
            inputs: tuple[Any, Any] = (X[train], X[test]) if ours else numbers
            told = given.of(train).given() if ours else {}
            measured[:, i, j] = _scored(model, inputs, y[train], y[test], told)
            if done is not None:
                done(name, j)
    scores = dict(zip(SCORES, measured, strict=True))
    missing = [package for package in OTHERS if find_spec(package) is None]
    return ModelComparison(list(models), scores, missing)


def _split(folds: int, X: Any, y: Array, seed: int, given: Given, group: str | None) -> Folds:
    """The folds; of groups no more than there are, and what is trained on has several."""
    if given.groups is not None and given.time is None:
        folds = max(2, min(folds, len(np.unique(given.groups))))
    split = folds_of("folds", folds, X, y, seed, given.checked(len(y)))
    fewest = min(len(train) for train, _ in split)
    if fewest < FEWEST:
        raise ValueError(
            f"folds={folds} of {len(y)} rows leave {fewest} to train on: to compare anything, "
            f"{FEWEST} are needed. Use a larger table."
        )
    if group is not None and min(len(np.unique(given.groups[train])) for train, _ in split) < 2:
        raise ValueError(
            f"group={group!r} has too few values: a fold would be trained on one of them alone, "
            "which says nothing of new ones. Use more folds, or another column."
        )
    return split


# --- the models: each a function of training rows and rows to predict -----------------------------


@dataclass(frozen=True)
class Predicted:
    """What a model says of some rows."""

    mean: Array
    interval: Array
    crps: Callable[[Array], Array]


Model = Callable[[Any, Array, Any, dict[str, Any]], Predicted]


def usual_models(effort: str, seed: int) -> dict[str, Model]:
    """Our two estimators, scikit-learn's usual models, and those of packages that are installed."""
    boosted = HistGradientBoostingRegressor(random_state=seed)
    forest = RandomForestRegressor(300, oob_score=True, random_state=seed)
    models: dict[str, Model] = {
        OURS[0]: _with_distribution(AutoRegressor(effort=effort, random_state=seed)),
        OURS[1]: _with_distribution(MVERegressor(random_state=seed)),
        "Bayesian ridge": _with_std(make_pipeline(StandardScaler(), BayesianRidge())),
        "random forest": _one_width(forest),
        "boosted trees": _quantiles(
            boosted, lambda q: clone(boosted).set_params(loss="quantile", quantile=q)
        ),
    }
    for package, model in OTHERS.items():
        if find_spec(package) is not None:
            name, made = model(import_module(package), seed)
            models[name] = made
    return models


def _lightgbm(package: Any, seed: int) -> tuple[str, Model]:
    plain = package.LGBMRegressor(random_state=seed, verbose=-1)
    of = clone(plain)
    return "LightGBM", _quantiles(
        plain, lambda q: clone(of).set_params(objective="quantile", alpha=q)
    )


def _catboost(package: Any, seed: int) -> tuple[str, Model]:
    model = package.CatBoostRegressor(
        loss_function="RMSEWithUncertainty", random_seed=seed, verbose=0, allow_writing_files=False
    )

    def predicted(X: Any, y: Array, new: Any, told: dict[str, Any]) -> Predicted:
        mean, variance = model.copy().fit(X, y).predict(new).T
        return _of_distribution(Normal(mean, np.sqrt(variance)))

    return "CatBoost", predicted


OTHERS: dict[str, Callable[[Any, int], tuple[str, Model]]] = {
    "lightgbm": _lightgbm,
    "catboost": _catboost,
}


def _with_distribution(estimator: Any) -> Model:
    def predicted(X: Any, y: Array, new: Any, told: dict[str, Any]) -> Predicted:
        return _of_distribution(clone(estimator).fit(X, y, **told).predict_dist(new))

    return predicted


def _with_std(estimator: Any) -> Model:
    def predicted(X: Any, y: Array, new: Any, told: dict[str, Any]) -> Predicted:
        mean, std = clone(estimator).fit(X, y).predict(new, return_std=True)
        return _of_distribution(Normal(mean, std))

    return predicted


def _one_width(forest: Any) -> Model:
    """A mean, and the same normal around all: as wide as the errors of rows out of bag."""

    def predicted(X: Any, y: Array, new: Any, told: dict[str, Any]) -> Predicted:
        fitted = clone(forest).fit(X, y)
        width = float(np.sqrt(np.mean((y - fitted.oob_prediction_) ** 2)))
        mean = fitted.predict(new)
        return _of_distribution(Normal(mean, np.full(len(mean), max(width, 1e-300))))

    return predicted


def _quantiles(mean: Any, at: Callable[[float], Any]) -> Model:
    """A model for the mean, and one for each quantile; sorted, since they may cross."""

    def predicted(X: Any, y: Array, new: Any, told: dict[str, Any]) -> Predicted:
        quantiles = np.sort([at(q).fit(X, y).predict(new) for q in LEVELS], axis=0)

        def crps(observed: Array) -> Array:
            off = observed - quantiles
            level = np.array(LEVELS)[:, None]
            return np.asarray(2 * np.maximum(level * off, (level - 1) * off).mean(axis=0))

        return Predicted(clone(mean).fit(X, y).predict(new), quantiles[[0, -1]].T, crps)

    return predicted


def _of_distribution(dist: Any) -> Predicted:
    return Predicted(dist.mean, dist.interval(0.9), dist.crps)


# --- scores --------------------------------------------------------------------------------------


def _scored(
    model: Model, inputs: tuple[Any, Any], y: Array, observed: Array, told: dict[str, Any]
) -> tuple[float, ...]:
    start = perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of dependent rows, and what others warn of: many folds
        predicted = model(inputs[0], y, inputs[1], told)
    seconds = perf_counter() - start
    low, high = predicted.interval.T
    return (
        float(predicted.crps(observed).mean()),
        float(np.sqrt(np.mean((predicted.mean - observed) ** 2))),
        float(np.mean((low <= observed) & (observed <= high))),
        seconds,
    )


def _standard_error(values: Array) -> Array:
    return np.asarray(values.std(axis=1, ddof=1) / math.sqrt(values.shape[1]))
