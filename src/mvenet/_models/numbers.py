"""Numbers with gaps: what stands in for a gap, and which columns tell where gaps were."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvenet._models.checks import check_array, require, shape_of
from mvenet._models.columns import Column, Columns

Array = NDArray[np.float64]
FEWEST = 0.01  # of the rows: rarer gaps make a column that is constant but for a few
MOST_ROWS = 100_000  # that quantiles are of
LEVELS = np.linspace(0, 1, 21)


@dataclass(frozen=True)
class Numbers:
    """What a table of numbers becomes: gaps are filled, and further columns say where they were.

    Attributes
    ----------
    median : ndarray of shape (d,)
        In the place of a gap; NaN for a column without a single number, which is left out.
    missing : ndarray of shape (d,)
        Share of the cells that were missing.
    told : ndarray of int
        The columns whose gaps have a further column of zeros and ones.
    seen : ndarray of shape (21, d)
        Quantiles of what was seen, from least to most.
    """

    median: Array
    missing: Array
    told: NDArray[np.int64]
    seen: Array

    @staticmethod
    def of(table: NDArray[Any], rows: NDArray[np.int64], gaps: bool) -> Numbers:
        """Learn from some rows of a table; ``gaps`` says whether there may be any."""
        d = table.shape[1]
        seen = np.column_stack([_quantiles(table[rows, i]) for i in range(d)])
        if not gaps:
            return Numbers(seen[len(LEVELS) // 2].copy(), np.zeros(d), np.arange(0), seen)
        holes = np.isnan(table[rows])
        median = seen[len(LEVELS) // 2].copy()
        return Numbers(median, holes.mean(axis=0), telling(holes), np.nan_to_num(seen))

    @property
    def width(self) -> int:
        """How many columns a model reads."""
        return int(np.isfinite(self.median).sum()) + len(self.told)

    def transform(self, table: NDArray[Any], gaps: bool, mark: bool = False) -> NDArray[Any]:
        """The table without gaps, and the columns that say where they were.

        With ``mark``, a gap in a column whose gaps were too rare to be told stays: NaN.
        """
        kept = np.isfinite(self.median)
        if not gaps and kept.all() and not len(self.told):
            return table
        holes = np.isnan(table)
        filled = np.where(holes, self.median.astype(table.dtype), table)
        if mark:
            filled[holes & ~np.isin(np.arange(len(kept)), self.told)] = np.nan
        filled = filled[:, kept]
        return np.column_stack([filled, holes[:, self.told].astype(table.dtype)])

    def places(self) -> list[list[int]]:
        """Which of the columns that a model reads each column becomes."""
        kept = np.isfinite(self.median)
        first = np.cumsum(kept) - 1
        made = [[int(first[i])] if kept[i] else [] for i in range(len(kept))]
        for number, column in enumerate(self.told.tolist()):
            made[column].append(int(kept.sum()) + number)
        return made

    def names_out(self, names: Sequence[str]) -> list[str]:
        """Names of the columns that a model reads."""
        kept = [name for name, m in zip(names, self.median, strict=True) if np.isfinite(m)]
        return kept + [f"missingindicator_{names[i]}" for i in self.told]

    def columns(self, names: Sequence[str]) -> Columns:
        """What each column was taken for."""
        told = zip(names, self.median, self.missing, strict=True)
        return Columns({name: _described(m, share) for name, m, share in told})

    def _check_attributes(self) -> None:
        """Raise an error if no table can have taught what it holds."""
        (d,) = shape_of(self.median, 1, "what replaces missing numbers is no list")
        require(self.median.dtype.str == "<f8", "what replaces missing numbers is none")
        require(bool(np.isfinite(self.median).any()), "all columns are left out")
        require(not np.isinf(self.median).any(), "what replaces missing numbers is infinite")
        fits = shape_of(self.missing, 1, "shares of missing cells are no list") == (d,)
        require(fits and self.missing.dtype.str == "<f8", "shares of missing cells are none")
        within = ((self.missing >= 0) & (self.missing <= 1)).all()
        require(bool(within), "a share of missing cells is none")
        check_array(self.seen, (len(LEVELS), d), "seen")
        shape_of(self.told, 1, "the columns with gaps are no list")
        require(self.told.dtype.str == "<i8", "the columns with gaps have no numbers")
        known = (np.diff(self.told) > 0).all() and ((self.told >= 0) & (self.told < d)).all()
        require(bool(known), "there are gaps in a column too many")
        require(bool(np.isfinite(self.median[self.told]).all()), "gaps of no column are told")


def _quantiles(column: NDArray[Any]) -> Array:
    """From least to most; of many rows the inner ones are those of some. NaN without a number."""
    given = column[~np.isnan(column)].astype(np.float64)
    if not len(given):
        return np.full(len(LEVELS), np.nan)
    unit = 4.0 if np.abs(given).max() > 1e307 else 1.0  # differences of such numbers overflow
    made: Array = unit * np.quantile(given[:: -(-len(given) // MOST_ROWS)] / unit, LEVELS)
    made[0], made[-1] = given.min(), given.max()
    return made


def _described(median: float, share: float) -> Column:
    if not np.isfinite(median):
        return Column("dropped", "all missing")
    return Column("number", f"{100 * share:.3g} % missing" if share else "")


def telling(holes: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Columns whose gaps tell something that those of no earlier column do.

    Gaps in fewer rows than one in a hundred do not, nor those of a column without a number.
    """
    found: dict[bytes, int] = {}
    share = holes.mean(axis=0) if len(holes) else np.zeros(holes.shape[1])
    for i in np.flatnonzero((share >= FEWEST) & (share < 1)):
        found.setdefault(np.packbits(holes[:, i]).tobytes(), int(i))
    return np.array(sorted(found.values()), dtype=np.int64)
