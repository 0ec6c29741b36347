"""The last training: what out-of-fold predictions have chosen, trained once more on all rows.

Networks of all rows are better than those of the folds, and an average over several random starts
is better than each. For these, standard deviations learned from the folds' errors would be too
large. A learning curve measures by how much: pairs of networks are trained without a second
fold. How much worse they are shows what more rows are worth; how much better the average of a pair
is shows the seed variance, and so what more starts are worth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvenet._automatic.constants import DOUBT, FARTHEST, MOST_STARTS, NARROWEST
from mvenet._automatic.kinds import NetworkKind
from mvenet._automatic.out_of_fold import Candidate, OutOfFold
from mvenet._automatic.plan import SearchPlan
from mvenet._models.mixture import Shape
from mvenet._models.networks import Networks, join
from mvenet._training import fleet
from mvenet._training.dependence import independent
from mvenet._training.plan import Fitting

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Refit:
    """Networks trained on all rows, by kind, and the factor by which each noise is narrower then.

    Without any, the model keeps the networks of the folds.
    """

    networks: Mapping[NetworkKind, Networks] = field(default_factory=dict)
    factors: Mapping[Candidate, float] = field(default_factory=dict)  # on standard deviations
    factor: float = 1.0  # on average
    steps: int = 0

    def key(self, candidate: Candidate) -> Any:
        """Candidates with the same key have the same networks."""
        return candidate.kind.anew if candidate.kind and self.networks else candidate

    def networks_of(self, candidate: Candidate) -> Networks:
        """The model's networks in place of a candidate's."""
        assert candidate.networks is not None
        return self.networks.get(self.key(candidate), candidate.networks)

    def shape_of(self, candidate: Candidate) -> Shape:
        """The shape of a noise, with its factor."""
        assert candidate.shape is not None
        return candidate.shape.times(self.factors.get(candidate, 1.0))


def train(
    plan: SearchPlan,
    held_out: OutOfFold,
    candidates: Sequence[Candidate],
    meanwhile: Callable[[float], object],
) -> Fitting[Refit]:
    """Train on all rows what has a share in the blend, and joint networks of the mixture.

    ``meanwhile`` is told the factor that is expected, before the last and longest training.
    """
    used = [c for c in candidates if c.kind and (c.share or (c.joint and c.weight))]
    kinds = list(dict.fromkeys(c.kind.anew for c in used if c.kind))
    if not kinds:
        return Refit()
    curve = yield plan.curve_requests(kinds, held_out.log)
    gains = _LearningCurve.of(plan, held_out, kinds, curve).gains(candidates)
    weights = [noise.weight for noise in gains]
    random = float(np.average([gain.random for gain in gains.values()], weights=weights))
    starts = min(MOST_STARTS, int(np.ceil(random / plan.effort.left_to_chance)))
    starts = max(plan.effort.starts, starts)
    meanwhile(_average_factor(gains, starts)[1])
    trained = yield plan.member_requests(kinds, held_out.log, starts)
    steps = sum(result.steps for result in (*curve, *trained))
    each = [trained[at : at + starts] for at in range(0, len(trained), starts)]
    # A start from which one diverged is left out for all kinds: they are averaged start by start.
    good = [s for s in range(starts) if not any(some[s].diverged.any() for some in each)]
    if not good:
        return Refit(steps=steps)
    networks = [join([some[s].networks for s in good]) for some in each]
    factors, factor = _average_factor(gains, len(good))
    return Refit(dict(zip(kinds, networks, strict=True)), factors, factor, steps)


def _average_factor(
    gains: Mapping[Candidate, Gain], starts: int
) -> tuple[dict[Candidate, float], float]:
    """The factor of each noise for so many starts, and their average by weight."""
    factors = {noise: gain.factor(starts) for noise, gain in gains.items()}
    weights = [noise.weight for noise in gains]
    return factors, float(np.average(list(factors.values()), weights=weights))


@dataclass(frozen=True)
class Gain:
    """How much better a model is than the networks of the folds.

    Attributes
    ----------
    more_rows : float
        Its error as a share of theirs, because it is trained on more rows.
    random : float
        Seed variance: share of one start's squared error that differs from start to start.
    rows : int
        Number of rows this was measured on; of groups, if rows belong together.
    remaining : float
        Share of the seed variance that is left in the folds' networks: one if they have one start,
        half if they are averages of two.
    """

    more_rows: float = 1.0
    random: float = 0.0
    rows: int = 0
    remaining: float = 1.0

    def factor(self, starts: int) -> float:
        """Typical error of an average over starts, as a share of the folds' networks'."""
        averaged = _averaged(self.random, 1.0 / starts) / _averaged(self.random, self.remaining)
        sure = self.rows / (self.rows + DOUBT)
        return float(np.clip((self.more_rows * averaged) ** sure, NARROWEST, 1.0))


def _averaged(random: float, remaining: float) -> float:
    """Typical error if this share of the seed variance remains, as a share of one start's."""
    return float(np.sqrt(1.0 - (1.0 - remaining) * random))


@dataclass(frozen=True)
class _LearningCurve:
    """Out-of-fold means by pairs of networks that were trained on fewer rows, (2, n), or NaN.

    A learning curve is about straight in log error against log rows. ``growth`` is the step from
    the folds' rows to all rows, as a multiple of the one from these fewer rows to the folds'.
    """

    held_out: OutOfFold
    means: Mapping[NetworkKind, Array]
    growth: float

    @staticmethod
    def of(
        plan: SearchPlan,
        held_out: OutOfFold,
        kinds: Sequence[NetworkKind],
        trained: Sequence[fleet.Fleet],
    ) -> _LearningCurve:
        """From the trained networks; a pair of which one diverged is left out."""
        fewer, means = plan.fewer, {}
        for number, kind in enumerate(kinds):
            table, pair = (
                plan.tables[held_out.log, kind.encoded],
                trained[2 * number : 2 * number + 2],
            )
            total, count = np.zeros((2, len(table.y))), np.zeros(len(table.y))
            for fold, (_, test) in enumerate(fewer):
                if not any(member.diverged[fold] for member in pair):
                    x = np.ascontiguousarray(table.X[test])
                    both = [member.networks[[fold]].predict(x)[0][0] for member in pair]
                    total[:, test] += held_out.bounded(np.array(both))
                    count[test] += 1
            means[kind] = np.where(count > 0, total / np.maximum(count, 1), np.nan)
        tied = held_out.table.dependence
        known = sum(independent(tied, train) for train, _ in plan.folds[: len(fewer)])
        less = sum(independent(tied, train) for train, _ in fewer)
        every = independent(tied, held_out.table.rows) * len(fewer)
        growth = np.log(every / known) / np.log(known / less) if less < known else 0.0
        if tied is not None and tied.time is not None:
            growth = 0.0  # the next stretch of time is as far away as those left out were
        return _LearningCurve(held_out, means, float(growth))

    def gains(self, candidates: Sequence[Candidate]) -> dict[Candidate, Gain]:
        """For each noise of the mixture."""
        blend = [(c, c.kind.anew, c.share) for c in candidates if c.kind and c.share]
        change = sum((s * (self.means[k] - c.mean) for c, k, s in blend), np.zeros((2, 1)))
        remaining, gains = _remaining([(kind, share) for _, kind, share in blend]), {}
        for noise in (c for c in candidates if c.weight):
            assert noise.kind is not None
            assert noise.shape is not None
            assert noise.log_std is not None
            fewer = self.means[noise.kind.anew] if noise.joint else noise.mean + change
            std = np.exp(noise.shape.applied(noise.log_std))
            gains[noise] = self._gain(noise.mean, fewer, std, 1.0 if noise.joint else remaining)
        return gains

    def _gain(self, mean: Array, fewer: Array, std: Array, remaining: float) -> Gain:
        table = self.held_out.table
        rows = self.held_out.rows[np.isfinite(fewer[0][self.held_out.rows])]
        weight = None if table.weight is None else table.weight[rows]

        def error(mean: Array) -> float:
            each = np.abs((table.y - mean) / std)[rows]
            return float(np.average(np.minimum(each, FARTHEST), weights=weight))

        single = 0.5 * (error(fewer[0]) + error(fewer[1])) if len(rows) else 0.0
        if not single > 0:
            return Gain()
        # The square of the error is a + b / starts, and is seen at one start and at two.
        random = 2.0 * (1.0 - (error(fewer.mean(axis=0)) / single) ** 2)
        random = float(np.clip(random, 0.0, 1.0))
        more_rows = (error(mean) / (single * _averaged(random, remaining))) ** self.growth
        return Gain(more_rows, random, self.held_out.units(rows), remaining)


def _remaining(blend: Sequence[tuple[NetworkKind, float]]) -> float:
    """Share of the seed variance that remains in a blend in which some kinds have several starts.

    If all kinds vary alike and independently, the variance of a blend is the sum of its squared
    shares; this is that sum over candidates, divided by that over kinds.
    """
    kinds: dict[NetworkKind, float] = {}
    for kind, share in blend:
        kinds[kind] = kinds.get(kind, 0.0) + share
    squares = sum(share**2 for share in kinds.values())
    return sum(share**2 for _, share in blend) / squares if squares else 1.0
