"""Free shapes: how much of the mixture goes to values that rows alike had, by rows left out.

1. Atoms. If nearly all rows share their values with others, y lies on a grid, and every value is an
   atom; otherwise those that many rows share are. What the mixture expects around them is collected
   there if that lowers the CRPS of the rows left out.
2. Weights. The components of the noises, and normals of several widths around what trees say,
   around the mean plus residuals of other rows and around quantiles of all rows, are mixed twice:
   by expectation-maximisation, as in :mod:`mvenet._automatic.stacking`, and by least CRPS, a
   quadratic problem. Each time first for all rows, then for those whose trees disagree about as
   much, drawn to the weights of all.
3. A share is earned. Without a gain of a standard error, in log-likelihood or in CRPS, the mixture
   stays as it was. A likelihood may rise at the cost of the CRPS, as by spikes at single
   values: of some steps towards either weights, or between both, the one of lowest CRPS is taken,
   or none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvenet import _engine
from mvenet._automatic.atoms import atoms_of, resolution
from mvenet._automatic.constants import (
    AS_GOOD,
    BIN_PRIOR_ROWS,
    BY_CRPS,
    EARNED_BY,
    FREE_PRIOR,
    HURDLE_TREES,
    ITERATIONS,
    MARGINAL_VALUES,
    MEAN_WORSE,
    MOST_BINS,
    MOST_LONE_ATOMS,
    MOST_ROWS_SHAPED,
    PARTS,
    PRIOR_ROWS,
    RESIDUAL_VALUES,
    RESIDUAL_WIDTHS,
    ROWS_OF_A_BIN,
    ROWS_SCORED,
    SMALLEST_WEIGHT,
    STEPS,
    THRESHOLDS,
    WIDTHS,
)
from mvenet._automatic.ends import Bounds, Evidence, Known, bounded, known
from mvenet._automatic.out_of_fold import Candidate, OutOfFold, Prediction, typical_std
from mvenet._models import mixture
from mvenet._models.forest import Forest
from mvenet._models.free_shape import (
    MOST_DEVIATIONS,
    Atoms,
    Constant,
    FreeShape,
    GivenQuantiles,
    Hurdle,
    Residuals,
    TreeValues,
    spread,
)
from mvenet._models.interface import Sampler
from mvenet._models.mixture import MULTIPLES
from mvenet._training import fleet
from mvenet.distributions import LogNormalMixture, NormalMixture
from mvenet.distributions._atoms import place_among

Array = NDArray[np.float64]
_Fit = Callable[[NDArray[np.int64], Array, float], Array]  # of weights: rows, prior, its rows
_FINEST = 1e-3  # standard deviations of y: cells of outcomes are at least so wide
_TINY = float(np.finfo(np.float64).tiny)
ROWS_AT_ONCE = 20_000  # whose components are held at once
_TAILS = 0.5  # standard deviations of y beyond its range in which a CRPS is counted, too


@dataclass(frozen=True)
class Found:
    """What was found: none of it, atoms, a free shape or both.

    Attributes
    ----------
    known : Known
        Atoms and ends of y.
    widths : tuple of ndarray, or None
        Of normals around the values of each candidate that samples some, then around each of the
        constants, then around the residuals; None if the shape is not free.
    ends, weights : ndarray, or None
        As of :class:`~mvenet._models.free_shape.FreeShape`.
    constants : tuple of ndarray
        Values that are the same for every row: quantiles of y, and atoms.
    residuals : Residuals
    predicted : Prediction
        Out of fold.
    resolution : float
        The smallest step between values of y, zero if there is none.
    """

    known: Known
    widths: tuple[Array, ...] | None
    ends: Array | None
    weights: Array | None
    constants: tuple[Array, ...]
    residuals: Residuals
    predicted: Prediction
    resolution: float

    @property
    def atoms(self) -> Atoms | None:
        """Values with a probability of their own."""
        return self.known.atoms

    @property
    def share(self) -> float:
        """Of the trees' values and of the distribution of all rows, on average over the bins."""
        if self.weights is None or self.widths is None:
            return 0.0
        count = sum(len(some) for some in self.widths)
        return float(self.weights[:, -count:].sum(axis=1).mean())

    def shape(self, fitted: Sequence[tuple[Callable[[], Any], int]]) -> FreeShape | None:
        """The free shape of a model, from the candidates that sample values, fitted to all rows.

        With each comes how many values it samples.
        """
        if self.widths is None or self.ends is None or self.weights is None:
            return None
        named: list[Callable[[], Sampler]] = [partial(_sampler, *model) for model in fitted]
        named += [partial(Constant, values) for values in self.constants]
        *around_values, around_residuals = self.widths
        kept = [
            (make(), some)
            for number, (make, some) in enumerate(zip(named, around_values, strict=True))
            if number == 0 or len(some)  # bins are made by the first, whatever it weighs
        ]
        samplers, widths = zip(*kept, strict=True)
        shape = FreeShape(samplers, widths, self.ends, self.weights)
        if not len(around_residuals):
            return shape
        return replace(
            shape, residuals=replace(self.residuals, widths=around_residuals[:, 0].copy())
        )


def _sampler(fitted: Callable[[], Any], count: int) -> Sampler:
    """What samples so many values, of a model that is fitted to all rows."""
    model = fitted()
    if isinstance(model, Forest):
        return TreeValues(model.thinned(count))
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
        if atoms is not None and _stand_alone(atoms):
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
    ``within`` is the part of it that each has, (c, 1), or (c, n) where rows differ.
    """

    means: Array  # (c, n)
    stds: Array
    group: NDArray[np.int64]  # (c,)
    within: Array

    @staticmethod
    def of(noises: Sequence[Candidate], rows: NDArray[np.int64]) -> _Components:
        """Those of the noises, out of fold."""
        means, stds = list[Array](), list[Array]()
        for candidate in noises:
            assert candidate.shape is not None
            assert candidate.log_std is not None
            assert candidate.weights is not None
            std = np.exp(candidate.shape.applied(candidate.log_std[rows]))
            for multiple in MULTIPLES[candidate.weights > 0]:
                means.append(candidate.mean[rows])
                stds.append(multiple * std)
        count = len(means)
        return _Components(np.array(means), np.array(stds), np.arange(count), np.ones((count, 1)))

    def around(self, named: Sequence[Array], widths: Sequence[Array]) -> _Components:
        """With normals around lists of values, each (k, n), a group for each width of a list.

        The widths of a list are of shape (w, 1) or (w, k).
        """
        found = self
        for values, some in zip(named, widths, strict=True):
            for width in some:
                equal = np.full((len(values), 1), 1.0 / len(values))
                wide = np.broadcast_to(width[:, None], values.shape)
                found = found.with_group(values, wide, equal)
        return found

    def with_group(self, means: Array, stds: Array, within: Array) -> _Components:
        """With one more group."""
        columns = max(self.within.shape[1], within.shape[1])
        both = [np.broadcast_to(w, (len(w), columns)) for w in (self.within, within)]
        return _Components(
            np.concatenate([self.means, means]),
            np.concatenate([self.stds, stds]),
            np.append(self.group, np.full(len(means), self.groups)),
            np.concatenate(both),
        )

    def moments(self, shares: Array) -> tuple[Array, Array]:
        """Mean and standard deviation of the mixture by weights of the groups, (groups,)."""
        return mixture.moments(self.means, self.stds, self.weights(shares[:, None]), log=False)

    @property
    def groups(self) -> int:
        """How many there are."""
        return int(self.group[-1]) + 1

    def weights(self, shares: Array) -> Array:
        """Of the components, (c, n), from those of the groups, (groups, n) or (groups, 1)."""
        wide = np.broadcast_to(shares, (len(shares), self.means.shape[1]))
        return wide[self.group] * self.within

    def rows(self, some: NDArray[np.int64]) -> _Components:
        """The same of some rows."""
        within = self.within if self.within.shape[1] == 1 else self.within[:, some]
        return replace(self, means=self.means[:, some], stds=self.stds[:, some], within=within)

    def expected(self, log: bool) -> Array:
        """The mean of each group, (groups, n), in units of y."""
        each = np.exp(self.means + 0.5 * np.square(self.stds)) if log else self.means
        total = np.zeros((self.groups, each.shape[1]))
        np.add.at(total, self.group, each * self.within)
        return total

    def by_group(self) -> Iterator[_Components]:
        """Each group by itself."""
        for number in range(self.groups):
            own = self.group == number
            group = np.zeros(int(own.sum()), dtype=np.int64)
            yield _Components(self.means[own], self.stds[own], group, self.within[own])

    def below(self, places: Array) -> NDArray[np.float32]:
        """Probability up to each place, (places, n), of components that weigh the same."""
        weights = self.weights(np.ones((1, 1)))
        return _engine.shares_below(
            means=self.means, stds=self.stds, weights=weights, places=places
        )


def fit(
    held_out: OutOfFold,
    noises: Sequence[Candidate],
    sampling: Sequence[Candidate],
    entropy: Any,
    factor: float = 1.0,
    scoring: str = "log",
    bounds: Bounds = (None, None),
    threads: int = 1,
) -> Found:
    """Find atoms and free shapes, from the noises of a mixture and candidates that sample values.

    ``factor`` is the typical error that is expected of the noises' means once they are trained on
    all rows, as a share of that out of fold.
    """
    rng = np.random.default_rng(fleet.derived_seed(entropy, 3, 0, 0))
    few = np.sort(rng.permutation(len(held_out.rows))[:MOST_ROWS_SHAPED])
    rows = held_out.rows[few]
    entries = held_out.table.y[rows]
    y = _outcomes(held_out, rows)
    resolution_ = resolution(y)
    cell = max(resolution_, _FINEST * float(y.std())) or 1.0
    some = np.sort(rng.permutation(len(rows))[:ROWS_SCORED])
    alone = _Components.of(noises, rows)
    scored_with = partial(_Scored, held_out, alone, y, few, some, threads)
    atoms = _worth(atoms_of(y, cell), scored_with, noises)
    constants = _Constants.of(entries, atoms, 0.0 if held_out.log else 0.5 * cell, held_out.log)
    residuals = _residuals(alone, _start(noises, alone.groups), atoms, sampling, rows, held_out)
    collected = bounded(atoms, bounds, cell)
    widths = (*(_widths(entries, constants.least) for _ in sampling), *constants.widths)
    widths = (*widths, RESIDUAL_WIDTHS[:, None])

    def parts_of(rows: NDArray[np.int64], widths: Sequence[Array]) -> _Components:
        values = [c.values[:, rows] for c in sampling if c.values is not None]
        values += [np.repeat(v[:, None], len(rows), axis=1) for v in constants.values]
        own = _Components.of(noises, rows).around(values, widths[:-1])
        location, scale = own.moments(_start(noises, own.groups))
        last = replace(residuals, widths=widths[-1][:, 0])
        for means, stds, within in zip(*last.components(values[0], location, scale), strict=True):
            own = own.with_group(means, np.maximum(stds, constants.least), within)
        return own

    parts = parts_of(rows, widths)
    start = _start(noises, parts.groups)
    scored = _Scored(held_out, parts, y, few, some, threads, collected)
    densities = _densities(parts, y, collected, cell, held_out.log)
    mixed = _Mixed(_Rows(held_out, few), densities, parts.expected(held_out.log) - y)
    bins = _Bins.of(_signal(sampling, rows))
    part = _parts(held_out, rng)[few]
    squares = _Squares.of(scored, (len(bins.ends) + 1) * part[some] + bins.number[some])
    weighing = _Weighing(start, mixed, squares, bins, some, scoring)
    step = None
    if sampling:
        # Where values have a probability, a right one matters more than the mean.
        worse = MEAN_WORSE if collected is None else np.inf
        step = _best_step(weighing.by_other_parts(part), start, mixed, scored, factor, worse)
    new = start[None] if step is None else step.taken(start, weighing.by(part >= 0))
    by_bin = np.broadcast_to(new, (len(bins.ends) + 1, parts.groups))
    seen = partial(scored.evidence, parts, y, by_bin[bins.number].T, cell)
    known_ = known(atoms, bounds, seen, cell, held_out.log)
    weights, widths = _kept(new, widths, int((start > 0).sum()))
    free = step is not None and any(len(some) for some in widths)
    if not free:
        weights, widths = start[None], tuple(some[:0] for some in widths)
    ends = bins.ends if free else None
    own = partial(parts_of, widths=widths)
    predicted = _predicted(held_out, own, weights, ends, sampling, known_)
    if not free:
        return Found(known_, None, None, None, (), residuals, predicted, resolution_)
    values = constants.values
    return Found(known_, widths, ends, weights, values, residuals, predicted, resolution_)


def _residuals(
    alone: _Components,
    start: Array,
    atoms: Atoms | None,
    sampling: Sequence[Candidate],
    rows: NDArray[np.int64],
    held_out: OutOfFold,
) -> Residuals:
    """What residuals of other rows are, from components of the noises alone.

    If some values stand alone, of the rows that are none of them, behind a hurdle.
    """
    entries = held_out.table.y[rows]
    location, scale = alone.moments(start)
    hurdle, other = None, np.ones(len(rows), dtype=bool)
    if _stand_alone(atoms) and sampling and sampling[0].values is not None:
        assert atoms is not None
        hurdle, other = _hurdle(atoms, entries, sampling[0].values[:, rows], held_out.log)
        chances = hurdle.probabilities(sampling[0].values[:, rows])
        location, scale = hurdle.rest(chances, location, scale)
    levels = (np.arange(RESIDUAL_VALUES) + 0.5) / RESIDUAL_VALUES
    quantiles = np.quantile(((entries - location) / scale)[other], levels)
    quantiles = np.clip(quantiles, -MOST_DEVIATIONS, MOST_DEVIATIONS)
    return Residuals(quantiles, RESIDUAL_WIDTHS, hurdle)


def _hurdle(
    atoms: Atoms, entries: Array, draws: Array, log: bool
) -> tuple[Hurdle, NDArray[np.bool_]]:
    """Chances of atoms that are likely out of fold, and which rows are none of them."""
    values, cells = (_log(a) if log else a for a in (atoms.values, atoms.cells))
    is_atom = (cells[:, :1] <= entries) & (entries <= cells[:, 1:])
    other = np.logical_not(is_atom.any(axis=0))
    usual = is_atom.mean(axis=1)
    tried = [Hurdle(values, np.ascontiguousarray(cells), usual, float(t)) for t in HURDLE_TREES]

    def likelihood(hurdle: Hurdle) -> float:
        chances = hurdle.probabilities(draws)
        own = np.where(other, 1.0 - chances.sum(axis=0), (chances * is_atom).sum(axis=0))
        return float(np.log(own).mean())

    return max(tried, key=likelihood), other


def _stand_alone(atoms: Atoms | None) -> bool:
    """Whether there are a few atoms, and values between them."""
    return atoms is not None and len(atoms.values) <= MOST_LONE_ATOMS and not atoms.everywhere


def _signal(sampling: Sequence[Candidate], rows: NDArray[np.int64]) -> Array:
    """How far the values of the first candidate that samples some disagree, row by row."""
    if not sampling or sampling[0].values is None:
        return np.zeros(len(rows))
    return spread(sampling[0].values[:, rows])


def _parts(held_out: OutOfFold, rng: np.random.Generator) -> NDArray[np.int64]:
    """Number of the part of each row left out; rows of one unit are in one part."""
    units = held_out.unit_of
    return (rng.permutation(int(units.max()) + 1) % PARTS)[units]


def _start(noises: Sequence[Candidate], groups: int) -> Array:
    """Weights of the mixture as it was: those of the noises' components, none of the rest."""
    own = np.concatenate([c.weights[c.weights > 0] for c in noises if c.weights is not None])
    start = np.zeros(groups)
    start[: len(own)] = own / own.sum()
    return start


def _prior(start: Array) -> Array:
    """What the weights are drawn to: those of the mixture as it was, and a little of the rest."""
    return np.where(start > 0, start, FREE_PRIOR)


def _widths(entries: Array, least: float) -> Array:
    """Of normals around the values of a candidate, (w, 1)."""
    return np.unique(np.maximum(WIDTHS * float(entries.std()), least))[:, None]


def _worth(
    atoms: Atoms | None,
    scored_with: Callable[[Atoms | None], _Scored],
    noises: Sequence[Candidate],
) -> Atoms | None:
    """The atoms, if the CRPS is no worse with them."""
    if atoms is None:
        return None
    with_them, without = (scored_with(some) for some in (atoms, None))
    start = _start(noises, with_them.groups)[:, None]
    worse = with_them.crps(start) - without.crps(start)
    return atoms if with_them.rows.mean(worse) <= 0 else None


@dataclass(frozen=True)
class _Weighing:
    """New weights of the groups, from some of the rows.

    ``some`` are the rows whose CRPS is known.
    """

    start: Array
    mixed: _Mixed
    squares: _Squares
    bins: _Bins
    some: NDArray[np.int64]
    scoring: str

    def by(self, used: NDArray[np.bool_]) -> Array:
        """By likelihood, and by CRPS: (2, bins, groups)."""
        bins = _Bins(self.bins.ends, self.bins.number[self.some])
        by_crps = bins.weights(self.squares.fit, used[self.some], self.start)
        if self.scoring == "crps":
            return np.stack([by_crps, by_crps])
        return np.stack([self.bins.weights(self.mixed.fit, used, _prior(self.start)), by_crps])

    def by_other_parts(self, part: NDArray[np.int64]) -> Array:
        """Those of each row, by the parts of the rows that it is not in: (2, groups, n)."""
        other = np.stack([self.by(part != number) for number in range(PARTS)])
        return np.moveaxis(other[part, :, self.bins.number], 0, -1)


@dataclass(frozen=True)
class _Step:
    """From the mixture as it was towards new weights.

    ``length`` is the share of the way; ``by_crps`` how much of the new weights is those of least
    CRPS, the rest being those of largest likelihood.
    """

    length: float
    by_crps: float

    def taken(self, start: NDArray[Any], new: NDArray[Any]) -> NDArray[Any]:
        """Weights after it, or what is linear in them.

        ``new`` are those of likelihood, then those of CRPS.
        """
        towards = (1.0 - self.by_crps) * new[0] + self.by_crps * new[1]
        found: NDArray[Any] = (1.0 - self.length) * start + self.length * towards
        return found


def _best_step(
    new: Array, start: Array, mixed: _Mixed, scored: _Scored, factor: float, worse: float
) -> _Step | None:
    """The step towards new weights, (2, groups, n), that helps most, or None.

    None may cost CRPS, nor make the mean's error more than ``worse`` times as large. Of those whose
    CRPS is within a standard error of the lowest, or half a percent, the likeliest is taken: where
    the CRPS sees next to no difference, the likelihood does.

    Noises gain by the last training, on all rows, and values about half as much: with a share s of
    values, the CRPS then is expected to be ``1 - (1 - s / 2) (1 - factor)`` of that out of fold.
    """
    before = start[:, None]
    off_before, off_new = scored.off(before), np.stack([scored.off(weights) for weights in new])
    crps_before = scored.crps_of(off_before)
    likelier, closer = mixed.gains(new[0], before), crps_before - scored.crps_of(off_new[1])
    if not (mixed.rows.earned(likelier) or scored.rows.earned(closer)):
        return None
    tried = list[tuple[_Step, Array, float]]()
    for step in (_Step(length, by_crps) for length in STEPS for by_crps in BY_CRPS):
        weights = step.taken(before, new)
        free = float(weights[start == 0].sum(axis=0).mean())
        expected = 1.0 - (1.0 - 0.5 * free) * (1.0 - factor)
        crps = expected * scored.crps_of(step.taken(off_before, off_new))
        gain = mixed.rows.mean(mixed.gains(weights, before))
        better = scored.rows.mean(crps) < factor * scored.rows.mean(crps_before)
        if better and gain > 0 and mixed.rmse(weights) <= worse * mixed.rmse(before):
            tried.append((step, crps, gain))
    if not tried:
        return None
    least = min((crps for _, crps, _ in tried), key=scored.rows.mean)
    mean, enough = scored.rows.mean, AS_GOOD * scored.rows.mean(least)
    close = [
        (step, gain)
        for step, crps, gain in tried
        if scored.rows.within_a_standard_error(crps - least) or mean(crps) <= enough
    ]
    return max(close, key=lambda pair: pair[1])[0]


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
    for mean, std, group, within in zip(
        parts.means, parts.stds, parts.group, parts.within, strict=True
    ):
        # From the side on which both are small: a difference of ones has no digits.
        side = np.where(mean < middle, -1.0, 1.0)
        mass = ndtr(side * (high - mean) / std) - ndtr(side * (low - mean) / std)
        found[group] += side * mass * within
    return np.maximum(found / cell, 1e-300)


def _outcomes(held_out: OutOfFold, rows: NDArray[np.int64]) -> Array:
    """What y was in these rows. The exponential of log 25 is not quite 25, which may be an atom."""
    entries: Array = held_out.table.y[rows]
    if not held_out.log:
        return entries
    return np.array([float(f"{value:.13g}") for value in np.exp(entries).tolist()])


def _log(y: Array) -> Array:
    with np.errstate(divide="ignore"):
        found: Array = np.log(np.maximum(y, 0.0))
    return found


@dataclass(frozen=True)
class _Bins:
    """Rows that share their weights: those whose trees disagree about as much."""

    ends: Array
    number: NDArray[np.int64]  # of the bin of each row

    @staticmethod
    def of(signal: Array) -> _Bins:
        """Of about as many rows each."""
        count = int(np.clip(len(signal) // ROWS_OF_A_BIN, 1, MOST_BINS))
        ends = np.unique(np.quantile(signal, np.arange(1, count) / count))
        return _Bins(ends, np.searchsorted(ends, signal, side="right"))

    def weights(self, fit: _Fit, used: NDArray[np.bool_], prior: Array) -> Array:
        """Weights of the groups in each bin, (bins, groups), by some of the rows.

        Those of all rows are drawn to the prior, those of a bin to those of all rows.
        """
        every = fit(np.flatnonzero(used), prior / prior.sum(), PRIOR_ROWS)
        bins = (used & (self.number == number) for number in range(len(self.ends) + 1))
        return np.array([fit(np.flatnonzero(rows), every, BIN_PRIOR_ROWS) for rows in bins])


@dataclass(frozen=True)
class _Rows:
    """Some of the rows held out, and averages over them."""

    held_out: OutOfFold
    places: NDArray[np.int64]  # among the rows held out

    @property
    def weight(self) -> Array:
        """Of each row."""
        found: Array = self.held_out.weight[self.places]
        return found

    def mean(self, values: Array) -> float:
        """Weighted."""
        return float(np.average(values, weights=self.weight))

    def standard_error(self, values: Array) -> float:
        """Of the mean; rows of a group count as one."""
        everywhere = np.full(len(self.held_out.rows), self.mean(values))
        everywhere[self.places] = values
        share = len(self.places) / len(self.held_out.rows)
        return self.held_out.standard_error(everywhere) / share

    def earned(self, gains: Array) -> bool:
        """Whether the mean is above a standard error: that it costs no CRPS is asked besides."""
        return self.mean(gains) > EARNED_BY * self.standard_error(gains)

    def within_a_standard_error(self, differences: Array) -> bool:
        """Whether the mean is at most that."""
        return self.mean(differences) <= self.standard_error(differences)


@dataclass(frozen=True)
class _Mixed:
    """Densities of groups at some rows, (groups, n), and weights that make them likely.

    ``errors`` are those of the groups' means, in units of y.
    """

    rows: _Rows
    densities: Array
    errors: Array

    def fit(self, rows: NDArray[np.int64], prior: Array, prior_rows: float) -> Array:
        """Weights by expectation-maximisation on some rows, drawn towards a prior."""
        densities, weight = self.densities[:, rows], self.rows.weight[rows]
        shares = prior
        if not len(weight):
            return shares
        scaled, counts = densities / densities.max(axis=0), len(weight) * weight / weight.sum()
        for _ in range(ITERATIONS):
            shares = shares * (scaled @ (counts / (shares @ scaled))) + prior_rows * prior
            shares = shares / shares.sum()
        return shares

    def rmse(self, shares: Array) -> float:
        """Of the mixture's mean, by weights of the groups, (groups, n) or (groups, 1)."""
        return float(np.sqrt(self.rows.mean(np.square((shares * self.errors).sum(axis=0)))))

    def gains(self, shares: Array, start: Array) -> Array:
        """By how much weights of each row, (groups, n), make it likelier."""
        after: Array = np.log((shares * self.densities).sum(axis=0))
        before: Array = np.log((start * self.densities).sum(axis=0))
        return after - before


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
        threads: int,
        atoms: Atoms | None,
    ) -> None:
        self.rows, self.groups, self._chosen = _Rows(held_out, few[rows]), parts.groups, rows
        beyond = _TAILS * float(y.std())
        low = float(y.min()) - beyond
        dense, even = THRESHOLDS
        low = max(low, 0.0) if held_out.log else low
        evenly = np.linspace(low, float(y.max()) + beyond, even)
        ends = np.unique(np.concatenate([np.quantile(y, np.linspace(0, 1, dense)), evenly]))
        self.lengths, middle = np.diff(ends), 0.5 * (ends[1:] + ends[:-1])
        places = middle if atoms is None else place_among(middle, atoms.values, atoms.cells)
        self._places, self._reached = middle, y[rows] <= middle[:, None]
        places = _log(places) if held_out.log else places
        reached = self._reached.astype(np.float32)
        # What each group expects up to each threshold, less what was seen: (groups, thresholds, n).
        self.off_by_group = np.empty((self.groups, *reached.shape), dtype=np.float32)

        def fill(number: int, part: _Components) -> None:
            self.off_by_group[number] = part.below(places) - reached

        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(fill, range(self.groups), parts.rows(rows).by_group()))

    def off(self, shares: Array) -> NDArray[np.float32]:
        """The same of their mixture, (thresholds, n), by weights of the groups.

        These are (groups, 1) or (groups, rows of ``few``).
        """
        own = shares if shares.shape[1] == 1 else shares[:, self._chosen]
        total = np.zeros(self.off_by_group.shape[1:], dtype=np.float32)
        for off, share in zip(self.off_by_group, own.astype(np.float32), strict=True):
            total += share * off
        return total

    def crps_of(self, off: NDArray[Any]) -> Array:
        """Of each row."""
        found: Array = self.lengths @ np.square(off)
        return found

    def evidence(self, parts: _Components, y: Array, shares: Array, cell: float) -> Evidence:
        """What these rows say about ends of y."""
        own = parts.rows(self._chosen)
        whole = NormalMixture(own.means, own.stds, own.weights(shares[:, self._chosen]))
        below = self.off(shares) + self._reached
        return Evidence(
            y[self._chosen], whole, cell, self._places, below, self.lengths, self.rows.mean
        )

    def crps(self, shares: Array) -> Array:
        """Of each row, by weights of the groups."""
        return self.crps_of(self.off(shares))


@dataclass(frozen=True)
class _Squares:
    """The CRPS as a square in the weights of the groups, for each of some cells of rows.

    Weights are fitted on many unions of them: each cell's squares are added up once.
    """

    cell: NDArray[np.int64]  # of each row
    sums: Array  # (cells, groups, groups)
    weight: Array  # of the rows of each cell

    @staticmethod
    def of(scored: _Scored, cell: NDArray[np.int64]) -> _Squares:
        """Of rows that lie in these cells."""
        weight, count = scored.rows.weight, int(cell.max()) + 1
        sums = np.zeros((count, scored.groups, scored.groups))
        for number in np.unique(cell):
            rows = np.flatnonzero(cell == number)
            root = np.sqrt(scored.lengths[:, None] * weight[rows]).astype(np.float32)
            design = (scored.off_by_group[:, :, rows] * root).reshape(scored.groups, -1)
            sums[number] = design @ design.T
        of_cells: Array = np.bincount(cell, weight, count).astype(np.float64)
        return _Squares(cell, sums, of_cells)

    def fit(self, rows: NDArray[np.int64], prior: Array, prior_rows: float) -> Array:
        """Weights of least CRPS on some rows, all those of their cells, drawn towards a prior.

        Least squares with weights that are not negative.
        """
        from scipy.optimize import nnls

        if not len(rows):
            return prior
        cells = np.unique(self.cell[rows])
        gram = self.sums[cells].sum(axis=0) / self.weight[cells].sum()
        scale = float(np.trace(gram)) / len(gram) or 1.0
        pull = np.sqrt(prior_rows / len(rows))
        certain = 100.0  # the weights sum to one: a row that outweighs all others
        values, vectors = np.linalg.eigh(gram / scale)  # two groups may be the same: no Cholesky
        factor = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
        one = np.full((1, len(gram)), certain)
        stacked = np.vstack([factor, pull * np.eye(len(gram)), one])
        wanted = np.concatenate([np.zeros(len(gram)), pull * prior, [certain]])
        found = nnls(stacked, wanted)[0]
        shares: Array = found / found.sum()
        return shares


def _predicted(
    held_out: OutOfFold,
    parts_of: Callable[[NDArray[np.int64]], _Components],
    weights: Array,
    ends: Array | None,
    sampling: Sequence[Candidate],
    known: Known,
) -> Prediction:
    """What the mixture predicts out of fold, some rows at a time; weights are (bins, groups)."""
    found, typical = list[Array](), list[float]()
    for at in range(0, len(held_out.rows), ROWS_AT_ONCE):
        rows = held_out.rows[at : at + ROWS_AT_ONCE]
        bins = np.zeros(len(rows), dtype=np.int64)
        if ends is not None:
            bins = np.searchsorted(ends, _signal(sampling, rows), side="right")
        parts = parts_of(rows)
        own = parts.weights(weights[bins, : parts.groups].T)
        smooth: NormalMixture | LogNormalMixture
        smooth = (LogNormalMixture if held_out.log else NormalMixture)(parts.means, parts.stds, own)
        dist = known.of(smooth)
        y = _outcomes(held_out, rows)
        up_to = dist.cdf(y)
        below = up_to - dist.pmf(y)
        found.append(np.array([dist.mean, dist.std, dist.logpdf(y), below, up_to]))
        typical.append(typical_std(smooth.logs if isinstance(smooth, LogNormalMixture) else smooth))
    mean, std, density, *pit = map(held_out.everywhere, np.concatenate(found, axis=1))
    return Prediction(mean, std, density, float(np.median(typical)), *pit)
