"""The outcome of an automatic search, in words and as columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvenet._automatic.free_shape import Found
from mvenet._automatic.out_of_fold import Candidate, Prediction
from mvenet._models.mixture import MULTIPLES
from mvenet._utils.wording import readable

Array = NDArray[np.float64]


def sentences(
    candidates: Sequence[Candidate],
    predicted: Prediction,
    y: Array,
    *,
    factor: float = 1.0,
    log: bool = False,
    gain: float | None = None,
    stopped: bool = False,
    free: Found | None = None,
) -> str:
    """The outcome, a sentence a line.

    ``factor`` is the typical error that is expected of the model, as a share of that out of fold;
    ``gain`` the log-likelihood a row by which the log scale was better.
    """
    rows = np.flatnonzero(~np.isnan(predicted.mean))
    unit = float(np.abs(y[rows]).max()) or 1.0  # squares then neither overflow nor vanish
    error, spread = (y - predicted.mean)[rows] / unit, unit * float((y[rows] / unit).std())
    rmse = unit * float(np.sqrt(np.mean(error**2)))
    lines = [
        f"{len(candidates)} candidates, compared on {len(rows):,} rows left out"
        + ("; stopped before the end." if stopped else "."),
        f"Mean: {_listed([(c.name, c.share or 0.0) for c in candidates])}.",
        f"Its typical error is {readable(rmse)} (root mean square; the target spreads by "
        f"{readable(spread)}).",
        f"Noise: {_listed([(c.name, c.weight) for c in candidates])}.",
    ]
    if factor < 0.97:
        lines.insert(
            3,
            f"Trained again, on all rows, it should err by {1.0 - factor:.0%} less, and its "
            "intervals are narrower by as much.",
        )
    if log:
        lines.insert(1, _log_scale(gain))
    low, high = np.quantile(predicted.std[rows], [0.05, 0.95])
    ends = f"{readable(low)} to {readable(high)}"
    lines.append(
        f"The standard deviation differs between rows: from {ends} in nine of ten."
        if high > 1.5 * low
        else f"The standard deviation is about the same in all rows: {ends}."
    )
    heavy = sum(float(c.weights[MULTIPLES > 2].sum()) for c in candidates if c.weights is not None)
    lines.append(
        f"Tails are heavier than a normal's: {heavy:.0%} of the rows are more than twice as noisy "
        "as others like them."
        if heavy > 0.03
        else "Tails are about a normal's."
    )
    return "\n".join([*lines, *_free(free)])


def _free(found: Found | None) -> list[str]:
    """What of the shape is free, and which values have a probability of their own."""
    lines = []
    if found is not None and found.share > 0:
        lines.append(
            f"The shape is free: {found.share:.0%} of the probability lies around values that "
            "similar rows had."
        )
    if found is not None and found.atoms is not None:
        values = found.atoms.values
        shown = ", ".join(f"{value:.6g}" for value in values[:6])
        rest = f" and {len(values) - 6} more" if len(values) > 6 else ""
        lines.append(f"Values with a probability of their own: {shown}{rest}.")
    if found is not None and found.known.ends is not None:
        ends = found.known.ends.values
        named = " or ".join(f"{end:.6g}" for end in ends[np.isfinite(ends)])
        lines.append(f"Hardly any row is at {named}: predictions come close, and do not reach it.")
    return lines


def columns(candidates: Sequence[Candidate], unit: float) -> dict[str, NDArray[Any]]:
    """The candidates as columns; NaN where one does not apply."""

    def column(values: Sequence[float | None]) -> Array:
        return np.array([np.nan if value is None else value for value in values])

    kinds = [c.kind for c in candidates]
    return {
        "name": np.array([c.name for c in candidates]),
        "reg_mean": column([k.penalties[0] if k and k.hidden_mean else None for k in kinds]),
        "reg_var": column([k.penalties[1] if k and k.hidden_var else None for k in kinds]),
        "rmse": column([unit * c.error for c in candidates]),
        "share": column([c.share for c in candidates]),
        "weight": column([c.weight if c.weights is not None else None for c in candidates]),
    }


def _log_scale(gain: float | None) -> str:
    """Why the model is one of log y."""
    chosen = "The model is of the logarithm of the target: nothing it predicts is below zero"
    if gain is None or not np.isfinite(gain):
        return f"{chosen}."
    return f"{chosen}, and the rows left out are likelier by {gain:.2f} a row (log-likelihood)."


def _listed(parts: Sequence[tuple[str, float]]) -> str:
    """Names with their parts in percent, the largest first, equal names added up."""
    total: dict[str, float] = {}
    for name, part in parts:
        total[name] = total.get(name, 0.0) + part
    ordered = sorted(total.items(), key=lambda item: -item[1])
    return ", ".join(f"{part:.0%} {name}" for name, part in ordered if part >= 0.005)
