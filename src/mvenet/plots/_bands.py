"""The fitted mean with prediction intervals, over one feature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mvenet.metrics._inputs import Forecast, Given
from mvenet.plots._predictions import checked_levels, checked_target, intervals, predicted
from mvenet.plots._style import (
    BLUE,
    MOST_DOTS,
    Display,
    blend,
    counted,
    dots,
    finish,
    legend,
    named,
    some,
)
from mvenet.plots._sweep import checked_rows, places, stretched, sweep

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]


@dataclass(eq=False, repr=False, kw_only=True)
class BandDisplay(Display):
    """Fitted mean with prediction intervals, over one feature.

    Parameters
    ----------
    x : ndarray of shape (n_points,)
        The feature, ascending.
    mean : ndarray of shape (n_points,)
        Predicted mean there, in units of y.
    intervals : ndarray of shape (n_points, k, 2)
        Ends of the k central prediction intervals, in units of y.
    coverage : ndarray of shape (k,)
        Their levels, ascending.
    x_observed, y_observed : ndarray of shape (n,) or None
        Observations, shown as dots.
    x_label, y_label : str
        Names of feature and outcome, with units.
    max_points : int
        More dots than these are thinned out at random, and the legend says so.

    Attributes
    ----------
    line_ : matplotlib Line2D
        The mean; what `plot` is given besides ``ax`` is for it, the bands take its colour.
    bands_ : list of matplotlib PolyCollection
        The intervals, in the order of ``coverage``.
    dots_ : matplotlib Line2D or None
    ax_, figure_ : matplotlib Axes and Figure

    Examples
    --------
    >>> from mvenet import MVERegressor
    >>> from mvenet.datasets import quadratic
    >>> from mvenet.plots import BandDisplay
    >>> data = quadratic(100, random_state=0)
    >>> model = MVERegressor(epochs=10, random_state=0).fit(data.X, data.y)
    >>> display = BandDisplay.from_estimator(model, data.X, data.y, x_label="time (s)")
    >>> display.ax_.get_xlabel(), display.intervals.shape
    ('time (s)', (200, 2, 2))
    """

    x: Array
    mean: Array
    intervals: Array
    coverage: Array
    x_observed: Array | None = None
    y_observed: Array | None = None
    x_label: str = "x"
    y_label: str = "y"
    max_points: int = MOST_DOTS

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike | None = None,
        *,
        feature: int | str = 0,
        coverage: ArrayLike = (0.5, 0.9),
        grid: int | ArrayLike = 200,
        x_label: str | None = None,
        y_label: str | None = None,
        max_points: int = MOST_DOTS,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Vary one feature, the others at their median.

        Parameters
        ----------
        estimator : fitted estimator
            With ``predict(X, return_std=True)`` or ``predict_dist(X)``. Its own intervals are
            shown if it has ``predict_interval``. The std of a Gaussian process includes the noise
            only with a ``WhiteKernel``.
        X : array-like or DataFrame of shape (n, n_features)
        y : array-like of shape (n,) or None
            Observations, shown as dots. With several features these also differ in the others.
        feature : int or str, default=0
            Number or name of the column.
        coverage : float or list of float, default=(0.5, 0.9)
            Levels of the central prediction intervals.
        grid : int or array-like, default=200
            So many points over the range of the feature; or the values to predict at, which may
            go beyond it.
        x_label, y_label : str or None
            Names of feature and outcome with units, such as ``"power (kW)"``. None takes the names
            of the columns, or x and y.
        max_points : int, default=2000
            More dots than these are thinned out at random, and the legend says so.
        ax : matplotlib Axes or None
        **kwargs
            For the line of the mean.

        Returns
        -------
        BandDisplay
        """
        levels = checked_levels("coverage", coverage)
        line = sweep(estimator, X, feature, grid)
        observed = None if y is None else checked_target(X, y)
        return cls(
            x=line.values,
            mean=predicted(estimator, line.table).mean,
            intervals=intervals(estimator, line.table, levels),
            coverage=levels,
            x_observed=None if observed is None else line.observed,
            y_observed=observed,
            x_label=line.label if x_label is None else x_label,
            y_label=named(y, y_label),
            max_points=max_points,
        ).plot(ax, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike | None,
        dist: Forecast,
        std: Given = None,
        *,
        x: ArrayLike,
        coverage: ArrayLike = (0.5, 0.9),
        x_label: str | None = None,
        y_label: str | None = None,
        max_points: int = MOST_DOTS,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw predictions at hand, in the order of x.

        Parameters
        ----------
        y_true : array-like of shape (n,) or None
            Observations, shown as dots.
        dist : Normal, NormalMixture, or array-like of shape (n,)
            Predictive distributions, or their means, in units of y.
        std : array-like of shape (n,) or None
            Standard deviations; given if and only if `dist` holds means.
        x : array-like of shape (n,)
            The only feature, or a position along a line. Of rows with the same x, the prediction
            for the first is drawn; of more than a thousand, a thousand.
        coverage, x_label, y_label, max_points, ax, **kwargs : as in `from_estimator`

        Returns
        -------
        BandDisplay
        """
        levels = checked_levels("coverage", coverage)
        observed, forecast = checked_rows(y_true, dist, std)
        place, order = places(x, len(forecast))
        shown = forecast[order]
        return cls(
            x=place[order],
            mean=shown.mean,
            intervals=shown.interval(levels),
            coverage=levels,
            x_observed=None if y_true is None else place,
            y_observed=None if y_true is None else observed,
            x_label=named(x, x_label, "x"),
            y_label=named(y_true, y_label),
            max_points=max_points,
        ).plot(ax, **kwargs)

    def _draw(self, ax: Axes, kwargs: dict[str, Any]) -> None:
        look: dict[str, Any] = {
            "color": BLUE,
            "linewidth": 1.8,
            "label": "predicted mean",
            "zorder": 3,
        } | kwargs
        x, rows = stretched(self.x)
        self.dots_ = None
        if self.x_observed is not None and self.y_observed is not None:
            shown = some(len(self.x_observed), self.max_points)
            label = counted("observed", len(shown), len(self.x_observed))
            self.dots_ = dots(ax, self.x_observed[shown], self.y_observed[shown], label)
        (self.line_,) = ax.plot(x, self.mean[rows], **look)
        shades = np.linspace(0.5, 0.22, len(self.coverage)) if len(self.coverage) > 1 else [0.35]
        self.bands_ = [
            ax.fill_between(
                x,
                *self.intervals[rows, k].T,
                color=blend(self.line_.get_color(), shades[k]),
                linewidth=0,
                label=f"{level:.4g} % prediction interval",
                zorder=1.9 - k / 100,  # the narrower on top
            )
            for k, level in enumerate(100 * self.coverage)
        ]
        ax.margins(x=0.01)
        finish(ax, self.x_label, self.y_label)
        legend(ax)
