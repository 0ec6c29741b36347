"""The sine with and without a warm-up: eight random starts of each.

Trained on the likelihood from the start, a network explains what it has not learned yet as noise,
and then never learns it. With a warm-up, which trains the mean alone, it finds the sine.

Picture: Fitted means of eight starts, above without a warm-up, below with it. Above many are flat
over parts of the sine, below nearly all follow it.
"""

import matplotlib.pyplot as plt
import numpy as np

from mvenet import MVERegressor, datasets

sample = datasets.sine(random_state=0)
network = {
    "hidden_mean": (50, 50, 50),
    "hidden_var": (50, 50, 50),
    "activation": "silu",
    "reg_mean": 0.0,
    "reg_var": 0.0,
    "batch_size": 16,
    "learning_rate": 5e-3,
    "n_members": 8,
    "random_state": 0,
}
ways = {
    "without a warm-up": MVERegressor(strategy="no-warmup", epochs=1100, **network),
    "with a warm-up": MVERegressor(strategy="warmup", warmup_epochs=1000, epochs=100, **network),
}
grid = np.linspace(0, 10, 800)[:, None]
truth = 0.4 * np.sin(2 * np.pi * grid[:, 0])
figure, panels = plt.subplots(2, 1, sharex=True, sharey=True, layout="constrained")
for panel, (name, model) in zip(panels, ways.items(), strict=True):
    means = model.fit(sample.X, sample.y).predict_dist(grid).means
    learned = np.sqrt(np.mean((means - truth) ** 2, axis=1)) < 0.1
    print(f"{name}: {learned.sum()} of 8 starts learn the sine")
    panel.plot(sample.X[:, 0], sample.y, ".", color="0.75", ms=3)
    panel.plot(grid[:, 0], means.T, lw=1, alpha=0.7)
    panel.set(title=f"{name}: {learned.sum()} of 8 learn it", ylabel="y")
panels[1].set_xlabel("x")
figure.savefig("sine_warmup.png", dpi=130)
