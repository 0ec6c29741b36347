"""Data with a known truth: the paper's synthetic examples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Sample", "quadratic", "sine"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Sample:
    """Rows drawn from a known distribution.

    Attributes
    ----------
    X : ndarray of shape (n, 1), sorted
    y : ndarray of shape (n,)
    mean, std : ndarray of shape (n,)
        The truth at each row: y is Normal(mean, std²).
    """

    X: Array
    y: Array
    mean: Array
    std: Array


def sine(n: int = 1000, random_state: Any = None) -> Sample:
    """The sine on which training both networks at once fails (section 2 of the paper).

    x is uniform on [0, 10] and y is Normal(0.4 sin(2πx), 0.01²).
    """
    rng = np.random.default_rng(random_state)
    x = np.sort(rng.uniform(0, 10, n))
    return _sample(rng, x, 0.4 * np.sin(2 * np.pi * x), np.full(n, 0.01))


def quadratic(n: int = 1000, random_state: Any = None) -> Sample:
    """The parabola with growing noise on which the variance overfits (section 3 of the paper).

    x is uniform on [-1, 1] and y is Normal(x², (0.1 + 0.2x²)²).
    """
    rng = np.random.default_rng(random_state)
    x = np.sort(rng.uniform(-1, 1, n))
    return _sample(rng, x, x**2, 0.1 + 0.2 * x**2)


def _sample(rng: np.random.Generator, x: Array, mean: Array, std: Array) -> Sample:
    return Sample(x[:, None], rng.normal(mean, std), mean, std)
