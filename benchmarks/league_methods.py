"""The contestants of the league: each learns from training rows and tells of new ones.

A method is two functions: ``fit(rows)`` returns a model, ``predict(model, X)`` a prediction. What
is tuned is tuned inside the training rows. Libraries are imported when they are used, because each
contestant lives in an environment of its own (league_environments.py) that has no other's.
"""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from league_predictions import (
    Library,
    NormalMixture,
    Parametric,
    PiecewiseLinear,
    Point,
    Prediction,
    Samples,
    joined,
)
from league_tables import Array, Rows
from sklearn.model_selection import KFold, train_test_split

MANY_ROWS = 5000  # above, boosting takes larger steps
PATIENCE = 50  # iterations without a better validation score
PINBALL_LEVELS = (np.arange(50) + 0.5) / 50
FOREST_LEVELS = (np.arange(500) + 0.5) / 500
CHECKPOINT = "tabpfn-v2-regressor-2noar4o2.ckpt"


def held_out(rows: Rows) -> tuple[Rows, Rows]:
    """Nine tenths to train on and one tenth to stop by."""
    train, stop = train_test_split(np.arange(len(rows)), test_size=0.1, random_state=1)
    return rows[train], rows[stop]


@dataclass(frozen=True)
class Scaled:
    """Models of a standardised target, and the units to go back to."""

    models: list[Any]
    centre: float
    scale: float

    def normals(self, means: Array, stds: Array) -> NormalMixture:
        """A mixture of what the models say, shapes (k, n), in units of y."""
        return NormalMixture(self.centre + self.scale * means, self.scale * stds)


def standardised(rows: Rows) -> tuple[Rows, float, float]:
    """Rows with a target of mean 0 and standard deviation 1, and what was taken away."""
    centre, scale = float(rows.y.mean()), float(rows.y.std())
    return Rows(rows.X, (rows.y - centre) / scale, rows.groups, rows.time), centre, scale


# mvenet


def fit_mvenet(rows: Rows) -> Any:
    """The automatic search, without an argument; told what ties rows together if it can be."""
    import mvenet

    model = getattr(mvenet, "AutoRegressor", mvenet.MVERegressorCV)(random_state=1)
    known = inspect.signature(model.fit).parameters
    ties = {"groups": rows.groups, "time": rows.time}
    ties = {name: tie for name, tie in ties.items() if tie is not None and name in known}
    return model.fit(rows.X, rows.y, **ties)


def fit_mvenet_before(rows: Rows) -> Any:
    """The automatic search as it was before free shapes."""
    import mvenet

    if hasattr(mvenet, "AutoRegressor"):
        raise SystemExit(
            "'mvenet before' needs mvenet as it was: make a clone at commit 0693d7a "
            "(make .venv/.installed there) and pass its Python with --python"
        )
    return fit_mvenet(rows)


def predict_mvenet(model: Any, X: Array) -> Library:
    """All shapes of mvenet answer alike."""
    return Library(model.predict_dist(X))


def fit_deep_ensemble(rows: Rows) -> Any:
    """Ten networks, mean and variance trained together from the start, no search."""
    from mvenet import MVERegressor

    model = MVERegressor(
        hidden_mean=(40, 20),
        hidden_var=(40, 20),
        activation="elu",
        strategy="no-warmup",
        n_members=10,
        random_state=1,
    )
    return model.fit(rows.X, rows.y)


# A prior over tables


def fit_tabpfn(rows: Rows) -> Any:
    """TabPFN v2 as it is shipped: eight estimators, temperature 0.9."""
    from tabpfn import TabPFNRegressor

    path = Path(sys.prefix) / CHECKPOINT
    if not path.is_file():
        raise SystemExit(
            f"the checkpoint {CHECKPOINT} is missing: run "
            "python benchmarks/league.py install tabpfn"
        )
    model = TabPFNRegressor(
        device="cpu", model_path=path, random_state=1, ignore_pretraining_limits=True, n_jobs=1
    )
    return model.fit(rows.X, rows.y), rows


def predict_tabpfn(model: Any, X: Array) -> PiecewiseLinear:
    """Bars; its own density differs in the outer two, which are half normals there."""
    import torch

    parts = np.array_split(np.arange(len(X)), -(-len(X) // 1000))
    answers = [model[0].predict(X[part], output_type="full") for part in parts]
    criterion = answers[0]["criterion"]
    logits = torch.cat([answer["logits"] for answer in answers])
    heights = torch.softmax(logits.double(), dim=-1).numpy()
    levels = np.hstack([np.zeros((len(X), 1)), np.cumsum(heights, axis=1)])
    moments = criterion.mean(logits).numpy(), criterion.variance(logits).sqrt().numpy()

    def density(y: Array) -> Array:
        return -criterion(logits, torch.as_tensor(y, dtype=logits.dtype)).numpy()

    edges = criterion.borders.double().numpy()
    return PiecewiseLinear(edges, levels / levels[:, -1:], "exact", density, moments)


def size_of_tabpfn(model: Any) -> int:
    """Weights, and the training rows that it reads anew for every prediction."""
    rows = model[1]
    return (Path(sys.prefix) / CHECKPOINT).stat().st_size + rows.X.nbytes + rows.y.nbytes


# Forests


def fit_extra_trees(rows: Rows) -> Any:
    """Extremely randomised trees, leaves of one row."""
    from quantile_forest import ExtraTreesQuantileRegressor

    return ExtraTreesQuantileRegressor(500, random_state=1, n_jobs=1).fit(rows.X, rows.y)


def fit_random_forest(rows: Rows) -> Any:
    """A random forest, leaves of one row."""
    from quantile_forest import RandomForestQuantileRegressor

    return RandomForestQuantileRegressor(500, random_state=1, n_jobs=1).fit(rows.X, rows.y)


def predict_forest(model: Any, X: Array) -> PiecewiseLinear:
    """As many quantiles as there are trees, in parts: a part takes 500 numbers a row and more."""
    parts = np.array_split(np.arange(len(X)), -(-len(X) // 500))
    found = [np.asarray(model.predict(X[part], list(FOREST_LEVELS))) for part in parts]
    return joined(FOREST_LEVELS, np.concatenate(found), "500 quantiles, joined")


# Networks


def fit_pytabkit(kind: str, **settings: Any) -> Callable[[Rows], Any]:
    """A network with a head for each of fifty quantiles, one for each of five inner folds."""

    def fit(rows: Rows) -> Any:
        import logging

        import pytabkit

        logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
        loss = f"multi_pinball({','.join(f'{level:.2f}' for level in PINBALL_LEVELS)})"
        model = getattr(pytabkit, kind)(
            n_cv=5,
            device="cpu",
            n_threads=1,
            random_state=1,
            train_metric_name=loss,
            val_metric_name=loss,
            **settings,
        )
        return model.fit(rows.X, rows.y)

    return fit


def predict_pytabkit(model: Any, X: Array) -> PiecewiseLinear:
    """The mean of the folds' quantiles, sorted and joined."""
    return joined(PINBALL_LEVELS, np.asarray(model.predict(X), float), "50 quantiles, joined")


def fit_bde(rows: Rows) -> Scaled:
    """Bayesian deep ensemble with the settings of its authors' example."""
    from bde import BdeRegressor
    from bde.loss import GaussianNLL
    from sklearn.preprocessing import StandardScaler

    rows, centre, scale = standardised(rows)
    inputs = StandardScaler().fit(rows.X)
    model = BdeRegressor(
        hidden_layers=[16, 16],
        n_members=8,
        seed=0,
        loss=GaussianNLL(),
        epochs=200,
        validation_split=0.15,
        lr=1e-3,
        weight_decay=1e-4,
        warmup_steps=5000,
        n_samples=2000,
        n_thinning=2,
        patience=10,
    )
    model.fit(x=inputs.transform(rows.X), y=rows.y[:, None])
    return Scaled([inputs, model], centre, scale)


def predict_bde(model: Scaled, X: Array) -> NormalMixture:
    """Every fortieth of its 8,000 normals, evenly over each chain."""
    inputs, one = model.models
    raw = np.asarray(one.predict(inputs.transform(X), raw=True), float)[:, 39::40]
    normals = raw.reshape(-1, *raw.shape[2:])
    return model.normals(normals[..., 0], np.logaddexp(0, normals[..., 1]) + 1e-6)


# Boosting


def fit_treeffuser(rows: Rows) -> Any:
    """A diffusion whose score is boosted trees, as it is shipped."""
    from treeffuser import Treeffuser

    return Treeffuser(n_jobs=1, seed=1).fit(rows.X, rows.y)


def predict_treeffuser(model: Any, X: Array) -> Samples:
    """500 draws a row, fewer (200 at least) for many rows: its cost is in drawing."""
    n = int(np.clip(100_000 // len(X), 200, 500))
    return Samples(np.asarray(model.sample(X, n, n_parallel=n, seed=1), float).T)


def fit_lightgbmlss(rows: Rows) -> Scaled:
    """Boosted parameters of a normal or of Student's t, by the best of six validation scores.

    Its Newton steps divide by curvatures that may be close to 0; without a bound on them the
    first iterations overshoot, and early stopping keeps a mean that has hardly begun.
    """
    import lightgbm
    from lightgbmlss.distributions.Gaussian import Gaussian
    from lightgbmlss.distributions.StudentT import StudentT
    from lightgbmlss.model import LightGBMLSS

    rows, centre, scale = standardised(rows)
    rows, stop = held_out(rows)
    found = []
    for kind, steps in product((Gaussian, StudentT), ("None", "MAD", "L2")):
        model = LightGBMLSS(kind(stabilization=steps))
        train = lightgbm.Dataset(rows.X, rows.y)
        history: dict[str, dict[str, list[float]]] = {}
        model.train(
            {
                "learning_rate": 0.05,
                "max_delta_step": 0.5,
                "num_threads": 1,
                "seed": 1,
                "deterministic": True,
            },
            train,
            num_boost_round=3000,
            valid_sets=[lightgbm.Dataset(stop.X, stop.y, reference=train)],
            valid_names=["stop"],
            callbacks=[
                lightgbm.early_stopping(PATIENCE, verbose=False),
                lightgbm.record_evaluation(history),
            ],
        )
        [loss] = history["stop"].values()
        found.append((np.nanmin(loss) / len(stop), model))
    return Scaled([min(found, key=lambda pair: pair[0])[1]], centre, scale)


def predict_lightgbmlss(model: Scaled, X: Array) -> Prediction:
    """From the parameters of each row."""
    from scipy.stats import t

    found = model.models[0].predict(X, pred_type="parameters")
    if "df" not in found:
        return model.normals(found["loc"].to_numpy()[None], found["scale"].to_numpy()[None])
    loc, scale = model.centre + model.scale * found["loc"], model.scale * found["scale"]
    return Parametric(t(found["df"].to_numpy(float), loc.to_numpy(float), scale.to_numpy(float)))


def boosted(rows: Rows, stop: Rows, depth: int) -> Any:
    """A mean and a variance by CatBoost, stopped by other rows; y is standardised."""
    from catboost import CatBoostRegressor

    model = CatBoostRegressor(
        loss_function="RMSEWithUncertainty",
        depth=depth,
        iterations=3000,
        learning_rate=0.05,
        early_stopping_rounds=PATIENCE,
        thread_count=int(os.environ.get("OMP_NUM_THREADS", "-1")),  # one in the league
        random_seed=1,
        verbose=False,
        allow_writing_files=False,
    )
    return model.fit(rows.X, rows.y, eval_set=(stop.X, stop.y))


def best_catboost(rows: Rows) -> Any:
    """The depth of three that has the best validation score."""
    models = [boosted(*held_out(rows), depth=depth) for depth in (2, 4, 6)]
    return min(models, key=lambda m: m.get_best_score()["validation"]["RMSEWithUncertainty"])


def fit_catboost(rows: Rows) -> Scaled:
    """One CatBoost model; its start and its penalty mind the units of y."""
    rows, centre, scale = standardised(rows)
    return Scaled([best_catboost(rows)], centre, scale)


def fit_ten_catboost(rows: Rows) -> Scaled:
    """Ten CatBoost models, each stopped by the tenth of the rows that it was not trained on."""
    rows, centre, scale = standardised(rows)
    depth = best_catboost(rows).get_param("depth")
    folds = KFold(10, shuffle=True, random_state=1).split(rows.X)
    return Scaled([boosted(rows[train], rows[stop], depth) for train, stop in folds], centre, scale)


def predict_catboost(model: Scaled, X: Array) -> NormalMixture:
    """Of each model a normal."""
    means, variances = np.stack([one.predict(X).T for one in model.models], axis=1)
    return model.normals(means, np.sqrt(np.maximum(variances, 1e-12)))


def fit_ngboost(rows: Rows) -> Scaled:
    """Natural gradient boosting of a normal distribution."""
    from ngboost import NGBRegressor

    many = len(rows) > MANY_ROWS
    rows, centre, scale = standardised(rows)
    rows, stop = held_out(rows)
    model = NGBRegressor(
        n_estimators=500 if many else 2000,
        learning_rate=0.1 if many else 0.02,
        minibatch_frac=0.5 if many else 1.0,
        verbose=False,
        random_state=1,
    )
    model.fit(rows.X, rows.y, X_val=stop.X, Y_val=stop.y, early_stopping_rounds=PATIENCE)
    return Scaled([model], centre, scale)


def predict_ngboost(model: Scaled, X: Array) -> NormalMixture:
    """With the iterations that validation has chosen."""
    one = model.models[0]
    found = one.pred_dist(X, max_iter=one.best_val_loss_itr + 1).params
    return model.normals(found["loc"][None], found["scale"][None])


def fit_xgboost(rows: Rows) -> Any:
    """Boosted trees on squared error; they say nothing of uncertainty."""
    from xgboost import XGBRegressor

    rows, stop = held_out(rows)
    model = XGBRegressor(
        n_estimators=3000,
        learning_rate=0.1 if len(rows) > MANY_ROWS else 0.05,
        subsample=0.8,
        early_stopping_rounds=PATIENCE,
        n_jobs=1,
        random_state=1,
    )
    return model.fit(rows.X, rows.y, eval_set=[(stop.X, stop.y)], verbose=False)


def predict_xgboost(model: Any, X: Array) -> Point:
    """The mean."""
    return Point(model.predict(X).astype(float))


def fit_quantile_boosting(rows: Rows) -> Any:
    """scikit-learn's histogram boosting, once for each of 19 quantiles."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    return [
        HistGradientBoostingRegressor(
            loss="quantile",
            quantile=level,
            max_iter=500,
            early_stopping=True,
            n_iter_no_change=20,
            random_state=1,
        ).fit(rows.X, rows.y)
        for level in np.arange(1, 20) / 20
    ]


def predict_quantile_boosting(models: Any, X: Array) -> PiecewiseLinear:
    """Sorted and joined by straight lines."""
    predicted = np.stack([model.predict(X) for model in models], axis=1)
    return joined(np.arange(1, 20) / 20, predicted, "19 quantiles, joined")


# A process


def fit_gaussian_process(rows: Rows) -> Any:
    """Matérn 3/2 with a length scale for each column, and white noise; cubic in the rows."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    kernel = ConstantKernel() * Matern(np.ones(rows.X.shape[1]), nu=1.5) + WhiteKernel(0.1)
    process = GaussianProcessRegressor(kernel, normalize_y=True, random_state=1)
    return make_pipeline(StandardScaler(), process).fit(rows.X, rows.y)


def predict_gaussian_process(model: Any, X: Array) -> NormalMixture:
    """A normal."""
    mean, std = model.predict(X, return_std=True)
    return NormalMixture(mean[None], std[None])


@dataclass(frozen=True)
class Method:
    """A contestant.

    ``environment`` is where it lives, ``package`` whose version counts, ``most_rows`` what its
    authors advise or memory allows, ``size`` the bytes of a model if a pickle is not all of it.
    """

    name: str
    file: str
    environment: str
    package: str
    fit: Callable[[Rows], Any]
    predict: Callable[[Any, Array], Prediction | Point]
    settings: str
    most_rows: int | None = None
    size: Callable[[Any], int] | None = None

    @property
    def ours(self) -> bool:
        """Whether it is mvenet, now or before."""
        return self.file in ("mvenet.csv", "mvenet_before.csv")

    def version(self) -> str:
        """Of the package; of mvenet also the commit, where it comes from a clone."""
        number = metadata.version(self.package)
        if self.package != "mvenet":
            return number
        import mvenet

        commit = subprocess.run(
            ["git", "-C", os.path.dirname(mvenet.__file__), "rev-parse", "--short", "HEAD"],
            capture_output=True,
            text=True,
        ).stdout.strip()
        return f"{number} {commit}".strip()


METHODS = (
    Method(
        "mvenet",
        "mvenet.csv",
        "mvenet",
        "mvenet",
        fit_mvenet,
        predict_mvenet,
        "`AutoRegressor(random_state=1)`, nothing else",
    ),
    Method(
        "mvenet before",
        "mvenet_before.csv",
        "mvenet",
        "mvenet",
        fit_mvenet_before,
        predict_mvenet,
        "commit 0693d7a, `MVERegressorCV(random_state=1)`, nothing else",
    ),
    Method(
        "TabPFN v2",
        "tabpfn.csv",
        "tabpfn",
        "tabpfn",
        fit_tabpfn,
        predict_tabpfn,
        "as shipped: eight estimators, temperature 0.9; at most 10,000 rows as its authors advise",
        most_rows=10_000,
        size=size_of_tabpfn,
    ),
    Method(
        "extra-trees quantiles",
        "extra_trees.csv",
        "quantile-forest",
        "quantile-forest",
        fit_extra_trees,
        predict_forest,
        "`ExtraTreesQuantileRegressor(500)`, leaves of one row; 500 quantiles, joined",
    ),
    Method(
        "random-forest quantiles",
        "random_forest.csv",
        "quantile-forest",
        "quantile-forest",
        fit_random_forest,
        predict_forest,
        "`RandomForestQuantileRegressor(500)`, leaves of one row; 500 quantiles, joined",
    ),
    Method(
        "RealMLP",
        "realmlp.csv",
        "pytabkit",
        "pytabkit",
        fit_pytabkit("RealMLP_TD_Regressor"),
        predict_pytabkit,
        "`RealMLP_TD_Regressor` with pinball losses at 50 levels, an ensemble of five folds; "
        "quantiles averaged, sorted and joined",
    ),
    Method(
        "TabM",
        "tabm.csv",
        "pytabkit",
        "pytabkit",
        fit_pytabkit("TabM_D_Regressor"),
        predict_pytabkit,
        "`TabM_D_Regressor` with pinball losses at 50 levels, an ensemble of five folds; "
        "quantiles averaged, sorted and joined",
    ),
    Method(
        "treeffuser",
        "treeffuser.csv",
        "treeffuser",
        "treeffuser",
        fit_treeffuser,
        predict_treeffuser,
        "as shipped; 500 draws a row, 200 to 300 where more than 200 rows are predicted at once; "
        "smoothed by a normal kernel for log score and density",
    ),
    Method(
        "LightGBMLSS",
        "lightgbmlss.csv",
        "lightgbmlss",
        "lightgbmlss",
        fit_lightgbmlss,
        predict_lightgbmlss,
        "normal or Student's t and one of three stabilisations by the validation score, learning "
        "rate 0.05, `max_delta_step=0.5` (without it far worse), at most 3,000 trees, stopped as "
        "CatBoost; y standardised",
    ),
    Method(
        "BDE",
        "bde.csv",
        "bde",
        "sklearn-contrib-bde",
        fit_bde,
        predict_bde,
        "`BdeRegressor` as in its authors' example: eight networks (16, 16), 5,000 steps to warm "
        "up, 2,000 draws each, thinned to 200 normals in all",
    ),
    Method(
        "deep ensemble of ten",
        "deep_ensemble.csv",
        "mvenet",
        "mvenet",
        fit_deep_ensemble,
        predict_mvenet,
        "ten of our networks (40, 20), mean and variance trained together from the start, no "
        "search: the classic",
    ),
    Method(
        "ten CatBoost",
        "ten_catboost.csv",
        "boosting",
        "catboost",
        fit_ten_catboost,
        predict_catboost,
        "the depth that CatBoost below chose; ten models, each trained without one of ten inner "
        "folds and stopped by it, as a mixture of ten normals",
    ),
    Method(
        "CatBoost",
        "catboost.csv",
        "boosting",
        "catboost",
        fit_catboost,
        predict_catboost,
        "`RMSEWithUncertainty`, depth 2, 4 or 6 by the validation score, learning rate 0.05, at "
        "most 3,000 trees, stopped after 50 without progress on a tenth of the training rows; y "
        "standardised",
    ),
    Method(
        "NGBoost",
        "ngboost.csv",
        "boosting",
        "ngboost",
        fit_ngboost,
        predict_ngboost,
        "normal, learning rate 0.02, at most 2,000 iterations, stopped as CatBoost; above 5,000 "
        "rows 0.1, 500 and half of the rows an iteration",
    ),
    Method(
        "Gaussian process",
        "gaussian_process.csv",
        "boosting",
        "scikit-learn",
        fit_gaussian_process,
        predict_gaussian_process,
        "Matérn 3/2 with a length scale for each column and white noise; at most 2,000 rows",
        most_rows=2000,
    ),
    Method(
        "quantile boosting",
        "quantile_boosting.csv",
        "boosting",
        "scikit-learn",
        fit_quantile_boosting,
        predict_quantile_boosting,
        "`HistGradientBoostingRegressor` at 19 levels, at most 500 iterations, stopped after 20; "
        "sorted and joined by straight lines, the outer slopes continued",
    ),
    Method(
        "XGBoost",
        "xgboost.csv",
        "boosting",
        "xgboost",
        fit_xgboost,
        predict_xgboost,
        "learning rate 0.05 (above 5,000 rows 0.1), `subsample=0.8`, at most 3,000 trees, stopped "
        "as CatBoost; RMSE only",
    ),
)
BY_NAME = {method.name: method for method in METHODS}
