"""Schedule: warm-up, joint training, variance only, around any training loop."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch

from mvenet import recipes
from mvenet.torch._net import MeanVarianceNet

ALTERNATING = "alternating"
STRATEGIES = (*recipes.STRATEGIES, ALTERNATING)


def stages(strategy: str, **settings: Any) -> tuple[recipes.Stage, ...]:
    """Stages of a strategy; those in which mean and variance take turns are as of "warmup"."""
    return recipes.stages("warmup" if strategy == ALTERNATING else strategy, **settings)


class Schedule:
    """The stages of a training, for a loop of your own.

    A stage begins with the optimiser's memory empty. The one after the warm-up begins with the bias
    of the variance's output at the logarithm of the mean squared residual.

    Parameters
    ----------
    net : MeanVarianceNet
    optimizer : torch.optim.Optimizer
        Of :func:`~mvenet.torch.param_groups`, at the learning rate of a stage's first step.
    epochs, warmup_epochs : int
        Passes over the rows after and during the warm-up.
    strategy : {"warmup", "warmup-fixed-mean", "no-warmup", "alternating"}, default="warmup"
        As of :class:`mvenet.MVERegressor`. With "alternating" variance and mean are trained in turn
        after the warm-up, an epoch each (Skafte et al. 2019).
    clip_value : float or None, default=5.0
        Limit on each element of the gradient, penalty included.
    schedule : {"constant", "cosine", "ramp-cosine"}, default="constant"
        Whether the learning rate falls to zero along half a cosine within each stage, and whether
        it first rises from zero.
    steps_per_epoch : int or None
        Number of batches; needed for a schedule that is not constant.
    patience : int, default=0
        Epochs without a lower validation loss after which a stage ends; 0 is none. The weights of
        the best epoch are kept.

    Attributes
    ----------
    stage : {"warmup", "joint", "mean", "variance"}
    finished : bool
    epoch : int
        Epochs done.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> from mvenet.torch import GaussianNLL, MeanVarianceNet, Schedule, param_groups
    >>> x = torch.linspace(-1, 1, 64)[:, None]
    >>> loader = [(x, 3 * x[:, 0])]
    >>> net, loss = MeanVarianceNet(nn.Linear(1, 1), nn.Linear(1, 1)), GaussianNLL()
    >>> optimizer = torch.optim.Adam(param_groups(net, 0.0, 1e-2), lr=0.1)
    >>> schedule = Schedule(net, optimizer, warmup_epochs=100, epochs=10)
    >>> while not schedule.finished:
    ...     schedule.begin_epoch(loader)
    ...     for inputs, target in loader:
    ...         optimizer.zero_grad()
    ...         loss(net(inputs), target).backward()
    ...         schedule.step()
    ...     schedule.end_epoch()
    >>> abs(net(torch.ones(1, 1))[0].item() - 3) < 0.1
    True
    """

    def __init__(
        self,
        net: MeanVarianceNet,
        optimizer: torch.optim.Optimizer,
        *,
        epochs: int,
        warmup_epochs: int = 1,
        strategy: str = "warmup",
        clip_value: float | None = 5.0,
        schedule: str = "constant",
        steps_per_epoch: int | None = None,
        patience: int = 0,
    ) -> None:
        if not isinstance(net, MeanVarianceNet):
            raise TypeError(
                f"net must be a MeanVarianceNet, got {type(net).__name__}: the warm-up must know "
                "which part is the variance, so make one of its two modules or heads."
            )
        _check("strategy", strategy, STRATEGIES)
        _check("schedule", schedule, tuple(SCHEDULES))
        if schedule != "constant" and not steps_per_epoch:
            raise ValueError(f"schedule={schedule!r} needs steps_per_epoch: pass len(loader).")
        self.net, self.optimizer = net, optimizer
        self.clip_value, self.schedule = clip_value, schedule
        self.steps_per_epoch, self.patience = steps_per_epoch, patience
        self.alternating = strategy == ALTERNATING
        self.stages = stages(
            strategy, n_rows=1, batch_size=1, epochs=epochs, warmup_epochs=warmup_epochs,
            learning_rate=0.0,
        )  # fmt: skip
        for group in optimizer.param_groups:
            group.setdefault("initial_lr", group["lr"])
        self._number = self._stage_epoch = self._stage_step = self.epoch = self._waited = 0
        self._best = math.inf
        self._best_weights: dict[str, Any] = {}

    @property
    def finished(self) -> bool:
        """Whether all stages are done."""
        return self._number == len(self.stages)

    @property
    def stage(self) -> str:
        """The stage that the next epoch belongs to, or the last one."""
        mode: str = self.stages[min(self._number, len(self.stages) - 1)].mode
        if self.alternating and mode == "joint":
            return "mean" if self._stage_epoch % 2 else "variance"
        return mode

    def begin_epoch(self, residuals: Iterable[Any] = ()) -> None:
        """Begin an epoch, and a stage if one is due.

        Parameters
        ----------
        residuals : iterable of (inputs, target) or (inputs, (target, weight))
            Batches of all rows, read once where the warm-up ends: held-out rows if there are some,
            else the training rows.
        """
        if self.finished:
            raise ValueError(f"All {self.epoch} epochs are done: make a new Schedule to go on.")
        stage = self.stages[self._number]
        if self._stage_epoch == 0 or self.alternating:
            self.net.enter(self.stage)
        if self._stage_epoch == 0:
            self.optimizer.state.clear()
            self._stage_step = self._waited = 0
            self._best, self._best_weights = math.inf, {}
            if stage.init_var_bias:
                residual = mean_squared_residual(self.net, residuals)
                self.net.set_output_bias(math.log(max(residual, 1e-6)))

    def step(self) -> None:
        """One step of the optimiser, after ``backward``."""
        self.before_step()
        self.optimizer.step()

    def before_step(self) -> None:
        """Learning rate and clipping, for loops that call the optimiser themselves."""
        steps = self.stages[self._number].epochs * (self.steps_per_epoch or 1)
        rate = SCHEDULES[self.schedule](self._stage_step, steps)
        self._stage_step += 1
        for group in self.optimizer.param_groups:
            group["lr"] = rate * group["initial_lr"]
        if self.clip_value is not None:
            _clip(self.optimizer.param_groups, self.clip_value)

    def end_epoch(self, validation_loss: float | None = None) -> None:
        """End an epoch; a stage ends when its epochs are done or patience is at its end."""
        self.epoch += 1
        self._stage_epoch += 1
        if self.patience and validation_loss is not None:
            if validation_loss < self._best:
                self._best, self._waited = validation_loss, 0
                weights = self.net.state_dict()
                self._best_weights = {name: value.clone() for name, value in weights.items()}
            else:
                self._waited += 1
        waited = 0 < self.patience <= self._waited
        if waited or self._stage_epoch == self.stages[self._number].epochs:
            if self._best_weights:
                self.net.load_state_dict(self._best_weights)
            self._number, self._stage_epoch = self._number + 1, 0

    def state_dict(self) -> dict[str, Any]:
        """All that changes; the network and the optimiser have a state of their own."""
        return {
            "number": self._number,
            "stage_epoch": self._stage_epoch,
            "stage_step": self._stage_step,
            "epoch": self.epoch,
            "waited": self._waited,
            "best": self._best,
            "best_weights": dict(self._best_weights),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where ``state_dict`` was taken."""
        self._number, self._stage_epoch = int(state["number"]), int(state["stage_epoch"])
        self._stage_step, self.epoch = int(state["stage_step"]), int(state["epoch"])
        self._waited, self._best = int(state["waited"]), float(state["best"])
        self._best_weights = dict(state["best_weights"])
        self.net.enter(self.stage)


def mean_squared_residual(net: MeanVarianceNet, batches: Iterable[Any]) -> float:
    """Weighted mean of (target - mean)² over batches, in evaluation mode.

    Parameters
    ----------
    net : MeanVarianceNet
    batches : iterable of (inputs, target) or (inputs, (target, weight))

    Returns
    -------
    float
    """
    device = next(net.parameters()).device
    training, total, weights = net.training, 0.0, 0.0
    net.eval()
    with torch.no_grad():
        for inputs, target in batches:
            target, weight = target if isinstance(target, tuple | list) else (target, None)
            inputs, target = on_device(inputs, device), target.to(device)
            mean = net(**inputs)[0] if isinstance(inputs, Mapping) else net(inputs)[0]
            weight = torch.ones_like(target) if weight is None else weight.to(device)
            total += float((weight * (target - mean).square()).sum())
            weights += float(weight.sum())
    net.train(training)
    if weights == 0:
        raise ValueError(
            "The warm-up has ended and there are no residuals to start the variance from: pass "
            "begin_epoch the batches of all rows."
        )
    return total / weights


def on_device(inputs: Any, device: Any) -> Any:
    """A tensor, or a list, tuple or dict of them, on a device."""
    if isinstance(inputs, Mapping):
        return {name: on_device(part, device) for name, part in inputs.items()}
    if isinstance(inputs, tuple | list):
        return type(inputs)(on_device(part, device) for part in inputs)
    return inputs.to(device)


def _cosine(step: int, steps: int) -> float:
    return 0.5 * (1 + math.cos(math.pi * min(1.0, step / steps)))


def _ramp_cosine(step: int, steps: int) -> float:
    ramp = steps // 20
    return (step + 1) / (ramp + 1) if step < ramp else _cosine(step - ramp, steps - ramp)


# Share of the learning rate in step 0, 1, ... of so many, for each of fleet.SCHEDULES.
SCHEDULES: dict[str, Callable[[int, int], float]] = {
    "constant": lambda step, steps: 1.0,
    "cosine": _cosine,
    "ramp-cosine": _ramp_cosine,
}


def _clip(groups: list[dict[str, Any]], limit: float) -> None:
    """Clip gradients together with the penalties that the optimiser will add to them."""
    trained, decayed = [], []
    for group in groups:
        params = [p for p in group["params"] if p.grad is not None]
        decay = 0.0 if group.get("decoupled_weight_decay") else group.get("weight_decay", 0.0)
        trained += params
        if decay and params:
            decayed.append(([p.grad for p in params], params, decay))
    with torch.no_grad():
        for grads, params, decay in decayed:
            torch._foreach_add_(grads, params, alpha=decay)
        torch.nn.utils.clip_grad_value_(trained, limit)
        for grads, params, decay in decayed:
            torch._foreach_add_(grads, params, alpha=-decay)


def _check(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ValueError(f"{name}={value!r} is unknown: use one of {', '.join(known)}.")
