"""What ``fit`` is given as frames that are not in memory: brought there, or a sample that fits."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

from mvenet._columns import lazy
from mvenet._estimators.dependence import Belonging
from mvenet._training import fleet
from mvenet._utils.sklearn import n_rows_of, rows_of


def in_memory(
    X: Any, y: Any, weight: Any, belonging: Belonging, random_state: Any
) -> tuple[Any, Any, Any, Belonging]:
    """What there is to fit: all rows, or those drawn, of which a warning tells how many.

    y, weights, groups and time may be names of columns, which are no inputs then.
    """
    total = lazy.count(X)
    if not total:
        raise ValueError("X has no rows: is its filter too strict?")
    seed = fleet.seed_entropy(random_state)
    rows = lazy.drawn(total, None, lazy.numbers_of_a_row(X), seed)
    source = _Source(lazy.taken(X, rows), rows, total)
    target, weight = source.column("y", y), source.column("sample_weight", weight)
    groups, time = source.column("groups", belonging.groups), source.column("time", belonging.time)
    if rows is not None:
        warnings.warn(
            f"Fitted to {lazy.told(rows, total)}: more do not fit into memory. Draw another share "
            "by mvenet.table.sample, and fit that.",
            stacklevel=3,
        )
    return source.inputs(), target, weight, Belonging(groups, time, belonging.horizon)


@dataclass(frozen=True)
class _Source:
    """A frame in memory, and where its rows stood."""

    frame: Any
    rows: Any
    total: int
    used: set[str] = field(default_factory=set)

    def column(self, argument: str, given: Any) -> Any:
        """What an argument is for these rows: a column by its name, or one of another frame."""
        names = [given] if isinstance(given, str) else given
        if isinstance(names, list | tuple) and names and all(isinstance(n, str) for n in names):
            return self._named(argument, list(names), alone=isinstance(given, str))
        if given is None:
            return None
        n = lazy.count(given) if lazy.is_lazy(given) else n_rows_of(given)
        if n != self.total:
            raise ValueError(
                f"{argument} has {n:,} values, and X has {self.total:,} rows: give one for each "
                "row, or the name of a column."
            )
        if not lazy.is_lazy(given):
            return given if self.rows is None else rows_of(given, self.rows)
        frame = lazy.taken(given, self.rows)
        names = list(getattr(frame, "columns", []))
        return frame[names[0]] if len(names) == 1 else frame

    def _named(self, argument: str, names: list[str], alone: bool) -> Any:
        for name in names:
            if name not in self.frame.columns:
                there = ", ".join(map(str, self.frame.columns[:10]))
                raise ValueError(f"{argument}={name!r} is no column of X, which has {there}.")
        self.used.update(names)
        return self.frame[names[0]] if alone else self.frame[names]

    def inputs(self) -> Any:
        """The columns that are not used otherwise."""
        kept = [name for name in self.frame.columns if name not in self.used]
        if not kept:
            raise ValueError("No column of X is left to predict from: y and others are all of it.")
        return self.frame[kept]
