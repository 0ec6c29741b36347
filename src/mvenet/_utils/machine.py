"""What this machine has for a fit: threads, memory and the engine's instruction set."""

from __future__ import annotations

import contextlib
import math
import os
import sys
from pathlib import Path
from typing import Any

from mvenet import _engine

ANY_MACHINE_HAS = 2**24  # bytes: not worth a question


def effective_threads(n_jobs: int | None) -> int:
    """Threads for ``n_jobs``: None is all that are free, negative counts from the end.

    On a Dask worker these are its own threads, shared by the tasks that it runs, whatever its
    environment says. Within another joblib worker ``OMP_NUM_THREADS`` holds that worker's share.
    """
    if n_jobs is not None and n_jobs > 0:
        return min(n_jobs, 1024)
    worker = dask_worker()
    if worker is None:
        limits = (os.environ.get(name, "") for name in ("OMP_NUM_THREADS", "LOKY_MAX_CPU_COUNT"))
        given = (int(limit) for limit in limits if limit.isdigit() and int(limit) > 0)
        available = min((cores(), *given))
    else:
        available = max(1, worker.state.nthreads // max(1, worker.state.executing_count))
    return available if n_jobs is None else max(1, available + 1 + n_jobs)


def cores(groups: Path = Path("/sys/fs/cgroup")) -> int:
    """Cores that this process may use: those that it is bound to, and its container's share.

    The same as joblib's, whose import takes as long as predicting for half a million rows.
    """
    try:
        bound = len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        bound = os.cpu_count() or 1
    for places in (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")):
        with contextlib.suppress(OSError, ValueError, ZeroDivisionError):  # "max" is no limit
            quota, period = map(int, " ".join((groups / p).read_text() for p in places).split())
            if quota > 0:
                return min(bound, math.ceil(quota / period))
    return bound


def dask_worker() -> Any:
    """The Dask worker that this is a task of, or None."""
    module = sys.modules.get("distributed.worker")
    if module is None:
        return None
    try:
        return module.get_worker()
    except ValueError:
        return None


def instruction_set() -> str:
    """The instruction set that the engine uses, which decides the last bits of results."""
    return _engine.instruction_set()


def memory(groups: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Bytes that this machine has, or that its container may use; None if the system tells none.

    Not what is free at the moment: what depends on it would differ from run to run.
    """
    try:
        there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # Windows
        return None
    for place in ("memory.max", "memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):  # "max" is no limit
            return min(there, int((groups / place).read_text()))
    return there


def require_memory(needed: int, what: str, remedy: str) -> None:
    """Refuse what this machine's memory cannot hold, before any work is done."""
    if needed < ANY_MACHINE_HAS:
        return
    there = memory()
    if there is not None and needed > there:
        raise MemoryError(f"{what} need {needed:,} bytes, but this machine has {there:,}: {remedy}")
