"""A variance network with data of its own, which the paper's discussion asks for, on its folds.

    python paper/relatives_own.py yacht boston      these sets
    python paper/relatives_own.py                   all

The residuals of rows that a mean network was trained on are too small. Here the variance network
sees residuals of rows left out only: (1) a network with a constant variance is trained by inner
folds; (2) a variance network without a mean is trained on the residuals that it has on the rows
which each fold left out; (3) predicted is the mean of a network trained on all rows, with the
variance of the other.

Splits, grid, networks and lengths are those of relatives.py. Separate penalties are chosen one
after the other, by the likelihood of inner folds; of equal ones all are tried, and the likelihood
of the variance network's inner folds decides. A row a fold is written to SET_own.csv as soon as it
is trained, and not trained again.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from relatives import DATASETS, OUTER_FOLDS, SELECTIONS
from run import HERE, n_folds
from sklearn.model_selection import KFold

from mvenet import MVERegressorCV, datasets, metrics
from mvenet._estimators.regressor_cv import GRID
from mvenet._utils.atomic import replacing
from mvenet.distributions import Normal

USUAL = {"final": "refit", "scale": False, "n_members": 1, "n_jobs": 1}
KEY = ["regularization", "fold"]


class OwnData:
    """Both networks of one pair of penalties, or of the best of a grid."""

    def __init__(self, reg_mean: Any, reg_var: Any, cv: Any, seed: int) -> None:
        settings: dict[str, Any] = {**USUAL, "cv": cv, "random_state": seed}
        self.mean = MVERegressorCV(reg_mean, [0.0], hidden_var=None, **settings)
        self.variance = MVERegressorCV(
            [0.0], reg_var, hidden_mean=None, strategy="no-warmup", **settings
        )

    def fit(self, X: np.ndarray, y: np.ndarray) -> OwnData:
        """The mean, then the variance of what it left."""
        left = y - self.mean.fit(X, y).oof_mean_
        self.variance.fit(X, left)
        self.score = float(self.variance.best_score_)
        self.penalties = float(self.mean.best_reg_mean_), float(self.variance.best_reg_var_)
        return self

    def predict_dist(self, X: np.ndarray) -> Normal:
        """The mean of the one, around which the other expects its residuals."""
        bias, std = self.variance.predict(X, return_std=True)
        return Normal(self.mean.predict(X) + bias, std)


def chosen(selection: str, X: np.ndarray, y: np.ndarray, cv: Any, seed: int) -> OwnData:
    """The best of the grid."""
    if selection == "separate":
        return OwnData(GRID, GRID, cv, seed).fit(X, y)
    return max((OwnData([r], [r], cv, seed).fit(X, y) for r in GRID), key=lambda m: m.score)


def trained(name: str, selection: str, fold: int) -> dict[str, Any]:
    """A row of the results."""
    data, k = datasets.load(name), n_folds(name)
    train, test = list(KFold(k, shuffle=True, random_state=1).split(data.X))[fold]
    started = time.process_time()
    inner = KFold(k, shuffle=True, random_state=5)
    model = chosen(selection, data.X[train], data.y[train], inner, fold)
    y, dist = data.y[test], model.predict_dist(data.X[test])
    return {
        "dataset": name, "method": "own-data", "strategy": "rows left out",
        "regularization": selection, "fold": fold, "variant": "",
        "loglik": -metrics.nll(y, dist), "rmse": metrics.rmse(y, dist),
        "crps": metrics.crps(y, dist), "coverage": metrics.coverage(y, dist),
        "reg_mean": model.penalties[0], "reg_var": model.penalties[1],
        "inner_score": model.score, "seconds": round(time.process_time() - started, 1),
    }  # fmt: skip


def run(name: str, results: Path) -> None:
    """Train what is not there yet."""
    path = results / f"{name}_own.csv"
    rows = pd.read_csv(path).to_dict("records") if path.exists() else []
    done = {tuple(row[key] for key in KEY) for row in rows}
    for selection in SELECTIONS:
        for fold in range(OUTER_FOLDS.get(name, n_folds(name))):
            if (selection, fold) in done:
                continue
            rows.append(trained(name, selection, fold))
            rows.sort(key=lambda row: (SELECTIONS.index(row["regularization"]), row["fold"]))
            results.mkdir(parents=True, exist_ok=True)
            with replacing(path) as fresh:
                pd.DataFrame(rows).to_csv(fresh, index=False, float_format="%.8g")
    print(f"{name}: {len(rows)} rows", flush=True)


def main() -> None:
    """Run the data sets named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("datasets", nargs="*", help=f"of {', '.join(DATASETS)}; all if none")
    parser.add_argument("--results", type=Path, default=HERE / "results" / "relatives")
    given = parser.parse_args()
    unknown = sorted(set(given.datasets) - set(DATASETS))
    if unknown:
        parser.error(f"unknown data set {unknown[0]!r}: choose from {', '.join(DATASETS)}")
    for name in given.datasets or DATASETS:
        try:
            run(name, given.results)
        except (OSError, ValueError) as error:
            sys.exit(f"{name}: {error}")


if __name__ == "__main__":
    main()
