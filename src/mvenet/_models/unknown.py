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
from mvenet._utils import sums

Array = NDArray[np.float64]
DONORS = 256  # training rows that are kept
MOST_CELLS = 100_000  # of them in all
DRAWN = 16  # donors of a row
ROWS_AT_ONCE = 1_024  # so that their distances stay in the cache
MOST_COMPARED = 10_000  # training rows whose distance from the donors is the yardstick
GOLDEN = 0.6180339887498949  # whose multiples, without their whole part, are spread evenly


def donors_of(X: NDArray[np.float64], y: Array) -> NDArray[np.int64]:
    """Numbers of the training rows to take cells from: evenly spaced in the order of y.

    So are the first few of them, whatever their number: those of a row of which nothing is known.
    """
    most = max(DRAWN, min(DONORS, MOST_CELLS // max(1, X.shape[1])))
    order = np.argsort(y, kind="stable")
    few = np.unique(np.linspace(0, len(order) - 1, min(most, len(order))).astype(np.int64))
    ranks = np.argsort(np.argsort(np.arange(len(few)) * GOLDEN % 1.0))
    return np.asarray(order[few][ranks], dtype=np.int64)


def apart_from(X: NDArray[np.float64], donors: Array) -> Array:
    """Distance of each row from each donor, of shape (n, k), over the columns that are known.

    Root mean square of the differences, in standard deviations of the donors.
    """
    spread = _spread(donors)
    known = ~np.isnan(X)
    there, theirs = np.where(known, X, 0.0) / spread, donors / spread
    with np.errstate(over="ignore", invalid="ignore"):
        squares = (there**2).sum(axis=1)[:, None] + known @ (theirs**2).T - 2.0 * there @ theirs.T
    squares = np.where(np.isnan(squares), np.inf, np.maximum(squares, 0.0))
    return np.asarray(np.sqrt(squares / np.maximum(known.sum(axis=1), 1)[:, None]))


def nearest_to(X: NDArray[np.float64], donors: Array) -> Array:
    """Distance of each row from the nearest donor, (n,)."""
    found = np.empty(len(X))
    for start in range(0, len(X), ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        found[rows] = _nearest_to(X[rows], donors)
    return found


def _nearest_to(X: NDArray[np.float64], donors: Array) -> Array:
    if np.isnan(X).any():
        return np.asarray(apart_from(X, donors).min(axis=1))
    spread = _spread(donors)
    there, theirs = X / spread, donors / spread
    with np.errstate(over="ignore", invalid="ignore"):
        less = there @ (-2.0 * theirs.T)  # one product and two passes: it is asked of every row
        less += (theirs**2).sum(axis=1)
        squares = less.min(axis=1) + (there**2).sum(axis=1)
    squares = np.where(np.isnan(squares), np.inf, np.maximum(squares, 0.0))
    return np.asarray(np.sqrt(squares / max(X.shape[1], 1)))


def farthest_of(
    X: NDArray[np.float64], few: NDArray[np.int64], groups: NDArray[np.int64] | None
) -> float:
    """How far a training row is from the nearest donor, at most; of another group if there are any.

    A new row is of a new group then, and none of its own is there.
    """
    some = np.arange(0, len(X), -(-len(X) // MOST_COMPARED))
    apart = apart_from(np.asarray(X[some], dtype=np.float64), np.asarray(X[few], dtype=np.float64))
    own = some[:, None] == few if groups is None else groups[some][:, None] == groups[few]
    nearest = np.where(own, np.inf, apart).min(axis=1)
    return float(nearest[np.isfinite(nearest)].max(initial=0.0))


def _spread(donors: Array) -> Array:
    unit = np.maximum(np.abs(donors).max(axis=0), 1e-300)  # no square overflows
    spread = unit * (donors / unit).std(axis=0)
    return np.asarray(np.where(spread > 0, spread, 1.0))


def completed(X: NDArray[np.float64], donors: Array) -> tuple[Array, int]:
    """Each row so many times, its unknown cells (NaN) those of the donors most like it."""
    spread = _spread(donors)
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
    return middle, wide, kept, known + sums.total(of * between)


def check_donors(donors: object, n_columns: int) -> None:
    """Raise an error if no training rows can be these."""
    rows, _ = shape_of(donors, 2, "donors are no table")
    require(0 < rows <= DONORS, "donors are too many, or none")
    check_array(donors, (rows, n_columns), "donors")
