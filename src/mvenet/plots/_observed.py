"""Observed against predicted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mvenet._utils.sklearn import rows_of
from mvenet.metrics._inputs import Forecast, Given, checked_inputs
from mvenet.plots._predictions import checked_levels, checked_target, intervals, predicted
from mvenet.plots._style import BLUE, RED, RULE, SQUARE, Display, blend, finish, legend, named, some

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]


@dataclass(eq=False, repr=False, kw_only=True)
class PredictionDisplay(Display):
    """Observed against predicted, with a bar for each prediction interval.

    A bar that crosses the diagonal holds the observed value; those that miss it are drawn in
    another colour and with another marker. For many rows some are drawn at random.

    Parameters
    ----------
    y_true, mean : ndarray of shape (n_shown,)
        Observed values and predicted means of the rows shown, in units of y.
    interval : ndarray of shape (n_shown, 2)
        Ends of their prediction intervals.
    coverage : float
        The level of these.
    n_rows : int
        How many rows there were.
    y_label : str
        Name of the outcome, with its unit.

    Attributes
    ----------
    hits_, misses_ : matplotlib Line2D or None
        Rows whose interval holds the observed value, or not; what `plot` is given besides ``ax``
        is for both.
    bars_ : list of matplotlib LineCollection
        Their intervals.
    line_ : matplotlib Line2D
        The diagonal.
    ax_, figure_ : matplotlib Axes and Figure

    Examples
    --------
    >>> from mvenet.plots import PredictionDisplay
    >>> display = PredictionDisplay.from_predictions([1.0, 3.0], [1.1, 2.0], std=[0.2, 0.3])
    >>> display.interval.round(2)
    array([[0.77, 1.43],
           [1.51, 2.49]])
    """

    y_true: Array
    mean: Array
    interval: Array
    coverage: float
    n_rows: int
    y_label: str = "y"
    _size = SQUARE

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        coverage: float = 0.9,
        y_label: str | None = None,
        max_points: int = 200,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Predict and compare, on rows that the estimator was not trained on.

        Parameters
        ----------
        estimator : fitted estimator
            With ``predict(X, return_std=True)`` or ``predict_dist(X)``. Its own intervals are
            shown if it has ``predict_interval``.
        X : array-like or DataFrame of shape (n, n_features)
        y : array-like of shape (n,)
        coverage : float, default=0.9
            Level of the central prediction intervals.
        y_label : str or None
            Name of the outcome with its unit, such as ``"power (kW)"``. None takes the name of y.
        max_points : int, default=200
            Of more rows so many are drawn at random, and the legend says so.
        ax : matplotlib Axes or None
        **kwargs
            For the points.

        Returns
        -------
        PredictionDisplay
        """
        levels, target = _single(coverage), checked_target(X, y)
        rows = some(len(target), max_points)
        table = X if len(rows) == len(target) else rows_of(X, rows)
        return cls(
            y_true=target[rows],
            mean=predicted(estimator, table).mean,
            interval=intervals(estimator, table, levels)[:, 0],
            coverage=float(levels[0]),
            n_rows=len(target),
            y_label=named(y, y_label),
        ).plot(ax, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        dist: Forecast,
        std: Given = None,
        *,
        coverage: float = 0.9,
        y_label: str | None = None,
        max_points: int = 200,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Compare predictions at hand.

        Parameters
        ----------
        y_true : array-like of shape (n,)
        dist : Normal, NormalMixture, or array-like of shape (n,)
            Predictive distributions, or their means, in units of y.
        std : array-like of shape (n,) or None
            Standard deviations; given if and only if `dist` holds means.
        coverage, y_label, max_points, ax, **kwargs : as in `from_estimator`

        Returns
        -------
        PredictionDisplay
        """
        levels = _single(coverage)
        target, forecast, _ = checked_inputs(y_true, dist, std, None)
        rows = some(len(target), max_points)
        return cls(
            y_true=target[rows],
            mean=forecast[rows].mean,
            interval=forecast[rows].interval(levels)[:, 0],
            coverage=float(levels[0]),
            n_rows=len(target),
            y_label=named(y_true, y_label),
        ).plot(ax, **kwargs)

    def _draw(self, ax: Axes, kwargs: dict[str, Any]) -> None:
        low, high = self.interval.T
        hit = (low <= self.y_true) & (self.y_true <= high)
        both = np.concatenate([self.y_true, self.interval.ravel()])
        ends = float(both.min()), float(both.max())
        diagonal: dict[str, Any] = {"color": RULE, "linewidth": 1, "linestyle": "--", "zorder": 3}
        (self.line_,) = ax.plot(ends, ends, label="observed = predicted", **diagonal)
        level = f"{100 * self.coverage:.4g} % interval"
        self.hits_, self.misses_ = None, None
        self.bars_: list[Any] = []
        if hit.any():
            label = f"{level} holds it: {hit.sum():,} of {len(hit):,} rows"
            self.hits_ = self._points(ax, hit, {"color": BLUE, "label": label, **kwargs})
        if not hit.all():
            label = f"{level} misses it: {(~hit).sum():,} of {len(hit):,} rows"
            look = {"color": RED, "marker": "D", "label": label, **kwargs}
            self.misses_ = self._points(ax, ~hit, look)
        margin = 0.03 * (ends[1] - ends[0]) or 1.0
        square = ends[0] - margin, ends[1] + margin
        ax.set(xlim=square, ylim=square, aspect="equal")
        finish(ax, f"Predicted {self.y_label}", f"Observed {self.y_label}")
        title = f"{len(hit):,} of {self.n_rows:,} rows, drawn at random"
        legend(ax, title if len(hit) < self.n_rows else None)

    def _points(self, ax: Axes, rows: NDArray[np.bool_], look: dict[str, Any]) -> Any:
        dot: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 3.5, "zorder": 2.5}
        (points,) = ax.plot(self.mean[rows], self.y_true[rows], **dot | look)
        # Not as errors of the mean, which in a skewed mixture may lie beyond a narrow interval.
        style: dict[str, Any] = {"color": blend(points.get_color(), 0.5), "linewidth": 0.8}
        self.bars_.append(ax.hlines(self.y_true[rows], *self.interval[rows].T, **style))
        return points


def _single(coverage: float) -> Array:
    levels = checked_levels("coverage", coverage)
    if len(levels) > 1:
        raise ValueError(f"coverage must be one level, got {coverage!r}: use, say, 0.9.")
    return levels
