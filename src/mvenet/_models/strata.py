"""Groups of rows that intervals hold within, and how much likelier rows are among those to come."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Rows = NDArray[np.int64]
MISSING = "missing"
MOST_NAMED = 3


@dataclass(frozen=True)
class Strata:
    """Which of the known groups of rows each of some rows is of.

    Attributes
    ----------
    names : list of str
        Of the known ones.
    sizes : list of int
        Rows that each was calibrated by.
    numbers : ndarray of shape (n,), int
        Number of each row's; -1 if it is not known.
    labels : ndarray of shape (n,), str
    """

    names: list[str]
    sizes: list[int]
    numbers: Rows
    labels: NDArray[Any]

    @staticmethod
    def of(labels: NDArray[Any], sizes: Mapping[str, int]) -> Strata:
        """Compare labels with those that were calibrated by."""
        known = {name: number for number, name in enumerate(sizes)}
        unique, inverse = np.unique(labels, return_inverse=True)
        numbers = np.array([known.get(str(name), -1) for name in unique], dtype=np.int64)
        return Strata(list(sizes), list(sizes.values()), numbers[inverse.ravel()], labels)

    def parts(self) -> Iterator[tuple[int, Rows]]:
        """The number of each group that occurs, and its rows."""
        for number in np.unique(self.numbers).tolist():
            yield number, np.flatnonzero(self.numbers == number)

    def warn(self, enough: Callable[[int], bool], coverage: float) -> None:
        """Say which rows are of groups that are new, or too small for a promise of their own."""
        small = [n for n, size in enumerate(self.sizes) if not enough(size)]
        lost = np.isin(self.numbers, [-1, *small])
        if lost.any():
            names = [repr(str(name)) for name in np.unique(self.labels[lost])]
            more = f" and {len(names) - MOST_NAMED} others" if len(names) > MOST_NAMED else ""
            warnings.warn(
                f"{int(lost.sum()):,} of {len(lost):,} rows are of groups with too few rows to "
                f"calibrate by for coverage={coverage:g} ({', '.join(names[:MOST_NAMED])}{more}): "
                "their intervals are those of all rows, and hold on average only.",
                stacklevel=5,
            )


def labels_of(X: Any, by: Any) -> NDArray[Any]:
    """The group that each row is of, (n,): the text of a column, or of several."""
    if callable(by):
        return _texts(np.asarray(by(X)), "by")
    several = [_texts(_column(X, name), name) for name in (by if _is_list(by) else [by])]
    if len(several) == 1:
        return several[0]
    return np.array([", ".join(parts) for parts in zip(*several, strict=True)])


def _is_list(by: Any) -> bool:
    return isinstance(by, list | tuple)


def _column(X: Any, name: Any) -> NDArray[Any]:
    """A column of a frame or of an array, by its name or its number."""
    if isinstance(name, str):
        if not hasattr(X, "columns"):
            raise ValueError(
                f"by={name!r} names a column, and X has no names: give a DataFrame, or the "
                "column's number."
            )
        if name not in X.columns:
            raise ValueError(
                f"by={name!r} is no column of X: it has {', '.join(map(str, X.columns))}."
            )
        return np.asarray(X[name])
    if isinstance(name, bool) or not isinstance(name, int | np.integer):
        raise TypeError(
            f"by must be a column, a list of columns or a function of X, got {name!r}: use, say, "
            "a name of a DataFrame's column."
        )
    columns = X if hasattr(X, "shape") else np.asarray(X)
    if not -columns.shape[1] <= name < columns.shape[1]:
        raise ValueError(f"by={name} is no column of X, which has {columns.shape[1]}.")
    return np.asarray(columns.iloc[:, name] if hasattr(columns, "iloc") else columns[:, int(name)])


def _texts(values: NDArray[Any], name: Any) -> NDArray[Any]:
    """Each value as text; equal numbers have the same, whatever their type."""
    if values.ndim != 1:
        raise ValueError(
            f"by={name!r} gives shape {values.shape}: one label a row is needed, (n,)."
        )
    if values.dtype.kind in "iuf":
        unique, inverse = np.unique(values, return_inverse=True)
        return np.array([_text(value) for value in unique.tolist()])[inverse.ravel()]
    return np.array([_text(value) for value in values.tolist()])


def _text(value: Any) -> str:
    if value is None or value != value:
        return MISSING
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(np.format_float_positional(value, trim="-"))
    return str(value)


def ratios_of(X: Any, shift: Any) -> Array:
    """How many times likelier each row is among those to come, by a function or a classifier."""
    if callable(shift):
        ratios = np.asarray(shift(X), dtype=np.float64)
    else:
        shares = np.asarray(shift.predict_proba(X), dtype=np.float64)
        if shares.ndim != 2 or shares.shape[1] != 2:
            raise ValueError(
                f"shift gives probabilities of shape {shares.shape}: it must tell two classes "
                "apart, rows to calibrate by (first) and rows to come (second)."
            )
        ratios = shares[:, 1] / np.maximum(shares[:, 0], 1e-12)
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    if ratios.shape != (n,):
        raise ValueError(f"shift gives shape {ratios.shape} for {n} rows: one number a row, (n,).")
    if not (np.isfinite(ratios) & (ratios >= 0)).all():
        row = int(np.argmin(np.isfinite(ratios) & (ratios >= 0)))
        raise ValueError(
            f"shift gives {ratios[row]} for row {row} (counted from 0): a ratio of densities is "
            "finite and not negative."
        )
    return ratios
