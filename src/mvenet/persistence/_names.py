"""Names of our types in model files: they stay when a type moves to another module."""

from __future__ import annotations

from typing import Any

# Where each lives now: a file says mvenet.Networks, whatever module that is in. First what
# estimators are, then what models are made of.
ESTIMATORS = {
    "AutoRegressor": "mvenet._estimators.auto",
    "CalibratedRegressor": "mvenet._estimators.calibration",
    "MVERegressor": "mvenet._estimators.regressor",
    "MVERegressorCV": "mvenet._estimators.regressor_cv",
    "TableEncoder": "mvenet.table",
}
PARTS = {
    "Architecture": "mvenet._models.architecture",
    "Atoms": "mvenet._models.free_shape",
    "Composite": "mvenet._models.composite",
    "Constant": "mvenet._models.free_shape",
    "Ends": "mvenet._models.free_shape",
    "Ensemble": "mvenet._models.ensemble",
    "Forest": "mvenet._models.forest",
    "FreeShape": "mvenet._models.free_shape",
    "GivenQuantiles": "mvenet._models.free_shape",
    "GivenRegressor": "mvenet._models.means",
    "JointModel": "mvenet._models.joint",
    "Linear": "mvenet._models.means",
    "LocalCorrelation": "mvenet._models.joint",
    "LogColumns": "mvenet._models.gaussian_process",
    "MeanOfNoise": "mvenet._models.means",
    "NetworkMean": "mvenet._models.means",
    "Networks": "mvenet._models.networks",
    "Noise": "mvenet._models.noise",
    "Numbers": "mvenet._models.numbers",
    "Process": "mvenet._models.gaussian_process",
    "Range": "mvenet._models.seen",
    "Shape": "mvenet._models.mixture",
    "Steps": "mvenet._models.piecewise",
    "Residuals": "mvenet._models.free_shape",
    "Hurdle": "mvenet._models.free_shape",
    "TreeValues": "mvenet._models.free_shape",
}
HOMES = ESTIMATORS | PARTS
# What an estimator is where only predictions are wanted: its own base class, which does them.
PLAIN = {
    "AutoRegressor": ("mvenet._models.predictor", "Predictor"),
    "CalibratedRegressor": ("mvenet._models.conformal", "Conformal"),
    "MVERegressor": ("mvenet._models.predictor", "Predictor"),
    "MVERegressorCV": ("mvenet._models.predictor", "Predictor"),
    "TableEncoder": ("mvenet._columns.encoding", "Encoding"),
}
# Format 1 wrote the modules of its time.
FORMER = {
    "mvenet.regressor.MVERegressor",
    "mvenet.search.MVERegressorCV",
    "mvenet.calibration.CalibratedRegressor",
    "mvenet.table.TableEncoder",
    "mvenet.fleet.Networks",
    "mvenet.recipes.Architecture",
}
OURS = frozenset(f"mvenet.{name}" for name in HOMES) | FORMER
# What is called otherwise today: files keep the first name, of a type and of fields of types.
TODAY = {"Steps": "Piecewise"}
FIELDS = {"Composite": {"steps": "piecewise"}, "Ensemble": {"steps": "piecewise"}}
_STORED = {today: name for name, today in TODAY.items()}


def written(module: str, name: str) -> tuple[str, str]:
    """Module and name by which a file knows a type: those of ours are all in ``mvenet``."""
    stored = _STORED.get(name, name)
    ours = module.partition(".")[0] == "mvenet" and stored in HOMES
    return ("mvenet", stored) if ours else (module, name)


def located(module: str, name: str) -> tuple[str, str]:
    """Module and name, today, of the type which a file names."""
    ours = f"{module}.{name}" in OURS
    return (HOMES[name], TODAY.get(name, name)) if ours else (module, name)


def written_fields(name: str, attributes: dict[str, Any]) -> dict[str, Any]:
    """Attributes of an object of a type of ours, by the names that files have for them."""
    stored = {today: field for field, today in FIELDS.get(name, {}).items()}
    return {stored.get(field, field): value for field, value in attributes.items()}


def located_fields(name: str, attributes: dict[str, Any]) -> dict[str, Any]:
    """The same by their names of today."""
    today = FIELDS.get(name, {})
    return {today.get(field, field): value for field, value in attributes.items()}
