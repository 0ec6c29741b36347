"""A search does not depend on units, threads or chance."""

from __future__ import annotations

import numpy as np
import pytest
from fitted import assert_same_bits
from numpy.testing import assert_allclose, assert_array_equal
from searches import W, X, Y, assert_same_search, fast, split_scores

# --- units and determinism -----------------------------------------------------------------------


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("a", [2.0**-30, 0.5, 2.0**50])
def test_powers_of_two_change_units_to_the_bit(a, scale):
    model, scaled = fast(scale=scale).fit(X, Y), fast(scale=scale).fit(X, a * Y)
    assert scaled.model_.scale == model.model_.scale
    assert scaled.model_.networks.parameters.tobytes() == model.model_.networks.parameters.tobytes()
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
    assert_allclose(other.model_.scale, model.model_.scale, rtol=2e-3)
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
    assert model.model_.scale > 0 and np.isfinite(model.best_score_)


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
    assert model.model_.scale == 1
