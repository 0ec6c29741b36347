"""The range of the training rows, and how a predictive distribution widens outside of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvenet._models.checks import check_array, check_fields, check_number, require
from mvenet._utils.sums import between

Array = NDArray[np.float64]
# Lengths of a column's range beyond its end from which on an interval is at least a typical one.
SOON = 0.05
WIDEST = 1e150  # of a spread whose square is a number; y is counted in units of its own size


@dataclass(frozen=True)
class Range:
    """The smallest and largest value of each column and of y, and the spread of y.

    ``typical_std`` is the standard deviation of a normal whose 90 % interval is as wide as that of
    a typical training row. Models of files that are older than this field have none.

    If rows follow each other in time, ``pace`` is one over the distance that each column covers in
    a stretch, zero if it does not drift; ``drift_std`` is the standard deviation of what is added
    to errors many stretches later.
    """

    x_low: Array
    x_high: Array
    y_low: float
    y_high: float
    y_std: float
    typical_std: float = 0.0
    pace: Array | None = None
    drift_std: float = 0.0

    @staticmethod
    def of(X: NDArray[Any], y: Array, typical_std: float) -> Range:
        """The range of training rows."""
        return Range(
            X.min(axis=0).astype(np.float64),
            X.max(axis=0).astype(np.float64),
            float(y.min()),
            float(y.max()),
            float(y.std()),
            typical_std,
        )

    def reaching(self, below: Array, above: Array) -> Range:
        """The same with the columns' range longer by so much at its ends."""
        return replace(self, x_low=self.x_low - below, x_high=self.x_high + above)

    def limits(self, log: bool) -> tuple[float, float]:
        """Between them lies every mean: no further from the range of y than once its length.

        On the log scale, upwards no further than to twice the largest y.
        """
        length = self.y_high - self.y_low
        beyond = min(length, float(np.log(2.0))) if log else length
        return self.y_low - length, self.y_high + beyond

    def within(self, X: NDArray[Any]) -> Array:
        """Each column cut to the range."""
        # By rows in memory: a sum over columns then has one order, whatever X has.
        return np.ascontiguousarray(between(X, self.x_low, self.x_high), dtype=np.float64)

    def added_variance(self, X: NDArray[Any], clipped: Array, unknown_std: float) -> Array:
        """Variance that every component has besides, for each row: zero within the range.

        It grows with the distance from the range up to the variance of y: far away no column is of
        use. Noise may be small at the end of the range and large in the middle, so the variance of
        a typical row is added, too, in full from a twentieth of the range on: otherwise an interval
        could be narrower outside than anywhere inside.

        In time there is besides what errors were found to grow by, beyond the next stretch.
        """
        if (clipped == X).all():  # most rows are like the training rows
            return np.zeros(len(X))
        length = self.x_high - self.x_low
        with np.errstate(over="ignore"):
            beyond = np.abs(X - clipped) / np.where(length > 0, length, 1.0)
            far = np.minimum(np.square(np.minimum(beyond, 1e100)).sum(axis=1), 1e100)
        near = np.minimum(far / SOON**2, 1.0)
        added = far / (1.0 + far) * unknown_std**2 + near * self.typical_std**2
        if self.pace is None:
            return np.asarray(added)
        return np.asarray(added + self.drifted(X, clipped) * self.drift_std**2)

    def drifted(self, X: NDArray[Any], clipped: Array) -> Array:
        """Share of the variance of distant rows that is added: a half after a stretch."""
        assert self.pace is not None
        with np.errstate(over="ignore", invalid="ignore"):
            beyond = np.minimum(np.abs(X - clipped), 1e100) * self.pace
            far = np.minimum(np.square(np.minimum(beyond, 1e100)).sum(axis=1), 1e100)
        return np.asarray(far / (1.0 + far))

    def check(self, n_columns: int) -> None:
        """Raise an error if a fit cannot have made it."""
        check_fields(self, Range)
        check_array(self.x_low, (n_columns,), "x_low")
        check_array(self.x_high, (n_columns,), "x_high")
        for name in ("y_low", "y_high"):
            check_number(getattr(self, name), name)
        if self.pace is not None:
            check_array(self.pace, (n_columns,), "pace", least=0.0)
        for name in ("y_std", "typical_std", "drift_std"):
            check_number(getattr(self, name), name, least=0.0)
            require(getattr(self, name) < WIDEST, f"{name} is too large to be squared")
        ordered = (self.x_low <= self.x_high).all() and self.y_low <= self.y_high
        require(ordered and math.isfinite(self.y_high - self.y_low), "a range ends too soon")
