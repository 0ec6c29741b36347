"""Which way of training suits these data? The paper's comparison on any table.

Nested cross-validation of three strategies, each with equal and with separate penalties. Kill it
and call it again: with `store=` it goes on where it was.

Picture: Log-likelihood and RMSE of the six ways of training, with error bars.
"""

from mvenet import compare_strategies, datasets
from mvenet.comparison import plan_comparison, strategy_arms

sample = datasets.quadratic(n=200, random_state=0)
arms = strategy_arms(reg_mean=(1e-3, 1e-2, 1e-1), reg_var=(1e-3, 1e-2, 1e-1), epochs=100)
settings = {"arms": arms, "outer_cv": 5, "inner_cv": 3, "random_state": 0}

print(plan_comparison(sample.X, sample.y, **settings), "\n")
result = compare_strategies(sample.X, sample.y, store="runs", **settings)  # kill it, call it again
print(result)
result.plot().savefig("compare_strategies.png", dpi=130)
