"""How errors of several targets depend on each other, learned from rows left out.

1. Where each outcome stands in its out-of-fold distribution, as a normal score. At a value that has
   a probability of its own the score is known up to a range, and is drawn within it given the
   scores of the other targets.
2. The correlation of the scores, shrunk towards none by how uncertain it is (Schäfer and Strimmer
   2005, https://doi.org/10.2202/1544-6115.1175), and the share of rows that it does not explain.
3. Trees that learn products of scores from the columns: the correlation of each row. They are used
   if rows that they did not see are likelier by two standard errors.
4. What the copula must claim for intervals that hold all targets of a row: rows left out are ranked
   by how far out their farthest score is, and the ranks tell which level has held how many.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri
from sklearn import config_context
from sklearn.tree import DecisionTreeRegressor

from mvenet._automatic.constants import BETTER_BY, PARTS
from mvenet._models.forest import Forest
from mvenet._models.joint import LocalCorrelation, as_correlation
from mvenet._training.dependence import Dependence, independent
from mvenet.distributions._copula import Copula

Array = NDArray[np.float64]
# benchmarks/targets.py measures what these give together; none was compared with others.
ROUNDS = 20  # of drawing scores at atoms, and of the share of independent rows
DOUBT_SHARE, DOUBT_ROWS = (
    0.002,
    20.0,
)  # independent rows before any was seen, and what that is worth
SURE = 1e-7  # a probability is taken to be no closer to 0 or 1
MOST_TARGETS_OF_TREES = 8  # products of scores grow with the square
FEWEST_ROWS_OF_TREES, MOST_ROWS_OF_TREES = 200, 20_000
TREES, ROWS_OF_A_LEAF, LEAVES = 60, 25, 40
JUDGED_TREES = 20  # by rows that they did not see: more would be better, and take longer
COLUMNS = 0.7  # share of the columns that a split may ask for
SHARES = (0.25, 0.5, 0.75, 0.9, 1.0)
CLAIMS = 100  # levels of intervals for all targets, from 0 on
CLAIM_ROWS = 100.0  # that have said that the copula is right, before any was seen


@dataclass(frozen=True)
class Tied:
    """What ties the scores of k targets.

    ``gain`` is the log-likelihood a row of rows left out that it is worth, and ``local_gain`` what
    of that the trees are worth, on rows that they did not see. ``claims`` are the levels at which
    the copula holds 0, 1, 2, … per cent of the rows left out.
    """

    constant: Array
    independent: float
    local: LocalCorrelation | None = None
    share: float = 0.0
    gain: float = 0.0
    local_gain: float = 0.0
    claims: Array | None = None


def fit(
    X: NDArray[Any],
    pit: Array,
    weight: Array | None = None,
    dependence: Dependence | None = None,
    seed: int = 0,
) -> Tied:
    """Learn it from probabilities below and up to each outcome, (n, k, 2), out of fold.

    Rows in which one of them is NaN, or of weight zero, do not count.
    """
    counted = np.isfinite(pit).all(axis=(1, 2)) & (True if weight is None else weight > 0)
    rows = np.flatnonzero(counted)
    k = pit.shape[1]
    if k == 1 or len(rows) < 2:
        return Tied(np.eye(k), 0.0)
    rng = np.random.default_rng(seed)
    low, high = np.moveaxis(ndtri(np.clip(pit[rows], SURE, 1.0 - SURE)), 2, 0)
    low = np.where(pit[rows, :, 0] < pit[rows, :, 1], low, high)
    each = np.ones(len(rows)) if weight is None else weight[rows]
    voices = independent(dependence, rows)
    scores = _drawn(low, high, each, voices, rng)
    constant, doubt = _correlated(scores, each, voices)
    copula = Copula(constant, doubt)
    log = copula.log_ratio(low, high)
    claims = _claims(copula.reached(scores), each, voices)
    found = Tied(constant, doubt, gain=float(np.average(log, weights=each)), claims=claims)
    if k > MOST_TARGETS_OF_TREES or len(rows) < FEWEST_ROWS_OF_TREES:
        return found
    some = np.sort(rng.permutation(len(rows))[:MOST_ROWS_OF_TREES])
    tied = None if dependence is None else dependence.of(rows[some])
    learning = _Local(X[rows[some]], scores[some], each[some], tied, found, rng)
    return learning.judged(low[some], high[some])


def _drawn(low: Array, high: Array, weight: Array, voices: int, rng: np.random.Generator) -> Array:
    """Scores within their ranges, each drawn given the others of its row, round by round."""
    atom = low < high
    within = ndtr(low) + rng.random(low.shape) * (ndtr(high) - ndtr(low))
    scores = np.where(atom, ndtri(np.clip(within, SURE, 1.0 - SURE)), high)
    if not atom.any():
        return scores
    for _ in range(ROUNDS):
        correlation = _shrunk(scores, weight, voices)
        for j in np.flatnonzero(atom.any(axis=0)):
            rows, others = np.flatnonzero(atom[:, j]), np.arange(low.shape[1]) != j
            slope = np.linalg.solve(correlation[others][:, others], correlation[others, j])
            centre = scores[rows][:, others] @ slope
            spread = np.sqrt(max(1.0 - float(correlation[j, others] @ slope), 1e-6))
            ends = [ndtr((end[rows, j] - centre) / spread) for end in (low, high)]
            level = ends[0] + rng.random(len(rows)) * (ends[1] - ends[0])
            drawn = centre + spread * ndtri(np.clip(level, SURE, 1.0 - SURE))
            scores[rows, j] = np.clip(drawn, low[rows, j], high[rows, j])
    return scores


def _shrunk(scores: Array, weight: Array, voices: float) -> Array:
    """The correlation of scores, drawn to none by its own standard errors."""
    share = weight / weight.sum()
    spread = np.sqrt(share @ np.square(scores))
    # A target that is known for certain has scores without a spread, and goes with no other.
    standard = scores / np.where(spread > 1e-6, spread, np.inf)
    found = standard.T @ (share[:, None] * standard)
    squares = np.square(standard)
    error = np.maximum(squares.T @ (share[:, None] * squares) - found**2, 0.0) / max(voices, 1)
    apart = ~np.eye(len(found), dtype=bool)
    total = float(np.square(found[apart]).sum())
    kept = max(0.0, 1.0 - float(error[apart].sum()) / total) if total else 0.0
    return as_correlation(np.where(apart, kept * found, 1.0))


def _correlated(scores: Array, weight: Array, voices: float) -> tuple[Array, float]:
    """Correlation of the scores, and the share of rows that it does not explain."""
    doubt, belongs = DOUBT_SHARE, np.ones(len(scores))
    rows = len(scores) * weight / weight.sum()
    for _ in range(ROUNDS):
        part = weight * belongs
        constant = _shrunk(scores, part, voices * part.sum() / weight.sum())
        tied = (1.0 - doubt) * np.exp(Copula(constant, 0.0).log_ratio(scores, scores))
        belongs = tied / (tied + doubt)
        apart = float(rows @ (1.0 - belongs)) + DOUBT_ROWS * DOUBT_SHARE
        doubt = apart / (len(scores) + DOUBT_ROWS)
        # Without a correlation nothing tells whether a row belongs to it.
        if np.abs(constant - np.eye(len(constant))).max() < 1e-6:
            return constant, 0.0
    return constant, doubt


def _claims(reached: Array, weight: Array, voices: float) -> Array:
    """Levels that hold 0, 1, 2, … per cent of rows: those of rows left out, and one more row.

    With the row that is yet to come a level must hold a little more of those that are known, as in
    split conformal prediction. Few rows are drawn to what the copula says.
    """
    coverage = np.arange(CLAIMS) / CLAIMS
    order = np.argsort(reached, kind="stable")
    held = np.cumsum(weight[order]) / weight.sum()
    needed = np.minimum(coverage * (voices + 1) / voices, 1.0) - 1e-12
    levels = reached[order][np.minimum(np.searchsorted(held, needed), len(held) - 1)]
    found = (voices * levels + CLAIM_ROWS * coverage) / (voices + CLAIM_ROWS)
    found[0] = 0.0
    return np.maximum.accumulate(np.minimum(found, 1.0 - 1e-6))


@dataclass(frozen=True)
class _Local:
    """Trees for a correlation that differs from row to row, and rows to judge them by."""

    X: NDArray[Any]
    scores: Array
    weight: Array
    dependence: Dependence | None
    found: Tied
    rng: np.random.Generator

    def judged(self, low: Array, high: Array) -> Tied:
        """With trees, if rows that they have not seen are likelier by two standard errors."""
        part, n = self._parts(), len(self.scores)
        other = np.empty((n, *self.found.constant.shape))
        for number in range(PARTS):
            left_out = np.flatnonzero(part == number)
            if 0 < len(left_out) < n:
                known = np.flatnonzero(part != number)
                other[left_out] = self._trees(known, JUDGED_TREES).correlations(self.X[left_out])
            else:
                other[left_out] = self.found.constant
        before = Copula(self.found.constant, self.found.independent).log_ratio(low, high)
        best, share, gains = 0.0, 0.0, before
        for tried in SHARES:
            mixed = as_correlation((1.0 - tried) * self.found.constant + tried * other)
            after = Copula(mixed, max(self.found.independent, 1e-4)).log_ratio(low, high)
            gain = float(np.average(after - before, weights=self.weight))
            if gain > best:
                best, share, gains = gain, tried, after - before
        if not share or best < BETTER_BY * self._error(gains):
            return self.found
        mixed = as_correlation((1 - share) * self.found.constant + share * other)
        doubt = self._doubt(mixed)
        voices = independent(self.dependence, np.arange(n))
        claims = _claims(Copula(mixed, doubt).reached(self.scores), self.weight, voices)
        local = self._trees(np.arange(n))
        gain = self.found.gain + best
        return Tied(self.found.constant, doubt, local, share, gain, best, claims)

    def _doubt(self, correlation: Array) -> float:
        """The share of rows that the correlation of each does not explain."""
        tied = np.exp(Copula(correlation, 0.0).log_ratio(self.scores, self.scores))
        doubt, rows = DOUBT_SHARE, len(tied) * self.weight / self.weight.sum()
        for _ in range(ROUNDS):
            apart = doubt / (doubt + (1.0 - doubt) * tied)
            doubt = float(rows @ apart + DOUBT_ROWS * DOUBT_SHARE) / (len(tied) + DOUBT_ROWS)
        return doubt

    def _parts(self) -> NDArray[np.int64]:
        """Which part judges each row: groups stay together, and in time stretches do."""
        tied, n = self.dependence, len(self.scores)
        if tied is not None and tied.groups is not None:
            names, numbers = np.unique(tied.groups, return_inverse=True)
            found: NDArray[np.int64] = (self.rng.permutation(len(names)) % PARTS)[numbers]
            return found
        if tied is not None and tied.time is not None:
            order = np.argsort(tied.time, kind="stable")
            return np.asarray(np.argsort(order) * PARTS // n, dtype=np.int64)
        return self.rng.permutation(n) % PARTS

    def _error(self, gains: Array) -> float:
        """Standard error of the mean gain; rows of one group speak with one voice."""
        centred = self.weight * (gains - np.average(gains, weights=self.weight))
        if self.dependence is not None and self.dependence.groups is not None:
            numbers = np.unique(self.dependence.groups, return_inverse=True)[1]
            centred = np.asarray(np.bincount(numbers, weights=centred), dtype=np.float64)
        return float(np.sqrt(np.sum(centred**2)) / self.weight.sum())

    def _trees(self, rows: NDArray[np.int64], count: int = TREES) -> LocalCorrelation:
        """Fitted to products of two targets' scores; leaves hold the mean of all products."""
        X = np.clip(self.X[rows], -1e30, 1e30).astype(np.float32, "C")
        scores, weight = self.scores[rows], self.weight[rows]
        k = scores.shape[1]
        first, second = np.triu_indices(k, 1)
        least = max(ROWS_OF_A_LEAF, len(rows) // LEAVES)
        products = scores[:, :, None] * scores[:, None, :]
        learned = np.ascontiguousarray(products[:, first, second])
        trees, tables = [], []
        with config_context(skip_parameter_validation=True):  # half of the time of a small tree
            for _ in range(count):
                seed = int(self.rng.integers(2**31))
                # The best splits, not random ones: regions have edges.
                tree = DecisionTreeRegressor(
                    min_samples_leaf=least, max_features=COLUMNS, random_state=seed
                )
                tree.fit(X, learned, weight, check_input=False)
                trees.append(tree)
                tables.append(_of_leaves(tree.apply(X, check_input=False), products, weight))
        return _numbered(trees, tables)


def _of_leaves(leaf: NDArray[np.int64], products: Array, weight: Array) -> Array:
    """Mean products of each node that is a leaf of some row, (nodes, k, k); else nothing."""
    total = np.zeros((int(leaf.max()) + 1, *products.shape[1:]))
    np.add.at(total, leaf, weight[:, None, None] * products)
    mass = np.bincount(leaf, weights=weight, minlength=len(total))
    # A little of the average row in each: no leaf has scores without a spread.
    average = np.average(products, axis=0, weights=weight) + 1e-6 * np.eye(products.shape[1])
    found: Array = (total + weight.mean() * average) / (mass + weight.mean())[:, None, None]
    return found


class _LeafNumbers:
    """A tree of scikit-learn with the numbers of its leaves in the place of what they predict."""

    def __init__(self, tree: Any, start: int) -> None:
        self.children_left, self.children_right = tree.children_left, tree.children_right
        self.feature, self.threshold = tree.feature, tree.threshold
        self.leaves = np.flatnonzero(tree.children_left < 0)
        self.value = np.zeros((len(tree.feature), 1, 1))
        self.value[self.leaves, 0, 0] = start + np.arange(len(self.leaves))
        self.tree_ = self


def _numbered(trees: list[Any], tables: list[Array]) -> LocalCorrelation:
    """Trees of leaf numbers, and what each leaf holds."""
    numbered, held, start = [], [], 0
    for tree, table in zip(trees, tables, strict=True):
        some = _LeafNumbers(tree.tree_, start)
        numbered.append(some)
        held.append(table[some.leaves])
        start += len(some.leaves)
    return LocalCorrelation(Forest.of(numbered, 0.0, 1.0), np.concatenate(held))
