"""What makes an interval wide, and which columns matter.

`mvenet.explain` tells which columns matter for the mean and which for the noise, what widens the
interval of a single row, and which training rows it is like. Here the machine decides on the noise,
and the load on the mean; a third column is of no use.

Picture: Four panels: bars of how much each column matters, a curve of the standard deviation that
rises with age, bars of what widens the interval of one row, and its density with the outcomes of
training rows like it.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from mvenet import MVERegressor, explain, plots

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.uniform(0, 10, (800, 3)), columns=["load", "age", "shade"])
y = 5 + 2 * X["load"] + (0.3 + 0.4 * X["age"]) * rng.standard_normal(800)
train, test = X[:600], X[600:]

model = MVERegressor(random_state=0).fit(train, y[:600])
print(explain.importance(model, test, y[600:]))
row = pd.DataFrame({"load": [5.0], "age": [9.0], "shade": [2.0]})
print(explain.narrowing(model, row, train))
like = explain.similar(model, row, train)
print("Rows like it had", y.to_numpy()[like.rows[0]].round(1))
odd = pd.DataFrame({"load": [5.0, 5.0], "age": [9.0, 25.0], "shade": [2.0, 2.0]})
print("Outside what was seen:", explain.outside(model, odd, train).score)

figure, axes = plt.subplots(2, 2, figsize=(10, 8), layout="compressed")
plots.ImportanceDisplay.from_estimator(model, test, y[600:], ax=axes[0, 0])
plots.DependenceDisplay.from_estimator(model, test, "age", show="std", max_lines=30, ax=axes[0, 1])
plots.NarrowingDisplay.from_estimator(model, row, train, ax=axes[1, 0])
plots.SimilarDisplay.from_estimator(model, row, train, y[:600], ax=axes[1, 1])
plt.savefig("reasons.png", dpi=110)
