"""Models and checkpoints in safetensors files: round trips, damage, kills, hostile contents."""

from __future__ import annotations

import json
import os
import pickle
import signal
import time

import numpy as np
import pytest

pytest.importorskip(
    "mvenet.torch", reason="needs PyTorch and skorch: make test-torch", exc_type=ImportError
)
import safetensors
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from mvenet.torch import MCDropout, MeanVarianceNet, TorchMVERegressor, _files, load

torch.set_num_threads(1)
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (90, 2))
Y = X[:, 0] + 0.2 * RNG.standard_normal(90)
QUICK = {"epochs": 6, "warmup_epochs": 4, "learning_rate": 0.01, "random_state": 0}


def part(activation=nn.ELU, units=6):
    return nn.Sequential(nn.Linear(2, units), activation(), MCDropout(0.1), nn.Linear(units, 1))


def net(activation=nn.ELU, units=6):
    return MeanVarianceNet(part(activation, units), part(activation, units))


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "model.safetensors"
    model = TorchMVERegressor(net, n_members=2, n_samples=3, **QUICK).fit(X, Y)
    model.save(path)
    return model, path


def metadata(path):
    with safetensors.safe_open(path, "pt") as file:
        return json.loads(file.metadata()["mvenet"])


def test_round_trip(saved):
    model, path = saved
    again = load(path, net)
    one, two = model.predict_dist(X), again.predict_dist(X)
    np.testing.assert_array_equal(one.means, two.means)
    np.testing.assert_array_equal(one.stds, two.stds)
    kept = again.get_params()
    for name, value in model.get_params().items():
        if name not in ("module", "random_state"):
            assert kept[name] == value
    assert again.reg_var_ == model.reg_var_
    with pytest.raises(ValueError, match="X has 3 features"):
        again.predict(np.zeros((2, 3)))


def test_the_description_says_what_is_inside(saved):
    about = metadata(saved[1])
    assert about["members"] == 2 and about["parameters"]["epochs"] == 6
    assert about["state"]["mean.0.weight"] == ["torch.float32", [6, 2]]
    assert "MCDropout" in about["module"]


@pytest.mark.parametrize(
    ("other", "match"),
    [
        (lambda: net(units=7), r"'mean.0.bias' is .*7.* here and .*6.* there"),
        (lambda: net(nn.ReLU), "computes something else"),
        (lambda: MeanVarianceNet(part(), None), "'bias' is .* here and None there"),
        (lambda: net().double(), "float64"),
    ],
)
def test_another_module_is_refused(saved, other, match):
    with pytest.raises(ValueError, match=match):
        load(saved[1], other)


def test_damage_is_noticed_everywhere(saved, tmp_path):
    content = bytearray(saved[1].read_bytes())
    path = tmp_path / "damaged.safetensors"
    rng = np.random.default_rng(0)
    header = int.from_bytes(content[:8], "little")
    places = [*rng.integers(0, 8 + header, 20), *rng.integers(8 + header, len(content), 20)]
    for place in places:
        damaged = bytearray(content)
        damaged[place] ^= 1 << rng.integers(8)
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"damaged|is no model|has format"):
            load(path, net)
    for cut in (0, 5, 100, len(content) - 1):
        path.write_bytes(content[:cut])
        with pytest.raises(ValueError, match="is damaged or no safetensors file"):
            load(path, net)


def test_foreign_and_hostile_files_run_nothing(saved, tmp_path):
    class Evil:
        def __reduce__(self):
            return os.system, (f"touch {tmp_path}/sentinel",)

    path = tmp_path / "evil.safetensors"
    path.write_bytes(pickle.dumps(Evil()))
    with pytest.raises(ValueError, match="no safetensors file"):
        load(path, net)
    torch.save({"x": Evil()}, path)
    with pytest.raises(ValueError, match="no safetensors file"):
        load(path, net)
    assert not (tmp_path / "sentinel").exists()
    save_file({"a": torch.zeros(2)}, path)
    with pytest.raises(ValueError, match="is no model"):
        load(path, net)
    about = metadata(saved[1]) | {"format": 99}
    save_file(load_file(saved[1]), path, metadata={"mvenet": json.dumps(about)})
    with pytest.raises(ValueError, match="has format 99"):
        load(path, net)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none", net)


def test_a_file_does_not_say_where_a_training_is_kept(saved, tmp_path):
    about, tensors = _files.read(saved[1], "model")
    about["parameters"]["checkpoint"] = str(tmp_path / "victim")
    _files.write(tmp_path / "evil.safetensors", "model", about, tensors)
    with pytest.raises(ValueError, match="sets checkpoint="):
        load(tmp_path / "evil.safetensors", net)


def test_saving_fails_without_harm(saved, tmp_path):
    with pytest.raises(OSError, match="no such folder"):
        saved[0].save(tmp_path / "nowhere" / "m.safetensors")


# --- checkpoints ---------------------------------------------------------------------------------


class StopError(Exception):
    pass


class Stopping(nn.Linear):
    """Stops the training after so many calls, as a kill would between two batches."""

    left = -1

    def forward(self, x):
        Stopping.left -= 1
        if Stopping.left == 0:
            raise StopError
        return super().forward(x)


def stoppable():
    mean = nn.Sequential(Stopping(2, 6), nn.ELU(), MCDropout(0.2), nn.Linear(6, 1))
    return MeanVarianceNet(mean, part())


@pytest.mark.parametrize("early_stopping", [False, True])
@pytest.mark.parametrize("stop_at", [10, 22, 34, 53])  # of which three find out what the module is
def test_a_stopped_training_goes_on_to_the_same_result(tmp_path, stop_at, early_stopping):
    settings = QUICK | {"n_members": 2, "early_stopping": early_stopping, "n_iter_no_change": 3}
    whole = TorchMVERegressor(stoppable, **settings).fit(X, Y)
    path = tmp_path / "training.safetensors"
    model = TorchMVERegressor(stoppable, checkpoint=path, **settings)
    Stopping.left = stop_at
    with pytest.raises(StopError):
        model.fit(X, Y)
    assert path.exists()
    done = metadata(path)
    assert done["done"] or done["current"]["schedule"]["epoch"] > 0
    model.fit(X, Y)
    assert not path.exists()
    np.testing.assert_array_equal(model.predict_dist(X).means, whole.predict_dist(X).means)
    np.testing.assert_array_equal(model.predict_dist(X).stds, whole.predict_dist(X).stds)
    for name, column in whole.history_.items():
        np.testing.assert_array_equal(model.history_[name], column)


def test_a_checkpoint_of_another_training_is_left_alone(tmp_path):
    path = tmp_path / "training.safetensors"
    Stopping.left = 15
    with pytest.raises(StopError):
        TorchMVERegressor(stoppable, checkpoint=path, **QUICK).fit(X, Y)
    Stopping.left = -1
    before = path.read_bytes()
    for settings, rows in (({"reg_mean": 0.5}, (X, Y)), ({}, (X, Y + 1))):
        with pytest.raises(ValueError, match="is of another training"):
            TorchMVERegressor(stoppable, checkpoint=path, **QUICK | settings).fit(*rows)
    path.write_bytes(before[:-7])
    with pytest.raises(ValueError, match="is damaged"):
        TorchMVERegressor(stoppable, checkpoint=path, **QUICK).fit(X, Y)
    assert path.read_bytes() == before[:-7]


class Curved(nn.Linear):
    """Its text and its weights do not tell which curve it follows."""

    curve = staticmethod(torch.tanh)

    def forward(self, x):
        return self.curve(super().forward(x))


class Bent(Curved):
    curve = staticmethod(torch.sin)

    def _get_name(self):
        return "Curved"


def with_first(layer, start=None, rate=0.1):
    """A module that begins with this layer, started as the random state has it or otherwise."""

    def make():
        if start is not None:
            torch.manual_seed(start)
        mean = nn.Sequential(layer(2, 6), MCDropout(rate), nn.Linear(6, 1), Stopping(1, 1))
        return MeanVarianceNet(mean, part())

    return make


class Items(torch.utils.data.Dataset):
    """Rows as a user's own data set has them; drawn anew at every look if there is noise."""

    def __init__(self, noise=0.0):
        self.noise = noise

    def __len__(self):
        return len(Y)

    def __getitem__(self, i):
        x = torch.as_tensor(X[i], dtype=torch.float32)
        return x + self.noise * torch.as_tensor(RNG.standard_normal(2), dtype=torch.float32), Y[i]


@pytest.mark.parametrize(
    "other",
    [
        with_first(lambda a, b: nn.Sequential(nn.Linear(a, b), nn.Tanh())),  # other text
        with_first(Bent),  # other code
        with_first(Curved, rate=0.3),
        lambda: MeanVarianceNet(with_first(Curved)().mean, part(units=7)),
    ],
)
@pytest.mark.parametrize("dataset", [False, True])
def test_a_checkpoint_of_another_module_is_left_alone(tmp_path, other, dataset):
    path, rows = tmp_path / "training.safetensors", (Items(),) if dataset else (X, Y)
    first = with_first(Curved)
    whole = TorchMVERegressor(first, **QUICK).fit(*rows)
    Stopping.left = 15
    with pytest.raises(StopError):
        TorchMVERegressor(first, checkpoint=path, **QUICK).fit(*rows)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"is of another training \(other module\)"):
        TorchMVERegressor(other, checkpoint=path, **QUICK).fit(*rows)
    assert path.read_bytes() == before
    again = TorchMVERegressor(first, checkpoint=path, **QUICK).fit(*rows)
    np.testing.assert_array_equal(again.predict(X), whole.predict(X))


def test_a_training_goes_on_whatever_the_module_would_start_from(tmp_path):
    """As of a script that makes its module without a seed."""
    path = tmp_path / "training.safetensors"
    whole = TorchMVERegressor(with_first(Curved, start=1)(), **QUICK).fit(X, Y)
    Stopping.left = 15
    with pytest.raises(StopError):
        TorchMVERegressor(with_first(Curved, start=1)(), checkpoint=path, **QUICK).fit(X, Y)
    model = TorchMVERegressor(with_first(Curved, start=2)(), checkpoint=path, **QUICK).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), whole.predict(X))


def test_a_data_set_that_draws_its_rows_can_be_taken_up(tmp_path):
    path = tmp_path / "training.safetensors"
    model = TorchMVERegressor(with_first(Curved), checkpoint=path, **QUICK)
    Stopping.left = 15
    with pytest.raises(StopError):
        model.fit(Items(noise=0.1))
    model.fit(Items(noise=0.1))
    assert len(model.history_["epoch"]) == QUICK["epochs"] + QUICK["warmup_epochs"]


def test_lazy_layers_can_be_taken_up(tmp_path):
    def lazy():
        mean = nn.Sequential(nn.LazyLinear(6), nn.Tanh(), Stopping(6, 1))
        return MeanVarianceNet(mean, part())

    path = tmp_path / "training.safetensors"
    whole = TorchMVERegressor(lazy, **QUICK).fit(X, Y)
    Stopping.left = 15
    with pytest.raises(StopError):
        TorchMVERegressor(lazy, checkpoint=path, **QUICK).fit(X, Y)
    model = TorchMVERegressor(lazy, checkpoint=path, **QUICK).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), whole.predict(X))


def test_a_warm_start_is_another_training_than_a_cold_one(tmp_path):
    path = tmp_path / "training.safetensors"
    model = TorchMVERegressor(stoppable, warm_start=True, **QUICK).fit(X, Y)
    model.set_params(checkpoint=path)
    Stopping.left = 15
    with pytest.raises(StopError):
        model.fit(X, Y)
    with pytest.raises(ValueError, match="is of another training"):
        model.fit(X, Y)  # which an interrupted fit has left unfitted


class Sleepy(nn.Linear):
    """Gives the parent time to kill the child."""

    asleep = 0.0

    def forward(self, x):
        time.sleep(Sleepy.asleep)
        return super().forward(x)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork")
def test_sigkill_and_resume(tmp_path):
    path = tmp_path / "training.safetensors"
    model = TorchMVERegressor(
        lambda: MeanVarianceNet(Sleepy(2, 1), Sleepy(2, 1)), checkpoint=path, **QUICK
    )
    child = os.fork()
    if child == 0:
        Sleepy.asleep = 0.1  # some twenty seconds in all
        model.fit(X, Y)
        os._exit(0)
    while not path.exists():
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    assert path.exists()
    model.fit(X, Y)
    whole = TorchMVERegressor(model.module, **QUICK).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), whole.predict(X))
    assert not path.exists()
