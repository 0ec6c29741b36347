"""Free shapes: how much of the mixture goes to values that rows alike had, by rows left out.

1. Atoms. If nearly all rows share their values with others, y lies on a grid, and every value is an
   atom; otherwise those that many rows share are. What the mixture expects around them is collected
   there if that lowers the CRPS of the rows left out.
2. Weights. The components of the noises, normals of several widths around what trees say, and the
   distribution of all rows are mixed by expectation-maximisation, as in
   :mod:`mvenet._automatic.stacking`: first for all rows, then for rows whose trees agree or
   disagree about as much, drawn towards the weights of all.
3. A share is earned. Without a gain in log-likelihood of two standard errors the mixture stays as it
   was; and a likelihood that rises at the cost of the CRPS, as spikes at single values do, takes as
   large a step towards the new weights as the CRPS allows, or none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
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
    MOST_ROWS_MIXED,
    PRIOR_ROWS,
    ROWS_OF_A_BIN,
    ROWS_SCORED,
    SMALLEST_WEIGHT,
    STEPS_ALLOWED,
    WIDTHS,
)
from mvenet._automatic.out_of_fold import Candidate, OutOfFold, Prediction, typical_std
from mvenet._models.forest import Forest
from mvenet._models.free_shape import Atoms, FreeShape, Marginal, TreeValues, spread
from mvenet._models.mixture import MULTIPLES
from mvenet._training import fleet
from mvenet.distributions import LogNormalMixture, NormalMixture, WithAtoms

Array = NDArray[np.float64]
_FINEST = 1e-3  # standard deviations of y: cells of outcomes are at least so wide
_TAILS = 0.5  # standard deviations of y beyond its range in which a CRPS is counted, too


@dataclass(frozen=True)
class Found:
    """What was found: none of it, atoms, a free shape or both.

    Attributes
    ----------
    atoms : Atoms or None
    widths : tuple of ndarray, or None
        Of normals around the trees' values, and around the quantiles of y.
    ends, weights : ndarray, or None
        As of :class:`~mvenet._models.free_shape.FreeShape`.
    marginal : ndarray
        Quantiles of y.
    predicted : Prediction
        Out of fold.
    resolution : float
        The smallest step between values of y, zero if there is none.
    """

    atoms: Atoms | None
    widths: tuple[Array, Array] | None
    ends: Array | None
    weights: Array | None
    marginal: Array
    predicted: Prediction
    resolution: float

    @property
    def share(self) -> float:
        """Of the trees' values and of the distribution of all rows, on average over the bins."""
        if self.weights is None or self.widths is None:
            return 0.0
        count = sum(len(some) for some in self.widths)
        return float(self.weights[:, -count:].sum(axis=1).mean())

    def shape(self, forest: Forest, trees: int) -> FreeShape | None:
        """The free shape of a model whose trees are these."""
        if self.widths is None or self.ends is None or self.weights is None:
            return None
        around_trees, around_all = self.widths
        values = TreeValues(forest.thinned(trees))  # also if only bins are made by them
        if not len(around_all):
            return FreeShape((values,), (around_trees,), self.ends, self.weights)
        samplers = (values, Marginal(self.marginal))
        return FreeShape(samplers, self.widths, self.ends, self.weights)


@dataclass(frozen=True)
class _Components:
    """The components of some rows: those of the noises, and values with normals around them.

    ``group`` says which weight a component has, ``equal`` how many share it.
    """

    means: Array  # (c, n)
    stds: Array
    group: NDArray[np.int64]  # (c,)
    equal: Array

    def weights(self, shares: Array) -> Array:
        """Of the components, (c, n), from those of the groups, (groups, n)."""
        return shares[self.group] / self.equal[:, None]

    def rows(self, some: NDArray[np.int64]) -> _Components:
        return replace(self, means=self.means[:, some], stds=self.stds[:, some])


def fit(left: OutOfFold, noises: Sequence[Candidate], trees: Candidate, entropy: Any) -> Found:
    """Find atoms and free shapes; the weights of noises become those of the first bin's groups."""
    rows = left.rows
    y = left.table.y[rows]
    outcome = np.exp(y) if left.log else y
    assert trees.values is not None
    values = trees.values[:, rows]
    marginal = np.quantile(y, (np.arange(MARGINAL_VALUES) + 0.5) / MARGINAL_VALUES)
    step = resolution(outcome)
    cell = max(step, _FINEST * float(outcome.std()))
    parts, widths = _components(noises, rows, values, marginal, float(y.std()), 0.5 * cell)
    own = np.concatenate([c.weights[c.weights > 0] for c in noises if c.weights is not None])
    groups = len(own) + sum(len(some) for some in widths)
    start = np.zeros(groups)
    start[: len(own)] = own / own.sum()

    rng = np.random.default_rng(fleet.derived_seed(entropy, 3, 0, 0))
    few = np.sort(rng.permutation(len(rows))[:MOST_ROWS_MIXED])
    scored = _Scored(left, parts, outcome, np.sort(rng.permutation(len(rows))[:ROWS_SCORED]))
    atoms = atoms_of(outcome, cell)
    before = scored.crps(start[:, None], None)
    if atoms is not None:
        collected = scored.crps(start[:, None], atoms)
        atoms, before = (atoms, collected) if collected <= before else (None, before)
    densities = _densities(left, parts.rows(few), outcome[few], atoms, cell, groups)
    weight = left.weight[few]
    prior = np.where(np.arange(groups) < len(own), start, FREE_PRIOR)
    shares = _expectation_maximisation(densities, weight, prior, PRIOR_ROWS)
    ends, by_bin = _by_bins(densities, weight, shares, values[:, few])

    chosen: Array | None = None
    bins = np.searchsorted(ends, spread(values), side="right")
    gain = np.log((by_bin[bins[few]].T * densities).sum(axis=0)) - np.log(start @ densities)
    mean = float(np.average(gain, weights=weight))
    error = float(np.sqrt(np.average((gain - mean) ** 2, weights=weight) / len(gain)))
    if mean > BETTER_BY * error:
        for allowed in STEPS_ALLOWED:
            tried = (1.0 - allowed) * start + allowed * by_bin
            if scored.crps(tried[bins[scored.rows]].T, atoms) <= before:
                chosen = tried
                break
    if chosen is None:
        predicted = _predicted(left, parts, start[:, None], atoms)
        return Found(atoms, None, None, None, marginal, predicted, step)
    chosen, widths = _kept(chosen, widths, len(own))
    parts, _ = _components(noises, rows, values, marginal, float(y.std()), 0.5 * cell, widths)
    predicted = _predicted(left, parts, chosen[bins].T, atoms)
    return Found(atoms, widths, ends, chosen, marginal, predicted, step)


def resolution(y: Array) -> float:
    """The smallest step between values of y, but for rounding errors; zero if all are equal."""
    steps = np.diff(np.unique(y))
    steps = steps[steps > 1e-9 * float(np.abs(y).max())]
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


def _components(
    noises: Sequence[Candidate],
    rows: NDArray[np.int64],
    values: Array,
    marginal: Array,
    spread_of_y: float,
    least: float,
    widths: tuple[Array, Array] | None = None,
) -> tuple[_Components, tuple[Array, Array]]:
    """All that may be mixed, out of fold, and the widths of normals around values."""
    means, stds, counts = list[Array](), list[Array](), list[int]()
    for candidate in noises:
        assert candidate.shape is not None
        assert candidate.log_std is not None
        assert candidate.weights is not None
        std = np.exp(candidate.shape.applied(candidate.log_std[rows]))
        for multiple in MULTIPLES[candidate.weights > 0]:
            means.append(candidate.mean[rows][None])
            stds.append((multiple * std)[None])
            counts.append(1)
    if widths is None:
        some = np.unique(np.maximum(WIDTHS * spread_of_y, least))
        # As wide as quantiles are apart: where many rows share a value, there is no gap to fill.
        widths = some[:, None], np.maximum(np.gradient(marginal), least)[None]
    everywhere = np.repeat(marginal[:, None], len(rows), axis=1)
    for several, some in zip((values, everywhere), widths, strict=True):
        for width in some:
            means.append(several)
            stds.append(np.repeat(np.broadcast_to(width, len(several))[:, None], len(rows), axis=1))
            counts.append(len(several))
    group = np.repeat(np.arange(len(counts)), counts)
    equal = np.repeat(np.array(counts, dtype=np.float64), counts)
    return _Components(np.concatenate(means), np.concatenate(stds), group, equal), widths


def _densities(
    left: OutOfFold, parts: _Components, y: Array, atoms: Atoms | None, cell: float, groups: int
) -> Array:
    """Of each group at y, (groups, n): the probability of a cell around y, divided by its width.

    That of an atom is its own; others are as wide as the resolution.
    """
    low, high = y - 0.5 * cell, y + 0.5 * cell
    if atoms is not None:
        at = np.minimum(np.searchsorted(atoms.values, y), len(atoms.values) - 1)
        own = atoms.values[at] == y
        low = np.where(own, atoms.cells[at, 0], low)
        high = np.where(own, atoms.cells[at, 1], high)
    if left.log:
        with np.errstate(divide="ignore"):
            low, high = (np.log(np.maximum(end, 0.0)) for end in (low, high))
    from scipy.special import ndtr

    found = np.zeros((groups, len(y)))
    for mean, std, group, equal in zip(
        parts.means, parts.stds, parts.group, parts.equal, strict=True
    ):
        # From the side on which both are small: a difference of ones has no digits.
        side = np.where(mean < y if not left.log else mean < np.log(y), -1.0, 1.0)
        mass = ndtr(side * (high - mean) / std) - ndtr(side * (low - mean) / std)
        found[group] += side * mass / equal
    return np.maximum(found / cell, 1e-300)


def _expectation_maximisation(
    densities: Array, weight: Array, prior: Array, prior_rows: float
) -> Array:
    scaled = densities / densities.max(axis=0)
    rows = len(weight) * weight / weight.sum()
    prior = prior / prior.sum()
    shares = prior
    for _ in range(ITERATIONS):
        shares = shares * (scaled @ (rows / (shares @ scaled))) + prior_rows * prior
        shares = shares / shares.sum()
    return shares


def _by_bins(densities: Array, weight: Array, shares: Array, values: Array) -> tuple[Array, Array]:
    """Weights for rows whose trees disagree about as much, (bins, groups), and the bins' ends."""
    signal = spread(values)
    bins = int(np.clip(len(signal) // ROWS_OF_A_BIN, 1, MOST_BINS))
    ends = np.unique(np.quantile(signal, np.arange(1, bins) / bins))
    member = np.searchsorted(ends, signal, side="right")
    found = []
    for number in range(len(ends) + 1):
        rows = np.flatnonzero(member == number)
        some = shares
        if len(rows):
            some = _expectation_maximisation(
                densities[:, rows], weight[rows], shares, BIN_PRIOR_ROWS
            )
        found.append(some)
    return ends, np.array(found)


def _kept(
    weights: Array, widths: tuple[Array, Array], noises: int
) -> tuple[Array, tuple[Array, Array]]:
    """Without widths that weigh next to nothing: each costs as much as any other."""
    whole = np.arange(weights.shape[1]) < noises
    keep = whole | (weights.max(axis=0) >= 5.0 * SMALLEST_WEIGHT)
    at, kept = noises, list[Array]()
    for some in widths:
        kept.append(some[keep[at : at + len(some)]])
        at += len(some)
    weights = np.ascontiguousarray(weights[:, keep])
    return weights / weights.sum(axis=1, keepdims=True), (kept[0], kept[1])


class _Scored:
    """Rows whose CRPS is compared, at thresholds that are close where y is dense."""

    def __init__(
        self, left: OutOfFold, parts: _Components, y: Array, rows: NDArray[np.int64]
    ) -> None:
        self.rows, self.parts, self.log = rows, parts.rows(rows), left.log
        self.y, self.weight = y[rows], left.weight[rows]
        beyond = _TAILS * float(y.std())
        low = max(float(y.min()) - beyond, 0.0) if left.log else float(y.min()) - beyond
        even = np.linspace(low, float(y.max()) + beyond, 100)
        self.ends = np.unique(np.concatenate([np.quantile(y, np.linspace(0, 1, 150)), even]))

    def crps(self, shares: Array, atoms: Atoms | None) -> float:
        """Mean over the rows, by weights of the groups, (groups, n) or (groups, 1)."""
        middle = 0.5 * (self.ends[1:] + self.ends[:-1])
        places = middle
        if atoms is not None:
            cell = np.searchsorted(atoms.cells[:, 0], middle, side="right") - 1
            inside = (cell >= 0) & (middle < atoms.cells[cell, 1])
            end = np.where(middle >= atoms.values[cell], atoms.cells[cell, 1], atoms.cells[cell, 0])
            places = np.where(inside, end, middle)
        if self.log:
            with np.errstate(divide="ignore"):
                places = np.log(np.maximum(places, 0.0))
        weights = self.parts.weights(np.broadcast_to(shares, (len(shares), len(self.y))))
        used = weights.any(axis=1)
        below = _engine.probabilities(
            means=self.parts.means[used],
            stds=self.parts.stds[used],
            weights=np.ascontiguousarray(weights[used]),
            places=places,
        )
        off = np.square(below - (self.y <= middle[:, None]))
        return float(np.average(np.diff(self.ends) @ off, weights=self.weight))


def _predicted(
    left: OutOfFold, parts: _Components, shares: Array, atoms: Atoms | None
) -> Prediction:
    """What the mixture predicts out of fold."""
    y = left.table.y[left.rows]
    weights = parts.weights(np.broadcast_to(shares, (len(shares), len(y))))
    used = weights.any(axis=1)
    kind = LogNormalMixture if left.log else NormalMixture
    smooth = kind(parts.means[used], parts.stds[used], weights[used])
    dist: NormalMixture | LogNormalMixture | WithAtoms = smooth
    if atoms is not None:
        dist = WithAtoms(smooth, atoms.values, atoms.cells, atoms.resolution)
    typical = typical_std(smooth.logs if isinstance(smooth, LogNormalMixture) else smooth)
    everywhere = (
        left.everywhere(part)
        for part in (dist.mean, dist.std, dist.logpdf(np.exp(y) if left.log else y))
    )
    return Prediction(*everywhere, typical)
