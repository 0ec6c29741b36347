"""The rows that folds leave out, judges of an automatic search: what they say of its networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvenet import _stack, fleet
from mvenet._composite import Noise
from mvenet._families import Family, Folds
from mvenet._plan import Request, Table
from mvenet._stack import LARGEST_LOG_MULTIPLE, WIDEST_LOG

Array = NDArray[np.float64]
MOST_ROWS = 50_000  # that shape and weights are fitted on


@dataclass(frozen=True)
class Group:
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


class Evidence:
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
    ) -> list[Group]:
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
                found.append(Group(family, pair, networks, mean, log_std, self.rmse(mean)))
        return found

    def blend(self, means: Array) -> Array:
        """Shares of means (c, n) in their blend."""
        return _stack.blend(means[:, self.rows], self.table.y[self.rows], self.weight)

    def rmse(self, mean: Array) -> float:
        """Root mean squared error of the rows left out."""
        error = (self.table.y - mean)[self.rows]
        return float(np.sqrt(np.average(error**2, weights=self.weight)))

    def mixture(
        self, groups: Sequence[Group], entropy: Any
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
