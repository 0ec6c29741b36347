"""Which columns matter, for the mean and for the standard deviation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mvenet.explain import Importance, importance
from mvenet.plots._style import BLUE, ORANGE, RULE, Display, finish, legend, plain, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]
LOOKS = (("mean", "for the mean", BLUE), ("std", "for the standard deviation", ORANGE))


@dataclass(eq=False, repr=False, kw_only=True)
class ImportanceDisplay(Display):
    """Rise of the CRPS if a column is shuffled, for the mean and for the standard deviation.

    Lines are two standard errors long to each side.

    Parameters
    ----------
    importance : mvenet.explain.Importance
    max_columns : int
        Only so many are shown, the most important.
    y_label : str
        Name of the outcome with its unit.

    Attributes
    ----------
    bars_ : list of matplotlib BarContainer
        For the mean and for the standard deviation; what `plot` is given besides ``ax`` is for
        them.
    ax_, figure_ : matplotlib Axes and Figure

    Examples
    --------
    >>> from mvenet import MVERegressor
    >>> from mvenet.datasets import quadratic
    >>> from mvenet.plots import ImportanceDisplay
    >>> data = quadratic(150, random_state=0)
    >>> model = MVERegressor(epochs=10, random_state=0).fit(data.X[:100], data.y[:100])
    >>> display = ImportanceDisplay.from_estimator(model, data.X[100:], data.y[100:])
    >>> display.importance.columns
    ['x0']
    """

    importance: Importance
    max_columns: int = 15
    y_label: str = "y"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        columns: Sequence[Any] | None = None,
        n_repeats: int = 5,
        max_rows: int = 1_000,
        cv: Any = None,
        groups: ArrayLike | None = None,
        random_state: int = 0,
        max_columns: int = 15,
        y_label: str = "y",
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Shuffle the columns.

        Parameters
        ----------
        estimator, X, y, columns, n_repeats, max_rows, cv, groups, random_state
            As in :func:`mvenet.explain.importance`.
        max_columns : int, default=15
            Only so many are shown, the most important.
        y_label : str, default="y"
            Name of the outcome with its unit, such as ``"power (kW)"``.
        ax : matplotlib Axes or None
        **kwargs
            For the bars.

        Returns
        -------
        ImportanceDisplay
        """
        found = importance(
            estimator,
            X,
            y,
            columns=columns,
            n_repeats=n_repeats,
            max_rows=max_rows,
            cv=cv,
            groups=groups,
            random_state=random_state,
        )
        return cls(importance=found, max_columns=max_columns, y_label=y_label).plot(ax, **kwargs)

    def _draw(self, ax: Axes, kwargs: dict[str, Any]) -> None:
        found, n = self.importance, min(self.max_columns, len(self.importance.columns))
        place = np.arange(n)[::-1]
        self.bars_ = []
        for i, (part, label, color) in enumerate(LOOKS):
            rise, error = (getattr(found, name)[:n] for name in (part, f"{part}_error"))
            look = {"color": color, "label": label, "height": 0.38, "zorder": 2, **kwargs}
            at = place + (0.2, -0.2)[i]
            self.bars_.append(ax.barh(at, rise, **look))
            ax.errorbar(
                rise, at, xerr=2 * np.nan_to_num(error), fmt="none", ecolor=RULE, elinewidth=0.8,
                zorder=3,
            )  # fmt: skip
        ax.axvline(0.0, color=RULE, linewidth=0.8, zorder=1)
        ax.set_yticks(place, [plain(short(name)) for name in found.columns[:n]])
        finish(ax, f"Rise of the CRPS if shuffled, in units of {self.y_label}", "")
        ax.grid(False, axis="y")
        legend(ax)
