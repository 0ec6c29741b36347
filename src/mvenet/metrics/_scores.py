"""How good predictive distributions are: proper scores, and errors of the mean."""

from __future__ import annotations

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
)


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
