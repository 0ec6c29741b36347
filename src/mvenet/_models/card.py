"""A model card: what somebody who gets a file wants to know before using the model in it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mvenet._models.joint import JointModel
from mvenet._models.numbers import Numbers

MOST_COLUMNS = 200  # that are told
MOST_PAIRED = 20  # targets of which each pair is told


def card(model: Any) -> dict[str, Any]:
    """Target, rows, columns with kinds and ranges, scale, scores and promise of an estimator.

    What is not known is left out.
    """
    told = vars(model)
    joint = told.get("model_")
    if isinstance(joint, JointModel) and isinstance(joint.estimators, tuple):
        return _of_targets(joint)
    inner = told["members_"][0] if told.get("members_") else model
    columns = model.columns_
    ranges = _ranges(told.get("encoder_"), list(columns))
    made = {
        "target": told.get("target_name_"),
        "unit": told.get("unit_"),
        "fitted_on": told.get("fitted_on_"),
        "rows": told.get("n_rows_"),
        "columns": [
            {"name": name, "kind": c.kind, "remark": c.remark, **ranges.get(name, {})}
            for name, c in list(columns.items())[:MOST_COLUMNS]
        ],
        "log_scale": bool(getattr(getattr(inner, "model_", None), "log", False)),
        "rows_left_out": told.get("oof_scores_"),
        "rows_held_out": told.get("held_out_"),
        "promise": told.get("promise_"),
        **_ties(told.get("ties_")),
    }
    return {name: value for name, value in made.items() if value not in (None, "")}


def _of_targets(joint: JointModel) -> dict[str, Any]:
    """The card of several targets: what they share, what each has, and how their errors go."""
    # What no fit has made is refused by whoever checks the model; here it is left out.
    parts = [part for part in joint.estimators if hasattr(type(part), "columns_")]
    cards = [card(part) for part in parts] or [{}]
    shared: dict[str, Any] = {
        name: cards[0][name]
        for name in ("fitted_on", "rows", "columns", "promise")
        if name in cards[0]
    }
    each = [{name: v for name, v in one.items() if name not in shared} for one in cards]
    for name, one in zip(joint.names, each, strict=False):
        one["target"] = name
    pairs = [
        {"targets": [joint.names[i], joint.names[j]], "correlation": float(joint.constant[i, j])}
        for i in range(min(len(joint.names), MOST_PAIRED))
        for j in range(i)
    ]
    together: dict[str, Any] = {"errors": pairs, "same_for_all_rows": joint.local is None}
    return {"targets": each, **shared, "together": together}


def _ties(kept: Any) -> dict[str, Any]:
    """The columns that tie rows together, and how many groups were trained on."""
    if type(kept) is not dict:
        return {}
    told = {name: kept[name] for name in ("group", "time") if kept.get(name)}
    return told | ({"groups": len(kept.get("groups", ()))} if "group" in told else {})


def _ranges(encoder: Any, names: list[str]) -> dict[str, dict[str, Any]]:
    """Least and most of what was seen of each number and date, levels of each category."""
    if isinstance(encoder, Numbers):
        ends = zip(names, encoder.seen[0], encoder.seen[-1], encoder.median, strict=True)
        return {n: _range(low, high) for n, low, high, m in ends if math.isfinite(m)}
    if encoder is None or not hasattr(encoder, "seen_"):
        return {}
    numeric, dates = encoder.named("number", "truth", "date"), encoder.dates_
    made = {}
    for i, name in enumerate(numeric):
        low, high = float(encoder.seen_[0, i]), float(encoder.seen_[-1, i])
        made[name] = _range(low, high)
        if name in dates and dates[name].origin:
            first = np.datetime64(math.floor(dates[name].origin + low), "D")
            last = np.datetime64(math.floor(dates[name].origin + high), "D")
            made[name] = {"low": str(first), "high": str(last)}
    for name, levels in encoder.levels_.items():
        made[name] = {"levels": len([level for level in levels.names if level])}
    return made


def _range(low: float, high: float) -> dict[str, Any]:
    return {"low": float(low), "high": float(high)}
