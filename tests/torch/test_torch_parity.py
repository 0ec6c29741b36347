"""The torch path and the engine follow each other step by step, from the same start and batches."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
import reference as ref

pytest.importorskip(
    "mvenet.torch", reason="needs PyTorch and skorch: make test-torch", exc_type=ImportError
)
import torch

from mvenet import MVERegressor, recipes
from mvenet._models.architecture import ACTIVATIONS, Architecture
from mvenet._models.networks import Networks
from mvenet._training import fleet
from mvenet.torch import (
    Adam,
    BetaNLL,
    CRPSLoss,
    FaithfulNLL,
    GaussianNLL,
    Schedule,
    StudentTNLL,
    from_engine,
    param_groups,
    to_engine,
)
from mvenet.torch._convert import to_module, to_parameters

torch.set_num_threads(1)
LOSSES = {
    "nll": GaussianNLL(),
    "beta-nll": BetaNLL(0.5),
    "faithful": FaithfulNLL(),
    "crps": CRPSLoss(),
    "student-t": StudentTNLL(5.0),
    "natural": GaussianNLL(),  # of a network whose outputs are natural parameters
}
STRATEGIES = ("no-warmup", "warmup", "warmup-fixed-mean")
BOTH = [
    (strategy, objective)
    for strategy, objective in itertools.product(STRATEGIES, LOSSES)
    if strategy == "no-warmup" or objective != "natural"
]
N, SEED = 40, 7
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
Y = np.sin(2 * X[:, 0]) + 0.3 * RNG.normal(size=N)
W = RNG.uniform(0.2, 2, N)


def engine(architecture, strategy, objective, epochs, batch_size=8, clip=5.0, schedule="constant"):
    """Parameters after so many epochs in each stage."""
    stages = recipes.stages(
        strategy, n_rows=N, batch_size=batch_size, epochs=epochs, warmup_epochs=epochs,
        learning_rate=0.01, schedule=schedule, reg_mean=0.01, reg_var=0.1,
    )  # fmt: skip
    training = recipes.Training(objective, 0.5, batch_size, clip)
    rows = [(np.arange(N), np.arange(0))]
    trained = fleet.train(X, Y, W, rows, [fleet.Network(stages, SEED)], architecture=architecture,
                          training=training, precise=True)  # fmt: skip
    return trained.networks.parameters[0]


def start(architecture, objective="nll"):
    """The engine's start as a torch module, for standardised rows."""
    net = ref.Net(3, architecture.hidden_mean, architecture.hidden_var, architecture.activation)
    unit = np.zeros((1, 3)), np.ones((1, 3)), np.zeros(1), np.ones(1)
    architecture = dataclasses.replace(architecture, natural=objective == "natural")
    return to_module(Networks(architecture, ref.initial(net, SEED)[None], *unit))


def ours(architecture, strategy, objective, epochs, batch_size=8, clip=5.0, schedule="constant"):
    """The same with PyTorch; parameters after every step."""
    net, loss, trace = start(architecture, objective), LOSSES[objective], []
    Xs, ys, _ = ref.standardise(X, Y, W)
    x, y, w = (torch.as_tensor(a) for a in (Xs, ys, ref.unit_mean(W, N)))
    optimizer = Adam(param_groups(net, 0.01, 0.1), lr=0.01)
    plan = Schedule(
        net, optimizer, strategy=strategy, epochs=epochs, warmup_epochs=epochs, clip_value=clip,
        schedule=schedule, steps_per_epoch=-(-N // batch_size),
    )  # fmt: skip
    stage = None
    while not plan.finished:
        if plan.stage != stage:
            stage, order = plan.stage, np.arange(N)
            rng = ref.Rng(SEED, ref.STREAM_WARMUP if stage == "warmup" else ref.STREAM_MAIN)
        plan.begin_epoch([(x, (y, w))])
        ref.shuffle(order, rng)
        for batch in torch.as_tensor(order.copy()).split(batch_size):
            optimizer.zero_grad()
            loss(net(x[batch]), y[batch], w[batch]).backward()
            plan.step()
            trace.append(to_parameters(net))
        plan.end_epoch()
    return trace


@pytest.mark.parametrize(("strategy", "objective"), BOTH)
def test_every_step_is_the_engines(strategy, objective):
    """Whole batches: an epoch is a step, so the engine can be asked after each of them."""
    architecture = Architecture((6, 4), (5,), "elu")
    for steps in (1, 2, 5, 10, 25, 50):
        expected = engine(architecture, strategy, objective, steps, batch_size=N)
        last = ours(architecture, strategy, objective, steps, batch_size=N)[-1]
        np.testing.assert_allclose(last, expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize(("strategy", "objective"), BOTH)
def test_fifty_steps_of_small_batches(strategy, objective):
    architecture = Architecture((6, 4), (5,), "elu")
    for clip, schedule in ((5.0, "constant"), (0.05, "cosine")):
        settings = {"epochs": 10, "batch_size": 9, "clip": clip, "schedule": schedule}
        expected = engine(architecture, strategy, objective, **settings)
        trace = ours(architecture, strategy, objective, **settings)
        assert len(trace) >= 50
        np.testing.assert_allclose(trace[-1], expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("schedule", fleet.SCHEDULES)
def test_other_architectures_and_schedules(activation, schedule):
    for hidden in (((5,), ()), ((4, 3), None), (None, (5,))):
        architecture = Architecture(*hidden, activation, input_bound=2.0)
        expected = engine(architecture, "warmup", "nll", 10, schedule=schedule)
        trace = ours(architecture, "warmup", "nll", 10, schedule=schedule)
        np.testing.assert_allclose(trace[-1], expected, rtol=0, atol=1e-8)


def test_all_that_the_engine_knows_is_compared():
    assert set(fleet.OBJECTIVES) == set(LOSSES)


@pytest.mark.parametrize("hidden_var", [(20,), (), None])
def test_a_table_model_becomes_a_module_and_back(hidden_var):
    rng = np.random.default_rng(1)
    table = rng.normal(size=(120, 3)) * [1, 100, 0.01] + [0, 2000, 5]
    y = 50 * table[:, 0] + rng.normal(size=120)
    model = MVERegressor(
        strategy="warmup",
        hidden_mean=(20,), hidden_var=hidden_var, epochs=30, warmup_epochs=30, n_members=3,
        random_state=0,
    ).fit(table, y)  # fmt: skip
    torch_model = from_engine(model)
    new = rng.normal(size=(50, 3)) * [1, 100, 0.01] + [0, 2000, 5]
    one, two = model.predict_dist(new), torch_model.predict_dist(new)
    np.testing.assert_allclose(two.means, one.means, rtol=0, atol=1e-6 * y.std())
    np.testing.assert_allclose(two.stds, one.stds, rtol=0, atol=1e-6 * y.std())
    back = to_engine(torch_model, model)
    np.testing.assert_array_equal(back.predict(new), model.predict(new))
    torch_model.set_params(strategy="no-warmup", epochs=2, learning_rate=1e-3, reg_mean=0.0)
    tuned = to_engine(torch_model.fit(table, y), model)
    assert not np.array_equal(tuned.predict(new), model.predict(new))
    np.testing.assert_allclose(
        tuned.predict(new), torch_model.predict(new), rtol=0, atol=2e-6 * y.std()
    )


def test_conversion_tells_what_it_cannot():
    from sklearn.linear_model import LinearRegression

    with pytest.raises(TypeError, match="on plain columns, got LinearRegression"):
        from_engine(LinearRegression())
    one, two = (
        MVERegressor(strategy="warmup", hidden_mean=h, epochs=1).fit(X, Y) for h in ((3,), (4,))
    )
    with pytest.raises(ValueError, match="the model that it was made of"):
        to_engine(from_engine(one), two)
