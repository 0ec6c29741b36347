"""``predict`` for a folder of Parquet files."""

from __future__ import annotations

import contextlib
import hashlib
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mvenet.cli._printing import busy, print_json, progress_bar, say

if TYPE_CHECKING:
    from mvenet.workflow._folder import PredictedFolder

TABLES = (".csv", ".tsv", ".parquet", ".pq", ".arrow", ".feather", ".ipc", ".gz", ".xlsx", ".json")


def predict_folder(
    model: Path,
    data: Path,
    output: Path,
    asked: dict[str, Any],
    sheet: str | None,
    dask: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Add predictions to each file of a folder; one that fails keeps no other from being done."""
    _check(data, output, sheet)
    silent = quiet or as_json
    with busy(f"loading {model.name}", silent):
        from mvenet import persistence
        from mvenet.table._folders import parquet_files
        from mvenet.workflow import _folder, _known_targets

        parquet_files(data)
        _folder.folder_for(output, data)
        loaded = persistence.load_to_predict(model)
        identity = hashlib.sha256(model.read_bytes()).hexdigest()
    _known_targets.check_known(loaded, asked["simultaneous"])
    start = time.perf_counter()
    with _cluster(dask) as client, progress_bar("predicting", silent) as bar:
        found = _folder.predict_folder(
            loaded, identity, data, output, client=client, progress=bar, **asked
        )
    seconds = time.perf_counter() - start
    if as_json:
        print_json({"output": str(output), **_facts(found), "seconds": seconds})
    elif not quiet:
        _print(found, output, seconds)
    if found.failed:
        first = min(found.failed)
        reason = found.failed[first]
        named = reason if first in reason else f"{data / first}: {reason}"
        raise ValueError(
            f"{len(found.failed)} of {found.files} files could not be predicted: {named}"
        )


def _check(data: Path, output: Path, sheet: str | None) -> None:
    """How the command was called."""
    single = output.suffix.lower() in TABLES and not output.is_dir()
    if str(output) == "-" or single:
        raise click.BadParameter(
            f"{data} is a folder: name a folder to write to, not {output}", param_hint="--output"
        )
    if sheet is not None:
        raise click.BadParameter(
            f"{data} is a folder of Parquet files, which have no sheets: drop it",
            param_hint="--sheet",
        )


def _cluster(address: str | None) -> contextlib.AbstractContextManager[Any]:
    if address is None:
        return contextlib.nullcontext()
    from mvenet._training import distributed

    return distributed.on_dask(address)


def _facts(found: PredictedFolder) -> dict[str, Any]:
    served = found.served
    told: dict[str, Any] = {
        "files": found.files,
        "finished_before": found.finished,
        "without_rows": found.empty,
        "failed": found.failed,
        "rows": 0 if served is None else served.rows,
        "rows_far_outside": 0 if served is None else served.outside,
    }
    return told if served is None else told | served.compared.facts


def _print(found: PredictedFolder, output: Path, seconds: float) -> None:
    served = found.served
    written = found.files - found.finished - found.empty - len(found.failed)
    rows = 0 if served is None else served.rows
    say(f"{written} of {found.files} files, {rows:,} rows in {seconds:.1f} s: {output}")
    if found.finished:
        say(f"{found.finished} were finished before, by this model and of the same data.")
    if found.empty:
        say(f"{found.empty} without rows were left out.")
    if found.strangers:
        say(f"Note: {output} also holds {found.strangers[0]}, which is none of these files.")
    if served is None:
        return
    if served.outside:
        say(f"{served.outside:,} rows are far outside what the model has seen.")
    for sentence in served.compared.sentences():
        say(f"Note: {sentence}")
