"""Regression with honest uncertainty: mean-variance networks, trained properly and fast."""

from mvenet import recipes
from mvenet.calibration import CalibratedRegressor
from mvenet.comparison import compare_strategies
from mvenet.distributions import Normal, NormalMixture
from mvenet.regressor import MVERegressor
from mvenet.search import MVERegressorCV

__version__ = "0.1.0"

__all__ = [
    "CalibratedRegressor",
    "MVERegressor",
    "MVERegressorCV",
    "Normal",
    "NormalMixture",
    "compare_strategies",
    "recipes",
]
