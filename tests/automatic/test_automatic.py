"""AutoRegressor by itself: a blend of means, noise from rows left out, one mixture."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import KFold, RepeatedKFold, TimeSeriesSplit

from mvenet import (
    AutoRegressor,
    CalibratedRegressor,
    LogNormalMixture,
    MVERegressor,
    NormalMixture,
    load,
    metrics,
)
from mvenet._automatic import baselines, refit, stacking
from mvenet._automatic.out_of_fold import OutOfFold
from mvenet._estimators.base import described, fit_together
from mvenet._models import mixture
from mvenet._models.architecture import Architecture
from mvenet._models.forest import Forest
from mvenet._models.means import NetworkMean
from mvenet._models.networks import Networks
from mvenet._models.piecewise import Piecewise
from mvenet._models.seen import Range
from mvenet._training.fleet import derived_seed
from mvenet._training.plan import Plan, Table, planned_steps

RNG = np.random.default_rng(0)


def table(n=240, seed=0, ratio=5.0):
    """A smooth mean, noise that differs by the sign of a column, one column that says nothing."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 4))
    std = np.where(X[:, 2] > 0, 0.1 * ratio, 0.1)
    return X, np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + std * rng.standard_normal(n), std


X, Y, STD = table()
NEW, NEW_Y, NEW_STD = table(seed=1)


@pytest.fixture(scope="module")
def found():
    return AutoRegressor(cv=3, random_state=0).fit(X, Y)


# --- the parts -----------------------------------------------------------------------------------


def test_pieces_rise_within_their_quantiles_and_are_flat_beyond():
    x = RNG.exponential(size=(500, 2))
    piecewise = Piecewise.of(x)
    encoded = piecewise.encode(x)
    assert encoded.shape == (500, 2 + 32) and encoded.dtype == np.float32
    assert encoded[:, 2:].min() == 0 and encoded[:, 2:].max() == 1
    # The sum of a column's pieces counts the quantiles below a value, and so its rank.
    rank = stats.rankdata(x[:, 0]) / 500
    assert_allclose(encoded[:, 2:18].sum(axis=1) / 16, rank, atol=0.05)
    far = piecewise.encode(np.array([[1e9, -1e9], [x[:, 0].max(), x[:, 1].min()]]))
    assert_array_equal(far[0, 2:], far[1, 2:])
    assert np.abs(far[:, :2]).max() <= 3


def test_pieces_of_constant_binary_and_many_columns():
    x = np.column_stack([np.ones(50), RNG.integers(0, 2, 50), RNG.normal(size=50)])
    piecewise = Piecewise.of(x)
    assert np.bincount(piecewise.column, minlength=3)[:2].tolist() == [0, 1]
    assert np.isfinite(piecewise.encode(x)).all()
    assert Piecewise.of(RNG.normal(size=(30, 700))).encode(np.zeros((2, 700))).shape[1] <= 1_400


@pytest.mark.parametrize("hidden", [(), (5,), (40, 20), (70, 3)])
@pytest.mark.parametrize("further", [False, True])
def test_the_engine_reads_pieces_as_they_are_written_down(hidden, further):
    rng = np.random.default_rng(7)
    x = np.column_stack([rng.normal(size=(90, 3)), np.ones(90), rng.integers(0, 3, 90)])
    piecewise = Piecewise.of(x)
    x[0], x[1], x[2] = 1e300, -1e9, piecewise.low[:5]  # far away, and where pieces meet
    last = 1e6 + rng.normal(size=90) if further else None
    z = piecewise.bounded(x).astype(np.float64)
    parts = np.clip((x[:, piecewise.column] - piecewise.low) / piecewise.width, 0, 1)
    written = np.column_stack([z, parts, *([last] if further else [])])
    architecture = Architecture(hidden, hidden, "silu")
    inputs, several = written.shape[1], 3
    sizes = [list(pairwise(part)) for part in architecture.sizes(inputs)]
    count = sum((a + 1) * b for pairs in sizes for a, b in pairs)
    mean = written[10:].mean(axis=0) + 0.01 * rng.normal(size=(several, inputs))
    networks = Networks(
        architecture,
        0.2 * rng.normal(size=(several, count)),
        mean,
        np.maximum(written[10:].std(axis=0), 0.1) * rng.uniform(0.9, 1.1, (several, inputs)),
        rng.normal(size=several),
        rng.uniform(1, 2, several),
    )
    expected = networks.predict(written)
    told = networks.predict(x, piecewise=piecewise, last=last)
    assert_allclose(told, expected, rtol=2e-6, atol=2e-6)  # columns are written in float32
    single = replace(networks, parameters=networks.parameters.astype(np.float32))
    told = single.predict(x, piecewise=piecewise, last=last)
    assert_allclose(told, expected, rtol=5e-5, atol=5e-5)
    assert_array_equal(told, single.predict(x, 2, piecewise=piecewise, last=last))
    for row in (0, 2, 33, 89):  # alone as among others
        at = slice(row, row + 1)
        alone = single.predict(x[at], piecewise=piecewise, last=None if last is None else last[at])
        assert_array_equal(np.array(alone)[..., 0], np.array(told)[..., row])


def test_a_forest_is_scikit_learns(tmp_path):
    x = RNG.normal(size=(300, 3)).round(1)  # ties, which lie on thresholds
    y = x[:, 0] ** 2 + RNG.normal(size=300)
    forest = ExtraTreesRegressor(20, random_state=0).fit(x, y)
    ours = Forest.of(forest.estimators_, 0.0, 1.0)
    new = np.vstack([x, RNG.normal(size=(5000, 3)) * 3])
    assert_allclose(ours.predict(new, threads=2), forest.predict(new), atol=1e-6)
    best_first = ExtraTreesRegressor(5, max_leaf_nodes=9, random_state=0).fit(x, y)
    again = Forest.of(best_first.estimators_, 0.0, 1.0)
    assert_allclose(again.predict(new), best_first.predict(new), atol=1e-6)


def test_trees_are_those_of_scikit_learns_forest_and_leave_the_filters_of_warnings_alone():
    before = list(warnings.filters)
    every = np.arange(len(Y))
    folds = [(np.setdiff1d(every, test), test) for test in np.array_split(every, 8)]
    left = OutOfFold(Table(X, Y, None, every), folds, log=False)
    trees = baselines.judged(["trees"], left, folds, 0, threads=4)[0]
    assert warnings.filters == before
    forest = ExtraTreesRegressor(100, random_state=derived_seed(0, 1, 0, 0, 0) % 2**32)
    for train, test in folds:
        center, scale = Y[train].mean(), Y[train].std()
        expected = forest.fit(X[train], (Y[train] - center) / scale).predict(X[test])
        assert_allclose(trees.mean[test], center + scale * expected, atol=1e-5)


def test_blend_is_constrained_least_squares():
    y = RNG.normal(size=400)
    means = np.array([y + 0.5 * RNG.normal(size=400), y + RNG.normal(size=400), y + 10])
    weight = np.ones(400)
    shares = stacking.blend(means, y, weight)
    assert shares.sum() == pytest.approx(1) and shares[2] == 0
    errors = [
        np.mean((y - w * means[0] - (1 - w) * means[1]) ** 2) for w in np.linspace(0, 1, 1001)
    ]
    assert shares[0] == pytest.approx(np.argmin(errors) / 1000, abs=2e-3)


def test_shape_recovers_factor_and_exponent_despite_outliers():
    log_std = RNG.normal(size=4000)
    residual = 3.0 * np.exp(0.5 * log_std) * RNG.standard_t(4, 4000)
    residual[:20] *= 1e6
    shape = stacking.shape(residual, log_std, np.ones(4000), 1e-9, np.inf)
    assert shape.exponent == pytest.approx(0.5, abs=0.05)
    assert np.exp(shape.offset) == pytest.approx(3.0, rel=0.1)
    assert shape.applied(np.array([1e3]))[0] <= 0.5 * log_std.max() + shape.offset + 1


def test_mixture_of_multiples_is_as_likely_as_the_truth():
    y = RNG.standard_t(3, 5000)
    fresh = RNG.standard_t(3, 5000)
    zeros = np.zeros((1, 5000))
    weights = stacking.mix(y, zeros, zeros, np.ones(5000))
    assert weights.sum() == pytest.approx(1) and (weights >= 0).all()
    log_density = mixture.log_density(fresh, zeros, zeros, weights)
    kept = np.flatnonzero(weights[0])
    stds = np.tile(mixture.MULTIPLES[kept, None], 5000)
    _, std = mixture.moments(np.zeros_like(stds), stds, weights[0, kept], log=False)
    ours = NormalMixture(
        np.zeros((len(kept), 5000)),
        np.tile(mixture.MULTIPLES[kept, None], 5000),
        weights[0, kept],
    )
    assert_allclose(log_density, ours.logpdf(fresh), rtol=1e-9)
    assert_allclose(std, ours.std, rtol=1e-9)
    truth = stats.t(3).logpdf(fresh).mean()
    assert log_density.mean() == pytest.approx(truth, abs=0.02)
    assert stats.norm(0, y.std()).logpdf(fresh).mean() < truth - 0.1  # what it is measured against


def test_the_variance_that_is_added_grows_from_nothing_within_to_that_of_y_far_outside():
    rows = np.array([[0.5, 5.0], [2.0, 5.0], [3.0, 5.0], [1e300, 5.0], [0.5, 6.0], [1.025, 5.0]])
    for typical in (0.0, 3.0):
        seen = Range.of(np.array([[0.0, 5.0], [1.0, 5.0]]), np.array([0.0, 2.0]), typical)
        added = seen.added_variance(rows, seen.within(rows), unknown_std=2.0)
        far = np.array([0, 0.5, 0.8, 1, 0.5, 0.025**2 / (1 + 0.025**2)])
        near = np.array([0, 1, 1, 1, 1, 0.25])
        assert_allclose(added, 4 * far + typical**2 * near, atol=1e-12)


# --- the whole -----------------------------------------------------------------------------------


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


def test_threads_and_repetition_change_no_bit(found):
    again = AutoRegressor(cv=3, random_state=0, n_jobs=1).fit(X, Y)
    assert again.predict(NEW).tobytes() == found.predict(NEW).tobytes()
    assert clone(again).get_params() == again.get_params()


@pytest.mark.parametrize("factor", [1e-9, 1e9])
def test_units_of_y_and_x_do_not_matter(found, factor):
    scaled = AutoRegressor(cv=3, random_state=0).fit(X * factor, factor * Y + 5 * factor)
    mean, std = scaled.predict(NEW * factor, return_std=True)
    wanted = found.predict(NEW, return_std=True)
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


# --- on the log scale ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def positive():
    """A target as money is: noise that grows with the value."""
    rng = np.random.default_rng(5)
    x = rng.uniform(-2, 2, (300, 3))
    y = np.exp(1 + x[:, 0] + np.sin(2 * x[:, 1]) + 0.3 * rng.standard_normal(300))
    return x, y, AutoRegressor(cv=3, random_state=0).fit(x, y)


def test_a_skewed_target_is_modelled_by_its_logarithm(positive):
    x, y, model = positive
    assert isinstance(model.predict_dist(x), LogNormalMixture)
    assert "logarithm of the target" in model.summary_
    assert (model.predict_quantiles(x, [1e-6, 0.5]) > 0).all()
    error = np.log(model.predict_dist(x).ppf(0.5) / y)
    assert error.std() < 0.35
    plain = AutoRegressor(cv=3, random_state=0, target="identity").fit(x, y)
    assert plain.best_score_ < model.best_score_ - 0.05
    assert isinstance(plain.predict_dist(x), NormalMixture)
    assert "logarithm of y" not in plain.summary_


def test_all_ways_to_predict_agree_on_the_log_scale(positive, tmp_path):
    x, y, model = positive
    dist = model.predict_dist(x)
    mean, std = model.predict(x, return_std=True)
    assert_allclose(mean, dist.mean, rtol=1e-12)
    assert_allclose(std, dist.std, rtol=1e-9)
    assert_allclose(dist.var, dist.std**2, rtol=1e-9)
    assert_allclose(model.logpdf(x, y), dist.logpdf(y))
    assert_allclose(mean, dist.sample(20_000, 0).mean(axis=0), rtol=0.1)
    model.save(tmp_path / "model.mve")
    assert load(tmp_path / "model.mve").predict(x).tobytes() == mean.tobytes()
    assert model.oof_mean_.min() > 0


def test_units_of_y_shift_its_logarithm_only(positive):
    x, y, model = positive
    again = AutoRegressor(cv=3, random_state=0).fit(x, 1e6 * y)
    assert_allclose(again.predict(x) / 1e6, model.predict(x), rtol=1e-3)


def test_far_away_it_is_bounded_on_the_log_scale(positive):
    x, y, model = positive
    typical = np.median(model.predict_dist(x).logs.std)
    for factor in (3, 1e3, 1e150):
        far = factor * x[(np.abs(factor * x) > 4).any(axis=1)]
        mean, std = model.predict(far, return_std=True)
        assert mean.min() > 0 and mean.max() < 25 * y.max() and std.max() < 300 * y.max()
        assert model.predict_dist(far).logs.std.min() > typical


@pytest.mark.parametrize("method", ["conformal", "scale"])
def test_calibration_on_the_log_scale(positive, method):
    x, y, model = positive
    quick = clone(model).set_params(candidates=["linear"])
    calibrated = CalibratedRegressor(quick, method=method).fit(x, y)
    inner, outer = calibrated.predict_interval(x, [0.2, 0.9]).transpose(1, 0, 2)
    assert (outer[:, 0] > 0).all() and (outer[:, 0] <= inner[:, 0]).all()
    assert (inner[:, 0] < inner[:, 1]).all() and (inner[:, 1] <= outer[:, 1]).all()
    inside = np.mean((outer[:, 0] <= y) & (y <= outer[:, 1]))
    assert 0.85 < inside <= 1  # of rows that it was trained on
    assert isinstance(calibrated.predict_dist(x), LogNormalMixture)


def test_calibration_by_folds_of_its_own_uses_what_they_predict(positive):
    x, y, _ = positive
    calibrated = CalibratedRegressor(MVERegressor(random_state=0), cv=3).fit(x, y)
    low, high = calibrated.predict_interval(x, 0.9).T
    assert (low > 0).all() and np.mean((low <= y) & (y <= high)) > 0.8


@pytest.mark.parametrize("estimator", [MVERegressor, AutoRegressor])
def test_a_target_that_has_no_logarithm(estimator):
    with pytest.raises(ValueError, match=r"target='log' needs a y that is positive.* holds -"):
        estimator(target="log").fit(X, Y)


# --- without a search ----------------------------------------------------------------------------


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


def test_the_quick_one_is_not_far_from_the_search(found):
    quick = MVERegressor(random_state=0).fit(X, Y)
    assert quick.predict_dist(NEW).logpdf(NEW_Y).mean() > (
        found.predict_dist(NEW).logpdf(NEW_Y).mean() - 0.3
    )
    assert "rows left out" in quick.summary_


# --- choices -------------------------------------------------------------------------------------


@pytest.mark.parametrize("rounds", [0, 1, 2])
def test_ctrl_c_keeps_a_whole_model_if_there_is_one(found, rounds):
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
    assert "stopped" in model.summary_ and "stopped" not in found.summary_
    assert model.fingerprint_ == found.fingerprint_ and model.n_steps_ == done
    crps = {m: metrics.crps(NEW_Y, m.predict_dist(NEW)) for m in (model, found)}
    assert crps[model] < 1.3 * crps[found]


def test_ctrl_c_at_the_end_keeps_the_folds_networks(found):
    model = AutoRegressor(cv=3, random_state=0)

    def press(steps):
        if steps > found.n_steps_ - 100:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit_together([model], X, Y, progress=press)
    assert model.cv_results_["name"].tolist() == found.cv_results_["name"].tolist()
    assert_array_equal(model.oof_std_, found.oof_std_)
    assert {len(networks) for networks in of_means(model)} == {3}  # folds
    assert min(len(networks) for networks in of_means(found)) >= 4  # starts
    crps = {m: metrics.crps(NEW_Y, m.predict_dist(NEW)) for m in (model, found)}
    assert crps[model] < 1.3 * crps[found]


class Pressing(LinearRegression):
    """Ctrl-C is pressed while it is fitted to all rows: what every model that has it needs."""

    presses = 1

    def fit(self, X, y):
        if len(y) == len(Y) and Pressing.presses:
            Pressing.presses -= 1
            raise KeyboardInterrupt
        return super().fit(X, y)


def test_ctrl_c_while_the_model_is_put_together_keeps_it(monkeypatch):
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


def test_what_the_model_knows_more_than_the_folds_networks_is_measured():
    rng = np.random.default_rng(0)
    n = 200_000
    y, common, more = rng.normal(size=(3, n)) * np.array([[1.0], [0.6], [0.5]])
    own = 0.4 * rng.normal(size=(4, n))  # differs from start to start
    rows = np.arange(n)
    folds = [(rows[rows % 5 != f], rows[rows % 5 == f]) for f in range(5)]
    left = OutOfFold(Table(np.zeros((n, 1)), y, None, rows), folds, log=False)
    growth = np.log(5 / 4) / np.log(4 / 3)
    curve = refit._LearningCurve(left, {}, growth)
    gain = curve._gain(common + own[0], common + more + own[2:], np.full(n, 3.0), 1.0)
    first, further = 1 + 0.36 + 0.16, 1 + 0.36 + 0.25 + 0.16
    assert_allclose(gain.known, np.sqrt(first / further) ** growth, rtol=0.01)
    assert_allclose(gain.random, 0.16 / further, rtol=0.05)
    assert gain.rows == n
    assert_allclose(gain.factor(1), gain.known, rtol=1e-3)
    assert gain.known * np.sqrt(1 - gain.random) < gain.factor(10) < gain.factor(2) < gain.known
    # Networks that are averages of two starts are better already: there is less to gain.
    twice = common + own[:2].mean(axis=0)
    averages = curve._gain(twice, common + more + own[2:], np.full(n, 3.0), 0.5)
    assert_allclose(averages.factor(2), gain.known, rtol=0.01)
    share = np.sqrt((1 - 0.9 * gain.random) / (1 - 0.5 * gain.random))
    assert_allclose(averages.factor(10), gain.known * share, rtol=0.01)
    nothing = curve._gain(common, np.array([common, common]), np.full(n, 3.0), 1.0)
    assert nothing.factor(4) == 1.0


def test_intervals_of_a_table_without_noise_are_not_too_wide():
    x, y = smooth(500, 0)
    new, new_y = smooth(4_000, 1)
    model = AutoRegressor(cv=5, random_state=0, candidates="networks").fit(x, y)
    low, high = model.predict_interval(new, 0.9).T
    assert 0.85 < np.mean((low <= new_y) & (new_y <= high)) < 0.95
    left_out = np.sqrt(np.mean((y - model.oof_mean_) ** 2))
    assert np.sqrt(np.mean((new_y - model.predict(new)) ** 2)) < 0.9 * left_out


def smooth(n, seed):
    x = np.random.default_rng(seed).uniform(-2, 2, (n, 3))
    return x, np.sin(3 * x[:, 0]) * x[:, 1] + np.cos(2 * x[:, 2])


def test_it_looks_further_only_where_that_pays():
    rng = np.random.default_rng(3)
    x = rng.uniform(-2, 2, (200, 2))
    smooth = np.sin(3 * x[:, 0]) * x[:, 1]
    noisy = rng.standard_normal(200)
    tried = {
        (name, effort): set(
            AutoRegressor(cv=2, random_state=0, effort=effort, candidates="networks")
            .fit(x, y)
            .cv_results_["reg_mean"]
        )
        for name, y in (("smooth", smooth), ("noisy", noisy))
        for effort in ("low", "medium")
    }
    assert 1e-5 in tried["smooth", "medium"] and 1e-5 not in tried["noisy", "medium"]
    assert 1e-5 not in tried["smooth", "low"] and 1e-4 in tried["noisy", "low"]


def test_any_regressor_can_be_a_mean(tmp_path):
    y = 3 * X[:, 0] + 0.1 * np.random.default_rng(7).normal(size=len(X))
    given = AutoRegressor(candidates=[LinearRegression()], cv=3, random_state=0).fit(X, y)
    share = dict(zip(given.cv_results_["name"], given.cv_results_["share"], strict=True))
    assert share["LinearRegression"] > 0.5
    assert given.predict(X) == pytest.approx(3 * X[:, 0], abs=0.1)
    with pytest.raises(ValueError, match="LinearRegression"):
        given.save(tmp_path / "model.mve")
    boosted = HistGradientBoostingRegressor(max_iter=20, random_state=0)
    both = AutoRegressor(candidates=["networks", boosted], cv=3, random_state=0).fit(X, Y)
    assert "HistGradientBoostingRegressor" in both.cv_results_["name"]


def test_networks_alone_and_another_seed(found):
    other = AutoRegressor(candidates="networks", cv=3, random_state=1).fit(X, Y)
    assert not {"trees", "linear"} & set(other.cv_results_["name"])
    assert other.best_score_ > found.best_score_ - 0.3
    assert other.oof_fold_.tolist() != found.oof_fold_.tolist()
    assert other.oof_mean_.tolist() != found.oof_mean_.tolist()


class Broken(Ridge):
    def __init__(self, answer="nan"):
        self.answer = answer
        super().__init__()

    def fit(self, X, y, sample_weight=None):
        if self.answer == "fail":
            raise RuntimeError("no licence")
        return self

    def predict(self, X):
        return np.full(len(X), np.nan) if self.answer == "nan" else np.ones((len(X), 2))


@pytest.mark.parametrize(
    ("answer", "words"),
    [("nan", "not finite"), ("shape", r"shape \(80, 2\)"), ("fail", "no licence")],
)
def test_a_mean_that_fails_is_named(answer, words):
    with pytest.raises(ValueError, match=words) as caught:
        AutoRegressor(candidates=[Broken(answer)], cv=3).fit(X, Y)
    assert "Broken" in str(caught.value)


@pytest.mark.parametrize("means", [[], ["forest"], [3], "tree"])
def test_means_that_are_none(means):
    with pytest.raises(ValueError, match="candidates"):
        AutoRegressor(candidates=means, cv=3).fit(X, Y)


@pytest.mark.parametrize(
    "cv", [RepeatedKFold(n_splits=2, n_repeats=2, random_state=0), TimeSeriesSplit(3), KFold(2)]
)
def test_folds_that_overlap_or_leave_rows_in(cv):
    model = AutoRegressor(candidates=["linear"], cv=cv, random_state=0).fit(X[:90], Y[:90])
    left = np.zeros(90, dtype=bool)
    for _, test in cv.split(X[:90]):
        left[test] = True
    assert_array_equal(np.isnan(model.oof_mean_), ~left)
    assert np.isfinite(model.predict(NEW)).all()


def test_weights_count_as_rows_and_zero_as_none():
    weight = np.ones(len(Y))
    weight[:60] = 0
    y = Y.copy()
    y[:60] += 1e6
    means = ["linear", "trees"]
    kept = AutoRegressor(candidates=means, cv=3, random_state=0).fit(X, y, sample_weight=weight)
    assert np.abs(kept.predict(NEW)).max() < 20
    assert np.isnan(kept.oof_mean_[:60]).all() and np.isfinite(kept.oof_mean_[60:]).all()


# --- tables that are hardly any ------------------------------------------------------------------


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
def test_odd_tables_give_a_model(X, y):
    model = AutoRegressor(cv=2, random_state=0).fit(X, y)
    mean, std = model.predict(X, return_std=True)
    dist = model.predict_dist(X)
    assert np.isfinite(mean).all() and np.isfinite(std).all() and (std > 0).all()
    assert np.isfinite(dist.logpdf(y)).all() and np.isfinite(dist.interval(0.9)).all()
    json.dumps(model.summary_)
