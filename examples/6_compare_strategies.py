"""Which way of training suits these data? Nested cross-validation of six, resumable."""

from mvenet import compare_strategies, datasets
from mvenet.comparison import plan_comparison, strategy_arms

sample = datasets.quadratic(n=200, random_state=0)
arms = strategy_arms(reg_mean=(1e-3, 1e-2, 1e-1), reg_var=(1e-3, 1e-2, 1e-1), epochs=100)
settings = {"arms": arms, "outer_cv": 5, "inner_cv": 3, "random_state": 0}

print(plan_comparison(sample.X, sample.y, **settings), "\n")
result = compare_strategies(sample.X, sample.y, store="runs", **settings)  # kill it, call it again
print(result)
result.plot().savefig("comparison.png", dpi=150)
print("\npicture: comparison.png")
