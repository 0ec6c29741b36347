"""The page on which somebody turns a knob: networks and encoder as data for whatif.js.

Plain networks are embedded as they are. Any other model is stood in for by small networks that were
trained on its own predictions, and the page says how far they are from it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from mvenet import fleet
from mvenet.distributions import NormalMixture
from mvenet.predictive import predictive_distribution
from mvenet.recipes import Architecture, Stage, Training
from mvenet.table import TableEncoder

Array = NDArray[np.float64]
MOST_CONTROLS = 10
MOST_LEVELS = 200  # of a menu
MOST_BYTES = 1_200_000  # of embedded networks
ROWS, STEPS = 20_000, 20_000  # what the stand-in is trained on, and for how long
GAPS = ((0.25, 0.5), (0.5, 0.75), (0.05, 0.25), (0.75, 0.95))


def payload(
    model: Pipeline,
    tidy: pl.DataFrame,
    names: Sequence[str],
    starts: dict[str, int],
    unit: str = "",
    seed: int = 0,
) -> dict[str, Any]:
    """All that the page needs.

    Parameters
    ----------
    model : Pipeline
        As made by :func:`mvenet.workflow.fit_table`.
    tidy : polars.DataFrame
        Rows as the model's encoder takes them.
    names : sequence of str
        Columns, the most important first; the first ten get a control.
    starts : dict of int
        Rows of ``tidy`` that a reader can start from, by a word for each.
    unit : str
    seed : int

    Returns
    -------
    dict
        ``stand_in`` is None if the networks are the model's own; else how far they are from it, as
        a share of the spread of what the model predicts.
    """
    encoder: TableEncoder = model[0]
    rng = np.random.default_rng(seed)
    typical = {name: _typical(tidy[name]) for name in tidy.columns}
    controls = [_control(encoder, tidy, name) for name in names[:MOST_CONTROLS]]
    networks, distance, floor = _networks(model, tidy, rng)
    codes = _coded(encoder, tidy)
    rows = {"typical": {n: _code(v, encoder, n) for n, v in typical.items()}}
    rows |= {word: {n: codes[n][i] for n in tidy.columns} for word, i in starts.items()}
    predicted = predictive_distribution(model, tidy)
    low, high = predicted.interval(0.9).T
    return {
        "unit": unit,
        "controls": controls,
        "starts": rows,
        "encoder": encoder_data(encoder),
        "networks": networks,
        "stand_in": distance,
        "floor": floor,
        "axis": [float(np.quantile(low, 0.02)), float(np.quantile(high, 0.98))],
    }


def script_safe(data: dict[str, Any]) -> str:
    """JSON that can stand within a page: no text in it can end the script."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False)
    for mark in "<>&\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text


def encoder_data(encoder: TableEncoder) -> dict[str, Any]:
    """What turns a row into numbers, in the order of the encoder's own columns."""
    numeric = encoder.named("number", "truth", "date")
    imputer = encoder.imputer_
    return {
        "numbers": numeric,
        "medians": [] if imputer is None else [float(v) for v in imputer.statistics_],
        "gaps": [] if imputer is None else [int(i) for i in imputer.indicator_.features_],
        "dates": [
            {"name": name, "origin": d.origin, "periods": [_PERIODS[c] for c in d.cycles]}
            for name, d in encoder.dates_.items()
        ],
        "levels": [
            {
                "name": name,
                "names": [str(v) for v in level.names],
                "values": level.values.tolist(),
                "other": level.default.tolist(),
            }
            for name, level in encoder.levels_.items()
        ],
    }


_PERIODS = {"y": 365.2425, "w": 7.0, "d": 1.0}


def _typical(column: pl.Series) -> Any:
    given = column.drop_nulls()
    if not len(given):
        return None
    if column.dtype == pl.Float64 and given.n_unique() > 2:
        return float(np.median(given.to_numpy()))
    if column.dtype in (pl.String, pl.Float64):
        return given.mode().sort()[0]
    return given.sort()[len(given) // 2]


def _coded(encoder: TableEncoder, tidy: pl.DataFrame) -> dict[str, list[Any]]:
    return {name: [_code(v, encoder, name) for v in tidy[name]] for name in tidy.columns}


def _code(value: Any, encoder: TableEncoder, name: str) -> Any:
    """A cell as the page has it: dates are days since the column's origin."""
    if value is None or isinstance(value, str | float):
        return value
    moment = pl.Series([value]).cast(pl.Datetime("us")).cast(pl.Int64).item()
    return moment / 86_400e6 - encoder.dates_[name].origin


def _control(encoder: TableEncoder, tidy: pl.DataFrame, name: str) -> dict[str, Any]:
    """A slider or a menu for a column."""
    kind = encoder.columns_[name].kind
    place = [*encoder.named("number", "truth", "date"), *encoder.named("category")].index(name)
    gaps = bool(getattr(encoder, "missing_", np.zeros(place + 1))[place] > 0)
    made: dict[str, Any] = {"name": name, "kind": kind, "gaps": gaps}
    if kind == "category":
        levels = [str(v) for v in encoder.levels_[name].names if v]
        frequent = tidy[name].drop_nulls().value_counts(sort=True)[name].to_list()
        order = [v for v in frequent if v in set(levels)] + [v for v in levels if v]
        return made | {"levels": sorted(dict.fromkeys(order[:MOST_LEVELS]))}
    if kind == "truth":
        return made
    low, high = _seen(encoder, tidy, name, place)
    room = 0.1 * (high - low)
    whole = kind == "number" and _all_whole(tidy[name]) and high - low >= 4
    step = 1.0 if whole else _nice((high - low) / 200)
    ends = [np.floor((low - room) / step) * step, np.ceil((high + room) / step) * step]
    if low >= 0 and kind == "number":
        ends[0] = max(0.0, ends[0])
    if kind == "date":
        made["origin"] = encoder.dates_[name].origin
        made["clock"] = "d" in encoder.dates_[name].cycles
        step = 1 / 96 if made["clock"] else 1.0
        clock_only = made["origin"] == 0.0 and high <= 1
        ends = [0.0, 1.0] if clock_only else [np.floor(low - room), np.ceil(high + room)]
    return made | {"low": float(ends[0]), "high": float(ends[1]), "step": step, "seen": [low, high]}


def _seen(encoder: TableEncoder, tidy: pl.DataFrame, name: str, place: int) -> tuple[float, float]:
    if hasattr(encoder, "seen_"):
        return float(encoder.seen_[0, place]), float(encoder.seen_[-1, place])
    codes = [v for v in _coded(encoder, tidy.select(name))[name] if v is not None]
    return float(min(codes)), float(max(codes))


def _all_whole(column: pl.Series) -> bool:
    values = column.drop_nulls().to_numpy()
    return bool((values == np.round(values)).all())


def _nice(step: float) -> float:
    if not step > 0:
        return 1.0
    power = 10.0 ** np.floor(np.log10(step))
    return float(f"{next(m for m in (1, 2, 5, 10) if m * power >= step) * power:.12g}")


def _networks(
    model: Pipeline, tidy: pl.DataFrame, rng: np.random.Generator
) -> tuple[dict[str, Any], dict[str, float] | None, float | None]:
    """Networks to embed, how far a stand-in is from the model, and where its quantiles end."""
    estimator, X = model[-1], model[0].transform(tidy[:500])
    networks = getattr(estimator, "networks_", None)
    factor = getattr(estimator, "scale_", 1.0)
    if isinstance(networks, fleet.Networks) and _same(estimator, networks, factor, X):
        made = network_data(networks, factor)
        if len(made["parameters"]) < MOST_BYTES:
            return made, None, None
    return _stand_in(model, tidy, rng)


def _same(estimator: Any, networks: fleet.Networks, factor: float, X: Array) -> bool:
    """Whether the model is the mixture of these networks, and nothing else."""
    try:
        means, stds = networks.predict(X)
    except (TypeError, ValueError, RuntimeError):  # they take other inputs
        return False
    plain = NormalMixture(means, factor * stds).interval(0.9)
    told = predictive_distribution(estimator, X).interval(0.9)
    return bool(np.abs(plain - told).max() <= 1e-6 * max(np.ptp(told), 1e-300))


def network_data(networks: fleet.Networks, factor: float) -> dict[str, Any]:
    """Networks as text; parameters keep their 32 bits."""
    architecture = networks.architecture
    mean, variance = architecture.sizes(networks.x_mean.shape[1])
    bound = architecture.input_bound
    return {
        "count": len(networks),
        "mean": mean,
        "variance": variance,
        "activation": architecture.activation,
        "bound": None if np.isinf(bound) else float(bound),
        "factor": float(factor),
        "floor": fleet.VARIANCE_FLOOR,
        "parameters": _base64(networks.parameters, "<f4"),
        "scaling": _base64(
            np.column_stack([networks.x_mean, networks.x_scale, networks.y_mean, networks.y_scale]),
            "<f8",
        ),
    }


def _base64(array: NDArray[Any], kind: str) -> str:
    return base64.b64encode(np.ascontiguousarray(array, dtype=kind).tobytes()).decode()


def _stand_in(
    model: Pipeline, tidy: pl.DataFrame, rng: np.random.Generator
) -> tuple[dict[str, Any], dict[str, float], float | None]:
    """Networks trained on what the model says about its rows and about mixtures of them.

    One for the mean, one for the median, and one for the logarithm of each gap between neighbouring
    quantiles, which so stay in order.
    """
    X = model[0].transform(_perturbed(tidy, rng))
    dist = predictive_distribution(model[1:], X)
    quantiles = {q: dist.ppf(q) for q in (0.05, 0.25, 0.5, 0.75, 0.95)}
    least = 1e-6 * max(float(np.ptp(dist.mean)), float(dist.std.max()), 1e-300)
    gaps = [np.log(np.maximum(quantiles[b] - quantiles[a], least)) for a, b in GAPS]
    aims = [dist.mean, quantiles[0.5], *gaps]
    train = np.arange(0, len(X) - len(X) // 5)
    stage = Stage("warmup", max(1, STEPS * 64 // len(train)), 5e-3, "cosine", reg_mean=1e-6)
    parts = [
        fleet.train(
            X, aim, None, [(train, train[:0])], [fleet.Network((stage,), seed)],
            architecture=Architecture((64, 32), None, "silu"), training=Training(batch_size=64),
            threads=fleet.effective_threads(None),
        ).networks
        for seed, aim in enumerate(aims)
    ]  # fmt: skip
    networks = fleet.join(parts)
    floor = 0.0 if quantiles[0.05].min() >= 0 else None
    fresh = slice(len(train), None)
    told = stand_in_values(networks.predict(X[fresh])[0], floor)
    truth = np.column_stack([dist.mean, *quantiles.values()])[fresh]
    off = np.sqrt(np.mean((told - truth) ** 2, axis=0)) / max(float(truth[:, 0].std()), least)
    distance = {"mean": float(off[0]), "ends": float(max(off[1], off[-1]))}
    return network_data(networks, 1.0), distance, floor


def stand_in_values(outputs: Array, floor: float | None) -> Array:
    """Mean and the five quantiles of each row, from what the six networks say."""
    mean, median, *logs = outputs
    a, b, c, d = (np.exp(log) for log in logs)
    made = np.column_stack([mean, median - a - c, median - a, median, median + b, median + b + d])
    return made if floor is None else np.maximum(made, floor)


def _perturbed(tidy: pl.DataFrame, rng: np.random.Generator) -> pl.DataFrame:
    """Rows, then rows of which some cells come from others or lie beyond the range."""
    n = max(500, ROWS)
    base = tidy[rng.integers(0, len(tidy), n)]
    # As many as somebody who starts from a row and turns a knob changes: up to about four.
    share = rng.choice([0.0, 1.0, 2.0, 4.0], size=n) / tidy.width
    mixed = []
    for series in base:
        other = tidy[series.name][rng.integers(0, len(tidy), n)]
        if series.dtype == pl.Float64 and series.drop_nulls().n_unique() > 2:
            low, high = float(series.min()), float(series.max())  # type: ignore[arg-type]
            room = 0.1 * (high - low)
            drawn = pl.Series(series.name, rng.uniform(low - room, high + room, n))
            other = _where(rng.random(n) < 0.5, drawn, other)
        mixed.append(_where(rng.random(n) < share, other, series))
    return pl.DataFrame(mixed)


def _where(mask: NDArray[np.bool_], one: pl.Series, other: pl.Series) -> pl.Series:
    return one.zip_with(pl.Series(mask), other).alias(other.name)
