"""Regression with honest uncertainty: mean-variance networks, trained properly and fast."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mvenet import recipes
    from mvenet._estimators.auto import AutoRegressor
    from mvenet._estimators.calibration import CalibratedRegressor
    from mvenet._estimators.dependence import DependenceWarning
    from mvenet._estimators.frames import UnseenWarning
    from mvenet._estimators.regressor import MVERegressor
    from mvenet._estimators.regressor_cv import MVERegressorCV
    from mvenet.comparison import compare_strategies
    from mvenet.distributions import LogNormalMixture, Normal, NormalMixture, WithAtoms
    from mvenet.persistence import load, save

__version__ = "0.1.0"

__all__ = [
    "AutoRegressor",
    "CalibratedRegressor",
    "DependenceWarning",
    "LogNormalMixture",
    "MVERegressor",
    "MVERegressorCV",
    "Normal",
    "NormalMixture",
    "UnseenWarning",
    "WithAtoms",
    "compare_strategies",
    "load",
    "recipes",
    "save",
]

_MODULES = (
    *("cli", "comparison", "datasets", "distributions", "explain", "metrics", "onnx"),
    *("persistence", "plots", "predictive", "recipes", "report", "table", "torch", "workflow"),
)
_HOMES = {
    "AutoRegressor": "_estimators.auto",
    "CalibratedRegressor": "_estimators.calibration",
    "DependenceWarning": "_estimators.dependence",
    "LogNormalMixture": "distributions",
    "MVERegressor": "_estimators.regressor",
    "MVERegressorCV": "_estimators.regressor_cv",
    "Normal": "distributions",
    "NormalMixture": "distributions",
    "UnseenWarning": "_estimators.frames",
    "WithAtoms": "distributions",
    "compare_strategies": "comparison",
    "load": "persistence",
    "save": "persistence",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for, and no more: ``mvenet --help`` should not wait for scikit-learn."""
    if name in _HOMES:
        return getattr(import_module(f"mvenet.{_HOMES[name]}"), name)
    if name in _MODULES:
        return import_module(f"mvenet.{name}")
    raise AttributeError(f"module 'mvenet' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES, "__version__"})
