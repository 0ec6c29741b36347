"""One member's start and its training; devices, precision and randomness."""

from __future__ import annotations

import contextlib
import copy
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import nn

from mvenet._training.fleet import derived_seed
from mvenet._utils.machine import require_memory
from mvenet.recipes import Stage
from mvenet.torch._checkpoint import Checkpoint
from mvenet.torch._data import Rows
from mvenet.torch._loop import DivergedMemberError, Loop, Record, Stages
from mvenet.torch._net import MeanVarianceNet
from mvenet.torch._schedule import Schedule

DESCRIBED = 10_000  # bytes at least of a module as Python objects


def train_member(
    model: Any,
    loop: Loop,
    planned: Sequence[Stage],
    train: Rows,
    held_out: Rows | None,
    seed: Callable[[int], int],
    checkpoint: Checkpoint | None,
    tick: Callable[[], object],
) -> Record:
    """Train one network to its end, from its start or from a checkpoint."""
    schedule = Schedule(
        loop.module_,
        loop.optimizer_,
        strategy=model.strategy,
        epochs=planned[-1].epochs,
        warmup_epochs=planned[0].epochs,
        clip_value=model.clip_value,
        schedule=model.schedule,
        steps_per_epoch=math.ceil(len(train) / model.batch_size),
        patience=model.n_iter_no_change if model.early_stopping else 0,
    )

    def after() -> None:
        tick()
        if checkpoint is not None and not schedule.finished:
            checkpoint.save(loop, stages)

    known = train if held_out is None else held_out
    stages = Stages(schedule, lambda: loop.get_iterator(known), seed, after)
    loop.callbacks_ = [("stages", stages)]
    loop.train_split = held_out and (lambda rows, *_: (rows, held_out))
    if checkpoint is not None:
        checkpoint.resume(loop, stages)
    diverged = False
    try:
        while not schedule.finished:
            loop.fit_loop(train, epochs=1)
    except DivergedMemberError:
        diverged = True
    loop.module_.cpu().eval().zero_grad()
    return {"diverged": diverged, "epochs": stages.epochs}


def random_starts(module: Any, members: int, entropy: Any) -> list[MeanVarianceNet]:
    """One network for each member, each with its own random start."""
    starts: list[MeanVarianceNet] = []
    for member in range(members):
        torch.manual_seed(derived_seed(entropy, 0, member))
        net = copy.deepcopy(module) if isinstance(module, nn.Module) else module()
        if not isinstance(net, MeanVarianceNet):
            raise TypeError(
                f"module must be, or make, a MeanVarianceNet, got {type(net).__name__}: the "
                "warm-up must know which part is the variance, so pass MeanVarianceNet(mean, "
                "variance), or MeanVarianceNet(mean_head, variance_head, trunk=trunk)."
            )
        if net is module or any(net is other for other in starts):
            raise ValueError("module returned the same network twice: make a new one each time.")
        if isinstance(module, nn.Module) and members > 1:
            _reset(net)
        starts.append(net)
        if member == 0:
            _check_memory(net, members)
    return starts


def _check_memory(net: nn.Module, members: int) -> None:
    """Refuse more members than memory can hold; a lazy layer has no size yet."""
    known = (p for p in net.parameters() if not isinstance(p, nn.UninitializedParameter))
    size = sum(p.numel() * p.element_size() for p in known)
    needed = members * (size + DESCRIBED)
    require_memory(needed, f"{members:,} members of {size:,} bytes", "use fewer (n_members).")


def _reset(net: MeanVarianceNet) -> None:
    """Draw all weights anew; an error where a layer does not know how."""
    start = net.output_bias.item()
    known: set[Any] = {net.output_bias}
    for layer in net.modules():
        if hasattr(layer, "reset_parameters"):
            layer.reset_parameters()
            known |= set(layer.parameters(recurse=False))
    for name, parameter in net.named_parameters():
        if parameter not in known:
            raise ValueError(
                f"The parameter {name!r} cannot be drawn anew for another member, as its module "
                "has no reset_parameters(): pass a function that makes the module instead."
            )
    net.set_output_bias(start)


def device_of(name: str) -> str:
    """A device that is there."""
    if name == "auto":
        if torch.cuda.is_available():
            return "cuda"
        return "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        torch.empty(1, device=name)
    except Exception as error:  # PyTorch has many: unknown names, no driver, not compiled in
        raise ValueError(
            f"device={name!r} is not there ({str(error).splitlines()[0]}): use 'auto' or 'cpu'."
        ) from error
    return name


@contextlib.contextmanager
def own_randomness(device: str) -> Iterator[None]:
    """Leave PyTorch's random state as it was."""
    kind = torch.device(device).type
    devices: list[int] | None = [] if kind == "cpu" else None
    with torch.random.fork_rng(devices, device_type="cuda" if kind == "cpu" else kind):
        yield
