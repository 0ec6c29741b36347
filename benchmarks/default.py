"""Which recipe is the default? Ten-fold log-likelihood of candidates beside PAPER's.

PAPER is first tried at seven penalty pairs; all recipes are then compared at the pair that is best
for PAPER on that data set, which is where a search would have put it. For every fold and three
seeds a single network is trained with each recipe on the same rows and scored on the rows left
out. A candidate is acceptable if no data set is worse by more than 0.01 and more than two standard
errors of the paired difference over the folds; the default is the acceptable candidate with the
fewest gradient steps.

The default penalty is measured after that: one network with reg_var = 10 reg_mean on each set and
on scikit-learn's diabetes data (--only penalty).

    MVENET_DATA=folder python benchmarks/default.py              measure what is missing, print
    MVENET_DATA=folder python benchmarks/default.py --only print
    MVENET_DATA=folder python benchmarks/default.py --sets yacht boston

Results are appended to benchmarks/default.csv as they come, and what is there is not measured
again. The table is in benchmarks/README.md.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import records
from sklearn.datasets import load_diabetes
from sklearn.model_selection import KFold

from mvenet import MVERegressor, datasets, recipes

HERE = Path(__file__).parent
RESULTS = HERE / "default.csv"
SETS = ("yacht", "boston", "energy", "concrete", "wine_red", "kin8nm", "protein")
FOLDS = {"protein": 3, "kin8nm": 5}  # of ten; the others all
PAIRS = (
    (1e-5, 1e-2),
    (1e-4, 1e-3),
    (1e-4, 1e-2),
    (1e-4, 1e-1),
    (1e-3, 1e-2),
    (1e-3, 1e-1),
    (1e-2, 1e-1),
)
SEEDS = 3
FIELDS = ("recipe", "set", "reg_mean", "reg_var", "fold", "seed", "loglik", "rmse", "steps")
Key = tuple[str, str, float, float]


@dataclass(frozen=True)
class Candidate:
    """Cosine from `rate`, perhaps after a ramp; so many epochs a stage, within so many steps."""

    rate: float
    warmup: tuple[int, int, int]  # epochs, least and most steps
    joint: tuple[int, int, int]
    ramp: bool = False

    def __str__(self) -> str:
        stages = (
            f"{epochs} ({low:,} to {high:,})" for epochs, low, high in (self.warmup, self.joint)
        )
        return f"{self.rate:g}: {' + '.join(stages)}" + (", ramps" if self.ramp else "")

    def __call__(self, n: int) -> dict[str, Any]:
        """Settings for a training set of n rows."""
        warmup, joint = (
            recipes.epochs_within(n, 32, *stage) for stage in (self.warmup, self.joint)
        )
        return {
            **recipes.DEFAULT,
            "learning_rate": self.rate,
            "schedule": "ramp-cosine" if self.ramp else "cosine",
            "warmup_epochs": warmup,
            "epochs": joint,
        }


WARMUP = (10, 1000, 100_000)
CANDIDATES = tuple(
    Candidate(rate, warmup, joint)
    for warmup in (WARMUP, (50, 2000, 100_000))
    for joint in ((60, 2000, 300_000), (120, 4000, 300_000), (240, 4000, 300_000))
    for rate in (5e-3, 1e-2)
)
CANDIDATES += (Candidate(1e-2, WARMUP, (240, 4000, 300_000), ramp=True),)
RECIPES: dict[str, Any] = {"PAPER": lambda n: recipes.PAPER, **{str(c): c for c in CANDIDATES}}


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows and targets of one of the seven data sets."""
    data = datasets.load(name)
    return data.X, data.y


def measure(key: Key, fold: int, seed: int) -> dict[str, Any]:
    """One network."""
    recipe, name, reg_mean, reg_var = key
    X, y = load(name)
    train, test = list(KFold(10, shuffle=True, random_state=1).split(X))[fold]
    settings = RECIPES[recipe](len(train))
    model = MVERegressor(
        reg_mean=reg_mean, reg_var=reg_var, random_state=fold + 100 * seed, n_jobs=1, **settings
    )
    try:
        dist = model.fit(X[train], y[train]).predict_dist(X[test])
        loglik = dist.logpdf(y[test]).mean()
        rmse = np.sqrt(np.mean((dist.mean - y[test]) ** 2))
        steps = model.n_steps_
    except ValueError:  # diverged
        loglik, rmse, steps = -np.inf, np.inf, 0
    values = (*key, fold, seed, f"{loglik:.6g}", f"{rmse:.6g}", steps)
    return dict(zip(FIELDS, values, strict=True))


def run(tasks: list[tuple[Key, int, int]], n_jobs: int) -> None:
    """Measure what is missing."""
    seen = {(key_of(r), int(r["fold"]), int(r["seed"])) for r in records.read(RESULTS)}
    tasks = [task for task in tasks if task not in seen]
    if not tasks:
        return
    parallel = joblib.Parallel(n_jobs=n_jobs, backend="threading", return_as="generator_unordered")
    records.add(RESULTS, FIELDS, parallel(joblib.delayed(measure)(*task) for task in tasks))


def key_of(row: dict[str, str]) -> Key:
    """Recipe, set and penalties of a result."""
    return row["recipe"], row["set"], float(row["reg_mean"]), float(row["reg_var"])


def folds_of(name: str) -> range:
    """The folds that are measured."""
    return range(FOLDS.get(name, 10))


def fold_means(rows: list[dict[str, str]]) -> dict[Key, list[float]]:
    """Log-likelihood of each fold, averaged over seeds."""
    values: dict[tuple[Key, int], list[float]] = defaultdict(list)
    for r in rows:
        values[key_of(r), int(r["fold"])].append(float(r["loglik"]))
    means: dict[Key, list[float]] = defaultdict(list)
    for key, fold in sorted(values):
        means[key].append(float(np.mean(values[key, fold])))
    return means


def best_pairs(rows: list[dict[str, str]]) -> dict[str, tuple[float, float]]:
    """The pair at which PAPER is best, by the first seed, for each set."""
    means = fold_means([r for r in rows if r["recipe"] == "PAPER" and r["seed"] == "0"])
    best = {}
    for name in SETS:
        pairs = [key[2:] for key in means if key[1] == name]
        if pairs:
            best[name] = max(pairs, key=lambda pair: np.mean(means["PAPER", name, *pair]))
    return best


def table(rows: list[dict[str, str]]) -> str:
    """Markdown: a line a recipe, log-likelihood minus PAPER's at PAPER's best pair."""
    best, means = best_pairs(rows), fold_means(rows)
    steps = defaultdict(list)
    for r in rows:
        steps[r["recipe"], r["set"]].append(int(r["steps"]))
    pairs = " | ".join("{:g}, {:g}".format(*best[name]) for name in SETS)
    paper = " | ".join(f"{np.mean(means['PAPER', name, *best[name]]):.3f}" for name in SETS)
    lines = [
        "| recipe | " + " | ".join(SETS) + " | acceptable | steps |",
        "| --- |" + " --- |" * (len(SETS) + 2),
        f"| penalties | {pairs} | | |",
    ]
    for recipe in dict.fromkeys(r["recipe"] for r in rows):
        cells, acceptable = [], True
        for name in SETS:
            ours, theirs = (means[r, name, *best[name]] for r in (recipe, "PAPER"))
            paired = np.subtract(ours, theirs)
            error = paired.std(ddof=1) / len(paired) ** 0.5
            cells.append(f"{paired.mean():+.3f} ± {error:.3f}")
            acceptable &= bool(paired.mean() >= -max(0.01, 2 * error))
        total = sum(np.mean(steps[recipe, name]) for name in SETS)
        text = paper if recipe == "PAPER" else " | ".join(cells)
        verdict = "yes" if acceptable else "no"
        lines.append(f"| {recipe} | {text} | {verdict} | {total:,.0f} |")
    return "\n".join(lines)


def penalty(jobs: int) -> str:
    """Markdown: log-likelihood and coverage of the 90 % interval for some values of reg_mean."""
    values = (1e-3, 3e-3, 1e-2, 3e-2, 1e-1, "auto")

    def one(name: str, reg_mean: float | str, fold: int) -> tuple[float, float]:
        X, y = load_diabetes(return_X_y=True) if name == "diabetes" else load(name)
        X, y = X[:6000], y[:6000]
        train, test = list(KFold(10, shuffle=True, random_state=1).split(X))[fold]
        model = MVERegressor(strategy="warmup", reg_mean=reg_mean, random_state=fold, n_jobs=1)
        dist = model.fit(X[train], y[train]).predict_dist(X[test])
        low, high = dist.interval(0.9).T
        return dist.logpdf(y[test]).mean(), np.mean((low <= y[test]) & (y[test] <= high))

    lines = ["| set | " + " | ".join(map(str, values)) + " |"]
    lines.append("| --- |" + " --- |" * len(values))
    for name in ("diabetes", *SETS):
        cells = []
        for value in values:
            parallel = joblib.Parallel(n_jobs=jobs, backend="threading")
            scores = parallel(joblib.delayed(one)(name, value, fold) for fold in range(5))
            cells.append("{:.2f} ({:.0%})".format(*np.mean(scores, axis=0)))
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    parser.add_argument("--recipes", nargs="+", default=list(RECIPES), metavar="NAME")
    parser.add_argument("--only", choices=["print", "penalty"])
    parser.add_argument("--jobs", type=int, default=-1)
    arguments = parser.parse_args()
    if arguments.only == "penalty":
        print(penalty(arguments.jobs))
        return
    if not arguments.only:
        search = [
            (("PAPER", name, *pair), fold, 0)
            for name in arguments.sets
            for pair in PAIRS
            for fold in folds_of(name)
        ]
        run(search, arguments.jobs)
        best = best_pairs(records.read(RESULTS))
        compare = [
            ((recipe, name, *best[name]), fold, seed)
            for name in arguments.sets
            for recipe in arguments.recipes
            for fold in folds_of(name)
            for seed in range(SEEDS)
        ]
        run(compare, arguments.jobs)
    print(table(records.read(RESULTS)))


if __name__ == "__main__":
    main()
