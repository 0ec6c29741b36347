"""Model files changed at random: each is refused with a sentence or loads as something harmless.

    python tests/fuzz/fuzz_persistence.py --count 10000 [--seed 7] [--first 4000]

Half of the changes are blind (bits flipped, ends cut, members swapped), and a file that still loads
must predict the same to the bit. The others know the format and put the checksums right again, so
that they reach what lies behind: foreign types, arrays of other shapes, bombs, parts of models
where nobody would look for them, indices that lead out of them. Wherever a type could be named,
there is a module on the path that leaves a file behind when it is imported or called. No case may
raise anything but ValueError, run code, open a file, take 30 seconds, or need more than 150 MB and
twice the size of its file (measured on Linux only); and what loads must predict.
"""

from __future__ import annotations

import argparse
import copy
import faulthandler
import hashlib
import io
import json
import os
import pickle
import shutil
import signal
import sys
import tempfile
import threading
import time
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars  # now: by a file that names a table it would ask the processor through ctypes
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from mvenet import CalibratedRegressor, MVERegressor, MVERegressorCV
from mvenet._models.means import GivenRegressor
from mvenet._models.predictor import Encoded, Predictor, PredictsDistribution
from mvenet.persistence import _archive as archive
from mvenet.persistence import _audit as audit
from mvenet.persistence import load, load_to_predict, save
from mvenet.persistence._names import ESTIMATORS, FORMER, PARTS
from mvenet.table import TableEncoder

PATIENCE = 30  # seconds of the processor a case
MEMORY = 150  # MB a case, beside twice its file
UNNOTICED = 20  # MB that an earlier case may have had beyond what there is now
STATUS = Path("/proc/self/status")
EVIL = "mvenet_fuzz_evil"
FIXTURES = Path(__file__).parents[1] / "fixtures"
# What an automatic search finds has every other type of ours, and may have an estimator in it.
FOUND = (
    *("format-3/automatic", "format-3/automatic-given", "format-2/automatic-search"),
    *("format-3/automatic-atoms", "format-3/automatic-atoms-log"),
)
Rng = np.random.Generator


@dataclass(frozen=True)
class Seed:
    """A good file: its bytes, the parts of them, and what it predicts."""

    data: bytes
    metadata: dict[str, Any]
    members: dict[str, bytes]
    X: Any
    expected: bytes
    serves: bool = False  # whether `mvenet predict` reads it without scikit-learn

    def schema(self) -> Any:
        return json.loads(self.members["schema.json"])

    def sealed(self, **changed: bytes) -> bytes:
        """The file with other parts, its checksums put right."""
        return seal(self.metadata, {**self.members, **changed})

    def array(self, rng: Rng) -> str:
        return str(rng.choice([name for name in self.members if name.endswith(".npy")]))


def seal(metadata: dict[str, Any], members: dict[str, bytes]) -> bytes:
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in members.items()}
    text = json.dumps({**metadata, "sha256": sums}).encode()
    return archive.pack({"mvenet.json": text, **members})


def with_schema(seed: Seed, schema: Any, members: dict[str, bytes] | None = None) -> bytes:
    """The file with another description, and those of its or these arrays that it uses."""
    used = {str(node["file"]) for node in audit.nodes(schema) if "file" in node}
    kept = {name: part for name, part in (members or seed.members).items() if name in used}
    return seal(seed.metadata, {**kept, "schema.json": text(schema)})


def seeds(folder: Path) -> list[Seed]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    X[:, 1] = X[:, 1] > 0
    y = X[:, 0] + rng.normal(size=30)
    quick = {"epochs": 2, "warmup_epochs": 2, "random_state": 0, "n_jobs": 1}
    small = {**quick, "strategy": "warmup", "hidden_mean": (4,), "hidden_var": (3,)}
    columns = [("scale", StandardScaler(), [0]), ("encode", OneHotEncoder(), [1])]
    found = []
    for model in (
        MVERegressor(n_members=2, **small),
        MVERegressorCV(reg_mean=[0.1], reg_var=[0.1], cv=2, n_members=1, **small),
        make_pipeline(ColumnTransformer(columns), MVERegressor(**small)),
    ):
        save(model.fit(X, y), folder / "seed.mve")
        found.append(seed_of(folder / "seed.mve", X, predictions(model, X)))
    frame = table()
    of_a_table = make_pipeline(
        TableEncoder(max_categories=5), CalibratedRegressor(MVERegressor(**small), cv=2)
    )
    save(of_a_table.fit(frame, y), folder / "seed.mve")
    found.append(seed_of(folder / "seed.mve", frame, predictions(of_a_table, frame)))
    X = rng.normal(size=(5, 3))
    files = [FIXTURES / f"{name}.mve" for name in FOUND]
    return [*found, *(seed_of(file, X, predictions(load(file), X)) for file in files)]


def table() -> polars.DataFrame:
    """Thirty rows of a column of every kind, with gaps."""
    rng = np.random.default_rng(1)
    return polars.DataFrame(
        {
            "size": [None if i % 7 == 0 else i / 3 for i in range(30)],
            "town": rng.choice(["Bonn", "Köln"], 30),
            "street": [f"street {i}" for i in rng.integers(8, size=30)],
            "sold": [f"2024-{1 + i % 12:02d}-{1 + i % 28:02d}" for i in range(30)],
        }
    )


def seed_of(path: Path, X: Any, expected: bytes) -> Seed:
    data = path.read_bytes()
    metadata, members = archive.unpack(data)
    del metadata["sha256"]
    serves = isinstance(load_to_predict(path), tuple)
    return Seed(data, metadata, members, X, expected, serves)


def predictions(model: Any, X: Any) -> bytes:
    return np.asarray(model.predict(X)).tobytes()


# Blind changes: bytes in, bytes out


def flip_bits(data: bytes, rng: Rng) -> bytes:
    changed = bytearray(data)
    for at in rng.integers(len(data), size=rng.integers(1, 9)):
        changed[at] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def change_list(data: bytes, rng: Rng) -> bytes:
    """Bytes of the archive's list of members, where sizes, offsets and methods are."""
    changed = bytearray(data)
    start = data.index(b"PK\x01\x02")
    for at in rng.integers(start, len(data), size=rng.integers(1, 5)):
        changed[at] = int(rng.choice([0, 1, 8, 12, 0x7F, 0x80, 0xFF]))
    return bytes(changed)


def cut(data: bytes, rng: Rng) -> bytes:
    a, b = sorted(rng.integers(len(data) + 1, size=2))
    return [data[:a], data[a:], data[:a] + data[b:]][rng.integers(3)]


def insert(data: bytes, rng: Rng) -> bytes:
    at, junk = int(rng.integers(len(data) + 1)), rng.bytes(int(rng.integers(1, 200)))
    return data[:at] + junk + data[at:]


def copy_block(data: bytes, rng: Rng) -> bytes:
    a, b = (int(at) for at in rng.integers(len(data), size=2))
    size = int(rng.integers(1, 300))
    block = data[a : a + size] if rng.random() < 0.7 else bytes(size)
    return data[:b] + block + data[b + len(block) :]


# Members moved about, the checksums as they were


def swap_members(seed: Seed, rng: Rng) -> bytes:
    members = {"mvenet.json": zipped(seed)["mvenet.json"], **seed.members}
    a, b = rng.choice(list(members), size=2, replace=False)
    members[a], members[b] = members[b], members[a]
    return archive.pack(members)


def drop_member(seed: Seed, rng: Rng) -> bytes:
    members = zipped(seed)
    del members[str(rng.choice(list(members)))]
    return archive.pack(members)


def add_member(seed: Seed, rng: Rng) -> bytes:
    name = str(rng.choice(["0.npy", "99.npy", "../../x.npy", "/etc/x", "x.pkl", "schema.json"]))
    buffer = io.BytesIO(seed.data)
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "a") as file:
        warnings.simplefilter("ignore")  # zipfile's, about duplicate names
        file.writestr(name, rng.bytes(50))
    return buffer.getvalue()


def zipped(seed: Seed) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(seed.data)) as file:
        return {name: file.read(name) for name in file.namelist()}


# Changes that know the format, the checksums put right

HOSTILE = [
    *(None, True, 0, -1, 1, 2, 65536, 65537, 2**31, 2**63, -(2**63), 10**400, 0.5, -0.0, 1e308),
    *(float("nan"), float("inf"), "", "x", "0", "-1", "1e999", "NaN", "null", "[]", "{}"),
    *(
        '"elu"',
        '"relu"',
        "9" * 5000,
        "[" * 5000,
        "x" * 10_000,
        "\ud800",
        "\x1b[2J\n",
        [],
        {},
        [[]] * 9,
    ),
    *("0.npy", "1.npy", "schema.json", "../x", [0, 1], {"content": 0}, {"__loader__": "JsonNode"}),
]
NAMES = [
    *((EVIL, "Evil"), (EVIL, "run"), (EVIL, "Evil.run"), (EVIL + "\n\x1b[2J", "\ud800")),
    *(("os", "system"), ("builtins", "eval"), ("builtins", "exec"), ("subprocess", "Popen")),
    *(("builtins", "open"), ("pickle", "loads"), ("importlib", "import_module")),
    *(("sklearn.tree", "DecisionTreeRegressor"), ("sklearn.svm", "SVR"), ("numpy", "void")),
    *(("joblib.memory", "Memory"), ("sklearn.datasets", "fetch_file"), ("mvenet.cli", "main")),
    *(tuple(name.rsplit(".", 1)) for names in audit.TYPES.values() for name in sorted(names)),
]
LOADERS = [
    *("ConstructorFromReduceNode", "MethodNode", "PartialNode", "OperatorFuncNode", "TreeNode"),
    *("LossNode", "RandomStateNode", "RandomGeneratorNode", "SparseMatrixNode", "BytesNode"),
    *("CachedNode", "SetNode", "DefaultDictNode", "TreeNode", "", *audit.TYPES),
]


def places(value: Any) -> list[tuple[Any, Any]]:
    """All (container, key) in a piece of JSON."""
    found: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting:
        part = waiting.pop()
        keys = part if isinstance(part, dict) else range(len(part) if isinstance(part, list) else 0)
        found += [(part, key) for key in keys]
        waiting += [part[key] for key in keys]
    return found


def pick(rng: Rng, choices: list[Any]) -> Any:
    return choices[int(rng.integers(len(choices)))]


def text(value: Any) -> bytes:
    return json.dumps(value).encode()


def change_value(seed: Seed, rng: Rng) -> bytes:
    schema = seed.schema()
    for _ in range(rng.integers(1, 4)):
        container, key = pick(rng, places(schema))
        if rng.random() < 0.2:
            del container[key]
        else:
            container[key] = copy.deepcopy(pick(rng, HOSTILE))
    return seed.sealed(**{"schema.json": text(schema)})


def change_number(seed: Seed, rng: Rng) -> bytes:
    """Another value for a parameter or an attribute, which skops keeps as text in the text."""
    schema = seed.schema()
    node = pick(rng, [n for n in audit.nodes(schema) if n["__loader__"] == "JsonNode"])
    node["content"] = pick(rng, [value for value in HOSTILE if isinstance(value, str)])
    return seed.sealed(**{"schema.json": text(schema)})


def change_type(seed: Seed, rng: Rng) -> bytes:
    schema = seed.schema()
    node = pick(rng, list(audit.nodes(schema)))
    if rng.random() < 0.7:
        node["__module__"], node["__class__"] = pick(rng, NAMES)
    if rng.random() < 0.5:
        node["__loader__"] = pick(rng, LOADERS)
    if rng.random() < 0.1:
        schema["protocol"] = pick(rng, [0, 1, 2, 3, True, None])
    return seed.sealed(**{"schema.json": text(schema)})


def move_objects(seed: Seed, rng: Rng) -> bytes:
    """One object in the place of another, sometimes of another file."""
    schema = seed.schema()
    (a, i), (b, j) = (pick(rng, places(schema)) for _ in range(2))
    if rng.random() < 0.5:
        a[i], b[j] = copy.deepcopy(b[j]), copy.deepcopy(a[i])
    else:
        a[i] = copy.deepcopy(b[j])
    return seed.sealed(**{"schema.json": text(schema)})


def share_objects(seed: Seed, rng: Rng) -> bytes:
    """Numbers of objects: two of one number are one object, and an object may be its own part."""
    schema = seed.schema()
    every = list(audit.nodes(schema))
    for node in every if rng.random() < 0.3 else [pick(rng, every) for _ in range(3)]:
        node["__id__"] = int(rng.integers(1, 4))
    return seed.sealed(**{"schema.json": text(schema)})


def call_something(seed: Seed, rng: Rng) -> bytes:
    """All the ways in which skops can be told to call a function, for a function that tells."""
    run = {"__module__": EVIL, "__class__": "run", "__loader__": "FunctionNode"}
    evil = {"__module__": EVIL, "__class__": "Evil", "__loader__": "ObjectNode"}
    none = {"__module__": "builtins", "__class__": "str", "__loader__": "JsonNode"} | {
        "content": "null"
    }
    empty = {"__module__": "builtins", "__class__": "tuple", "__loader__": "TupleNode"} | {
        "content": []
    }
    several = {"func": run, "args": empty, "kwds": none, "namespace": none}
    call = pick(
        rng,
        [
            run,
            evil,
            {**evil, "__loader__": "ConstructorFromReduceNode", "content": empty},
            {**evil, "__loader__": "MethodNode", "content": {"func": "run", "obj": evil}},
            {**evil, "__loader__": "TypeNode"},
            {**evil, "__loader__": "LossNode", "content": empty, "__reduce__": {"args": empty}},
            {**evil, "__loader__": "TupleNode", "content": []},
            {**evil, "__loader__": "ListNode", "content": []},
            {
                "__module__": "functools",
                "__class__": "partial",
                "__loader__": "PartialNode",
                "content": several,
            },
            {
                "__module__": "operator",
                "__class__": "methodcaller",
                "__loader__": "OperatorFuncNode",
                "attrs": empty,
            },
        ],
    )
    schema = seed.schema()
    container, key = pick(rng, places(schema))
    container[key] = call
    return seed.sealed(**{"schema.json": text(schema)})


def nest(seed: Seed, rng: Rng) -> bytes:
    depth = int(rng.choice([100, 190, 1000, 100_000]))
    layer = '{"__module__":"builtins","__class__":"list","__loader__":"ListNode","content":['
    opening, closing = pick(rng, [("[", "]"), ('{"a":', "}"), (layer, "]}")])
    depth = min(depth, archive.LARGEST_JSON // len(opening) - 1000)
    schema = seed.schema()
    container, key = pick(rng, places(schema))
    container[key] = "HERE"
    deep = text(schema).replace(b'"HERE"', (opening * depth + "0" + closing * depth).encode(), 1)
    return seed.sealed(**{"schema.json": deep})


def change_header(seed: Seed, rng: Rng) -> bytes:
    name = seed.array(rng)
    array = np.load(io.BytesIO(seed.members[name]))
    shape = pick(
        rng, [(), (0,), (1,), (10**12,), (-1,), (2**31, 2**31), (-2, -3), array.shape[::-1]]
    )
    kinds = ["<f4", "<f8", ">f8", "<i8", "|O", "|V0", "<U0", "<U9", "|S1", "<c16", "<M8[s]", "|b1"]
    form = {
        "descr": pick(rng, [*kinds, [("a", "<f8")], "x" * 50]),
        "fortran_order": bool(rng.integers(2)),
        "shape": shape if rng.random() < 0.5 else array.shape,
    }
    if rng.random() < 0.3:
        form["descr"] = array.dtype.str
    head = repr(form)[:-1].encode() + b", }"
    if rng.random() < 0.2:
        head = pick(rng, [b"-" * 9000 + b"1", b"(" * 9000, b"1+" * 4000, b"1if " * 900, b"[" * 90])
    head = head.ljust(117) + b"\n"
    content = b"\x93NUMPY\1\0" + len(head).to_bytes(2, "little") + head + array.tobytes()
    return seed.sealed(**{name: content[: int(rng.integers(64, 2 * len(content)))]})


def change_array(seed: Seed, rng: Rng) -> bytes:
    """Values, order, length: an array that is all right in itself."""
    name = seed.array(rng)
    array = np.load(io.BytesIO(seed.members[name]))
    if array.dtype.kind == "f" and array.size and rng.random() < 0.6:
        flat = array.reshape(-1)
        values = [np.nan, np.inf, -np.inf, 0, -1, 1e-300, 3e38, 1e300]
        with np.errstate(over="ignore"):
            flat[rng.integers(flat.size)] = pick(rng, values)
    elif array.dtype.kind == "i" and array.size and rng.random() < 0.6:
        flat, most = array.reshape(-1), np.iinfo(array.dtype).max
        flat[rng.integers(flat.size)] = pick(rng, [-1, 0, 1, 2, flat.size, most, -most])
    else:
        longer = np.concatenate([array.reshape(-1)] * 2)
        array = pick(rng, [array.T, array[:0] if array.ndim else array, array[None], longer])
    stream = io.BytesIO()
    np.save(stream, np.asfortranarray(array) if rng.random() < 0.2 else array)
    return seed.sealed(**{name: stream.getvalue()})


def flip_in_part(seed: Seed, rng: Rng) -> bytes:
    name = pick(rng, list(seed.members))
    return seed.sealed(**{name: flip_bits(seed.members[name], rng)})


def change_metadata(seed: Seed, rng: Rng) -> bytes:
    metadata = copy.deepcopy(seed.metadata)
    container, key = pick(rng, places(metadata))
    container[key] = copy.deepcopy(pick(rng, HOSTILE))
    return seal(metadata, seed.members)


# Changes that know the parts of a model


def objects(schema: Any, names: Any) -> list[Any]:
    """All nodes of these types of ours."""
    every = (n for n in audit.nodes(schema) if n["__loader__"] == "ObjectNode")
    return [node for node in every if node["__class__"] in names]


def held(node: Any) -> Any:
    """Descriptions of an object's attributes."""
    return node["content"]["content"]


def hold(node: Any, name: str, value: Any) -> None:
    """Give an object an attribute."""
    if name not in held(node):
        keys = node["content"]["key_types"]["content"]
        keys.append(copy.deepcopy(keys[0]))
    held(node)[name] = value


def graft(members: dict[str, bytes], node: Any, of: dict[str, bytes]) -> Any:
    """A copy of a node with arrays of its own, which are added to the members."""
    made = copy.deepcopy(node)
    for part in audit.nodes(made):
        if "file" in part:
            name = f"{10**8 + len(members)}.npy"
            members[name], part["file"] = of[part["file"]], name
    return made


def stray_part(seed: Seed, rng: Rng) -> bytes:
    """A part of a model anywhere: where an estimator, a parameter or another part should be."""
    schema, members = seed.schema(), dict(seed.members)
    part = graft(members, pick(rng, objects(schema, PARTS)), seed.members)
    if rng.random() < 0.5:
        container, key = pick(rng, places(schema))
        container[key] = part
    else:
        holder = pick(rng, objects(schema, {*PARTS, *ESTIMATORS, "Pipeline", "SimpleImputer"}))
        names = [*held(holder), "model_", "networks_", "composite_", "regressor_", "estimator"]
        hold(holder, pick(rng, names), part)
    return with_schema(seed, schema, members)


def nest_estimator(seed: Seed, rng: Rng) -> bytes:
    """An estimator, sound or not, as a regressor of the user's, a member, a step, a candidate."""
    schema, members = seed.schema(), dict(seed.members)
    inner = graft(members, pick(rng, objects(schema, ESTIMATORS)), seed.members)
    for _ in range(int(rng.integers(3))):
        node = pick(rng, objects(inner, PARTS) or [inner])
        if held(node):
            held(node)[pick(rng, list(held(node)))] = _number(pick(rng, NUMBERS))
    given = {"__module__": "mvenet", "__class__": "GivenRegressor", "__loader__": "ObjectNode"}
    around = {"__module__": "sklearn.compose", "__class__": "TransformedTargetRegressor"}
    wraps = [
        inner,
        _object(given, regressor=inner),
        _object({**around, "__loader__": "ObjectNode"}, regressor_=inner),
        _object(given, regressor=_object({**around, "__loader__": "ObjectNode"}, regressor_=inner)),
    ]
    blends = [held(node)["means"]["content"] for node in objects(schema, {"Composite"})]
    lists = [
        n["content"] for n in audit.nodes(schema) if n["__loader__"] in ("ListNode", "TupleNode")
    ]
    target = pick(
        rng, blends if blends and rng.random() < 0.7 else [b for b in lists if b] or [[0]]
    )
    target[int(rng.integers(len(target)))] = pick(rng, wraps)
    return with_schema(seed, schema, members)


NUMBERS = [
    "0",
    "-1",
    "1",
    "3",
    "1e308",
    "-1e308",
    "5e-324",
    "NaN",
    "Infinity",
    "true",
    "null",
    '"x"',
]
_NODE = {"__module__": "builtins", "__class__": "str", "__loader__": "JsonNode"}


def _number(content: str) -> Any:
    return {**_NODE, "content": content, "is_json": True}


def _object(kind: Any, **attributes: Any) -> Any:
    name = {"__module__": "builtins", "__class__": "str", "__loader__": "TypeNode"}
    keys = {"__module__": "builtins", "__class__": "list", "__loader__": "ListNode"}
    keys["content"] = [dict(name) for _ in attributes]
    form = {"__module__": "builtins", "__class__": "dict", "__loader__": "DictNode"}
    return {**kind, "content": {**form, "key_types": keys, "content": attributes}}


def change_index(seed: Seed, rng: Rng) -> bytes:
    """Where trees branch, pieces and logarithms have their columns, names their ends."""
    schema = seed.schema()
    names = {"feature", "right", "starts", "column", "number"}
    kinds = {"Forest", "Steps", "LogColumns", "MeanOfNoise"}
    every = [held(node) for node in objects(schema, kinds)]
    wrong = [values[name] for values in every for name in names & values.keys()]
    for node in objects(schema, {"TableEncoder", "MissingIndicator"}):
        wrong += [n for n in audit.nodes(node) if "file" in n]
    if not wrong:
        return change_array(seed, rng)
    node = pick(rng, wrong)
    if "file" not in node:
        node["content"] = str(pick(rng, [-1, 2, 3, 99, 2**40]))
        return with_schema(seed, schema)
    array = np.load(io.BytesIO(seed.members[node["file"]]))
    if array.dtype.kind in "iu" and array.size:
        most, flat = np.iinfo(array.dtype).max, array.reshape(-1)
        for at in rng.integers(flat.size, size=rng.integers(1, 4)):
            flat[at] = pick(rng, [0, 1, 2, 3, int(at), int(at) + 1, flat.size, most, int(flat[0])])
    else:
        array = pick(rng, [array[:-1], array[:0], np.concatenate([array] * 2), array[::-1]])
    return seed.sealed(**{node["file"]: npy(array)})


def change_shape(seed: Seed, rng: Rng) -> bytes:
    """Weights, widths, bins, values and cells of a free shape: other numbers, or far too many."""
    schema = seed.schema()
    parts = objects(schema, {"FreeShape", "Constant", "Atoms"})
    found = [n for part in parts for n in audit.nodes(part) if "file" in n]
    if not found:
        return change_array(seed, rng)
    if rng.random() < 0.2:
        wrong = [held(node)["resolution"] for node in objects(schema, {"Atoms"})]
        wrong += [held(node)["narrowest"] for node in objects(schema, {"Composite"})]
        pick(rng, wrong)["content"] = pick(rng, NUMBERS)
        return with_schema(seed, schema)
    node = pick(rng, found)
    array = np.load(io.BytesIO(seed.members[node["file"]]))
    if array.size and array.dtype.kind == "f" and rng.random() < 0.6:
        flat = array.reshape(-1)
        values = [np.nan, np.inf, -np.inf, 0.0, -1.0, 1.0, 5e-324, 1e149, 1e300, -1e300]
        for at in rng.integers(flat.size, size=rng.integers(1, 4)):
            flat[at] = pick(rng, [*values, float(flat[0]), -float(flat[at])])
    else:
        more = np.repeat(array, int(rng.choice([2, 300, 20_000])), axis=0)
        array = pick(rng, [array[:-1], array[::-1].copy(), more, array.T, 2.0 * array])
    return seed.sealed(**{node["file"]: npy(array)})


def swap_kinds(seed: Seed, rng: Rng) -> bytes:
    """A part said to be of another kind, or two that change places."""
    schema = seed.schema()
    every = objects(schema, {*PARTS, *ESTIMATORS})
    a, b = pick(rng, every), pick(rng, every)
    if rng.random() < 0.5:
        full = pick(rng, [*(f"mvenet.{name}" for name in {**PARTS, **ESTIMATORS}), *sorted(FORMER)])
        a["__module__"], _, a["__class__"] = full.rpartition(".")
    else:
        kept = copy.deepcopy(a)
        new = copy.deepcopy(b)
        b.clear()
        b |= kept
        a.clear()
        a |= new
    return with_schema(seed, schema)


def replace_method(seed: Seed, rng: Rng) -> bytes:
    """An attribute that has the name of a method, or of what an earlier format kept."""
    schema = seed.schema()
    node = pick(rng, objects(schema, {*PARTS, *ESTIMATORS, "Pipeline"}))
    log = {"__module__": "numpy", "__class__": "log", "__loader__": "FunctionNode"}
    value = pick(
        rng, [log, {**log, "__class__": "sqrt"}, *map(_number, NUMBERS), *held(node).values()]
    )
    methods = [
        "predict",
        "evaluate",
        "named",
        "check",
        "_checked",
        "_threads",
        "_validate_params",
        "__class__",
    ]
    former = ["networks_", "composite_", "scale_", "strategy", "means", "_parameter_constraints"]
    name = pick(
        rng, [*methods, "__len__", "weights", "moments", "distribution", "transform", *former]
    )
    members = dict(seed.members)
    hold(node, name, graft(members, value, seed.members))
    if name == "strategy":
        held(node)[name] = _number('"auto"')
    return with_schema(seed, schema, members)


class _Tells:
    def __reduce__(self) -> Any:
        import mvenet_fuzz_evil  # type: ignore[import-not-found]

        return mvenet_fuzz_evil.run, ()


def hide_pickle(seed: Seed, rng: Rng) -> bytes:
    """A pickle that calls the function: as the file, as a member, in an array of objects."""
    protocol = int(rng.integers(6))
    evil = pickle.dumps(_Tells(), protocol)
    name, stream = seed.array(rng), io.BytesIO()
    np.save(stream, np.array([_Tells()], dtype=object), allow_pickle=True)
    return pick(
        rng,
        [
            evil,
            zlib.compress(evil),
            seed.sealed(**{name: evil}),
            seed.sealed(**{name: stream.getvalue()}),
            seed.sealed(**{"schema.json": evil}),
            stream.getvalue(),
        ],
    )


def bomb(seed: Seed, rng: Rng) -> bytes:
    """Little that unpacks to much, or asks for it."""
    schema, name = seed.schema(), seed.array(rng)
    kind = int(rng.integers(7))
    if kind == 0:  # a description with up to 128 MB of blanks
        return _blanks(seed, 2 ** int(rng.integers(23, 28)))
    if kind == 1:  # an array that is compressed
        members = zipped(seed)
        members[name] = bytes(10**7)
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
            for each, content in members.items():
                file.writestr(each, content)
        return buffer.getvalue()
    if kind == 2:  # one array a thousand times
        reference = next(n for n in audit.nodes(schema) if n.get("file") == name)
        holder = pick(rng, [n for n in audit.nodes(schema) if n["__loader__"] == "ListNode"])
        holder["content"] += [reference] * 1000
        return seed.sealed(**{"schema.json": text(schema), name: npy(np.zeros(10**5))})
    if kind == 3:  # as many objects as fit
        holder = pick(rng, [n for n in audit.nodes(schema) if n["__loader__"] == "ListNode"])
        node = {"__module__": "sklearn.impute", "__class__": "SimpleImputer"}
        size = int(rng.choice([500, 5000, 49_000, 90_000]))
        holder["content"] += [{**node, "__loader__": "ObjectNode"}] * size
        packed = json.dumps(schema, separators=(",", ":")).encode()
        return seed.sealed(**{"schema.json": packed})
    if kind == 6:  # as many nothings as fit, as JSON or as a text that is JSON
        nothing = "[" + "[]," * int(rng.choice([10**5, 2_700_000])) + "0]"
        pick(rng, list(audit.nodes(schema)))["content"] = "HERE"
        here = nothing if rng.random() < 0.5 else json.dumps(nothing)
        return seed.sealed(**{"schema.json": text(schema).replace(b'"HERE"', here.encode(), 1)})
    if kind == 4:  # members that all lie on the same bytes
        return _overlapping(seed.data, int(rng.choice([10, 1000, 50_000])))
    members = {f"{i}.npy": b"" for i in range(int(rng.choice([1000, 30_000])))}  # very many
    return archive.pack({**zipped(seed), **members})


def npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def _blanks(seed: Seed, size: int) -> bytes:
    packer, blank = zlib.compressobj(9, zlib.DEFLATED, -15), b" " * 2**20
    body, crc = b"", 0
    for _ in range(size // len(blank)):
        body += packer.compress(blank)
        crc = zlib.crc32(blank, crc)
    body += packer.flush()
    members = {name: part for name, part in zipped(seed).items() if name != "schema.json"}
    data = bytearray(archive.pack({"schema_json": body, **members}).replace(b"a_json", b"a.json"))
    for start in (data.index(b"PK\x03\x04") + 8, data.index(b"PK\x01\x02") + 10):
        data[start : start + 2] = (8).to_bytes(2, "little")
        data[start + 6 : start + 10] = crc.to_bytes(4, "little")
        data[start + 14 : start + 18] = size.to_bytes(4, "little")
    return bytes(data)


def _overlapping(data: bytes, times: int) -> bytes:
    start, end = data.index(b"PK\x01\x02"), data.rindex(b"PK\x05\x06")
    listed = data[start:end] * times
    last = bytearray(data[end:])
    last[12:16] = (len(listed) % 2**32).to_bytes(4, "little")
    return data[:start] + listed + bytes(last)


BLIND = [flip_bits, change_list, cut, insert, copy_block]
MOVED = [swap_members, drop_member, add_member]
SEALED = [
    *(change_value, change_number, change_type, move_objects, share_objects, call_something),
    *(nest, change_header, change_array, flip_in_part, change_metadata, hide_pickle),
    *(stray_part, nest_estimator, change_index, swap_kinds, replace_method),
    change_shape,
]
RARE = [bomb]  # these take a while


# Judging


class Failure(BaseException):
    """A case that did something it must not; nothing in the library may catch it."""


@dataclass
class Watch:
    """What happens while a file is being loaded; a hook of the interpreter cannot be removed."""

    installed: bool = False
    on: bool = False
    seen: str = ""

    def install(self) -> None:
        if not self.installed:
            sys.addaudithook(self)
        self.installed = True

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        if not self.on or _of_joblib():
            return
        calls = ("os.system", "os.exec", "os.fork", "os.posix_spawn", "subprocess.Popen", "socket.")
        writes = event == "open" and args[2] & (os.O_WRONLY | os.O_RDWR)
        if writes or event == "pickle.find_class" or event.startswith((*calls, "ctypes.", "os.re")):
            self.seen = f"{event} {args}"


def _of_joblib() -> bool:
    """Whether it is a thread of joblib's, which unpickles what its own workers send.

    A changed ``n_jobs`` of somebody else's estimator makes it work with processes.
    """
    return type(threading.current_thread()).__module__.startswith("joblib.")


WATCH = Watch()


TELLTALE = """
from pathlib import Path

def run(*args, **options):
    Path({sentinel!r}).touch()

class Evil:
    run = run

    def __new__(cls, *args, **options):
        run()
        return object.__new__(cls)

run()
"""


@contextmanager
def evil_module(folder: Path) -> Iterator[Path]:
    """A module on the path that leaves a file behind when it is imported or used."""
    sentinel = folder / "sentinel"
    (folder / f"{EVIL}.py").write_text(TELLTALE.format(sentinel=str(sentinel)))
    sys.path.insert(0, str(folder))
    try:
        yield sentinel
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop(EVIL, None)


def memory() -> tuple[int, int]:
    """MB that the process has, and the most that it had since `forget_most`; zeros elsewhere."""
    if not STATUS.exists():
        return 0, 0
    lines = (line.split() for line in STATUS.read_text().splitlines())
    kilobytes = {line[0]: int(line[1]) for line in lines if line[0] in ("VmRSS:", "VmHWM:")}
    return kilobytes["VmRSS:"] // 1024, kilobytes["VmHWM:"] // 1024


def forget_most() -> int:
    """Begin to measure anew if need be: making a hostile file may take more than reading it.

    Returns the MB that the process has. To begin anew takes longer than most cases do.
    """
    now, most = memory()
    if most > now + UNNOTICED:
        Path("/proc/self/clear_refs").write_text("5")
    return now


def judge(path: Path, seed: Seed, blind: bool) -> str:
    """Load one file; what became of it, or Failure."""

    def too_long(*_: object) -> None:
        raise Failure(f"took more than {PATIENCE} seconds")

    handler = signal.signal(signal.SIGPROF, too_long)
    signal.setitimer(signal.ITIMER_PROF, PATIENCE)  # whatever else the machine has to do
    WATCH.on, WATCH.seen = True, ""
    try:
        models = [loaded(read, path) for read in (load, load_to_predict)[: 1 + seed.serves]]
        for model in models:
            if model is not None and not blind:
                predict(model, seed.X)
    finally:
        WATCH.on = False
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, handler)
    if models == [None] * len(models):
        return "refused"
    if not blind:
        return "loaded"
    try:
        same = predictions(models[0], seed.X) == seed.expected
    except Exception as error:
        raise Failure(f"loads and predicts something else: {error!r}") from error
    if not same:
        raise Failure("loads and predicts something else")
    return "same"


def loaded(read: Callable[[Path], Any], path: Path) -> Any:
    """The model of a file, or None if it is refused in a sentence."""
    try:
        return read(path)
    except ValueError as error:
        message = str(error)
        if not message.startswith(repr(str(path))) or len(message) > 700:
            raise Failure(f"is refused with {message!r}") from error
        if message[-1] != "." or ": " not in message or not message.isprintable():
            raise Failure(f"is refused without a remedy, or not in a line: {message!r}") from error
        return None
    except Failure:
        raise
    except BaseException as error:
        raise Failure(f"raised {type(error).__name__}: {error}") from error


def predict(model: Any, X: Any) -> None:
    """Ask what was loaded; estimators of ours must answer, a hostile pipeline around may fail."""
    no_strays(model)
    for part in audit.our_estimators(model):
        if audit.is_fitted(part):
            answer(part)
    with suppress(Exception):
        if isinstance(model, tuple):  # built without scikit-learn
            encoder, model = model
            X = encoder.transform(X)
        model.predict(X)


def no_strays(model: Any) -> None:
    """No part of a model is anywhere but in the model of an estimator of ours."""
    waiting = [model]
    while waiting:
        thing = waiting.pop()
        if type(thing).__name__ in PARTS:
            raise Failure(f"loads with a {type(thing).__name__} that nobody has looked at")
        if isinstance(thing, dict | list | tuple):
            waiting += thing.values() if isinstance(thing, dict) else thing
        elif isinstance(thing, np.ndarray) and thing.dtype == object:
            waiting += thing.tolist()
        elif hasattr(thing, "__dict__") and not isinstance(thing, type):
            inside = dict(vars(thing))
            if isinstance(thing, PredictsDistribution):
                inside.pop("encoder_", None)
            if isinstance(thing, Predictor):
                means = getattr(inside.pop("model_", None), "means", ())
                waiting += [mean.regressor for mean in means if isinstance(mean, GivenRegressor)]
            waiting += inside.values()


def answer(part: Any) -> None:
    rows = Encoded(np.random.default_rng(0).normal(size=(3, part._n_read)) * [[0], [1], [1e3]])
    try:
        mean, std = part.predict(rows, return_std=True)
    except Exception as error:
        means = getattr(part.model_, "means", ())
        if any(
            isinstance(mean, GivenRegressor) for mean in means
        ):  # by whatever the file put into it
            return
        if getattr(part.model_, "atoms", None) is not None and "must be finite" in str(error):
            return  # what is collected at atoms must be a number
        raise Failure(f"loads, but predict raised {error!r}") from error
    if mean.shape != (3,) or std.shape != (3,):
        raise Failure("predicts in another shape")
    with suppress(ValueError):  # numbers that are finite, but not their products
        part.predict_interval(rows)


@dataclass
class Tried:
    """What became of the cases, by kind of change, and the most MB that one took."""

    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    most: int = 0

    @property
    def count(self) -> int:
        return self.outcomes.total()


def run(folder: Path, count: int, seed: int = 0, first: int = 0) -> Iterator[Tried]:
    """Try so many cases, from the first on; yields what became of them so far after each."""
    WATCH.install()
    tried = Tried()
    with evil_module(folder) as sentinel, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of versions, of names: a changed file may well say so
        good = seeds(folder)
        for number in range(first, first + count):
            if tried.count % 100 == 0:  # starts a thread, which takes longer than most cases
                faulthandler.dump_traceback_later(20 * PATIENCE, exit=True)
            rng = np.random.default_rng([seed, number])
            change, of = drawn(rng, good)
            try:
                outcome = case(folder / "case.mve", change, of, rng, sentinel, tried)
            except Failure as failure:
                failure.add_note(f"{change.__name__}, seed {seed}, case {number}: in {folder}")
                raise
            tried.outcomes[change.__name__, outcome] += 1
            yield tried
        faulthandler.cancel_dump_traceback_later()


def drawn(rng: Rng, good: list[Seed]) -> tuple[Callable[..., bytes], Seed]:
    """A change, and a good file for it."""
    common = [BLIND, MOVED, SEALED][int(rng.choice(3, p=[0.35, 0.05, 0.6]))]
    change: Callable[..., bytes] = pick(rng, RARE if rng.random() < 0.01 else common)
    return change, pick(rng, good)


def case(
    path: Path, change: Callable[..., bytes], of: Seed, rng: Rng, sentinel: Path, tried: Tried
) -> str:
    """Change a file and load it; what became of it, or Failure."""
    blind = change in BLIND or change in MOVED
    data = change(of.data if change in BLIND else of, rng)
    sentinel.unlink(missing_ok=True)
    sys.modules.pop(EVIL, None)
    path.write_bytes(data)
    twice = 2 * len(data) // 2**20
    del data
    allowed = forget_most() + twice
    outcome = judge(path, of, blind)
    tried.most = max(tried.most, memory()[1] - allowed)
    if tried.most > MEMORY:
        raise Failure(f"took {tried.most} MB of memory beside twice its size")
    if sentinel.exists() or WATCH.seen:
        raise Failure(f"ran code: {WATCH.seen or 'the sentinel is there'}")
    return outcome


def main() -> None:
    parser = argparse.ArgumentParser(description="Load model files that were changed at random.")
    parser.add_argument("--count", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    options = parser.parse_args()
    memory = Path("/dev/shm")  # a disk would be much of the time
    folder = Path(tempfile.mkdtemp(prefix="fuzz-", dir=memory if memory.is_dir() else None))
    start = time.process_time()
    for tried in run(folder, options.count, options.seed, options.first):
        if tried.count % 5_000 == 0:
            seconds = time.process_time() - start
            print(f"{tried.count} files in {seconds:.0f} s of the processor", flush=True)  # noqa: T201
    shutil.rmtree(folder)  # stays if a case fails
    for (change, outcome), n in sorted(tried.outcomes.items()):
        print(f"{change:16s} {outcome:8s} {n:7d}")  # noqa: T201
    print(  # noqa: T201
        f"{tried.count} files in {time.process_time() - start:.0f} s of the processor: no crash, "
        f"no code run, none over {PATIENCE} s, none over {tried.most} MB beside twice its size"
    )


if __name__ == "__main__":
    main()
