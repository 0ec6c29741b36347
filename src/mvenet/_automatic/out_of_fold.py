"""Out-of-fold predictions: of each row by candidates that were not trained on it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvenet._automatic import serial, stacking
from mvenet._automatic.constants import MOST_ROWS_MIXED, PRIOR_ROWS
from mvenet._automatic.kinds import Folds, NetworkKind
from mvenet._models import mixture
from mvenet._models.interface import Mean
from mvenet._models.mixture import LARGEST_LOG_MULTIPLE, MULTIPLES, WIDEST_LOG, Shape
from mvenet._models.networks import Networks
from mvenet._models.noise import Noise
from mvenet._models.seen import SOON, Range
from mvenet._training import fleet
from mvenet._training.dependence import independent
from mvenet._training.plan import Table
from mvenet.distributions import NormalMixture

Array = NDArray[np.float64]


@dataclass(eq=False)
class Candidate:
    """What a search may use: a mean, a noise or both, with out-of-fold predictions.

    Attributes
    ----------
    name : str
    mean : ndarray of shape (n,)
        Out of fold; that of a noise without a mean of its own is the blend.
    error : float
        Root mean square of the mean's, out of fold.
    log_std : ndarray of shape (n,) or None
        Out of fold; None if it is a mean only.
    encoded : bool
        Whether it reads encoded columns.
    joint : bool
        Whether it is a noise with a mean of its own.
    kind : NetworkKind or None
        How to train it again.
    networks : Networks or None
        Those of the folds, if it is made of networks.
    refit : callable or None
        If it is not: how to fit it to all rows.
    values : ndarray of shape (k, n) or None
        Out of fold, values that a row may have; None if it names none.
    later : sequence of ndarray or None
        For each fold, means of the rows of :attr:`OutOfFold.later`, by what was trained without
        it and them; None if it has no mean to blend.
    share : float or None
        In the blended mean; None if it has no mean to blend.
    shape, weights : Shape and ndarray, or None
        As a noise of the mixture: scale of its standard deviations, and weight of each multiple.
    """

    name: str
    mean: Array
    error: float
    log_std: Array | None = None
    encoded: bool = False
    joint: bool = False
    kind: NetworkKind | None = None
    networks: Networks | None = None
    refit: Callable[[], Mean] | None = None
    values: Array | None = None
    later: Sequence[Array] | None = None
    share: float | None = None
    shape: Shape | None = None
    weights: Array | None = None

    @property
    def weight(self) -> float:
        """In the mixture."""
        return 0.0 if self.weights is None else float(self.weights.sum())

    def as_noise(self, networks: Networks, shape: Shape) -> Noise:
        """The noise of a model, with these networks and this shape."""
        assert self.weights is not None
        return Noise(networks, self.encoded, self.joint, shape, self.weights)


@dataclass(frozen=True)
class Prediction:
    """What a mixture predicts out of fold; NaN for rows that no fold leaves out.

    ``typical_std`` is that of a normal whose 90 % interval is as wide as the mixture's in a typical
    row, on the scale of the model. ``below`` and ``up_to`` are the probabilities below each outcome
    and up to it.
    """

    mean: Array
    std: Array
    log_density: Array
    typical_std: float
    below: Array
    up_to: Array

    @property
    def pit(self) -> Array:
        """Both, of shape (n, 2)."""
        return np.column_stack([self.below, self.up_to])

    def times(self, unit: float) -> Prediction:
        """The same of a y that is so many times as large."""
        density = self.log_density - np.log(unit)
        return replace(self, mean=unit * self.mean, std=unit * self.std, log_density=density)


class OutOfFold:
    """The rows that folds leave out, and how candidates are compared on them.

    With ``log``, the table is of log y, and so are all predictions but the mixture's moments and
    densities.
    """

    def __init__(self, table: Table, folds: Folds, log: bool) -> None:
        self.table, self.log, self._given = table, log, folds
        self.in_time = table.dependence is not None and table.dependence.time is not None
        self._memory = 1.0  # rows in time that say as much as an independent one
        self.count = np.zeros(len(table.y))
        for _, test in folds:
            np.add.at(self.count, test, 1)
        self.rows = np.flatnonzero(self.count)
        # Residuals to learn the noise from: those of all other rows that some fold leaves out.
        self.folds = [(np.setdiff1d(self.rows, test), test) for _, test in folds]
        if min(len(train) for train, _ in self.folds) < 2:
            remedy = "at least two folds, such as KFold(5)"
            if self.in_time:
                remedy = "time with more different moments, or a longer horizon"
            raise ValueError(
                f"cv leaves {len(self.rows)} rows out, too few to learn the noise from: use "
                f"{remedy}."
            )
        self.weight = np.ones(len(self.rows)) if table.weight is None else table.weight[self.rows]
        known = Range.of(table.source[table.rows], table.y[table.rows], 0.0)
        self._limits = known.limits(log) if log else (-np.inf, np.inf)

    def bounded(self, means: Array) -> Array:
        """Means within the model's limits: on the log scale a single one could outweigh all."""
        return np.clip(means, *self._limits)

    @property
    def _time(self) -> Array:
        """When each row of the table was, if rows are in time."""
        tied = self.table.dependence
        assert tied is not None
        assert tied.time is not None
        return tied.time

    @cached_property
    def _reached(self) -> tuple[Array, Array]:
        """How far the rows that a fold leaves out lie below and above those that it trains on.

        Both (folds, columns), and none below zero.
        """
        source = self.table.source
        known = np.array([[source[t].min(axis=0), source[t].max(axis=0)] for t, _ in self._given])
        new = np.array([[source[t].min(axis=0), source[t].max(axis=0)] for _, t in self._given])
        below, above = known[:, 0] - new[:, 0], new[:, 1] - known[:, 1]
        return np.maximum(below, 0.0), np.maximum(above, 0.0)

    @property
    def beyond(self) -> tuple[Array, Array]:
        """How far, column by column, rows left out lie below and above those trained on.

        Zero unless rows follow each other in time: later rows then lie beyond earlier ones by their
        nature, and the errors of rows left out already include what that costs.
        """
        if not self.in_time:
            none = np.zeros(self.table.source.shape[1])
            return none, none
        below, above = self._reached
        return below.max(axis=0), above.max(axis=0)

    @property
    def pace(self) -> Array:
        """One over how far a column goes in a typical fold; zero if it does not drift in time."""
        none = np.zeros(self.table.source.shape[1])
        if not self.in_time:
            return none
        step = np.median(np.maximum(*self._reached), axis=0)
        drifts = step > SOON * np.ptp(self.table.source[self.table.rows], axis=0)
        pace: Array = np.divide(1.0, np.maximum(step, 1e-300), out=none, where=drifts)
        return pace

    @cached_property
    def later(self) -> list[fleet.Rows]:
        """Rows left out by later folds than each; none unless rows follow each other in time."""
        if not self.in_time:
            return [self.rows[:0] for _ in self.folds]
        moments = self._time[self.rows]
        return [
            np.setdiff1d(self.rows[moments > self._time[test].max()], train)
            for train, test in self._given
        ]

    def trained_on(self, fold: int) -> fleet.Rows:
        """The rows that a fold trains on."""
        return self._given[fold][0]

    def standard_error(self, values: Array) -> float:
        """Of the mean of values of the rows left out; a group counts as one observation.

        In time, so does a run of rows whose values are alike (:func:`serial.memory`).
        """
        centred = values - np.average(values, weights=self.weight)
        tied = self.table.dependence
        if tied is not None and tied.groups is not None:
            sums = np.bincount(tied.groups[self.rows], weights=self.weight * centred)
            return float(np.sqrt(np.sum(sums**2)) / self.weight.sum())
        count = len(values) / (serial.memory(centred[self._in_order]) if self.in_time else 1.0)
        return float(np.sqrt(np.average(centred**2, weights=self.weight) / count))

    @cached_property
    def _in_order(self) -> NDArray[np.int64]:
        """Places of the rows left out, in the order of time."""
        return np.argsort(self._time[self.rows], kind="stable")

    @property
    def unit_of(self) -> NDArray[np.int64]:
        """Number of the unit of each row left out: its group, or in time its block of rows.

        A block has as many rows as say as much as an independent one.
        """
        tied = self.table.dependence
        if tied is None or tied.groups is None:
            block = np.empty(len(self.rows), dtype=np.int64)
            order = self._in_order if self.in_time else np.arange(len(self.rows))
            block[order] = np.arange(len(self.rows)) // math.ceil(self._memory)
            return block
        return np.asarray(np.unique(tied.groups[self.rows], return_inverse=True)[1].ravel())

    def units(self, rows: NDArray[np.int64]) -> int:
        """How many independent units these rows are: groups; in time, as the errors remember."""
        tied = self.table.dependence
        if tied is not None and tied.groups is None and tied.time is not None:
            return max(1, round(len(rows) / self._memory))
        return independent(tied, rows)

    @property
    def rows_per_unit(self) -> float:
        """Rows of an independent unit on average; one if rows are independent."""
        return len(self.rows) / self.units(self.rows)

    @property
    def caution(self) -> float:
        """How much wider a distribution must be because few units tell how much they differ.

        Their spread is known from so many groups, or times, and so is the middle that they differ
        from: the interval of a new one is that of Student's t. One of independent rows, of which
        there are many.
        """
        from scipy.special import ndtri, stdtrit

        units = max(self.units(self.rows), 2)
        if units >= len(self.rows):
            return 1.0
        heavier = stdtrit(units - 1, 0.95) / ndtri(0.95)
        return float(heavier * np.sqrt(1.0 + 1.0 / units))

    def average(self, values: Sequence[Array]) -> Array:
        """From the values of each fold's rows to one for each row; zero for rows never left out."""
        total = np.zeros(len(self.count))
        for (_, test), value in zip(self.folds, values, strict=True):
            total[test] += value
        return total / np.maximum(self.count, 1)

    def of_last(self, values: Sequence[Array]) -> Array:
        """From several values of each fold's rows, (k, n), to those of the last that left it out.

        An average of two folds' values would be a value that no row has.
        """
        whole = np.zeros((len(values[0]), len(self.count)))
        for (_, test), several in zip(self.folds, values, strict=True):
            whole[:, test] = several
        return whole

    def rmse(self, mean: Array) -> float:
        """Root mean squared error of the rows left out."""
        error = (self.table.y - mean)[self.rows]
        return float(np.sqrt(np.average(error**2, weights=self.weight)))

    def as_candidate(
        self,
        name: str,
        trained: fleet.Fleet,
        X: NDArray[Any],
        *,
        encoded: bool,
        joint: bool = False,
        blended: Array | None = None,
        kind: NetworkKind | None = None,
    ) -> Candidate:
        """Networks that were trained on columns X, one or more a fold, as a candidate.

        ``blended`` is the mean of networks that learned only the noise; with neither that nor
        ``joint`` they have learned only the mean.
        """
        means, logs, further, k = [], [], [], len(self.folds)
        for fold, (_, test) in enumerate(self.folds):
            mean, std = trained.networks[fold::k].predict(np.ascontiguousarray(X[test]))
            means.append(self.bounded(mean.mean(axis=0)))
            logs.append(np.log(std).mean(axis=0))
            if len(after := self.later[fold]):
                mean, _ = trained.networks[fold::k].predict(np.ascontiguousarray(X[after]))
                further.append(self.bounded(mean.mean(axis=0)))
            else:
                further.append(np.zeros(0))
        mean = self.average(means) if blended is None else blended
        noisy = joint or blended is not None
        return Candidate(
            name,
            mean,
            self.rmse(mean),
            log_std=self.average(logs) if noisy else None,
            encoded=encoded,
            joint=joint,
            kind=kind,
            networks=trained.networks,
            later=further,
        )

    def blend(self, candidates: Sequence[Candidate]) -> Array:
        """Give each of the candidates its share in the blended mean, and return that mean.

        In time, the mean of a stretch is blended by the shares of the others: the errors of a few
        stretches are few, and shares that these have chosen themselves would make them too small.
        """
        means = np.array([candidate.mean for candidate in candidates])
        shares = stacking.blend(means[:, self.rows], self.table.y[self.rows], self.weight)
        for candidate, share in zip(candidates, shares.tolist(), strict=True):
            candidate.share = share
        blended: Array = shares @ means
        for others, test in self.folds if self.in_time else ():
            weight = (
                np.ones(len(others)) if self.table.weight is None else self.table.weight[others]
            )
            own = stacking.blend(means[:, others], self.table.y[others], weight)
            blended[test] = own @ means[:, test]
        return blended

    def mix(self, candidates: Sequence[Candidate], entropy: Any) -> Prediction:
        """Give each of the candidates its shape and weights in the mixture, and predict by it."""
        rows, y = self.rows, self.table.y[self.rows]
        few = np.arange(len(rows))
        if len(rows) > MOST_ROWS_MIXED:
            rng = np.random.default_rng(fleet.derived_seed(entropy, 2, 0, 0))
            few = np.sort(rng.permutation(len(rows))[:MOST_ROWS_MIXED])
        widest = WIDEST_LOG if self.log else float(np.ptp(y)) or np.inf
        largest = LARGEST_LOG_MULTIPLE if self.log else np.inf
        bounds = stacking.floor(y), widest
        means, log_stds = np.array([candidate.mean[rows] for candidate in candidates]), []
        for candidate, mean in zip(candidates, means, strict=True):
            assert candidate.log_std is not None
            log_std = candidate.log_std[rows]
            shape = stacking.shape((y - mean)[few], log_std[few], self.weight[few], *bounds)
            log_stds.append(shape.applied(log_std))
            candidate.shape = shape
        widths = np.array(log_stds)
        if self.in_time:
            self._memory = serial.memory((y - means.mean(axis=0))[self._in_order])
        given = y[few], means[:, few], widths[:, few], self.weight[few]
        weights = stacking.mix(*given, largest, PRIOR_ROWS * self.rows_per_unit)
        for candidate, some in zip(candidates, weights, strict=True):
            candidate.weights = some
        return self._predicted(means, widths, weights, few)

    def _predicted(
        self, means: Array, log_stds: Array, weights: Array, few: NDArray[np.int64]
    ) -> Prediction:
        y = self.table.y[self.rows]
        density = mixture.log_density(y, means, log_stds, weights) - (y if self.log else 0.0)
        owner, multiple = np.nonzero(weights)
        stds, kept = np.exp(log_stds[owner]) * MULTIPLES[multiple, None], weights[owner, multiple]
        typical = typical_std(NormalMixture(means[owner][:, few], stds[:, few], kept))
        mean, std = mixture.moments(means[owner], stds, kept, self.log)
        below = NormalMixture(means[owner], stds, kept).cdf(y)
        mean, std, density, below = map(self.everywhere, (mean, std, density, below))
        return Prediction(mean, std, density, typical, below, below)

    def everywhere(self, values: Array) -> Array:
        """From values of the rows left out to one for each row, NaN for the others."""
        whole = np.full(len(self.count), np.nan)
        whole[self.rows] = values
        return whole


NINE_IN_TEN = 3.289707253902944  # width of the central 90 % of a standard normal


def typical_std(dist: NormalMixture) -> float:
    """Standard deviation of a normal whose 90 % interval is as wide as that of a typical row."""
    ends = dist[:: max(1, len(dist) // 1_000)].interval(0.9)
    return float(np.median(ends[:, 1] - ends[:, 0])) / NINE_IN_TEN
