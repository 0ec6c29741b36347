"""Each kind of choice is listed once, by the engine; everything else must know the same names."""

from __future__ import annotations

import re
from importlib.resources import files

import numpy as np
import pytest
import reference

from mvenet import MVERegressor, MVERegressorCV, fleet, recipes
from mvenet.onnx import _graph

CHOICES = {
    "activation": fleet.ACTIVATIONS,
    "objective": fleet.OBJECTIVES,
    "schedule": fleet.SCHEDULES,
    "strategy": tuple(recipes.STRATEGIES),
}


@pytest.mark.parametrize("estimator", [MVERegressor, MVERegressorCV])
@pytest.mark.parametrize("name", CHOICES)
def test_estimators_allow_what_there_is(estimator, name):
    (allowed,) = estimator()._parameter_constraints[name]
    further = {"auto"} if name == "strategy" else set()
    assert allowed.options == set(CHOICES[name]) | further
    assert all(f'"{value}"' in MVERegressor.__doc__ for value in CHOICES[name])


def test_every_choice_has_its_reference_formula():
    z, one = np.array([-1.0, 2.0]), np.ones(2)
    for name in fleet.ACTIVATIONS:
        assert reference.activate(name, z)[0].shape == (2,)
    for name in fleet.OBJECTIVES:
        assert len(reference.row_derivatives(z, one, one, name, 0.5, "joint")) == 2
    for name in fleet.SCHEDULES:
        assert reference.rate(1e-2, name, 1, 100) > 0


def test_every_activation_can_be_exported():
    assert set(_graph.ACTIVATIONS) == set(fleet.ACTIVATIONS)


def test_the_page_to_try_values_on_knows_every_activation():
    script = files("mvenet.report").joinpath("whatif.js").read_text(encoding="utf-8")
    listed = re.search(r"const ACTIVATIONS = \{(.*?)\n  \};", script, re.DOTALL)[1]
    assert set(re.findall(r"^ +(\w+):", listed, re.MULTILINE)) == set(fleet.ACTIVATIONS)


def test_torch_knows_every_choice():
    pytest.importorskip("torch")
    from mvenet.torch import _convert, _regressor, _schedule

    assert set(_convert.ACTIVATIONS) == set(fleet.ACTIVATIONS)
    assert set(_regressor.OBJECTIVES) == set(fleet.OBJECTIVES)
    assert set(_schedule.SCHEDULES) == set(fleet.SCHEDULES)


@pytest.mark.parametrize("name", CHOICES)
def test_an_unknown_choice_is_an_error_in_the_engine_too(name):
    stage = {"mode": "joint", "epochs": 1, "learning_rate": 0.1}
    architecture, training = {}, {}
    if name == "strategy":
        with pytest.raises(KeyError):
            recipes.stages("other", n_rows=9, batch_size=3, epochs=1, warmup_epochs=1)
        return
    kind = {"activation": architecture, "objective": training, "schedule": stage}[name]
    kind[name] = "other"
    rows = np.arange(9)
    with pytest.raises(ValueError, match="other"):
        fleet.train(
            np.ones((9, 1)), np.arange(9.0), None, [(rows, rows[:0])],
            [fleet.Network((recipes.Stage(**stage),), 0)],
            architecture=recipes.Architecture(**architecture),
            training=recipes.Training(**training),
        )  # fmt: skip
