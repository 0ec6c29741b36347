"""Predictions beside onnxruntime and PyTorch: rows a second, memory, latency.

    python benchmarks/predict.py                   make bench-predict

Ensembles of the paper's network on 13 columns; all in one process and in turn. onnxruntime gets
the exported graph, which computes in float64 (mvenet: float32), PyTorch the same networks in
float32 (if it is installed), and both as many threads. Then what ``AutoRegressor()`` finds. Of a
busy machine the time that the process had a core says more than the clock: it is told as well.
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
from mvenet import AutoRegressor, MVERegressor
from mvenet._utils.machine import effective_threads

INPUTS = 13
PIECE = 8192  # rows that the others are given at once: whole, they need kilobytes a row


def table(n: int = 500) -> tuple[np.ndarray, np.ndarray]:
    """Rows to train on."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, INPUTS))
    return X, X[:, 0] + 0.3 * rng.standard_normal(n)


def fitted(members: int) -> MVERegressor:
    """An ensemble; how good it is does not matter here."""
    settings = {"strategy": "warmup", "epochs": 3, "warmup_epochs": 3, "random_state": 0}
    model = MVERegressor(n_members=members, **settings)
    return model.fit(*table())


def session(model: MVERegressor, threads: int) -> onnxruntime.InferenceSession:
    """Open the exported model in onnxruntime."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model.onnx")
        mvenet.onnx.export(model, path)
        return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def in_torch(model: MVERegressor, threads: int) -> Callable[[np.ndarray], object] | None:
    """The same networks as modules, and the moments of their mixture; None without PyTorch."""
    try:
        import torch
    except ImportError:
        return None
    from mvenet.torch import from_engine

    torch.set_num_threads(threads)
    modules = [module.float() for module in from_engine(model).model_.networks]

    def moments(X: np.ndarray) -> object:
        with torch.inference_mode():
            told = [module(torch.from_numpy(X)) for module in modules]
            means, logs = (torch.stack(part).squeeze(-1) for part in zip(*told, strict=True))
            return means.mean(0), (logs.exp().mean(0) + means.var(0, unbiased=False)).sqrt()

    return moments


def in_pieces(call: Callable[[np.ndarray], object], X: np.ndarray) -> None:
    """Call with some rows after the other."""
    for start in range(0, len(X), PIECE):
        call(X[start : start + PIECE])


def seconds(
    calls: dict[str, Callable[[], object]], repeats: int, warm: bool = False
) -> dict[str, np.ndarray]:
    """Fastest, median and slowest of each call, in turn; ``warm`` ones follow one of their own."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            if warm:  # else the caches, and perhaps a core, are those of whom it comes after
                call()
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


def latency(members: int, few: np.ndarray, threads: int) -> None:
    """Print how long one row and a hundred take."""
    model = fitted(members)
    onnx, torch = session(model, threads), in_torch(model, threads)
    for n in (1, 100):
        X = np.ascontiguousarray(few[:n])
        calls = {
            "predict": lambda X=X: model.predict(X, return_std=True),
            "engine": lambda X=X: model.model_.networks.moments(X),
            "onnxruntime": lambda X=X: onnx.run(["mean", "std"], {"X": X}),
        }
        if torch:
            calls["PyTorch"] = lambda X=X: torch(X)
        for name, (low, mid, high) in seconds(calls, 300, warm=True).items():
            print(f"{members:>4} networks {n:>4} rows  {name:<12}"
                  f"{1e6 * low:>9.0f}{1e6 * mid:>9.0f}{1e6 * high:>10.0f}")  # fmt: skip


def throughput(title: str, calls: dict[str, Callable[[], object]], rows: int) -> None:
    """Print rows a second by the clock, microseconds of a core a row, and memory."""
    for name, (low, mid, high) in seconds(calls, 3).items():
        start = time.process_time()
        extra = grown(calls[name])
        core = 1e6 * (time.process_time() - start) / rows
        span = f"({rows / high:,.0f} to {rows / low:,.0f})"
        print(f"{title:<24}{name:<12}{rows / mid:>12,.0f}  {span:<24}"
              f"{core:>7.2f} µs{extra:>6.0f} MB", flush=True)  # fmt: skip


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--only-rows", action="store_true", help="leave out one row and a hundred")
    options = parser.parse_args()
    threads, rows = effective_threads(None), options.rows
    rng = np.random.default_rng(1)
    if not options.only_rows:
        few = rng.standard_normal((100, INPUTS), dtype=np.float32)
        print(f"One row and a hundred, {threads} threads allowed: µs, fastest median slowest")
        for members in (1, 10, 40):
            latency(members, few, threads)
    X = rng.standard_normal((rows, INPUTS), dtype=np.float32)
    y = X[:, 0].astype(np.float64)
    print(
        f"\n{rows:,} rows, {threads} threads: rows a second (median, range), core a row, extra MB"
    )
    for members in (1, 10, 40):
        model = fitted(members)
        onnx, torch = session(model, threads), in_torch(model, threads)
        calls: dict[str, Callable[[], object]] = {
            "mean, std": lambda m=model: m.predict(X, return_std=True),
            "mean": lambda m=model: m.predict(X),
            "onnxruntime": lambda s=onnx: in_pieces(lambda x: s.run(["mean", "std"], {"X": x}), X),
        }
        if torch:
            calls["PyTorch"] = lambda call=torch: in_pieces(call, X)
        throughput(f"{members} networks", calls, rows)
    some = X[: rows // 10], y[: rows // 10]
    calls = {
        "interval": lambda: model.predict_interval(some[0], 0.9),
        "quantiles": lambda: model.predict_quantiles(some[0], [0.1, 0.5, 0.9]),
        "logpdf": lambda: model.logpdf(*some),
    }
    throughput("40 networks, a tenth", calls, len(some[1]))
    for n in (500, 5000):
        best = AutoRegressor(random_state=0).fit(*table(n))
        calls = {"mean, std": lambda m=best: m.predict(some[0], return_std=True)}
        throughput(f"CV(), {n} rows: a tenth", calls, len(some[1]))


if __name__ == "__main__":
    main()
