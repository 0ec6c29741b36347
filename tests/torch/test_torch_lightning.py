"""The stages at Lightning's hooks: the same training as in a loop of one's own."""

from __future__ import annotations

import pytest

pytest.importorskip(
    "mvenet.torch", reason="needs PyTorch and skorch: make test-torch", exc_type=ImportError
)
pytest.importorskip("lightning", reason="needs lightning: make test-torch")
import lightning.pytorch as lightning
import torch
from torch import nn

from mvenet.torch import (
    Adam,
    GaussianNLL,
    MeanVarianceNet,
    Schedule,
    ScheduleCallback,
    param_groups,
)

pytestmark = pytest.mark.filterwarnings("ignore")  # Lightning has opinions on the number of workers
X = torch.linspace(-1, 1, 48)[:, None]
LOADER = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X, X[:, 0] ** 2), 16)
STAGES = {"warmup_epochs": 3, "epochs": 4, "schedule": "cosine", "steps_per_epoch": 3}


def net():
    torch.manual_seed(0)
    parts = [nn.Sequential(nn.Linear(1, 8), nn.SiLU(), nn.Linear(8, 1)) for _ in range(2)]
    return MeanVarianceNet(*parts)


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net, self.loss = net(), GaussianNLL()

    def training_step(self, batch, _):
        return self.loss(self.net(batch[0]), batch[1])

    def configure_optimizers(self):
        return Adam(param_groups(self.net, 1e-3, 1e-2), lr=0.01)


def trainer(folder, **settings):
    return lightning.Trainer(
        default_root_dir=folder, accelerator="cpu", devices=1, logger=False,
        enable_progress_bar=False, enable_model_summary=False, **settings,
    )  # fmt: skip


def by_hand():
    made = net()
    optimizer = Adam(param_groups(made, 1e-3, 1e-2), lr=0.01)
    schedule, loss = Schedule(made, optimizer, **STAGES), GaussianNLL()
    while not schedule.finished:
        schedule.begin_epoch(LOADER)
        for x, y in LOADER:
            optimizer.zero_grad()
            loss(made(x), y).backward()
            schedule.step()
        schedule.end_epoch()
    return made


def assert_same(one, two):
    for a, b in zip(one.state_dict().values(), two.state_dict().values(), strict=True):
        torch.testing.assert_close(a, b)


def test_it_is_the_same_training_also_from_a_checkpoint(tmp_path):
    expected, module = by_hand(), Module()
    callback = ScheduleCallback(**STAGES)
    trainer(tmp_path, max_epochs=99, callbacks=[callback], enable_checkpointing=False).fit(
        module, LOADER
    )
    assert callback.schedule.finished and callback.schedule.epoch == 7
    assert_same(module.net, expected)
    stopped = trainer(tmp_path, max_epochs=5, callbacks=[ScheduleCallback(**STAGES)])
    stopped.fit(Module(), LOADER)
    stopped.save_checkpoint(tmp_path / "five.ckpt")
    resumed = Module()
    trainer(tmp_path, max_epochs=7, callbacks=[ScheduleCallback(**STAGES)]).fit(
        resumed, LOADER, ckpt_path=tmp_path / "five.ckpt"
    )
    assert_same(resumed.net, expected)
