"""The inside of a model file: which types may be built, and whether the numbers can be."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from numbers import Integral
from types import SimpleNamespace
from typing import Any

import numpy as np

from mvenet._predictor import Predictor, PredictsDistribution
from mvenet.persistence._archive import Members, RefusalError, parsed, printable, require
from mvenet.persistence._composite import check_composite
from mvenet.persistence._names import OURS
from mvenet.persistence._networks import check_networks

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
_HOLDERS = (dict, list, tuple, np.ndarray)


def check_schema(members: Members) -> Any:
    """The description of the objects in a file; refused if anything in it is not on the list."""
    schema = parsed(members["schema.json"])
    foreign = foreign_types(schema)
    remedy = "get the model from somebody you trust"
    require(not foreign, f"holds {foreign}, which no model file may; nothing of it was run", remedy)
    protocol = schema["protocol"]
    recent = type(protocol) is int and protocol >= OLDEST_PROTOCOL
    require(recent, "was written by a skops older than any that mvenet used")
    files = []
    for node in nodes(schema):
        # Nodes of one number are one object: a few dozen can keep skops's audit busy for ever.
        require("__id__" not in node, "has objects that are parts of several others")
        if "file" in node:
            files.append(node["file"])
        if node["__loader__"] == "NdArrayNode" and node["type"] != "numpy":
            # NumPy would ask everything in a table whether it is a sequence, all the way down.
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
        inside = [(child, depth + 1) for child in children if isinstance(child, dict | list)]
        waiting += reversed(inside)


def type_name(node: dict[str, Any]) -> str:
    """Full name of the type that a node stands for."""
    return f"{node['__module__']}.{node['__class__']}"


def foreign_types(schema: Any) -> str:
    """Types in a description that are not on the list, in words; empty if there are none."""
    wrong = set()
    for node in nodes(schema):
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


def our_estimators(model: Any) -> list[Predictor]:
    """All estimators of ours in a model, however deep, or what predicts in their place."""
    waiting, seen, found = [model], {}, []
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen[id(part)] = part
        inside: Iterable[Any] = ()
        if is_estimator(part):
            inside = vars(part).values()
            found += [part] if isinstance(part, Predictor) else []
        elif isinstance(part, dict):
            inside = part.values()
        elif isinstance(part, np.ndarray):
            inside = part.ravel().tolist() if part.dtype == object else ()
        elif isinstance(part, list | tuple):
            inside = part
        waiting += [p for p in inside if isinstance(p, _HOLDERS) or is_estimator(p)]
    return found


def is_estimator(part: Any) -> bool:
    """Whether a part is an estimator, or what is built in the place of one to predict."""
    plain = isinstance(part, PredictsDistribution | SimpleNamespace)
    return plain or (hasattr(part, "get_params") and not isinstance(part, type))


def is_fitted(estimator: Predictor) -> bool:
    """Whether an estimator of ours holds what it was fitted to."""
    return not {"networks_", "composite_"}.isdisjoint(vars(estimator))


def check_estimator(estimator: Predictor) -> None:
    """Refuse a fitted estimator of ours whose attributes do not fit together."""
    d = estimator.n_features_in_
    require(isinstance(d, int) and d > 0, "has no number of features")
    if hasattr(estimator, "composite_"):
        check_composite(estimator.composite_, d)
    else:
        check_networks(estimator.networks_)
        agree = estimator.networks_.x_mean.shape[1] == d
        require(agree, "has networks for another number of features")
    check_parameters(estimator)
    names = getattr(estimator, "feature_names_in_", None)
    texts = names is None or (names.shape == (d,) and all(type(name) is str for name in names))
    require(texts, "has feature names that are no texts")
    positive = isinstance(estimator.scale_, float) and 0 < estimator.scale_ < math.inf
    require(positive, "has a scale_ that is no positive number")


def check_parameters(estimator: Predictor) -> None:
    """Refuse parameters out of their range; a predictor without a fit has but one that matters."""
    if hasattr(estimator, "_validate_params"):
        estimator._validate_params()
    threads = estimator.n_jobs
    usual = threads is None or (isinstance(threads, Integral) and threads != 0)
    require(usual, "has an n_jobs that is no number of threads")
