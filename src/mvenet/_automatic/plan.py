"""An automatic search, described: the requests of each of its rounds, and what they will cost.

The search trains what this describes. Later rounds depend on earlier results; the estimate of the
time reads the same descriptions, with expected results in place of those to come.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import skew

from mvenet._automatic import baselines
from mvenet._automatic.constants import ENOUGH
from mvenet._automatic.kinds import Effort, Folds, NetworkKind
from mvenet._models.piecewise import Piecewise
from mvenet._training.plan import Plan, Request, Round, Table

Array = NDArray[np.float64]
LARGEST_EXPONENT = 300  # of two: a square then has one of 600, and a double up to 1,023
TARGETS = ("auto", "identity", "log")


@dataclass(frozen=True)
class SearchPlan(Plan):
    """A search: its folds, its effort, and the table on each scale that is tried.

    Attributes
    ----------
    effort : Effort
    folds : list of (rows to train on, rows left out)
    piecewise : Piecewise
        How encoded columns are made.
    scales : tuple of bool
        Whether of log y, for each scale that is tried; the first is what later rounds are
        expected on.
    tables : dict of Table
        By scale and by whether columns are encoded; nothing is encoded before it is needed.
    entropy : int or list of int
    others : tuple
        Means that are not networks.
    unit : float
        What y was divided by.
    scoring : {"log", "crps"}
        By what the mixture is fitted.
    bounds : tuple of two floats or None
        Ends of y that the user knows, in this unit.
    """

    effort: Effort
    folds: Folds
    piecewise: Piecewise
    scales: tuple[bool, ...]
    tables: dict[tuple[bool, bool], Table]
    entropy: Any
    others: tuple[Any, ...]
    unit: float
    scoring: str = "log"
    bounds: tuple[float | None, float | None] = (None, None)

    def requests(
        self, kinds: Sequence[NetworkKind], log: bool, folds: Folds | None = None
    ) -> list[Request]:
        """Networks of these kinds, one for each fold."""
        folds = self.folds if folds is None else folds
        return [k.request(self.tables[log, k.encoded], folds, self.entropy) for k in kinds]

    def noise_requests(self, log: bool, blended: Array, rows: Any, folds: Folds) -> list[Request]:
        """Networks of the noise: the blended mean as a further column, residuals in place of y."""
        tables = {}
        for encoded in {kind.encoded for kind in self.effort.noise}:
            table = self.tables[log, encoded]
            beside = partial(_beside, table, blended)
            tables[encoded] = replace(table, columns=beside, y=table.y - blended, rows=rows)
        return [k.request(tables[k.encoded], folds, self.entropy) for k in self.effort.noise]

    def curve_requests(self, kinds: Sequence[NetworkKind], log: bool) -> list[Request]:
        """Pairs of networks of each kind, trained on fewer rows than those of the folds."""
        return self.requests(_started(kinds, 2), log, self.fewer)

    def member_requests(
        self, kinds: Sequence[NetworkKind], log: bool, starts: int
    ) -> list[Request]:
        """Networks of each kind on all rows, one for each random start."""
        rows = self.tables[log, False].rows
        return self.requests(_started(kinds, starts), log, [(rows, rows[:0])])

    @property
    def fewer(self) -> Folds:
        """Enough of the folds, each without the rows of the next one, if any remain."""
        sizes = np.cumsum([len(test) for _, test in self.folds])
        fewer = []
        for number in range(min(len(self.folds), int(np.searchsorted(sizes, ENOUGH)) + 1)):
            (train, test), after = self.folds[number], self.folds[(number + 1) % len(self.folds)][1]
            remaining = np.setdiff1d(train, after)
            fewer.append((remaining if len(remaining) > 1 else train, test))
        return fewer

    def expected_rounds(self) -> tuple[Round, ...]:
        """All rounds, those that depend on results as expected."""
        effort, log = self.effort, self.scales[0]
        y, rows = self.tables[log, False].y, self.tables[log, False].rows
        later = [self.requests(tier, log) for tier in effort.tiers]
        last = effort.further[-1] if effort.further else ()
        later.append(self.requests(effort.second_starts(last), log))
        later.append(self.noise_requests(log, np.zeros(len(y)), rows, self.folds))
        choice = effort.expected_choice()
        later.append(self.curve_requests(choice, log))
        later.append(self.member_requests(choice, log, effort.starts))
        first = [request for log in self.scales for request in self.requests(effort.joint, log)]
        return Round(tuple(first)), *(Round(tuple(r), settled=False) for r in later if r)

    def seconds_beside(self, threads: int) -> float:
        """Expected time of the means that are not networks."""
        table = self.tables[self.scales[0], False]
        return baselines.expected_seconds(self.others, table, self.folds, threads)


def _started(kinds: Sequence[NetworkKind], starts: int) -> list[NetworkKind]:
    return [replace(kind, start=start) for kind in kinds for start in range(starts)]


def _beside(table: Table, last: Array, rows: Any) -> NDArray[Any]:
    """The columns of a table, and one more."""
    return np.column_stack([table.of(rows), last[rows]])


def usual_folds(n: int, targets: int = 1) -> int:
    """Folds of a table of n rows, for one of so many targets: these share time."""
    few, some = (8, 5) if targets == 1 else (5, 3)  # benchmarks/targets.py
    return max(2, min(few, n // 2)) if n < 2_000 else some if n < 100_000 else 3


def possible_scales(y: Array, target: str) -> tuple[bool, ...]:
    """Whether y, log y or both are worth a trial; a log scale that cannot be is an error."""
    if target == "log" and not (y > 0).all():
        raise ValueError(
            f"target='log' needs a y that is positive everywhere, and y holds {y.min():g}: use "
            "target='auto', or add a constant first."
        )
    if target != "auto":
        return (target == "log",)
    skewed = (y > 0).all() and np.ptp(y) > 0 and abs(skew(np.log(y))) < abs(skew(y))
    return (False, True) if skewed else (False,)


def unit_of(y: Array) -> float:
    """What to divide y by so that its squares neither overflow nor vanish; most often one.

    A power of two, so that nothing is rounded. Not for every y: the penalty of a regressor of the
    user's may be in units of y.
    """
    exponent = int(np.frexp(np.abs(y).max())[1])
    return 1.0 if abs(exponent) < LARGEST_EXPONENT else float(2.0**exponent)


def on_scale(table: Table, log: bool) -> Table:
    """The table itself, or with log y in place of y; rows that do not count may hold anything."""
    if not log:
        return table
    y = np.zeros_like(table.y)
    y[table.rows] = np.log(table.y[table.rows])
    return replace(table, y=y)


def checked_bounds(bounds: Any, y: Array) -> tuple[float | None, float | None]:
    """The ends of y that the user knows, each None or a number that no row is beyond."""
    if bounds is None:
        return None, None
    try:
        low, high = (None if end is None else float(end) for end in bounds)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"bounds must be two numbers, of which one may be None, got {bounds!r}: use such as "
            "(0, 100) or (0, None)."
        ) from error
    if any(end is not None and not np.isfinite(end) for end in (low, high)):
        raise ValueError(f"bounds={bounds!r} holds what is no number: use None for an open end.")
    if low is not None and high is not None and not low < high:
        raise ValueError(f"bounds={bounds!r} must rise: give the lower end first.")
    beyond = np.zeros(len(y), dtype=bool)
    beyond |= False if low is None else y < low
    beyond |= False if high is None else y > high
    if beyond.any():
        row = int(beyond.argmax())
        raise ValueError(
            f"y is {y[row]:g} in row {row} (counted from 0), beyond bounds={bounds!r}: mend the "
            "row, or widen the bounds."
        )
    return low, high


def describe(
    table: Table,
    folds: Folds,
    candidates: Sequence[Any],
    entropy: Any,
    *,
    target: str,
    effort: Effort,
    scoring: str = "log",
    bounds: Any = None,
) -> SearchPlan:
    """Describe a search."""
    unit = unit_of(table.y[table.rows])
    low, high = (None if end is None else end / unit for end in checked_bounds(bounds, table.y))
    table = replace(table, y=table.y / unit)
    scales = possible_scales(table.y[table.rows], target)
    piecewise = Piecewise.of(table.source[table.rows])
    tables: dict[tuple[bool, bool], Table] = {}
    for log in scales:
        plain = on_scale(table, log)
        tables |= {(log, False): plain, (log, True): plain.encoded(piecewise)}
    if "networks" not in candidates:
        effort = replace(effort, means=(), further=())
    others = tuple(mean for mean in candidates if mean != "networks")
    search = SearchPlan(
        (),
        effort,
        folds,
        piecewise,
        scales,
        tables,
        entropy,
        others,
        unit,
        scoring,
        (low, high),
    )
    return replace(search, rounds=search.expected_rounds())
