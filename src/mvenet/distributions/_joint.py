"""The predictive distribution of several targets together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from numbers import Integral
from typing import Any, Self, final

import numpy as np
from numpy.polynomial.hermite_e import hermegauss, hermeval
from numpy.typing import ArrayLike

from mvenet.distributions import _frame
from mvenet.distributions._checks import (
    FloatArray,
    Seed,
    check,
    check_shape,
    frozen,
    generator,
    levels_within,
    real,
)
from mvenet.distributions._copula import Copula
from mvenet.distributions._interface import Distribution
from mvenet.distributions._scores import outcomes, quantiles, scores
from mvenet.distributions._special import ndtri

_NODES, _SHARES = hermegauss(40)
_TERMS = 12  # of the series of a covariance
_AT_ONCE = 2**16  # outcomes that are drawn at a time: each may have hundreds of components


@final
@dataclass(frozen=True, eq=False, repr=False, init=False)
class Joint:
    """Predictive distributions of k targets together, for n rows.

    Each target has a distribution of its own. How outcomes depend on each other is a Gaussian
    copula: their normal scores (where each stands in its distribution, as a value of a standard
    normal) have a correlation matrix.

    Parameters
    ----------
    marginals : sequence of k Distribution
        Of each target alone, for the same n rows.
    correlation : array-like of shape (k, k) or (n, k, k)
        Of the normal scores: the same for all rows, or of each row.
    names : sequence of k str or None, default=None
        Of the targets; None calls them y0, y1 and so on.
    independent : float in [0, 1), default=0
        Probability that the targets of a row have nothing to do with each other, whatever the
        correlation.
    claims : array-like of shape (m,) or None, default=None
        Levels to ask of the copula so that simultaneous intervals hold 0, 1/m, 2/m, … of rows, as
        learned from rows left out: rising from 0, below 1. None asks for the coverage itself.

    Examples
    --------
    >>> from mvenet.distributions import Joint, Normal
    >>> height, weight = Normal([170.0], [7.0]), Normal([70.0], [10.0])
    >>> dist = Joint([height, weight], [[1.0, 0.6], [0.6, 1.0]], names=["height", "weight"])
    >>> dist
    Joint(height, weight; n=1)
    >>> print(dist.cov.round(1))
    [[[ 49.  42.]
      [ 42. 100.]]]
    >>> print(dist.interval(0.9).round(1))
    [[[158.5 181.5]
      [ 53.6  86.4]]]
    >>> print(dist.simultaneous_interval(0.9).round())
    [[[157. 183.]
      [ 51.  89.]]]
    >>> dist.sample(100, random_state=0).shape
    (100, 1, 2)
    """

    marginals: tuple[Distribution, ...]
    names: tuple[str, ...]
    copula: Copula
    claims: FloatArray | None

    def __init__(
        self,
        marginals: Sequence[Distribution],
        correlation: ArrayLike,
        names: Sequence[str] | None = None,
        independent: float = 0.0,
        claims: ArrayLike | None = None,
    ) -> None:
        each = tuple(marginals)
        if not each or not all(isinstance(dist, Distribution) for dist in each):
            raise ValueError("marginals must be a list of distributions, at least one; pass those")
        if len({len(dist) for dist in each}) > 1:
            counts = ", ".join(str(len(dist)) for dist in each)
            raise ValueError(f"marginals must be of the same rows, got {counts} of them; mend that")
        called = tuple(f"y{j}" for j in range(len(each))) if names is None else tuple(names)
        if len(called) != len(each) or len(set(called)) < len(called):
            raise ValueError(
                f"names must be {len(each)} different texts, got {names!r}; name each target once"
            )
        tied = _checked_correlation(correlation, len(each), len(each[0]))
        if not 0.0 <= independent < 1.0:
            raise ValueError(f"independent must be in [0, 1), got {independent}; use such as 0.01")
        learned = None if claims is None else _checked_claims(claims)
        self._fill(each, called, Copula(tied, float(independent)), learned)

    def _fill(self, *values: Any) -> None:
        for field, value in zip(fields(self), values, strict=True):
            object.__setattr__(self, field.name, value)

    def __repr__(self) -> str:
        shown = ", ".join(self.names[:4]) + (", …" if len(self.names) > 4 else "")
        return f"Joint({shown}; n={len(self)})"

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.marginals[0])

    def __getitem__(self, rows: Any) -> Self:
        """Select rows by slice, mask, index array or integer (which gives one row)."""
        index = np.atleast_1d(np.arange(len(self))[rows])
        selected = object.__new__(type(self))
        marginals = tuple(dist[rows] for dist in self.marginals)
        selected._fill(marginals, self.names, self.copula.at(index), self.claims)
        return selected

    def _labelled(self, X: Any) -> Self:
        for dist in self.marginals:
            dist._labelled(X)
        return self

    def marginal(self, target: str | int) -> Distribution:
        """The distribution of one target alone, by its name or number."""
        if isinstance(target, Integral) and -len(self.names) <= target < len(self.names):
            return self.marginals[int(target)]
        if target not in self.names:
            known = ", ".join(map(repr, self.names))
            raise KeyError(f"target must be one of {known}, or its number; got {target!r}")
        return self.marginals[self.names.index(str(target))]

    @property
    def mean(self) -> FloatArray:
        """Means, in units of each target, shape (n, k)."""
        return self._columns([dist.mean for dist in self.marginals])

    @property
    def std(self) -> FloatArray:
        """Standard deviations, in units of each target, shape (n, k)."""
        return self._columns([dist.std for dist in self.marginals])

    @property
    def var(self) -> FloatArray:
        """Variances, in squared units of each target, shape (n, k)."""
        return self._columns([dist.var for dist in self.marginals])

    @property
    def median(self) -> FloatArray:
        """Medians of each target alone, shape (n, k)."""
        return self._columns([dist.median for dist in self.marginals])

    @property
    def correlation(self) -> FloatArray:
        """Correlation matrices of the outcomes, shape (n, k, k)."""
        cov, std = self.cov, self.std
        return cov / (std[:, :, None] * std[:, None, :])

    @property
    def cov(self) -> FloatArray:
        """Covariance matrices, in products of units, shape (n, k, k).

        By the series of Hermite polynomials in the scores (Mehler's formula), of which the terms
        are exact up to a quadrature; the variances are those of each target alone.
        """
        weights = _SHARES / _SHARES.sum()
        terms = [np.eye(_TERMS + 1)[r] for r in range(1, _TERMS + 1)]
        factors = np.array([hermeval(_NODES, term) * weights for term in terms])
        # Of each target its shares in the scores' powers, in standard deviations: (terms, n, k).
        std, mean = self.std, self.mean
        shares = np.stack(
            [
                factors @ ((quantiles(dist, _NODES) - mean[:, j]) / std[:, j])
                for j, dist in enumerate(self.marginals)
            ],
            axis=2,
        )
        found = np.zeros((len(self), len(self.names), len(self.names)))
        power, factorial = np.ones_like(self.copula.correlation), 1.0
        for r, share in enumerate(shares, start=1):
            power, factorial = power * self.copula.correlation, factorial * r
            found += power * (share[:, :, None] * share[:, None, :]) / factorial
        found *= 1.0 - self.copula.independent
        found[:, range(len(self.names)), range(len(self.names))] = 1.0
        return found * std[:, :, None] * std[:, None, :]

    def logpdf(self, y: ArrayLike) -> FloatArray:
        """Logarithm of the joint density.

        Exact where every target is smooth, or all but one: there, a value with a probability of
        its own counts by that, as in the ``logpdf`` of its distribution. Where several targets are
        at such values, the probability of both together is a numerical integral.

        Parameters
        ----------
        y : array-like of shape (n, k)
            Outcomes.

        Returns
        -------
        ndarray of shape (n,)
        """
        values = self._outcomes(y)
        both = [scores(dist, values[:, j]) for j, dist in enumerate(self.marginals)]
        low, high = (self._columns([pair[end] for pair in both]) for end in (0, 1))
        alone = sum(
            (dist.logpdf(values[:, j]) for j, dist in enumerate(self.marginals)),
            np.zeros(len(self)),
        )
        return alone + self.copula.log_ratio(low, high)

    def scores(self, y: ArrayLike) -> FloatArray:
        """Normal scores of outcomes, (n, k): where each stands in its distribution.

        Of a value with a probability of its own, that of the middle of its range.
        """
        values = self._outcomes(y)
        both = [scores(dist, values[:, j]) for j, dist in enumerate(self.marginals)]
        return self._columns([0.5 * (low + high) for low, high in both])

    def ppf(self, q: ArrayLike) -> FloatArray:
        """Quantiles of each target alone, of shape (n, k), or (n, k, levels) for a list."""
        return np.stack([dist.ppf(q) for dist in self.marginals], axis=1)

    def interval(self, coverage: ArrayLike) -> FloatArray:
        """Central intervals of each target alone, of shape (n, k, 2), or (n, k, levels, 2).

        All of them together hold less often than each does: :meth:`simultaneous_interval`.
        """
        return np.stack([dist.interval(coverage) for dist in self.marginals], axis=1)

    def shortest_interval(self, coverage: ArrayLike) -> FloatArray:
        """Shortest intervals of each target alone, of shape (n, k, 2), or (n, k, levels, 2)."""
        return np.stack([dist.shortest_interval(coverage) for dist in self.marginals], axis=1)

    def simultaneous_interval(self, coverage: ArrayLike) -> FloatArray:
        """Intervals that hold for all targets of a row at once with this probability.

        Each is a central interval of its target, all of the same level: as high as it takes. A
        fitted model takes the level that has held so many of the rows left out (``claims``).

        Parameters
        ----------
        coverage : float or array-like of shape (levels,)
            Probabilities in (0, 1), such as 0.9.

        Returns
        -------
        ndarray of shape (n, k, 2) or (n, k, levels, 2)
            Lower and upper ends, in units of each target.
        """
        levels = levels_within("coverage", coverage, "write 0.95 for 95 %")
        out = np.empty((len(self), len(self.names), levels.size, 2))
        for at, level in enumerate(levels.ravel().tolist()):
            reach = np.broadcast_to(self._reach(level), (len(self),))
            for j, dist in enumerate(self.marginals):
                out[:, j, at] = outcomes(dist, np.stack([-reach, reach])).T
        return out if levels.ndim else out[:, :, 0]

    def _reach(self, coverage: float) -> FloatArray:
        """How far from 0 scores may lie, of shape (1,) or (n,)."""
        if self.claims is None:
            return self.copula.farthest(coverage)
        # All targets can not be held more often than one.
        alone = ndtri(0.5 + 0.5 * coverage)
        reach: FloatArray = np.maximum(self.copula.farthest(_claim(self.claims, coverage)), alone)
        return reach

    def crps(self, y: ArrayLike) -> FloatArray:
        """Continuous ranked probability scores of each target alone, (n, k); lower is better."""
        values = self._outcomes(y)
        return self._columns([d.crps(values[:, j]) for j, d in enumerate(self.marginals)])

    def sample(self, size: int = 1, random_state: Seed = None) -> FloatArray:
        """Draw outcomes: those of one row and draw belong together.

        Parameters
        ----------
        size : int, default=1
            Number of draws for each row.
        random_state : int, Generator, RandomState or None, default=None
            As in :meth:`Distribution.sample`.

        Returns
        -------
        ndarray of shape (size, n, k)
            In units of each target.
        """
        rng = generator(random_state)
        if not isinstance(size, int | np.integer) or size < 0:
            raise ValueError(f"size must be a non-negative integer, got {size!r}; use such as 100")
        found = np.empty((int(size), len(self), len(self.names)))
        step = max(1, _AT_ONCE // max(1, len(self)))
        for start in range(0, len(found), step):
            part = found[start : start + step]
            drawn = self.copula.drawn(rng, len(part), len(self))
            for j, dist in enumerate(self.marginals):
                part[..., j] = outcomes(dist, drawn[..., j])
        return found

    def to_frame(
        self, intervals: ArrayLike = (0.9,), quantiles: ArrayLike = (), *, index: Any = None
    ) -> Any:
        """As a DataFrame: of each target what ``to_frame`` of its distribution has.

        Columns are ``heating_mean``, ``heating_std`` and so on; parameters as there.
        """
        values = {
            f"{name}_{column}": value
            for name, dist in zip(self.names, self.marginals, strict=True)
            for column, value in _frame.columns(dist, intervals, quantiles).items()
        }
        labels = self.marginals[0]._labels if index is None else index
        return _frame.frame(values, labels, len(self))

    def _columns(self, values: Sequence[FloatArray]) -> FloatArray:
        return np.column_stack(values)

    def _outcomes(self, y: ArrayLike) -> FloatArray:
        values = real("y", y)
        shape = (len(self), len(self.names))
        check_shape("y", values, shape, "pass a column for each target")
        return values


def _claim(claims: FloatArray, coverage: float) -> float:
    """The level that holds so many rows; beyond the last, as many times rarer misses as there."""
    m = len(claims)
    last = (m - 1) / m
    if coverage <= last:
        return float(np.interp(coverage, np.arange(m) / m, claims))
    return float(1.0 - (1.0 - coverage) / (1.0 - last) * (1.0 - claims[-1]))


def _checked_claims(claims: ArrayLike) -> FloatArray:
    """Levels that rise from 0, read-only."""
    given = real("claims", claims)
    rises = given.ndim == 1 and given.size > 1 and given[0] == 0 and (np.diff(given) >= 0).all()
    if not rises or given[-1] >= 1:
        raise ValueError(
            f"claims must rise from 0 to less than 1, got {claims!r}; pass levels, or None"
        )
    return frozen(given)


def _checked_correlation(correlation: ArrayLike, k: int, n: int) -> FloatArray:
    """Matrices with ones on the diagonal that a copula can have, read-only."""
    tied = real("correlation", correlation)
    shape = (k, k) if tied.ndim == 2 else (n, k, k)
    check_shape("correlation", tied, shape, "pass a row and a column for each target")
    even = np.abs(tied - np.swapaxes(tied, -1, -2)) <= 1e-12
    check("correlation", tied, even & (np.abs(tied) <= 1.0), "be symmetric, up to 1", "mend it")
    ones = np.diagonal(tied, axis1=-2, axis2=-1)
    check("correlation", ones, ones == 1.0, "have ones on its diagonal", "divide by deviations")
    if tied.size and np.linalg.eigvalsh(tied).min() < 1e-9:
        raise ValueError(
            "correlation must be positive definite, and is not: no target may be a function of "
            "the others; shrink it towards the identity"
        )
    return frozen(tied)
