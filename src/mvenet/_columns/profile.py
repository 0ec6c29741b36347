"""What a table looked like when a model was fitted to it, and whether a new one does."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mvenet._columns.cells import texts
from mvenet._columns.dates import day_in_words
from mvenet._models.numbers import LEVELS
from mvenet._utils.wording import readable

if TYPE_CHECKING:
    from mvenet._columns.encoding import Encoding
    from mvenet._columns.levels import Levels

Array = NDArray[np.float64]
DRIFT = 0.1  # of the distribution that lies elsewhere: less is of no consequence


def profile(numbers: Array, table: pl.DataFrame, categories: list[str]) -> tuple[Array, Array]:
    """Quantiles of each column of numbers, and the share of missing cells of every column."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a column without a single number
        seen = np.nanquantile(numbers, LEVELS, axis=0) if numbers.size else np.empty((21, 0))
    gaps = [float(np.isnan(column).mean()) for column in numbers.T]
    gaps += [table[name].null_count() / max(1, len(table)) for name in categories]
    return np.nan_to_num(seen), np.array(gaps)


@dataclass(frozen=True)
class Drift:
    """How a column of a new table differs from the one that a model was fitted to.

    Attributes
    ----------
    column : str
    moved : float
        Share of the distribution that would have to move for the two to be alike, 0 to 1.
    outside : float
        Share of the rows beyond the range that was seen, or at a level that was not.
    missing : float
        Share of the cells that are missing, less what it was.
    changed : bool
        More than chance, and enough to matter.
    remark : str
        In words; empty if nothing changed.
    """

    column: str
    moved: float
    outside: float
    missing: float
    changed: bool
    remark: str


def drifts(encoder: Encoding, frame: Any) -> tuple[list[Drift], NDArray[np.bool_]]:
    """How each column has changed, the most first, and which rows are outside what was seen.

    Raises
    ------
    ValueError
        If the model is too old to know what it has seen.
    """
    if not hasattr(encoder, "seen_"):
        raise ValueError(
            "The model was fitted before mvenet kept what its table looked like: fit it again."
        )
    tidy = encoder.tidy(frame)
    dates, levels = encoder.dates_, encoder.levels_
    numeric = encoder.named("number", "truth", "date")
    chance = Chance.of(encoder, len(tidy))
    beyond = np.zeros(len(tidy), dtype=bool)
    found = []
    for i, name in enumerate([*numeric, *levels]):
        gaps = tidy[name].null_count() / len(tidy) - float(encoder.missing_[i])
        if name in levels:
            moved, odd, told = _levels(tidy[name], levels[name])
            limit, ends = chance.moved(len(levels[name].names)), 1
        else:
            limit, ends = chance.moved(), 2
            origin = dates[name].origin if name in dates else None
            moved, odd, told = _range(_numbers(tidy[name], origin), encoder.seen_[:, i], origin)
        beyond |= odd
        share = float(odd.mean())
        many = share > max(0.01, 3 / len(tidy)) and chance.excludes(int(odd.sum()), ends)
        found.append(_change_of(name, moved, share, gaps, limit, many, told))
    return sorted(found, key=lambda drift: -max(drift.moved, abs(drift.missing))), beyond


def outside(
    encoder: Encoding, frame: Any, encoded: Array, margin: float = 0.0
) -> NDArray[np.bool_] | None:
    """Which rows have a number beyond the range that was seen, or a level that was not.

    ``encoded`` is what the encoder made of the table, ``margin`` a share of a range's length that
    does not count. Returns None if the model is too old to know.
    """
    if not hasattr(encoder, "seen_"):
        return None
    numbers = encoded[:, : encoder.seen_.shape[1]]
    low, high = _ends(encoder.seen_, margin)
    odd = np.zeros(len(encoded), dtype=bool)
    cells = np.flatnonzero((numbers < low) | (numbers > high))
    odd[cells // max(1, numbers.shape[1])] = True
    for name, levels in encoder.levels_.items():
        odd |= levels.unseen(texts(frame[name]))
    return odd


def _ends(seen: Array, margin: float = 0.0) -> tuple[Array, Array]:
    """Between them lies what was seen, and what is no further off than rounding or the margin."""
    slack = 1e-9 * np.maximum(np.maximum(np.abs(seen[0]), np.abs(seen[-1])), 1e-300)
    slack = slack + margin * (seen[-1] - seen[0])
    return seen[0] - slack, seen[-1] + slack


def _numbers(column: pl.Series, origin: float | None) -> Array:
    if origin is None:
        made: Array = column.to_numpy()
        return made
    moments = column.cast(pl.Int64).cast(pl.Float64).to_numpy()
    return moments / 86_400e6 - origin


def _range(
    values: Array, seen: Array, origin: float | None
) -> tuple[float, NDArray[np.bool_], str]:
    """How far the distribution function has moved at most, and which values are outside."""
    given = values[~np.isnan(values)]
    low, high = _ends(seen)
    odd = (values < low) | (values > high)
    if not len(given):
        return 0.0, odd, "all missing"
    # Both kinds of steps: a value that many cells have is no shift.
    below = [np.mean(given < q) for q in seen], [np.mean(given <= q) for q in seen]
    was = [np.mean(seen < q) for q in seen], [np.mean(seen <= q) for q in seen]
    gaps = np.maximum(0, np.maximum(np.subtract(below[0], was[1]), np.subtract(was[0], below[1])))
    gaps = np.maximum(gaps - 1 / (len(seen) - 1), 0)
    middle = float(np.median(given))
    words = ("later", "earlier") if origin else ("higher", "lower")
    direction = words[0] if middle > seen[len(seen) // 2] else words[1]
    moved = float(max(gaps.max(), float(odd.mean())))
    now, was_once = (_in_words(value, origin) for value in (middle, seen[len(seen) // 2]))
    return moved, odd, f"{direction}: the middle is {now}, was {was_once}"


def _in_words(value: float, origin: float | None) -> str:
    """A number, or the date that is so many days after the origin."""
    if not origin:  # or the time of a day
        return readable(value)
    return day_in_words(value + origin)


def _levels(column: pl.Series, levels: Levels) -> tuple[float, NDArray[np.bool_], str]:
    """Half the sum of all differences between shares, and which rows have a level never seen."""
    cells = column.alias("").fill_null("")
    known = levels.names
    odd = levels.unseen(column)
    counts = dict(cells.value_counts().rows())
    now = np.array([counts.get(name, 0) for name in known]) / len(cells)
    was = levels.shares if levels.shares.size else now
    rest = abs((1 - now.sum()) - (1 - was.sum()))
    moved = 0.5 * (float(np.abs(now - was).sum()) + rest)
    most = int(np.abs(now - was).argmax()) if len(known) else 0
    told = f"{known[most] or '(missing)'}: {now[most]:.0%}, was {was[most]:.0%}" if known else ""
    if odd.any():
        new = cells.filter(pl.Series(odd))[0]
        told = f"new level {str(new)[:30]!r}" + (f"; {told}" if moved > DRIFT else "")
    return moved, odd, told


def _change_of(
    name: str, moved: float, outside: float, gaps: float, limit: float, beyond: bool, told: str
) -> Drift:
    """In words, if more moved or is missing than the limit, or too much is beyond what was seen."""
    drifted = moved > max(DRIFT, limit)
    emptier = abs(gaps) > max(DRIFT, limit)
    words = [told] if drifted or (beyond and told.startswith("new")) else []
    words += [f"{outside:.1%} outside the range seen"] if beyond and not words else []
    words += [f"{gaps:+.0%} missing"] if emptier else []
    return Drift(name, moved, outside, gaps, drifted or emptier or beyond, ", ".join(words))


@dataclass(frozen=True)
class Chance:
    """How much two samples of the same rows differ by chance: all columns in 99 of 100 tables.

    ``seen`` rows, infinitely many if a model of old does not know, ``new`` ones, and how many
    columns.
    """

    seen: float
    new: int
    columns: int

    @staticmethod
    def of(encoder: Encoding, new: int) -> Chance:
        """For a table of so many rows."""
        columns = len(encoder.named("number", "truth", "date", "category"))
        seen = float(getattr(encoder, "n_rows_", math.inf))
        return Chance(max(1.0, seen), new, columns)  # whatever a file says

    def moved(self, levels: int = 0) -> float:
        """Of a distribution function (Kolmogorov); of shares of levels, to which each adds."""
        each = math.sqrt(1 / self.seen + 1 / self.new)
        return each * (math.sqrt(0.5 * math.log(200 * self.columns)) + 0.4 * math.sqrt(levels))

    def excludes(self, rows: int, ends: int) -> bool:
        """Whether so many new rows beyond one or two ends of what was seen are no chance.

        Each of the outermost rows of all is a new one as often as new ones are among all.
        """
        new = self.new / (self.new + self.seen)
        by_chance = new**rows * (1 + rows * (1 - new) if ends == 2 else 1)
        return bool(by_chance < 0.01 / self.columns)

    def rows_outside(self) -> float:
        """Share of rows beyond an end of any column: as expected, and three deviations of that."""
        new = self.new / (self.new + self.seen)
        expected = 2 * self.columns * new / (1 - new)
        return (expected + 3 * math.sqrt(expected / (1 - new))) / self.new
