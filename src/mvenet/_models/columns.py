"""What each column of a table was taken for, in words."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

_MOST_SHOWN = 60


@dataclass(frozen=True)
class Column:
    """What a column was taken for, and a remark.

    ``kind`` is "number", "truth", "date", "category" or "dropped".
    """

    kind: str
    remark: str = ""


class Columns(dict[str, Column]):
    """Columns by name, in the order of the table; printed as a table, in notebooks as HTML."""

    def __repr__(self) -> str:
        shown = [(_short(name), c.kind, c.remark) for name, c in self.items()][:_MOST_SHOWN]
        names = max((len(name) for name, _, _ in shown), default=0)
        kinds = max((len(kind) for _, kind, _ in shown), default=0)
        lines = [f"{n:<{names}}  {k:<{kinds}}  {r}".rstrip() for n, k, r in shown]
        return "\n".join([*lines, *self._further()])

    def _repr_html_(self) -> str:
        rows = [
            f"<tr><th>{escape(_short(name))}</th><td>{c.kind}</td><td>{escape(c.remark)}</td></tr>"
            for name, c in list(self.items())[:_MOST_SHOWN]
        ]
        head = "<tr><th>column</th><th>taken for</th><th></th></tr>"
        return f"<table>{head}{''.join(rows)}</table>{''.join(self._further())}"

    def _further(self) -> list[str]:
        more = len(self) - _MOST_SHOWN
        return [f"… and {more:,} more"] if more > 0 else []


def _short(name: str) -> str:
    plain = "".join(letter if letter.isprintable() else "�" for letter in name)
    return plain if len(plain) <= 40 else f"{plain[:39]}…"
