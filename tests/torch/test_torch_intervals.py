"""Quality-driven intervals: what they learn, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

pytest.importorskip(
    "mvenet.torch", reason="needs PyTorch and skorch: make test-torch", exc_type=ImportError
)
import torch
from torch import nn

from mvenet import metrics
from mvenet.distributions import Normal
from mvenet.torch import MeanVarianceNet, QualityDrivenRegressor

torch.set_num_threads(1)


def net():
    return MeanVarianceNet(nn.Linear(1, 1), nn.Linear(1, 1))


RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (600, 1))
Y = 50 + 10 * (X[:, 0] + np.exp(X[:, 0] - 1.5) * RNG.normal(size=600))
NEW = RNG.uniform(-1, 1, (2000, 1))
TRUTH = 50 + 10 * (NEW[:, 0] + np.exp(NEW[:, 0] - 1.5) * RNG.normal(size=2000))


@pytest.fixture(scope="module")
def model():
    settings = {"epochs": 300, "warmup_epochs": 30, "reg_var": 0.0, "random_state": 0}
    return QualityDrivenRegressor(net, **settings).fit(X, Y)


def test_intervals_hold_what_they_say_and_follow_the_noise(model):
    low, high = model.predict_interval(NEW).T
    held = np.mean((low < TRUTH) & (high > TRUTH))
    assert 0.86 < held < 0.95
    constant = 2 * np.quantile(np.abs(TRUTH - model.predict(NEW)), held)
    assert (high - low).mean() < 0.9 * constant  # as many rows in less
    at_ends = model.predict_interval([[-1.0], [1.0]])
    assert 2 < np.divide(*np.diff(at_ends)[::-1, 0]) < np.exp(2)  # the noise is e² times as large
    np.testing.assert_allclose(model.predict(NEW), (low + high) / 2)


def test_the_score_is_minus_the_interval_score(model):
    low, high = model.predict_interval(NEW).T
    same = Normal((low + high) / 2, (high - low) / 2 / 1.6448536269514722)
    assert model.score(NEW, TRUTH) == pytest.approx(-metrics.interval_score(TRUTH, same), rel=1e-9)
    search = GridSearchCV(clone(model).set_params(epochs=2), {"reg_mean": [0.0, 1.0]}, cv=2)
    assert search.fit(X[:60], Y[:60]).best_params_["reg_mean"] in (0.0, 1.0)


def test_same_seed_same_bits_and_globals_untouched(model):
    torch.manual_seed(5)
    state = torch.get_rng_state()
    one, two = (clone(model).set_params(epochs=3).fit(X, Y).predict_interval(X) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    assert torch.equal(state, torch.get_rng_state())


@pytest.mark.parametrize("name", ["predict_dist", "logpdf", "predict_quantiles"])
def test_a_density_is_refused_by_name(model, name):
    assert not hasattr(model, name)
    with pytest.raises(AttributeError, match=f"has no {name}: quality-driven intervals have two"):
        getattr(model, name)(X)


def test_what_it_cannot_do_is_said(model):
    with pytest.raises(ValueError, match="no density"):
        model.predict(X, return_std=True)
    with pytest.raises(ValueError, match=r"coverage=0\.5 was not trained for, 0\.9 was"):
        model.predict_interval(X, 0.5)
    with pytest.raises(ValueError, match="takes no sample_weight"):
        clone(model).fit(X, Y, sample_weight=np.ones(600))
    with pytest.raises(TypeError, match="n_members"):
        QualityDrivenRegressor(net, n_members=5)
    with pytest.raises(ValueError, match="'coverage' parameter"):
        QualityDrivenRegressor(net, coverage=90).fit(X, Y)
    tails = lambda: MeanVarianceNet(nn.Linear(1, 1), None, tails=nn.Linear(1, 1))  # noqa: E731
    with pytest.raises(ValueError, match="module has tails"):
        QualityDrivenRegressor(tails).fit(X, Y)
    with pytest.raises(TypeError, match="MeanVarianceNet"):
        QualityDrivenRegressor(nn.Linear(1, 1)).fit(X, Y)
    with pytest.raises(ValueError, match="so far"):
        model.predict(np.array([[1e300]]))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = model.nonsense
