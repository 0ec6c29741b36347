"""Scores, factors and networks of a search, recomputed from networks trained one by one."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm
from searches import (
    ARCHITECTURE,
    EPOCHS,
    FAST,
    FOLDS,
    GRID_3,
    PAIRS,
    TRAINING,
    UNEVEN,
    WARMUP,
    W,
    X,
    Y,
    fast,
    fold_networks,
    fold_scores,
    minus_crps,
    out_of_fold,
    quietly,
    rms_of_standardised,
    split_scores,
    stages_of,
    train_alone,
)
from sklearn.model_selection import (
    KFold,
)

from mvenet import MVERegressor
from mvenet._models.networks import join
from mvenet._training import fleet

pytestmark = pytest.mark.usefixtures("short")

# --- the scores, recomputed ----------------------------------------------------------------------


@pytest.mark.parametrize("weight", [None, W], ids=["plain", "weighted"])
@pytest.mark.parametrize("folds", [FOLDS, UNEVEN], ids=["even", "uneven"])
def test_scores_without_a_factor_are_the_papers_rule(folds, weight):
    model = fast(cv=folds, scale=False).fit(X, Y, weight)
    expected = np.array([fold_scores(pair, folds, weight=weight) for pair in PAIRS])
    assert_allclose(split_scores(model), expected, rtol=1e-12)
    assert_allclose(model.cv_results_["mean_test_score"], expected.mean(axis=1), rtol=1e-12)
    assert_allclose(model.cv_results_["std_test_score"], expected.std(axis=1), rtol=1e-9)
    best = int(expected.mean(axis=1).argmax())
    assert (model.best_reg_mean_, model.best_reg_var_) == PAIRS[best]
    assert_allclose(model.best_score_, expected.mean(axis=1).max(), rtol=1e-12)
    assert model.model_.scale == 1 and (model.cv_results_["scale"] == 1).all()


@pytest.mark.parametrize("scoring", ["nll", "crps"])
@pytest.mark.parametrize("weight", [None, W], ids=["plain", "weighted"])
@pytest.mark.parametrize("folds", [FOLDS, UNEVEN], ids=["even", "uneven"])
def test_scores_after_the_factor(folds, weight, scoring):
    model = fast(cv=folds, scoring=scoring).fit(X, Y, weight)
    factors = [rms_of_standardised(pair, folds, weight) for pair in PAIRS]
    score = {"nll": norm.logpdf, "crps": minus_crps}[scoring]
    expected = np.array(
        [fold_scores(pair, folds, f, weight, score) for pair, f in zip(PAIRS, factors, strict=True)]
    )
    assert_allclose(model.cv_results_["scale"], factors, rtol=1e-12)
    assert_allclose(split_scores(model), expected, rtol=1e-12)
    best = int(expected.mean(axis=1).argmax())
    assert (model.best_reg_mean_, model.best_reg_var_) == PAIRS[best]
    assert_allclose(model.best_score_, expected.mean(axis=1).max(), rtol=1e-12)
    # With one member the factor in use is that of the search.
    assert_allclose(model.model_.scale, factors[best], rtol=1e-12)


def test_crps_prefers_the_better_mean_where_the_likelihood_forgives_a_poor_one():
    # A wave that can be learnt, or called noise where it is.
    options = {
        "cv": 5, "hidden_mean": (20,), "hidden_var": (20,), "warmup_epochs": 100, "epochs": 100,
        "reg_mean": (1e-4, 1e-3, 1e-2, 1e-1), "reg_var": (1e-3, 1e-1),
    }  # fmt: skip
    errors = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        x = rng.uniform(-1, 1, (200, 1))
        y = np.where(x[:, 0] > 0.5, 2 * np.sin(12 * x[:, 0]), 0) + 0.02 * rng.standard_normal(200)
        models = [quietly(fast(**options, scoring=s), x, y) for s in ("nll", "crps")]
        errors.append([np.mean((model.oof_mean_ - y) ** 2) for model in models])
    poor, better = np.transpose(errors)
    assert (better < 1.01 * poor).all() and better.mean() < 0.95 * poor.mean()


def test_the_factor_can_change_the_choice():
    # Overfitted: the variances of the weak penalty are too small, in a way that one number mends.
    options = {
        "hidden_mean": (30,), "hidden_var": (), "warmup_epochs": 300, "epochs": 100,
        "reg_mean": (1e-3, 1.0), "reg_var": (1.0,), "cv": FOLDS,
    }  # fmt: skip
    paper = fast(**options, scale=False).fit(X, Y)
    scaled = fast(**options).fit(X, Y)
    for model in (paper, scaled):
        best = np.argmax(model.cv_results_["mean_test_score"])
        assert model.best_reg_mean_ == options["reg_mean"][best]
    # No factor can do worse than the factor one on the pool of all rows (the folds are equal).
    gain = scaled.cv_results_["mean_test_score"] - paper.cv_results_["mean_test_score"]
    assert (gain >= 0).all() and gain[0] > gain[1]
    assert (paper.best_reg_mean_, scaled.best_reg_mean_) == (1.0, 1e-3)


@pytest.mark.parametrize("final", ["folds", "refit"])
@pytest.mark.parametrize("weight", [None, W], ids=["plain", "weighted"])
def test_the_factor_of_several_members_maximises_the_likelihood(weight, final):
    model = fast(n_members=3, cv=UNEVEN, final=final).fit(X, Y, weight)
    pair = model.best_reg_mean_, model.best_reg_var_
    parts = out_of_fold(pair, UNEVEN, 3, weight)
    w = np.concatenate([(np.ones(90) if weight is None else weight)[test] for _, test in UNEVEN])

    def likelihood(factor):
        densities = [norm(m, factor * s).pdf(y).mean(axis=0) for m, s, y in parts]
        return np.average(np.log(np.concatenate(densities)), weights=w)

    best = likelihood(model.model_.scale)
    for change in (0.5, 0.99, 1.01, 2.0):
        assert likelihood(change * model.model_.scale) < best
    # The search had one member, whose factor was another.
    chosen = model.cv_results_["scale"][model.best_index_]
    assert_allclose(chosen, rms_of_standardised(pair, UNEVEN, weight), rtol=1e-12)
    assert model.model_.scale != chosen


@pytest.mark.parametrize("place", [30.0, 100.0, 1000.0])
def test_the_factor_of_several_members_is_a_maximum_with_an_outlier_too(place):
    # Members disagree about a row far away: the spread of their means hides how far each is off.
    far = X.copy()
    far[5, 0] = place
    for seed in range(6):
        model = fast(n_members=2, cv=FOLDS, random_state=seed).fit(far, Y)
        predicted = [
            (*model.model_.networks[[fold, 3 + fold]].predict(far[test]), Y[test])
            for fold, (_, test) in enumerate(FOLDS)
        ]

        def likelihood(factor, predicted=predicted):
            logs = (norm(m, factor * s).logpdf(y) for m, s, y in predicted)
            return sum((np.logaddexp(*log) - np.log(2)).mean() for log in logs) / 3

        best = likelihood(model.model_.scale)
        assert likelihood(0.99 * model.model_.scale) < best, seed
        assert likelihood(1.01 * model.model_.scale) < best, seed
        assert best > max(likelihood(10.0**e) for e in np.arange(-2, 6, 0.1)) - 1e-4, seed


# --- the networks that are kept ------------------------------------------------------------------


@pytest.mark.parametrize("weight", [None, W], ids=["plain", "weighted"])
@pytest.mark.parametrize("scale", [False, True])
def test_fold_networks_are_those_trained_alone_to_the_bit(scale, weight):
    model = fast(n_members=2, cv=FOLDS, scale=scale).fit(X, Y, weight)
    pair = model.best_reg_mean_, model.best_reg_var_
    alone = join([n for m in range(2) for n in fold_networks(pair, FOLDS, m, weight)])
    assert len(model.model_.networks) == 6
    for name in ("parameters", "x_mean", "x_scale", "y_mean", "y_scale"):
        assert getattr(model.model_.networks, name).tobytes() == getattr(alone, name).tobytes()


def test_the_first_folds_network_is_that_of_an_mve_regressor():
    model = fast(cv=FOLDS).fit(X, Y)
    settings = {name: FAST[name] for name in MVERegressor().get_params() if name in FAST}
    settings |= {"reg_mean": model.best_reg_mean_, "reg_var": model.best_reg_var_}
    settings |= {"strategy": "warmup"}
    train = FOLDS[0][0]
    alone = MVERegressor(**settings).fit(X[train], Y[train])
    assert (
        model.model_.networks.parameters[0].tobytes()
        == alone.model_.networks.parameters[0].tobytes()
    )


@pytest.mark.parametrize("scale", [False, True])
def test_refitted_networks_are_trained_on_all_rows(scale):
    model = fast(n_members=2, cv=FOLDS, scale=scale, final="refit").fit(X, Y)
    pair = model.best_reg_mean_, model.best_reg_var_
    alone = [train_alone(X, Y, None, pair, fleet.derived_seed(0, 3, m)) for m in range(2)]
    assert len(model.model_.networks) == 2
    assert model.model_.networks.parameters.tobytes() == join(alone).parameters.tobytes()
    # The search is the same, whatever is kept of it.
    folds = fast(n_members=2, cv=FOLDS, scale=scale).fit(X, Y)
    assert model.best_score_ == folds.best_score_ and model.model_.scale == folds.model_.scale


@pytest.mark.parametrize("n_members", [1, 3])
@pytest.mark.parametrize("cv", [2, 4, KFold(5)], ids=str)
def test_number_of_networks(cv, n_members):
    k = cv if isinstance(cv, int) else 5
    model = fast(cv=cv, n_members=n_members).fit(X, Y)
    assert model.n_splits_ == k
    assert len(model.model_.networks) == k * n_members
    assert len({p.tobytes() for p in model.model_.networks.parameters}) == k * n_members
    assert (
        len(fast(cv=cv, n_members=n_members, final="refit").fit(X, Y).model_.networks) == n_members
    )


# --- sharing -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("strategy", "warmups", "rest"),
    [("warmup", 3, 9), ("warmup-fixed-mean", 3, 9), ("no-warmup", 0, 9)],
)
def test_equal_warm_ups_are_trained_once(strategy, warmups, rest):
    batches = 2  # sixty training rows a fold
    model = fast(reg_mean=GRID_3, reg_var=GRID_3, strategy=strategy)
    quietly(model, X, Y)
    assert model.n_steps_ == 3 * batches * (warmups * WARMUP + rest * EPOCHS)


def test_steps_of_each_selection_and_of_members():
    once = 3 * 2  # folds times batches
    both = WARMUP + EPOCHS
    for selection in ("equal", "ratio"):
        model = quietly(fast(reg_mean=GRID_3, reg_var=GRID_3, selection=selection), X, Y)
        assert model.n_steps_ == once * 3 * both
    search = once * (2 * WARMUP + 4 * EPOCHS)
    refitted = 3 * 3 * both  # three members on ninety rows, three batches
    members = once * 2 * both  # two beyond the first, for the chosen pair
    for settings, steps in (
        ({"n_members": 3}, search + members),
        ({"n_members": 3, "scale": False}, search + members),
        ({"n_members": 3, "final": "refit", "scale": False}, search + refitted),
        ({"n_members": 3, "final": "refit"}, search + members + refitted),
    ):
        assert fast(**settings).fit(X, Y).n_steps_ == steps


def test_auto_epochs_are_those_of_the_fold():
    model = fast(cv=UNEVEN, reg_mean=[1e-2], reg_var=[1e-1], epochs="auto", warmup_epochs="auto")
    model.fit(X, Y)
    steps = 0
    for train, _ in UNEVEN:
        stages = model._stages(len(train), 1e-2, 1e-1)
        steps += math.ceil(len(train) / 32) * sum(stage.epochs for stage in stages)
    assert model.n_steps_ == steps


# --- history -------------------------------------------------------------------------------------


@pytest.mark.parametrize("final", ["folds", "refit"])
def test_history_is_that_of_the_same_networks_trained_by_themselves(final):
    model = fast(final=final, n_members=2, cv=FOLDS).fit(X, Y)
    kept = len(FOLDS) if final == "folds" else 2
    history = pd.DataFrame(model.history_)
    assert sorted(set(history["member"])) == list(range(kept))
    pair = {"reg_mean": model.best_reg_mean_, "reg_var": model.best_reg_var_}
    if final == "refit":
        subset, rows, members = 3, np.arange(len(Y)), 2
    else:
        subset, rows, members = 0, FOLDS[0][0], 1
    for member in range(members):
        alone = fleet.train(
            X, Y, None, [(rows, rows[:0])],
            [fleet.Network(stages_of(**pair), fleet.derived_seed(0, subset, member))],
            architecture=ARCHITECTURE, training=TRAINING, record_history=True,
        )  # fmt: skip
        mine = history[history["member"] == member]
        assert mine["stage"].tolist() == ["warmup"] * WARMUP + ["joint"] * EPOCHS
        loss = np.concatenate(alone.history[0])[:, 0]
        nll = 0.5 * loss + 0.5 * np.log(2 * np.pi) + np.log(Y[rows].std())
        assert_allclose(mine["nll"], nll, rtol=1e-5)
