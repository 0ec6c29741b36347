"""A search that takes a moment, and what it must find: networks trained one by one."""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
from fitted import table, weights
from scipy.stats import norm
from sklearn.model_selection import (
    KFold,
)

from mvenet import MVERegressorCV, recipes
from mvenet._models.architecture import Architecture
from mvenet._training import fleet

MEANS, VARIANCES = (1e-4, 3e-2), (1e-3, 1e-1)  # two values each: no end of a grid to warn of
PAIRS = list(itertools.product(MEANS, VARIANCES))
WARMUP, EPOCHS = 20, 10
FAST = {
    "reg_mean": MEANS,
    "reg_var": VARIANCES,
    "cv": 3,
    "n_members": 1,
    "hidden_mean": (8,),
    "hidden_var": (4,),
    "warmup_epochs": WARMUP,
    "epochs": EPOCHS,
    "learning_rate": 0.02,
    "random_state": 0,
}
ARCHITECTURE = Architecture((8,), (4,))
TRAINING = recipes.Training(clip_value=5.0)

X, Y = table(n=90)
W = weights(len(Y))
FOLDS = list(KFold(3, shuffle=True, random_state=5).split(X))
GRID_3 = (1e-4, 1e-2, 1.0)
UNEVEN = [(np.r_[10:90], np.r_[:10]), (np.r_[:10, 40:90], np.r_[10:40]), (np.r_[:40], np.r_[40:90])]


def fast(**settings):
    return MVERegressorCV(**{"strategy": "warmup"} | FAST | settings)


def stages_of(reg_mean, reg_var):
    common = {
        "learning_rate": 0.02,
        "schedule": "ramp-cosine",
        "reg_mean": reg_mean,
        "reg_var": reg_var,
    }
    return (
        recipes.Stage("warmup", WARMUP, **common),
        recipes.Stage("joint", EPOCHS, init_var_bias=True, **common),
    )


def train_alone(X, y, weight, pair, seed):
    """One network on all rows of a table, with nothing else around it."""
    rows = np.arange(len(y))
    result = fleet.train(
        X, y, weight, [(rows, rows[:0])], [fleet.Network(stages_of(*pair), seed)],
        architecture=ARCHITECTURE, training=TRAINING,
    )  # fmt: skip
    assert not result.diverged.any()
    return result.networks


def fold_networks(pair, folds, member=0, weight=None, X=X, y=Y):
    return [
        train_alone(
            X[train], y[train], None if weight is None else weight[train] / weight.max(), pair,
            fleet.derived_seed(0, fold, member),
        )
        for fold, (train, _) in enumerate(folds)
    ]  # fmt: skip


def out_of_fold(pair, folds, members=1, weight=None):
    """For each fold the members' means and standard deviations on the rows left out, and y."""
    nets = [fold_networks(pair, folds, member, weight) for member in range(members)]
    parts = []
    for fold, (_, test) in enumerate(folds):
        means, stds = (
            np.concatenate(part)
            for part in zip(*(nets[m][fold].predict(X[test]) for m in range(members)), strict=True)
        )
        parts.append((means, stds, Y[test]))
    return parts


def rms_of_standardised(pair, folds, weight=None):
    parts = out_of_fold(pair, folds, weight=weight)
    z = np.concatenate([(y - means[0]) / stds[0] for means, stds, y in parts])
    w = None if weight is None else np.concatenate([weight[test] for _, test in folds])
    return np.sqrt(np.average(z**2, weights=w))


def minus_crps(y, mean, std):
    z = (y - mean) / std
    return -std * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / math.sqrt(math.pi))


def fold_scores(pair, folds, factor=1.0, weight=None, score=norm.logpdf):
    return np.array(
        [
            np.average(
                score(y, means[0], factor * stds[0]),
                weights=None if weight is None else weight[test],
            )
            for (means, stds, y), (_, test) in zip(
                out_of_fold(pair, folds, weight=weight), folds, strict=True
            )
        ]
    )


def split_scores(model):
    return np.column_stack(
        [model.cv_results_[f"split{i}_test_score"] for i in range(model.n_splits_)]
    )


def quietly(model, *args):
    """Fit without the warnings of choices at the end of a grid."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The best .* that was tried", UserWarning)
        return model.fit(*args)


def assert_same_search(a, b):
    for name in ("best_reg_mean_", "best_reg_var_", "best_score_"):
        assert getattr(a, name) == getattr(b, name)
    assert a.model_.scale == b.model_.scale
    assert split_scores(a).tobytes() == split_scores(b).tobytes()
    assert a.model_.networks.parameters.tobytes() == b.model_.networks.parameters.tobytes()
