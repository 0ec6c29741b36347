"""MVERegressor by itself: one class, one procedure, and rows left out that have the last word."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from shorter import short_trainings
from sklearn.model_selection import validation_curve
from two_noises import NEW, NEW_STD, table

from mvenet import AutoRegressor, MVERegressor, MVERegressorCV, recipes
from mvenet._models.composite import Composite
from mvenet._models.ensemble import Ensemble

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
Y = X[:, 0] + RNG.normal(size=120)
SHORT = {"epochs": 4, "warmup_epochs": 4, "random_state": 0}


def predicted(**settings):
    with short_trainings():
        model = MVERegressor(**{"random_state": 0} | settings).fit(X, Y)
    return np.stack(model.predict(X, return_std=True))


def test_a_parameter_without_effect_changes_nothing():
    plain = predicted()
    idle = {"n_iter_no_change": 21, "validation_fraction": 0.11, "beta": 0.7, "df": 9.0}
    for name, value in idle.items():
        assert_array_equal(predicted(**{name: value}), plain)


def test_a_default_that_is_written_out_is_the_default():
    short = {"epochs": 3, "warmup_epochs": 3}
    quick, plain = predicted(**short), predicted()
    for name, value in MVERegressor().get_params().items():
        if name in short:
            assert_array_equal(predicted(**{name: value}), plain)
        elif name != "random_state":
            assert_array_equal(predicted(**short | {name: value}), quick)
    assert_array_equal(predicted(**short, hidden_mean=[40, 20]), quick)
    assert_array_equal(predicted(**short, batch_size=32), quick)  # "auto" of so few rows


def test_a_point_of_a_grid_lies_between_its_neighbours():
    rates = np.array([0.0099, 0.01, 0.0101])
    model = MVERegressor(**SHORT)
    _, scores = validation_curve(model, X, Y, param_name="learning_rate", param_range=rates, cv=3)
    low, middle, high = scores.mean(axis=1)
    assert abs(middle - 0.5 * (low + high)) < 0.05


@pytest.mark.parametrize(
    "changed",
    [
        {"hidden_mean": (5,)},
        {"hidden_mean": None},
        {"hidden_var": ()},
        {"hidden_var": None},
        {"activation": "tanh"},
        {"encoding": None},
        {"encoding": "piecewise"},
        {"objective": "faithful"},
        {"objective": "crps"},
        {"objective": "student-t"},
        {"n_members": 2, "bootstrap": True},
        {"reg_mean": 0.1},
        {"reg_var": 1.0},
        {"batch_size": 16},
        {"learning_rate": 0.02},
        {"schedule": "constant"},
        {"clip_value": 0.01},
        {"n_members": 2},
        {"early_stopping": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("strategy", ["cross-fit", *recipes.STRATEGIES])
def test_every_parameter_is_alive_under_every_strategy(strategy, changed):
    y = np.exp(Y)
    plain, other = (
        MVERegressor(**SHORT | {"strategy": strategy, "target": "identity"} | more).fit(X, y)
        for more in ({}, changed)
    )
    if changed == {"encoding": None} and strategy != "cross-fit":
        assert_array_equal(plain.predict(X), other.predict(X))  # what "auto" is there
    else:
        assert np.any(
            np.stack(plain.predict(X, return_std=True))
            != np.stack(other.predict(X, return_std=True))
        )


@pytest.mark.parametrize("strategy", recipes.STRATEGIES)
def test_the_log_scale_needs_rows_left_out(strategy):
    with pytest.raises(ValueError, match=rf"target='log'.*strategy='{strategy}'.*'cross-fit'"):
        MVERegressor(target="log", strategy=strategy).fit(X, np.exp(Y))
    model = MVERegressor(target="log", **SHORT).fit(X, np.exp(Y))
    assert model.model_.log and (model.predict_quantiles(X, [1e-6]) > 0).all()


def test_networks_that_no_rows_left_out_could_mix_are_refused():
    with pytest.raises(ValueError, match=r"encoding='both'.*strategy='warmup'.*use strategy='cr"):
        MVERegressor(encoding="both", strategy="warmup").fit(X, Y)


def test_what_is_kept():
    model = MVERegressor(n_members=2, **SHORT).fit(X, Y)
    assert isinstance(model.model_, Composite)
    assert len(np.unique(model.history_["member"])) == 20  # two members, five folds, two encodings
    assert sorted(np.unique(model.oof_fold_)) == list(range(5))
    assert np.isfinite(model.oof_mean_).all() and np.isfinite(model.oof_std_).all()
    assert (model.reg_mean_, model.reg_var_) == (1e-4, 1e-2)
    few = MVERegressor(**SHORT).fit(X[:7], Y[:7])
    assert isinstance(few.model_, Ensemble)  # too few rows to leave any out


def test_the_paper_is_the_paper():
    settings = {**recipes.PAPER, **SHORT}
    model = MVERegressor(reg_mean=0.01, reg_var=0.1, **settings).fit(X, Y)
    chosen = MVERegressorCV(
        [0.01], [0.1], cv=2, final="refit", scale=False, n_members=1, **settings
    )
    chosen.fit(X, Y)
    assert isinstance(model.model_, Ensemble)
    assert model.model_.piecewise is None
    assert np.isinf(model.model_.networks.architecture.input_bound)
    assert len(chosen.model_.networks) == 1


@cache
def fitted_to_multiples(estimator, factor):
    """To a power of two times y, so that nothing is rounded."""
    settings = {"effort": "low", "cv": 2} if estimator is AutoRegressor else SHORT
    with short_trainings():
        return estimator(**settings | {"random_state": 0, "target": "identity"}).fit(X, factor * Y)


@pytest.mark.parametrize("estimator", [MVERegressor, AutoRegressor])
@pytest.mark.parametrize("factor", [2.0**-960, 2.0**-565, 2.0**532, 2.0**960])
def test_squares_that_would_overflow_or_vanish_do_not(estimator, factor):
    plain, model = (fitted_to_multiples(estimator, times) for times in (1.0, factor))
    for one, other in zip(
        model.predict(X, return_std=True), plain.predict(X, return_std=True), strict=True
    ):
        np.testing.assert_allclose(one / factor, other, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(model.predict_dist(X).std / factor, plain.predict_dist(X).std, 1e-3)
    np.testing.assert_allclose(model.oof_std_ / factor, plain.oof_std_, rtol=1e-2)


@pytest.mark.parametrize("mean", ["linear", "trees", "gaussian process"])
def test_columns_beyond_single_precision(mean):
    model = AutoRegressor(candidates=[mean], effort="low", cv=2, random_state=0)
    with short_trainings():
        model.fit(X * 1e300, Y)
    assert np.isfinite(model.predict(X * 1e300)).all()


# --- promised: far from the training rows ---------------------------------------------------------


@pytest.mark.parametrize(
    "estimator",
    [MVERegressor(), pytest.param(AutoRegressor(effort="low"), marks=pytest.mark.slow)],
)
def test_outside_an_interval_is_not_narrower_than_the_typical_one_inside(estimator):
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (400, 1))
    y = np.sin(3 * x[:, 0]) + np.where(x[:, 0] < 0.3, 0.5, 0.02) * rng.standard_normal(400)
    with short_trainings(times=1):
        model = estimator.set_params(random_state=0).fit(x, y)
    typical = np.median(np.diff(model.predict_interval(x, 0.9), axis=1))
    length = np.ptp(x)
    outside = x.max() + length * np.array([0.05, 0.1, 0.2, 0.4, 1.0, 10.0])
    widths = np.diff(model.predict_interval(outside[:, None], 0.9), axis=1)
    assert widths.min() >= 0.98 * typical


@pytest.mark.parametrize("estimator", [MVERegressor(), AutoRegressor(effort="low")])
@pytest.mark.parametrize("n", [9, 10])
def test_no_standard_deviation_is_above_twice_the_range(estimator, n):
    for seed in range(2):
        rng = np.random.default_rng(seed)
        x, y = rng.normal(size=(n, 2)), rng.standard_cauchy(n)
        with short_trainings():
            model = estimator.set_params(random_state=0).fit(x, y)
        for rows in (x, 3 * x, 1e6 * x):
            assert model.predict(rows, return_std=True)[1].max() <= 2 * np.ptp(y)


@pytest.mark.parametrize("ratio", [2.0, 5.0])
def test_the_quick_one_finds_noise_and_tiny_changes_do_not_matter(ratio):
    x, y, _ = table(n=500, ratio=ratio)
    stds = []
    for change in (0.0, 1e-9):
        shaken = y + change * np.random.default_rng(5).standard_normal(500)
        model = MVERegressor(random_state=0).fit(x, shaken)
        stds.append(model.predict(NEW, return_std=True)[1])
    for std in stds:
        found = np.median(std[0.15 * (ratio > 2) + 0.1 < NEW_STD]) / np.median(std[NEW_STD <= 0.1])
        assert 0.6 * ratio < found < 1.5 * ratio
    assert np.median(np.abs(np.log(stds[0] / stds[1]))) < 0.15
