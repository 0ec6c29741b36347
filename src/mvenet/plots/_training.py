"""How a model came about: the search over both penalties, and the course of training."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from mvenet.plots._style import BLUE, RED, RULE, Display, evenly, finish, legend
from mvenet.predictive import last_step

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]


_LABELS = {
    "nll": "Mean log-likelihood of rows left out",
    "crps": "Mean negative CRPS of rows left out",
}


@dataclass(eq=False, repr=False, kw_only=True)
class SearchDisplay(Display):
    """Heat map of a search over both penalties, with the chosen pair and the equal pairs marked.

    Pairs that were not tried stay empty, pairs whose networks diverged are hatched. Colours span
    the better half of the scores and as much again below; the numbers tell the rest.

    Parameters
    ----------
    reg_mean : ndarray of shape (a,)
        Penalties of the mean network, ascending.
    reg_var : ndarray of shape (b,)
        Penalties of the variance network, ascending.
    scores : ndarray of shape (b, a)
        Mean score of each pair; NaN where it was not tried, -inf where it diverged.
    best : tuple of two float
        The chosen pair.
    score_label : str
        What the score is.

    Attributes
    ----------
    mesh_ : matplotlib QuadMesh
        The cells; what `plot` is given besides ``ax`` is for them.
    texts_ : list of matplotlib Text
        The score of each pair that was tried; empty if there are too many to be read.
    colorbar_ : matplotlib Colorbar
    ax_, figure_ : matplotlib Axes and Figure

    Examples
    --------
    >>> from mvenet.plots import SearchDisplay
    >>> results = {
    ...     "param_reg_mean": [0.01, 0.01, 0.1, 0.1],
    ...     "param_reg_var": [0.01, 0.1, 0.01, 0.1],
    ...     "mean_test_score": [-1.0, -0.5, -2.0, -1.5],
    ... }
    >>> SearchDisplay.from_results(results).best
    (0.01, 0.1)
    """

    reg_mean: Array
    reg_var: Array
    scores: Array
    best: tuple[float, float]
    score_label: str = _LABELS["nll"]

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw what a fitted search has found.

        Parameters
        ----------
        estimator : MVERegressorCV
            Fitted; or a ``GridSearchCV`` over ``reg_mean`` and ``reg_var``, or a pipeline that ends
            in one of these.
        ax : matplotlib Axes or None
        **kwargs
            For the cells, as ``Axes.pcolormesh`` takes them.

        Returns
        -------
        SearchDisplay
        """
        search = last_step(estimator)
        check_is_fitted(search)
        results = getattr(search, "cv_results_", None)
        if results is None:
            raise TypeError(
                f"estimator must have cv_results_, got {type(search).__name__}: pass a fitted "
                "MVERegressorCV."
            )
        index = getattr(search, "best_index_", None)
        label = _LABELS.get(str(getattr(search, "scoring", None)), "Mean score of rows left out")
        return cls.from_results(results, best_index=index, score_label=label, ax=ax, **kwargs)

    @classmethod
    def from_results(
        cls,
        cv_results: Mapping[str, Any],
        *,
        best_index: int | None = None,
        score_label: str | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw ``cv_results_``.

        Parameters
        ----------
        cv_results : dict or DataFrame
            With ``param_reg_mean``, ``param_reg_var`` (or such names with the prefix of a pipeline)
            and ``mean_test_score``. If a pair occurs several times, the best counts.
        best_index : int or None
            Row of the chosen pair; None is the highest score.
        score_label : str or None
            What the score is; None is the mean log-likelihood of the rows left out.
        ax, **kwargs : as in `from_estimator`

        Returns
        -------
        SearchDisplay
        """
        mean, var = (_penalties(cv_results, name) for name in ("reg_mean", "reg_var"))
        score = np.asarray(cv_results["mean_test_score"], dtype=np.float64)
        if not np.isfinite(score).any():
            raise ValueError("cv_results has no finite mean_test_score: there is nothing to show.")
        best = int(np.nanargmax(score)) if best_index is None else int(best_index)
        reg_mean, column = np.unique(mean, return_inverse=True)
        reg_var, row = np.unique(var, return_inverse=True)
        scores = np.full((len(reg_var), len(reg_mean)), np.nan)
        for i, j, value in zip(row, column, score, strict=True):
            scores[i, j] = np.fmax(scores[i, j], value)
        label = {} if score_label is None else {"score_label": score_label}
        pair = float(mean[best]), float(var[best])
        display = cls(reg_mean=reg_mean, reg_var=reg_var, scores=scores, best=pair, **label)
        return display.plot(ax, **kwargs)

    def _draw(self, ax: Axes, kwargs: dict[str, Any]) -> None:
        low, high = self._span()
        finite = np.where(np.isfinite(self.scores), self.scores, np.nan)
        look = {"cmap": "cividis", "vmin": low, "vmax": high, "edgecolor": "white", "linewidth": 1}
        self.mesh_ = ax.pcolormesh(finite, **{**look, **kwargs})
        extend = "min" if np.nanmin(finite) < low else "neither"
        self.colorbar_ = ax.figure.colorbar(self.mesh_, ax=ax, extend=extend)
        self.colorbar_.set_label(self.score_label)
        self.colorbar_.outline.set_visible(False)
        self.texts_ = self._numbers(ax)
        self._marks(ax)
        self._ticks(ax)
        ax.tick_params(length=0)
        finish(
            ax,
            r"Mean penalty $\lambda_\mu$ (reg_mean)",
            r"Variance penalty $\lambda_\sigma$ (reg_var)",
            grid=False,
        )
        ax.spines[:].set_visible(False)
        legend(ax, may_hide=False)

    def _span(self) -> tuple[float, float]:
        """Range of the colours: a few hopeless pairs must not make all others look alike."""
        finite = self.scores[np.isfinite(self.scores)]
        high = float(finite.max())
        low = max(float(finite.min()), high - 2 * (high - float(np.median(finite))))
        return (low, high) if low < high else (high - 0.5, high + 0.5)

    def _numbers(self, ax: Axes) -> list[Any]:
        """Scores as text, as large as the cells allow; none if nobody could read them."""
        from matplotlib.font_manager import FontProperties

        low, high = self._span()
        digits = int(np.clip(np.ceil(-np.log10((high - low) / 50)), 0, 4))
        tried = np.argwhere(~np.isnan(self.scores))
        texts = [_score(self.scores[i, j], digits) for i, j in tried]
        box, (rows, columns) = ax.get_window_extent(), self.scores.shape
        width, height = (72 / ax.figure.dpi * side for side in (box.width, box.height))
        # The colour bar takes a fifth of the width.
        room = 0.8 * 0.8 * width / columns / (0.6 * max(4, *(len(t) for t in texts if t[0] != "$")))
        size = min(FontProperties(size="small").get_size_in_points(), room, 0.5 * height / rows)
        style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": size}
        return [
            ax.text(j + 0.5, i + 0.5, text, color=self._ink(self.scores[i, j]), **style)
            for (i, j), text in zip(tried, texts, strict=True)
            if size >= 4.5
        ]

    def _ticks(self, ax: Axes) -> None:
        """Name the penalties, only every second or third if there is no room for more."""
        box = ax.get_window_extent()
        points = float(ax.xaxis.label.get_fontsize()) * ax.figure.dpi / 72
        texts = [[_power(value) for value in grid] for grid in (self.reg_mean, self.reg_var)]
        widest = max(len(re.sub(r"\\times|[${}^]", "", text)) for text in texts[0])
        needs = (0.6 * widest * points / (0.8 * box.width), 1.3 * points / box.height)
        for axis, names, need in zip((ax.xaxis, ax.yaxis), texts, needs, strict=True):
            step = max(1, int(np.ceil(need * len(names))))
            axis.set_ticks(np.arange(len(names))[::step] + 0.5, names[::step])

    def _ink(self, score: float) -> str:
        """Black or white, whichever can be read on the colour of this score."""
        low, high = self._span()
        return "white" if np.isfinite(score) and score < low + 0.55 * (high - low) else "black"

    def _marks(self, ax: Axes) -> None:
        """Frames around cells, with one entry in the legend for each kind."""
        equal = np.isclose(self.reg_var[:, None], self.reg_mean, rtol=1e-9, atol=0)
        chosen = (self.reg_var[:, None] == self.best[1]) & (self.reg_mean == self.best[0])
        _frames(ax, chosen, "chosen", 0.03, edgecolor=RED, linewidth=2.5, zorder=4)
        dashed: dict[str, Any] = {"linewidth": 1, "linestyle": (0, (3, 2)), "zorder": 3}
        dark = np.vectorize(self._ink)(self.scores) == "white"
        _frames(ax, equal, "equal penalties", 0.1, edgecolor="0.2", **dashed)
        _frames(ax, equal & dark, "", 0.1, edgecolor="white", **dashed)
        fill: dict[str, Any] = {"linewidth": 0, "zorder": 0.5, "facecolor": "0.94"}
        lost = np.isneginf(self.scores)
        _frames(ax, lost, "diverged", 0.02, edgecolor="0.7", hatch="////", **fill)
        _frames(ax, np.isnan(self.scores), "not tried", 0.02, **fill)


@dataclass(eq=False, repr=False, kw_only=True)
class HistoryDisplay(Display):
    """Negative log-likelihood over the epochs, with the end of the warm-up.

    It falls at the end of the warm-up because only then the variance is learnt. Below zero is no
    error: densities exceed 1 where the noise is small. Of more than a thousand epochs, a thousand
    are drawn.

    Parameters
    ----------
    history : dict of ndarray
        ``history_`` of an estimator: columns ``member``, ``stage``, ``epoch``, ``nll`` and
        ``validation_nll``.

    Attributes
    ----------
    lines_ : list of matplotlib Line2D
        Training rows, a line a member; what `plot` is given besides ``ax`` is for them.
    validation_lines_ : list of matplotlib Line2D
        Validation rows, if there are any.
    warmup_end_ : ndarray of int, shape (n_members,)
        Last epoch of the warm-up of each member; 0 without one. They differ with early stopping.
    ax_, figure_ : matplotlib Axes and Figure

    Examples
    --------
    >>> from mvenet import MVERegressor
    >>> from mvenet.datasets import quadratic
    >>> from mvenet.plots import HistoryDisplay
    >>> data = quadratic(50, random_state=0)
    >>> settings = {"strategy": "warmup", "warmup_epochs": 5, "epochs": 10, "random_state": 0}
    >>> model = MVERegressor(**settings).fit(data.X, data.y)
    >>> display = HistoryDisplay.from_estimator(model)
    >>> print(display.warmup_end_, display.lines_[0].get_xdata().max())
    [5] 15
    """

    history: Mapping[str, Any]

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw what a fitted estimator remembers.

        Parameters
        ----------
        estimator : MVERegressor or MVERegressorCV
            Fitted, or a pipeline that ends in one.
        ax : matplotlib Axes or None
        **kwargs
            For the lines of the training rows.

        Returns
        -------
        HistoryDisplay
        """
        model = last_step(estimator)
        check_is_fitted(model)
        history = getattr(model, "history_", None)
        if history is None:
            raise TypeError(
                f"estimator must have history_, got {type(model).__name__}: pass a fitted "
                "MVERegressor or MVERegressorCV."
            )
        return cls(history=history).plot(ax, **kwargs)

    def _draw(self, ax: Axes, kwargs: dict[str, Any]) -> None:
        columns = {name: np.asarray(column) for name, column in self.history.items()}
        members = np.unique(columns["member"])
        thin = 1.6 if len(members) == 1 else 0.9
        alpha = 1.0 if len(members) == 1 else 0.7
        look = {"linewidth": thin, "alpha": alpha}
        styles = {
            "nll": {"color": BLUE, **look, **kwargs},
            "validation_nll": {"color": RED, "linestyle": "--", **look},
        }
        rows = {member: np.flatnonzero(columns["member"] == member) for member in members}
        lines = {
            name: [
                line for member in members for line in _line(ax, columns[name][rows[member]], style)
            ]
            for name, style in styles.items()
        }
        self.lines_, self.validation_lines_ = lines["nll"], lines["validation_nll"]
        of = f" ({len(members)} members)" if len(members) > 1 else ""
        for label, group in (
            ("training rows", self.lines_),
            ("validation rows", self.validation_lines_),
        ):
            if group:
                group[0].set_label(label + of)
        warm = columns["stage"] == "warmup"
        self.warmup_end_ = np.array([warm[rows[member]].sum() for member in members])
        first, last = int(self.warmup_end_.min()), int(self.warmup_end_.max())
        if first < last:
            ax.axvspan(first, last, color="0.9", linewidth=0, zorder=0.5, label="warm-ups end here")
        elif last:
            ax.axvline(last, color=RULE, linewidth=1, linestyle=":", label="end of the warm-up")
        ax.margins(x=0.01)
        finish(ax, "Epoch", "Negative log-likelihood of a row (nats)")
        legend(ax)


def _frames(ax: Axes, cells: NDArray[np.bool_], label: str, inset: float, **style: Any) -> None:
    """Draw a rectangle into each of these cells; the first has the label."""
    from matplotlib.patches import Rectangle

    for number, (i, j) in enumerate(np.argwhere(cells)):
        side = 1 - 2 * inset
        patch = Rectangle((j + inset, i + inset), side, side, fill="facecolor" in style, **style)
        patch.set_label("_" if number else label)
        ax.add_patch(patch)


def _line(ax: Axes, values: Array, style: dict[str, Any]) -> list[Any]:
    """One curve over the epochs, of at most a thousand vertices; none without a finite value."""
    shown = evenly(len(values))
    finite = np.where(np.isfinite(values), values, np.nan)[shown]
    return [] if np.isnan(finite).all() else ax.plot(shown + 1, finite, **style)


def _penalties(cv_results: Mapping[str, Any], name: str) -> Array:
    keys = [key for key in cv_results if key.startswith("param_") and key.endswith(name)]
    if len(keys) != 1:
        raise ValueError(
            f"cv_results must have one column param_{name}, has {len(keys)}: search over reg_mean "
            "and reg_var."
        )
    try:
        return np.array([float(value) for value in cv_results[keys[0]]])
    except (TypeError, ValueError) as error:
        raise ValueError(f"{keys[0]} must hold numbers, but {error}: give values.") from error


def _score(score: float, digits: int) -> str:
    if np.isneginf(score):
        return r"$-\infty$"
    text = f"{score:.{digits}f}" if abs(score) < 1e4 else f"{score:.0e}"
    return text.replace("-", "−")


def _power(value: float) -> str:
    """``10⁻⁵`` or ``3 × 10⁻⁵`` as a formula where the number itself would be long."""
    factor, exponent = f"{value:.1e}".replace(".0e", "e").split("e")
    if value == 0 or (0.01 < value < 1000 and (factor, exponent) != ("1", "-01")):
        return f"{value:.3g}"
    power = f"10^{{{int(exponent)}}}"
    return f"${power}$" if factor == "1" else rf"${factor}\times{power}$"
