"""CalibratedRegressor against the papers' formulas written out, and its coverage by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import optimize, stats
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import BayesianRidge, Ridge
from sklearn.model_selection import KFold, RepeatedKFold, ShuffleSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from mvenet import (
    AutoRegressor,
    CalibratedRegressor,
    MVERegressor,
    MVERegressorCV,
    Normal,
    NormalMixture,
)
from mvenet.metrics import coverage as observed_coverage

pytestmark = pytest.mark.usefixtures("short")

RNG = np.random.default_rng(3)
X = RNG.uniform(-1, 1, (80, 2))
Y = X[:, 0] + (0.1 + 0.4 * (X[:, 1] > 0)) * RNG.standard_t(3, 80)
NEW = RNG.uniform(-1, 1, (15, 2))
METHODS = ("conformal", "scale")
TINY = {
    "strategy": "warmup",
    "hidden_mean": (4,),
    "hidden_var": (3,),
    "epochs": 30,
    "warmup_epochs": 30,
}


class Overconfident(RegressorMixin, BaseEstimator):
    """The true mean with a standard deviation that is `factor` times the true one."""

    def __init__(self, factor=0.4):
        self.factor = factor

    def fit(self, X, y):
        self.fitted_ = True
        return self

    def predict(self, X, return_std=False):
        X = np.asarray(X)
        std = self.factor * (0.1 + 0.9 * (X[:, 1] > 0))
        return (X[:, 0], std) if return_std else X[:, 0]


def truth(n, rng):
    X = rng.uniform(-1, 1, (n, 2))
    return X, X[:, 0] + (0.1 + 0.9 * (X[:, 1] > 0)) * rng.standard_normal(n)


# --- the formulas --------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9])
def test_split_conformal_by_hand(level):
    fitted = BayesianRidge().fit(X[:40], Y[:40])
    model = CalibratedRegressor(FrozenEstimator(fitted)).fit(X[40:], Y[40:])
    mean, std = fitted.predict(X[40:], return_std=True)
    scores = np.sort(np.abs(Y[40:] - mean) / std)
    reach = scores[math.ceil(level * 41 - 1e-9) - 1]
    mean, std = fitted.predict(NEW, return_std=True)
    expected = np.stack([mean - reach * std, mean + reach * std], axis=1)
    assert_allclose(model.predict_interval(NEW, level), expected, rtol=1e-12)


def test_one_shuffled_split_is_split_conformal():
    split = ShuffleSplit(1, test_size=30, random_state=2)
    train, test = next(split.split(X))
    by_hand = CalibratedRegressor(FrozenEstimator(BayesianRidge().fit(X[train], Y[train])))
    by_hand.fit(X[test], Y[test])
    model = CalibratedRegressor(BayesianRidge(), cv=split).fit(X, Y)
    assert model.n_calibration_ == 30 and len(model.members_) == 1
    assert_allclose(model.predict_interval(NEW), by_hand.predict_interval(NEW), rtol=1e-12)


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_cv_plus_by_hand(level):
    """Barber et al. (2021), section 2.2, with |y - mean| / std as the score."""
    folds = KFold(4, shuffle=True, random_state=1)
    model = CalibratedRegressor(BayesianRidge(), cv=folds).fit(X, Y)
    lower, upper = [], []
    for train, test in folds.split(X):
        member = BayesianRidge().fit(X[train], Y[train])
        mean, std = member.predict(X[test], return_std=True)
        at_new, std_new = member.predict(NEW, return_std=True)
        for r in np.abs(Y[test] - mean) / std:
            lower.append(at_new - r * std_new)
            upper.append(at_new + r * std_new)
    n = len(Y)
    lower, upper = np.sort(lower, axis=0), np.sort(upper, axis=0)
    high = upper[math.ceil(level * (n + 1) - 1e-9) - 1]  # the ⌈(1-a)(n+1)⌉-th smallest
    low = lower[math.floor((1 - level) * (n + 1) + 1e-9) - 1]  # the ⌊a(n+1)⌋-th smallest
    assert_allclose(model.predict_interval(NEW, level), np.stack([low, high], 1), rtol=1e-12)


@pytest.mark.parametrize("method", ["conformal", "scale"])
def test_an_automatic_search_is_calibrated_by_its_own_rows_left_out(method):
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, (260, 2))
    y = x[:, 0] + 0.3 * rng.standard_t(3, 260)
    search = AutoRegressor(candidates=["linear"], cv=3, random_state=0)
    model = CalibratedRegressor(search, method).fit(x[:160], y[:160])
    assert len(model.members_) == 1 and model.n_calibration_ == 160
    low, high = model.predict_interval(x[160:], 0.8).T
    assert 0.7 < np.mean((y[160:] >= low) & (y[160:] <= high)) < 0.96
    searched = model.members_[0]
    needed = np.sort(np.abs(y[:160] - searched.oof_mean_) / searched.oof_std_)
    if method == "conformal":
        mean, std = searched.predict(x[160:], return_std=True)
        assert_allclose((high - mean) / std, needed[129 - 1])  # ceil(0.8 × 161) = 129


def test_the_folds_of_a_search_serve_without_another_fit():
    fits = []

    class Counted(MVERegressorCV):
        def fit(self, X, y, sample_weight=None):
            fits.append(len(X))
            return super().fit(X, y, sample_weight)

    search = Counted((1e-2, 1e-1), (1e-1, 1.0), cv=4, n_members=2, random_state=0, **TINY)
    model = CalibratedRegressor(search).fit(X, Y)
    assert fits == [80] and len(model.members_) == 4 and model.n_calibration_ == 80
    fitted = clone(search).fit(X, Y)
    # Out-of-fold moments of the search are those of the members, so scores follow from them.
    scores = np.sort(np.abs(Y - fitted.oof_mean_) / fitted.oof_std_)
    assert_allclose(np.sort(np.concatenate(model._scores)), scores, rtol=1e-6)
    lower, upper = [], []
    for fold in range(4):
        means, stds = fitted.model_.networks[fold::4].predict(NEW)
        stds = fitted.model_.scale * stds
        mean = means.mean(axis=0)
        std = np.sqrt((stds**2).mean(axis=0) + means.var(axis=0))
        rows = fitted.oof_fold_ == fold
        for r in np.abs(Y - fitted.oof_mean_)[rows] / fitted.oof_std_[rows]:
            lower.append(mean - r * std)
            upper.append(mean + r * std)
    high = np.sort(upper, axis=0)[math.ceil(0.9 * 81) - 1]
    low = np.sort(lower, axis=0)[math.floor(0.1 * 81) - 1]
    assert_allclose(model.predict_interval(NEW, 0.9), np.stack([low, high], 1), rtol=1e-5)
    assert_allclose(model.predict(NEW), fitted.predict(NEW), rtol=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_factor_maximises_the_likelihood(weighted):
    weight = RNG.uniform(0.5, 2, 80) if weighted else None
    fitted = BayesianRidge().fit(X[:, :1], Y)
    model = CalibratedRegressor(FrozenEstimator(fitted), "scale").fit(X[:, :1], Y, weight)
    mean, std = fitted.predict(X[:, :1], return_std=True)

    def loss(factor):
        return -np.average(stats.norm(mean, factor * std).logpdf(Y), weights=weight)

    found = optimize.minimize_scalar(loss, bounds=(0.1, 10), method="bounded")
    assert model.factor_ == pytest.approx(found.x, rel=1e-4)
    assert_allclose(model.predict(NEW[:, :1], return_std=True)[1],
                    model.factor_ * fitted.predict(NEW[:, :1], return_std=True)[1])  # fmt: skip


def test_the_factor_mends_overconfidence():
    rng = np.random.default_rng(0)
    X, y = truth(2000, rng)
    model = CalibratedRegressor(Overconfident(0.4), "scale", cv=5).fit(X, y)
    assert model.factor_ == pytest.approx(1 / 0.4, rel=0.05)
    X_new, y_new = truth(4000, rng)
    low, high = model.predict_interval(X_new, 0.9).T
    assert np.mean((low <= y_new) & (y_new <= high)) == pytest.approx(0.9, abs=0.02)


# --- coverage ------------------------------------------------------------------------------------


def test_split_conformal_covers_exactly_what_it_says():
    """With n = 19 and 90 %, the guarantee is 90 % to 95 %, and without ties exactly 18 / 20."""
    rng = np.random.default_rng(0)
    shares = []
    for _ in range(400):
        X, y = truth(49, rng)
        model = CalibratedRegressor(FrozenEstimator(Overconfident(0.2).fit(X, y)))
        model.fit(X[:19], y[:19])
        low, high = model.predict_interval(X[19:], 0.9).T
        shares.append(np.mean((low <= y[19:]) & (y[19:] <= high)))
    assert abs(np.mean(shares) - 0.9) < 4 * np.std(shares) / np.sqrt(400)


def test_cv_plus_covers_where_the_plain_model_does_not():
    rng = np.random.default_rng(1)
    plain, conformal = [], []
    for _ in range(60):
        X, y = truth(60, rng)
        X_new, y_new = truth(200, rng)
        model = CalibratedRegressor(Overconfident(0.4), cv=5).fit(X, y)
        low, high = model.predict_interval(X_new, 0.9).T
        conformal.append(np.mean((low <= y_new) & (y_new <= high)))
        plain.append(observed_coverage(y_new, Normal(*Overconfident(0.4).predict(X_new, True))))
    assert np.mean(plain) < 0.6
    error = np.std(conformal) / np.sqrt(60)
    assert abs(np.mean(conformal) - 0.9) < 4 * error + 1 / 61


def test_intervals_are_wide_where_the_estimator_is_unsure():
    rng = np.random.default_rng(2)
    X, y = truth(1000, rng)
    model = CalibratedRegressor(Overconfident(0.4), cv=5).fit(X, y)
    for noisy in (False, True):  # the shape of std is true, so coverage holds in each region
        X_new, y_new = truth(4000, rng)
        part = (X_new[:, 1] > 0) == noisy
        low, high = model.predict_interval(X_new[part], 0.9).T
        assert np.mean((low <= y_new[part]) & (y_new[part] <= high)) == pytest.approx(0.9, abs=0.03)


# --- the estimator -------------------------------------------------------------------------------


@parametrize_with_checks(
    [CalibratedRegressor(MVERegressor(random_state=0, **TINY), method, 3) for method in METHODS],
    expected_failed_checks=lambda _: {
        "check_sample_weight_equivalence_on_dense_data": "as of MVERegressor",
    },
)
def test_estimator_checks(estimator, check):
    check(estimator)


def test_intervals_are_nested_and_lists_are_levels():
    model = CalibratedRegressor(BayesianRidge(), cv=4).fit(X, Y)
    three = model.predict_interval(NEW, [0.5, 0.8, 0.95])
    assert three.shape == (15, 3, 2)
    assert_array_equal(three[:, 1], model.predict_interval(NEW, 0.8))
    assert (np.diff(three[:, :, 0], axis=1) <= 0).all() and (np.diff(three[:, :, 1], 1) >= 0).all()


def test_many_rows_are_done_in_parts(monkeypatch):
    model = CalibratedRegressor(BayesianRidge(), cv=4).fit(X, Y)
    many = RNG.uniform(-1, 1, (120_000, 2))
    whole = model.predict_interval(many)
    assert_array_equal(whole[:5], model.predict_interval(many[:5]))
    assert_array_equal(whole[-5:], model.predict_interval(many[-5:]))


def test_pipelines_frames_and_searches():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["a", "b"])
    pipe = make_pipeline(StandardScaler(), MVERegressor(random_state=0, **TINY))
    model = CalibratedRegressor(pipe, cv=3).fit(frame, pd.Series(Y))
    assert list(model.feature_names_in_) == ["a", "b"]
    low, high = model.predict_interval(frame, 0.8).T
    assert 0.7 < np.mean((low <= Y) & (high >= Y)) <= 1
    assert_allclose(model.predict(frame), CalibratedRegressor(pipe, cv=3).fit(X, Y).predict(X))


def test_the_mixture_keeps_all_members():
    model = CalibratedRegressor(MVERegressor(n_members=3, random_state=0, **TINY), cv=2).fit(X, Y)
    dist = model.predict_dist(NEW)
    assert dist.means.shape == (6, 15)
    assert_allclose(dist.weights.sum(), 1)
    mean, std = model.predict(NEW, return_std=True)
    assert_array_equal(mean, dist.mean)
    assert_array_equal(std, dist.std)
    assert_array_equal(model.predict_quantiles(NEW, [0.2, 0.9]), dist.ppf([0.2, 0.9]))


class Doubtful(RegressorMixin, BaseEstimator):
    """A mixture whose members know that a part of their variance is no noise."""

    def fit(self, X, y):
        self.level_ = float(np.mean(y))
        return self

    def predict(self, X, return_std=False):
        dist = self.predict_dist(X)
        return (dist.mean, dist.std) if return_std else dist.mean

    def predict_dist(self, X):
        means = self.level_ + np.array([[0.0], [0.3]]) * np.ones(len(X))
        stds = np.array([[0.2], [0.5]]) * (1 + np.abs(self.level_)) * np.ones(len(X))
        doubt = np.linspace(0.0, 0.5, len(X))  # to more than the variance itself
        return NormalMixture(means, stds, [0.25, 0.75], disagreement=doubt)


@pytest.mark.parametrize("method", METHODS)
def test_what_members_do_not_know_stays_ignorance(method):
    model = CalibratedRegressor(Doubtful(), method, cv=3).fit(X, Y)
    parts = [member.predict_dist(NEW) for member in model.members_]
    dist, factor = model.predict_dist(NEW), model.factor_
    assert_allclose(dist.aleatoric, factor**2 * np.mean([p.aleatoric for p in parts], axis=0))
    total = NormalMixture(dist.means, dist.stds, dist.weights)
    assert_allclose(dist.epistemic, total.var - dist.aleatoric)
    assert_array_equal(dist.std, total.std)


@pytest.mark.parametrize("target", ["identity", "log"])
def test_far_outside_a_calibrated_search_is_as_unsure_as_the_search(target):
    search = AutoRegressor(candidates=["linear"], target=target, cv=3, random_state=0)
    model = CalibratedRegressor(search).fit(X, np.exp(Y))
    alone = model.members_[0].predict_dist([[9.0, 9.0]])
    dist = model.predict_dist([[9.0, 9.0]])
    assert alone.epistemic > 0.5 * alone.aleatoric  # there is something to lose
    for part in ("epistemic", "aleatoric", "std"):
        assert_allclose(getattr(dist, part), getattr(alone, part))


def test_numbered_folds_are_shuffled():
    """Tables are often sorted; folds of neighbours would make intervals far too wide."""
    sample = truth(400, np.random.default_rng(0))
    order = np.argsort(sample[0][:, 0])
    X_sorted, y_sorted = sample[0][order] ** 2, sample[1][order]
    model = CalibratedRegressor(BayesianRidge(), cv=5).fit(X_sorted, y_sorted)
    blocks = CalibratedRegressor(BayesianRidge(), cv=KFold(5)).fit(X_sorted, y_sorted)
    widths = [np.diff(m.predict_interval(X_sorted), axis=1).mean() for m in (model, blocks)]
    assert widths[0] < widths[1]


def test_the_estimator_is_left_as_it_was():
    inner = MVERegressor(random_state=0, **TINY)
    CalibratedRegressor(inner, cv=2).fit(X, Y)
    assert not hasattr(inner, "model_")


def test_it_scores_like_any_regressor():
    scores = cross_val_score(CalibratedRegressor(BayesianRidge(), cv=3), X, Y, cv=3)
    assert_allclose(scores, cross_val_score(BayesianRidge(), X, Y, cv=3), atol=0.05)
    clone(CalibratedRegressor(BayesianRidge(), cv=3))


def test_weights_train_the_members():
    weight = np.where(X[:, 1] > 0, 1e-6, 1.0)
    model = CalibratedRegressor(MVERegressor(random_state=0, **TINY), cv=2)
    light = model.fit(X, Y, weight).predict(NEW)
    assert not np.allclose(light, model.fit(X, Y).predict(NEW))


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0.0, 1.0, -0.1, 2.0, np.nan])
def test_coverage_lies_between_0_and_1(level):
    model = CalibratedRegressor(BayesianRidge(), cv=3).fit(X, Y)
    with pytest.raises(ValueError, match="coverage must"):
        model.predict_interval(NEW, level)


def test_too_few_rows_for_the_coverage_are_told():
    model = CalibratedRegressor(BayesianRidge(), cv=3).fit(X[:18], Y[:18])
    model.predict_interval(NEW, 0.9)
    with pytest.raises(ValueError, match=r"coverage=0\.95 needs at least 19 calibration rows.* 18"):
        model.predict_interval(NEW, 0.95)
    enough = CalibratedRegressor(BayesianRidge(), cv=3).fit(X[:19], Y[:19])
    assert np.isfinite(enough.predict_interval(NEW, 0.95)).all()


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (CalibratedRegressor(Ridge()), "predict_dist"),
        (CalibratedRegressor(BayesianRidge(), "both"), "method"),
        (CalibratedRegressor(BayesianRidge(), cv=RepeatedKFold(n_splits=2)), "more than once"),
        (CalibratedRegressor(BayesianRidge(), cv=[]), "no rows to calibrate"),
        (CalibratedRegressor(BayesianRidge(), cv=200), "200"),
        (CalibratedRegressor("ridge"), "estimator"),
    ],
)
def test_bad_settings_are_named(model, message):
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(X, Y)


def test_a_frozen_estimator_must_be_fitted():
    with pytest.raises(NotFittedError):
        CalibratedRegressor(FrozenEstimator(BayesianRidge())).fit(X, Y)
    with pytest.raises(NotFittedError):
        CalibratedRegressor(BayesianRidge()).predict_interval(X)


# --- what once went wrong ------------------------------------------------------------------------


@pytest.mark.parametrize("cv", [5, ShuffleSplit(1, test_size=0.3, random_state=0)])
def test_intervals_of_any_coverage_are_ordered_and_nested(cv):
    levels = [0.02, 0.1, 0.2, 0.4, 0.5, 0.6, 0.9]
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(60, 2))
    model = MVERegressor(random_state=0, **{**TINY, "epochs": 40})
    model = CalibratedRegressor(model, cv=cv).fit(inputs, inputs[:, 0] + rng.normal(size=60))
    low, high = np.moveaxis(model.predict_interval(inputs, levels), 2, 0)
    assert (low < high).all()
    assert (np.diff(low, axis=1) <= 1e-12).all() and (np.diff(high, axis=1) >= -1e-12).all()


def test_a_search_whose_folds_repeat_is_refused_before_it_starts():
    repeated = RepeatedKFold(n_splits=3, n_repeats=2, random_state=0)
    search = MVERegressorCV(cv=repeated, epochs=10**8)  # would take for ever
    with pytest.raises(ValueError, match="leaves some rows out more than once"):
        CalibratedRegressor(search).fit(X, Y)


def test_a_search_whose_folds_are_masks_calibrates_as_by_row_numbers():
    splits = list(KFold(3).split(X))
    masks = [tuple(np.isin(np.arange(len(X)), rows) for rows in split) for split in splits]
    searches = [MVERegressorCV([1e-2], [1e-1], cv=cv, random_state=0, **TINY)
                for cv in (splits, masks)]  # fmt: skip
    by_number, by_mask = (CalibratedRegressor(s).fit(X, Y).predict_interval(NEW) for s in searches)
    assert_array_equal(by_mask, by_number)


@pytest.mark.parametrize(
    ("target", "settings", "message"),
    [
        (Y, {"method": "both"}, "method"),  # before anything is trained
        (Y, {"estimator": FrozenEstimator(Ridge().fit(X, Y))}, "return_std"),  # after
        (np.full(len(Y), np.nan), {}, "NaN"),  # meanwhile
    ],
)
def test_a_refit_that_fails_leaves_it_unfitted(target, settings, message):
    model = CalibratedRegressor(BayesianRidge(), cv=3).fit(X, Y)
    with pytest.raises((TypeError, ValueError), match=message):
        model.set_params(**settings).fit(X, target)
    for predict in (model.predict, model.predict_dist, model.predict_interval):
        with pytest.raises(NotFittedError):
            predict(NEW)


def test_a_refit_without_names_forgets_the_names():
    pd = pytest.importorskip("pandas")
    model = CalibratedRegressor(BayesianRidge(), cv=3).fit(pd.DataFrame(X, columns=["a", "b"]), Y)
    assert not hasattr(model.fit(X, Y), "feature_names_in_")


@pytest.mark.parametrize("method", METHODS)
def test_rows_of_weight_zero_do_not_calibrate(method):
    weight = np.ones(len(Y))
    folds = list(KFold(4).split(X))
    weight[folds[0][1]] = 0.0
    model = CalibratedRegressor(MVERegressor(random_state=0, **TINY), method, cv=folds)
    model.fit(X, Y, weight)
    assert model.n_calibration_ == len(Y) - len(folds[0][1])
    wild = np.where(weight == 0, 1e3, Y)
    assert_array_equal(
        model.predict_interval(NEW), model.fit(X, wild, weight).predict_interval(NEW)
    )


def test_a_pipeline_takes_weights():
    network = MVERegressor(random_state=0, **TINY)
    weight = np.where(X[:, 1] > 0, 0.1, 1.0)
    for piped in (make_pipeline(network), make_pipeline(make_pipeline(network))):
        inside = CalibratedRegressor(piped, cv=2).fit(X, Y, weight).predict(NEW)
        assert_array_equal(
            inside, CalibratedRegressor(network, cv=2).fit(X, Y, weight).predict(NEW)
        )


def test_folds_that_differ_on_the_scale_agree_on_that_of_most():
    model, cv = MVERegressor(random_state=0), KFold(3, shuffle=True, random_state=0)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(80, 1))
        y = np.exp(2 + 0.2 * x[:, 0] + 0.45 * rng.normal(size=80))
        alone = [clone(model).fit(x[train], y[train]) for train, _ in cv.split(x)]
        logs = [member.model_.log for member in alone]
        if len(set(logs)) > 1:
            break
    calibrated = CalibratedRegressor(model, cv=cv).fit(x, y)
    assert {member.model_.log for member in calibrated.members_} == {sum(logs) > 1}
    assert np.isfinite(calibrated.predict_dist(x).logpdf(y)).all()
    kept = logs.index(sum(logs) > 1)
    assert_array_equal(calibrated.members_[kept].predict(x), alone[kept].predict(x))
