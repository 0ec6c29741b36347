"""Names of our types in model files: they stay when a type moves to another module."""

from __future__ import annotations

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
    "Composite": "mvenet._models.composite",
    "Ensemble": "mvenet._models.ensemble",
    "Forest": "mvenet._models.forest",
    "GivenRegressor": "mvenet._models.means",
    "Linear": "mvenet._models.means",
    "LogColumns": "mvenet._models.gaussian_process",
    "MeanOfNoise": "mvenet._models.means",
    "NetworkMean": "mvenet._models.means",
    "Networks": "mvenet._models.networks",
    "Noise": "mvenet._models.noise",
    "Process": "mvenet._models.gaussian_process",
    "Range": "mvenet._models.seen",
    "Shape": "mvenet._models.mixture",
    "Steps": "mvenet._models.piecewise",
}
HOMES = ESTIMATORS | PARTS
# What an estimator is where only predictions are wanted: its own base class, which does them.
PLAIN = {
    "AutoRegressor": ("mvenet._models.predictor", "Predictor"),
    "CalibratedRegressor": ("mvenet._models.conformal", "Conformal"),
    "MVERegressor": ("mvenet._models.predictor", "Predictor"),
    "MVERegressorCV": ("mvenet._models.predictor", "Predictor"),
    "TableEncoder": ("mvenet.table._encoding", "Encoding"),
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


def written(module: str, name: str) -> str:
    """The module that a file names for a type: ``mvenet`` for ours."""
    return "mvenet" if module.startswith("mvenet.") and name in HOMES else module


def located(module: str, name: str) -> str:
    """The module that has the type which a file names."""
    return HOMES[name] if f"{module}.{name}" in OURS else module
