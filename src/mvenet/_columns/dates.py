"""Dates and times: how they are written, and the numbers that a network can use.

A date becomes the days elapsed since the first that was seen and, where the column spans them, the
sine and cosine of the year, the week and the day: the last of December lies beside the first of
January.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

Array = NDArray[np.float64]

_MONTH = "(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_LOOKS = re.compile(
    r"(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{4}[-/]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](\d{2}|\d{4})"
    rf"|\d{{1,2}}(st|nd|rd|th)?[-/. ]+{_MONTH}[-/., ]+\d{{2,4}}"
    rf"|{_MONTH}[. ]+\d{{1,2}}(st|nd|rd|th)?,? +\d{{2,4}}|\d{{8}})([ T]\d{{1,2}}:?\d{{2}}.*)?"
    r"|\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?( ?[ap]\.?m\.?)?",
    re.IGNORECASE,
)
COMPACT = "%Y%m%d"  # which a number may be, too
# Years of two digits first: %Y would take 20 for the year 20.
_DAYS = (
    "%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d",
    "%d.%m.%y", "%d.%m.%Y", "%m/%d/%y", "%m/%d/%Y", "%d/%m/%y", "%d/%m/%Y", "%d-%m-%y",
    "%d-%m-%Y", "%m-%d-%y", "%m-%d-%Y",
    "%d %B %y", "%d %B %Y", "%d-%B-%y", "%d-%B-%Y", "%d.%B %Y", "%B %d %y", "%B %d %Y",
    "%Y-%m", "%Y/%m", COMPACT,
)  # fmt: skip
_HOURS = (" %H:%M", " %H:%M:%S%.f", " %I:%M %p", " %I:%M:%S %p")
_ZONES = ("", "%z")
_ISO = ("%Y-%m-%d", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%d %H:%M")
_TIMES = ("%H:%M", "%H:%M:%S%.f", "%I:%M %p", "%I:%M:%S %p")
_WORDS = {"%Y": "year", "%y": "year", "%m": "month", "%d": "day", "%B": "month"}
CYCLES = {"y": ("year", 365.2425), "w": ("week", 7.0), "d": ("day", 1.0)}
_YEAR = 300.0  # days from which on a column spans the year
_MOST_TRIED = 200


@dataclass(frozen=True)
class Dates:
    """How a column of dates is read, and what is made of it.

    Attributes
    ----------
    form : str
        The format; ISO's if the file knows its types ("" in older files). A time of day has no date
        in it, and only dates that had a zone have ``%z``.
    origin : float
        What is elapsed counts from here, in days since 1970.
    cycles : str
        Letters of ``CYCLES``: the ones that the column spans.
    remark : str
    """

    form: str
    origin: float
    cycles: str
    remark: str = ""

    @property
    def periods(self) -> list[float]:
        """Days that each cycle takes."""
        return [CYCLES[letter][1] for letter in self.cycles]

    def cycle_numbers(self, days: Array) -> Array:
        """Sine and cosine of each cycle, 0 where the date is missing; shape (n, 2 · cycles)."""
        made = np.empty((len(days), 2 * len(self.cycles)))
        for i, period in enumerate(self.periods):
            angle = 2 * np.pi * days / period
            made[:, 2 * i], made[:, 2 * i + 1] = np.sin(angle), np.cos(angle)
        return np.nan_to_num(made, nan=0.0)

    def names(self, column: str) -> list[str]:
        """Names of the columns that ``cycle_numbers`` makes."""
        every = product(self.cycles, ("sin", "cos"))
        return [f"{column}_{CYCLES[letter][0]}_{function}" for letter, function in every]


def found(column: pl.Series, rows: NDArray[Any]) -> Dates | None:
    """How the dates of a column are written; None if they are none.

    ``rows`` are the numbers of its rows, from 0, for the remark.

    Raises
    ------
    ValueError
        If most look like dates, but not all are written in the same way: in words, for a remark.
    """
    given = column.drop_nulls()
    if given.dtype != pl.String:
        form = _typed(given.dtype)
        return _described(form, days(given, form), "", "%z" in form) if form else None
    sample = given.unique(maintain_order=True).head(_MOST_TRIED)
    alike = [bool(_LOOKS.fullmatch(text)) for text in sample]
    if np.mean(alike) <= 0.9:
        return None
    few = _plain(sample.head(3))
    likely = [form for form in _forms() if _parsed(few, form).null_count() < len(few)]
    counts = {form: _n_read(sample, form) for form in likely or _DAYS[:1]}
    forms = [form for form, n in counts.items() if n == max(counts.values())]
    read = {form: days(given, form) for form in forms}
    whole = {form: when for form, when in read.items() if not np.isnan(when).any()}
    if not whole:
        raise ValueError(_mixed(given, read[forms[0]], rows[column.is_not_null().to_numpy()]))
    form = _likeliest(whole)
    return _described(form, whole[form], _in_words(form, list(whole)), "%z" in form)


def compact(numbers: pl.Series) -> bool:
    """Whether numbers are dates such as 20200131: of others, one in twenty-seven could be one."""
    if not 19e6 < numbers[0] < 21e6 or numbers.n_unique() < 5:
        return False
    texts = numbers.cast(pl.Int64, strict=False).cast(pl.String)
    return bool((numbers % 1 == 0).all()) and not np.isnan(days(texts, COMPACT)).any()


def _typed(kind: pl.DataType) -> str:
    """How a column of this type would be written; "" if it holds no dates."""
    if isinstance(kind, pl.Datetime):
        return _ISO[1] + "%z" * has_zone(kind)
    return _ISO[0] if kind == pl.Date else _TIMES[1] if kind == pl.Time else ""


def has_zone(kind: pl.DataType) -> bool:
    """Whether moments of this type are the same everywhere."""
    return isinstance(kind, pl.Datetime) and kind.time_zone is not None


def days_later(column: pl.Series, form: str) -> Array:
    """The same for a table after the fit, where ISO's way to write a date will do as well."""
    text = column.dtype == pl.String
    made = np.full(len(column), np.nan) if text and not form else days(column, form)
    if not text or form in _TIMES:
        return made
    zones = _ZONES if not form else ("%z",) if "%z" in form else ("",)
    for iso in (day + zone for zone in zones for day in _ISO):
        gone = np.isnan(made)
        if gone.sum() == column.null_count():
            break
        made = np.where(gone, days(column, iso), made)
    return made


def days(column: pl.Series, form: str) -> Array:
    """Days since 1970 with fractions, in UTC where there is a zone; NaN where it cannot be read."""
    if column.dtype == pl.Time:
        numbers = column.cast(pl.Int64).cast(pl.Float64) / 86_400e9
    else:
        if column.dtype == pl.String:
            column = _read(column, form)
        if column.dtype == pl.Time:
            return days(column, form)
        if isinstance(column.dtype, pl.Datetime) and column.dtype.time_zone:
            column = column.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        numbers = column.cast(pl.Datetime("us")).cast(pl.Int64).cast(pl.Float64) / 86_400e6
    return numbers.to_numpy().copy()


def day_in_words(days: float) -> str:
    """The day that is so many days after the first of 1970, or before."""
    return str(np.datetime64(math.floor(days), "D"))


def example(form: str) -> str:
    """A date written in this way."""
    moment = pl.Series([1_580_475_600_000_000], dtype=pl.Int64).cast(pl.Datetime("us"))
    if "%z" in form:
        moment = moment.dt.replace_time_zone("UTC")
    return str(moment.dt.strftime(form.replace("%.f", "").replace("%B", "%b")).item())


def _forms() -> Iterator[str]:
    yield from _DAYS
    yield from (day + hour + zone for day, hour, zone in product(_DAYS, _HOURS, _ZONES))
    yield from _TIMES


def _n_read(texts: pl.Series, form: str) -> int:
    return int((~np.isnan(days(texts, form))).sum())


def _read(texts: pl.Series, form: str) -> pl.Series:
    """Parse; what is not in this form is missing."""
    parsed = _parsed(texts, form)
    if parsed.null_count() > texts.null_count():
        parsed = parsed.fill_null(_parsed(_plain(texts), form))
    if form in _TIMES:
        return parsed
    recent = pl.col("when").dt.year() >= 1000  # otherwise %Y was read from two digits
    return parsed.to_frame("when").select(pl.when(recent).then("when")).to_series()


def _parsed(texts: pl.Series, form: str) -> pl.Series:
    if form in _TIMES:
        return texts.str.to_time(form, strict=False)
    if "%H" in form or "%I" in form:
        return texts.str.to_datetime(form, strict=False, time_unit="us")
    return texts.str.to_date(form, strict=False).cast(pl.Datetime("us"))


def _plain(texts: pl.Series) -> pl.Series:
    """Without what people add: the T of ISO, a Z, ordinals, commas and points between words."""
    for pattern, replacement in (
        (r"^(\d{8})[Tt ](\d\d)(\d\d)", "$1 $2:$3:"),
        (r"(\d)[Tt](\d{1,2}:)", "$1 $2"),
        (r" ?(?:[zZ]|UTC|GMT)$", "+0000"),
        (r"(\d{1,2})(?:st|nd|rd|th)\b", "$1"),
        (r"(\d) ?([aApP])\.?[mM]\b\.?", "$1 ${2}M"),
        (r"([a-zA-Z])\.", "$1"),
        (",", " "),
        (r"\s+", " "),
    ):
        texts = texts.str.replace_all(pattern, replacement)
    return texts.str.strip_chars()


def _likeliest(read: dict[str, Array]) -> str:
    """Of the ways to read a column, the one that makes it ascend; else the first of the list."""
    ascending = [form for form, d in read.items() if len(d) > 2 and (np.diff(d) >= 0).all()]
    return ascending[0] if len(ascending) == 1 else next(iter(read))


def _in_words(form: str, others: list[str]) -> str:
    """What to say if a date could be read in two ways."""
    if len(others) < 2 or form in _TIMES:
        return ""
    order = sorted(_WORDS, key=lambda mark: form.find(mark) if mark in form else 99)
    return "read as " + "/".join(_WORDS[mark] for mark in order if mark in form)


def _described(form: str, when: Array, told: str, zoned: bool) -> Dates:
    """The origin and the cycles that the dates span."""
    if form in _TIMES or (when.max() < 1 and when.min() >= 0):
        return Dates(form, 0.0, "d", "time of day")
    span = float(when.max() - when.min())
    whole_days = np.unique(np.floor(when))
    weekdays = len(np.unique(whole_days % 7))
    cycles = "y" * (span >= _YEAR)
    monthly = len(whole_days) > 1 and float(np.diff(whole_days).min()) >= 28
    cycles += "w" * (span >= 6 and weekdays > 2 and not monthly)
    cycles += "d" * (span >= 0.75 and len(np.unique(when % 1)) > 2)
    spans = [CYCLES[letter][0] for letter in cycles]
    made = "days since the first" + (f", time of {', '.join(spans)}" if spans else "")
    first, last = (day_in_words(d) for d in (when.min(), when.max()))
    zone = "in UTC" if zoned else ""
    return Dates(
        form, float(when.min()), cycles,
        ", ".join(filter(None, [f"{first} to {last}", told, zone, made])),
    )  # fmt: skip


def _mixed(given: pl.Series, when: Array, rows: NDArray[Any]) -> str:
    wrong, right = (np.flatnonzero(part) for part in (np.isnan(when), ~np.isnan(when)))
    odd, usual = int(wrong[0]), given[int(right[0])] if len(right) else "2020-01-31"
    return (
        f"dates, but {len(wrong)} row(s) are not written as {usual[:30]!r} (row "
        f"{int(rows[odd]) + 1} has {given[odd][:30]!r}): write all in one way, or leave them empty"
    )
