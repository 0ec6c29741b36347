"""How long the command takes: its help, a fit with search and report, a million predictions.

    python benchmarks/command.py [--rows 1000000] [--repeats 3]

Everything runs as a user types it, in processes of their own; memory is the most that a process
held. polars reads and writes the same file as the measure of what a million rows cost anyway.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

COMMAND = Path(sysconfig.get_path("scripts")) / "mvenet"
POLARS = "import polars, sys; polars.read_csv(sys.argv[1]).write_csv(sys.argv[2])"


def table(rows: int, columns: int) -> pl.DataFrame:
    """Numbers, and a target whose noise depends on them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, columns))
    y = np.sin(2 * X[:, 0]) + X[:, 2] + 0.2 * np.exp(0.5 * X[:, 1]) * rng.normal(size=rows)
    named = {f"x{i}": column for i, column in enumerate(X.T)}
    return pl.DataFrame({**named, "y": y}).with_columns(pl.all().round(5))


def make(rows: int, columns: int, place: Path) -> None:
    """Write a table, in a process of its own: a child's memory counts from its parent's."""
    process = multiprocessing.get_context("spawn").Process(
        target=_make, args=(rows, columns, place)
    )
    process.start()
    process.join()


def _make(rows: int, columns: int, place: Path) -> None:
    table(rows, columns).write_csv(place)


def run(*words: object) -> tuple[float, float]:
    """Seconds and megabytes of one process."""
    start = time.perf_counter()
    process = subprocess.Popen([str(word) for word in words], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{' '.join(map(str, words))} failed")
    return time.perf_counter() - start, usage.ru_maxrss / 1024


def told(name: str, measured: list[tuple[float, float]]) -> float:
    """Print median and range, and return the median's seconds."""
    seconds, megabytes = zip(*measured, strict=True)
    middle = statistics.median(seconds)
    print(
        f"{name:48s} {middle:7.2f} ({min(seconds):.2f} to {max(seconds):.2f}) s, "
        f"{max(megabytes):,.0f} MB",
        flush=True,
    )
    return middle


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000, help="to predict")
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        small, large, model = folder / "small.csv", folder / "large.csv", folder / "model.mve"
        told("mvenet --help", [run(COMMAND, "--help") for _ in range(given.repeats)])
        make(1000, 10, small)
        fit = (COMMAND, "fit", small, "--target", "y", "-o", model, "--report", folder / "r.html")
        told("fit, search and report, 1,000 × 10", [run(*fit) for _ in range(given.repeats)])
        print(f"the report has {(folder / 'r.html').stat().st_size / 1e6:.2f} MB")
        # Five networks by the rule of thumb: what takes the time is the file.
        make(1000, 12, small)
        run(COMMAND, "fit", small, "--target", "y", "-o", model, "--no-search")
        few = (COMMAND, "predict", model, small, "-o", folder / "few.csv")
        told("predict 1,000 × 13", [run(*few) for _ in range(given.repeats)])
        make(given.rows, 12, large)  # thirteen columns with y, which stays as it is
        predict = (COMMAND, "predict", model, large, "-o", folder / "out.csv")
        pairs = [
            (run(sys.executable, "-c", POLARS, large, folder / "copy.csv"), run(*predict))
            for _ in range(given.repeats)
        ]
        rows = f"{given.rows:,} × 13"
        told(f"polars reads and writes {rows}", [a for a, _ in pairs])
        told(f"predict {rows}", [b for _, b in pairs])
        ratios = sorted(b[0] / a[0] for a, b in pairs)
        print(f"ratio {statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})")
        with_interval = run(*predict, "--interval", 0.9)
        told(f"predict {rows} --interval 0.9", [with_interval])
        make(3 * given.rows, 12, large)
        told(f"predict {3 * given.rows:,} × 13", [run(*predict)])


if __name__ == "__main__":
    main()
