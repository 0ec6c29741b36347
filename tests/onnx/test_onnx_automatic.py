"""ONNX files of what an automatic search found: all its parts say what predict says."""

from __future__ import annotations

import copy
import dataclasses
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from onnx.reference import ReferenceEvaluator
from onnx_runtime import run, session
from shorter import short_trainings
from sklearn.linear_model import Ridge

from mvenet import AutoRegressor, MVERegressor, load
from mvenet._models.forest import Forest
from mvenet._models.free_shape import Atoms, Constant, Ends, TreeValues
from mvenet._models.gaussian_process import Process
from mvenet._models.means import GivenRegressor, Linear, MeanOfNoise, NetworkMean
from mvenet.distributions._atoms import nothing_between
from mvenet.onnx import export

pytestmark = pytest.mark.usefixtures("short")


FIXTURES = Path(__file__).parents[1] / "fixtures" / "format-3"


def table(n=150, seed=0):
    """Cells with a mean of their own, for trees, and a line; noise that differs."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 3))
    row, column = np.floor(2 * X[:, :2] + 4).astype(int).T
    std = np.where(X[:, 2] > 0, 0.5, 0.1)
    return X, 2 * rng.normal(size=(8, 8))[row, column] + X[:, 2] + std * rng.normal(size=n)


X, Y = table()
RNG = np.random.default_rng(1)
NEAR = RNG.uniform(-2.5, 2.5, (120, 3)).astype(np.float32)
FAR = (RNG.choice([-1, 0, 1], (120, 3)) * 10 ** RNG.uniform(0, 38, (120, 3))).astype(np.float32)
QUICK = {"candidates": ["trees"], "effort": "low", "cv": 2, "random_state": 0}
HEAP = RNG.choice([-3.0, 3.0], len(Y))
MODELS = {
    "alone": MVERegressor(random_state=0),
    "search": FIXTURES / "automatic.mve",  # every kind of mean
    "others": AutoRegressor(candidates=["linear", "trees"], cv=2, random_state=1),
    "process": AutoRegressor(candidates=["gaussian process"], cv=3, random_state=0),
    "log": AutoRegressor(target="log", effort="low", cv=2, random_state=0),
    "two modes": AutoRegressor(**QUICK),
    "skew": AutoRegressor(**QUICK),
    "grid": AutoRegressor(**QUICK),
    "zeros": AutoRegressor(**QUICK),
    "log grid": AutoRegressor(target="log", **QUICK),
    "log cap": AutoRegressor(target="log", **QUICK),
}
TARGETS = {
    "log": np.exp(0.5 * Y),
    "two modes": HEAP + 0.1 * Y,
    "skew": X[:, 2] + RNG.exponential(1.0, len(Y)),
    "grid": np.round(np.clip(Y, -4, 4)),
    "zeros": np.maximum(HEAP + 0.5 * Y, 0.0),
    "log grid": np.round(np.exp(0.4 * np.clip(Y, -4, 4))) + 1,
    "log cap": np.minimum(np.exp(0.5 * (0.5 * Y + HEAP)), 4.0),
}


@cache
def fitted(name):
    if isinstance(MODELS[name], Path):
        return load(MODELS[name])
    with short_trainings(times=4 if name == "others" else 25):  # every kind of noise
        return MODELS[name].fit(X, TARGETS.get(name, Y))


@pytest.fixture(params=MODELS)
def model(request):
    return fitted(request.param)


@pytest.fixture(scope="module")
def sessions(tmp_path_factory):
    """What a runtime made of each model's file, by the model."""
    made = {}

    def of(model):
        if model not in made:
            made[model] = session(model, tmp_path_factory.mktemp("onnx"))
        return made[model]

    return of


def assert_equal_to_predict(model, file, X):
    mean, std = file.run(["mean", "std"], {"X": X})
    assert mean.dtype == std.dtype == np.float64
    assert np.isfinite(mean).all() and np.isfinite(std).all() and (std > 0).all()
    # as float64, because scikit-learn adds up all numbers and warns where that overflows
    expected_mean, expected_std = model.predict(X.astype(np.float64), return_std=True)
    tolerance = 1e-5 * (model.model_.range.y_std or 1)
    if model.model_.log:  # of log y, so relative to y
        assert_allclose(mean, expected_mean, rtol=tolerance)
    else:
        assert_allclose(mean, expected_mean, rtol=0, atol=tolerance)
    # Where nearly everything is at one atom, only a difference of large numbers is left of it.
    least = 0.0 if model.model_.atoms is None else 1e-6 * expected_std.max()
    assert_allclose(std, expected_std, rtol=1e-5, atol=least)


@pytest.mark.parametrize("rows", [X.astype(np.float32), NEAR, FAR], ids=["seen", "near", "far"])
def test_equal_to_predict(model, rows, sessions):
    assert_equal_to_predict(model, sessions(model), rows)


def test_that_they_have_all_kinds_of_parts():
    parts = [type(mean) for name in MODELS for mean in fitted(name).model_.means]
    assert set(parts) == {MeanOfNoise, NetworkMean, Linear, Forest, Process}
    kinds = {(noise.joint, noise.encoded) for noise in fitted("others").model_.noises}
    assert len(kinds) == 4


def test_that_they_have_all_kinds_of_shapes():
    models = {name: fitted(name).model_ for name in MODELS}
    free = [model.free for model in models.values() if model.free is not None]
    assert {type(sampler) for shape in free for sampler in shape.samplers} == {TreeValues, Constant}
    assert {len(shape.ends) > 0 for shape in free} == {True}
    residuals = [shape.residuals for shape in free if shape.residuals is not None]
    assert {part.hurdle is None for part in residuals} == {True, False}
    alone = {
        name: nothing_between(model.atoms.cells)
        for name, model in models.items()
        if model.atoms is not None
    }
    assert alone == {"grid": True, "log grid": True, "zeros": False, "log cap": False}


def with_shape(name="two modes", **fields):
    """A fitted model whose shape or components have other limits."""
    model = copy.copy(fitted(name))
    model.model_ = dataclasses.replace(model.model_, **fields)
    return model


@pytest.mark.parametrize("widths", [(0.0, np.inf), (0.7, np.inf), (0.0, 0.2), (0.3, 0.4)])
def test_components_neither_too_narrow_nor_too_wide(widths, tmp_path):
    narrowest, widest = widths
    for name in ("two modes", "zeros"):
        model = with_shape(name, narrowest=narrowest, widest=widest)
        assert_equal_to_predict(model, session(model, tmp_path), NEAR)


def test_what_is_added_to_later_rows(tmp_path):
    seen = fitted("two modes").model_.range
    drifting = dataclasses.replace(seen, pace=np.array([0.5, 0.0, 3.0]), drift_std=2.0)
    model = with_shape(range=drifting)
    file = session(model, tmp_path)
    for rows in (NEAR, FAR):
        assert_equal_to_predict(model, file, rows)


def test_rows_are_told_apart_by_how_far_their_trees_disagree(tmp_path):
    shape = fitted("two modes").model_.free
    inside = fitted("two modes").model_.range.within(NEAR)
    spreads = np.std(shape.samplers[0].forest.values(inside), axis=0)
    ends = np.quantile(spreads, [0.2, 0.5, 0.7, 0.9])
    weights = RNG.dirichlet(np.ones(shape.weights.shape[1]), 5)
    changed = dataclasses.replace(shape, ends=ends, weights=weights)
    assert_equal_to_predict(
        with_shape(free=changed), session(with_shape(free=changed), tmp_path), NEAR
    )
    one = dataclasses.replace(shape, ends=ends[:0], weights=weights[:1].copy())
    assert_equal_to_predict(with_shape(free=one), session(with_shape(free=one), tmp_path), NEAR)


@pytest.mark.parametrize(
    "cells",
    [
        [[-np.inf, np.inf]],
        [[-np.inf, 0.5], [0.5, 2.0]],
        [[0.2, 0.5], [1.0, np.inf]],
        [[-np.inf, 0.5], [1.0, 1.5], [1.5, np.inf]],
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["two modes", "log"])
def test_atoms_wherever_they_are(name, cells, tmp_path):
    cells = np.array(cells)
    inside = np.clip(cells, -1.0 if name == "two modes" else 0.1, 3.0)
    atoms = Atoms(inside.mean(axis=1), cells, 0.1)
    model = with_shape(name, atoms=atoms, unit=3.0)
    file = session(model, tmp_path)
    assert_equal_to_predict(model, file, NEAR)
    assert_equal_to_predict(model, file, FAR)


@pytest.mark.parametrize(
    ("ends", "cells"),
    [((-0.5, 2.0), None), ((0.0, np.inf), [[1.0, 1.5]]), ((-np.inf, 1.0), [[0.1, 0.3]])],
    ids=str,
)
def test_what_is_squeezed_before_ends(ends, cells, tmp_path):
    atoms = None if cells is None else Atoms(np.mean(cells, axis=1), np.array(cells), 0.1)
    known = Ends(np.array(ends), np.array([0.2, 0.3]))
    model = with_shape(atoms=atoms, ends=known, unit=3.0)
    export(model, tmp_path / "model.onnx", quantiles=LEVELS)
    file = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    for rows in (NEAR, FAR):
        assert_equal_to_predict(model, file, rows)
        (found,) = file.run(["quantiles"], {"X": rows})
        expected = model.predict_dist(rows.astype(np.float64)).ppf(LEVELS)
        assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_values_by_what_has_no_nodes_are_refused(tmp_path):
    class Other:
        pass

    shape = fitted("two modes").model_.free
    model = copy.copy(fitted("two modes"))
    other = copy.copy(shape)
    vars(other)["samplers"] = (Other(), *shape.samplers[1:])
    model.model_ = copy.copy(model.model_)
    vars(model.model_)["free"] = other
    with pytest.raises(TypeError, match=r"^The model holds values by a Other.*leave what brings"):
        export(model, tmp_path / "model.onnx")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("X", [np.ones((40, 2)), np.c_[X[:40, 0], np.ones(40)]], ids=["all", "one"])
def test_constant_columns(X, tmp_path):
    model = MVERegressor(random_state=0).fit(X, Y[:40])
    assert_equal_to_predict(model, session(model, tmp_path), NEAR[:, :2])


@pytest.mark.parametrize(
    "change",
    [
        lambda process: {"points": np.zeros_like(process.points) + process.points[0]},
        lambda process: {"points": np.zeros_like(process.points)},
        lambda process: {"weights": np.zeros_like(process.weights)},
    ],
    ids=["copies of a column", "constant columns", "constant y"],
)
def test_a_process_of_equal_numbers(change, tmp_path):
    """Equal numbers of networks are written once; those of a process are no networks'."""
    model = copy.copy(fitted("process"))
    (process,) = (mean for mean in model.model_.means if isinstance(mean, Process))
    changed = dataclasses.replace(process, **change(process))
    parts = {"means": (changed,), "shares": np.ones(1)}
    model.model_ = dataclasses.replace(model.model_, **parts)
    assert_equal_to_predict(model, session(model, tmp_path), NEAR)


@pytest.mark.parametrize(("factor", "offset"), [(1e-12, 0), (1e9, 1e12), (0, 3)])
def test_units_of_y(factor, offset, tmp_path):
    search = AutoRegressor(candidates=["trees"], effort="low", cv=2, random_state=0)
    with short_trainings(times=4):
        model = search.fit(X[:80], factor * Y[:80] + offset)
    assert any(isinstance(mean, Forest) for mean in model.model_.means) or not factor
    assert_equal_to_predict(model, session(model, tmp_path), NEAR)


def test_rows_that_predict_refuses(model, sessions):
    new = NEAR[:4].copy()
    new[1, 0], new[2, 2] = np.nan, np.inf
    file = sessions(model)
    mean, std = file.run(["mean", "std"], {"X": new})
    assert_array_equal(np.isnan(mean), [False, True, False, False])
    assert_array_equal(np.isnan(std), [False, True, False, False])
    new[2, 2] = np.finfo(np.float32).max
    assert_allclose(file.run(["mean", "std"], {"X": new}), [mean, std], rtol=1e-12)


def test_any_batch_size(model, sessions):
    file = sessions(model)
    whole = np.array(file.run(["mean", "std"], {"X": NEAR[:50]}))
    for size in (0, 1, 7):
        part = np.array(file.run(["mean", "std"], {"X": NEAR[:size]}))
        assert_allclose(part, whole[:, :size], rtol=1e-6, atol=1e-6)


def test_the_standard_is_kept(model, tmp_path):
    expected = run(model, tmp_path, NEAR[:20])
    proto = onnx.load(tmp_path / "model.onnx")
    onnx.checker.check_model(proto, full_check=True)
    samplers = () if model.model_.free is None else model.model_.free.samplers
    trees = any(isinstance(part, Forest | TreeValues) for part in (*model.model_.means, *samplers))
    opsets = [("", 17), *([("ai.onnx.ml", 3)] if trees else [])]
    assert [(o.domain, o.version) for o in proto.opset_import] == opsets
    # A second runtime, which has nothing in common with the first
    computed = ReferenceEvaluator(proto).run(["mean", "std"], {"X": NEAR[:20]})
    assert_allclose(computed, expected, rtol=1e-6, atol=1e-6)


def test_same_model_same_bytes(model, tmp_path):
    paths = [tmp_path / "1.onnx", tmp_path / "2.onnx"]
    export(model, paths[0])
    export(copy.deepcopy(model), paths[1])
    assert paths[0].read_bytes() == paths[1].read_bytes()


LEVELS = [0.05, 0.5, 0.95, 0.001]


@pytest.mark.parametrize("name", ["log", "two modes", "zeros", "log grid"])
def test_quantiles_by_choice(name, tmp_path):
    model, path = fitted(name), tmp_path / "model.onnx"
    export(model, path, quantiles=LEVELS)
    onnx.checker.check_model(onnx.load(path), full_check=True)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    rows = np.vstack([NEAR[:60], FAR[:20]])
    mean, found = session.run(["mean", "quantiles"], {"X": rows})
    assert_allclose(mean, run(model, tmp_path, rows)[0], rtol=1e-12)
    expected = model.predict_dist(rows.astype(np.float64)).ppf(LEVELS)
    assert found.shape == expected.shape == (80, 4)
    tolerance = 1e-5 * expected.std()
    assert np.mean(np.abs(found - expected) > tolerance) < 0.01  # at the end of a cell, one jumps
    rows[0, 0] = np.nan
    assert np.isnan(session.run(["quantiles"], {"X": rows})[0]).sum() == 4


def test_levels_of_quantiles_are_within_0_and_1(tmp_path):
    with pytest.raises(ValueError, match=r"quantiles must .* 1\.5.*write 0\.05 for 5 %"):
        export(fitted("two modes"), tmp_path / "model.onnx", quantiles=[0.5, 1.5])
    assert list(tmp_path.iterdir()) == []


def test_regressors_of_the_user_are_refused(tmp_path):
    model = copy.copy(fitted("alone"))
    others = {"means": (GivenRegressor(Ridge().fit(X, Y)),), "shares": np.ones(1)}
    model.model_ = dataclasses.replace(model.model_, **others)
    with pytest.raises(
        TypeError, match=r'^candidates gave the model a Ridge.* candidates="networks"'
    ):
        export(model, tmp_path / "model.onnx")
    assert list(tmp_path.iterdir()) == []
