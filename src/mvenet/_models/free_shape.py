"""Shapes that no normal around one mean has: values that rows like this one had, atoms and ends.

Trees that are grown to the end name, each, the outcome of a training row that is much like the row
in question; together they are draws from its distribution, with as many modes as that has. A normal
of some width around each makes a density of them. The quantiles of all training rows, whatever the
columns say, are another such list, and so is a single value that many rows share. Residuals are a
list of their own: the mean of a row plus what residuals of other rows are, in standard deviations.
Skewed noise, or noise of several modes, has that shape in every row. Where some values stand alone,
such as zero rain, they are residuals of the rest, and a hurdle says how probable each atom is.

How much each of these and of the noises weighs depends on the row: on how far its trees disagree.
Where a training row is a near twin, they all name it; where no row is near, they name anything.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mvenet._models.checks import (
    check_array,
    check_fields,
    check_number,
    check_part,
    require,
    shape_of,
)
from mvenet._models.forest import Forest
from mvenet._models.interface import Columns, Inputs, Sampler
from mvenet._models.means import GIVEN_QUANTILES, GivenRegressor
from mvenet._models.seen import WIDEST
from mvenet._utils.sums import average, total
from mvenet.distributions._atoms import nothing_between

Array = NDArray[np.float64]
# Far more than a fit makes: a small file could otherwise ask for any amount of memory.
MOST_COMPONENTS = 4_096
MOST_ATOMS = 4_096
MOST_DEVIATIONS = 1e6  # of a residual
# Share of the standard deviation that is left without atoms, at least: what is left of a variance
# is a difference, and where nearly all is at atoms it may be next to nothing by chance.
NARROWEST_REST = 0.4


@dataclass(frozen=True)
class TreeValues:
    """The prediction of each of some trees."""

    forest: Forest

    def __len__(self) -> int:
        return len(self.forest.starts) - 1

    def draws(self, inputs: Inputs) -> Array:
        """The values for each row, of shape (k, n)."""
        return self.forest.values(inputs.clipped, inputs.threads)

    def check(self, columns: Columns) -> None:
        """Raise an error if a fit cannot have made it."""
        check_fields(self, TreeValues)
        require(type(self.forest) is Forest, "something else stands in the place of Forest")
        self.forest.check(columns)


@dataclass(frozen=True)
class Constant:
    """Values that are the same for every row: quantiles of y, or an atom."""

    values: Array

    def __len__(self) -> int:
        return len(self.values)

    def draws(self, inputs: Inputs) -> Array:
        """The values for each row, of shape (k, n)."""
        return np.repeat(self.values[:, None], len(inputs.plain), axis=1)

    def check(self, columns: Columns) -> None:
        """Raise an error if a fit cannot have made it."""
        check_fields(self, Constant)
        count = shape_of(self.values, 1, "the values of a constant list are no list")
        require(count[0] > 0, "a constant list has no values")
        check_array(self.values, count, "values of a constant list")


@dataclass(frozen=True)
class GivenQuantiles:
    """Quantiles of what a regressor of the user's predicts, as a distribution."""

    regressor: GivenRegressor

    def __len__(self) -> int:
        return GIVEN_QUANTILES

    def draws(self, inputs: Inputs) -> Array:
        """The values for each row, of shape (k, n)."""
        return self.regressor.quantiles(inputs.clipped)

    def check(self, columns: Columns) -> None:
        """Raise an error if a fit cannot have made it."""
        check_fields(self, GivenQuantiles)
        given = type(self.regressor) is GivenRegressor
        require(given, "something else stands in the place of GivenRegressor")
        self.regressor.check(columns)


@dataclass(frozen=True)
class Hurdle:
    """Atoms that stand alone: how probable each is for a row, and where the rest then lies.

    The noises' mean is one of all rows, those at the atoms included: what is left of it without
    them is the mean of the rest. The probability of an atom is the share of trees that name it,
    drawn to how frequent it is in all rows.

    Attributes
    ----------
    values : ndarray of shape (a,)
        On the scale of the model, as the cells.
    cells : ndarray of shape (a, 2)
    usual : ndarray of shape (a,)
        Share of all rows.
    trees : float
        How many trees that share of all rows counts as.
    """

    values: Array
    cells: Array
    usual: Array
    trees: float

    @property
    def widths(self) -> Array:
        """Standard deviations of normals that are within the cells, (a,)."""
        reach = np.abs(self.cells - self.values[:, None])
        least: Array = np.where(np.isfinite(reach), 0.1 * reach, np.inf).min(axis=1)
        return least

    def probabilities(self, draws: Array) -> Array:
        """Of each atom in each row, (a, n), from the trees' values, (k, n)."""
        named = np.array([((a <= draws) & (draws <= b)).sum(axis=0) for a, b in self.cells])
        found: Array = (named + self.trees * self.usual[:, None]) / (len(draws) + self.trees)
        return found

    def rest(self, probabilities: Array, location: Array, scale: Array) -> tuple[Array, Array]:
        """Mean and standard deviation of what is no atom, from those of all."""
        left = 1.0 - total(probabilities)
        apart = self.values[:, None] - location
        shift = -total(probabilities * apart) / left
        between = total(probabilities * np.square(apart / scale))
        square = (1.0 - between) / left - np.square(shift / scale)
        return location + shift, scale * np.sqrt(np.maximum(square, NARROWEST_REST**2))

    def check(self) -> None:
        """Raise an error if a fit cannot have made it."""
        check_fields(self, Hurdle)
        count = shape_of(self.values, 1, "the atoms of a hurdle are no list")
        require(0 < count[0] <= MOST_ATOMS, "a hurdle has no atoms, or more than a fit finds")
        check_array(self.values, count, "atoms of a hurdle")
        check_array(self.usual, count, "shares of a hurdle", above=0.0)
        require(self.usual.sum() < 1, "a hurdle leaves nothing")
        cells = shape_of(self.cells, 2, "the cells of a hurdle are no pairs")
        usual = self.cells.dtype.str == "<f8" and self.cells.flags.c_contiguous
        require(cells == (*count, 2) and usual, "a hurdle has other cells")
        low, high = self.cells.T
        inside = (low < self.values).all() and (self.values < high).all()
        require(inside and np.isfinite(self.widths).all(), "an atom of a hurdle is outside")
        check_number(self.trees, "trees of a hurdle")
        require(0 < self.trees <= MOST_DEVIATIONS, "a hurdle counts no trees, or too many")


@dataclass(frozen=True)
class Residuals:
    """What residuals of other rows are, in standard deviations of the noises' mixture.

    Attributes
    ----------
    quantiles : ndarray of shape (r,)
        From the mixture's mean.
    widths : ndarray of shape (w,)
        Standard deviations of the normals around them, as shares of the mixture's.
    hurdle : Hurdle or None
        If there is one, residuals are those of rows that are no atom, from the mean of the rest.
    """

    quantiles: Array
    widths: Array
    hurdle: Hurdle | None = None

    @property
    def count(self) -> int:
        """Components."""
        atoms = 0 if self.hurdle is None else len(self.hurdle.values)
        return (len(self.quantiles) + atoms) * len(self.widths)

    def components(self, draws: Array, location: Array, scale: Array) -> tuple[Array, Array, Array]:
        """Means, widths and shares of its components, (w, c, n): with each width one in all.

        ``draws`` are values of the first sampler; location and scale those of the noises' mixture.
        """
        atoms = 0 if self.hurdle is None else len(self.hurdle.values)
        shape = (len(self.widths), atoms + len(self.quantiles), len(location))
        means, stds, shares = np.empty(shape), np.empty(shape), np.empty(shape)
        left: float | Array = 1.0
        if self.hurdle is not None:
            chances = self.hurdle.probabilities(draws)
            location, scale = self.hurdle.rest(chances, location, scale)
            left = 1.0 - total(chances)
            means[:, :atoms] = self.hurdle.values[:, None]
            stds[:, :atoms] = self.hurdle.widths[:, None]
            shares[:, :atoms] = chances
        means[:, atoms:] = location + self.quantiles[:, None] * scale
        stds[:, atoms:] = (self.widths[:, None] * scale)[:, None]
        shares[:, atoms:] = left / len(self.quantiles)
        return means, stds, shares

    def check(self) -> None:
        """Raise an error if a fit cannot have made it."""
        check_fields(self, Residuals)
        for name, part in (("residuals", self.quantiles), ("widths of residuals", self.widths)):
            count = shape_of(part, 1, f"{name} are no list")
            require(count[0] > 0, f"there are no {name}")
            check_array(part, count, name)
            usual = np.abs(part).max() <= MOST_DEVIATIONS
            require(usual, "a residual is farther away than any that a fit keeps")
        require((self.widths > 0).all(), "widths of residuals are not positive")
        if self.hurdle is not None:
            check_part(self.hurdle, Hurdle)


@dataclass(frozen=True)
class FreeShape:
    """Lists of values, the widths of normals around them, and the weights of all components.

    Attributes
    ----------
    samplers : tuple of Sampler
        The standard deviation of the first one's values for a row decides which weights apply.
    widths : tuple of ndarray of shape (w, 1) or (w, k)
        Standard deviations of the normals around the values of each sampler: w of them for all of
        its values, or for each of its k.
    ends : ndarray of shape (bins - 1,)
        Standard deviations of the first sampler's values between which rows share their weights.
    weights : ndarray of shape (bins, groups)
        Of the noises' components, then of each sampler with each of its widths, then of the
        residuals with each of theirs, in all one. What is in a group shares its weight equally.
    residuals : Residuals or None
    """

    samplers: tuple[Sampler, ...]
    widths: tuple[Array, ...]
    ends: Array
    weights: Array
    residuals: Residuals | None = None

    @property
    def count(self) -> int:
        """Components besides the noises'."""
        named = sum(len(s) * len(w) for s, w in zip(self.samplers, self.widths, strict=True))
        return named + (0 if self.residuals is None else self.residuals.count)

    def fill(
        self, inputs: Inputs, location: Array, scale: Array, means: Array, widths: Array
    ) -> Array:
        """Write means and widths of its components, (c, n); returns weights of all, noises first.

        ``location`` and ``scale`` are mean and standard deviation of the noises' mixture, (n,).
        """
        values = [sampler.draws(inputs) for sampler in self.samplers]
        shares = self.weights[self.bin_of(values[0])].T
        n = len(location)
        group = len(shares) - self._groups
        weights = np.empty((group + len(means), n))
        weights[:group], own, at = shares[:group], weights[group:], 0
        for several, some in zip(values, self.widths, strict=True):
            for width in some:
                here = slice(at, at + len(several))
                means[here], widths[here] = several, width[:, None]
                own[here] = shares[group] / len(several)
                at, group = here.stop, group + 1
        if self.residuals is not None:
            around, spots, each = self.residuals.components(values[0], location, scale)
            means[at:], widths[at:] = around.reshape(-1, n), spots.reshape(-1, n)
            own[at:] = (shares[group:, None] * each).reshape(-1, n)
        return weights

    @property
    def _groups(self) -> int:
        """Groups of components that share a weight, besides the noises'."""
        named = sum(len(some) for some in self.widths)
        return named + (0 if self.residuals is None else len(self.residuals.widths))

    def bin_of(self, values: Array) -> NDArray[np.int64]:
        """Which rows of weights apply, by the values of the first sampler, (k, n)."""
        return np.searchsorted(self.ends, spread(values), side="right")

    def check(self, columns: Columns, noises: int) -> None:
        """Raise an error if a fit cannot have made it."""
        check_fields(self, FreeShape)
        filled = type(self.samplers) is tuple and type(self.widths) is tuple and self.samplers
        require(filled and len(self.samplers) == len(self.widths), "a free shape has no values")
        for sampler, some in zip(self.samplers, self.widths, strict=True):
            require(type(sampler) in SAMPLERS, "something else stands in the place of values")
            sampler.check(columns)
            count = shape_of(some, 2, "the widths of a free shape are no table")
            require(count[1] in (1, len(sampler)), "a free shape has other values than widths")
            check_array(some, count, "widths of a free shape", above=0.0)
        bins = shape_of(self.ends, 1, "the bins of a free shape are no list")[0] + 1
        check_array(self.ends, (bins - 1,), "ends of bins", least=0.0)
        require((np.diff(self.ends) >= 0).all(), "bins end before they begin")
        if self.residuals is not None:
            check_part(self.residuals, Residuals)
        require(self.count <= MOST_COMPONENTS, "a free shape has more components than a fit gives")
        check_array(
            self.weights, (bins, noises + self._groups), "weights of a free shape", least=0.0
        )
        whole = np.abs(self.weights.sum(axis=1) - 1) < 1e-6
        require(whole.all(), "the weights of a free shape are not one in all")


SAMPLERS = (TreeValues, Constant, GivenQuantiles)


def spread(values: Array) -> Array:
    """Standard deviation of the values of each row, (n,); by one order, whatever the rows."""
    apart = values - values[0]
    centre = average(apart)
    return np.sqrt(np.maximum(average(np.square(apart)) - np.square(centre), 0.0))


@dataclass(frozen=True)
class Ends:
    """Ends of y that no row is at, infinite where there is none, and how far each reaches.

    Both are of shape (2,), in units of y; see :class:`mvenet.distributions.Bounded`.
    """

    values: Array
    reach: Array

    @property
    def inner(self) -> Array:
        """How far each reaches, (2,)."""
        found: Array = self.values + np.array([1.0, -1.0]) * self.reach
        return found

    def check(self) -> None:
        """Raise an error if a fit cannot have made it."""
        check_fields(self, Ends)
        check_array(self.reach, (2,), "reach of ends", above=0.0)
        usual = self.values.dtype.str == "<f8" and self.values.flags.c_contiguous
        require(usual and shape_of(self.values, 1, "ends are no list") == (2,), "ends are no pair")
        low, high = self.values
        require(low < np.inf and high > -np.inf, "an end is none")
        near = np.abs(self.values[np.isfinite(self.values)])
        require(len(near) > 0 and near.max() < WIDEST, "there is no end, or a far one")
        require(self.inner[0] <= self.inner[1], "ends reach beyond each other")


@dataclass(frozen=True)
class Atoms:
    """Values that have a probability of their own; see :class:`mvenet.distributions.WithAtoms`.

    Values and cells are those of y, also where the model is one of its logarithm.
    """

    values: Array
    cells: Array
    resolution: float

    @property
    def everywhere(self) -> bool:
        """Whether the cells leave nothing out: y lies on a grid."""
        return nothing_between(self.cells)

    def check(self) -> None:
        """Raise an error if a fit cannot have made it."""
        check_fields(self, Atoms)
        count = shape_of(self.values, 1, "the atoms are no list")
        require(0 < count[0] <= MOST_ATOMS, "there are no atoms, or more than a fit finds")
        check_array(self.values, count, "atoms")
        require(np.abs(self.values).max() < WIDEST, "an atom is too large to be squared")
        require((np.diff(self.values) > 0).all(), "atoms are not in order")
        cells = shape_of(self.cells, 2, "the cells of atoms are no pairs")
        usual = self.cells.dtype.str == "<f8" and self.cells.flags.c_contiguous
        require(cells == (*count, 2) and usual, "atoms have other cells")
        low, high = self.cells.T
        require((low <= self.values).all() and (self.values <= high).all(), "an atom is outside")
        require((low < high).all() and (low[1:] >= high[:-1]).all(), "cells of atoms overlap")
        check_number(self.resolution, "resolution")
        require(self.resolution > 0, "atoms have no resolution")
