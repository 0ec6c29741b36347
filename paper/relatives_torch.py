"""Train the relatives that exist in PyTorch only on the paper's folds.

    .venv-torch/bin/python paper/relatives_torch.py yacht boston
    .venv-torch/bin/python paper/relatives_torch.py yacht --methods skafte --penalties none

A nested search of these would take days. They take part with the penalties that the nearest method
of the engine chose in the same fold (the column ``variant`` says which), read from what
relatives.py has written; all else is as there: the splits, the network of 40 and 20 units, its
start, the steps of the default recipe, the scores. Two of them whose loss is unlike that of the
nearest method take part without penalties, too, so that a handicap can be seen.

Quality-driven intervals have no density, and thus neither a likelihood nor a CRPS: they are judged
by coverage, width and interval score, as are the others here and the paper's advice, which the
engine trains again for this. A row is written as soon as it is trained, to
paper/results/relatives/SET_torch.csv; rows that are there are not trained again.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from relatives import DATASETS, OUTER_FOLDS
from run import HERE, n_folds
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler

from mvenet import MVERegressor, datasets, metrics, recipes
from mvenet._training.fleet import DivergedError
from mvenet._utils.atomic import replacing

try:
    import torch
    from torch import nn

    from mvenet.torch import (
        MeanVarianceNet,
        QualityDrivenRegressor,
        SkafteRegressor,
        TorchMVERegressor,
    )
except ImportError as error:
    sys.exit(f"PyTorch is missing ({error}): make test-torch makes .venv-torch, which has it.")

UNITS = recipes.DEFAULT["hidden_mean"]
SHARED = {name: recipes.DEFAULT[name] for name in ("batch_size", "learning_rate", "schedule")}
KEY = ["method", "strategy", "regularization", "fold"]
DENSITY = ("loglik", "rmse", "crps")
NONE = "none"  # no penalties


def perceptron(*sizes: int, activation: type[nn.Module] = nn.ELU) -> nn.Sequential:
    """Layers with an activation between them, started as the engine's are."""
    layers: list[nn.Module] = []
    for n_in, n_out in pairwise(sizes):
        layer = nn.Linear(n_in, n_out)
        nn.init.xavier_uniform_(layer.weight)
        nn.init.zeros_(layer.bias)
        layers += [layer, activation()]
    return nn.Sequential(*layers[:-1])


class Constant(nn.Module):
    """The same number for every row."""

    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """One number a row."""
        return self.bias.expand(len(x))


def separate(columns: int, activation: type[nn.Module] = nn.ELU) -> MeanVarianceNet:
    """Two networks of the paper's size."""
    sizes = columns, *UNITS, 1
    return MeanVarianceNet(*(perceptron(*sizes, activation=activation) for _ in range(2)))


def with_tails(columns: int, activation: type[nn.Module] = nn.ELU) -> MeanVarianceNet:
    """A third one, for the degrees of freedom."""
    sizes = columns, *UNITS, 1
    mean, variance, tails = (perceptron(*sizes, activation=activation) for _ in range(3))
    return MeanVarianceNet(mean, variance, tails=tails)


def trunk(columns: int, activation: type[nn.Module] = nn.ELU) -> MeanVarianceNet:
    """The paper's figure 2: all hidden layers are shared."""
    heads = (perceptron(UNITS[-1], 1) for _ in range(2))
    hidden = perceptron(columns, *UNITS, activation=activation)
    return MeanVarianceNet(*heads, nn.Sequential(hidden, activation()))


@dataclass(frozen=True)
class Arm:
    """A method, the engine's method whose penalties it takes, and what makes the estimator."""

    method: str
    strategy: str
    regularization: str
    nearest: str
    make: Callable[..., Any]  # of columns, and of reg_mean, reg_var and random_state

    @property
    def key(self) -> tuple[str, str, str]:
        """What it is called in the tables."""
        return self.method, self.strategy, self.regularization


def shared_trunk(columns: int, **given: Any) -> Any:
    """One trunk, two heads."""
    return TorchMVERegressor(lambda: trunk(columns), **SHARED, **given)


def learned_tails(columns: int, **given: Any) -> Any:
    """Student's t with degrees of freedom by row."""
    settings = {"objective": "student-t", "df": "learned", **SHARED}
    return TorchMVERegressor(lambda: with_tails(columns), **settings, **given)


def skafte(columns: int, **given: Any) -> Any:
    """All four parts of their training."""
    return SkafteRegressor(**given)


def quality_driven(columns: int, **given: Any) -> Any:
    """Intervals for 90 %."""
    return QualityDrivenRegressor(lambda: separate(columns), **given)


def advice(columns: int, **given: Any) -> Any:
    """The paper's own, by the engine, for its widths."""
    return MVERegressor(strategy="warmup", n_jobs=1, encoding=None, target="identity", **given)


ARMS = (
    Arm("nll", "warmup", "separate", "nll", advice),
    Arm("shared-trunk", "warmup", "equal", "nll", shared_trunk),
    Arm("student-t-learned", "warmup", "separate", "student-t", learned_tails),
    Arm("skafte", "alternating", "separate", "student-t", skafte),
    Arm("quality-driven", "warmup", "separate", "nll", quality_driven),
    Arm("student-t-learned", "warmup", "equal", "student-t", learned_tails),
    Arm("skafte", "alternating", "equal", "student-t", skafte),
    Arm("quality-driven", "warmup", "equal", "nll", quality_driven),
    Arm("skafte", "alternating", NONE, "", skafte),
    Arm("quality-driven", "warmup", NONE, "", quality_driven),
)


def scores(model: Any, X: np.ndarray, y: np.ndarray, arm: Arm) -> dict[str, float]:
    """What relatives.py has, and width and interval score of the central 90 % intervals."""
    low, high = model.predict_interval(X, 0.9).T
    outside = np.maximum(low - y, 0) + np.maximum(y - high, 0)
    density = dict.fromkeys(DENSITY, math.nan)
    if arm.method not in ("quality-driven", "nll"):  # has none; has its scores in SET.csv
        dist = model.predict_dist(X)
        found = (-metrics.nll(y, dist), metrics.rmse(y, dist), metrics.crps(y, dist))
        density = dict(zip(DENSITY, found, strict=True))
    return density | {
        "coverage": float(np.mean((low <= y) & (y <= high))),
        "width": float(np.mean(high - low)),
        "interval_score": float(np.mean(high - low + 20 * outside)),
    }


def penalties(chosen: pd.DataFrame, arm: Arm, fold: int) -> dict[str, float] | None:
    """What the nearest arm of the engine chose in a fold, if it is trained."""
    if arm.regularization == NONE:
        return {"reg_mean": 0.0, "reg_var": 0.0}
    same = (chosen["method"] == arm.nearest) & (chosen["fold"] == fold)
    same &= (chosen["strategy"] == "warmup") & (chosen["regularization"] == arm.regularization)
    rows = chosen[same]
    return None if rows.empty else rows.iloc[0][["reg_mean", "reg_var"]].astype(float).to_dict()


def trained(
    arm: Arm, data: Any, split: tuple[np.ndarray, np.ndarray], seed: int, given: dict[str, float]
) -> dict[str, Any]:
    """Scores of one arm on the rows that one fold leaves out."""
    train, test = split
    scaler = StandardScaler().fit(data.X[train])
    X, new = scaler.transform(data.X[train]), scaler.transform(data.X[test])
    started = time.process_time()
    try:
        model = arm.make(X.shape[1], random_state=seed, **given).fit(X, data.y[train])
        found = scores(model, new, data.y[test], arm)
    except DivergedError:
        found = {"loglik": -math.inf, "rmse": math.inf, "crps": math.inf}
    return found | given | {"seconds": round(time.process_time() - started, 1)}


def run(name: str, methods: list[str], penalised: list[str], results: Path) -> None:
    """Train what is not there yet, fold by fold, and write it."""
    chosen = pd.read_csv(results / f"{name}.csv")
    path, data = results / f"{name}_torch.csv", datasets.load(name)
    rows = pd.read_csv(path).to_dict("records") if path.exists() else []
    done = {tuple(row[key] for key in KEY) for row in rows}
    splits = list(KFold(n_folds(name), shuffle=True, random_state=1).split(data.X))
    for arm in ARMS:
        if arm.method not in methods or arm.regularization not in penalised:
            continue
        for fold, split in enumerate(splits[: OUTER_FOLDS.get(name)]):
            if (*arm.key, fold) in done:
                continue
            given = penalties(chosen, arm, fold)
            if given is None:
                print(f"{name}: {arm.nearest}, warmup, {arm.regularization} is not trained in fold "
                      f"{fold}, so that {arm.method} has no penalties", flush=True)  # fmt: skip
                continue
            place = {"dataset": name, **dict(zip(KEY, (*arm.key, fold), strict=True))}
            row = place | {"variant": arm.nearest} | trained(arm, data, split, fold, given)
            rows.append(row)
            write(rows, path)
            print(f"{name}, {', '.join(arm.key)}, fold {fold}: {row['seconds']} s", flush=True)


def write(rows: list[dict[str, Any]], path: Path) -> None:
    """All rows in the order of arms and folds, whole or not at all."""
    order = {arm.key: number for number, arm in enumerate(ARMS)}
    rows = sorted(rows, key=lambda row: (order[tuple(row[k] for k in KEY[:3])], row["fold"]))
    with replacing(path) as fresh:
        pd.DataFrame(rows).to_csv(fresh, index=False, float_format="%.8g")


def main() -> None:
    """Run the data sets named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("datasets", nargs="*", help=f"of {', '.join(DATASETS)}; all if none")
    methods = list(dict.fromkeys(arm.method for arm in ARMS))
    parser.add_argument("--methods", nargs="+", choices=methods, default=methods)
    penalised = ["separate", "equal", NONE]
    parser.add_argument("--penalties", nargs="+", choices=penalised, default=penalised)
    parser.add_argument("--results", type=Path, default=HERE / "results" / "relatives")
    given = parser.parse_args()
    unknown = sorted(set(given.datasets) - set(DATASETS))
    if unknown:
        parser.error(f"unknown data set {unknown[0]!r}: choose from {', '.join(DATASETS)}")
    torch.set_num_threads(1)
    for name in given.datasets or DATASETS:
        if not (given.results / f"{name}.csv").exists():
            print(f"{name}: paper/relatives.py has trained nothing there yet")
            continue
        try:
            run(name, given.methods, given.penalties, given.results)
        except (OSError, ValueError) as error:
            sys.exit(f"{name}: {error}")


if __name__ == "__main__":
    main()
