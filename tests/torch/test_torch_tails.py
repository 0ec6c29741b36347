"""Student's t whose degrees of freedom are learned: the loss, the network, the estimator."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats

pytest.importorskip(
    "mvenet.torch", reason="needs PyTorch and skorch: make test-torch", exc_type=ImportError
)
import torch
from torch import nn

from mvenet import metrics
from mvenet.torch import GaussianNLL, MeanVarianceNet, StudentTNLL, TorchMVERegressor, load
from mvenet.torch import param_groups as groups

torch.set_num_threads(1)
QUICK = {"objective": "student-t", "df": "learned", "epochs": 60, "warmup_epochs": 15}
QUICK |= {"learning_rate": 0.03, "batch_size": 200, "random_state": 0}


def mlp(n_in=1, units=8):
    return nn.Sequential(nn.Linear(n_in, units), nn.Tanh(), nn.Linear(units, 1))


def net(**settings):
    return MeanVarianceNet(mlp(), mlp(), tails=mlp(), **settings)


def outputs(n=40):
    rng = np.random.default_rng(0)
    mean, log_scale, y = rng.normal(size=(3, n))
    return tuple(torch.tensor(a) for a in (mean, log_scale, rng.uniform(3, 100, n), y))


def test_the_loss_is_scipys():
    *output, y = outputs()
    loss = StudentTNLL(df=None, reduction="none")(output, y).numpy()
    mean, log_scale, df = (part.numpy() for part in output)
    logpdf = stats.t(df, mean, np.exp(log_scale / 2)).logpdf(y.numpy())
    np.testing.assert_allclose(-0.5 * (loss + math.log(2 * math.pi)), logpdf, rtol=1e-10)
    normal = GaussianNLL("none")(output[:2], y)
    many = StudentTNLL(df=None, reduction="none")((*output[:2], torch.full_like(y, 1e7)), y)
    torch.testing.assert_close(many, normal, rtol=1e-4, atol=1e-4)


def test_its_gradients_are_those_of_finite_differences():
    *output, y = outputs(5)
    output = [part.requires_grad_() for part in output]
    assert torch.autograd.gradcheck(lambda *parts: StudentTNLL(df=None)(parts, y), output)


def test_it_is_a_normal_whose_precision_has_a_gamma_distribution():
    *output, y = outputs(4)
    densities = (-0.5 * StudentTNLL(None, "none")(output, y)).exp() / math.sqrt(2 * math.pi)
    rows = zip(*(part.tolist() for part in (*output, y, densities)), strict=True)
    for mean, log_scale, df, outcome, density in rows:
        shape, rate = df / 2, df / 2 * math.exp(log_scale)
        precision = stats.gamma(shape, scale=1 / rate)

        def joint(p, at=outcome, mean=mean, precision=precision):
            return stats.norm.pdf(at, mean, p**-0.5) * precision.pdf(p)

        whole, _ = integrate.quad(joint, 0, precision.isf(1e-14), limit=200, epsabs=1e-13)
        assert density == pytest.approx(whole, rel=1e-8)


def test_degrees_of_freedom_stay_within_their_bounds():
    tails = nn.Linear(1, 1, bias=False)
    model = MeanVarianceNet(mlp(), mlp(), tails=tails)
    x = torch.tensor([[-1e30], [0.0], [1e30]])
    with torch.no_grad():
        tails.weight.fill_(1.0)
        df = model(x)[2]
        torch.testing.assert_close(df, torch.tensor([3.0, math.sqrt(300), 100.0]))
        model.enter("warmup")
        assert (model(x)[2] == torch.tensor(math.sqrt(300))).all()


def test_each_stage_trains_its_part():
    model = net()
    trained = {"warmup": {"mean"}, "mean": {"mean"}, "variance": {"variance", "tails"}}
    for stage, parts in trained.items():
        model.enter(stage)
        model.zero_grad()
        StudentTNLL(df=None)(model.train()(torch.randn(6, 1)), torch.randn(6)).backward()
        moved = {n.split(".")[0] for n, p in model.named_parameters() if p.grad is not None}
        assert moved == parts
    assert model.tails.training and not model.mean.training
    penalised = {group["name"]: len(group["params"]) for group in groups(model, 1.0, 2.0)}
    assert penalised == {"mean": 2, "variance": 4, "free": 6}


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (1500, 1))
    noise = np.where(X[:, 0] > 0, rng.standard_t(2.5, 1500), rng.normal(size=1500))
    y = 2 * X[:, 0] + 0.3 * noise
    return TorchMVERegressor(net, **QUICK).fit(X, y), X, y


def test_it_learns_where_the_tails_are(fitted):
    model, X, y = fitted
    with torch.no_grad():
        outcome = model.networks_[0](torch.tensor([[-0.6], [0.6]]))
    mean, log_scale, df = (part.double() for part in outcome)
    assert df[0] > 3 * df[1]
    scale = model.y_scale_[0] * (0.5 * log_scale).exp().numpy()
    truth = stats.t(df.numpy(), model.y_mean_[0] + model.y_scale_[0] * mean.numpy(), scale)
    dist = model.predict_dist(np.array([[-0.6], [0.6]]))
    np.testing.assert_allclose(dist.logpdf([-1.0, 4.0]), truth.logpdf([-1.0, 4.0]), atol=2e-3)
    np.testing.assert_allclose(dist.std, truth.std(), rtol=1e-3)
    assert model.history_["nll"][-1] == pytest.approx(
        metrics.nll(y, model.predict_dist(X)), abs=0.02
    )


def test_nothing_that_leaves_it_is_nan(fitted):
    far = np.array([[0.0], [1e6], [-1e30]])
    for part in fitted[0].predict(far, return_std=True):
        assert np.isfinite(part).all()
    assert np.isfinite(fitted[0].predict_interval(far, [0.5, 0.999])).all()


def test_files_and_ensembles_have_them_too(fitted, tmp_path):
    model, X, y = fitted
    model.save(tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors", net)
    np.testing.assert_array_equal(again.predict_interval(X[:9]), model.predict_interval(X[:9]))
    two = TorchMVERegressor(net, **QUICK | {"epochs": 2, "n_members": 2}).fit(X[:60], y[:60])
    densities = []
    for member, mean_y, scale_y in zip(two.networks_, two.y_mean_, two.y_scale_, strict=True):
        parts = member(torch.tensor(X[:5], dtype=torch.float32))
        mean, log_scale, df = (part.double().detach().numpy() for part in parts)
        spread = scale_y * np.exp(log_scale / 2)
        densities.append(stats.t(df, mean_y + scale_y * mean, spread).pdf(y[:5]))
    density = np.mean(densities, axis=0)
    np.testing.assert_allclose(two.predict_dist(X[:5]).pdf(y[:5]), density, rtol=2e-3)


@pytest.mark.parametrize(
    ("module", "settings", "message"),
    [
        (lambda: MeanVarianceNet(mlp(), mlp()), {}, r"df='learned' needs a module.*tails="),
        (net, {"df": 5.0}, "The module has tails"),
        (net, {"objective": "nll"}, "df='learned' is for objective='student-t', not for 'nll'"),
        (net, {"df": "many"}, "'df' parameter"),
    ],
)
def test_what_is_no_such_model_is_said_before_it_trains(module, settings, message):
    with pytest.raises(ValueError, match=message):
        TorchMVERegressor(module, **QUICK | settings).fit(np.zeros((9, 1)), np.arange(9.0))


def test_bad_pieces():
    with pytest.raises(TypeError, match="tails must be a torch"):
        MeanVarianceNet(mlp(), mlp(), tails=5.0)
    with pytest.raises(ValueError, match="leave one out"):
        net(natural=True)
    with pytest.raises(ValueError, match=r"tails module returned \(4, 2\)"):
        MeanVarianceNet(mlp(), mlp(), tails=nn.Linear(1, 2))(torch.zeros(4, 1))
    *output, y = outputs(3)
    for loss, given in ((GaussianNLL(), output), (StudentTNLL(), output)):
        with pytest.raises(ValueError, match="returned 3 numbers a row"):
            loss(given, y)
    with pytest.raises(ValueError, match="returned 2 numbers a row"):
        StudentTNLL(df=None)(output[:2], y)
    with pytest.raises(ValueError, match="df=-1"):
        StudentTNLL(df=-1)
