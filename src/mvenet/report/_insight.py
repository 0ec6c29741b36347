"""What a report tells whoever decides: which columns matter and how, which rows to look at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import stats
from sklearn.pipeline import Pipeline

from mvenet import metrics
from mvenet._columns.cells import given_cells
from mvenet.predictive import predictive_distribution

Array = NDArray[np.float64]
MOST_ROWS, MOST_COLUMNS, MOST_CURVES = 400, 40, 6
PREDICTIONS = 20_000  # rows that the importance of all columns may cost
REPEATS = 2


@dataclass(frozen=True)
class Importance:
    """How much worse the score gets if a column is shuffled among the rows.

    Attributes
    ----------
    column : str
    loss : float
        Rise of the CRPS, in units of y; below zero by chance only.
    share : float
        Of the rise of the column that matters most, 0 to 1.
    """

    column: str
    loss: float
    share: float


@dataclass(frozen=True)
class Dependence:
    """How the prediction depends on a column, the others being as they are in the rows.

    Attributes
    ----------
    column : str
    values : list
        Numbers, moments or levels.
    mean, low, high : ndarray
        Prediction and 90 % interval, each averaged over the rows.
    """

    column: str
    values: list[Any]
    mean: Array
    low: Array
    high: Array


def importances(model: Pipeline, tidy: pl.DataFrame, y: Array, seed: int = 0) -> list[Importance]:
    """Permutation importance of the CRPS, the most important column first.

    ``tidy`` is the table as the model's encoder takes it. Of more than forty columns those are
    shuffled that go most with what is predicted.
    """
    rng = np.random.default_rng(seed)
    names = _promising(model, tidy)
    n = min(len(tidy), MOST_ROWS, max(50, PREDICTIONS // (REPEATS * len(names))))
    rows = np.sort(rng.choice(len(tidy), n, replace=False))
    X, target = model[0].transform(tidy[rows]), y[rows]
    plain = _crps(model, X, target)
    places = model[0].places()
    losses = {}
    for name in names:
        changed = []
        for _ in range(REPEATS):
            shuffled = X.copy()
            shuffled[:, places[name]] = X[rng.permutation(n)][:, places[name]]
            changed.append(_crps(model, shuffled, target))
        losses[name] = float(np.mean(changed)) - plain
    most = max(max(losses.values()), 1e-300)
    found = [Importance(name, loss, max(0.0, loss) / most) for name, loss in losses.items()]
    return sorted(found, key=lambda importance: -importance.loss)


def _crps(model: Pipeline, X: Array, y: Array) -> float:
    return float(metrics.crps(y, predictive_distribution(model[1:], X)))


def _promising(model: Pipeline, tidy: pl.DataFrame) -> list[str]:
    """All columns, or of many those whose numbers go with the prediction."""
    if tidy.width <= MOST_COLUMNS:
        return tidy.columns
    dist = predictive_distribution(model, tidy[:1000])
    strength = {}
    for name in tidy.columns:
        codes = tidy[name][:1000].alias("").rank("dense").to_numpy()
        given = ~np.isnan(codes)
        if given.sum() < 3 or np.ptp(codes[given]) == 0:
            strength[name] = 0.0
            continue
        both = (stats.spearmanr(codes[given], v[given]).statistic for v in (dist.mean, dist.std))
        strength[name] = float(np.nanmax(np.abs([*both, 0.0])))
    kept = sorted(strength, key=lambda name: -strength[name])[:MOST_COLUMNS]
    return [name for name in tidy.columns if name in set(kept)]


def dependences(
    model: Pipeline, tidy: pl.DataFrame, names: Sequence[str], seed: int = 0
) -> Iterator[Dependence]:
    """Partial dependence of the mean and of both ends of the 90 % interval."""
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.choice(len(tidy), min(len(tidy), 60), replace=False))
    X, places = model[0].transform(tidy[rows]), model[0].places()
    for name in names[:MOST_CURVES]:
        values = _grid(tidy[name])
        # Named at last: polars takes a name such as ^sold$ for a pattern while it makes dates.
        column = pl.Series(values, dtype=tidy.schema[name]).alias(name)
        like = tidy[[0] * len(values)].with_columns(column)
        block = model[0].transform(like)[:, places[name]]
        changed = np.tile(X, (len(values), 1))
        changed[:, places[name]] = np.repeat(block, len(rows), axis=0)
        dist = predictive_distribution(model[1:], changed)
        low, high = dist.interval(0.9).T
        shape = (len(values), len(rows))
        averaged = (part.reshape(shape).mean(axis=1) for part in (dist.mean, low, high))
        yield Dependence(name, values, *averaged)


def _grid(column: pl.Series) -> list[Any]:
    """Values to try: up to twelve levels, or so many of the middle 98 %; dates have seasons."""
    given = given_cells(column)
    if column.dtype == pl.String:
        return sorted(given.value_counts(sort=True).to_series().head(12).to_list())
    numbers = given.cast(pl.Int64).cast(pl.Float64) if column.dtype != pl.Float64 else given
    low, high = (float(np.quantile(numbers.to_numpy(), q)) for q in (0.01, 0.99))
    if len(np.unique(numbers.to_numpy())) <= 12:
        return sorted(given.unique().to_list())
    grid = np.linspace(low, high, 17 if column.dtype == pl.Float64 else 73)
    if column.dtype == pl.Float64:
        return [float(v) for v in grid]
    return pl.Series(np.round(grid)).cast(pl.Int64).cast(column.dtype).to_list()


@dataclass(frozen=True)
class Example:
    """A row to look at, in the table's own words."""

    row: int
    cells: list[str]
    observed: float
    mean: float
    low: float
    high: float


def examples(
    tidy: pl.DataFrame, columns: Sequence[str], y: Array, dist: Any, rows: NDArray[Any]
) -> dict[str, list[Example]]:
    """The surest rows, the least sure, and the worst misses; three of each."""
    low, high = dist.interval(0.9).T
    width = high - low
    # In units of the row's own spread: a miss is where the model should have known.
    miss = np.abs(y - dist.mean) / np.maximum(dist.std, 1e-300)
    orders = {"surest": np.argsort(width), "least sure": np.argsort(-width),
              "worst misses": np.argsort(-miss)}  # fmt: skip
    return {
        kind: [
            Example(
                int(rows[i]) + 1, [_cell(tidy[name][int(i)]) for name in columns],
                float(y[i]), float(dist.mean[i]), float(low[i]), float(high[i]),
            )
            for i in order[:3]
        ]
        for kind, order in orders.items()
    }  # fmt: skip


def _cell(value: Any) -> str:
    if value is None:
        return "(missing)"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.6g}"
    text = str(value)
    return text.removesuffix(" 00:00:00") if len(text) < 40 else f"{text[:39]}…"


@dataclass(frozen=True)
class Decision:
    """Of the rows predicted above a threshold, how many really were."""

    threshold: float
    predicted: int
    were: int
    expected: float
    missed: int


def decisions(y: Array, dist: Any) -> list[Decision]:
    """One line for each of a few round thresholds between the extremes of the target."""
    found = []
    for threshold in _thresholds(y):
        above, really = dist.mean > threshold, y > threshold
        chance = 1 - dist.cdf(threshold)
        found.append(
            Decision(
                threshold, int(above.sum()), int((above & really).sum()),
                float(chance[above].sum()), int((really & ~above).sum()),
            )
        )  # fmt: skip
    return found


def _thresholds(y: Array) -> list[float]:
    quantiles = np.quantile(y, [0.1, 0.25, 0.5, 0.75, 0.9])
    spread = float(quantiles[-1] - quantiles[0])
    if not spread > 0:
        return []
    step = 10.0 ** np.floor(np.log10(spread / 5))
    rounded = [float(np.round(q / step) * step) for q in quantiles]
    return sorted({float(f"{v:.10g}") for v in rounded})
