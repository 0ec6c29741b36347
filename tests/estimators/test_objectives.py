"""The paper's relatives through the estimators: what each predicts, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from mvenet import MVERegressor, MVERegressorCV
from mvenet._training import fleet

RNG = np.random.default_rng(3)
X = RNG.normal(size=(90, 2))
Y = X[:, 0] + (0.2 + 0.1 * X[:, 1] ** 2) * RNG.standard_t(4, 90)
SHORT = {"epochs": 20, "warmup_epochs": 20, "hidden_mean": (6,), "hidden_var": (4,)}
SHORT |= {"random_state": 0, "strategy": "warmup"}
SEARCH = {**SHORT, "cv": 3, "reg_mean": [1e-3], "reg_var": [1e-2], "n_members": 2}


def fitted(**settings):
    return MVERegressor(**SHORT | settings).fit(X, Y)


# --- Student's t ----------------------------------------------------------------------------------


def test_a_model_of_students_t_predicts_it():
    model = fitted(objective="student-t", df=4)
    networks = model.model_.networks
    means, scales = (part[0] for part in networks.predict(X))
    truth = stats.t(4, means, scales)
    assert_allclose(model.predict_dist(X).logpdf(Y), truth.logpdf(Y), atol=1e-3)
    mean, std = model.predict(X, return_std=True)
    assert_allclose(mean, means, rtol=1e-12)
    assert_allclose(std, truth.std(), rtol=1e-4)
    assert_allclose(std, model.predict_dist(X).std, rtol=1e-9)
    low, high = model.predict_interval(X, 0.9).T
    assert_allclose([low, high], [truth.ppf(0.05), truth.ppf(0.95)], rtol=1e-3, atol=1e-3)
    assert len(model.model_) == len(model.predict_dist(X).weights)


def test_fewer_degrees_of_freedom_make_the_mean_care_less_about_outliers():
    y = Y.copy()
    y[:5] += 40
    off = [
        np.abs(MVERegressor(**SHORT | {"objective": "student-t", "df": df, "epochs": 200})
               .fit(X, y).predict(X[5:]) - X[5:, 0]).mean()
        for df in (3, 1000)
    ]  # fmt: skip
    assert off[0] < 0.5 * off[1]


def test_a_search_scores_students_t_by_its_own_likelihood():
    search = MVERegressorCV(**SEARCH | {"objective": "student-t", "scale": False}).fit(X, Y)
    alone = [search.model_.networks[[k]].predict(X) for k in range(3)]
    scores = []
    for k, (means, scales) in enumerate(alone):
        rows = search.oof_fold_ == k
        scores.append(stats.t(5, means[0, rows], scales[0, rows]).logpdf(Y[rows]).mean())
    assert search.best_score_ == pytest.approx(np.mean(scores), abs=1e-3)
    assert search.model_.df == 5.0
    scaled = MVERegressorCV(**SEARCH | {"objective": "student-t"}).fit(X, Y)
    assert scaled.best_score_ >= search.best_score_ - 1e-6


# --- natural parameters ---------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["cross-fit", "warmup", "warmup-fixed-mean"])
def test_natural_parameters_have_no_warmup(strategy):
    with pytest.raises(ValueError, match=rf"objective='natural'.*'{strategy}'.*'no-warmup'"):
        fitted(objective="natural", strategy=strategy)


def test_without_deviations_natural_parameters_give_the_same_means():
    model = fitted(objective="natural", strategy="no-warmup", n_members=2)
    mean, _ = model.predict(X, return_std=True)
    assert_array_equal(model.predict(X), mean)
    assert_allclose(model.model_.networks.means(X).mean(axis=0), mean, rtol=1e-12)
    normal = fitted(strategy="no-warmup", n_members=2)
    assert np.abs(mean - normal.predict(X)).max() > 1e-3


# --- CRPS -----------------------------------------------------------------------------------------


def test_crps_has_the_better_crps_on_its_training_rows_and_the_likelihood_its_own():
    settings = {"reg_mean": 0.0, "reg_var": 0.0, "epochs": 400}
    crps, nll = fitted(objective="crps", **settings), fitted(**settings)
    assert crps.predict_dist(X).crps(Y).mean() < nll.predict_dist(X).crps(Y).mean()
    assert crps.predict_dist(X).logpdf(Y).mean() < nll.predict_dist(X).logpdf(Y).mean()


# --- the bootstrap --------------------------------------------------------------------------------


def drawn(model, entropy, *key):
    random = np.random.default_rng(fleet.derived_seed(entropy, *key, 0, 0))
    return np.sort(random.choice(np.arange(len(Y)), len(Y)))


def test_members_are_trained_on_rows_drawn_with_replacement():
    model = fitted(n_members=3, bootstrap=True)
    networks = model.model_.networks
    for member in range(3):
        rows = drawn(model, 0, 0, member)
        assert len(np.unique(rows)) < 0.75 * len(Y)  # 63 % are expected
        assert_allclose(networks.y_mean[member], Y[rows].mean(), rtol=1e-12)
        assert_allclose(networks.x_scale[member], X[rows].std(axis=0), rtol=1e-12)
    assert_allclose(fitted(n_members=3).model_.networks.y_mean, Y.mean(), rtol=1e-9)


@pytest.mark.parametrize("scale", [False, True])
def test_after_a_search_the_networks_on_all_rows_are_bootstrapped(scale):
    settings = SEARCH | {"final": "refit", "bootstrap": True, "scale": scale}
    search = MVERegressorCV(**settings).fit(X, Y)
    expected = [Y[drawn(search, 0, 3, member)].mean() for member in range(2)]
    assert_allclose(search.model_.networks.y_mean, expected, rtol=1e-12)
    plain = MVERegressorCV(**settings | {"bootstrap": False}).fit(X, Y)
    assert search.best_score_ == plain.best_score_  # the search itself has all rows of its folds


def test_what_cannot_be_bootstrapped_says_so():
    with pytest.raises(ValueError, match=r"bootstrap=True.*n_members=1"):
        fitted(bootstrap=True)
    model = MVERegressor(**SHORT, n_members=2, bootstrap=True)
    with pytest.raises(ValueError, match=r"bootstrap=True draws single rows"):
        model.fit(X, Y, groups=np.arange(90) // 3)
    with pytest.raises(ValueError, match=r"bootstrap=True needs final='refit'"):
        MVERegressorCV(**SEARCH, bootstrap=True).fit(X, Y)


# --- the end of the warm-up -----------------------------------------------------------------------


def test_a_warmup_may_end_when_it_has_converged():
    model = fitted(warmup_epochs="converged", epochs=300)
    stages = model.history_["stage"]
    during, after = (np.count_nonzero(stages == name) for name in ("warmup", "joint"))
    assert after == 300
    assert 20 <= during < 300 and during % 10 == 0
    losses = model.history_["nll"][stages == "warmup"] - 0.5 * np.log(2 * np.pi * np.e)
    losses = (losses - np.log(model.model_.networks.y_scale[0])).reshape(-1, 10).sum(axis=1)
    gains = losses[1:] / losses[:-1]
    assert (gains[:-1] <= 0.99).all() and gains[-1] > 0.99
    assert np.count_nonzero(fitted(warmup_epochs="converged").history_["stage"] == "warmup") == 20


# --- what is elsewhere ----------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [MVERegressor, MVERegressorCV])
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"objective": "quality-driven"}, r"no density.*mvenet\.torch\.QualityDrivenRegressor"),
        ({"objective": "skafte"}, r"mvenet\.torch\.SkafteRegressor"),
        ({"objective": "student-t", "df": "learned"}, r"third.*mvenet\.torch\.TorchMVERegressor"),
    ],
)
def test_what_only_pytorch_has_is_refused_with_its_place(estimator, settings, message):
    with pytest.raises(ValueError, match=message):
        estimator(**settings).fit(X, Y)
