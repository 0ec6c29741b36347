"""How fast is a search? The paper's on a Boston training set, and the default one.

    MVENET_DATA=folder python benchmarks/search_speed.py --peers .venv-bench/bin/python

The paper's search is 25 pairs × 10 folds, 1000 epochs of warm-up and 1000 of both. PyTorch's time
for it is its measured cost of a step in each stage, one network at a time, times the steps of the
same 250 trainings; each repeat measures both, one after the other.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import time
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from sklearn.model_selection import KFold

from mvenet import AutoRegressor, MVERegressorCV, _engine, datasets, recipes
from mvenet._estimators.base import described
from mvenet._training.plan import Plan, estimate

HERE = Path(__file__).parent


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


def default_search(sizes: list[str], repeats: int) -> None:
    """What a user of AutoRegressor() waits for, keeps on disk and gets a second."""
    for size in sizes:
        n, d = (int(part) for part in size.split("x"))
        rng = np.random.default_rng(0)
        X = rng.standard_normal((n, d))
        y = X[:, 0] + np.sin(X[:, 1]) + 0.3 * np.exp(0.3 * X[:, 2]) * rng.standard_normal(n)
        seconds, megabytes, rates = [], [], []
        for repeat in range(repeats if n < 20_000 else 1):
            start = time.perf_counter()
            model = AutoRegressor(random_state=repeat).fit(X, y)
            seconds.append(time.perf_counter() - start)
            with TemporaryDirectory() as folder:
                model.save(f"{folder}/model.mve")
                megabytes.append(os.path.getsize(f"{folder}/model.mve") / 1e6)
            new = rng.standard_normal((100_000, d))
            start = time.perf_counter()
            model.predict(new, return_std=True)
            rates.append(len(new) / (time.perf_counter() - start))
        print(
            f"AutoRegressor() on {n:,} x {d}: {told(seconds)} s, {model.n_steps_:,} steps; "
            f"file {told(megabytes)} MB; {told(rates, 0)} rows predicted a second",
            flush=True,
        )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--peers", metavar="PYTHON", help="interpreter with PyTorch")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--sizes", nargs="*", default=["500x13", "5000x13", "50000x10"])
    parser.add_argument("--only-sizes", action="store_true", help="leave out the paper's search")
    given = parser.parse_args()
    if not given.only_sizes:
        paper_search(given.peers, given.repeats, Clock())
    default_search(given.sizes, given.repeats)


if __name__ == "__main__":
    main()
