"""What ``mvenet doctor`` tells: versions, the instruction set, threads, and a speed check."""

from __future__ import annotations

import os
import platform
import time
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from mvenet import _engine
from mvenet._models.architecture import Architecture
from mvenet._training import fleet
from mvenet._utils.machine import effective_threads
from mvenet.recipes import Stage, Training

PACKAGES = ("numpy", "scipy", "scikit-learn", "joblib", "polars", "pandas", "matplotlib", "skops",
            "onnx", "onnxruntime", "dask", "torch")  # fmt: skip


def diagnose(seconds: float = 5.0) -> dict[str, Any]:
    """Facts about this installation, by name; the last come from training for a few seconds."""
    facts: dict[str, Any] = {
        "mvenet": version("mvenet"),
        "python": platform.python_version(),
        "platform": platform.platform(),
    }
    for name in PACKAGES:
        try:
            facts[name] = version(name)
        except PackageNotFoundError:
            facts[name] = "not installed"
    threads = effective_threads(None)
    facts["instruction sets"] = ", ".join(_engine.instruction_sets())
    facts["instruction set used"] = _engine.instruction_set()
    facts["threads"] = f"{threads} of {os.cpu_count()}"
    one = _microseconds(1, seconds / 2)
    every = _microseconds(threads, seconds / 2)
    facts["one thread"] = f"{one:.1f} µs a gradient step of the paper's network"
    facts["all threads"] = f"{every:.1f} µs, {one / every:.1f} times as fast"
    return facts


def _microseconds(threads: int, seconds: float) -> float:
    """Microseconds a gradient step of the paper's network, trained for about so long."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((455, 13)), rng.standard_normal(455)
    subset = (np.arange(455), np.arange(0))

    def trained(epochs: int) -> tuple[float, int]:
        """Seconds, and gradient steps."""
        stage = Stage("joint", epochs, 1e-3, reg_mean=1e-4, reg_var=1e-3)
        networks = [fleet.Network((stage,), seed) for seed in range(4 * threads)]
        start = time.perf_counter()
        steps = fleet.train(
            X,
            y,
            None,
            [subset],
            networks,
            architecture=Architecture(),
            training=Training(clip_value=5.0),
            threads=threads,
        ).steps
        return time.perf_counter() - start, steps

    trial, _ = trained(epochs=20)  # tells how many take so long
    elapsed, steps = trained(max(20, int(20 * seconds / trial)))
    return 1e6 * elapsed / steps
