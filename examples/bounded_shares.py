"""Shares between 0 and 100 %: bounds that no interval leaves.

`bounds=(0, 100)` keeps mean, quantiles, intervals and draws within. What would lie beyond is
collected at the end, which thereby has a probability.

Know its limit: here values run right up to the ends, as if a wider bell had been cut off. The
probability of an end then comes out too low. The intervals hold all the same.

Picture: Shares over the dose with the median and a 90 % band that stays between 0 and 100 percent.
"""

import matplotlib.pyplot as plt
import numpy as np

from mvenet import AutoRegressor

rng = np.random.default_rng(0)


def patients(n):
    """Doses, and the shares that respond."""
    dose = rng.uniform(-3, 3, n)
    return dose, np.clip(100 / (1 + np.exp(-2 * dose)) + 12 * rng.standard_normal(n), 0, 100)


dose, share = patients(600)
model = AutoRegressor(effort="low", bounds=(0, 100), random_state=0).fit(dose[:, None], share)
grid = np.linspace(-3, 3, 200)[:, None]
dist = model.predict_dist(grid)
low, high = model.predict_interval(grid, 0.9).T
print(f"lowest and highest end of all intervals: {low.min():.0f} and {high.max():.0f}")
new, observed = patients(3000)
lower, upper = model.predict_interval(new[:, None], 0.9).T
inside = np.mean((lower <= observed) & (observed <= upper))
print(f"90 % intervals cover {100 * inside:.0f} % of new rows")
print(f"P(exactly 100 %) at the largest dose: {dist.pmf(100.0)[-1]:.2f}, true 0.49")

figure, ax = plt.subplots(layout="constrained")
ax.plot(dose, share, ".", color="0.6", ms=3, label="observed")
ax.fill_between(grid[:, 0], low, high, alpha=0.35, label="90 % interval")
ax.plot(grid[:, 0], dist.median, label="median")
ax.set(xlabel="dose", ylabel="share in %")
ax.legend()
figure.savefig("bounded_shares.png", dpi=130)
