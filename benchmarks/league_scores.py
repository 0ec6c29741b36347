"""The scores of the league, from a prediction and what came.

A density means little where y lies on a grid: whoever puts a spike on it gets any score he
likes. So the log score is that of cells: the logarithm of the probability of the cell around y
that is as wide as the resolution of y, divided by that width. It needs a cdf only.
"""

from __future__ import annotations

import numpy as np
from league_predictions import Array, Point, Prediction
from scipy.stats import t

LEVELS = np.arange(1, 100) / 100  # what is kept of every row
FINEST = 1e-3  # no cell is narrower, in standard deviations of y
DOUBT = 1e-3  # share of a wide distribution in everybody's, so that no score is infinite
PIT_BINS = 10
NEAR = 1e-6  # of a cell: a jump at y must be seen whatever rounding did to it


def resolution(y: Array) -> float:
    """The smallest step between values that occur, but no less than FINEST."""
    steps = np.diff(np.unique(y))
    return float(max(steps.min(initial=np.inf if len(steps) else 0.0), FINEST * y.std()))


def cells(y: Array, predicted: Prediction, width: float) -> Array:
    """Probability of the cell around each y."""
    return np.maximum(predicted.cdf(y + width / 2) - predicted.cdf(y - width / 2), 0.0)


def wide_cells(y: Array, y_train: Array, width: float) -> Array:
    """Probability of the same cells if nothing but the training rows' y is known."""
    wide = t(3, y_train.mean(), y_train.std())
    return wide.cdf(y + width / 2) - wide.cdf(y - width / 2)


def pit(y: Array, predicted: Prediction, width: float) -> Array:
    """Counts of the probability integral transform in ten bins, drawn at random within jumps."""
    near = NEAR * width
    low, high = predicted.cdf(y - near), predicted.cdf(y + near)
    drawn = low + np.random.default_rng(0).uniform(size=len(y)) * (high - low)
    return np.histogram(drawn, PIT_BINS, (0, 1))[0]


def scores(
    y: Array, predicted: Prediction | Point, width: float, y_train: Array
) -> dict[str, object]:
    """All scores that the prediction is enough for.

    Parameters
    ----------
    y : what came, shape (n,)
    predicted : what was said
    width : the resolution of y
    y_train : what was known before
    """
    found: dict[str, object] = {"rmse": float(np.sqrt(np.mean((y - predicted.mean) ** 2)))}
    if isinstance(predicted, Point):
        return found
    probability = cells(y, predicted, width)
    doubted = (1 - DOUBT) * probability + DOUBT * wide_cells(y, y_train, width)
    low, high = predicted.quantiles(np.array([0.05, 0.95])).T
    missed = np.maximum(low - y, 0) + np.maximum(y - high, 0)
    counts = pit(y, predicted, width)
    with np.errstate(divide="ignore"):
        found |= {
            "crps": np.mean(predicted.crps(y)),
            "crps_from": predicted.origin,
            "log_score": np.mean(np.log(doubted / width)),
            "log_cells": np.mean(np.log(probability / width)),
            "impossible": np.mean(probability == 0),
            "resolution": width,
            "coverage": np.mean(missed <= NEAR * width),
            "width": np.mean(high - low),
            "interval_score": np.mean(high - low + missed * 2 / 0.1),
            "pit_gap": np.mean(np.abs(counts / len(y) - 1 / PIT_BINS)),
            "pit": " ".join(map(str, counts)),
        }
    density, std = predicted.logpdf(y), predicted.std
    if density is not None:
        found["loglik"] = np.mean(density)
    if std is not None:
        normal = -0.5 * ((y - predicted.mean) / std) ** 2 - np.log(std) - 0.5 * np.log(2 * np.pi)
        found["gaussian_loglik"] = np.mean(normal)
    return found
