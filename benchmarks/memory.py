"""What a fit takes of memory beyond the caller's table, in all ways that a table may lie there.

    python benchmarks/memory.py --rows 1000000

Each kind of table has a process of its own, whose peak counts from when the table is there. Told
are the megabytes of the table and of what came on top, pages of the caller's file left out, and
their ratio.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from mvenet import MVERegressor

COLUMNS = 20
NAMES = [f"x{j}" for j in range(COLUMNS)]


def numbers(rows: int, dtype: str = "f4", order: str = "C") -> np.ndarray:
    """A table of its own memory, filled part by part."""
    rng = np.random.default_rng(0)
    X = np.empty((rows, COLUMNS), dtype, order)  # type: ignore[call-overload]
    for start in range(0, rows, 2**16):
        part = X[start : start + 2**16]
        part[:] = rng.standard_normal(part.shape, np.float32)
    return X


def mapped(rows: int) -> np.ndarray:
    """A table that lies in a file."""
    with tempfile.NamedTemporaryFile(suffix=".npy") as file:
        np.save(file, numbers(rows))
        file.flush()
        return np.load(file.name, mmap_mode="r")  # type: ignore[no-any-return]


def columns(rows: int, dtype: str) -> Any:
    """Arrow's columns, each by itself."""
    import pyarrow as pa

    table = numbers(rows, dtype, "F")
    return pa.table({name: pa.array(table[:, j].copy()) for j, name in enumerate(NAMES)})


def polars(rows: int, dtype: str = "f4") -> Any:
    """Arrow's columns in a frame of polars."""
    import polars as pl

    return pl.from_arrow(columns(rows, dtype))


def pandas(rows: int, dtype: str = "f4") -> Any:
    """Arrow's columns in a frame of pandas."""
    import pandas as pd

    return columns(rows, dtype).to_pandas(types_mapper=pd.ArrowDtype)


def plain_pandas(rows: int) -> Any:
    """A frame of pandas as most are: one block, column by column."""
    import pandas as pd

    return pd.DataFrame(numbers(rows, order="F"), columns=NAMES, copy=False)


KINDS: dict[str, tuple[int, Callable[[int], Any]]] = {  # bytes of a number
    "float32, row order": (4, numbers),
    "float32, column order": (4, lambda rows: numbers(rows, order="F")),
    "float32, memory-mapped": (4, mapped),
    "float64, row order": (8, lambda rows: numbers(rows, "f8")),
    "float64, column order": (8, lambda rows: numbers(rows, "f8", "F")),
    "pandas": (4, plain_pandas),
    "pandas of Arrow": (4, pandas),
    "polars": (4, polars),
    "polars, float64": (8, lambda rows: polars(rows, "f8")),
}


def resident() -> dict[str, float]:
    """Peak, and pages of files, in MB (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    values = dict(line.split(":", 1) for line in lines)
    return {name: int(values[name].split()[0]) * 1024e-6 for name in ("VmHWM", "RssFile")}


def grown(kind: str, rows: int) -> tuple[float, float]:
    """In a fresh process: megabytes by which a fit of two epochs raises the peak, and seconds."""
    warm = np.random.default_rng(1).standard_normal((100, 2))  # loads what every fit needs
    model = MVERegressor(strategy="warmup", warmup_epochs=1, epochs=1, random_state=0).fit(
        warm, warm[:, 0]
    )
    X = KINDS[kind][1](rows)
    y = np.random.default_rng(2).standard_normal(rows)
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    before, start = resident(), time.perf_counter()
    model.fit(X, y)
    seconds, after = time.perf_counter() - start, resident()
    files = max(0.0, after["RssFile"] - before["RssFile"])
    return after["VmHWM"] - before["VmHWM"] - files, seconds


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=10**6)
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), help="some of the table's kinds")
    options = parser.parse_args()
    print(f"{options.rows:,} rows of {COLUMNS} columns; a warm-up and a joint epoch of 40-20")
    print(f"{'':>24}{'table, MB':>12}{'on top, MB':>12}{'ratio':>8}{'seconds':>10}")
    for kind in options.kinds:
        code = f"import memory, json; print(json.dumps(memory.grown({kind!r}, {options.rows})))"
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True,
            cwd=Path(__file__).parent,
        )  # fmt: skip
        on_top, seconds = json.loads(done.stdout)
        table = KINDS[kind][0] * options.rows * COLUMNS / 1e6
        ratio = on_top / table
        print(f"{kind:>24}{table:>12.0f}{on_top:>12.0f}{ratio:>8.2f}{seconds:>10.1f}", flush=True)


if __name__ == "__main__":
    main()
