"""Training of several starts of a PyTorch network at once, each on rows of its own.

A step of one small network is nearly all overhead. Here one step is that of all starts: their
weights are stacked, and the gradient of all is one graph, traced once. Nothing else differs from
``TorchMVERegressor``: the networks, the losses, Adam, clipping and the stages are the library's,
and no start feels another. Only without penalties.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from figures import SINE
from relatives_torch import UNITS, separate, trunk, with_tails
from sklearn.cluster import KMeans
from torch import Tensor, nn
from torch.func import functional_call, grad, stack_module_state, vmap
from torch.fx.experimental.proxy_tensor import make_fx

from mvenet.datasets import Sample
from mvenet.torch import (
    Adam,
    GaussianNLL,
    LocalityBatches,
    MeanVarianceNet,
    QualityDrivenLoss,
    StudentTNLL,
)
from mvenet.torch._reliable import _network
from mvenet.torch._schedule import SCHEDULES
from mvenet.torch._training import random_starts

Array = np.ndarray

CLIP = 5.0
Batch = tuple[Tensor, Tensor, Tensor | None]  # inputs (k, n, d), targets and weights (k, n)


@dataclass(frozen=True)
class Plan:
    """How all starts are trained: the lengths of warm-up and what follows, in epochs."""

    epochs: int
    warmup_epochs: int
    batch_size: int = SINE["batch_size"]
    learning_rate: float = SINE["learning_rate"]
    schedule: str = SINE["schedule"]
    turns: tuple[str, ...] = ("joint",)  # stages that take turns after the warm-up


class Together:
    """Stacked starts, trained by ``fit`` and run by calling them."""

    def __init__(self, nets: Sequence[MeanVarianceNet]) -> None:
        self.net = nets[0]
        weights, self.buffers = stack_module_state(list(nets))
        self.weights = {name: value.detach() for name, value in weights.items()}
        self.bias = next(n for n, p in self.net.named_parameters() if p is self.net.output_bias)

    def __call__(self, x: Tensor) -> tuple[Tensor, ...]:
        """What each start returns of its rows, (k, n)."""
        with torch.no_grad():
            return vmap(self._one)(self.weights, self.buffers, x)

    def _one(self, weights: dict[str, Tensor], buffers: dict[str, Tensor], x: Tensor) -> Any:
        return functional_call(self.net, (weights, buffers), (x,))

    def gradients(self, loss: nn.Module, stage: str, batch: Batch) -> Callable[..., Any]:
        """A function of weights and a batch: the gradients of every start."""
        names = list(self.weights)

        def total(values: Sequence[Tensor], x: Tensor, y: Tensor, weight: Tensor) -> Tensor:
            def one(w: Any, b: Any, x: Tensor, y: Tensor, weight: Tensor) -> Tensor:
                return loss(self._one(w, b, x), y, None if batch[2] is None else weight)

            given = dict(zip(names, values, strict=True))
            return vmap(one)(given, self.buffers, x, y, weight).sum()

        self.net.enter(stage)
        x, y, weight = batch
        values, rows = list(self.weights.values()), (x, y, y if weight is None else weight)
        graph = make_fx(grad(total))(values, *rows)
        with warnings.catch_warnings():  # deprecated, but three times as fast as the graph alone
            warnings.simplefilter("ignore", DeprecationWarning)
            traced = torch.jit.trace(
                # The fused Adam goes through memory as it lies: a transposed gradient is mixed up.
                lambda *given: tuple(g.contiguous() for g in graph(list(given[3:]), *given[:3])),
                (*rows, *values),
                check_trace=False,
            )
        return lambda x, y, weight: traced(x, y, y if weight is None else weight, *values)

    def trained_in(self, stage: str, loss: nn.Module, batch: Batch) -> list[str]:
        """Names of the weights that one start's own backward pass reaches."""
        self.net.enter(stage)
        self.net.zero_grad()
        loss(self.net(batch[0][0]), batch[1][0]).backward()
        return [name for name, p in self.net.named_parameters() if p.grad is not None]

    def fit(
        self,
        x: Tensor,
        y: Tensor,
        losses: tuple[nn.Module, nn.Module],
        plan: Plan,
        seed: int,
        nearby: Sequence[LocalityBatches] | None = None,
    ) -> None:
        """Train by one loss in the warm-up, by the other after it.

        ``nearby`` draws batches of neighbours of each start's rows after the warm-up.
        """
        random = np.random.default_rng(seed)
        for first, loss, epochs, turns in (
            (True, losses[0], plan.warmup_epochs, ("warmup",)),
            (False, losses[1], plan.epochs, plan.turns),
        ):
            if not first:
                self._start_variance(x, y)
            batches = shuffled if first or nearby is None else neighbours
            optimizer = Adam(list(self.weights.values()), lr=plan.learning_rate)
            steps = epochs * math.ceil(x.shape[1] / plan.batch_size)
            made: dict[tuple[str, int], Any] = {}
            done = 0
            for epoch in range(epochs):
                stage = turns[epoch % len(turns)]
                for batch in batches(x, y, plan.batch_size, random, nearby):
                    key = stage, batch[1].shape[1]
                    if key not in made:
                        names = self.trained_in(stage, loss, batch)
                        made[key] = names, self.gradients(loss, stage, batch)
                    rate = plan.learning_rate * SCHEDULES[plan.schedule](done, steps)
                    self._step(optimizer, rate, *made[key], batch)
                    done += 1
        self.net.enter("joint")

    def _step(
        self, optimizer: Adam, rate: float, names: list[str], gradients: Any, batch: Batch
    ) -> None:
        with torch.no_grad():
            found = gradients(*batch)
            torch._foreach_clamp_min_(found, -CLIP)
            torch._foreach_clamp_max_(found, CLIP)
        for (name, value), slope in zip(self.weights.items(), found, strict=True):
            value.grad = slope if name in names else None
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()

    def _start_variance(self, x: Tensor, y: Tensor) -> None:
        """After the warm-up a variance begins at the mean squared residual of its own rows."""
        residual = (y - self(x)[0]).square().mean(dim=1).clamp(min=1e-6)
        bias = self.weights[self.bias]
        bias.copy_(residual.log().reshape(bias.shape))


def shuffled(
    x: Tensor, y: Tensor, size: int, random: np.random.Generator, _: Any
) -> Iterator[Batch]:
    """Every start's rows in an order of its own."""
    order = torch.as_tensor(random.random(y.shape).argsort(axis=1))
    starts = torch.arange(len(y))[:, None]
    x, y = x[starts, order], y[starts, order]
    for first in range(0, y.shape[1], size):
        yield x[:, first : first + size], y[:, first : first + size], None


def neighbours(
    x: Tensor, y: Tensor, size: int, random: np.random.Generator, nearby: Any
) -> Iterator[Batch]:
    """As `LocalityBatches` draws them, all batches of an epoch at once."""
    drawn, weights = [], []
    for own in nearby:
        shape = math.ceil(len(own.nearest) / (own.primary * own.secondary)), own.primary
        first = random.random((shape[0], len(own.nearest))).argpartition(own.primary, axis=1)
        places = random.random((*shape, own.neighbours)).argsort(axis=2)[:, :, : own.secondary]
        rows = np.take_along_axis(own.nearest[first[:, : own.primary]], places, axis=2)
        drawn.append(rows.reshape(shape[0], -1))
        weights.append(own.weights[drawn[-1]])
    order, weight = (
        torch.as_tensor(np.array(drawn)),
        torch.as_tensor(np.array(weights), dtype=y.dtype),
    )
    starts = torch.arange(len(y))[:, None]
    for k in range(order.shape[1]):
        rows = order[:, k]
        yield x[starts, rows], y[starts, rows], weight[:, k]


def of_the_sine(
    name: str, samples: Sequence[Sample], at: Array, epochs: int
) -> list[tuple[Array, Array]]:
    """Mean and std of each start by a method that only PyTorch has, trained as SINE says."""
    torch.set_num_threads(1)
    inputs = np.array([sample.X for sample in samples])
    outcomes = np.array([sample.y for sample in samples])
    units = [(part.mean(axis=1, keepdims=True), part.std(axis=1, keepdims=True))
             for part in (inputs, outcomes)]  # fmt: skip
    (x_mean, x_scale), (y_mean, y_scale) = units
    x, y = (torch.as_tensor((part - mean) / scale, dtype=torch.float32)
            for part, (mean, scale) in zip((inputs, outcomes), units, strict=True))  # fmt: skip
    plan, loss, nearby = Plan(epochs, epochs), GaussianNLL(), None
    first: nn.Module = loss
    makers: list[Callable[[], MeanVarianceNet]] = []
    if name == "Skafte et al.":
        plan = replace(plan, turns=("variance", "mean"))
        nearby = [LocalityBatches(rows, 4, 8, 32) for rows in x]
        m = min(100, x.shape[1])
        centres = [KMeans(m, n_init=1, random_state=0).fit(rows).cluster_centers_ for rows in x]
        makers = [partial(_network, (1, *UNITS, 1), "silu", places, 1.0) for places in centres]
    elif name == "quality-driven":
        plan, loss = replace(plan, batch_size=100), QualityDrivenLoss()
    kinds = {"shared trunk, warm-up": trunk, "quality-driven": separate}
    makers = makers or [partial(kinds.get(name, with_tails), 1, nn.SiLU)] * len(samples)
    if name in ("Skafte et al.", "student-t, df learned, warm-up"):
        first = loss = StudentTNLL(df=None)
    starts = [random_starts(make, 1, seed)[0] for seed, make in enumerate(makers)]
    together = Together(starts)
    together.fit(x, y, (first, loss), plan, seed=0, nearby=nearby)
    new = torch.as_tensor((at[None, :, None] - x_mean) / x_scale, dtype=torch.float32)
    mean, log_variance, *tails = (part.double().numpy() for part in together(new))
    std = np.exp(log_variance / 2)
    if tails:
        std = std * np.sqrt(tails[0] / (tails[0] - 2))
    if name == "quality-driven":  # the std of a normal with such an interval
        std = std / 1.6449
    return list(zip(y_mean + y_scale * mean, y_scale * std, strict=True))
