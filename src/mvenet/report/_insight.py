"""What a report tells whoever decides: which columns matter and how, which rows to look at."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import stats

from mvenet import explain
from mvenet._models.predictor import PredictsDistribution
from mvenet.explain import Importance, PartialDependence
from mvenet.predictive import predictive_distribution

Array = NDArray[np.float64]
MOST_ROWS, MOST_COLUMNS, MOST_CURVES = 400, 40, 6
PREDICTIONS = 20_000  # rows that the importance of all columns may cost
REPEATS = 2
ROWS_OF_A_CURVE = 60


def importances(model: Any, tidy: pl.DataFrame, y: Array, seed: int = 0) -> Importance:
    """Importance of the columns that may matter, on as many rows as there is time for."""
    names = _promising(model, tidy)
    rows = min(MOST_ROWS, max(50, PREDICTIONS // (REPEATS * len(names))))
    given = _given(model, tidy)
    return explain.importance(
        model,
        given,
        y,
        columns=[_place(given, tidy, name) for name in names],
        n_repeats=REPEATS,
        max_rows=rows,
        random_state=seed,
    )


def _given(model: Any, tidy: pl.DataFrame) -> Any:
    """The rows as the model was fitted to them: an array, if its columns had no names."""
    ours = isinstance(model, PredictsDistribution)
    return tidy.to_numpy() if ours and not hasattr(model, "feature_names_in_") else tidy


def _place(given: Any, tidy: pl.DataFrame, name: str) -> str | int:
    """How a column is called: by its number, if it has no name."""
    return name if given is tidy else tidy.columns.index(name)


def _promising(model: Any, tidy: pl.DataFrame) -> list[str]:
    """All columns, or of many those whose numbers go with the prediction."""
    if tidy.width <= MOST_COLUMNS:
        return tidy.columns
    dist = predictive_distribution(model, _given(model, tidy[:1000]))
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
    model: Any,
    tidy: pl.DataFrame,
    names: Sequence[str],
    truths: Collection[str] = (),
    seed: int = 0,
) -> list[PartialDependence]:
    """Partial dependence of the mean and of both ends of the 90 % interval.

    Of columns among ``truths`` it is that of no and of yes.
    """
    given = _given(model, tidy)
    found = [
        explain.partial_dependence(
            model,
            given,
            _place(given, tidy, name),
            quantiles=(0.05, 0.95),
            max_rows=ROWS_OF_A_CURVE,
            random_state=seed,
        )
        for name in names[:MOST_CURVES]
    ]
    return [
        replace(one, kind="level", values=["yes" if value else "no" for value in one.values])
        if one.column in truths
        else one
        for one in found
    ]


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
    tidy: pl.DataFrame,
    columns: Sequence[str],
    y: Array,
    dist: Any,
    rows: NDArray[Any],
    truths: Collection[str] = (),
) -> dict[str, list[Example]]:
    """The surest rows, the least sure, and the worst misses; three of each.

    Cells of columns among ``truths`` are yes or no.
    """
    low, high = dist.interval(0.9).T
    width = high - low
    # In units of the row's own spread: a miss is where the model should have known.
    miss = np.abs(y - dist.mean) / np.maximum(dist.std, 1e-300)
    orders = {"surest": np.argsort(width), "least sure": np.argsort(-width),
              "worst misses": np.argsort(-miss)}  # fmt: skip
    return {
        kind: [
            Example(
                int(rows[i]) + 1, [_cell(tidy[name][int(i)], name in truths) for name in columns],
                float(y[i]), float(dist.mean[i]), float(low[i]), float(high[i]),
            )
            for i in order[:3]
        ]
        for kind, order in orders.items()
    }  # fmt: skip


def _cell(value: Any, truth: bool = False) -> str:
    if value is None:
        return "(missing)"
    if truth:
        return "yes" if value else "no"
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
