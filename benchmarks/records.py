"""What a benchmark has measured, kept in a CSV as it goes, so that it can be stopped.

A row is there as a whole or not at all: it is written at once, by one process at a time, and a
last line that was cut off is taken for what it is and removed with the next one.
"""

from __future__ import annotations

import csv
import fcntl
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path


def read(path: Path) -> list[dict[str, str]]:
    """All that is there; nothing before the first measurement."""
    if not path.exists():
        return []
    return list(csv.DictReader(io.StringIO(_whole_lines(path.read_bytes()).decode())))


def add(path: Path, fields: Sequence[str], rows: Iterable[Mapping[str, object]]) -> None:
    """Append rows, each as soon as it comes; the names first if the file is new."""
    for row in rows:
        with path.open("a+b", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # released when the file is closed
            file.seek(0)
            kept = len(_whole_lines(file.read()))
            file.truncate(kept)
            text = io.StringIO(newline="")
            writer = csv.DictWriter(text, fields)
            if not kept:
                writer.writeheader()
            writer.writerow(row)
            file.write(text.getvalue().encode())
            os.fsync(file.fileno())


def _whole_lines(data: bytes) -> bytes:
    return data[: data.rfind(b"\n") + 1]
