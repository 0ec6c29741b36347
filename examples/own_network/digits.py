"""How far is this digit turned? A convolutional network, and an answer that is noisy for some.

Digits 5 to 9 are told with ten times the noise of 0 to 4: a network must see which digit it is to
know how sure to be. Naive likelihood, warm-up and separate penalties, by the paper's procedure: the
penalties of each are those with the highest likelihood on held-out images.
"""

import argparse

import matplotlib.pyplot as plt
import numpy as np
import torch
from scipy.ndimage import rotate
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

from mvenet import metrics
from mvenet.torch import MeanVarianceNet, TorchMVERegressor

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--quick", action="store_true", help="a few images, a few epochs")
parser.add_argument("--seeds", type=int, default=5)
options = parser.parse_args()
QUICK = options.quick
SEEDS, EPOCHS = range(1 if QUICK else options.seeds), 2 if QUICK else 25
GRID = (1e-4, 1e-3)


def turned_digits(seed):
    """Images (n, 1, 8, 8), angles in degrees as they were told, and whether they are noisy."""
    rng, digits = np.random.default_rng(seed), load_digits()
    images, kinds = digits.images[:: 6 if QUICK else 1], digits.target[:: 6 if QUICK else 1]
    angles = rng.uniform(-45, 45, len(images))
    turned = [rotate(im, a, reshape=False, order=1) for im, a in zip(images, angles, strict=True)]
    noise = np.where(kinds > 4, 20.0, 2.0)
    y = angles + noise * rng.standard_normal(len(angles))
    return np.stack(turned)[:, None].astype(np.float32) / 16, y, noise > 10


def cnn():
    """One of the two networks."""
    return nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Conv2d(8, 16, 3), nn.ReLU(), nn.Flatten(),
        nn.Linear(256, 32), nn.ReLU(), nn.Linear(32, 1),
    )  # fmt: skip


def trained(strategy, reg_mean, reg_var, seed, X, y):
    """One network pair; the same start and batches whatever the penalties."""
    return TorchMVERegressor(
        lambda: MeanVarianceNet(cnn(), cnn()), strategy=strategy, reg_mean=reg_mean,
        reg_var=reg_var, epochs=EPOCHS, warmup_epochs=EPOCHS, batch_size=64, learning_rate=2e-3,
        random_state=seed,
    ).fit(X, y)  # fmt: skip


def scores(model, X, y, noisy):
    """RMSE of the quiet half, log-likelihood, coverage, and the two stds that were found."""
    dist = model.predict_dist(X)
    rmse = metrics.rmse(y[~noisy], dist[~noisy])
    covered = 100 * metrics.coverage(y, dist, nominal=0.9)
    return rmse, -metrics.nll(y, dist), covered, *(np.median(dist.std[k]) for k in (~noisy, noisy))


def compare(seed):
    """Scores of each strategy at its best equal and its best separate penalties."""
    X, y, noisy = turned_digits(seed)
    rest, test = train_test_split(np.arange(len(y)), test_size=0.25, random_state=seed)
    train, held_out = train_test_split(rest, test_size=0.2, random_state=seed)
    for strategy in ("no-warmup", "warmup"):
        likelihood, models = {}, {}
        for pair in [(mean, factor * mean) for mean in GRID for factor in (1, 10, 100)]:
            models[pair] = trained(strategy, *pair, seed, X[train], y[train])
            dist = models[pair].predict_dist(X[held_out])
            likelihood[pair] = -metrics.nll(y[held_out], dist)
        best = max(likelihood, key=likelihood.get)
        equal = max((p for p in likelihood if p[0] == p[1]), key=likelihood.get)
        for name, pair in (("equal", equal), ("separate", best)):
            yield (strategy, name), scores(models[pair], X[test], y[test], noisy[test])
    draw(models[best], X[test], y[test])


def draw(model, images, y):
    """Some images, what was told of them and what the network says."""
    figure, axes = plt.subplots(2, 6, figsize=(9, 3.6), layout="constrained")
    mean, std = model.predict(images, return_std=True)
    for i, axis in enumerate(axes.flat):
        axis.imshow(images[i, 0], cmap="gray_r")
        axis.set_title(f"told {y[i]:.0f}°\nsays {mean[i]:.0f} ± {std[i]:.0f}°", fontsize=9)
        axis.set_axis_off()
    figure.savefig("digits.png", dpi=110)
    plt.close(figure)


torch.set_num_threads(1)
table = {}
for seed in SEEDS:
    for arm, row in compare(seed):
        table.setdefault(arm, []).append(row)
print(f"{len(SEEDS)} seed(s); truth: std 2.0 and 20.0 degrees")
print("strategy   penalties  RMSE, quiet    log-likelihood  90 % covers  std, quiet  noisy")
for (strategy, name), rows in table.items():
    (rmse, nll, covered, quiet, noisy), error = np.mean(rows, axis=0), np.std(rows, axis=0)
    error /= np.sqrt(len(rows))
    print(f"{strategy:10} {name:9}  {rmse:5.2f} ± {error[0]:.2f}  {nll:8.3f} ± {error[1]:.3f}"
          f"  {covered:9.1f} %  {quiet:10.1f}  {noisy:5.1f}")  # fmt: skip
