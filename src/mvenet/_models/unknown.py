"""Cells that are not known: taken from training rows like this one, and widened by how they differ.

A row whose cell is unknown has the distribution of a model without that column: the average over
what the cell may be. It is predicted several times, each time with the cells of another training
row (a donor) that is like it where it is known; the mean is the average, and how far these
predictions lie apart widens it. Nothing is trained for it, and any cells may be unknown.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mvenet._models.checks import check_array, require, shape_of

Array = NDArray[np.float64]
DONORS = 256  # training rows that are kept
MOST_CELLS = 100_000  # of them in all
DRAWN = 16  # donors of a row
GOLDEN = 0.6180339887498949  # whose multiples, without their whole part, are spread evenly


def donors_of(X: NDArray[np.float64], y: Array) -> Array:
    """Training rows to take cells from: evenly spaced in the order of y.

    So are the first few of them, whatever their number: those of a row of which nothing is known.
    """
    most = max(DRAWN, min(DONORS, MOST_CELLS // max(1, X.shape[1])))
    order = np.argsort(y, kind="stable")
    few = np.unique(np.linspace(0, len(order) - 1, min(most, len(order))).astype(np.int64))
    ranks = np.argsort(np.argsort(np.arange(len(few)) * GOLDEN % 1.0))
    return np.ascontiguousarray(X[order[few][ranks]], dtype=np.float64)


def completed(X: NDArray[np.float64], donors: Array) -> tuple[Array, int]:
    """Each row so many times, its unknown cells (NaN) those of the donors most like it."""
    spread = donors.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    known = ~np.isnan(X)
    there, theirs = np.where(known, X, 0.0) / spread, donors / spread
    # Squares of differences where the row is known; what a row has by itself is the same for all.
    apart = known @ (theirs**2).T - 2.0 * there @ theirs.T
    drawn = min(DRAWN, len(donors))
    nearest = np.argsort(apart, axis=1, kind="stable")[:, :drawn]
    several = np.repeat(X, drawn, axis=0)
    return np.where(np.isnan(several), donors[nearest.ravel()], several), drawn


def averaged(
    means: Array, stds: Array, weights: Array, unknown: Array, drawn: int
) -> tuple[Array, Array, Array, Array]:
    """Components (c, n) of rows that were predicted several times, as those of one row each."""
    c = len(means)
    m, s = means.reshape(c, -1, drawn), stds.reshape(c, -1, drawn)
    w = np.ones_like(m) if weights.ndim == 1 else weights.reshape(c, -1, drawn)
    total = w.sum(axis=2)
    share = np.where(total[:, :, None] > 0, w, 1.0)
    share = share / share.sum(axis=2, keepdims=True)
    middle = (share * m).sum(axis=2)
    between = (share * (m - middle[:, :, None]) ** 2).sum(axis=2)
    wide = np.sqrt((share * s**2).sum(axis=2) + between)
    kept = weights if weights.ndim == 1 else total / drawn
    of = kept[:, None] if kept.ndim == 1 else kept
    known = unknown.reshape(-1, drawn).mean(axis=1)
    return middle, wide, kept, known + (of * between).sum(axis=0)


def check_donors(donors: object, n_columns: int) -> None:
    """Raise an error if no training rows can be these."""
    rows, _ = shape_of(donors, 2, "donors are no table")
    require(0 < rows <= DONORS, "donors are too many, or none")
    check_array(donors, (rows, n_columns), "donors")
