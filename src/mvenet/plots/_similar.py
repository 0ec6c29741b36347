"""The density of a row beside what became of the training rows that are most like it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mvenet._utils.sklearn import n_rows_of
from mvenet.distributions._checks import check_shape
from mvenet.explain import Outside, outside, similar
from mvenet.metrics._inputs import numbers
from mvenet.plots._density import edges_of
from mvenet.plots._predictions import predicted
from mvenet.plots._style import BLUE, ORANGE, RED, Display, finish, legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]


@dataclass(eq=False, repr=False, kw_only=True)
class SimilarDisplay(Display):
    """The predicted density of a row, and the outcomes of the training rows most like it.

    Parameters
    ----------
    edges : ndarray of shape (s + 1,)
        Ends of slices of the outcome, ascending, in units of y.
    density : ndarray of shape (s,)
        Average density of the row within each.
    outcomes : ndarray of shape (k,)
        Of the training rows most like it, the nearest first.
    distance : ndarray of shape (k,)
        How far they are.
    y_label : str
        Name of the outcome with its unit.

    Attributes
    ----------
    line_ : matplotlib Line2D
        What `plot` is given besides ``ax`` is for it.
    stems_ : matplotlib LineCollection
        One for each training row, the higher the nearer it is.
    ax_, figure_ : matplotlib Axes and Figure

    Examples
    --------
    >>> from mvenet import MVERegressor
    >>> from mvenet.datasets import quadratic
    >>> from mvenet.plots import SimilarDisplay
    >>> data = quadratic(100, random_state=0)
    >>> model = MVERegressor(epochs=10, random_state=0).fit(data.X, data.y)
    >>> display = SimilarDisplay.from_estimator(model, data.X[:1], data.X, data.y, k=10)
    >>> display.outcomes.shape
    (10,)
    """

    edges: Array
    density: Array
    outcomes: Array
    distance: Array
    y_label: str = "y"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        row: Any,
        X_train: Any,
        y_train: ArrayLike,
        *,
        k: int = 20,
        weights: str | ArrayLike = "model",
        random_state: int = 0,
        y_label: str = "y",
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Find the rows.

        Parameters
        ----------
        estimator : fitted estimator
        row : table of one row
            As the model takes it, such as ``X[[3]]`` or ``frame.iloc[[3]]``.
        X_train : array-like or DataFrame of shape (m, n_features)
        y_train : array-like of shape (m,)
        k, weights, random_state
            As in :func:`mvenet.explain.similar`.
        y_label : str, default="y"
            Name of the outcome with its unit, such as ``"power (kW)"``.
        ax : matplotlib Axes or None
        **kwargs
            For the line of the density.

        Returns
        -------
        SimilarDisplay
        """
        if n_rows_of(row) != 1:
            raise ValueError(f"row has {n_rows_of(row)} rows: pass one, such as X[[0]].")
        found = similar(estimator, row, X_train, k, weights=weights, random_state=random_state)
        target = numbers("y_train", y_train)
        shape = (n_rows_of(X_train),)
        check_shape("y_train", target, shape, "pass one outcome for each row of X_train")
        dist = predicted(estimator, row)
        near = target[found.rows[0]]
        edges = edges_of(dist, near)
        return cls(
            edges=edges,
            # A value with a probability of its own is a spike.
            density=np.diff(dist.cdf(edges[None])[0]) / np.diff(edges),
            outcomes=near,
            distance=found.distance[0],
            y_label=y_label,
        ).plot(ax, **kwargs)

    def _draw(self, ax: Axes, kwargs: dict[str, Any]) -> None:
        look: dict[str, Any] = {"color": BLUE, "linewidth": 1.8, "label": "predicted", "zorder": 3}
        middle = 0.5 * (self.edges[1:] + self.edges[:-1])
        (self.line_,) = ax.plot(middle, self.density, **{**look, **kwargs})
        top = float(self.density.max()) or 1.0
        far = float(self.distance.max()) or 1.0
        height = top * (0.12 + 0.3 * (1 - self.distance / far))
        label = f"the {len(self.outcomes)} training rows most like it (higher: nearer)"
        self.stems_ = ax.vlines(
            self.outcomes, 0, height, color=ORANGE, linewidth=1.4, label=label, zorder=2
        )
        ax.set_ylim(bottom=0)
        finish(ax, self.y_label, f"Density, per unit of {self.y_label}")
        legend(ax)


@dataclass(eq=False, repr=False, kw_only=True)
class OutsideDisplay(Display):
    """How far rows are from the training rows, beside how far these are from each other.

    Parameters
    ----------
    outside : mvenet.explain.Outside

    Attributes
    ----------
    bars_ : matplotlib PolyCollection
        Histogram of the training rows; what `plot` is given besides ``ax`` is for it.
    lines_ : matplotlib LineCollection
        The rows.
    ax_, figure_ : matplotlib Axes and Figure

    Examples
    --------
    >>> from mvenet import MVERegressor
    >>> from mvenet.datasets import quadratic
    >>> from mvenet.plots import OutsideDisplay
    >>> data = quadratic(100, random_state=0)
    >>> model = MVERegressor(epochs=10, random_state=0).fit(data.X, data.y)
    >>> display = OutsideDisplay.from_estimator(model, [[0.0], [9.0]], data.X)
    >>> float(display.outside.score[1])
    1.0
    """

    outside: Outside

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        X_train: Any,
        *,
        k: int = 5,
        random_state: int = 0,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Measure how far rows are from training rows.

        Parameters
        ----------
        estimator, X, X_train, k, random_state
            As in :func:`mvenet.explain.outside`.
        ax : matplotlib Axes or None
        **kwargs
            For the histogram.

        Returns
        -------
        OutsideDisplay
        """
        found = outside(estimator, X, X_train, k, random_state=random_state)
        return cls(outside=found).plot(ax, **kwargs)

    def _draw(self, ax: Axes, kwargs: dict[str, Any]) -> None:
        found = self.outside
        count, edges = np.histogram(found.typical, bins=30)
        look: dict[str, Any] = {"color": BLUE, "alpha": 0.45, "label": "training rows", "zorder": 2}
        self.bars_ = ax.stairs(count, edges, fill=True, **{**look, **kwargs})
        top = float(count.max())
        lonely = found.score > 0.99
        colors = np.where(lonely, RED, ORANGE).tolist()
        word = f"these {len(lonely):,} rows ({lonely.sum():,} above all but 1 %: red)"
        height = top * np.where(lonely, 0.5, 0.25)
        self.lines_ = ax.vlines(
            found.distance, 0, height, colors=colors, linewidth=1.2, label=word, zorder=3
        )
        ax.set_ylim(bottom=0)
        finish(ax, "Distance from the nearest training rows", "Training rows")
        legend(ax)
