"""A fit is described once: the dry run, the progress bar and the fit itself read the same plan."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from mvenet import AutoRegressor, MVERegressor, MVERegressorCV, recipes
from mvenet._estimators.base import described, fit_together, workload
from mvenet._models.architecture import Architecture
from mvenet._training import fleet
from mvenet._training.plan import Plan, Request, Round, Table, drive, estimate, planned_steps
from mvenet.comparison import plan_comparison

pytestmark = pytest.mark.usefixtures("short")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2))
Y = X[:, 0] + np.exp(0.3 * X[:, 1]) * RNG.normal(size=40)
TINY = {"strategy": "warmup",
        "hidden_mean": (4,), "hidden_var": (3,), "epochs": 4, "warmup_epochs": 3, "batch_size": 16,
        "random_state": 0}  # fmt: skip
GRID = ((1e-3, 1e-2), (1e-2, 1e-1))
FITS = [
    MVERegressor(n_members=3, **TINY),
    MVERegressor(**TINY | {"strategy": "no-warmup"}),
    MVERegressorCV(*GRID, cv=3, n_members=1, **TINY),
    MVERegressorCV(*GRID, cv=3, n_members=2, **TINY),
    MVERegressorCV(*GRID, cv=3, n_members=2, final="refit", **TINY),
    MVERegressorCV(*GRID, cv=3, n_members=2, final="refit", scale=False, **TINY),
]


@pytest.mark.parametrize("model", FITS, ids=repr)
@pytest.mark.filterwarnings("ignore:The best reg_")
def test_a_fit_does_what_was_planned(model):
    _, plans = described([model], X, Y)
    done = []
    fit_together([model], X, Y, progress=done.append)
    assert done[-1] == model.n_steps_ == planned_steps(plans) == estimate(plans).steps


def test_the_time_of_a_search_counts_what_is_no_network():
    model = AutoRegressor(cv=2, random_state=0, n_jobs=1)
    _, (plan,) = described([model], X, Y)
    beside = plan.seconds_beside(threads=1)
    told = workload(model, X, Y)
    assert told.networks == sum(len(r.networks) for p in plan.rounds for r in p.requests)
    assert 0 < beside < told.seconds and told.steps == planned_steps([plan])
    assert not hasattr(model, "model_")
    _, (alone,) = described([model.set_params(candidates="networks")], X, Y)
    assert alone.seconds_beside(threads=1) == 0


@pytest.mark.filterwarnings("ignore:The best reg_")
def test_early_stopping_does_at_most_what_was_planned():
    model = MVERegressorCV(
        *GRID,
        cv=3,
        early_stopping=True,
        n_iter_no_change=1,
        **{**TINY, "epochs": 60},
    )
    _, plans = described([model], X, Y)
    assert model.fit(X, Y).n_steps_ < planned_steps(plans)


@pytest.mark.parametrize(
    "wrong", [{"batch_size": 0}, {"strategy": "warm-up"}, {"hidden_mean": (0,)}, {"epochs": 0.5}]
)
def test_a_dry_run_refuses_what_the_fit_refuses(wrong):
    name = next(iter(wrong))
    with pytest.raises(ValueError, match=f"The '{name}' parameter"):
        plan_comparison(X, Y, {"a": MVERegressor(**wrong)}, outer_cv=3)


def test_steps_of_companions_are_not_counted():
    alone = MVERegressor(**TINY).fit(X, Y)
    first, second = MVERegressor(**TINY), MVERegressor(**{**TINY, "reg_mean": 1.0})
    fit_together([first, second], X, Y)
    assert first.n_steps_ == second.n_steps_ == alone.n_steps_


# --- fits of another kind: rounds on other tables, of several architectures, with work in between


def table(inputs, target):
    return Table(inputs, target, None, np.arange(len(target)))


def request(over, architecture, mode="joint", seeds=(1, 2)):
    stage = recipes.Stage(mode, 5, 1e-2)
    networks = [fleet.Network((stage,), seed) for seed in seeds]
    rows = over.rows
    return Request(over, [(rows, rows[:0])], networks, architecture, recipes.Training())


def test_rounds_may_differ_in_table_and_architecture():
    given = table(X, Y)
    small, large = Architecture((3,), None), Architecture((6, 4), None)
    variance = Architecture(None, (4,))

    def stand_in():
        wider = np.column_stack([X, Y])
        return request(table(wider, Y), variance)

    plan = Plan(
        (
            Round((request(given, small), request(given, large))),
            Round((stand_in(),), settled=False),
        )
    )
    seen = []

    def fit():
        small_means, large_means = yield plan.rounds[0].requests
        mean = (small_means.networks.predict(X)[0] + large_means.networks.predict(X)[0]).mean(0)
        residuals = table(np.column_stack([X, mean]), Y - mean)
        (spread,) = yield [dataclasses.replace(plan.rounds[1].requests[0], table=residuals)]
        seen.append((small_means, large_means, spread))
        return "done"

    steps = []
    assert drive([plan, plan], [fit(), fit()], progress=steps.append) == ["done", "done"]
    (a, b, c), (d, e, f) = seen
    for one, other in ((a, d), (b, e), (c, f)):
        assert_array_equal(one.networks.parameters, other.networks.parameters)
    assert len(a.networks.architecture.hidden_mean) == 1
    assert c.networks.x_mean.shape == (2, 3) and np.isfinite(c.networks.parameters).all()
    # What both fits asked for at once was trained once; the tables of their own were not shared.
    assert steps[-1] == a.steps + b.steps + 2 * c.steps == planned_steps([plan, plan])
