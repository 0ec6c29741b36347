"""Does it keep its word on data whose truth is known? Minutes: make test-slow."""

import numpy as np
import pytest

from mvenet import MVERegressor, MVERegressorCV, datasets

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:The best reg")]


def wavy(n, seed):
    """Five columns, two of them in the mean, one in the noise; std from 0.2 to 0.8."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 5))
    mean = np.sin(3 * X[:, 0]) + X[:, 1]
    std = 0.4 * 2.0 ** X[:, 2]
    return X, mean + std * rng.standard_normal(n), mean, std


def test_mean_and_standard_deviation_are_recovered():
    X, y, _, _ = wavy(20_000, 0)
    fresh, _, mean, std = wavy(5_000, 1)
    model = MVERegressor(n_members=4, random_state=0).fit(X, y)
    found_mean, found_std = model.predict(fresh, return_std=True)
    assert np.sqrt(np.mean((found_mean - mean) ** 2)) < 0.1 * std.mean()
    assert np.sqrt(np.mean((found_std / std - 1) ** 2)) < 0.1


def test_intervals_cover_what_they_say_over_replications():
    # 30 replications of 500 rows, each judged on 2,000 fresh rows: the mean coverage is known to
    # about 0.003. The factor on std comes from four members and is used on twenty, so intervals may
    # be a little wide; they must not be narrow.
    covered = {0.5: [], 0.9: [], 0.99: []}
    for seed in range(30):
        X, y, _, _ = wavy(500, 100 + seed)
        fresh, y_fresh, _, _ = wavy(2_000, 1_000 + seed)
        model = MVERegressorCV(cv=5, random_state=seed).fit(X, y)
        ends = model.predict_interval(fresh, coverage=list(covered))
        inside = (ends[:, :, 0] <= y_fresh[:, None]) & (y_fresh[:, None] <= ends[:, :, 1])
        for coverage, share in zip(covered, inside.mean(axis=0), strict=True):
            covered[coverage].append(share)
    means = {coverage: float(np.mean(shares)) for coverage, shares in covered.items()}
    for coverage, share in means.items():
        assert coverage - 0.01 < share < coverage + 0.025, means


def test_without_a_warm_up_the_sine_is_lost_and_with_it_found():
    sample = datasets.sine(random_state=0)
    settings = {
        "hidden_mean": (50, 50, 50),
        "hidden_var": (50, 50, 50),
        "activation": "silu",
        "batch_size": 16,
        "learning_rate": 5e-3,
        "reg_mean": 0.0,
        "reg_var": 0.0,
        "n_members": 8,
        "random_state": 0,
    }
    warm = MVERegressor(warmup_epochs=2000, epochs=200, **settings)
    cold = MVERegressor(strategy="no-warmup", epochs=2200, **settings)
    errors = []
    for model in (warm, cold):
        means, _ = model.fit(sample.X, sample.y).networks_.predict(sample.X)
        errors.append(np.sqrt(np.mean((means - sample.mean) ** 2, axis=1)))
    assert np.median(errors[0]) < 0.02, errors
    assert (errors[0] < 0.05).sum() >= 7, errors
    assert (errors[1] > 0.1).sum() >= 7, errors
