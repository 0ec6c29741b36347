"""The training of Skafte, Jørgensen and Hauberg: batches of neighbours, and variance far away."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip(
    "mvenet.torch", reason="needs PyTorch and skorch: make test-torch", exc_type=ImportError
)
import torch
from sklearn.base import clone
from torch import nn

from mvenet import metrics
from mvenet.torch import (
    FarVarianceNet,
    LocalityBatches,
    MeanVarianceNet,
    Schedule,
    SkafteRegressor,
    TorchMVERegressor,
)

torch.set_num_threads(1)
RNG = np.random.default_rng(0)
X = np.concatenate([RNG.normal(0, 0.1, (40, 2)), RNG.normal(3, 2.0, (20, 2))])


def test_a_batch_has_neighbours_of_a_few_rows():
    batches = LocalityBatches(X, primary=3, secondary=5, neighbours=10, random_state=0)
    assert len(batches) == 4
    distance = np.linalg.norm(X[:, None] - X, axis=2)
    tenth = np.sort(distance, axis=1)[:, 9]
    for rows, weight in batches:
        assert rows.shape == weight.shape == (15,)
        for part in rows.numpy().reshape(3, 5):
            assert len(set(part)) == 5
            assert (distance[:, part] <= tenth[:, None] + 1e-12).all(axis=1).any()


def test_the_weighted_loss_of_a_batch_is_that_of_all_rows_on_average():
    batches = LocalityBatches(X, primary=2, secondary=4, neighbours=8, random_state=1)
    loss = RNG.uniform(size=len(X)) / batches.weights**2  # large for rows that are drawn often
    found, plain = [], []
    for _ in range(800):
        for rows, weight in batches:
            found.append(np.mean(weight.numpy() * loss[rows]))
            plain.append(np.mean(loss[rows]))
    error = np.std(found) / np.sqrt(len(found))
    assert abs(np.mean(found) - loss.mean()) < 4 * error
    assert abs(np.mean(plain) - loss.mean()) > 10 * error  # the weights are needed


def test_copies_are_drawn_too():
    batches = LocalityBatches(np.zeros((30, 1)), 1, 2, 3, random_state=0)
    drawn = {int(row) for _ in range(100) for rows, _ in batches for row in rows}
    assert drawn == set(range(30))
    assert np.isfinite(batches.weights).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"primary": 0}, "primary=0"),
        ({"neighbours": 61}, "neighbours=61 must be a whole number from 1 to 60"),
        ({"secondary": 9, "neighbours": 8}, "secondary=9"),
        ({"primary": 2.5}, "primary=2.5"),
        ({"X": X[:, 0]}, r"got shape \(60,\)"),
        ({"X": np.full((60, 1), np.nan)}, "finite"),
    ],
)
def test_what_are_no_batches(settings, message):
    with pytest.raises(ValueError, match=message):
        LocalityBatches(**{"X": X} | settings)


def far(**settings):
    return FarVarianceNet(nn.Linear(2, 1), nn.Linear(2, 1), X, **settings)


def test_the_variance_is_the_networks_at_the_data_and_the_given_one_far_away():
    torch.manual_seed(0)
    net = far(far=7.0, length=0.5)
    x = torch.tensor(np.concatenate([X[:5], np.full((1, 2), 1e4)]), dtype=torch.float32)
    mean, log_variance = net(x)
    own = torch.logaddexp(net.variance(x)[:, 0], net.log_floor).exp()
    expected = own[:5] * (1 - 1 / 1001) + 7 / 1001
    torch.testing.assert_close(log_variance[:5].exp(), expected, rtol=1e-4, atol=0)
    assert log_variance[5].exp().item() == pytest.approx(7.0)
    torch.testing.assert_close(mean, net.mean(x)[:, 0])
    net.enter("warmup")
    assert (net(x)[1] == 1).all()


def test_the_estimator_trains_it_and_its_length():
    y = X[:, 0] + 0.1 * RNG.normal(size=len(X))
    settings = {"epochs": 30, "warmup_epochs": 30, "learning_rate": 0.05, "random_state": 0}
    model = TorchMVERegressor(far, **settings).fit(X, y)
    length = model.networks_[0].log_length.item()
    assert np.isfinite(length) and length != 0
    _, std = model.predict(np.array([[0.0, 0.0], [1e6, -1e6]]), return_std=True)
    assert std[1] == pytest.approx(model.y_scale_[0], rel=1e-3)
    assert std[0] < 0.5 * std[1]


def test_what_is_no_such_network():
    with pytest.raises(ValueError, match="use no trunk"):
        far(trunk=nn.Identity())
    with pytest.raises(ValueError, match="far=0"):
        far(far=0)
    with pytest.raises(ValueError, match="centres must be a table"):
        FarVarianceNet(nn.Linear(1, 1), None, [1.0, 2.0])


# --- all of it -----------------------------------------------------------------------------------


def test_variance_and_mean_take_turns():
    net = MeanVarianceNet(nn.Linear(2, 1), nn.Linear(2, 1))
    rows = [(torch.zeros(3, 2), torch.arange(3.0))]
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    schedule = Schedule(net, optimizer, strategy="alternating", warmup_epochs=2, epochs=4)
    seen = []
    while not schedule.finished:
        schedule.begin_epoch(rows)
        assert net.stage == schedule.stage
        before = {name: p.detach().clone() for name, p in net.named_parameters()}
        optimizer.zero_grad()
        (net(torch.ones(1, 2))[0] + net(torch.ones(1, 2))[1]).sum().backward()
        schedule.step()
        moved = {n.split(".")[0] for n, p in net.named_parameters() if not p.equal(before[n])}
        seen.append((net.stage, *moved))
        schedule.end_epoch()
    turns = [("variance", "variance"), ("mean", "mean")]
    assert seen == [("warmup", "mean")] * 2 + turns * 2


SKAFTE = {"epochs": 80, "warmup_epochs": 20, "centres": 20, "batch_size": 64, "random_state": 0}


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(3)
    X = 100 * rng.uniform(-1, 1, (800, 2)) + 1000
    std = np.where(X[:, 0] > 1000, 1.0, 0.1)
    y = X[:, 0] / 50 + std * rng.normal(size=800)
    return SkafteRegressor(**SKAFTE).fit(X, y), X, y


def test_it_learns_mean_and_noise_and_says_what_it_does_not_know(fitted):
    model, X, y = fitted
    places = np.array([[1050.0, 1000.0], [950.0, 1000.0], [1e5, 1e5]])
    mean, std = model.predict(places, return_std=True)
    np.testing.assert_allclose(mean[:2], [21.0, 19.0], atol=0.3)
    np.testing.assert_allclose(std[:2], [1.0, 0.1], rtol=0.4)
    # far away the scale is that of y, and the std as much larger as the tails make it
    assert 1 <= std[2] / y.std() <= np.sqrt(3) + 1e-3
    assert 0.84 < metrics.coverage(y, model.predict_dist(X)) < 0.96
    turns = list(dict.fromkeys(model.regressor_.history_["stage"]))
    assert turns == ["warmup", "variance", "mean"]


def test_it_does_not_depend_on_units_and_is_the_same_again(fitted):
    model, X, y = fitted
    settings = {"epochs": 4, "warmup_epochs": 2}
    one, same = (clone(model).set_params(**settings).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(one.predict(X), same.predict(X))
    other = clone(model).set_params(**settings).fit(1e3 * X, 10 * y)
    np.testing.assert_allclose(other.predict(1e3 * X), 10 * one.predict(X), rtol=1e-3)


def test_neighbours_change_what_is_trained_only_after_the_warmup(fitted):
    _, X, y = fitted
    Z = (X - 1000) / 60
    settings = {"epochs": 2, "warmup_epochs": 2, "random_state": 0}
    make = lambda: MeanVarianceNet(nn.Linear(2, 1), nn.Linear(2, 1))  # noqa: E731
    plain, nearby = (
        TorchMVERegressor(make, neighbours=k, **settings).fit(Z, y) for k in (None, 20)
    )
    losses = plain.history_["nll"], nearby.history_["nll"]
    np.testing.assert_array_equal(losses[0][:2], losses[1][:2])
    assert (losses[0][2:] != losses[1][2:]).all()


def test_weights_and_frames(fitted):
    _, X, y = fitted
    few = SkafteRegressor(**SKAFTE | {"epochs": 2, "warmup_epochs": 2, "n_members": 2})
    weight = np.r_[np.ones(50), np.zeros(750)]
    weighted = clone(few).fit(X, y, sample_weight=weight)
    alone = clone(few).fit(X[:50], y[:50])
    np.testing.assert_allclose(weighted.predict(X[:9]), alone.predict(X[:9]), rtol=1e-6)
    assert len(alone.regressor_.networks_) == 2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"neighbours": 1}, "'neighbours' parameter"),
        ({"centres": 0}, "'centres' parameter"),
        ({"far": -1.0}, "'far' parameter"),
        ({"activation": "softmax"}, "'activation' parameter"),
        ({"hidden": (0,)}, "hidden"),
        ({"reg_var": "own"}, "'reg_var' parameter"),
    ],
)
def test_bad_parameters(settings, message):
    with pytest.raises(ValueError, match=message):
        SkafteRegressor(**settings).fit(X, X[:, 0])


def test_what_it_cannot_do_is_said():
    with pytest.raises(ValueError, match="NaN"):
        SkafteRegressor().fit(np.full((9, 1), np.nan), np.arange(9.0))
    with pytest.raises(NotImplementedError, match=r"regressor_\.save"):
        SkafteRegressor().save("model")
    make = lambda: MeanVarianceNet(nn.Flatten(), nn.Flatten())  # noqa: E731
    model = TorchMVERegressor(make, neighbours=4)
    with pytest.raises(ValueError, match=r"neighbours=4 needs a table.*rows of shape \(1, 1\)"):
        model.fit(np.zeros((9, 1, 1)), np.arange(9.0))
    with pytest.raises(ValueError, match="neighbours=99 must be a whole number from 1 to 60"):
        TorchMVERegressor(far, neighbours=99).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="'strategy' parameter"):
        TorchMVERegressor(far, strategy="alternate").fit(X, X[:, 0])
    net = MeanVarianceNet(nn.Linear(2, 1), nn.Linear(2, 1), natural=True)
    with pytest.raises(ValueError, match="natural parametrisation are one"):
        TorchMVERegressor(net, strategy="alternating", objective="natural").fit(X, X[:, 0])
