"""Free shapes: recognised where they are, nothing where they are not; bounds, atoms, bad input."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from shorter import short_trainings
from sklearn.linear_model import BayesianRidge, LinearRegression

from mvenet import AutoRegressor
from mvenet._automatic.atoms import atoms_of, resolution
from mvenet._automatic.plan import checked_bounds
from mvenet._models.free_shape import GivenQuantiles, spread
from mvenet.distributions import Normal, NormalMixture, WithAtoms

pytestmark = pytest.mark.usefixtures("short")

QUICK = {"effort": "low", "cv": 3, "candidates": ["linear", "trees"], "random_state": 0}


def two_modes(n=400):
    """With equal chances y is above or below by two: no normal around the mean fits."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, 2))
    side = np.where(rng.random(n) < 0.5, -2.0, 2.0)
    return X, X[:, 0] + side + 0.2 * rng.standard_normal(n)


def zero_rain(n=400):
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (n, 2))
    wet = rng.random(n) < 1 / (1 + np.exp(-3 * X[:, 0]))
    return X, np.where(wet, np.exp(0.5 * X[:, 1] + 0.4 * rng.standard_normal(n)), 0.0)


def grades(n=400):
    rng = np.random.default_rng(2)
    X = rng.uniform(-1, 1, (n, 2))
    return X, np.round(np.clip(3 + 1.5 * X[:, 0] + 0.8 * rng.standard_normal(n), 1, 6))


@pytest.fixture(scope="module")
def rain():
    X, y = zero_rain()
    with short_trainings(times=1):
        return AutoRegressor(**QUICK).fit(X, y), X, y


# --- what is recognised --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "step"),
    [
        ([1.0, 2.0, 2.0, 4.0], 1.0),
        ([0.1, 0.3, 0.2, 0.3], 0.1),
        ([5.0, 5.0], 0.0),
        ([1e9, 1e9 + 1, 1e9 + 3], 1.0),
        ([0.1 + 0.2, 0.3, 0.7], 0.4),  # a rounding error is no step
    ],
)
def test_the_resolution_is_the_smallest_step(y, step):
    assert_allclose(resolution(np.array(y)), step, atol=1e-12)


def test_values_of_a_grid_are_atoms_with_cells_from_midpoint_to_midpoint():
    y = np.repeat([1.0, 2.0, 4.0], 20)
    atoms = atoms_of(y, 1.0)
    assert_array_equal(atoms.values, [1, 2, 4])
    assert_array_equal(atoms.cells, [[-np.inf, 1.5], [1.5, 3.0], [3.0, np.inf]])


def test_a_value_that_many_rows_share_is_an_atom_among_others_that_are_none():
    y = np.concatenate([np.zeros(30), np.linspace(1, 2, 70)])
    atoms = atoms_of(y, 0.01)
    assert_array_equal(atoms.values, [0.0])
    assert_array_equal(atoms.cells, [[-np.inf, 0.5]])


@pytest.mark.parametrize("y", [np.linspace(0, 1, 50), np.ones(50)], ids=["unique", "constant"])
def test_no_atoms_where_values_differ_or_do_not_at_all(y):
    assert atoms_of(y, 0.1) is None


def test_the_spread_is_the_standard_deviation_of_values():
    values = np.random.default_rng(0).normal(size=(25, 6)) + 1e6
    assert_allclose(spread(values), values.std(axis=0), rtol=1e-6)
    assert_array_equal(spread(np.full((25, 3), 0.1)), 0.0)


# --- what the search makes of it -----------------------------------------------------------------


def test_two_modes_are_found_and_told():
    X, y = two_modes()
    model = AutoRegressor(**QUICK).fit(X[:300], y[:300])
    dist = model.predict_dist(X[300:])
    normal = Normal(dist.mean, dist.std)
    assert dist.logpdf(y[300:]).mean() > normal.logpdf(y[300:]).mean() + 0.2
    assert dist.crps(y[300:]).mean() < 0.97 * normal.crps(y[300:]).mean()
    assert "The shape is free" in model.summary_
    regions = dist.hdi(0.8)
    assert np.mean([len(region) > 1 for region in regions]) > 0.8
    inside = [
        any(low <= value <= high for low, high in region)
        for region, value in zip(regions, y[300:], strict=True)
    ]
    assert 0.7 < np.mean(inside) < 0.98
    short, central = (
        model.predict_interval(X[300:], 0.9, kind=kind) for kind in ("shortest", "central")
    )
    assert (np.diff(short) <= np.diff(central) + 1e-9).all()


def test_the_shape_of_residuals_is_that_of_the_noise_in_every_row():
    """Noise of two modes around a steep line: no tree names what the line needs."""
    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 1, (400, 2))
    y = 20 * X[:, 0] + np.where(rng.random(400) < 0.5, -2.0, 2.0) + 0.2 * rng.standard_normal(400)
    model = AutoRegressor(**QUICK).fit(X[:300], y[:300])
    free = model.model_.free
    assert free.residuals is not None and abs(free.residuals.quantiles).max() < 2
    dist = model.predict_dist(X[300:])
    truth = NormalMixture(20 * X[300:, 0] + [[-2.0], [2.0]], np.full((2, 100), 0.2))
    normal = Normal(dist.mean, dist.std)
    got, most, least = (d.logpdf(y[300:]).mean() for d in (dist, truth, normal))
    assert least + 0.6 * (most - least) < got < most
    assert 0.8 < np.mean(dist.interval(0.9)[:, 0] <= y[300:]) <= 1.0


def test_zeros_are_an_atom_and_its_probability_follows_the_row(rain):
    model, X, _ = rain
    dist = model.predict_dist(X)
    assert isinstance(dist, WithAtoms) and dist.atoms.tolist() == [0.0]
    dry = dist.pmf(0.0)
    assert np.corrcoef(dry, X[:, 0])[0, 1] < -0.7
    new = np.random.default_rng(3).uniform(-1, 1, (2_000, 2))
    chance = 1 - 1 / (1 + np.exp(-3 * new[:, 0]))
    assert np.abs(model.predict_dist(new).pmf(0.0) - chance).mean() < 0.08
    assert (dist.ppf(0.01) >= 0).all() and (dist.sample(20, random_state=0) >= 0).all()
    assert "Values with a probability of their own: 0." in model.summary_
    mean, std = model.predict(X, return_std=True)
    assert_allclose(mean, dist.mean, rtol=1e-12)
    assert_allclose(std, dist.std, rtol=1e-12)


def test_prediction_of_a_row_depends_on_no_other_row(rain):
    model, X, _ = rain
    whole = model.predict(X, return_std=True)
    alone = [model.predict(X[[i]], return_std=True) for i in range(30)]
    for part in range(2):
        assert_array_equal(np.concatenate([one[part] for one in alone]), whole[part][:30])


def test_grades_have_probabilities_that_sum_to_one():
    X, y = grades()
    model = AutoRegressor(**QUICK).fit(X, y)
    dist = model.predict_dist(X[:50])
    assert_allclose(sum(dist.pmf(value) for value in np.unique(y)), 1.0)
    assert np.isin(dist.ppf([0.05, 0.5, 0.95]), np.unique(y)).all()
    assert_allclose(dist.logpdf(y[:50]), np.log(dist.pmf(y[:50])), atol=0.01)
    assert model.oof_mean_.shape == y.shape and np.isfinite(model.best_score_)


def test_normal_noise_loses_nothing_by_free_shapes():
    """Chance gives trees a share now and then: it must cost next to nothing."""
    scores = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X, new = rng.normal(size=(300, 2)), rng.normal(size=(4000, 2))
        y, outcome = (Z[:, 0] + rng.standard_normal(len(Z)) for Z in (X, new))
        model = AutoRegressor(**QUICK).fit(X, y)
        assert model.model_.atoms is None
        scores.append(model.predict_dist(new).crps(outcome).mean())
    assert np.mean(scores) < 1.03 / np.sqrt(np.pi)  # the CRPS of the truth


def test_the_same_bits_whatever_the_threads():
    X, y = zero_rain(200)
    one, two = (
        AutoRegressor(**QUICK, n_jobs=jobs).fit(X, y).predict_dist(X).crps(y) for jobs in (1, 2)
    )
    assert_array_equal(one, two)


def test_scoring_by_crps_is_no_worse_by_it(rain):
    X, y = two_modes()
    model = AutoRegressor(**QUICK, scoring="crps").fit(X[:300], y[:300])
    usual = AutoRegressor(**QUICK).fit(X[:300], y[:300])
    own, other = (m.predict_dist(X[300:]).crps(y[300:]).mean() for m in (model, usual))
    assert own < 1.05 * other


# --- bounds --------------------------------------------------------------------------------------


def test_nothing_leaves_the_bounds():
    rng = np.random.default_rng(4)
    X = rng.uniform(-1, 1, (200, 2))
    y = np.clip(0.5 + 0.5 * X[:, 0] + 0.3 * rng.standard_normal(200), 0.001, 0.999)
    model = AutoRegressor(**QUICK, bounds=(0, 1)).fit(X, y)
    far = np.vstack([X, 10 * X])
    dist = model.predict_dist(far)
    for values in (dist.mean, dist.ppf([1e-6, 0.5, 1 - 1e-6]), dist.sample(50, random_state=0)):
        assert (values >= 0).all() and (values <= 1).all()
    for kind in ("central", "shortest"):
        ends = model.predict_interval(far, 0.999, kind=kind)
        assert (ends >= 0).all() and (ends <= 1).all()
    low = AutoRegressor(**QUICK, bounds=(0, None)).fit(X, y).predict_dist(far)
    assert (low.ppf(1e-6) >= 0).all()


@pytest.mark.parametrize(
    ("bounds", "what"),
    [
        ((0, 0.5), r"row 1 .*beyond bounds=\(0, 0.5\)"),
        ((0.2, None), "row 0"),
        ((1, 1), "must rise"),
        ((0, np.nan), "no number"),
        ((0, np.inf), "no number"),
        ((0,), "two numbers"),
        ((0, 1, 2), "two numbers"),
        (("a", 1), "two numbers"),
    ],
    ids=str,
)
def test_bounds_that_make_no_sense_are_told(bounds, what):
    with pytest.raises(ValueError, match=what):
        checked_bounds(bounds, np.array([0.1, 0.9, 0.4]))


# --- densities of the user's own -----------------------------------------------------------------


class Nameless(LinearRegression):
    """Predicts a distribution that is not one."""

    def predict_dist(self, X):
        mean = self.predict(X)
        return Normal(mean, np.full(len(mean), np.nan))


class TooFew(LinearRegression):
    """Predicts the distribution of one row less than there are."""

    def predict_dist(self, X):
        mean = self.predict(X)
        return Normal(mean[:-1], np.ones(len(mean) - 1))


def test_a_density_of_the_users_own_joins_as_one():
    X, y = two_modes(200)
    settings = QUICK | {"candidates": ["linear", BayesianRidge()]}
    model = AutoRegressor(**settings).fit(X, y)
    names = list(model.cv_results_["name"])
    assert "BayesianRidge" in names
    if model.model_.free is not None:
        assert type(model.model_.free.samplers[0]) is GivenQuantiles
    assert np.isfinite(model.predict_dist(X).crps(y)).all()


@pytest.mark.parametrize("given", [Nameless(), TooFew()], ids=repr)
def test_a_density_of_no_use_is_named(given):
    X, y = two_modes(100)
    with pytest.raises(ValueError, match=f"the distribution that {type(given).__name__} predicts"):
        AutoRegressor(**QUICK | {"candidates": ["linear", given]}).fit(X, y)


# --- odd tables ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "y",
    [
        np.arange(60) % 2,
        np.where(np.arange(60) == 7, 3.0, 1.0),
        np.arange(60) % 5 + 10**9,
        np.repeat(np.arange(30), 2) * 1e-300,
        np.round(np.linspace(0, 300, 60)) * 1e290,
    ],
    ids=["two values", "one value but once", "large integers", "tiny", "huge"],
)
def test_odd_values_give_a_finite_distribution(y):
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(60, 2)), rng.permutation(y)
    model = AutoRegressor(**QUICK).fit(X, y.astype(float))
    mean, std = model.predict(X, return_std=True)
    assert np.isfinite(mean).all() and np.isfinite(std).all() and (std > 0).all()
    dist = model.predict_dist(X)
    assert np.isfinite(dist.logpdf(y)).all() and np.isfinite(dist.interval(0.9)).all()
    assert np.isfinite(dist.crps(y.astype(float))).all()


def test_atoms_on_the_log_scale_are_values_that_occur():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = np.round(np.exp(3 + 0.3 * X[:, 0] + 0.2 * rng.normal(size=200)))
    model = AutoRegressor("low", ["trees"], "log", cv=2, random_state=0).fit(X, y)
    atoms = model.model_.atoms.values
    assert set(atoms) <= set(y)  # exp(log 25) is not 25
    assert (model.predict_dist(X).pmf(atoms[len(atoms) // 2]) > 0).any()
