"""The model that out-of-fold predictions have put together: a blended mean, and a mixture.

The mean is a weighted average of networks, a linear model, trees and whatever else was tried. The
predictive distribution is a mixture of normals: each noise brings a mean (the blend, or its own if
its networks learned both together) and a standard deviation for each row, which enters with several
multiples, so that tails may be heavier than a normal's.

A row with cells that are not known (NaN) is predicted with those of training rows like it, and
wider by how they differ (:mod:`mvenet._models.unknown`).

Away from the training rows it is careful. The columns are bounded before any network sees them.
What lies outside the range of the training rows gets a wider distribution (:mod:`mvenet._models
.seen`). The mean never leaves the range of y by more than once its length, and no component is
wider than that length.

A mixture may have a free shape (:mod:`mvenet._models.free_shape`): further components around values
that similar rows had, weights that differ from row to row, and values with a probability of
their own.

On the log scale all of this holds for log y, and the mixture is one of log-normals. A member's
median then is at most twice the largest y, and its standard deviation at most ``WIDEST_LOG`` before
the multiple, which is at most ``LARGEST_LOG_MULTIPLE``: the mean of y is never above 25 times the
largest y, nor its standard deviation above 300 times.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvenet._models import mixture
from mvenet._models.checks import check_array, check_fields, check_number, check_part, require
from mvenet._models.free_shape import Atoms, Ends, FreeShape, GivenQuantiles
from mvenet._models.interface import Mean
from mvenet._models.means import GivenRegressor, MeanOfNoise
from mvenet._models.mixture import WIDEST_LOG
from mvenet._models.networks import Networks
from mvenet._models.noise import Noise
from mvenet._models.piecewise import Piecewise
from mvenet._models.remembering import Remembers
from mvenet._models.seen import Range
from mvenet._models.unknown import averaged, check_donors, completed, nearest_to
from mvenet._utils.sums import average, between, confine, variance
from mvenet.distributions import Bounded, LogNormalMixture, NormalMixture, WithAtoms

Array = NDArray[np.float64]
ROWS_AT_ONCE = 8_192
MARGIN = 1.1  # times the largest distance of a training row from others: a row beyond is outside
_TINY = float(np.finfo(np.float64).tiny)
_LARGEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True)
class Composite(Remembers):
    """How columns are read, the means with their shares, and the noise.

    With ``log``, all but the columns is of the logarithm of y. ``unit`` is what y was divided by
    before anything was fitted: one, unless squares of y would overflow or vanish.
    """

    piecewise: Piecewise
    range: Range
    means: tuple[Mean, ...]
    shares: Array
    noises: tuple[Noise, ...]
    log: bool = False
    unit: float = 1.0
    widest: float = np.inf  # of a component; no limit in models of older files
    narrowest: float = 0.0  # half the resolution of y
    free: FreeShape | None = None
    atoms: Atoms | None = None
    donors: Array | None = None  # rows to take unknown cells from; none in models of older files
    farthest: float = np.inf  # distance from them that no training row exceeds
    ends: Ends | None = None  # none in models of older files

    def __post_init__(self) -> None:
        self.check(len(self.range.x_low))

    def __len__(self) -> int:
        """Components of the mixture."""
        return len(self.weights) + (0 if self.free is None else self.free.count)

    @property
    def weights(self) -> Array:
        """Weights of the noises' components, as long as the shape is not free."""
        found = self.remembered()
        if found is None:
            found = self.remember(np.concatenate([noise.kept for noise in self.noises]))
        return found  # type: ignore[no-any-return]

    @property
    def foreign(self) -> bool:
        """Whether a regressor of the user's is part of it: threads may not be able to share it."""
        samplers = () if self.free is None else self.free.samplers
        parts = (*self.means, *samplers)
        return any(isinstance(part, GivenRegressor | GivenQuantiles) for part in parts)

    @property
    def limits(self) -> tuple[float, float]:
        """Between them lies every mean."""
        return self.range.limits(self.log)

    @property
    def unknown_std(self) -> float:
        """Standard deviation that is added far from all training rows."""
        return min(self.range.y_std, WIDEST_LOG) if self.log else self.range.y_std

    def moments(
        self, X: NDArray[Any], *, std: bool = True, threads: int = 1
    ) -> tuple[Array, Array | None]:
        """Mean and standard deviation of each row, of shape (n,), in units of y."""
        mean, deviation = np.empty(len(X)), np.empty(len(X))

        def fill(rows: slice, threads: int) -> None:
            means, stds, weights, unknown = self._components(X[rows], threads)
            found = mixture.moments(means, stds, weights, self.log)
            if self.ends is not None or self.atoms is not None:
                smooth = self._scaled(NormalMixture._owning(means, stds, weights, unknown))
                found = self._ended(smooth, 1.0).moments_from(*found)
            mean[rows], deviation[rows] = found

        self._in_parts(fill, len(X), threads)
        return self.unit * mean, np.maximum(self.unit * deviation, _TINY) if std else None

    def distribution(
        self, X: NDArray[Any], threads: int = 1
    ) -> NormalMixture | LogNormalMixture | Bounded | WithAtoms:
        """Predictive distribution of each row."""
        smooth = self._smooth(X, threads)
        some = self.ends is not None or self.atoms is not None
        return self._ended(smooth, self.unit) if some else smooth

    def _ended(self, smooth: NormalMixture | LogNormalMixture, unit: float) -> Bounded | WithAtoms:
        """With ends and atoms, in such units; one of them at least is there."""
        inside: NormalMixture | LogNormalMixture | Bounded = smooth
        if self.ends is not None:
            assert isinstance(smooth, NormalMixture)
            inside = Bounded(smooth, unit * self.ends.values, unit * self.ends.reach)
        if self.atoms is not None:
            return _with_atoms(inside, self.atoms, unit)
        assert isinstance(inside, Bounded)
        return inside

    def _smooth(self, X: NDArray[Any], threads: int) -> NormalMixture | LogNormalMixture:
        """The distribution before anything is collected at atoms."""
        means, stds, weights, unknown = self._all_components(X, threads)
        if self.log:
            means += float(np.log(self.unit))
            return self._scaled(NormalMixture._owning(means, stds, weights, unknown))
        means *= self.unit
        stds *= self.unit
        np.maximum(stds, _TINY, out=stds)
        with np.errstate(over="ignore"):  # of the largest units, a square is too large for a double
            squared = np.minimum(np.square(self.unit * np.sqrt(unknown)), _LARGEST)
        return self._scaled(NormalMixture._owning(means, stds, weights, squared))

    def _scaled(self, smooth: NormalMixture) -> NormalMixture | LogNormalMixture:
        """The mixture itself, or that of which it is the mixture of the logarithm."""
        return LogNormalMixture._of(smooth) if self.log else smooth

    def _all_components(self, X: NDArray[Any], threads: int) -> tuple[Array, Array, Array, Array]:
        """The components of rows however many, made some at a time."""
        if len(X) <= ROWS_AT_ONCE:
            return self._components(X, threads)
        means, stds = (np.empty((len(self), len(X))) for _ in range(2))
        weights = self.weights if self.free is None else np.empty_like(means)
        unknown = np.empty(len(X))

        def fill(rows: slice, threads: int) -> None:
            means[:, rows], stds[:, rows], own, unknown[rows] = self._components(X[rows], threads)
            if self.free is not None:
                weights[:, rows] = own

        self._in_parts(fill, len(X), threads)
        return means, stds, weights, unknown

    def outside(self, X: NDArray[Any]) -> NDArray[np.bool_]:
        """Which rows are farther from the training rows than any of these is from the others."""
        if self.donors is None or not np.isfinite(self.farthest):
            return np.zeros(len(X), dtype=bool)
        nearest = nearest_to(np.asarray(X, dtype=np.float64), self.donors)
        return np.asarray(nearest > MARGIN * self.farthest)

    def check(self, n_columns: int) -> None:
        """Raise an error if it cannot be a model of so many columns that a fit has made."""
        check_fields(self, Composite)
        require(type(self.log) is bool, "the model is on no known scale")
        check_number(self.unit, "unit")
        require(self.unit > 0 and isinstance(self.widest, float), "the model has no unit")
        require(self.widest > 0, "no component may be wide")
        check_number(self.narrowest, "narrowest", least=0.0)
        require(self.narrowest <= self.widest, "no component may be narrow")
        check_part(self.piecewise, Piecewise, n_columns)
        check_part(self.range, Range, n_columns)
        filled = type(self.means) is tuple and type(self.noises) is tuple
        require(filled and self.means and self.noises, "there is no mean or no noise")
        columns = _Columns(n_columns, n_columns + len(self.piecewise.column), self.noises)
        for noise in self.noises:
            check_part(noise, Noise, columns)
        require(abs(self.weights.sum() - 1) < 1e-6, "the weights are not one in all")
        if self.free is not None:
            check_part(self.free, FreeShape, columns, len(self.weights))
        if self.atoms is not None:
            check_part(self.atoms, Atoms)
        if self.donors is not None:
            check_donors(self.donors, n_columns)
        require(type(self.farthest) is float and self.farthest >= 0, "no row is far from others")
        if self.ends is not None:
            require(not self.log, "a model of the logarithm has ends")
            check_part(self.ends, Ends)
            low, high = self.ends.inner
            clear = self.atoms is None or bool(
                self.atoms.cells[0, 0] >= low and self.atoms.cells[-1, 1] <= high
            )
            require(clear, "ends reach as far as atoms")
        check_array(self.shares, (len(self.means),), "shares", least=0.0)
        for mean in self.means:
            require(hasattr(type(mean), "evaluate"), "something else stands in the place of a mean")
            mean.check(columns)
        # The means are averaged network by network: a start of one beside a start of the other.
        holders = [self.noises[m.number] if type(m) is MeanOfNoise else m for m in self.means]
        counts = {len(holder.networks) for holder in holders if hasattr(holder, "networks")}
        require(len(counts) <= 1, "the means have different numbers of networks")

    def _components(self, X: NDArray[Any], threads: int) -> tuple[Array, Array, Array, Array]:
        """Means, standard deviations and weights of the components; variance that is no noise.

        Of shape (c, n), the weights of shape (c,) if they are the same for all rows; and (n,).
        """
        if self.donors is not None and np.isnan(X).any():
            return self._with_unknown(X, np.isnan(X).any(axis=1), threads)
        inputs = _Inputs(self, X, threads)
        each = np.zeros((1, len(X)))  # with networks, a line for each of them
        for share, part in zip(self.shares, self.means, strict=True):
            each = each + share * part.evaluate(inputs)
        limits, weights = self.limits, self.weights
        blended, disagreement = between(average(each), *limits), variance(each)
        added = self.range.added_variance(X, inputs.clipped, self.unknown_std)
        shape = len(self), len(X)
        means, stds, at = np.empty(shape), np.empty(shape), 0
        root = np.sqrt(added) if added.any() else None  # most rows are like the training rows
        for number, noise in enumerate(self.noises):
            mean, widths = noise.components(inputs, number, blended, limits)
            here = slice(at, at + len(widths))
            means[here] = mean
            stds[here] = widths if root is None else np.hypot(widths, root)
            at = here.stop
        narrowest = max(self.narrowest, _TINY)
        confine(stds[:at], narrowest, self.widest)
        if self.free is not None:
            noises = mixture.moments(means[:at], stds[:at], weights, log=False)
            values, some = means[at:], stds[at:]
            weights = self.free.fill(inputs, *noises, values, some)
            confine(values, *limits)
            if root is not None:
                np.hypot(some, root, out=some)
            confine(some, narrowest, self.widest)
        return means, stds, weights, disagreement + added

    def _with_unknown(
        self, X: NDArray[Any], odd: NDArray[np.bool_], threads: int
    ) -> tuple[Array, Array, Array, Array]:
        """The same where cells of some rows are not known: NaN."""
        assert self.donors is not None
        several, drawn = completed(np.asarray(X[odd], dtype=np.float64), self.donors)
        made = averaged(*self._components(several, threads), drawn)
        if odd.all():
            return made
        others = self._components(np.ascontiguousarray(X[~odd]), threads)
        order = np.argsort(np.concatenate([np.flatnonzero(odd), np.flatnonzero(~odd)]))

        def both(part: int) -> Array:
            return np.concatenate([made[part], others[part]], axis=-1)[..., order]

        weights = made[2] if made[2].ndim == 1 else both(2)
        return both(0), both(1), weights, both(3)

    def _in_parts(self, fill: Callable[[slice, int], None], n: int, threads: int) -> None:
        """Fill in all of n rows, some at a time; with many, each thread rows of its own."""
        parts = [slice(at, at + ROWS_AT_ONCE) for at in range(0, n, ROWS_AT_ONCE)]
        if self.foreign or len(parts) < 2 * threads:
            for rows in parts:
                fill(rows, threads)
            return
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(lambda rows: fill(rows, 1), parts))


def _with_atoms(
    smooth: NormalMixture | LogNormalMixture | Bounded, atoms: Atoms, unit: float
) -> WithAtoms:
    """A distribution with its atoms, in units of y."""
    width = unit * atoms.resolution
    return WithAtoms(smooth, unit * atoms.values, unit * atoms.cells, width)


class _Inputs:
    """The columns of some rows, as the parts read them; each is made once."""

    def __init__(self, model: Composite, X: NDArray[Any], threads: int) -> None:
        self.plain, self.threads, self.piecewise = X, threads, model.piecewise
        self._model = model
        self._joint: dict[int, tuple[Array, Array]] = {}

    @cached_property
    def clipped(self) -> Array:
        """Each column cut to the range of the training rows."""
        return self._model.range.within(self.plain)

    def of_joint(self, number: int) -> tuple[Array, Array]:
        """Means and standard deviations by the networks of a noise that has a mean of its own."""
        if number not in self._joint:
            self._joint[number] = self._model.noises[number].predict(self)
        return self._joint[number]


@dataclass(frozen=True)
class _Columns:
    """What parts are checked against."""

    plain: int
    encoded: int
    noises: tuple[Noise, ...]

    def joint(self, number: int) -> Networks:
        """The networks of a noise with a mean of its own; an error if there is none."""
        known = 0 <= number < len(self.noises) and self.noises[number].joint
        require(known, "there is a mean of noise that is not there")
        return self.noises[number].networks
