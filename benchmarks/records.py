"""What a benchmark has measured, kept in a CSV as it goes, so that it can be stopped."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path


def read(path: Path) -> list[dict[str, str]]:
    """All that is there; nothing before the first measurement."""
    if not path.exists():
        return []
    with path.open() as file:
        return list(csv.DictReader(file))


def add(path: Path, fields: Sequence[str], rows: Iterable[Mapping[str, object]]) -> None:
    """Append rows, each as soon as it comes; the names first if the file is new."""
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, fields)
        if new:
            writer.writeheader()
        for row in rows:
            writer.writerow(row)
            file.flush()
