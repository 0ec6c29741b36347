"""The mean of a Gaussian process as plain arrays, which a file can hold and the engine can read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvenet import _engine
from mvenet._models.checks import (
    check_array,
    check_fields,
    check_number,
    check_part,
    require,
    shape_of,
)
from mvenet._models.interface import Columns, Inputs
from mvenet._utils.sums import between

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
        return np.concatenate([X, np.log1p(self.rate * between(u, 0.0, 1.0))], axis=1)

    def check(self, n_columns: int) -> None:
        """Raise an error if a fit cannot have made it."""
        check_fields(self, LogColumns)
        shape = shape_of(self.column, 1, "the logarithms of columns are no list")
        check_array(self.column, shape, "column of a logarithm", dtypes=("<i8",), least=0)
        known = not len(self.column) or self.column.max() < n_columns
        require(known, "there is a logarithm of a column too many")
        check_array(self.origin, shape, "origin")
        check_array(self.length, shape, "length")
        require(np.all(self.length != 0), "there is a logarithm of a column without length")
        check_array(self.rate, shape, "rate", above=0.0)


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
        None if no column is there twice.
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

    def evaluate(self, inputs: Inputs) -> Array:
        """Mean of each row, of shape (1, n)."""
        return self.predict(inputs.clipped, inputs.threads)[None]

    def check(self, columns: Columns) -> None:
        """Raise an error if a fit cannot have made it."""
        check_fields(self, Process)
        count, d = shape_of(self.weights, 1, "the weights of points are no list"), columns.plain
        require(count[0] > 0, "a Gaussian process has no points")
        if self.logs is not None:
            check_part(self.logs, LogColumns, d)
            d += len(self.logs.column)
        check_array(self.center, (d,), "center")
        check_array(self.scale, (d,), "scale", above=0.0)
        check_array(self.points, (d, *count), "points")
        check_array(self.weights, count, "weights of points")
        check_array(self.polynomial, (3,), "polynomial", least=0.0)
        check_array(self.slope, (d,), "slope")
        check_number(self.intercept, "intercept")
