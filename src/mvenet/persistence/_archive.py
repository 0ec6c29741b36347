"""The outside of a model file: a zip archive of limited size with checksums, written whole."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import stat
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mvenet
from mvenet._utils.wording import no_file

FORMAT = 4  # 1 named the modules that our types lived in; 2 had no model_, 3 no encoder_
LARGEST_FILE = 2**30  # bytes; loading takes a few times the memory of the file
LARGEST_JSON = 2**23  # bytes of each JSON member, unpacked
LARGEST_DIRECTORY = 2**20  # bytes of the archive's own list of members
ENDS = 42  # bytes at either end that say whether it is worth reading
MOST_OBJECTS = 60_000  # described in JSON; skops needs a tenth of a millisecond for each
METADATA = (
    *("format", "versions", "model", "estimator", "n_features", "feature_names", "fingerprint"),
    "sha256",
)

Members = dict[str, bytes]


class RefusalError(ValueError):
    """Why a file is not loaded: the rest of a sentence that began with its name, and a remedy."""

    def __init__(
        self, reason: str, remedy: str = "take it from a backup or save the model again"
    ) -> None:
        super().__init__(reason, remedy)

    def __str__(self) -> str:
        return ": ".join(self.args)


def require(truth: object, *reason: str) -> None:
    """Refuse the file for this reason (and with this remedy) if it is not true."""
    if not truth:
        raise RefusalError(*reason)


def printable(text: object, length: int = 150) -> str:
    """Text of a file, fit for a message: short, on one line, nothing that moves the cursor."""
    line = " ".join(str(text)[:length].split())
    return "".join(letter if letter.isprintable() else "?" for letter in line)


def read(path: str | os.PathLike[str]) -> bytes:
    """All of a file, if it is one, not too large, and an archive at first sight."""
    place = Path(path)
    with _in_words(place):
        status = place.stat()
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError("it is a folder")
        if not stat.S_ISREG(status.st_mode):
            raise OSError("it is a device or a pipe")  # which might never end
        with place.open("rb") as file:
            start = file.read(ENDS)
            file.seek(max(0, status.st_size - ENDS))
            _check_ends(start, file.read(ENDS), status.st_size)  # before the rest is in memory
            file.seek(0)
            return file.read(LARGEST_FILE)


def unpack(data: bytes) -> tuple[dict[str, Any], Members]:
    """Metadata and the other members of an archive, all checksums compared."""
    _check_ends(data[:ENDS], data[-ENDS:], len(data))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = archive.infolist()
        names = [entry.filename for entry in entries]
        ours = "mvenet.json" in names
        require(ours, "is an archive, but none of mvenet", "write one with model.save(path)")
        # First of all the format: another one may have other rules.
        _check_entry(archive.getinfo("mvenet.json"))
        metadata = _check_metadata(parsed(archive.read("mvenet.json")))
        for entry in entries:
            _check_entry(entry)
        packed = sum(entry.compress_size for entry in entries)
        require(packed <= len(data), "has parts that overlap")
        checksums = metadata["sha256"]
        whole = sorted(names) == sorted(["mvenet.json", *checksums])
        require(whole, "lacks a part or has one too many")
        members = {name: archive.read(name) for name in checksums}
    for name, content in members.items():
        intact = hashlib.sha256(content).hexdigest() == checksums[name]
        require(intact, f"is damaged in its part {name}")
    return metadata, members


def parsed(text: bytes) -> Any:
    """JSON, unless it would become too many objects."""
    brackets = text.count(b"{") + text.count(b"[")
    require(brackets <= MOST_OBJECTS, f"describes more than {MOST_OBJECTS} objects")
    return json.loads(text)


def _check_ends(start: bytes, end: bytes, size: int) -> None:
    """Refuse what is no archive, before zipfile makes an object of everything it lists."""
    require(size, "is empty")
    limit = f"has {size} bytes, but a model file at most {LARGEST_FILE}"
    require(size <= LARGEST_FILE, limit, "check the path")
    remedy = "models are made by mvenet fit, or model.save(path)"
    require(start[:1] != b"\x80", "is a pickle, which can run any code, and was not opened", remedy)
    require(start.startswith(b"PK\x03\x04"), "is no model file of mvenet", remedy)
    # The last record gives the size of the list; mvenet adds no comment and no 64-bit sizes.
    last = end[-22:-18] == b"PK\x05\x06" and end[-2:] == b"\0\0"
    require(last and end[-42:-38] != b"PK\x06\x07", "is cut short or was added to")
    listed = int.from_bytes(end[-10:-6], "little")
    require(listed <= LARGEST_DIRECTORY, "has more parts than a model file may have")


def _check_entry(entry: zipfile.ZipInfo) -> None:
    """Refuse a bomb: only JSON is compressed, so nothing else can unpack to more than the file."""
    is_json = entry.filename.endswith(".json")
    usual = zipfile.ZIP_DEFLATED if is_json else zipfile.ZIP_STORED
    require(entry.compress_type == usual, "is compressed in a way that mvenet does not use")
    limit = LARGEST_JSON if is_json else entry.compress_size
    require(entry.file_size <= limit, f"has a part of more than {limit} bytes")


def _check_metadata(metadata: Any) -> dict[str, Any]:
    version, versions = metadata["format"], metadata["versions"]
    require(type(version) is int and version > 0, "has a format that does not exist")
    here = f"this is mvenet {mvenet.__version__}, which reads up to format {FORMAT}"
    written = f"was written in format {version} by mvenet {printable(versions['mvenet'], 40)}"
    require(version <= FORMAT, f"{written}, and {here}", "upgrade mvenet")
    names, fingerprint = metadata["feature_names"], metadata["fingerprint"]
    texts = [metadata["model"], metadata["estimator"], *versions.values(), *(names or ())]
    texts += [] if fingerprint is None else [fingerprint]
    sensible = all(type(text) is str for text in texts) and type(metadata["n_features"]) is int
    sensible = sensible and (names is None or type(names) is list)
    require(sensible, "says things about itself that make no sense")
    usual = all(re.fullmatch(r"schema\.json|\d{1,9}\.npy", name) for name in metadata["sha256"])
    require(usual, "has parts with names that mvenet does not use")
    known = {name: metadata[name] for name in METADATA}
    if "promise" in metadata:  # since rows may belong together
        require(type(metadata["promise"]) is str, "says things about itself that make no sense")
        known["promise"] = metadata["promise"]
    if "card" in metadata:
        require(_is_card(metadata["card"]), "has a model card that makes no sense")
        known["card"] = metadata["card"]
    return known


def pack(members: Members) -> bytes:
    """A zip archive without dates, so that equal models are equal files."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            packing = zipfile.ZIP_DEFLATED if name.endswith(".json") else zipfile.ZIP_STORED
            archive.writestr(zipfile.ZipInfo(name), content, packing)
    return buffer.getvalue()


@contextlib.contextmanager
def _in_words(place: Path) -> Iterator[None]:
    """Make a sentence of a refusal or an error of the system; its type stays."""
    try:
        yield
    except RefusalError as error:
        raise ValueError(f"{str(place)!r} {error}.") from error
    except FileNotFoundError as error:
        raise FileNotFoundError(no_file(place)) from error
    except OSError as error:
        reason = error.strerror or error
        raise type(error)(f"{str(place)!r} cannot be read ({reason}): check the path.") from error


def _is_card(card: Any) -> bool:
    """Whether it is what :func:`mvenet._models.card.card` tells: texts and numbers by name."""
    if type(card) is not dict or type(card.get("columns", [])) is not list:
        return False
    columns = card.get("columns", [])
    named = all(type(c) is dict and {"name", "kind", "remark"} <= c.keys() for c in columns)
    scores = [card.get(name, {}) for name in ("rows_left_out", "rows_held_out")]
    if not named or not all(type(some) is dict for some in scores):
        return False
    plain = [value for some in (*columns, *scores) for value in some.values()]
    numbers = all(type(v) in (int, float) for some in scores for v in some.values())
    others = [value for value in card.values() if type(value) not in (list, dict)]
    return numbers and all(type(value) in (str, int, float, bool) for value in (*plain, *others))
