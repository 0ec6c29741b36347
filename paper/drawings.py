"""The pictures of figures.py: each function draws what was measured and writes one PNG."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import style
from matplotlib.axes import Axes
from matplotlib.ticker import NullFormatter
from measure import Array, Fit, Truth, median, typical

from mvenet.datasets import Sample

Draw = Callable[[int], Sample]


def architectures(folder: Path) -> None:
    """The original network, split after the inputs, and the modern one, split at the outputs."""
    figure, axes = style.panels(1, 2, (7.0, 2.7))
    inputs = [(0.0, y) for y in (0.7, 0.5, 0.3)]
    texts = ["$x_1$", "$x_2$", "$x_3$"]
    split, shared = axes.flat
    for low, colour, output in (
        (0.56, style.BLUE, r"$\mu(x)$"),
        (0.0, style.ORANGE, r"$\sigma^2(x)$"),
    ):
        layers = [[(x, low + y) for y in (0.06, 0.22, 0.38)] for x in (0.33, 0.66)]
        _layers(split, [inputs, *layers, [(1.0, low + 0.22)]], colour)
        _text(split, (1.0, low + 0.22), output)
    style.title(split, "Original: two networks share only the inputs")
    layers = [[(x, y) for y in (0.2, 0.4, 0.6, 0.8)] for x in (0.33, 0.66)]
    _layers(shared, [inputs, *layers], style.GREEN)
    for y, colour, output in (
        (0.65, style.BLUE, r"$\mu(x)$"),
        (0.35, style.ORANGE, r"$\sigma^2(x)$"),
    ):
        _layers(shared, [layers[-1], [(1.0, y)]], colour)
        _text(shared, (1.0, y), output)
    style.title(shared, "Modern: only the outputs are separate")
    for panel in axes.flat:
        for place, text in zip(inputs, texts, strict=True):
            panel.plot(*place, "o", color="white", markeredgecolor="black", markersize=11, zorder=4)
            panel.text(place[0] - 0.07, place[1], text, ha="right", va="center", fontsize=10)
        panel.set(xlim=(-0.22, 1.32), ylim=(-0.04, 1.04))
        panel.axis("off")
    style.save(figure, folder, "architectures")


def _layers(panel: Axes, layers: Sequence[Sequence[tuple[float, float]]], colour: str) -> None:
    """Units of each layer in one colour, joined to all of the layer before."""
    for before, after in pairwise(layers):
        for a in before:
            for b in after:
                panel.plot(*zip(a, b, strict=True), color=colour, linewidth=0.7, alpha=0.7)
    for layer in layers[1:]:
        panel.plot(*zip(*layer, strict=True), "o", color=colour, markeredgecolor="black",
                   markersize=11, zorder=3)  # fmt: skip


def _text(panel: Axes, place: tuple[float, float], text: str) -> None:
    panel.text(place[0] + 0.07, place[1], text, ha="left", va="center", fontsize=11)


def local_minima(
    folder: Path,
    curves: Sequence[tuple[Array, Array]],
    minima: Sequence[tuple[float, float]],
) -> None:
    """Profile of the negative log-likelihood: one draw in blue with its minima, others in grey.

    ``minima`` are (position, value) of the first curve; ``curves`` are (mu, value).
    """
    figure, axes = style.panels(1, 1, (6.0, 3.1))
    panel = axes[0, 0]
    for k, (mu, value) in enumerate(curves[1:]):
        panel.plot(mu, value, color=style.GREY, linewidth=0.6, alpha=0.8,
                   label=None if k else "other draws")  # fmt: skip
    panel.plot(*curves[0], color=style.BLUE, label="one draw")
    for k, (mu, value) in enumerate(minima):
        panel.plot(mu, value, "o", color=style.RED, zorder=3, label=None if k else "local minimum")
        panel.annotate(f"{mu:.2f}", (mu, value), (0, -12), textcoords="offset points", ha="center",
                       fontsize=9)  # fmt: skip
    panel.set(xlabel="mean μ shared by both groups", ylabel="negative log-likelihood")
    panel.margins(y=0.12)
    style.title(panel, "100 points N(2, 0.5²) and 100 points N(5, 0.1²), best variances at each μ")
    style.legend_outside(figure, panel)
    style.save(figure, folder, "local_minima")


def sine(
    folder: Path,
    name: str,
    draw: Draw,
    truth: Truth,
    shown: Mapping[str, Sequence[Fit]],
    stds: bool = False,
) -> None:
    """The typical network of each setting, one below the other; if asked, the last one's std."""
    rows = len(shown) + stds
    figure, axes = style.panels(rows, 1, (7.0, 0.7 + 1.9 * rows), sharex=True)
    for panel, (text, fits) in zip(axes.flat, shown.items(), strict=False):
        _sine_panel(panel, text, fits, draw, truth)
    if stds:
        panel = axes[-1, 0]
        panel.plot(truth.x, truth.std, "--", color="black", linewidth=0.8)
        panel.plot(truth.x, typical(fits).std, color=style.ORANGE)
        panel.set(ylim=(0, None), ylabel="std")
        style.title(panel, "Predicted std, and the true 0.01 (dashed)")
    axes[-1, 0].set_xlabel("x")
    style.legend_outside(figure, axes[0, 0])
    style.save(figure, folder, name)


def _sine_panel(panel: Axes, text: str, fits: Sequence[Fit], draw: Draw, truth: Truth) -> None:
    fit = typical(fits)
    sample = draw(fit.seed)
    style.draw_fit(panel, (sample.X[:, 0], sample.y), truth.x, truth.mean, fit.mean, fit.std)
    panel.set(xlim=(0, 10), ylim=(-0.95, 0.95), ylabel="y")
    style.title(
        panel, f"{text}: RMSE of the mean {fit.rmse_mean:.3f}, of the std {fit.rmse_std:.4f}"
    )


def penalties(
    folder: Path,
    draw: Draw,
    truth: Truth,
    series: Mapping[str, Sequence[Sequence[Fit]]],
    shown: Mapping[str, Sequence[Fit]],
    limit: float,
) -> None:
    """RMSE of the mean against the variance's penalty, and the typical network of the best."""
    figure, axes = style.panels(1 + len(shown), 1, (7.0, 2.8 + 1.8 * len(shown)))
    panel = axes[0, 0]
    values = sorted({fits[0].reg_var for groups in series.values() for fits in groups})
    looks = zip((style.RED, style.BLUE, style.GREEN), "s^o", (-0.12, 0.0, 0.12), strict=True)
    for (name, groups), (colour, mark, shift) in zip(series.items(), looks, strict=False):
        at = [values.index(fits[0].reg_var) + shift for fits in groups]
        for x, fits in zip(at, groups, strict=True):
            errors = [min(fit.rmse_mean, 2.0) for fit in fits]  # what blew up stays in the picture
            panel.plot([x] * len(fits), errors, mark, color=colour, markersize=3.5, alpha=0.6,
                       markeredgewidth=0)  # fmt: skip
        panel.plot(at, [median(fits) for fits in groups], color=colour, marker=mark, markersize=6,
                   linewidth=1.4, label=name)  # fmt: skip
    panel.axhline(limit, color=style.GREY, linewidth=1, linestyle=":", label=f"learned (< {limit})")
    panel.set_xticks(range(len(values)), [f"{value:g}" for value in values])
    panel.set(yscale="log", xlabel="penalty of the variance", ylabel="RMSE of the mean")
    panel.set_yticks([0.01, 0.1, 1.0], ["0.01", "0.1", "1"])
    panel.yaxis.set_minor_formatter(NullFormatter())
    style.title(panel, "Without a warm-up, by penalty: every seed, and the median (large)")
    style.legend_outside(figure, panel)
    for below, (text, group) in zip(axes[1:, 0], shown.items(), strict=True):
        _sine_panel(below, text, group, draw, truth)
    axes[-1, 0].set_xlabel("x")
    style.legend_outside(figure, axes[-1, 0], "lower")
    style.save(figure, folder, "sine_separate")


def quadratic(
    folder: Path,
    draw: Draw,
    truth: Truth,
    grid: Mapping[str, Mapping[str, Sequence[Fit]]],
    name: str = "quadratic",
) -> None:
    """A row a network, a column a penalty of the variance."""
    columns = len(next(iter(grid.values())))
    figure, axes = style.panels(
        len(grid), columns, (8.4, 0.6 + 2.2 * len(grid)), sharex=True, sharey=True
    )
    for row, (network, groups) in zip(axes, grid.items(), strict=True):
        for panel, fits in zip(row, groups.values(), strict=True):
            fit = typical(fits)
            sample = draw(fit.seed)
            style.draw_fit(
                panel, (sample.X[:, 0], sample.y), truth.x, truth.mean, fit.mean, fit.std
            )
            style.title(panel, f"variance penalty {fit.reg_var:g}")
            text = f"RMSE of the mean {fit.rmse_mean:.3f}\nof the std {fit.rmse_std:.3f}"
            panel.text(
                0.5, 0.98, text, transform=panel.transAxes, ha="center", va="top", fontsize=7.5
            )
            panel.set(xlim=(-1, 1), ylim=(-0.8, 2.2), xticks=(-1, 0, 1))
        row[0].set_ylabel(f"{network}\ny")
    for panel in axes[-1]:
        panel.set_xlabel("x")
    style.legend_outside(figure, axes[0, 0])
    style.save(figure, folder, name)
