"""What every predictive distribution can say, under SciPy's names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from mvenet.distributions import _shape as shape
from mvenet.distributions._checks import (
    FloatArray,
    Seed,
    check_shape,
    generator,
    levels_within,
    real,
)


class Distribution(ABC):
    """Predictive distributions of n rows.

    Means, standard deviations, quantiles and CRPS are in units of y, variances in units of y
    squared.
    """

    @abstractmethod
    def __repr__(self) -> str: ...

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def _at(self, index: Any) -> Self:
        """The rows of an index array."""

    @abstractmethod
    def _log_density(self, y: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _tail(self, y: FloatArray, sign: float) -> FloatArray:
        """Probability below y (sign 1) or above y (sign -1)."""

    @abstractmethod
    def _quantile(self, mass: float, sign: float) -> FloatArray:
        """Solve ``_tail(x, sign) = mass`` for x."""

    @abstractmethod
    def _modes(self) -> FloatArray: ...

    @abstractmethod
    def _crps(self, y: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _drawn(self, rng: np.random.Generator, shape: tuple[int, int]) -> FloatArray: ...

    def __getitem__(self, rows: Any) -> Self:
        """Select rows by slice, mask, index array or integer (which gives one row)."""
        index = np.atleast_1d(np.arange(len(self))[rows])
        if index.ndim != 1:
            raise IndexError(f"rows must be chosen along one axis, got {rows!r}; use a 1-D index")
        return self._at(index)

    @property
    @abstractmethod
    def mean(self) -> FloatArray:
        """Mean of the predictive distribution, in units of y, shape (n,)."""

    @property
    @abstractmethod
    def std(self) -> FloatArray:
        """Standard deviation of the predictive distribution, in units of y, shape (n,)."""

    @property
    @abstractmethod
    def aleatoric(self) -> FloatArray:
        """Variance that is noise, in units of y squared, shape (n,)."""

    @property
    @abstractmethod
    def epistemic(self) -> FloatArray:
        """Variance that more data would remove, in units of y squared, shape (n,)."""

    @property
    def var(self) -> FloatArray:
        """Variance, ``aleatoric + epistemic``, in units of y squared, shape (n,)."""
        return self.aleatoric + self.epistemic

    @property
    def median(self) -> FloatArray:
        """The value with as much probability below as above, ``ppf(0.5)``, shape (n,)."""
        return self.ppf(0.5)

    @property
    def mode(self) -> FloatArray:
        """The value that is most probable, where the density is highest, shape (n,)."""
        return self._modes()

    def logpdf(self, y: ArrayLike) -> FloatArray:
        """Logarithm of the density; positive where std is small.

        Parameters
        ----------
        y : array-like of shape (n,) or scalar
            Outcomes. NaN gives NaN, an infinity the limit.

        Returns
        -------
        ndarray of shape (n,)
        """
        return self._log_density(self._outcomes(y))

    def pdf(self, y: ArrayLike) -> FloatArray:
        """Density at y of shape (n,) or scalar, per unit of y, shape (n,)."""
        return np.exp(self.logpdf(y))

    def cdf(self, y: ArrayLike) -> FloatArray:
        """Probability of an outcome of at most y, of shape (n,) or scalar; shape (n,)."""
        return self._tail(self._outcomes(y), 1.0)

    def sf(self, y: ArrayLike) -> FloatArray:
        """Probability of an outcome above y, ``1 - cdf(y)``, accurate where it is small."""
        return self._tail(self._outcomes(y), -1.0)

    def ppf(self, q: ArrayLike) -> FloatArray:
        """Quantiles, the inverse of `cdf`.

        Parameters
        ----------
        q : float or array-like of shape (k,)
            Levels in (0, 1), the same for every row.

        Returns
        -------
        ndarray of shape (n,) or (n, k)
            Quantiles in units of y; (n,) for a scalar `q`.
        """
        levels = levels_within("q", q, "use 0.5 for the median")
        out = np.empty((len(self), levels.size))
        for j, level in enumerate(levels.ravel().tolist()):
            # 1 - level is exact above one half, so that the upper tail loses no digits.
            out[:, j] = self._quantile(min(level, 1.0 - level), 1.0 if level <= 0.5 else -1.0)
        return out if levels.ndim else out[:, 0]

    def interval(self, coverage: ArrayLike) -> FloatArray:
        """Central prediction intervals, with equal probability below and above.

        Parameters
        ----------
        coverage : float or array-like of shape (k,)
            Probabilities in (0, 1), such as 0.9.

        Returns
        -------
        ndarray of shape (n, 2) or (n, k, 2)
            Lower and upper bound in units of y; (n, 2) for a scalar `coverage`.
        """
        levels = levels_within("coverage", coverage, "write 0.95 for 95 %")
        out = np.empty((len(self), levels.size, 2))
        for j, tail in enumerate((0.5 * (1.0 - levels)).ravel().tolist()):
            out[:, j, 0] = self._quantile(tail, 1.0)
            out[:, j, 1] = self._quantile(tail, -1.0)
        out.sort(axis=-1)  # where std is a rounding error of the mean, so is their order
        return out if levels.ndim else out[:, 0]

    def shortest_interval(self, coverage: ArrayLike) -> FloatArray:
        """Shortest prediction intervals, one for each row.

        Parameters
        ----------
        coverage : float or array-like of shape (k,)
            Probabilities in (0, 1), such as 0.9.

        Returns
        -------
        ndarray of shape (n, 2) or (n, k, 2)
            Lower and upper bound in units of y; (n, 2) for a scalar `coverage`. Where the density
            has several peaks, :meth:`hdi` may be shorter.
        """
        levels = levels_within("coverage", coverage, "write 0.95 for 95 %")
        out = np.stack([shape.shortest(self, level) for level in levels.ravel().tolist()], axis=1)
        return out if levels.ndim else out[:, 0]

    def hdi(self, coverage: float = 0.9) -> list[FloatArray]:
        """Highest-density region: the shortest set of values that has this probability.

        Parameters
        ----------
        coverage : float in (0, 1), default=0.9

        Returns
        -------
        list of n ndarrays of shape (k, 2)
            The k intervals of each row, in order and in units of y: one for each peak that is high
            enough. An interval of no length is a value that has a probability of its own.
        """
        level = levels_within("coverage", coverage, "write 0.95 for 95 %")
        if level.ndim:
            raise ValueError(f"coverage must be one number, got {coverage!r}; use such as 0.9")
        return shape.regions(self, float(level))

    def pmf(self, y: ArrayLike) -> FloatArray:
        """Probability of exactly y, of shape (n,) or scalar; zero where the density is smooth."""
        return self._mass_at(self._outcomes(y))

    def _mass_at(self, y: FloatArray) -> FloatArray:
        return np.zeros(len(y))

    def crps(self, y: ArrayLike) -> FloatArray:
        """Continuous ranked probability score, in units of y; lower is better.

        In closed form, ``E|Y - y| - ½ E|Y - Y'|`` (Grimit et al. 2006,
        https://doi.org/10.1256/qj.05.235). The time grows with the square of ``n_members``.

        Parameters
        ----------
        y : array-like of shape (n,) or scalar
            Outcomes.

        Returns
        -------
        ndarray of shape (n,)
        """
        # Never negative but by cancellation, where all std are minute beside the distances.
        return np.maximum(self._crps(self._outcomes(y)), 0.0)

    def sample(self, size: int = 1, random_state: Seed = None) -> FloatArray:
        """Draw outcomes, independently for every row.

        Parameters
        ----------
        size : int, default=1
            Number of draws for each row.
        random_state : int, Generator, RandomState or None, default=None
            Seed or source of randomness. None takes fresh entropy; the global state of
            NumPy is neither used nor changed.

        Returns
        -------
        ndarray of shape (size, n)
            In units of y.
        """
        rng = generator(random_state)
        if not isinstance(size, int | np.integer) or size < 0:
            raise ValueError(f"size must be a non-negative integer, got {size!r}; use such as 100")
        return self._drawn(rng, (int(size), len(self)))

    def _outcomes(self, y: ArrayLike) -> FloatArray:
        values = real("y", y)
        if values.ndim:
            check_shape("y", values, (len(self),), "pass one outcome per row, or a scalar")
        return np.broadcast_to(values, (len(self),))
