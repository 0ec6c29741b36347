"""Which rows of a table belong together: rows of one group, and rows in time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Dependence:
    """What ties the rows of a table to each other, as checked.

    Attributes
    ----------
    groups : ndarray of shape (n,), int, or None
        Number of the group of each row: the promise is about new groups.
    time : ndarray of shape (n,) or None
        When each row was, in days if dates were given: the promise is about later rows.
    horizon : float or None
        Length of the stretch that the promise is about, in units of time; None is that of a fold.
    """

    groups: NDArray[np.int64] | None = None
    time: Array | None = None
    horizon: float | None = None

    def of(self, rows: Any) -> Dependence:
        """The same for some of the rows."""
        groups, time = (None if part is None else part[rows] for part in (self.groups, self.time))
        return Dependence(groups, time, self.horizon)

    def sentence(self) -> str:
        """For whom a promise holds that was learned from what was left out."""
        if self.groups is None:
            return "Stretches of time were left out: what is promised holds for the next one."
        whole = f"Whole groups were left out ({len(np.unique(self.groups)):,} in all)"
        later = "" if self.time is None else "later "
        return f"{whole}: what is promised holds for {later}rows of new groups."


def independent(dependence: Dependence | None, rows: NDArray[np.int64]) -> int:
    """How many independent units these rows are: groups if there are any, else rows."""
    if dependence is None or dependence.groups is None:
        return len(rows)
    return len(np.unique(dependence.groups[rows]))
