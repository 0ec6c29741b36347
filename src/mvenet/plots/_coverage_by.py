"""Coverage group by group, with what chance explains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mvenet import metrics
from mvenet.explain._asking import whole
from mvenet.metrics._calibration import counted_by
from mvenet.metrics._inputs import Forecast, Given
from mvenet.plots._predictions import checked_levels, checked_target, intervals
from mvenet.plots._style import BLUE, RED, RULE, Display, finish, legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]
MOST_LETTERS = 24  # of the name of a group


@dataclass(eq=False, repr=False, kw_only=True)
class CoverageByDisplay(Display):
    """Coverage of prediction intervals group by group, beside what chance explains.

    A group in whose grey bar the point lies may be as it is by chance: the bar holds 19 of 20
    groups if rows are independent and intervals hold. Rows of one patient are not independent, and
    of those more than one in twenty will lie outside.

    Parameters
    ----------
    group : ndarray of shape (k,)
        Names of the groups shown, the first at the top.
    rows : ndarray of shape (k,), int
        Rows of each.
    coverage, low, high : ndarray of shape (k,)
        Share of its rows covered, and the limits of chance.
    nominal : float
        Coverage that the intervals claim.
    n_groups : int
        How many groups there were.
    label : str
        What the groups are.

    Attributes
    ----------
    inside_, outside_ : matplotlib Line2D or None
        Groups within and beyond the limits; what `plot` is given besides ``ax`` is for both.
    bars_ : matplotlib LineCollection
        The limits.
    ax_, figure_ : matplotlib Axes and Figure

    Examples
    --------
    >>> from mvenet.plots import CoverageByDisplay
    >>> display = CoverageByDisplay.from_predictions(
    ...     [0.0, 0.1, 3.0], [0.0, 0.0, 0.0], ["a", "a", "b"], std=[1.0, 1.0, 1.0]
    ... )
    >>> display.group.tolist(), display.coverage.tolist()
    (['b', 'a'], [0.0, 1.0])
    """

    group: NDArray[Any]
    rows: NDArray[np.int64]
    coverage: Array
    low: Array
    high: Array
    nominal: float
    n_groups: int
    label: str = "group"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        groups: ArrayLike,
        *,
        nominal: float = 0.9,
        order: str = "coverage",
        max_groups: int = 20,
        label: str = "group",
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
        groups : array-like of shape (n,)
            What to tell apart: patients, regions, months.
        nominal : float, default=0.9
        order : {"coverage", "group"}, default="coverage"
            Which is at the top: the group that is covered least, or the first by name, as along
            time.
        max_groups : int, default=20
            Of more groups so many are shown: the first in this order.
        label : str, default="group"
            What the groups are.
        ax : matplotlib Axes or None
        **kwargs
            For the points.

        Returns
        -------
        CoverageByDisplay
        """
        (level,), target = checked_levels("nominal", nominal), checked_target(X, y)
        low, high = intervals(estimator, X, np.array([level]))[:, 0].T
        told = counted_by((low <= target) & (target <= high), groups, float(level))
        return cls._of(told, float(level), order, max_groups, label).plot(ax, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        dist: Forecast,
        groups: ArrayLike,
        std: Given = None,
        *,
        nominal: float = 0.9,
        order: str = "coverage",
        max_groups: int = 20,
        label: str = "group",
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Count for predictions at hand.

        Parameters
        ----------
        y_true : array-like of shape (n,)
        dist : Normal, NormalMixture, or array-like of shape (n,)
            Predictive distributions, or their means, in units of y.
        groups : array-like of shape (n,)
        std : array-like of shape (n,) or None
            Standard deviations; given if and only if `dist` holds means.
        nominal, order, max_groups, label, ax, **kwargs : as in `from_estimator`

        Returns
        -------
        CoverageByDisplay
        """
        told = metrics.coverage_by(y_true, dist, groups, std, nominal=nominal)
        return cls._of(told, nominal, order, max_groups, label).plot(ax, **kwargs)

    @classmethod
    def _of(
        cls, told: dict[str, NDArray[Any]], nominal: float, order: str, most: int, label: str
    ) -> Self:
        if order not in ("coverage", "group"):
            raise ValueError(f"order must be 'coverage' or 'group', got {order!r}.")
        n = len(told["group"])
        # Of two with the same coverage the one first that chance explains less.
        worst = np.lexsort((told["coverage"] - told["low"], told["coverage"]))
        shown = (worst if order == "coverage" else np.arange(n))[: whole("max_groups", most)]
        part = {name: values[shown] for name, values in told.items()}
        return cls(**part, nominal=nominal, n_groups=n, label=label)

    def _draw(self, ax: Axes, kwargs: dict[str, Any]) -> None:
        from matplotlib.ticker import PercentFormatter

        at = np.arange(len(self.group))
        chance = "19 of 20 groups lie here by chance"
        self.bars_ = ax.hlines(at, self.low, self.high, color="0.85", linewidth=6, label=chance)
        level = f"{100 * self.nominal:.4g} % are promised"
        ax.axvline(self.nominal, color=RULE, linewidth=1, linestyle="--", label=level)
        slack = 1e-12
        off = (self.coverage < self.low - slack) | (self.coverage > self.high + slack)
        dot: dict[str, Any] = {"linestyle": "none", "markersize": 5, "zorder": 3}
        self.inside_, self.outside_ = None, None
        if not off.all():
            look = {"color": BLUE, "marker": "o", "label": "covered, as chance allows"}
            (self.inside_,) = ax.plot(self.coverage[~off], at[~off], **dot | look | kwargs)
        if off.any():
            look = {"color": RED, "marker": "D", "label": "covered, beyond chance"}
            (self.outside_,) = ax.plot(self.coverage[off], at[off], **dot | look | kwargs)
        ax.set_yticks(at, [_name(name, n) for name, n in zip(self.group, self.rows, strict=True)])
        ax.tick_params(axis="y", labelsize="small", length=0)
        ax.set(xlim=(-0.03, 1.03), ylim=(len(at) - 0.4, -0.6))
        ax.xaxis.set_major_formatter(PercentFormatter(1.0))
        finish(ax, "Share of rows within their interval", f"{self.label} (rows)")
        more = f"{len(at):,} of {self.n_groups:,}" if len(at) < self.n_groups else None
        legend(ax, more)


def _name(group: Any, rows: int) -> str:
    text = str(group).replace("$", r"\$")
    short = text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 1]}…"
    return f"{short} ({rows:,})"
