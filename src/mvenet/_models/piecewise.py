"""Columns as a network reads them best: smoothly bounded, and cut into pieces.

A piece lies between two quantiles of a column: its input rises from 0 to 1 within it and is flat
elsewhere (the piecewise-linear encoding of Gorishniy et al. 2022). A network can then bend at each
quantile, as a tree can, and is constant beyond the largest and the smallest value that it was
trained on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvenet._models.checks import check_array, check_fields, require, shape_of

Array = NDArray[np.float64]
BOUND = 3.0  # standard deviations at which a bounded column flattens
PIECES = 16  # pieces of a column
LARGE = 1e100
SAME = 1e-6  # share of the range below which two quantiles are taken for one
MOST_COLUMNS = 1024  # in all: of a wide table each column gets fewer pieces


@dataclass(frozen=True)
class Piecewise:
    """How the columns of a table are encoded.

    Attributes
    ----------
    center, scale : ndarray of shape (d,)
    column : ndarray of shape (s,), int
        The column of each piece.
    low, width : ndarray of shape (s,)
        Where the piece begins, and its length.
    """

    center: Array
    scale: Array
    column: NDArray[np.int64]
    low: Array
    width: Array

    @staticmethod
    def of(X: NDArray[Any]) -> Piecewise:
        """Pieces between the quantiles of each column of a table (n, d)."""
        X = np.asarray(X, dtype=np.float64)
        largest = np.abs(X).max(axis=0)
        unit = np.where(largest > LARGE, largest, 1.0)  # squares of larger ones overflow
        scale = unit * (X / unit).std(axis=0)
        pieces = min(PIECES, max(1, MOST_COLUMNS // X.shape[1]))
        column, low, width = [], [], []
        for number, values in enumerate(np.ascontiguousarray(X.T)):
            edges = np.unique(np.quantile(values, np.linspace(0, 1, pieces + 1)))
            # Values that differ by rounding only are one: a piece between them would make a jump.
            apart = np.diff(edges) > SAME * (edges[-1] - edges[0])
            edges = edges[np.append(True, apart)]
            column += [number] * (len(edges) - 1)
            low.append(edges[:-1])
            width.append(np.diff(edges))
        return Piecewise(
            unit * (X / unit).mean(axis=0),
            np.where(scale > 0, scale, 1.0),
            np.array(column, dtype=np.int64),
            np.concatenate(low),
            np.concatenate(width),
        )

    def check(self, n_columns: int) -> None:
        """Raise an error if a fit cannot have made it."""
        check_fields(self, Piecewise)
        check_array(self.center, (n_columns,), "center of the columns")
        check_array(self.scale, (n_columns,), "scale of the columns", above=0.0)
        shape = shape_of(self.column, 1, "the pieces are no list")
        check_array(self.column, shape, "column of a piece", dtypes=("<i8",), least=0)
        known = not len(self.column) or self.column.max() < n_columns
        require(known, "there is a piece of a column too many")
        require((np.diff(self.column) >= 0).all(), "the pieces do not follow the columns")
        check_array(self.low, shape, "low end of a piece")
        check_array(self.width, shape, "width of a piece", above=0.0)

    def bounded(self, X: NDArray[Any]) -> NDArray[np.float32]:
        """Each column standardised and bent towards ±3 standard deviations, shape (n, d)."""
        z = (X - self.center) / self.scale
        return (z / np.hypot(1.0, z / BOUND)).astype(np.float32)

    def encode(self, X: NDArray[Any]) -> NDArray[np.float32]:
        """Bounded columns, then the pieces, shape (n, d + s)."""
        n, d = X.shape
        out = np.empty((n, d + len(self.column)), dtype=np.float32)
        out[:, :d] = self.bounded(X)
        for at, (column, low, width) in enumerate(
            zip(self.column, self.low, self.width, strict=True)
        ):
            np.clip((X[:, column] - low) / width, 0.0, 1.0, out=out[:, d + at], casting="unsafe")
        return out
