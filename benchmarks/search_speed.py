"""How fast is a search? The paper's on a Boston training set, and the default one.

    MVENET_DATA=folder python benchmarks/search_speed.py --peers .venv-bench/bin/python

The paper's search is 25 pairs × 10 folds, 1000 epochs of warm-up and 1000 of both. PyTorch's time
for it is its measured cost of a step in each stage, one network at a time, times the steps of the
same 250 trainings; each repeat measures both, one after the other.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.model_selection import KFold

from mvenet import MVERegressorCV, _engine, datasets, recipes
from mvenet._estimator import described
from mvenet._plan import Plan, estimate

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


def default_search(repeats: int, clock: Clock) -> None:
    """What a user waits for: MVERegressorCV() on 500 × 13."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 13))
    y = X[:, 0] + np.sin(X[:, 1]) + 0.3 * np.exp(0.3 * X[:, 2]) * rng.standard_normal(500)
    runs = [fitted(MVERegressorCV(random_state=i), X, y, clock) for i in range(repeats)]
    print(f"MVERegressorCV() on 500 x 13        {told([r['seconds'] for r in runs])} s")
    print(f"its time within the engine          {told([100 * r['share'] for r in runs])} %")
    print(f"its gradient steps                  {runs[0]['steps']:,}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--peers", metavar="PYTHON", help="interpreter with PyTorch")
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    clock = Clock()
    paper_search(given.peers, given.repeats, clock)
    default_search(given.repeats, clock)


if __name__ == "__main__":
    main()
