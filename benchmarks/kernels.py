"""How much of a core's arithmetic the engine uses, over widths and batches.

    python benchmarks/kernels.py          one thread, float32, every instruction set (make bench)

A gradient step of both networks needs so many multiply-adds; its time, over the time that the core
would need for them at its fused multiply-add peak, is the percentage. Peak and step are measured in
turn, several times, in the time that the thread had a core (so a busy neighbour costs only what it
takes from the caches); told are the median and the range.
"""

from __future__ import annotations

import argparse
import os
import time
from itertools import pairwise

import numpy as np
from peak import fma_peak

from mvenet import _engine
from mvenet._models.architecture import Architecture
from mvenet._training import fleet
from mvenet.recipes import Stage, Training

INPUTS, ROWS = 13, 4096
WIDTHS = ((40, 20), (64, 64, 64), (128, 128), (128, 128, 64), (256, 256, 256), (512, 512))
BATCHES = (32, 64, 256, 1024)


def multiply_adds(hidden: tuple[int, ...]) -> int:
    """Of a row and a step, both networks: forward, weights' gradients and, past the first, back."""
    layers = list(pairwise((INPUTS, *hidden, 1)))
    return 2 * (3 * sum(a * b for a, b in layers) - layers[0][0] * layers[0][1])


def step_time(hidden: tuple[int, ...], batch: int, work: float) -> float:
    """CPU seconds of a gradient step, from about ``work`` floating point operations."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((ROWS, INPUTS))
    y = X[:, 0] + 0.3 * rng.standard_normal(ROWS)
    epochs = max(1, round(work / (2 * multiply_adds(hidden) * ROWS)))
    start = time.process_time()
    trained = fleet.train(
        X,
        y,
        None,
        [(np.arange(ROWS), np.arange(0))],
        [fleet.Network((Stage("joint", epochs, 1e-3),), 0)],
        architecture=Architecture(hidden, hidden, "silu"),
        training=Training(batch_size=batch, clip_value=5.0),
    )
    return (time.process_time() - start) / trained.steps


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--work", type=float, default=4e9, help="operations of a measurement")
    options = parser.parse_args()
    for name in _engine.instruction_sets():
        os.environ["MVENET_SIMD"] = name
        print(f"\n{name}: {fma_peak() / 1e9:.0f} GFLOP/s peak of a core")
        print(f"{'units':>16}{'batch':>7}{'µs a step':>12}{'% of peak':>12}{'range':>12}")
        for hidden in WIDTHS:
            for batch in BATCHES:
                times, shares = [], []
                for _ in range(options.repeats):
                    peak = fma_peak(0.1)
                    times.append(step_time(hidden, batch, options.work))
                    shares.append(2 * multiply_adds(hidden) * batch / times[-1] / peak)
                low, share, high = np.percentile(shares, (0, 50, 100)) * 100
                units = "-".join(map(str, hidden))
                print(f"{units:>16}{batch:>7}{1e6 * np.median(times):>12.1f}{share:>12.0f}"
                      f"{f'{low:.0f}-{high:.0f}':>12}")  # fmt: skip


if __name__ == "__main__":
    main()
