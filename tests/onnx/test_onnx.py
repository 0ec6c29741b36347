"""ONNX files: what a runtime without mvenet computes is what predict returns.

Two judges. ``predict`` computes in float32, so the file must agree with it to 1e-5. The engine can
also compute in float64, with the same weights: with that the file must agree to the last digits.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import os
import stat
import sys
from itertools import pairwise

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from onnx.reference import ReferenceEvaluator
from onnx_runtime import run, session
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import mvenet
from mvenet import MVERegressor, MVERegressorCV
from mvenet._models.architecture import Architecture
from mvenet._training import fleet
from mvenet.onnx import export
from mvenet.recipes import Stage, Training

pytestmark = pytest.mark.usefixtures("short")

FAST = {
    "strategy": "warmup",
    "hidden_mean": (8, 5),
    "hidden_var": (6, 3),
    "warmup_epochs": 30,
    "epochs": 30,
    "learning_rate": 0.02,
    "random_state": 0,
}
FAST_CV = {
    **FAST,
    "strategy": "warmup",
    "reg_mean": (1e-4, 3e-2),
    "reg_var": (1e-3, 1e-1),
    "cv": 3,
    "n_members": 2,
}
(ACTIVATIONS,) = (
    sorted(option.options) for option in MVERegressor._parameter_constraints["activation"]
)


def table(n=80, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(3.0, 2.0, (n, d))
    y = 5 + 2 * X[:, 0] + np.sin(X[:, -1]) + (0.2 + 0.1 * X[:, 0] ** 2) * rng.standard_normal(n)
    return X, y


X, Y = table()


def rows(n=10_000, d=3, spread=1.5, seed=1):
    """float32 rows like those of the table, and somewhat beyond."""
    return np.random.default_rng(seed).normal(3.0, 2.0 * spread, (n, d)).astype(np.float32)


def fast(**settings):
    return MVERegressor(**FAST | settings)


def in_float64(model):
    """The same model, with the same weights, for which the engine computes in float64."""
    networks = model.model_.networks
    precise = copy.copy(model)
    double = dataclasses.replace(networks, parameters=networks.parameters.astype(np.float64))
    precise.model_ = dataclasses.replace(model.model_, networks=double)
    return precise


def assert_equal_to_predict(model, folder, X, last_digits=1e-12):
    spread = model.model_.networks.y_scale.max()
    mean, std = run(model, folder, X)
    assert mean.dtype == std.dtype == np.float64
    assert np.isfinite(mean).all() and np.isfinite(std).all() and (std > 0).all()
    for judge, tolerance in ((model, 1e-5), (in_float64(model), last_digits)):
        expected_mean, expected_std = judge.predict(X, return_std=True)
        assert mean.shape == expected_mean.shape and std.shape == expected_std.shape
        assert_allclose(mean, expected_mean, rtol=tolerance, atol=tolerance * spread)
        assert_allclose(std, expected_std, rtol=tolerance, atol=1e-3 * tolerance * spread)


# What it computes


@pytest.mark.parametrize("n_members", [1, 3])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations(activation, n_members, tmp_path):
    model = fast(activation=activation, n_members=n_members).fit(X, Y)
    assert_equal_to_predict(model, tmp_path, rows())


@pytest.mark.parametrize("n_members", [1, 3])
@pytest.mark.parametrize("hidden_var", [None, (), (4,), (7, 6, 5)])
@pytest.mark.parametrize("hidden_mean", [None, (), (1,), (7, 6, 5)])
def test_architectures(hidden_mean, hidden_var, n_members, tmp_path):
    model = fast(hidden_mean=hidden_mean, hidden_var=hidden_var, n_members=n_members).fit(X, Y)
    assert_equal_to_predict(model, tmp_path, rows(1000))


@pytest.mark.parametrize("objective", ["student-t", "natural"])
def test_what_is_no_normal_and_what_is_no_mean(objective, tmp_path):
    model = fast(objective=objective, strategy="no-warmup", n_members=2).fit(X, Y)
    assert_equal_to_predict(model, tmp_path, rows(1000))


@pytest.mark.parametrize("hidden_var", [None, (6, 3)])
def test_bounded_inputs(hidden_var, tmp_path):
    architecture = Architecture((8, 5), hidden_var, input_bound=1.5)
    stages = (Stage("warmup", 20, 0.01), Stage("joint", 20, 0.01, init_var_bias=True))
    model = fast(hidden_var=hidden_var).fit(X, Y)
    subset = np.arange(len(Y)), np.arange(0)
    trained = fleet.train(
        X, Y, None, [subset], [fleet.Network(stages, 1)],
        architecture=architecture, training=Training(),
    ).networks  # fmt: skip
    model.model_ = dataclasses.replace(model.model_, networks=trained)
    assert_equal_to_predict(model, tmp_path, rows())


def test_default_network(tmp_path):
    model = MVERegressor(strategy="warmup", random_state=0).fit(X, Y)
    assert_equal_to_predict(model, tmp_path, rows())


@pytest.mark.parametrize("final", ["folds", "refit"])
def test_search(final, tmp_path):
    model = MVERegressorCV(**FAST_CV | {"final": final}).fit(X, Y)
    assert abs(model.model_.scale - 1) > 0.01 and len(model.model_.networks) == (
        6 if final == "folds" else 2
    )
    assert_equal_to_predict(model, tmp_path, rows())


def test_scale_is_of_the_members_not_of_the_mixture(tmp_path):
    model = fast(n_members=3).fit(X, Y)
    plain = run(model, tmp_path, rows(100))
    model.model_ = dataclasses.replace(model.model_, scale=4.0)
    scaled = run(model, tmp_path, rows(100))
    epistemic = model.predict_dist(rows(100)).epistemic
    assert_array_equal(scaled[0], plain[0])
    assert_allclose(scaled[1] ** 2 - epistemic, 16 * (plain[1] ** 2 - epistemic), rtol=1e-4)
    assert_equal_to_predict(model, tmp_path, rows(100))


def test_std_is_never_zero(tmp_path):
    model = fast().fit(X, Y / 100)
    tiny = float(np.finfo(np.float64).tiny)  # what a search finds if no row is missed at all
    model.model_ = dataclasses.replace(model.model_, scale=tiny)
    _, std = run(model, tmp_path, rows(100))
    assert_array_equal(std, np.finfo(np.float64).tiny)
    assert_array_equal(std, model.predict(rows(100), return_std=True)[1])


@pytest.mark.parametrize("d", [1, 100])
def test_number_of_features(d, tmp_path):
    model = fast(n_members=2).fit(*table(200, d))
    assert_equal_to_predict(model, tmp_path, rows(1000, d))


@pytest.mark.parametrize(("factor", "offset"), [(1, 2020), (1e4, 1e9), (1e-12, 0), (1e30, -1e31)])
@pytest.mark.parametrize("n_members", [1, 2])
def test_units_of_x(factor, offset, n_members, tmp_path):
    model = fast(n_members=n_members).fit(factor * X + offset, Y)
    new = (factor * rows(1000).astype(np.float64) + offset).astype(np.float32)
    assert len(np.unique(new)) > 500
    assert_equal_to_predict(model, tmp_path, new)


@pytest.mark.parametrize(
    ("factor", "offset"),
    [(1e12, 0), (-1e-12, 0), (1, 1e9), (1e-300, 0), (1e290, -1e291), (0, 3), (0, 0)],
)
def test_units_of_y(factor, offset, tmp_path):
    for model in (fast(), fast(n_members=3), MVERegressorCV(**FAST_CV)):
        model.fit(X, factor * Y + offset)
        # predict takes the members' distances after the offset is added, which costs it digits
        lost = 10 * np.finfo(np.float64).eps * offset / abs(factor or 1)
        assert_equal_to_predict(model, tmp_path, rows(200), max(1e-12, lost))


def test_folds_with_their_own_units(tmp_path):
    """Each fold network has its own standardisation; one fold holds all that is large."""
    X, y = table(90)
    X[:30, 1] *= 1e4
    y[:30] *= 1e4
    folds = [(np.r_[30:90], np.r_[:30]), (np.r_[:60], np.r_[60:90])]
    model = MVERegressorCV(**FAST_CV | {"cv": folds, "scale": False}).fit(X, y)
    networks = model.model_.networks
    assert np.ptp(np.log(networks.y_scale)) > 5
    assert_equal_to_predict(model, tmp_path, rows(1000))
    factor = np.where(networks.y_scale > networks.y_scale.mean(), 1e250, 1)
    apart = dataclasses.replace(
        networks, y_mean=factor * networks.y_mean, y_scale=factor * networks.y_scale
    )
    model.model_ = dataclasses.replace(model.model_, networks=apart)
    assert_equal_to_predict(model, tmp_path, rows(1000))


def test_constant_columns(tmp_path):
    constant = X.copy()
    constant[:, 1] = 7.25
    model = fast(n_members=2).fit(constant, Y)
    assert_equal_to_predict(model, tmp_path, rows(1000))  # there it is not constant


# Rows far from all others, and rows that predict refuses


@pytest.mark.parametrize("hidden_var", [None, (), (6, 3)])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_far_away(activation, hidden_var, tmp_path):
    model = fast(activation=activation, hidden_var=hidden_var, n_members=2).fit(X, Y)
    distances = np.r_[10.0 ** np.arange(1, 39), 3e38].astype(np.float32)
    directions = np.random.default_rng(2).choice([-1, 0, 1], (20, 1, 3))
    far = (directions * distances[:, None]).reshape(-1, 3).astype(np.float32)
    mean, std = run(model, tmp_path, far)
    assert np.isfinite(mean).all() and np.isfinite(std).all() and (std > 0).all()
    # as float64, because scikit-learn adds up all numbers and warns where that overflows
    far = far.astype(np.float64)
    expected_mean, expected_std = in_float64(model).predict(far, return_std=True)
    spread = model.model_.networks.y_scale.max()
    # Sums of terms of 1e6 lose six more digits, here and there.
    assert_allclose(mean, expected_mean, rtol=1e-9, atol=1e-8 * spread)
    assert_allclose(std, expected_std, rtol=1e-8)
    if hidden_var == ():
        assert expected_std.max() > 1e5 * spread  # the limit was met


def huge_layers(sizes, sign):
    """Weights such that sums of both signs meet in every layer; the engine allows up to 1e15."""
    layers = []
    for n_in, n_out in pairwise(sizes):
        weights = np.full((n_out, n_in), -1e14, np.float32)
        weights[:, 0] = 9e14
        layers.append(np.append(weights, np.full(n_out, 9e14)))
    layers[-1] *= sign
    return np.concatenate(layers)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("activation", ["elu", "relu", "silu"])
def test_weights_that_would_overflow(activation, sign, tmp_path):
    deep = (4,) * 30
    model = fast(hidden_mean=deep, hidden_var=deep, activation=activation).fit(X, Y)
    sizes = model.model_.networks.architecture.sizes(3)
    huge = np.concatenate([huge_layers(part, sign) for part in sizes])[None].astype(np.float32)
    networks = dataclasses.replace(model.model_.networks, parameters=huge)
    model.model_ = dataclasses.replace(model.model_, networks=networks)
    new = np.linspace(10, 20, 50, dtype=np.float32)[:, None].repeat(3, axis=1)
    mean, std = run(model, tmp_path, new)
    limit = sign * 1e6 * networks.y_scale + networks.y_mean
    assert_allclose(mean, np.repeat(limit, 50), rtol=1e-12)
    assert_allclose(std, np.repeat(networks.y_scale * (1e6 if sign > 0 else 1e-3), 50), rtol=1e-12)
    assert_allclose(model.predict(new, return_std=True), [mean, std], rtol=1e-6)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_what_predict_refuses(activation, tmp_path):
    for hidden_var in ((6, 3), None):
        model = fast(activation=activation, hidden_var=hidden_var).fit(X, Y)
        new = rows(4)
        new[1, 0], new[2, 2] = np.nan, np.inf
        mean, std = run(model, tmp_path, new)
        assert_array_equal(np.isnan(mean), [False, True, False, False])
        assert_array_equal(np.isnan(std), [False, True, False, False])
        new[2, 2] = np.finfo(np.float32).max  # a million standard deviations away are enough
        assert_array_equal(run(model, tmp_path, new), [mean, std])


# The file


@pytest.mark.parametrize("n_members", [1, 3])
def test_any_batch_size(n_members, tmp_path):
    loaded = session(fast(n_members=n_members).fit(X, Y), tmp_path)
    new = rows(1000)
    whole = np.array(loaded.run(None, {"X": new}))
    for size in (1, 7, 333):
        parts = [loaded.run(None, {"X": new[i : i + size]}) for i in range(0, 50, size)]
        together = np.concatenate(parts, axis=1)
        assert_allclose(together, whole[:, : together.shape[1]], rtol=1e-12, atol=1e-12)
    for output in loaded.run(None, {"X": new[:0]}):
        assert output.shape == (0,)


def test_interface(tmp_path):
    loaded = session(fast().fit(X, Y), tmp_path)
    (given,) = loaded.get_inputs()
    assert (given.name, given.type, given.shape) == ("X", "tensor(float)", ["n", 3])
    outputs = [(o.name, o.type, o.shape) for o in loaded.get_outputs()]
    assert outputs == [("mean", "tensor(double)", ["n"]), ("std", "tensor(double)", ["n"])]


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("hidden_var", [None, (), (6, 3)])
def test_the_standard_is_kept(activation, hidden_var, tmp_path):
    model = fast(activation=activation, hidden_var=hidden_var, n_members=2).fit(X, Y)
    path = tmp_path / "model.onnx"
    export(model, str(path))
    proto = onnx.load(path)
    onnx.checker.check_model(proto, full_check=True)
    assert [(o.domain, o.version) for o in proto.opset_import] == [("", 17)]
    assert proto.ir_version == 8
    shapes = {constant.name: list(constant.dims) for constant in proto.graph.initializer}
    limits = [n.input[1:] for n in proto.graph.node if n.op_type == "Clip"]
    assert limits and all(shapes[name] == [] for names in limits for name in names)
    # A second runtime, which has nothing in common with the first
    computed = ReferenceEvaluator(proto).run(["mean", "std"], {"X": rows(50)})
    assert_allclose(computed, run(model, tmp_path, rows(50)), rtol=1e-12, atol=1e-12)


def test_metadata(tmp_path):
    names = ["wind speed", "höhe/m", '"quoted"']
    model = fast().fit(pd.DataFrame(X, columns=names), Y)
    path = tmp_path / "model.onnx"
    export(model, path)
    proto = onnx.load(path)
    assert (proto.producer_name, proto.producer_version) == ("mvenet", mvenet.__version__)
    assert "in units of y" in proto.doc_string
    (names_of_columns,) = proto.metadata_props
    assert names_of_columns.key == "feature_names"
    assert json.loads(names_of_columns.value) == names
    export(fast().fit(X, Y), path)
    assert len(onnx.load(path).metadata_props) == 0


def test_a_member_costs_its_weights_in_float32_and_no_node(tmp_path):
    sizes, nodes = [], []
    for n_members in (1, 12):
        path = tmp_path / "model.onnx"
        model = fast(n_members=n_members, hidden_mean=(40, 20)).fit(X, Y)
        export(model, path)
        sizes.append(path.stat().st_size)
        nodes.append([node.op_type for node in onnx.load(path).graph.node])
    assert nodes[0] == nodes[1]
    per_member = (sizes[1] - sizes[0]) / 11
    assert per_member < model.model_.networks.parameters[0].nbytes + 10


def test_same_model_same_bytes(tmp_path):
    model = MVERegressorCV(**FAST_CV).fit(pd.DataFrame(X, columns=list("abc")), Y)
    paths = [tmp_path / "1.onnx", tmp_path / "2.onnx"]
    export(model, paths[0])
    export(copy.deepcopy(model), paths[1])
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_the_model_is_left_as_it_was(tmp_path):
    model = fast(n_members=2).fit(X, Y)
    before = copy.deepcopy(vars(model))
    export(model, tmp_path / "model.onnx")
    assert vars(model).keys() == before.keys()
    for name in ("parameters", "x_mean", "x_scale", "y_mean", "y_scale"):
        assert_array_equal(
            getattr(model.model_.networks, name), getattr(before["model_"].networks, name)
        )


# What is refused


def test_pipeline_is_refused_and_the_remedy_works(tmp_path):
    frame = pd.DataFrame(X, columns=list("abc")).assign(kind=["low", "high"] * (len(X) // 2))
    encode = ColumnTransformer(
        [("scale", StandardScaler(), list("abc")), ("encode", OneHotEncoder(), ["kind"])]
    )
    pipeline = make_pipeline(encode, fast()).fit(frame, Y)
    path = tmp_path / "model.onnx"
    with pytest.raises(TypeError, match=r"^A Pipeline .* model\[-1\].* model\[:-1\]\.transform"):
        export(pipeline, path)
    assert not path.exists()
    columns = pipeline[:-1].transform(frame).astype(np.float32)
    mean, std = run(pipeline[-1], tmp_path, columns)
    expected = pipeline.predict(frame, return_std=True)
    assert_allclose([mean, std], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (Ridge().fit(X, Y), "Ridge"),
        (GridSearchCV(fast(), {"reg_mean": [1e-2]}), "GridSearchCV"),
        (MVERegressor, "ABCMeta"),
        (None, "NoneType"),
        ("model.onnx", "str"),
    ],
)
def test_other_estimators_are_refused(model, name, tmp_path):
    with pytest.raises(TypeError, match=rf"^model must be a fitted AutoRegressor, .* got {name}: "):
        export(model, tmp_path / "model.onnx")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("model", [MVERegressor(), MVERegressorCV()])
def test_not_fitted(model, tmp_path):
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        export(model, tmp_path / "model.onnx")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("path", "kind", "remedy"),
    [
        ("absent/model.onnx", FileNotFoundError, "make it, or choose another"),
        ("folder", IsADirectoryError, "name a file in it"),
        ("file/model.onnx", FileNotFoundError, "make it, or choose another"),
        ("n" * 300, OSError, "choose another place"),
    ],
)
def test_bad_path_is_one_sentence(path, kind, remedy, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(kind, match=rf" cannot be written \(.*\): {remedy}") as caught:
        export(fast().fit(X, Y), tmp_path / path)
    assert repr(str(tmp_path / path)) in str(caught.value) and "None" not in str(caught.value)
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["file", "folder"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_read_only_folder(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError, match="choose another place"):
        export(fast().fit(X, Y), tmp_path / "model.onnx")
    tmp_path.chmod(0o700)


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("failure", [PermissionError(13, "Permission denied"), KeyboardInterrupt()])
def test_whole_or_not_at_all(step, failure, tmp_path, monkeypatch):
    def fail(*_):
        raise failure

    path = tmp_path / "model.onnx"
    path.write_text("what was there before")
    model = fast().fit(X, Y)
    with monkeypatch.context() as patch:
        patch.setattr(os, step, fail)
        with pytest.raises(type(failure), match=r"Permission denied|^$"):
            export(model, path)
    assert path.read_text() == "what was there before" and list(tmp_path.iterdir()) == [path]
    export(model, path)
    assert b"mvenet" in path.read_bytes() and list(tmp_path.iterdir()) == [path]


def test_temporary_file_is_in_the_same_folder(tmp_path, monkeypatch):
    moved = []
    monkeypatch.setattr(os, "replace", lambda source, target: moved.append((source, target)))
    export(fast().fit(X, Y), tmp_path / "model.onnx")
    ((source, target),) = moved
    assert tmp_path in source.parents and target == tmp_path / "model.onnx"


def test_others_may_read_the_file(tmp_path):
    (tmp_path / "usual").touch()
    export(fast().fit(X, Y), tmp_path / "model.onnx")
    modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert len(modes) == 1


def test_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    export(fast().fit(X, Y), "~/model.onnx")
    assert (tmp_path / "model.onnx").exists()


def test_without_onnx(tmp_path, monkeypatch):
    model = fast().fit(X, Y)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r'pip install "mvenet\[onnx\]"'):
        export(model, tmp_path / "model.onnx")


@pytest.mark.parametrize(("members", "objective"), [(1, "nll"), (3, "nll"), (2, "student-t")])
def test_quantiles_of_networks_by_choice(members, objective, tmp_path):
    X, y = table()
    model = MVERegressor(n_members=members, objective=objective, **FAST).fit(X, 1e3 * y + 1e5)
    path, levels = tmp_path / "model.onnx", (0.05, 0.5, 0.999)
    export(model, path, quantiles=levels)
    runtime = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    rows = X.astype(np.float32)
    (found,) = runtime.run(["quantiles"], {"X": rows})
    std = model.predict(X, return_std=True)[1]
    expected = model.predict_dist(rows).ppf(levels)
    assert (np.abs(found - expected) < 1e-5 * std[:, None] + 1e-2).all()
    if objective == "nll":  # a second runtime takes long for the many normals of a Student's t
        computed = ReferenceEvaluator(onnx.load(path)).run(["quantiles"], {"X": rows[:5]})[0]
        assert_allclose(computed, found[:5], rtol=1e-9)
    assert runtime.run(["quantiles"], {"X": rows[:0]})[0].shape == (0, 3)
