"""paper/relatives_together.py: starts that are trained at once are trained as each by itself."""

from __future__ import annotations

import copy
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip(
    "mvenet.torch", reason="needs PyTorch and skorch: make test-torch", exc_type=ImportError
)
sys.path.insert(0, str(Path(__file__).parents[2] / "paper"))

import relatives_together
import torch
from relatives_torch import separate, trunk, with_tails
from torch import nn

from mvenet.torch import (
    Adam,
    FarVarianceNet,
    GaussianNLL,
    LocalityBatches,
    QualityDrivenLoss,
    Schedule,
    StudentTNLL,
    param_groups,
)

torch.set_num_threads(1)
RNG = np.random.default_rng(0)
X = torch.tensor(RNG.normal(size=(2, 50, 1)), dtype=torch.float32)
Y = torch.sin(3 * X[:, :, 0]) + 0.1 * torch.tensor(RNG.normal(size=(2, 50)), dtype=torch.float32)


def far(columns, activation=nn.ELU):
    net = with_tails(columns, activation)
    return FarVarianceNet(net.mean, net.variance, X[0, :9], tails=net.tails)


def in_order(x, y, size, *_):
    for first in range(0, y.shape[1], size):
        yield x[:, first : first + size], y[:, first : first + size], None


def alone(net, x, y, losses, plan):
    """One start by the library's own pieces."""
    batches = [(x[i : i + plan.batch_size], y[i : i + plan.batch_size])
               for i in range(0, len(y), plan.batch_size)]  # fmt: skip
    optimizer = Adam(param_groups(net, 0.0, 0.0), lr=plan.learning_rate)
    schedule = Schedule(
        net, optimizer, epochs=plan.epochs, warmup_epochs=plan.warmup_epochs,
        strategy="alternating" if len(plan.turns) > 1 else "warmup", schedule=plan.schedule,
        steps_per_epoch=len(batches),
    )  # fmt: skip
    while not schedule.finished:
        loss = losses[schedule.stage != "warmup"]
        schedule.begin_epoch(batches)
        for inputs, target in batches:
            optimizer.zero_grad()
            loss(net(inputs), target).backward()
            schedule.step()
        schedule.end_epoch()
    return net


@pytest.mark.parametrize(
    ("make", "losses", "turns"),
    [
        (trunk, (GaussianNLL(), GaussianNLL()), ("joint",)),
        (with_tails, (StudentTNLL(None), StudentTNLL(None)), ("joint",)),
        (far, (StudentTNLL(None), StudentTNLL(None)), ("variance", "mean")),
        (separate, (GaussianNLL(), QualityDrivenLoss()), ("joint",)),
    ],
)
def test_each_start_is_trained_as_by_itself(monkeypatch, make, losses, turns):
    monkeypatch.setattr(relatives_together, "shuffled", in_order)
    torch.manual_seed(0)
    nets = [make(1, nn.SiLU) for _ in range(2)]
    plan = relatives_together.Plan(6, 4, batch_size=20, turns=turns)
    together = relatives_together.Together(copy.deepcopy(nets))
    together.fit(X, Y, losses, plan, seed=0)
    for k, net in enumerate(nets):
        before = net(X[k])[0].detach().clone()
        after = alone(net, X[k], Y[k], losses, plan)(X[k])
        for part, own in zip(together(X), after, strict=True):
            torch.testing.assert_close(part[k], own.detach(), rtol=1e-3, atol=1e-4)
        assert (after[0] - before).abs().max() > 0.05  # it has been trained


def test_batches_of_neighbours_are_those_of_the_library():
    nearby = [LocalityBatches(rows, 2, 3, 5, k) for k, rows in enumerate(X)]
    found = list(relatives_together.neighbours(X, Y, 6, np.random.default_rng(0), nearby))
    assert len(found) == len(nearby[0])
    seen = [set(), set()]
    for x, y, weight in found:
        assert x.shape == (2, 6, 1) and y.shape == weight.shape == (2, 6)
        for k, own in enumerate(nearby):
            rows = [int((Y[k] == outcome).nonzero()[0, 0]) for outcome in y[k]]
            torch.testing.assert_close(x[k], X[k][rows])
            torch.testing.assert_close(weight[k].double(), torch.as_tensor(own.weights[rows]))
            for part in (rows[:3], rows[3:]):
                assert len(set(part)) == 3
                assert any(set(part) <= set(near) for near in own.nearest)
            seen[k] |= set(rows)
    assert all(len(rows) > 25 for rows in seen)


@pytest.mark.parametrize("name", ["Skafte et al.", "quality-driven"])
def test_the_sine_is_predicted_in_its_units(name):
    from mvenet.datasets import Sample

    x, y = np.linspace(5, 6, 40), 100 + np.arange(40.0)
    samples = [Sample(x[:, None], y, y, np.ones(40)) for _ in range(2)]
    at = np.linspace(5, 6, 7)
    for mean, std in relatives_together.of_the_sine(name, samples, at, epochs=60):
        assert np.abs(mean - np.linspace(100, 139, 7)).max() < 8
        assert (std > 0).all() and (std < 20).all()
