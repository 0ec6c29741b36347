"""What all pictures share: colours, axes, dots, legends. The only place that decides on looks.

Everything is set on the axes at hand; matplotlib's global settings are read, never written. Sizes
of text are those of the user's style, or relative to them.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

# Okabe and Ito's palette, which colour-blind readers can tell apart, and two greys.
BLUE, ORANGE, GREEN, RED, PURPLE = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7"
DOT, RULE = "0.35", "0.15"
MOST_DOTS = 2000  # more make a vector file large and the picture no clearer
MOST_VERTICES = 1000
_LETTER = 0.53  # mean width of a letter in units of the font's size
WIDE, SQUARE = (4.8, 3.8), (4.6, 5.0)  # inches: text stays readable at the width of a telephone


class Display(ABC):
    """A picture: its attributes hold the data, `plot` draws them.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn, after `plot`.
    """

    ax_: Axes
    figure_: Figure | SubFigure
    _size = WIDE

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes or None
            Where to draw. None makes a new figure.
        **kwargs
            Handed to matplotlib for the main artist, which the class names.

        Returns
        -------
        self
        """
        self.ax_ = _new_axes(self._size) if ax is None else _checked(ax)
        self.figure_ = self.ax_.figure
        self._draw(self.ax_, kwargs)
        return self

    @abstractmethod
    def _draw(self, ax: Axes, kwargs: dict[str, Any]) -> None:
        """Draw on these axes."""


def _new_axes(size: tuple[float, float]) -> Axes:
    try:
        import matplotlib.pyplot as plt
    except ImportError as missing:
        raise ImportError('plots need matplotlib: pip install "mvenet[plot]"') from missing
    return plt.subplots(figsize=size, layout="compressed")[1]


def _checked(ax: Any) -> Axes:
    from matplotlib.axes import Axes

    if not isinstance(ax, Axes):
        raise TypeError(f"ax must be matplotlib Axes or None, got {type(ax).__name__}: pass one.")
    return ax


def finish(ax: Axes, x_label: str, y_label: str, *, grid: bool = True) -> None:
    """Label the axes and take away what distracts."""
    from matplotlib.ticker import MaxNLocator

    ax.set_xlabel(wrapped(ax, x_label, 0))
    ax.set_ylabel(wrapped(ax, y_label, 1))
    ax.spines[["top", "right"]].set_visible(False)
    for axis in (ax.xaxis, ax.yaxis):
        locator = axis.get_major_locator()
        if isinstance(locator, MaxNLocator):  # as on a linear axis: numbers must not touch
            locator.set_params(nbins=6)
    ax.set_axisbelow(True)
    if grid:
        ax.grid(color="0.9", linewidth=0.6)
    else:
        ax.grid(False)


def wrapped(ax: Axes, text: str, direction: int) -> str:
    """Break a label into lines that fit the width (0) or the height (1) of the axes."""
    from textwrap import fill

    box = ax.get_window_extent()
    points = 72 * (box.height if direction else box.width) / ax.figure.dpi
    room = max(12, int(points / (_LETTER * float(ax.xaxis.label.get_fontsize()))))
    if len(re.sub(r"\$[^$]*\$", "MM", text)) <= room:  # a formula is shorter than its source
        return text
    return "\n".join(fill(line, room, break_long_words=False) for line in text.split("\n"))


def legend(ax: Axes, title: str | None = None, *, may_hide: bool = True) -> None:
    """Below the x label, where it hides nothing, if the layout makes room; else within the axes.

    The title is a line of explanation, left out within the axes.
    """
    found = dict(zip(*ax.get_legend_handles_labels()[::-1], strict=True))  # each label once
    handles, labels = list(found.values()), list(found)
    style: dict[str, Any] = {"fontsize": "small", "title_fontsize": "small", "alignment": "left"}
    if may_hide and ax.figure.get_layout_engine() is None:
        ax.legend(handles, labels, framealpha=0.85, **style)
        return
    from matplotlib.transforms import ScaledTranslation

    offset = ScaledTranslation(0, -_points_below(ax) / 72, ax.figure.dpi_scale_trans)
    ax.legend(
        handles,
        labels,
        title=title,
        loc="upper left",
        bbox_to_anchor=(0, 0),
        bbox_transform=ax.transAxes + offset,
        borderaxespad=0,
        borderpad=0,
        frameon=False,
        ncols=_columns(ax, labels),
        **style,
    )


def _points_below(ax: Axes) -> float:
    """Height of what stands between the axes and the end of the x label, with a gap."""
    ticks = float(ax.xaxis.get_major_ticks(1)[0].label1.get_fontsize())
    label = ax.xaxis.label
    lines = label.get_text().count("\n") + 1
    return 7 + 1.25 * ticks + 4 + 1.3 * lines * float(label.get_fontsize()) + 6


def _columns(ax: Axes, labels: list[str]) -> int:
    """As many columns as fit the width of the axes."""
    from matplotlib.font_manager import FontProperties

    points = FontProperties(size="small").get_size_in_points()
    room = 72 * ax.get_window_extent().width / ax.figure.dpi / points
    for n in (3, 2):
        columns = [part for part in np.array_split(labels, n) if len(part)]  # as the legend does
        widths = [_LETTER * max(map(len, part)) + 2.8 for part in columns]
        if sum(widths) + 2 * (len(widths) - 1) <= room:
            return len(widths)
    return 1


def blend(color: Any, share: float) -> tuple[float, ...]:
    """Blend this share of a colour with white: a tint that hides what is behind it."""
    from matplotlib.colors import to_rgb

    return tuple(1 - share * (1 - part) for part in to_rgb(color))


def dots(ax: Axes, x: NDArray[Any], y: NDArray[Any], label: str, **style: Any) -> Any:
    """Faint dots, the smaller the more there are."""
    size = float(np.clip(16 / max(len(x), 1) ** 0.25, 2.2, 4.5))
    look: dict[str, Any] = {
        "linestyle": "none",
        "marker": "o",
        "color": DOT,
        "alpha": 0.4,
        "markersize": size,
        "markeredgewidth": 0,
        "zorder": 2,
    }
    return ax.plot(x, y, **{"label": label, **look, **style})[0]


def some(n: int, most: int) -> NDArray[np.int64]:
    """At most so many of n rows, drawn at random, always the same."""
    if isinstance(most, bool) or not isinstance(most, int | np.integer) or most < 1:
        raise ValueError(f"max_points must be a positive integer, got {most!r}: use, say, 2000.")
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, most, replace=False))


def evenly(n: int, most: int = MOST_VERTICES) -> NDArray[np.int64]:
    """At most so many of n places, evenly spaced, the first and the last among them."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(np.int64))


def counted(name: str, shown: int, n: int) -> str:
    """``observed``, or ``observed (2,000 of 45,730 rows)`` if not all are shown."""
    return name if shown == n else f"{name} ({shown:,} of {n:,} rows)"


def rows(n: int) -> str:
    """``1 row``, ``2,000 rows``."""
    return f"{n:,} row" + "s" * (n != 1)


def unit_squared(label: str) -> str:
    """``power (kW)²`` of ``power (kW)``; a name without a unit is squared in words."""
    return f"{label}²" if label.endswith((")", "]")) else f"{label} (units of {label}, squared)"


def named(y: Any, label: str | None, default: str = "y") -> str:
    """Return the label given, or the name of a pandas or polars series, or the default."""
    name = getattr(y, "name", None) if label is None else label
    return plain(name) if label is None and name else (name or default)


def plain(name: Any) -> str:
    """Text of a column's name, in which a dollar sign is one and starts no formula."""
    return str(name).replace("$", r"\$")


def short(name: Any, most: int = 30) -> str:
    """A name of at most so many letters."""
    text = str(name)
    return text if len(text) <= most else f"{text[: most - 1]}…"
