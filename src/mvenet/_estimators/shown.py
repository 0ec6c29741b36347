"""A fitted estimator as it shows itself: its parameters, and what was found in five lines."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.utils import estimator_html_repr

from mvenet._models.joint import JointModel
from mvenet._utils.wording import harmless, readable

MOST_NAMES, LONGEST = 4, 110
# Beginnings of the sentences of a summary that are worth a line.
SENTENCES = ("Mean:", "Its typical error", "The standard deviation")


class Shown:
    """What scikit-learn shows of an estimator, and below it what the fit has found."""

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        plain = _as_scikit_learn(self, N_CHAR_MAX)
        return "\n  ".join([plain, *found(self)])

    def _repr_html_inner(self) -> str:
        lines = "".join(f"<li>{escape(line)}</li>" for line in found(self))
        listed = f'<ul style="margin:0.3em 0;padding-left:1.4em">{lines}</ul>' if lines else ""
        return f"{estimator_html_repr(self)}{listed}"

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        shown = {"text/plain": repr(self)}
        if get_config()["display"] == "diagram":
            shown["text/html"] = self._repr_html_inner()
        return shown


def found(estimator: Any) -> list[str]:
    """What a fit has found, in five lines at most; none if there was no fit."""
    members = vars(estimator).get("members_")
    if members:  # of a calibration
        rows = f"{estimator.n_calibration_:,} rows left out"
        return [*found(members[0])[:4], f"Intervals calibrated by {rows}."]
    if not hasattr(estimator, "model_"):
        return []
    joint = vars(estimator).get("model_")
    if isinstance(joint, JointModel) and len(joint.names) > 1:
        return [_short(harmless(line)) for line in _of_targets(estimator, joint)]
    summary = getattr(estimator, "summary_", "").splitlines()
    told = [line for line in summary if line.startswith(SENTENCES)] or summary[:3]
    return [_short(harmless(line)) for line in [_rows(estimator), *told[:3], *_held(estimator)]]


def _rows(estimator: Any) -> str:
    """How many rows and which columns it was fitted to."""
    names = [str(name) for name in getattr(estimator, "feature_names_in_", ())]
    width = estimator.n_features_in_
    count = f"{width} column" + "s" * (width != 1)
    if hasattr(estimator, "oof_mean_"):
        count = f"{len(estimator.oof_mean_):,} rows, {count}"
    if not names:
        return f"Fitted to {count}."
    shown = ", ".join(name if len(name) <= 20 else f"{name[:19]}…" for name in names[:MOST_NAMES])
    more = f" and {width - MOST_NAMES} more" if width > MOST_NAMES else ""
    return f"Fitted to {count}: {shown}{more}."


def _held(estimator: Any) -> list[str]:
    """How many of the rows left out lie within their 90 % interval."""
    pit = getattr(estimator, "oof_pit_", None)
    if not isinstance(pit, np.ndarray) or pit.ndim != 2 or pit.shape[1] != 2:
        return []  # of a file that is older
    return [f"90 % intervals hold {held_by_90(pit):.1%} of the rows that were left out."]


def held_by_90(pit: NDArray[np.float64]) -> float:
    """Share of rows within their 90 % interval, by probabilities below and up to each, (n, 2)."""
    below, up_to = pit[np.isfinite(pit).all(axis=1)].T
    return float(np.mean((up_to >= 0.05) & (below <= 0.95)))


def _of_targets(estimator: Any, joint: JointModel) -> list[str]:
    """Several targets: the error and the coverage of each, and how their errors go together."""
    names = ", ".join(name if len(name) <= 20 else f"{name[:19]}…" for name in joint.names[:4])
    more = f" and {len(joint.names) - 4} more" if len(joint.names) > 4 else ""
    lines = [_rows(estimator), f"{len(joint.names)} targets: {names}{more}."]
    errors, held = [], []
    for name, part in zip(joint.names[:4], joint.estimators, strict=False):
        told = vars(part)
        if told.get("oof_scores_"):
            errors.append(f"{readable(told['oof_scores_']['rmse'])} of {name}")
        if isinstance(told.get("oof_pit_"), np.ndarray):
            held.append(f"{held_by_90(told['oof_pit_']):.1%} of {name}")
    if errors:
        lines.append(f"Typical error, by rows left out: {', '.join(errors)}.")
    if held:
        lines.append(f"90 % intervals hold, of rows left out: {', '.join(held)}.")
    first, second = np.triu_indices(len(joint.names), 1)
    size = joint.constant[first, second]
    if len(size):
        i = int(np.argmax(np.abs(size)))
        pair = f"{size[i]:.2f} of {joint.names[first[i]]} and {joint.names[second[i]]}"
        lines.append(f"Correlation of errors: {pair}{' at most' * (len(size) > 1)}.")
    return lines


def _short(line: str) -> str:
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"


def _as_scikit_learn(estimator: Any, most: int) -> str:
    """Parameters, wrapped as scikit-learn does: only for classes whose ``__repr__`` is its own."""
    cls = type(estimator)
    plain: Any = type(cls.__name__, (cls,), {"__repr__": BaseEstimator.__repr__})
    stand_in = object.__new__(plain)
    stand_in.__dict__ = vars(estimator)
    text: str = BaseEstimator.__repr__(stand_in, most)
    return text
