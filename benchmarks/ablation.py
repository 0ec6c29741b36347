"""What the constants of the automatic search are worth: each halved and doubled, on other tables.

    python benchmarks/ablation.py [--only prior_rows doubt] [--folds 3] [--effort medium]

The tables are none of the league's: scikit-learn's diabetes and five synthetic ones with a known
truth. For each constant and value it prints the change of the log-likelihood a row and of the CRPS
in percent against the value in use, averaged over tables and folds, each with its standard error.
Rows of ``ablation.csv`` that are there already are not measured again.
"""

from __future__ import annotations

import argparse
import csv
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_diabetes, make_friedman1, make_friedman2, make_friedman3
from sklearn.model_selection import KFold

from mvenet import AutoRegressor
from mvenet._automatic import (
    baselines,
    free_shape,
    kinds,
    out_of_fold,
    refit,
    search,
    stacking,
)
from mvenet._automatic import constants as used

RAW = Path(__file__).with_name("ablation.csv")
AS_IT_IS = "as it is"
FIELDS = ("constant", "value", "table", "fold", "loglik", "crps")
Table = tuple[np.ndarray, np.ndarray]


def tables() -> dict[str, Table]:
    """Tables that no fold of the league judges."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, (500, 4))
    spread = np.where(x[:, 2] > 0, 0.6, 0.1)
    heavy = np.sin(2 * x[:, 0]) + x[:, 1] ** 2 + 0.2 * rng.standard_t(3, 500)
    return {
        "diabetes": load_diabetes(return_X_y=True),
        "friedman1": make_friedman1(400, noise=1.0, random_state=0),
        "friedman2": make_friedman2(400, noise=100.0, random_state=0),
        "friedman3": make_friedman3(400, noise=0.1, random_state=0),
        "two noises": (x, np.sin(2 * x[:, 0]) + x[:, 1] ** 2 + spread * rng.standard_normal(500)),
        "heavy tails": (x, heavy),
    }


def _lengths(factor: float) -> dict[str, Any]:
    """Every training so many times as long."""

    def longer(kind: kinds.NetworkKind) -> kinds.NetworkKind:
        stages = tuple((m, tuple(round(n * factor) for n in length)) for m, length in kind.stages)
        return replace(kind, stages=stages)

    return _efforts(longer)


def _penalties(factor: float) -> dict[str, Any]:
    """Every penalty so many times as strong."""
    return _efforts(lambda kind: replace(kind, penalties=tuple(factor * p for p in kind.penalties)))


def _deep(width: int) -> dict[str, Any]:
    """Means of three layers of so many units."""
    return _efforts(
        lambda kind: kind if kind.joint or not kind.hidden_mean
        else replace(kind, hidden_mean=(width,) * 3)
    )  # fmt: skip


def _efforts(change: Any) -> dict[str, Any]:
    changed = {
        name: replace(
            effort,
            joint=tuple(map(change, effort.joint)),
            means=tuple(map(change, effort.means)),
            further=tuple(tuple(map(change, tier)) for tier in effort.further),
            noise=tuple(map(change, effort.noise)),
        )
        for name, effort in kinds.EFFORTS.items()
    }
    return {"EFFORTS": changed}


# By name: the module that uses it, and from a value to the names there that it changes. The first
# value is the one in use.
ABLATIONS: dict[str, tuple[Any, Any, tuple[Any, ...]]] = {
    "lengths": (kinds, _lengths, (1.0, 0.5, 2.0)),
    "penalties": (kinds, _penalties, (1.0, 0.3, 3.0)),
    "deep": (kinds, _deep, (64, 32, 128)),
    "short": (kinds, lambda v: {"SHORT": (v,) * 3}, (used.SHORT[0], 16, 64)),
    "worth_more": (search, lambda v: {"WORTH_MORE": v}, (used.WORTH_MORE, 0.9, 0.98)),
    "smallest_share": (stacking, lambda v: {"SMALLEST_SHARE": v}, (used.SMALLEST_SHARE, 0.02, 0.1)),
    "prior_rows": (out_of_fold, lambda v: {"PRIOR_ROWS": v}, (used.PRIOR_ROWS, 1.0, 20.0)),
    "degrees": (stacking, lambda v: {"DEGREES": v}, (used.DEGREES, 2.0, 30.0)),
    "iterations": (stacking, lambda v: {"ITERATIONS": v}, (used.ITERATIONS, 50, 1000)),
    "most_bins": (free_shape, lambda v: {"MOST_BINS": v}, (used.MOST_BINS, 1, 10)),
    "bin_prior_rows": (
        free_shape, lambda v: {"BIN_PRIOR_ROWS": v}, (used.BIN_PRIOR_ROWS, 5.0, 80.0)
    ),
    "by_crps": (
        free_shape, lambda v: {"BY_CRPS": v}, (used.BY_CRPS, (0.0,), (1.0,))
    ),
    "earned_by": (free_shape, lambda v: {"EARNED_BY": v}, (used.EARNED_BY, 2.0, 0.0)),
    "doubt": (refit, lambda v: {"DOUBT": v}, (used.DOUBT, 10.0, 250.0)),
    "left_to_chance": (
        kinds, lambda v: {"LEFT_TO_CHANCE_FEW": v}, (used.LEFT_TO_CHANCE_FEW, 0.005, 0.05)
    ),
    "trees": (
        baselines, lambda v: {"TREES": ((v, 10_000), (v, 50_000))}, (used.TREES[0][0], 30, 300)
    ),
}  # fmt: skip


@contextmanager
def changed(module: Any, names: dict[str, Any]) -> Iterator[None]:
    """Names of a module with other values."""
    before = {name: getattr(module, name) for name in names}
    vars(module).update(names)
    try:
        yield
    finally:
        vars(module).update(before)


def measure(constant: str, value: Any, table: str, fold: int, effort: str) -> dict[str, Any]:
    """One search, judged by a fold that it has not seen."""
    X, y = tables()[table]
    train, test = list(KFold(5, shuffle=True, random_state=0).split(X))[fold]
    module, names, _ = ABLATIONS.get(constant, (search, lambda _: {}, ()))
    with changed(module, names(value)):
        model = AutoRegressor(effort, random_state=fold).fit(X[train], y[train])
    dist = model.predict_dist(X[test])
    loglik, crps = dist.logpdf(y[test]).mean(), dist.crps(y[test]).mean()
    row = (constant, value, table, fold, f"{loglik:.6g}", f"{crps:.6g}")
    return dict(zip(FIELDS, row, strict=True))


def read() -> list[dict[str, str]]:
    """What was measured so far."""
    if not RAW.exists():
        return []
    with RAW.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def summary(rows: list[dict[str, str]]) -> str:
    """A line for each constant and value: what changes against the value in use."""
    usual = {
        (row["table"], row["fold"]): (float(row["loglik"]), float(row["crps"]))
        for row in rows
        if row["constant"] == AS_IT_IS
    }
    lines = ["| constant | value | log-likelihood a row | CRPS, % |", "| --- | --- | --- | --- |"]
    for constant, (_, _, values) in ABLATIONS.items():
        by_value: dict[str, dict[Any, Any]] = {}
        for row in (row for row in rows if row["constant"] == constant):
            place = row["table"], row["fold"]
            by_value.setdefault(row["value"], {})[place] = float(row["loglik"]), float(row["crps"])
        for value in values[1:]:
            there = [p for p in by_value.get(str(value), {}) if p in usual]
            if there:
                ours = np.array([by_value[str(value)][p] for p in there])
                base = np.array([usual[p] for p in there])
                gains = ours[:, 0] - base[:, 0], 100 * (ours[:, 1] / base[:, 1] - 1)
                shown = (f"{g.mean():+.3f} ± {g.std() / np.sqrt(len(g)):.3f}" for g in gains)
                lines.append(f"| {constant} ({values[0]}) | {value} | {' | '.join(shown)} |")
    return "\n".join(lines)


def main() -> None:
    """Measure what is not there yet, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=ABLATIONS, default=list(ABLATIONS))
    parser.add_argument("--folds", type=int, default=2)
    parser.add_argument("--effort", default="medium")
    options = parser.parse_args()
    rows = read()
    done = {tuple(row[name] for name in FIELDS[:4]) for row in rows}
    with RAW.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        if not rows:
            writer.writeheader()
        for fold in range(options.folds):
            for table in tables():
                changes = [(name, v) for name in options.only for v in ABLATIONS[name][2][1:]]
                for constant, value in [(AS_IT_IS, ""), *changes]:
                    if (constant, str(value), table, str(fold)) in done:
                        continue
                    row = measure(constant, value, table, fold, options.effort)
                    writer.writerow(row)
                    file.flush()
                    os.fsync(file.fileno())
                    rows.append({name: str(part) for name, part in row.items()})
    print(summary(rows))


if __name__ == "__main__":
    main()
