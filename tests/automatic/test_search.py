"""AutoRegressor by itself: a blend of means, noise from rows left out, one mixture."""

from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from shorter import short_trainings
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from two_noises import NEW, NEW_STD, NEW_Y, X, Y

from mvenet import AutoRegressor, MVERegressor, Normal, NormalMixture, load, metrics
from mvenet._estimators.base import described, fit_together
from mvenet._models.means import NetworkMean
from mvenet._training.plan import Plan, planned_steps

RNG = np.random.default_rng(0)


@pytest.fixture
def short():
    """Few gradient steps in a test, though not in those of the model that most look at."""
    with short_trainings():
        yield


@pytest.fixture(scope="module")
def brief():
    """A search of three folds and few gradient steps: nobody changes it."""
    with short_trainings():
        return AutoRegressor(cv=3, random_state=0, n_jobs=2).fit(X, Y)


def test_it_finds_mean_and_noise(found):
    mean, std = found.predict(NEW, return_std=True)
    truth = np.sin(2 * NEW[:, 0]) + NEW[:, 1] ** 2
    assert np.sqrt(np.mean((mean - truth) ** 2)) < 0.25
    loud, quiet = np.median(std[NEW_STD > 0.3]), np.median(std[NEW_STD < 0.3])
    assert loud > 1.3 * quiet
    low, high = found.predict_interval(NEW, 0.9).T
    assert 0.84 < np.mean((low <= NEW_Y) & (high >= NEW_Y)) < 0.97


def test_all_ways_to_predict_agree(found):
    dist = found.predict_dist(NEW)
    mean, std = found.predict(NEW, return_std=True)
    assert isinstance(dist, NormalMixture)
    assert_allclose(dist.mean, mean, atol=1e-12)
    assert_allclose(dist.std, std, rtol=1e-12)
    assert_allclose(dist.var, std**2, rtol=1e-9)
    assert (dist.epistemic > 0).all() and (dist.aleatoric >= 0).all()
    alone = found.predict(NEW[3:4], return_std=True)
    assert_allclose(np.ravel(alone), [mean[3], std[3]], rtol=1e-12)


def test_what_it_tells(found):
    results = found.cv_results_
    assert np.nansum(results["share"]) == pytest.approx(1)
    assert np.nansum(results["weight"]) == pytest.approx(1)
    assert len({len(column) for column in results.values()}) == 1
    assert {"trees", "linear"} <= set(results["name"])
    blended = np.sqrt(np.mean((Y - found.oof_mean_) ** 2))
    assert blended < 1.1 * np.nanmin(results["rmse"])
    assert "rows left out" in found.summary_ and "differs between rows" in found.summary_
    # Rows left out are judged by networks that did not see them: no better than new rows.
    new = found.predict_dist(NEW).logpdf(NEW_Y).mean()
    assert found.best_score_ == pytest.approx(new, abs=0.35)


def test_threads_and_repetition_change_no_bit(brief, short):
    again = AutoRegressor(cv=3, random_state=0, n_jobs=1).fit(X, Y)
    for one, other in zip(
        again.predict(NEW, return_std=True), brief.predict(NEW, return_std=True), strict=True
    ):
        assert one.tobytes() == other.tobytes()
    assert clone(again).get_params() == again.get_params()


@pytest.mark.parametrize("factor", [1e-9, 1e9])
def test_units_of_y_and_x_do_not_matter(brief, short, factor):
    scaled = AutoRegressor(cv=3, random_state=0).fit(X * factor, factor * Y + 5 * factor)
    mean, std = scaled.predict(NEW * factor, return_std=True)
    wanted = brief.predict(NEW, return_std=True)
    assert_allclose(mean / factor - 5, wanted[0], atol=0.1)
    assert np.median(std / factor / wanted[1]) == pytest.approx(1, abs=0.1)


def test_files_hold_all_of_it(found, tmp_path):
    found.save(tmp_path / "model.mve")
    again = load(tmp_path / "model.mve")
    assert again.predict(NEW).tobytes() == found.predict(NEW).tobytes()
    assert again.summary_ == found.summary_
    assert (tmp_path / "model.mve").stat().st_size < 25e6


def test_far_away_it_is_bounded_and_not_sure(found):
    typical = np.median(found.predict(X, return_std=True)[1])
    length = Y.max() - Y.min()
    for factor in (3, 10, 1e3, 1e9, 1e150):
        mean, std = found.predict(X * factor, return_std=True)
        outside = (np.abs(X * factor) > 4).any(axis=1)
        assert np.isfinite(mean).all() and np.isfinite(std).all()
        assert mean.min() >= Y.min() - length and mean.max() <= Y.max() + length
        assert std[outside].min() > typical and std.max() < 2 * length


def test_the_quick_one_is_not_far_from_the_search(found):
    quick = MVERegressor(random_state=0).fit(X, Y)
    assert quick.predict_dist(NEW).logpdf(NEW_Y).mean() > (
        found.predict_dist(NEW).logpdf(NEW_Y).mean() - 0.3
    )
    assert "rows left out" in quick.summary_


@pytest.mark.parametrize("rounds", [0, 1, 2])
def test_ctrl_c_keeps_a_whole_model_if_there_is_one(brief, short, rounds):
    model = AutoRegressor(cv=3, random_state=0)
    _, (plan,) = described([model], X, Y)
    done = planned_steps([Plan(plan.rounds[:rounds])])

    def press(steps):
        if steps > done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit_together([model], X, Y, progress=press)
    if not rounds:
        with pytest.raises(NotFittedError):
            model.predict(NEW)
        return
    tried = model.cv_results_["name"].tolist()
    assert tried.count("joint network") == 1 and "noise network" not in tried
    assert "trees" in tried and ("network" in tried) is (rounds == 2)
    assert "stopped" in model.summary_ and "stopped" not in brief.summary_
    assert model.fingerprint_ == brief.fingerprint_ and model.n_steps_ == done
    constant = Normal(np.full(len(NEW_Y), Y.mean()), np.full(len(NEW_Y), Y.std()))
    assert metrics.crps(NEW_Y, model.predict_dist(NEW)) < 0.4 * metrics.crps(NEW_Y, constant)


def test_ctrl_c_at_the_end_keeps_the_folds_networks(brief, short):
    model = AutoRegressor(cv=3, random_state=0)

    def press(steps):
        if steps > brief.n_steps_ - 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit_together([model], X, Y, progress=press)
    assert model.cv_results_["name"].tolist() == brief.cv_results_["name"].tolist()
    for name in ("share", "weight"):  # a free shape knows besides what the last training brings
        assert_array_equal(model.cv_results_[name], brief.cv_results_[name])
    assert {len(networks) for networks in of_means(model)} == {3}  # folds
    assert min(len(networks) for networks in of_means(brief)) >= 4  # starts
    crps = {m: metrics.crps(NEW_Y, m.predict_dist(NEW)) for m in (model, brief)}
    assert crps[model] < 1.3 * crps[brief]


class Pressing(LinearRegression):
    """Ctrl-C is pressed while it is fitted to all rows: what every model that has it needs."""

    presses = 1

    def fit(self, X, y):
        if len(y) == len(Y) and Pressing.presses:
            Pressing.presses -= 1
            raise KeyboardInterrupt
        return super().fit(X, y)


def test_ctrl_c_while_the_model_is_put_together_keeps_it(short, monkeypatch):
    model = AutoRegressor(cv=3, candidates=[Pressing()], effort="low", random_state=0)
    y = X @ np.arange(1.0, X.shape[1] + 1)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert "stopped" in model.summary_ and metrics.crps(y, model.predict_dist(X)) < 0.1
    monkeypatch.setattr(Pressing, "presses", 2)  # who insists is heard
    with pytest.raises(KeyboardInterrupt):
        clone(model).fit(X, y)
    assert Pressing.presses == 0


def of_means(model):
    """The networks of each mean in the blend."""
    means = model.model_.means
    return [m.networks for m in means if isinstance(m, NetworkMean)]


@pytest.mark.slow
def test_it_looks_further_only_where_that_pays():
    rng = np.random.default_rng(3)
    x = rng.uniform(-2, 2, (120, 2))
    smooth, noisy = np.sin(3 * x[:, 0]) * x[:, 1], rng.standard_normal(120)

    def tried(y, effort):
        model = AutoRegressor(cv=2, random_state=0, effort=effort, candidates="networks")
        return set(model.fit(x, y).cv_results_["reg_mean"])

    with short_trainings(4):
        assert 1e-5 in tried(smooth, "medium")
    with short_trainings():
        assert 1e-5 not in tried(noisy, "medium")
        low = tried(noisy, "low")
    assert 1e-5 not in low and 1e-4 in low


class Known(LinearRegression):
    """Predicts the truth, so that nothing else has a share."""

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.sin(3 * X[:, 0]) * X[:, 1]


def test_a_second_start_is_for_long_trainings_that_have_a_share():
    x = np.random.default_rng(3).uniform(-2, 2, (120, 2))
    y = Known().fit(x, None).predict(x)
    for others, most in (([], 2), ([Known()], 1)):
        with short_trainings(4):
            model = AutoRegressor(cv=2, random_state=0, candidates=["networks", *others])
            tried = model.fit(x, y).cv_results_
        kinds = zip(tried["name"].tolist(), tried["reg_mean"].tolist(), strict=True)
        long = [kind for kind in kinds if "joint" not in kind[0] and kind[1] < 1e-4]
        assert max(map(long.count, long)) == most


def test_networks_alone_and_another_seed(brief, short):
    other = AutoRegressor(candidates="networks", cv=3, random_state=1).fit(X, Y)
    assert not {"trees", "linear"} & set(other.cv_results_["name"])
    assert other.best_score_ > brief.best_score_ - 0.3
    assert other.oof_fold_.tolist() != brief.oof_fold_.tolist()
    assert other.oof_mean_.tolist() != brief.oof_mean_.tolist()


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (RNG.normal(size=(8, 2)), RNG.normal(size=8)),
        (RNG.normal(size=(40, 1)), np.full(40, 7.0)),
        (np.ones((40, 3)), RNG.normal(size=40)),
        (RNG.normal(size=(12, 20)), RNG.normal(size=12)),
        (np.repeat(RNG.normal(size=(5, 2)), 8, axis=0), np.repeat(RNG.normal(size=5), 8)),
        (RNG.normal(size=(60, 2)), np.append(RNG.normal(size=59), 1e12)),
    ],
    ids=["few", "constant y", "constant X", "wide", "identical rows", "outlier"],
)
def test_odd_tables_give_a_model(short, X, y):
    model = AutoRegressor(cv=2, random_state=0).fit(X, y)
    mean, std = model.predict(X, return_std=True)
    dist = model.predict_dist(X)
    assert np.isfinite(mean).all() and np.isfinite(std).all() and (std > 0).all()
    assert np.isfinite(dist.logpdf(y)).all() and np.isfinite(dist.interval(0.9)).all()
    json.dumps(model.summary_)
