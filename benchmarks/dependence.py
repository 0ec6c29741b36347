"""What intervals cover where rows belong together: new groups, the next stretch, false alarms.

    python benchmarks/dependence.py groups --data FOLDER      # default, and with groups
    python benchmarks/dependence.py time --data FOLDER        # default, and with time
    python benchmarks/dependence.py alarms --tables 500       # on independent rows
    python benchmarks/dependence.py found --data FOLDER       # on tables whose rows depend

``FOLDER`` holds ``grouped/``, ``timed/``, ``mixed/`` and ``tables/`` with CSV files, target last
(but weather's, which is named). Every line is printed when it is known. The outcome is in
docs/guides/groups-and-time.md.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.model_selection import GroupShuffleSplit, KFold

from mvenet import AutoRegressor
from mvenet._automatic import detection

GROUPED = {"produc": "state", "guns": "state", "epil": "subject", "rice": "id"}
LEFT_OUT = {"produc": ["region"]}  # which tells of the state


class Rows(NamedTuple):
    """A table of numbers."""

    name: str
    X: Any
    y: Any
    tie: Any  # groups, or moments


def numbers(frame: pd.DataFrame) -> Any:
    """Columns as numbers, a column of zeros and ones for each level of a category."""
    return pd.get_dummies(frame, dtype=float).to_numpy(float)


def grouped(data: Path) -> Iterator[Rows]:
    """Tables with groups."""
    for name, column in GROUPED.items():
        frame = pd.read_csv(data / "grouped" / f"{name}.csv")
        groups = pd.factorize(frame[column])[0]
        inputs = frame.iloc[:, :-1].drop(columns=[column, *LEFT_OUT.get(name, [])])
        yield Rows(name, numbers(inputs), frame.iloc[:, -1].to_numpy(float), groups)


def timed(data: Path) -> Iterator[Rows]:
    """Tables in time."""
    frame = pd.read_csv(data / "mixed" / "weather.csv", parse_dates=["date"])
    day = (frame["date"] - frame["date"].min()).dt.days.to_numpy(float)
    turn = 2 * np.pi * day / 365.25
    season = np.column_stack([day, np.sin(turn), np.cos(turn), frame["wind"]])
    y = frame["temp_max"].to_numpy(float)
    yield Rows("weather", season, y, day)
    known = np.column_stack([season, frame["precipitation"], frame["temp_min"]])
    yield Rows("weather, columns of the day", known, y, day)
    for name, place in (("djia", "timed/djia.csv"), ("macro", "timed/macro.csv")):
        frame = pd.read_csv(data / place)
        order = np.arange(len(frame), dtype=float)
        yield Rows(name, numbers(frame.iloc[:, 1:-1]), frame.iloc[:, -1].to_numpy(float), order)
    frame = pd.read_csv(data / "tables" / "bike.csv").iloc[::4]
    order = np.arange(len(frame), dtype=float)
    yield Rows("bike", numbers(frame.iloc[:, :-1]), frame.iloc[:, -1].to_numpy(float), order)


def scored(rows: Rows, train: Any, tests: list[Any], effort: str, **given: Any) -> list[Any]:
    """Fit without some rows, and judge by them, part by part."""
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = AutoRegressor(effort, random_state=0, n_jobs=1)
        model.fit(rows.X[train], rows.y[train], **given)
    seconds, made = time.perf_counter() - start, []
    for test in tests:
        dist, y = model.predict_dist(rows.X[test]), rows.y[test]
        low, high = dist.interval(0.9).T
        made.append(
            {
                "coverage": float(np.mean((low <= y) & (y <= high))),
                "above": float(np.mean(y > high)),
                "crps": float(dist.crps(y).mean()),
                "rmse": float(np.sqrt(np.mean((dist.mean - y) ** 2))),
                "seconds": seconds,
            }
        )
    return made


def told(name: str, way: str, scores: list[dict[str, float]]) -> None:
    """One line: averages over the repeats, and each coverage."""
    mean = {key: np.mean([score[key] for score in scores]) for key in scores[0]}
    each = " ".join(f"{score['coverage']:.2f}" for score in scores)
    print(
        f"{name:28} {way:8} covers {mean['coverage']:.1%} ({mean['above']:.1%} above)   CRPS "
        f"{mean['crps']:.4g}   RMSE {mean['rmse']:.4g}   {mean['seconds']:.0f} s   [{each}]",
        flush=True,
    )


def groups(data: Path, repeats: int, effort: str) -> None:
    """A quarter of the groups left out."""
    for rows in grouped(data):
        split = GroupShuffleSplit(repeats, test_size=0.25, random_state=0)
        parts = list(split.split(rows.X, rows.y, rows.tie))
        for way in ("default", "groups"):
            given = [{"groups": rows.tie[a]} if way == "groups" else {} for a, _ in parts]
            fits = zip(parts, given, strict=True)
            told(rows.name, way, [scored(rows, a, [b], effort, **g)[0] for (a, b), g in fits])


def stretches(data: Path, effort: str) -> None:
    """The last quarter left out: all of it, and as much of it as is promised."""
    for rows in timed(data):
        start = np.quantile(rows.tie, 0.75)
        past, future = np.flatnonzero(rows.tie < start), np.flatnonzero(rows.tie >= start)
        soon = future[: len(past) // 8]
        for way, given in (("default", {}), ("time", {"time": rows.tie[past]})):
            whole, first = scored(rows, past, [future, soon], effort, **given)
            told(rows.name, way, [whole])
            told(f"{rows.name}: as far as promised", way, [first])


def left_out_errors(X: Any, y: Any, seed: int) -> Any:
    """Residuals of rows left out, by extremely randomised trees."""
    made = np.empty(len(y))
    for train, test in KFold(5, shuffle=True, random_state=seed).split(X):
        trees = ExtraTreesRegressor(30, min_samples_leaf=2, random_state=seed)
        made[test] = y[test] - trees.fit(X[train], y[train]).predict(X[test])
    return made


def independent(seed: int) -> tuple[Any, Any]:
    """A table of independent rows: of any size, shape and noise."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(80, 500)), int(rng.integers(1, 9))
    X = rng.normal(size=(n, d))
    X[:, rng.random(d) < 0.3] = rng.integers(0, 40, (n, 1))
    signal = np.sin(2 * X[:, 0]) + X.sum(axis=1) / d
    noise = rng.standard_t(3, n) * (1 + (rng.random() < 0.5) * np.abs(X[:, 0]))
    y = signal + rng.uniform(0.05, 2) * noise
    return X, np.exp(y) if rng.random() < 0.3 else y


def alarms(tables: int) -> None:
    """How often independent rows are said to belong together."""
    count = 0
    for seed in range(tables):
        X, y = independent(seed)
        found = detection.findings(X, y, left_out_errors(X, y, seed), refit=True, seed=seed)
        count += bool(found)
        if found or (seed + 1) % 50 == 0:
            kinds = [finding.kind for finding in found]
            print(f"{count} alarms in {seed + 1} tables {kinds or ''}", flush=True)


def found(data: Path) -> None:
    """What is found in tables whose rows depend, in the order of their files, and shuffled."""
    others = sorted((data / "uci").glob("*.csv")) + sorted((data / "tables").glob("*.csv"))
    tables = [*grouped(data), *timed(data)]
    for place in others:
        frame = pd.read_csv(place).iloc[:5_000]
        tables.append(Rows(place.stem, numbers(frame.iloc[:, :-1]), frame.iloc[:, -1], None))
    for rows in tables:
        y = np.asarray(rows.y, dtype=float)
        order = np.random.default_rng(0).permutation(len(y))
        for way, some in (("as it is", np.arange(len(y))), ("shuffled", order)):
            residual = left_out_errors(rows.X[some], y[some], 0)
            seen = detection.findings(rows.X[some], y[some], residual, refit=True, seed=0)
            words = [f"{f.kind} {f.strength:.2f} {f.column}" for f in seen]
            print(f"{rows.name:28} {way:9} {'; '.join(words) or '-'}", flush=True)


def main() -> None:
    """Parse and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("groups", "time", "alarms", "found"))
    parser.add_argument("--data", type=Path, default=os.environ.get("MVENET_TABLES", "data"))
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--tables", type=int, default=500)
    parser.add_argument("--effort", default="medium")
    given = parser.parse_args()
    match given.what:
        case "groups":
            groups(Path(given.data), given.repeats, given.effort)
        case "time":
            stretches(Path(given.data), given.effort)
        case "alarms":
            alarms(given.tables)
        case "found":
            found(Path(given.data))


if __name__ == "__main__":
    main()
