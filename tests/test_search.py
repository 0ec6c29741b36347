"""MVERegressorCV: the choice recomputed from networks trained one by one, and the contract."""

from __future__ import annotations

import dataclasses
import itertools
import math
import pickle
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneOut,
    PredefinedSplit,
    RepeatedKFold,
    ShuffleSplit,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from test_regressor import EXPECTED_FAILURES, STRICT, assert_same_bits, table, weights

from mvenet import MVERegressor, MVERegressorCV, Normal, NormalMixture, fleet, recipes
from mvenet.search import GridEndWarning

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
ARCHITECTURE = recipes.Architecture((8,), (4,))
TRAINING = recipes.Training(clip_value=5.0)

X, Y = table(n=90)
W = weights(len(Y))
FOLDS = list(KFold(3, shuffle=True, random_state=5).split(X))
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


def assert_unfitted(model):
    assert not hasattr(model, "networks_")
    with pytest.raises(NotFittedError):
        model.predict(X)


def assert_same_search(a, b):
    for name in ("best_reg_mean_", "best_reg_var_", "best_score_", "scale_"):
        assert getattr(a, name) == getattr(b, name)
    assert split_scores(a).tobytes() == split_scores(b).tobytes()
    assert a.networks_.parameters.tobytes() == b.networks_.parameters.tobytes()


# --- contract ------------------------------------------------------------------------------------


@parametrize_with_checks(
    [
        fast(),
        fast(final="refit"),
        fast(n_members=2, scale=False, selection="ratio"),
        fast(n_members=2, final="refit", early_stopping=True),
    ],
    expected_failed_checks=lambda estimator: EXPECTED_FAILURES,
    **STRICT,
)
def test_sklearn_contract(estimator, check):
    check(estimator)


def test_every_parameter_is_documented_and_validated():
    names = set(MVERegressorCV().get_params())
    assert names == set(MVERegressorCV._parameter_constraints)
    documented = MVERegressorCV.__doc__.split("Attributes\n")[0]
    assert [name for name in names if name not in documented] == []
    # Network settings have the same defaults in both estimators, members apart.
    shared = {
        name: (value, MVERegressorCV().get_params()[name])
        for name, value in MVERegressor().get_params().items()
        if name not in ("reg_mean", "reg_var", "n_members", "strategy")
    }
    assert all(one == other for one, other in shared.values())


def test_the_default_grid_is_the_papers():
    model = MVERegressorCV()
    for grid in (model.reg_mean, model.reg_var):
        assert_allclose(grid, [1e-5, 1e-4, 1e-3, 1e-2, 1e-1])
    assert len(model._pairs()) == 25


def test_clone_and_pickle():
    model = fast(n_members=2, cv=FOLDS).fit(X, Y)
    twin = clone(model)
    assert_unfitted(twin)
    assert_same_search(twin.fit(X, Y), model)
    copy = pickle.loads(pickle.dumps(model))
    assert_same_bits(copy, model, X)
    assert copy.scale_ == model.scale_ != 1
    pd.testing.assert_frame_equal(pd.DataFrame(copy.cv_results_), pd.DataFrame(model.cv_results_))


def test_pipeline_and_cross_validation():
    X, y = table(n=120)
    pipe = make_pipeline(StandardScaler(), fast(epochs=30, warmup_epochs=60))
    scores = cross_val_score(pipe, X, y, cv=3)
    assert scores.shape == (3,) and scores.min() > 0.2
    pipe.fit(X, y, mveregressorcv__sample_weight=weights(len(y)))
    mean, std = pipe.predict(X, return_std=True)
    assert mean.shape == std.shape == y.shape
    search = GridSearchCV(fast(), {"scale": [False, True], "selection": ["ratio"]}, cv=2).fit(X, y)
    assert_same_bits(search.best_estimator_, fast(**search.best_params_).fit(X, y), X)


def test_frames_give_numpys_result_to_the_bit():
    frame = pd.DataFrame(X, columns=list("abc"))
    model = fast().fit(frame, pd.Series(Y), pd.Series(W))
    assert_same_bits(model, fast().fit(X, Y, W), frame, X)
    assert_array_equal(model.feature_names_in_, list("abc"))


@pytest.mark.parametrize("final", ["folds", "refit"])
@pytest.mark.parametrize("scale", [False, True])
def test_the_whole_predict_api(final, scale):
    model = fast(n_members=2, final=final, scale=scale).fit(X, Y)
    means, stds = model.networks_.predict(X)
    stds = model.scale_ * stds
    assert len(means) == (2 if final == "refit" else 6)
    assert (model.scale_ != 1) == scale
    mean, std = model.predict(X, return_std=True)
    assert_array_equal(mean, model.predict(X))
    assert_allclose(mean, means.mean(axis=0))
    assert_allclose(std**2, (stds**2).mean(axis=0) + means.var(axis=0))
    dist = model.predict_dist(X)
    assert isinstance(dist, NormalMixture)
    mixture = np.mean([norm(m, s).pdf(Y) for m, s in zip(means, stds, strict=True)], axis=0)
    assert_allclose(dist.logpdf(Y), np.log(mixture), rtol=1e-9, atol=1e-12)
    assert_array_equal(model.predict_interval(X, [0.5, 0.9]), dist.interval([0.5, 0.9]))
    assert_array_equal(model.predict_quantiles(X), dist.ppf([0.1, 0.5, 0.9]))
    assert model.score(X, Y) > 0


def test_one_network_predicts_a_normal():
    dist = fast(final="refit").fit(X, Y).predict_dist(X)
    assert isinstance(dist, Normal)


def test_verbose_shows_progress_and_nothing_else_changes(capsys):
    quiet = fast(n_members=2).fit(X, Y)
    assert capsys.readouterr() == ("", "")
    assert_same_search(fast(n_members=2, verbose=1).fit(X, Y), quiet)
    assert "training" in capsys.readouterr().err


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
    assert model.scale_ == 1 and (model.cv_results_["scale"] == 1).all()


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
    assert_allclose(model.scale_, factors[best], rtol=1e-12)


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

    best = likelihood(model.scale_)
    for change in (0.5, 0.99, 1.01, 2.0):
        assert likelihood(change * model.scale_) < best
    # The search had one member, whose factor was another.
    chosen = model.cv_results_["scale"][model.best_index_]
    assert_allclose(chosen, rms_of_standardised(pair, UNEVEN, weight), rtol=1e-12)
    assert model.scale_ != chosen


@pytest.mark.parametrize("place", [30.0, 100.0, 1000.0])
def test_the_factor_of_several_members_is_a_maximum_with_an_outlier_too(place):
    # Members disagree about a row far away: the spread of their means hides how far each is off.
    far = X.copy()
    far[5, 0] = place
    for seed in range(6):
        model = fast(n_members=2, cv=FOLDS, random_state=seed).fit(far, Y)
        predicted = [
            (*model.networks_[[fold, 3 + fold]].predict(far[test]), Y[test])
            for fold, (_, test) in enumerate(FOLDS)
        ]

        def likelihood(factor, predicted=predicted):
            logs = (norm(m, factor * s).logpdf(y) for m, s, y in predicted)
            return sum((np.logaddexp(*log) - np.log(2)).mean() for log in logs) / 3

        best = likelihood(model.scale_)
        assert likelihood(0.99 * model.scale_) < best, seed
        assert likelihood(1.01 * model.scale_) < best, seed
        assert best > max(likelihood(10.0**e) for e in np.arange(-2, 6, 0.1)) - 1e-4, seed


# --- the networks that are kept ------------------------------------------------------------------


@pytest.mark.parametrize("weight", [None, W], ids=["plain", "weighted"])
@pytest.mark.parametrize("scale", [False, True])
def test_fold_networks_are_those_trained_alone_to_the_bit(scale, weight):
    model = fast(n_members=2, cv=FOLDS, scale=scale).fit(X, Y, weight)
    pair = model.best_reg_mean_, model.best_reg_var_
    alone = fleet.join([n for m in range(2) for n in fold_networks(pair, FOLDS, m, weight)])
    assert len(model.networks_) == 6
    for name in ("parameters", "x_mean", "x_scale", "y_mean", "y_scale"):
        assert getattr(model.networks_, name).tobytes() == getattr(alone, name).tobytes()


def test_the_first_folds_network_is_that_of_an_mve_regressor():
    model = fast(cv=FOLDS).fit(X, Y)
    settings = {name: FAST[name] for name in MVERegressor().get_params() if name in FAST}
    settings |= {"reg_mean": model.best_reg_mean_, "reg_var": model.best_reg_var_}
    train = FOLDS[0][0]
    alone = MVERegressor(**settings).fit(X[train], Y[train])
    assert model.networks_.parameters[0].tobytes() == alone.networks_.parameters[0].tobytes()


@pytest.mark.parametrize("scale", [False, True])
def test_refitted_networks_are_trained_on_all_rows(scale):
    model = fast(n_members=2, cv=FOLDS, scale=scale, final="refit").fit(X, Y)
    pair = model.best_reg_mean_, model.best_reg_var_
    alone = [train_alone(X, Y, None, pair, fleet.derived_seed(0, 3, m)) for m in range(2)]
    assert len(model.networks_) == 2
    assert model.networks_.parameters.tobytes() == fleet.join(alone).parameters.tobytes()
    # The search is the same, whatever is kept of it.
    folds = fast(n_members=2, cv=FOLDS, scale=scale).fit(X, Y)
    assert model.best_score_ == folds.best_score_ and model.scale_ == folds.scale_


@pytest.mark.parametrize("n_members", [1, 3])
@pytest.mark.parametrize("cv", [2, 4, KFold(5)], ids=str)
def test_number_of_networks(cv, n_members):
    k = cv if isinstance(cv, int) else 5
    model = fast(cv=cv, n_members=n_members).fit(X, Y)
    assert model.n_splits_ == k
    assert len(model.networks_) == k * n_members
    assert len({p.tobytes() for p in model.networks_.parameters}) == k * n_members
    assert len(fast(cv=cv, n_members=n_members, final="refit").fit(X, Y).networks_) == n_members


# --- sharing -------------------------------------------------------------------------------------

GRID_3 = (1e-4, 1e-2, 1.0)


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


# --- what is told about the search ---------------------------------------------------------------


def test_cv_results_have_grid_searchs_form():
    model = fast(selection="separate").fit(X, Y)
    results = pd.DataFrame(model.cv_results_)
    reference = GridSearchCV(
        MVERegressor(hidden_mean=(2,), hidden_var=(), epochs=1, warmup_epochs=1),
        {"reg_mean": MEANS, "reg_var": VARIANCES}, cv=3,
    ).fit(X, Y)  # fmt: skip
    other = pd.DataFrame(reference.cv_results_)
    assert set(results) - set(other) == {"scale"}
    assert all("time" in name for name in set(other) - set(results))
    for name in set(results) & set(other):
        assert type(model.cv_results_[name]) is type(reference.cv_results_[name])
        assert results[name].dtype == other[name].dtype, name
    assert results["params"].tolist() == other["params"].tolist()
    assert len(results) == 4
    best = results.iloc[model.best_index_]
    assert best["rank_test_score"] == 1 == results["rank_test_score"].min()
    assert best["params"] == {"reg_mean": model.best_reg_mean_, "reg_var": model.best_reg_var_}
    assert best["mean_test_score"] == model.best_score_ == results["mean_test_score"].max()
    assert isinstance(model.best_score_, float)
    ranked = results.sort_values("rank_test_score")["mean_test_score"]
    assert (np.diff(ranked) <= 0).all()


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("n_members", [1, 3])
def test_out_of_fold_predictions(n_members, scale):
    model = fast(cv=FOLDS, n_members=n_members, scale=scale).fit(X, Y)
    pair = model.best_reg_mean_, model.best_reg_var_
    assert model.oof_mean_.shape == model.oof_std_.shape == (90,)
    parts = out_of_fold(pair, FOLDS, n_members)
    for (_, test), (means, stds, _) in zip(FOLDS, parts, strict=True):
        variance = ((model.scale_ * stds) ** 2).mean(axis=0) + means.var(axis=0)
        assert_allclose(model.oof_mean_[test], means.mean(axis=0), rtol=1e-10)
        assert_allclose(model.oof_std_[test], np.sqrt(variance), rtol=1e-10)


def test_out_of_fold_predictions_of_one_member_carry_the_score():
    model = fast(cv=FOLDS).fit(X, Y)
    assert_allclose(norm(model.oof_mean_, model.oof_std_).logpdf(Y).mean(), model.best_score_)
    assert_allclose((((Y - model.oof_mean_) / model.oof_std_) ** 2).mean(), 1.0)


@pytest.mark.parametrize("final", ["folds", "refit"])
def test_rows_of_weight_zero_have_no_out_of_fold_prediction(final):
    w = np.where(np.arange(90) % 7 == 0, 0.0, W)
    model = fast(final=final, n_members=2).fit(X, Y, w)
    assert_array_equal(np.isnan(model.oof_mean_), w == 0)
    assert_array_equal(np.isnan(model.oof_std_), w == 0)


def test_rows_left_out_never_or_several_times():
    cv = ShuffleSplit(4, test_size=0.3, random_state=1)
    folds = list(cv.split(X))
    count = np.bincount(np.concatenate([test for _, test in folds]), minlength=90)
    assert set(count) >= {0, 1, 2, 3}
    model = fast(cv=cv).fit(X, Y)
    assert_array_equal(np.isnan(model.oof_mean_), count == 0)
    assert_array_equal(np.isnan(model.oof_std_), count == 0)
    pair = model.best_reg_mean_, model.best_reg_var_
    parts = out_of_fold(pair, folds)
    mean, variance = np.zeros(90), np.zeros(90)
    for (_, test), (means, stds, _) in zip(folds, parts, strict=True):
        mean[test] += means[0] / count[test]
        variance[test] += (model.scale_ * stds[0]) ** 2 / count[test]
    seen = count > 0
    assert_allclose(model.oof_mean_[seen], mean[seen], rtol=1e-10)
    assert_allclose(model.oof_std_[seen] ** 2, variance[seen], rtol=1e-10)
    assert_allclose(model.scale_, rms_of_standardised(pair, folds), rtol=1e-12)


# --- the choice ----------------------------------------------------------------------------------


def test_pairs_of_each_selection():
    def pairs(**settings):
        model = quietly(fast(**settings), X, Y)
        params = model.cv_results_["params"]
        assert_array_equal(model.cv_results_["param_reg_mean"], [p["reg_mean"] for p in params])
        assert_array_equal(model.cv_results_["param_reg_var"], [p["reg_var"] for p in params])
        assert (model.best_reg_mean_, model.best_reg_var_) in [tuple(p.values()) for p in params]
        return {(p["reg_mean"], p["reg_var"]) for p in params}, len(params)

    one, other = (1e-3, 1e-2), (1e-2, 1e-3, 1.0)
    assert pairs(reg_mean=one, reg_var=other) == (set(itertools.product(one, other)), 6)
    expected = {(1e-3, 1e-3), (1e-2, 1e-2)}
    assert pairs(reg_mean=one, reg_var=other, selection="equal") == (expected, 2)
    expected = {(1e-3, 10 * 1e-3), (1e-2, 10 * 1e-2)}
    assert pairs(reg_mean=one, reg_var=other, selection="ratio") == (expected, 2)
    # Neither order nor repetition nor kind of sequence matters; zero is a penalty.
    for grid in ([1, 0, 1], np.array([0, 1]), (1.0, 0.0, 0), pd.Series([0, 1])):
        assert pairs(reg_mean=grid, reg_var=[1e-2]) == ({(0.0, 1e-2), (1.0, 1e-2)}, 2)


def test_order_of_the_grid_does_not_matter_to_the_bit():
    model = fast(n_members=2).fit(X, Y)
    assert_same_search(fast(n_members=2, reg_mean=MEANS[::-1], reg_var=[*VARIANCES] * 2).fit(X, Y),
                       model)  # fmt: skip


def test_other_pairs_do_not_change_a_pairs_score():
    model = fast(cv=FOLDS).fit(X, Y)
    for row, (reg_mean, reg_var) in zip(split_scores(model), PAIRS, strict=True):
        alone = fast(cv=FOLDS, reg_mean=[reg_mean], reg_var=[reg_var]).fit(X, Y)
        assert split_scores(alone)[0].tobytes() == row.tobytes()


def test_ties_go_to_the_stronger_penalty():
    # A constant variance has no weights, so that its penalty does nothing.
    for grid in ((1e-3, 1.0), (1.0, 1e-3)):
        model = fast(hidden_var=None, reg_var=grid).fit(X, Y)
        mean = model.cv_results_["mean_test_score"].reshape(2, 2)
        assert_array_equal(mean[:, 0], mean[:, 1])
        assert model.best_reg_var_ == 1.0
        assert model.cv_results_["rank_test_score"].min() == 1
        assert (model.cv_results_["rank_test_score"] == 1).sum() == 2
    # Both penalties alike: nothing moves at such a learning rate.
    model = fast(learning_rate=1e-30).fit(X, Y)
    assert len(set(model.cv_results_["mean_test_score"])) == 1
    assert (model.best_reg_mean_, model.best_reg_var_) == (max(MEANS), max(VARIANCES))


def edge_warnings(**settings):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = fast(**settings).fit(X, Y)
    for warning in caught:
        assert warning.category is GridEndWarning
        assert warning.filename == __file__  # it points at the user's line
    return model, [str(warning.message) for warning in caught]


BEST = {"reg_mean": 3e-2, "reg_var": 1e-1}  # of X and Y, whatever the others of a grid are


def grid(best, end):
    """Three values of which the best is the smallest, the largest or in the middle."""
    ends = {"smallest": (best, 1.0, 10.0), "largest": (1e-4, 1e-3, best)}
    return ends.get(end, (1e-3, best, 1.0))


@pytest.mark.parametrize(
    ("of_mean", "of_var"),
    [("", ""), ("smallest", ""), ("largest", ""), ("", "largest"), ("largest", "smallest")],
)
def test_a_choice_at_the_end_of_its_grid_is_told(of_mean, of_var):
    ends = {"reg_mean": of_mean, "reg_var": of_var}
    model, messages = edge_warnings(**{name: grid(BEST[name], end) for name, end in ends.items()})
    assert (model.best_reg_mean_, model.best_reg_var_) == tuple(BEST.values())
    told = [(name, end) for name, end in ends.items() if end]
    assert len(messages) == len(told)
    for message, (name, end) in zip(messages, told, strict=True):
        assert message.startswith(f"The best {name}={BEST[name]} is the {end} that was tried")
        assert message.endswith(f"extend {name}.")
    # The model is fitted all the same.
    assert len(model.predict(X)) == 90


@pytest.mark.parametrize("selection", ["equal", "ratio"])
def test_the_end_of_a_grid_of_tied_penalties_is_told_once(selection):
    for end, count in (("smallest", 1), ("", 0), ("largest", 1)):
        values = grid(BEST["reg_mean"], end)
        model, messages = edge_warnings(reg_mean=values, reg_var=values, selection=selection)
        assert model.best_reg_mean_ == BEST["reg_mean"]
        assert len(messages) == count
        assert all("extend reg_mean" in message for message in messages)


def test_a_real_choice_at_the_end_of_its_grid():
    rng = np.random.default_rng(0)
    with pytest.warns(UserWarning, match=r"reg_mean=100 is the largest .* extend reg_mean"):
        fast(reg_mean=[1e-5, 1e-4, 100], reg_var=[1.0], warmup_epochs=300, epochs=100).fit(
            X, rng.standard_normal(90)
        )


def test_no_warning_of_a_penalty_that_does_nothing():
    # A constant variance has no weights: extending reg_var is no advice.
    _, messages = edge_warnings(hidden_var=None, reg_var=GRID_3)
    assert messages == []


def test_no_warning_that_nothing_was_tried_below_zero():
    model, messages = edge_warnings(reg_mean=(0.0, 1.0, 10.0), reg_var=grid(1e-1, ""))
    assert model.best_reg_mean_ == 0.0 and messages == []


def test_a_search_finds_a_penalty_that_predicts():
    # Pure noise asks for a strong penalty on the mean; a strong signal for a weak one.
    rng = np.random.default_rng(1)
    options = {"reg_mean": (1e-4, 10.0), "warmup_epochs": 200, "epochs": 60}
    assert fast(**options).fit(X, rng.standard_normal(90)).best_reg_mean_ == 10
    assert fast(**options).fit(X, X[:, 0] + 0.1 * rng.standard_normal(90)).best_reg_mean_ == 1e-4


# --- divergence ----------------------------------------------------------------------------------


def diverging(monkeypatch, condition):
    """Call networks diverged for which condition(network, number of its training rows) holds."""
    train = fleet.train

    def marked(X, y, sample_weight, subsets, networks, **settings):
        result = train(X, y, sample_weight, subsets, networks, **settings)
        flags = [bool(condition(n, len(subsets[n.subset][0]))) for n in networks]
        result.networks.parameters[flags] = np.nan
        return dataclasses.replace(result, diverged=np.array(flags))

    monkeypatch.setattr(fleet, "train", marked)


@pytest.mark.parametrize("scale", [False, True])
def test_pairs_that_diverged_score_minus_infinity(scale, monkeypatch):
    plain = fast(scale=scale).fit(X, Y)
    best = plain.best_reg_mean_, plain.best_reg_var_
    seed = fleet.derived_seed(0, 1, 0)  # in one fold only

    def condition(network, n_rows):
        stage = network.stages[-1]
        return (stage.reg_mean, stage.reg_var) == best and network.seed == seed

    diverging(monkeypatch, condition)
    model = fast(scale=scale).fit(X, Y)
    lost = plain.best_index_
    kept = np.arange(4) != lost
    mean = model.cv_results_["mean_test_score"]
    assert mean[lost] == -np.inf and (split_scores(model)[lost] == -np.inf).all()
    assert np.isnan(model.cv_results_["std_test_score"][lost])
    assert model.cv_results_["rank_test_score"][lost] == 4
    assert_array_equal(mean[kept], plain.cv_results_["mean_test_score"][kept])
    assert model.best_index_ == np.argmax(mean) != lost
    assert np.isfinite(model.best_score_) and np.isfinite(model.predict(X)).all()
    assert np.isnan(pd.DataFrame(model.cv_results_)["std_test_score"]).sum() == 1


@pytest.mark.parametrize("final", ["folds", "refit"])
def test_all_pairs_diverge(final):
    model = fast(final=final).fit(X, Y)
    model.set_params(learning_rate=1e30, clip_value=None)
    with pytest.raises(ValueError, match=r"All 4 penalty pairs diverged: lower learning_rate"):
        model.fit(X, Y)
    assert_unfitted(model)


@pytest.mark.parametrize("final", ["folds", "refit"])
def test_some_members_diverge(final, monkeypatch):
    # For folds, a member that lost one of its networks is left out as a whole.
    seed = fleet.derived_seed(0, 3, 1) if final == "refit" else fleet.derived_seed(0, 2, 1)
    diverging(monkeypatch, lambda network, _: network.seed == seed)
    with pytest.warns(ConvergenceWarning, match="1 of 3 members diverged and were left out"):
        model = fast(n_members=3, final=final).fit(X, Y)
    assert len(model.networks_) == (2 if final == "refit" else 6)
    assert np.isfinite(model.networks_.parameters).all()
    assert np.isfinite(model.oof_std_).all() and np.isfinite(model.scale_)


def test_all_refitted_members_diverge(monkeypatch):
    model = fast(n_members=2, final="refit").fit(X, Y)
    diverging(monkeypatch, lambda _, n_rows: n_rows == 90)
    with pytest.raises(ValueError, match=r"diverged .*lower learning_rate"):
        model.fit(X, Y)
    assert_unfitted(model)


# --- weights -------------------------------------------------------------------------------------


@pytest.mark.parametrize("final", ["folds", "refit"])
@pytest.mark.parametrize("n_members", [1, 2])
@pytest.mark.parametrize(
    "cv",
    [3, KFold(3), RepeatedKFold(n_splits=2, n_repeats=2, random_state=0)],
    ids=["int", "KFold", "RepeatedKFold"],
)
def test_rows_of_weight_zero_are_left_out_to_the_bit(cv, n_members, final):
    w = np.where(np.arange(90) % 5 == 0, 0.0, W)
    kept = w > 0
    wild = np.where(kept[:, None], X, 1e9)
    settings = {"cv": cv, "n_members": n_members, "final": final}
    everything = fast(**settings).fit(wild, np.where(kept, Y, -1e9), w)
    removed = fast(**settings).fit(X[kept], Y[kept], w[kept])
    assert_same_search(everything, removed)
    assert_same_bits(everything, removed, X)
    assert everything.oof_mean_[kept].tobytes() == removed.oof_mean_.tobytes()
    assert everything.oof_std_[kept].tobytes() == removed.oof_std_.tobytes()


@pytest.mark.parametrize("kind", ["iterable", "PredefinedSplit"])
def test_given_folds_number_the_rows_of_the_table(kind):
    # As everywhere in scikit-learn: whoever made the folds from X knows nothing of weights.
    w = np.where(np.arange(90) % 5 == 0, 0.0, W)
    kept = np.flatnonzero(w)
    of = np.empty(90, dtype=int)
    for number, (_, test) in enumerate(FOLDS):
        of[test] = number
    if kind == "iterable":
        given, smaller = (
            [(np.flatnonzero(f != k), np.flatnonzero(f == k)) for k in range(3)]
            for f in (of, of[kept])
        )
    else:
        given, smaller = PredefinedSplit(of), PredefinedSplit(of[kept])
    removed = fast(cv=smaller).fit(X[kept], Y[kept], w[kept])
    everything = fast(cv=given).fit(X, Y, w)
    assert_same_search(everything, removed)
    assert everything.oof_mean_[kept].tobytes() == removed.oof_mean_.tobytes()


@pytest.mark.parametrize("final", ["folds", "refit"])
def test_equal_weights_are_no_weights_to_the_bit(final):
    plain = fast(n_members=2, final=final).fit(X, Y)
    for w in (np.ones(90), np.full(90, 7.0), 3.0):
        assert_same_search(fast(n_members=2, final=final).fit(X, Y, w), plain)


def test_only_ratios_of_weights_matter_to_the_bit():
    assert_same_search(fast(n_members=2).fit(X, Y, W), fast(n_members=2).fit(X, Y, 2.0**40 * W))


# --- folds ---------------------------------------------------------------------------------------


def test_a_number_of_folds_is_shuffled_folds_of_the_seed():
    seed = fleet.derived_seed(0, 0, 0, 0) % 2**32
    shuffled = KFold(3, shuffle=True, random_state=seed)
    model = fast(n_members=2).fit(X, Y)
    assert_same_search(model, fast(n_members=2, cv=shuffled).fit(X, Y))
    assert_same_search(model, fast(n_members=2, cv=np.int64(3)).fit(X, Y))
    assert np.isfinite(model.oof_mean_).all()
    # Sorted rows do no harm.
    order = np.argsort(Y)
    train = [len(set(t)) for t, _ in shuffled.split(X)]
    assert train == [60, 60, 60]
    sorted_scores = split_scores(fast().fit(X[order], Y[order]))
    in_blocks = split_scores(fast(cv=KFold(3)).fit(X[order], Y[order]))
    assert sorted_scores.min() > in_blocks.min()


def test_splitters_iterables_generators_and_masks_are_the_same_folds():
    groups = np.arange(90) // 6
    folds = list(GroupKFold(3).split(X, Y, groups))
    model = fast(cv=folds).fit(X, Y)
    masks = [tuple(np.isin(np.arange(90), part) for part in fold) for fold in folds]
    for cv in (
        (fold for fold in folds),
        tuple(folds),
        masks,
        [(list(a), list(b)) for a, b in folds],
    ):
        assert_same_search(fast(cv=cv).fit(X, Y), model)
    assert_same_search(fast(cv=KFold(3)).fit(X, Y), fast(cv=list(KFold(3).split(X))).fit(X, Y))
    assert fast(cv=LeaveOneOut()).fit(X[:8], Y[:8]).n_splits_ == 8


def test_early_stopping_within_folds():
    model = fast(
        cv=FOLDS, early_stopping=True, validation_fraction=0.25, epochs=200, n_iter_no_change=3
    ).fit(X, Y)
    assert model.n_steps_ < 3 * 2 * (2 * WARMUP + 4 * 200)
    assert np.isfinite(model.oof_std_).all()
    # Rows held out for stopping are rows of the fold, so what a fold leaves out is never seen.
    changed = Y.copy()
    changed[FOLDS[0][1]] += 100.0
    other = clone(model).set_params(reg_mean=[model.best_reg_mean_], reg_var=[model.best_reg_var_])
    other.fit(X, changed)
    assert other.networks_.parameters[0].tobytes() == model.networks_.parameters[0].tobytes()


def test_left_out_rows_do_not_touch_their_networks():
    settings = {"cv": FOLDS, "reg_mean": [1e-3], "reg_var": [1e-2]}
    model = fast(**settings).fit(X, Y)
    far, changed = X.copy(), Y.copy()
    far[FOLDS[1][1]] *= 50.0
    changed[FOLDS[1][1]] -= 1000.0
    other = fast(**settings).fit(far, changed)
    assert other.networks_.parameters[1].tobytes() == model.networks_.parameters[1].tobytes()
    assert other.networks_.parameters[0].tobytes() != model.networks_.parameters[0].tobytes()


# --- units and determinism -----------------------------------------------------------------------


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("a", [2.0**-30, 0.5, 2.0**50])
def test_powers_of_two_change_units_to_the_bit(a, scale):
    model, scaled = fast(scale=scale).fit(X, Y), fast(scale=scale).fit(X, a * Y)
    assert scaled.scale_ == model.scale_
    assert scaled.networks_.parameters.tobytes() == model.networks_.parameters.tobytes()
    for one, other in zip(
        model.predict(X, return_std=True), scaled.predict(X, return_std=True), strict=True
    ):
        assert (a * one).tobytes() == other.tobytes()
    assert_array_equal(scaled.oof_mean_, a * model.oof_mean_)
    assert_array_equal(scaled.oof_std_, a * model.oof_std_)
    # The score is a density: in units of y.
    assert_allclose(scaled.best_score_, model.best_score_ - np.log(a), rtol=1e-12)
    assert_allclose(split_scores(scaled), split_scores(model) - np.log(a), rtol=1e-12)


@pytest.mark.parametrize(("a", "b"), [(2.0, 3.0), (2.0**-20, 1.0), (2.0**20, -(2.0**24))])
def test_units_of_y(a, b):
    options = {"n_members": 2, "reg_mean": (1e-4, 10.0), "reg_var": (10.0,)}
    model, other = fast(**options).fit(X, Y), fast(**options).fit(X, a * Y + b)
    assert (other.best_reg_mean_, other.best_reg_var_) == (model.best_reg_mean_, 10.0)
    assert_allclose(other.best_score_, model.best_score_ - np.log(a), atol=1e-3)
    assert_allclose(other.scale_, model.scale_, rtol=2e-3)
    mean, std = model.predict(X, return_std=True)
    other_mean, other_std = other.predict(X, return_std=True)
    assert_allclose((other_mean - b) / a, mean, atol=1e-3 * Y.std())
    assert_allclose(other_std / a, std, rtol=3e-3)
    assert_allclose((other.oof_mean_ - b) / a, model.oof_mean_, atol=1e-3 * Y.std())
    assert_allclose(other.oof_std_ / a, model.oof_std_, rtol=3e-3)


@pytest.mark.parametrize("n_members", [1, 2])
@pytest.mark.parametrize("a", [1e-300, 1e-180, 1e180, 1e300])
def test_search_works_at_any_scale(a, n_members):
    model, other = fast(n_members=n_members).fit(X, Y), fast(n_members=n_members).fit(X, a * Y)
    assert_allclose(other.predict(X, return_std=True)[1] / a, model.predict(X, return_std=True)[1],
                    rtol=3e-3)  # fmt: skip
    assert_allclose(other.best_score_, model.best_score_ - np.log(a), rtol=1e-5)
    assert_allclose(other.oof_mean_ / a, model.oof_mean_, rtol=1e-3)
    assert_allclose(other.oof_std_ / a, model.oof_std_, rtol=3e-3)


@pytest.mark.parametrize("value", [0.0, 3.0, 1e10, 1e17, 1e300])
@pytest.mark.parametrize("n_members", [1, 2])
def test_constant_target(value, n_members):
    # From 1e17 on, the residuals are exactly zero.
    model = fast(n_members=n_members).fit(X, np.full(90, value))
    mean, std = model.predict(X, return_std=True)
    assert_allclose(mean, value, atol=1.0)
    assert (std > 0).all() and (std < 1).all()
    assert model.scale_ > 0 and np.isfinite(model.best_score_)


@pytest.mark.parametrize("final", ["folds", "refit"])
def test_threads_do_not_change_a_bit(final):
    model = fast(n_members=2, final=final, n_jobs=1).fit(X, Y, W)
    for n_jobs in (1, 2, 3, -1, None):
        other = fast(n_members=2, final=final, n_jobs=n_jobs).fit(X, Y, W)
        assert_same_search(other, model)
        assert_same_bits(other, model, X)
        assert other.oof_std_.tobytes() == model.oof_std_.tobytes()


@pytest.mark.parametrize("source", [np.random.RandomState, np.random.default_rng])
def test_random_states(source):
    first, same = (fast(random_state=source(3)).fit(X, Y) for _ in range(2))
    assert_same_search(first, same)
    generator = source(3)
    one, other = (fast(random_state=generator).fit(X, Y) for _ in range(2))
    assert_same_search(one, first)
    assert one.best_score_ != other.best_score_
    drawn = [fast(random_state=None).fit(X, Y).best_score_ for _ in range(2)]
    assert drawn[0] != drawn[1]


def test_a_second_fit_starts_afresh():
    model = fast(scale=True, n_members=2).fit(X[:, :2], Y)
    model.set_params(scale=False)
    assert_same_search(model.fit(X, Y), fast(scale=False, n_members=2).fit(X, Y))
    assert model.scale_ == 1


# --- bad input -----------------------------------------------------------------------------------


def assert_refused(match, X=X, y=Y, **settings):
    model = fast(**settings)
    with pytest.raises(ValueError, match=match):
        model.fit(X, y)
    assert_unfitted(model)


@pytest.mark.parametrize("name", ["reg_mean", "reg_var"])
@pytest.mark.parametrize(
    "grid",
    [[], (), np.array([]), [-1e-3], [1e-3, -1.0], [np.nan], [1e-3, np.nan], [np.inf], ["a"],
     ["1e-3", "1e-2"], [None], [[1e-3], [1e-2, 1e-1]], [1j], [{}]],
    ids=str,
)  # fmt: skip
def test_bad_grids(name, grid):
    message = f"The '{name}' parameter must be a list of at least one finite number.*Got .* instead"
    assert_refused(message, **{name: grid})


@pytest.mark.parametrize("name", ["reg_mean", "reg_var"])
@pytest.mark.parametrize("grid", [1e-3, "abc", "auto", None], ids=str)
def test_grids_that_are_no_lists(name, grid):
    assert_refused(
        f"The '{name}' parameter of MVERegressorCV must be an array-like", **{name: grid}
    )


@pytest.mark.parametrize("name", ["reg_mean", "reg_var"])
def test_a_penalty_too_large_for_the_engine_is_named(name):
    # float32 ends at 3e38: whatever is done about it, the learning rate is not to blame.
    model = fast(**{name: [1e39]})
    try:
        model.fit(X, Y)
    except ValueError as error:
        assert name in str(error)  # noqa: PT017 (one or the other)
    else:
        assert np.isfinite(model.predict(X, return_std=True)).all()


def test_no_common_values():
    message = (
        r"selection='equal' needs values that reg_mean and reg_var have in common: got .*0\.03"
    )
    assert_refused(message, selection="equal")


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"final": "best"}, "The 'final' parameter .*'refit'.* Got 'best' instead"),
        ({"final": None}, "The 'final' parameter .* Got None instead"),
        ({"selection": "both"}, "The 'selection' parameter .* Got 'both' instead"),
        ({"scale": "yes"}, "The 'scale' parameter .* Got 'yes' instead"),
        ({"n_members": 0}, "The 'n_members' parameter .* Got 0 instead"),
        ({"cv": 1}, r"The 'cv' parameter .* range \[2, inf\).* Got 1 instead"),
        ({"cv": 0}, "The 'cv' parameter .* Got 0 instead"),
        ({"cv": True}, "The 'cv' parameter .* Got True instead"),
        ({"cv": 2.5}, "The 'cv' parameter .* Got 2.5 instead"),
        ({"cv": "five"}, "The 'cv' parameter .* Got 'five' instead"),
        ({"cv": 91}, "cv=91 must be a number of folds .* 90"),
        ({"cv": []}, r"cv=\[\] gives no folds"),
        ({"cv": GroupKFold(3)}, "The 'groups' parameter should not be None"),
    ],
    ids=str,
)
def test_bad_parameters(settings, match):
    assert_refused(match, **settings)


@pytest.mark.parametrize(
    ("number", "folds"),
    [
        (1, [FOLDS[0], (np.arange(50), [])]),
        (0, [(np.arange(50), np.array([], dtype=int)), FOLDS[0]]),
        (0, [([], [1, 2]), FOLDS[0]]),
        (2, [*FOLDS[:2], ([3], [1, 2])]),
    ],
)
def test_folds_without_rows(number, folds):
    n_train, n_test = (len(part) for part in folds[number])
    message = f"cv gives fold {number} {n_train} rows to train on and {n_test} to leave out"
    assert_refused(message, cv=folds)


@pytest.mark.parametrize(
    "settings",
    [{"reg_mean": []}, {"cv": 91}, {"cv": []}, {"selection": "equal"}, {"cv": [([1], [2])]}],
    ids=str,
)
def test_a_refused_fit_unfits_what_was_fitted_before(settings):
    model = fast().fit(X, Y).set_params(**settings)
    with pytest.raises(ValueError, match=r"reg_mean|cv|n_splits"):
        model.fit(X, Y)
    assert_unfitted(model)


def test_fewer_rows_than_folds():
    message = "cv=10 must be a number of folds .* 5"
    assert_refused(message, X[:5], Y[:5], cv=10)
    # Rows of weight zero do not count.
    w = np.zeros(90)
    w[:4] = 1.0
    with pytest.raises(ValueError, match=r"cv=5 must be a number of folds .* 4"):
        fast(cv=5).fit(X, Y, w)
    assert_refused("cv gives fold 0 1 rows to train on", X[:2], Y[:2], cv=2)


def test_few_rows():
    for fit in (partial(fast(cv=3).fit, X[:3], Y[:3]), partial(fast(cv=2).fit, X[:4], Y[:4])):
        model = fit()
        assert np.isfinite(model.predict(X, return_std=True)).all()
        assert np.isfinite(model.oof_std_[: model.n_splits_]).all()


def test_inputs_are_never_changed():
    data, target, w = X.copy(), Y.copy(), W.copy()
    grid = np.array([3e-2, 1e-4])
    for array in (data, target, w, grid):
        array.setflags(write=False)
    model = fast(reg_mean=grid, n_members=2).fit(data, target, w)
    assert model.get_params()["reg_mean"] is grid
    assert_same_search(model, fast(n_members=2).fit(X, Y, W))


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
