"""Results kept in a folder, fold by fold, so that a long run can be killed and taken up again.

One SQLite file: each fold is one transaction, so it is there whole or not at all. The file stays
locked while a process works on it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

FORMAT = 1
PATIENCE = 2.0  # seconds that a second process waits before it says that the store is in use
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_DISK = (
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PERM,
)
_TABLES = """
    CREATE TABLE settings (value TEXT NOT NULL, checksum TEXT NOT NULL);
    CREATE TABLE folds (fold INTEGER PRIMARY KEY, result TEXT NOT NULL, checksum TEXT NOT NULL);
"""


class Store:
    """The results of one run; a context manager that holds the folder for itself.

    Parameters
    ----------
    folder : str or path
        Made if it is not there.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.path = Path(folder) / "results.sqlite"

    def __enter__(self) -> Self:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OSError(
                f"The store {self.path.parent} cannot be made: {error.strerror}. Give a folder "
                "that can be written to."
            ) from error
        with self._in_words(), contextlib.ExitStack() as undo:
            self._db = sqlite3.connect(self.path, timeout=PATIENCE, isolation_level=None)
            undo.callback(self._db.close)
            self._db.execute("PRAGMA locking_mode = EXCLUSIVE")  # until the connection closes
            self._db.execute("PRAGMA synchronous = FULL")
            self._prepare()
            undo.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    def _prepare(self) -> None:
        """Lock the file and make the tables, or check those that are there."""
        self._db.execute("BEGIN IMMEDIATE")
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        tables = self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if not version and not tables:
            for statement in _TABLES.split(";"):
                self._db.execute(statement)
            version = FORMAT
        # Written in any case: a read-only file or a full disk should show before the first fold.
        self._db.execute(f"PRAGMA user_version = {version}")
        self._db.execute("COMMIT")
        if version != FORMAT:
            raise ValueError(
                f"The store {self.path} has format {version}, this mvenet writes {FORMAT}: use "
                "the version that made it, or another folder."
            )
        if self._db.execute("PRAGMA quick_check").fetchall() != [("ok",)]:
            raise sqlite3.DatabaseError("it fails its own consistency check")

    def settings(self) -> dict[str, Any] | None:
        """What the results were made with; None in a new store."""
        with self._in_words():
            row = self._db.execute("SELECT value, checksum FROM settings").fetchone()
            return None if row is None else dict(_read(*row))

    def begin(self, settings: Mapping[str, Any]) -> None:
        """Note the settings, or refuse if the store has others."""
        there = self.settings()
        here = json.loads(json.dumps(settings))
        if there is None:
            with self._in_words():
                self._db.execute("INSERT INTO settings VALUES (?, ?)", _written(here))
        elif there != here:
            raise ValueError(
                f"The store {self.path.parent} holds results of another run: "
                f"{'; '.join(differences(there, here))}. Use another folder, or the settings of "
                "this one."
            )

    def results(self) -> dict[int, Any]:
        """Results of the folds that are done."""
        with self._in_words():
            rows = self._db.execute("SELECT fold, result, checksum FROM folds ORDER BY fold")
            return {fold: _read(*row, fold) for fold, *row in rows}

    def add(self, fold: int, result: Any) -> None:
        """Keep the result of a fold, whole or not at all; it must be made of JSON's types."""
        with self._in_words():
            row = (fold, *_written(result, fold))
            self._db.execute("INSERT INTO folds VALUES (?, ?, ?)", row)

    @contextlib.contextmanager
    def _in_words(self) -> Iterator[None]:
        """Turn SQLite's errors into sentences."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            code = getattr(error, "sqlite_errorcode", None)
            if code is not None and code & 0xFF in _BUSY:
                message = "is in use by another process: wait for it to end, or use another folder"
                raise BlockingIOError(f"The store {self.path.parent} {message}.") from error
            if code is not None and code & 0xFF in _DISK:
                raise OSError(
                    f"The store {self.path} cannot be written: {error}. The folds in it are safe: "
                    "free space or allow writing, and start again."
                ) from error
            raise ValueError(
                f"The store {self.path} is damaged: {error}. Move it away and start again, or put "
                "a copy in its place."
            ) from error


def _written(value: Any, *key: int) -> tuple[str, str]:
    """JSON and its checksum: SQLite itself does not notice a digit that changed on disk."""
    text = json.dumps(value)
    return text, hashlib.sha256(repr((key, text)).encode()).hexdigest()


def _read(text: str, checksum: str, *key: int) -> Any:
    if hashlib.sha256(repr((key, text)).encode()).hexdigest() != checksum:
        raise sqlite3.DatabaseError("a checksum is wrong")
    return json.loads(text)


def differences(there: Any, here: Any, name: str = "", most: int = 3) -> list[str]:
    """Say where two nested mappings differ, in at most so many phrases."""
    found: list[str] = []
    if isinstance(there, dict) and isinstance(here, dict):
        for key in dict.fromkeys([*there, *here]):
            inner = f"{name}, {key}" if name else str(key)
            if key not in here:
                found.append(f"{inner} is only in the store")
            elif key not in there:
                found.append(f"{inner} is not in the store")
            else:
                found += differences(there[key], here[key], inner, most)
    elif there != here:
        found.append(f"{name} is {there} there and {here} here")
    return found if len(found) <= most else [*found[:most], "and more"]
