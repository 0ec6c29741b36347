"""Whether the stated uncertainty is true: coverage against nominal, and the PIT histogram."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from mvenet import metrics
from mvenet._estimators.base import DistributionRegressor
from mvenet.explain._asking import whole
from mvenet.metrics._inputs import Forecast, Given
from mvenet.plots._predictions import (
    checked_levels,
    checked_target,
    intervals,
    predicted,
)
from mvenet.plots._style import (
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    RED,
    RULE,
    SQUARE,
    Display,
    blend,
    finish,
    legend,
    rows,
)
from mvenet.predictive import unwrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]
LEVELS = tuple(np.arange(1, 20) / 20)
BAND = 0.9  # of the range that chance alone explains
CURVES = ((BLUE, "o"), (RED, "s"), (GREEN, "^"), (PURPLE, "D"), (ORANGE, "v"))


@dataclass(eq=False, repr=False, kw_only=True)
class CoverageDisplay(Display):
    """Coverage of central prediction intervals against the coverage that they claim.

    Calibrated intervals stand on the diagonal, up to chance: the band holds each point with a
    probability of at least 90 % if its coverage is the nominal one (binomial). Points are not
    independent of each other. Intervals of a distribution that end at an atom, a value that has a
    probability of its own, hold as much of it as they need, as in :func:`mvenet.metrics.pit`.

    Parameters
    ----------
    nominal, observed : ndarray of shape (k,)
        Coverage claimed and share of the rows covered, in (0, 1).
    n_rows : int
        How many rows there were.
    name : str or None
        Of the model, for the legend.

    Attributes
    ----------
    line_ : matplotlib Line2D
        The points; what `plot` is given besides ``ax`` is for them. Further models on the same
        axes take another colour and marker.
    band_ : matplotlib PolyCollection
    ax_, figure_ : matplotlib Axes and Figure

    Examples
    --------
    >>> from mvenet.plots import CoverageDisplay
    >>> display = CoverageDisplay.from_predictions(
    ...     [0.0, 1.5, 3.0], [0.0, 0.0, 0.0], std=[1.0, 1.0, 1.0], nominal=[0.5, 0.9]
    ... )
    >>> print(display.observed.round(2))
    [0.33 0.67]
    """

    nominal: Array
    observed: Array
    n_rows: int
    name: str | None = None
    _size = SQUARE

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        nominal: ArrayLike = LEVELS,
        name: str | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Predict intervals and count, on rows that the estimator was not trained on.

        Parameters
        ----------
        estimator : fitted estimator
            With ``predict(X, return_std=True)`` or ``predict_dist(X)``. Its own intervals are
            counted if it has ``predict_interval``, as a conformal regressor.
        X : array-like or DataFrame of shape (n, n_features)
        y : array-like of shape (n,)
        nominal : list of float, default=0.05, 0.1, …, 0.95
        name : str or None
            Of the model, for the legend.
        ax : matplotlib Axes or None
            Those of another CoverageDisplay compare the two.
        **kwargs
            For the points.

        Returns
        -------
        CoverageDisplay
        """
        levels, target = checked_levels("nominal", nominal), checked_target(X, y)
        last, table = unwrapped(estimator, X)
        if not hasattr(last, "predict_interval") or isinstance(last, DistributionRegressor):
            # The same intervals, without the quantiles of a mixture at every level.
            dist = predicted(last, table)
            return cls.from_predictions(target, dist, nominal=levels, name=name, ax=ax, **kwargs)
        low, high = np.moveaxis(intervals(last, table, levels), -1, 0)
        inside = (low <= target[:, None]) & (target[:, None] <= high)
        display = cls(nominal=levels, observed=inside.mean(axis=0), n_rows=len(target), name=name)
        return display.plot(ax, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        dist: Forecast,
        std: Given = None,
        *,
        nominal: ArrayLike = LEVELS,
        name: str | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Count for predictions at hand.

        Parameters
        ----------
        y_true : array-like of shape (n,)
        dist : Normal, NormalMixture, or array-like of shape (n,)
            Predictive distributions, or their means, in units of y.
        std : array-like of shape (n,) or None
            Standard deviations; given if and only if `dist` holds means.
        nominal, name, ax, **kwargs : as in `from_estimator`

        Returns
        -------
        CoverageDisplay
        """
        levels = checked_levels("nominal", nominal)
        reached = metrics.pit(y_true, dist, std, random_state=0)
        covered = (2.0 * np.abs(reached[:, None] - 0.5) <= levels).mean(axis=0)
        display = cls(nominal=levels, observed=covered, n_rows=np.size(y_true), name=name)
        return display.plot(ax, **kwargs)

    def _draw(self, ax: Axes, kwargs: dict[str, Any]) -> None:
        from matplotlib.ticker import PercentFormatter

        gid = "mvenet coverage"
        before = sum(line.get_gid() == gid for line in ax.lines)
        color, marker = CURVES[before % len(CURVES)]
        look: dict[str, Any] = {
            "color": color,
            "marker": marker,
            "markersize": 4.5,
            "linewidth": 1.2,
            "gid": gid,
        }
        label = "share of rows covered" if self.name is None else self.name
        if not before:
            ax.plot([0, 1], [0, 1], color=RULE, linewidth=1, linestyle="--", label="calibrated")
        share = np.linspace(0, 1, 201)
        counts = np.array(stats.binom.interval(BAND, self.n_rows, share))
        low, high = np.clip(counts / self.n_rows, 0, 1)
        chance = f"90 % range of chance, {rows(self.n_rows)}"
        self.band_ = ax.fill_between(share, low, high, color="0.88", linewidth=0, label=chance)
        self.band_.set_zorder(0.5)
        (self.line_,) = ax.plot(
            self.nominal, self.observed, **{**look, "label": label, "zorder": 3, **kwargs}
        )
        ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_formatter(PercentFormatter(1.0))
        finish(ax, "Nominal coverage of the interval", "Observed coverage")
        legend(ax, title="Above the diagonal intervals are too wide, below too narrow.")


@dataclass(eq=False, repr=False, kw_only=True)
class PITDisplay(Display):
    """Histogram of the probability integral transform, which calibrated forecasts make uniform.

    The transform is the probability that a forecast gave to outcomes below the one observed; of an
    outcome that has a probability of its own, a part of that is drawn, always alike. The grey band
    holds each bar with a probability of at least 90 % if forecasts are calibrated
    (binomial): what stays within may well be chance.

    Parameters
    ----------
    pit : ndarray of shape (n,)
        The transform of each row, between 0 and 1.
    n_bins : int
        Bars of the histogram.

    Attributes
    ----------
    bars_ : matplotlib BarContainer
        The bars, as densities; what `plot` is given besides ``ax`` is for them.
    band_ : matplotlib PolyCollection
    ax_, figure_ : matplotlib Axes and Figure

    Examples
    --------
    >>> from mvenet.plots import PITDisplay
    >>> display = PITDisplay.from_predictions([0.0, 2.0], [0.0, 1.0], std=[1.0, 1.0])
    >>> print(display.pit.round(3))
    [0.5   0.841]
    """

    pit: Array
    n_bins: int = 10

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        n_bins: int = 10,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Predict and transform, on rows that the estimator was not trained on.

        Parameters
        ----------
        estimator : fitted estimator
            With ``predict(X, return_std=True)`` or ``predict_dist(X)``.
        X : array-like or DataFrame of shape (n, n_features)
        y : array-like of shape (n,)
        n_bins : int, default=10
        ax : matplotlib Axes or None
        **kwargs
            For the bars.

        Returns
        -------
        PITDisplay
        """
        target, dist = checked_target(X, y), predicted(estimator, X)
        return cls.from_predictions(target, dist, n_bins=n_bins, ax=ax, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        dist: Forecast,
        std: Given = None,
        *,
        n_bins: int = 10,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Transform predictions at hand.

        Parameters
        ----------
        y_true : array-like of shape (n,)
        dist : Normal, NormalMixture, or array-like of shape (n,)
            Predictive distributions, or their means, in units of y.
        std : array-like of shape (n,) or None
            Standard deviations; given if and only if `dist` holds means.
        n_bins, ax, **kwargs : as in `from_estimator`

        Returns
        -------
        PITDisplay
        """
        bins = whole("n_bins", n_bins)
        transformed = metrics.pit(y_true, dist, std, random_state=0)
        return cls(pit=transformed, n_bins=bins).plot(ax, **kwargs)

    def _draw(self, ax: Axes, kwargs: dict[str, Any]) -> None:
        n, bins = len(self.pit), self.n_bins
        density, edges = np.histogram(self.pit, bins=bins, range=(0, 1), density=True)
        look: dict[str, Any] = {
            "color": blend(BLUE, 0.5),
            "edgecolor": "white",
            "linewidth": 0.8,
            "align": "edge",
        }
        self.bars_ = ax.bar(edges[:-1], density, 1 / bins, **{"label": rows(n), **look, **kwargs})
        ax.axhline(1, color=RULE, linewidth=1, linestyle="--", label="calibrated")
        low, high = np.array(stats.binom.interval(BAND, n, 1 / bins)) * bins / n
        style: dict[str, Any] = {"color": "0.3", "alpha": 0.16, "linewidth": 0, "zorder": 1.5}
        self.band_ = ax.fill_between([0, 1], low, high, label="90 % range of chance", **style)
        ax.set_xlim(0, 1)
        ax.set_ylim(0, 1.08 * max(float(density.max()), float(high)))
        finish(ax, "PIT: predicted probability of less than observed", "Density")
        ax.grid(False, axis="x")
        legend(ax, title=r"$\cup$ too narrow, $\cap$ too wide, a slope: biased")
