"""Files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path


def place_for(path: str | os.PathLike[str]) -> Path:
    """Where to write; an error now rather than after the work.

    Raises
    ------
    OSError
        If it is a folder, or in none, or a device (``/dev/null`` must not become a file).
    """
    place = Path(os.path.realpath(os.path.expanduser(path)))  # a link stays a link
    if os.path.isdir(place):
        raise IsADirectoryError(_sentence(place, "it is a folder", "name a file in it"))
    if not os.path.isdir(place.parent):
        remedy = "make it, or choose another"
        raise FileNotFoundError(_sentence(place, "there is no such folder", remedy))
    if os.path.exists(place) and not os.path.isfile(place):
        raise OSError(_sentence(place, "it is a device or a pipe"))
    return place


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a place to write to; once the block is done, what is there takes the file's place.

    An error within the block leaves the old file, if there is one, as it was. Nobody who may not
    read the old file may read what is being written.

    Raises
    ------
    OSError
        With a sentence that names the file.
    """
    place = place_for(path)
    # In the same folder: only within a file system is a replacement one step.
    beside = place.with_name(f".{uuid.uuid4().hex}.tmp")
    mode = 0o600 if os.path.exists(place) else 0o666  # less the umask
    with _in_words(place):
        os.close(os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))  # written to below
        try:
            yield beside
            with beside.open("rb+") as file:
                os.fsync(file.fileno())
            if os.path.exists(place):
                shutil.copymode(place, beside)
            os.replace(beside, place)
        except BaseException:
            with contextlib.suppress(OSError):
                beside.unlink()
            raise
    with contextlib.suppress(OSError):  # not all systems can do this; the file itself is safe
        folder = os.open(place.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


@contextlib.contextmanager
def _in_words(place: Path) -> Iterator[None]:
    """Make a sentence of the system's error of writing; its type stays. Other errors pass."""
    try:
        yield
    except OSError as error:
        about = Path(str(error.filename or place))
        if error.errno is None or place.parent not in (about, about.parent):
            raise
        raise type(error)(_sentence(place, str(error.strerror))) from error


def _sentence(
    place: Path, reason: str, remedy: str = "choose another place or free some space"
) -> str:
    return f"{str(place)!r} cannot be written ({reason}): {remedy}."
