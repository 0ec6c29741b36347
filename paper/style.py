"""One look for all pictures of this folder, in colours that colour-blind readers tell apart."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

# Okabe and Ito's palette; orange is the paper's colour for plus or minus one standard deviation.
BLUE, ORANGE, GREEN, RED, GREY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "0.62"
DPI = 150


def panels(
    rows: int = 1, columns: int = 1, size: tuple[float, float] = (7.0, 3.2), **shared: bool
) -> tuple[Figure, np.ndarray]:
    """A figure and its panels, always as an array of shape (rows, columns)."""
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, squeeze=False, **shared)
    for panel in axes.flat:
        panel.spines[["top", "right"]].set_visible(False)
        panel.tick_params(labelsize=8)
    return figure, axes


def title(panel: Axes, text: str) -> None:
    """What the panel shows, at its upper left."""
    panel.set_title(text, loc="left", fontsize=9.5)


def hide_rest(axes: np.ndarray, n: int) -> None:
    """Hide all panels but the first n, and let the lowest of each column have the x-axis."""
    columns = axes.shape[1]
    for panel in axes.flat[n:]:
        panel.set_visible(False)
    for panel in axes.flat[max(0, n - columns) : n]:
        panel.tick_params(labelbottom=True)


def legend_outside(figure: Figure, panel: Axes, side: str = "upper", columns: int = 4) -> None:
    """The legend of one panel for the whole figure, outside it, where it hides nothing."""
    handles, labels = panel.get_legend_handles_labels()
    figure.legend(
        handles, labels, loc=f"outside {side} center", ncols=columns, frameon=False, fontsize=8.5
    )


def draw_fit(
    panel: Axes,
    data: tuple[np.ndarray, np.ndarray],
    x: np.ndarray,
    truth: np.ndarray,
    mean: np.ndarray,
    std: np.ndarray,
) -> None:
    """Observations, the true mean, and the predicted mean with plus or minus one std."""
    panel.plot(*data, ".", color=GREY, markersize=2.2, label="observed", zorder=1)
    panel.fill_between(
        x, mean - std, mean + std, color=ORANGE, alpha=0.5, linewidth=0, label="± 1 predicted std"
    )
    panel.plot(x, truth, "--", color="black", linewidth=0.8, label="true mean", zorder=3)
    panel.plot(x, mean, color=BLUE, linewidth=1.5, label="predicted mean", zorder=2.5)


def save(figure: Figure, folder: Path, name: str) -> Path:
    """Write the figure as a PNG of at most 256 colours: a third of the size, the same picture."""
    path = folder / f"{name}.png"
    figure.set_dpi(DPI)
    figure.canvas.draw()
    picture = Image.fromarray(np.asarray(figure.canvas.buffer_rgba())).convert("RGB")
    picture.quantize(256, dither=Image.Dither.NONE).save(path, optimize=True, dpi=(DPI, DPI))
    return path
