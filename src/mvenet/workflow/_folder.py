"""Predictions for a folder of Parquet files: a task a file, here or on the workers of a cluster.

A file is written whole or not at all, and says of itself which model, which options and which bytes
it was made of. So a second run knows what is finished: nothing else is, whatever its name. What was
made by another model, or of data that has changed since, is made anew; what was not made by mvenet
is never replaced.
"""

from __future__ import annotations

import functools
import hashlib
import json
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from mvenet._utils import atomic
from mvenet._utils.machine import instruction_set
from mvenet.table._files import Progress, count_rows
from mvenet.table._folders import parquet_files
from mvenet.workflow._serving import Served, predict_file

if TYPE_CHECKING:
    from mvenet.workflow._serving import Model

MARK = "mvenet"  # what a file says of itself stands under this name in its metadata


@dataclass(frozen=True)
class PredictedFolder:
    """What became of the files of a folder.

    Attributes
    ----------
    files : int
        In the folder.
    finished, empty : int
        Those that an earlier run had finished, and those that have no rows, of which none is
        written.
    served : Served or None
        What was written now; None if nothing was.
    failed : dict of str
        Why a file could not be predicted, by its name.
    strangers : list of str
        Parquet files beside those written that no file of the folder has become.
    """

    files: int
    finished: int
    empty: int
    served: Served | None
    failed: dict[str, str]
    strangers: list[str]


@dataclass(frozen=True)
class _Work:
    """What all files have in common."""

    model: Any
    options: dict[str, Any]
    made_by: dict[str, Any]  # model, options and program

    def mark(self, source: Path) -> str:
        """What the predictions of a file say of themselves."""
        with source.open("rb") as file:
            data = hashlib.file_digest(file, "sha256").hexdigest()
        return json.dumps(self.made_by | {"data": data}, sort_keys=True)


@dataclass(frozen=True)
class _Done:
    """What became of a file."""

    served: Served | None = None
    finished: bool = False
    failed: str = ""


def predict_folder(
    model: Model,
    identity: str,
    data: Path,
    output: Path,
    *,
    client: Any = None,
    progress: Progress | None = None,
    **options: Any,
) -> PredictedFolder:
    """Add predictions to each Parquet file of a folder, and write it to another folder.

    A file that cannot be predicted is told, and keeps no other from being predicted.

    Parameters
    ----------
    model : estimator
        As :func:`mvenet.workflow.predict_file` takes it.
    identity : str
        What no other model has, such as a hash of its file.
    data, output : path
        Folders; the second is made if it is not there.
    client : distributed.Client or None
        Of a Dask cluster whose machines all see both folders.
    progress : callable or None
        Told the share of the files that is done.
    **options
        ``intervals``, ``quantiles`` and ``simultaneous``, as of
        :func:`mvenet.workflow.predict_file`.

    Returns
    -------
    PredictedFolder
    """
    files = parquet_files(data)
    place = folder_for(output, data)
    tasks = [(file.resolve(), place / file.name) for file in files]
    for _, made in tasks:
        _refuse_strange(made)
    place.mkdir(exist_ok=True)
    by = {"model": identity, "version": version("mvenet"), "instructions": instruction_set()}
    work = _Work(model, options, by | options)
    each = _here(work, tasks, progress) if client is None else _there(client, work, tasks)
    done: dict[int, _Done] = {}
    for number, became in each:
        done[number] = became
        if progress is not None:
            progress(len(done) / len(tasks))
    return _told(files, [done[i] for i in range(len(files))], place)


def folder_for(output: Path, data: Path) -> Path:
    """Where to write a folder; an error now rather than after the work."""
    place = output.expanduser().resolve()
    if place == data.expanduser().resolve():
        raise ValueError(f"{output} is the folder that is read: name another one to write to.")
    if place.exists() and not place.is_dir():
        raise NotADirectoryError(f"{output} is a file, and {data} a folder: name a folder.")
    if not place.parent.is_dir():
        raise FileNotFoundError(f"{output} cannot be made: there is no folder {place.parent}.")
    return place


def _mark_of(made: Path) -> str | None:
    """What a file says of itself; empty if nothing, None if it is none or cannot be read."""
    try:
        return pl.read_parquet_metadata(made).get(MARK, "")
    except (OSError, pl.exceptions.PolarsError):
        return None


def _refuse_strange(made: Path) -> None:
    if _mark_of(made) == "":
        raise ValueError(
            f"{made} was not made by mvenet predict, and would be replaced: name an empty folder."
        )


def _here(
    work: _Work, tasks: Sequence[tuple[Path, Path]], progress: Progress | None
) -> Iterator[tuple[int, _Done]]:
    for number, task in enumerate(tasks):

        def within(share: float, number: int = number) -> None:
            if progress is not None:
                progress((number + share) / len(tasks))

        yield number, _predicted(work, task, within)


def _there(
    client: Any, work: _Work, tasks: Sequence[tuple[Path, Path]]
) -> Iterator[tuple[int, _Done]]:
    from mvenet._training import distributed

    distributed.require_folders(client, [tasks[0][0].parent, tasks[0][1].parent])
    shared = (distributed.sender(), work)
    return distributed.Sent(client, _predict_on_worker, shared, tasks).results()


def _predict_on_worker(shared: tuple[tuple[str, str], _Work], task: tuple[Path, Path]) -> _Done:
    from mvenet._training import distributed

    distributed.refuse_others(shared[0])
    return _predicted(shared[1], task)


def _predicted(
    work: _Work, task: tuple[Path, Path], progress: Callable[[float], object] | None = None
) -> _Done:
    """One file, from beginning to end."""
    source, made = task
    try:
        if not count_rows(source):
            return _Done()
        mark = work.mark(source)
        if _mark_of(made) == mark:
            return _Done(finished=True)
        with atomic.replacing(made) as fresh:
            served = predict_file(
                work.model, source, fresh, form=".parquet", said={MARK: mark}, progress=progress,
                **work.options,
            )  # fmt: skip
        return _Done(served)
    except (OSError, TypeError, ValueError, pl.exceptions.PolarsError) as error:
        return _Done(failed=" ".join(str(error).split()))


def _told(files: list[Path], done: list[_Done], place: Path) -> PredictedFolder:
    names = {file.name for file in files}
    served = [each.served for each in done if each.served is not None]
    return PredictedFolder(
        files=len(files),
        finished=sum(each.finished for each in done),
        empty=sum(each == _Done() for each in done),
        served=functools.reduce(operator.add, served) if served else None,
        failed={f.name: each.failed for f, each in zip(files, done, strict=True) if each.failed},
        strangers=sorted(f.name for f in place.glob("[!._]*.parquet") if f.name not in names),
    )
