"""From a table to a model, its evaluation and its predictions: what the command line runs."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mvenet.workflow._evaluation import Check, Evaluation, check, evaluate, evaluate_predictions
    from mvenet.workflow._fitting import FittedTable, fit_table, model_in_words
    from mvenet.workflow._fitting_targets import FittedTargets, fit_targets
    from mvenet.workflow._peers import ModelComparison, compare_models
    from mvenet.workflow._serving import predict_file, predictions
    from mvenet.workflow._targets import JointEvaluation, evaluate_targets

__all__ = [
    "Check",
    "Evaluation",
    "FittedTable",
    "FittedTargets",
    "JointEvaluation",
    "ModelComparison",
    "check",
    "compare_models",
    "evaluate",
    "evaluate_predictions",
    "evaluate_targets",
    "fit_table",
    "fit_targets",
    "model_in_words",
    "predict_file",
    "predictions",
]

_HOMES = {
    "_evaluation": ("Check", "Evaluation", "check", "evaluate", "evaluate_predictions"),
    "_fitting": ("FittedTable", "fit_table", "model_in_words"),
    "_fitting_targets": ("FittedTargets", "fit_targets"),
    "_peers": ("ModelComparison", "compare_models"),
    "_serving": ("predict_file", "predictions"),
    "_targets": ("JointEvaluation", "evaluate_targets"),
}


def __getattr__(name: str) -> Any:
    """Import what is asked for, and no more: ``mvenet predict`` does without scikit-learn."""
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"mvenet.workflow.{module}"), name)
    raise AttributeError(f"module 'mvenet.workflow' has no attribute {name!r}")
