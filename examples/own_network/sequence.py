"""A GRU on sequences: the next value of a wave whose noise is seen in how rough it was."""

import sys

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn

from mvenet import metrics
from mvenet.torch import MeanVarianceNet, TorchMVERegressor

N, EPOCHS = (300, 3) if "--quick" in sys.argv else (2000, 30)


def waves(n, seed):
    """Sequences (n, 24, 1), the next value of each, and its true mean and standard deviation."""
    rng = np.random.default_rng(seed)
    noise = rng.uniform(0.02, 0.5, (n, 1))
    phase = rng.uniform(0.2, 0.8, (n, 1)) * np.arange(25) + rng.uniform(0, 2 * np.pi, (n, 1))
    values = np.sin(phase) + noise * rng.standard_normal((n, 25))
    return values[:, :24, None].astype(np.float32), values[:, 24], np.sin(phase[:, 24]), noise[:, 0]


class Reader(nn.Module):
    """Reads a sequence, says one number."""

    def __init__(self):
        super().__init__()
        self.gru, self.out = nn.GRU(1, 24, batch_first=True), nn.Linear(24, 1)

    def forward(self, x):
        """From (n, steps, 1) to (n, 1)."""
        return self.out(self.gru(x)[1][0])


torch.set_num_threads(1)
X, y, _, _ = waves(N, 0)
X_new, y_new, mean, noise = waves(1000, 1)
model = TorchMVERegressor(
    lambda: MeanVarianceNet(Reader(), Reader()), epochs=EPOCHS, warmup_epochs=EPOCHS,
    learning_rate=5e-3, batch_size=64, reg_mean=1e-5, random_state=0,
).fit(X, y)  # fmt: skip
dist = model.predict_dist(X_new)
seen = np.corrcoef(np.log(dist.std), np.log(noise))[0, 1]
print(f"RMSE {metrics.rmse(y_new, dist):.3f}, of the true mean {np.std(y_new - mean):.3f}")
print(f"log-likelihood {-metrics.nll(y_new, dist):.3f}")
print(f"covered by 90 % intervals: {100 * metrics.coverage(y_new, dist, nominal=0.9):.1f} %")
print(f"correlation of log std with the truth: {seen:.2f}")

# The calmest, a middling and the roughest wave, and what is expected next.
chosen = np.argsort(noise)[[0, len(noise) // 2, -1]]
figure, axes = plt.subplots(1, 3, figsize=(9, 2.8), sharey=True, layout="constrained")
for i, axis in zip(chosen, axes, strict=True):
    axis.plot(X_new[i, :, 0], color="0.4", lw=1, marker=".", label="read")
    axis.errorbar(24, dist.mean[i], 1.645 * dist.std[i], color="C1", marker="o", capsize=4,
                  label="says (90 %)")  # fmt: skip
    axis.plot(24, y_new[i], "kx", label="came")
    axis.set_title(f"noise {noise[i]:.2f}, says {dist.std[i]:.2f}", fontsize=10)
    axis.set_xlabel("step")
axes[0].legend(fontsize=8, loc="lower left")
figure.savefig("sequence.png", dpi=110)
