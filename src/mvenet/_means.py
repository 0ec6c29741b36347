"""Means that are not networks: linear, trees, a Gaussian process, any regressor of the user's."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.linear_model import RidgeCV
from sklearn.tree import ExtraTreeRegressor
from sklearn.utils.validation import has_fit_parameter
from threadpoolctl import threadpool_limits

from mvenet import _process_fit, fleet
from mvenet._composite import Linear
from mvenet._plan import Table
from mvenet._process_fit import MOST_ROWS
from mvenet._trees import Forest

Array = NDArray[np.float64]
Folds = Sequence[tuple[fleet.Rows, fleet.Rows]]
NAMES = ("networks", "linear", "trees", "gaussian process")
MOST_COLUMNS = 100  # of a Gaussian process: each has a length scale of its own
PENALTIES = np.logspace(-3, 3, 13)  # of the linear model, on standardised columns
FEW_ROWS = 50_000  # a tree of more would not be worth its memory
SAMPLE = 1_000  # rows that are fitted to see how long it takes


@dataclass(frozen=True)
class Candidate:
    """A mean, what it says of the rows that its folds left out, and a way to fit it on all."""

    name: str
    left_out: list[Array]
    refit: Callable[[], Any]


def chosen(means: Any, n: int, columns: int) -> tuple[Any, ...]:
    """What the parameter ``means`` of a search stands for on a table (n, columns), checked."""
    if isinstance(means, str):
        process = n <= MOST_ROWS and columns <= MOST_COLUMNS
        usual = NAMES if process else NAMES[:-1]
        return ("networks",) if means == "networks" else usual
    given = tuple(means)
    for mean in given:
        known = mean in NAMES if isinstance(mean, str) else hasattr(mean, "fit")
        if not known:
            raise ValueError(
                f"means holds {mean!r}: it must be a list of regressors and of "
                f"{', '.join(map(repr, NAMES))}."
            )
    if not given:
        raise ValueError("means is empty: name at least one, such as 'networks'.")
    return given


def candidates(
    means: Sequence[Any], table: Table, folds: Folds, entropy: Any, threads: int
) -> list[Candidate]:
    """Fit each mean without each fold."""
    seeds = [fleet.derived_seed(entropy, 1, 0, 0, number) % 2**32 for number in range(len(means))]
    return [_candidate(m, table, folds, s, threads) for m, s in zip(means, seeds, strict=True)]


def expected_seconds(means: Sequence[Any], table: Table, folds: Folds, threads: int) -> float:
    """Time that the means of ours will take, from fitting them to a few rows.

    A regressor of the user's is not counted: nobody knows how its time grows.
    """
    few, n = table.rows[:SAMPLE], len(folds[0][0])
    growth: dict[str, Callable[[int], float]] = {
        "linear": float,
        "trees": _tree_work,
        "gaussian process": lambda n: 5.0 + (min(n, MOST_ROWS) / SAMPLE) ** 3,
    }
    total = 0.0
    for name in (mean for mean in means if isinstance(mean, str) and mean in growth):
        start = time.perf_counter()
        _FITS[name](table.X[few], table.y[few], None, 0)
        seconds = time.perf_counter() - start
        total += seconds * growth[name](n) / growth[name](len(few))
    return total * (len(folds) / threads + 1)


def _tree_work(n: int) -> float:
    """What trees of n rows cost, up to a factor."""
    rows = min(n, FEW_ROWS)
    return _tree_count(n) * rows * float(np.log2(rows + 1))


def _candidate(mean: Any, table: Table, folds: Folds, seed: int, threads: int) -> Candidate:
    name = mean if isinstance(mean, str) else type(mean).__name__
    fit = _FITS.get(name) or _given(mean)

    def fitted(rows: fleet.Rows) -> Any:
        weight = None if table.weight is None else table.weight[rows]
        return fit(table.X[rows], table.y[rows], weight, seed)

    def of_fold(train: fleet.Rows, test: fleet.Rows) -> Array:
        predicted = fitted(train).predict(table.X[test])
        return _checked(name, predicted, len(test))

    def refit() -> Any:
        with threadpool_limits(1):
            return fitted(table.rows)

    jobs = (delayed(of_fold)(train, test) for train, test in folds)
    with threadpool_limits(1):  # sums in one order, whatever the threads
        left_out = Parallel(n_jobs=threads, prefer="threads")(jobs)
    return Candidate(name, left_out, refit)


def _checked(name: str, predicted: Any, n: int) -> Array:
    values = np.asarray(predicted, dtype=np.float64)
    if values.shape != (n,) or not np.isfinite(values).all():
        what = f"shape {values.shape}" if values.shape != (n,) else "values that are not finite"
        raise ValueError(
            f"means: {name} predicts {what} for {n} rows: it must give one finite number a row."
        )
    return values


def _linear(X: NDArray[Any], y: Array, weight: Array | None, _: int) -> Linear:
    """Ridge regression; its penalty by leave-one-out."""
    X = np.asarray(X, dtype=np.float64)
    center, scale = X.mean(axis=0), X.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    ridge = RidgeCV(PENALTIES).fit((X - center) / scale, y, sample_weight=weight)
    coefficients = ridge.coef_ / scale
    return Linear(coefficients, float(ridge.intercept_ - center @ coefficients))


def _trees(X: NDArray[Any], y: Array, weight: Array | None, seed: int) -> Forest:
    """Extremely randomised trees: fewer where each is large.

    Tree by tree: forests of scikit-learn in threads spoil each other's filters of warnings.
    """
    n, random = len(y), np.random.RandomState(seed)
    center, scale = float(y.mean()), float(y.std()) or 1.0
    X, target, trees = np.asarray(X, dtype=np.float32), (y - center) / scale, []
    for _ in range(_tree_count(n)):
        tree = ExtraTreeRegressor(random_state=random.randint(np.iinfo(np.int32).max))
        if n <= FEW_ROWS:
            trees.append(tree.fit(X, target, sample_weight=weight))
        else:
            drawn = np.random.RandomState(tree.random_state).randint(n, size=FEW_ROWS)
            rows, counts = np.unique(drawn, return_counts=True)
            each = counts if weight is None else counts * weight[rows]
            trees.append(tree.fit(X[rows], target[rows], sample_weight=each))
    return Forest.of(trees, center, scale)


def _tree_count(n: int) -> int:
    return 100 if n <= 10_000 else 50 if n <= FEW_ROWS else 30


_FITS = {"linear": _linear, "trees": _trees, "gaussian process": _process_fit.fit}


def _given(estimator: Any) -> Callable[..., Any]:
    """How a regressor of the user's is fitted."""

    def fit(X: NDArray[Any], y: Array, weight: Array | None, _: int) -> Any:
        known = {} if weight is None else {"sample_weight": weight}
        if known and not has_fit_parameter(estimator, "sample_weight"):
            known = {}
        try:
            return clone(estimator).fit(X, y, **known)
        except Exception as error:  # whatever somebody else's estimator raises
            raise ValueError(
                f"means: {type(estimator).__name__} could not be fitted ({error}): mend or drop it."
            ) from error

    return fit
