"""Microseconds per network and gradient step: mvenet beside PyTorch and JAX, in one run.

The paper's network (13 inputs, 40 and 20 units, twice), batch 32, joint stage, 455 rows.

    python benchmarks/speed.py                                    mvenet alone
    python benchmarks/speed.py --peers .venv-bench/bin/python     with the peers (make bench)

Every measurement is repeated, interleaved with the others, and given as median and range.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import time
from pathlib import Path

import numpy as np
from peak import fma_peak

from mvenet import MVERegressor, _engine
from mvenet._models.architecture import Architecture
from mvenet._training import fleet
from mvenet._utils.machine import effective_threads
from mvenet.recipes import Stage, Training

HERE = Path(__file__).parent
ROWS, INPUTS, BATCH = 455, 13, 32
FLOPS_PER_ROW = 2 * 7000  # what the mathematics of both networks needs


def table(n: int = ROWS, d: int = INPUTS) -> tuple[np.ndarray, np.ndarray]:
    """Rows with a signal in two columns and noise in a third."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    return X, X[:, 0] + np.sin(X[:, 1]) + 0.3 * np.exp(0.3 * X[:, 2]) * rng.standard_normal(n)


def joint(networks: int, threads: int, seconds: float, rows: int = ROWS) -> float:
    """Seconds per network and step of a fleet in the joint stage; long enough to trust."""
    X, y = table(rows)
    epochs = 20

    def run(epochs: int) -> float:
        stage = Stage("joint", epochs, 1e-3, reg_mean=1e-4, reg_var=1e-3)
        members = [fleet.Network((stage,), seed) for seed in range(networks)]
        subset = (np.arange(rows), np.arange(0))
        start = time.perf_counter()
        result = fleet.train(
            X,
            y,
            None,
            [subset],
            members,
            architecture=Architecture(),
            training=Training(clip_value=5.0),
            threads=threads,
        )
        return (time.perf_counter() - start) / result.steps

    per_step = run(epochs)
    epochs = max(epochs, int(seconds / (per_step * networks * -(-rows // BATCH))))
    return run(epochs)


def peers(python: str, seconds: float) -> dict[str, float]:
    """Microseconds per network and step of each peer, measured in their own environment."""
    found: dict[str, float] = {}
    for script, names in {
        "peers_torch.py": {
            "one_at_a_time": "PyTorch, one at a time",
            "stacked": "PyTorch, 250 stacked (bmm)",
        },
        "peers_jax.py": {
            "one_at_a_time": "JAX, one network, loop compiled",
            "vmapped": "JAX, 250 under vmap, compiled scan",
        },
    }.items():
        command = [python, str(HERE / script), "--seconds", str(seconds)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"{script} did not run: {done.stderr.strip().splitlines()[-1]}")
            continue
        result = json.loads(done.stdout)
        found |= {label: float(result[key]) for key, label in names.items()}
    return found


def user_times() -> None:
    """What a user feels: one fit, and prediction."""
    X, y = table(500)
    fits = []
    for seed in range(5):
        start = time.perf_counter()
        model = MVERegressor(random_state=seed).fit(X, y)
        fits.append(time.perf_counter() - start)
    print("\nMVERegressor().fit on 500 x 13:", end=" ")
    print(f"{np.median(fits):.2f} s ({min(fits):.2f} to {max(fits):.2f})")
    big = np.random.default_rng(1).standard_normal((1_000_000, INPUTS))
    model.set_params(n_jobs=1)
    rates = []
    for _ in range(5):
        start = time.perf_counter()
        model.predict(big, return_std=True)
        rates.append(len(big) / (time.perf_counter() - start) / 1e6)
    print(
        f"predict, one thread: {np.median(rates):.2f} million rows a second "
        f"({min(rates):.2f} to {max(rates):.2f})"
    )


def main() -> None:
    """Measure everything side by side and print it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--peers", metavar="PYTHON", help="interpreter with PyTorch and JAX")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="length of one measurement")
    arguments = parser.parse_args()
    threads = effective_threads(None)
    times: dict[str, list[float]] = {}
    peaks, shares = [], []
    for repeat in range(arguments.repeats):
        flops = FLOPS_PER_ROW * ROWS / -(-ROWS // BATCH)  # a mean step: the last batch is short
        for _ in range(5):  # close together, so that both meet the same neighbours
            peak = fma_peak(arguments.seconds / 10)
            one = joint(1, 1, arguments.seconds / 10)
            peaks.append(peak)
            shares.append(flops / one / peak)
            times.setdefault("mvenet, one thread", []).append(1e6 * one)
        all_threads = 1e6 * joint(250, threads, arguments.seconds)
        times.setdefault(f"mvenet, 250 networks, {threads} threads", []).append(all_threads)
        if arguments.peers:
            for label, value in peers(arguments.peers, arguments.seconds).items():
                times.setdefault(label, []).append(value)
        print(f"round {repeat + 1} of {arguments.repeats} done", flush=True)
    fastest = np.median(times[f"mvenet, 250 networks, {threads} threads"])
    print(f"\nInstruction set {_engine.instruction_set()}, {threads} cores.")
    print(f"{'microseconds per network and step':<40}{'median':>10}{'range':>20}{'ratio':>9}")
    for label, values in times.items():
        spread = f"{min(values):.2f} to {max(values):.2f}"
        print(
            f"{label:<40}{np.median(values):>10.2f}{spread:>20}{np.median(values) / fastest:>8.1f}x"
        )
    print(
        f"fused multiply-add peak of one core: {np.median(peaks) / 1e9:.1f} GFLOP/s; "
        f"mvenet on one thread reaches {100 * np.median(shares):.1f} % of it "
        f"({100 * min(shares):.1f} to {100 * max(shares):.1f})"
    )
    user_times()


if __name__ == "__main__":
    main()
