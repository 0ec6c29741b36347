"""TorchMVERegressor: scikit-learn's contract, inputs of any shape, and what bad input gets."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

pytest.importorskip(
    "mvenet.torch", reason="needs PyTorch and skorch: make test-torch", exc_type=ImportError
)
import torch
from torch import nn
from torch.utils.data import Dataset

from mvenet import CalibratedRegressor, metrics
from mvenet._training.fleet import DivergedError
from mvenet.torch import ConcreteDropout, MCDropout, MeanVarianceNet, TorchMVERegressor

torch.set_num_threads(1)


def mlp(n_in=2, units=12, *between):
    return nn.Sequential(nn.Linear(n_in, units), nn.ELU(), *between, nn.Linear(units, 1))


def net():
    return MeanVarianceNet(mlp(), mlp())


QUICK = {"epochs": 12, "warmup_epochs": 8, "learning_rate": 0.01, "random_state": 0}


def data(n=160, seed=0):
    """A line whose noise grows from left to right."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    return X, 3 * X[:, 0] + np.exp(X[:, 1] - 1) * rng.standard_normal(n)


X, Y = data()


def same(one, two, rows=X):
    a, b = one.predict_dist(rows), two.predict_dist(rows)
    return np.array_equal(a.means, b.means) and np.array_equal(a.stds, b.stds)


# --- the contract --------------------------------------------------------------------------------


class AnyWidth(nn.Module):
    """Takes tables of any width up to 16."""

    def __init__(self):
        super().__init__()
        self.out = mlp(16, 20)

    def forward(self, x):
        return self.out(nn.functional.pad(x, (0, 16 - x.shape[1])))


class Make:
    """A function with a name that is the same in every process that tests."""

    def __call__(self):
        return MeanVarianceNet(AnyWidth(), AnyWidth()).double()  # one check asks for 1e-7

    def __repr__(self):
        return "Make()"


@parametrize_with_checks(
    [TorchMVERegressor(Make(), epochs=8, warmup_epochs=12, learning_rate=0.03, random_state=0)]
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def test_it_learns_mean_and_noise():
    X, y = data(600)
    settings = QUICK | {"epochs": 40, "warmup_epochs": 20}
    mean, std = (
        TorchMVERegressor(net, **settings)
        .fit(X, y)
        .predict([[0.5, -0.9], [0.5, 0.9]], return_std=True)
    )
    np.testing.assert_allclose(mean, 1.5, atol=0.3)
    np.testing.assert_allclose(std, np.exp([-1.9, -0.1]), rtol=0.35)


@pytest.mark.parametrize("strategy", ["no-warmup", "warmup", "warmup-fixed-mean"])
@pytest.mark.parametrize("objective", ["nll", "beta-nll", "faithful", "crps", "student-t"])
def test_strategies_and_objectives(strategy, objective):
    model = TorchMVERegressor(net, strategy=strategy, objective=objective, **QUICK).fit(X, Y)
    assert metrics.nll(Y, model.predict_dist(X)) < 2.4  # one normal for all rows has 2.1
    stages = list(dict.fromkeys(model.history_["stage"]))
    second = {"no-warmup": [], "warmup": ["joint"], "warmup-fixed-mean": ["variance"]}[strategy]
    assert stages == (["warmup", *second] if second else ["joint"])
    assert model.history_["nll"][-1] == pytest.approx(
        metrics.nll(Y, model.predict_dist(X)), abs=0.1
    )


def test_natural_parameters_need_a_network_that_has_them():
    with pytest.raises(ValueError, match=r"objective='natural'.*natural=True"):
        TorchMVERegressor(net, objective="natural", strategy="no-warmup", **QUICK).fit(X, Y)


class Constant(nn.Module):
    """Returns a view of its parameter, which keeps the parameter's gradient."""

    def __init__(self):
        super().__init__()
        self.value = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return self.value.expand(len(x))


def test_a_mean_that_is_the_same_everywhere():
    settings = QUICK | {"epochs": 150, "warmup_epochs": 150, "learning_rate": 0.05}
    model = TorchMVERegressor(lambda: MeanVarianceNet(Constant(), mlp()), **settings)
    mean, std = model.fit(X, X[:, 1] + 7).predict(X, return_std=True)
    assert np.ptp(mean) < 1e-9 and mean[0] == pytest.approx(7, abs=0.5)
    assert np.isfinite(std).all()


def test_history_is_the_likelihood_in_units_of_y():
    model = TorchMVERegressor(net, **QUICK | {"learning_rate": 1e-9}).fit(X, 10 * Y)
    nll = metrics.nll(10 * Y, model.predict_dist(X))
    assert model.history_["nll"][-1] == pytest.approx(nll, rel=1e-4)
    assert np.isnan(model.history_["validation_nll"]).all()
    assert list(model.history_["epoch"]) == [*range(1, 9), *range(1, 13)]


def test_same_seed_same_bits_and_globals_untouched():
    torch.manual_seed(5)
    state = torch.get_rng_state()
    model = TorchMVERegressor(net, n_members=2, **QUICK)
    one, two = clone(model).fit(X, Y), clone(model).fit(X, Y)
    assert torch.equal(state, torch.get_rng_state())
    assert same(one, two)
    assert not same(one, clone(model).set_params(random_state=1).fit(X, Y))
    assert len({float(m.mean[0].weight[0, 0].detach()) for m in one.networks_}) == 2


def test_a_module_is_copied_and_trained_from_its_weights():
    module = net()
    before = copy.deepcopy(module.state_dict())
    model = TorchMVERegressor(module, **QUICK | {"learning_rate": 1e-12}).fit(X, Y)
    for name, value in module.state_dict().items():
        assert torch.equal(value, before[name])
    kept = model.networks_[0].state_dict()["mean.0.weight"]
    torch.testing.assert_close(kept, before["mean.0.weight"])
    several = TorchMVERegressor(module, n_members=2, **QUICK | {"learning_rate": 1e-12}).fit(X, Y)
    starts = [m.state_dict()["mean.0.weight"] for m in several.networks_]
    assert not torch.allclose(starts[0], starts[1])


def test_equivariance_under_units_of_y():
    one = TorchMVERegressor(net, **QUICK).fit(X, Y)
    two = TorchMVERegressor(net, **QUICK).fit(X, 1e6 * Y - 3e7)
    np.testing.assert_allclose(two.predict(X), 1e6 * one.predict(X) - 3e7, rtol=1e-3, atol=2e4)
    stds = [m.predict(X, return_std=True)[1] for m in (one, two)]
    np.testing.assert_allclose(stds[1], 1e6 * stds[0], rtol=2e-2)


def test_weights_count_and_zero_leaves_out():
    w = np.where(np.arange(len(Y)) % 2, 1.0, 0.0)
    half = TorchMVERegressor(net, **QUICK).fit(X[1::2], Y[1::2])
    assert same(TorchMVERegressor(net, **QUICK).fit(X, Y, sample_weight=w), half)
    heavy = TorchMVERegressor(net, **QUICK).fit(X, Y, sample_weight=1 + 50 * (X[:, 0] > 0.5))
    assert not same(heavy, TorchMVERegressor(net, **QUICK).fit(X, Y))


def test_early_stopping_keeps_the_best_epoch():
    settings = QUICK | {"epochs": 60, "early_stopping": True, "n_iter_no_change": 3}
    model = TorchMVERegressor(net, **settings | {"learning_rate": 0.1}).fit(X, Y)
    joint = model.history_["stage"] == "joint"
    losses = model.history_["validation_nll"][joint]
    assert len(losses) < 60 and np.argmin(losses) == len(losses) - 4
    with pytest.raises(ValueError, match=r"validation_fraction=0\.99 leaves"):
        TorchMVERegressor(net, **settings, validation_fraction=0.99).fit(X, Y)


# --- inputs --------------------------------------------------------------------------------------


class Pairs(Dataset):
    def __init__(self, X, y=None):
        self.X, self.y = torch.tensor(X, dtype=torch.float32), y

    def __len__(self):
        return len(self.X)

    def __getitem__(self, i):
        return self.X[i] if self.y is None else (self.X[i], self.y[i])


def test_arrays_tensors_frames_and_data_sets_are_one():
    pandas = pytest.importorskip("pandas")
    model = TorchMVERegressor(net, **QUICK).fit(X, Y)
    assert same(model, TorchMVERegressor(net, **QUICK).fit(torch.tensor(X), torch.tensor(Y)))
    frame = pandas.DataFrame(X, columns=["a", "b"])
    framed = TorchMVERegressor(net, **QUICK).fit(frame, pandas.Series(Y))
    np.testing.assert_array_equal(framed.predict(frame), model.predict(X))
    assert list(framed.feature_names_in_) == ["a", "b"]
    for fitted in (
        TorchMVERegressor(net, **QUICK).fit(Pairs(X, Y)),
        TorchMVERegressor(net, **QUICK).fit(Pairs(X), Y),
    ):
        for rows in (Pairs(X), Pairs(X, Y)):
            np.testing.assert_allclose(fitted.predict(rows), model.predict(X), rtol=1e-4, atol=1e-4)


def test_images_sequences_and_token_numbers():
    rng = np.random.default_rng(0)
    images = rng.normal(size=(80, 1, 6, 6)).astype(np.float32)
    cnn = lambda: nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(48, 1))  # noqa: E731
    tokens = rng.integers(0, 9, (80, 7))
    bag = lambda: nn.Sequential(nn.EmbeddingBag(9, 4), nn.Linear(4, 1))  # noqa: E731
    for rows, part in ((images, cnn), (tokens, bag)):
        model = TorchMVERegressor(lambda part=part: MeanVarianceNet(part(), part()), **QUICK)
        mean, std = model.fit(rows, Y[:80]).predict(rows[:5], return_std=True)
        assert mean.shape == std.shape == (5,) and (std > 0).all()
    with pytest.raises(ValueError, match="rows of shape"):
        TorchMVERegressor(lambda: MeanVarianceNet(cnn(), cnn()), **QUICK).fit(
            images, Y[:80]
        ).predict(images[:, :, :5])


def test_inputs_by_name():
    class Named(Dataset):
        def __len__(self):
            return len(Y)

        def __getitem__(self, i):
            row = torch.tensor(X[i], dtype=torch.float32)
            return {"left": row[:1], "right": row[1:]}, Y[i]

    class Join(nn.Module):
        def __init__(self):
            super().__init__()
            self.out = nn.Linear(2, 1)

        def forward(self, left, right):
            return self.out(torch.cat([left, right], 1))

    model = TorchMVERegressor(
        lambda: MeanVarianceNet(Join(), Join()), **QUICK | {"learning_rate": 0.1}
    ).fit(Named())
    assert np.corrcoef(model.predict(Named()), Y)[0, 1] > 0.8


def test_a_row_does_not_depend_on_its_neighbours():
    dropout = lambda: MeanVarianceNet(mlp(2, 12, MCDropout(0.3)), mlp())  # noqa: E731
    model = TorchMVERegressor(dropout, n_samples=4, **QUICK).fit(X, Y)
    many = np.tile(X, (8, 1))  # more than one batch
    means = model.predict_dist(many).means
    np.testing.assert_allclose(means[:, :160], means[:, -160:], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(model.predict_dist(X[:3]).means, means[:, :3], rtol=1e-5, atol=1e-6)


def test_dropout_gives_a_mixture_and_ensembles_multiply_it():
    def make():
        concrete = ConcreteDropout(nn.Linear(12, 12), len(X))
        return MeanVarianceNet(mlp(2, 12, concrete, nn.ELU()), mlp(2, 12, MCDropout(0.1)))

    model = TorchMVERegressor(make, n_members=2, n_samples=7, **QUICK).fit(X, Y)
    dist = model.predict_dist(X)
    assert dist.means.shape == (14, len(X))
    assert (dist.epistemic > 0).all()
    np.testing.assert_allclose(dist.var, dist.aleatoric + dist.epistemic)
    assert same(model, model)  # the same draws each time
    p = [m.mean[2].p.item() for m in model.networks_]
    assert p[0] != 0.1 and p[0] != p[1]


# --- seams ---------------------------------------------------------------------------------------


def test_search_pipeline_and_calibration():
    model = TorchMVERegressor(net, **QUICK)
    search = GridSearchCV(model, {"reg_mean": [1e-4, 10.0]}, cv=3,
                          scoring=metrics.neg_nll_scorer).fit(X, Y)  # fmt: skip
    assert search.best_params_["reg_mean"] == 1e-4
    shifted = X * [1e3, 1e-3] + [1e4, 0]
    piped = make_pipeline(StandardScaler(), TorchMVERegressor(net, **QUICK)).fit(shifted, Y)
    assert piped.score(shifted, Y) > 0.7
    images = np.random.default_rng(0).normal(size=(90, 1, 2, 1))
    y = images[:, 0, 0, 0] + np.random.default_rng(1).normal(size=90)
    flat = lambda: MeanVarianceNet(  # noqa: E731
        nn.Sequential(nn.Flatten(), mlp()), nn.Sequential(nn.Flatten(), mlp())
    )
    calibrated = CalibratedRegressor(TorchMVERegressor(flat, **QUICK), cv=KFold(3)).fit(images, y)
    low, high = calibrated.predict_interval(images, 0.9).T
    assert 0.8 < np.mean((low <= y) & (y <= high)) <= 1


def test_plots_take_its_models():
    pytest.importorskip("matplotlib").use("Agg")
    from mvenet import plots

    model = TorchMVERegressor(net, n_members=2, **QUICK).fit(X, Y)
    for display in (plots.CoverageDisplay, plots.PITDisplay, plots.PredictionDisplay):
        display.from_estimator(model, X, Y)
    plots.UncertaintyDisplay.from_estimator(model, X)
    plots.HistoryDisplay.from_estimator(model)


def test_the_report_takes_its_predictions():
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib").use("Agg")
    from mvenet import report, workflow

    model = TorchMVERegressor(net, n_members=2, **QUICK).fit(X, Y)
    new, y = data(80, seed=1)
    page = report.render(
        model, workflow.evaluate_predictions(y, model.predict_dist(new), np.arange(80))
    )
    assert "80</b><span>rows checked" in page and "2 networks; penalties 0.0001" in page
    assert "What was done to the columns" not in page


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "rows", "error", "match"),
    [
        ({"module": lambda: nn.Linear(2, 1)}, (X, Y), TypeError, "got Linear: the warm-up must"),
        ({"module": nn.Linear(2, 1)}, (X, Y), TypeError, "MeanVarianceNet.*got Linear"),
        ({"module": lambda: MeanVarianceNet(mlp(2), nn.Linear(2, 3))}, (X, Y), ValueError, "3\\)"),
        ({"device": "cuda"}, (X, Y), ValueError, "device='cuda' is not there.*'auto' or 'cpu'"),
        ({"device": "gpu"}, (X, Y), ValueError, "device='gpu' is not there"),
        ({}, (X, Y[:-1]), ValueError, "X has 160 rows and y 159.*one target for each row"),
        ({}, (X, None), ValueError, "requires y to be passed"),
        ({}, (Pairs(X), None), ValueError, r"items \(inputs, target\)"),
        ({}, (Pairs(X), Y[:-1]), ValueError, "X has 160 rows and y 159"),
        ({}, (Pairs(X, np.full(160, np.nan)), None), ValueError, "y contains NaN"),
        ({}, (X * np.nan, Y), ValueError, "contains NaN in column 0, row 0 .* 319 more such cells"),
        (
            {},
            (np.full((160, 2, 3), np.inf), Y),
            ValueError,
            r"infinity in position \(0, 0\), row 0",
        ),
        ({"reg_var": -1.0}, (X, Y), ValueError, "reg_var"),
        ({"epochs": 0}, (X, Y), ValueError, "epochs"),
        ({"learning_rate": 1e30, "clip_value": None}, (X, Y), DivergedError, "lower learning_rate"),
    ],
)
def test_bad_input_gets_a_sentence(settings, rows, error, match):
    model = TorchMVERegressor(**{"module": net, **QUICK, **settings})
    with pytest.raises(error, match=match):
        model.fit(*rows)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_cuda_is_refused_only_where_it_is_not():
    assert not torch.cuda.is_available(), "CUDA is here: run the tests on it"


def test_members_that_diverge_are_left_out():
    calls = []

    def sometimes():
        calls.append(None)
        made = net()
        if len(calls) == 2:
            nn.init.constant_(made.mean[0].weight, float("inf"))
        return made

    with pytest.warns(ConvergenceWarning, match="1 of 3 members diverged"):
        model = TorchMVERegressor(sometimes, n_members=3, **QUICK).fit(X, Y)
    assert len(model.networks_) == len(model.y_mean_) == 2


def test_more_members_than_memory_are_told_before_a_second_is_made():
    made = []

    def make():
        made.append(net())
        assert len(made) == 1
        return made[0]

    with pytest.raises(MemoryError, match=r"100,000,000 members .* use fewer \(n_members\)"):
        TorchMVERegressor(make, n_members=10**8, **QUICK).fit(X, Y)


def test_networks_without_reset_are_told_for_ensembles():
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.ones(2, 1))

        def forward(self, x):
            return x @ self.w

    with pytest.raises(ValueError, match=r"'mean.w' cannot be drawn anew.*pass a function"):
        TorchMVERegressor(MeanVarianceNet(Own(), Own()), n_members=2, **QUICK).fit(X, Y)
    module = net()
    with pytest.raises(ValueError, match="same network twice"):
        TorchMVERegressor(lambda: module, n_members=2, **QUICK).fit(X, Y)


def test_shared_trunk_takes_one_penalty():
    def modern():
        return MeanVarianceNet(nn.Linear(6, 1), nn.Linear(6, 1), nn.Linear(2, 6))

    model = TorchMVERegressor(modern, **QUICK).fit(X, Y)
    assert model.reg_mean_ == model.reg_var_
    with pytest.raises(ValueError, match="separate penalties need separate networks"):
        TorchMVERegressor(modern, reg_var=0.5, **QUICK).fit(X, Y)


def test_ctrl_c_leaves_it_unfitted():
    class Interrupted(nn.Linear):
        def forward(self, x):
            raise KeyboardInterrupt

    model = TorchMVERegressor(net, **QUICK).fit(X, Y)
    model.set_params(module=lambda: MeanVarianceNet(Interrupted(2, 1), None))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_mixed_precision_learns_too():
    exact = TorchMVERegressor(net, **QUICK).fit(X, Y)
    mixed = TorchMVERegressor(net, mixed_precision=True, **QUICK).fit(X, Y)
    assert not same(exact, mixed)
    np.testing.assert_allclose(mixed.predict(X), exact.predict(X), atol=0.1)


def test_progress_bar(capsys):
    TorchMVERegressor(net, verbose=1, **QUICK).fit(X, Y)
    assert "20/20" in capsys.readouterr().err
