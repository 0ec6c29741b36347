"""Scores of predictive distributions, and scorers for scikit-learn's model selection.

All take a distribution, ``nll(y, dist)``, or means and standard deviations, ``nll(y, mean, std)``.

`nll`, `crps`, `interval_score` and `msll` are proper: in expectation no forecast scores better than
the distribution that the outcomes come from, so models can be ranked by them. `coverage`, `pit`,
`miscalibration_area` and `ence` ask whether the stated uncertainty is true, `sharpness` and
`interval_width` how large it is; a model can be good by one of those and useless.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from mvenet.distributions import Normal
from mvenet.distributions._checks import levels_within
from mvenet.metrics._inputs import (
    FloatArray,
    Forecast,
    Given,
    checked_inputs,
    mean_by_level,
    mean_of,
    residuals,
    root_mean_square,
    weighted,
)
from mvenet.metrics._scorers import Scorer

__all__ = [
    "coverage",
    "crps",
    "ence",
    "interval_score",
    "interval_width",
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
]


def nll(
    y_true: ArrayLike, dist: Forecast, std: Given = None, *, sample_weight: Given = None
) -> float:
    """Mean negative log-likelihood, ``-log p(y)``; lower is better.

    Negative where the density exceeds 1, which is no error: it happens once std is below 0.4 units
    of y. Gneiting & Raftery (2007), https://doi.org/10.1198/016214506000001437, section 4.1.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes.
    dist : Normal, NormalMixture, or array-like of shape (n,)
        Predictive distributions, or their means, in units of y.
    std : array-like of shape (n,) or None
        Standard deviations (not variances), in units of y; given if and only if `dist` holds means.
    sample_weight : array-like of shape (n,) or None
        Not negative: 2 counts a row twice, 0 leaves it out.

    Returns
    -------
    float, in nats; dividing y by c subtracts log c

    Examples
    --------
    >>> round(nll([0.0, 2.0], [0.0, 1.0], std=[1.0, 0.5]), 3)
    1.572
    """
    y, predicted, weight = checked_inputs(y_true, dist, std, sample_weight)
    return mean_of(-predicted.logpdf(y), weight)


def crps(
    y_true: ArrayLike, dist: Forecast, std: Given = None, *, sample_weight: Given = None
) -> float:
    """Mean continuous ranked probability score, ``∫ (F(z) - 1{y ≤ z})² dz``; lower is better.

    The absolute error, extended to distributions; in closed form also for mixtures. Less sensitive
    to outliers than `nll`. Gneiting & Raftery (2007), https://doi.org/10.1198/016214506000001437,
    section 4.2.

    Parameters
    ----------
    y_true, dist, std, sample_weight : as in `nll`

    Returns
    -------
    float, in units of y

    Examples
    --------
    >>> round(crps([0.0, 2.0], [0.0, 1.0], std=[1.0, 0.5]), 3)
    0.48
    """
    y, predicted, weight = checked_inputs(y_true, dist, std, sample_weight)
    return mean_of(predicted.crps(y), weight)


def rmse(
    y_true: ArrayLike, dist: Forecast, std: Given = None, *, sample_weight: Given = None
) -> float:
    """Root mean squared error of the predictive mean; lower is better.

    Parameters
    ----------
    y_true, dist, std, sample_weight : as in `nll`, but means need no std

    Returns
    -------
    float, in units of y

    Examples
    --------
    >>> rmse([0.0, 2.0], [1.0, 9.0])
    5.0
    """
    return root_mean_square(*residuals(y_true, dist, std, sample_weight))


def mae(
    y_true: ArrayLike, dist: Forecast, std: Given = None, *, sample_weight: Given = None
) -> float:
    """Mean absolute error of the predictive mean; lower is better.

    Of the mean, because that is what ``predict`` returns: in a skewed mixture the median would do
    better.

    Parameters
    ----------
    y_true, dist, std, sample_weight : as in `nll`, but means need no std

    Returns
    -------
    float, in units of y

    Examples
    --------
    >>> mae([0.0, 2.0], [1.0, 9.0])
    4.0
    """
    errors, weight = residuals(y_true, dist, std, sample_weight)
    return mean_of(np.abs(errors), weight)


def msll(
    y_true: ArrayLike,
    dist: Forecast,
    std: Given = None,
    *,
    train_mean: float | None = None,
    train_std: float | None = None,
    sample_weight: Given = None,
) -> float:
    """Mean standardised log loss; lower is better, negative beats a constant forecast.

    `nll` minus that of ``N(train_mean, train_std²)``, the forecast that knows no features.
    Rasmussen & Williams (2006), Gaussian Processes for Machine Learning, section 2.5.

    Parameters
    ----------
    y_true, dist, std, sample_weight : as in `nll`
    train_mean, train_std : float, default=None
        Mean and standard deviation of the training targets. If both are None, those of `y_true`
        (weighted) take their place: a slightly harder opponent, as it has seen the outcomes.

    Returns
    -------
    float, in nats; the units of y have no influence

    Examples
    --------
    >>> round(msll([0.0, 4.0], [0.5, 3.5], std=[1.0, 1.0], train_mean=2.0, train_std=2.0), 3)
    -1.068
    """
    y, predicted, weight = checked_inputs(y_true, dist, std, sample_weight)
    if train_mean is None and train_std is None:
        train_mean = mean_of(y, weight)
        train_std = root_mean_square(y - train_mean, weight)
    pair, got = "train_mean and train_std", f"got {train_mean} and {train_std}"
    if train_mean is None or train_std is None:
        raise ValueError(f"{pair} must be given together, {got}; pass both or neither")
    if not (np.isfinite(train_mean) and 0.0 < train_std < np.inf):
        raise ValueError(
            f"{pair} must be finite, std positive, {got}; pass those of the training y"
        )
    constant = Normal(np.full(len(y), train_mean), np.full(len(y), train_std))
    return mean_of(constant.logpdf(y) - predicted.logpdf(y), weight)


def interval_score(
    y_true: ArrayLike,
    dist: Forecast,
    std: Given = None,
    *,
    coverage: ArrayLike = 0.9,
    sample_weight: Given = None,
) -> float | FloatArray:
    """Mean interval (Winkler) score of the central prediction intervals; lower is better.

    ``(u - l) + 2/(1 - coverage) · (max(l - y, 0) + max(y - u, 0))`` for the interval [l, u].
    Gneiting & Raftery (2007), https://doi.org/10.1198/016214506000001437, equation 43.

    Parameters
    ----------
    y_true, dist, std, sample_weight : as in `nll`
    coverage : float or array-like of shape (k,), default=0.9
        Nominal coverage of the intervals, in (0, 1).

    Returns
    -------
    float, or ndarray of shape (k,) for a list of levels, in units of y

    Examples
    --------
    >>> round(interval_score([0.0, 2.0], [0.0, 1.0], std=[1.0, 0.5], coverage=0.9), 3)
    4.243
    """
    levels = levels_within("coverage", coverage, "write 0.95 for 95 %")
    y, predicted, weight = checked_inputs(y_true, dist, std, sample_weight)
    low, high = np.moveaxis(predicted.interval(levels.ravel()), -1, 0)
    missed = np.maximum(low - y[:, None], 0.0) + np.maximum(y[:, None] - high, 0.0)
    return mean_by_level(high - low + 2.0 / (1.0 - levels) * missed, weight, levels)


def interval_width(
    dist: Forecast, std: Given = None, *, coverage: ArrayLike = 0.9, sample_weight: Given = None
) -> float | FloatArray:
    """Mean width of the central prediction intervals; lower is better at equal coverage.

    Parameters
    ----------
    dist, std, sample_weight : as in `nll`
    coverage : float or array-like of shape (k,), default=0.9
        Nominal coverage of the intervals, in (0, 1).

    Returns
    -------
    float, or ndarray of shape (k,) for a list of levels, in units of y

    Examples
    --------
    >>> round(interval_width([0.0, 5.0], std=[1.0, 3.0], coverage=0.95), 2)
    7.84
    """
    levels = levels_within("coverage", coverage, "write 0.95 for 95 %")
    predicted, weight = weighted(dist, std, sample_weight)
    low, high = np.moveaxis(predicted.interval(levels.ravel()), -1, 0)
    return mean_by_level(high - low, weight, levels)


def coverage(
    y_true: ArrayLike,
    dist: Forecast,
    std: Given = None,
    *,
    nominal: ArrayLike = 0.9,
    sample_weight: Given = None,
) -> float | FloatArray:
    """Share of outcomes within their central prediction interval; best when equal to `nominal`.

    Above it the intervals are too wide, below it too narrow.

    Parameters
    ----------
    y_true, dist, std, sample_weight : as in `nll`
    nominal : float or array-like of shape (k,), default=0.9
        Coverage that the intervals claim, in (0, 1): ``coverage`` in ``predict_interval``.

    Returns
    -------
    float, or ndarray of shape (k,) for a list of levels, between 0 and 1

    Examples
    --------
    >>> coverage([0.0, 1.5, 3.0], [0.0, 0.0, 0.0], std=[1.0, 1.0, 1.0], nominal=[0.5, 0.9]).round(2)
    array([0.33, 0.67])
    """
    levels = levels_within("nominal", nominal, "write 0.95 for 95 %")
    y, predicted, weight = checked_inputs(y_true, dist, std, sample_weight)
    # Through the cdf: the quantiles of a mixture, one level at a time, would take far longer.
    needed = 2.0 * np.abs(predicted.cdf(y) - 0.5)
    return mean_by_level(needed[:, None] <= levels.ravel(), weight, levels)


def pit(y_true: ArrayLike, dist: Forecast, std: Given = None) -> FloatArray:
    """Probability integral transform, ``F(y)``: uniform if the forecasts are calibrated.

    A histogram like a U tells of std too small, a hump of std too large, a slope of bias. Gneiting,
    Balabdaoui & Raftery (2007), https://doi.org/10.1111/j.1467-9868.2007.00587.x, section 3.1.

    Parameters
    ----------
    y_true, dist, std : as in `nll`

    Returns
    -------
    ndarray of shape (n,), between 0 and 1

    Examples
    --------
    >>> print(pit([0.0, 2.0], [0.0, 1.0], std=[1.0, 1.0]).round(3))
    [0.5   0.841]
    """
    y, predicted, _ = checked_inputs(y_true, dist, std, None)
    return predicted.cdf(y)


def miscalibration_area(
    y_true: ArrayLike, dist: Forecast, std: Given = None, *, sample_weight: Given = None
) -> float:
    """Area between the distribution function of the `pit` and the diagonal; lower is better.

    ``∫ |G(p) - p| dp`` over (0, 1), G(p) the share of outcomes below their p-quantile; exact, not
    on a grid. Calibrated forecasts have about 0.31/√n. Tran et al. (2020),
    https://doi.org/10.1088/2632-2153/ab7e1a.

    Parameters
    ----------
    y_true, dist, std, sample_weight : as in `nll`

    Returns
    -------
    float, between 0 and 0.5

    Examples
    --------
    >>> miscalibration_area([-1.0, 0.0, 1.0], [9.0, 9.0, 9.0], std=[0.1, 0.1, 0.1])
    0.5
    """
    y, predicted, weight = checked_inputs(y_true, dist, std, sample_weight)
    reached = predicted.cdf(y)
    order = np.argsort(reached)
    share = np.cumsum(np.ones(len(y)) if weight is None else weight[order])
    # G is constant between neighbours: ∫ |p - G| dp = (p - G) |p - G| / 2 there.
    steps = np.concatenate([[0.0], share / share[-1]])
    right = np.concatenate([reached[order], [1.0]]) - steps
    left = np.concatenate([[0.0], reached[order]]) - steps
    return float(0.5 * np.sum(right * np.abs(right) - left * np.abs(left)))


def ence(
    y_true: ArrayLike,
    dist: Forecast,
    std: Given = None,
    *,
    n_bins: int = 10,
    sample_weight: Given = None,
) -> float:
    """Expected normalised calibration error; lower is better.

    Rows are sorted by std and cut into bins of equal size (equal weight). The mean over bins of
    ``|RMSE - RMV| / RMV``, with RMSE the root mean squared error of a bin and RMV the root of its
    mean predicted variance. Rows with the same std keep their order. Calibrated forecasts have
    about ``√(n_bins / (π n))``, not 0. Levi et al. (2022), https://doi.org/10.3390/s22155540.

    Parameters
    ----------
    y_true, dist, std, sample_weight : as in `nll`
    n_bins : int, default=10
        At most the number of rows with a weight.

    Returns
    -------
    float, without unit; 0.5 means that std is off by about half

    Examples
    --------
    >>> round(ence([1.0, -1.0, 2.0, 3.0], [0.0] * 4, std=[1.0, 1.0, 4.0, 4.0], n_bins=2), 3)
    0.181
    """
    y, predicted, weight = checked_inputs(y_true, dist, std, sample_weight)
    if not isinstance(n_bins, int | np.integer) or not 1 <= n_bins <= len(y):
        rows = f"from 1 to the {len(y)} rows that have a weight"
        raise ValueError(f"n_bins must be an integer {rows}, got {n_bins!r}; use fewer bins")
    weight = np.ones(len(y)) if weight is None else weight
    errors, stds = y - predicted.mean, predicted.std
    order = np.argsort(stds, kind="stable")
    upto = np.cumsum(weight[order])
    bins = np.floor(n_bins * (upto - 0.5 * weight[order]) / upto[-1])
    ratios = [
        root_mean_square(errors[rows], weight[rows]) / root_mean_square(stds[rows], weight[rows])
        for rows in np.split(order, np.flatnonzero(np.diff(bins)) + 1)
    ]
    return float(np.mean(np.abs(np.array(ratios) - 1.0)))


def sharpness(dist: Forecast, std: Given = None, *, sample_weight: Given = None) -> float:
    """Root of the mean predicted variance; lower is better among calibrated forecasts.

    Tran et al. (2020), https://doi.org/10.1088/2632-2153/ab7e1a.

    Parameters
    ----------
    dist, std, sample_weight : as in `nll`

    Returns
    -------
    float, in units of y

    Examples
    --------
    >>> sharpness([0.0, 0.0], std=[1.0, 7.0])
    5.0
    """
    predicted, weight = weighted(dist, std, sample_weight)
    return root_mean_square(predicted.std, weight)


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
        Of the central interval whose coverage and width are told.

    Returns
    -------
    dict of float
        ``rmse``, ``mae``, ``r2`` (NaN if all outcomes are the same), ``nll``, ``crps``,
        ``coverage`` and ``width``.

    Examples
    --------
    >>> told = summary([0.0, 2.0], [0.0, 1.0], std=[1.0, 0.5])
    >>> {name: round(score, 2) for name, score in told.items()}
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
