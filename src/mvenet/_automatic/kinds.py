"""The networks of an automatic search: of which kinds, how long they train, how many are tried."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mvenet._automatic.constants import (
    DEEP,
    FEW_ROWS,
    LEARNING_RATE,
    LEFT_TO_CHANCE,
    LEFT_TO_CHANCE_FEW,
    SHORT,
    SMALL,
)
from mvenet._models.architecture import Architecture
from mvenet._models.piecewise import BOUND
from mvenet._training import fleet
from mvenet._training.plan import Request, Table
from mvenet.recipes import Length, Mode, Stage, Training, batch_size_for, epochs_within

Folds = list[tuple[fleet.Rows, fleet.Rows]]


@dataclass(frozen=True)
class NetworkKind:
    """Networks of one kind, one for each fold: how they read columns, are built and trained.

    Without hidden units of the mean they learn only a variance, and the other way round.
    """

    name: str
    encoded: bool
    hidden_mean: tuple[int, ...] | None
    hidden_var: tuple[int, ...] | None
    stages: tuple[tuple[Mode, Length], ...]
    penalties: tuple[float, float]
    start: int = 0  # number of the random start

    @property
    def joint(self) -> bool:
        """Whether they learn mean and variance together."""
        return self.hidden_mean is not None and self.hidden_var is not None

    @property
    def anew(self) -> NetworkKind:
        """The same kind, whatever random start it had."""
        return replace(self, start=0)

    def request(self, table: Table, folds: Folds, entropy: Any) -> Request:
        """Ask for its networks, one trained on the rows of each fold."""
        size = batch_size_for(len(table.rows))
        networks = [
            fleet.Network(
                tuple(self._stages(len(rows), size)),
                fleet.derived_seed(entropy, fold, self.start),
                fold,
            )
            for fold, (rows, _) in enumerate(folds)
        ]
        bound = np.inf if self.encoded else BOUND
        return Request(
            table,
            [(rows, rows[:0]) for rows, _ in folds],
            networks,
            Architecture(self.hidden_mean, self.hidden_var, "silu", bound),
            # Outliers then move neither mean nor variance much: docs/understand/search.md.
            Training(batch_size=size, objective="student-t" if self.joint else "nll"),
        )

    def _stages(self, n: int, size: int) -> Iterator[Stage]:
        for mode, length in self.stages:
            epochs = epochs_within(n, size, *length)
            jump = mode != "warmup"
            yield Stage(mode, epochs, LEARNING_RATE, "cosine", *self.penalties, jump)


def _means(encoded: bool, length: Length, *penalties: float) -> tuple[NetworkKind, ...]:
    name = "network on pieces" if encoded else "network"
    return tuple(
        NetworkKind(name, encoded, DEEP, None, (("warmup", length),), (penalty, 0.0))
        for penalty in penalties
    )


def _noises(encoded: bool, *penalties: float) -> tuple[NetworkKind, ...]:
    name = "noise network on pieces" if encoded else "noise network"
    stages: tuple[tuple[Mode, Length], ...] = (("variance", (30, 3_000, 20_000)),)
    return tuple(
        NetworkKind(name, encoded, None, SMALL, stages, (0.0, penalty)) for penalty in penalties
    )


def _joint(encoded: bool, *penalties: float) -> tuple[NetworkKind, ...]:
    name = "joint network on pieces" if encoded else "joint network"
    stages: tuple[tuple[Mode, Length], ...] = (
        ("warmup", (10, 1_000, 10_000)),
        ("joint", (60, 4_000, 40_000)),
    )
    return tuple(
        NetworkKind(name, encoded, SMALL, SMALL, stages, (penalty, 1e-2)) for penalty in penalties
    )


# Lengths and penalties: benchmarks/ablation.py --only lengths, --only penalties.
MEANS = (  # short: on most tables more gradient steps only learn the noise
    *_means(False, (30, 1_000, 10_000), 1e-4, 1e-3, 1e-2),
    *_means(True, (15, 1_000, 10_000), 1e-4, 1e-3, 1e-2),
)
# Weaker penalties for longer, one tier after the other: where weak ones are best, the error goes on
# falling for long.
FURTHER = (
    _joint(True, 1e-4)
    + _means(False, (150, 9_000, 25_000), 3e-5)
    + _means(True, (150, 7_000, 15_000), 1e-5),
    _means(False, (400, 9_000, 25_000), 1e-5) + _means(True, (150, 7_000, 15_000), 1e-6),
    _means(False, (400, 9_000, 25_000), 1e-6),
)
JOINT = _joint(False, 1e-4) + _joint(True, 1e-3)
NOISE = _noises(False, 1e-2, 1e-1) + _noises(True, 1e-2, 1e-3)


def _started(kinds: tuple[NetworkKind, ...], starts: int) -> tuple[NetworkKind, ...]:
    """The kinds from so many random starts, each a candidate of its own; of joint ones, one."""
    every = (replace(kind, start=start) for start in range(starts) for kind in kinds)
    return tuple(kind for kind in every if not (kind.joint and kind.start))


@dataclass(frozen=True)
class Effort:
    """What a search trains.

    Kinds of networks for the scale; for the mean; for the mean if weak penalties were best (or, if
    ``eager``, in any case), tier by tier; and for the noise. With ``again``, those of the tiers
    that have a share in the blend start a second time. What is chosen is trained on all rows from
    so many ``starts``, or more until chance has a smaller share in the squared error than
    ``left_to_chance``.
    """

    joint: tuple[NetworkKind, ...]
    means: tuple[NetworkKind, ...]
    further: tuple[tuple[NetworkKind, ...], ...]
    noise: tuple[NetworkKind, ...]
    starts: int
    eager: bool = False
    again: bool = False
    left_to_chance: float = LEFT_TO_CHANCE

    @property
    def tiers(self) -> tuple[tuple[NetworkKind, ...], ...]:
        """Kinds for the mean, in the order in which they are tried."""
        return (self.means, *self.further)

    def second_starts(self, kinds: Iterable[NetworkKind | None]) -> list[NetworkKind]:
        """Those of the kinds that start a second time, as they then are."""
        every = (kind for tier in self.further for kind in tier if not kind.joint)
        long = set(every) if self.again else set()
        return [replace(kind, start=1) for kind in kinds if kind and kind in long]

    def expected_choice(self) -> list[NetworkKind]:
        """Kinds that cost as much as those which are likely to be trained on all rows."""
        kinds = (*self.joint, *(self.further[-1] if self.further else self.means))
        one_of_each = {(kind.joint, kind.encoded): kind.anew for kind in kinds}
        return list(one_of_each.values())


EFFORTS = {
    "low": Effort(JOINT, MEANS, (), NOISE[:2], starts=2),
    "medium": Effort(JOINT, MEANS, FURTHER, NOISE, starts=4),
    "high": Effort(
        JOINT,
        _started(MEANS, 3),
        tuple(_started(tier, 3) for tier in FURTHER),
        NOISE,
        starts=10,
        eager=True,
    ),
}


def effort_of(name: str, n: int, targets: int = 1) -> Effort:
    """What a search of n rows trains, for one of so many targets."""
    effort = EFFORTS[name]
    if name != "medium" or n >= FEW_ROWS:
        return effort
    # Many units and the noise's weakest penalty are for many rows: docs/understand/search.md.
    means = tuple(replace(kind, hidden_mean=SHORT) for kind in effort.means)
    few = replace(effort, means=means, noise=effort.noise[:3], left_to_chance=LEFT_TO_CHANCE_FEW)
    if targets > 1:  # time is shared: benchmarks/targets.py
        return few
    # Long trainings differ by chance: compared by one start alone, shares would go to luck.
    return replace(few, again=True)
