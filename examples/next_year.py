"""Next year: rows that follow each other in time.

Demand stays high or low for weeks. Rows held out at random have neighbours on both sides;
those of the next year have none. With `time=` each stretch that is held out lies after the rows
trained on. The simulation goes on in a hundred ways, so that no lucky or unlucky year decides.

Picture: Weekly demand, and 90 % intervals of the next year with and without time=; those with it
are wider and hold more.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from mvenet import AutoRegressor, DependenceWarning

rng = np.random.default_rng(1)
week = np.arange(468.0)
season = np.column_stack([np.sin(2 * np.pi * week / 52), np.cos(2 * np.pi * week / 52)])
mood = np.zeros((468, 100))  # high for weeks, then low for weeks; one past, a hundred futures
for i in range(1, 468):
    news = rng.standard_normal(100)
    mood[i] = 0.9 * mood[i - 1] + (news if i >= 416 else news[0])
y = 40 + 6 * season[:, :1] + mood + 0.5 * rng.standard_normal((468, 1))
X = np.column_stack([week, season])
old, new = slice(0, 416), slice(416, 468)

figure, ax = plt.subplots(layout="constrained")
ax.plot(week[312:], y[312:, 0], "k.", ms=3)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DependenceWarning)  # it says that rows seem to depend
    for name, time, colour in (("told nothing", None, "C1"), ("time=week", week[old], "C0")):
        model = AutoRegressor(effort="low", random_state=0).fit(X[old], y[old, 0], time=time)
        low, high = model.predict_interval(X[new], 0.9)[:, :, None].transpose(1, 0, 2)
        held = np.mean((low <= y[new]) & (y[new] <= high))
        print(f"{name:14s} 90 % intervals hold {held:.0%} of the next year's weeks")
        ends = low[:, 0], high[:, 0]
        ax.fill_between(week[new], *ends, alpha=0.35, color=colour, label=f"{name}: {held:.0%}")
ax.set(xlabel="week", ylabel="demand")
ax.legend(title="90 % intervals hold", loc="upper left")
figure.savefig("next_year.png", dpi=130)
