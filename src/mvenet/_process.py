"""The mean of a Gaussian process as plain arrays, which a file can hold and the engine can read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvenet import _engine

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Process:
    """The mean of a Gaussian process that has seen its training rows; see ``engine/process.hpp``.

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
    """

    center: Array
    scale: Array
    points: Array
    weights: Array
    polynomial: Array
    slope: Array
    intercept: float

    def predict(self, X: NDArray[Any], threads: int = 1) -> Array:
        """Mean of each row, of shape (n,)."""
        return _engine.predict_process(
            x=X,
            center=self.center,
            scale=self.scale,
            points=self.points,
            weights=self.weights,
            polynomial=self.polynomial,
            slope=self.slope,
            intercept=self.intercept,
            threads=threads,
        )
