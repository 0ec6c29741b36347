"""A distribution in a notebook: a small table, with a curve of the density in each row.

Text and curves take the colour of their surroundings, so that light and dark pages are served
alike. The curves share one axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Protocol

import numpy as np

from mvenet._utils.wording import readable
from mvenet.distributions._checks import FloatArray

MOST_ROWS = 6
WIDTH, HEIGHT, SLICES = 120, 26, 80  # all columns fit the width of a telephone
BEYOND = 0.002  # probability on each side that is not drawn


class Rows(Protocol):
    """What is needed of a distribution."""

    def __len__(self) -> int: ...
    @property
    def mean(self) -> FloatArray: ...
    @property
    def std(self) -> FloatArray: ...
    def ppf(self, q: float) -> FloatArray: ...
    def cdf(self, y: FloatArray) -> FloatArray: ...
    def interval(self, coverage: float) -> FloatArray: ...


def table(dist: Rows, names: Sequence[str], title: str, n: int) -> str:
    """HTML of the first rows of n; ``dist`` holds these rows only."""
    low, high = dist.interval(0.9).T
    heads = ["", "mean", "std", "5 %", "95 %", "density"]
    numbers = zip(dist.mean, dist.std, low, high, strict=True)
    cells = [[readable(float(v)) for v in row] for row in numbers]
    curves, ends = _curves(dist)
    lines = [
        f"<tr><th>{escape(_short(name))}</th>"
        + "".join(f'<td style="text-align:right">{value}</td>' for value in row)
        + f"<td>{curve}</td></tr>"
        for name, row, curve in zip(names, cells, curves, strict=True)
    ]
    rest = f"<br>… and {n - len(names):,} more rows" * (n > len(names))
    axis = f"Curves from {ends[0]} to {ends[1]}." if ends else ""
    return (
        '<div style="overflow-x:auto"><div style="font-family:monospace">'
        f"{escape(title)}</div><table><thead><tr>"
        + "".join(f"<th>{head}</th>" for head in heads)
        + f"</tr></thead><tbody>{''.join(lines)}</tbody></table>"
        f'<div style="font-size:smaller;opacity:0.75">{axis}{rest}</div></div>'
    )


def _curves(dist: Rows) -> tuple[list[str], list[str]]:
    """A small SVG for each row, and both ends of their axis."""
    if not len(dist):
        return [], []
    low, high = float(dist.ppf(BEYOND).min()), float(dist.ppf(1 - BEYOND).max())
    room = 0.03 * (high - low) or 0.05 * abs(low) or 0.5
    edges = np.linspace(low - room, high + room, SLICES + 1)
    if not (np.diff(edges) > 0).all():  # numbers so large, or so close, that no axis is between
        return ["" for _ in range(len(dist))], []
    # By differences of the distribution function: no peak, and no single value, is overlooked.
    masses = np.diff(dist.cdf(edges[None]), axis=1)
    heights = masses / np.maximum(masses.max(axis=1, keepdims=True), 1e-300)
    places = np.clip((dist.mean - edges[0]) / (edges[-1] - edges[0]), 0.0, 1.0)
    curves = [_svg(row, float(at)) for row, at in zip(heights, places, strict=True)]
    return curves, [readable(float(edges[0])), readable(float(edges[-1]))]


def _svg(heights: FloatArray, mean: float) -> str:
    x = (np.arange(SLICES) + 0.5) * WIDTH / SLICES
    y = HEIGHT - 1 - (HEIGHT - 3) * heights
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
    base, at = HEIGHT - 1, mean * WIDTH
    return (
        f'<svg width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'role="img" aria-label="density" fill="currentColor" stroke="currentColor">'
        f'<polygon points="0,{base} {points} {WIDTH},{base}" fill-opacity="0.25" stroke="none"/>'
        f'<polyline points="{points}" fill="none" stroke-width="1"/>'
        f'<line x1="{at:.1f}" x2="{at:.1f}" y1="2" y2="{base}" stroke-opacity="0.5" '
        'stroke-dasharray="2 2"/></svg>'
    )


def _short(name: str) -> str:
    return name if len(name) <= 24 else f"{name[:23]}…"
