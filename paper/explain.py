"""Why a cell of the tables is not the paper's: networks at fixed penalties on the same folds.

    python paper/explain.py                train what is missing, then tell
    python paper/explain.py kin8nm         only the studies of these data sets
    python paper/explain.py --tell         only tell what was trained

Two kinds of study, kept as they finish in paper/results/explained and never trained twice:

- fixed.csv: an outer fold's network at a pair of penalties that no search chose, from one or
  several starts. Seed 1 is the network that the tables would have had at that pair.
- parts.csv: one outer fold's search, row by row: for each pair what each inner fold says of it
  (``part`` 0, 1, ...) and what the rows left out by the outer fold say (``part`` "outer").

Needs the data sets (MVENET_DATA or a network).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import explained
import numpy as np
import pandas as pd
import tables
from numpy.typing import NDArray
from run import DATASETS, n_folds
from sklearn.model_selection import KFold

from mvenet import datasets, recipes
from mvenet._models.architecture import Architecture
from mvenet._models.networks import Networks
from mvenet._training import fleet
from mvenet._utils.machine import effective_threads
from mvenet.distributions import Normal

FOLDER = Path(__file__).parent / "results" / "explained"
GRID = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
PAIRS = tuple(product(GRID, GRID))
EQUAL = tuple((value, value) for value in GRID)
SEED = 1  # of the tables
WORST = {"outer": 3}  # rows kept of a part; one of the others

Pair = tuple[float, float]
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Fixed:
    """Networks of all outer folds at fixed pairs, from several starts."""

    dataset: str
    strategy: str
    pairs: tuple[Pair, ...]
    seeds: tuple[int, ...] = (SEED,)
    epochs: int = recipes.PAPER["epochs"]  # of each stage


@dataclass(frozen=True)
class Search:
    """The search of one outer fold, part by part."""

    dataset: str
    strategy: str
    fold: int
    pairs: tuple[Pair, ...]


TEN = tuple(range(1, 11))
FIXED = (
    Fixed("energy", "warmup-fixed-mean", PAIRS),
    Fixed("energy", "warmup-fixed-mean", ((1e-5, 1e-2),), TEN),
    Fixed("energy", "warmup-fixed-mean", ((1e-5, 1e-2), (1e-4, 1e-2)), epochs=300),
    Fixed("concrete", "no-warmup", PAIRS),
    Fixed("concrete", "no-warmup", ((1e-2, 1e-2), (1e-2, 1e-1)), TEN),
    Fixed("concrete", "no-warmup", ((1e-2, 1e-2), (1e-2, 1e-1)), epochs=300),
    Fixed("wine_red", "warmup", ((1e-2, 1e-2),), TEN),
    Fixed("kin8nm", "no-warmup", ((1e-2, 1e-2),), TEN),
    Fixed("kin8nm", "no-warmup", EQUAL),
)
CLOSE = ((1e-2, 1e-2), (1e-1, 1e-1), (1e-2, 1e-1), (1e-1, 1e-2))
SEARCHES = (
    *(Search("concrete", "no-warmup", fold, CLOSE) for fold in range(10)),
    Search("wine_red", "warmup", 4, PAIRS),
    Search("protein", "warmup", 0, (*EQUAL[::-1], (1e-5, 1e-2))),
    Search("protein", "warmup-fixed-mean", 3, ((1e-5, 1e-5),)),
    Search("protein", "warmup-fixed-mean", 4, ((1e-5, 1e-3),)),
)


def outer_folds(name: str, X: NDArray[Any]) -> list[tuple[Rows, Rows]]:
    """The authors' own outer folds."""
    return list(KFold(n_folds(name), shuffle=True, random_state=1).split(X))


def inner_folds(name: str, rows: Rows) -> list[tuple[Rows, Rows]]:
    """The authors' own inner folds of an outer fold's training rows."""
    folds = KFold(n_folds(name), shuffle=True, random_state=5).split(rows)
    return [(rows[train], rows[test]) for train, test in folds]


def fold_seed(seed: int, fold: int) -> int:
    """What compare_strategies(random_state=seed) gives an outer fold."""
    return fleet.derived_seed(seed, fold) % 2**32


def train(
    data: datasets.Dataset,
    strategy: str,
    jobs: Sequence[tuple[Rows, Pair, int]],
    epochs: int,
) -> Networks:
    """Networks of the paper's recipe: one for each (rows to train on, penalties, seed)."""
    paper = recipes.PAPER
    subsets: dict[bytes, int] = {}
    rows, networks = [], []
    for train_rows, (reg_mean, reg_var), seed in jobs:
        key = train_rows.tobytes()
        if key not in subsets:
            subsets[key] = len(rows)
            rows.append((train_rows, np.array([], dtype=np.int64)))
        stages = recipes.stages(
            strategy,
            n_rows=len(train_rows),
            batch_size=paper["batch_size"],
            epochs=epochs,
            warmup_epochs=epochs,
            learning_rate=paper["learning_rate"],
            schedule=paper["schedule"],
            reg_mean=reg_mean,
            reg_var=reg_var,
        )
        networks.append(fleet.Network(stages, seed, subsets[key]))
    trained = fleet.train(
        data.X,
        data.y,
        None,
        rows,
        networks,
        architecture=Architecture(paper["hidden_mean"], paper["hidden_var"], paper["activation"]),
        training=recipes.Training(batch_size=paper["batch_size"], clip_value=paper["clip_value"]),
        threads=effective_threads(None),
    )
    if trained.diverged.any():
        raise RuntimeError(f"{trained.diverged.sum()} networks of {strategy} diverged.")
    return trained.networks


def predict(networks: Networks, number: int, X: NDArray[Any]) -> Normal:
    """What one of the networks says."""
    mean, std = networks[[number]].predict(X, threads=effective_threads(None))
    return Normal(mean[0], std[0])


def rmse(residuals: NDArray[np.float64]) -> float:
    """Root mean square."""
    return float(np.sqrt(np.mean(residuals**2)))


def run_fixed(study: Fixed, path: Path) -> None:
    """Train what the file does not have yet, an outer fold at a time."""
    data = datasets.load(study.dataset)
    k = n_folds(study.dataset)
    done = keys(path, explained.FIXED_COLUMNS[:-2])
    for fold, (rows, test) in enumerate(outer_folds(study.dataset, data.X)):
        todo = [
            (pair, seed)
            for pair, seed in product(study.pairs, study.seeds)
            if (study.dataset, study.strategy, fold, *pair, seed, study.epochs) not in done
        ]
        if not todo:
            continue
        # The tables' final network has number k, after those of the inner folds.
        jobs = [
            (rows, pair, fleet.derived_seed(fold_seed(seed, fold), k, 0)) for pair, seed in todo
        ]
        networks = train(data, study.strategy, jobs, study.epochs)
        lines = []
        for number, (pair, seed) in enumerate(todo):
            dist = predict(networks, number, data.X[test])
            scores = dist.logpdf(data.y[test]).mean(), rmse(data.y[test] - dist.mean)
            place = (study.dataset, study.strategy, fold, *pair, seed, study.epochs)
            lines.append((*place, *scores))
        append(path, explained.FIXED_COLUMNS, lines)
        print(f"{study.dataset}, {study.strategy}: outer fold {fold + 1} of {k}", flush=True)


def run_search(study: Search, path: Path) -> None:
    """Train one outer fold's search, and keep what each part says of it."""
    data = datasets.load(study.dataset)
    outer_train, outer_test = outer_folds(study.dataset, data.X)[study.fold]
    parts = [*inner_folds(study.dataset, outer_train), (outer_train, outer_test)]
    done = keys(path, ["dataset", "strategy", "fold", "reg_mean", "reg_var"])
    base = fold_seed(SEED, study.fold)
    todo = [p for p in study.pairs if (study.dataset, study.strategy, study.fold, *p) not in done]
    for reg_mean in dict.fromkeys(pair[0] for pair in todo):  # they share their warm-ups
        pairs = [pair for pair in todo if pair[0] == reg_mean]
        places = list(product(pairs, range(len(parts))))
        jobs = [(parts[i][0], pair, fleet.derived_seed(base, i, 0)) for pair, i in places]
        networks = train(data, study.strategy, jobs, recipes.PAPER["epochs"])
        lines, worst = [], []
        for number, (pair, i) in enumerate(places):
            rows, test = parts[i]
            part = "outer" if i == len(parts) - 1 else str(i)
            place = (study.dataset, study.strategy, study.fold, *pair, part)
            dist = predict(networks, number, data.X[test])
            lines.append((*place, *explained.judge(data.y[test], dist, float(data.y[rows].std()))))
            logpdf = dist.logpdf(data.y[test])
            for at in np.argsort(logpdf)[: WORST.get(part, 1)]:
                row = (test[at], data.y[test[at]], dist.mean[at], dist.std[at], logpdf[at])
                worst.append((*place, *row))
        append(path.with_name("rows.csv"), explained.ROW_COLUMNS, worst)
        append(path, explained.PART_COLUMNS, lines)
        print(f"{study.dataset}, {study.strategy}: mean's penalty {reg_mean:g}", flush=True)


def keys(path: Path, columns: list[str]) -> set[tuple[Any, ...]]:
    """What a file already holds."""
    if not path.exists():
        return set()
    return set(pd.read_csv(path)[columns].itertuples(index=False, name=None))


def append(path: Path, columns: Sequence[str], lines: Sequence[tuple[Any, ...]]) -> None:
    """Add lines to a file, with a header if it is new."""
    path.parent.mkdir(parents=True, exist_ok=True)
    frame = pd.DataFrame(lines, columns=list(columns))
    frame.to_csv(path, mode="a", header=not path.exists(), index=False, float_format="%.8g")


def main() -> None:
    """Train what is missing and tell."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("datasets", nargs="*", help="only studies of these; all if none")
    parser.add_argument("--tell", action="store_true", help="train nothing")
    parser.add_argument("--write", action="store_true", help="also into paper/README.md")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the CSVs are")
    given = parser.parse_args()
    unknown = sorted(set(given.datasets) - set(DATASETS))
    if unknown:
        parser.error(f"unknown data set {unknown[0]!r}: choose from {', '.join(DATASETS)}")
    for study in () if given.tell else (*FIXED, *SEARCHES):
        if given.datasets and study.dataset not in given.datasets:
            continue
        if isinstance(study, Fixed):
            run_fixed(study, given.folder / "fixed.csv")
        else:
            run_search(study, given.folder / "parts.csv")
    text = explained.report(given.folder)
    print(text)
    if given.write:
        tables.write("explained", text)


if __name__ == "__main__":
    main()
