"""Which recipe is the default? Ten-fold log-likelihood of candidates beside PAPER's.

For every data set, penalty pair and fold, a single network is trained with each recipe from the
same seed on the same rows. A candidate is acceptable on a data set if, averaged over the penalty
pairs, its log-likelihood is not worse than PAPER's by more than one standard error of the paired
difference; the default is the acceptable candidate with the fewest gradient steps.

    MVENET_DATA=folder python benchmarks/default.py              measure what is missing, then print
    MVENET_DATA=folder python benchmarks/default.py --only print
    MVENET_DATA=folder python benchmarks/default.py --sets yacht boston

Results are appended to benchmarks/default.csv as they come, and what is there is not measured again;
the table goes to benchmarks/default.md.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import os
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from sklearn.model_selection import KFold

from mvenet import MVERegressor, recipes

HERE = Path(__file__).parent
RESULTS = HERE / "default.csv"
SETS = ("yacht", "boston", "energy", "concrete", "wine_red", "kin8nm", "protein")
FOLDS = {"protein": 3, "kin8nm": 5}  # of ten; the others all
PAIRS = ((1e-4, 1e-3), (1e-4, 1e-1), (1e-3, 1e-2), (1e-2, 1e-1))
FIELDS = ("recipe", "set", "reg_mean", "reg_var", "fold", "loglik", "rmse", "steps")


def candidate(rate: float, steps: int, least: int, batch: int = 32, main: float = 1.0) -> Any:
    """Recipe of `steps` gradient steps a stage (the second one `main` times that)."""

    def of_rows(n: int) -> dict[str, Any]:
        batches = -(-n // batch)
        warmup = max(least, -(-steps // batches))
        epochs = max(1, round(main * warmup))
        return {
            **recipes.DEFAULT,
            "learning_rate": rate,
            "batch_size": batch,
            "warmup_epochs": warmup,
            "epochs": epochs,
        }

    return of_rows


RECIPES: dict[str, Any] = {"PAPER": lambda n: recipes.PAPER, "DEFAULT": lambda n: recipes.DEFAULT}
for _rate, _steps, _least in itertools.product(
    (2e-3, 5e-3, 1e-2), (1000, 2000, 4000, 8000), (10, 30)
):
    RECIPES[f"rate {_rate:g}, {_steps} steps, {_least} epochs"] = candidate(_rate, _steps, _least)


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows and targets of one of the seven data sets."""
    data = np.loadtxt(Path(os.environ["MVENET_DATA"]) / f"{name}.csv", delimiter=",", skiprows=1)
    return data[:, :-1], data[:, -1]


def measure(recipe: str, name: str, pair: tuple[float, float], fold: int) -> dict[str, Any]:
    """One network."""
    X, y = load(name)
    train, test = list(KFold(10, shuffle=True, random_state=1).split(X))[fold]
    reg_mean, reg_var = pair
    settings = RECIPES[recipe](len(train))
    model = MVERegressor(
        reg_mean=reg_mean, reg_var=reg_var, random_state=fold, n_jobs=1, **settings
    )
    try:
        dist = model.fit(X[train], y[train]).predict_dist(X[test])
        loglik = dist.logpdf(y[test]).mean()
        rmse = np.sqrt(np.mean((dist.mean - y[test]) ** 2))
        steps = model.n_steps_
    except ValueError:  # diverged
        loglik, rmse, steps = -np.inf, np.inf, 0
    values = (recipe, name, reg_mean, reg_var, fold, f"{loglik:.6g}", f"{rmse:.6g}", steps)
    return dict(zip(FIELDS, values, strict=True))


def done() -> list[dict[str, str]]:
    """What has been measured."""
    if not RESULTS.exists():
        return []
    with RESULTS.open() as file:
        return list(csv.DictReader(file))


def run(names: list[str], chosen: list[str], n_jobs: int) -> None:
    """Measure what is missing."""
    seen = {
        (r["recipe"], r["set"], float(r["reg_mean"]), float(r["reg_var"]), int(r["fold"]))
        for r in done()
    }
    todo = [
        (recipe, name, pair, fold)
        for recipe in chosen
        for name in names
        for pair in PAIRS
        for fold in range(FOLDS.get(name, 10))
        if (recipe, name, *pair, fold) not in seen
    ]
    if not todo:
        return
    parallel = joblib.Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator_unordered")
    new = not RESULTS.exists()
    with RESULTS.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if new:
            writer.writeheader()
        for row in parallel(joblib.delayed(measure)(*item) for item in todo):
            writer.writerow(row)
            file.flush()


def difference(
    rows: list[dict[str, str]], recipe: str, name: str
) -> tuple[float, float, float] | None:
    """Mean paired difference to PAPER, its standard error over folds, and mean steps."""
    values: dict[str, dict[tuple[str, str, str], float]] = {"PAPER": {}, recipe: {}}
    steps = []
    for r in rows:
        if r["set"] == name and r["recipe"] in values:
            values[r["recipe"]][r["reg_mean"], r["reg_var"], r["fold"]] = float(r["loglik"])
            if r["recipe"] == recipe:
                steps.append(int(r["steps"]))
    common = values["PAPER"].keys() & values[recipe].keys()
    if not common:
        return None
    folds = sorted({key[2] for key in common})
    paired = [
        np.mean([values[recipe][k] - values["PAPER"][k] for k in common if k[2] == fold])
        for fold in folds
    ]
    return (
        float(np.mean(paired)),
        float(np.std(paired, ddof=1) / len(paired) ** 0.5),
        float(np.mean(steps)),
    )


def table(rows: list[dict[str, str]]) -> str:
    """Markdown: a line a recipe, log-likelihood minus PAPER's on each data set."""
    lines = [
        "| recipe | " + " | ".join(SETS) + " | worst / se | steps |",
        "| --- |" + " --- |" * (len(SETS) + 2),
    ]
    for recipe in dict.fromkeys(r["recipe"] for r in rows):
        if recipe == "PAPER":
            continue
        cells, worst, total = [], [], 0.0
        for name in SETS:
            found = difference(rows, recipe, name)
            if found is None:
                cells.append("")
                continue
            mean, error, steps = found
            cells.append(f"{mean:+.3f} ± {error:.3f}")
            worst.append(mean / error)
            total += steps
        lines.append(
            f"| {recipe} | " + " | ".join(cells) + f" | {min(worst):+.1f} | {total:,.0f} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    parser.add_argument("--recipes", nargs="+", default=list(RECIPES), metavar="NAME")
    parser.add_argument("--only", choices=["print"])
    parser.add_argument("--jobs", type=int, default=-1)
    arguments = parser.parse_args()
    if not arguments.only:
        run(arguments.sets, arguments.recipes, arguments.jobs)
    print(table(done()))


if __name__ == "__main__":
    main()
