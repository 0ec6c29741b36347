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
_fits = 0  # of this process that go on now
_limits: threadpool_limits | None = None


@contextmanager
def one_order() -> Iterator[None]:
    """Within it those libraries have one thread; the last fit to leave gives them theirs back.

    Fits in threads, or side by side, do not leave in the order in which they came.
    """
    global _fits, _limits
    with _lock:
        if _limits is None:
            _limits = threadpool_limits(1)
        _fits += 1
    try:
        yield
    finally:
        with _lock:
            _fits -= 1
            if not _fits:
                _limits.restore_original_limits()
                _limits = None
