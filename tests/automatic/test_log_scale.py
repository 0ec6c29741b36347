"""A positive target that is modelled by its logarithm."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from two_noises import X, Y

from mvenet import (
    AutoRegressor,
    CalibratedRegressor,
    LogNormalMixture,
    MVERegressor,
    NormalMixture,
    load,
)

pytestmark = pytest.mark.usefixtures("short")


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
    # Rounding may decide between two steps towards a free shape that are about as good.
    assert_allclose(again.predict(x) / 1e6, model.predict(x), rtol=0.02)


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
