"""Train the paper's relatives on the paper's sets: other objectives, other members, other ends.

    python paper/relatives.py yacht boston           all methods on these sets
    python paper/relatives.py yacht --methods crps   one of them
    python paper/relatives.py --dry-run              what it would cost
    python paper/relatives.py --export               only write the folds that are finished

Nested as in run.py, with its splits and the authors' grid: penalties are chosen by the
log-likelihood of inner folds, equal ones and separate ones, and one network (or an ensemble) is
trained on all rows of the outer fold. All methods are trained by the library's default recipe,
``recipes.DEFAULT``, which has between an eighth and a third of the paper's steps. Its warm-up is
short, as the mean is trained on afterwards; "fixed-mean" and "early-stopping", which leave it as it
is then, have one as long as what follows.

Finished folds are kept in paper/runs/relatives and never trained again; all that are finished are
written to paper/results/relatives as CSV, a row a fold.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
from run import HERE, n_folds
from sklearn.model_selection import KFold

from mvenet import MVERegressor, MVERegressorCV, compare_strategies, datasets, recipes
from mvenet.comparison import plan_comparison
from mvenet.comparison._run import SCORES
from mvenet.comparison._store import Store

DATASETS = ("yacht", "boston", "energy", "concrete", "wine_red", "kin8nm", "protein")
EVERY = ("no-warmup", "warmup", "warmup-fixed-mean")
BOTH = ("no-warmup", "warmup")
SELECTIONS = ("equal", "separate")
OUTER_FOLDS = {"protein": 1}  # of the five
KEY = ["dataset", "method", "strategy", "regularization", "fold"]
Arms = dict[str, MVERegressor | MVERegressorCV]


def searches(method: str, strategies: tuple[str, ...], variant: str = "", **settings: Any) -> Arms:
    """Arms that choose their penalties as the paper does, equal ones and separate ones."""
    usual = {"final": "refit", "scale": False, "n_members": 1} | settings
    return {
        f"{method}, {strategy}, {selection}{variant}": MVERegressorCV(
            strategy=strategy, selection=selection, **usual
        )
        for strategy, selection in itertools.product(strategies, SELECTIONS)
    }


def by_width() -> Arms:
    """The variance network's hidden units, too, are chosen by rows left out: see `chosen`."""
    arms: Arms = {}
    for units in ((), (10,), (40, 20)):
        arms |= searches("hidden-var", ("warmup",), f", {units}", hidden_var=units)
    return arms


def fixed_mean(method: str, rows: int, **settings: Any) -> Arms:
    """The mean first, then the variance, each for as long."""
    epochs = recipes.epochs_within(rows, recipes.DEFAULT["batch_size"], *recipes.AUTO)
    lengths = {"epochs": epochs, "warmup_epochs": epochs}
    return searches(method, ("warmup-fixed-mean",), **lengths, **settings)


def by_tails() -> Arms:
    """Student's t whose degrees of freedom, too, are chosen by rows left out."""
    arms: Arms = {}
    for df in (3.0, 10.0, 30.0):
        settings = {"objective": "student-t", "df": df}
        arms |= searches("student-t-df", ("warmup",), f", {df:g}", **settings)
    return arms


# What is trained together: arms that share networks, of a table with so many rows to train on. A
# group has a store of its own.
GROUPS: dict[str, Callable[[int], Arms]] = {
    "nll": lambda _: (
        searches("nll", EVERY)
        | searches("ensemble", ("warmup",), n_members=5)
        | searches("bootstrap", ("warmup",), n_members=5, bootstrap=True)
    ),
    "beta-nll": lambda _: searches("beta-nll", BOTH, objective="beta-nll"),
    "faithful": lambda _: searches("faithful", BOTH, objective="faithful"),
    "crps": lambda _: searches("crps", BOTH, objective="crps"),
    "student-t": lambda _: searches("student-t", BOTH, objective="student-t"),
    "natural": lambda _: searches("natural", ("no-warmup",), objective="natural"),
    "cross-fit": lambda _: {
        "cross-fit, cross-fit, fixed": MVERegressor(encoding=None, target="identity")
    },
    "converged": lambda _: searches("converged", ("warmup",), warmup_epochs="converged"),
    "early-stopping": lambda rows: fixed_mean("early-stopping", rows, early_stopping=True),
    "fixed-mean": lambda rows: fixed_mean("fixed-mean", rows),
    "hidden-var": lambda _: by_width(),
    "student-t-df": lambda _: by_tails(),
}


def arguments(name: str, group: str, rows: int) -> dict[str, Any]:
    """Arguments of compare_strategies: the authors' splits, as run.py has them."""
    k = n_folds(name)
    return {
        "arms": GROUPS[group](rows * (k - 1) // k),
        "outer_cv": KFold(k, shuffle=True, random_state=1),
        "inner_cv": KFold(k, shuffle=True, random_state=5),
        "random_state": 1,
    }


def run(name: str, group: str, runs: Path, dry: bool) -> None:
    """Train one group of arms on one data set, or go on with it."""
    data, store = datasets.load(name), runs / name / group
    what = arguments(name, group, len(data.y))
    if name in OUTER_FOLDS:
        splits = list(what["outer_cv"].split(data.X))
        what["outer_cv"] = splits[: OUTER_FOLDS[name]]
    if dry:
        print(f"{name}, {group}: {plan_comparison(data.X, data.y, store=store, **what)}")
        return
    outcome = compare_strategies(data.X, data.y, store=store, **what)
    print(f"{name}, {group}: {outcome.seconds:,.0f} s\n{outcome}\n", flush=True)


def finished(name: str, group: str, runs: Path) -> pd.DataFrame:
    """A row for each arm and finished fold of a group."""
    rows = []
    if (runs / name / group).exists():
        with Store(runs / name / group) as store:
            results = store.results()
        for fold, result in sorted(results.items()):
            seconds = round(result["seconds"], 1)  # of all arms of the group together
            for arm, scores in result["arms"].items():
                method, strategy, selection, *variant = arm.split(", ", 3)
                row = {"dataset": name, "method": method, "strategy": strategy}
                row |= {"regularization": selection, "fold": fold, "variant": "".join(variant)}
                rows.append(row | {key: scores[key] for key in SCORES} | {"seconds": seconds})
    return pd.DataFrame(rows)


def chosen(rows: pd.DataFrame) -> pd.DataFrame:
    """Of variants of a method, in each fold the one that its inner folds liked best."""
    best = rows.sort_values("inner_score", ascending=False, kind="stable")
    return best.drop_duplicates(KEY).sort_values(KEY, kind="stable")


def export(name: str, runs: Path, results: Path) -> None:
    """Write the CSV of all folds that are finished."""
    parts = [finished(name, group, runs) for group in GROUPS]
    parts = [part for part in parts if len(part)]
    if not parts:
        print(f"{name}: nothing is finished")
        return
    results.mkdir(parents=True, exist_ok=True)
    rows = chosen(pd.concat(parts))
    rows.to_csv(results / f"{name}.csv", index=False, float_format="%.8g")
    folds = rows.groupby("method")["fold"].nunique()
    print(f"{name}: {', '.join(f'{m} {n}' for m, n in folds.items())} outer folds", flush=True)


def main() -> None:
    """Run the data sets named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("datasets", nargs="*", help=f"of {', '.join(DATASETS)}; all if none")
    parser.add_argument("--methods", nargs="+", choices=GROUPS, default=list(GROUPS))
    parser.add_argument("--export", action="store_true", help="only write what is finished")
    parser.add_argument("--dry-run", action="store_true", help="only tell what it would cost")
    parser.add_argument("--runs", type=Path, default=HERE / "runs" / "relatives")
    parser.add_argument("--results", type=Path, default=HERE / "results" / "relatives")
    given = parser.parse_args()
    unknown = sorted(set(given.datasets) - set(DATASETS))
    if unknown:
        parser.error(f"unknown data set {unknown[0]!r}: choose from {', '.join(DATASETS)}")
    for name in given.datasets or DATASETS:
        try:
            for group in [] if given.export else given.methods:
                run(name, group, given.runs, given.dry_run)
                if not given.dry_run:
                    export(name, given.runs, given.results)
            if given.export:
                export(name, given.runs, given.results)
        except (OSError, ValueError) as error:  # no data, another version's store, a full disk
            sys.exit(f"{name}: {error}")


if __name__ == "__main__":
    main()
