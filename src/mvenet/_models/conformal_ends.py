"""Ends of conformal intervals, from the scores of rows that were not trained on."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from mvenet.distributions import (
    Bounded,
    Distribution,
    LogNormalMixture,
    Normal,
    NormalMixture,
    WithAtoms,
)

Array = NDArray[np.float64]


def normals_of(dist: Distribution) -> Normal | NormalMixture:
    """The distribution of y, or of its logarithm if that is what is normal, without its ends."""
    dist = whole_of(dist)
    if isinstance(dist, LogNormalMixture):
        return dist.logs
    if not isinstance(dist, Normal | NormalMixture):
        raise TypeError(
            f"The estimator predicts a {type(dist).__name__}, which cannot be calibrated: use one "
            "that predicts normals or log-normals."
        )
    return dist


def of_logs(dist: Distribution) -> bool:
    """Whether it is the logarithm that is normal."""
    return isinstance(whole_of(dist), LogNormalMixture)


def whole_of(dist: Distribution) -> Distribution:
    """Before anything is collected at atoms or squeezed."""
    dist = dist.smooth if isinstance(dist, WithAtoms) else dist
    return dist.whole if isinstance(dist, Bounded) else dist


def ends_of(parts: Sequence[Distribution]) -> tuple[Array, Array] | None:
    """Ends that no outcome is beyond, and their reach, by the first part that knows of each."""
    ends, reach = np.array([-np.inf, np.inf]), np.ones(2)
    for part in parts:
        smooth = part.smooth if isinstance(part, WithAtoms) else part
        if isinstance(smooth, Bounded):
            new = np.isinf(ends) & np.isfinite(smooth.ends)
            ends, reach = np.where(new, smooth.ends, ends), np.where(new, smooth.reach, reach)
    return (ends, reach) if np.isfinite(ends).any() else None


def ends_by_count(parts: Sequence[Distribution], scores: Sequence[Array], count: int) -> Array:
    """Ends of the interval that ``count`` of the calibration rows reach to.

    Up to half of the rows, the two ends of CV+ may pass each other where members disagree: there
    the interval of half the rows shrinks about its middle, as the scores do.
    """
    every = np.sort(np.concatenate(scores))
    half = len(every) // 2 + 1  # from here on some row reaches to both ends
    if count >= half or len(parts) == 1:
        return _jackknife_plus(parts, scores, count)
    ends = _jackknife_plus(parts, scores, half)
    share = every[count - 1] / every[half - 1] if every[half - 1] > 0 else 1.0
    middle: Array = ends.mean(axis=1, keepdims=True)
    return middle + float(share) * (ends - middle)


def ends_by_share(
    parts: Sequence[Distribution],
    scores: Sequence[Array],
    shares: Sequence[Array],
    total: Array,
    coverage: float,
) -> Array:
    """The same where scores count by their shares, which with a new row's add up to ``total``.

    Shares that give all groups the same make a row of a new group covered, as its group is as
    likely as any other to be among the farthest (Lee, Barber and Willett 2023, hierarchical
    conformal prediction); likelihood ratios, with that of the new row, one of a table in which such
    rows are more common (Tibshirani et al. 2019). Ends that no score reaches are infinite.
    """
    weight = np.concatenate(shares)
    known = weight.sum() * (1 + 1e-12)
    half = 0.5 + 0.5 * weight.min() / total
    level = np.full(len(total), coverage) if len(parts) == 1 else np.maximum(coverage, half)
    needed = level * total * (1 - 1e-12)

    def end(proposed: Array, rows: slice) -> Array:
        order = np.argsort(proposed, axis=1)
        reached = np.cumsum(weight[order], axis=1) >= needed[rows, None]
        at = np.where(reached.any(axis=1), np.argmax(reached, axis=1), proposed.shape[1] - 1)
        return np.asarray(np.take_along_axis(proposed, order, axis=1)[np.arange(len(at)), at])

    ends = _proposed_ends(parts, scores, end)
    every = np.concatenate(scores)
    widest = quantile_by_share(every, weight, level * total)
    asked = quantile_by_share(every, weight, coverage * total)
    share = np.where(widest > 0, asked / np.where(widest > 0, widest, 1.0), 1.0)[:, None]
    middle: Array = ends.mean(axis=1, keepdims=True)
    ends = np.where((level > coverage)[:, None], middle + share * (ends - middle), ends)
    beyond = np.flatnonzero(needed > known)
    ends[beyond] = -np.inf, np.inf
    return ends


def quantile_by_share(scores: Array, shares: Array, level: float | Array) -> Array:
    """The smallest score up to which the shares add up to each level."""
    order = np.argsort(scores)
    at = np.searchsorted(np.cumsum(shares[order]), np.asarray(level) * (1 - 1e-12))
    return np.asarray(scores[order][np.minimum(at, len(scores) - 1)])


def _jackknife_plus(parts: Sequence[Distribution], scores: Sequence[Array], count: int) -> Array:
    """Ends of the interval that at least ``count`` of the calibration rows reach to.

    Each calibration row proposes the ends mean ∓ score · std by the member that has not seen it,
    on the scale on which that is normal; the upper end is the count-th smallest of the upper ones,
    the lower the count-th largest.
    """
    return _proposed_ends(
        parts, scores, lambda proposed, _: np.partition(proposed, count - 1, axis=1)[:, count - 1]
    )


def _proposed_ends(
    parts: Sequence[Distribution], scores: Sequence[Array], end: Callable[[Array, slice], Array]
) -> Array:
    """Both ends from what calibration rows propose, (rows, scores), by a rule for the upper.

    The rule is told which of the new rows these are.
    """
    members = [(normals.mean, normals.std) for normals in map(normals_of, parts)]
    back = [np.exp if of_logs(part) else np.positive for part in parts]
    n_rows = len(parts[0])
    ends = np.empty((n_rows, 2))
    step = max(1, 4_000_000 // sum(len(s) for s in scores))  # rows at a time: bounded memory
    for start in range(0, n_rows, step):
        rows = slice(start, start + step)
        for column, sign in ((0, -1.0), (1, 1.0)):
            proposed = np.concatenate(
                [
                    sign * units(m[rows, None] + sign * s[rows, None] * score)
                    for (m, s), units, score in zip(members, back, scores, strict=True)
                ],
                axis=1,
            )
            ends[rows, column] = sign * end(proposed, rows)
    return ends
