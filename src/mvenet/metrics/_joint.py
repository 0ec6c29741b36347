"""How good predictive distributions of several targets together are."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from mvenet.distributions import Joint
from mvenet.distributions._checks import Seed, check, check_shape, levels_within
from mvenet.metrics._inputs import FloatArray, Given, mean_by_level, mean_of, numbers, weights_of

Outcomes: TypeAlias = ArrayLike
DRAWS = 200


def joint_nll(y_true: Outcomes, dist: Joint, *, sample_weight: Given = None) -> float:
    """Mean negative log-likelihood of all targets together; lower is better.

    The joint log score. What it is below the sum of the targets' own `nll` is what knowing their
    dependence is worth.

    Parameters
    ----------
    y_true : array-like of shape (n, k)
        Outcomes.
    dist : Joint
        Predictive distributions.
    sample_weight : array-like of shape (n,) or None
        Not negative: 2 counts a row twice, 0 leaves it out.

    Returns
    -------
    float, in nats; dividing a target by c subtracts log c

    Examples
    --------
    >>> from mvenet.distributions import Joint, Normal
    >>> marginals = [Normal([0.0, 0.0], [1.0, 1.0]), Normal([0.0, 0.0], [1.0, 1.0])]
    >>> dist = Joint(marginals, [[1.0, 0.8], [0.8, 1.0]])
    >>> round(joint_nll([[1.0, 1.0], [-1.0, -0.5]], dist), 3)
    1.917
    """
    y, weight = _checked(y_true, dist, sample_weight)
    return mean_of(-dist.logpdf(y), weight)


def energy_score(
    y_true: Outcomes,
    dist: Joint | ArrayLike,
    *,
    scale: ArrayLike | None = None,
    size: int = DRAWS,
    random_state: Seed = 0,
    sample_weight: Given = None,
) -> float:
    """Mean energy score, ``E‖Y - y‖ - ½ E‖Y - Y'‖``; lower is better.

    The CRPS, extended to several targets. From draws: its expectation is exact, whatever their
    number. Gneiting & Raftery (2007), https://doi.org/10.1198/016214506000001437, section 4.3.

    Parameters
    ----------
    y_true : array-like of shape (n, k)
        Outcomes.
    dist : Joint, or array-like of shape (draws, n, k)
        Predictive distributions, or at least two draws from them.
    scale : array-like of shape (k,) or None
        What each target is divided by, such as its standard deviation: distances mix the units of
        all targets. None takes them as they are.
    size : int, default=200
        Draws from a Joint.
    random_state : int, Generator, RandomState or None, default=0
        Of those draws.
    sample_weight : as in `joint_nll`

    Returns
    -------
    float, in the units of the targets

    Examples
    --------
    >>> energy_score([[0.0, 0.0]], [[[3.0, 4.0]], [[0.0, 0.0]]])
    0.0
    """
    y, draws, weight = _drawn(y_true, dist, scale, size, random_state, sample_weight)
    return mean_of(_energy(y, draws), weight)


def variogram_score(
    y_true: Outcomes,
    dist: Joint | ArrayLike,
    *,
    power: float = 0.5,
    scale: ArrayLike | None = None,
    size: int = DRAWS,
    random_state: Seed = 0,
    sample_weight: Given = None,
) -> float:
    """Mean variogram score, ``Σ (|yᵢ - yⱼ|^p - E|Yᵢ - Yⱼ|^p)²`` over pairs; lower is better.

    More sensitive to a wrong dependence than the energy score. Scheuerer & Hamill (2015),
    https://doi.org/10.1175/MWR-D-14-00269.1.

    Parameters
    ----------
    y_true, dist, scale, size, random_state, sample_weight : as in `energy_score`
    power : float, default=0.5
        The p of the formula, positive.

    Returns
    -------
    float, in units of the targets to the power of 2p

    Examples
    --------
    >>> variogram_score([[0.0, 4.0]], [[[0.0, 1.0]], [[0.0, 1.0]]])
    1.0
    """
    if not (np.isfinite(power) and power > 0):
        raise ValueError(f"power must be positive, got {power}; use such as 0.5")
    y, draws, weight = _drawn(y_true, dist, scale, size, random_state, sample_weight)
    score = np.zeros(len(y))
    for i in range(y.shape[1]):
        for j in range(i):
            expected = np.mean(np.abs(draws[..., i] - draws[..., j]) ** power, axis=0)
            score += np.square(np.abs(y[:, i] - y[:, j]) ** power - expected)
    return mean_of(score, weight)


def joint_coverage(
    y_true: Outcomes,
    dist: Joint | ArrayLike,
    *,
    nominal: ArrayLike = 0.9,
    sample_weight: Given = None,
) -> float | FloatArray:
    """Share of the rows in which all targets lie in their simultaneous intervals.

    Parameters
    ----------
    y_true : array-like of shape (n, k)
        Outcomes.
    dist : Joint, or array-like of shape (n, k, 2)
        Predictive distributions, or intervals.
    nominal : float or array-like of shape (levels,), default=0.9
        What the intervals of a Joint claim, in (0, 1); intervals that are given are what they are.
    sample_weight : as in `joint_nll`

    Returns
    -------
    float, or ndarray of shape (levels,) for a list

    Examples
    --------
    >>> joint_coverage([[0.0, 9.0], [0.0, 0.0]], [[[-1, 1], [-1, 1]], [[-1, 1], [-1, 1]]])
    0.5
    """
    levels = levels_within("nominal", nominal, "write 0.95 for 95 %")
    if isinstance(dist, Joint):
        y, weight = _checked(y_true, dist, sample_weight)
        ends = dist.simultaneous_interval(levels.ravel())
    else:
        y = _outcomes(y_true)
        levels, ends = np.array(0.9), numbers("intervals", dist)[..., None, :]
        check_shape("intervals", ends[:, :, 0], (*y.shape, 2), "pass two ends for each outcome")
        weight = weights_of(sample_weight, len(y))
    inside = (ends[..., 0] <= y[:, :, None]) & (y[:, :, None] <= ends[..., 1])
    every = np.asarray(inside.all(axis=1), dtype=np.float64)
    return mean_by_level(every, weight, levels)


def _outcomes(y_true: Outcomes) -> FloatArray:
    y = numbers("y_true", y_true)
    if y.ndim != 2 or not y.size:
        raise ValueError(f"y_true must have shape (n, k), got {y.shape}; pass a column a target")
    return y


def _checked(
    y_true: Outcomes, dist: Joint, sample_weight: Given
) -> tuple[FloatArray, FloatArray | None]:
    """Outcomes and weights that go with a joint distribution."""
    if not isinstance(dist, Joint):
        name = type(dist).__name__
        raise TypeError(f"dist must be a Joint, got {name}; use predict_dist of several targets")
    y = _outcomes(y_true)
    check_shape("y_true", y, (len(dist), len(dist.names)), "pass one outcome for each prediction")
    return y, weights_of(sample_weight, len(y))


def _drawn(
    y_true: Outcomes,
    dist: Joint | ArrayLike,
    scale: ArrayLike | None,
    size: int,
    random_state: Seed,
    sample_weight: Given,
) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    """Outcomes, draws and weights, checked, in units of the scale."""
    if isinstance(dist, Joint):
        y, weight = _checked(y_true, dist, sample_weight)
        if not isinstance(size, int | np.integer) or size < 2:
            raise ValueError(f"size must be a whole number of at least 2, got {size!r}")
        draws = dist.sample(size, random_state)
    else:
        y, draws = _outcomes(y_true), numbers("draws", dist)
        shape = (max(2, len(draws)) if draws.ndim else 2, *y.shape)
        check_shape("draws", draws, shape, "pass at least two draws of each row")
        weight = weights_of(sample_weight, len(y))
    if scale is None:
        return y, draws, weight
    unit = numbers("scale", scale)
    check_shape("scale", unit, (y.shape[1],), "pass a number for each target")
    check("scale", unit, unit > 0.0, "be positive", "pass such as standard deviations")
    return y / unit, draws / unit, weight


def _energy(y: FloatArray, draws: FloatArray) -> FloatArray:
    """Energy score of each row; of pairs of draws those of different ones count."""
    m = len(draws)
    score: FloatArray = np.mean(np.linalg.norm(draws - y, axis=2), axis=0)
    for i in range(1, m):
        score -= np.linalg.norm(draws[i:] - draws[:-i], axis=2).sum(axis=0) / (m * (m - 1))
    return score
