"""How far off predictions are: observed against predicted, residuals against predicted std."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from mvenet._sklearn import rows_of
from mvenet.metrics._inputs import Forecast, Given, checked_inputs, root_mean_square
from mvenet.plots._predictions import checked_levels, checked_target, intervals, predicted, whole
from mvenet.plots._style import (
    BLUE,
    MOST_DOTS,
    RED,
    RULE,
    SQUARE,
    Display,
    blend,
    counted,
    dots,
    finish,
    legend,
    named,
    some,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]
BAND = 0.9  # of the range that chance alone explains


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


@dataclass(eq=False, repr=False, kw_only=True)
class SpreadDisplay(Display):
    """Size of the residuals against the predicted standard deviation.

    Rows are sorted by standard deviation and cut into bins of equal size, as in
    `mvenet.metrics.ence`. For each, the root mean squared residual stands over the root mean
    predicted variance: on the diagonal, if the standard deviations are right. The band is the 90 %
    range for normal residuals of these standard deviations (chi-squared). Axes are logarithmic if
    most standard deviations span more than a factor of ten; very small residuals then stand at the
    lower edge.

    Parameters
    ----------
    residual, std : ndarray of shape (n,)
        Observed minus predicted, and predicted standard deviation, in units of y.
    n_bins : int
        Number of bins.
    y_label : str
        Name of the outcome, with its unit.
    max_points : int
        More dots than these are thinned out at random, and the legend says so.

    Attributes
    ----------
    bin_std_, bin_residual_ : ndarray of shape (n_bins,)
        Roots of mean squares, in units of y.
    line_ : matplotlib Line2D
        The bins; what `plot` is given besides ``ax`` is for them.
    dots_ : matplotlib Line2D
        The rows, as absolute residuals.
    band_ : matplotlib PolyCollection
    ax_, figure_ : matplotlib Axes and Figure

    Examples
    --------
    >>> from mvenet.plots import SpreadDisplay
    >>> display = SpreadDisplay.from_predictions(
    ...     [1.0, -1.0, 3.0, 4.0], [0.0] * 4, std=[1.0, 1.0, 4.0, 4.0], n_bins=2
    ... )
    >>> print(display.bin_std_, display.bin_residual_.round(2))
    [1. 4.] [1.   3.54]
    """

    residual: Array
    std: Array
    n_bins: int
    y_label: str = "y"
    max_points: int = MOST_DOTS

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        n_bins: int | None = None,
        y_label: str | None = None,
        max_points: int = MOST_DOTS,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Predict and compare, on rows that the estimator was not trained on.

        Parameters
        ----------
        estimator : fitted estimator
            With ``predict(X, return_std=True)`` or ``predict_dist(X)``.
        X : array-like or DataFrame of shape (n, n_features)
        y : array-like of shape (n,)
        n_bins : int or None, default=None
            None makes bins of at least 20 rows, at most ten, and no more than there are different
            standard deviations.
        y_label : str or None
            Name of the outcome with its unit, such as ``"power (kW)"``. None takes the name of y.
        max_points : int, default=2000
            More dots than these are thinned out at random, and the legend says so.
        ax : matplotlib Axes or None
        **kwargs
            For the bins.

        Returns
        -------
        SpreadDisplay
        """
        return cls.from_predictions(
            checked_target(X, y),
            predicted(estimator, X),
            n_bins=n_bins,
            y_label=named(y, y_label),
            max_points=max_points,
            ax=ax,
            **kwargs,
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        dist: Forecast,
        std: Given = None,
        *,
        n_bins: int | None = None,
        y_label: str | None = None,
        max_points: int = MOST_DOTS,
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
        n_bins, y_label, max_points, ax, **kwargs : as in `from_estimator`

        Returns
        -------
        SpreadDisplay
        """
        target, forecast, _ = checked_inputs(y_true, dist, std, None)
        spread = forecast.std
        if n_bins is None:
            n_bins = int(np.clip(len(target) // 20, 1, min(10, len(np.unique(spread)))))
        elif whole("n_bins", n_bins) > len(target):
            raise ValueError(f"n_bins={n_bins} is more than the {len(target)} rows: use fewer.")
        return cls(
            residual=target - forecast.mean,
            std=spread,
            n_bins=n_bins,
            y_label=named(y_true, y_label),
            max_points=max_points,
        ).plot(ax, **kwargs)

    def _draw(self, ax: Axes, kwargs: dict[str, Any]) -> None:
        self.bin_std_, self.bin_residual_, sizes = self._bins()
        shown = some(len(self.std), self.max_points)
        x, y = self.std[shown], np.abs(self.residual[shown])
        low, high = np.quantile(self.std, [0.05, 0.95])
        wide = bool(high > 10 * low)
        floor = 0.0
        if wide:
            floor = 0.02 * float(np.quantile(self.std, 0.01))
            ax.set(xscale="log", yscale="log")
        label = counted("residuals", len(shown), len(self.std))
        self.dots_ = dots(ax, x, np.maximum(y, floor), label)
        look: dict[str, Any] = {
            "color": BLUE,
            "marker": "o",
            "markersize": 6,
            "linestyle": "none",
            "zorder": 4,
        }
        least, most = int(sizes.min()), int(sizes.max())
        count = f"{least:,}" if least == most else f"{least:,}–{most:,}"
        label = "root mean square" + f" of a bin ({count} rows each)" * (self.n_bins > 1)
        (self.line_,) = ax.plot(
            self.bin_std_, self.bin_residual_, **{"label": label, **look, **kwargs}
        )
        ends = _range(self.std, wide)
        style: dict[str, Any] = {"color": RULE, "linewidth": 1, "linestyle": "--", "zorder": 3}
        ax.plot(ends, ends, label="calibrated", **style)
        low, high = np.sqrt(np.array(stats.chi2.interval(BAND, least)) / least)
        shade: dict[str, Any] = {"color": "0.3", "alpha": 0.18, "linewidth": 0, "zorder": 1.5}
        self.band_ = ax.fill_between(
            ends, low * ends, high * ends, label="90 % range of chance for a bin", **shade
        )
        ax.set_xlim(ends[0], ends[-1])
        top = max(float(y.max()), float(high * ends[-1]), float(self.bin_residual_.max()))
        ax.set_ylim((floor, 1.2 * top) if wide else (0, 1.05 * top))
        if wide:
            _label_few_decades(ax)
        finish(
            ax,
            f"Predicted standard deviation of {self.y_label}",
            f"Absolute residual of {self.y_label}",
        )
        legend(ax)

    def _bins(self) -> tuple[Array, Array, NDArray[np.int64]]:
        """Root mean squares of std and residual, and the number of rows, of each bin."""
        order = np.argsort(self.std, kind="stable")
        groups = np.array_split(order, self.n_bins)
        roots = [
            [root_mean_square(values[rows], None) for rows in groups]
            for values in (self.std, self.residual)
        ]
        return np.array(roots[0]), np.array(roots[1]), np.array([len(rows) for rows in groups])


def _range(std: Array, wide: bool) -> Array:
    """Ends of the axis of standard deviations, a little beyond them."""
    low, high = float(std.min()), float(std.max())
    if wide:
        return np.geomspace(low / 1.1, high * 1.1, 50)
    margin = 0.04 * (high - low) or 0.1 * high
    return np.linspace(max(low - margin, 0.0), high + margin, 50)


def _label_few_decades(ax: Axes) -> None:
    """Labels at 1, 2 and 5 of each decade: those at every figure would run into each other."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    for axis, (low, high) in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
        if 1e-3 < low < high < 1e5 and high < 1e3 * low:
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axis.set_minor_formatter(NullFormatter())


def _single(coverage: float) -> Array:
    levels = checked_levels("coverage", coverage)
    if len(levels) > 1:
        raise ValueError(f"coverage must be one level, got {coverage!r}: use, say, 0.9.")
    return levels
