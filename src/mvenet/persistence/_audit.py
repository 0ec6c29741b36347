"""The inside of a model file: which types may be built, and whether the numbers can be."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from numbers import Integral
from types import SimpleNamespace
from typing import Any

import numpy as np

from mvenet._models.checks import MalformedError
from mvenet._models.composite import Composite
from mvenet._models.ensemble import Ensemble
from mvenet._models.joint import JointModel
from mvenet._models.numbers import Numbers
from mvenet._models.predictor import Predictor, is_estimator
from mvenet.persistence._archive import Members, RefusalError, parsed, printable, require
from mvenet.persistence._former import FORMER, renew
from mvenet.persistence._names import OURS, PARTS, PLAIN

DEEPEST = 200  # levels of JSON; a pipeline in a pipeline in a pipeline has 40
OLDEST_PROTOCOL = 2  # of skops: a lower number in a file would call up its less careful readers


def _names(lines: str) -> frozenset[str]:
    """Full names from lines that hold a module and some of its members."""
    split = (line.split() for line in lines.strip().splitlines())
    return frozenset(f"{module}.{name}" for module, *names in split for name in names)


_NUMBERS = "numpy bool_ str_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64\n"
# What may be built, by the kind of skops's node. An estimator of scikit-learn is here if all it
# does with what it stored is checked array arithmetic: trees, splines and support vectors use it as
# addresses. So do random generators, which are therefore stored as None.
TYPES = {
    "JsonNode": _names("builtins str"),
    "DictNode": _names("builtins dict"),
    "ListNode": _names("builtins list"),
    "TupleNode": _names("builtins tuple"),
    "SliceNode": _names("builtins slice"),
    "DTypeNode": _names("numpy dtype"),
    "NdArrayNode": _names(_NUMBERS + "numpy ndarray"),
    "MaskedArrayNode": _names("numpy.ma MaskedArray"),
    "FunctionNode": _names(
        "numpy log log1p log2 log10 exp expm1 exp2 sqrt square cbrt sinh arcsinh tanh arctanh"
    ),
    "TypeNode": _names(
        _NUMBERS
        + """builtins str int float bool object
        numpy number integer floating object_
        sklearn.model_selection KFold"""
    ),
    "ObjectNode": _names(
        """sklearn.pipeline Pipeline FeatureUnion
        sklearn.frozen FrozenEstimator
        sklearn.compose ColumnTransformer TransformedTargetRegressor make_column_selector
        sklearn.compose._column_transformer _RemainderColsList
        sklearn.impute SimpleImputer MissingIndicator
        sklearn.preprocessing StandardScaler MinMaxScaler MaxAbsScaler RobustScaler
        sklearn.preprocessing PowerTransformer QuantileTransformer FunctionTransformer
        sklearn.preprocessing OneHotEncoder OrdinalEncoder TargetEncoder
        sklearn.decomposition PCA
        sklearn.feature_selection VarianceThreshold
        sklearn.model_selection KFold RepeatedKFold ShuffleSplit LeaveOneOut
        sklearn.model_selection TimeSeriesSplit PredefinedSplit"""
    )
    | OURS,
}
# What numpy.save writes. NumPy reads a header with Python's parser, which can be made to warn, to
# recurse and to run out of memory.
_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00(?P<length>..)"
    rb"\{'descr': '(?P<dtype>[<>|][biufSUMm]\d{1,6}(\[\w{1,5}\])?)', "
    rb"'fortran_order': (True|False), 'shape': \((?P<shape>(\d{1,12}(, |,|(?=\))))*)\), \} *\n",
    re.DOTALL,
)
_KINDS = (Composite, Ensemble, JointModel)
_NESTED = (dict, list)  # of JSON; a union would be made anew for every child
_CONTAINERS = (dict, list, tuple, np.ndarray)
_MODELS = {"model_"} | FORMER  # attributes that hold a model, of estimators that predict by one
_ENCODERS = ("TableEncoder", PLAIN["TableEncoder"][1])
_HELD = _MODELS | {"encoder_"}  # and those that hold parts of one
_OUR_ESTIMATORS = PLAIN.keys() - {"TableEncoder"}


def check_schema(members: Members) -> Any:
    """The description of the objects in a file; refused if anything in it is not on the list."""
    schema = parsed(members["schema.json"])
    every = list(nodes(schema))
    foreign = foreign_types(every)
    remedy = "get the model from somebody you trust"
    require(not foreign, f"holds {foreign}, which no model file may; nothing of it was run", remedy)
    protocol = schema["protocol"]
    recent = type(protocol) is int and protocol >= OLDEST_PROTOCOL
    require(recent, "was written by a skops older than any that mvenet used")
    check_places(schema)
    files = []
    for node in every:
        # Nodes of one number are one object: a few dozen can keep skops's audit busy for ever.
        require("__id__" not in node, "has objects that are parts of several others")
        if "file" in node:
            files.append(node["file"])
        if node["__loader__"] == "NdArrayNode" and node["type"] != "numpy":
            # NumPy would look for sequences in everything that a table holds, all the way down.
            kind, length = node["shape"]["__loader__"], len(node["shape"]["content"])
            require(kind == "TupleNode" and length == 1, "has a table of objects")
        elif node["__loader__"] == "MaskedArrayNode":
            inside = {node["content"][name]["__loader__"] for name in ("data", "mask")}
            require(inside == {"NdArrayNode"}, "has a masked array of something else")
    arrays = [name for name in members if name.endswith(".npy")]
    # Each once: otherwise a small file could ask for any amount of memory.
    require(sorted(files) == sorted(arrays), "does not use each of its arrays once")
    for name in arrays:
        check_array(name, members[name])
    return schema


def nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Every object that skops would build, parents first; a node may be changed on the way."""
    waiting = [(schema, 0)]
    while waiting:  # no recursion: the file says how deep it is
        value, depth = waiting.pop()
        require(depth <= DEEPEST, f"is nested more than {DEEPEST} levels deep")
        if isinstance(value, dict) and "__loader__" in value:
            yield value
        children = value.values() if isinstance(value, dict) else value
        inside = [(child, depth + 1) for child in children if isinstance(child, _NESTED)]
        waiting += reversed(inside)


def check_places(schema: Any) -> None:
    """Refuse a part of a model that stands anywhere but in the model of an estimator of ours.

    There it is checked as a part of it; elsewhere nobody would look at it before the engine does.
    """
    waiting: list[tuple[Any, bool]] = [(schema, False)]
    while waiting:
        value, within = waiting.pop()
        if isinstance(value, list):
            waiting += [(child, within) for child in value]
        elif isinstance(value, dict):
            waiting += _inside(value, within)


def _inside(node: dict[str, Any], within: bool) -> list[tuple[Any, bool]]:
    """What is built for the object that has this piece of JSON, and whether as part of a model."""
    if node.get("__loader__") != "ObjectNode":
        return [(child, within) for child in node.values()]
    name, held = node["__class__"], node.get("content")
    require(within or name not in PARTS, f"has a {name} that is no part of a model of ours")
    if name not in _OUR_ESTIMATORS or held is None or held["__loader__"] != "DictNode":
        # What a regressor of the user's holds is an estimator, or nothing of ours.
        return [(held, name in PARTS and name != "GivenRegressor")]
    places = _HELD if PLAIN[name][1] == Predictor.__name__ else {"encoder_"}
    attributes = [(child, key in places) for key, child in held["content"].items()]
    return [(held["key_types"], False), *attributes]


def type_name(node: dict[str, Any]) -> str:
    """Full name of the type that a node stands for."""
    return f"{node['__module__']}.{node['__class__']}"


def foreign_types(every: list[dict[str, Any]]) -> str:
    """Types of nodes that are not on the list, in words; empty if there are none."""
    wrong = set()
    for node in every:
        name = type_name(node)
        if name not in TYPES.get(str(node["__loader__"]), ()):
            wrong.add(printable(name, 80))
    return ", ".join(sorted(wrong)[:5]) + (" and others" if len(wrong) > 5 else "")


def check_array(name: str, content: bytes) -> None:
    """Refuse an array of objects, or whose header promises another amount of data than follows."""
    header = _HEADER.match(content)
    if header is None:
        raise RefusalError(f"has a part {name} that is no array of numbers or text")
    length = int.from_bytes(header["length"], "little")
    itemsize = np.dtype(header["dtype"].decode()).itemsize
    size = math.prod(int(n) for n in re.findall(rb"\d+", header["shape"])) * itemsize
    whole = length == header.end() - 10 and size == len(content) - header.end() and itemsize > 0
    require(whole, f"has a part {name} that is not as large as it says")


def check_model(model: Any) -> None:
    """Refuse a model that no fit has made; what an earlier format wrote becomes one of today."""
    every = parts_of(model)
    ours = [part for part in every if isinstance(part, Predictor)]
    fitted = [part for part in ours if is_fitted(part)]
    require(can_predict(model) and fitted, "holds no fitted network of mvenet")
    try:
        for estimator in ours:
            renew(estimator)
        for estimator in fitted:
            check_estimator(estimator)
        for part in every:
            if hasattr(type(part), "_check_attributes"):
                part._check_attributes()
    except MalformedError as error:
        raise RefusalError(f"holds a model that no fit has made: {error}") from error


def our_estimators(model: Any) -> list[Predictor]:
    """All estimators of ours in a model, however deep, or what predicts in their place."""
    return [part for part in parts_of(model) if isinstance(part, Predictor)]


def parts_of(model: Any) -> list[Any]:
    """All objects in a model that a file may hold, itself first; of arrays those of objects."""
    waiting, seen = [model], {}
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen[id(part)] = part
        inside: Iterable[Any] = ()
        if isinstance(part, dict):
            inside = part.values()
        elif isinstance(part, list | tuple):
            inside = part
        elif isinstance(part, np.ndarray):
            inside = np.asarray(part).ravel().tolist() if part.dtype == object else ()
        elif not isinstance(part, type):
            inside = getattr(part, "__dict__", {}).values()
        waiting += [p for p in inside if isinstance(p, _CONTAINERS) or _is_object(p)]
    return [part for part in seen.values() if not isinstance(part, _CONTAINERS)]


def _is_object(part: Any) -> bool:
    """Whether a part is one of those objects that a file may hold."""
    return can_predict(part) or type(part).__module__.partition(".")[0] in ("sklearn", "mvenet")


def can_predict(part: Any) -> bool:
    """Whether a part is an estimator, or what is built in the place of one to predict."""
    return isinstance(part, SimpleNamespace) or is_estimator(part)


def is_fitted(estimator: Predictor) -> bool:
    """Whether an estimator of ours holds what it was fitted to."""
    return not _MODELS.isdisjoint(vars(estimator))


def check_estimator(estimator: Predictor) -> None:
    """Refuse a fitted estimator of ours whose attributes do not fit together."""
    d = estimator.n_features_in_
    require(type(d) is int and d > 0, "has no number of features")
    model = estimator.model_
    require(type(model) in _KINDS, "has something else in the place of a model")
    encoder = vars(estimator).get("encoder_")
    if encoder is not None:
        _check_encoder(encoder, d)
    model.check(d if isinstance(model, JointModel) else estimator._n_read)
    check_parameters(estimator)
    names = getattr(estimator, "feature_names_in_", None)
    texts = names is None or (names.shape == (d,) and all(type(name) is str for name in names))
    require(texts, "has feature names that are no texts")


def _check_encoder(encoder: Any, columns: int) -> None:
    """Refuse what makes no numbers of so many columns."""
    known = type(encoder) is Numbers or type(encoder).__name__ in _ENCODERS
    require(known, "has something else in the place of an encoder")
    encoder._check_attributes()
    names = encoder.median if type(encoder) is Numbers else encoder.feature_names_in_
    require(len(names) == columns, "has an encoder of other columns")


def check_parameters(estimator: Predictor) -> None:
    """Refuse parameters out of their range; a predictor without a fit has but one that matters."""
    kind = type(estimator)
    if hasattr(kind, "_validate_params"):
        kind._validate_params(estimator)
    threads = estimator.n_jobs
    usual = threads is None or (isinstance(threads, Integral) and threads != 0)
    require(usual, "has an n_jobs that is no number of threads")
