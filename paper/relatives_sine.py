"""The paper's sine, learned by each of its relatives: who learns it, from how many of eight starts.

    python paper/relatives_sine.py [--quick] [--output FOLDER] [--jobs N]

No penalties, the network and the lengths of figures.py. Writes one picture of small multiples and
a CSV with a row for each method and start. The engine needs five minutes of one core. With PyTorch
(.venv-torch/bin/python) the methods that exist there only take part, the eight starts of each at
once and a quarter as long: ten minutes of one core. One start after the other, and as long as the
engine's, would be six hours and more. Two methods of the engine are trained as short, to compare.
What a method has learned is kept in paper/runs/relatives/sine and not trained again.
"""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import style
from figures import FOLDER, LEARNED, QUICK, SINE, Plan
from matplotlib.axes import Axes
from measure import Array, Fit, Truth, judged, learned, table, train, typical
from run import HERE

from mvenet import datasets
from mvenet._utils.atomic import replacing

OBJECTIVES = ("nll", "beta-nll", "faithful", "crps", "student-t")
RESULTS = Path(__file__).parent / "results" / "relatives"
RUNS = HERE / "runs" / "relatives" / "sine"
HAS_TORCH = all(importlib.util.find_spec(name) for name in ("torch", "skorch"))
IN_PYTORCH = (
    "shared trunk, warm-up",
    "student-t, df learned, warm-up",
    "Skafte et al.",
    "quality-driven",
)
SHORTER = 4  # times fewer epochs in PyTorch
SHORT = ", short"


def settings(plan: Plan) -> dict[str, dict[str, Any]]:
    """Parameters of each method on the sine; of two also with the epochs that PyTorch has."""
    lengths = plan.sine_epochs, plan.sine_epochs // SHORTER
    usual, short = (methods({**SINE, "epochs": n, "warmup_epochs": n}) for n in lengths)
    compared = ("nll, warm-up", "student-t, warm-up")
    return usual | {f"{name}{SHORT}": short[name] for name in compared}


def methods(usual: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Parameters of each method without penalties, by the name that the pictures give it."""
    usual = {**usual, "reg_mean": 0.0, "reg_var": 0.0}
    cold, warm = ({**usual, "strategy": name} for name in ("no-warmup", "warmup"))
    named = {f"{name}": {**cold, "objective": name} for name in (*OBJECTIVES, "natural")}
    named |= {f"{name}, warm-up": {**warm, "objective": name} for name in OBJECTIVES}
    fixed = {**usual, "strategy": "warmup-fixed-mean"}
    return named | {
        "nll, warm-up until converged": {**warm, "warmup_epochs": "converged"},
        "nll, mean fixed after warm-up": fixed,
        "nll, each stopped by itself": {**fixed, "early_stopping": True},
    }


def kept(path: Path, make: Callable[[], Sequence[tuple[Array, Array]]]) -> Array:
    """Mean and std of each start, (k, 2, n): trained now, or as they were kept."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        made = np.array(make())
        with replacing(path) as fresh, fresh.open("wb") as file:
            np.savez_compressed(file, curves=made)
    with np.load(path) as file:
        curves: Array = file["curves"]
    return curves


def all_methods(plan: Plan, truth: Truth, runs: Path, jobs: int) -> dict[str, list[Fit]]:
    """Every start of every method; those of PyTorch if it is here, or if they were kept."""

    def sample(seed: int) -> datasets.Sample:
        return datasets.sine(plan.n_rows, random_state=seed)

    def engine(name: str, setting: Mapping[str, Any]) -> Sequence[tuple[Array, Array]]:
        fits = train(sample, truth, {name: setting}, plan.seeds, jobs)
        return [(fit.mean, fit.std) for fit in fits]

    def pytorch(name: str) -> Sequence[tuple[Array, Array]]:
        from relatives_together import of_the_sine

        epochs = plan.sine_epochs // SHORTER
        return of_the_sine(name, [sample(seed) for seed in plan.seeds], truth.x, epochs)

    made: dict[str, Callable[[], Sequence[tuple[Array, Array]]]] = {
        name: partial(engine, name, setting) for name, setting in settings(plan).items()
    }
    short = [f"{name}{SHORT}" for name in IN_PYTORCH]
    made |= {f"{name}{SHORT}": partial(pytorch, name) for name in IN_PYTORCH}
    groups = {}
    for name, make in made.items():
        path = runs / f"{name}, {plan.sine_epochs}.npz"
        if name in short and not (HAS_TORCH or path.exists()):
            print(f"{name}: left out, as there is no PyTorch here")
            continue
        curves = kept(path, make)
        groups[name] = [
            judged(name, seed, 0.0, 0.0, mean, std, truth)
            for seed, (mean, std) in zip(plan.seeds, curves, strict=True)
        ]
        print(f"{name}: {learned(groups[name], LEARNED)} of {len(curves)}", flush=True)
    return groups


def draw(panel: Axes, name: str, fits: Sequence[Fit], truth: Truth) -> None:
    """The median start, and how many of all learned the mean."""
    shown = typical(fits)
    low, high = (np.clip(shown.mean + k * shown.std, -2, 2) for k in (-1, 1))
    panel.fill_between(truth.x, low, high, color=style.ORANGE, alpha=0.5, linewidth=0)
    panel.plot(truth.x, truth.mean, "--", color="black", linewidth=0.6)
    panel.plot(truth.x, shown.mean, color=style.BLUE, linewidth=1.1)
    panel.set_ylim(-0.75, 0.75)
    style.title(panel, f"{name}: {learned(fits, LEARNED)} of {len(fits)}")


def picture(groups: Mapping[str, Sequence[Fit]], truth: Truth, folder: Path) -> Path:
    """Small multiples, a panel a method."""
    columns = 3
    rows = -(-len(groups) // columns)
    figure, axes = style.panels(rows, columns, (11.0, 1.45 * rows + 0.5), sharex=True, sharey=True)
    style.hide_rest(axes, len(groups))
    for panel, (name, fits) in zip(axes.flat, groups.items(), strict=False):
        draw(panel, name, fits, truth)
    figure.suptitle(
        "Mean (blue) ± one standard deviation (orange) of the median start; truth dashed; "
        f"starts whose mean has an RMSE below {LEARNED}",
        fontsize=10,
    )
    folder.mkdir(parents=True, exist_ok=True)
    return style.save(figure, folder, "relatives_sine")


def main() -> None:
    """Train, draw and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few epochs, to see that it runs")
    parser.add_argument("--output", type=Path, default=FOLDER, help="where the picture goes")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the CSV goes")
    parser.add_argument("--runs", type=Path, default=RUNS, help="where curves are kept")
    parser.add_argument("--jobs", type=int, default=-1, help="threads")
    given = parser.parse_args()
    plan = QUICK if given.quick else Plan()
    x = np.linspace(0, 10, 2001)
    truth = Truth(x, 0.4 * np.sin(2 * np.pi * x), np.full(len(x), 0.01))

    groups = all_methods(plan, truth, given.runs, given.jobs)
    rows = [fit.row("sine") for fits in groups.values() for fit in fits]
    given.results.mkdir(parents=True, exist_ok=True)
    kept = pd.DataFrame(rows).drop(columns=["figure", "reg_mean", "reg_var"])
    kept.to_csv(given.results / "sine.csv", index=False)
    print(f"{table(groups, LEARNED)}\n{picture(groups, truth, given.output)}")


if __name__ == "__main__":
    main()
