"""The networks that a search ends with: those that rows left out have chosen, trained on all rows.

A fold's networks do not know the rows that it leaves out. That makes them judges, and poorer models
than networks that know all rows; and the model's start several times, from other random numbers,
and are averaged. Standard deviations that were learned from the judges' errors would be too large
for them. By how much is told by further judges, pairs of networks that know fewer rows than the
first, by one more fold: what they are worse by shows what more rows are worth, and their average
what an average over starts is worth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvenet import fleet
from mvenet._composite import Noise
from mvenet._evidence import Evidence, Group
from mvenet._families import Effort, Family, Folds
from mvenet._plan import Fitting, Request, Round, Table

Array = NDArray[np.float64]
Tables = Mapping[bool, Table]  # of plain columns and of encoded ones

ENOUGH = 1_000  # rows that the folds with further judges leave out
DOUBT = 50.0  # rows that speak for no difference
FARTHEST = 4.0  # standard deviations that an error counts at most
NARROWEST = 0.5  # share of a standard deviation that remains at least
MOST_STARTS = 10


@dataclass(frozen=True)
class Final:
    """The model's noises, its networks by kind, what it gains by them, and their gradient steps.

    Without any network, the folds' are the model's.
    """

    noises: Sequence[Noise]
    networks: Mapping[Family, fleet.Networks] = field(default_factory=dict)
    factor: float = 1.0  # on the standard deviations, on average
    steps: int = 0

    def key(self, group: Group) -> Any:
        """Groups with the same key have the same networks."""
        return _kind(group) if self.networks else id(group)

    def of(self, group: Group) -> fleet.Networks:
        """The model's networks in place of a group's."""
        return self.networks.get(_kind(group), group.networks)


def _kind(group: Group) -> Family:
    """What a group is, wherever it started from."""
    return replace(group.family, penalties=(group.penalties,), start=0)


def train(
    chosen: Sequence[Group],
    blend: Sequence[tuple[Group, float]],
    mixed: Sequence[Group],
    noises: Sequence[Noise],
    left: Evidence,
    tables: Tables,
    folds: Folds,
    effort: Effort,
    entropy: Any,
) -> Fitting[Final]:
    """Train the chosen groups on all rows, and make the noises as narrow as that allows.

    ``blend`` are the groups with a share in the mean, and the shares; ``mixed`` those of the
    noises.
    """
    kinds = list(dict.fromkeys(_kind(group) for group in chosen))
    judging = yield _ask_judges(kinds, tables, folds, entropy)
    judges = _Judges.of(left, kinds, judging, tables, folds)
    gains = judges.gains(blend, mixed, noises)
    weights = [noise.weights.sum() for noise in noises]
    random = float(np.average([gain.random for gain in gains], weights=weights))
    starts = min(MOST_STARTS, int(np.ceil(random / effort.left_to_chance)))
    starts = max(effort.starts, starts)
    trained = yield _ask_members(kinds, tables, starts, entropy)
    steps = sum(result.steps for result in (*judging, *trained))
    each = [trained[at : at + starts] for at in range(0, len(trained), starts)]
    # A start from which one diverged is left out for all kinds: they are averaged start by start.
    good = [s for s in range(starts) if not any(some[s].diverged.any() for some in each)]
    if not good:
        return Final(noises, steps=steps)
    factors = [gain.factor(len(good)) for gain in gains]
    narrowed = [
        replace(noise, shape=noise.shape.times(factor))
        for noise, factor in zip(noises, factors, strict=True)
    ]
    networks = [fleet.join([some[s].networks for s in good]) for some in each]
    factor = float(np.average(factors, weights=weights))
    return Final(narrowed, dict(zip(kinds, networks, strict=True)), factor, steps)


def planned(effort: Effort, tables: Tables, folds: Folds, entropy: Any) -> list[Round]:
    """The rounds, for one mean of plain columns and one of encoded ones."""
    if not effort.starts:
        return []
    means = effort.further[-1] if effort.further else effort.means
    once = (replace(f, penalties=f.penalties[:1], start=0) for f in (*effort.joint, *means))
    kinds = list(dict.fromkeys(once))
    asked = (
        _ask_judges(kinds, tables, folds, entropy),
        _ask_members(kinds, tables, effort.starts, entropy),
    )
    return [Round(tuple(requests), settled=False) for requests in asked]


def _ask_members(
    kinds: Sequence[Family], tables: Tables, starts: int, entropy: Any
) -> list[Request]:
    """Ask for each kind on all rows, from each start."""
    return [
        replace(family, start=start).request(table, [(table.rows, table.rows[:0])], entropy)
        for family in kinds
        for table in [tables[family.encoded]]
        for start in range(starts)
    ]


def _ask_judges(
    kinds: Sequence[Family], tables: Tables, folds: Folds, entropy: Any
) -> list[Request]:
    """Ask for pairs of each kind that know fewer rows than the folds' networks."""
    return [
        replace(family, start=start).request(tables[family.encoded], _fewer(folds), entropy)
        for family in kinds
        for start in range(2)
    ]


def _fewer(folds: Folds) -> Folds:
    """Enough of the folds, each without the rows that the next one leaves out, if any remain."""
    sizes = np.cumsum([len(test) for _, test in folds])
    fewer = []
    for number in range(min(len(folds), int(np.searchsorted(sizes, ENOUGH)) + 1)):
        (train, test), after = folds[number], folds[(number + 1) % len(folds)][1]
        remaining = np.setdiff1d(train, after)
        fewer.append((remaining if len(remaining) > 1 else train, test))
    return fewer


@dataclass(frozen=True)
class Gain:
    """How a model is better than its judges.

    Attributes
    ----------
    known : float
        Its error as a share of theirs, since it knows more rows.
    random : float
        Share of one start's squared error that differs from start to start.
    rows : int
        That tell it.
    alone : float
        How much of that the judges have: all if they started once, half if they are averages of two
        starts.
    """

    known: float = 1.0
    random: float = 0.0
    rows: int = 0
    alone: float = 1.0

    def factor(self, starts: int) -> float:
        """Typical error of an average over starts, as a share of the judges'."""
        averaged = _averaged(self.random, 1.0 / starts) / _averaged(self.random, self.alone)
        sure = self.rows / (self.rows + DOUBT)
        return float(np.clip((self.known * averaged) ** sure, NARROWEST, 1.0))


def _averaged(random: float, alone: float) -> float:
    """Typical error if so much of what differs from start to start is left."""
    return float(np.sqrt(1.0 - (1.0 - alone) * random))


@dataclass(frozen=True)
class _Judges:
    """Means of rows left out by further judges, of shape (2, n); NaN for rows without any."""

    left: Evidence
    means: Mapping[Family, Array]
    growth: float  # from the first judges' rows to all, as a power of that from the further ones'

    @staticmethod
    def of(
        left: Evidence,
        kinds: Sequence[Family],
        trained: Sequence[fleet.Fleet],
        tables: Tables,
        folds: Folds,
    ) -> _Judges:
        """From what was asked for; a network that diverged says nothing."""
        fewer, means = _fewer(folds), {}
        for number, family in enumerate(kinds):
            table, pair = tables[family.encoded], trained[2 * number : 2 * number + 2]
            total, count = np.zeros((2, len(table.y))), np.zeros(len(table.y))
            for fold, (_, test) in enumerate(fewer):
                if not any(judge.diverged[fold] for judge in pair):
                    x = np.ascontiguousarray(table.X[test])
                    total[:, test] += [judge.networks[[fold]].predict(x)[0][0] for judge in pair]
                    count[test] += 1
            means[family] = np.where(count > 0, total / np.maximum(count, 1), np.nan)
        known = sum(len(train) for train, _ in folds[: len(fewer)])
        less = sum(len(train) for train, _ in fewer)
        every = len(tables[False].rows) * len(fewer)
        growth = np.log(every / known) / np.log(known / less) if less < known else 0.0
        return _Judges(left, means, float(growth))

    def gains(
        self,
        blend: Sequence[tuple[Group, float]],
        mixed: Sequence[Group],
        noises: Sequence[Noise],
    ) -> list[Gain]:
        """For each noise of a mixture."""
        change = sum((s * (self.means[_kind(g)] - g.mean) for g, s in blend), np.zeros((2, 1)))
        alone, found = _alone(blend), []
        for group, noise in zip(mixed, noises, strict=True):
            if noise.weights.any():
                fewer = self.means[_kind(group)] if noise.joint else group.mean + change
                std = np.exp(noise.shape.applied(group.log_std))
                found.append(self._gain(group.mean, fewer, std, 1.0 if noise.joint else alone))
            else:
                found.append(Gain())
        return found

    def _gain(self, mean: Array, fewer: Array, std: Array, left_alone: float = 1.0) -> Gain:
        table = self.left.table
        rows = self.left.rows[np.isfinite(fewer[0][self.left.rows])]
        weight = None if table.weight is None else table.weight[rows]

        def error(mean: Array) -> float:
            each = np.abs((table.y - mean) / std)[rows]
            return float(np.average(np.minimum(each, FARTHEST), weights=weight))

        alone = 0.5 * (error(fewer[0]) + error(fewer[1])) if len(rows) else 0.0
        if not alone > 0:
            return Gain()
        # The square of the error is a + b / starts, and is seen at one start and at two.
        random = 2.0 * (1.0 - (error(fewer.mean(axis=0)) / alone) ** 2)
        random = float(np.clip(random, 0.0, 1.0))
        known = (error(mean) / (alone * _averaged(random, left_alone))) ** self.growth
        return Gain(known, random, len(rows), left_alone)


def _alone(blend: Sequence[tuple[Group, float]]) -> float:
    """Of what differs from start to start, how much is left where kinds started more than once.

    As if the kinds differed alike: the squares of their groups' shares, against those of their own.
    """
    kinds: dict[Family, float] = {}
    for group, share in blend:
        kinds[_kind(group)] = kinds.get(_kind(group), 0.0) + share
    squares = sum(share**2 for share in kinds.values())
    return sum(share**2 for _, share in blend) / squares if squares else 1.0
