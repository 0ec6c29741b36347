"""Two targets at once: what both need together.

Heating and cooling depend on a weather that nobody wrote down. Each forecast alone is the same with
and without the other; their sum is not: with errors of opposite signs it is far more certain.

Picture: Draws for one house from the joint distribution and from two separate ones, and the 90 %
interval of the sum by each.
"""

import matplotlib.pyplot as plt
import numpy as np

from mvenet import MVERegressor, metrics

rng = np.random.default_rng(0)


def houses(n):
    """Two columns, and the loads of heating and of cooling."""
    X = rng.uniform(-1, 1, (n, 2))
    weather = rng.standard_normal(n)
    heating = 20 + 5 * X[:, 0] + 1.5 * weather
    cooling = 10 - 3 * X[:, 1] - weather + 0.4 * rng.standard_normal(n)
    return X, np.column_stack([heating, cooling])


X, Y = houses(600)
X_new, Y_new = houses(2000)
model = MVERegressor(random_state=0).fit(X, Y)
dist = model.predict_dist(X_new)

both = metrics.joint_coverage(Y_new, dist.interval(0.9))
simultaneous = metrics.joint_coverage(Y_new, dist)
print(f"both targets within their own 90 % intervals: {both:.0%} of the rows")
print(f"both within simultaneous 90 % intervals: {simultaneous:.0%}")

tied = dist[:200].sample(500, random_state=0)
apart = np.stack([dist.marginal(j)[:200].sample(500, random_state=j) for j in (0, 1)], axis=2)
total = Y_new[:200].sum(axis=1)
for name, draws in {"separate": apart, "joint": tied}.items():
    low, high = np.quantile(draws.sum(axis=2), [0.05, 0.95], axis=0)
    held = np.mean((low <= total) & (total <= high))
    print(f"90 % intervals of the sum, {name}: {held:.0%} held, {np.mean(high - low):.1f} wide")

figure, axes = plt.subplots(1, 2, figsize=(8, 3.6), sharex=True, sharey=True)
for ax, (name, draws) in zip(axes, {"separate": apart, "joint": tied}.items(), strict=True):
    ax.scatter(*draws[:, 0].T, s=6, alpha=0.5)
    ax.scatter(*Y_new[0], color="black", marker="x", label="outcome")
    ax.set(title=name, xlabel="heating")
axes[0].set_ylabel("cooling")
axes[0].legend()
figure.tight_layout()
figure.savefig("two_targets.png", dpi=120)
