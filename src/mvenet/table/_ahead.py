"""Parts of a file made on other threads while the ones before them are in use."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

AT_ONCE = 2  # parts: polars parses so few bytes on one thread

S = TypeVar("S")
T = TypeVar("T")


def ahead(parts: Iterator[T]) -> Iterator[T]:
    """The same parts, each made on another thread while the one before it is in use."""
    end: Any = object()
    with ThreadPoolExecutor(1) as worker:
        waiting = worker.submit(next, parts, end)
        while (part := waiting.result()) is not end:
            waiting = worker.submit(next, parts, end)
            yield part


def made_ahead(function: Callable[[T], S], parts: Iterator[T]) -> Iterator[tuple[T, S]]:
    """Parts and what a function makes of them, some at a time while the one before is in use."""
    with ThreadPoolExecutor(AT_ONCE) as workers:
        waiting: deque[tuple[T, Future[S]]] = deque()
        for part in parts:
            waiting.append((part, workers.submit(function, part)))
            if len(waiting) > AT_ONCE:
                before, made = waiting.popleft()
                yield before, made.result()
        for before, made in waiting:
            yield before, made.result()
