"""Model files that are damaged, foreign or hostile: all are refused with a sentence."""

from __future__ import annotations

import copy
import dataclasses
import io
import json
import math
import pickle
import random
import re
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import fuzz_persistence as fuzz
import joblib
import numpy as np
import pytest
from fitted import table, tiny

from mvenet import MVERegressor
from mvenet._models.checks import MalformedError
from mvenet._models.ensemble import Ensemble
from mvenet.persistence import _archive as archive
from mvenet.persistence import _audit as audit
from mvenet.persistence import info, load
from mvenet.persistence._names import located

pytestmark = pytest.mark.usefixtures("short")


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> list[fuzz.Seed]:
    """Files of a regressor, a search and a pipeline."""
    return fuzz.seeds(tmp_path_factory.mktemp("seeds"))


def refusal(path: Path, data: bytes | None = None) -> str:
    """The sentence with which a file is refused; its remedy comes after a colon."""
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(ValueError, match=r"^'.*model\.mve' .*: .*\.$") as caught:
        load(path)
    message = str(caught.value)
    assert message.isprintable() and len(message) < 700
    return message


# Files that are not loaded


class Creates:
    """Unpickled, it creates a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return open, (str(self.path), "w")


def zip_of(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, content in members.items():
            file.writestr(name.replace("__", "/"), content)
    return buffer.getvalue()


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_renamed_pickle_is_not_opened(protocol: int, path: Path, tmp_path: Path) -> None:
    sentinel = tmp_path / "sentinel"
    evil = pickle.dumps(Creates(sentinel), protocol)
    assert ("is a pickle" in refusal(path, evil)) == (protocol >= 2)
    refusal(path, zip_of(data__data_pkl=evil))
    joblib.dump(Creates(sentinel), path, protocol=protocol, compress=3)
    refusal(path)
    assert not sentinel.exists()
    pickle.loads(evil).close()  # it would have
    assert sentinel.exists()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "is empty"),
        (b"P", "is no model file"),
        (b"x,y\n1,2\n", "is no model file"),
        (b"PK\x03\x04", "is cut short"),
        (b"PK\x03\x04" + bytes(100), "is cut short"),
        (zip_of(x=b"x"), "is an archive, but none of mvenet"),
        (zip_of(schema_json=b"{}"), "is an archive, but none of mvenet"),
        (b"\x89HDF\r\n\x1a\n" + bytes(100), "is no model file"),
    ],
)
def test_foreign_files(data: bytes, reason: str, path: Path) -> None:
    assert reason in refusal(path, data)
    with pytest.raises(ValueError, match=reason):
        info(path)


def test_a_file_of_skops_itself_is_not_ours(model: MVERegressor, path: Path) -> None:
    skops_io = pytest.importorskip("skops.io")
    skops_io.dump(model, path)
    assert "none of mvenet" in refusal(path)


def test_a_cut_file_is_refused_wherever_it_is_cut(good: list[fuzz.Seed], path: Path) -> None:
    data = good[0].data
    for length in range(1, len(data), 37):
        refusal(path, data[:length])
        refusal(path, data[length:])
    assert "added to" in refusal(path, data + b"\0")


def test_a_flipped_bit_is_refused_or_means_nothing(good: list[fuzz.Seed], path: Path) -> None:
    seed, rng = good[0], random.Random(0)
    parameters = max(
        seed.members, key=lambda name: len(seed.members[name]) * (name != "schema.json")
    )
    start = seed.data.index(seed.members[parameters])
    for at in range(start, start + len(seed.members[parameters]), 13):  # a weight, to begin with
        flipped = bytearray(seed.data)
        flipped[at] ^= 1 << rng.randrange(8)
        assert "is damaged" in refusal(path, bytes(flipped))
    unharmed = 0
    for at in range(0, len(seed.data), 11):
        flipped = bytearray(seed.data)
        flipped[at] ^= 1 << rng.randrange(8)
        path.write_bytes(flipped)
        try:
            again = load(path)
        except ValueError:
            continue
        assert fuzz.predictions(again, seed.X) == seed.expected
        unharmed += 1
    assert unharmed < len(seed.data) / 11 / 4


def test_members_that_change_places_are_refused(good: list[fuzz.Seed], path: Path) -> None:
    seed = good[0]
    members = fuzz.zipped(seed)
    alike = {}
    for name, content in seed.members.items():
        alike.setdefault(len(content), []).append(name)
    a, b = next(names for names in alike.values() if len(names) > 1)[:2]
    members[a], members[b] = members[b], members[a]
    assert "is damaged in its part" in refusal(path, archive.pack(members))


def test_a_newer_format_says_what_to_do(good: list[fuzz.Seed], path: Path) -> None:
    seed = good[0]
    versions = {**seed.metadata["versions"], "mvenet": "7.1"}
    newer = {**seed.metadata, "format": archive.FORMAT + 1, "versions": versions}
    sentence = refusal(path, fuzz.seal(newer, seed.members))
    assert re.search(r"format 5 by mvenet 7\.1, .* up to format 4: upgrade mvenet\.$", sentence)
    for nonsense in (0, -1, "1", True, None, 1.0, [1]):
        refusal(path, fuzz.seal({**seed.metadata, "format": nonsense}, seed.members))


def test_other_versions_are_named_if_a_class_cannot_be_built(
    good: list[fuzz.Seed], path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("sklearn.preprocessing.OneHotEncoder")  # a scikit-learn without it
    sentence = refusal(path, good[2].data)
    assert "OneHotEncoder" in sentence and f"numpy {np.__version__}" in sentence


@pytest.mark.parametrize("seed", range(3))
def test_foreign_types_are_never_built(
    seed: int, good: list[fuzz.Seed], path: Path, tmp_path: Path
) -> None:
    with fuzz.evil_module(tmp_path) as sentinel:
        told = [
            refusal(path, fuzz.call_something(good[seed], np.random.default_rng(number)))
            for number in range(60)
        ]
        assert not sentinel.exists()
    assert sum("which no model file may; nothing of it was run" in line for line in told) > 50


@pytest.mark.parametrize(
    ("loader", "name"),
    [
        ("ObjectNode", "sklearn.svm._classes.SVR"),  # skops itself would build it
        ("ObjectNode", "sklearn.ensemble._forest.RandomForestRegressor"),
        ("RandomStateNode", "numpy.random.mtrand.RandomState"),
        ("RandomGeneratorNode", "numpy.random._generator.Generator"),
        ("ConstructorFromReduceNode", "mvenet._estimators.regressor.MVERegressor"),
        ("TupleNode", "mvenet._training.fleet.Networks"),
        ("ObjectNode", "builtins.dict"),
        ("FunctionNode", "numpy.fromfile"),
        ("FunctionNode", "mvenet.persistence.load"),
        ("NdArrayNode", "numpy.void"),
        ("CachedNode", "builtins.str"),
    ],
)
def test_types_are_trusted_by_kind_and_name(
    loader: str, name: str, good: list[fuzz.Seed], path: Path
) -> None:
    schema = good[0].schema()
    node = schema["content"]["content"]["history_"]
    node["__module__"], _, node["__class__"] = name.rpartition(".")
    node["__loader__"] = loader
    data = good[0].sealed(**{"schema.json": json.dumps(schema).encode()})
    assert name in refusal(path, data)


def test_what_is_trusted_exists() -> None:
    names = [
        name for kind in ("ObjectNode", "TypeNode", "FunctionNode") for name in audit.TYPES[kind]
    ]
    for name in names:
        module, _, attribute = name.rpartition(".")
        module, attribute = located(module, attribute)
        if not attribute.startswith("_"):  # of some versions only
            assert hasattr(__import__(module, fromlist=["x"]), attribute), name


def attributes(schema: Any, *way: str) -> Any:
    """Descriptions of the attributes of an object in a file, found by the names on the way."""
    held = schema["content"]["content"]
    for name in way:
        held = held[name]["content"]["content"]
    return held


def changed(seed: fuzz.Seed, attribute: str, value: Any) -> bytes:
    """A regressor's file in which an attribute of its networks is another array."""
    networks = attributes(seed.schema(), "model_", "networks")
    return seed.sealed(**{networks[attribute]["file"]: fuzz.npy(value)})


def stored(seed: fuzz.Seed, attribute: str) -> np.ndarray:
    networks = attributes(seed.schema(), "model_", "networks")
    return np.load(io.BytesIO(seed.members[networks[attribute]["file"]]))


@pytest.mark.parametrize(
    ("attribute", "change", "reason"),
    [
        ("parameters", lambda a: np.where(a == a.max(), np.nan, a), "parameters holds a value"),
        ("parameters", lambda a: np.where(a == a.max(), np.inf, a), "parameters holds a value"),
        ("parameters", lambda a: a[:, :-1].copy(), "parameters is not a block"),
        ("parameters", lambda a: a[:1], "parameters is not a block"),
        ("parameters", lambda a: np.concatenate([a, a], axis=1), "parameters is not a block"),
        ("parameters", lambda a: a.astype(">f4"), "parameters is not a block"),
        ("parameters", lambda a: a.astype("f2"), "parameters is not a block"),
        ("parameters", lambda a: a.view(np.int32), "parameters is not a block"),
        ("parameters", lambda a: np.asfortranarray(a), "parameters is not a block"),
        ("parameters", lambda a: a[None], "parameters is not a block"),
        ("x_mean", lambda a: a[:, :0], "none with inputs"),
        ("x_mean", lambda a: a[:0], "no networks"),
        ("x_mean", lambda a: a[0], "x_mean is no table"),
        ("x_mean", lambda a: a.astype("f4"), "x_mean is not a block"),
        ("x_mean", lambda a: np.concatenate([a, a], axis=1), "parameters is not a block"),
        ("x_scale", lambda a: 0 * a, "x_scale holds a value"),
        ("x_scale", lambda a: -a, "x_scale holds a value"),
        ("x_scale", lambda a: a + np.nan, "x_scale holds a value"),
        ("y_mean", lambda a: a + np.inf, "y_mean holds a value"),
        ("y_scale", lambda a: a[:1], "y_scale is not a block"),
        ("y_scale", lambda a: 0 * a, "y_scale holds a value"),
        ("y_scale", lambda a: np.array(["1", "2"]), "y_scale is not a block"),
    ],
)
def test_networks_that_training_cannot_have_made(
    attribute: str, change: Any, reason: str, good: list[fuzz.Seed], path: Path
) -> None:
    assert reason in refusal(path, changed(good[0], attribute, change(stored(good[0], attribute))))


@pytest.mark.parametrize(
    ("attribute", "value", "reason"),
    [
        ("hidden_mean", None, "parameters is not a block"),
        ("hidden_mean", [5], "hidden_mean is no tuple"),
        ("hidden_mean", (-4,), "hidden_mean holds no numbers of units"),
        ("hidden_mean", (0,), "hidden_mean"),
        ("hidden_mean", (4, 65537), "hidden_mean"),
        ("hidden_mean", (2**62, 2**62), "hidden_mean"),
        ("hidden_mean", (4.0,), "hidden_mean"),
        ("hidden_mean", (True,), "hidden_mean"),
        ("hidden_mean", (65536, 65536), "parameters is not a block"),
        ("hidden_mean", (5,), "parameters is not a block"),
        ("hidden_mean", (4, 1), "parameters is not a block"),
        ("hidden_var", (), "parameters is not a block"),
        ("hidden_var", "40", "hidden_var is no tuple"),
        ("activation", "sine", "activation"),
        ("activation", 3, "activation"),
        ("input_bound", 0.0, "input_bound"),
        ("input_bound", -2.0, "input_bound"),
        ("input_bound", math.nan, "input_bound"),
        ("input_bound", "3", "input_bound"),
    ],
)
def test_architectures_that_do_not_fit(
    attribute: str, value: Any, reason: str, model: MVERegressor
) -> None:
    right = tiny(hidden_mean=(4,), hidden_var=(3,), n_members=2).fit(*table()).model_.networks
    right.check()
    wrong = dataclasses.replace(right.architecture, **{attribute: value})
    with pytest.raises(MalformedError, match=reason):
        dataclasses.replace(right, architecture=wrong).check()


def test_networks_are_nothing_but_networks(model: MVERegressor) -> None:
    networks = model.model_.networks
    longer, shorter = copy.copy(networks), copy.copy(networks)
    vars(longer)["predict"] = np.log
    del vars(shorter)["y_scale"]
    others = (None, 3, {"parameters": 1}, model, networks.architecture)
    for something in (*others, longer, shorter):
        with pytest.raises(MalformedError, match="in the place of Networks"):
            Ensemble(something).check(3)
    for something in (*others[:-1], networks):
        with pytest.raises(MalformedError, match="in the place of Architecture"):
            dataclasses.replace(networks, architecture=something).check()


@pytest.mark.parametrize(
    ("attribute", "text"),
    [
        ("n_features_in_", "3"),
        ("n_features_in_", '"2"'),
        ("n_jobs", "0"),
        ("n_jobs", "[1]"),
        ("activation", '"sine"'),
        ("random_state", '"x"'),
        ("model_", None),
        ("model_", "null"),
        ("n_features_in_", None),
        ("n_features_in_", "true"),
        ("n_features_in_", "0"),
        ("feature_names_in_", '["a", "b"]'),
    ],
)
def test_attributes_that_do_not_fit(
    attribute: str, text: str | None, good: list[fuzz.Seed], path: Path
) -> None:
    schema = good[0].schema()
    held = attributes(schema)
    if text is None:
        del held[attribute]
    else:
        held[attribute] = {**held["epochs"], "content": text}
    schema["content"]["key_types"]["content"] = [
        schema["content"]["key_types"]["content"][0] for _ in held
    ]
    refusal(path, fuzz.with_schema(good[0], schema))


@pytest.mark.parametrize("text", ["-1.0", "0.0", "NaN", "1e999", '"1"', "1", "null", "9" * 400])
def test_scales_that_do_not_fit(text: str, good: list[fuzz.Seed], path: Path) -> None:
    schema = good[0].schema()
    attributes(schema, "model_")["scale"]["content"] = text
    assert "scale" in refusal(path, fuzz.with_schema(good[0], schema))


def test_arrays_of_objects_are_not_unpickled(
    good: list[fuzz.Seed], path: Path, tmp_path: Path
) -> None:
    sentinel = tmp_path / "sentinel"
    stream = io.BytesIO()
    np.save(stream, np.array([Creates(sentinel)], dtype=object), allow_pickle=True)
    zipped = zip_of(a_npy=fuzz.npy(np.zeros(3)))
    for content in (stream.getvalue(), pickle.dumps(Creates(sentinel)), zipped, b"", b"\x93NUMPY"):
        refusal(path, good[0].sealed(**{"0.npy": content}))
    assert not sentinel.exists()


def test_a_header_cannot_promise_more_than_there_is(good: list[fuzz.Seed], path: Path) -> None:
    for shape in ("(1000000000000,)", "(-1,)", "(2, 10000000000)", "(-2, -2)", "()"):
        for kind in ("<f8", "|V0", "<U0", "|O"):
            form = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
            head = form.encode().ljust(117) + b"\n"
            content = b"\x93NUMPY\1\0" + len(head).to_bytes(2, "little") + head + bytes(32)
            sentence = refusal(path, good[0].sealed(**{"0.npy": content}))
            assert re.search(r"0\.npy that is (no array|not as large)", sentence)
    for text in (b"-" * 9000 + b"1", b"(" * 9000, b"1if 1else " * 900 + b"1", b"9" * 9000):
        content = b"\x93NUMPY\1\0" + (len(text) + 1).to_bytes(2, "little") + text + b"\n"
        assert "0.npy that is no array" in refusal(path, good[0].sealed(**{"0.npy": content}))


def test_bombs_are_refused_before_they_go_off(good: list[fuzz.Seed], path: Path) -> None:
    assert "has a part of more than" in refusal(path, fuzz._blanks(good[0], 2**26))
    assert "overlap" in refusal(path, fuzz._overlapping(good[0].data, 100)).lower()  # or Python
    assert "more parts" in refusal(path, fuzz._overlapping(good[0].data, 10_000))
    # half a gigabyte that a look at both ends is enough for
    path.write_bytes(good[0].data)
    with path.open("r+b") as file:
        file.seek(2**29)
        file.write(b"PK\x05\x06" + b"\xff" * 16 + b"\0\0")
    tracemalloc.start()
    assert "more parts" in refusal(path)
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()
    # a tree with 2^60 leaves, of sixty objects
    schema = good[0].schema()
    node: dict[str, Any] = {"__class__": "list", "__module__": "builtins"}
    node |= {"__loader__": "ListNode", "content": []}
    leaf = dict(node, __id__=1)
    for number in range(2, 60):
        leaf = dict(node, content=[leaf, {"__id__": number - 1}], __id__=number)
    schema["content"]["content"]["epochs"] = leaf
    laughing = good[0].sealed(**{"schema.json": json.dumps(schema).encode()})
    assert "parts of several others" in refusal(path, laughing)
    many = b"[" + b"[]," * 1_000_000 + b"0]"
    assert "more than 60000 objects" in refusal(path, good[0].sealed(**{"schema.json": many}))
    refusal(path, good[0].sealed(**{"schema.json": b"[" * 50_000}))
    schema = good[0].schema()
    for _ in range(100):
        node = dict(node, content=[node])
    schema["content"]["content"]["epochs"] = node
    deep = good[0].sealed(**{"schema.json": json.dumps(schema).encode()})
    assert "nested more than 200 levels" in refusal(path, deep)
    schema = good[0].schema()
    history = schema["content"]["content"]["history_"]["content"]
    history["nll"] = history["epoch"]  # one array twice, another not at all
    twice = good[0].sealed(**{"schema.json": json.dumps(schema).encode()})
    assert "does not use each of its arrays once" in refusal(path, twice)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in fuzz.zipped(good[0]).items():
            file.writestr(name, content)
    assert "is compressed in a way" in refusal(path, buffer.getvalue())


def test_networks_in_a_table_are_not_asked_for_their_length(
    good: list[fuzz.Seed], path: Path
) -> None:
    # They are a sequence of sequences without end, and NumPy would look.
    schema = good[0].schema()
    held = attributes(schema)
    number = held["epochs"]
    shape = {"__class__": "tuple", "__module__": "builtins", "__loader__": "TupleNode"}
    shape["content"] = [number, number]
    table = {"__class__": "ndarray", "__module__": "numpy", "__loader__": "NdArrayNode"}
    table |= {"type": "json", "shape": shape, "content": [held["model_"]]}
    held["model_"] = table
    assert "table of objects" in refusal(path, good[0].sealed(**{"schema.json": fuzz.text(schema)}))
    table["file"] = "0.npy"  # as if it were an array of numbers
    assert "table of objects" in refusal(path, good[0].sealed(**{"schema.json": fuzz.text(schema)}))
    table |= {"__class__": "MaskedArray", "__module__": "numpy.ma", "__loader__": "MaskedArrayNode"}
    table["content"] = {"data": table["content"][0], "mask": number}
    assert "masked array" in refusal(path, good[0].sealed(**{"schema.json": fuzz.text(schema)}))


def test_what_a_file_says_about_itself(good: list[fuzz.Seed], path: Path) -> None:
    for name, value in (
        ("feature_names", "ab"),
        ("feature_names", [1, 2]),
        ("feature_names", {"a": 1}),
        ("fingerprint", 3),
        ("fingerprint", []),
        ("model", None),
        ("n_features", "2"),
        ("versions", {"mvenet": 1}),
        ("versions", []),
    ):
        path.write_bytes(fuzz.seal({**good[0].metadata, name: value}, good[0].members))
        with pytest.raises(ValueError, match=r"model\.mve' (says things|is damaged)"):
            info(path)
    path.write_bytes(fuzz.seal({**good[0].metadata, "evil": "x"}, good[0].members))
    assert info(path) == good[0].metadata
    versions = {"mvenet": "\x1b[2J\n9"}
    sentence = refusal(path, fuzz.seal({"format": 9, "versions": versions}, good[0].members))
    assert "mvenet ?[2J 9" in sentence


def test_a_file_without_our_estimator_is_refused(good: list[fuzz.Seed], path: Path) -> None:
    schema = good[2].schema()
    nodes = {audit.type_name(node): node for node in audit.nodes(schema)}
    scaler = nodes["sklearn.preprocessing.StandardScaler"]
    used = {node["file"] for node in audit.nodes(scaler) if "file" in node}
    members = {name: good[2].members[name] for name in used}
    members["schema.json"] = json.dumps({**scaler, "protocol": 2}).encode()
    assert "no fitted network of mvenet" in refusal(path, fuzz.seal(good[2].metadata, members))


def test_a_lower_protocol_of_skops_is_refused(good: list[fuzz.Seed], path: Path) -> None:
    for protocol in (0, 1, True, None, "2"):
        schema = {**good[0].schema(), "protocol": protocol}
        refusal(path, good[0].sealed(**{"schema.json": json.dumps(schema).encode()}))


# The fuzz target, for a moment; make fuzz runs it for longer


def test_fuzz(tmp_path: Path) -> None:
    *_, tried = fuzz.run(tmp_path, count=200, seed=1)
    results = tried.outcomes
    assert tried.count == 200
    outcomes = {change: {o for c, o in results if c == change} for change, _ in results}
    assert outcomes.keys() >= {change.__name__ for change in fuzz.BLIND + fuzz.SEALED}
    assert outcomes["hide_pickle"] == outcomes["call_something"] == {"refused"}
    assert outcomes["change_array"] == outcomes["change_index"] == {"refused", "loaded"}


@pytest.mark.parametrize(
    ("module", "check", "change", "failure"),
    [
        (audit, "foreign_types", fuzz.call_something, "ran code: .*sentinel"),
        (archive, "require", fuzz.swap_members, "loads and predicts something else"),
        (audit, "check_estimator", fuzz.change_array, "predict raised"),
        (audit, "check_places", fuzz.stray_part, "nobody has looked at"),
    ],
)
def test_the_fuzz_target_notices_a_missing_check(
    module: Any,
    check: str,
    change: Any,
    failure: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, check, lambda *_: "")
    monkeypatch.setattr(fuzz, "SEALED", [change])
    with pytest.raises(fuzz.Failure, match=failure):
        list(fuzz.run(tmp_path, count=300, seed=2))
