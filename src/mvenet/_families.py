"""The networks of an automatic search: of which kinds, how long they train, how many are tried."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mvenet import fleet
from mvenet._plan import Request, Table
from mvenet._steps import BOUND
from mvenet.recipes import Architecture, Mode, Stage, Training, epochs_within

Folds = list[tuple[fleet.Rows, fleet.Rows]]
Length = tuple[int, int, int]  # epochs, least and most gradient steps: see recipes.epochs_within

LEARNING_RATE = 1e-2


def usual_batch(n: int) -> int:
    """Rows in a gradient step for a table of n rows."""
    limits = ((32, 4_000), (64, 12_000), (128, 40_000))
    return next((size for size, most in limits if n < most), 256)


@dataclass(frozen=True)
class Family:
    """Networks of one kind, one for each pair of penalties and each fold."""

    name: str
    encoded: bool
    hidden_mean: tuple[int, ...] | None
    hidden_var: tuple[int, ...] | None
    stages: tuple[tuple[Mode, Length], ...]
    penalties: tuple[tuple[float, float], ...]
    start: int = 0

    @property
    def uses(self) -> tuple[bool, bool]:
        """Whether a mean is learned, and a variance."""
        return self.hidden_mean is not None, self.hidden_var is not None

    @property
    def joint(self) -> bool:
        """Whether both are learned together."""
        return all(self.uses)

    def request(self, table: Table, folds: Folds, entropy: Any) -> Request:
        """Ask for all its networks, the folds of a pair side by side."""
        size = usual_batch(len(table.rows))
        networks = [
            fleet.Network(tuple(self._stages(len(rows), size, *pair)), seed, fold)
            for pair in self.penalties
            for fold, (rows, _) in enumerate(folds)
            for seed in [fleet.derived_seed(entropy, fold, self.start)]
        ]
        bound = np.inf if self.encoded else BOUND
        return Request(
            table,
            [(rows, rows[:0]) for rows, _ in folds],
            networks,
            Architecture(self.hidden_mean, self.hidden_var, "silu", bound),
            Training(batch_size=size),
        )

    def _stages(self, n: int, size: int, reg_mean: float, reg_var: float) -> Iterator[Stage]:
        for mode, length in self.stages:
            epochs = epochs_within(n, size, *length)
            jump = mode != "warmup"
            yield Stage(mode, epochs, LEARNING_RATE, "cosine", reg_mean, reg_var, jump)


def _only_mean(*values: float) -> tuple[tuple[float, float], ...]:
    return tuple((value, 0.0) for value in values)


def _only_variance(*values: float) -> tuple[tuple[float, float], ...]:
    return tuple((0.0, value) for value in values)


_DEEP, _SMALL = (64, 64, 64), (40, 20)
_JOINT: tuple[tuple[Mode, Length], ...] = (
    ("warmup", (10, 1_000, 10_000)),
    ("joint", (60, 4_000, 40_000)),
)
MEANS = (  # short: on most tables more steps only learn the noise
    Family("network", False, _DEEP, None, (("warmup", (30, 1_000, 10_000)),),
           _only_mean(1e-4, 1e-3, 1e-2)),
    Family("network on steps", True, _DEEP, None, (("warmup", (15, 1_000, 10_000)),),
           _only_mean(1e-4, 1e-3, 1e-2)),
)  # fmt: skip


# Weaker penalties for longer, one tier after the other: where weak ones are best, the error goes on
# falling for long.
FURTHER = (
    (
        Family("network", False, _DEEP, None, (("warmup", (150, 9_000, 25_000)),),
               _only_mean(3e-5)),
        Family("network on steps", True, _DEEP, None, (("warmup", (150, 7_000, 15_000)),),
               _only_mean(1e-5)),
    ),
    (
        Family("network", False, _DEEP, None, (("warmup", (400, 9_000, 25_000)),),
               _only_mean(1e-5)),
        Family("network on steps", True, _DEEP, None, (("warmup", (150, 7_000, 15_000)),),
               _only_mean(1e-6)),
    ),
    (
        Family("network", False, _DEEP, None, (("warmup", (400, 9_000, 25_000)),),
               _only_mean(1e-6)),
    ),
)  # fmt: skip
QUICK = (
    Family("joint network", False, _SMALL, _SMALL, _JOINT, ((1e-4, 1e-2),)),
    Family("joint network on steps", True, _SMALL, _SMALL, _JOINT, ((1e-3, 1e-2),)),
)
JOINT = (
    Family("joint network", False, _SMALL, _SMALL, _JOINT, ((1e-4, 1e-2),)),
    Family("joint network on steps", True, _SMALL, _SMALL, _JOINT, ((1e-4, 1e-2), (1e-3, 1e-2))),
)
NOISE = (
    Family("noise network", False, None, _SMALL, (("variance", (30, 3_000, 20_000)),),
           _only_variance(1e-2, 1e-1)),
    Family("noise network on steps", True, None, _SMALL, (("variance", (30, 3_000, 20_000)),),
           _only_variance(1e-3, 1e-2)),
)  # fmt: skip


def _started(families: tuple[Family, ...], starts: int) -> tuple[Family, ...]:
    """The families from so many random starts, each a candidate of its own."""
    return tuple(replace(f, start=start) for start in range(starts) for f in families)


@dataclass(frozen=True)
class Effort:
    """What a search trains.

    Families for the scale; for the mean; for the mean if weak penalties were best (or, if
    ``eager``, in any case), tier by tier; and for the noise. What is chosen is trained on all rows
    from so many ``starts``, or more until chance has a smaller share in the squared error than
    ``left_to_chance``; if they are none, the folds' networks are the model.
    """

    joint: tuple[Family, ...]
    means: tuple[Family, ...] = ()
    further: tuple[tuple[Family, ...], ...] = ()
    noise: tuple[Family, ...] = ()
    eager: bool = False
    starts: int = 0
    left_to_chance: float = 0.04


EFFORTS = {
    "low": Effort(QUICK, MEANS, noise=NOISE[:1], starts=2),
    "medium": Effort(JOINT, MEANS, FURTHER, NOISE, starts=4),
    "high": Effort(
        JOINT, _started(MEANS, 3), tuple(_started(t, 3) for t in FURTHER), NOISE, True, starts=10
    ),
}
WITHOUT_SEARCH = Effort(QUICK)
FEW_ROWS = 5_000  # with fewer, starting more often takes seconds


def effort_of(name: str, n: int) -> Effort:
    """What a search of n rows trains."""
    effort = EFFORTS[name]
    if name != "medium" or n >= FEW_ROWS:
        return effort
    # Long trainings differ by chance: judged by one start alone, shares would go to luck.
    twice = tuple(_started(tier, 2) for tier in effort.further)
    return replace(effort, further=twice, left_to_chance=0.015)
