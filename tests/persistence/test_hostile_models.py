"""Models that no fit has made: no file of one is read, by whomever, and none is written."""

from __future__ import annotations

import copy
import dataclasses
import io
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fuzz_persistence as fuzz
import numpy as np
import pytest
from fitted import tiny
from sklearn.compose import TransformedTargetRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import KFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from mvenet import CalibratedRegressor, persistence
from mvenet._models.checks import MalformedError
from mvenet._models.composite import Composite
from mvenet._models.ensemble import Ensemble
from mvenet._models.forest import Forest
from mvenet._models.free_shape import (
    Atoms,
    Constant,
    Ends,
    FreeShape,
    Hurdle,
    Residuals,
    TreeValues,
)
from mvenet._models.means import GivenRegressor, Linear, MeanOfNoise, NetworkMean
from mvenet.persistence import load, load_to_predict, save

pl = pytest.importorskip("polars")
skops_io = pytest.importorskip("skops.io")
from mvenet.table import TableEncoder  # noqa: E402

pytestmark = pytest.mark.usefixtures("short")

FIXTURES = Path(__file__).parents[1] / "fixtures"
RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = X[:, 0] + RNG.normal(size=40)
FRAME = pl.DataFrame(dict(zip("abc", X.T, strict=True)))


@pytest.fixture(scope="module")
def made() -> Pipeline:
    """What `mvenet fit` makes, with a part of every kind in it."""
    encoder = TableEncoder(target="y").fit(FRAME)
    found = load(FIXTURES / "format-3" / "automatic.mve")
    return Pipeline([("table", encoder), ("model", found)])


@pytest.fixture(scope="module")
def free() -> Pipeline:
    """The same with values that trees name, those of all rows, and an atom."""
    encoder = TableEncoder(target="y").fit(FRAME)
    found = load(FIXTURES / "format-3" / "automatic-atoms.mve")
    return Pipeline([("table", encoder), ("model", found)])


pack = persistence._pack


def packed(model: Any) -> bytes:
    """What `save` would write if it did not look."""
    return pack(skops_io, model)


def refusals(model: Any, path: Path) -> list[str]:
    """The sentences by which a model is not written, and its file is not read in either way."""
    path.unlink(missing_ok=True)
    written = list[bytes]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            persistence, "_pack", lambda *given: written.append(pack(*given)) or written[0]
        )
        with pytest.raises(
            ValueError, match=r"^The model cannot be saved, because its file "
        ) as saving:
            save(model, path)
    assert not path.exists()
    return [str(saving.value), *unreadable(path, written[0])]


def unreadable(path: Path, data: bytes) -> list[str]:
    path.write_bytes(data)
    said = []
    for read in (load, load_to_predict):
        with pytest.raises(ValueError, match=r"^'.*model\.mve' .*: .*\.$") as caught:
            read(path)
        said.append(str(caught.value))
    return said


def holding(thing: Any, **attributes: Any) -> Any:
    """A copy that nobody has checked."""
    other = copy.copy(thing)
    vars(other).update(attributes)
    return other


def with_model(pipeline: Pipeline, model: Any, **attributes: Any) -> Pipeline:
    estimator = holding(pipeline[-1], model_=model, **attributes)
    return Pipeline([pipeline.steps[0], ("model", estimator)])


def blend(model: Composite, *means: Any) -> Composite:
    """The model with another blended mean."""
    return holding(model, means=means, shares=np.full(len(means), 1 / len(means)))


# Trees that lead out of the model, wherever they stand

FORESTS = {
    "out of the forest": ([0, -1, -1], [-9e9, 1, 2], [2**31 - 1, 0, 0]),
    "a column too many": ([30_000, -1, -1], [0, 1, 2], [2, 0, 0]),
    "a column below none": ([-2, -1, -1], [0, 1, 2], [2, 0, 0]),
    "a cycle": ([0, 0, -1], [9e9, -9e9, 2], [2, 0, 0]),
    "no end": ([0, 0, 0], [9e9, 9e9, 9e9], [2, 2, 2]),
}


def forest(name: str) -> Forest:
    feature, threshold, right = FORESTS[name]
    kinds = (np.int16, np.float32, np.int32)
    arrays = [np.array(a, kind) for a, kind in zip((feature, threshold, right), kinds, strict=True)]
    return Forest(*arrays, np.array([0, 3]), 0.0, 1.0)


def target_regressor(inner: Any) -> Any:
    fitted = TransformedTargetRegressor(tiny().fit(X, Y)).fit(X, Y)
    return holding(fitted, regressor_=inner)


def calibrated(*members: Any) -> Any:
    fitted = CalibratedRegressor(FrozenEstimator(tiny().fit(X, Y))).fit(X, Y)
    return holding(fitted, members_=list(members))


def nested(pipeline: Pipeline, evil: Any, around: Callable[[Any], Any] = GivenRegressor) -> Any:
    """A model of ours among the means of a model of ours, which has the evil one among its own."""
    outer = pipeline[-1].model_
    inner = holding(pipeline[-1], model_=blend(outer, evil))
    return with_model(pipeline, blend(outer, around(inner)))


PLACES: dict[str, Callable[[Pipeline, Any], Any]] = {
    "among the means": lambda p, evil: with_model(p, blend(p[-1].model_, evil)),
    "beside good ones": lambda p, evil: with_model(
        p, blend(p[-1].model_, *p[-1].model_.means, evil)
    ),
    "in a candidate that is ours": nested,
    "in a candidate of a candidate": lambda p, evil: nested(p, GivenRegressor(nested(p, evil)[-1])),
    "in a candidate around ours": lambda p, evil: nested(
        p, evil, lambda inner: GivenRegressor(target_regressor(inner))
    ),
    "as a candidate": lambda p, evil: with_model(p, blend(p[-1].model_, GivenRegressor(evil))),
    "within a candidate": lambda p, evil: with_model(
        p, blend(p[-1].model_, GivenRegressor(target_regressor(evil)))
    ),
    "as the regressor of transformed targets": lambda p, evil: target_regressor(evil),
    "in the regressor of transformed targets": lambda p, evil: target_regressor(
        holding(p[-1], model_=blend(p[-1].model_, evil))
    ),
    "as a step": lambda p, evil: Pipeline([("first", evil), *p.steps]),
    "as a member": lambda p, evil: Pipeline([p.steps[0], ("model", calibrated(p[-1], evil))]),
    "in a member": lambda p, evil: Pipeline(
        [p.steps[0], ("model", calibrated(holding(p[-1], model_=blend(p[-1].model_, evil))))]
    ),
    "frozen": lambda p, evil: Pipeline(
        [p.steps[0], ("model", calibrated(FrozenEstimator(p[-1]), holding(p[-1], estimator=evil)))]
    ),
    "as an attribute": lambda p, evil: with_model(p, p[-1].model_, cv_results_=evil),
    "in a list": lambda p, evil: with_model(p, p[-1].model_, candidates=[evil]),
    "in a table of objects": lambda p, evil: with_model(
        p, p[-1].model_, cv_results_={"a": objects(evil)}
    ),
    "in a splitter": lambda p, evil: with_model(p, p[-1].model_, cv=holding(KFold(2), evil=evil)),
    "in an encoder": lambda p, evil: Pipeline(
        [("table", holding(p[0], imputer_=evil)), p.steps[1]]
    ),
    "as the model of an encoder": lambda p, evil: Pipeline(
        [("table", holding(p[0], model_=evil)), p.steps[1]]
    ),
    "as the model": lambda p, evil: with_model(p, evil),
    "in the place of an array": lambda p, evil: with_model(
        p, blend(p[-1].model_, Linear(evil, 0.0))
    ),
}


def objects(*things: Any) -> np.ndarray:
    table = np.empty(len(things), dtype=object)
    table[:] = things
    return table


@pytest.mark.parametrize("place", PLACES)
def test_trees_that_lead_nowhere_are_refused_wherever_they_stand(
    place: str, made: Pipeline, path: Path
) -> None:
    for said in refusals(PLACES[place](made, forest("out of the forest")), path):
        reasons = ("no part of a model of ours", "that no fit has made", "in the place of a model")
        assert any(reason in said for reason in reasons), said


@pytest.mark.parametrize("place", ["among the means", "in a candidate that is ours", "in a member"])
@pytest.mark.parametrize("name", FORESTS)
def test_no_tree_leads_out_of_its_model_or_round_in_it(
    name: str, place: str, made: Pipeline, path: Path
) -> None:
    reason = "leads nowhere|column too many|feature holds a value"
    for said in refusals(PLACES[place](made, forest(name)), path):
        assert any(words in said for words in reason.split("|")), said


PARTS_OF_SHAPES: dict[str, Callable[[Composite], Any]] = {
    "trees' values": lambda m: TreeValues(forest("out of the forest")),
    "values of all rows": lambda m: m.free.samplers[1],
    "shape": lambda m: m.free,
    "atoms": lambda m: m.atoms,
}


@pytest.mark.parametrize("name", PARTS_OF_SHAPES)
def test_parts_of_a_shape_are_refused_wherever_else_they_stand(
    name: str, free: Pipeline, path: Path
) -> None:
    model = free[-1].model_
    part = PARTS_OF_SHAPES[name](model)
    # What holds for one part holds for the others, where no kind of part has a place at all.
    places = [apply(free, part) for apply in PLACES.values() if name == "shape"]
    # In the place of another part of the model that has a place for it.
    fields = {"free", "atoms", "piecewise", "range", "shares", "noises", "widest"}
    fields -= {"free"} if name == "shape" else {"atoms"} if name == "atoms" else set()
    places += [with_model(free, holding(model, **{field: part})) for field in sorted(fields)]
    for evil in places:
        for said in unreadable(path, packed(evil)):
            reasons = ("no part of a model", "that no fit has made", "in the place of a model")
            assert any(reason in said for reason in reasons), said


@pytest.mark.parametrize("place", ["itself", "in a candidate"])
@pytest.mark.parametrize("name", FORESTS)
def test_no_tree_leads_out_of_a_free_shape(
    name: str, place: str, free: Pipeline, path: Path
) -> None:
    model = free[-1].model_
    evil = of_free(model, samplers=(TreeValues(forest(name)), model.free.samplers[1]))
    inner = holding(free[-1], model_=evil)
    around = {
        "itself": lambda: with_model(free, evil),
        "in a candidate": lambda: with_model(free, blend(model, GivenRegressor(inner))),
    }[place]()
    reason = "leads nowhere|column too many|feature holds a value"
    for said in refusals(around, path):
        assert any(words in said for words in reason.split("|")), said


def test_good_trees_in_a_candidate_are_read(made: Pipeline, path: Path) -> None:
    feature, threshold, right = np.int16([0, -1, -1]), np.float32([0, 1, 2]), np.int32([2, 0, 0])
    good = Forest(feature, threshold, right, np.array([0, 3]), 0.0, 1.0)
    model = nested(made, good)
    save(model, path)
    mean = load(path).predict(FRAME)
    np.testing.assert_array_equal(mean, model.predict(FRAME))
    encoder, predictor = load_to_predict(path)
    np.testing.assert_array_equal(mean, predictor.predict(encoder.transform(FRAME)))


# Attributes that would replace what a class does


@pytest.mark.parametrize(
    ("name", "predicts"),
    [
        *(("_checked", True), ("predict", True), ("predict_dist", True), ("_threads", True)),
        *(("_in_passing", True), ("_validate_params", False), ("_parameter_constraints", False)),
        *(("__sklearn_is_fitted__", False), ("__class__", True), ("__len__", False)),
    ],
)
def test_no_file_replaces_a_method_of_an_estimator(
    name: str, predicts: bool, made: Pipeline, path: Path
) -> None:
    save(made, path)
    seed = fuzz.seed_of(path, FRAME, b"")
    schema = seed.schema()
    (estimator,) = fuzz.objects(schema, {"AutoRegressor"})
    root = {"__module__": "numpy", "__class__": "sqrt", "__loader__": "FunctionNode"}
    fuzz.hold(estimator, name, root)
    path.write_bytes(fuzz.with_schema(seed, schema))
    with pytest.raises(
        ValueError, match=rf"replaces AutoRegressor\.{name}, which no file may: get"
    ):
        load(path)
    if predicts:  # the others are none of what predicts without scikit-learn
        with pytest.raises(
            ValueError, match=rf"replaces Predictor\.{name}, which no file may: get"
        ):
            load_to_predict(path)
    elif not name.startswith("__"):
        encoder, predictor = load_to_predict(path)
        assert predictor.predict(encoder.transform(FRAME)).shape == (40,)


@pytest.mark.parametrize("place", ["table", "estimator", "model", "encoder"])
def test_no_file_replaces_a_method_of_anything(place: str, made: Pipeline, path: Path) -> None:
    model = made[-1].model_
    evil = {
        "table": Pipeline([("table", holding(made[0], transform=np.log)), made.steps[1]]),
        "estimator": with_model(made, model, _checked=np.sqrt),
        "model": with_model(made, holding(model, moments=np.log)),
        "encoder": with_model(
            made, holding(model, piecewise=holding(model.piecewise, bounded=np.log))
        ),
    }[place]
    assert all("replaces" in said and "which no file may" in said for said in refusals(evil, path))


def test_attributes_have_names(made: Pipeline, path: Path) -> None:
    save(made, path)
    seed = fuzz.seed_of(path, FRAME, b"")
    for change in ("list", "number"):
        schema = seed.schema()
        step = schema["content"]["content"]["steps"]["content"][1]["content"][1]
        if change == "list":
            step["content"] = {**step["content"]["key_types"], "content": []}
        else:
            step["content"]["key_types"]["content"][0]["__class__"] = "float"
            held = step["content"]["content"]
            step["content"]["content"] = {"1.5": held.pop(next(iter(held))), **held}
        for said in unreadable(path, fuzz.with_schema(seed, schema)):
            assert "whose attributes have no names" in said


# Parts that are not as a fit makes them


def part(model: Composite, kind: type) -> Any:
    return next(mean for mean in model.means if type(mean) is kind)


CHANGES: dict[str, tuple[str, Callable[[Composite], Composite]]] = {
    "widest NaN": ("wide", lambda m: holding(m, widest=math.nan)),
    "widest 0": ("wide", lambda m: holding(m, widest=0.0)),
    "widest text": ("unit", lambda m: holding(m, widest="1")),
    "unit NaN": ("unit", lambda m: holding(m, unit=math.nan)),
    "unit infinite": ("unit", lambda m: holding(m, unit=math.inf)),
    "unit 0": ("unit", lambda m: holding(m, unit=0.0)),
    "unit below 0": ("unit", lambda m: holding(m, unit=-1.0)),
    "unit whole": ("unit", lambda m: holding(m, unit=10**400)),
    "unit true": ("unit", lambda m: holding(m, unit=True)),
    "log 1": ("scale", lambda m: holding(m, log=1)),
    "further field": ("place of Composite", lambda m: holding(m, further=1)),
    "list of means": ("no mean", lambda m: holding(m, means=list(m.means))),
    "no means": ("no mean", lambda m: holding(m, means=())),
    "no noises": ("no noise", lambda m: holding(m, noises=())),
    "donors NaN": ("donors", lambda m: holding(m, donors=X * math.nan)),
    "donors of others": ("donors", lambda m: holding(m, donors=X[:, 1:])),
    "no donors": ("donors", lambda m: holding(m, donors=X[:0])),
    "farthest NaN": ("far from", lambda m: holding(m, farthest=math.nan)),
    "farthest whole": ("far from", lambda m: holding(m, farthest=1)),
    "network as donors": ("donors", lambda m: holding(m, donors=m.noises[0].networks)),
    "share NaN": ("shares", lambda m: holding(m, shares=m.shares * math.nan)),
    "share below 0": ("shares", lambda m: holding(m, shares=-m.shares)),
    "shares of others": ("shares", lambda m: holding(m, shares=m.shares[1:])),
    "shares of objects": ("shares", lambda m: holding(m, shares=m.shares.astype(object))),
    "shares masked": ("shares", lambda m: holding(m, shares=np.ma.MaskedArray(m.shares))),
    "network as shares": ("shares", lambda m: holding(m, shares=m.noises[0].networks)),
    "typical NaN": ("typical_std", lambda m: of_range(m, typical_std=math.nan)),
    "typical below 0": ("typical_std", lambda m: of_range(m, typical_std=-1.0)),
    "typical too large": ("typical_std", lambda m: of_range(m, typical_std=1e200)),
    "typical whole": ("typical_std", lambda m: of_range(m, typical_std=10**400)),
    "drift NaN": ("drift_std", lambda m: of_range(m, drift_std=math.nan)),
    "pace below 0": ("pace", lambda m: of_range(m, pace=-np.ones_like(m.range.x_low))),
    "pace of others": ("pace", lambda m: of_range(m, pace=m.range.x_low[1:])),
    "spread too large": ("y_std", lambda m: of_range(m, y_std=1e308)),
    "range of y reversed": ("range", lambda m: of_range(m, y_low=9.0, y_high=-9.0)),
    "range of y endless": ("range", lambda m: of_range(m, y_low=-1e308, y_high=1e308)),
    "range of x NaN": ("x_low", lambda m: of_range(m, x_low=m.range.x_low * math.nan)),
    "range of x reversed": ("range", lambda m: of_range(m, x_low=m.range.x_high + 1)),
    "range of others": ("x_low", lambda m: of_range(m, x_low=m.range.x_low[1:])),
    "no range": ("place of Range", lambda m: holding(m, range=None)),
    "networks as range": ("place of Range", lambda m: holding(m, range=m.noises[0].networks)),
    "piece of a column too many": ("piece", lambda m: of_pieces(m, column=m.piecewise.column + 99)),
    "piece of a column below 0": ("piece", lambda m: of_pieces(m, column=m.piecewise.column - 9)),
    "pieces astray": ("pieces", lambda m: of_pieces(m, column=m.piecewise.column[::-1].copy())),
    "pieces of a table": ("pieces", lambda m: of_pieces(m, column=m.piecewise.column[None])),
    "networks as pieces": ("pieces", lambda m: of_pieces(m, column=m.noises[0].networks)),
    "width 0": ("width", lambda m: of_pieces(m, width=0 * m.piecewise.width)),
    "scale 0": ("scale", lambda m: of_pieces(m, scale=0 * m.piecewise.scale)),
    "fewer pieces": ("column", lambda m: of_pieces(
        m, column=m.piecewise.column[:-1], low=m.piecewise.low[:-1], width=m.piecewise.width[:-1]
    )),
    "weight NaN": ("weights", lambda m: of_noise(m, weights=m.noises[0].weights * math.nan)),
    "weight below 0": ("weights", lambda m: of_noise(m, weights=-m.noises[0].weights)),
    "weights of more": ("one in all", lambda m: of_noise(m, weights=m.noises[0].weights + 1)),
    "joint 1": ("no known kind", lambda m: of_noise(m, joint=1)),
    "other columns": ("columns", lambda m: of_noise(m, encoded=not m.noises[0].encoded)),
    "no networks": ("place of Networks", lambda m: of_noise(m, networks=None)),
    "noise in noise": ("place of Networks", lambda m: of_noise(m, networks=m.noises[0])),
    "no shape": ("place of Shape", lambda m: of_noise(m, shape=None)),
    "shape NaN": ("offset", lambda m: of_shape(m, offset=math.nan)),
    "shape reversed": ("shape", lambda m: of_shape(m, low=9.0, high=-9.0)),
    "mean as noise": ("place of Noise", lambda m: holding(m, noises=m.means)),
    "noise as mean": ("place of a mean", lambda m: blend(m, m.noises[0])),
    "range as mean": ("place of a mean", lambda m: blend(m, m.range)),
    "model as mean": ("place of a mean", lambda m: blend(m, m)),
    "number as mean": ("place of a mean", lambda m: blend(m, 3)),
    "estimator as mean": ("place of a mean", lambda m: blend(m, tiny().fit(X, Y))),
    "mean of noise that is not there": ("not there", lambda m: blend(m, MeanOfNoise(99))),
    "mean of noise below 0": ("not there", lambda m: blend(m, MeanOfNoise(-1))),
    "mean of noise without one": ("not there", lambda m: blend(m, MeanOfNoise(alone(m)))),
    "mean of noise of no number": ("no number", lambda m: blend(m, MeanOfNoise(True))),
    "other numbers of networks": ("different numbers", lambda m: holding(m, means=tuple(
        NetworkMean(mean.networks[:1], mean.encoded) if type(mean) is NetworkMean else mean
        for mean in m.means
    ))),
    "coefficients of others": ("coefficients", lambda m: blend(m, Linear(np.ones(9), 0.0))),
    "no intercept": ("intercept", lambda m: blend(m, Linear(np.ones(3), math.nan))),
    "text as regressor": ("no estimator", lambda m: blend(m, GivenRegressor("abc"))),
    "scaler as regressor": ("cannot predict", lambda m: blend(m, GivenRegressor(StandardScaler()))),
}  # fmt: skip


def of_range(model: Composite, **fields: Any) -> Composite:
    return holding(model, range=holding(model.range, **fields))


def of_pieces(model: Composite, **fields: Any) -> Composite:
    return holding(model, piecewise=holding(model.piecewise, **fields))


def of_noise(model: Composite, **fields: Any) -> Composite:
    return holding(model, noises=(holding(model.noises[0], **fields), *model.noises[1:]))


def of_shape(model: Composite, **fields: Any) -> Composite:
    return of_noise(model, shape=holding(model.noises[0].shape, **fields))


def alone(model: Composite) -> int:
    return next(number for number, noise in enumerate(model.noises) if not noise.joint)


@pytest.mark.parametrize("change", CHANGES)
def test_parts_that_no_fit_has_made(change: str, made: Pipeline, path: Path) -> None:
    reason, apply = CHANGES[change]
    evil = apply(made[-1].model_)
    with pytest.raises(MalformedError, match=reason):
        evil.check(3)
    for said in unreadable(path, packed(with_model(made, evil))):
        assert "holds a model that no fit has made: " in said and reason in said


def residuals(model: Composite, quantiles: np.ndarray, width: float = 1.0) -> Composite:
    return of_free(model, residuals=Residuals(quantiles, np.array([width])))


def hurdle(model: Composite, values: Any = (0.0,), **fields: Any) -> Composite:
    kept = {"cells": np.array([[-0.5, 0.5]]), "usual": np.array([0.3]), "trees": 3.0} | fields
    made = Hurdle(np.array(values), **kept)
    return of_free(model, residuals=Residuals(np.ones(1), np.ones(1), made))


def of_free(model: Composite, **fields: Any) -> Composite:
    return holding(model, free=holding(model.free, **fields))


def of_atoms(model: Composite, **fields: Any) -> Composite:
    return holding(model, atoms=holding(model.atoms, **fields))


def of_ends(model: Composite, values: Any, reach: Any = (0.1, 0.1), **fields: Any) -> Composite:
    ends = Ends(np.array(values, dtype=np.float64), np.array(reach, dtype=np.float64))
    return holding(model, **({"atoms": None, "ends": ends} | fields))


def marginal(model: Composite, values: Any) -> Composite:
    return of_free(model, samplers=(model.free.samplers[0], Constant(values)))


def many_trees(model: Composite, count: int) -> Composite:
    """Trees of a leaf each: few bytes, and a component for each of their widths."""
    leaves, starts = np.full(count, -1, np.int16), np.arange(count + 1)
    values = np.zeros(count, np.float32), np.zeros(count, np.int32)
    trees = TreeValues(Forest(leaves, *values, starts, 0.0, 1.0))
    return of_free(model, samplers=(trees, model.free.samplers[1]))


def many_atoms(model: Composite, count: int) -> Composite:
    values = np.arange(float(count))
    ends = np.column_stack([values - 0.5, values + 0.5])
    return of_atoms(model, values=values, cells=ends)


def cells(*pairs: tuple[float, float]) -> np.ndarray:
    return np.array(pairs, dtype=np.float64)


def share(model: Composite, value: float) -> np.ndarray:
    """The weights, the first of them another and the second what then is left."""
    weights = model.free.weights.copy()
    weights[:, 1] += weights[:, 0] - value
    weights[:, 0] = value
    return weights


SHAPES: dict[str, tuple[str, Callable[[Composite], Composite]]] = {
    "narrowest NaN": ("narrowest", lambda m: holding(m, narrowest=math.nan)),
    "narrowest below 0": ("narrowest", lambda m: holding(m, narrowest=-1.0)),
    "narrowest text": ("narrowest", lambda m: holding(m, narrowest="1")),
    "narrowest above widest": ("narrow", lambda m: holding(m, narrowest=1e100)),
    "list as shape": ("place of FreeShape", lambda m: holding(m, free=[])),
    "atoms as shape": ("place of FreeShape", lambda m: holding(m, free=m.atoms)),
    "shape as atoms": ("place of Atoms", lambda m: holding(m, atoms=m.free)),
    "shape further": ("place of FreeShape", lambda m: of_free(m, further=1)),
    "residuals NaN": ("residuals", lambda m: residuals(m, np.full(3, math.nan))),
    "no residuals": ("no residuals", lambda m: residuals(m, np.ones(0))),
    "residuals of a table": ("no list", lambda m: residuals(m, np.ones((3, 1)))),
    "residuals without a weight": ("weights", lambda m: residuals(m, np.ones(3))),
    "residual far away": ("farther", lambda m: residuals(m, np.full(3, 1e300))),
    "width of residuals below 0": ("not positive", lambda m: residuals(m, np.ones(3), -1.0)),
    "many residuals": ("more components", lambda m: residuals(m, np.ones(100_000))),
    "list as residuals": ("place of Residuals", lambda m: of_free(m, residuals=[])),
    "hurdle without atoms": ("no atoms", lambda m: hurdle(m, np.empty(0))),
    "hurdle NaN": ("atoms of a hurdle", lambda m: hurdle(m, np.full(1, math.nan))),
    "hurdle outside its cell": ("is outside", lambda m: hurdle(m, np.ones(1))),
    "hurdle that leaves nothing": ("leaves nothing", lambda m: hurdle(m, usual=np.ones(1))),
    "hurdle of no rows": ("shares of a hurdle", lambda m: hurdle(m, usual=np.zeros(1))),
    "hurdle of other shares": ("shares of a hurdle", lambda m: hurdle(m, usual=np.ones(2))),
    "hurdle in no cell": ("no pairs", lambda m: hurdle(m, cells=np.zeros(2))),
    "hurdle in other cells": ("other cells", lambda m: hurdle(m, cells=np.zeros((2, 2)))),
    "hurdle without an end": ("is outside", lambda m: hurdle(
        m, cells=np.array([[-math.inf, math.inf]]))),
    "hurdle of no trees": ("no trees", lambda m: hurdle(m, trees=0.0)),
    "hurdle of endless trees": ("trees", lambda m: hurdle(m, trees=math.inf)),
    "list as hurdle": ("place of Hurdle", lambda m: of_free(
        m, residuals=Residuals(np.ones(1), np.ones(1), []))),
    "no samplers": ("no values", lambda m: of_free(m, samplers=(), widths=())),
    "list of samplers": ("no values", lambda m: of_free(m, samplers=list(m.free.samplers))),
    "fewer samplers": ("no values", lambda m: of_free(m, samplers=m.free.samplers[:1])),
    "forest as sampler": ("place of values", lambda m: of_free(
        m, samplers=(m.means[0], m.free.samplers[1]))),
    "shape as sampler": ("place of values", lambda m: of_free(
        m, samplers=(m.free, m.free.samplers[1]))),
    "sampler as mean": ("place of a mean", lambda m: blend(m, m.free.samplers[0])),
    "values as mean": ("place of a mean", lambda m: blend(m, m.free.samplers[1])),
    "no forest": ("place of Forest", lambda m: of_free(
        m, samplers=(TreeValues(None), m.free.samplers[1]))),
    "trees in trees": ("place of Forest", lambda m: of_free(
        m, samplers=(TreeValues(m.free.samplers[0]), m.free.samplers[1]))),
    "values NaN": ("constant list", lambda m: marginal(m, np.full(32, math.nan))),
    "no values of all rows": ("no values", lambda m: marginal(m, np.ones(0))),
    "values of a table": ("no list", lambda m: marginal(m, np.ones((32, 1)))),
    "values of another number": ("other values", lambda m: marginal(m, np.ones(31))),
    "width NaN": ("widths", lambda m: of_free(
        m, widths=(m.free.widths[0] * math.nan, m.free.widths[1]))),
    "width 0": ("widths", lambda m: of_free(m, widths=(0 * m.free.widths[0], m.free.widths[1]))),
    "widths of a list": ("no table", lambda m: of_free(
        m, widths=(m.free.widths[0][:, 0].copy(), m.free.widths[1]))),
    "widths of others": ("other values", lambda m: of_free(
        m, widths=(np.ones((5, 7)), m.free.widths[1]))),
    "fewer widths": ("weights", lambda m: of_free(
        m, widths=(m.free.widths[0][:2], m.free.widths[1]))),
    "many trees": ("more components", lambda m: many_trees(m, 10**6)),
    "many widths": ("more components", lambda m: of_free(
        m, widths=(np.ones((10**5, 1)), m.free.widths[1]))),
    "ends NaN": ("ends of bins", lambda m: of_free(m, ends=np.array([math.nan]))),
    "ends below 0": ("ends of bins", lambda m: of_free(m, ends=np.array([-1.0]))),
    "ends backwards": ("before they begin", lambda m: of_free(m, ends=np.array([2.0, 1.0]))),
    "ends of a table": ("no list", lambda m: of_free(m, ends=np.ones((1, 1)))),
    "more ends": ("weights", lambda m: of_free(m, ends=np.array([1.0]))),
    "weight NaN": ("weights", lambda m: of_free(m, weights=share(m, math.nan))),
    "weight below 0": ("weights", lambda m: of_free(m, weights=share(m, -0.5))),
    "weights of two": ("one in all", lambda m: of_free(m, weights=2 * m.free.weights)),
    "weights of fewer": ("weights", lambda m: of_free(m, weights=m.free.weights[:, 1:].copy())),
    "weights of a list": ("weights", lambda m: of_free(m, weights=m.free.weights[0])),
    "weights of halves": ("weights", lambda m: of_free(m, weights=m.free.weights.astype("<f4"))),
    "networks as weights": ("weights", lambda m: of_free(m, weights=m.noises[0].networks)),
    "an end NaN": ("an end is none", lambda m: of_ends(m, [math.nan, 1])),
    "no ends": ("there is no end", lambda m: of_ends(m, [-math.inf, math.inf])),
    "ends too far": ("a far one", lambda m: of_ends(m, [-1e200, 1])),
    "ends too near": ("beyond each other", lambda m: of_ends(m, [0, 0.1])),
    "ends of three": ("no pair", lambda m: of_ends(m, [0, 1, 2])),
    "reach of nothing": ("reach of ends", lambda m: of_ends(m, [0, 1], [0.1, 0])),
    "ends at atoms": ("as far as atoms", lambda m: of_ends(m, [0, 9], atoms=m.atoms)),
    "ends of a logarithm": ("has ends", lambda m: of_ends(m, [0, 9], log=True)),
    "atoms as ends": ("place of Ends", lambda m: holding(m, ends=m.atoms)),
    "no atoms": ("no atoms", lambda m: of_atoms(m, values=np.ones(0), cells=np.ones((0, 2)))),
    "many atoms": ("more than a fit finds", lambda m: many_atoms(m, 10**6)),
    "atoms of a table": ("no list", lambda m: of_atoms(m, values=np.ones((1, 1)))),
    "atom NaN": ("atoms", lambda m: of_atoms(m, values=np.array([math.nan]))),
    "atom too large": ("squared", lambda m: of_atoms(m, values=np.array([-1e200]))),
    "atoms astray": ("in order", lambda m: of_atoms(
        m, values=np.array([1.0, 0.0]), cells=cells((0, 1), (1, 2)))),
    "atom outside": ("outside", lambda m: of_atoms(m, cells=cells((1, 2)))),
    "cells that overlap": ("overlap", lambda m: of_atoms(
        m, values=np.array([0.0, 1.0]), cells=cells((-1, 0.6), (0.5, 2)))),
    "cell of no length": ("overlap", lambda m: of_atoms(m, cells=cells((0, 0)))),
    "cell NaN": ("outside", lambda m: of_atoms(m, cells=cells((-1, math.nan)))),
    "cells of more": ("other cells", lambda m: of_atoms(m, cells=cells((-1, 1), (1, 2)))),
    "cells of a list": ("no pairs", lambda m: of_atoms(m, cells=np.array([-1.0, 1.0]))),
    "cells of texts": ("other cells", lambda m: of_atoms(m, cells=np.array([["-1", "1"]]))),
    "resolution 0": ("resolution", lambda m: of_atoms(m, resolution=0.0)),
    "resolution below 0": ("resolution", lambda m: of_atoms(m, resolution=-1.0)),
    "resolution infinite": ("resolution", lambda m: of_atoms(m, resolution=math.inf)),
    "resolution text": ("resolution", lambda m: of_atoms(m, resolution="1")),
}  # fmt: skip


@pytest.mark.parametrize("change", SHAPES)
def test_shapes_that_no_fit_has_made(change: str, free: Pipeline, path: Path) -> None:
    reason, apply = SHAPES[change]
    evil = apply(free[-1].model_)
    with pytest.raises(MalformedError, match=reason):
        evil.check(3)
    for said in unreadable(path, packed(with_model(free, evil))):
        assert "holds a model that no fit has made: " in said and reason in said


@pytest.mark.parametrize("name", ["automatic-atoms", "automatic-atoms-log"])
def test_good_shapes_are_read_in_either_way(name: str, free: Pipeline, path: Path) -> None:
    model = Pipeline([free.steps[0], ("model", load(FIXTURES / "format-3" / f"{name}.mve"))])
    shape = model[-1].model_
    assert type(shape.free) is FreeShape and type(shape.atoms) is Atoms
    save(model, path)
    read = load(path)
    encoder, predictor = load_to_predict(path)
    X = encoder.transform(FRAME)
    expected = model.predict(FRAME, return_std=True)
    np.testing.assert_array_equal(read.predict(FRAME, return_std=True), expected)
    np.testing.assert_array_equal(predictor.predict(X, return_std=True), expected)
    for level in (0.5, 0.9):
        ends = model[-1].predict_interval(X, level)
        np.testing.assert_array_equal(read[-1].predict_interval(X, level), ends)
        np.testing.assert_array_equal(predictor.predict_interval(X, level), ends)


PROCESS: dict[str, tuple[str, Callable[[Any], dict[str, Any]]]] = {
    "no points": ("no points", lambda p: {"weights": np.ones(0)}),
    "weights of a table": ("no list", lambda p: {"weights": p.weights[None]}),
    "NaN": ("weights of points", lambda p: {"weights": math.nan * p.weights}),
    "points of others": ("points", lambda p: {"weights": p.weights[1:]}),
    "polynomial": ("polynomial", lambda p: {"polynomial": -p.polynomial}),
    "no logs": ("place of LogColumns", lambda p: {"logs": 3}),
}


@pytest.mark.parametrize("change", PROCESS)
def test_processes_that_no_fit_has_made(change: str, made: Pipeline, path: Path) -> None:
    reason, fields = PROCESS[change]
    model = made[-1].model_
    process = next(mean for mean in model.means if hasattr(mean, "polynomial"))
    evil = holding(process, **fields(process))
    for said in refusals(with_model(made, blend(model, evil)), path):
        assert reason in said


@pytest.mark.parametrize("wrong", [99, -1, 3])
def test_logarithms_of_columns_that_are_not_there(wrong: int, made: Pipeline, path: Path) -> None:
    model = made[-1].model_
    process = next(mean for mean in model.means if hasattr(mean, "polynomial"))
    column = process.logs.column.copy()
    column[-1] = wrong
    evil = holding(process, logs=holding(process.logs, column=column))
    for said in refusals(with_model(made, blend(model, evil)), path):
        assert "logarithm" in said


def test_only_a_model_is_the_model(made: Pipeline, path: Path) -> None:
    model = made[-1].model_
    networks = model.noises[0].networks
    regressor = GivenRegressor(tiny().fit(X, Y))
    for part in (
        model.piecewise,
        model.range,
        regressor,
        networks,
        networks.architecture,
        *model.means,
    ):
        for said in refusals(with_model(made, part), path):
            assert "something else in the place of a model" in said


def test_networks_are_not_asked_for_networks_without_end(made: Pipeline, path: Path) -> None:
    networks = tiny(n_members=2).fit(X, Y).model_.networks
    for name in ("x_mean", "parameters", "y_scale"):
        evil = Ensemble(dataclasses.replace(networks, **{name: networks}))
        for said in refusals(with_model(made, evil), path):
            assert name in said


# Calibrations that no rows have made


@pytest.mark.parametrize(
    ("reason", "attributes"),
    [
        ("no known method", {"method": "magic"}),
        ("factor_", {"factor_": math.nan}),
        ("factor_", {"factor_": -1.0}),
        ("factor_", {"factor_": "1"}),
        ("no members", {"members_": []}),
        ("no members", {"members_": {}}),
        ("no estimator", {"members_": [3]}),
        ("no members", {"_scores": []}),
        ("no list", {"_scores": [[1.0]]}),
        ("no list", {"_scores": [np.ones((2, 2))]}),
        ("score", {"_scores": [np.array([math.nan])]}),
        ("score", {"_scores": [np.array([-1.0])]}),
        ("score", {"_scores": [np.array(["1"])]}),
        ("number of rows", {"_scores": [np.ones(0)], "n_calibration_": 0}),
        ("number of rows", {"n_calibration_": 10**400}),
        ("number of rows", {"n_calibration_": 41}),
        ("number of rows", {"n_calibration_": 40.0}),
    ],
)
def test_calibrations_that_no_rows_have_made(
    reason: str, attributes: dict[str, Any], made: Pipeline, path: Path
) -> None:
    good = calibrated(made[-1])
    evil = holding(good, **attributes)
    for said in unreadable(path, packed(Pipeline([made.steps[0], ("model", evil)]))):
        assert reason in said


# Encoders that no table has taught


@pytest.fixture(scope="module")
def taught() -> Pipeline:
    """A pipeline whose encoder has columns of every kind."""
    frame = fuzz.table()
    return make_pipeline(TableEncoder(target="y", max_categories=5), tiny()).fit(frame, Y[:30])


ENCODERS: dict[str, tuple[str, str, Callable[[Any], Any]]] = {
    "kind": ("no known kind", "kinds_", lambda k: np.array(["code"] * 4)),
    "kinds": ("no list", "kinds_", lambda k: k[None]),
    "names": ("no names", "feature_names_in_", lambda n: n[:3]),
    "one name": ("no names", "feature_names_in_", lambda n: objects(*"abcc")),
    "name": ("no names", "feature_names_in_", lambda n: objects(1, 2, 3, 4)),
    "form": ("no way", "date_forms_", lambda f: np.array(["%Q%1%"])),
    "forms": ("no list", "date_forms_", lambda f: "%Y"),
    "cycle": ("cycle", "date_cycles_", lambda c: np.array(["y" * 1000])),
    "origin": ("date_origins_", "date_origins_", lambda o: np.array([math.nan])),
    "overlap": ("overlap", "level_ends_", lambda every: [many(ends) for ends in every]),
    "backwards": ("overlap", "level_ends_", lambda every: [e[::-1].copy() for e in every]),
    "too far": ("overlap", "level_ends_", lambda every: [ends * 9 for ends in every]),
    "ends": ("no texts", "level_ends_", lambda every: [ends * 1.0 for ends in every]),
    "letters": ("no texts", "level_names_", lambda every: [names * 1.0 for names in every]),
    "same": ("one name", "level_ends_", lambda every: [still(ends) for ends in every]),
    "levels": ("no list", "level_names_", lambda every: 3),
    "fewer": ("no list", "level_values_", lambda every: every[:1]),
    "values": ("level_values_", "level_values_", lambda every: [v[:1] for v in every]),
    "default": ("level_defaults_", "level_defaults_", lambda every: [math.nan * v for v in every]),
    "shares": ("level_shares_", "level_shares_", lambda every: [s[:1] for s in every]),
    "medians": ("missing numbers", "medians_", lambda m: None),
    "more medians": ("missing numbers", "medians_", lambda m: np.ones(9)),
    "no median": ("missing numbers", "medians_", lambda m: math.nan * m),
    "texts": ("missing numbers", "medians_", lambda m: np.array(["1"] * len(m))),
    "gaps": ("too many", "told_", lambda t: np.array([99])),
    "gaps again": ("too many", "told_", lambda t: np.array([0] * 1000)),
    "seen": ("seen_", "seen_", lambda s: s[:, :1].copy()),
    "seen NaN": ("seen_", "seen_", lambda s: math.nan * s),
    "missing": ("missing_", "missing_", lambda m: m[:1]),
    "rows": ("n_rows_", "n_rows_", lambda n: 10**400),
}


def many(ends: np.ndarray) -> np.ndarray:
    """All letters again and again: a small file that would ask for any amount of memory."""
    return np.append(np.resize([ends[-1], 0], 1000), ends[-1])


def still(ends: np.ndarray) -> np.ndarray:
    """All letters in the last level, none in the others."""
    return np.append(0 * ends[:-1], ends[-1])


@pytest.mark.parametrize("change", ENCODERS)
def test_encoders_that_no_table_has_taught(change: str, taught: Pipeline, path: Path) -> None:
    reason, name, apply = ENCODERS[change]
    evil = holding(taught[0], **{name: apply(getattr(taught[0], name))})
    for said in unreadable(path, packed(Pipeline([("table", evil), taught.steps[1]]))):
        assert reason in said


# Files of earlier formats, which become models of today before they are checked


def former(name: str) -> fuzz.Seed:
    return fuzz.seed_of(FIXTURES / "format-2" / f"{name}.mve", None, b"")


@pytest.mark.parametrize("text", ["-1.0", "0.0", "NaN", "1e999", '"1"', "1", "9" * 400, "[1.0]"])
def test_scales_of_earlier_formats(text: str, path: Path) -> None:
    seed = former("search")
    schema = seed.schema()
    schema["content"]["content"]["scale_"]["content"] = text
    for said in unreadable(path, fuzz.with_schema(seed, schema)):
        assert "scale is" in said


def test_models_of_earlier_formats_that_no_fit_has_made(path: Path) -> None:
    seed = former("automatic-search")
    networks = fuzz.objects(seed.schema(), {"Networks"})[0]
    none = {"__module__": "builtins", "__class__": "str", "__loader__": "JsonNode"}
    for name, reason, change in (
        ("composite_", "place of Composite", lambda node, members: {**none, "content": "null"}),
        ("composite_", "place of Composite", lambda node, members: networks),
        ("networks_", "more than one model", lambda node, members: networks),
        ("model_", "more than one model", lambda node, members: networks),
    ):
        schema, members = seed.schema(), dict(seed.members)
        fuzz.hold(schema, name, fuzz.graft(members, change(schema, members), seed.members))
        for said in unreadable(path, fuzz.with_schema(seed, schema, members)):
            assert reason in said


@pytest.mark.parametrize("kind", ["Networks", "Noise", "Range", "Architecture"])
def test_no_part_is_taken_for_a_regressor_of_the_users(kind: str, path: Path) -> None:
    # A mean that could not evaluate itself was a regressor of the user's, and networks predict.
    seed = former("automatic-search")
    schema, members = seed.schema(), dict(seed.members)
    means = fuzz.held(fuzz.held(schema)["composite_"])["means"]["content"]
    evil = fuzz.graft(members, fuzz.objects(schema, {kind})[0], seed.members)
    fuzz.hold(evil, "get_params", {"__module__": "numpy", "__class__": "log",
                                   "__loader__": "FunctionNode"})  # fmt: skip
    means[0] = evil
    for said in unreadable(path, fuzz.with_schema(seed, schema, members)):
        assert "a given regressor is no estimator" in said


def test_a_hostile_candidate_of_an_earlier_format(path: Path) -> None:
    seed = former("automatic-search")
    schema, members = seed.schema(), dict(seed.members)
    inner = fuzz.graft(members, {k: v for k, v in schema.items() if k != "protocol"}, members)
    right = fuzz.held(fuzz.objects(inner, {"Forest"})[0])["right"]["file"]
    members[right] = fuzz.npy(np.full_like(np.load(io.BytesIO(members[right])), 2**31 - 1))
    fuzz.held(fuzz.held(schema)["composite_"])["means"]["content"][0] = inner
    for said in unreadable(path, fuzz.with_schema(seed, schema, members)):
        assert "a tree has a branch that leads nowhere" in said


# The description of a pipeline without scikit-learn


def test_steps_that_are_none(made: Pipeline, path: Path) -> None:
    save(made, path)
    seed = fuzz.seed_of(path, FRAME, b"")
    schema = seed.schema()
    steps = schema["content"]["content"]["steps"]["content"]
    for wrong in ([], steps[:1], [{}], "ab", {"a": 1}, [steps[0], []]):
        changed = seed.schema()
        changed["content"]["content"]["steps"]["content"] = wrong
        for said in unreadable(path, fuzz.with_schema(seed, changed)):
            assert said
