"""Estimators of files that an earlier format wrote, made into those of today.

Formats 1 and 2 kept ``networks_`` with ``scale_``, or ``composite_``, where ``model_`` is now; and
``strategy="auto"`` made another procedure of a class, which has a class of its own now.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mvenet._models.checks import check_fields, require
from mvenet._models.composite import Composite
from mvenet._models.ensemble import Ensemble
from mvenet._models.interface import FittedModel
from mvenet._models.means import GivenRegressor
from mvenet._models.predictor import Predictor

FORMER = {"networks_", "composite_"}
_COMMON = ("n_jobs", "random_state", "verbose")
# Of an automatic search, which had all parameters of the networks and used none of them.
_SEARCH = {"effort": "effort", "means": "candidates", "target": "target", "cv": "cv"}
# What MVERegressor took for no choice of the user's: with all of them it was automatic. The usual
# schedule was "cosine" at first.
_UNTOUCHED = {
    "hidden_mean": (40, 20),
    "hidden_var": (40, 20),
    "activation": "elu",
    "objective": "nll",
    "beta": 0.5,
    "epochs": "auto",
    "warmup_epochs": "auto",
    "batch_size": 32,
    "learning_rate": 0.01,
    "clip_value": 5.0,
    "n_members": 1,
    "early_stopping": False,
    "validation_fraction": 0.1,
    "n_iter_no_change": 20,
    "reg_mean": "auto",
    "reg_var": "auto",
}


def renew(estimator: Predictor) -> None:
    """Make an estimator of an earlier format one of today, in place; of today's nothing changes.

    Whether what comes out is a model is not known yet: that is checked afterwards, as of any.
    """
    state, kind = vars(estimator), type(estimator).__name__
    if not FORMER.isdisjoint(state):
        state["model_"] = _model(state)
    automatic = state.get("strategy") == "auto"
    if kind == "MVERegressorCV" and automatic:
        from mvenet._estimators.auto import AutoRegressor  # with scikit-learn: it is there by now

        _become(estimator, AutoRegressor, _SEARCH)
    elif kind == "MVERegressorCV":
        for name in ("means", "target", "effort"):
            state.pop(name, None)
    elif kind == "MVERegressor" and automatic:
        usual = all(_same(state.get(name, value), value) for name, value in _UNTOUCHED.items())
        if usual and state.get("schedule") in ("cosine", "ramp-cosine"):
            _become(estimator, type(estimator), {"target": "target"})
        else:
            state["strategy"] = "warmup"


def _model(state: dict[str, Any]) -> FittedModel:
    """What an estimator was fitted to, taken out of its attributes."""
    require(len({"model_", *FORMER} & set(state)) == 1, "there is more than one model")
    scale = state.pop("scale_", 1.0)
    if "networks_" in state:
        return Ensemble(state.pop("networks_"), scale)
    former = state.pop("composite_")
    check_fields(former, Composite)
    require(type(former.means) is tuple, "there is no mean or no noise")
    # Regressors of the user's stood among the means as they were.
    means = tuple(m if hasattr(type(m), "evaluate") else GivenRegressor(m) for m in former.means)
    return Composite(**vars(former) | {"means": means})


def _become(estimator: Any, kind: Any, names: dict[str, str]) -> None:
    """Keep what was fitted and the parameters that count, by today's names; all else is usual."""
    state = vars(estimator)
    fitted = {name: value for name, value in state.items() if name.endswith("_")}
    kept = {name: state[name] for name in _COMMON if name in state}
    kept |= {new: state[old] for old, new in names.items() if old in state}
    state.clear()
    estimator.__class__ = kind
    state.update(kind().get_params(deep=False) | kept | fitted)


def _same(value: Any, usual: Any) -> bool:
    """Whether a parameter is at its default; arrays never are."""
    return not isinstance(value, np.ndarray) and bool(value == usual)
