"""The paper's other toys by each of its relatives: noise that grows with x², and two Gaussians.

    python paper/relatives_toys.py [--quick] [--output FOLDER] [--jobs N]

Writes a picture of small multiples for each and a CSV with a row for each method and start. With
PyTorch (.venv-torch/bin/python) the methods that exist there only take part; then it takes some ten
minutes of one core, otherwise one. A trunk that is shared has no part in the two Gaussians, whose
mean is the same everywhere and thus has no hidden units to share.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import style
from figures import FOLDER, QUICK, Plan, minima_of, profile
from matplotlib.axes import Axes
from measure import Fit, Truth, group, judged, rmse, table, train, typical
from relatives_sine import HAS_TORCH, RESULTS, methods

from mvenet import datasets, recipes
from mvenet._training.fleet import DivergedError

EPOCHS = 120  # of each stage, 32 steps each
MIDDLE = np.linspace(-1, 1, 401)
GREW = Truth(MIDDLE, MIDDLE**2, 0.1 + 0.2 * MIDDLE**2)


def quadratic_learned(fits: Sequence[Fit]) -> int:
    """Starts whose mean and std are both half as wrong as the best constants, or less."""
    flat = [rmse(part, np.full_like(part, part.mean())) for part in (GREW.mean, GREW.std)]
    return sum(fit.rmse_mean < flat[0] / 2 and fit.rmse_std < flat[1] / 2 for fit in fits)


def quadratic(plan: Plan, epochs: int, jobs: int) -> dict[str, list[Fit]]:
    """Figure 6's rows, y = x² and a standard deviation of 0.1 + 0.2 x², by every method."""

    def sample(seed: int) -> datasets.Sample:
        return datasets.quadratic(plan.n_rows, random_state=seed)

    usual = {**recipes.DEFAULT, "epochs": epochs, "warmup_epochs": epochs}
    fits = train(sample, GREW, methods(usual), plan.seeds, jobs)
    if HAS_TORCH:
        fits += in_pytorch(sample, epochs, plan.seeds)
    return group(fits)


def in_pytorch(
    draw: Callable[[int], datasets.Sample], epochs: int, seeds: Sequence[int]
) -> list[Fit]:
    """The methods that only PyTorch has."""
    from relatives_torch import learned_tails, quality_driven, shared_trunk, skafte

    makers = {
        "shared trunk, warm-up": shared_trunk,
        "student-t, df learned, warm-up": learned_tails,
        "Skafte et al.": skafte,
        "quality-driven": quality_driven,
    }
    given = {"reg_mean": 0.0, "reg_var": 0.0, "epochs": epochs, "warmup_epochs": epochs}
    return [
        _fit(name, make(1, **given, random_state=seed), seed, draw(seed), GREW)
        for name, make in makers.items()
        for seed in seeds
    ]


def one_mean_in_pytorch(
    draw: Callable[[int], datasets.Sample], truth: Truth, epochs: int, seeds: Sequence[int]
) -> list[Fit]:
    """The same with a mean that is the same for all rows, and ten hidden units for the rest."""
    from relatives_torch import SHARED, Constant, perceptron

    from mvenet.torch import (
        FarVarianceNet,
        MeanVarianceNet,
        QualityDrivenRegressor,
        TorchMVERegressor,
    )

    def with_tails() -> Any:
        return MeanVarianceNet(Constant(), perceptron(1, 10, 1), tails=perceptron(1, 10, 1))

    def reliable() -> Any:
        parts = Constant(), perceptron(1, 10, 1), [[-1.0], [1.0]]
        return FarVarianceNet(*parts, tails=perceptron(1, 10, 1))

    def ends() -> Any:
        return MeanVarianceNet(Constant(), perceptron(1, 10, 1))

    given = {"reg_mean": 0.0, "reg_var": 0.0, "epochs": epochs, "warmup_epochs": epochs}
    tails = {"objective": "student-t", "df": "learned", **SHARED, **given}
    turns = {"strategy": "alternating", "neighbours": 32}
    makers = {
        "student-t, df learned, warm-up": partial(TorchMVERegressor, with_tails, **tails),
        "Skafte et al.": partial(TorchMVERegressor, reliable, **tails, **turns),
        "quality-driven": partial(QualityDrivenRegressor, ends, **given),
    }
    return [
        _fit(name, make(random_state=seed), seed, draw(seed), truth)
        for name, make in makers.items()
        for seed in seeds
    ]


def _fit(name: str, model: Any, seed: int, sample: datasets.Sample, truth: Truth) -> Fit:
    centre, scale = sample.X.mean(), sample.X.std()  # the engine does this by itself
    x = (truth.x[:, None] - centre) / scale
    try:
        model.fit((sample.X - centre) / scale, sample.y)
        if hasattr(model, "predict_dist"):
            mean, std = model.predict(x, return_std=True)
        else:  # the std of a normal with such an interval
            low, high = model.predict_interval(x, 0.9).T
            mean, std = (low + high) / 2, (high - low) / 3.2897
    except DivergedError:
        mean, std = np.full((2, len(x)), np.inf)
    return judged(name, seed, 0.0, 0.0, mean, std, truth)


def two_gaussians(plan: Plan, epochs: int, jobs: int) -> dict[str, list[Fit]]:
    """Figure 4's rows: one mean for two groups, N(2, 0.5²) and N(5, 0.1²), and a std for each."""

    def sample(seed: int) -> datasets.Sample:
        return datasets.two_gaussians(random_state=seed)

    truth = Truth(np.array([0.0, 1.0]), np.array([2.0, 5.0]), np.array([0.5, 0.1]))
    usual = {**recipes.DEFAULT, "epochs": epochs, "warmup_epochs": epochs}
    usual |= {"hidden_mean": None, "hidden_var": (10,)}
    fits = train(sample, truth, methods(usual), plan.seeds, jobs)
    if HAS_TORCH:
        fits += one_mean_in_pytorch(sample, truth, epochs, plan.seeds)
    return group(fits)


def deeper(seed: int) -> float:
    """The lower of the two minima of the likelihood over a mean that both groups share."""
    sample = datasets.two_gaussians(random_state=seed)
    groups = sample.y[sample.X[:, 0] == 0], sample.y[sample.X[:, 0] == 1]
    found = minima_of(lambda m: profile(m, groups), np.linspace(0, 7, 1401))
    return min(found, key=lambda m: profile(m, groups))


def deeper_found(fits: Sequence[Fit]) -> int:
    """Starts that end within 0.1 of the deeper minimum."""
    return sum(abs(fit.mean[0] - deeper(fit.seed)) < 0.1 for fit in fits)


def draw_quadratic(panel: Axes, fits: Sequence[Fit]) -> None:
    """The median start beside the truth."""
    shown = typical(fits)
    low, high = (np.clip(shown.mean + k * shown.std, -2, 3) for k in (-1, 1))
    panel.fill_between(MIDDLE, low, high, color=style.ORANGE, alpha=0.5, linewidth=0)
    for k in (-1, 0, 1):
        panel.plot(MIDDLE, GREW.mean + k * GREW.std, "--", color="black", linewidth=0.6)
    panel.plot(MIDDLE, shown.mean, color=style.BLUE, linewidth=1.1)
    panel.set_ylim(-0.35, 1.5)


def draw_gaussians(panel: Axes, fits: Sequence[Fit]) -> None:
    """The mean of every start, with the std of each group."""
    for k, fit in enumerate(fits):
        for std, colour, shift in zip(fit.std, (style.ORANGE, style.GREEN), (-0.15, 0.15),
                                      strict=True):  # fmt: skip
            ends = np.clip([fit.mean[0] - std, fit.mean[0] + std], -2, 9)
            panel.plot([k + shift] * 2, ends, color=colour, linewidth=2)
        panel.plot(k, fit.mean[0], "o", color=style.BLUE, markersize=4)
    for place in (2.0, 5.0):
        panel.axhline(place, color="black", linewidth=0.6, linestyle="--")
    panel.set_ylim(0, 7)
    panel.set_xticks([])


def picture(
    groups: Mapping[str, Sequence[Fit]],
    draw: Callable[[Axes, Sequence[Fit]], None],
    count: Callable[[Sequence[Fit]], int],
    title: str,
) -> Any:
    """Small multiples, a panel a method, with how many starts succeeded."""
    columns = 4
    rows = -(-len(groups) // columns)
    figure, axes = style.panels(rows, columns, (12.0, 1.6 * rows + 0.5), sharex=True, sharey=True)
    style.hide_rest(axes, len(groups))
    for panel, (name, fits) in zip(axes.flat, groups.items(), strict=False):
        draw(panel, fits)
        style.title(panel, f"{name}: {count(fits)} of {len(fits)}")
    figure.suptitle(title, fontsize=10)
    return figure


def rows_of(toy: str, groups: Mapping[str, Sequence[Fit]], count: Any) -> list[dict[str, Any]]:
    """A row for each start, and whether it succeeded."""
    places = {} if toy == "quadratic" else {"mean": lambda fit: round(float(fit.mean[0]), 4)}
    return [
        {"toy": toy, **fit.row(toy), "succeeded": count([fit])}
        | {name: of(fit) for name, of in places.items()}
        for fits in groups.values()
        for fit in fits
    ]


def main() -> None:
    """Train, draw and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few epochs, to see that it runs")
    parser.add_argument("--output", type=Path, default=FOLDER, help="where the pictures go")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the CSV goes")
    parser.add_argument("--jobs", type=int, default=-1, help="threads")
    given = parser.parse_args()
    plan, epochs = (QUICK, 2) if given.quick else (Plan(), EPOCHS)
    for folder in (given.output, given.results):
        folder.mkdir(parents=True, exist_ok=True)
    grew, both = (make(plan, epochs, given.jobs) for make in (quadratic, two_gaussians))
    pictures = {
        "relatives_quadratic": picture(
            grew, draw_quadratic, quadratic_learned,
            "Mean (blue) ± one standard deviation (orange) of the median start; truth dashed; "
            "starts that learned both",
        ),
        "relatives_two_gaussians": picture(
            both, draw_gaussians, deeper_found,
            "One mean (blue) for two groups, ± the standard deviation of each (orange: that at 2, "
            "green: that at 5), eight starts; starts that found the deeper minimum",
        ),
    }  # fmt: skip
    rows = rows_of("quadratic", grew, quadratic_learned)
    rows += rows_of("two Gaussians", both, deeper_found)
    kept = pd.DataFrame(rows).drop(columns=["figure", "reg_mean", "reg_var"])
    kept.to_csv(given.results / "toys.csv", index=False)
    for name, figure in pictures.items():
        print(style.save(figure, given.output, name))
    print(f"{table(grew, 0.15)}\n\n{table(both, 0.1)}")


if __name__ == "__main__":
    main()
