"""The automatic search: which means, which noise, in which mixture, all decided by rows left out.

1. Means: networks on plain and on encoded columns with several penalties, a linear model, trees and
   any regressor of the user's, each predicting the rows that its folds left out; blended by least
   squares on those rows.
2. Noise: networks trained on the blend's residuals *of rows left out*, which are as large as on new
   rows, with the blended mean as a further column; and networks that learn mean and variance
   together after a warm-up, the paper's way.
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

from mvenet import _means, _stack, fleet
from mvenet._composite import Composite, MeanOfNoise, NetworkMean, Noise, Range
from mvenet._plan import Fitting, Plan, Request, Round, Table
from mvenet._stack import MULTIPLES
from mvenet._steps import BOUND, Steps
from mvenet.recipes import Architecture, Mode, Stage, Training, epochs_within

Array = NDArray[np.float64]
Folds = list[tuple[fleet.Rows, fleet.Rows]]
Length = tuple[int, int, int]  # epochs, least and most gradient steps: see recipes.epochs_within

LEARNING_RATE = 1e-2
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
            for seed in [fleet.derived_seed(entropy, fold, 0)]
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
MEANS = (  # where penalties are weak, the error goes on falling for long
    Family("network", False, _DEEP, None, (("warmup", (150, 9_000, 40_000)),),
           _only_mean(1e-5, 1e-4)),
    Family("network", False, _DEEP, None, (("warmup", (60, 4_000, 20_000)),),
           _only_mean(1e-3, 1e-2)),
    Family("network on steps", True, _DEEP, None, (("warmup", (40, 3_500, 40_000)),),
           _only_mean(1e-5, 1e-4, 1e-3, 1e-2)),
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


@dataclass(frozen=True)
class AutomaticPlan(Plan):
    """A search: its first round is known, the second depends on the blend of the first."""

    families: tuple[Family, ...]
    noise: tuple[Family, ...]
    folds: Folds
    steps: Steps
    tables: dict[bool, Table]
    entropy: Any


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
    """

    composite: Composite
    mean: Array
    std: Array
    log_density: Array
    candidates: dict[str, NDArray[Any]]
    steps: int


def usual_folds(n: int) -> int:
    """Folds of a table of n rows."""
    return max(2, min(8, n // 2)) if n < 2_000 else 5 if n < 100_000 else 3


def usual_batch(n: int) -> int:
    """Rows in a gradient step for a table of n rows."""
    limits = ((32, 4_000), (64, 12_000), (128, 40_000))
    return next((size for size, most in limits if n < most), 256)


def plan(
    table: Table, folds: Folds, means: Sequence[Any], entropy: Any, *, quick: bool = False
) -> AutomaticPlan:
    """Describe the search; a quick one only trains the two networks that serve best alone."""
    steps = Steps.of(table.X[table.rows])
    tables = {False: table, True: replace(table, X=steps.encode(table.X))}
    families: tuple[Family, ...] = (*MEANS, *JOINT) if "networks" in means else JOINT
    noise: tuple[Family, ...] = NOISE
    if quick:
        families, noise = QUICK, ()
    first = [f.request(tables[f.encoded], folds, entropy) for f in families]
    second = [f.request(tables[f.encoded], folds, entropy) for f in noise]
    rounds = Round(tuple(first)), Round(tuple(second), settled=False)
    return AutomaticPlan(rounds, families, noise, folds, steps, tables, entropy)


def search(
    table: Table, plan: AutomaticPlan, means: Sequence[Any], threads: int
) -> Fitting[Result]:
    """Train, blend and mix; ``means`` as in :mod:`mvenet._means`."""
    left = _LeftOut(table, plan.folds)
    trained = yield plan.rounds[0].requests
    networks = left.groups(plan.families, trained, plan.rounds[0].requests)
    others = _means.candidates(means, table, plan.folds, plan.entropy, threads)
    predicted = [*(g.mean for g in networks), *(left.average(o.left_out) for o in others)]
    if not predicted:
        raise fleet.DivergedError("Every network of the search diverged: are there outliers in X?")
    shares = left.blend(np.array(predicted))
    blended = shares @ np.array(predicted)

    tables = {kind: left.residuals(known, blended) for kind, known in plan.tables.items()}
    requests = [f.request(tables[f.encoded], left.folds, plan.entropy) for f in plan.noise]
    noise = (yield requests) if requests else []
    on_blend = [replace(g, mean=blended) for g in left.groups(plan.noise, noise, requests)]
    mixed = [g for g in networks if g.family.joint] + on_blend
    if not mixed:
        raise fleet.DivergedError("Every network of the noise diverged: are there outliers in y?")
    noises, said = left.mixture(mixed, plan.entropy)

    weights = {id(g): float(noise.weights.sum()) for g, noise in zip(mixed, noises, strict=True)}
    rmse = [left.rmse(mean) for mean in [*predicted, *(g.mean for g in on_blend)]]
    return Result(
        _composed(table, plan, [*networks, *others], shares, mixed, noises),
        *said,
        _told([*networks, *others, *on_blend], rmse, shares, weights),
        sum(result.steps for result in (*trained, *noise)),
    )


def summary(found: Result, table: Table) -> str:
    """What was found, in words."""
    c, rows = found.candidates, np.flatnonzero(~np.isnan(found.mean))
    y, error = table.y[rows], (table.y - found.mean)[rows]
    rmse, spread = float(np.sqrt(np.mean(error**2))), float(y.std())
    lines = [
        f"{len(c['name'])} candidates, judged by {len(rows):,} rows left out.",
        f"Mean: {_listed(c['name'], c['share'])}.",
        f"Its typical error is {rmse:.4g} (root mean square; y itself spreads by {spread:.4g}).",
        f"Noise: {_listed(c['name'], c['weight'])}.",
    ]
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


def _listed(names: NDArray[Any], parts: Array) -> str:
    """Names with their parts in percent, the largest first, equal names added up."""
    total: dict[str, float] = {}
    for name, part in zip(names.tolist(), np.nan_to_num(parts).tolist(), strict=True):
        total[name] = total.get(name, 0.0) + part
    ordered = sorted(total.items(), key=lambda item: -item[1])
    return ", ".join(f"{part:.0%} {name}" for name, part in ordered if part >= 0.005)


def _composed(
    table: Table,
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
    seen = Range.of(table.X[table.rows], table.y[table.rows])
    noise = tuple(noise for _, noise in kept)
    return Composite(plan.steps, seen, tuple(means), shares[shares > 0], noise)


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

    @property
    def name(self) -> str:
        """In words."""
        return self.family.name


class _LeftOut:
    """The rows that folds leave out, and what is said of them by networks that left them out."""

    def __init__(self, table: Table, folds: Folds) -> None:
        self.table = table
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
        """Groups of networks, without those of which one diverged."""
        k, found = len(self.folds), []
        for family, result, request in zip(families, trained, asked, strict=True):
            inputs = [np.ascontiguousarray(request.table.X[test]) for _, test in self.folds]
            for number, pair in enumerate(family.penalties):
                part = slice(number * k, (number + 1) * k)
                if result.diverged[part].any():
                    continue
                networks = result.networks[part]
                said = [networks[[fold]].predict(x) for fold, x in enumerate(inputs)]
                mean = self.average([m[0] for m, _ in said])
                log_std = self.average([np.log(s[0]) for _, s in said])
                found.append(_Group(family, pair, networks, mean, log_std))
        return found

    def residuals(self, table: Table, blended: Array) -> Table:
        """The table of the noise: a further column, and residuals in place of y."""
        X = np.column_stack([table.X, blended])
        return replace(table, X=X, y=self.table.y - blended, rows=self.rows)

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
        means, log_stds, shapes = np.array([g.mean[rows] for g in groups]), [], []
        for group, mean in zip(groups, means, strict=True):
            log_std = group.log_std[rows]
            found = _stack.shape((y - mean)[few], log_std[few], self.weight[few], _stack.floor(y))
            log_stds.append(found.applied(log_std))
            shapes.append(found)
        widths = np.array(log_stds)
        weights = _stack.mix(y[few], means[:, few], widths[:, few], self.weight[few])
        noises = [
            Noise(g.networks, g.family.encoded, g.family.joint, shape, w)
            for g, shape, w in zip(groups, shapes, weights, strict=True)
        ]
        mean, std, log_density = (
            self._everywhere(part) for part in _stack.mixed(y, means, widths, weights)
        )
        return noises, (mean, std, log_density)

    def _everywhere(self, values: Array) -> Array:
        whole = np.full(len(self.count), np.nan)
        whole[self.rows] = values
        return whole
