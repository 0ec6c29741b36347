"""What a report tells: baselines, where the model is unsure, rows that look odd."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from threadpoolctl import threadpool_limits

from mvenet import metrics
from mvenet._utils.wording import readable
from mvenet.distributions import Distribution, Normal
from mvenet.distributions._atoms import nothing_between

if TYPE_CHECKING:
    import polars as pl

    from mvenet.workflow import Evaluation

Array = NDArray[np.float64]
PARTS = ("rmse", "nll", "crps", "coverage", "width")  # of a line of the table of scores
MOST_NAMED = 6  # values that many rows share
ODD = 0.999  # an interval that a row should miss once in a thousand


@dataclass(frozen=True)
class Line:
    """A line of the table of scores; None where a model has no such score."""

    model: str
    rmse: float
    nll: float | None
    crps: float | None
    coverage: float
    width: float


def scores(name: str, y: Array, dist: Distribution) -> Line:
    """Scores of a predictive distribution, the interval being the central 90 %."""
    found = metrics.summary(y, dist)
    return Line(name, **{part: found[part] for part in PARTS})


def baselines(X: Array, y: Array, X_test: Array, y_test: Array, seed: int = 0) -> list[Line]:
    """What simpler models reach on the same rows."""
    n = len(y_test)
    constant = Normal(np.full(n, y.mean()), np.full(n, y.std() or 1.0))
    scale = X.std(axis=0)
    scale[scale == 0] = 1.0
    linear = RidgeCV(np.logspace(-3, 3, 13)).fit((X - X.mean(axis=0)) / scale, y)
    fitted = linear.predict((X - X.mean(axis=0)) / scale)
    freedom = max(1, len(y) - min(X.shape[1] + 1, len(y) - 1))
    noise = float(np.sqrt(np.sum((y - fitted) ** 2) / freedom)) or 1.0
    straight = Normal(linear.predict((X_test - X.mean(axis=0)) / scale), np.full(n, noise))
    with threadpool_limits(1, user_api="openmp"):  # on a busy machine its threads would only wait
        low, middle, high = (
            HistGradientBoostingRegressor(loss="quantile", quantile=q, random_state=seed)
            .fit(X, y)
            .predict(X_test)
            for q in (0.05, 0.5, 0.95)
        )
    inside = (low <= y_test) & (y_test <= high)
    boosted = Line(
        "gradient boosting, quantiles",
        float(np.sqrt(np.mean((y_test - middle) ** 2))),
        None,
        None,
        float(inside.mean()),
        float(np.mean(high - low)),
    )
    return [
        scores("constant mean and variance", y_test, constant),
        scores("linear, constant variance", y_test, straight),
        boosted,
    ]


@dataclass(frozen=True)
class Driver:
    """A column that goes with the uncertainty: a number's rank correlation, or a level's mean."""

    column: str
    strength: float
    text: str


def drivers(tidy: pl.DataFrame, columns: Mapping[str, Any], std: Array) -> list[Driver]:
    """The columns that say most about where the model is unsure, strongest first.

    ``tidy`` is the table as its encoder takes it.
    """
    found = []
    for name, column in columns.items():
        if column.kind == "number":
            values = tidy[name].to_numpy()
            given = np.isfinite(values)
            if given.sum() < 10 or len(np.unique(values[given])) < 3 or np.ptp(std[given]) == 0:
                continue
            rho = float(stats.spearmanr(values[given], std[given]).statistic)
            direction = "large" if rho > 0 else "small"
            found.append(Driver(name, abs(rho), f"less sure where {name} is {direction}"))
        elif column.kind in ("category", "truth"):
            words = {1.0: "yes", 0.0: "no", None: "missing"}
            levels = np.array([words.get(v, v) for v in tidy[name].to_list()], dtype=object)
            found += _level_driver(name, levels.astype(str), std)
    found = [driver for driver in found if np.isfinite(driver.strength)]
    return sorted(found, key=lambda driver: -driver.strength)


def _level_driver(name: str, levels: NDArray[Any], std: Array) -> list[Driver]:
    """Share of the spread of log std that a category explains, as a correlation."""
    codes, index = np.unique(levels, return_inverse=True)
    counts = np.bincount(index)
    if len(codes) < 2 or (counts >= 5).sum() < 2:
        return []
    logs = np.log(std)
    means = np.bincount(index, weights=logs) / counts
    total = float(logs.var())
    explained = float(np.average((means - logs.mean()) ** 2, weights=counts)) / (total or 1.0)
    frequent = np.where(counts >= 5, means, -np.inf)
    text = f"less sure where {name} is {codes[int(frequent.argmax())]}"
    return [Driver(name, float(np.sqrt(explained)), text)]


def recognised(estimator: Any, name: str) -> str:
    """What was recognised in the values of the target, in a sentence; empty if nothing was."""
    model = getattr(estimator, "model_", None)
    found = (_of_atoms(model, name), _of_ends(model, name))
    return " ".join(sentence for sentence in found if sentence)


def _of_ends(model: Any, name: str) -> str:
    """Which ends the target comes close to; empty if none is known."""
    ends = getattr(model, "ends", None)
    if ends is None:
        return ""
    known = [readable(float(model.unit * end)) for end in ends.values if np.isfinite(end)]
    return (
        f"Hardly any row has {name} at {' or '.join(known)}: predictions come close to "
        f"{'this end and do not reach it' if len(known) == 1 else 'both and do not reach them'}."
    )


def _of_atoms(model: Any, name: str) -> str:
    """Which values have a probability; empty if none has."""
    atoms = getattr(model, "atoms", None)
    if model is None or atoms is None:
        return ""
    values = model.unit * atoms.values
    if nothing_between(atoms.cells):
        steps = np.diff(values)
        even = len(values) > 2 and np.allclose(steps, steps[0], rtol=1e-6)
        apart = f" in steps of {readable(float(steps[0]))}" if even else ""
        return (
            f"All values of {name} are among {len(values):,}, from {readable(float(values[0]))} to "
            f"{readable(float(values[-1]))}{apart}: the model gives each of them a probability."
        )
    first = [readable(float(value)) for value in values[:MOST_NAMED]]
    more = f" and {len(values) - len(first)} others" if len(values) > len(first) else ""
    if len(values) == 1:
        return f"Many rows share the value {first[0]}, which has a probability of its own."
    return f"Many rows share one of the values {', '.join(first)}{more}: each has a probability."


def coverage_by(evaluation: Evaluation) -> str:
    """Coverage by group or along time, in a sentence; empty if neither is known."""
    counted, by = evaluation.coverage_by(), evaluation.by
    if counted is None or by is None:
        return ""
    share, slack = counted["coverage"], 1e-12
    off = int(np.sum((share < counted["low"] - slack) | (share > counted["high"] + slack)))
    what = f"stretches of {by.name}" if by.along else f"values of {by.name}"
    return (
        f"The 90 % intervals hold {share.min():.0%} to {share.max():.0%} of the rows of "
        f"{len(share):,} {what}; {off:,} of them are off by more than chance allows if rows were "
        "independent, which rows that belong together seldom are."
    )


def odd_rows(y: Array, dist: Distribution) -> NDArray[np.int64]:
    """Rows beyond the 99.9 % interval, the farthest first."""
    low, high = dist.interval(ODD).T
    odd = np.flatnonzero((y < low) | (y > high))
    order = np.argsort(-np.abs(y[odd] - dist.mean[odd]) / dist.std[odd])
    return odd[order]
