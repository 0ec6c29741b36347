"""One contestant on one fold, in a process of its own: what it took is what the process took.

    PYTHON benchmarks/league_worker.py METHOD TABLE FOLD ROWS RESULT

RESULT.json receives the scores and RESULT.npz what was said of each row. `league.py` calls this
with the Python of the contestant's environment; by hand it serves to see a failure in full.
"""

from __future__ import annotations

import importlib
import json
import pickle
import resource
import sys
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

import league_methods
import league_scores
import league_tables
import numpy as np
from league_predictions import Point


def used() -> float:
    """Seconds of processor time, of all threads and of children that have ended."""
    return sum(
        usage.ru_utime + usage.ru_stime
        for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def peak() -> float:
    """The most memory that the process, or one of its children, has held, in MB."""
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return max(resource.getrusage(kind).ru_maxrss for kind in kinds) / 1024


class Counter:
    """A file that keeps nothing but its length."""

    def __init__(self) -> None:
        self.bytes = 0

    def write(self, data: Any) -> int:
        """Count."""
        self.bytes += memoryview(data).nbytes
        return memoryview(data).nbytes


def size_of(method: league_methods.Method, model: Any) -> float | None:
    """MB of the model, as a pickle if the method does not know better; None if it has none."""
    if method.size is not None:
        return method.size(model) / 1e6
    for name in ("pickle", "cloudpickle", "dill"):
        counter = Counter()
        try:
            importlib.import_module(name).dump(model, counter, protocol=pickle.HIGHEST_PROTOCOL)
        except Exception:  # whatever a foreign class may raise
            continue
        return counter.bytes / 1e6
    return None


def measure(
    method: league_methods.Method, table: league_tables.Table, fold: int, most: int
) -> tuple[dict[str, object], dict[str, np.ndarray]]:
    """Scores of one fold, and mean and quantiles of its rows."""
    everything, test = league_tables.fold_of(table, fold)
    width = league_scores.resolution(np.concatenate([everything.y, test.y]))
    train = league_tables.drawn(everything, most)
    wall, start = time.perf_counter(), used()
    model = method.fit(train)
    fitted, wall = used(), time.perf_counter() - wall
    predicted = method.predict(model, test.X)
    kept = {"mean": predicted.mean}
    if not isinstance(predicted, Point):
        predicted.quantiles(np.array([0.05, 0.95]))
    told = used()
    missing = int(np.isnan(predicted.mean).sum())
    if missing:  # a sampler that lost its way, say: no score of the other rows would be fair
        raise ValueError(f"predicts NaN for {missing} of {len(test)} rows")
    row: dict[str, object] = league_scores.scores(test.y, predicted, width, everything.y)
    if not isinstance(predicted, Point):
        kept["quantiles"] = predicted.quantiles(league_scores.LEVELS)
    row |= {
        "training_rows": len(train),
        "all_rows": len(everything),
        "test_rows": len(test),
        "fit_seconds": fitted - start,
        "wall_seconds": wall,
        "predict_us": 1e6 * (told - fitted) / len(test),
        "model_mb": size_of(method, model),
        "peak_mb": peak(),
        "version": method.version(),
    }
    return row, {name: np.asarray(value, np.float32) for name, value in kept.items()}


def main() -> None:
    """Measure, and write what came of it."""
    method, table, fold, most, result = sys.argv[1:]
    warnings.simplefilter("ignore")  # of optimisers and of grids' ends
    row: dict[str, object] = {}
    try:
        row, kept = measure(
            league_methods.BY_NAME[method], league_tables.BY_NAME[table], int(fold), int(most)
        )
        np.savez_compressed(Path(result).with_suffix(".npz"), **kept)
    except Exception as error:  # a contestant's failure is a result
        traceback.print_exc()
        row = {"error": f"{type(error).__name__}: {error}"}
    plain = {k: v if isinstance(v, str | int | None) else float(v) for k, v in row.items()}
    Path(result).with_suffix(".json").write_text(json.dumps(plain))


if __name__ == "__main__":
    main()
