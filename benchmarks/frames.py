"""Frames as people have them: CRPS of AutoRegressor and of CatBoost with its native categories.

    python benchmarks/frames.py FOLDER mvenet        (in the project's environment)
    python benchmarks/frames.py FOLDER catboost      (in one that has catboost)

FOLDER holds hitters.csv, wage.csv and weather.csv. Both see the same five shuffled folds. CatBoost
is a normal with a variance of its own (RMSEWithUncertainty), stopped by a tenth of the training
rows, after 2,000 iterations at most; dates are days and the day of the year for it. A line is
printed for each fold as it ends; ``frames.csv`` holds what was measured.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import KFold

TABLES = {"hitters": ("Salary", []), "wage": ("wage", ["logwage"]), "weather": ("temp_max", [])}


def table(folder: Path, name: str) -> tuple[pd.DataFrame, pd.Series]:
    """Columns and target, as pandas reads them; dates are dates."""
    target, without = TABLES[name]
    frame = pd.read_csv(folder / f"{name}.csv").dropna(subset=[target])
    if "date" in frame:
        frame["date"] = pd.to_datetime(frame["date"])
    return frame.drop(columns=[target, *without]), frame[target]


def crps_of_normal(y: Any, mean: Any, std: Any) -> float:
    """Mean over the rows, in units of y."""
    from scipy.stats import norm

    z = (y - mean) / std
    each = std * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi))
    return float(np.mean(each))


def mvenet(train: pd.DataFrame, y: pd.Series, test: pd.DataFrame, truth: pd.Series) -> float:
    """As it comes."""
    from mvenet import AutoRegressor, metrics

    model = AutoRegressor(random_state=0).fit(train, y)
    return float(metrics.crps(truth.to_numpy(), model.predict_dist(test)))


def catboost(train: pd.DataFrame, y: pd.Series, test: pd.DataFrame, truth: pd.Series) -> float:
    """With native categories."""
    from catboost import CatBoostRegressor, Pool

    def prepared(frame: pd.DataFrame) -> pd.DataFrame:
        made = frame.copy()
        for name in frame.columns:
            if frame[name].dtype.kind == "M":
                made[name] = frame[name].astype("int64") / 86_400e9
                made[f"{name} of year"] = frame[name].dt.day_of_year
            elif frame[name].dtype.kind not in "iufb":
                made[name] = frame[name].astype(str)
        return made

    X, fresh = prepared(train), prepared(test)
    levels = [name for name in X if X[name].dtype.kind not in "iufb"]
    stop = np.random.default_rng(0).permutation(len(X)) < len(X) // 10
    center, scale = float(y.mean()), float(y.std())
    aim = (y.to_numpy() - center) / scale
    model = CatBoostRegressor(
        loss_function="RMSEWithUncertainty", iterations=2_000, learning_rate=0.02, random_seed=0,
        verbose=False, thread_count=1, allow_writing_files=False,
    )  # fmt: skip
    pool, judge = (Pool(X[part], aim[part], cat_features=levels) for part in (~stop, stop))
    model.fit(pool, eval_set=judge, early_stopping_rounds=100)
    mean, variance = model.predict(Pool(fresh, cat_features=levels)).T
    return crps_of_normal(truth.to_numpy(), center + scale * mean, scale * np.sqrt(variance))


def main(folder: Path, method: str) -> None:
    """Every table, fold by fold, then the mean."""
    for name in TABLES:
        X, y = table(folder, name)
        scores = []
        for fold, (a, b) in enumerate(KFold(5, shuffle=True, random_state=0).split(X)):
            start = time.perf_counter()
            given = X.iloc[a], y.iloc[a], X.iloc[b], y.iloc[b]
            scores.append({"mvenet": mvenet, "catboost": catboost}[method](*given))
            seconds = time.perf_counter() - start
            print(
                f"{name} {method} fold {fold} CRPS {scores[-1]:.4f} ({seconds:.0f} s)", flush=True
            )
        print(f"{name} {method} mean CRPS {np.mean(scores):.4f}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
