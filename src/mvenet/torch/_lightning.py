"""The stages as a callback of PyTorch Lightning: ``pip install lightning``."""

from __future__ import annotations

from typing import Any

from lightning.pytorch import Callback

from mvenet.torch._net import MeanVarianceNet
from mvenet.torch._schedule import Schedule


class ScheduleCallback(Callback):
    """:class:`~mvenet.torch.Schedule` at Lightning's hooks, for a module with one optimiser.

    Parameters
    ----------
    monitor : str or None, default=None
        Name of the logged validation loss, for ``patience``.
    **settings
        Those of ``Schedule``. Let ``Trainer(max_epochs=...)`` be all epochs; batches must be
        (inputs, target).
    """

    def __init__(self, monitor: str | None = None, **settings: Any) -> None:
        self.monitor, self.settings = monitor, settings
        self.schedule: Any = None
        self._loaded: dict[str, Any] | None = None

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Find the network and its optimiser; go on where a checkpoint was."""
        net = next(part for part in pl_module.modules() if isinstance(part, MeanVarianceNet))
        self.schedule = Schedule(net, trainer.optimizers[0], **self.settings)
        if self._loaded is not None:
            self.schedule.load_state_dict(self._loaded)

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Begin a stage if one is due."""
        self.schedule.begin_epoch(trainer.train_dataloader)

    def on_before_optimizer_step(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:
        """Learning rate and clipping."""
        self.schedule.before_step()

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """End an epoch, and the training with the last stage."""
        loss = trainer.callback_metrics.get(self.monitor)
        self.schedule.end_epoch(None if loss is None else float(loss))
        trainer.should_stop = trainer.should_stop or self.schedule.finished

    def state_dict(self) -> dict[str, Any]:
        """For Lightning's checkpoints."""
        return {} if self.schedule is None else self.schedule.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """From Lightning's checkpoints."""
        self._loaded = state_dict or None
