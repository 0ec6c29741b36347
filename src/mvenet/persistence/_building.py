"""Objects from their description in a model file, and nothing else: no call that a file chooses.

skops writes the descriptions, of kinds that :data:`mvenet.persistence._audit.TYPES` lists. To read
them takes these few lines, while importing skops takes longer than most models take to predict.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from importlib import import_module
from inspect import getattr_static
from types import SimpleNamespace
from typing import Any

import numpy as np

from mvenet.persistence._archive import Members, printable, require
from mvenet.persistence._audit import nodes, type_name
from mvenet.persistence._names import OURS, PLAIN, located, located_fields

Find = Callable[[str, str], Any]  # from a module and a name in it to what they stand for

_PIPELINE = "sklearn.pipeline.Pipeline"
# What predictions use no more of than the attributes.
_ATTRIBUTES_ONLY = frozenset({"sklearn.impute.SimpleImputer", "sklearn.impute.MissingIndicator"})
_NOTHING = object()
_PREDICT = PLAIN.keys() - {"TableEncoder"}


class Attributes(SimpleNamespace):
    """In place of an object of which only the attributes are used."""


def build(node: dict[str, Any], members: Members, find: Find) -> Any:
    """The object that a node describes; every type in it is on the list, every array checked."""

    def made(part: Any) -> Any:
        return build(part, members, find)

    match node["__loader__"]:
        case "JsonNode":
            return json.loads(node["content"])
        case "ListNode":
            return [made(part) for part in node["content"]]
        case "TupleNode":
            return tuple(made(part) for part in node["content"])
        case "DictNode":
            parts = zip(made(node["key_types"]), node["content"].items(), strict=True)
            return {kind(key): made(value) for kind, (key, value) in parts}
        case "SliceNode":
            return slice(*(node["content"][end] for end in ("start", "stop", "step")))
        case "DTypeNode":
            return made(node["content"]).dtype
        case "MaskedArrayNode":
            return np.ma.MaskedArray(*(made(node["content"][part]) for part in ("data", "mask")))
        case "NdArrayNode" if node["type"] == "numpy":
            array = np.load(io.BytesIO(members[node["file"]]), allow_pickle=False)
            return array if node["__class__"] == "ndarray" else _named(node, find)(array)
        case "NdArrayNode":
            objects = np.empty(len(node["content"]), dtype=object)
            objects[:] = [made(part) for part in node["content"]]
            return objects
        case "FunctionNode" | "TypeNode":
            return _named(node, find)
        case "ObjectNode":
            return _object(_named(node, find), made(node["content"]) if "content" in node else {})
        case other:
            raise ValueError(f"no object is described as {other}")


def _named(node: dict[str, Any], find: Find) -> Any:
    return find(node["__module__"], node["__class__"])


def _object(kind: Any, content: Any) -> Any:
    """An object with these attributes, not initialised in any other way."""
    attributes = {} if content is None else content
    named = type(attributes) is dict and all(type(name) is str for name in attributes)
    require(named, f"has a {kind.__name__} whose attributes have no names")
    attributes = located_fields(kind.__name__, attributes)
    own = {field.name for field in fields(kind)} if is_dataclass(kind) else set()
    for name in attributes.keys() - own:
        there = getattr_static(kind, name, _NOTHING)
        # A property stays what it is, whatever attribute has its name; a method would not.
        free = (there is _NOTHING or isinstance(there, property)) and not name.startswith("__")
        remedy = "get the model from somebody you trust"
        require(free, f"replaces {kind.__name__}.{printable(name, 40)}, which no file may", remedy)
    thing = kind.__new__(kind)
    if hasattr(thing, "__setstate__"):  # scikit-learn's tells if it is of another version
        thing.__setstate__(attributes)
    else:
        vars(thing).update(attributes)
    return thing


def imported(module: str, name: str) -> Any:
    """What a file means by this name."""
    home, today = located(module, name)
    return getattr(import_module(home), today)


def without_sklearn(module: str, name: str) -> Any:
    """The same, but the parts of an estimator that predict rather than the estimator."""
    if f"{module}.{name}" in _ATTRIBUTES_ONLY | {_PIPELINE}:
        return Attributes
    home, plain = PLAIN.get(name, located(module, name))
    return getattr(import_module(home), plain)


def needs_sklearn(schema: Any) -> bool:
    """Whether a model is another one than `mvenet fit` makes, or made: encoder and estimator.

    They stand in one estimator, and stood in a pipeline in earlier formats.
    """
    objects = [node for node in nodes(schema) if node["__loader__"] == "ObjectNode"]
    first, *others = [type_name(node) for node in objects] or [""]
    if not set(others) <= OURS | _ATTRIBUTES_ONLY:
        return True
    if first != _PIPELINE:
        return first not in OURS or schema["__class__"] not in _PREDICT
    steps = schema["content"]["content"]["steps"]["content"]
    encoder, *after = [step["content"][1].get("__class__") for step in steps]
    return encoder != "TableEncoder" or len(after) != 1 or after[0] not in _PREDICT


def steps_of(pipeline: Attributes) -> tuple[Any, ...]:
    """What a pipeline that was built without scikit-learn does, one after the other."""
    return tuple(step for _, step in pipeline.steps)
