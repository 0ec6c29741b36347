"""Training over several seeds on data of known truth, and the numbers that decide a figure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray

from mvenet import MVERegressor
from mvenet._training.fleet import DivergedError
from mvenet.datasets import Sample

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Truth:
    """Where predictions are compared with the truth: x and, at each x, the true mean and std."""

    x: Array
    mean: Array
    std: Array


@dataclass(frozen=True, eq=False)
class Fit:
    """One network trained on one draw, and its predictions where the truth is known.

    ``calibration`` is the root mean square of (y − mean)/std over new observations y at every x: 1
    is honest, more is overconfident. ``unevenness`` is the standard deviation over x of the log of
    the predicted over the true std: 0 if the std is wrong by the same factor everywhere.
    """

    setting: str
    seed: int
    reg_mean: float
    reg_var: float
    mean: Array
    std: Array
    rmse_mean: float
    rmse_std: float
    calibration: float
    unevenness: float

    def row(self, figure: str) -> dict[str, Any]:
        """What is kept in figures.json."""
        numbers = ("rmse_mean", "rmse_std", "calibration", "unevenness")
        return {
            "figure": figure,
            **{name: getattr(self, name) for name in ("setting", "seed", "reg_mean", "reg_var")},
            **{name: rounded(getattr(self, name)) for name in numbers},
        }


def train(
    draw: Callable[[int], Sample],
    truth: Truth,
    settings: Mapping[str, Mapping[str, Any]],
    seeds: Sequence[int],
    n_jobs: int = -1,
) -> list[Fit]:
    """Train every setting with every seed: the seed draws the rows and starts the network."""
    samples = {seed: draw(seed) for seed in seeds}
    jobs = [(name, seed) for name in settings for seed in seeds]
    # One thread a network: the engine lets go of the interpreter lock.
    parallel = joblib.Parallel(n_jobs=n_jobs, backend="threading")
    return list(
        parallel(
            joblib.delayed(_fit)(name, settings[name], seed, samples[seed], truth)
            for name, seed in jobs
        )
    )


def _fit(name: str, setting: Mapping[str, Any], seed: int, sample: Sample, truth: Truth) -> Fit:
    model = MVERegressor(**setting, random_state=seed, n_jobs=1)
    try:
        mean, std = model.fit(sample.X, sample.y).predict(truth.x[:, None], return_std=True)
    except DivergedError:
        # A network that diverged has learned nothing: that is a result, not the end of the run.
        mean, std = np.full((2, len(truth.x)), np.inf)
    return judged(name, seed, setting["reg_mean"], setting["reg_var"], mean, std, truth)


def judged(
    name: str, seed: int, reg_mean: float, reg_var: float, mean: Array, std: Array, truth: Truth
) -> Fit:
    """Predictions with their errors."""
    with np.errstate(invalid="ignore", over="ignore"):
        ratio = np.sqrt(((mean - truth.mean) ** 2 + truth.std**2) / std**2)
        calibration = float(np.sqrt(np.mean(np.nan_to_num(ratio, nan=np.inf) ** 2)))
        errors = rmse(mean, truth.mean), rmse(std, truth.std)
        unevenness = float(np.std(np.log(std / truth.std)))
    return Fit(name, seed, reg_mean, reg_var, mean, std, *errors, calibration, unevenness)


def rounded(number: float) -> float | None:
    """Five digits; None for what JSON cannot hold."""
    return float(f"{number:.5g}") if np.isfinite(number) else None


def rmse(a: Array, b: Array) -> float:
    """Root mean squared difference."""
    return float(np.sqrt(np.mean((a - b) ** 2)))


def group(fits: Sequence[Fit]) -> dict[str, list[Fit]]:
    """Fits of each setting, in the order in which the settings came."""
    groups: dict[str, list[Fit]] = {}
    for fit in fits:
        groups.setdefault(fit.setting, []).append(fit)
    return groups


def median(fits: Sequence[Fit], number: str = "rmse_mean") -> float:
    """Median of a number over the seeds: one network in eight may blow up its variance."""
    return float(np.median([getattr(fit, number) for fit in fits]))


def typical(fits: Sequence[Fit]) -> Fit:
    """The fit to show: that of median RMSE, or the next better one."""
    return sorted(fits, key=lambda fit: fit.rmse_mean)[(len(fits) - 1) // 2]


def honest(fits: Sequence[Fit], limit: float) -> int:
    """How many seeds learn the mean, with a std of at least half of the residuals."""
    return sum(fit.rmse_mean < limit and fit.calibration < 2 for fit in fits)


def learned(fits: Sequence[Fit], limit: float, number: str = "rmse_mean") -> int:
    """How many seeds stay below the limit."""
    return sum(getattr(fit, number) < limit for fit in fits)


def table(groups: Mapping[str, Sequence[Fit]], limit: float) -> str:
    """A line a setting: how many seeds learned the mean, and the errors' medians and ranges."""
    width = max(len(name) for name in groups)
    lines = [
        f"{'':<{width}}  learned    RMSE of the mean             RMSE of the std  calibration",
        f"{'':<{width}}  {f'(< {limit:.2g})':<9}  median (lowest to highest)   "
        "median           median",
    ]
    for name, fits in groups.items():
        errors = [fit.rmse_mean for fit in fits]
        span = f"{median(fits):.4f} ({min(errors):.4f} to {max(errors):.4f})"
        others = f"{median(fits, 'rmse_std'):<15.4f}  {median(fits, 'calibration'):.3g}"
        count = f"{learned(fits, limit)} of {len(fits)}"
        lines.append(f"{name:<{width}}  {count:<9}  {span:<27}  {others}")
    return "\n".join(lines)
