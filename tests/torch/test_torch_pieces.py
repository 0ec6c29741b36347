"""mvenet.torch, piece by piece: networks, losses, penalties, optimiser, dropout."""

from __future__ import annotations

import math

import numpy as np
import pytest
import reference as ref

pytest.importorskip(
    "mvenet.torch", reason="needs PyTorch and skorch: make test-torch", exc_type=ImportError
)
import torch
from torch import nn

from mvenet.distributions import Normal
from mvenet.torch import (
    Adam,
    BetaNLL,
    ConcreteDropout,
    CRPSLoss,
    FaithfulNLL,
    GaussianNLL,
    MCDropout,
    MeanVarianceNet,
    NaturalNLL,
    QualityDrivenLoss,
    Schedule,
    StudentTNLL,
    natural_to_mean,
    param_groups,
    regularisation,
    sampling,
)

torch.set_num_threads(1)


def mlp(n_in=3, units=6, **last):
    return nn.Sequential(nn.Linear(n_in, units), nn.ELU(), nn.Linear(units, 1, **last))


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


# --- the network ---------------------------------------------------------------------------------


def test_variance_has_a_floor_and_is_exactly_e_in_the_warmup():
    net, x = MeanVarianceNet(mlp(), mlp()).double(), torch.randn(5, 3, dtype=torch.float64)
    mean, log_variance = net(x)
    expected = net.variance(x)[:, 0].exp() + 1e-6
    torch.testing.assert_close(log_variance.exp(), expected)
    net.set_output_bias(-1e4)
    torch.testing.assert_close(net(x)[1].exp(), torch.full_like(mean, 1e-6))
    net.enter("warmup")
    assert (net(x)[1] == 1.0).all()
    assert not net(x)[1].requires_grad


def test_bias_of_the_output_is_found_wherever_it_is():
    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.out, self.wide = nn.LayerNorm(3), nn.Linear(3, 1), nn.Linear(3, 2)

        def forward(self, x):
            return self.out(self.norm(x))

    x = torch.randn(4, 3)
    for variance in (mlp(), Odd(), nn.Linear(3, 1), mlp(bias=False), None):
        net = MeanVarianceNet(mlp(), variance, floor=1e-30)
        before = net(x)[1].detach()
        assert net.output_bias.numel() == 1 and net.output_bias.item() == 1.0
        net.set_output_bias(3.0)
        torch.testing.assert_close(net(x)[1].detach(), before + 2)
    assert MeanVarianceNet(mlp(), nn.Linear(3, 1), start=None).output_bias.item() != 1.0


def test_shared_trunk_and_what_each_stage_trains():
    trunk = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh())
    for parts in ({"trunk": trunk}, {}):
        heads = (nn.Linear(4, 1), nn.Linear(4, 1)) if parts else (mlp(), mlp())
        net = MeanVarianceNet(*heads, **parts)
        for stage in ("warmup", "joint", "variance"):
            net.enter(stage)
            net.zero_grad()
            GaussianNLL()(net(torch.randn(8, 3)), torch.randn(8)).backward()
            moved = {n.split(".")[0] for n, p in net.named_parameters() if p.grad is not None}
            fixed = {"warmup": {"variance"}, "joint": set(), "variance": {"mean", "trunk"}}[stage]
            assert moved == {"mean", "variance", *parts} - fixed
    net.train()
    net = MeanVarianceNet(nn.Linear(4, 1), nn.Linear(4, 1), trunk=trunk).train()
    net.enter("variance")
    before = trunk[1].running_mean.clone()
    net(torch.randn(8, 3) + 5)
    assert torch.equal(before, trunk[1].running_mean)  # a frozen mean stays as it is


def test_faithful_trunk_hears_nothing_of_the_variance():
    trunk = nn.Linear(3, 4)
    net = MeanVarianceNet(nn.Linear(4, 1), nn.Linear(4, 1), trunk, detach_trunk=True)
    net(torch.randn(8, 3))[1].sum().backward()
    assert trunk.weight.grad is None and net.variance.weight.grad is not None


@pytest.mark.parametrize(
    ("parts", "match"),
    [
        ((nn.Linear(3, 2), nn.Linear(3, 1)), r"mean module returned \(4, 2\).*nn.Linear"),
        ((nn.Linear(3, 1), nn.Linear(3, 2)), r"variance module returned \(4, 2\)"),
        ((nn.GRU(3, 1), nn.Linear(3, 1)), "mean module returned tuple"),
    ],
)
def test_wrong_shapes_are_told(parts, match):
    with pytest.raises(ValueError, match=match):
        MeanVarianceNet(*parts)(torch.zeros(4, 3))


def test_bad_networks_are_told():
    with pytest.raises(TypeError, match="mean must be a torch"):
        MeanVarianceNet(None, mlp())
    with pytest.raises(ValueError, match="is lazy"):
        MeanVarianceNet(mlp(), nn.LazyLinear(1))
    with pytest.raises(ValueError, match="floor=0"):
        MeanVarianceNet(mlp(), mlp(), floor=0)
    with pytest.raises(ValueError, match="natural parametrisation are one"):
        MeanVarianceNet(mlp(), mlp(), natural=True).enter("warmup")
    with pytest.raises(ValueError, match="stage='warm' is unknown"):
        MeanVarianceNet(mlp(), mlp()).enter("warm")


# --- losses --------------------------------------------------------------------------------------

LOSSES = {
    "nll": GaussianNLL(),
    "beta-nll": BetaNLL(0.7),
    "faithful": FaithfulNLL(),
    "crps": CRPSLoss(),
    "student-t": StudentTNLL(5.0),
}


def outputs(n=50, seed=0):
    rng = np.random.default_rng(seed)
    mean, log_variance, y, w = rng.normal(size=(4, n))
    return *(torch.tensor(a) for a in (mean, log_variance, y)), torch.tensor(w**2)


def test_gaussian_is_twice_pytorchs():
    mean, s, y, w = outputs()
    pytorch = nn.GaussianNLLLoss(reduction="none", eps=1e-30)(mean, y, s.exp())
    torch.testing.assert_close(GaussianNLL("none")((mean, s), y), 2 * pytorch)
    logpdf = torch.distributions.Normal(mean, (s / 2).exp()).log_prob(y)
    expected = -2 * logpdf - math.log(2 * math.pi)
    torch.testing.assert_close(GaussianNLL("none")((mean, s), y), expected)
    torch.testing.assert_close(GaussianNLL("sum")((mean, s), y, w), (w * expected).sum())
    torch.testing.assert_close(GaussianNLL()((mean, s), y, w), (w * expected).mean())


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_are_the_engines(name):
    mean, s, y, _ = outputs()
    mean.requires_grad_(), s.requires_grad_()
    with_floor = torch.logaddexp(s, torch.tensor(math.log(1e-6), dtype=torch.float64))
    LOSSES[name]((mean, with_floor), y).mul(len(y)).backward()
    arrays = (a.detach().numpy() for a in (mean, s, y))
    d_mean, d_s = ref.row_derivatives(*arrays, name, 0.7, "joint")
    np.testing.assert_allclose(mean.grad, d_mean, rtol=1e-10)
    np.testing.assert_allclose(s.grad, d_s, rtol=1e-10, atol=1e-14)


def test_students_t_is_pytorchs_without_its_constant():
    mean, s, y, _ = outputs()
    loss = StudentTNLL(df=3.5, reduction="none")((mean, s), y)
    logpdf = torch.distributions.StudentT(3.5, mean, (s / 2).exp()).log_prob(y)
    constant = torch.distributions.StudentT(3.5).log_prob(torch.tensor(0.0, dtype=y.dtype))
    torch.testing.assert_close(loss, 2 * (constant - logpdf))


def test_crps_is_the_distributions():
    mean, s, y, _ = outputs()
    loss = CRPSLoss("none")((mean, s), y)
    scores = Normal(mean.numpy(), (s / 2).exp().numpy()).crps(y.numpy())
    np.testing.assert_allclose(loss, 2 * math.sqrt(math.pi) * scores, rtol=1e-9)


def test_quality_driven_intervals_by_hand():
    rng = np.random.default_rng(0)
    mean, half, y = rng.normal(size=200), rng.uniform(0.5, 1.5, 200), rng.normal(size=200)
    output = torch.tensor(mean), torch.tensor(2 * np.log(half))
    held = np.abs(y - mean) <= half
    width = (2 * half[held]).mean()
    loss = QualityDrivenLoss(0.9, softness=3.0, sharpness=1e9)(output, torch.tensor(y)).item()
    assert loss == pytest.approx(width + 3 * 200 / 0.09 * (0.9 - held.mean()) ** 2)
    enough = QualityDrivenLoss(0.1)(output, torch.tensor(y)).item()
    assert enough == pytest.approx(width)
    with pytest.raises(ValueError, match="takes no weights"):
        QualityDrivenLoss()(output, torch.tensor(y), torch.arange(200))
    with pytest.raises(ValueError, match="coverage=95"):
        QualityDrivenLoss(95)


def test_quality_driven_intervals_learn_to_hold_nine_in_ten():
    rng = np.random.default_rng(1)
    x = torch.tensor(rng.uniform(-1, 1, (400, 1)))
    y = 0.3 * torch.tensor(rng.normal(size=400)) + 0.5
    net = MeanVarianceNet(nn.Linear(1, 1).double(), None)
    loss, optimizer = QualityDrivenLoss(sharpness=50.0), torch.optim.Adam(net.parameters(), lr=0.03)
    for _ in range(600):
        optimizer.zero_grad()
        loss(net(x), y).backward()
        optimizer.step()
    with torch.no_grad():
        mean, s = net(x)
        half = (s / 2).exp()
    assert 0.86 < ((y - mean).abs() <= half).double().mean() < 0.96
    assert 0.4 < half.mean() < 0.62  # 1.645 times 0.3


def test_natural_parameters_are_the_same_likelihood():
    eta, s, y, w = outputs()
    mean, _ = natural_to_mean(eta, s)
    loss = NaturalNLL("none")((eta, s), y, w)
    torch.testing.assert_close(loss, GaussianNLL("none")((mean, s), y, w))
    natural = torch.distributions.Normal(mean, (s / 2).exp())
    torch.testing.assert_close(natural._natural_params[0], eta)
    net = MeanVarianceNet(mlp(), mlp(), natural=True)
    x = torch.randn(5, 3)
    mean, log_variance = net(x)
    torch.testing.assert_close(mean, net.mean(x)[:, 0] * log_variance.exp())


def test_losses_refuse_what_would_broadcast():
    with pytest.raises(ValueError, match="flatten"):
        GaussianNLL()((torch.zeros(4), torch.zeros(4)), torch.zeros(4, 1))
    with pytest.raises(ValueError, match="reduction='max'"):
        GaussianNLL("max")


def test_extreme_outputs_stay_finite():
    mean = torch.tensor([0.0, 1e3, 0.0], requires_grad=True)
    s = torch.tensor([-80.0, 80.0, 1e3], requires_grad=True)
    for loss in LOSSES.values():
        value = loss((mean, torch.logaddexp(s.clamp(max=80), torch.tensor(math.log(1e-6)))),
                     torch.zeros(3))  # fmt: skip
        assert math.isfinite(value.item())


# --- penalties and Adam --------------------------------------------------------------------------


def penalised_step(net, groups, x, y, **settings):
    optimizer = torch.optim.SGD(groups, lr=1.0, **settings)
    optimizer.zero_grad()
    GaussianNLL()(net(x), y).backward()
    before = {n: p.detach().clone() for n, p in net.named_parameters()}
    optimizer.step()
    return {n: before[n] - p.detach() for n, p in net.named_parameters()}


def test_penalties_are_the_gradient_of_their_sums_of_squares():
    net = MeanVarianceNet(mlp(), mlp()).double()
    x, y = torch.randn(9, 3).double(), torch.randn(9).double()
    loss = GaussianNLL()(net(x), y)
    for name, penalty in (("mean", 0.3), ("variance", 0.7)):
        weights = [p for n, p in net.named_parameters() if n.startswith(name) and "weight" in n]
        loss = loss + penalty * sum(p.square().sum() for p in weights)
    expected = torch.autograd.grad(loss, list(net.parameters()))
    moved = penalised_step(net, param_groups(net, 0.3, 0.7), x, y)
    for one, two in zip(moved.values(), expected, strict=True):
        torch.testing.assert_close(one, two)


def test_every_parameter_is_in_one_group():
    conv = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Flatten(), nn.LazyLinear(1))
    conv(torch.zeros(1, 1, 5, 5))
    net = MeanVarianceNet(conv, None)
    groups = {g["name"]: g["params"] for g in param_groups(net, 0.1, 0.2)}
    assert sorted(map(id, net.parameters())) == sorted(id(p) for g in groups.values() for p in g)
    assert {p.ndim for p in groups["mean"]} == {4, 2}
    assert {p.ndim for p in groups["free"]} == {1, 0}


def test_shared_weights_take_one_penalty_only():
    trunk, lent = nn.Linear(3, 4), nn.Linear(3, 1)
    modern = MeanVarianceNet(nn.Linear(4, 1), nn.Linear(4, 1), trunk)
    lending = MeanVarianceNet(lent, nn.Sequential(lent, nn.Linear(1, 1)))
    for net in (modern, lending):
        with pytest.raises(ValueError, match="separate penalties need separate networks"):
            param_groups(net, 0.1, 0.2)
        groups = param_groups(net, 0.1, 0.1)
        assert sum(len(g["params"]) for g in groups) == len(list(net.parameters()))
    with pytest.raises(ValueError, match="reg_var=-1"):
        param_groups(modern, 0.1, -1)


def test_clipping_counts_the_penalty_in():
    net = MeanVarianceNet(nn.Linear(2, 1), None).double()
    groups = param_groups(net, 3.0, 0.0)
    optimizer = torch.optim.SGD(groups, lr=1.0)
    schedule = Schedule(net, optimizer, strategy="no-warmup", epochs=1, clip_value=0.5)
    weight, before = net.mean.weight, torch.tensor([[2.0, 0.01]], dtype=torch.float64)
    with torch.no_grad():
        weight.copy_(before)
    schedule.begin_epoch()
    weight.grad = torch.tensor([[-11.9, 0.2]], dtype=torch.float64)  # with 2 · 3 · W: 0.1 and 0.26
    schedule.step()
    torch.testing.assert_close(
        before - weight.detach(), torch.tensor([[0.1, 0.26]], dtype=torch.float64)
    )
    weight.grad = torch.tensor([[9.0, -9.0]], dtype=torch.float64)
    at = weight.detach().clone()
    schedule.step()
    torch.testing.assert_close(
        at - weight.detach(), torch.tensor([[0.5, -0.5]], dtype=torch.float64)
    )


def test_adam_is_pytorchs_but_for_epsilon():
    x, y = torch.randn(9, 3), torch.randn(9)
    nets = []
    for kind in (Adam, torch.optim.Adam):
        torch.manual_seed(1)
        nets.append(MeanVarianceNet(mlp(), mlp()))
        optimizer = kind(nets[-1].parameters(), lr=0.01, eps=1e-30)
        for _ in range(5):
            optimizer.zero_grad()
            GaussianNLL()(nets[-1](x), y).backward()
            optimizer.step()
    for one, two in zip(nets[0].parameters(), nets[1].parameters(), strict=True):
        torch.testing.assert_close(one, two)


# --- dropout -------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(64, 10), (64, 10, 4, 4)])
@pytest.mark.parametrize("kind", ["mc", "concrete"])
def test_dropout_keeps_the_mean_and_drops_channels(kind, shape):
    layer = nn.Linear(10, 1) if len(shape) == 2 else nn.Conv2d(10, 1, 1)
    drop = MCDropout(0.3) if kind == "mc" else ConcreteDropout(layer, 100, p=0.3, temperature=0.02)
    x = torch.ones(shape)
    drop.train()
    masked = torch.stack([drop.masked(x) for _ in range(40)]).detach()
    assert abs(float(masked.mean()) - 1) < 0.03
    assert abs(float((masked < 0.5).float().mean()) - 0.3) < 0.03
    if len(shape) == 4:
        assert (masked == masked[..., :1, :1]).all()  # a channel as a whole
    drop.eval()
    assert torch.equal(drop.masked(x), x)
    with sampling(drop):
        draw = drop.masked(x)
    assert (draw == draw[:1]).all() and not torch.equal(draw, x)  # one network for all rows
    assert torch.equal(drop.masked(x), x)


def test_concrete_regularisation_is_the_papers():
    layer = nn.Linear(7, 5).double()
    drop = ConcreteDropout(layer, n_rows=200, length_scale=0.5, p=0.25)
    p, w2 = 0.25, layer.weight.square().sum().item()
    entropy = -(p * math.log(p) + (1 - p) * math.log(1 - p))
    divergence = 0.5**2 / 2 * (1 - p) * w2 / (1 - p) ** 2 - 7 * entropy  # M = W / (1 - p), eq. 3
    assert drop.regularisation().item() == pytest.approx(2 * divergence / 200, rel=1e-6)
    net = MeanVarianceNet(nn.Sequential(drop, nn.Linear(5, 1)), None)
    assert regularisation(net).item() == pytest.approx(drop.regularisation().item())
    assert regularisation(nn.Linear(2, 2)) == 0
    assert not any(p is layer.weight for p in param_groups(net, 0.1, 0.1)[0]["params"])


def test_concrete_dropout_learns_its_probability():
    """Of features that are needed it drops fewer and fewer, of useless ones more and more."""
    found = []
    for useful in (True, False):
        torch.manual_seed(0)
        net = MeanVarianceNet(ConcreteDropout(nn.Linear(4, 1), 500, p=0.2), None)
        x = torch.randn(500, 4)
        y = x.sum(1) if useful else torch.randn(500)
        optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
        for _ in range(200):
            optimizer.zero_grad()
            (GaussianNLL()(net(x), y) + regularisation(net)).backward()
            optimizer.step()
        found.append(net.mean.p.item())
    assert found[0] < 0.1 and found[1] > 0.3


def test_bad_dropout_is_told():
    with pytest.raises(ValueError, match=r"p=1\.0"):
        MCDropout(1.0)
    with pytest.raises(TypeError, match="wrap such a layer"):
        ConcreteDropout(nn.ReLU(), 100)
    with pytest.raises(ValueError, match="n_rows=0"):
        ConcreteDropout(nn.Linear(2, 1), 0)
