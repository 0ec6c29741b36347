"""Normal scores: where an outcome stands in its distribution, as a value of a standard normal.

A score of 0 is the median, one of 1.64 the 95 % quantile. Scores of several targets are what a
copula ties together; from them and from the distribution of each target alone, outcomes follow.
"""

from __future__ import annotations

import numpy as np

from mvenet.distributions._checks import FloatArray
from mvenet.distributions._interface import Distribution
from mvenet.distributions._lognormal import LogNormalMixture
from mvenet.distributions._moved import Moved
from mvenet.distributions._special import ndtr, ndtri

FARTHEST = 8.0  # beyond lies a probability of 6e-16
_LEVELS = np.linspace(-FARTHEST, FARTHEST, 33)
_MOST_STEPS = 80
_CLOSE = 1e-9  # difference of scores


def scores(dist: Distribution, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Scores of the probability below y and of that up to y, each of shape (n,).

    They differ at values that have a probability of their own, and only there.
    """
    high = _score(dist, y)
    mass = dist._mass_at(y)
    if not mass.any():
        return high, high
    low = _score(dist, np.nextafter(y, -np.inf))
    return np.where(mass > 0, np.minimum(low, high), high), high


def _score(dist: Distribution, y: FloatArray) -> FloatArray:
    """From the tail that is smaller, which has all its digits."""
    below, above = dist._tail(y, 1.0), dist._tail(y, -1.0)
    found: FloatArray = np.where(below < above, ndtri(below), -ndtri(above))
    return np.clip(found, -FARTHEST, FARTHEST)


def quantiles(dist: Distribution, z: FloatArray) -> FloatArray:
    """Outcomes with these k scores, the same for every row, of shape (k, n)."""
    masses = ndtr(-np.abs(np.clip(z, -FARTHEST, FARTHEST))).tolist()
    signs = np.where(z > 0, -1.0, 1.0).tolist()
    return np.array([dist._quantile(m, sign) for m, sign in zip(masses, signs, strict=True)])


def outcomes(dist: Distribution, z: FloatArray) -> FloatArray:
    """Outcomes with these scores, of shape (m, n): quantiles at levels of each row's own."""
    if isinstance(dist, Moved):
        return dist._moved(outcomes(dist._before, z))
    if isinstance(dist, LogNormalMixture):
        with np.errstate(over="ignore"):
            return np.exp(outcomes(dist.logs, z))
    levels = np.clip(z, -FARTHEST, FARTHEST)
    table = np.maximum.accumulate(quantiles(dist, _LEVELS), axis=0)
    at = np.clip(np.searchsorted(_LEVELS, levels, side="right") - 1, 0, len(_LEVELS) - 2)
    row = np.broadcast_to(np.arange(len(dist)), levels.shape)
    found = _solved(
        dist._at(row.ravel()), levels.ravel(), table[at, row].ravel(), table[at + 1, row].ravel()
    )
    return found.reshape(levels.shape)


def _solved(dist: Distribution, z: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Where the score is z, between low and high: Newton's steps, halving where one leaves them."""
    x, step = low + (high - low) * (z - np.floor(2 * z) / 2) * 2, high - low
    for _ in range(_MOST_STEPS):
        off = _score(dist, x) - z
        there = np.abs(off) <= _CLOSE
        if there.all():
            break
        low, high = np.where(off <= 0, x, low), np.where(off >= 0, x, high)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            # The score's slope is the density, divided by a normal's at the score.
            slope = np.exp(dist._log_density(x) + 0.5 * (off + z) ** 2) * np.sqrt(2 * np.pi)
            newton = x - off / slope
        middle = low + 0.5 * (high - low)
        # A step that is no shorter than half of the last one would not end.
        inside = (newton >= low) & (newton <= high) & (np.abs(newton - x) <= 0.5 * np.abs(step))
        after = np.where(there, x, np.where(inside, newton, middle))
        step, x = after - x, after
        if not step.any():  # beside a large mean a small deviation has few digits
            break
    return x
