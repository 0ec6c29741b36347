"""Trainings of few gradient steps, for tests that need a fitted model and not a good one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from mvenet import recipes
from mvenet._automatic import baselines, gaussian_process_fit, kinds

WHOLE = recipes.epochs_within
ITERATIONS, TREES = gaussian_process_fit.PROCESS_ITERATIONS, baselines.TREES


@contextmanager
def short_trainings(times: int = 25, others: bool = True) -> Iterator[None]:
    """Shorten whatever chooses its own length: every kind of network of a search, and "auto".

    A search trains each of its networks for a thousand steps at least, however small the table;
    that is nearly all of its time. Then a process that looks long for its scales is, and then the
    number of trees; these stay whole with ``others=False``, as other processes have them. Within a
    file of short trainings, ``times=1`` has whole ones.
    """

    def shorter(n_rows: int, batch_size: int, epochs: int, least: int, most: int) -> int:
        few = (max(1, length // times) for length in (epochs, least, most))
        return WHOLE(n_rows, batch_size, *few)

    with pytest.MonkeyPatch.context() as patch:
        for module in (recipes, kinds):
            patch.setattr(module, "epochs_within", shorter)
        whole = times == 1 or not others
        patch.setattr(gaussian_process_fit, "PROCESS_ITERATIONS", ITERATIONS if whole else 5)
        patch.setattr(baselines, "TREES", TREES if whole else ((30, 10**9),))
        yield
