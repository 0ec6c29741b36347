"""What a report tells of several targets together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from mvenet._utils.wording import readable, with_unit
from mvenet.workflow import JointEvaluation
from mvenet.workflow._known_targets import TableModels

SURE = 1e-7  # a probability is taken to be no closer to 0 or 1
MOST_PAIRS = 6  # that are told in words


def content(
    several: TableModels,
    evaluation: JointEvaluation | None,
    parts: Sequence[Any],
    pages: int,
) -> dict[str, Any]:
    """Scores of each target, and how their errors go together; the first ones have a page."""
    names = several.joint.names
    lines = [
        {
            "name": name,
            "link": f"target-{i + 1}" if i < pages else "",
            **_scores(part.evaluation, part.unit),
        }
        for i, (name, part) in enumerate(zip(names, parts, strict=True))
    ]
    return {
        "names": names,
        "named": _listed(names),
        "evaluation": evaluation,
        "n": 0 if evaluation is None else len(evaluation.dist),
        "lines": lines,
        "left_out": len(names) - pages,
        "together": _sentences(several, evaluation),
        "draw": lambda ax: _draw(several, evaluation, ax),
    }


def _listed(names: Sequence[str]) -> str:
    """``a, b and c``; of many the first ones."""
    if len(names) > MOST_PAIRS:
        return f"{', '.join(names[:MOST_PAIRS])} and {len(names) - MOST_PAIRS} more"
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _scores(evaluation: Any, unit: str) -> dict[str, Any]:
    if evaluation is None:
        return {"mae": None}
    r2 = evaluation.scores["r2"]
    return {
        "mae": with_unit(readable(evaluation.scores["mae"]), unit),
        "middle": with_unit(readable(evaluation.middle), unit),
        "explained": f"{100 * r2:.0f}\N{NO-BREAK SPACE}%" if np.isfinite(r2) else "–",
        "covered": evaluation.coverage[0.9],
        "verdict": evaluation.verdict(0.9)[0],
    }


def _sentences(several: TableModels, evaluation: JointEvaluation | None) -> list[str]:
    """The largest correlations, and whether the model knows of them."""
    joint = several.joint
    first, second = np.triu_indices(len(joint.names), 1)
    size = joint.constant[first, second]
    order = np.argsort(-np.abs(size), kind="stable")[:MOST_PAIRS]
    told = [_pair(float(size[i]), joint.names[first[i]], joint.names[second[i]]) for i in order]
    if len(size) > len(order):
        told.append("Other pairs go together less.")
    if joint.local is not None:
        told.append("How they go together differs from row to row, by the columns.")
    if evaluation is not None and evaluation.scores["gain"] < 0:
        told.append("On the rows checked, knowing this made the predictions no better.")
    return told


def _pair(size: float, one: str, other: str) -> str:
    if abs(size) < 0.1:
        return f"Errors of {one} and {other} have next to nothing to do with each other."
    way = "both too high or both too low" if size > 0 else "one too high, the other too low"
    how = "mostly" if abs(size) >= 0.7 else "often" if abs(size) >= 0.4 else "a little more often"
    return f"{one} and {other} are {how} {way} (correlation of the errors {size:.2f})."


def _draw(several: TableModels, evaluation: JointEvaluation | None, ax: Any) -> object:
    from mvenet import plots

    if evaluation is not None:
        return plots.TargetsDisplay.from_predictions(evaluation.y, evaluation.dist, ax=ax)
    joint = several.joint
    scores = _left_out(joint.estimators)
    display = plots.TargetsDisplay(scores=scores, correlation=joint.constant, names=joint.names)
    return display.plot(ax)


def _left_out(estimators: Sequence[Any]) -> NDArray[np.float64]:
    """Normal scores of rows that folds left out, (n, k)."""
    found = np.column_stack([part.oof_pit_.mean(axis=1) for part in estimators])
    known = found[np.isfinite(found).all(axis=1)]
    return np.asarray(ndtri(np.clip(known, SURE, 1 - SURE)), dtype=np.float64)
