"""Residuals against the predicted standard deviation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from mvenet.explain._asking import whole
from mvenet.metrics._inputs import Forecast, Given, checked_inputs, root_mean_square
from mvenet.plots._predictions import checked_target, predicted
from mvenet.plots._style import (
    BLUE,
    MOST_DOTS,
    RULE,
    Display,
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
