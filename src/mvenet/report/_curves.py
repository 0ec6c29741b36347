"""Small pictures of how a prediction depends on a column."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np

from mvenet.plots._style import BLUE
from mvenet.report._insight import Dependence


def curve(dependence: Dependence, target: str, ax: Any) -> None:
    """Draw the mean and its 90 % interval against a column."""
    d = dependence
    if isinstance(d.values[0], str) or len(d.values) < 3:
        _levels(d, ax)
    else:
        ax.fill_between(d.values, d.low, d.high, color=BLUE, alpha=0.18, linewidth=0)
        ax.plot(d.values, d.mean, color=BLUE, linewidth=2)
        if isinstance(d.values[0], datetime.datetime):
            from matplotlib import dates

            make: Any = dates  # it has no annotations
            locator = make.AutoDateLocator(maxticks=6)
            ax.xaxis.set_major_locator(locator)
            ax.xaxis.set_major_formatter(make.ConciseDateFormatter(locator))
    ax.set_xlabel(_label(d.column))
    ax.set_ylabel(_label(target, 60))
    ax.spines[["top", "right"]].set_visible(False)


def _levels(d: Dependence, ax: Any) -> None:
    places = np.arange(len(d.values))
    ax.errorbar(
        places, d.mean, yerr=[d.mean - d.low, d.high - d.mean], fmt="o", color=BLUE, ecolor=BLUE,
        elinewidth=5, alpha=0.9,
    )  # fmt: skip
    for bar in ax.collections:
        bar.set_alpha(0.3)
    names = [_label(str(value), 14) for value in d.values]
    crowded = len(names) > 3 or max(map(len, names)) > 9
    ax.set_xticks(places, names, rotation=40 if crowded else 0, ha="right" if crowded else "center")
    ax.margins(x=0.15)


def _label(text: str, most: int = 30) -> str:
    short = text if len(text) <= most else f"{text[: most - 1]}…"
    return short.replace("$", r"\$")
