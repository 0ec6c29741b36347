"""Small tables of text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mvenet._utils.wording import harmless, readable


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """Columns below each other: the first to the left, the others to the right."""
    plain = [[harmless(cell) for cell in line] for line in lines]
    widths = [max(len(line[i]) for line in plain) for i in range(len(plain[0]))]
    rows = []
    for first, *others in plain:
        cells = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        rows.append("  ".join([first.ljust(widths[0]), *cells]).rstrip())
    return "\n".join(rows)


def cell(value: Any) -> str:
    """A cell of a table in a few letters."""
    if value is None:
        return "(missing)"
    if isinstance(value, float | int) and not isinstance(value, bool):
        return readable(float(value))
    text = str(value).removesuffix(" 00:00:00").removesuffix("T00:00:00")
    return text if len(text) < 28 else f"{text[:27]}…"
