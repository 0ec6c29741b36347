"""Predictions beside onnxruntime on the exported model: rows a second, memory, latency.

    python benchmarks/predict.py                   make bench-predict

Ensembles of the paper's network on 13 columns; both in one process and in turn. onnxruntime gets
the exported graph, which computes in float64 (mvenet: float32), and as many threads.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime

import mvenet.onnx
from mvenet import MVERegressor, fleet

INPUTS = 13


def fitted(members: int) -> MVERegressor:
    """An ensemble; how good it is does not matter here."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, INPUTS))
    y = X[:, 0] + 0.3 * rng.standard_normal(500)
    return MVERegressor(n_members=members, epochs=3, warmup_epochs=3, random_state=0).fit(X, y)


def session(model: MVERegressor, threads: int) -> onnxruntime.InferenceSession:
    """Open the exported model in onnxruntime."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model.onnx")
        mvenet.onnx.export(model, path)
        return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def seconds(calls: dict[str, Callable[[], object]], repeats: int) -> dict[str, np.ndarray]:
    """Fastest, median and slowest of each call, in turn."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    return {name: np.percentile(values, (0, 50, 100)) for name, values in times.items()}


def peak_memory() -> float:
    """Largest resident memory of this process so far, in MB (Linux)."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if "VmHWM" in line) * 1024e-6


def grown(call: Callable[[], object]) -> float:
    """Megabytes by which the peak of memory grows during a call."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    before = peak_memory()
    call()
    return peak_memory() - before


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    options = parser.parse_args()
    threads = fleet.effective_threads(None)
    rng = np.random.default_rng(1)
    few = rng.standard_normal((100, INPUTS), dtype=np.float32)
    print(f"One row and a hundred, {threads} threads allowed: microseconds, fastest median slowest")
    for members in (1, 10, 40):
        model, onnx = fitted(members), session(fitted(members), threads)
        for n in (1, 100):
            X = np.ascontiguousarray(few[:n])
            calls = {
                "predict": lambda m=model, X=X: m.predict(X, return_std=True),
                "engine": lambda m=model, X=X: m.networks_.moments(X),
                "onnxruntime": lambda s=onnx, X=X: s.run(["mean", "std"], {"X": X}),
            }
            for name, (low, mid, high) in seconds(calls, 300).items():
                print(f"{members:>4} networks {n:>4} rows  {name:<12}"
                      f"{1e6 * low:>9.0f}{1e6 * mid:>9.0f}{1e6 * high:>10.0f}")  # fmt: skip
    X = rng.standard_normal((options.rows, INPUTS), dtype=np.float32)
    print(f"\n{options.rows:,} rows, {threads} threads: rows a second (median, range), extra MB")
    for members in (1, 10, 40):
        model, onnx = fitted(members), session(fitted(members), threads)

        def in_pieces(s: onnxruntime.InferenceSession = onnx) -> None:
            for start in range(0, len(X), 8192):  # whole, it would need hundreds of bytes a network
                s.run(["mean", "std"], {"X": X[start : start + 8192]})

        calls = {
            "mean, std": lambda m=model: m.predict(X, return_std=True),
            "mean": lambda m=model: m.predict(X),
            "onnxruntime": in_pieces,
        }
        found = seconds(calls, 3)
        for name, (low, mid, high) in found.items():
            extra = grown(calls[name])
            print(f"{members:>4} networks  {name:<12}{options.rows / mid:>12,.0f}"
                  f"  ({options.rows / high:,.0f} to {options.rows / low:,.0f})"
                  f"{extra:>8.0f} MB")  # fmt: skip


if __name__ == "__main__":
    main()
