"""What ``mvenet demo`` shows: the main job on a table of cars, then the paper's sine."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from mvenet import datasets, workflow
from mvenet._estimators.base import fit_together
from mvenet._estimators.regressor import MVERegressor
from mvenet._utils import atomic
from mvenet.distributions import Normal
from mvenet.table import read

TARGET = "mpg"
# The sine has ten periods: it takes a deeper network and many steps to find them.
SINE: dict[str, Any] = {
    "hidden_mean": (50, 50, 50),
    "hidden_var": (50, 50, 50),
    "activation": "silu",
    "reg_mean": 0.0,
    "reg_var": 0.0,
    "batch_size": 16,
    "learning_rate": 5e-3,
}
SINE_EPOCHS = 1000
STARTS = 8
LEARNED = 0.1  # root mean square distance to the true sine, whose amplitude is 0.4


# --- cars ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Third:
    """Some of the cars: how wide their 90 % intervals are and how many they hold."""

    cars: str
    width: float
    holds: float
    same_width: float
    same_holds: float


def cars() -> tuple[pl.DataFrame, Path]:
    """The table that comes with the package, and where it lies."""
    place = Path(str(files("mvenet.cli").joinpath("cars.csv")))
    return read(place), place


def fit_cars(seed: int = 0, verbose: int = 0) -> workflow.FittedTable:
    """The main job: a model of the table, checked by the rows that each fold left out."""
    return workflow.fit_table(
        cars()[0], TARGET, effort="low", holdout=0.0, seed=seed, verbose=verbose
    )


def thirds(fitted: workflow.FittedTable) -> list[Third]:
    """Intervals of every car by folds that left it out, beside the same mean with one ± for all."""
    model, y = fitted.model, fitted.train[TARGET].to_numpy().astype(float)
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


@dataclass(frozen=True)
class Car:
    """A car and what is predicted for it."""

    weight: float
    year: int
    mean: float
    low: float
    high: float


def three_cars(fitted: workflow.FittedTable) -> list[Car]:
    """The lightest car of the table, one in the middle, and the heaviest."""
    few = cars()[0].sort("weight")[[0, 195, 391]]
    told = workflow.predictions(fitted.model, few.drop(TARGET), [0.9])
    ends = zip(told["mean"], told["low_90"], told["high_90"], strict=True)
    known = zip(few["weight"], few["year"], strict=True)
    return [Car(float(w), int(y), *each) for (w, y), each in zip(known, ends, strict=True)]


# --- the sine ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Starts:
    """How many random starts of a training find the sine."""

    training: str
    learned: int
    starts: int


def sine_models(
    sample: datasets.Sample, seed: int = 0, verbose: int = 0
) -> dict[str, MVERegressor]:
    """Networks from several starts with and without the warm-up, for as many epochs."""
    shared = {**SINE, "n_members": STARTS, "random_state": seed}
    rest = SINE_EPOCHS // 10
    models = {
        "without a warm-up": MVERegressor(
            strategy="no-warmup", epochs=SINE_EPOCHS + rest, **shared
        ),
        "with a warm-up": MVERegressor(
            strategy="warmup", warmup_epochs=SINE_EPOCHS, epochs=rest, **shared
        ),
    }
    fit_together(list(models.values()), sample.X, sample.y, verbose=verbose)
    return models


def _means(model: MVERegressor, x: Any) -> Any:
    dist: Any = model.predict_dist(x[:, None])
    return dist.means


def sine_starts(models: dict[str, MVERegressor]) -> list[Starts]:
    """Count the starts whose mean is close to the true one."""
    x = np.linspace(0, 10, 1000)
    found = []
    for name, model in models.items():
        off = _means(model, x) - 0.4 * np.sin(2 * np.pi * x)
        learned = np.sqrt(np.mean(off**2, axis=1)) < LEARNED
        found.append(Starts(name, int(learned.sum()), len(learned)))
    return found


def draw_sine(models: dict[str, MVERegressor], sample: datasets.Sample, path: Path) -> None:
    """Write a picture of the means of all starts; needs matplotlib."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    x = np.linspace(0, 10, 1000)
    figure = Figure(figsize=(9, 5.6), layout="constrained")
    panels = figure.subplots(2, 1, sharex=True, sharey=True)
    for panel, (name, model), counted in zip(
        panels, models.items(), sine_starts(models), strict=True
    ):
        panel.plot(sample.X[:, 0], sample.y, ".", color="0.75", markersize=3, label="observed")
        panel.plot(x, _means(model, x).T, linewidth=1.0, alpha=0.8)
        title = f"{name.capitalize()}: {counted.learned} of {counted.starts} starts find the sine"
        panel.set(title=title, ylabel="y", xlim=(0, 10), ylim=(-1.0, 1.0))
        panel.spines[["top", "right"]].set_visible(False)
    panels[-1].set_xlabel("x")
    FigureCanvasAgg(figure)
    with atomic.replacing(path) as fresh:
        figure.savefig(fresh, dpi=130, format=path.suffix[1:])
