"""Numbers as people read them, and what may be said of a coverage."""

from __future__ import annotations

import math
from pathlib import Path


def verdict(level: float, share: float, n: int) -> tuple[str, float, float]:
    """Whether so many rows within an interval may be chance, and what chance allows."""
    low, high = (_binomial_quantile(q, n, level) / n for q in (0.025, 0.975))
    if share < low - 1e-12:
        return "too narrow", low, high
    return ("too wide" if share > high + 1e-12 else "as claimed"), low, high


def _binomial_quantile(q: float, n: int, p: float) -> int:
    """That of ``scipy.stats.binom``, without the half second that importing it takes."""
    from scipy.special import bdtr, bdtrik

    above = math.ceil(float(bdtrik(q, n, p)))
    below = max(above - 1, 0)
    return below if bdtr(below, n, p) >= q else above


def readable(value: float | None) -> str:
    """Three digits, thousands apart, no exponent where it can be helped; whole numbers as such."""
    if value is None:
        return "–"
    size = abs(value)
    if not size < 1e15 or 0 < size < 1e-6:
        return f"{value:.3g}"
    if value == round(value):
        return f"{value:,.0f}"
    digits = 2 - math.floor(math.log10(size))
    rounded = round(value, digits)
    if digits <= 0:
        return f"{rounded:,.0f}"
    return f"{rounded:.{digits}f}".rstrip("0").rstrip(".")


def with_error(mean: float, error: float) -> str:
    """``-2.61 ± 0.11``: two digits of the error, and the mean as far."""
    if not math.isfinite(error) or error <= 0:
        return f"{mean:.4g}"
    digits = max(0, 1 - math.floor(math.log10(error)))
    return f"{mean:.{digits}f} ± {error:.{digits}f}"


BEFORE = ("$", "£", "¥", "₹", "US$", "A$", "C$")  # units that stand before their numbers


def with_unit(number: str, unit: str) -> str:
    """A number and its unit: $ 5 is written $5, and five metres are 5 m."""
    if not unit:
        return number
    if unit in BEFORE:
        minus = number.startswith("-")
        return f"{'-' * minus}{unit}{number.removeprefix('-')}"
    return f"{number}\N{NO-BREAK SPACE}{unit}"


def harmless(text: str) -> str:
    """What a file says, fit for a terminal: a sign that could steer it is told by its number."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def percent(level: float) -> str:
    """``0.9`` as ``90``, ``0.025`` as ``2.5``."""
    return f"{100 * level:.10g}"


def no_file(place: Path) -> str:
    """That there is none, and which one beside it has nearly that name."""
    import difflib

    near = difflib.get_close_matches(place.name, [p.name for p in place.parent.glob("*")], n=1)
    hint = f"Did you mean {near[0]}?" if near else "Check the path."
    return f"There is no file {place}. {hint}"


def duration(seconds: float) -> str:
    """``12 s``, ``3 min``, ``2 h 20 min``."""
    if seconds < 90:
        return f"{seconds:.0f} s" if seconds >= 1.5 else "a second"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
