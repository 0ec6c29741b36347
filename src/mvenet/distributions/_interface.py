"""What every predictive distribution can say, under SciPy's names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from mvenet.distributions import _frame, _html
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

    What is asked about outcomes (`logpdf`, `pdf`, `cdf`, `sf`, `pmf`, `crps`) takes a number, one
    outcome a row, or several at once. One axis is always the rows, two are rows and columns:

    ==================== ======== ==========================================
    shape of y           result   meaning
    ==================== ======== ==========================================
    ``()``, a number     (n,)     the same outcome for every row
    ``(n,)``             (n,)     an outcome for each row
    ``(1, k)``           (n, k)   the same k outcomes for every row
    ``(n, k)``           (n, k)   k outcomes for each row
    ==================== ======== ==========================================

    Examples
    --------
    >>> from mvenet.distributions import Normal
    >>> dist = Normal(mean=[0.0, 10.0], std=[1.0, 2.0])
    >>> print(dist.sf([[0.0, 10.0, 12.0]]).round(2))
    [[0.5  0.   0.  ]
     [1.   0.5  0.16]]
    """

    _labels: Any = None  # of the rows, if they were those of a frame

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
        selected = self._at(index)
        object.__setattr__(selected, "_labels", _frame.labels_at(self._labels, index))
        return selected

    def _labelled(self, X: Any) -> Self:
        """The same, knowing which frame it was predicted for."""
        labels = _frame.labels_of(X)
        if labels is not None:  # distributions are not changed once they are made: this is new
            object.__setattr__(self, "_labels", labels)
        return self

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
        y : float, or array-like of shape (n,), (1, k) or (n, k)
            Outcomes. NaN gives NaN, an infinity the limit.

        Returns
        -------
        ndarray of shape (n,) or (n, k)
        """
        return self._at_outcomes(y, self._log_density)

    def pdf(self, y: ArrayLike) -> FloatArray:
        """Density at y, per unit of y; shapes as in `cdf`."""
        return np.exp(self.logpdf(y))

    def cdf(self, y: ArrayLike) -> FloatArray:
        """Probability of an outcome of at most y.

        Parameters
        ----------
        y : float, or array-like of shape (n,), (1, k) or (n, k)
            A threshold for all rows, one for each, or several: ``[[10, 20, 30]]`` asks for the same
            three in every row.

        Returns
        -------
        ndarray of shape (n,) or (n, k)
        """
        return self._at_outcomes(y, lambda places: self._tail(places, 1.0))

    def sf(self, y: ArrayLike) -> FloatArray:
        """Probability of an outcome above y, ``1 - cdf(y)``, accurate where it is small.

        Shapes as in `cdf`.
        """
        return self._at_outcomes(y, lambda places: self._tail(places, -1.0))

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
        """Probability of exactly y, zero where the density is smooth; shapes as in `cdf`."""
        return self._at_outcomes(y, self._mass_at)

    def _mass_at(self, y: FloatArray) -> FloatArray:
        return np.zeros(len(y))

    def crps(self, y: ArrayLike) -> FloatArray:
        """Continuous ranked probability score, in units of y; lower is better.

        In closed form, ``E|Y - y| - ½ E|Y - Y'|`` (Grimit et al. 2006,
        https://doi.org/10.1256/qj.05.235). The time grows with the square of ``n_members``.

        Parameters
        ----------
        y : float, or array-like of shape (n,), (1, k) or (n, k)
            Outcomes.

        Returns
        -------
        ndarray of shape (n,) or (n, k)
        """
        # Never negative but by cancellation, where all std are minute beside the distances.
        return np.maximum(self._at_outcomes(y, self._crps), 0.0)

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

    def to_frame(
        self, intervals: ArrayLike = (0.9,), quantiles: ArrayLike = (), *, index: Any = None
    ) -> Any:
        """As a DataFrame, a line for each row.

        Columns are ``mean``, ``std`` and ``median``; ``low_90`` and ``high_90``, the ends of each
        central interval that is asked for; and ``q_10`` … of each quantile.

        Parameters
        ----------
        intervals : float or list of float in (0, 1), default=(0.9,)
        quantiles : float or list of float in (0, 1), default=()
        index : pandas Index or None, default=None
            Labels of the rows. None takes those of the frame that was predicted for.

        Returns
        -------
        pandas.DataFrame or polars.DataFrame
            Of the library whose frame was predicted for; else of pandas, if that is installed. All
            is in units of y.

        Notes
        -----
        Intervals are those of the distribution. Those of a conformal regressor are not: they come
        from its ``predict_interval``.

        Examples
        --------
        >>> from mvenet.distributions import Normal
        >>> print(Normal(mean=[0.0, 10.0], std=[1.0, 2.0]).to_frame().round(2))
           mean  std  median  low_90  high_90
        0   0.0  1.0     0.0   -1.64     1.64
        1  10.0  2.0    10.0    6.71    13.29
        """
        labels = self._labels if index is None else index
        return _frame.frame(_frame.columns(self, intervals, quantiles), labels, len(self))

    def _repr_html_(self) -> str:
        """The first rows in a notebook, each with a curve of its density."""
        some = self[: _html.MOST_ROWS]
        names = _frame.shown(self._labels, range(len(some)))
        return _html.table(some, names, repr(self), len(self))

    def _at_outcomes(self, y: ArrayLike, of: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """Apply a function of an outcome for each row to all outcomes that are asked about."""
        values, n = real("y", y), len(self)
        if values.ndim < 2:
            if values.ndim:
                remedy = "pass one outcome per row, or a scalar; several for all rows are [[…]]"
                check_shape("y", values, (n,), remedy)
            return of(np.broadcast_to(values, (n,)))
        if values.ndim > 2 or len(values) not in (1, n):
            raise ValueError(
                f"y must have shape ({n},), (1, k) or ({n}, k), got {values.shape}; pass one row "
                "of outcomes for all, or one for each"
            )
        out = np.empty((n, values.shape[1]))
        for j, column in enumerate(np.broadcast_to(values, out.shape).T):
            out[:, j] = of(np.ascontiguousarray(column))
        return out
