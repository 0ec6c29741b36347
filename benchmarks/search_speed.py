"""How fast is a search? The paper's on a Boston training set, and the default one on many tables.

    MVENET_DATA=folder python benchmarks/search_speed.py --peers .venv-bench/bin/python
    MVENET_DATA=folder python benchmarks/search_speed.py --only-tables 500x13 concrete

The paper's search is 25 pairs × 10 folds, 1000 epochs of warm-up and 1000 of both. PyTorch's time
for it is its measured cost of a step in each stage, one network at a time, times the steps of the
same 250 trainings; each repeat measures both, one after the other.

The default search is on all cores, on tables by name (NAME.csv in a folder of MVENET_DATA or
MVENET_TABLES) or on synthetic columns by size; each repeat is another random state. Beside it, if
`league.py install boosting` was run, stands the league's "ten CatBoost" on the same rows and cores,
fitted in turn; inf, if it takes more than eight times as long and is ended.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import time
import warnings
from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory

import league_environments
import numpy as np
from predict import grown, seconds
from profile_search import table
from sklearn.model_selection import KFold

from mvenet import AutoRegressor, MVERegressorCV, _engine, datasets, recipes
from mvenet._estimators.base import described
from mvenet._training.plan import Plan, estimate

HERE = Path(__file__).parent
USUAL = ["500x13", "5000x13", "50000x10", "500000x10", "concrete", "energy", "airfoil"]
COLUMNS = (
    *("table", "seconds", "gradient steps", "ten CatBoost / ours", "file, MB"),
    *("rows a second: mean, std", "90 % interval", "one row, ms", "memory, MB"),
)
CATBOOST = """
import sys, time, numpy as np
from league_methods import fit_ten_catboost
from league_tables import Rows
rows = Rows(**np.load(sys.argv[1]))
start = time.perf_counter()
fit_ten_catboost(rows)
print(time.perf_counter() - start)
"""


class Clock:
    """Time spent within the engine, by standing in for its two functions."""

    def __init__(self) -> None:
        self.seconds = 0.0
        for name in ("train", "predict"):
            setattr(_engine, name, self._timed(getattr(_engine, name)))

    def _timed(self, function):
        def timed(**arguments):
            start = time.perf_counter()
            try:
                return function(**arguments)
            finally:
                self.seconds += time.perf_counter() - start

        return timed


def fitted(model: MVERegressorCV, X: np.ndarray, y: np.ndarray, clock: Clock) -> dict[str, float]:
    """Fit, and tell seconds, those within the engine, and gradient steps."""
    inside, start = clock.seconds, time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the grid's ends
        model.fit(X, y)
    seconds = time.perf_counter() - start
    share = (clock.seconds - inside) / seconds
    return {"seconds": seconds, "share": share, "steps": model.n_steps_}


def pytorch(python: str, seconds: float) -> tuple[float, float]:
    """Seconds of a step in the warm-up and in the joint stage, one network at a time."""
    command = [python, str(HERE / "peers_torch.py"), "--seconds", str(seconds)]
    told = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return 1e-6 * told["one_at_a_time_warmup"], 1e-6 * told["one_at_a_time"]


def told(values: list[float], digits: int = 1) -> str:
    """Median and range."""
    return f"{np.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def paper_search(python: str | None, repeats: int, clock: Clock) -> None:
    """The paper's full search on the first outer training set of Boston."""
    data = datasets.load("boston")
    rows, _ = next(KFold(10, shuffle=True, random_state=1).split(data.X))
    X, y = data.X[rows], data.y[rows]
    model = MVERegressorCV(
        **recipes.PAPER, scale=False, n_members=1, cv=KFold(10, shuffle=True, random_state=5),
        random_state=0,
    )  # fmt: skip
    _, (whole,) = described([model], X, y)
    plan = estimate([Plan(whole.rounds[:1])], threads=1)
    print(
        f"Boston, {len(y)} rows: {plan.networks} trainings, {plan.steps:,} gradient steps instead"
    )
    print(f"of {plan.unshared_steps:,}: a warm-up serves all variance penalties\n")
    each = plan.unshared_steps / 2  # as many in the warm-up as in the joint stage
    times, ratios, gains, shares = [], [], [], []
    for _ in range(repeats):
        two = fitted(model.set_params(n_jobs=None), X, y, clock)
        times.append(two["seconds"])
        shares.append(100 * two["share"])
        if python:
            warmup, joint = pytorch(python, 2.0)
            ratios.append(each * (warmup + joint) / two["seconds"])
            print(f"PyTorch {1e6 * warmup:.0f} and {1e6 * joint:.0f} µs a step", flush=True)
        gains.append(fitted(model.set_params(n_jobs=1), X, y, clock)["seconds"] / two["seconds"])
    print(f"the paper's search, all cores       {told(times)} s")
    if ratios:
        print(f"faster than PyTorch                 {told(ratios, 0)} times")
    print(f"all cores against one thread        {told(gains, 2)} times")
    print(f"time within the engine              {told(shares)} %\n")


def catboost_seconds(X: np.ndarray, y: np.ndarray, most: float) -> float:
    """What ten CatBoost models take, their depth chosen; NaN if CatBoost is not there."""
    if league_environments.missing("boosting"):
        return np.nan
    with TemporaryDirectory() as folder:
        np.savez(f"{folder}/rows.npz", X=X, y=y)
        command = [league_environments.python_of("boosting"), "-c", CATBOOST, f"{folder}/rows.npz"]
        settings = {"cwd": HERE, "capture_output": True, "text": True, "check": True}
        try:
            return float(subprocess.run(command, timeout=most, **settings).stdout)
        except subprocess.TimeoutExpired:
            return np.inf


def default_search(names: list[str], repeats: int) -> None:
    """What a user of AutoRegressor() waits for, keeps on disk and gets a second."""
    print("| " + " | ".join(COLUMNS) + " |\n|" + " --- |" * len(COLUMNS), flush=True)
    for name in names:
        X, y = table(name)
        found: dict[str, list[float]] = defaultdict(list)
        for repeat in range(repeats if len(y) < 20_000 else 1):
            start = time.perf_counter()
            model = AutoRegressor(random_state=repeat).fit(X, y)
            found["seconds"].append(time.perf_counter() - start)
            ours = found["seconds"][-1]
            found["ratio"].append(catboost_seconds(X, y, max(60.0, 8 * ours)) / ours)
            found["steps"].append(model.n_steps_)
            for key, value in served(model, X).items():
                found[key].append(value)
        print(
            f"| {name} ({X.shape[0]:,} × {X.shape[1]}) | {told(found['seconds'])} "
            f"| {np.median(found['steps']):,.0f} | {told(found['ratio'])} "
            f"| {told(found['file'])} | {told(found['moments'], 0)} | {told(found['interval'], 0)} "
            f"| {told(found['row'], 2)} | {told(found['memory'], 0)} |",
            flush=True,
        )


def served(model: AutoRegressor, X: np.ndarray) -> dict[str, float]:
    """Size of the file, rows a second, milliseconds of one row, and megabytes for many rows."""
    with TemporaryDirectory() as folder:
        model.save(f"{folder}/model.mve")
        size = os.path.getsize(f"{folder}/model.mve") / 1e6
    new = X[np.random.default_rng(0).integers(len(X), size=100_000)]
    model.predict(new[:1000], return_std=True)
    start = time.perf_counter()
    model.predict(new, return_std=True)
    middle = time.perf_counter()
    model.predict_interval(new, 0.9)
    end = time.perf_counter()
    single = seconds({"row": lambda: model.predict(new[:1], return_std=True)}, 200)["row"][1]
    return {
        "file": size,
        "moments": len(new) / (middle - start),
        "interval": len(new) / (end - middle),
        "row": 1e3 * single,
        "memory": grown(lambda: model.predict(new, return_std=True)),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--peers", metavar="PYTHON", help="interpreter with PyTorch")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--tables", nargs="*", default=USUAL, help="names or sizes")
    parser.add_argument("--only-tables", nargs="+", help="names or sizes; not the paper's search")
    given = parser.parse_args()
    if not given.only_tables:
        paper_search(given.peers, given.repeats, Clock())
    default_search(given.only_tables or given.tables, given.repeats)


if __name__ == "__main__":
    main()
