"""Names of our types in model files: they stay when a type moves to another module."""

from __future__ import annotations

# Where each lives now: a file says mvenet.Networks, whatever module that is in.
HOMES = {
    "MVERegressor": "mvenet.regressor",
    "MVERegressorCV": "mvenet.search",
    "CalibratedRegressor": "mvenet.calibration",
    "TableEncoder": "mvenet.table",
    "Networks": "mvenet._networks",
    "Architecture": "mvenet.recipes",
    "Composite": "mvenet._composite",
    "NetworkMean": "mvenet._composite",
    "MeanOfNoise": "mvenet._composite",
    "Noise": "mvenet._composite",
    "Range": "mvenet._composite",
    "Linear": "mvenet._composite",
    "Forest": "mvenet._trees",
    "Process": "mvenet._process",
    "LogColumns": "mvenet._process",
    "Steps": "mvenet._steps",
    "Shape": "mvenet._stack",
}
# What an estimator is where only predictions are wanted: its own base class, which does them.
PLAIN = {
    "MVERegressor": ("mvenet._predictor", "Predictor"),
    "MVERegressorCV": ("mvenet._predictor", "Predictor"),
    "CalibratedRegressor": ("mvenet._conformal", "Conformal"),
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
