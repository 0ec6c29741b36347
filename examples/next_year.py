"""Next year: rows that follow each other in time.

A demand grows, and its noise is correlated from week to week. With `time=` the folds are stretches
of time that lie after their training rows, as next year does.

Picture: Weekly demand of four years, and 90 % intervals of the next year with and without time=;
those with it are wider and hold more.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from mvenet import AutoRegressor, DependenceWarning

rng = np.random.default_rng(1)
week = np.arange(260.0)
drift = np.cumsum(rng.standard_normal(260)) * 0.6
y = 40 + 6 * np.sin(2 * np.pi * week / 52) + drift + rng.standard_normal(260)
X = np.column_stack([week, np.sin(2 * np.pi * week / 52), np.cos(2 * np.pi * week / 52)])
old, new = slice(0, 208), slice(208, 260)

figure, ax = plt.subplots(layout="constrained")
ax.plot(week, y, "k.", ms=3)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DependenceWarning)  # it says that rows seem to depend
    for name, time, colour in (("told nothing", None, "C1"), ("time=week", week[old], "C0")):
        model = AutoRegressor(effort="low", random_state=0).fit(
            X[old], y[old], time=time, horizon=None if time is None else 52
        )
        low, high = model.predict_interval(X[new], 0.9).T
        held = np.mean((low <= y[new]) & (y[new] <= high))
        print(f"{name:14s} 90 % intervals hold {held:.0%} of the next year's weeks")
        ax.fill_between(week[new], low, high, alpha=0.35, color=colour, label=f"{name}: {held:.0%}")
ax.set(xlabel="week", ylabel="demand")
ax.legend(title="90 % intervals hold", loc="upper left")
figure.savefig("next_year.png", dpi=130)
