"""Scores of predictive distributions, and scorers for scikit-learn's model selection.

All take a distribution, ``nll(y, dist)``, or means and standard deviations, ``nll(y, mean, std)``.

`nll`, `crps`, `interval_score` and `msll` are proper: in expectation no forecast scores better than
the distribution that the outcomes come from, so models can be ranked by them. `coverage`, `pit`,
`miscalibration_area` and `ence` ask whether the stated uncertainty is true, `sharpness` and
`interval_width` how large it is; a model can be good by one of those and useless.

Several targets together, a :class:`mvenet.distributions.Joint`, are scored by `joint_nll`,
`energy_score` and `variogram_score`, which are proper, and by `joint_coverage`.
"""

from __future__ import annotations

import math

from numpy.typing import ArrayLike

from mvenet.metrics._calibration import (
    coverage,
    coverage_by,
    ence,
    interval_width,
    miscalibration_area,
    pit,
    sharpness,
)
from mvenet.metrics._inputs import Forecast, Given, checked_inputs, mean_of, root_mean_square
from mvenet.metrics._joint import energy_score, joint_coverage, joint_nll, variogram_score
from mvenet.metrics._scorers import Scorer
from mvenet.metrics._scores import crps, interval_score, mae, msll, nll, rmse

__all__ = [
    "coverage",
    "coverage_by",
    "crps",
    "ence",
    "energy_score",
    "interval_score",
    "interval_width",
    "joint_coverage",
    "joint_nll",
    "mae",
    "miscalibration_area",
    "msll",
    "neg_crps_scorer",
    "neg_nll_scorer",
    "nll",
    "pit",
    "rmse",
    "sharpness",
    "summary",
    "variogram_score",
]


def summary(
    y_true: ArrayLike,
    dist: Forecast,
    std: Given = None,
    *,
    level: float = 0.9,
    sample_weight: Given = None,
) -> dict[str, float]:
    """The usual scores at once.

    Parameters
    ----------
    y_true, dist, std, sample_weight
        As in `nll`.
    level : float in (0, 1)
        Of the central interval whose coverage and width are wanted.

    Returns
    -------
    dict of float
        ``rmse``, ``mae``, ``r2`` (NaN if all outcomes are the same), ``nll``, ``crps``,
        ``coverage`` and ``width``.

    Examples
    --------
    >>> scores = summary([0.0, 2.0], [0.0, 1.0], std=[1.0, 0.5])
    >>> {name: round(score, 2) for name, score in scores.items()}
    {'rmse': 0.71, 'mae': 0.5, 'r2': 0.5, 'nll': 1.57, 'crps': 0.48, 'coverage': 0.5, 'width': 2.47}
    """
    y, predicted, weight = checked_inputs(y_true, dist, std, sample_weight)
    error, spread = rmse(y, predicted, sample_weight=weight), y - mean_of(y, weight)
    constant = root_mean_square(spread, weight) if spread.any() else math.nan
    return {
        "rmse": error,
        "mae": mae(y, predicted, sample_weight=weight),
        "r2": 1 - (error / constant) ** 2,
        "nll": nll(y, predicted, sample_weight=weight),
        "crps": crps(y, predicted, sample_weight=weight),
        "coverage": float(coverage(y, predicted, nominal=level, sample_weight=weight)),
        "width": float(interval_width(predicted, coverage=level, sample_weight=weight)),
    }


neg_nll_scorer = Scorer("neg_nll_scorer", nll)
neg_crps_scorer = Scorer("neg_crps_scorer", crps)
