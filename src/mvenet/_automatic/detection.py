"""Rows that belong together though nobody said so: what rows left out and a cheap model tell.

Two tests. Errors of rows left out that stand next to each other in some order, or at a fixed
distance (a panel has a period), must not resemble each other: their rank correlation is zero if
rows are independent. And it must not matter whether
rows are left out at random or together (runs of neighbours, all rows with one value): trees err as
much either way. Errors can look independent although a model has learned its groups by heart, and
the second test sees that; the first sees what trees cannot learn. Both ask for an effect that
matters, too, and for one that chance has in less than one of a thousand tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata, wilcoxon
from sklearn import config_context
from sklearn.model_selection import GroupKFold, KFold
from sklearn.tree import ExtraTreeRegressor

from mvenet._automatic.constants import (
    AS_PROMISED,
    DRIFT,
    DRIFT_COVERS,
    FEWEST_LABELS,
    FEWEST_ROWS_TESTED,
    FEWEST_VALUES,
    LEAK,
    MOST_APART,
    MOST_COLUMNS_TESTED,
    MOST_ROWS_TESTED,
    NEIGHBOURS_ALIKE,
    NEW_VALUE_WORSE,
    RUNS,
    SIGNIFICANT,
    SIGNIFICANT_OF_MANY,
    TESTED_TREES,
    WORSE,
)

Array = NDArray[np.float64]
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Finding:
    """What ties rows together.

    Attributes
    ----------
    kind : {"order", "drift", "values", "counter", "leak"}
        Neighbours in an order; columns that drift along the table, so that later rows are beyond
        all others; rows with equal values of a column; a column that counts the rows while the
        target runs in its order; a column that gives the target away.
    column : int or None
        Number of the column; None is the order of the table.
    strength : float
        Rank correlation of neighbours' errors, or how many times as large errors are if what
        belongs together is left out together; of the others the rank correlation with the target.
    covered : float or None
        Share of rows that intervals which hold nine of ten rows left out at random would cover, if
        what belongs together is left out together.
    apart : int
        How many rows neighbours in an order are apart.
    """

    kind: str
    column: int | None
    strength: float
    covered: float | None = None
    apart: int = 1

    def sentence(self, names: Sequence[str] | None = None) -> str:
        """In words, with the argument that mends it."""
        column = "" if self.column is None else _named(self.column, names)
        if self.kind == "leak":
            return (
                f"{column} alone gives the target away (rank correlation {self.strength:.4f}): is "
                "it known when a prediction is needed? If not, leave it out."
            )
        if self.kind == "counter":
            return (
                f"{column} counts the rows, and the target runs in its order (rank correlation "
                f"{self.strength:.2f}): new rows have no such number, so leave it out."
            )
        least = "" if self.covered is None else f" would cover about {self.covered:.0%}"
        if self.kind == "values":
            return (
                f"Rows with equal values of {column} belong together: errors are "
                f"{self.strength:.1f} times as large for a value that is new, and 90 % intervals"
                f"{least} of such rows. If new rows are to be of new ones, fit with groups."
            )
        if self.kind == "drift":
            return (
                f"{column[:1].upper()}{column[1:]} drifts along the table (rank correlation with "
                f"the row's number {self.strength:.2f}): 90 % intervals{least} of rows after the "
                "last. If the table is in the order of time and new rows are later, fit with time; "
                "if new rows are scattered among these, all is well."
            )
        order = f"in the order of {column}" if column else "in the table"
        where = "next to each other" if self.apart == 1 else f"{self.apart} apart"
        covered = f", and 90 % intervals{least} of rows without known neighbours" if least else ""
        return (
            f"Rows {where} {order} are alike: errors depend on those of their "
            f"neighbours{covered}. If rows belong to groups (patients, machines), fit with groups; "
            "if they follow each other in time, fit with time; if new rows are scattered among "
            "these, all is well."
        )


def findings(
    X: NDArray[np.float64], y: Array, residual: Array, *, refit: bool, seed: int
) -> list[Finding]:
    """What ties the rows of a table together, in its order; residuals are out of fold.

    The second test, which fits trees, is made with ``refit`` only.
    """
    n = len(y)
    if n < FEWEST_ROWS_TESTED or np.ptp(y) == 0 or np.ptp(residual) == 0:
        return []
    X = np.asarray(X, dtype=np.float64)
    noticed = list(_odd_columns(X, y))
    skipped = {finding.column for finding in noticed}
    orders: list[int | None] = [None]
    orders += [c for c in range(X.shape[1]) if c not in skipped and _is_a_clock(X[:, c])]
    for column in orders[:MOST_COLUMNS_TESTED]:
        order = np.arange(n) if column is None else np.argsort(X[:, column], kind="stable")
        finding = _of_order(X[order], y[order], residual[order], column, refit, seed)
        if finding is not None:
            noticed.append(finding)
            break  # one is enough: a table in the order of a clock has two
    if refit and not any(finding.kind == "order" for finding in noticed):
        noticed += _drifts(X, y, seed)
    if refit:
        for column in _like_identifiers(X, y, residual, skipped):
            compared = _Compared.of(X, y, _of_values(X[:, column]), seed)
            if compared.alarming and compared.worse > NEW_VALUE_WORSE:
                noticed.append(Finding("values", column, compared.worse, compared.covered))
                break
    return noticed


def of_labels(X: Array, y: Array, labels: Rows, seed: int) -> tuple[float, float] | None:
    """How many times as large errors are for new labels, and what is covered; None if no larger.

    Labels of which there are few are no identifiers.
    """
    few = not FEWEST_LABELS <= labels.max() + 1 <= len(y) / 2
    if few or len(y) < FEWEST_ROWS_TESTED or np.ptp(y) == 0:
        return None
    compared = _Compared.of(X, y, labels, seed)
    return (compared.worse, compared.covered) if compared.alarming else None


def _of_order(
    X: Array, y: Array, residual: Array, column: int | None, refit: bool, seed: int
) -> Finding | None:
    alike, apart = _alike(residual)
    depends = apart > 0
    if not refit:
        return Finding("order", column, alike, apart=apart) if depends else None
    some = some_runs(len(y), MOST_ROWS_TESTED)
    runs = np.arange(len(some)) * RUNS // len(some)
    compared = _Compared.of(X[some], y[some], runs, seed)
    if depends:
        covered = compared.covered if compared.covered < AS_PROMISED else None
        return Finding("order", column, alike, covered, apart)
    if not compared.alarming:
        return None
    for other in range(X.shape[1]):  # a table in the order of a column has runs for that reason
        if abs(_rank_correlation(X[some, other], np.arange(len(some)))) > 0.3:
            ties = np.random.default_rng(seed).random(len(some))
            along = np.empty(len(some), dtype=np.int64)
            along[np.lexsort((ties, X[some, other]))] = runs
            if not compared.worse_than(X[some], y[some], along, seed):
                return None
    return Finding("order", column, alike, compared.covered)


def _alike(residual: Array) -> tuple[float, int]:
    """Rank correlation of errors so many rows apart: the shortest distance at which it matters.

    Zero rows if no distance has more than chance explains.
    """
    ranks = rankdata(residual)
    ranks = (ranks - ranks.mean()) / ranks.std()
    n = len(ranks)
    each = [float(np.mean(ranks[:-k] * ranks[k:])) for k in range(1, min(MOST_APART, n // 8) + 1)]
    if each[0] > max(NEIGHBOURS_ALIKE, SIGNIFICANT / np.sqrt(n)):
        return each[0], 1
    enough = max(NEIGHBOURS_ALIKE, SIGNIFICANT_OF_MANY / np.sqrt(n))
    distance = next((k for k, alike in enumerate(each, 1) if alike > enough), 0)
    return each[max(distance - 1, 0)], distance


def _drifts(X: Array, y: Array, seed: int) -> list[Finding]:
    """The column that drifts most along the table, if that matters to rows after the last.

    A column by which the table is sorted does not drift: it never turns back. If there is one, or
    if it is the target, the others follow it, and nothing is known of time; but a clock may be one.
    """
    n, number = len(y), np.arange(len(y))
    sorted_by = [c for c in range(X.shape[1]) if np.ptp(X[:, c]) > 0 and _never_turns(X[:, c])]
    if _never_turns(y) or not all(_is_a_clock(X[:, c]) for c in sorted_by):
        return []
    along = {c: _rank_correlation(X[:, c], number) for c in range(X.shape[1]) if c not in sorted_by}
    most = max(along, key=lambda c: abs(along[c]), default=None)
    if most is None or abs(along[most]) <= DRIFT:
        return []
    some = some_runs(n, MOST_ROWS_TESTED)
    X, y, later = X[some], y[some], np.arange(3 * len(some) // 4, len(some))
    apart = KFold(5, shuffle=True, random_state=seed % 2**32).split(X)
    usual = np.quantile(_errors(X, y, list(apart), seed), 0.9)
    beyond = _errors(X, y, [(np.arange(later[0]), later)], seed)[later]
    covered = float(np.mean(beyond <= usual))
    return [Finding("drift", most, along[most], covered)] if covered < DRIFT_COVERS else []


def _never_turns(x: Array) -> bool:
    steps = np.diff(x)
    return bool((steps >= 0).all() or (steps <= 0).all())


@dataclass(frozen=True)
class _Compared:
    """Errors of trees on rows that were left out together, and at random; y in ranks."""

    together: Array
    apart: Array

    @staticmethod
    def of(X: Array, y: Array, labels: Rows, seed: int) -> _Compared:
        if len(y) > MOST_ROWS_TESTED:
            few = np.sort(np.random.default_rng(seed).permutation(len(y))[:MOST_ROWS_TESTED])
            X, y, labels = X[few], y[few], np.unique(labels[few], return_inverse=True)[1]
        apart = KFold(5, shuffle=True, random_state=seed % 2**32).split(X)
        return _Compared(
            _errors(X, y, _dealt(labels, seed), seed), _errors(X, y, list(apart), seed)
        )

    @property
    def worse(self) -> float:
        return float(self.together.mean() / max(self.apart.mean(), 1e-12))

    @property
    def covered(self) -> float:
        return float(np.mean(self.together <= np.quantile(self.apart, 0.9)))

    @property
    def alarming(self) -> bool:
        return self.worse > WORSE and _significant(self.together - self.apart)

    def worse_than(self, X: Array, y: Array, labels: Rows, seed: int) -> bool:
        """Whether it is clearly worse than leaving out these together, too."""
        others = _errors(X, y, _dealt(labels, seed), seed)
        larger = self.together.mean() > WORSE * others.mean()
        return bool(larger and _significant(self.together - others))


def _significant(difference: Array) -> bool:
    """Whether it is above zero; if rows are independent it is as often below as above."""
    if not difference.any():
        return False
    return bool(wilcoxon(difference, alternative="greater", method="approx").pvalue < 5e-4)


def _errors(X: Array, y: Array, folds: Sequence[tuple[Rows, Rows]], seed: int) -> Array:
    """Absolute errors of a few trees, of rows left out; of the ranks of y, as shares."""
    ranks, total = rankdata(y) / len(y), np.zeros(len(y))
    X = np.clip(X, -1e30, 1e30).astype(np.float32, "C")
    with config_context(skip_parameter_validation=True):
        for train, test in folds:
            for tree in range(TESTED_TREES):
                fitted = ExtraTreeRegressor(min_samples_leaf=2, random_state=(seed + tree) % 2**32)
                fitted.fit(X[train], ranks[train], check_input=False)
                total[test] += fitted.predict(X[test], check_input=False)
    return np.asarray(np.abs(ranks - total / TESTED_TREES))


def _dealt(labels: Rows, seed: int) -> list[tuple[Rows, Rows]]:
    """Five folds of whole labels."""
    names, numbers = np.unique(labels, return_inverse=True)
    drawn = np.random.default_rng(seed).permutation(len(names))[numbers]
    folds = GroupKFold(min(5, len(names))).split(drawn, groups=drawn)
    return [(train, test) for train, test in folds]


def some_runs(n: int, most: int) -> Rows:
    """All of n rows, or of more than so many some runs of neighbours."""
    if n <= most:
        return np.arange(n)
    length = most // RUNS
    starts = np.linspace(0, n - length, RUNS).astype(np.int64)
    return np.asarray((starts[:, None] + np.arange(length)).ravel())


def _odd_columns(X: Array, y: Array) -> Iterator[Finding]:
    """Columns that give the target away, or count the rows while the target runs along."""
    for column in range(X.shape[1]):
        x = X[:, column]
        if np.ptp(x) == 0:
            continue
        correlation = _rank_correlation(x, y)
        if _counts_rows(x) and abs(correlation) > 0.5:
            yield Finding("counter", column, correlation)
        elif X.shape[1] > 1 and abs(correlation) > LEAK and len(np.unique(y)) > 20:
            yield Finding("leak", column, correlation)


def _rank_correlation(a: Array, b: NDArray[np.float64] | Rows) -> float:
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return 0.0
    return float(np.corrcoef(rankdata(a), rankdata(b))[0, 1])


def _counts_rows(x: Array) -> bool:
    """Whether a column holds each of so many consecutive whole numbers once."""
    return bool(np.ptp(x) == len(x) - 1 and (np.diff(np.sort(x)) == 1).all())


def _is_a_clock(x: Array) -> bool:
    """Whether a column may be dates or numbers of rows: whole numbers, hardly any twice."""
    return bool((x == np.round(x)).all() and len(np.unique(x)) > 0.9 * len(x))


def _of_values(x: Array) -> Rows:
    return np.asarray(np.unique(x, return_inverse=True)[1].ravel(), dtype=np.int64)


def _like_identifiers(X: Array, y: Array, residual: Array, skipped: set[int | None]) -> list[int]:
    """Columns of many whole numbers with repeats, those first whose rows err most alike.

    A number that says how much of something there is has a target that goes along with it, which
    one that is but a name has not: neighbouring values then have nothing in common.
    """
    n, ranks, alike = len(residual), rankdata(residual), []
    for column in range(X.shape[1]):
        labels = _of_values(X[:, column])
        k, whole = int(labels.max()) + 1, (X[:, column] == np.round(X[:, column])).all()
        known = whole and column not in skipped and FEWEST_VALUES <= k <= n / 2
        if known and not _goes_along(labels, y):
            means = np.bincount(labels, weights=ranks) / np.bincount(labels)
            alike.append((float(np.var(means[labels])) - k / n * float(np.var(ranks)), column))
    return [column for _, column in sorted(alike, reverse=True)[:MOST_COLUMNS_TESTED]]


def _goes_along(labels: Rows, y: Array) -> bool:
    """Whether the target's means at neighbouring values are alike."""
    counts = np.bincount(labels)
    means = rankdata(np.bincount(labels, weights=rankdata(y)) / counts)
    return bool(np.corrcoef(means[:-1], means[1:])[0, 1] > 1.5 / np.sqrt(len(means)))


def _named(column: int, names: Sequence[str] | None) -> str:
    return f"column {column}" if names is None else f"the column {names[column]!r}"
