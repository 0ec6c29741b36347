"""mvenet beside other ways to predict with uncertainty, on the same folds in one run.

    MVENET_DATA=folder python benchmarks/alternatives.py [--sets yacht boston] [--folds 3]

Needs ngboost, catboost and mapie (pip install ngboost catboost mapie); what is not installed is
left out. All at their defaults, with as many threads as there are. Results go to alternatives.csv
fold by fold, and what is there is not measured again.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import records
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mvenet import MVERegressor, MVERegressorCV, Normal, datasets, metrics
from mvenet.predictive import predictive_distribution

RESULTS = Path(__file__).with_name("alternatives.csv")
FIELDS = ("set", "fold", "model", "rmse", "nll", "crps", "coverage", "width", "seconds")
Scores = dict[str, float]


def of_distribution(y: np.ndarray, dist: Normal) -> Scores:
    """Scores of a predictive distribution."""
    return {
        "rmse": metrics.rmse(y, dist),
        "nll": metrics.nll(y, dist),
        "crps": metrics.crps(y, dist),
        "coverage": metrics.coverage(y, dist, nominal=0.9),
        "width": metrics.interval_width(dist, coverage=0.9),
    }


def of_interval(y: np.ndarray, mean: np.ndarray, low: np.ndarray, high: np.ndarray) -> Scores:
    """Scores of an interval; a density it has not."""
    return {
        "rmse": float(np.sqrt(np.mean((y - mean) ** 2))),
        "coverage": float(np.mean((low <= y) & (y <= high))),
        "width": float(np.mean(high - low)),
    }


def mvenet_search(X, y, X_new, y_new):
    """The default with a search."""
    return of_distribution(y_new, MVERegressorCV(random_state=0).fit(X, y).predict_dist(X_new))


def mvenet_crps(X, y, X_new, y_new):
    """A search that minds the mean more, as ``mvenet fit`` does."""
    search = MVERegressorCV(scoring="crps", random_state=0).fit(X, y)
    return of_distribution(y_new, search.predict_dist(X_new))


def mvenet_plain(X, y, X_new, y_new):
    """Five networks by the rule of thumb."""
    return of_distribution(
        y_new, MVERegressor(n_members=5, random_state=0).fit(X, y).predict_dist(X_new)
    )


def gaussian_process(X, y, X_new, y_new):
    """One length scale for each column and white noise; cubic in the rows."""
    if len(y) > 2000:
        return None
    kernel = ConstantKernel() * RBF(np.ones(X.shape[1])) + WhiteKernel()
    process = GaussianProcessRegressor(kernel, normalize_y=True, random_state=0)
    model = make_pipeline(StandardScaler(), process).fit(X, y)
    return of_distribution(y_new, predictive_distribution(model, X_new))


def ngboost(X, y, X_new, y_new):
    """Natural gradient boosting of a normal distribution."""
    from ngboost import NGBRegressor

    model = NGBRegressor(verbose=False, random_state=0).fit(X, y)
    parameters = model.pred_dist(X_new).params
    return of_distribution(y_new, Normal(parameters["loc"], parameters["scale"]))


def catboost(X, y, X_new, y_new):
    """Boosted trees with the loss that predicts a variance."""
    from catboost import CatBoostRegressor

    model = CatBoostRegressor(
        loss_function="RMSEWithUncertainty", verbose=False, random_seed=0, allow_writing_files=False
    )
    mean, variance = model.fit(X, y).predict(X_new).T
    return of_distribution(y_new, Normal(mean, np.sqrt(np.maximum(variance, 1e-12))))


def quantile_boosting(X, y, X_new, y_new):
    """Three boosted quantiles by scikit-learn."""
    low, middle, high = (
        HistGradientBoostingRegressor(loss="quantile", quantile=q, random_state=0)
        .fit(X, y)
        .predict(X_new)
        for q in (0.05, 0.5, 0.95)
    )
    return of_interval(y_new, middle, low, high)


def mapie_boosting(X, y, X_new, y_new):
    """Scikit-learn's boosting with MAPIE's CV+ intervals."""
    from mapie.regression import CrossConformalRegressor

    model = CrossConformalRegressor(
        HistGradientBoostingRegressor(random_state=0), confidence_level=0.9, cv=10, random_state=0
    )
    mean, intervals = model.fit_conformalize(X, y).predict_interval(X_new)
    return of_interval(y_new, mean, intervals[:, 0, 0], intervals[:, 1, 0])


MODELS: dict[str, Callable[..., Scores | None]] = {
    "MVERegressorCV()": mvenet_search,
    "MVERegressorCV(scoring='crps')": mvenet_crps,
    "MVERegressor(n_members=5)": mvenet_plain,
    "GaussianProcessRegressor": gaussian_process,
    "NGBoost": ngboost,
    "CatBoost, RMSEWithUncertainty": catboost,
    "quantile boosting (scikit-learn)": quantile_boosting,
    "boosting + MAPIE (CV+)": mapie_boosting,
}


def measure(name: str, n_folds: int) -> None:
    """All models on all folds of a data set."""
    data = datasets.load(name)
    done = {(row["set"], row["fold"], row["model"]) for row in records.read(RESULTS)}
    for fold, (train, test) in enumerate(
        KFold(n_folds, shuffle=True, random_state=1).split(data.X)
    ):
        for label, model in MODELS.items():
            if (name, str(fold), label) in done:
                continue
            start = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of grids' ends and of optimisers
                try:
                    scores = model(data.X[train], data.y[train], data.X[test], data.y[test])
                except ImportError as error:
                    print(f"{label} is left out: {error}")
                    continue
            if scores is None:
                continue
            seconds = time.perf_counter() - start
            row = {"set": name, "fold": fold, "model": label, "seconds": f"{seconds:.2f}"}
            row |= {key: f"{value:.5g}" for key, value in scores.items()}
            records.add(RESULTS, FIELDS, [row])
            print(f"{name}, fold {fold}, {label}: {seconds:.1f} s", flush=True)


def table() -> str:
    """Markdown: means over the folds, a block for each data set."""
    rows = records.read(RESULTS)
    lines = [
        "| data set | model | RMSE | log-likelihood | CRPS | 90 % covers | width | s a fit |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name in dict.fromkeys(row["set"] for row in rows):
        for label in MODELS:
            mine = [r for r in rows if r["set"] == name and r["model"] == label]
            if not mine:
                continue

            def mean(key: str, mine: list[dict[str, str]] = mine) -> float | None:
                values = [float(r[key]) for r in mine if r[key]]
                return float(np.mean(values)) if values else None

            nll = mean("nll")
            cells = [
                f"{mean('rmse'):.3g}",
                "–" if nll is None else f"{-nll:.2f}",
                "–" if mean("crps") is None else f"{mean('crps'):.3g}",
                f"{100 * mean('coverage'):.0f} %",
                f"{mean('width'):.3g}",
                f"{mean('seconds'):.1f}",
            ]
            lines.append(f"| {name} | {label} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Measure what is missing, then print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sets", nargs="*", default=["yacht", "boston", "energy", "concrete"])
    parser.add_argument("--folds", type=int, default=3)
    given = parser.parse_args()
    for name in given.sets:
        measure(name, given.folds)
    print(table())


if __name__ == "__main__":
    main()
