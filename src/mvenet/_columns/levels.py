"""Levels of categories, and the numbers that each becomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

Array = NDArray[np.float64]
Rows = NDArray[np.int64]
Folds = Sequence[tuple[Rows, Rows]]


@dataclass(frozen=True)
class Levels:
    """The levels of a category.

    Attributes
    ----------
    names : tuple of str, of length k
        The levels that have numbers of their own; an empty one stands for missing cells.
    values : ndarray of shape (k, 2)
        Mean of the target at each level, and mean distance of the target from it. Empty if each
        level has a column of zeros and ones instead.
    default : ndarray of shape (2,)
        The same for levels never seen; empty likewise.
    shares : ndarray of shape (k,)
        How frequent each level was; empty in files of the first format.
    remark : str
    """

    names: tuple[str, ...]
    values: Array
    default: Array
    shares: Array
    remark: str = ""

    def encode(self, texts: pl.Series) -> Array:
        """The numbers of each cell, null being missing; shape (n, k) or (n, 2)."""
        known = pl.Enum(self.names)
        codes = texts.fill_null("").cast(known, strict=False).to_physical()
        if self.values.size:
            every = np.vstack([self.values, self.default])
            made: Array = every[codes.fill_null(len(self.names)).to_numpy()]
            return made
        made = np.zeros((len(texts), len(self.names)))
        rows = np.flatnonzero(codes.is_not_null().to_numpy())
        made[rows, codes.drop_nulls().to_numpy()] = 1.0
        return made

    def unseen(self, texts: pl.Series) -> NDArray[np.bool_]:
        """Which cells have a level that was not there; none if some were not kept."""
        if not self.shares.size or self.shares.sum() <= 0.999:
            return np.zeros(len(texts), dtype=bool)
        cells = texts.alias("").fill_null("")  # a column's name may look like a pattern
        return ~cells.is_in([*self.names, ""]).to_numpy()

    def feature_names(self, column: str) -> list[str]:
        """Names of the columns that ``encode`` returns."""
        if self.values.size:
            return [f"{column}_mean", f"{column}_spread"]
        return [f"{column}_{name or '(missing)'}" for name in self.names]

    @staticmethod
    def packed(levels: list[Levels]) -> dict[str, Any]:
        """Attributes of an estimator that hold these, as a model file can keep them.

        The names are UTF-8, one after the other, and where each ends: as text of NumPy every one
        would take as much room as the longest.
        """
        texts = [[name.encode() for name in level.names] for level in levels]
        return {
            "level_names_": [np.frombuffer(b"".join(names), np.uint8) for names in texts],
            "level_ends_": [np.cumsum([len(n) for n in names], dtype=np.int64) for names in texts],
            "level_values_": [level.values for level in levels],
            "level_defaults_": [level.default for level in levels],
            "level_shares_": [level.shares for level in levels],
        }

    @classmethod
    def unpacked(cls, attributes: Mapping[str, Any], columns: list[str]) -> dict[str, Self]:
        """The levels of each column.

        Files of the first format have a OneHotEncoder, some of the second text of NumPy.
        """
        nothing = np.empty(0)
        if attributes.get("one_hot_") is not None:
            kept = attributes["one_hot_"].categories_
            every = zip(columns, kept, strict=True)
            return {c: cls(_as_text(names), nothing, nothing, nothing) for c, names in every}
        fields = ("names", "values", "defaults", "shares")
        parts = [attributes.get(f"level_{part}_", ()) for part in fields]
        ends = attributes.get("level_ends_", [None] * len(parts[0]))
        return {
            column: cls(_as_text(names, end), *others)
            for column, end, names, *others in zip(columns, ends, *parts, strict=True)
        }


def _as_text(kept: NDArray[Any], ends: NDArray[Any] | None = None) -> tuple[str, ...]:
    """Names as :meth:`Levels.packed` keeps them, or as text of NumPy if no ends are known."""
    if ends is None:
        return tuple(str(name) for name in kept)
    letters, places = kept.tobytes(), [0, *ends.tolist()]
    return tuple(letters[a:b].decode(errors="replace") for a, b in pairwise(places))


def frequent(texts: pl.Series, most: int) -> Levels:
    """The most frequent levels, in alphabetical order, each with a column of its own."""
    counts = texts.fill_null("").alias("level").value_counts(name="n")
    kept = counts.sort(["n", "level"], descending=[True, False])["level"].head(most).sort()
    rare = len(counts) - len(kept)
    nothing = np.empty(0)
    remark = f"the {most} most frequent kept apart" if rare else ""
    names = tuple(kept.to_list())
    return Levels(names, nothing, nothing, _shares(texts, names), remark)


def _shares(texts: pl.Series, names: tuple[str, ...]) -> Array:
    """How frequent each of these levels is."""
    counts = dict(texts.fill_null("").value_counts().rows())
    return np.array([counts.get(name, 0) for name in names]) / len(texts)


def by_target(
    texts: pl.Series, y: Array, groups: NDArray[Any] | None = None
) -> tuple[Levels, Array]:
    """Each level as the mean of the target and the mean distance from it.

    Means of rare levels are drawn towards the overall one, as far as their noise says. Returns the
    levels for new rows, and the numbers for these, which leave out the row's own fifth; of rows in
    groups, whole groups at a time.
    """
    from sklearn.model_selection import GroupKFold, KFold  # a second, and only a fit needs it
    from sklearn.preprocessing import TargetEncoder

    cells = texts.fill_null("").to_numpy()[:, None]
    folds = list(KFold(5, shuffle=True, random_state=0).split(cells))
    if groups is not None:
        folds = list(GroupKFold(min(5, len(np.unique(groups)))).split(cells, groups=groups))
    fitted, trained = [], []
    aim = y
    for _ in range(2):
        made = np.empty(len(y))
        for others, fold in folds:
            encoder = TargetEncoder(target_type="continuous").fit(cells[others], aim[others])
            made[fold] = encoder.transform(cells[fold])[:, 0]
        fitted.append(TargetEncoder(target_type="continuous").fit(cells, aim))
        trained.append(made)
        aim = np.abs(y - trained[0])
    values = np.column_stack([encoder.encodings_[0] for encoder in fitted])
    default = np.array([float(encoder.target_mean_) for encoder in fitted])
    names = tuple(str(name) for name in fitted[0].categories_[0])
    remark = "each as the target's mean and spread in other rows"
    levels = Levels(names, values, default, _shares(texts, names), remark)
    return levels, np.column_stack(trained)


def within_folds(
    texts: pl.Series, y: Array, folds: Folds, rest: Rows, groups: NDArray[Any] | None = None
) -> Array:
    """Numbers for rows that folds leave out, each from the rows that its fold trains on, (n, 2).

    ``rest`` are rows that no fold leaves out, as the first ones in time: of these a fifth at a time
    is, and no other row tells of them. NaN for all others.
    """
    from sklearn.preprocessing import TargetEncoder

    cells = texts.fill_null("").to_numpy()[:, None]
    made, aim = np.full((len(y), 2), np.nan), y
    for column in range(2):
        for train, left_out in [*folds, *_fifths(rest, groups)]:
            encoder = TargetEncoder(target_type="continuous").fit(cells[train], aim[train])
            made[left_out, column] = encoder.transform(cells[left_out])[:, 0]
        aim = np.abs(y - made[:, 0])
    return made


def _fifths(rows: Rows, groups: NDArray[Any] | None) -> Folds:
    """Rows as folds: whole groups, if there are some."""
    from sklearn.model_selection import GroupKFold, KFold

    if groups is not None and len(np.unique(groups[rows])) > 1:
        splitter = GroupKFold(min(5, len(np.unique(groups[rows]))))
        parts = list(splitter.split(rows, groups=groups[rows]))
    elif len(rows) > 1:
        parts = list(KFold(min(5, len(rows)), shuffle=True, random_state=0).split(rows))
    else:
        return [(rows, rows)] if len(rows) else []
    return [(rows[train], rows[left_out]) for train, left_out in parts]
