"""The contestants of the league: each gets training rows and says what it expects of new ones.

A method is a function of ``(X, y, X_new)``. It returns a predictive distribution, an array of
means if it knows nothing else, or None where it does not fit (the Gaussian process on many rows).
Whatever is tuned is tuned inside the training rows. Libraries are imported when they are used, so
that an environment without them can run the others.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from sklearn.model_selection import KFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mvenet import MVERegressor, MVERegressorCV, Normal, NormalMixture

Array = np.ndarray
MANY_ROWS = 5000  # above, boosting takes larger steps
TOO_MANY_FOR_A_PROCESS = 1000
PATIENCE = 50  # iterations without a better validation score
THREADS = int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1))


@dataclass(frozen=True)
class Quantiles:
    """A distribution given by its quantiles at the levels k / (m + 1), linear in between.

    Below the first and above the last level the neighbouring slope goes on. It has no density that
    deserves the name.
    """

    values: Array  # (n, m), increasing along a row

    def _at(self, levels: Array) -> Array:
        m = self.values.shape[1]
        inner = self.values
        ends = [2 * inner[:, :1] - inner[:, 1:2], 2 * inner[:, -1:] - inner[:, -2:-1]]
        knots = np.hstack([ends[0], inner, ends[1]])
        place = np.clip(levels * (m + 1), 0, m + 1 - 1e-9)
        left = place.astype(int)
        return knots[:, left] + (place - left) * (knots[:, left + 1] - knots[:, left])

    @property
    def _fine(self) -> tuple[Array, Array]:
        levels = (np.arange(400) + 0.5) / 400
        return levels, self._at(levels)

    @property
    def mean(self) -> Array:
        """Mean of the distribution, shape (n,)."""
        return self._fine[1].mean(axis=1)

    def interval(self, coverage: float) -> Array:
        """Central interval, shape (n, 2)."""
        return self._at(np.array([0.5 - coverage / 2, 0.5 + coverage / 2]))

    def crps(self, y: Array) -> Array:
        """Twice the pinball loss, averaged over the levels."""
        levels, quantiles = self._fine
        error = y[:, None] - quantiles
        return 2 * np.mean(np.maximum(levels * error, (levels - 1) * error), axis=1)


def held_out(X: Array, y: Array) -> tuple[Array, Array, Array, Array]:
    """Nine tenths to train on and one tenth to stop by: X, y, X_stop, y_stop."""
    X, X_stop, y, y_stop = train_test_split(X, y, test_size=0.1, random_state=1)
    return X, y, X_stop, y_stop


def fit_catboost(X: Array, y: Array, X_stop: Array, y_stop: Array, depth: int) -> Any:
    """A mean and a variance by CatBoost, stopped by X_stop; y is standardised."""
    from catboost import CatBoostRegressor

    model = CatBoostRegressor(
        loss_function="RMSEWithUncertainty",
        depth=depth,
        iterations=3000,
        learning_rate=0.05,
        early_stopping_rounds=PATIENCE,
        thread_count=THREADS,
        random_seed=1,
        verbose=False,
        allow_writing_files=False,
    )
    return model.fit(X, y, eval_set=(X_stop, y_stop))


def best_catboost(X: Array, y: Array) -> Any:
    """The depth of three that has the best validation score."""
    split = held_out(X, y)
    models = [fit_catboost(*split, depth=depth) for depth in (2, 4, 6)]
    return min(models, key=lambda m: m.get_best_score()["validation"]["RMSEWithUncertainty"])


def mean_and_std(models: list[Any], X_new: Array, centre: float, scale: float) -> tuple[Any, Any]:
    """Of each CatBoost model, in units of y, both of shape (models, n)."""
    means, variances = np.stack([model.predict(X_new).T for model in models], axis=1)
    return centre + scale * means, scale * np.sqrt(np.maximum(variances, 1e-12))


def catboost(X: Array, y: Array, X_new: Array) -> Normal:
    """One CatBoost model."""
    centre, scale = y.mean(), y.std()  # its start and its penalty mind the units of y
    means, stds = mean_and_std([best_catboost(X, (y - centre) / scale)], X_new, centre, scale)
    return Normal(means[0], stds[0])


def ten_catboost(X: Array, y: Array, X_new: Array) -> NormalMixture:
    """Ten CatBoost models, each stopped by the tenth of the rows that it was not trained on."""
    centre, scale = y.mean(), y.std()
    z = (y - centre) / scale
    depth = best_catboost(X, z).get_param("depth")
    models = [
        fit_catboost(X[train], z[train], X[stop], z[stop], depth)
        for train, stop in KFold(10, shuffle=True, random_state=1).split(X)
    ]
    return NormalMixture(*mean_and_std(models, X_new, centre, scale))


def ngboost(X: Array, y: Array, X_new: Array) -> Normal:
    """Natural gradient boosting of a normal distribution."""
    from ngboost import NGBRegressor

    many = len(y) > MANY_ROWS
    X, y, X_stop, y_stop = held_out(X, y)
    model = NGBRegressor(
        n_estimators=500 if many else 2000,
        learning_rate=0.1 if many else 0.02,
        minibatch_frac=0.5 if many else 1.0,
        verbose=False,
        random_state=1,
    )
    mean, scale = y.mean(), y.std()
    model.fit(
        X,
        (y - mean) / scale,
        X_val=X_stop,
        Y_val=(y_stop - mean) / scale,
        early_stopping_rounds=PATIENCE,
    )
    found = model.pred_dist(X_new, max_iter=model.best_val_loss_itr + 1).params
    return Normal(mean + scale * found["loc"], scale * found["scale"])


def xgboost(X: Array, y: Array, X_new: Array) -> Array:
    """Boosted trees on squared error; they say nothing of uncertainty."""
    from xgboost import XGBRegressor

    X, y, X_stop, y_stop = held_out(X, y)
    model = XGBRegressor(
        n_estimators=3000,
        learning_rate=0.1 if len(y) > MANY_ROWS else 0.05,
        subsample=0.8,
        early_stopping_rounds=PATIENCE,
        n_jobs=THREADS,
        random_state=1,
    )
    model.fit(X, y, eval_set=[(X_stop, y_stop)], verbose=False)
    return model.predict(X_new).astype(float)


def quantile_boosting(X: Array, y: Array, X_new: Array) -> Quantiles:
    """scikit-learn's histogram boosting, once for each of 19 quantiles, sorted."""
    predicted = [
        HistGradientBoostingRegressor(
            loss="quantile",
            quantile=level,
            max_iter=500,
            early_stopping=True,
            n_iter_no_change=20,
            random_state=1,
        )
        .fit(X, y)
        .predict(X_new)
        for level in np.arange(1, 20) / 20
    ]
    return Quantiles(np.sort(predicted, axis=0).T)


def gaussian_process(X: Array, y: Array, X_new: Array) -> Normal | None:
    """Matérn 3/2 with a length scale for each column, and white noise; cubic in the rows."""
    if len(y) > TOO_MANY_FOR_A_PROCESS:
        return None
    kernel = ConstantKernel() * Matern(np.ones(X.shape[1]), nu=1.5) + WhiteKernel(0.1)
    process = GaussianProcessRegressor(kernel, normalize_y=True, random_state=1)
    model = make_pipeline(StandardScaler(), process).fit(X, y)
    return Normal(*model.predict(X_new, return_std=True))


def deep_ensemble(X: Array, y: Array, X_new: Array) -> Any:
    """Ten networks, mean and variance trained together from the start, no search."""
    model = MVERegressor(
        hidden_mean=(40, 20),
        hidden_var=(40, 20),
        activation="elu",
        strategy="no-warmup",
        n_members=10,
        random_state=1,
    )
    return model.fit(X, y).predict_dist(X_new)


def mvenet(X: Array, y: Array, X_new: Array) -> Any:
    """Our search, without an argument."""
    return MVERegressorCV(random_state=1).fit(X, y).predict_dist(X_new)


def mvenet_quick(X: Array, y: Array, X_new: Array) -> Any:
    """Our quick one, without an argument."""
    return MVERegressor(random_state=1).fit(X, y).predict_dist(X_new)


def mvenet_before(X: Array, y: Array, X_new: Array) -> Any:
    """What mvenet 0.1 had: commit 31a0c5e, in an environment of its own."""
    if "means" in inspect.signature(MVERegressorCV).parameters:
        raise SystemExit(
            "'mvenet 0.1 (before)' needs mvenet as it was: run benchmarks/league.py with the "
            "Python of a clone at commit 31a0c5e (make .venv/.installed there)"
        )
    return MVERegressorCV(scoring="crps", random_state=1).fit(X, y).predict_dist(X_new)


@dataclass(frozen=True)
class Method:
    """A contestant: its name, what it runs and the package whose version counts."""

    name: str
    run: Callable[[Array, Array, Array], Any]
    package: str
    ours: bool = False

    @property
    def file(self) -> str:
        """Name of its file of results."""
        return self.run.__name__ + ".csv"


METHODS = (
    Method("MVERegressorCV", mvenet, "mvenet", ours=True),
    Method("MVERegressor", mvenet_quick, "mvenet", ours=True),
    Method("mvenet 0.1 (before)", mvenet_before, "mvenet", ours=True),
    Method("deep ensemble of ten", deep_ensemble, "mvenet"),
    Method("ten CatBoost", ten_catboost, "catboost"),
    Method("CatBoost", catboost, "catboost"),
    Method("NGBoost", ngboost, "ngboost"),
    Method("Gaussian process", gaussian_process, "scikit-learn"),
    Method("quantile boosting", quantile_boosting, "scikit-learn"),
    Method("XGBoost", xgboost, "xgboost"),
)
