"""Densities of a few rows: several modes, skew, and values that have a probability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from mvenet.distributions import Distribution, WithAtoms
from mvenet.distributions._atoms import nothing_between
from mvenet.explain._asking import whole
from mvenet.plots._calibration import CURVES
from mvenet.plots._predictions import predicted
from mvenet.plots._style import Display, blend, evenly, finish, legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]
PLACES = 400
BEYOND = 1e-3  # probability that may be out of sight at either end
LEAST = 1e-4  # probability of an atom that is drawn


@dataclass(eq=False, repr=False, kw_only=True)
class DensityDisplay(Display):
    """Densities of a few rows, and bars at values that have a probability of their own.

    Areas are probabilities, those of bars too. Where every outcome is such a value, as of ratings,
    there are only bars, as high as their probability.

    Parameters
    ----------
    edges : ndarray of shape (k + 1,)
        Ends of k slices of the outcome, ascending, in units of y.
    density : ndarray of shape (rows, k)
        Average density within each slice, per unit of y.
    atoms : ndarray of shape (a,)
        Values that have a probability of their own; there may be none.
    masses : ndarray of shape (rows, a)
        Their probabilities.
    names : list of str
        Of the rows, for the legend.
    y_label : str
        Name of the outcome with its unit.

    Attributes
    ----------
    lines_ : list of matplotlib Line2D
        Of each row; what `plot` is given besides ``ax`` is for them.
    bars_ : list of matplotlib BarContainer
        Of each row, if there are atoms.
    ax_, figure_ : matplotlib Axes and Figure

    Examples
    --------
    >>> from mvenet import NormalMixture
    >>> from mvenet.distributions import WithAtoms
    >>> from mvenet.plots import DensityDisplay
    >>> smooth = NormalMixture(means=[[0.2, 2.0]], stds=[[1.0, 1.0]])
    >>> dist = WithAtoms(smooth, atoms=[0.0], cells=[[-float("inf"), 0.1]], resolution=0.1)
    >>> display = DensityDisplay.from_predictions(dist)
    >>> print(display.masses.round(2).tolist())
    [[0.46], [0.03]]
    """

    edges: Array
    density: Array
    atoms: Array
    masses: Array
    names: list[str]
    y_label: str = "y"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        max_rows: int = 4,
        y_label: str = "y",
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Predict the distributions of a few rows.

        Parameters
        ----------
        estimator : fitted estimator
            With ``predict(X, return_std=True)`` or ``predict_dist(X)``.
        X : array-like or DataFrame of shape (n, n_features)
        max_rows : int, default=4
            Of more rows than these, so many are shown, evenly chosen.
        y_label : str, default="y"
            Name of the outcome with its unit, such as ``"power (kW)"``.
        ax : matplotlib Axes or None
        **kwargs
            For the lines.

        Returns
        -------
        DensityDisplay
        """
        dist = predicted(estimator, X)
        return cls.from_predictions(dist, max_rows=max_rows, y_label=y_label, ax=ax, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        dist: Distribution,
        *,
        max_rows: int = 4,
        y_label: str = "y",
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw predictions at hand.

        Parameters
        ----------
        dist : Distribution
            Predictive distributions, of at least one row.
        max_rows, y_label, ax, **kwargs : as in `from_estimator`

        Returns
        -------
        DensityDisplay
        """
        if not isinstance(dist, Distribution) or not len(dist):
            raise ValueError(
                f"dist must be a distribution of some rows, got {dist!r}: use predict_dist."
            )
        shown = evenly(len(dist), whole("max_rows", max_rows))
        some = dist[shown]
        atoms, masses = np.empty(0), np.empty((len(shown), 0))
        if isinstance(some, WithAtoms):
            seen = some.masses.max(axis=1) > LEAST
            atoms, masses = some.atoms[seen], some.masses[seen].T
        edges = edges_of(some)
        display = cls(
            edges=edges,
            density=np.array([_density(some, row, edges) for row in range(len(some))]),
            atoms=atoms,
            masses=masses,
            names=[f"row {row:,}" for row in shown],
            y_label=y_label,
        )
        return display.plot(ax, **kwargs)

    def _draw(self, ax: Axes, kwargs: dict[str, Any]) -> None:
        discrete = len(self.atoms) > 0 and not self.density.any()
        length = float(self.edges[-1] - self.edges[0])
        # Of all bars at an atom: narrower than the gap to the next, and than what curves show.
        gap = float(np.diff(self.atoms).min(initial=np.inf))
        width = min(0.8 * gap, (0.2 if discrete else 0.04) * length)
        self.lines_, self.bars_ = [], []
        middle = 0.5 * (self.edges[1:] + self.edges[:-1])
        for row, name in enumerate(self.names):
            color, _ = CURVES[row % len(CURVES)]
            look: dict[str, Any] = {"color": color, "linewidth": 1.4, "zorder": 3, "label": name}
            if not discrete:
                self.lines_ += ax.plot(middle, self.density[row], **{**look, **kwargs})
            if len(self.atoms):
                own = width / len(self.names)  # side by side
                place = self.atoms - 0.5 * width + (row + 0.5) * own
                height = self.masses[row] / (1.0 if discrete else own)
                label = name if discrete else None
                bars = ax.bar(place, height, own, color=blend(color, 0.75), label=label, zorder=2)
                self.bars_.append(bars)
        ax.set_ylim(bottom=0)
        finish(
            ax, self.y_label, "Probability" if discrete else f"Density, per unit of {self.y_label}"
        )
        legend(ax, title="Areas are probabilities" if len(self.atoms) and not discrete else None)


def edges_of(dist: Distribution, also: Array | None = None) -> Array:
    """Slices of all that the rows may well have, of other outcomes, and a little more."""
    ends = np.concatenate([dist.ppf(BEYOND), dist.ppf(1.0 - BEYOND), [] if also is None else also])
    low, high = float(ends.min()), float(ends.max())
    room = 0.05 * (high - low) or 0.5 * abs(low) or 0.5
    edges: Array = np.linspace(low - room, high + room, PLACES + 1)
    return edges


def _density(dist: Distribution, row: int, edges: Array) -> Array:
    """Average density of a row within each slice, what is at atoms left out.

    By differences of the distribution function: no peak is too narrow to be seen.
    """
    if not isinstance(dist, WithAtoms):
        return np.diff(dist[np.full(len(edges), row)].cdf(edges)) / np.diff(edges)
    if nothing_between(dist.cells):
        return np.zeros(len(edges) - 1)
    # Of the smooth distribution, what lies in no cell: with cells' ends among those of slices.
    ends = np.unique(np.concatenate([edges, np.clip(dist.cells, edges[0], edges[-1]).ravel()]))
    mass = np.diff(dist.smooth[np.full(len(ends), row)].cdf(ends))
    middle = 0.5 * (ends[1:] + ends[:-1])
    cell = np.searchsorted(dist.cells[:, 0], middle, side="right") - 1
    mass[(cell >= 0) & (middle < dist.cells[cell, 1])] = 0.0
    slices = np.searchsorted(edges, middle, side="right") - 1
    return np.bincount(slices, mass, len(edges) - 1) / np.diff(edges)
