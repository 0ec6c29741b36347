"""Under which reading of the paper do its four pictures of x² appear? A map of what was tried.

    python paper/readings.py               train the readings that the map has not, and draw some
    python paper/readings.py --tell        print the map that was written

A reading is a network, a start, a meaning of the penalty, a number of rows or epochs. Each is
trained at the paper's four variance penalties and judged as figures.py judges the figure.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import drawings
import numpy as np
import pandas as pd
import tables
from measure import Fit, Truth, group, judged, median, rmse, train
from plain import Plain
from plain import train as train_plain

from mvenet import datasets, recipes

HERE = Path(__file__).parent
CSV = HERE / "results" / "explained" / "quadratic.csv"
PENALTIES = (0.1, 0.04, 0.01, 0.0)
X = np.linspace(-1, 1, 401)
TRUTH = Truth(X, X**2, 0.1 + 0.2 * X**2)
# Errors of the best constants: learned is below half of them.
FLAT = rmse(TRUTH.mean, TRUTH.mean.mean()), rmse(TRUTH.std, TRUTH.std.mean())


@dataclass(frozen=True)
class Reading:
    """One way to read the paper: parameters of MVERegressor, or of the plain networks."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    factor: float = 1.0  # on both penalties
    rows: int = 1000
    plain: Plain | None = None


def penalised(name: str, factor: float, **settings: Any) -> Reading:
    """A reading of what the penalty multiplies."""
    return Reading(name, settings, factor)


RELU = {"activation": "relu"}
ONE = {"hidden_mean": (50,), "hidden_var": (50,)}
READINGS = (
    Reading("as in the tables: ELU, λ ΣW² beside the mean of log σ² + r²/σ²"),
    Reading("ReLU", RELU),
    Reading("tanh", {"activation": "tanh"}),
    Reading("SiLU", {"activation": "silu"}),
    penalised("penalty × 2 (the text's ½ before the loss)", 2),
    penalised("penalty × 3/4", 0.75),
    penalised("penalty × 1/2 (λ/2 ΣW²)", 0.5),
    penalised("penalty × 1/16 (the text's sum over a batch of 32)", 1 / 16),
    penalised("ReLU, penalty × 2", 2, **RELU),
    Reading("one hidden layer of 50", ONE),
    Reading("one hidden layer of 50, ReLU", {**ONE, **RELU}),
    penalised("one hidden layer of 50, ReLU, penalty × 5/4", 1.25, **ONE, **RELU),
    penalised("one hidden layer of 50, ReLU, penalty × 3/2", 1.5, **ONE, **RELU),
    Reading("one hidden layer of 20", {"hidden_mean": (20,), "hidden_var": (20,)}),
    Reading("three hidden layers", {"hidden_mean": (40, 30, 20), "hidden_var": (40, 30, 20)}),
    Reading("100 rows", rows=100),
    Reading("5000 rows, 200 epochs", {"epochs": 200}, rows=5000),
    Reading("100 epochs", {"epochs": 100}),
    Reading("learning rate 1e-2", {"learning_rate": 1e-2}),
    Reading("plain NumPy, as in the tables", plain=Plain()),
    Reading("He's start", plain=Plain(start="he")),
    Reading("PyTorch's start", plain=Plain(start="pytorch")),
    Reading("log-variance starts at -1", plain=Plain(variance_bias=-1.0)),
    Reading("log-variance starts at -3", plain=Plain(variance_bias=-3.0)),
    Reading("nothing standardised", plain=Plain(standardise_x=False, standardise_y=False)),
    Reading("y not standardised", plain=Plain(standardise_y=False)),
    Reading("rows from left to right, never shuffled", plain=Plain(shuffle=False)),
    Reading("weight decay beside Adam", plain=Plain(optimiser="adamw")),
)
SHOWN = {  # in the figure, by the name of its row
    "ELU, as in\nthe tables": 0,
    "ELU,\npenalty × 1/2": 6,
    "ReLU": 1,
    "ReLU, one layer\nof 50, × 5/4": 11,
}


def fits_of(reading: Reading, seeds: range, epochs: int | None) -> list[list[Fit]]:
    """Fits of all seeds at each of the four variance penalties."""
    pairs = [(0.1 * reading.factor, penalty * reading.factor) for penalty in PENALTIES]
    if reading.plain is not None:
        return plain_fits(reading, seeds, pairs, epochs)
    cold = {**recipes.PAPER, "strategy": "no-warmup", **reading.settings}
    cold |= {} if epochs is None else {"epochs": epochs}
    settings = {str(i): {**cold, "reg_mean": m, "reg_var": v} for i, (m, v) in enumerate(pairs)}
    fits = group(train(lambda seed: sample(reading, seed), TRUTH, settings, seeds))
    return list(fits.values())


def plain_fits(
    reading: Reading, seeds: range, pairs: list[tuple[float, float]], epochs: int | None
) -> list[list[Fit]]:
    """The same from the networks in plain NumPy."""
    plain = reading.plain if epochs is None else replace(reading.plain, epochs=epochs)
    found: list[list[Fit]] = [[] for _ in pairs]
    for seed in seeds:
        data = sample(reading, seed)
        x, y = (np.tile(column, (len(pairs), 1)) for column in (data.X[:, 0], data.y))
        means, stds = train_plain(plain, x, y, X, np.array(pairs), seed)
        for fits, pair, mean, std in zip(found, pairs, means, stds, strict=True):
            fits.append(judged(reading.name, seed, *pair, mean, std, TRUTH))
    return found


def sample(reading: Reading, seed: int) -> datasets.Sample:
    """One draw of the paper's x²."""
    return datasets.quadratic(reading.rows, random_state=seed)


def line(reading: Reading, fits: list[list[Fit]]) -> dict[str, Any]:
    """How many seeds show each of the four pictures, and the errors' medians."""
    high, medium, low, none = fits
    mean, std = FLAT[0] / 2, FLAT[1] / 2
    pictures = [
        [f.rmse_mean < mean and f.rmse_std >= std for f in high],
        [f.rmse_mean < mean and f.rmse_std < std for f in medium],
        [b.rmse_mean > a.rmse_mean for a, b in zip(medium, low, strict=True)],
        [f.rmse_mean >= mean for f in none],
    ]
    return {
        "reading": reading.name,
        "seeds": len(high),
        **{f"picture_{i}": sum(p) for i, p in enumerate(pictures, 1)},
        "all_four": sum(map(all, zip(*pictures, strict=True))),
        **{f"rmse_mean_{v:g}": f"{median(f):.3f}" for v, f in zip(PENALTIES, fits, strict=True)},
    }


def table(path: Path) -> str:
    """The map as Markdown."""
    frame = pd.read_csv(path)
    lines = [
        "| reading | 0.1: mean, no std | 0.04: both | 0.01: mean worse | 0: mean lost | all four | "
        "RMSE of the mean |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in frame.to_dict("records"):
        counts = [f"{row[f'picture_{i}']}/{row['seeds']}" for i in (1, 2, 3, 4)]
        errors = ", ".join(f"{row[f'rmse_mean_{v:g}']:.3f}" for v in PENALTIES)
        counts.append(f"{row['all_four']}/{row['seeds']}")
        lines.append(f"| {row['reading']} | {' | '.join(counts)} | {errors} |")
    return "\n".join(lines)


def draw(folder: Path, epochs: int | None) -> None:
    """The pictures of some readings."""
    grid = {
        name: dict(enumerate(fits_of(READINGS[number], range(8), epochs)))
        for name, number in SHOWN.items()
    }
    drawings.quadratic(
        folder, lambda seed: sample(READINGS[0], seed), TRUTH, grid, "quadratic_readings"
    )


def main() -> None:
    """Train, write and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tell", action="store_true", help="train nothing")
    parser.add_argument("--write", action="store_true", help="also into paper/README.md")
    parser.add_argument("--epochs", type=int, help="instead of each reading's own")
    parser.add_argument("--seeds", type=int, default=8, help="half as many for plain NumPy")
    parser.add_argument("--csv", type=Path, default=CSV)
    parser.add_argument("--figures", type=Path, default=HERE / "figures")
    given = parser.parse_args()
    if not given.tell:
        done = set(pd.read_csv(given.csv)["reading"]) if given.csv.exists() else set()
        for reading in READINGS:
            if reading.name in done:
                continue
            seeds = range(given.seeds if reading.plain is None else max(1, given.seeds // 2))
            told = line(reading, fits_of(reading, seeds, given.epochs))
            frame = pd.DataFrame([told])
            frame.to_csv(given.csv, mode="a", header=not given.csv.exists(), index=False)
            print(*told.values(), sep="; ", flush=True)
        draw(given.figures, given.epochs)
    print(table(given.csv))
    if given.write:
        tables.write("readings", table(given.csv))


if __name__ == "__main__":
    main()
