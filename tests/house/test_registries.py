"""Each kind of choice is listed once, by the engine; everything else must know the same names."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from importlib.resources import files
from pkgutil import iter_modules
from types import SimpleNamespace

import numpy as np
import pytest
import reference

from mvenet import AutoRegressor, MVERegressor, MVERegressorCV, _models, recipes
from mvenet._automatic import baselines
from mvenet._models.architecture import ACTIVATIONS, Architecture
from mvenet._models.free_shape import SAMPLERS
from mvenet._training import fleet
from mvenet._training.plan import Table
from mvenet.onnx import _composite, _graph, _shape
from mvenet.persistence._names import PARTS, located
from mvenet.report import _embedded

pytestmark = pytest.mark.usefixtures("short")

CHOICES = {
    "activation": ACTIVATIONS,
    "objective": fleet.OBJECTIVES,
    "schedule": fleet.SCHEDULES,
    "strategy": tuple(recipes.STRATEGIES),
}


@pytest.mark.parametrize("estimator", [MVERegressor, MVERegressorCV])
@pytest.mark.parametrize("name", CHOICES)
def test_estimators_allow_what_there_is(estimator, name):
    (allowed,) = estimator()._parameter_constraints[name]
    further = {"activation": {"auto"}, "schedule": {"auto"}, "strategy": {"cross-fit"}}
    further = further.get(name, set()) if estimator is MVERegressor else set()
    assert allowed.options == set(CHOICES[name]) | further
    assert all(f'"{value}"' in MVERegressor.__doc__ for value in CHOICES[name])


def test_every_choice_has_its_reference_formula():
    z, one = np.array([-1.0, 2.0]), np.ones(2)
    for name in ACTIVATIONS:
        assert reference.activate(name, z)[0].shape == (2,)
    for name in fleet.OBJECTIVES:
        assert len(reference.row_derivatives(z, one, one, name, 0.5, "joint")) == 2
    for name in fleet.SCHEDULES:
        assert reference.rate(1e-2, name, 1, 100) > 0


def test_every_activation_can_be_exported():
    assert set(_graph.ACTIVATIONS) == set(ACTIVATIONS)


def test_the_page_to_try_values_on_knows_every_activation():
    script = files("mvenet.report").joinpath("whatif.js").read_text(encoding="utf-8")
    listed = re.search(r"const ACTIVATIONS = \{(.*?)\n  \};", script, re.DOTALL)[1]
    assert set(re.findall(r"^ +(\w+):", listed, re.MULTILINE)) == set(ACTIVATIONS)


def test_torch_knows_every_choice():
    pytest.importorskip("torch")
    from mvenet.torch import _convert, _regressor, _schedule

    assert set(_convert.ACTIVATIONS) == set(ACTIVATIONS)
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
            architecture=Architecture(**architecture),
            training=recipes.Training(**training),
        )  # fmt: skip


# --- parts of a blended mean ----------------------------------------------------------------------


def classes_with(method):
    """The classes of fitted models that have it."""
    modules = [
        import_module(f"{_models.__name__}.{m.name}") for m in iter_modules(_models.__path__)
    ]
    every = {c for module in modules for _, c in inspect.getmembers(module, inspect.isclass)}
    return [c for c in every if hasattr(c, method) and not getattr(c, "_is_protocol", False)]


def means():
    """The classes that can have a share in a blended mean."""
    return classes_with("evaluate")


def samplers():
    """The classes that can name values for a free shape."""
    return classes_with("draws")


def test_every_mean_is_known_to_files():
    assert len(means()) >= 6
    assert {mean.__name__ for mean in means()} <= {located("mvenet", name)[1] for name in PARTS}


def test_every_mean_has_its_nodes_or_its_refusal_in_onnx():
    assert set(_composite.mean_nodes.registry) == {object, *means()}


def test_every_sampler_is_known_to_files_and_to_the_check_of_shapes():
    assert len(samplers()) >= 2
    assert {sampler.__name__ for sampler in samplers()} <= set(PARTS)
    assert set(SAMPLERS) == set(samplers())


def test_every_sampler_has_its_nodes_or_its_refusal_in_onnx():
    assert set(_shape.sampler_nodes.registry) == {object, *samplers()}


def formulas(name):
    """The classes for which whatif.js has a formula in the list of that name."""
    script = files("mvenet.report").joinpath("whatif.js").read_text(encoding="utf-8")
    listed = re.search(rf"const {name} = \{{(.*?)\n    \}};", script, re.DOTALL)[1]
    return sorted(re.findall(r"^ +(\w+):", listed, re.MULTILINE))


def test_every_mean_is_on_the_page_or_stood_in_for():
    packed = set(_embedded.mean_data.registry) - {object}
    assert packed.isdisjoint(_embedded.STOOD_IN_FOR)
    assert packed | set(_embedded.STOOD_IN_FOR) == set(means())
    assert formulas("MEANS") == sorted(mean.__name__ for mean in packed)


def test_every_sampler_is_on_the_page_or_stood_in_for():
    packed = set(_embedded.sampler_data.registry) - {object}
    assert packed.isdisjoint(_embedded.SAMPLERS_STOOD_IN_FOR)
    assert packed | set(_embedded.SAMPLERS_STOOD_IN_FOR) == set(samplers())
    assert formulas("SAMPLERS") == sorted(sampler.__name__ for sampler in packed)


def test_every_candidate_can_be_fitted_checked_and_timed_and_is_documented():
    X = np.random.default_rng(0).normal(size=(60, 2))
    rows, columns = np.arange(60), SimpleNamespace(plain=2, encoded=34)
    table = Table(X, X[:, 0], None, rows)
    assert {"networks", *baselines.FITS} == set(baselines.NAMES)
    for name in baselines.NAMES:
        assert f'"{name}"' in AutoRegressor.__doc__
        if name == "networks":
            continue
        fitted = baselines.FITS[name](X, table.y, None, 0)
        fitted.check(columns)
        inputs = SimpleNamespace(plain=X, clipped=X, threads=1)
        np.testing.assert_array_equal(fitted.evaluate(inputs), fitted.predict(X)[None])
        folds = [(rows[:40], rows[40:]), (rows[20:], rows[:20])]
        assert baselines.expected_seconds([name], table, folds, 1) > 0
