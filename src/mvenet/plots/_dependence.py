"""How a prediction depends on a column, on average and row by row."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mvenet.explain import PartialDependence, partial_dependence
from mvenet.plots._style import BLUE, DOT, Display, blend, finish, legend, plain, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]
SHOWN = ("interval", "mean", "std")


@dataclass(eq=False, repr=False, kw_only=True)
class DependenceDisplay(Display):
    """How mean and interval, or the standard deviation, depend on a column.

    Parameters
    ----------
    dependence : mvenet.explain.PartialDependence
    show : {"interval", "mean", "std"}
        The mean with the band between the outermost quantiles, the mean alone, or the standard
        deviation.
    max_lines : int
        So many single rows are shown as faint lines ("individual conditional expectation").
    y_label : str
        Name of the outcome with its unit.
    explained : bool
        Whether there is a legend.

    Attributes
    ----------
    line_ : matplotlib Line2D
        The average; what `plot` is given besides ``ax`` is for it.
    band_ : matplotlib PolyCollection or LineCollection, or None
    lines_ : list of matplotlib Line2D
        The single rows.
    ax_, figure_ : matplotlib Axes and Figure

    Examples
    --------
    >>> from mvenet import MVERegressor
    >>> from mvenet.datasets import quadratic
    >>> from mvenet.plots import DependenceDisplay
    >>> data = quadratic(100, random_state=0)
    >>> model = MVERegressor(epochs=10, random_state=0).fit(data.X, data.y)
    >>> display = DependenceDisplay.from_estimator(model, data.X, 0, show="std", max_lines=20)
    >>> len(display.lines_)
    20
    """

    dependence: PartialDependence
    show: str = "interval"
    max_lines: int = 0
    y_label: str = "y"
    explained: bool = True

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        column: int | str,
        *,
        show: str = "interval",
        max_lines: int = 0,
        grid: int | ArrayLike | None = None,
        quantiles: ArrayLike = (0.05, 0.5, 0.95),
        max_rows: int = 100,
        random_state: int = 0,
        y_label: str = "y",
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Set the column to one value after the other.

        Parameters
        ----------
        estimator, X, column, grid, quantiles, max_rows, random_state
            As in :func:`mvenet.explain.partial_dependence`.
        show : {"interval", "mean", "std"}, default="interval"
            The mean with the band between the outermost quantiles, the mean alone, or the standard
            deviation.
        max_lines : int, default=0
            So many single rows are shown as faint lines.
        y_label : str, default="y"
            Name of the outcome with its unit, such as ``"power (kW)"``.
        ax : matplotlib Axes or None
        **kwargs
            For the line of the average.

        Returns
        -------
        DependenceDisplay
        """
        if show not in SHOWN:
            raise ValueError(f"show={show!r} must be 'interval', 'mean' or 'std'.")
        found = partial_dependence(
            estimator,
            X,
            column,
            grid=grid,
            quantiles=quantiles,
            max_rows=max_rows,
            random_state=random_state,
        )
        display = cls(dependence=found, show=show, max_lines=max_lines, y_label=y_label)
        return display.plot(ax, **kwargs)

    def _draw(self, ax: Axes, kwargs: dict[str, Any]) -> None:
        found, std = self.dependence, self.show == "std"
        curve = found.std if std else found.mean
        each = found.ice_std if std else found.ice_mean
        # Two numbers are no curve; nor are levels.
        levels = found.kind == "level" or len(found.values) < 3
        x: Any = np.arange(len(curve)) if levels else found.values
        low, high = found.quantiles[:, 0], found.quantiles[:, -1]
        self.band_ = None
        self.lines_ = [
            ax.plot(x, row, color=DOT, alpha=0.25, linewidth=0.7, zorder=1.5)[0]
            for row in each[: self.max_lines]
        ]
        name = "standard deviation" if std else "predicted mean"
        look: dict[str, Any] = {"color": BLUE, "label": name, "zorder": 3}
        look |= {"marker": "o", "linestyle": "none"} if levels else {"linewidth": 1.8}
        (self.line_,) = ax.plot(x, curve, **{**look, **kwargs})
        if self.show == "interval":
            self.band_ = self._band(ax, x, low, high, levels)
        if levels:
            _name_levels(ax, found.values)
        elif isinstance(found.values[0], datetime.date):
            _dates(ax)
        label = plain(short(found.column))
        finish(ax, label, f"Standard deviation of {self.y_label}" if std else self.y_label)
        if self.lines_:
            self.lines_[0].set_label("single rows")
        if self.explained and (self.lines_ or self.band_ is not None):
            legend(ax)

    def _band(self, ax: Axes, x: Any, low: Array, high: Array, levels: bool) -> Any:
        color = self.line_.get_color()
        share = 100 * (self.dependence.levels[-1] - self.dependence.levels[0])
        look: dict[str, Any] = {
            "color": blend(color, 0.3),
            "label": f"{share:.4g} % of the outcomes",
        }
        if levels:
            return ax.vlines(x, low, high, linewidth=5, zorder=1.9, **look)
        return ax.fill_between(x, low, high, linewidth=0, zorder=1.2, **look)


def _name_levels(ax: Axes, values: list[Any]) -> None:
    names = [plain(short(str(value), 14)) for value in values]
    crowded = len(names) > 3 or max(map(len, names)) > 9
    ax.set_xticks(
        range(len(names)), names, rotation=40 if crowded else 0, ha="right" if crowded else "center"
    )
    ax.margins(x=0.15)


def _dates(ax: Axes) -> None:
    from matplotlib import dates

    make: Any = dates  # it has no annotations
    locator = make.AutoDateLocator(maxticks=6)
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(make.ConciseDateFormatter(locator))
