"""Searches and a comparison on a Dask cluster of processes: balance, seconds, a worker killed.

    python benchmarks/cluster.py

Each worker has one thread, so two of them are two cores of this machine.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter, defaultdict
from importlib import import_module

import distributed
import joblib
import numpy as np

from mvenet import AutoRegressor, MVERegressorCV, compare_strategies
from mvenet.comparison import strategy_arms


def table(n: int = 1_000) -> tuple[np.ndarray, np.ndarray]:
    """Rows with noise that differs between them."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 8))
    return X, X[:, 0] + np.sin(X[:, 1]) + 0.3 * np.exp(0.3 * X[:, 2]) * rng.standard_normal(n)


def fitted() -> tuple[MVERegressorCV, float]:
    """Fit the paper's search; and the seconds that it took."""
    model = MVERegressorCV(strategy="warmup", n_members=1, n_jobs=1, random_state=0)
    start = time.perf_counter()
    model.fit(*table())
    return model, time.perf_counter() - start


def compared() -> tuple[str, float]:
    """Compare the paper's six arms on five outer folds; and the seconds that it took."""
    arms = strategy_arms(reg_mean=(1e-3, 1e-1), reg_var=(1e-3, 1e-1))
    start = time.perf_counter()
    outcome = compare_strategies(*table(), arms, outer_cv=5, inner_cv=5, n_jobs=1, random_state=0)
    return str(outcome.results), time.perf_counter() - start


def report_comparison() -> None:
    """Print how much faster two workers compare."""
    here, alone = compared()
    print(f"a comparison here, one thread{alone:>13.1f} s")
    for workers in (1, 2):
        options = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": ":0"}
        with (
            distributed.LocalCluster(**options) as cluster,
            distributed.Client(cluster),
            joblib.parallel_config(backend="dask"),
        ):
            there, seconds = compared()
        print(f"{workers} worker(s){seconds:>31.1f} s, {alone / seconds:.2f} times as fast, "
              f"{'the same table' if there == here else 'ANOTHER TABLE'}")  # fmt: skip


def report_automatic(rows: int) -> None:
    """Print how much faster two workers search by themselves, and what each of them does."""
    X, y = table(rows)
    alone = 0.0
    for workers in (1, 2):
        options = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": ":0"}
        with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
            client.run(import_module, "mvenet._estimators.auto")
            before, here = client.run(time.process_time), time.thread_time()
            start = time.perf_counter()
            tasks = distributed.get_task_stream(client)
            with tasks as stream, joblib.parallel_config(backend="dask"):
                AutoRegressor(random_state=0).fit(X, y)
            wall, here = time.perf_counter() - start, time.thread_time() - here
            after = client.run(time.process_time)
        alone = alone or wall
        print(f"automatic, {rows:,} rows, {workers} worker(s){wall:>8.1f} s, "
              f"{alone / wall:.2f} times as fast as one")  # fmt: skip
    spent = {worker: after[worker] - before[worker] for worker in after}
    kinds: dict[str, Counter[str]] = defaultdict(Counter)
    for task in stream.data:
        kinds[distributed.utils.key_split(task["key"])][task["worker"]] += 1
    for kind, counts in sorted(kinds.items()):
        print(f"{kind:<30}{'  '.join(str(counts[worker]) for worker in spent):>12} tasks")
    total = sum(spent.values())
    print(f"processor seconds of the workers {', '.join(f'{s:.1f}' for s in spent.values())}: "
          f"the busier has {max(spent.values()) / total:.0%}; this process {here:.1f}")  # fmt: skip
    print(f"idle {1 - total / (2 * wall):.0%} of two workers' {wall:.1f} s")


def main() -> None:
    """Measure and print."""
    for rows in (1_000, 20_000):
        report_automatic(rows)
    here, alone = fitted()
    print(f"here, one thread{alone:>26.1f} s")
    for workers, kill in ((1, False), (2, False), (2, True)):
        options = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": ":0"}
        with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
            victim = next(iter(client.run(os.getpid).values()))
            if kill:
                threading.Timer(alone / 4, os.kill, (victim, signal.SIGKILL)).start()
            with joblib.parallel_config(backend="dask"):
                there, seconds = fitted()
        same = (
            there.model_.networks.parameters.tobytes() == here.model_.networks.parameters.tobytes()
        )
        print(f"{workers} worker(s){', one killed' if kill else '':<12}{4 * workers:>4} units"
              f"{seconds:>8.1f} s, {alone / seconds:.2f} times as fast, "
              f"{'the same bits' if same else 'OTHER BITS'}")  # fmt: skip
    report_comparison()


if __name__ == "__main__":
    main()
