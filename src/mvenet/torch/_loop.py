"""skorch's training loop with our stages in it: data, devices and batches are skorch's work."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, TypedDict

import numpy as np
import skorch
import torch
from skorch.callbacks import Callback
from torch import Tensor

from mvenet.torch._data import Rows, loader
from mvenet.torch._dropout import is_stochastic, regularisation, sampling
from mvenet.torch._losses import GaussianNLL, StudentTNLL
from mvenet.torch._net import MeanVarianceNet
from mvenet.torch._optim import Adam, param_groups
from mvenet.torch._schedule import Schedule
from mvenet.torch._skafte import LocalityBatches

PREDICTED_AT_ONCE = 512


class DivergedMemberError(Exception):
    """A loss was NaN or infinite."""


class Record(TypedDict):
    """How a training went: for each epoch its stage, training and validation loss."""

    diverged: bool
    epochs: list[tuple[str, float, float]]


class Loop(skorch.NeuralNet):
    """A network, its loss, and penalties as parameter groups, on one device."""

    def __init__(
        self,
        module: MeanVarianceNet,
        criterion: torch.nn.Module | None = None,
        *,
        penalties: tuple[float, float] = (0.0, 0.0),
        autocast: bool = False,
        num_workers: int = 0,
        nearby: LocalityBatches | None = None,
        **settings: Any,
    ) -> None:
        # skorch's own callbacks time, score and print every batch; ours does what is needed.
        super().__init__(
            module, criterion or GaussianNLL(), train_split=None, verbose=0, **settings
        )
        self.penalties = penalties
        self.autocast = autocast
        self.num_workers = num_workers
        self.nearby = nearby

    @property
    def _default_callbacks(self) -> list[Any]:
        return []

    def initialize_optimizer(self, *_: Any, **__: Any) -> Loop:
        """Adam over the groups of the two penalties."""
        self.optimizer_ = Adam(param_groups(self.module_, *self.penalties), lr=self.lr)
        self.regularised = not isinstance(regularisation(self.module_), float | int)
        return self

    def _set_training(self, training: bool = True) -> None:
        """Walk through the modules only where the mode changes, not for every batch."""
        if self.module_.training != training:
            self.module_.train(training)

    def get_iterator(self, dataset: Rows, training: bool = False) -> Any:
        """Batches, shuffled for training."""
        size = self.batch_size if training else max(self.batch_size, PREDICTED_AT_ONCE)
        usual = loader(dataset, size, shuffle=training, num_workers=self.num_workers)
        return self._neighbours(dataset, usual) if training and self.nearby is not None else usual

    def _neighbours(self, dataset: Rows, usual: Any) -> Iterator[Any]:
        """Batches of neighbours with their weights, once a variance is trained."""
        assert self.nearby is not None
        if self.module_.stage == "warmup":
            yield from usual
            return
        self.nearby.random = np.random.default_rng(int(torch.randint(2**62, ())))
        for rows, weight in self.nearby:
            inputs, (target, own) = dataset[rows]
            yield inputs, (target, own * weight.to(own.dtype))

    def run_single_epoch(
        self, iterator: Any, training: bool, prefix: str, step_fn: Any, **fit_params: Any
    ) -> None:
        """All batches once; skorch's own keeps a history of each batch, which takes a while."""
        for batch in iterator or ():
            step = step_fn(batch, **fit_params)
            self.notify("on_batch_end", batch=batch, training=training, **step)

    def infer(self, x: Any, **fit_params: Any) -> Any:
        """Run the network, in bfloat16 where that was asked for."""
        if not self.autocast:
            return super().infer(x, **fit_params)
        with torch.autocast(torch.device(self.device).type, dtype=torch.bfloat16):
            return super().infer(x, **fit_params)

    def get_loss(self, y_pred: Any, y_true: Any, X: Any = None, training: bool = False) -> Tensor:
        """Loss of a batch; what the objective holds constant stays out of the record."""
        target, weight = (part.to(self.device) for part in y_true)
        # Recorded is the likelihood of what is predicted, a normal or Student's t.
        recorded = self.criterion_ if isinstance(self.criterion_, StudentTNLL) else self.normal
        if not training:
            return recorded(y_pred, target, weight)
        loss = self.criterion_(y_pred, target, weight)
        with torch.no_grad():
            same = type(self.criterion_) is type(recorded)
            self.recorded = loss.detach() if same else recorded(y_pred, target, weight)
        return loss + regularisation(self.module_) if self.regularised else loss

    normal = staticmethod(GaussianNLL())


class Stages(Callback):
    """Our schedule at skorch's hooks: stages, clipping, the record, and what follows an epoch."""

    def __init__(
        self,
        schedule: Schedule,
        residuals: Callable[[], Any],
        seed: Callable[[int], int],
        after: Callable[[], None],
    ) -> None:
        self.schedule, self.residuals = schedule, residuals
        self.seed, self.after = seed, after
        self.epochs: list[tuple[str, float, float]] = []  # stage, training and validation loss

    def on_epoch_begin(self, net: Loop, **_: Any) -> None:
        """Randomness depends on the number of the epoch alone, so a run can go on anywhere."""
        torch.manual_seed(self.seed(self.schedule.epoch))
        self.schedule.begin_epoch(self.residuals())
        self.sums = {True: [0.0, 0], False: [0.0, 0]}

    def on_grad_computed(self, net: Loop, named_parameters: Any, **_: Any) -> None:
        """Clip, and set the learning rate."""
        self.schedule.before_step()

    def on_batch_end(
        self, net: Loop, batch: Any = None, training: bool = False, loss: Any = None, **_: Any
    ) -> None:
        """Add up losses without waiting for the device."""
        rows = len(batch[1][0])
        total = self.sums[training]
        total[0] += rows * (net.recorded if training else loss.detach())
        total[1] += rows

    def on_epoch_end(self, net: Loop, **_: Any) -> None:
        """Record, stop early, save."""
        trained, validated = (
            float(total) / rows if rows else math.nan for total, rows in self.sums.values()
        )
        if not math.isfinite(trained):
            raise DivergedMemberError
        self.epochs.append((self.schedule.stage, trained, validated))
        self.schedule.end_epoch(None if math.isnan(validated) else validated)
        self.after()


def outputs(loop: Loop, rows: Rows, n_samples: int, seed: int) -> Iterator[Any]:
    """Means, standard deviations and perhaps degrees of freedom of all rows, for each draw.

    Without dropout there is one. The standard deviations are scales if there is a third.
    """
    drawn = is_stochastic(loop.module_)
    for draw in range(n_samples if drawn else 1):
        parts = []
        for batch in loop.get_iterator(rows):
            with sampling(loop.module_):
                if drawn:
                    torch.manual_seed(seed + draw)  # one network for all batches
                made = loop.evaluation_step(batch)
            # A parameter that a module returns as it is keeps its gradient: hence detach.
            mean, log_variance, *tails = (part.detach().double() for part in made)
            parts.append(torch.stack([mean, (0.5 * log_variance).exp(), *tails]).cpu())
        yield torch.cat(parts, dim=1).numpy()
