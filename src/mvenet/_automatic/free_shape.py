"""Free shapes: how much of the mixture goes to values that rows alike had, by rows left out.

1. Atoms. If nearly all rows share their values with others, y lies on a grid, and every value is an
   atom; otherwise those that many rows share are. What the mixture expects around them is collected
   there if that lowers the CRPS of the rows left out.
2. Weights. The components of the noises, normals of several widths around what trees say, and the
   distribution of all rows are mixed by expectation-maximisation, as in
   :mod:`mvenet._automatic.stacking`: first for all rows, then for rows whose trees agree or
   disagree about as much, drawn towards the weights of all.
3. A share is earned. Without a gain in log-likelihood of two standard errors the mixture stays as
   it was. A likelihood may rise at the cost of the CRPS, as by spikes at single values: the step
   towards the new weights is the one that lowers the CRPS most, or none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvenet import _engine
from mvenet._automatic.constants import (
    ATOM_ROWS,
    ATOM_SHARE,
    BETTER_BY,
    BIN_PRIOR_ROWS,
    FREE_PRIOR,
    GRID_SHARE,
    ITERATIONS,
    MARGINAL_VALUES,
    MOST_ATOMS,
    MOST_BINS,
    MOST_LONE_ATOMS,
    MOST_ROWS_SHAPED,
    PARTS,
    PRIOR_ROWS,
    ROWS_OF_A_BIN,
    ROWS_SCORED,
    SMALLEST_WEIGHT,
    STEPS,
    TREE_VALUES,
    WIDTHS,
)
from mvenet._automatic.out_of_fold import Candidate, OutOfFold, Prediction, typical_std
from mvenet._models.forest import Forest
from mvenet._models.free_shape import (
    Atoms,
    Constant,
    FreeShape,
    GivenQuantiles,
    TreeValues,
    spread,
)
from mvenet._models.interface import Sampler
from mvenet._models.mixture import MULTIPLES
from mvenet._training import fleet
from mvenet.distributions import LogNormalMixture, NormalMixture, WithAtoms

Array = NDArray[np.float64]
Bounds = tuple[float | None, float | None]
_FINEST = 1e-3  # standard deviations of y: cells of outcomes are at least so wide
_TINY = float(np.finfo(np.float64).tiny)
ROWS_AT_ONCE = 20_000  # whose components are held at once
_TAILS = 0.5  # standard deviations of y beyond its range in which a CRPS is counted, too


@dataclass(frozen=True)
class Found:
    """What was found: none of it, atoms, a free shape or both.

    Attributes
    ----------
    atoms : Atoms or None
    widths : tuple of ndarray, or None
        Of normals around the values of each candidate that names some, then around each of the
        constants; None if the shape is not free.
    ends, weights : ndarray, or None
        As of :class:`~mvenet._models.free_shape.FreeShape`.
    constants : tuple of ndarray
        Values that are the same for every row: quantiles of y, and atoms.
    predicted : Prediction
        Out of fold.
    resolution : float
        The smallest step between values of y, zero if there is none.
    """

    atoms: Atoms | None
    widths: tuple[Array, ...] | None
    ends: Array | None
    weights: Array | None
    constants: tuple[Array, ...]
    predicted: Prediction
    resolution: float

    @property
    def share(self) -> float:
        """Of the trees' values and of the distribution of all rows, on average over the bins."""
        if self.weights is None or self.widths is None:
            return 0.0
        count = sum(len(some) for some in self.widths)
        return float(self.weights[:, -count:].sum(axis=1).mean())

    def shape(self, fitted: Sequence[Callable[[], Any]]) -> FreeShape | None:
        """The free shape of a model, from the candidates that name values, fitted to all rows."""
        if self.widths is None or self.ends is None or self.weights is None:
            return None
        named: list[Callable[[], Sampler]] = [partial(_named, model) for model in fitted]
        named += [partial(Constant, values) for values in self.constants]
        kept = [
            (make(), some)
            for number, (make, some) in enumerate(zip(named, self.widths, strict=True))
            if number == 0 or len(some)  # bins are made by the first, whatever it weighs
        ]
        samplers, widths = zip(*kept, strict=True)
        return FreeShape(samplers, widths, self.ends, self.weights)


def _named(fitted: Callable[[], Any]) -> Sampler:
    """What names values, of a model that is fitted to all rows."""
    model = fitted()
    if isinstance(model, Forest):
        return TreeValues(model.thinned(TREE_VALUES))
    return GivenQuantiles(model)


@dataclass(frozen=True)
class _Constants:
    """Values that are the same for every row, on the model's scale, and widths around them.

    The quantiles of y; and each atom that stands alone, so that its probability is not bound to
    what normals happen to have there. ``least`` is the smallest width.
    """

    values: tuple[Array, ...]
    widths: tuple[Array, ...]
    least: float

    @staticmethod
    def of(entries: Array, atoms: Atoms | None, least: float, log: bool) -> _Constants:
        """From the outcomes on the model's scale, and the atoms in units of y."""
        rounding = 1e-9 * float(np.abs(entries).max())
        least = max(least, rounding, 0.5 * _FINEST * float(entries.std()), _TINY)
        marginal = np.quantile(entries, (np.arange(MARGINAL_VALUES) + 0.5) / MARGINAL_VALUES)
        # As wide as quantiles are apart: where many rows share a value, there is no gap to fill.
        values, widths = [marginal], [np.maximum(np.gradient(marginal), least)[None]]
        alone = atoms is not None and len(atoms.values) <= MOST_LONE_ATOMS and not atoms.everywhere
        if atoms is not None and alone:
            for value, ends in zip(atoms.values, atoms.cells, strict=True):
                place, around = (_log(np.array(x)) if log else np.array(x) for x in (value, ends))
                reach = np.abs(around - place)
                values.append(place.reshape(1))
                widths.append(0.1 * reach[np.isfinite(reach)].min(keepdims=True)[None])
        return _Constants(tuple(values), tuple(widths), least)


@dataclass(frozen=True)
class _Components:
    """The components of some rows: those of the noises, and normals around values.

    Those around the values of one candidate, with one width, are a group: they share a weight.
    ``equal`` says how many components are in the group of each.
    """

    means: Array  # (c, n)
    stds: Array
    group: NDArray[np.int64]  # (c,)
    equal: Array

    @staticmethod
    def of(
        noises: Sequence[Candidate],
        rows: NDArray[np.int64],
        named: Sequence[Array],
        widths: Sequence[Array],
    ) -> _Components:
        """All that may be mixed, out of fold; ``named`` are values, each of shape (k, n)."""
        means, stds = list[Array](), list[Array]()
        for candidate in noises:
            assert candidate.shape is not None
            assert candidate.log_std is not None
            assert candidate.weights is not None
            std = np.exp(candidate.shape.applied(candidate.log_std[rows]))
            for multiple in MULTIPLES[candidate.weights > 0]:
                means.append(candidate.mean[rows][None])
                stds.append((multiple * std)[None])
        for values, some in zip(named, widths, strict=True):
            for width in some:
                means.append(values)
                wide = np.broadcast_to(width, len(values))[:, None]
                stds.append(np.repeat(wide, len(rows), axis=1))
        counts = [len(several) for several in means]
        group = np.repeat(np.arange(len(counts)), counts)
        equal = np.repeat(np.array(counts, dtype=np.float64), counts)
        return _Components(np.concatenate(means), np.concatenate(stds), group, equal)

    @property
    def groups(self) -> int:
        """How many there are."""
        return int(self.group[-1]) + 1

    def weights(self, shares: Array) -> Array:
        """Of the components, (c, n), from those of the groups, (groups, n) or (groups, 1)."""
        wide = np.broadcast_to(shares, (len(shares), self.means.shape[1]))
        return wide[self.group] / self.equal[:, None]

    def rows(self, some: NDArray[np.int64]) -> _Components:
        """The same of some rows."""
        return replace(self, means=self.means[:, some], stds=self.stds[:, some])


def fit(
    held_out: OutOfFold,
    noises: Sequence[Candidate],
    naming: Sequence[Candidate],
    entropy: Any,
    factor: float = 1.0,
    scoring: str = "log",
    bounds: Bounds = (None, None),
) -> Found:
    """Find atoms and free shapes, from the noises of a mixture and candidates that name values.

    ``factor`` is the typical error that is expected of the noises' means once they are trained on
    all rows, as a share of that out of fold.
    """
    rng = np.random.default_rng(fleet.derived_seed(entropy, 3, 0, 0))
    few = np.sort(rng.permutation(len(held_out.rows))[:MOST_ROWS_SHAPED])
    rows = held_out.rows[few]
    entries = held_out.table.y[rows]
    y = np.exp(entries) if held_out.log else entries
    step = resolution(y)
    cell = max(step, _FINEST * float(y.std())) or 1.0
    some = np.sort(rng.permutation(len(rows))[:ROWS_SCORED])
    alone = _Components.of(noises, rows, [], [])
    atoms = atoms_of(y, cell)
    atoms = _worth(atoms, _Scored(held_out, alone, y, few, some), _start(noises, alone.groups))
    constants = _Constants.of(entries, atoms, 0.0 if held_out.log else 0.5 * cell, held_out.log)
    atoms = _bounded(atoms, bounds, cell)
    widths = (*(_widths(entries, constants.least) for _ in naming), *constants.widths)

    def parts_of(rows: NDArray[np.int64], widths: Sequence[Array]) -> _Components:
        values = [c.values[:, rows] for c in naming if c.values is not None]
        values += [np.repeat(v[:, None], len(rows), axis=1) for v in constants.values]
        return _Components.of(noises, rows, values, widths)

    parts = parts_of(rows, widths)
    start = _start(noises, parts.groups)
    scored = _Scored(held_out, parts, y, few, some)
    signal = _signal(naming, rows)
    densities = _densities(parts, y, atoms, cell, held_out.log)
    mixed = _Mixed(densities, held_out.weight[few], signal)
    ends = mixed.ends if scoring == "log" else np.empty(0)
    bins = np.searchsorted(ends, signal, side="right")
    part = _parts(held_out, rng)[few]

    def weights_of(used: NDArray[np.bool_]) -> Array:
        if scoring == "log":
            return mixed.shares(start, used)
        return scored.shares(start, atoms, used[scored.rows])

    # Each part of the rows judges weights that the others have made.
    other = np.stack([weights_of(part != number) for number in range(PARTS)])[part, bins]
    allowed = 0.0
    if naming and (scoring == "crps" or _earned(mixed, other.T, start, held_out, few)):
        allowed = _allowed(other[scored.rows].T, start, scored, atoms, factor)
    chosen = (1.0 - allowed) * start + allowed * weights_of(part >= 0)
    chosen, widths = _kept(chosen, widths, int((start > 0).sum()))
    if not allowed or not any(len(some) for some in widths):
        none = tuple(some[:0] for some in widths)
        predicted = _predicted(
            held_out, partial(parts_of, widths=none), start[None], None, naming, atoms
        )
        return Found(atoms, None, None, None, (), predicted, step)
    predicted = _predicted(held_out, partial(parts_of, widths=widths), chosen, ends, naming, atoms)
    return Found(atoms, widths, ends, chosen, constants.values, predicted, step)


def _signal(naming: Sequence[Candidate], rows: NDArray[np.int64]) -> Array:
    """How far the values of the first candidate that names some disagree, row by row."""
    if not naming or naming[0].values is None:
        return np.zeros(len(rows))
    return spread(naming[0].values[:, rows])


def _parts(held_out: OutOfFold, rng: np.random.Generator) -> NDArray[np.int64]:
    """Number of the part of each row left out; rows of one group are in one part."""
    tied = held_out.table.dependence
    if tied is None or tied.groups is None:
        return rng.permutation(len(held_out.rows)) % PARTS
    names, numbers = np.unique(tied.groups[held_out.rows], return_inverse=True)
    return (rng.permutation(len(names)) % PARTS)[numbers]


def _earned(
    mixed: _Mixed, shares: Array, start: Array, held_out: OutOfFold, few: NDArray[np.int64]
) -> bool:
    """Whether the rows are likelier by two standard errors; those of a group count as one."""
    gains = mixed.gains(shares, start)
    mean = float(np.average(gains, weights=mixed.weight))
    everywhere = np.full(len(held_out.rows), mean)
    everywhere[few] = gains
    error = held_out.standard_error(everywhere) * len(held_out.rows) / len(few)
    return mean > BETTER_BY * error


def _start(noises: Sequence[Candidate], groups: int) -> Array:
    """Weights of the mixture as it was: those of the noises' components, none of the rest."""
    own = np.concatenate([c.weights[c.weights > 0] for c in noises if c.weights is not None])
    start = np.zeros(groups)
    start[: len(own)] = own / own.sum()
    return start


def _widths(entries: Array, least: float) -> Array:
    """Of normals around the values of a candidate, (w, 1)."""
    return np.unique(np.maximum(WIDTHS * float(entries.std()), least))[:, None]


def _worth(atoms: Atoms | None, scored: _Scored, start: Array) -> Atoms | None:
    """The atoms, if the CRPS is no worse with them."""
    if atoms is None:
        return None
    with_them, without = (scored.crps(start[:, None], some) for some in (atoms, None))
    return atoms if with_them <= without else None


def _allowed(
    shares: Array, start: Array, scored: _Scored, atoms: Atoms | None, factor: float
) -> float:
    """The step towards new weights, (groups, n), that lowers the CRPS most; zero is none.

    Noises gain by the last training, on all rows, and values about half as much: with a share s of
    values, the CRPS then is expected to be ``1 - (1 - s / 2) (1 - factor)`` of that out of fold.
    """
    best, least = 0.0, factor * scored.crps(start[:, None], atoms)
    for step in STEPS:
        tried = (1.0 - step) * start[:, None] + step * shares
        free = float(tried[start == 0].sum(axis=0).mean())
        after = (1.0 - (1.0 - 0.5 * free) * (1.0 - factor)) * scored.crps(tried, atoms)
        if after < least:
            best, least = step, after
    return best


def resolution(y: Array) -> float:
    """The smallest step between values of y, but for rounding errors; zero if all are equal."""
    steps = np.diff(np.unique(y))
    rounding = 4.0 * np.finfo(np.float64).eps * float(np.abs(y).max())
    steps = steps[steps > max(rounding, 1e-9 * float(np.ptp(y)))]
    return float(steps.min()) if len(steps) else 0.0


def atoms_of(y: Array, cell: float) -> Atoms | None:
    """Values that may have a probability of their own, each with its cell."""
    values, counts = np.unique(y, return_counts=True)
    grid = counts[counts > 1].sum() >= GRID_SHARE * len(y)
    many = counts >= max(ATOM_ROWS, ATOM_SHARE * len(y))
    if grid and len(values) <= MOST_ATOMS:
        many = np.ones(len(values), dtype=bool)
    if not many.any() or len(values) < 2:
        return None
    between = 0.5 * (values[1:] + values[:-1])
    cells = np.column_stack([[-np.inf, *between], [*between, np.inf]])
    return Atoms(values[many], cells[many], cell)


def _bounded(atoms: Atoms | None, bounds: Bounds, cell: float) -> Atoms | None:
    """Atoms, with those at the ends that the user knows: all beyond is collected there."""
    for end, value in enumerate(bounds):
        if value is None or (atoms is not None and value in atoms.values):
            continue
        values = np.empty(0) if atoms is None else atoms.values
        cells = np.empty((0, 2)) if atoms is None else atoms.cells.copy()
        beyond = [-np.inf, value] if end == 0 else [value, np.inf]
        if len(cells):  # the outermost atom's cell ends at the bound
            cells[-end, end] = value if np.isinf(cells[-end, end]) else cells[-end, end]
        at = 0 if end == 0 else len(values)
        atoms = Atoms(np.insert(values, at, value), np.insert(cells, at, beyond, axis=0), cell)
    return atoms


def _densities(parts: _Components, y: Array, atoms: Atoms | None, cell: float, log: bool) -> Array:
    """Of each group at y, (groups, n): the probability of a cell around y, divided by its width.

    That of an atom is its own; others are as wide as the resolution.
    """
    low, high, middle = y - 0.5 * cell, y + 0.5 * cell, y
    if atoms is not None:
        at = np.minimum(np.searchsorted(atoms.values, y), len(atoms.values) - 1)
        own = atoms.values[at] == y
        low = np.where(own, atoms.cells[at, 0], low)
        high = np.where(own, atoms.cells[at, 1], high)
    if log:
        low, high, middle = (_log(part) for part in (low, high, middle))
    from scipy.special import ndtr

    found = np.zeros((parts.groups, len(y)))
    for mean, std, group, equal in zip(
        parts.means, parts.stds, parts.group, parts.equal, strict=True
    ):
        # From the side on which both are small: a difference of ones has no digits.
        side = np.where(mean < middle, -1.0, 1.0)
        mass = ndtr(side * (high - mean) / std) - ndtr(side * (low - mean) / std)
        found[group] += side * mass / equal
    return np.maximum(found / cell, 1e-300)


def _log(y: Array) -> Array:
    with np.errstate(divide="ignore"):
        found: Array = np.log(np.maximum(y, 0.0))
    return found


@dataclass(frozen=True)
class _Mixed:
    """Densities of groups at rows left out, (groups, n), and how far the rows' trees disagree."""

    densities: Array
    weight: Array
    signal: Array

    @cached_property
    def ends(self) -> Array:
        """Where bins of about as many rows end."""
        bins = int(np.clip(len(self.signal) // ROWS_OF_A_BIN, 1, MOST_BINS))
        return np.unique(np.quantile(self.signal, np.arange(1, bins) / bins))

    def shares(self, start: Array, used: NDArray[np.bool_]) -> Array:
        """Weights that make some of the rows likely, (bins, groups)."""
        prior = np.where(start > 0, start, FREE_PRIOR)
        every = self._maximised(np.flatnonzero(used), prior, PRIOR_ROWS)
        member = np.searchsorted(self.ends, self.signal, side="right")
        found = [
            self._maximised(np.flatnonzero(used & (member == number)), every, BIN_PRIOR_ROWS)
            for number in range(len(self.ends) + 1)
        ]
        return np.array(found)

    def _maximised(self, rows: Any, prior: Array, prior_rows: float) -> Array:
        """Weights by expectation-maximisation on some rows, drawn towards a prior."""
        densities, weight = self.densities[:, rows], self.weight[rows]
        shares: Array = prior / prior.sum()
        prior = shares
        if not len(weight):
            return shares
        scaled, counts = densities / densities.max(axis=0), len(weight) * weight / weight.sum()
        for _ in range(ITERATIONS):
            shares = shares * (scaled @ (counts / (shares @ scaled))) + prior_rows * prior
            shares = shares / shares.sum()
        return shares

    def gains(self, shares: Array, start: Array) -> Array:
        """By how much weights of each row, (groups, n), make it likelier."""
        after: Array = np.log((shares * self.densities).sum(axis=0))
        return after - np.log(start @ self.densities)


def _kept(
    weights: Array, widths: tuple[Array, ...], noises: int
) -> tuple[Array, tuple[Array, ...]]:
    """Without widths that weigh next to nothing: each costs as much as any other."""
    keep = weights.max(axis=0) >= 5.0 * SMALLEST_WEIGHT
    keep[:noises] = True
    parts = np.split(keep[noises:], np.cumsum([len(some) for some in widths])[:-1])
    weights = np.ascontiguousarray(weights[:, keep])
    kept = tuple(some[part] for some, part in zip(widths, parts, strict=True))
    return weights / weights.sum(axis=1, keepdims=True), kept


class _Scored:
    """Rows whose CRPS is compared, at thresholds that are close where y is dense."""

    def __init__(
        self,
        held_out: OutOfFold,
        parts: _Components,
        y: Array,
        few: NDArray[np.int64],
        rows: NDArray[np.int64],
    ) -> None:
        self.rows, self.parts, self.log = rows, parts.rows(rows), held_out.log
        self.y, self.weight = y[rows], held_out.weight[few[rows]]
        beyond = _TAILS * float(y.std())
        low = max(float(y.min()) - beyond, 0.0) if held_out.log else float(y.min()) - beyond
        even = np.linspace(low, float(y.max()) + beyond, 100)
        self.ends = np.unique(np.concatenate([np.quantile(y, np.linspace(0, 1, 150)), even]))
        self._middle = 0.5 * (self.ends[1:] + self.ends[:-1])

    def crps(self, shares: Array, atoms: Atoms | None) -> float:
        """Mean over the rows, by weights of the groups, (groups, n) or (groups, 1)."""
        off = np.square(self._below(self.parts.weights(shares), atoms) - self._outcomes())
        return float(np.average(np.diff(self.ends) @ off, weights=self.weight))

    def shares(self, start: Array, atoms: Atoms | None, used: NDArray[np.bool_]) -> Array:
        """Weights of the groups, (1, groups), of least CRPS on some rows, drawn to the start.

        The CRPS is a square in the weights: least squares with weights that are not negative.
        """
        from scipy.optimize import nnls

        outcomes, root = self._outcomes(), np.sqrt(np.diff(self.ends))[:, None]
        each = np.sqrt(used * self.weight / (used @ self.weight))
        design = []
        for number in range(len(start)):
            only = (np.arange(len(start)) == number)[:, None].astype(np.float64)
            below = self._below(self.parts.weights(only), atoms)
            design.append(((below - outcomes) * root * each).ravel())
        # Normal equations: a hundred weights at most, and a quarter of a million squares.
        table = np.array(design)
        gram = table @ table.T
        scale = float(np.trace(gram)) / len(gram) or 1.0
        pull = PRIOR_ROWS / len(self.y)
        certain = 100.0 * np.ones((1, len(start)))  # the weights sum to one
        factor = np.linalg.cholesky(gram / scale + 1e-9 * np.eye(len(gram))).T
        stacked = np.vstack([factor, np.sqrt(pull) * np.eye(len(gram)), certain])
        wanted = np.concatenate([np.zeros(len(gram)), np.sqrt(pull) * start, [100.0]])
        found = nnls(stacked, wanted)[0]
        shares: Array = (found / found.sum()).reshape(1, -1)
        return shares

    def _outcomes(self) -> Array:
        """Whether the outcome of each row is at most each threshold, (thresholds, n)."""
        reached: Array = (self.y <= self._middle[:, None]).astype(np.float64)
        return reached

    def _below(self, weights: Array, atoms: Atoms | None) -> Array:
        """Probability up to each threshold, (thresholds, n), by weights of the components."""
        places = self._middle
        if atoms is not None:
            cell = np.searchsorted(atoms.cells[:, 0], places, side="right") - 1
            inside = (cell >= 0) & (places < atoms.cells[cell, 1])
            end = (places >= atoms.values[cell]).astype(np.int64)
            places = np.where(inside, atoms.cells[cell, end], places)
        used = weights.any(axis=1)
        found: Array = _engine.probabilities(
            means=self.parts.means[used],
            stds=self.parts.stds[used],
            weights=np.ascontiguousarray(weights[used]),
            places=_log(places) if self.log else places,
        )
        return found


def _predicted(
    held_out: OutOfFold,
    parts_of: Callable[[NDArray[np.int64]], _Components],
    weights: Array,
    ends: Array | None,
    naming: Sequence[Candidate],
    atoms: Atoms | None,
) -> Prediction:
    """What the mixture predicts out of fold, some rows at a time; weights are (bins, groups)."""
    found, typical = list[Array](), list[float]()
    for at in range(0, len(held_out.rows), ROWS_AT_ONCE):
        rows = held_out.rows[at : at + ROWS_AT_ONCE]
        bins = np.zeros(len(rows), dtype=np.int64)
        if ends is not None:
            bins = np.searchsorted(ends, _signal(naming, rows), side="right")
        parts = parts_of(rows)
        own = parts.weights(weights[bins, : parts.groups].T)
        smooth: NormalMixture | LogNormalMixture
        smooth = (LogNormalMixture if held_out.log else NormalMixture)(parts.means, parts.stds, own)
        dist: NormalMixture | LogNormalMixture | WithAtoms = smooth
        if atoms is not None:
            dist = WithAtoms(smooth, atoms.values, atoms.cells, atoms.resolution)
        entries = held_out.table.y[rows]
        density = dist.logpdf(np.exp(entries) if held_out.log else entries)
        found.append(np.array([dist.mean, dist.std, density]))
        typical.append(typical_std(smooth.logs if isinstance(smooth, LogNormalMixture) else smooth))
    mean, std, density = (held_out.everywhere(part) for part in np.concatenate(found, axis=1))
    return Prediction(mean, std, density, float(np.median(typical)))
