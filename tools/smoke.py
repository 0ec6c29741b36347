"""Fit, predict, save and load with an installed mvenet: python tools/smoke.py [needs]."""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from pathlib import Path

import numpy as np

import mvenet


def main() -> None:
    """Fail if anything that a user meets first is broken."""
    if Path(mvenet.__file__).is_relative_to(Path(__file__).parents[1]):
        sys.exit(f"this is the source, not an installation: {mvenet.__file__}")
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (200, 2))
    y = X[:, 0] + (0.1 + 0.3 * (X[:, 1] > 0)) * rng.standard_normal(200)
    model = mvenet.MVERegressor(n_members=2, random_state=0).fit(X, y)
    mean, std = model.predict(X, return_std=True)
    low, high = model.predict_interval(X, coverage=0.9).T
    share = float(np.mean((low <= y) & (y <= high)))
    if not (np.isfinite(mean).all() and (std > 0).all() and 0.7 < share < 1):
        sys.exit(f"a 90 % interval covers {share:.0%} of the training rows")
    mvenet.MVERegressorCV([1e-2], [1e-1, 1.0], cv=3, random_state=0).fit(X, y)
    model = mvenet.AutoRegressor(cv=3, random_state=0).fit(X, y)
    mean = model.predict(X)
    if importlib.util.find_spec("skops"):
        with tempfile.TemporaryDirectory() as folder:
            model.save(Path(folder) / "model.mve")
            again = mvenet.load(Path(folder) / "model.mve").predict(X)
        if not (again == mean).all():
            sys.exit("a model that was loaded predicts something else")
    version = ".".join(map(str, sys.version_info[:3]))
    print(
        f"mvenet {mvenet.__version__}, Python {version}, NumPy {np.__version__}: "
        f"{mvenet._training.fleet._engine.instruction_set()}, 90 % interval covers {share:.0%}"
    )


if __name__ == "__main__":
    main()
