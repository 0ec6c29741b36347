"""A progress bar over gradient steps, drawn by rich where it is installed."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def steps_bar(description: str, total: int, verbose: int) -> Iterator[Callable[[int], None] | None]:
    """Yield a function of the number of steps done, or None if nothing is to be shown."""
    if not verbose:
        yield None
        return
    try:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )
    except ImportError:
        logging.getLogger("mvenet").warning(
            "verbose=%s shows a progress bar if rich is installed: pip install rich", verbose
        )
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    console = Console(stderr=True)  # standard output is for results
    with Progress(*columns, TextColumn("steps"), TimeRemainingColumn(), console=console) as bar:
        task = bar.add_task(description, total=total)
        yield lambda done: bar.update(task, completed=done)
        bar.update(task, completed=total)
