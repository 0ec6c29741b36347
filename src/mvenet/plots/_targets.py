"""How the errors of several targets go together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mvenet.distributions import Joint
from mvenet.plots._style import (
    BLUE,
    DOT,
    MOST_DOTS,
    ORANGE,
    RULE,
    SQUARE,
    Display,
    counted,
    dots,
    finish,
    legend,
    plain,
    short,
    some,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]
MOST_WRITTEN = 10  # targets of which each correlation is written into its square
SAME = 0.02  # by which correlations of rows may differ and count as one
CLEAR = 0.1  # of a correlation that is told from none
LEVELS = (0.5, 0.9)


@dataclass(eq=False, repr=False, kw_only=True)
class TargetsDisplay(Display):
    """Where the outcomes of several targets stand in their distributions, beside each other.

    Of two targets each dot is a row: its normal scores, which are standard normal if the
    distributions are right, and go together as the errors do. Ellipses are what the model expects
    of half and of nine in ten; where the correlation differs from row to row, colours tell it
    instead. Of more targets, squares show the correlation of the scores: observed below the
    diagonal, the model's above it.

    Parameters
    ----------
    scores : ndarray of shape (n, k)
    correlation : ndarray of shape (k, k) or (n, k, k)
        What the model expects, of all rows or of each.
    names : sequence of k str
    max_points : int

    Attributes
    ----------
    dots_ : matplotlib Line2D, or AxesImage of more than two targets
        What `plot` is given besides ``ax`` is for it.
    ax_, figure_ : matplotlib Axes and Figure

    Examples
    --------
    >>> from mvenet.distributions import Joint, Normal
    >>> from mvenet.plots import TargetsDisplay
    >>> dist = Joint([Normal([0.0, 0.0], [1.0, 1.0])] * 2, [[1.0, 0.8], [0.8, 1.0]])
    >>> display = TargetsDisplay.from_predictions([[0.5, 0.4], [-1.0, -0.7]], dist)
    >>> display.scores.shape
    (2, 2)
    """

    scores: Array
    correlation: Array
    names: tuple[str, ...]
    max_points: int = MOST_DOTS
    _size = SQUARE

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        max_points: int = MOST_DOTS,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Predict rows that the estimator was not trained on, and draw.

        Parameters
        ----------
        estimator : fitted to several targets
        X : array-like or DataFrame of shape (n, n_features)
        y : array-like of shape (n, k)
        max_points : int, default=2000
            At most so many rows are shown as dots.
        ax : matplotlib Axes or None
        **kwargs
            For the dots, or the squares.

        Returns
        -------
        TargetsDisplay
        """
        dist = estimator.predict_dist(X)
        return cls.from_predictions(y, dist, max_points=max_points, ax=ax, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        dist: Joint,
        *,
        max_points: int = MOST_DOTS,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Compare outcomes with their distributions.

        Parameters
        ----------
        y_true : array-like of shape (n, k)
        dist : Joint
        max_points, ax, **kwargs
            As in `from_estimator`.

        Returns
        -------
        TargetsDisplay
        """
        if not isinstance(dist, Joint) or len(dist.names) < 2:
            raise ValueError("This is of several targets, and the prediction has one: give others.")
        found = cls(
            scores=dist.scores(y_true),
            correlation=dist.copula.correlation,
            names=dist.names,
            max_points=max_points,
        )
        return found.plot(ax, **kwargs)

    def _draw(self, ax: Axes, kwargs: dict[str, Any]) -> None:
        if len(self.names) == 2:
            self._draw_pair(ax, kwargs)
        else:
            self._draw_squares(ax, kwargs)

    def _draw_pair(self, ax: Axes, kwargs: dict[str, Any]) -> None:
        shown = some(len(self.scores), self.max_points)
        a, b = np.clip(self.scores[shown], -5, 5).T
        each = np.broadcast_to(self.correlation, (len(self.scores), 2, 2))[shown, 0, 1]
        rho = float(each.mean()) if len(each) else 0.0
        if np.ptp(each) <= SAME:
            label = counted("observed", len(shown), len(self.scores))
            self.dots_ = dots(ax, a, b, label, **kwargs)
            for level, style in zip(LEVELS, ("-", "--"), strict=True):
                x, y = _ellipse(rho, level)
                name = f"the model's {100 * level:.0f} %, correlation {rho:.2f}"
                ax.plot(x, y, style, color=BLUE, linewidth=1.4, label=name)
        else:
            kinds = (
                ("the model expects errors of one sign", each > CLEAR, BLUE),
                ("of opposite signs", each < -CLEAR, ORANGE),
                ("neither", np.abs(each) <= CLEAR, DOT),
            )
            for name, rows, color in kinds:
                if rows.any():
                    look = {"color": color, "alpha": 0.6, **kwargs}
                    self.dots_ = dots(ax, a[rows], b[rows], name, **look)
        for line in (ax.axhline, ax.axvline):
            line(0.0, color=RULE, linewidth=0.6, zorder=1)
        first, second = (plain(short(name, 24)) for name in self.names)
        finish(
            ax, f"Error of {first} (in its own spread)", f"Error of {second} (in its own spread)"
        )
        ax.set_aspect("equal")
        legend(ax)

    def _draw_squares(self, ax: Axes, kwargs: dict[str, Any]) -> None:
        k = len(self.names)
        model = self.correlation.reshape(-1, k, k).mean(axis=0)
        spread = self.scores.std(axis=0)
        known = np.where(spread > 1e-9, spread, np.inf)
        standard = (self.scores - self.scores.mean(axis=0)) / known
        table = np.triu(model) + np.tril(standard.T @ standard / len(standard), -1)
        np.fill_diagonal(table, np.nan)
        look: dict[str, Any] = {"cmap": "PuOr", "vmin": -1, "vmax": 1, **kwargs}
        self.dots_ = ax.imshow(table, **look)
        for i, j in np.ndindex(k, k) if k <= MOST_WRITTEN else ():
            if i != j:
                color = "white" if abs(table[i, j]) > 0.6 else "black"
                text = f"{table[i, j]:.2f}".replace("-", "−")
                ax.text(j, i, text, ha="center", va="center", color=color, fontsize="small")
        names = [plain(short(name, 16)) for name in self.names]
        finish(ax, "Correlation of errors: below, observed; above, the model's", "", grid=False)
        ax.set_xticks(range(k), names, rotation=45, ha="right")
        ax.set_yticks(range(k), names)


def _ellipse(rho: float, level: float) -> tuple[Array, Array]:
    """The line around this share of standard normals of this correlation."""
    turn = np.linspace(0, 2 * np.pi, 200)
    reach = np.sqrt(-2 * np.log1p(-level))
    x = reach * np.cos(turn)
    return x, rho * x + np.sqrt(max(1 - rho**2, 0.0)) * reach * np.sin(turn)
