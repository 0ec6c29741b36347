"""The league: mvenet and its peers on sixteen tables, the same folds for all.

    MVENET_DATA=folder MVENET_TABLES=folder python benchmarks/league.py     measure what is missing
    ... python benchmarks/league.py --methods CatBoost NGBoost --tables yacht --folds 0 1
    ... python benchmarks/league.py --write                                 into docs/league.md

The folders hold NAME.csv, header first and target last: the paper's seven sets and nine more. A
table of fewer than 5,000 rows is measured on all of ten folds, a larger one on the first three; a
third of the folds of every table come first, small tables before large ones. Two further "tables"
are airfoil and bike as the benchmark of BDE splits and standardises them.

Each result is appended to league/METHOD.csv when it is there, in one write, and never measured
again: stop the run when you like, start a second one beside it, or delete a file to measure its
method anew. Methods are described in league_methods.py.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import time
import warnings
from collections.abc import Iterator
from importlib import metadata
from itertools import islice, product
from pathlib import Path
from typing import Any

import league_page
import numpy as np
import records
from league_methods import METHODS, Array, Method
from sklearn.model_selection import KFold, train_test_split
from sklearn.preprocessing import StandardScaler

import mvenet

HERE = Path(__file__).parent
RESULTS = HERE / "league"
PAGE = HERE.parent / "docs" / "league.md"
FIELDS = (
    *("method", "table", "fold", "loglik", "gaussian_loglik", "crps", "rmse", "coverage"),
    *("seconds", "version"),
)
# By size: the small ones first, so that a table of results is there soon.
TABLES = {
    "MVENET_DATA": ("yacht", "boston", "energy", "concrete", "wine_red", "kin8nm", "protein"),
    "MVENET_TABLES": (
        *("machine", "autompg", "forest", "stock", "airfoil", "skillcraft"),
        *("elevators", "bike", "kin40k"),
    ),
}
ORDER = (
    *("machine", "yacht", "autompg", "boston", "forest", "stock", "energy", "concrete"),
    *("airfoil", "wine_red", "skillcraft", "airfoil (BDE)", "kin8nm", "elevators", "bike"),
    *("bike (BDE)", "kin40k", "protein"),
)
Split = tuple[Array, Array, Array, Array]  # X, y, X_new, y_new


def load(name: str) -> tuple[Array, Array]:
    """Rows and target of a table."""
    name = name.removesuffix(" (BDE)")
    variable = next(key for key, names in TABLES.items() if name in names)
    if variable not in os.environ:
        raise SystemExit(f"{name}.csv is missing: set {variable} to the folder that has it")
    data = np.loadtxt(Path(os.environ[variable]) / f"{name}.csv", delimiter=",", skiprows=1)
    return data[:, :-1], data[:, -1]


def n_folds(n_rows: int) -> int:
    """How many of the ten folds are measured."""
    return 10 if n_rows < 5000 else 3


def splits(name: str) -> Iterator[tuple[int, Split]]:
    """The folds of a table that are measured."""
    X, y = load(name)
    if name.endswith("(BDE)"):
        train, test = train_test_split(np.arange(len(y)), test_size=0.2, random_state=0)
        X = StandardScaler().fit(X[train]).transform(X)
        y = (y - y[train].mean()) / y[train].std()
        yield 0, (X[train], y[train], X[test], y[test])
        return
    folds = KFold(10, shuffle=True, random_state=1).split(X)
    for fold, (train, test) in islice(enumerate(folds), n_folds(len(y))):
        yield fold, (X[train], y[train], X[test], y[test])


def in_first_round(fold: int, n_rows: int) -> bool:
    """A third of the folds of every table come before the rest of any."""
    return fold < round(n_folds(n_rows) / 3)


def scores(y: Array, predicted: Any) -> dict[str, float]:
    """All scores that the prediction is enough for."""
    mean = getattr(predicted, "mean", predicted)
    mean = predicted if callable(mean) else mean  # of an array, mean is a method
    found = {"rmse": float(np.sqrt(np.mean((y - mean) ** 2)))}
    if hasattr(predicted, "crps"):
        low, high = predicted.interval(0.9).T
        found["crps"] = float(np.mean(predicted.crps(y)))
        found["coverage"] = float(np.mean((low <= y) & (y <= high)))
    if hasattr(predicted, "logpdf"):
        std = predicted.std
        normal = -0.5 * ((y - mean) / std) ** 2 - np.log(std) - 0.5 * np.log(2 * np.pi)
        found["loglik"] = float(np.mean(predicted.logpdf(y)))
        found["gaussian_loglik"] = float(np.mean(normal))
    return found


def version(method: Method) -> str:
    """Of the package; of mvenet also the commit, where it comes from a clone."""
    number = metadata.version(method.package)
    if method.package != "mvenet":
        return number
    commit = subprocess.run(
        ["git", "-C", Path(mvenet.__file__).parent, "rev-parse", "--short", "HEAD"],
        capture_output=True,
        text=True,
    ).stdout.strip()
    return f"{number} {commit}".strip()


def measure(method: Method, name: str, fold: int, split: Split, folder: Path = RESULTS) -> None:
    """One method on one fold, unless it is there or does not fit."""
    path = folder / method.file
    if any((row["table"], row["fold"]) == (name, str(fold)) for row in records.read(path)):
        return
    X, y, X_new, y_new = split
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of optimisers and of grids' ends
        predicted = method.run(X, y, X_new)
    if predicted is None:
        return
    seconds = time.perf_counter() - start
    row: dict[str, object] = {"method": method.name, "table": name, "fold": fold}
    row |= {key: f"{value:.6g}" for key, value in scores(y_new, predicted).items()}
    row |= {"seconds": f"{seconds:.2f}", "version": version(method)}
    records.add(path, FIELDS, [row])
    print(f"{name}, fold {fold}, {method.name}: {seconds:.1f} s", flush=True)


def main() -> None:
    """Measure what is missing, or write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [method.name for method in METHODS]
    usual = [name for name in names if "before" not in name]
    parser.add_argument("--methods", nargs="+", default=usual, choices=names, metavar="METHOD")
    parser.add_argument("--tables", nargs="+", default=ORDER, choices=ORDER, metavar="TABLE")
    parser.add_argument("--folds", nargs="+", type=int, default=range(10))
    parser.add_argument("--write", action="store_true", help="only write docs/league.md")
    given = parser.parse_args()
    if given.write:
        league_page.write(PAGE, RESULTS, ORDER)
        return
    RESULTS.mkdir(exist_ok=True)
    methods = [method for method in METHODS if method.name in given.methods]
    for first, name in product((True, False), given.tables):
        for fold, split in splits(name):
            n_rows = len(split[1]) + len(split[3])
            if fold in given.folds and in_first_round(fold, n_rows) == first:
                for method in methods:
                    measure(method, name, fold, split)


if __name__ == "__main__":
    main()
