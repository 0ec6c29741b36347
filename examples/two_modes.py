"""Two outcomes are likely, and nothing between them.

A queue is short or long, a machine runs or restarts: the mean is then a value that never occurs.
`AutoRegressor` finds the two modes; `hdi` gives the shortest region, which may have several parts.

Picture: Predicted density of one row with two peaks at the two values that the data have, and less
density between them, where the mean lies; the true density, dashed, has none there.
"""

import matplotlib.pyplot as plt
import numpy as np

from mvenet import AutoRegressor

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (800, 2))
restarts = rng.random(800) < 0.5 + 0.3 * X[:, 0]
y = np.where(restarts, 3.0, 0.0) + 0.3 * rng.standard_normal(800)

model = AutoRegressor(effort="low", random_state=0).fit(X, y)
row = [[-0.3, 0.0]]
dist = model.predict_dist(row)
print(f"mean {dist.mean[0]:.1f}, which hardly ever occurs")
print(
    "80 % lies within", " and ".join(f"{low:.1f} to {high:.1f}" for low, high in dist.hdi(0.8)[0])
)
print(f"P(y > 2) = {dist.sf(2.0)[0]:.2f}, true 0.41")

grid = np.linspace(-2, 5, 400)
density = np.exp([dist.logpdf(value)[0] for value in grid])
truth = [
    share * np.exp(-(((grid - at) / 0.3) ** 2) / 2) / np.sqrt(2 * np.pi) / 0.3
    for share, at in ((0.59, 0.0), (0.41, 3.0))
]
figure, ax = plt.subplots(layout="constrained")
ax.fill_between(grid, density, alpha=0.4, label="predicted")
ax.plot(grid, sum(truth), "k--", lw=1, label="true")
ax.axvline(dist.mean[0], color="C1", label="the mean")
ax.set(xlabel="y", ylabel="density")
ax.legend()
figure.savefig("two_modes.png", dpi=130)
