"""Where the seconds of an automatic search are: by step, with processor seconds and gradient steps.

    python benchmarks/profile_search.py [500x13 5000x13 concrete …] [--threads 2] [--repeats 3]

A size stands for synthetic columns, a name for NAME.csv in one of the folders that MVENET_DATA and
MVENET_TABLES name. A second of a step is a second in which it and nothing below it ran, so that the
lines add up. Idle is what the cores could have computed meanwhile and did not. On a machine that
others use, too, compare processor seconds and gradient steps.
"""

from __future__ import annotations

import argparse
import functools
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import league_tables
import numpy as np

from mvenet import AutoRegressor
from mvenet._automatic import baselines, detection, free_shape, refit, search
from mvenet._automatic.out_of_fold import OutOfFold
from mvenet._automatic.plan import SearchPlan
from mvenet._models.piecewise import Piecewise
from mvenet._training import plan as rounds
from mvenet._utils.machine import effective_threads

USUAL = ("500x13", "5000x13", "50000x10", "concrete", "airfoil", "energy")
REST = "checks and the rest"


@dataclass
class Spent:
    """What a step took."""

    seconds: float = 0.0
    processor: float = 0.0
    gradient_steps: int = 0


@dataclass
class Clock:
    """Time by step: always that of the innermost step which is being done."""

    spent: dict[str, Spent] = field(default_factory=lambda: defaultdict(Spent))
    doing: list[str] = field(default_factory=lambda: [REST])
    since: tuple[float, float] = (0.0, 0.0)

    def __post_init__(self) -> None:
        self.since = time.perf_counter(), time.process_time()

    def tick(self) -> Spent:
        """Count what has passed for the step that is being done."""
        now = time.perf_counter(), time.process_time()
        spent = self.spent[self.doing[-1]]
        spent.seconds += now[0] - self.since[0]
        spent.processor += now[1] - self.since[1]
        self.since = now
        return spent

    @contextmanager
    def during(self, step: str) -> Iterator[Spent]:
        """Count the block for a step."""
        self.tick()
        self.doing.append(step)
        try:
            yield self.spent[step]
        finally:
            self.tick()
            self.doing.pop()


class Watched:
    """The search with a clock at its steps; as it was before, when the block ends."""

    def __init__(self) -> None:
        self.clock = Clock()
        self._steps: dict[int, tuple[str, Any]] = {}  # by request, which is kept so that its id is
        self._before: list[tuple[Any, str, Any]] = []

    def __enter__(self) -> Clock:
        self._time(Piecewise, "of", "encoding")
        self._time(Piecewise, "encode", "encoding")
        self._time(search._State, "add", "out-of-fold predictions")
        self._time(refit._LearningCurve, "of", "out-of-fold predictions")
        self._time(OutOfFold, "blend", "blend and mixture")
        self._time(OutOfFold, "mix", "blend and mixture")
        self._time(free_shape, "fit", "free shapes")
        self._time(search, "composed", "refit: the rest")
        self._time(search, "_known_rows", "known rows")
        self._time(detection, "findings", "dependence between rows")
        self._time(baselines, "begin", "linear, trees, process")
        self._replace(rounds, "_begin", self._training)
        for name in ("requests", "noise_requests", "curve_requests", "member_requests"):
            self._replace(SearchPlan, name, functools.partial(self._described, name))
        return self.clock

    def __exit__(self, *_: object) -> None:
        self.clock.tick()
        for owner, name, before in reversed(self._before):
            setattr(owner, name, before)

    def _replace(self, owner: Any, name: str, made: Callable[[Any], Any]) -> None:
        before = vars(owner)[name]
        self._before.append((owner, name, before))
        inner = before.__func__ if isinstance(before, staticmethod) else before
        around = functools.wraps(inner)(made(inner))
        setattr(owner, name, staticmethod(around) if inner is not before else around)

    def _time(self, owner: Any, name: str, step: str) -> None:
        def made(inner: Callable[..., Any]) -> Callable[..., Any]:
            def timed(*args: Any, **named: Any) -> Any:
                with self.clock.during(step):
                    return inner(*args, **named)

            return timed

        self._replace(owner, name, made)

    def _training(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        def begin(requests: Any, *args: Any) -> Any:
            finish = inner(requests, *args)

            def timed(progress: Any) -> Any:
                with self.clock.during(self._steps[id(requests[0])][0]) as spent:
                    whole = finish(progress)
                spent.gradient_steps += whole.steps
                return whole

            return timed

        return begin

    def _described(self, name: str, inner: Callable[..., Any]) -> Callable[..., Any]:
        def noted(plan: SearchPlan, *args: Any, **named: Any) -> Any:
            found = inner(plan, *args, **named)
            step = _step(name, plan, args[0])
            self._steps |= {id(request): (step, request) for request in found}
            return found

        return noted


def _step(name: str, plan: SearchPlan, kinds: Any) -> str:
    """Of the networks that a method of the plan asks for."""
    of = {
        "noise_requests": "noise networks",
        "curve_requests": "refit: learning curve",
        "member_requests": "refit: networks",
    }
    if name in of:
        return of[name]
    if kinds and all(kind.joint for kind in kinds):
        return "joint networks"
    tiers = (i for i, tier in enumerate(plan.effort.tiers) if set(kinds) <= set(tier))
    tier = next(tiers, None)
    return "means, second starts" if tier is None else f"means, tier {tier}"


def table(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Columns and target: synthetic of a size, or of a file."""
    if name[0].isdigit():
        n, d = (int(part) for part in name.split("x"))
        rng = np.random.default_rng(0)
        X = rng.standard_normal((n, d))
        return X, X[:, 0] + np.sin(X[:, 1]) + 0.3 * np.exp(0.3 * X[:, 2]) * rng.standard_normal(n)
    rows = league_tables.load(league_tables.BY_NAME[name])
    return rows.X, rows.y


def profile(name: str, effort: str, threads: int | None, repeats: int) -> str:
    """Fit, and tell where the time went: the repeat of fewest processor seconds."""
    X, y = table(name)
    best = None
    for _ in range(repeats):
        with warnings.catch_warnings(), Watched() as clock:
            warnings.simplefilter("ignore")
            AutoRegressor(effort, random_state=0, n_jobs=threads).fit(X, y)
        if best is None or _total(clock).processor < _total(best).processor:
            best = clock
    return told(f"{name} ({len(y):,} × {X.shape[1]})", best, effective_threads(threads))


def _total(clock: Clock) -> Spent:
    every = clock.spent.values()
    return Spent(*(sum(getattr(s, f) for s in every) for f in vars(Spent())))


def told(title: str, clock: Clock, threads: int) -> str:
    """A line for each step, the longest first."""
    total = _total(clock)
    lines = [f"{title:<28}{'seconds':>9}{'processor':>11}{'share':>8}{'idle':>8}{'steps':>12}"]
    steps = sorted(clock.spent.items(), key=lambda item: -item[1].processor)
    for name, spent in [*steps, ("total", total)]:
        idle = max(0.0, threads * spent.seconds - spent.processor)
        count = f"{spent.gradient_steps:,}" if spent.gradient_steps else ""
        lines.append(
            f"  {name:<26}{spent.seconds:9.2f}{spent.processor:11.2f}"
            f"{spent.processor / total.processor:8.1%}{idle:8.2f}{count:>12}"
        )
    return "\n".join(lines)


def main() -> None:
    """Print where the time goes, table by table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("tables", nargs="*", default=USUAL, help="sizes or names")
    parser.add_argument("--effort", default="medium")
    parser.add_argument("--threads", type=int, help="all cores, if not given")
    parser.add_argument("--repeats", type=int, default=1)
    given = parser.parse_args()
    X, y = table("60x3")
    AutoRegressor("low", cv=2, random_state=0).fit(X, y)  # imports, once
    for name in given.tables:
        print(profile(name, given.effort, given.threads, given.repeats), flush=True)


if __name__ == "__main__":
    main()
