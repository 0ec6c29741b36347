"""Means that are not networks: linear, trees, a Gaussian process, any regressor of the user's."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.linear_model import RidgeCV
from sklearn.utils.validation import has_fit_parameter

from mvenet._automatic import gaussian_process_fit
from mvenet._automatic.constants import (
    FEW_ROWS,
    FEWEST_TREES,
    LINEAR_PENALTIES,
    MOST_COLUMNS_OF_A_PROCESS,
    MOST_ROWS_OF_A_PROCESS,
    MOST_ROWS_OF_A_TREE,
    TIMED_ROWS,
    TREE_VALUES,
    TREE_VALUES_OF_MANY,
    TREES,
)
from mvenet._automatic.kinds import Folds
from mvenet._automatic.out_of_fold import Candidate, OutOfFold
from mvenet._models.forest import Forest
from mvenet._models.interface import Mean
from mvenet._models.means import GivenRegressor, Linear
from mvenet._training import distributed, fleet
from mvenet._training.plan import Table
from mvenet._utils.sums import center_and_scale

Array = NDArray[np.float64]
NAMES = ("networks", "linear", "trees", "gaussian process")


def chosen(candidates: Any, n: int, columns: int) -> tuple[Any, ...]:
    """What the parameter ``candidates`` stands for on a table (n, columns), checked."""
    if isinstance(candidates, str):
        process = n <= MOST_ROWS_OF_A_PROCESS and columns <= MOST_COLUMNS_OF_A_PROCESS
        usual = tuple(name for name in NAMES if process or name != "gaussian process")
        return ("networks",) if candidates == "networks" else usual
    given = tuple(candidates)
    for candidate in given:
        known = candidate in NAMES if isinstance(candidate, str) else hasattr(candidate, "fit")
        if not known:
            raise ValueError(
                f"candidates holds {candidate!r}: it must be a list of regressors and of "
                f"{', '.join(map(repr, NAMES))}."
            )
    if not given:
        raise ValueError("candidates is empty: name at least one, such as 'networks'.")
    return given


def begin(
    means: Sequence[Any], held_out: OutOfFold, folds: Folds, entropy: Any, threads: int
) -> Callable[[], list[Candidate]]:
    """Fit each mean without each fold: what is returned waits for the candidates.

    Workers of a cluster do it meanwhile; elsewhere it is done at once.
    """
    seeds = [fleet.derived_seed(entropy, 1, 0, 0, number) % 2**32 for number in range(len(means))]
    fits = [_Fit(m, held_out, folds, s) for m, s in zip(means, seeds, strict=True)]
    tasks = [(number, fold) for number in range(len(means)) for fold in range(len(folds))]
    fitted = distributed.begun_each(_without_fold, fits, tasks, threads)

    def finish() -> list[Candidate]:
        done, n = fitted(), len(folds)
        return [fit.candidate(done[at * n : (at + 1) * n]) for at, fit in enumerate(fits)]

    return finish


def begin_refits(candidates: Sequence[Candidate]) -> None:
    """Let workers of a cluster fit to all rows what a model may need of these, meanwhile."""
    for candidate in candidates:
        if candidate.refit is not None and (candidate.share or candidate.values is not None):
            candidate.refit = distributed.begun(candidate.refit)


def expected_seconds(means: Sequence[Any], table: Table, folds: Folds, threads: int) -> float:
    """Time that the means of ours will take, from fitting them to a few rows.

    A regressor of the user's is not counted: nobody knows how its time grows.
    """
    few, n = table.rows[:TIMED_ROWS], len(folds[0][0])
    growth: dict[str, Callable[[int], float]] = {
        "linear": float,
        "trees": _tree_work,
        "gaussian process": lambda n: 5.0 + (min(n, MOST_ROWS_OF_A_PROCESS) / TIMED_ROWS) ** 3,
    }
    total = 0.0
    for name in (mean for mean in means if isinstance(mean, str) and mean in growth):
        start = time.perf_counter()
        FITS[name](table.X[few], table.y[few], None, 0)
        seconds = time.perf_counter() - start
        total += seconds * growth[name](n) / growth[name](len(few))
    return total * (len(folds) / threads + 1)


def _tree_work(n: int) -> float:
    """What trees of n rows cost, up to a factor."""
    rows = min(n, MOST_ROWS_OF_A_TREE)
    return _tree_count(n) * rows * float(np.log2(rows + 1))


_OfFold = tuple[Array, Array, Array | None]  # means of the rows left out and later; their values


@dataclass(frozen=True)
class _Fit:
    """A mean that is fitted without each fold, and then, if it is needed, to all rows."""

    mean: Any
    held_out: OutOfFold
    folds: Folds
    seed: int

    @property
    def name(self) -> str:
        """Of its candidate."""
        return self.mean if isinstance(self.mean, str) else type(self.mean).__name__

    def fitted(self, rows: fleet.Rows) -> Any:
        """To these rows."""
        table = self.held_out.table
        weight = None if table.weight is None else table.weight[rows]
        fit = FITS.get(self.name) or _given(self.mean)
        return fit(table.X[rows], table.y[rows], weight, self.seed)

    def refit(self) -> Mean:
        """To all rows."""
        mean: Mean = self.fitted(self.held_out.table.rows)
        return mean

    def without(self, fold: int) -> _OfFold:
        """What it predicts of the rows that a fold leaves out."""
        table, bounded = self.held_out.table, self.held_out.bounded
        train, test = self.folds[fold]
        model = self.fitted(train)
        predicted = self._means(model, test)
        later = self._means(model, self.held_out.later[fold])
        if isinstance(model, Forest):
            count = TREE_VALUES if len(table.rows) < FEW_ROWS else TREE_VALUES_OF_MANY
            return predicted, later, bounded(model.thinned(count).values(table.X[test]))
        if isinstance(model, GivenRegressor) and model.has_density:
            return predicted, later, bounded(_quantiles(self.name, model, table.X[test]))
        return predicted, later, None

    def _means(self, model: Any, rows: fleet.Rows) -> Array:
        if not len(rows):
            return np.zeros(0)
        predicted = model.predict(self.held_out.table.X[rows])
        return self.held_out.bounded(_checked(self.name, predicted, len(rows)))

    def candidate(self, done: Sequence[_OfFold]) -> Candidate:
        """What all folds make of it."""
        means, later, values = zip(*done, strict=True)
        predicted = self.held_out.average(means)
        sampled = None if values[0] is None else self.held_out.of_last(values)
        rmse = self.held_out.rmse(predicted)
        return Candidate(self.name, predicted, rmse, refit=self.refit, values=sampled, later=later)


def _without_fold(fits: Sequence[_Fit], task: tuple[int, int]) -> _OfFold:
    number, fold = task
    return fits[number].without(fold)


def _checked(name: str, predicted: Any, n: int) -> Array:
    values = np.asarray(predicted, dtype=np.float64)
    if values.shape != (n,) or not np.isfinite(values).all():
        what = f"shape {values.shape}" if values.shape != (n,) else "values that are not finite"
        raise ValueError(
            f"candidates: {name} predicts {what} for {n} rows: it must give one finite number each."
        )
    return values


def _quantiles(name: str, model: GivenRegressor, X: NDArray[Any]) -> Array:
    """Quantiles of the distribution that a regressor of the user's predicts, checked."""
    try:
        values = model.quantiles(X)
    except Exception as error:  # whatever somebody else's estimator raises, or gives
        raise ValueError(
            f"candidates: the distribution that {name} predicts is of no use ({error}): mend it, "
            "or give a regressor without predict_dist and return_std."
        ) from error
    if values.shape[1:] != (len(X),) or not np.isfinite(values).all():
        raise ValueError(
            f"candidates: the distribution that {name} predicts has quantiles of shape "
            f"{values.shape} for {len(X)} rows, or some that are not finite: mend it, or give a "
            "regressor without predict_dist and return_std."
        )
    return values


def _linear(X: NDArray[Any], y: Array, weight: Array | None, _: int) -> Linear:
    """Ridge regression; its penalty by leave-one-out."""
    X = np.asarray(X, dtype=np.float64)
    center, scale = center_and_scale(X)
    ridge = RidgeCV(LINEAR_PENALTIES).fit((X - center) / scale, y, sample_weight=weight)
    coefficients = ridge.coef_ / scale
    return Linear(coefficients, float(ridge.intercept_ - center @ coefficients))


def _trees(X: NDArray[Any], y: Array, weight: Array | None, seed: int) -> Forest:
    """Extremely randomised trees: fewer where each is large."""
    n, center, scale = len(y), float(y.mean()), float(y.std()) or 1.0
    seeds = np.random.default_rng(seed).integers(2**64, size=_tree_count(n), dtype=np.uint64)
    drawn = MOST_ROWS_OF_A_TREE if n > MOST_ROWS_OF_A_TREE else 0
    weight = None if weight is None else weight / weight.mean()
    return Forest.grown(X, (y - center) / scale, weight, seeds, drawn, center, scale)


def _tree_count(n: int) -> int:
    return next((count for count, most in TREES if n <= most), FEWEST_TREES)


FITS = {"linear": _linear, "trees": _trees, "gaussian process": gaussian_process_fit.fit}


def _given(estimator: Any) -> Callable[..., Any]:
    """How a regressor of the user's is fitted."""

    def fit(X: NDArray[Any], y: Array, weight: Array | None, _: int) -> Any:
        known = {} if weight is None else {"sample_weight": weight}
        if known and not has_fit_parameter(estimator, "sample_weight"):
            known = {}
        try:
            return GivenRegressor(clone(estimator).fit(X, y, **known))
        except Exception as error:  # whatever somebody else's estimator raises
            raise ValueError(
                f"candidates: {type(estimator).__name__} could not be fitted ({error}): mend or "
                "drop it."
            ) from error

    return fit
