"""Networks scored on the rows that their folds left out, after one factor on their std."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from mvenet._models import student
from mvenet._models.networks import Networks, join
from mvenet._training import fleet
from mvenet.distributions import Normal, NormalMixture

Array = NDArray[np.float64]


@dataclass(frozen=True)
class PairScore:
    """Mean score of the rows that each fold left out, and the factor used for it."""

    fold_scores: Array
    scale: float

    @property
    def score(self) -> float:
        """Mean over the folds."""
        return float(self.fold_scores.mean())


class LeftOut:
    """The rows that each fold left out, to score the networks that were trained without them."""

    def __init__(
        self,
        X: NDArray[Any],
        y: Array,
        weight: Array | None,
        folds: list[tuple[fleet.Rows, fleet.Rows]],
        df: float | None = None,
    ) -> None:
        self.df = df
        self.rows = [test for _, test in folds]
        self.X = [np.ascontiguousarray(X[test]) for test in self.rows]
        self.y = [y[test] for test in self.rows]
        self.weight = [np.ones(len(r)) if weight is None else weight[r] for r in self.rows]

    def predict(self, groups: list[Networks], factor: float = 1.0) -> list[NormalMixture]:
        """Mixture of the groups' networks of each fold, on the rows that it left out."""
        return [
            self._mixture(join([g[[fold]] for g in groups]), X, factor)
            for fold, X in enumerate(self.X)
        ]

    def _mixture(self, networks: Networks, X: NDArray[Any], factor: float) -> NormalMixture:
        means, stds = networks.predict(X)
        if self.df is None:
            return NormalMixture(means, factor * stds)
        return NormalMixture(*student.spread(means, factor * stds, self.df))

    def score(self, groups: list[Networks], scale: bool, scoring: str) -> PairScore:
        """Scores of groups of networks, one a fold in each, after the best factor if asked."""
        predicted = self.predict(groups)
        factor = best_factor(predicted, self.y, self.weight) if scale else 1.0
        return PairScore(_fold_scores(predicted, self.y, self.weight, factor, scoring), factor)

    def moments(self, groups: list[Networks], factor: float, n: int) -> tuple[Array, Array, Array]:
        """Mean, standard deviation and probability below y, for each of n rows.

        Averaged if it was left out more than once.
        """
        count = np.zeros(n)
        for rows in self.rows:
            count[rows] += 1
        mean, std, below = (np.where(count > 0, 0.0, np.nan) for _ in range(3))
        for rows, y, scaled in zip(self.rows, self.y, self.predict(groups, factor), strict=True):
            mean[rows] += scaled.mean / count[rows]
            std[rows] = np.hypot(std[rows], scaled.std / np.sqrt(count[rows]))  # no overflow
            below[rows] += scaled.cdf(y) / count[rows]
        return mean, std, below


def best_factor(
    predicted: Sequence[Normal | NormalMixture], y: Sequence[Array], weight: Sequence[Array]
) -> float:
    """The factor on all standard deviations that maximises the likelihood, fold by fold given.

    For single networks it is the root mean square of the standardised residuals. For several it
    is a weighted one over the members, so it lies between that of each row's smallest and that
    of its largest.
    """
    weights = np.concatenate(weight)
    bounds = []
    for extreme in (np.min, np.max):
        rows = [
            extreme(np.abs(t - d.means) / d.stds, axis=0) for d, t in zip(predicted, y, strict=True)
        ]
        mean = float(np.sqrt(np.average(np.concatenate(rows) ** 2, weights=weights)))
        bounds.append(max(mean, np.finfo(np.float64).tiny))
    low, high = bounds
    if high <= low * (1 + 1e-12):
        return low
    sizes = np.array([w.sum() for w in weight])
    found = minimize_scalar(
        lambda log: -np.average(_fold_scores(predicted, y, weight, np.exp(log)), weights=sizes),
        bounds=(np.log(low), np.log(high)),
        method="bounded",
        options={"xatol": 1e-4},
    )
    return float(np.exp(found.x))


def _fold_scores(
    predicted: Sequence[Normal | NormalMixture],
    y: Sequence[Array],
    weight: Sequence[Array],
    factor: float,
    scoring: str = "nll",
) -> Array:
    """Mean score of each fold's rows after a factor on the standard deviations; high is good."""
    scores = []
    for d, t, w in zip(predicted, y, weight, strict=True):
        scaled = NormalMixture(d.means, factor * d.stds, d.weights)
        rows = scaled.logpdf(t) if scoring == "nll" else -scaled.crps(t)
        scores.append(np.average(rows, weights=w))
    return np.array(scores)
