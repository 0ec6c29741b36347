"""Categories with many levels: the target's mean and spread against one-hot of thirty.

    python benchmarks/levels.py FOLDER [--splits 3]

FOLDER holds ``mixed/wage.csv`` (few levels: both ways are tried on all its categories) and
``tables/bike.csv``, of which hour, weekday and month become one category of hundreds of levels; a
synthetic table has 300 levels, each with a mean and a noise of its own. Quarters of the rows are
held out; networks of one recipe are trained on the rest. Printed is the median of the splits.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import polars as pl

from mvenet import MVERegressor, metrics
from mvenet._columns.cells import split_target
from mvenet.table import TableEncoder, read


def synthetic(n: int = 6000, k: int = 300) -> pl.DataFrame:
    """Levels of different means and noises, and one number."""
    rng = np.random.default_rng(0)
    effect, spread = rng.normal(size=k), 0.3 * np.exp(0.7 * rng.normal(size=k))
    level, x = rng.integers(0, k, n), rng.normal(size=n)
    y = effect[level] + np.sin(x) + spread[level] * rng.normal(size=n)
    return pl.DataFrame({"x": x, "level": [f"L{i}" for i in level], "y": y})


def bike(path: Path) -> pl.DataFrame:
    """Rentals by the hour; the last column is the target."""
    frame = pl.read_csv(path)
    by = frame.columns
    few = [n for n in by[:-1] if 5 < frame[n].n_unique() <= 24][:3]
    made = pl.concat_str([pl.col(n).round(3).cast(pl.String) for n in few], separator="/")
    return frame.with_columns(level=made).drop(few).rename({by[-1]: "y"})


def scores(frame: pl.DataFrame, target: str, few: int, supervised: bool, seed: int) -> list[float]:
    """CRPS and log-likelihood of rows held out."""
    X, y, _ = split_target(frame, target)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))
    test, train = np.sort(order[: len(y) // 4]), np.sort(order[len(y) // 4 :])
    encoder = TableEncoder(max_categories=few)
    known = encoder.fit_transform(X[train], y[train] if supervised else None)
    model = MVERegressor(
        strategy="warmup", n_members=2, reg_mean=1e-3, reg_var=1e-2, random_state=seed
    )
    dist = model.fit(known, y[train]).predict_dist(encoder.transform(X[test]))
    return [float(metrics.crps(y[test], dist)), -float(metrics.nll(y[test], dist))]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--splits", type=int, default=3)
    given = parser.parse_args()
    wage = read(given.folder / "mixed" / "wage.csv").drop("logwage")
    tables = {
        "wage, 6 categories of 2 to 5 levels": (wage, "wage", 1),
        "bike, one category": (bike(given.folder / "tables" / "bike.csv"), "y", 30),
        "synthetic, one category of 300": (synthetic(), "y", 30),
    }
    for name, (frame, target, few) in tables.items():
        levels = frame["level"].n_unique() if "level" in frame.columns else 0
        told = f"{name} of {levels}" if name.startswith("bike") else name
        for way, most, supervised in (
            ("one-hot of thirty", 30, False),
            ("target's mean and spread", few, True),
        ):
            runs = [scores(frame, target, most, supervised, s) for s in range(given.splits)]
            crps, loglik = np.median(runs, axis=0)  # a row far outside may have any mean
            print(
                f"{told:40s} {way:26s} CRPS {crps:8.4f}  log-likelihood {loglik:7.3f}", flush=True
            )


if __name__ == "__main__":
    main()
