"""A table whose noise is one of two, and a fresh one of the same kind."""

from __future__ import annotations

import numpy as np


def table(n=240, seed=0, ratio=5.0):
    """A smooth mean, noise that differs by the sign of a column, one column that says nothing."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 4))
    std = np.where(X[:, 2] > 0, 0.1 * ratio, 0.1)
    return X, np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + std * rng.standard_normal(n), std


X, Y, STD = table()
NEW, NEW_Y, NEW_STD = table(seed=1)
