"""What should MVERegressorCV keep, and is its factor right? Penalties chosen inside outer folds.

    MVENET_DATA=folder python benchmarks/search.py [--sets yacht boston] [--only print]

All arms of an outer fold are fitted together, so they share the networks of the search. Results go
to benchmarks/search.csv fold by fold, and what is there is not measured again; the table is in
benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import records
from sklearn.model_selection import KFold

from mvenet import MVERegressorCV, datasets, metrics
from mvenet._estimators.base import fit_together

RESULTS = Path(__file__).with_name("search.csv")
SETS = ("yacht", "boston", "energy", "concrete", "wine_red", "kin8nm", "protein")
FOLDS = {"kin8nm": 2, "protein": 1}  # of ten; the others all
FIELDS = ("set", "fold", "arm", "loglik", "rmse", "coverage", "scale", "reg_mean", "reg_var")
ARMS = {
    "one network, plain": {"scale": False, "final": "refit", "n_members": 1},
    "folds, plain": {"scale": False, "n_members": 1},
    "folds, scaled": {"n_members": 1},
    "folds × 2, scaled": {"n_members": 2},
    "folds × 4, scaled": {"n_members": 4},
    "folds × 4, scaled, by CRPS": {"n_members": 4, "scoring": "crps"},
    "refit × 4, scaled": {"final": "refit", "n_members": 4},
}


def measure(name: str, fold: int, arms: list[str]) -> list[dict[str, object]]:
    """Some arms on one outer fold."""
    data = datasets.load(name)
    train, test = list(KFold(10, shuffle=True, random_state=1).split(data.X))[fold]
    models = {
        arm: MVERegressorCV(strategy="warmup", random_state=fold, **ARMS[arm]) for arm in arms
    }
    start = time.perf_counter()
    fit_together(list(models.values()), data.X[train], data.y[train])
    print(f"{name}, fold {fold}: {time.perf_counter() - start:.0f} s", flush=True)
    rows = []
    y = data.y[test]
    for arm, model in models.items():
        dist = model.predict_dist(data.X[test])
        scores = (
            -metrics.nll(y, dist),
            metrics.rmse(y, dist),
            metrics.coverage(y, dist, nominal=0.9),
            model.model_.scale,
            model.best_reg_mean_,
            model.best_reg_var_,
        )
        values = (name, fold, arm, *(f"{score:.6g}" for score in scores))
        rows.append(dict(zip(FIELDS, values, strict=True)))
    return rows


def table(rows: list[dict[str, str]]) -> str:
    """Markdown: log-likelihood ± standard error, RMSE and coverage of each arm on each set."""
    names = [name for name in SETS if any(r["set"] == name for r in rows)]
    lines = ["| arm | " + " | ".join(names) + " |", "| --- |" + " --- |" * len(names)]
    for arm in ARMS:
        cells = []
        for name in names:
            mine = [r for r in rows if r["set"] == name and r["arm"] == arm]
            if not mine:
                cells.append("–")
                continue
            loglik, rmse, covered = (
                np.array([float(r[c]) for r in mine]) for c in ("loglik", "rmse", "coverage")
            )
            error = loglik.std(ddof=1) / len(mine) ** 0.5 if len(mine) > 1 else np.nan
            cells.append(
                f"{loglik.mean():.3f} ± {error:.3f} ({rmse.mean():.3g}, {covered.mean():.0%})"
            )
        lines.append(f"| {arm} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Measure what is missing, and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    parser.add_argument("--only", choices=["print"])
    arguments = parser.parse_args()
    for name in arguments.sets if not arguments.only else ():
        for fold in range(FOLDS.get(name, 10)):
            there = {
                r["arm"]
                for r in records.read(RESULTS)
                if (r["set"], r["fold"]) == (name, str(fold))
            }
            missing = [arm for arm in ARMS if arm not in there]
            if not missing:
                continue
            records.add(RESULTS, FIELDS, measure(name, fold, missing))
    print(table(records.read(RESULTS)))


if __name__ == "__main__":
    main()
