"""What our pieces cost: a bare PyTorch loop, our pieces in a loop, and the estimator, in one run.

    .venv-torch/bin/python benchmarks/torch_loop.py

The bare loop does what anybody would write: the same two networks, batches and Adam, with
``GaussianNLLLoss``, one weight decay for all and ``clip_grad_value_``; once with PyTorch's default
Adam and once with the fused one. Times are of the processor,
so that a busy machine does not decide; the best of several rounds, taken in turns.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

from mvenet.torch import (
    Adam,
    GaussianNLL,
    MeanVarianceNet,
    Schedule,
    TorchMVERegressor,
    param_groups,
)

BATCH, ROWS = 64, 1024


def cnn() -> nn.Module:
    """A small network for 8 × 8 images."""
    return nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Conv2d(8, 16, 3), nn.ReLU(), nn.Flatten(),
        nn.Linear(256, 32), nn.ReLU(), nn.Linear(32, 1),
    )  # fmt: skip


def perceptron() -> nn.Module:
    """The paper's network, on the same images."""
    return nn.Sequential(
        nn.Flatten(), nn.Linear(64, 40), nn.ELU(), nn.Linear(40, 20), nn.ELU(), nn.Linear(20, 1)
    )


def batches(X: Tensor, y: Tensor) -> DataLoader:
    """Batches cut out of tensors at once."""
    data = TensorDataset(X, y)
    return DataLoader(
        data, batch_size=None, sampler=BatchSampler(RandomSampler(data), BATCH, False)
    )


def bare(
    make: Callable[[], nn.Module], X: Tensor, y: Tensor, epochs: int, fused: bool = False
) -> None:
    """What one would write without mvenet."""
    mean, variance = make(), make()
    params = [*mean.parameters(), *variance.parameters()]
    optimizer, loss = torch.optim.Adam(params, weight_decay=1e-4, fused=fused), nn.GaussianNLLLoss()
    for _ in range(epochs):
        total = 0.0
        for inputs, target in batches(X, y):
            optimizer.zero_grad()
            value = loss(mean(inputs)[:, 0], target, variance(inputs)[:, 0].exp())
            value.backward()
            torch.nn.utils.clip_grad_value_(params, 5.0)
            optimizer.step()
            total += value.item()


def fused(make: Callable[[], nn.Module], X: Tensor, y: Tensor, epochs: int) -> None:
    """The same with Adam in one call, as our pieces have it."""
    bare(make, X, y, epochs, fused=True)


def pieces(make: Callable[[], nn.Module], X: Tensor, y: Tensor, epochs: int) -> None:
    """The same loop with our pieces."""
    net, loss = MeanVarianceNet(make(), make()), GaussianNLL()
    optimizer = Adam(param_groups(net, 1e-4, 1e-3))
    schedule = Schedule(net, optimizer, strategy="no-warmup", epochs=epochs)
    while not schedule.finished:
        schedule.begin_epoch()
        total = 0.0
        for inputs, target in batches(X, y):
            optimizer.zero_grad()
            value = loss(net(inputs), target)
            value.backward()
            schedule.step()
            total += value.item()
        schedule.end_epoch()


def estimator(make: Callable[[], nn.Module], X: Tensor, y: Tensor, epochs: int) -> None:
    """The estimator, skorch's loop included."""
    TorchMVERegressor(
        lambda: MeanVarianceNet(make(), make()), strategy="no-warmup", epochs=epochs,
        batch_size=BATCH, random_state=0, device="cpu",
    ).fit(X, y)  # fmt: skip


def main() -> None:
    """Print steps a second of each way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    X = torch.tensor(rng.normal(size=(ROWS, 1, 8, 8)), dtype=torch.float32)
    y = X.mean(dim=(1, 2, 3)) * 8
    steps = options.epochs * -(-ROWS // BATCH)
    print(f"PyTorch {torch.__version__}, one thread, batches of {BATCH}, µs of processor a step")
    print("network      bare loop  fused Adam  our pieces  estimator  estimator of bare, of fused")
    for name, make in (("convolution", cnn), ("perceptron", perceptron)):
        best = dict.fromkeys((bare, fused, pieces, estimator), np.inf)
        for way in best:
            way(make, X, y, 1)  # what is imported or compiled the first time
        for _ in range(options.rounds):
            for way in best:
                start = time.process_time()
                way(make, X, y, options.epochs)
                best[way] = min(best[way], (time.process_time() - start) / steps)
        a, b, c, d = (1e6 * seconds for seconds in best.values())
        print(f"{name:12} {a:9.0f}  {b:10.0f}  {c:10.0f}  {d:9.0f}  {a / d:17.2f}  {b / d:8.2f}")


if __name__ == "__main__":
    main()
