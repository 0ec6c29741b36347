"""The mean of a Gaussian process as plain arrays, which a file can hold and the engine can read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvenet import _engine

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LogColumns:
    """Columns a second time, on a logarithmic scale: ``log(1 + rate · u)``.

    Here u is where a value lies between two ends, cut to 0 and 1: ``(x - origin) / length``. A
    length below zero is that of a column whose long tail is on the left.

    Attributes
    ----------
    column : ndarray of shape (b,), int64
        Which columns.
    origin, length, rate : ndarray of shape (b,)
    """

    column: NDArray[np.int64]
    origin: Array
    length: Array
    rate: Array

    def beside(self, X: NDArray[Any]) -> NDArray[Any]:
        """The columns of X, and these."""
        if not len(self.column):
            return X
        u = (X[:, self.column].astype(np.float64) - self.origin) / self.length
        return np.column_stack([X, np.log1p(self.rate * np.clip(u, 0.0, 1.0))])


@dataclass(frozen=True)
class Process:
    """The mean of a Gaussian process that has seen its training rows; see ``engine/process.hpp``.

    The d columns are those that it is given, and most of them again on a logarithmic scale.

    Attributes
    ----------
    center, scale : ndarray of shape (d,)
        A row x is read as ``z = (x - center) / scale``, which has the length scales in it.
    points : ndarray of shape (d, m)
        The training rows, read so.
    weights : ndarray of shape (m,)
        What the kernel of a row and each point counts, in units of y.
    polynomial : ndarray of shape (3,)
        Of the distance, before the exponential.
    slope : ndarray of shape (d,)
        The linear kernel's part of the mean, for z.
    intercept : float
    logs : LogColumns or None
        None if there are none: so were the first.
    """

    center: Array
    scale: Array
    points: Array
    weights: Array
    polynomial: Array
    slope: Array
    intercept: float
    logs: LogColumns | None = None

    def predict(self, X: NDArray[Any], threads: int = 1) -> Array:
        """Mean of each row, of shape (n,)."""
        return _engine.predict_process(
            x=X if self.logs is None else self.logs.beside(X),
            center=self.center,
            scale=self.scale,
            points=self.points,
            weights=self.weights,
            polynomial=self.polynomial,
            slope=self.slope,
            intercept=self.intercept,
            threads=threads,
        )
