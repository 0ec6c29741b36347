"""What intervals cover where rows belong together: new groups, the next stretch, false alarms.

    python benchmarks/dependence.py groups --data FOLDER      # default, folds by hand, groups
    python benchmarks/dependence.py time --data FOLDER        # default, and with time
    python benchmarks/dependence.py table                     # what both have measured so far
    python benchmarks/dependence.py alarms --tables 500       # on independent rows
    python benchmarks/dependence.py found --data FOLDER       # on tables whose rows depend
    python benchmarks/dependence.py gaps --data FOLDER        # the most important column is empty

``FOLDER`` holds ``grouped/``, ``timed/``, ``mixed/`` and ``tables/`` with CSV files, target last
(but weather's, which is named). Each fit is a row of ``dependence.csv`` as soon as it is there, and
is not made again. The outcome is in docs/guides/groups-and-time.md.
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
import records
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.model_selection import GroupKFold, GroupShuffleSplit, KFold

from mvenet import AutoRegressor
from mvenet._automatic import detection

GROUPED = {"produc": "state", "guns": "state", "epil": "subject", "rice": "id"}
LEFT_OUT = {"produc": ["region"]}  # which tells of the state
ORIGINS = (0.75, 0.6, 0.65, 0.7, 0.8, 0.85)  # shares of the rows that are the past
EMPTIED = ("uci/boston", "uci/concrete", "uci/energy", "tables/autompg", "tables/airfoil",
           "tables/stock")  # fmt: skip
RESULTS = Path(__file__).with_suffix(".csv")
FIELDS = ("table", "way", "repeat", "effort", "part", "rows", "coverage", "above", "crps", "rmse",
          "seconds")  # fmt: skip
Split = tuple[Any, dict[str, Any]]  # rows to train on, and by name rows to judge by


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


def measured(rows: Rows, way: str, repeat: float, effort: str, split: Split, given: Any) -> None:
    """Fit without some rows, judge by them, part by part, and keep what comes out."""
    key = {"table": rows.name, "way": way, "repeat": f"{repeat:g}", "effort": effort}
    if any(key.items() <= known.items() for known in records.read(RESULTS)):
        return
    train, tests = split
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = AutoRegressor(effort, random_state=0, n_jobs=1, cv=given.pop("cv", None))
        model.fit(rows.X[train], rows.y[train], **given)
    seconds = time.perf_counter() - start
    for part, test in tests.items():
        dist, y = model.predict_dist(rows.X[test]), rows.y[test]
        low, high = dist.interval(0.9).T
        scores = {
            "coverage": np.mean((low <= y) & (y <= high)),
            "above": np.mean(y > high),
            "crps": dist.crps(y).mean(),
            "rmse": np.sqrt(np.mean((dist.mean - y) ** 2)),
            "seconds": seconds,
        }
        told = {name: f"{value:.5g}" for name, value in scores.items()}
        records.add(RESULTS, FIELDS, [key | {"part": part, "rows": len(test)} | told])
        print(f"{rows.name:28} {way:8} {repeat:<5g} {part:9} {told}", flush=True)


def groups(data: Path, repeats: int, effort: str) -> None:
    """A quarter of the groups left out."""
    tables = list(grouped(data))
    for repeat in range(repeats):
        for rows in tables:
            split = GroupShuffleSplit(repeat + 1, test_size=0.25, random_state=0)
            train, test = list(split.split(rows.X, rows.y, rows.tie))[-1]
            known = rows.tie[train]
            by_hand = list(GroupKFold(5).split(known, groups=known))
            for way, given in (("groups", {"groups": known}), ("by hand", {"cv": by_hand}),
                               ("default", {})):  # fmt: skip
                measured(rows, way, repeat, effort, (train, {"new": test}), given)


def stretches(data: Path, repeats: int, effort: str, only: str | None) -> None:
    """What comes after the first so many rows: all of it, and as much of it as is promised.

    Told of time, an eighth of the rows is promised; asked for all that is left, so much of it as
    a fit may be asked for.
    """
    tables = [rows for rows in timed(data) if only in (None, rows.name)]
    for start in ORIGINS[:repeats]:
        for rows in tables:
            when = np.quantile(rows.tie, start)
            past, future = np.flatnonzero(rows.tie < when), np.flatnonzero(rows.tie >= when)
            moments = rows.tie[past]
            horizon = float(min(np.ptp(moments) / 3, np.ptp(rows.tie) - np.ptp(moments)))
            within = future[rows.tie[future] <= moments.max() + horizon]
            for way, promised, given in (
                ("time", future[: len(past) // 8], {"time": moments}),
                ("horizon", within, {"time": moments, "horizon": horizon}),
                ("default", future[: len(past) // 8], {}),
            ):
                parts = {"all later": future, "promised": promised}
                measured(rows, way, start, effort, (past, parts), given)


def table() -> None:
    """Averages over the repeats."""
    known = pd.DataFrame(records.read(RESULTS))
    by = ["table", "effort", "part", "way"]
    numeric = known.astype({name: float for name in FIELDS[6:]})
    made = numeric.groupby(by).agg(
        repeats=("coverage", "size"), coverage=("coverage", "mean"), least=("coverage", "min"),
        above=("above", "mean"), crps=("crps", "mean"), rmse=("rmse", "mean"),
        seconds=("seconds", "mean"),
    )  # fmt: skip
    print(made.to_string(float_format="{:.4g}".format))


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


def gaps(data: Path, effort: str) -> None:
    """What intervals cover if the column that matters most is empty in all new rows."""
    for place in EMPTIED:
        frame = pd.read_csv(data / f"{place}.csv")
        X, y = numbers(frame.iloc[:, :-1]), frame.iloc[:, -1].to_numpy(float)
        some = np.random.default_rng(0).permutation(len(y))[:700]
        train, test = np.split(some, [2 * len(some) // 3])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = AutoRegressor(effort, random_state=0, n_jobs=1).fit(X[train], y[train])
        shuffled = np.random.default_rng(1).permutation(len(test))
        mixed = [with_column(X[test], c, X[test][shuffled, c]) for c in range(X.shape[1])]
        most = int(np.argmax([model.predict_dist(rows).crps(y[test]).mean() for rows in mixed]))
        ways = {
            "whole": X[test],
            "empty": with_column(X[test], most, np.nan),
            "median": with_column(X[test], most, np.median(X[train, most])),
        }
        told = []
        for way, rows in ways.items():
            dist = model.predict_dist(rows)
            low, high = dist.interval(0.9).T
            inside = np.mean((low <= y[test]) & (y[test] <= high))
            told.append(f"{way} {inside:.0%} (CRPS {dist.crps(y[test]).mean():.3g})")
        print(f"{place:18} {frame.columns[most]:12} {'   '.join(told)}", flush=True)


def with_column(X: Any, column: int, values: Any) -> Any:
    """The same rows with other values of a column."""
    made = X.copy()
    made[:, column] = values
    return made


def main() -> None:
    """Parse and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("groups", "time", "table", "alarms", "found", "gaps"))
    parser.add_argument("--data", type=Path, default=os.environ.get("MVENET_TABLES", "data"))
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--only", help="of the tables in time this one alone")
    parser.add_argument("--tables", type=int, default=500)
    parser.add_argument("--effort", default="medium")
    given = parser.parse_args()
    match given.what:
        case "groups":
            groups(Path(given.data), given.repeats, given.effort)
        case "time":
            stretches(Path(given.data), given.repeats, given.effort, given.only)
        case "table":
            table()
        case "alarms":
            alarms(given.tables)
        case "found":
            found(Path(given.data))
        case "gaps":
            gaps(Path(given.data), given.effort)


if __name__ == "__main__":
    main()
