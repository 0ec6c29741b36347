"""Whether what a file says an encoder has learned can have been learned from a table."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from mvenet._columns.dates import CYCLES
from mvenet._columns.levels import Levels
from mvenet._models.checks import require, shape_of

if TYPE_CHECKING:
    from mvenet._columns.encoding import Encoding

KINDS = ("number", "truth", "date", "category", "dropped")
_FORM = re.compile(r"(%([YymdBHMSIpz]|\.f)|[-/.: ]){0,30}")
_LEVELS = ("names", "ends", "values", "defaults", "shares")


def check_kept(encoder: Encoding) -> None:
    """Raise an error if an encoder is fitted, but to no table; files of old formats hold less."""
    kept = vars(encoder)
    if "kinds_" not in kept:
        return
    d = shape_of(kept["kinds_"], 1, "the kinds of columns are no list")
    require(set(kept["kinds_"].tolist()) <= set(KINDS), "there is a column of no known kind")
    names = kept["feature_names_in_"]
    texts = type(names) is np.ndarray and names.shape == d and _all_texts(names)
    require(texts and len(set(names)) == len(names), "the columns of a table have no names")
    numbers = len(encoder.named("number", "truth", "date"))
    _check_filled(*encoder._filled(), numbers)
    _check_dates(kept, len(encoder.named("date")))
    categories = encoder.named("category")
    _check_packed(kept, len(categories))
    for level in Levels.unpacked(kept, categories).values():
        _check_levels(level)
    require(type(kept.get("promise_", "")) is str, "what is promised is no text")
    if "seen_" in kept:
        _check_profile(kept, numbers, numbers + len(categories))


def _all_texts(names: Any) -> bool:
    return all(type(name) is str for name in names.tolist())


def _check_numbers(array: Any, shape: tuple[int, ...], name: str) -> None:
    fits = type(array) is np.ndarray and array.dtype.str == "<f8" and array.shape == shape
    require(fits and np.isfinite(array).all(), f"{name} of a table is not {shape} numbers")


def _check_filled(medians: Any, gaps: Any, columns: int) -> None:
    filled = shape_of(medians, 1, "what replaces missing numbers is no list")
    require(filled == (columns,), "what replaces missing numbers is of other columns")
    whole = medians.dtype.str == "<f8" and np.isfinite(medians).all()
    require(whole, "what replaces missing numbers is none")
    shape_of(gaps, 1, "the columns with gaps are no list")
    require(gaps.dtype.kind == "i", "the columns with gaps have no numbers")
    known = (np.diff(gaps) > 0).all() and (gaps >= 0).all() and (gaps < columns).all()
    require(known, "there are gaps in a column too many")


def _check_dates(kept: dict[str, Any], count: int) -> None:
    if not count:
        return
    for name in ("date_forms_", "date_cycles_"):
        fits = shape_of(kept[name], 1, "the dates are no list") == (count,)
        require(fits and _all_texts(kept[name]), f"{name} are no texts, one for each column")
    forms = all(_FORM.fullmatch(form) for form in kept["date_forms_"].tolist())
    require(forms, "dates are written in no way that mvenet knows")
    cycles = kept["date_cycles_"].tolist()
    known = all(len(set(c)) == len(c) and set(c) <= CYCLES.keys() for c in cycles)
    require(known, "dates have a cycle that mvenet does not know")
    _check_numbers(kept["date_origins_"], (count,), "date_origins_")


def _check_packed(kept: dict[str, Any], count: int) -> None:
    """The names of levels lie one after the other: each letter belongs to one of them."""
    for name in _LEVELS:
        parts = kept.get(f"level_{name}_", [])
        arrays = type(parts) is list and all(type(part) is np.ndarray for part in parts)
        require(arrays and len(parts) in (0, count), f"level_{name}_ is no list of arrays")
    for letters, ends in zip(
        kept.get("level_names_", []), kept.get("level_ends_", []), strict=False
    ):
        whole = ends.ndim == 1 and ends.dtype.str == "<i8" and letters.dtype.str == "|u1"
        require(whole and letters.ndim == 1, "the names of levels are no texts")
        ordered = len(ends) == 0 or (ends[0] >= 0 and (np.diff(ends) >= 0).all())
        last = int(ends[-1]) if len(ends) else 0
        require(ordered and last == len(letters), "the names of levels overlap")


def _check_levels(level: Levels) -> None:
    k = len(level.names)
    require(len(set(level.names)) == k, "two levels have one name")
    if level.values.size:
        _check_numbers(level.values, (k, 2), "level_values_")
        _check_numbers(level.default, (2,), "level_defaults_")
    if level.shares.size:
        _check_numbers(level.shares, (k,), "level_shares_")


def _check_profile(kept: dict[str, Any], numbers: int, columns: int) -> None:
    quantiles = shape_of(kept["seen_"], 2, "seen_ is no table")[0]
    require(quantiles > 1, "nothing was seen of a table")
    _check_numbers(kept["seen_"], (quantiles, numbers), "seen_")
    _check_numbers(kept["missing_"], (columns,), "missing_")
    rows = kept.get("n_rows_", 1)  # younger than the others
    require(type(rows) is int and 0 < rows < 2**63, "n_rows_ is no number of rows")
