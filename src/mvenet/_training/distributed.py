"""Fleets on other processes and machines, through whatever joblib back end is active.

A fleet splits into units: networks that share a warm-up stay together, so that each is trained
once, and there are a few units for every worker. Units are sent to a Dask cluster or to joblib's
processes; the table goes to each worker once a round. What comes back is put together as if it had
been trained here, to the bit. Whatever else is cut into tasks goes to a cluster the same way
(:class:`Sent`).
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar

import joblib
import numpy as np
from joblib.parallel import get_active_backend
from numpy.typing import NDArray

from mvenet._models.architecture import Architecture
from mvenet._models.networks import join
from mvenet._training import fleet
from mvenet._utils.machine import dask_worker, effective_threads, instruction_set
from mvenet._utils.one_order import one_order
from mvenet.recipes import Training

T = TypeVar("T")
UNITS_A_WORKER = 4  # more cost more messages, fewer leave workers idle at the end
ATTEMPTS = 5  # to send what was lost with its workers


@contextlib.contextmanager
def on_dask(address: str | None) -> Iterator[Any]:
    """Let joblib run on the cluster of this scheduler within the block, and yield its client.

    None changes nothing.
    """
    if address is None:
        yield None
        return
    try:
        from distributed import Client
        from distributed.comm.addressing import resolve_address
    except ImportError as error:
        raise ImportError('A cluster needs Dask: pip install "mvenet[distributed]"') from error
    try:
        # A client of an address that is none would stay Dask's default, and what Dask computes in
        # this process afterwards would wait for it for ever.
        resolve_address(address)
        client: Any = Client(address, timeout=10)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise OSError(
            f"No Dask scheduler answers at {address}: start one with `dask scheduler`, and give "
            "the address that it prints, such as tcp://10.0.0.1:8786."
        ) from error
    with client:
        if not client.nthreads():
            raise OSError(
                f"The cluster at {address} has no workers: start some with `dask worker {address}`."
            )
        with joblib.parallel_config(backend="dask"):
            yield client


@dataclass(frozen=True)
class Workers:
    """Where units go: ``slots`` run at a time; ``client`` is Dask's, or None for joblib."""

    slots: int
    client: Any = None


def active_workers() -> Workers | None:
    """The workers of the active joblib back end; None if it has none but this process."""
    if dask_worker() is not None:  # a unit of somebody else's: it stays where it is
        return None
    backend, _ = get_active_backend()
    client = getattr(backend, "client", None)
    if client is not None:
        return Workers(max(1, joblib.effective_n_jobs()), client)
    if getattr(backend, "supports_sharedmem", False):
        return None
    slots = joblib.effective_n_jobs(None)
    return Workers(slots) if slots > 1 else None


@dataclass(frozen=True)
class _Work:
    """What all units of a fleet have in common; sent to each worker once."""

    X: NDArray[Any]
    y: NDArray[np.float64]
    sample_weight: NDArray[np.float64] | None
    subsets: Sequence[tuple[fleet.Rows, fleet.Rows]]
    architecture: Architecture
    training: Training
    steps: fleet.Steps | None
    threads: int | None  # of a unit, as the user set them
    share: int  # else at most so many, because there are more slots than units
    sender: tuple[str, str]


def begin(
    X: NDArray[Any],
    y: NDArray[np.float64],
    sample_weight: NDArray[np.float64] | None,
    subsets: Sequence[tuple[fleet.Rows, fleet.Rows]],
    networks: Sequence[fleet.Network],
    *,
    architecture: Architecture,
    training: Training,
    steps: fleet.Steps | None = None,
    threads: int | None = None,
) -> Callable[[fleet.Progress | None], fleet.Fleet]:
    """Begin to train a fleet as :func:`mvenet._training.fleet.train` does; what is returned waits.

    On a cluster the units of several fleets that are begun fill its workers together. Elsewhere a
    fleet is trained when it is waited for. ``threads`` are those of a unit; None takes all that a
    worker has.
    """
    workers = active_workers()
    if workers is None:
        here = threads or effective_threads(None)
        return lambda progress: fleet.train(
            X,
            y,
            sample_weight,
            subsets,
            networks,
            architecture=architecture,
            training=training,
            steps=steps,
            threads=here,
            record_history=True,
            progress=progress,
        )
    work = [fleet.planned_steps([n], subsets, training.batch_size) for n in networks]
    units = _units(fleet.families(networks), work, UNITS_A_WORKER * workers.slots)
    share = max(1, workers.slots // len(units))
    common = _Work(
        X, y, sample_weight, subsets, architecture, training, steps, threads, share, sender()
    )
    tasks = [[networks[i] for i in unit] for unit in units]
    sent = Sent(workers.client, _train_unit, common, tasks) if workers.client else None

    def finish(progress: fleet.Progress | None) -> fleet.Fleet:
        done: dict[int, fleet.Fleet] = {}
        for number, trained in sent.results() if sent else _on_joblib(common, tasks):
            done[number] = trained
            if progress is not None:
                progress(sum(part.steps for part in done.values()))
        return _put_together(units, [done[i] for i in range(len(units))])

    return finish


def _units(families: list[list[int]], work: list[int], most: int) -> list[list[int]]:
    """Numbers of the networks of each unit, of about equal work; groups stay together."""
    together = [sum(work[i] for i in family) for family in families]
    units: list[list[int]] = [[] for _ in range(min(most, len(families)))]
    loads = [0] * len(units)
    for f in sorted(range(len(families)), key=lambda f: -together[f]):
        lightest = loads.index(min(loads))
        units[lightest] += families[f]
        loads[lightest] += together[f]
    return units


def _train_unit(work: _Work, networks: Sequence[fleet.Network]) -> fleet.Fleet:
    """What a worker does."""
    refuse_others(work.sender)
    free = min(effective_threads(None), work.share)
    return fleet.train(
        work.X,
        work.y,
        work.sample_weight,
        work.subsets,
        networks,
        architecture=work.architecture,
        training=work.training,
        steps=work.steps,
        threads=work.threads or free,
        record_history=True,
    )


def sender() -> tuple[str, str]:
    """What decides the last bits of results: the version of mvenet and the instruction set."""
    return version("mvenet"), instruction_set()


def refuse_others(sent_by: tuple[str, str]) -> None:
    """Refuse, on a worker, what was sent by a process that would compute other numbers."""
    here = sender()
    if here != sent_by:
        raise RuntimeError(
            "A worker has mvenet {} with {}, but was sent work by mvenet {} with {}, and would "
            "give other numbers: install the same version everywhere, and set MVENET_SIMD to an "
            "instruction set that all machines have.".format(*here, *sent_by)
        )


def _on_joblib(work: _Work, tasks: list[list[fleet.Network]]) -> Iterator[tuple[int, fleet.Fleet]]:
    call: Callable[..., Any] = joblib.delayed(_numbered)
    calls = (call(number, work, task) for number, task in enumerate(tasks))
    yield from joblib.Parallel(return_as="generator_unordered")(calls)


def _numbered(
    number: int, work: _Work, networks: Sequence[fleet.Network]
) -> tuple[int, fleet.Fleet]:
    return number, _train_unit(work, networks)


class Sent:
    """Tasks of one kind on the workers of a Dask cluster, begun at once.

    By Dask itself: joblib keeps what tasks share on one worker, and with that it would be lost.

    Parameters
    ----------
    client : distributed.Client
    call : callable
        Makes a result of what all tasks share, and of a task.
    shared : object
        Sent to each worker once.
    tasks : sequence
    """

    def __init__(
        self, client: Any, call: Callable[[Any, Any], Any], shared: Any, tasks: Sequence[Any]
    ) -> None:
        _check_versions(client)
        self._client, self._call, self._shared, self._tasks = client, call, shared, tasks
        self._waiting = set(range(len(tasks)))
        self._futures: dict[Any, int] = {}
        with contextlib.suppress(OSError):  # a worker died on receiving: results send again
            self._send()

    def _send(self) -> None:
        # To all workers: one that dies takes only its tasks in hand.
        shared = self._client.scatter(self._shared, broadcast=True, hash=False)
        for i in sorted(self._waiting):
            future = self._client.submit(self._call, shared, self._tasks[i], pure=False)
            self._futures[future] = i

    def results(self) -> Iterator[tuple[int, Any]]:
        """Number and result of each task, as they come; what workers lost is sent again."""
        from concurrent.futures import CancelledError

        from distributed import as_completed

        for attempt in range(1, ATTEMPTS + 1):
            try:
                if not self._futures:
                    self._send()
                # Fetched as soon as it is there: with its worker it would be lost.
                done = as_completed(self._futures, with_results=True)  # type: ignore[no-untyped-call]
                for future, result in done:
                    if isinstance(result, CancelledError):
                        raise result
                    number = self._futures[future]
                    self._waiting.discard(number)
                    yield number, result
                return
            except (CancelledError, OSError):  # died on receiving, or the last with what is shared
                if attempt == ATTEMPTS:
                    raise
                time.sleep(1.0)  # until Dask has noticed, and started another
            finally:
                self.cancel()

    def cancel(self) -> None:
        """Let the workers forget what is not done."""
        self._client.cancel(list(self._futures))
        self._futures = {}


def begun(make: Callable[[], T]) -> Callable[[], T]:
    """Let a worker of the active cluster make something meanwhile; what is returned waits for it.

    Without a cluster it is made when it is waited for, once.
    """
    workers = active_workers()
    if workers is None or workers.client is None:
        return cache(make)
    finish = begun_each(_called, make, [None], 1)
    return cache(lambda: finish()[0])


def _called(make: Callable[[], T], _: None) -> T:
    return make()


def begun_each(
    call: Callable[[Any, Any], T], shared: Any, tasks: Sequence[Any], threads: int
) -> Callable[[], list[T]]:
    """Let workers call this with what is shared and each task; what is returned waits for all.

    Without a cluster ``threads`` of this process do it at once.
    """
    workers = active_workers()
    if workers is not None and workers.client is not None:
        sent = Sent(workers.client, _made, (sender(), call, shared), tasks)
        return lambda: [result for _, result in sorted(sent.results(), key=itemgetter(0))]
    jobs = (joblib.delayed(call)(shared, task) for task in tasks)
    done: list[T] = joblib.Parallel(n_jobs=threads, prefer="threads")(jobs)
    return lambda: done


def _made(work: tuple[tuple[str, str], Callable[[Any, Any], T], Any], task: Any) -> T:
    sent_by, call, shared = work
    refuse_others(sent_by)
    with one_order():
        return call(shared, task)


def require_folders(client: Any, folders: Sequence[Path]) -> None:
    """Refuse folders that a worker does not see: it has a disk of its own."""
    for folder in folders:
        for worker, there in client.run(os.path.isdir, str(folder), on_error="return").items():
            if there is False:
                raise OSError(
                    f"The worker at {worker} sees no folder {folder}: use one on a disk that all "
                    "machines share."
                )


def _check_versions(client: Any) -> None:
    """Refuse workers with another mvenet, or none: they might not understand what they are sent.

    One that does not answer has died: Dask sends its units to others.
    """
    here = version("mvenet")
    for worker, there in client.run(version, "mvenet", on_error="return").items():
        missing = isinstance(there, PackageNotFoundError)
        if missing or (isinstance(there, str) and there != here):
            found = "no mvenet" if missing else f"mvenet {there}"
            raise RuntimeError(
                f"The worker at {worker} has {found}, but this is mvenet {here}: install the same "
                "version everywhere."
            )


def _put_together(units: list[list[int]], parts: list[fleet.Fleet]) -> fleet.Fleet:
    """The fleet in the order of the request."""
    order = np.argsort([i for unit in units for i in unit])
    starts = np.cumsum([0, *(len(part.job_steps) for part in parts)]).tolist()
    whole = fleet.Fleet(
        networks=join([part.networks for part in parts]),
        diverged=np.concatenate([part.diverged for part in parts]),
        history=[pieces for part in parts for pieces in part.history],
        jobs=[
            [start + job for job in chain]
            for start, part in zip(starts, parts, strict=False)
            for chain in part.jobs
        ],
        job_steps=np.concatenate([part.job_steps for part in parts]),
    )
    return whole[order]
