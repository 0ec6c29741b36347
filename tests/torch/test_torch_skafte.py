"""The training of Skafte, Jørgensen and Hauberg: batches of neighbours, and variance far away."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip(
    "mvenet.torch", reason="needs PyTorch and skorch: make test-torch", exc_type=ImportError
)
import torch
from torch import nn

from mvenet.torch import FarVarianceNet, LocalityBatches, TorchMVERegressor

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
