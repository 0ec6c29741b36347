"""The automatic search: which means, which noise, in which mixture, all decided by rows left out.

0. Scale: networks that learn mean and variance together, the paper's way after a warm-up; if y is
   positive and skewed, of y and of log y, and the rows left out decide between the two.
1. Means: networks on plain and on encoded columns with several penalties; where the weakest was the
   best, others with still weaker ones, trained for longer; a linear model, trees and any regressor
   of the user's. Each predicts the rows that its folds left out; blended by least squares on those.
2. Noise: networks trained on the blend's residuals *of rows left out*, which are as large as on new
   rows, with the blended mean as a further column; beside those that learned both together.
3. Shape and weights: :mod:`mvenet._stack`.

The networks of all folds are kept and averaged. What else has a share in the blend is fitted once
more, on all rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import skew

from mvenet import _means, _stack, fleet
from mvenet._composite import Composite, MeanOfNoise, NetworkMean, Noise, Range
from mvenet._plan import Fitting, Plan, Request, Round, Table
from mvenet._stack import LARGEST_LOG_MULTIPLE, MULTIPLES, WIDEST_LOG
from mvenet._steps import BOUND, Steps
from mvenet.recipes import Architecture, Mode, Stage, Training, epochs_within

Array = NDArray[np.float64]
Folds = list[tuple[fleet.Rows, fleet.Rows]]
Length = tuple[int, int, int]  # epochs, least and most gradient steps: see recipes.epochs_within

TARGETS = ("auto", "identity", "log")
LEARNING_RATE = 1e-2
# A weaker penalty is tried if the weakest so far has an error below so much of all others'.
WORTH_MORE = 0.95
MOST_ROWS = 50_000  # that shape and weights are fitted on


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
    ``eager``, in any case), tier by tier; and for the noise.
    """

    joint: tuple[Family, ...]
    means: tuple[Family, ...] = ()
    further: tuple[tuple[Family, ...], ...] = ()
    noise: tuple[Family, ...] = ()
    eager: bool = False


EFFORTS = {
    "low": Effort(QUICK, MEANS, noise=NOISE[:1]),
    "medium": Effort(JOINT, MEANS, FURTHER, NOISE),
    "high": Effort(
        JOINT, _started(MEANS, 3), tuple(_started(t, 3) for t in FURTHER), NOISE, eager=True
    ),
}
WITHOUT_SEARCH = Effort(QUICK)


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
    gain: float | None
    stopped: KeyboardInterrupt | None = None


def usual_folds(n: int) -> int:
    """Folds of a table of n rows."""
    return max(2, min(8, n // 2)) if n < 2_000 else 5 if n < 100_000 else 3


def usual_batch(n: int) -> int:
    """Rows in a gradient step for a table of n rows."""
    limits = ((32, 4_000), (64, 12_000), (128, 40_000))
    return next((size for size, most in limits if n < most), 256)


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

    def asked(families: tuple[Family, ...], log: bool) -> tuple[Request, ...]:
        return tuple(f.request(tables[log, f.encoded], folds, entropy) for f in families)

    usual = scales[0]
    rounds = (
        Round(tuple(request for log in scales for request in asked(effort.joint, log))),
        Round(asked(effort.means, usual), settled=len(scales) == 1),
        *(Round(asked(tier, usual), settled=False) for tier in effort.further),
        Round(asked(effort.noise, usual), settled=False),
    )
    others = tuple(mean for mean in means if mean != "networks")
    return AutomaticPlan(rounds, effort, folds, steps, scales, tables, entropy, others)


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
    left, joint, gain = _scaled(plan, trained)
    steps, stop = [result.steps for result in trained], _Stop()
    networks, others = list[_Group](), list[_means.Candidate]()
    with stop:
        others = _means.candidates(plan.others, left.table, plan.folds, plan.entropy, threads)
        for tier in (plan.effort.means, *plan.effort.further):
            families = _worth_training(tier, networks, plan.effort.eager)
            if families:
                asked = left.requests(families, plan)
                trained = yield asked
                steps += [result.steps for result in trained]
                networks += left.groups(families, trained, asked)
    networks += joint
    predicted = [*(g.mean for g in networks), *(left.average(o.left_out) for o in others)]
    if not predicted:
        why = "Every network of the search diverged: are there outliers in X?"
        raise stop.pressed or fleet.DivergedError(why)
    shares = left.blend(np.array(predicted))
    blended = shares @ np.array(predicted)

    on_blend: list[_Group] = []
    requests = left.noise_requests(plan, blended)
    if requests and not stop.pressed:
        with stop:
            trained = yield requests
            steps += [result.steps for result in trained]
            found = left.groups(plan.effort.noise, trained, requests)
            on_blend = [replace(group, mean=blended) for group in found]
    mixed = [*joint, *on_blend]
    if not mixed:
        raise fleet.DivergedError("Every network of the noise diverged: are there outliers in y?")
    noises, said = left.mixture(mixed, plan.entropy)

    weights = {id(g): float(noise.weights.sum()) for g, noise in zip(mixed, noises, strict=True)}
    rmse = [left.rmse(mean) for mean in [*predicted, *(g.mean for g in on_blend)]]
    return Result(
        _composed(left, plan, [*networks, *others], shares, mixed, noises),
        *said,
        _told([*networks, *others, *on_blend], rmse, shares, weights),
        sum(steps),
        gain,
        stop.pressed,
    )


class _Stop:
    """A block that Ctrl-C ends: it is remembered, and the search goes on with what it has."""

    pressed: KeyboardInterrupt | None = None

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        if not isinstance(error, KeyboardInterrupt):
            return False
        self.pressed = error
        return True


def _worth_training(
    families: Sequence[Family], tried: Sequence[_Group], eager: bool
) -> list[Family]:
    """The families of kinds whose weakest penalty so far was clearly the best; at first all."""

    def improving(family: Family) -> bool:
        errors = {g.penalties: g.error for g in tried if g.family.encoded == family.encoded}
        if len(errors) < 2:
            return False
        weakest, *rest = (errors[penalties] for penalties in sorted(errors))
        return weakest < WORTH_MORE * min(rest)

    return [family for family in families if eager or not tried or improving(family)]


def _scaled(
    plan: AutomaticPlan, trained: Sequence[fleet.Fleet]
) -> tuple[_LeftOut, list[_Group], float | None]:
    """The rows left out on the scale that they prefer, their joint networks, and by how much.

    The log scale is chosen if it is better by two standard errors.
    """
    found, requests, families = [], plan.rounds[0].requests, plan.effort.joint
    for number, log in enumerate(plan.scales):
        part = slice(number * len(families), (number + 1) * len(families))
        left = _LeftOut(plan.tables[log, False], plan.folds, log)
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
        + ("; stopped before all were tried." if found.stopped else "."),
        f"Mean: {_listed(c['name'], c['share'])}.",
        f"Its typical error is {rmse:.4g} (root mean square; y itself spreads by {spread:.4g}).",
        f"Noise: {_listed(c['name'], c['weight'])}.",
    ]
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
    chosen = "The model is of the logarithm of y, so that nothing it predicts is below zero"
    if gain is None or not np.isfinite(gain):
        return f"{chosen}."
    return f"{chosen}: the rows left out are likelier by {gain:.2f} a row (log-likelihood)."


def _listed(names: NDArray[Any], parts: Array) -> str:
    """Names with their parts in percent, the largest first, equal names added up."""
    total: dict[str, float] = {}
    for name, part in zip(names.tolist(), np.nan_to_num(parts).tolist(), strict=True):
        total[name] = total.get(name, 0.0) + part
    ordered = sorted(total.items(), key=lambda item: -item[1])
    return ", ".join(f"{part:.0%} {name}" for name, part in ordered if part >= 0.005)


def _composed(
    left: _LeftOut,
    plan: AutomaticPlan,
    tried: Sequence[Any],
    shares: Array,
    mixed: Sequence[_Group],
    noises: Sequence[Noise],
) -> Composite:
    """All that has a share in the mean or a weight in the mixture, as one model."""
    used = {id(mean) for mean, share in zip(tried, shares, strict=True) if share > 0}
    kept = [
        (group, noise)
        for group, noise in zip(mixed, noises, strict=True)
        if noise.weights.any() or id(group) in used
    ]
    number = {id(group): i for i, (group, _) in enumerate(kept)}
    means: list[Any] = []
    for mean in (mean for mean in tried if id(mean) in used):
        if isinstance(mean, _means.Candidate):
            means.append(mean.refit())
        elif mean.family.joint:
            means.append(MeanOfNoise(number[id(mean)]))
        else:
            means.append(NetworkMean(mean.networks, mean.family.encoded))
    table = left.table
    seen = Range.of(table.X[table.rows], table.y[table.rows])
    noise = tuple(noise for _, noise in kept)
    return Composite(plan.steps, seen, tuple(means), shares[shares > 0], noise, left.log)


def _told(
    tried: Sequence[Any], rmse: list[float], shares: Array, weights: dict[int, float]
) -> dict[str, NDArray[Any]]:
    """The candidates as columns."""
    networks = [t if isinstance(t, _Group) else None for t in tried]
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


@dataclass(frozen=True)
class _Group:
    """The networks of a family with one pair of penalties, and what they say of rows left out."""

    family: Family
    penalties: tuple[float, float]
    networks: fleet.Networks
    mean: Array
    log_std: Array
    error: float  # root mean square of the mean's, on rows left out

    @property
    def name(self) -> str:
        """In words."""
        return self.family.name


class _LeftOut:
    """The rows that folds leave out, and what is said of them by networks that left them out.

    With ``log``, the table is of log y, and so is all that is said but the mixture's moments and
    densities.
    """

    def __init__(self, table: Table, folds: Folds, log: bool) -> None:
        self.table, self.log = table, log
        self.count = np.zeros(len(table.y))
        for _, test in folds:
            np.add.at(self.count, test, 1)
        self.rows = np.flatnonzero(self.count)
        # Residuals to learn the noise from: those of all other rows that some fold leaves out.
        self.folds = [(np.setdiff1d(self.rows, test), test) for _, test in folds]
        if min(len(train) for train, _ in self.folds) < 2:
            raise ValueError(
                f"cv leaves {len(self.rows)} rows out, too few to learn the noise from: use at "
                "least two folds, such as KFold(5)."
            )
        self.weight = np.ones(len(self.rows)) if table.weight is None else table.weight[self.rows]

    def average(self, values: Sequence[Array]) -> Array:
        """From the values of each fold's rows to one for each row; zero for rows never left out."""
        total = np.zeros(len(self.count))
        for (_, test), value in zip(self.folds, values, strict=True):
            total[test] += value
        return total / np.maximum(self.count, 1)

    def groups(
        self, families: Sequence[Family], trained: Sequence[fleet.Fleet], asked: Sequence[Request]
    ) -> list[_Group]:
        """Groups of networks that were trained, without those of which one diverged."""
        k, found = len(self.folds), []
        for family, result, request in zip(families, trained, asked, strict=False):
            inputs = [np.ascontiguousarray(request.table.X[test]) for _, test in self.folds]
            for number, pair in enumerate(family.penalties):
                part = slice(number * k, (number + 1) * k)
                if result.diverged[part].any():
                    continue
                networks = result.networks[part]
                said = [networks[[fold]].predict(x) for fold, x in enumerate(inputs)]
                mean = self.average([m[0] for m, _ in said])
                log_std = self.average([np.log(s[0]) for _, s in said])
                found.append(_Group(family, pair, networks, mean, log_std, self.rmse(mean)))
        return found

    def requests(self, families: Sequence[Family], plan: AutomaticPlan) -> list[Request]:
        """Ask for networks on this scale."""
        tables = plan.tables
        return [f.request(tables[self.log, f.encoded], plan.folds, plan.entropy) for f in families]

    def noise_requests(self, plan: AutomaticPlan, blended: Array) -> list[Request]:
        """Ask for networks of the noise: a further column, and residuals in place of y."""
        residual, tables = self.table.y - blended, {}
        for encoded in {family.encoded for family in plan.effort.noise}:
            table = plan.tables[self.log, encoded]
            X = np.column_stack([table.X, blended])
            tables[encoded] = replace(table, X=X, y=residual, rows=self.rows)
        noise = plan.effort.noise
        return [f.request(tables[f.encoded], self.folds, plan.entropy) for f in noise]

    def blend(self, means: Array) -> Array:
        """Shares of means (c, n) in their blend."""
        return _stack.blend(means[:, self.rows], self.table.y[self.rows], self.weight)

    def rmse(self, mean: Array) -> float:
        """Root mean squared error of the rows left out."""
        error = (self.table.y - mean)[self.rows]
        return float(np.sqrt(np.average(error**2, weights=self.weight)))

    def mixture(
        self, groups: Sequence[_Group], entropy: Any
    ) -> tuple[list[Noise], tuple[Array, Array, Array]]:
        """Shape and weights of the noise; mean, std and log-density of all rows left out."""
        rows, y = self.rows, self.table.y[self.rows]
        few = np.arange(len(rows))
        if len(rows) > MOST_ROWS:
            rng = np.random.default_rng(fleet.derived_seed(entropy, 2, 0, 0))
            few = np.sort(rng.permutation(len(rows))[:MOST_ROWS])
        widest, largest = (np.inf, np.inf) if not self.log else (WIDEST_LOG, LARGEST_LOG_MULTIPLE)
        bounds = _stack.floor(y), widest
        means, log_stds, shapes = np.array([g.mean[rows] for g in groups]), [], []
        for group, mean in zip(groups, means, strict=True):
            log_std = group.log_std[rows]
            found = _stack.shape((y - mean)[few], log_std[few], self.weight[few], *bounds)
            log_stds.append(found.applied(log_std))
            shapes.append(found)
        widths = np.array(log_stds)
        weights = _stack.mix(y[few], means[:, few], widths[:, few], self.weight[few], largest)
        noises = [
            Noise(g.networks, g.family.encoded, g.family.joint, shape, w)
            for g, shape, w in zip(groups, shapes, weights, strict=True)
        ]
        log_density = _stack.log_density(y, means, widths, weights) - (y if self.log else 0.0)
        moments = _stack.moments(means, np.exp(widths), weights, self.log)
        mean, std, density = (self._everywhere(part) for part in (*moments, log_density))
        return noises, (mean, std, density)

    def _everywhere(self, values: Array) -> Array:
        whole = np.full(len(self.count), np.nan)
        whole[self.rows] = values
        return whole
