"""Training strategies compared by nested cross-validation (the paper's Algorithm 1)."""

from mvenet.comparison._experiment import strategy_arms
from mvenet.comparison._plan import Plan, plan_comparison
from mvenet.comparison._result import Comparison
from mvenet.comparison._run import compare_strategies

__all__ = ["Comparison", "Plan", "compare_strategies", "plan_comparison", "strategy_arms"]
