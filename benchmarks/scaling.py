"""Does the cost grow in proportion? Rows, networks, epochs, widths, threads, and the memory.

    python benchmarks/scaling.py

Time is given per unit of work (row and epoch of one network), so that a linear cost is a flat
column; of one thread it is the time that the thread had a core, of several that on the wall.
Memory is the growth of the process's peak, in a process of its own for each size, beside the bytes
that parameters, moments, activations and one copy of the data take.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np

from mvenet._models.architecture import Architecture
from mvenet._training import fleet
from mvenet._utils.machine import effective_threads
from mvenet.recipes import Stage, Training

INPUTS = 13
THREADS = effective_threads(None)


def train(rows: int, networks: int, epochs: int, hidden: tuple[int, ...], threads: int) -> float:
    """Seconds of one fleet in the joint stage."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, INPUTS), dtype=np.float32)
    y = X[:, 0] + 0.1 * rng.standard_normal(rows)
    stage = Stage("joint", epochs, 1e-3, reg_mean=1e-4, reg_var=1e-3)
    members = [fleet.Network((stage,), seed) for seed in range(networks)]
    clock = time.process_time if threads == 1 else time.perf_counter
    start = clock()
    fleet.train(
        X,
        y,
        None,
        [(np.arange(rows), np.arange(0))],
        members,
        architecture=Architecture(hidden, hidden),
        training=Training(clip_value=5.0),
        threads=threads,
    )
    return clock() - start


def parameters(hidden: tuple[int, ...]) -> int:
    """Parameters of both networks."""
    sizes = (INPUTS, *hidden, 1)
    return 2 * sum(b * (a + 1) for a, b in pairwise(sizes))


def best(repeats: int, *arguments: object) -> float:
    """Fastest of a few runs: noise only ever adds."""
    return min(train(*arguments) for _ in range(repeats))  # type: ignore[arg-type]


def report(title: str, cases: list[tuple[str, float, float]]) -> None:
    """Print seconds and cost per unit, relative to the first line."""
    print(f"\n{title}")
    print(f"{'':>14}{'seconds':>12}{'per unit, ns':>16}{'relative':>12}")
    first = 1e9 * cases[0][1] / cases[0][2]
    for label, seconds, units in cases:
        unit = 1e9 * seconds / units
        print(f"{label:>14}{seconds:>12.4f}{unit:>16.2f}{unit / first:>12.2f}")


def report_rows(repeats: int, hidden: tuple[int, ...]) -> None:
    """Print what a row costs, in all and in a further epoch, which neither measures nor copies."""
    print("\nRows (one network, one thread; ns a row and epoch)")
    print(f"{'':>16}{'in all':>10}{'relative':>10}{'further epoch':>16}{'relative':>10}")
    first = None
    for rows in (10**4, 10**3, 10**5, 10**6, 10**7):
        epochs = max(1, 10**6 // rows)
        once, twice = (best(repeats, rows, 1, n * epochs, hidden, 1) for n in (1, 2))
        costs = [1e9 * seconds / (rows * epochs) for seconds in (once, twice - once)]
        first = first or costs
        shares = [cost / start for cost, start in zip(costs, first, strict=True)]
        print(f"{f'{rows:,} rows':>16}{costs[0]:>10.1f}{shares[0]:>10.2f}"
              f"{costs[1]:>16.1f}{shares[1]:>10.2f}")  # fmt: skip


def memory(networks: int, rows: int) -> tuple[float, float]:
    """Growth of the peak in MB, and the bytes that are needed, in MB."""
    code = f"import scaling, json; print(json.dumps(scaling.grown({networks}, {rows})))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=sys.path[0]
    )
    grown = json.loads(done.stdout)
    units = 2 * sum((40, 20, 1))
    activations = THREADS * 4 * (3 * units * 32 + 2 * 13 * 32)  # value, slope, transposed; inputs
    moments = THREADS * 3 * 4 * parameters((40, 20))  # with the gradient, of the networks in work
    needed = networks * 4 * parameters((40, 20)) + moments + activations + 8 * rows * (INPUTS + 1)
    return grown, needed / 1e6


def grown(networks: int, rows: int) -> float:
    """In a fresh process: megabytes by which the peak grows while a fleet is trained."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, INPUTS))
    y = X[:, 0].copy()
    members = [fleet.Network((Stage("joint", 1, 1e-3),), seed) for seed in range(networks)]
    subset = (np.arange(rows), np.arange(0))
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    before = peak_memory()
    fleet.train(
        X,
        y,
        None,
        [subset],
        members,
        architecture=Architecture(),
        training=Training(),
        threads=THREADS,
    )
    return peak_memory() - before


def peak_memory() -> float:
    """Largest resident memory of this process so far, in MB (Linux)."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if "VmHWM" in line) * 1024e-6


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--only-rows", action="store_true", help="nothing but the rows")
    options = parser.parse_args()
    paper = (40, 20)
    report_rows(3, paper)
    if options.only_rows:
        return
    cases = [(f"{n} epochs", best(3, 1000, 1, n, paper, 1), 1000 * n) for n in (10, 100, 1000)]
    report("Epochs (1000 rows, one network, one thread)", cases)
    cases = [
        (f"{n} networks", best(3, 1000, n, 20, paper, THREADS), 1000 * 20 * n)
        for n in (1, 2, 10, 100, 1000, 10_000)
    ]
    report(f"Networks (1000 rows, 20 epochs, {THREADS} threads)", cases)
    cases = []
    for width in (20, 40, 64, 128, 256, 512):
        seconds = best(3, 1000, 1, 5, (width, width), 1)
        cases.append((f"width {width}", seconds, 1000 * 5 * parameters((width, width))))
    report("Widths (1000 rows, one network, one thread; unit: row, epoch and parameter)", cases)
    cases = [
        (f"{n} threads", best(3, 10**6, 1, 1, (128, 128), n), 10**6)
        for n in range(1, 2 * THREADS + 1)
        if n <= 2 or n % 2 == 0
    ]
    report("Threads (one network of 128-128, 1,000,000 rows, one epoch; on the wall)", cases)
    print("\nMemory of a fleet, MB")
    print(f"{'networks':>10}{'rows':>12}{'grown':>10}{'needed':>10}{'ratio':>8}")
    for networks, rows in ((1, 10**5), (1000, 1000), (10_000, 1000), (100, 10**5), (1, 10**7)):
        have, need = memory(networks, rows)
        print(f"{networks:>10}{rows:>12,}{have:>10.1f}{need:>10.1f}{have / need:>8.2f}")


if __name__ == "__main__":
    main()
