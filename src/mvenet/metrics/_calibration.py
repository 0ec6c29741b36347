"""Whether the stated uncertainty is true, and how large it is."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mvenet._utils.wording import verdict
from mvenet.distributions import Distribution
from mvenet.distributions._checks import Seed, generator, levels_within
from mvenet.metrics._inputs import (
    FloatArray,
    Forecast,
    Given,
    checked_inputs,
    mean_by_level,
    root_mean_square,
    weighted,
)


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

    Above it the intervals are too wide, below it too narrow. Where outcomes are atoms, such as
    ratings, intervals end at them and hold more than they claim; `pit` makes up for that.

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
    # Through the cdf: the quantiles of a mixture, one level at a time, would take far longer. An
    # interval that ends at an atom holds it.
    needed = _needed(predicted, y)
    return mean_by_level(needed[:, None] <= levels.ravel(), weight, levels)


def _needed(predicted: Distribution, y: FloatArray) -> FloatArray:
    """Coverage of the central interval from which on it holds each outcome."""
    upto = predicted.cdf(y)
    return np.maximum(1.0 - 2.0 * upto, 2.0 * (upto - predicted.pmf(y)) - 1.0)


def coverage_by(
    y_true: ArrayLike,
    dist: Forecast,
    groups: ArrayLike,
    std: Given = None,
    *,
    nominal: float = 0.9,
) -> dict[str, NDArray[Any]]:
    """Coverage of the central prediction intervals, group by group.

    Parameters
    ----------
    y_true, dist, std : as in `nll`
    groups : array-like of shape (n,)
        What to tell apart: patients, regions, months.
    nominal : float, default=0.9
        Coverage that the intervals claim, in (0, 1).

    Returns
    -------
    dict of ndarray
        A row for each group: ``group``, ``rows``, ``coverage``, and ``low`` and ``high``, between
        which it lies in 19 of 20 groups by chance if rows are independent and intervals hold.
        Loads into a DataFrame.

    Examples
    --------
    >>> told = coverage_by([0.0, 0.1, 3.0], [0.0, 0.0, 0.0], ["a", "a", "b"], std=[1.0, 1.0, 1.0])
    >>> told["group"].tolist(), told["coverage"].tolist()
    (['a', 'b'], [1.0, 0.0])
    """
    (level,) = levels_within("nominal", [nominal], "write 0.95 for 95 %")
    y, predicted, _ = checked_inputs(y_true, dist, std, None)
    return counted_by(_needed(predicted, y) <= level, groups, float(level))


def counted_by(
    inside: NDArray[np.bool_], groups: ArrayLike, nominal: float
) -> dict[str, NDArray[Any]]:
    """The same, of rows of which it is known whether they are covered."""
    labels = np.asarray(groups)
    if labels.shape != inside.shape:
        raise ValueError(
            f"groups has shape {labels.shape}, and y_true {inside.shape}: give one for each "
            "outcome."
        )
    names, numbers, rows = np.unique(labels, return_inverse=True, return_counts=True)
    share = np.bincount(numbers.ravel(), weights=inside) / rows
    limits = {n: verdict(nominal, 0.5, n)[1:] for n in set(rows.tolist())}
    low, high = np.array([limits[n] for n in rows.tolist()]).T
    return {"group": names, "rows": rows, "coverage": share, "low": low, "high": high}


def pit(
    y_true: ArrayLike, dist: Forecast, std: Given = None, *, random_state: Seed = None
) -> FloatArray:
    """Probability integral transform, ``F(y)``: uniform if the forecasts are calibrated.

    A histogram like a U tells of std too small, a hump of std too large, a slope of bias. Gneiting,
    Balabdaoui & Raftery (2007), https://doi.org/10.1111/j.1467-9868.2007.00587.x, section 3.1.

    Where F has a step, at a value that has a probability of its own, it is drawn at random between
    the ends of the step: only so it is uniform.

    Parameters
    ----------
    y_true, dist, std : as in `nll`
    random_state : int, Generator, RandomState or None, default=None
        Seed or source of randomness; used only if some outcome has a probability of its own.

    Returns
    -------
    ndarray of shape (n,), between 0 and 1

    Examples
    --------
    >>> print(pit([0.0, 2.0], [0.0, 1.0], std=[1.0, 1.0]).round(3))
    [0.5   0.841]
    """
    y, predicted, _ = checked_inputs(y_true, dist, std, None)
    rng, upto, step = generator(random_state), predicted.cdf(y), predicted.pmf(y)
    if not step.any():
        return upto
    return np.clip(upto - rng.random(len(y)) * step, 0.0, 1.0)


def miscalibration_area(
    y_true: ArrayLike, dist: Forecast, std: Given = None, *, sample_weight: Given = None
) -> float:
    """Area between the distribution function of the `pit` and the diagonal; lower is better.

    ``∫ |G(p) - p| dp`` over (0, 1), G(p) the share of outcomes below their p-quantile; exact, not
    on a grid. Calibrated forecasts have about 0.31/√n. Tran et al. (2020),
    https://doi.org/10.1088/2632-2153/ab7e1a. At atoms the `pit` is drawn, always alike.

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
    reached = pit(y, predicted, random_state=0)
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
