"""The automatic search: which means, which noise and which mixture predict best out of fold.

0. Scale: networks that learn mean and variance together, the paper's way after a warm-up; if y is
   positive and skewed, of y and of log y, whichever makes the rows left out likelier.
1. Means: networks on plain and on encoded columns with several penalties; where the weakest was the
   best, others with still weaker ones, trained for longer; a linear model, trees and any regressor
   of the user's. They are blended by least squares on their out-of-fold predictions.
2. Noise: networks trained on the blend's *out-of-fold* residuals, as large as those of new rows,
   with the blended mean as a further column; beside those that learned both together.
3. Shape and weights: :mod:`mvenet._automatic.stacking`.
4. What was chosen is trained or fitted once more, on all rows: :mod:`mvenet._automatic.refit`.
   Networks of the noise, which learn from out-of-fold residuals, are kept: all folds', averaged.

All that is tried is one list of :class:`~mvenet._automatic.out_of_fold.Candidate`, each with its
out-of-fold predictions, its share in the mean and its weight in the mixture.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvenet._automatic import baselines, free_shape, refit, serial
from mvenet._automatic.constants import BETTER_BY, WORTH_A_START, WORTH_MORE
from mvenet._automatic.kinds import NetworkKind
from mvenet._automatic.out_of_fold import Candidate, OutOfFold, Prediction
from mvenet._automatic.plan import SearchPlan
from mvenet._automatic.refit import Refit
from mvenet._models.composite import Composite
from mvenet._models.interface import Mean
from mvenet._models.means import MeanOfNoise, NetworkMean
from mvenet._models.noise import Noise
from mvenet._models.piecewise import Piecewise
from mvenet._models.seen import Range
from mvenet._models.unknown import donors_of, farthest_of
from mvenet._training import distributed, fleet
from mvenet._training.plan import Fitting, Request, Stop, Table

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Result:
    """The model, its candidates, and its out-of-fold predictions.

    Attributes
    ----------
    model : Composite
    candidates : list of Candidate
    predicted : Prediction
    steps : int
        Gradient steps.
    factor : float
        The typical error that is expected of the model, as a share of that out of fold.
    gain : float or None
        Log-likelihood a row by which the log scale was better, or worse; None if it was not tried.
    free : free_shape.Found or None
        Atoms and free shapes; None if no candidate predicts values that a row may have.
    stopped : KeyboardInterrupt or None
        What ended the search before all was tried.
    """

    model: Composite
    candidates: list[Candidate]
    predicted: Prediction
    steps: int
    factor: float
    gain: float | None
    free: free_shape.Found | None = None
    stopped: KeyboardInterrupt | None = None


@dataclass
class _State:
    """The candidates so far: if the search is stopped, the model is made of these."""

    held_out: OutOfFold
    candidates: list[Candidate]
    steps: int

    def add(
        self,
        kinds: Sequence[NetworkKind],
        requests: Sequence[Request],
        trained: Sequence[fleet.Fleet],
        blended: Array | None = None,
    ) -> None:
        """Add networks of these kinds as candidates, but for kinds of which one diverged."""
        self.steps += sum(result.steps for result in trained)
        for kind, request, result in zip(kinds, requests, trained, strict=True):
            if not result.diverged.any():
                candidate = self.held_out.as_candidate(
                    kind.name,
                    result,
                    request.table.X,
                    encoded=kind.encoded,
                    joint=kind.joint,
                    blended=blended,
                    kind=kind,
                )
                self.candidates.append(candidate)


def search(plan: SearchPlan, threads: int) -> Fitting[Result]:
    """Train, blend, mix, and train again."""
    stop = Stop()
    trained = yield plan.rounds[0].requests
    state, gain = stop.finish(lambda: _on_the_better_scale(plan, trained))
    held_out, candidates = state.held_out, state.candidates
    with stop:
        stop.leave_if_pressed()
        others = baselines.begin(plan.others, held_out, plan.folds, plan.entropy, threads)
        yield from _train_tiers(plan, state, others)
    if not candidates:
        why = "Every network of the search diverged: are there outliers in X?"
        raise stop.pressed or fleet.DivergedError(why)
    blended = held_out.blend(candidates)

    if plan.effort.noise and not stop.pressed:
        with stop:
            requests = plan.noise_requests(held_out.log, blended, held_out.rows, held_out.folds)
            trained = yield requests
            state.add(plan.effort.noise, requests, trained, blended)
    noises = [candidate for candidate in candidates if candidate.log_std is not None]
    if not noises:
        raise fleet.DivergedError("Every network of the noise diverged: are there outliers in y?")
    predicted = stop.finish(lambda: held_out.mix(noises, plan.entropy))
    again, shapes = Refit(), _Shapes(plan, held_out, candidates, threads)
    if not stop.pressed:
        with stop:
            baselines.begin_refits(candidates)
            again = yield from refit.train(plan, held_out, candidates, shapes.begin)
    free = stop.finish(lambda: shapes.of(again.factor))
    predicted = free.predicted if free else predicted
    model = stop.finish(
        lambda: composed(plan.piecewise, held_out, candidates, predicted, again, plan.unit, free)
    )
    steps = state.steps + again.steps
    predicted = predicted.times(plan.unit)
    return Result(model, candidates, predicted, steps, again.factor, gain, free, stop.pressed)


class _Shapes:
    """Atoms and free shapes; on a cluster a worker fits them while others train networks."""

    def __init__(
        self, plan: SearchPlan, held_out: OutOfFold, candidates: Sequence[Candidate], threads: int
    ) -> None:
        self._given = plan, held_out, candidates, threads
        self._begun: dict[float, Callable[[], free_shape.Found]] = {}

    def begin(self, factor: float) -> None:
        """Begin with the typical error that is expected, as a share of that out of fold."""
        plan, held_out, candidates, threads = self._given
        bare = [replace(c, refit=None, networks=None) for c in candidates]  # which are not needed
        samplers = [candidate for candidate in bare if candidate.values is not None]
        noises = [candidate for candidate in bare if candidate.weight]
        settings = factor, plan.scoring, plan.bounds, threads
        self._begun[factor] = distributed.begun(
            partial(free_shape.fit, held_out, noises, samplers, plan.entropy, *settings)
        )

    def of(self, factor: float) -> free_shape.Found:
        """For this error: begun now if another one, or none, was expected."""
        if factor not in self._begun:
            self.begin(factor)
        return self._begun[factor]()


def _train_tiers(
    plan: SearchPlan, state: _State, others: Callable[[], list[Candidate]]
) -> Fitting[None]:
    """Train the networks of tier after tier, as long as weaker penalties help.

    ``others`` waits for candidates that are no networks: a cluster fits them beside the first tier.
    A second start is for what has a large share after the first: others would change little.
    """
    first = len(state.candidates)
    try:
        yield from _train_kinds(plan, state, plan.effort.means)
    finally:  # also after Ctrl-C
        state.candidates[first:first] = others()
    for tier in plan.effort.further:
        kinds = [k for k in tier if plan.effort.eager or _improving(k, state.candidates)]
        yield from _train_kinds(plan, state, kinds)
    if plan.effort.again and state.candidates:
        state.held_out.blend(state.candidates)
        large = (c.kind for c in state.candidates if (c.share or 0.0) >= WORTH_A_START)
        yield from _train_kinds(plan, state, plan.effort.second_starts(large))


def _train_kinds(plan: SearchPlan, state: _State, kinds: Sequence[NetworkKind]) -> Fitting[None]:
    if kinds:
        requests = plan.requests(kinds, state.held_out.log)
        trained = yield requests
        state.add(kinds, requests, trained)


def _improving(kind: NetworkKind, candidates: Sequence[Candidate]) -> bool:
    """Whether, on the same columns, the weakest penalty so far was the best.

    Clearly so for longer trainings, which take more time.
    """
    errors: dict[float, float] = {}
    for candidate in candidates:
        tried = candidate.kind
        if tried and not tried.joint and tried.encoded == kind.encoded:
            errors[tried.penalties[0]] = candidate.error
    if len(errors) < 2:
        return False
    weakest, *rest = (errors[penalty] for penalty in sorted(errors))
    return weakest < (1.0 if kind.joint else WORTH_MORE) * min(rest)


def _on_the_better_scale(
    plan: SearchPlan, trained: Sequence[fleet.Fleet]
) -> tuple[_State, float | None]:
    """The joint networks on the scale that is likelier out of fold, and by how much it is."""
    joint, requests, states = plan.effort.joint, plan.rounds[0].requests, []
    for number, log in enumerate(plan.scales):
        part = slice(number * len(joint), (number + 1) * len(joint))
        state = _State(OutOfFold(plan.tables[log, False], plan.folds, log), [], 0)
        state.add(joint, requests[part], trained[part])
        states.append(state)
    best, gain = better_scale(
        [(state.held_out, state.candidates) for state in states], plan.entropy
    )
    return replace(states[best], steps=sum(state.steps for state in states)), gain


def better_scale(
    tried: Sequence[tuple[OutOfFold, list[Candidate]]], entropy: Any
) -> tuple[int, float | None]:
    """Which of the scales tried is better, and by how much the second is likelier a row.

    The second, that of log y, is chosen if it is better by two standard errors.
    """
    if len(tried) == 1 or not tried[1][1]:
        return 0, None
    if not tried[0][1]:
        return 1, np.inf
    densities = [held_out.mix(candidates, entropy).log_density for held_out, candidates in tried]
    held_out = tried[0][0]
    gains = (densities[1] - densities[0])[held_out.rows]
    gain = float(np.average(gains, weights=held_out.weight))
    error = held_out.standard_error(gains)
    return int(gain > BETTER_BY * error), gain


def composed(
    piecewise: Piecewise,
    held_out: OutOfFold,
    candidates: Sequence[Candidate],
    predicted: Prediction,
    again: Refit,
    unit: float,
    free: free_shape.Found | None = None,
) -> Composite:
    """All that has a share in the mean or a weight in the mixture, as one model."""
    noises, numbers = list[Noise](), dict[Any, int]()
    for candidate in candidates:
        if candidate.weight:
            if candidate.joint:
                numbers[again.key(candidate)] = len(noises)
            shape = again.shape_of(candidate).times(held_out.caution)
            noises.append(candidate.as_noise(again.networks_of(candidate), shape))
    means, shares = dict[Any, Mean](), dict[Any, float]()
    for candidate in candidates:
        if candidate.share:
            key = again.key(candidate)
            shares[key] = shares.get(key, 0.0) + candidate.share
            if candidate.refit is not None:
                means[key] = candidate.refit()
            elif key in numbers:
                means[key] = MeanOfNoise(numbers[key])
            else:
                means[key] = NetworkMean(again.networks_of(candidate), candidate.encoded)
    table = held_out.table
    seen = Range.of(table.source[table.rows], table.y[table.rows], predicted.typical_std)
    seen = seen.reaching(*held_out.beyond)
    if held_out.pace.any():
        drift = serial.distant_error(held_out, candidates, seen)
        seen = replace(seen, pace=held_out.pace, drift_std=drift)
    return Composite(
        piecewise,
        seen,
        tuple(means.values()),
        np.array([shares[key] for key in means]),
        tuple(noises),
        held_out.log,
        unit,
        np.inf if held_out.log else seen.y_high - seen.y_low or np.inf,
        **_shaped(free, candidates, means, again, held_out.log),
        **_known_rows(table),
    )


def _known_rows(table: Table) -> dict[str, Any]:
    """Rows to complete others with, and how far rows are from them at most."""
    X, tied = table.source[table.rows], table.dependence
    groups = None if tied is None or tied.groups is None else tied.groups[table.rows]
    few = donors_of(X, table.y[table.rows])
    return {
        "donors": np.ascontiguousarray(X[few], dtype=np.float64),
        "farthest": farthest_of(X, few, groups),
    }


def _shaped(
    free: free_shape.Found | None,
    candidates: Sequence[Candidate],
    means: Mapping[Any, Mean],
    again: Refit,
    log: bool,
) -> dict[str, Any]:
    """Atoms, free shape and narrowest component of a composite."""
    if free is None:
        return {}

    def fitted(candidate: Candidate) -> Any:
        assert candidate.refit is not None
        return means.get(again.key(candidate)) or candidate.refit()

    shape = free.shape(
        [(partial(fitted, c), len(c.values)) for c in candidates if c.values is not None]
    )
    # Where values are atoms, how narrow a component is makes no difference.
    narrowest = 0.0 if log or free.atoms is not None else 0.5 * free.resolution
    both = {"atoms": free.known.atoms, "ends": free.known.ends}
    return {"narrowest": narrowest, "free": shape, **both}
