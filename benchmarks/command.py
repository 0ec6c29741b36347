"""How long the command takes: its start, a fit with search and report, a million predictions.

    python benchmarks/command.py [--rows 1000000] [--repeats 3]

Everything runs as a user types it, in processes of their own; memory is the most that a process
held. polars reads and writes the same file as the measure of what a million rows cost anyway. What
a prediction consists of is measured once more, one step after the other, which the command does at
the same time; what it takes besides the networks is told beside polars, too.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

COMMAND = Path(sysconfig.get_path("scripts")) / "mvenet"
POLARS = "import polars, sys; polars.read_csv(sys.argv[1]).write_csv(sys.argv[2])"


def table(rows: int, columns: int) -> pl.DataFrame:
    """Numbers, and a target whose noise depends on them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, columns))
    y = np.sin(2 * X[:, 0]) + X[:, 2] + 0.2 * np.exp(0.5 * X[:, 1]) * rng.normal(size=rows)
    named = {f"x{i}": column for i, column in enumerate(X.T)}
    return pl.DataFrame({**named, "y": y}).with_columns(pl.all().round(5))


def make(rows: int, columns: int, place: Path) -> None:
    """Write a table, in a process of its own: a child's memory counts from its parent's."""
    process = multiprocessing.get_context("spawn").Process(
        target=_make, args=(rows, columns, place)
    )
    process.start()
    process.join()


def _make(rows: int, columns: int, place: Path) -> None:
    table(rows, columns).write_csv(place)


def run(*words: object, refused: bool = False) -> tuple[float, float, float]:
    """Seconds, the processor's seconds and megabytes of one process."""
    start = time.perf_counter()
    process = subprocess.Popen(
        [str(word) for word in words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL if refused else None,
    )
    _, status, usage = os.wait4(process.pid, 0)
    if bool(status) != refused:
        sys.exit(f"{' '.join(map(str, words))} failed")
    seconds = time.perf_counter() - start
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def told(name: str, measured: list[tuple[float, float, float]]) -> float:
    """Print median and range, and return the median's seconds."""
    seconds, busy, megabytes = zip(*measured, strict=True)
    middle = statistics.median(seconds)
    print(
        f"{name:44s} {middle:7.2f} ({min(seconds):.2f} to {max(seconds):.2f}) s, "
        f"{min(busy):.2f} s of processors, {max(megabytes):,.0f} MB",
        flush=True,
    )
    return middle


def stages(model: Path, data: Path, out: Path) -> dict[str, float]:
    """Seconds of each step of a prediction, one after the other."""
    start = time.perf_counter()
    from mvenet import persistence
    from mvenet.table._files import chunks
    from mvenet.table._writing import write
    from mvenet.workflow._known import known
    from mvenet.workflow._serving import FAR

    table = known(persistence.load_to_predict(model))
    clock, took = [time.perf_counter()], {"import and load": time.perf_counter() - start}

    def done(name: str) -> None:
        now = time.perf_counter()
        took[name] = took.get(name, 0.0) + now - clock[0]
        clock[0] = now

    with out.open("wb") as file:
        for part in chunks(data, table.encoder.named("number"), lines=","):
            done("read")
            X = table.encoded(part.values, part.rows)
            done("encode")
            mean, std = table.estimator.predict(table.inputs(X), return_std=True)
            done("networks")
            table.outside(part.values, X, FAR)
            done("distances")
            added = pl.DataFrame({"mean": mean, "std": std})
            write(part.shown, added, file, header=not part.first, lines=part.lines)
            done("write")
    return took


def parts(model: Path, data: Path, out: Path, whole: float, polars: float) -> None:
    """Print the stages, from a process of their own, and what is left without the networks."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        took = pool.apply(stages, (model, data, out))
    print("   one after the other:", *(f"{name} {took[name]:.2f} s," for name in took))
    file = took["read"] + took["encode"] + took["write"]
    ratios = (whole / polars, (whole - took["networks"]) / polars, file / polars)
    print(
        "   {:.2f} times polars, {:.2f} less the networks; reading, encoding and writing {:.2f}"
        " times".format(*ratios),
        flush=True,
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000, help="to predict")
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        small, large = folder / "small.csv", folder / "large.csv"
        model, found = folder / "model.mve", folder / "found.mve"
        told("mvenet --help", [run(COMMAND, "--help") for _ in range(given.repeats)])
        make(1000, 12, small)
        fit = (COMMAND, "fit", small, "--target", "y", "-o", found, "--report", folder / "r.html")
        told("fit, search and report, 1,000 × 12", [run(*fit) for _ in range(given.repeats)])
        print(f"the report has {(folder / 'r.html').stat().st_size / 1e6:.2f} MB")
        # Five networks by the rule of thumb: what takes the time is the file.
        run(COMMAND, "fit", small, "--target", "y", "-o", model, "--no-search", "--members", 5)
        ten = folder / "ten.csv"
        make(10, 12, ten)
        short = {"predict": (ten, "-o", folder / "few.csv"), "evaluate": (ten,), "info": (),
                 "export": (folder / "model.onnx",)}  # fmt: skip
        for command, more in short.items():
            few = (COMMAND, command, model, *more)
            told(f"{command}, of ten rows at most", [run(*few) for _ in range(given.repeats)])
        for command in ("fit", "compare"):  # what trains: how soon it says that something is wrong
            wrong = (COMMAND, command, small, "--target", "z", "-o", model)[
                : 7 - 2 * (command != "fit")
            ]
            measured = [run(*wrong, refused=True) for _ in range(given.repeats)]
            told(f"{command}, a target that is not there", measured)
        make(given.rows, 12, large)  # thirteen columns with y, which stays as it is
        predict = (COMMAND, "predict", model, large, "-o", folder / "out.csv")
        pairs = [
            (run(sys.executable, "-c", POLARS, large, folder / "copy.csv"), run(*predict))
            for _ in range(given.repeats)
        ]
        rows = f"{given.rows:,} × 13"
        polars = told(f"polars reads and writes {rows}", [a for a, _ in pairs])
        whole = told(f"predict {rows}", [b for _, b in pairs])
        parts(model, large, folder / "out.csv", whole, polars)
        with_interval = run(*predict, "--interval", 0.9)
        told(f"predict {rows} --interval 0.9", [with_interval])
        searched = (COMMAND, "predict", found, large, "-o", folder / "out.csv")
        whole = told(f"predict {rows}, model of a search", [run(*searched)])
        parts(found, large, folder / "out.csv", whole, polars)
        as_parquet = (COMMAND, "predict", model, large, "-o", folder / "out.parquet")
        told(f"predict {rows} to Parquet", [run(*as_parquet)])
        make(3 * given.rows, 12, large)
        told(f"predict {3 * given.rows:,} × 13", [run(*predict)])


if __name__ == "__main__":
    main()
