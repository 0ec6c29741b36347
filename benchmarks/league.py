"""The league: mvenet and its peers on the same folds of the same tables.

    python benchmarks/league.py install tabpfn pytabkit ...   make the peers' environments
    python benchmarks/league.py fetch FOLDER                  get the tables from their sources
    python benchmarks/league.py run                           measure what is missing
    python benchmarks/league.py run --methods "TabPFN v2" CatBoost --tables yacht --folds 0 1
    python benchmarks/league.py run --methods "mvenet before" --python CLONE/.venv/bin/python
    python benchmarks/league.py status                        how much of it is measured
    python benchmarks/league.py page                          into docs/compare and README.md

Tables are files NAME.csv, header first and target last, in the folders that MVENET_DATA and
MVENET_TABLES name (league_tables.py); contestants are described in league_methods.py, their
environments in league_environments.py.

A fold is measured in a process of its own, on one thread, for at most twenty minutes of one core.
A contestant that needs more is tried again with half of the training rows, drawn at random, and
so on. Each result is a row of league/METHOD.csv as soon as it is there, and never measured again:
stop the run when you like, start a second one beside it, delete rows to measure them anew. A
contestant that fails has a row, too, with its error; --retry measures such rows anew.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import league_environments
import league_methods
import league_page
import league_sources
import league_tables
import numpy as np
import records
from league_methods import Method
from league_tables import Table

HERE = Path(__file__).parent
RESULTS = HERE / "league"
FIELDS = (
    *("method", "table", "fold", "training_rows", "all_rows", "test_rows"),
    *("crps", "crps_from", "log_score", "log_cells", "impossible", "resolution"),
    *("loglik", "gaussian_loglik", "rmse", "coverage", "width", "interval_score"),
    *("pit_gap", "pit", "fit_seconds", "wall_seconds", "predict_us", "model_mb", "peak_mb"),
    *("version", "error"),
)
LIMIT = 20 * 60  # seconds of processor time
ATTEMPTS = 4  # with all rows, a half, a quarter, an eighth
ALONE = {
    **dict.fromkeys(
        ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
    ),
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "TABPFN_DISABLE_TELEMETRY": "1",
    "TABPFN_ALLOW_CPU_LARGE_DATASET": "1",
    "HF_HUB_OFFLINE": "1",
}


class MissingError(Exception):
    """Something is not there; the message says how to get it."""


def same(row: dict[str, str], table: Table, fold: int) -> bool:
    """Whether a row is of this fold."""
    return (row["table"], row["fold"]) == (table.name, str(fold))


@contextmanager
def claimed(path: Path) -> Iterator[bool]:
    """Whether this process alone may measure a fold; others skip it meanwhile."""
    path.parent.mkdir(exist_ok=True)
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        try:
            yield True
        finally:
            path.unlink(missing_ok=True)


def fewer(row: dict[str, str]) -> bool:
    """Whether a contestant got a share of the training rows only."""
    return not row["error"] and int(row["training_rows"]) < int(row["all_rows"])


def share(method: Method, table: Table, rows: Sequence[dict[str, str]]) -> int:
    """How many training rows a contestant gets at first: as many as on an earlier fold."""
    most = method.most_rows or table.n_rows
    used = [int(row["training_rows"]) for row in rows if row["table"] == table.name and fewer(row)]
    return min([most, *used])


def attempt(
    method: Method, table: Table, fold: int, most: int, result: Path, given: str | None
) -> tuple[int, str]:
    """Run the worker: its exit code and the last line that it printed."""
    python = league_environments.python_of(method.environment, given)
    command = [python, HERE / "league_worker.py", method.name, table.name, fold, most, result]
    done = subprocess.run(
        list(map(str, command)),
        env=os.environ | ALONE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT + 30)),
    )
    lines = done.stderr.strip().splitlines()
    return done.returncode, lines[-1] if lines else ""


def measured(
    method: Method, table: Table, fold: int, most: int, folder: Path, given: str | None
) -> dict[str, object]:
    """The row of a fold, with as many training rows as time allows."""
    result = folder / "result"
    for _ in range(ATTEMPTS):
        tried = most
        code, last = attempt(method, table, fold, most, result, given)
        if code == 0:
            return json.loads(result.with_suffix(".json").read_text())
        if code > 0:
            raise MissingError(last)
        if code not in (-signal.SIGXCPU, -signal.SIGKILL):
            return {"error": f"ended by {signal.Signals(-code).name}"}
        most = min(most, table.n_rows) // 2  # time is up, or memory
    return {"error": f"more than {LIMIT // 60} minutes, or out of memory, with {tried} rows"}


def text_of(value: object) -> str:
    """A cell: six digits of a number, one line of a text."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    return " ".join(str(value).split())[:300]


def keep(source: Path, target: Path, fold: int) -> None:
    """Add what was said of a fold's rows to the file of its table and method."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with (target.parent / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        arrays: dict[str, np.ndarray] = {}
        for path, prefix in ((target, ""), (source, f"fold{fold}_")):
            if path.is_file():
                with np.load(path) as stored:
                    arrays |= {prefix + name: stored[name] for name in stored.files}
        part = target.with_suffix(".part.npz")
        np.savez_compressed(part, **arrays)
        os.replace(part, target)


def measure(
    method: Method,
    table: Table,
    fold: int,
    *,
    folder: Path = RESULTS,
    predictions: Path | None = None,
    given: str | None = None,
    retry: bool = False,
) -> None:
    """One contestant on one fold, unless it is there or another run is at it."""
    path = folder / method.file
    stem = path.stem
    with claimed(folder / ".running" / f"{stem} {table.name} {fold}") as mine:
        rows = records.read(path)
        there = [row for row in rows if same(row, table, fold)]
        if not mine or any(not retry or not row["error"] for row in there):
            return
        with tempfile.TemporaryDirectory() as scratch:
            found = measured(method, table, fold, share(method, table, rows), Path(scratch), given)
            if predictions is not None and not found.get("error"):
                source = Path(scratch) / "result.npz"
                keep(source, predictions / table.name / f"{stem}.npz", fold)
        row = {"method": method.name, "table": table.name, "fold": fold} | found
        records.add(path, FIELDS, [{key: text_of(value) for key, value in row.items()}])
    seconds = found.get("fit_seconds")
    print(
        f"{table.name}, fold {fold}, {method.name}: "
        + (f"{seconds:.1f} s" if seconds is not None else str(found["error"])),
        flush=True,
    )


def queue(tables: Sequence[Table], folds: Sequence[int]) -> Iterator[tuple[Table, int]]:
    """Folds in the order of their turn: a third of every table's come before the rest of any."""
    for first in (True, False):
        for table in tables:
            for fold in range(table.n_folds):
                if fold in folds and (fold < max(1, round(table.n_folds / 3))) == first:
                    yield table, fold


def run(given: argparse.Namespace) -> int:
    """Measure what is missing; 1 if something could not be."""
    given.results.mkdir(parents=True, exist_ok=True)
    troubles: dict[str, str] = {}
    for name in given.methods:
        trouble = league_environments.missing(
            league_methods.BY_NAME[name].environment, given.python
        )
        if trouble:
            troubles[name] = trouble
            print(f"{name} is left out. {trouble}", file=sys.stderr, flush=True)
    for table, fold in queue([league_tables.BY_NAME[name] for name in given.tables], given.folds):
        for name in given.methods:
            if name in troubles:
                continue
            try:
                measure(
                    league_methods.BY_NAME[name],
                    table,
                    fold,
                    folder=given.results,
                    predictions=given.predictions,
                    given=given.python,
                    retry=given.retry,
                )
            except MissingError as error:
                troubles[f"{name} on {table.name}"] = str(error)
                print(f"{name} on {table.name} is left out. {error}", file=sys.stderr, flush=True)
    if given.predictions is not None and given.predictions.is_dir():
        size = sum(path.stat().st_size for path in given.predictions.rglob("*.npz"))
        print(f"Predictions in {given.predictions}: {size / 1e6:.0f} MB")
    return 1 if troubles else 0


def status(given: argparse.Namespace) -> int:
    """How many folds are there, of how many, and how many of them failed."""
    print(f"{'':26}{'folds':>10}{'failed':>8}{'fewer rows':>12}{'hours':>8}")
    tables = [league_tables.BY_NAME[name] for name in given.tables]
    wanted = sum(table.n_folds for table in tables)
    for name in given.methods:
        rows = records.read(given.results / league_methods.BY_NAME[name].file)
        rows = [row for row in rows if row["table"] in given.tables]
        failed = sum(bool(row["error"]) for row in rows)
        share_only = sum(map(fewer, rows))
        hours = sum(
            float(row["fit_seconds"] or 0)
            + float(row["predict_us"] or 0) * int(row["test_rows"] or 0) / 1e6
            for row in rows
        )
        print(f"{name:26}{len(rows):>5}/{wanted:<4}{failed:>8}{share_only:>12}{hours / 3600:>8.1f}")
    return 0


def install(given: argparse.Namespace) -> int:
    """Make environments, one after the other."""
    for name in given.environments:
        league_environments.install(name)
        print(f"{name} is ready")
    return 0


def fetch(given: argparse.Namespace) -> int:
    """Get tables from their public sources; 1 if one of them could not be had."""
    given.folder.mkdir(parents=True, exist_ok=True)
    failed = 0
    for file in dict.fromkeys(league_tables.BY_NAME[name].file for name in given.tables):
        try:
            print(league_sources.fetch(Path(file).stem, given.folder), flush=True)
        except (OSError, ValueError) as error:
            failed = 1
            print(f"{error}", file=sys.stderr, flush=True)
    return failed


def page(given: argparse.Namespace) -> int:
    """Write the page, the picture and the short table from the raw files."""
    league_page.write(given.results, HERE.parent / "docs" / "compare", HERE.parent / "README.md")
    return 0


def main() -> int:
    """Do what the command line asks."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    choice = argparse.ArgumentParser(add_help=False)
    names = [method.name for method in league_methods.METHODS]
    usual = [name for name in names if name != "mvenet before"]
    tables = [table.name for table in league_tables.TABLES]
    choice.add_argument("--methods", nargs="+", default=usual, choices=names, metavar="METHOD")
    choice.add_argument("--tables", nargs="+", default=tables, choices=tables, metavar="TABLE")
    choice.add_argument("--results", type=Path, default=RESULTS, help="folder of METHOD.csv")
    running = commands.add_parser("run", parents=[choice], help="measure what is missing")
    running.add_argument("--folds", nargs="+", type=int, default=range(10))
    running.add_argument("--python", help="of the mvenet to measure, if it is not this one")
    running.add_argument(
        "--predictions", type=Path, help="folder for the mean and 99 quantiles of every row"
    )
    running.add_argument("--retry", action="store_true", help="what has failed, too")
    running.set_defaults(do=run)
    commands.add_parser("status", parents=[choice], help="how much is measured").set_defaults(
        do=status
    )
    fetching = commands.add_parser("fetch", help="get the tables from their public sources")
    fetching.add_argument("folder", type=Path, help="for NAME.csv")
    fetching.add_argument("--tables", nargs="+", default=tables, choices=tables, metavar="TABLE")
    fetching.set_defaults(do=fetch)
    writing = commands.add_parser("page", help="write docs/compare/league.md from the raw files")
    writing.add_argument("--results", type=Path, default=RESULTS, help="folder of METHOD.csv")
    writing.set_defaults(do=page)
    making = commands.add_parser("install", help="make the peers' environments")
    making.add_argument(
        "environments", nargs="+", choices=list(league_environments.PACKAGES), metavar="NAME"
    )
    making.set_defaults(do=install)
    given = parser.parse_args()
    return given.do(given)


if __name__ == "__main__":
    sys.exit(main())
