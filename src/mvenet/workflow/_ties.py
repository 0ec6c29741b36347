"""Which groups and moments a model was trained on, and what another table has of them.

Groups are kept as numbers that their names are hashed to: a model file that is passed on tells
nobody's name.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mvenet._columns.cells import plain_series, texts
from mvenet._columns.dates import days_later
from mvenet.workflow._belonging import Belonging, By, stretches_of

Hashes = NDArray[np.uint64]
NO_GROUPS: Hashes = np.empty(0, dtype=np.uint64)
KEPT = {
    "group": str, "groups": np.ndarray, "time": str, "last": float, "dated": bool, "form": str,
}  # fmt: skip


@dataclass(frozen=True)
class Ties:
    """What ties the rows of a table, by the names of its columns, and what was trained on.

    Attributes
    ----------
    group, time : str
        Names of the columns, empty if there is none.
    groups : ndarray of uint64
        The groups that were trained on, hashed, in order.
    last : float
        The latest moment, in units of the column, days since 1970 if it holds dates.
    dated : bool
        Whether it does.
    form : str
        How the dates are written.
    """

    group: str = ""
    groups: Hashes = field(default_factory=lambda: NO_GROUPS)
    time: str = ""
    last: float = 0.0
    dated: bool = False
    form: str = ""

    @staticmethod
    def of_model(model: Any) -> Ties:
        """What a model keeps; nothing if its rows were independent."""
        kept = getattr(model, "__dict__", {}).get("ties_", {})
        whole = type(kept) is dict and all(type(kept.get(n)) is kind for n, kind in KEPT.items())
        return Ties(**{name: kept[name] for name in KEPT}) if whole else Ties()

    @staticmethod
    def of_rows(tied: Belonging, rows: NDArray[np.int64]) -> Ties:
        """What is known of the rows that are trained on."""
        groups, last = NO_GROUPS, 0.0
        if tied.groups is not None:
            groups = _hashed(np.unique(tied.groups[rows]))
        if tied.moments is not None:
            last = float(tied.moments[rows].max())
        return Ties(tied.group or "", groups, tied.time or "", last, tied.dated, tied.form)

    @property
    def kept(self) -> dict[str, Any]:
        """As a model keeps it."""
        return {name: getattr(self, name) for name in KEPT}

    def compared(self, frame: Any) -> Compared:
        """What a table has of it; its columns may be missing there, and its cells."""
        rows, made = len(frame), Compared(self, len(frame))
        if self.group and self.group in frame.columns:
            names, counts = np.unique(
                texts(pl.Series(frame[self.group])).fill_null("").to_numpy(), return_counts=True
            )
            hashes = _hashed(names)
            seen = np.isin(hashes, self.groups)
            made = Compared(self, rows, hashes[seen], hashes[~seen], int(counts[~seen].sum()))
        moments = self._moments(frame)
        if moments is not None:
            later = int(np.sum(moments > self.last))
            made = Compared(self, rows, made.known, made.new, made.rows_of_new, later)
        return made

    def by(self, frame: Any) -> By | None:
        """The groups of the rows of a table, or the stretches of time that they are in."""
        if self.group and self.group in frame.columns:
            names = texts(pl.Series(frame[self.group])).fill_null("").to_numpy()
            return By(self.group, names, along=False)
        moments = self._moments(frame)
        if moments is None:
            return None
        return By(self.time, stretches_of(moments, self.dated), along=True)

    def _moments(self, frame: Any) -> NDArray[np.float64] | None:
        """When each row was; None if a cell is none of those that the column had at the fit."""
        if not self.time or self.time not in frame.columns:
            return None
        cells = plain_series(pl.Series(frame[self.time]))
        if self.dated:
            moments = days_later(texts(cells) if cells.dtype.is_numeric() else cells, self.form)
        else:
            moments = cells.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
        return moments if np.isfinite(moments).all() else None


@dataclass(frozen=True)
class Compared:
    """What a table has of the groups and of the time that a model was trained on.

    ``known`` and ``new`` are hashes of its groups, None if it does not name them; ``later`` is how
    many rows are later than all that was trained on, None if it does not say when they were.
    """

    of: Ties
    rows: int = 0
    known: Hashes | None = None
    new: Hashes | None = None
    rows_of_new: int = 0
    later: int | None = None

    def __add__(self, other: Compared) -> Compared:
        """What both parts of a table have."""
        known, new = (
            None if a is None or b is None else np.union1d(a, b)
            for a, b in ((self.known, other.known), (self.new, other.new))
        )
        later = None if self.later is None or other.later is None else self.later + other.later
        rows_of_new = self.rows_of_new + other.rows_of_new
        return Compared(self.of, self.rows + other.rows, known, new, rows_of_new, later)

    @property
    def facts(self) -> dict[str, int]:
        """By name, what is known."""
        told = {} if self.known is None else {"known_groups": len(self.known)}
        told |= {} if self.new is None else {"new_groups": len(self.new)}
        return told | ({} if self.later is None else {"rows_later": self.later})

    def sentences(self) -> list[str]:
        """In words: which groups are new, and which rows later."""
        told = []
        if self.known is not None and self.new is not None:
            told.append(self._of_groups(len(self.known), len(self.new)))
        if self.later is not None:
            until = f"{self.of.time} {self._last()}"
            share = "no row is" if not self.later else f"{self.later:,} of {self.rows:,} rows are"
            told.append(
                f"{share[:1].upper()}{share[1:]} later than all that was trained on ({until})."
            )
        return told

    def _of_groups(self, known: int, new: int) -> str:
        name = self.of.group
        if not known:
            return f"All {self.rows:,} rows are of new values of {name} ({new:,})."
        wide = "there intervals, made for new ones, are on the safe side"
        if not new:
            return f"All {self.rows:,} rows are of values of {name} that were trained on: {wide}."
        return (
            f"{self.rows_of_new:,} of {self.rows:,} rows are of {new:,} new values of {name}, the "
            f"others of {known:,} that were trained on: {wide}."
        )

    def _last(self) -> str:
        if not self.of.dated:
            return f"{self.of.last:.6g}"
        return str(np.datetime64(0, "D") + np.timedelta64(int(np.floor(self.of.last)), "D"))


def _hashed(names: NDArray[Any]) -> Hashes:
    made = (hashlib.blake2b(str(name).encode(), digest_size=8).digest() for name in names)
    return np.sort(np.array([int.from_bytes(part, "little") for part in made], dtype=np.uint64))
