"""What widens the interval of a row, and which columns would narrow it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mvenet._utils.wording import percent
from mvenet.explain import Narrowing, narrowing
from mvenet.explain._text import cell
from mvenet.plots._style import BLUE, RED, RULE, Display, finish, legend, plain, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(eq=False, repr=False, kw_only=True)
class NarrowingDisplay(Display):
    """How much each cell of a row widens or narrows its interval.

    Bars show the width beside what it is with other rows' cells; a dot how narrow it gets with the
    best of these.

    Parameters
    ----------
    narrowing : mvenet.explain.Narrowing
    max_columns : int
        Only so many are shown: those that matter most, either way.

    Attributes
    ----------
    bars_ : matplotlib BarContainer
        What `plot` is given besides ``ax`` is for them.
    dots_ : matplotlib Line2D
    ax_, figure_ : matplotlib Axes and Figure

    Examples
    --------
    >>> from mvenet import MVERegressor
    >>> from mvenet.datasets import quadratic
    >>> from mvenet.plots import NarrowingDisplay
    >>> data = quadratic(100, random_state=0)
    >>> model = MVERegressor(epochs=10, random_state=0).fit(data.X, data.y)
    >>> display = NarrowingDisplay.from_estimator(model, 3, data.X)
    >>> display.narrowing.columns
    ['x0']
    """

    narrowing: Narrowing
    max_columns: int = 12

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        row: Any,
        X: Any,
        *,
        coverage: float = 0.9,
        max_values: int = 50,
        random_state: int = 0,
        max_columns: int = 12,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Replace the cells of a row by those of others.

        Parameters
        ----------
        estimator, row, X, coverage, max_values, random_state
            As in :func:`mvenet.explain.narrowing`.
        max_columns : int, default=12
            Only so many are shown: those that matter most, either way.
        ax : matplotlib Axes or None
        **kwargs
            For the bars.

        Returns
        -------
        NarrowingDisplay
        """
        found = narrowing(
            estimator, row, X, coverage=coverage, max_values=max_values, random_state=random_state
        )
        return cls(narrowing=found, max_columns=max_columns).plot(ax, **kwargs)

    def _draw(self, ax: Axes, kwargs: dict[str, Any]) -> None:
        found = self.narrowing
        matter = np.maximum(np.abs(np.log(found.factor)), -np.log(found.narrowest))
        shown = np.sort(np.argsort(-matter, kind="stable")[: self.max_columns])
        place = np.arange(len(shown))[::-1]
        change = 100 * (found.factor[shown] - 1)
        colors = np.where(change > 0, RED, BLUE)
        look: dict[str, Any] = {"color": colors, "height": 0.6, "zorder": 2, **kwargs}
        self.bars_ = ax.barh(place, change, **look)
        label = "width with the best other value"
        (self.dots_,) = ax.plot(
            100 * (found.narrowest[shown] - 1), place, "o", color=RULE, markersize=4, label=label
        )
        ax.axvline(0.0, color=RULE, linewidth=0.8, zorder=1)
        names = [f"{short(found.columns[i], 18)} = {cell(found.values[i])}" for i in shown]
        ax.set_yticks(place, [plain(name) for name in names])
        level = percent(found.coverage)
        finish(ax, f"Width of the {level} % interval beside other rows' values (%)", "")
        ax.grid(False, axis="y")
        legend(ax)
