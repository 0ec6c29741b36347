"""Where the predicted variance comes from: noise, and members that disagree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mvenet.distributions import Distribution
from mvenet.plots._predictions import predicted
from mvenet.plots._style import (
    BLUE,
    RED,
    RULE,
    Display,
    blend,
    finish,
    legend,
    named,
    unit_squared,
    wrapped,
)
from mvenet.plots._sweep import checked_rows, places, stretched, sweep
from mvenet.predictive import unwrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]


@dataclass(eq=False, repr=False, kw_only=True)
class UncertaintyDisplay(Display):
    """Where the predicted variance comes from: aleatoric and epistemic, stacked to the total.

    Aleatoric is the noise that the members of an ensemble predict, on average; epistemic is how far
    their means disagree, which more data would mend. They add up as variances; the axis on the
    right has the standard deviation, in units of y.

    Parameters
    ----------
    x : ndarray of shape (n_points,)
        The feature, ascending; or the edges of groups of rows, from 0 to 100 %.
    aleatoric, epistemic : ndarray of shape (n_points,), or one less for groups
        Variances, in units of y squared.
    x_label, y_label : str
        Names of feature and outcome, with units.

    Attributes
    ----------
    areas_ : list of two matplotlib PolyCollection
        Aleatoric and epistemic; what `plot` is given besides ``ax`` is for both.
    line_ : matplotlib Line2D
        The total.
    ax_, figure_ : matplotlib Axes and Figure

    Examples
    --------
    >>> from mvenet import NormalMixture
    >>> from mvenet.plots import UncertaintyDisplay
    >>> dist = NormalMixture(means=[[0.0, 1.0], [0.0, 3.0]], stds=[[1.0, 1.0], [1.0, 2.0]])
    >>> display = UncertaintyDisplay.from_predictions(dist, x=[0.0, 1.0])
    >>> print(display.aleatoric, display.epistemic)
    [1.  2.5] [0. 1.]
    """

    x: Array
    aleatoric: Array
    epistemic: Array
    x_label: str = "x"
    y_label: str = "y"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        feature: int | str | None = None,
        grid: int | ArrayLike = 200,
        x_label: str | None = None,
        y_label: str = "y",
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Vary one feature, the others at their median; or show all rows, ordered.

        Parameters
        ----------
        estimator : fitted estimator
            With ``predict_dist(X)``, and more than one member for an epistemic part.
        X : array-like or DataFrame of shape (n, n_features)
        feature : int, str or None, default=None
            Number or name of the column. None is the only column; if there are several, the rows
            of X stand in the order of their variance.
        grid : int or array-like, default=200
            So many points over the range of the feature; or the values to predict at. Beyond the
            range is where members disagree.
        x_label : str or None
        y_label : str, default="y"
            Name of the outcome with its unit, such as ``"power (kW)"``.
        ax : matplotlib Axes or None
        **kwargs
            For both areas.

        Returns
        -------
        UncertaintyDisplay
        """
        shape = np.shape(X)
        if feature is None and len(shape) == 2 and shape[1] > 1:
            table, x = X, None
        else:
            line = sweep(estimator, X, 0 if feature is None else feature, grid)
            table, x = line.table, line.values
            x_label = line.label if x_label is None else x_label
        last, table = unwrapped(estimator, table)
        dist = predicted(last, table)
        if not hasattr(last, "predict_dist"):
            raise TypeError(
                "estimator must have predict_dist, which tells the parts of the variance, got "
                f"{type(last).__name__}: use one such as MVERegressor(n_members=5)."
            )
        return cls.from_predictions(dist, x=x, x_label=x_label, y_label=y_label, ax=ax, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        dist: Distribution,
        *,
        x: ArrayLike | None = None,
        x_label: str | None = None,
        y_label: str = "y",
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw predictions at hand, in the order of x or of their variance.

        Parameters
        ----------
        dist : NormalMixture or Normal
            Predictive distributions. Standard deviations alone have no parts.
        x : array-like of shape (n,) or None
            The only feature, or a position along a line. Of rows with the same x, the first is
            drawn. None orders the rows by their variance, and averages them in at most 25 groups
            of the same size.
        x_label, y_label, ax, **kwargs : as in `from_estimator`

        Returns
        -------
        UncertaintyDisplay
        """
        if not isinstance(dist, Distribution):
            raise TypeError(
                f"dist must be a Normal or a NormalMixture, got {type(dist).__name__}: pass what "
                "predict_dist returns."
            )
        forecast = checked_rows(None, dist, None)[1]
        if x is None:
            order = np.argsort(forecast.var, kind="stable")
            groups = np.array_split(order, min(25, len(order)))
            parts = forecast.aleatoric, forecast.epistemic
            a, e = (np.array([part[rows].mean() for rows in groups]) for part in parts)
            place = np.linspace(0, 100, len(groups) + 1)
            label = "Rows, in the order of their predicted variance (%)"
        else:
            at, rows = places(x, len(forecast))
            place, a, e = at[rows], forecast[rows].aleatoric, forecast[rows].epistemic
            label = named(x, None, "x")
        label = label if x_label is None else x_label
        return cls(x=place, aleatoric=a, epistemic=e, x_label=label, y_label=y_label).plot(
            ax, **kwargs
        )

    def _draw(self, ax: Axes, kwargs: dict[str, Any]) -> None:
        if len(self.x) > len(self.aleatoric):  # edges
            rows, step = np.append(np.arange(len(self.aleatoric)), len(self.aleatoric) - 1), "post"
            x = self.x
        else:
            (x, rows), step = stretched(self.x), None
        parts = [part[rows] for part in (self.aleatoric, self.epistemic)]
        total = parts[0] + parts[1]
        look = {"linewidth": 0, "step": step} | kwargs
        share = 100 * float(self.epistemic.mean() / (self.aleatoric + self.epistemic).mean())
        colors = {
            f"aleatoric: noise ({100 - share:.3g} %)": blend(BLUE, 0.4),
            f"epistemic: members disagree ({share:.2g} %)": RED,
        }
        ends = (np.zeros(len(x)), parts[0], total)
        self.areas_ = [
            ax.fill_between(x, low, high, **{"color": color, "label": label, **look})
            for low, high, (label, color) in zip(ends[:-1], ends[1:], colors.items(), strict=True)
        ]
        style: dict[str, Any] = {
            "drawstyle": "default" if step is None else "steps-post",
            "label": "total",
        }
        (self.line_,) = ax.plot(x, total, color=RULE, linewidth=1.2, **style)
        ax.set_ylim(0, 1.05 * float(total.max()))
        ax.margins(x=0)
        _std_axis(ax, f"Standard deviation of {self.y_label}")
        finish(ax, self.x_label, f"Variance of {unit_squared(self.y_label)}")
        legend(ax)


def _std_axis(ax: Axes, label: str) -> None:
    """Add an axis on the right that reads variances as standard deviations."""
    from matplotlib.ticker import MaxNLocator

    right = ax.secondary_yaxis("right", functions=(_root, _square))
    top = float(_root(np.array(ax.get_ylim()[1])))
    ticks = [t for t in MaxNLocator(6).tick_values(0, top) if 0 <= t <= top]
    apart = [0.0]  # towards zero standard deviations crowd together
    for tick in ticks[::-1]:
        if (tick / top) ** 2 > 0.09 and abs(tick**2 - apart[-1] ** 2) > 0.09 * top**2:
            apart.append(tick)
    right.set_yticks(apart)
    right.set_ylabel(wrapped(ax, label, 1))
    right.spines["right"].set_visible(False)


def _root(variance: Any) -> Any:
    return np.sqrt(np.maximum(variance, 0.0))


def _square(std: Any) -> Any:
    return np.square(std)
