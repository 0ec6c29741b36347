"""Numbers as people read them, and what may be said of a coverage."""

from __future__ import annotations


def verdict(level: float, share: float, n: int) -> tuple[str, float, float]:
    """Whether so many rows within an interval may be chance, and what chance allows."""
    from scipy import stats  # half a second, and most commands need none of it

    low, high = (float(v) / n for v in stats.binom(n, level).interval(0.95))
    if share < low - 1e-12:
        return "too narrow", low, high
    return ("too wide" if share > high + 1e-12 else "as claimed"), low, high


def readable(value: float | None) -> str:
    """Four digits, thousands apart, no exponent where it can be helped."""
    if value is None:
        return "–"
    if value and (abs(value) >= 1e9 or abs(value) < 1e-3):
        return f"{value:.3g}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def percent(level: float) -> str:
    """``0.9`` as ``90``, ``0.025`` as ``2.5``."""
    return f"{100 * level:.10g}"


def duration(seconds: float) -> str:
    """``12 s``, ``3 min``, ``2 h 20 min``."""
    if seconds < 90:
        return f"{seconds:.0f} s" if seconds >= 1.5 else "a second"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
