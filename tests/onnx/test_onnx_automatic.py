"""ONNX files of what an automatic search found: all its parts say what predict says."""

from __future__ import annotations

import copy
import dataclasses
from functools import cache

import numpy as np
import onnx
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from onnx.reference import ReferenceEvaluator
from onnx_runtime import run
from sklearn.linear_model import Ridge

from mvenet import AutoRegressor, MVERegressor
from mvenet._models.forest import Forest
from mvenet._models.gaussian_process import Process
from mvenet._models.means import GivenRegressor, Linear, MeanOfNoise, NetworkMean
from mvenet.onnx import export


def table(n=150, seed=0):
    """Cells with a mean of their own, for trees, and a line; noise that differs."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 3))
    row, column = np.floor(2 * X[:, :2] + 4).astype(int).T
    std = np.where(X[:, 2] > 0, 0.5, 0.1)
    return X, 2 * rng.normal(size=(8, 8))[row, column] + X[:, 2] + std * rng.normal(size=n)


X, Y = table()
RNG = np.random.default_rng(1)
NEAR = RNG.uniform(-2.5, 2.5, (300, 3)).astype(np.float32)
FAR = (RNG.choice([-1, 0, 1], (300, 3)) * 10 ** RNG.uniform(0, 38, (300, 3))).astype(np.float32)
MODELS = {
    "alone": MVERegressor(random_state=0),
    "search": AutoRegressor(candidates=["networks", "linear", "trees"], cv=3, random_state=0),
    "others": AutoRegressor(candidates=["linear", "trees"], cv=3, random_state=0),
    "process": AutoRegressor(candidates=["gaussian process"], cv=3, random_state=0),
    "log": AutoRegressor(target="log", effort="low", cv=2, random_state=0),
}


@cache
def fitted(name):
    return MODELS[name].fit(X, np.exp(0.5 * Y) if name == "log" else Y)


@pytest.fixture(params=MODELS)
def model(request):
    return fitted(request.param)


def assert_equal_to_predict(model, folder, X):
    mean, std = run(model, folder, X)
    assert mean.dtype == std.dtype == np.float64
    assert np.isfinite(mean).all() and np.isfinite(std).all() and (std > 0).all()
    # as float64, because scikit-learn adds up all numbers and warns where that overflows
    expected_mean, expected_std = model.predict(X.astype(np.float64), return_std=True)
    tolerance = 1e-5 * (model.model_.range.y_std or 1)
    if model.model_.log:  # of log y, so relative to y
        assert_allclose(mean, expected_mean, rtol=tolerance)
    else:
        assert_allclose(mean, expected_mean, rtol=0, atol=tolerance)
    assert_allclose(std, expected_std, rtol=1e-5)


@pytest.mark.parametrize("rows", [X.astype(np.float32), NEAR, FAR], ids=["seen", "near", "far"])
def test_equal_to_predict(model, rows, tmp_path):
    assert_equal_to_predict(model, tmp_path, rows)


def test_that_they_have_all_kinds_of_parts():
    parts = [type(mean) for name in MODELS for mean in fitted(name).model_.means]
    assert set(parts) == {MeanOfNoise, NetworkMean, Linear, Forest, Process}
    for name in ("search", "others"):
        kinds = {(noise.joint, noise.encoded) for noise in fitted(name).model_.noises}
        assert len(kinds) == 4


@pytest.mark.parametrize("X", [np.ones((40, 2)), np.c_[X[:40, 0], np.ones(40)]], ids=["all", "one"])
def test_constant_columns(X, tmp_path):
    model = MVERegressor(random_state=0).fit(X, Y[:40])
    assert_equal_to_predict(model, tmp_path, NEAR[:, :2])


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
    assert_equal_to_predict(model, tmp_path, NEAR)


@pytest.mark.parametrize(("factor", "offset"), [(1e-12, 0), (1e9, 1e12), (0, 3)])
def test_units_of_y(factor, offset, tmp_path):
    search = AutoRegressor(candidates=["trees"], effort="low", cv=2, random_state=0)
    model = search.fit(X[:80], factor * Y[:80] + offset)
    assert any(isinstance(mean, Forest) for mean in model.model_.means) or not factor
    assert_equal_to_predict(model, tmp_path, NEAR)


def test_rows_that_predict_refuses(model, tmp_path):
    new = NEAR[:4].copy()
    new[1, 0], new[2, 2] = np.nan, np.inf
    mean, std = run(model, tmp_path, new)
    assert_array_equal(np.isnan(mean), [False, True, False, False])
    assert_array_equal(np.isnan(std), [False, True, False, False])
    new[2, 2] = np.finfo(np.float32).max
    assert_allclose(run(model, tmp_path, new), [mean, std], rtol=1e-12)


def test_any_batch_size(model, tmp_path):
    whole = np.array(run(model, tmp_path, NEAR[:50]))
    for size in (0, 1, 7):
        part = np.array(run(model, tmp_path, NEAR[:size]))
        assert_allclose(part, whole[:, :size], rtol=1e-6, atol=1e-6)


def test_the_standard_is_kept(model, tmp_path):
    expected = run(model, tmp_path, NEAR[:20])
    proto = onnx.load(tmp_path / "model.onnx")
    onnx.checker.check_model(proto, full_check=True)
    trees = any(isinstance(mean, Forest) for mean in model.model_.means)
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


def test_regressors_of_the_user_are_refused(tmp_path):
    model = copy.copy(fitted("alone"))
    others = {"means": (GivenRegressor(Ridge().fit(X, Y)),), "shares": np.ones(1)}
    model.model_ = dataclasses.replace(model.model_, **others)
    with pytest.raises(
        TypeError, match=r'^candidates gave the model a Ridge.* candidates="networks"'
    ):
        export(model, tmp_path / "model.onnx")
    assert list(tmp_path.iterdir()) == []
