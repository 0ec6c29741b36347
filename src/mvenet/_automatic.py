"""The automatic search: which means, which noise, in which mixture, all decided by rows left out.

0. Scale: networks that learn mean and variance together, the paper's way after a warm-up; if y is
   positive and skewed, of y and of log y, and the rows left out decide between the two.
1. Means: networks on plain and on encoded columns with several penalties; where the weakest was the
   best, others with still weaker ones, trained for longer; a linear model, trees and any regressor
   of the user's. Each predicts the rows that its folds left out; blended by least squares on those.
2. Noise: networks trained on the blend's residuals *of rows left out*, which are as large as on new
   rows, with the blended mean as a further column; beside those that learned both together.
3. Shape and weights: :mod:`mvenet._stack`.
4. What was chosen is trained or fitted once more, on all rows: :mod:`mvenet._final`. Networks of
   the noise, which learn from rows left out, are kept: those of all folds, averaged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import skew

from mvenet import _final, _means, fleet
from mvenet._composite import Composite, MeanOfNoise, NetworkMean, Noise, Range
from mvenet._evidence import Evidence, Group
from mvenet._families import Effort, Family, Folds
from mvenet._final import Final
from mvenet._plan import Fitting, Plan, Request, Round, Stop, Table
from mvenet._stack import MULTIPLES
from mvenet._steps import Steps

Array = NDArray[np.float64]

TARGETS = ("auto", "identity", "log")
# A weaker penalty is tried if the weakest so far has an error below so much of all others'.
WORTH_MORE = 0.95


@dataclass(frozen=True)
class AutomaticPlan(Plan):
    """A search: rounds for the scale, the means, further means if they are worth it, and the noise.

    The tables are those of a scale (whether of log y) and of a kind of columns (whether encoded).
    Later rounds are described for the first scale; the search makes them for the one it chooses.
    What the first trains is a model by itself: whoever stops the search after it keeps one.
    """

    effort: Effort
    folds: Folds
    steps: Steps
    scales: tuple[bool, ...]
    tables: dict[tuple[bool, bool], Table]
    entropy: Any
    others: tuple[Any, ...]  # means that are not networks

    def seconds_beside(self, threads: int) -> float:
        """Expected time of the means that are not networks."""
        table = self.tables[self.scales[0], False]
        return _means.expected_seconds(self.others, table, self.folds, threads)


@dataclass(frozen=True)
class Result:
    """The model found, what it says of rows left out, and how its candidates did.

    Attributes
    ----------
    composite : Composite
    mean, std, log_density : ndarray of shape (n,)
        Predicted for rows left out, and the density there of what was observed; NaN for rows that
        no fold leaves out.
    candidates : dict of ndarray
        Columns ``name``, ``reg_mean``, ``reg_var``, ``rmse`` (of the rows left out), ``share`` (in
        the blended mean) and ``weight`` (in the mixture); NaN where one does not apply.
    steps : int
    factor : float
        The typical error that is expected of the model, as a share of that on rows left out.
    gain : float or None
        Log-likelihood a row by which the log scale was better, or worse; None if it was not tried.
    stopped : KeyboardInterrupt or None
        What ended the search before all was tried.
    """

    composite: Composite
    mean: Array
    std: Array
    log_density: Array
    candidates: dict[str, NDArray[Any]]
    steps: int
    factor: float
    gain: float | None
    stopped: KeyboardInterrupt | None = None


def usual_folds(n: int) -> int:
    """Folds of a table of n rows."""
    return max(2, min(8, n // 2)) if n < 2_000 else 5 if n < 100_000 else 3


def possible_scales(y: Array, target: str) -> tuple[bool, ...]:
    """Whether y, log y or both are worth a trial; a log scale that cannot be is an error."""
    if target == "log" and not (y > 0).all():
        raise ValueError(
            f"target='log' needs a y that is positive everywhere, and y holds {y.min():g}: use "
            "target='auto', or add a constant first."
        )
    if target != "auto":
        return (target == "log",)
    skewed = (y > 0).all() and np.ptp(y) > 0 and abs(skew(np.log(y))) < abs(skew(y))
    return (False, True) if skewed else (False,)


def plan(
    table: Table,
    folds: Folds,
    means: Sequence[Any],
    entropy: Any,
    *,
    target: str = "auto",
    effort: Effort,
) -> AutomaticPlan:
    """Describe the search."""
    scales = possible_scales(table.y[table.rows], target)
    steps = Steps.of(table.X[table.rows])
    encoded = replace(table, X=steps.encode(table.X))
    tables = {
        (log, known is encoded): _on_scale(known, log)
        for log in scales
        for known in (table, encoded)
    }
    if "networks" not in means:
        effort = replace(effort, means=(), further=())

    others = tuple(mean for mean in means if mean != "networks")
    search = AutomaticPlan((), effort, folds, steps, scales, tables, entropy, others)

    def asked(families: Sequence[Family], *scales: bool) -> tuple[Request, ...]:
        return tuple(request for log in scales for request in _requests(search, families, log))

    rounds = (
        Round(asked(effort.joint, *scales)),
        Round(asked(effort.means, scales[0]), settled=len(scales) == 1),
        *(Round(asked(tier, scales[0]), settled=False) for tier in effort.further),
        Round(asked(effort.noise, scales[0]), settled=False),
        *_final.planned(effort, {e: tables[scales[0], e] for e in (False, True)}, folds, entropy),
    )
    return replace(search, rounds=rounds)


def _on_scale(table: Table, log: bool) -> Table:
    """The table itself, or with log y in place of y; rows that do not count may hold anything."""
    if not log:
        return table
    y = np.zeros_like(table.y)
    y[table.rows] = np.log(table.y[table.rows])
    return replace(table, y=y)


def search(plan: AutomaticPlan, threads: int) -> Fitting[Result]:
    """Train, blend and mix."""
    trained = yield plan.rounds[0].requests
    steps, stop = [result.steps for result in trained], Stop()
    left, joint, gain = stop.insisting(lambda: _scaled(plan, trained))
    networks, others = list[Group](), list[_means.Candidate]()
    with stop:
        stop.leave_if_pressed()
        others = _means.candidates(plan.others, left.table, plan.folds, plan.entropy, threads)
        yield from _train_tiers(plan, left, networks, steps)
    networks += joint
    predicted = [*(g.mean for g in networks), *(left.average(o.left_out) for o in others)]
    if not predicted:
        why = "Every network of the search diverged: are there outliers in X?"
        raise stop.pressed or fleet.DivergedError(why)
    shares = left.blend(np.array(predicted))
    blended = shares @ np.array(predicted)

    on_blend: list[Group] = []
    requests = _noise_requests(plan, left, blended)
    if requests and not stop.pressed:
        with stop:
            trained = yield requests
            steps += [result.steps for result in trained]
            found = left.groups(plan.effort.noise, trained, requests)
            on_blend = [replace(group, mean=blended) for group in found]
    mixed = [*joint, *on_blend]
    if not mixed:
        raise fleet.DivergedError("Every network of the noise diverged: are there outliers in y?")
    noises, said = stop.insisting(lambda: left.mixture(mixed, plan.entropy))
    weights = {id(g): float(noise.weights.sum()) for g, noise in zip(mixed, noises, strict=True)}

    blend = [(g, share) for g, share in zip(networks, shares, strict=False) if share > 0]
    chosen = [*(g for g, _ in blend), *(g for g in joint if weights[id(g)])]
    final = Final(noises)
    if chosen and plan.effort.starts and not stop.pressed:
        tables = {encoded: plan.tables[left.log, encoded] for encoded in (False, True)}
        with stop:
            final = yield from _final.train(
                chosen, blend, mixed, noises, left, tables, plan.folds, plan.effort, plan.entropy
            )

    rmse = [left.rmse(mean) for mean in [*predicted, *(g.mean for g in on_blend)]]
    tried = [*networks, *others]
    composite = stop.insisting(lambda: _composed(left, plan, tried, shares, mixed, final))
    return Result(
        composite,
        *said,
        _as_columns([*tried, *on_blend], rmse, shares, weights),
        sum(steps) + final.steps,
        final.factor,
        gain,
        stop.pressed,
    )


def _train_tiers(
    plan: AutomaticPlan, left: Evidence, networks: list[Group], steps: list[int]
) -> Fitting[None]:
    """Add the networks of tier after tier, as long as they promise something, and their steps.

    Into the lists given, so that whoever stops it has what is there.
    """
    for tier in (plan.effort.means, *plan.effort.further):
        every = tier is plan.effort.means or plan.effort.eager
        families = [f for f in tier if every or _improving(f, networks)]
        if families:
            asked = _requests(plan, families, left.log)
            trained = yield asked
            steps += [result.steps for result in trained]
            networks += left.groups(families, trained, asked)


def _requests(plan: AutomaticPlan, families: Sequence[Family], log: bool) -> list[Request]:
    """Ask for networks on a scale."""
    return [f.request(plan.tables[log, f.encoded], plan.folds, plan.entropy) for f in families]


def _noise_requests(plan: AutomaticPlan, left: Evidence, blended: Array) -> list[Request]:
    """Ask for networks of the noise: a further column, and residuals in place of y."""
    noise, tables = plan.effort.noise, {}
    for encoded in {family.encoded for family in noise}:
        table = plan.tables[left.log, encoded]
        X = np.column_stack([table.X, blended])
        tables[encoded] = replace(table, X=X, y=left.table.y - blended, rows=left.rows)
    return [f.request(tables[f.encoded], left.folds, plan.entropy) for f in noise]


def _improving(family: Family, tried: Sequence[Group]) -> bool:
    """Whether of its kind of columns the weakest penalty so far was clearly the best."""
    errors = {g.penalties: g.error for g in tried if g.family.encoded == family.encoded}
    if len(errors) < 2:
        return False
    weakest, *rest = (errors[penalties] for penalties in sorted(errors))
    return weakest < WORTH_MORE * min(rest)


def _scaled(
    plan: AutomaticPlan, trained: Sequence[fleet.Fleet]
) -> tuple[Evidence, list[Group], float | None]:
    """The rows left out on the scale that they prefer, their joint networks, and by how much.

    The log scale is chosen if it is better by two standard errors.
    """
    found, requests, families = [], plan.rounds[0].requests, plan.effort.joint
    for number, log in enumerate(plan.scales):
        part = slice(number * len(families), (number + 1) * len(families))
        left = Evidence(plan.tables[log, False], plan.folds, log)
        found.append((left, left.groups(families, trained[part], requests[part])))
    usual = (*found[0], None)
    if len(found) == 1 or not found[1][1]:
        return usual
    if not found[0][1]:
        return (*found[1], np.inf)
    densities = [left.mixture(groups, plan.entropy)[1][2] for left, groups in found]
    left = found[0][0]
    gains = (densities[1] - densities[0])[left.rows]
    gain = float(np.average(gains, weights=left.weight))
    error = float(np.sqrt(np.average((gains - gain) ** 2, weights=left.weight) / len(gains)))
    return (*found[gain > 2.0 * error], gain)


def summary(found: Result, table: Table) -> str:
    """What was found, in words."""
    c, rows = found.candidates, np.flatnonzero(~np.isnan(found.mean))
    y, error = table.y[rows], (table.y - found.mean)[rows]
    rmse, spread = float(np.sqrt(np.mean(error**2))), float(y.std())
    lines = [
        f"{len(c['name'])} candidates, judged by {len(rows):,} rows left out"
        + ("; stopped before the end." if found.stopped else "."),
        f"Mean: {_listed(c['name'], c['share'])}.",
        f"Its typical error is {rmse:.4g} (root mean square; the target spreads by {spread:.4g}).",
        f"Noise: {_listed(c['name'], c['weight'])}.",
    ]
    if found.factor < 0.97:
        lines.insert(
            3,
            f"Trained again, on all rows, it should err by {1.0 - found.factor:.0%} less, and its "
            "intervals are narrower by as much.",
        )
    if found.composite.log:
        lines.insert(1, _log_scale(found.gain))
    low, high = np.quantile(found.std[rows], [0.05, 0.95])
    lines.append(
        f"The standard deviation differs between rows: from {low:.3g} to {high:.3g} in nine of ten."
        if high > 1.5 * low
        else f"The standard deviation is about the same in all rows: {low:.3g} to {high:.3g}."
    )
    heavy = sum(float(noise.weights[MULTIPLES > 2].sum()) for noise in found.composite.noises)
    lines.append(
        f"Tails are heavier than a normal's: {heavy:.0%} of the rows are more than twice as noisy "
        "as others like them."
        if heavy > 0.03
        else "Tails are about a normal's."
    )
    return "\n".join(lines)


def _log_scale(gain: float | None) -> str:
    """Why the model is one of log y."""
    chosen = "The model is of the logarithm of the target: nothing it predicts is below zero"
    if gain is None or not np.isfinite(gain):
        return f"{chosen}."
    return f"{chosen}, and the rows left out are likelier by {gain:.2f} a row (log-likelihood)."


def _listed(names: NDArray[Any], parts: Array) -> str:
    """Names with their parts in percent, the largest first, equal names added up."""
    total: dict[str, float] = {}
    for name, part in zip(names.tolist(), np.nan_to_num(parts).tolist(), strict=True):
        total[name] = total.get(name, 0.0) + part
    ordered = sorted(total.items(), key=lambda item: -item[1])
    return ", ".join(f"{part:.0%} {name}" for name, part in ordered if part >= 0.005)


def _composed(
    left: Evidence,
    plan: AutomaticPlan,
    tried: Sequence[Any],
    shares: Array,
    mixed: Sequence[Group],
    final: Final,
) -> Composite:
    """All that has a share in the mean or a weight in the mixture, as one model."""
    noises, number = list[Noise](), dict[Any, int]()
    for group, noise in zip(mixed, final.noises, strict=True):
        if noise.weights.any():
            if group.family.joint:
                number[final.key(group)] = len(noises)
            noises.append(replace(noise, networks=final.of(group)))
    means, parts = dict[Any, Any](), dict[Any, float]()
    for mean, share in zip(tried, shares.tolist(), strict=True):
        if share > 0:
            key = final.key(mean) if isinstance(mean, Group) else id(mean)
            parts[key] = parts.get(key, 0.0) + share
            if isinstance(mean, _means.Candidate):
                means[key] = mean.refit()
            elif key in number:
                means[key] = MeanOfNoise(number[key])
            else:
                means[key] = NetworkMean(final.of(mean), mean.family.encoded)
    table = left.table
    seen = Range.of(table.X[table.rows], table.y[table.rows])
    shared = np.array([parts[key] for key in means])
    return Composite(plan.steps, seen, tuple(means.values()), shared, tuple(noises), left.log)


def _as_columns(
    tried: Sequence[Any], rmse: list[float], shares: Array, weights: dict[int, float]
) -> dict[str, NDArray[Any]]:
    """The candidates as columns."""
    networks = [t if isinstance(t, Group) else None for t in tried]
    pairs = np.array([(np.nan, np.nan) if g is None else g.penalties for g in networks])
    used = np.array([(False, False) if g is None else g.family.uses for g in networks])
    return {
        "name": np.array([t.name for t in tried]),
        "reg_mean": np.where(used[:, 0], pairs[:, 0], np.nan),
        "reg_var": np.where(used[:, 1], pairs[:, 1], np.nan),
        "rmse": np.array(rmse),
        "share": np.append(shares, np.full(len(tried) - len(shares), np.nan)),
        "weight": np.array([weights.get(id(t), np.nan) for t in tried]),
    }
