"""The page on which somebody turns a knob: controls, rows and encoder as data for whatif.js."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mvenet._columns.cells import given_cells
from mvenet._columns.encoding import Encoding
from mvenet.predictive import last_step
from mvenet.report._embedded import embedded, stand_in
from mvenet.workflow._known import known

Array = NDArray[np.float64]
MOST_CONTROLS = 10
MOST_LEVELS = 200  # of a menu
BYTES_A_COLUMN = 120  # of the page's table of columns
MOST_COMPARED = 2_000  # rows on which rounding is measured
ROWS = 20_000  # that a stand-in is trained on


def payload(
    model: Any,
    tidy: pl.DataFrame,
    names: Sequence[str],
    starts: dict[str, int],
    unit: str = "",
    seed: int = 0,
) -> dict[str, Any]:
    """All that the page needs.

    Parameters
    ----------
    model : estimator
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
        ``stand_in`` is None if ``model`` is the model itself, moved by ``rounding`` at most; else
        how far networks are that stand in for it; both as shares of the spread of its predictions.
    """
    table = known(model)
    encoder = table.encoder
    rng = np.random.default_rng(seed)
    typical = {name: _typical(tidy[name]) for name in tidy.columns}
    controls = [_control(encoder, tidy, name) for name in names[:MOST_CONTROLS]]
    codes = _coded(encoder, tidy)
    rows = {"typical": {n: _code(v, encoder, n) for n, v in typical.items()}}
    rows |= {word: {n: codes[n][i] for n in tidy.columns} for word, i in starts.items()}
    predicted = table.of_frame(tidy)
    low, high = predicted.interval(0.9).T
    data = {
        "unit": unit,
        "controls": controls,
        "starts": rows,
        "encoder": encoder_data(encoder),
        "axis": [float(np.quantile(low, 0.02)), float(np.quantile(high, 0.98))],
    }
    beside = len(script_safe(data).encode()) + BYTES_A_COLUMN * len(encoder.columns_)
    distance, found = (
        None,
        embedded(last_step(table.estimator), encoder.transform(tidy[:MOST_COMPARED]), beside),
    )
    if found is None:
        made, distance = stand_in(
            last_step(table.estimator), encoder.transform(_perturbed(tidy, rng))
        )
        found = made, 0.0
    return data | {"model": found[0], "rounding": found[1], "stand_in": distance}


def script_safe(data: dict[str, Any]) -> str:
    """JSON that can stand within a page: no text in it can end the script."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False)
    for mark in "<>&\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text


def encoder_data(encoder: Encoding) -> dict[str, Any]:
    """What turns a row into numbers, in the order of the encoder's own columns."""
    numeric = encoder.named("number", "truth", "date")
    medians, told = encoder._filled()
    return {
        "numbers": numeric,
        "medians": [float(v) for v in medians],
        "gaps": [int(i) for i in told],
        "dates": [
            {"name": name, "origin": d.origin, "periods": d.periods}
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


def _typical(column: pl.Series) -> Any:
    given = given_cells(column)
    if not len(given):
        return None
    if column.dtype == pl.Float64 and given.n_unique() > 2:
        return float(np.median(given.to_numpy()))
    if column.dtype in (pl.String, pl.Float64):
        return given.mode().sort()[0]
    return given.sort()[len(given) // 2]


def _coded(encoder: Encoding, tidy: pl.DataFrame) -> dict[str, list[Any]]:
    return {name: [_code(v, encoder, name) for v in tidy[name]] for name in tidy.columns}


def _code(value: Any, encoder: Encoding, name: str) -> Any:
    """A cell as the page has it: dates are days since the column's origin."""
    if value is None or isinstance(value, str | float):
        return value
    moment = pl.Series([value]).cast(pl.Datetime("us")).cast(pl.Int64).item()
    return moment / 86_400e6 - encoder.dates_[name].origin


def _control(encoder: Encoding, tidy: pl.DataFrame, name: str) -> dict[str, Any]:
    """A slider or a menu for a column."""
    kind = encoder.columns_[name].kind
    place = [*encoder.named("number", "truth", "date"), *encoder.named("category")].index(name)
    gaps = bool(getattr(encoder, "missing_", np.zeros(place + 1))[place] > 0)
    made: dict[str, Any] = {"name": name, "kind": kind, "gaps": gaps}
    if kind == "category":
        levels = [str(v) for v in encoder.levels_[name].names if v]
        frequent = given_cells(tidy[name]).value_counts(sort=True).to_series().to_list()
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


def _seen(encoder: Encoding, tidy: pl.DataFrame, name: str, place: int) -> tuple[float, float]:
    if hasattr(encoder, "seen_"):
        return float(encoder.seen_[0, place]), float(encoder.seen_[-1, place])
    codes = [v for v in _coded(encoder, tidy[[name]])[name] if v is not None]
    return float(min(codes)), float(max(codes))


def _all_whole(column: pl.Series) -> bool:
    values = given_cells(column).to_numpy()
    return bool((values == np.round(values)).all())


def _nice(step: float) -> float:
    if not step > 0:
        return 1.0
    power = 10.0 ** np.floor(np.log10(step))
    return float(f"{next(m for m in (1, 2, 5, 10) if m * power >= step) * power:.12g}")


def _perturbed(tidy: pl.DataFrame, rng: np.random.Generator) -> pl.DataFrame:
    """Rows, then rows of which some cells come from others or lie beyond the range."""
    n = max(500, ROWS)
    base = tidy[rng.integers(0, len(tidy), n)]
    # As many as somebody who starts from a row and turns a knob changes: up to about four.
    share = rng.choice([0.0, 1.0, 2.0, 4.0], size=n) / tidy.width
    mixed = {}
    for series in base:
        other = tidy[series.name][rng.integers(0, len(tidy), n)]
        if series.dtype == pl.Float64 and given_cells(series).n_unique() > 2:
            low, high = float(series.min()), float(series.max())  # type: ignore[arg-type]
            room = 0.1 * (high - low)
            drawn = pl.Series(rng.uniform(low - room, high + room, n))
            other = _where(rng.random(n) < 0.5, drawn, other)
        mixed[series.name] = _where(rng.random(n) < share, other, series)
    return pl.DataFrame(mixed)


def _where(mask: NDArray[np.bool_], one: pl.Series, other: pl.Series) -> pl.Series:
    return one.zip_with(pl.Series(mask), other)
