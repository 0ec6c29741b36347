"""The paper's sine: a shared trunk with and without warm-up, and two networks beside it.

A trunk that serves both heads can be penalised once only. With two networks the variance can be
held down by a penalty of its own, which helps even without a warm-up.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
import torch
from joblib import Parallel, delayed
from torch import nn

from mvenet import datasets
from mvenet.torch import MeanVarianceNet, TorchMVERegressor

QUICK = "--quick" in sys.argv
SEEDS, EPOCHS = (range(1), 2) if QUICK else (range(3), 300)
GRID = np.linspace(0, 10, 1001)
TRUTH = 0.4 * np.sin(2 * np.pi * GRID)


def trunk():
    """Two hidden layers, the first steep enough for ten periods."""
    first = nn.Linear(1, 128)
    nn.init.uniform_(first.weight, -40, 40)
    nn.init.uniform_(first.bias, -40, 40)
    return nn.Sequential(first, nn.Tanh(), nn.Linear(128, 50), nn.SiLU())


def shared():
    """The modern architecture."""
    return MeanVarianceNet(nn.Linear(50, 1), nn.Linear(50, 1), trunk=trunk())


def split():
    """The original architecture."""
    return MeanVarianceNet(*(nn.Sequential(trunk(), nn.Linear(50, 1)) for _ in range(2)))


ARMS = {
    "shared trunk, no warm-up": (shared, "no-warmup", 0.0),
    "shared trunk, warm-up": (shared, "warmup", 0.0),
    "two networks, no warm-up": (split, "no-warmup", 0.0),
    "two networks, no warm-up, variance penalised": (split, "no-warmup", 0.1),
}


def fitted(make, strategy, reg_var, seed):
    """Mean and standard deviation on the grid."""
    torch.set_num_threads(1)
    sample = datasets.sine(1000, random_state=seed)
    model = TorchMVERegressor(
        make, strategy=strategy, reg_mean=0.0, reg_var=reg_var, epochs=EPOCHS,
        warmup_epochs=EPOCHS, batch_size=200, learning_rate=5e-3, random_state=seed,
    )  # fmt: skip
    return model.fit(sample.X / 5 - 1, sample.y).predict(GRID[:, None] / 5 - 1, return_std=True)


jobs = [(arm, seed) for arm in ARMS for seed in SEEDS]
results = Parallel(n_jobs=1 if QUICK else -1)(delayed(fitted)(*ARMS[a], seed) for a, seed in jobs)
figure, axes = plt.subplots(len(ARMS), 1, figsize=(8, 8), sharex=True, layout="constrained")
print("RMSE of the mean against the truth, by seed (the sine's own spread is 0.283)")
for arm, axis in zip(ARMS, axes, strict=True):
    found = [result for (name, _), result in zip(jobs, results, strict=True) if name == arm]
    errors = "  ".join(f"{np.sqrt(np.mean((mean - TRUTH) ** 2)):.3f}" for mean, _ in found)
    print(f"{arm:45} {errors}   median std {np.median([std for _, std in found]):.3f}")
    mean, std = found[0]
    axis.plot(GRID, TRUTH, color="0.6", lw=1, label="truth")
    axis.plot(GRID, mean, color="C1", lw=1, label="mean")
    axis.fill_between(GRID, mean - std, mean + std, color="C1", alpha=0.3, lw=0, label="±1 std")
    axis.set_title(arm, loc="left", fontsize=10)
    axis.set_ylim(-1.0, 1.0)
axes[0].legend(loc="upper right", ncols=3, fontsize=8)
figure.savefig("sine.png", dpi=110)
