"""Concrete dropout, Monte-Carlo dropout and an ensemble, and how much they call epistemic."""

import os
import sys

import numpy as np
import torch
from joblib import Parallel, delayed
from sklearn.datasets import load_diabetes
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

from mvenet import datasets, metrics
from mvenet.torch import ConcreteDropout, MCDropout, MeanVarianceNet, TorchMVERegressor

QUICK = "--quick" in sys.argv
EPOCHS, FOLDS, MEMBERS = (3, 1, 2) if QUICK else (80, 5, 5)


def network(n_in, n_rows, kind):
    """A perceptron of (50, 50) with dropout before its last two layers, of one kind or none."""

    def hidden(layer):
        if kind == "concrete":
            return [ConcreteDropout(layer, n_rows)]
        return [MCDropout(0.05), layer] if kind == "mc" else [layer]

    return nn.Sequential(
        nn.Linear(n_in, 50), nn.SiLU(), *hidden(nn.Linear(50, 50)), nn.SiLU(),
        *hidden(nn.Linear(50, 1)),
    )  # fmt: skip


def model(n_in, n_rows, kind, members, seed):
    """Standardise the columns, then train."""

    def both():
        return MeanVarianceNet(network(n_in, n_rows, kind), network(n_in, n_rows, kind))

    regressor = TorchMVERegressor(
        both, n_members=members, epochs=EPOCHS, warmup_epochs=EPOCHS, learning_rate=5e-3,
        batch_size=64, reg_mean=1e-3, reg_var=1e-2, random_state=seed,
    )  # fmt: skip
    return make_pipeline(StandardScaler(), regressor)


def table():
    """Concrete if its file is there, else diabetes."""
    if "MVENET_DATA" in os.environ:
        return "concrete", datasets.load("concrete").X, datasets.load("concrete").y
    return "diabetes", *load_diabetes(return_X_y=True)


def scores(kind, members, fold):
    """RMSE, log-likelihood, coverage, share that is epistemic, and what concrete dropout drops."""
    torch.set_num_threads(1)
    _, X, y = table()
    if QUICK:
        X, y = X[:200], y[:200]
    train, test = list(KFold(5, shuffle=True, random_state=0).split(X))[fold]
    fitted = model(X.shape[1], len(train), kind, members, fold).fit(X[train], y[train])
    dist = fitted[-1].predict_dist(fitted[:-1].transform(X[test]))
    layers = fitted[-1].networks_[0].mean.modules()
    dropped = [m.p.item() for m in layers if isinstance(m, ConcreteDropout)] or [np.nan]
    return [
        metrics.rmse(y[test], dist), -metrics.nll(y[test], dist),
        100 * metrics.coverage(y[test], dist, nominal=0.9),
        100 * np.mean(dist.epistemic / dist.var), np.mean(dropped),
    ]  # fmt: skip


ARMS = {
    "network": ("none", 1),
    "MC dropout": ("mc", 1),
    "concrete dropout": ("concrete", 1),
    f"{MEMBERS} networks": ("none", MEMBERS),
    f"{MEMBERS} × concrete dropout": ("concrete", MEMBERS),
}
jobs = [(arm, fold) for arm in ARMS for fold in range(FOLDS)]
found = Parallel(n_jobs=1 if QUICK else -1)(delayed(scores)(*ARMS[a], fold) for a, fold in jobs)
print(f"{table()[0]}, {FOLDS} fold(s) of 5")
print("                      RMSE  log-likelihood  covered by 90 %  epistemic share  dropped")
for arm in ARMS:
    rows = [row for (name, _), row in zip(jobs, found, strict=True) if name == arm]
    rmse, likelihood, covered, share, dropped = np.mean(rows, axis=0)
    print(f"{arm:20} {rmse:5.2f}  {likelihood:14.3f}  {covered:13.1f} %  {share:13.1f} %"
          f"  {dropped:7.3f}")  # fmt: skip
