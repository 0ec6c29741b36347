"""Columns as a network reads them best: smoothly bounded, and cut into steps.

A step is a stretch between two quantiles of a column: its input rises from 0 to 1 within it and is
flat elsewhere (the piecewise-linear encoding of Gorishniy et al. 2022). A network can then bend at
each quantile, as a tree can, and says the same of everything beyond the largest and the smallest
value that it was trained on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
BOUND = 3.0  # standard deviations at which a bounded column flattens
STEPS = 16  # of a column
MOST_COLUMNS = 1024  # in all: of a wide table each column gets fewer steps


@dataclass(frozen=True)
class Steps:
    """How the columns of a table are encoded.

    Attributes
    ----------
    center, scale : ndarray of shape (d,)
    column : ndarray of shape (s,), int
        The column of each step.
    low, width : ndarray of shape (s,)
        Where the step begins, and its length.
    """

    center: Array
    scale: Array
    column: NDArray[np.int64]
    low: Array
    width: Array

    @staticmethod
    def of(X: NDArray[Any]) -> Steps:
        """Steps between the quantiles of each column of a table (n, d)."""
        X = np.asarray(X, dtype=np.float64)
        scale = X.std(axis=0)
        steps = min(STEPS, max(1, MOST_COLUMNS // X.shape[1]))
        column, low, width = [], [], []
        for number, values in enumerate(np.ascontiguousarray(X.T)):
            edges = np.unique(np.quantile(values, np.linspace(0, 1, steps + 1)))
            column += [number] * (len(edges) - 1)
            low.append(edges[:-1])
            width.append(np.diff(edges))
        return Steps(
            X.mean(axis=0),
            np.where(scale > 0, scale, 1.0),
            np.array(column, dtype=np.int64),
            np.concatenate(low),
            np.concatenate(width),
        )

    def bounded(self, X: NDArray[Any]) -> NDArray[np.float32]:
        """Each column standardised and bent towards ±3 standard deviations, shape (n, d)."""
        z = (X - self.center) / self.scale
        return (z / np.hypot(1.0, z / BOUND)).astype(np.float32)

    def encode(self, X: NDArray[Any]) -> NDArray[np.float32]:
        """Bounded columns, then the steps, shape (n, d + s)."""
        n, d = X.shape
        out = np.empty((n, d + len(self.column)), dtype=np.float32)
        out[:, :d] = self.bounded(X)
        for at, (column, low, width) in enumerate(
            zip(self.column, self.low, self.width, strict=True)
        ):
            np.clip((X[:, column] - low) / width, 0.0, 1.0, out=out[:, d + at], casting="unsafe")
        return out
