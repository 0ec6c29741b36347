"""Rows in time: how long errors remember each other, and how they grow beyond a stretch.

Errors of rows that follow each other are alike, so that many rows say as much as few independent
ones. What is decided by rows left out, or learned from them, counts these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mvenet._models.mixture import WIDEST_LOG
from mvenet._models.seen import Range
from mvenet._training import fleet

if TYPE_CHECKING:
    from mvenet._automatic.out_of_fold import Candidate, OutOfFold

Array = NDArray[np.float64]


def memory(values: Array) -> float:
    """How many values, in the order of time, say as much about their mean as an independent one.

    One and twice the sum of the autocorrelations about zero, up to the first that chance explains.
    """
    n = len(values)
    padded = np.fft.rfft(values, 2 * n)
    products = np.fft.irfft(np.abs(padded) ** 2, 2 * n)[: n // 2]
    if n < 4 or not products[0] > 0:
        return 1.0
    alike = products[1:] / products[0]
    chance = np.flatnonzero(alike < 2.0 / np.sqrt(n))
    last = int(chance[0]) if len(chance) else len(alike)
    return float(min(1.0 + 2.0 * alike[:last].sum(), n))


def distant_error(held_out: OutOfFold, candidates: Sequence[Candidate], seen: Range) -> float:
    """Standard deviation of what is added to errors far beyond the next stretch.

    What was trained without a stretch predicts those after it, too. Their errors, as far as they
    are larger than those of a next stretch, say how the variance of :class:`Range` must grow.
    """
    shares, excess = [np.zeros(0)], [np.zeros(0)]
    for number, rows in enumerate(held_out.later):
        error = _blended_error(held_out, candidates, number, rows)
        if error is not None:
            own = _known_to(held_out, number, seen)
            X = np.asarray(held_out.table.source[rows], dtype=np.float64)
            clipped = own.within(X)
            usual = own.added_variance(X, clipped, own.y_std) + own.typical_std**2
            shares.append(own.drifted(X, clipped))
            excess.append(error**2 - usual)
    share, more = np.concatenate(shares), np.concatenate(excess)
    grown = float(share @ more) / (float(share @ share) or 1.0)
    largest = WIDEST_LOG if held_out.log else seen.y_high - seen.y_low
    return float(np.clip(np.sqrt(max(grown, 0.0)), 0.0, largest))


def _known_to(held_out: OutOfFold, fold: int, seen: Range) -> Range:
    """The range of what a fold trains on, as a model of these rows would have it."""
    train = held_out.trained_on(fold)
    own = Range.of(held_out.table.source[train], held_out.table.y[train], seen.typical_std)
    return replace(own.reaching(*held_out.beyond), pace=held_out.pace)


def _blended_error(
    held_out: OutOfFold, candidates: Sequence[Candidate], fold: int, rows: fleet.Rows
) -> Array | None:
    """Errors of rows later than a fold's, by what was trained without both."""
    if not len(rows):
        return None
    mean = np.zeros(len(rows))
    for candidate in candidates:
        if candidate.share:
            if candidate.later is None:
                return None
            mean += candidate.share * candidate.later[fold]
    return held_out.table.y[rows] - mean
