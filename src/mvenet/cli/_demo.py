"""What ``mvenet demo`` shows: cars whose noise differs, and the paper's sine as a picture."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from mvenet import datasets, metrics
from mvenet._columns.cells import split_target
from mvenet._estimators.auto import AutoRegressor
from mvenet._estimators.base import DistributionRegressor, fit_together
from mvenet._estimators.regressor import MVERegressor
from mvenet._utils import atomic
from mvenet.distributions import Normal
from mvenet.table import TableEncoder, read

# The sine has ten periods: it takes a deeper network and many steps to find them.
SINE: dict[str, Any] = {
    "hidden_mean": (50, 50, 50),
    "hidden_var": (50, 50, 50),
    "activation": "silu",
    "reg_mean": 0.0,
    "reg_var": 0.0,
    "batch_size": 16,
    "learning_rate": 5e-3,
    "random_state": 0,
}
SINE_EPOCHS = 2000


@dataclass(frozen=True)
class Score:
    """One line of a table, measured on rows that were not trained on."""

    model: str
    rmse: float
    loglik: float
    coverage: float


def score(name: str, model: DistributionRegressor, X: Any, y: Any) -> Score:
    """Score a fitted model."""
    found = metrics.summary(y, model.predict_dist(X))
    return Score(name, found["rmse"], -found["nll"], found["coverage"])


def baselines(**settings: Any) -> Iterator[tuple[str, MVERegressor]]:
    """The plain alternatives: the same mean network with one variance for all rows."""
    constant: dict[str, Any] = {**settings, "hidden_var": None}
    yield "constant variance", MVERegressor(**constant)
    yield "plain MSE mean", MVERegressor(**{**constant, "strategy": "warmup-fixed-mean"})


@dataclass(frozen=True)
class Third:
    """Some of the cars: how wide their 90 % intervals are and how many they hold."""

    cars: str
    width: float
    holds: float
    same_width: float
    same_holds: float


def cars() -> Any:
    """The table that comes with the package, and where it lies."""
    place = Path(str(files("mvenet.cli").joinpath("cars.csv")))
    return read(place), place


def cars_thirds(random_state: int = 0, verbose: int = 0) -> list[Third]:
    """Intervals of every car by folds that left it out, beside the same mean with one ± for all."""
    frame, _ = cars()
    X, y, _ = split_target(frame, "mpg")
    model = AutoRegressor(random_state=random_state, verbose=verbose)
    model.fit(TableEncoder(target="mpg").fit_transform(X, y), y)
    mean, std = model.oof_mean_, model.oof_std_
    same = np.full(len(y), np.sqrt(np.mean((y - mean) ** 2)))
    ours, plain = (Normal(mean, each).interval(0.9) for each in (std, same))
    parts = np.array_split(np.argsort(std, kind="stable"), 3)
    words = ("the surest third", "the middle", "the least sure third")
    return [_third(word, y, rows, ours, plain) for word, rows in zip(words, parts, strict=True)]


def _third(cars: str, y: Any, rows: Any, ours: Any, plain: Any) -> Third:
    numbers: list[float] = []
    for ends in (ours[rows], plain[rows]):
        inside = (ends[:, 0] <= y[rows]) & (y[rows] <= ends[:, 1])
        numbers += [float(np.mean(ends[:, 1] - ends[:, 0])) / 2, float(inside.mean())]
    return Third(cars, *numbers)


def sine_models(sample: datasets.Sample, verbose: int = 0) -> dict[str, MVERegressor]:
    """Fit the paper's sine with and without the warm-up, for the same number of epochs."""
    warm = {"strategy": "warmup", "warmup_epochs": SINE_EPOCHS, "epochs": SINE_EPOCHS // 10, **SINE}
    cold = {"strategy": "no-warmup", "epochs": SINE_EPOCHS + SINE_EPOCHS // 10, **SINE}
    models = {
        "without the warm-up": MVERegressor(**cold),
        "mvenet": MVERegressor(**warm),
        **dict(baselines(**warm)),
    }
    fit_together(list(models.values()), sample.X, sample.y, verbose=verbose)
    return models


def sine_scores(models: dict[str, MVERegressor], fresh: datasets.Sample) -> list[Score]:
    """Scores on a fresh draw of the sine."""
    return [score(name, model, fresh.X, fresh.y) for name, model in models.items()]


def draw_sine(models: dict[str, MVERegressor], sample: datasets.Sample, path: Path) -> None:
    """Write a picture of the fits with and without the warm-up; needs matplotlib."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    grid = np.linspace(0, 10, 1500)[:, None]
    figure = Figure(figsize=(9, 5.6), layout="constrained")
    panels = figure.subplots(2, 1, sharex=True, sharey=True)
    titles = {"without the warm-up": "Without the warm-up", "mvenet": "With the warm-up"}
    for panel, (name, title) in zip(panels, titles.items(), strict=True):
        mean, std = models[name].predict(grid, return_std=True)
        truth = 0.4 * np.sin(2 * np.pi * grid[:, 0])
        error = float(np.sqrt(np.mean((mean - truth) ** 2)))
        panel.plot(sample.X[:, 0], sample.y, ".", color="0.6", markersize=3, label="observed")
        panel.fill_between(
            grid[:, 0],
            mean - std,
            mean + std,
            color="#E69F00",
            alpha=0.45,
            linewidth=0,
            label="± 1 standard deviation",
        )
        panel.plot(grid[:, 0], mean, color="#0072B2", linewidth=1.6, label="predicted mean")
        panel.set_title(f"{title}: RMSE to the true mean {error:.3f}", loc="left", fontsize=11)
        panel.set_ylabel("y")
        panel.set_ylim(-1.0, 1.0)
        panel.set_xlim(0, 10)
        panel.spines[["top", "right"]].set_visible(False)
    panels[-1].set_xlabel("x")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False)
    FigureCanvasAgg(figure)
    with atomic.replacing(path) as fresh:
        figure.savefig(fresh, dpi=130, format=path.suffix[1:])
