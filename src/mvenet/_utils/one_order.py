"""Sums of matrix products in one order, whatever the threads.

The libraries of linear algebra under NumPy and SciPy share a product among as many threads as there
are cores, and the last digit of a sum depends on how. Their threads would also take the cores from
ours: they spin while they wait. So they get one while we fit.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import threadpool_limits

_lock = threading.Lock()
_holders: list[object] = []  # fits of this process that go on now
_limits: threadpool_limits | None = None


@contextmanager
def one_order() -> Iterator[None]:
    """Within it those libraries have one thread; the last fit to leave gives them theirs back.

    Fits in threads, or side by side, do not leave in the order in which they came.
    """
    global _limits
    me = object()
    with _lock:
        if not _holders:
            _limits = threadpool_limits(1)
        _holders.append(me)
    try:
        yield
    finally:
        with _lock:
            _holders.remove(me)
            if not _holders and _limits is not None:
                _limits.restore_original_limits()
                _limits = None
