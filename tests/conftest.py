"""What all tests need."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from blank import blank_pictures
from fitted import table, tiny
from shorter import short_trainings

from mvenet import MVERegressor

os.environ.setdefault("MPLBACKEND", "Agg")  # no windows, also where there is a screen

# Started in the background of a script, a process ignores Ctrl-C, and so does all that it starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a model file may be written."""
    return tmp_path / "model.mve"


@pytest.fixture(scope="session")
def model() -> MVERegressor:
    """A model for files: two networks of three columns, nobody's to change."""
    return tiny(n_members=2).fit(*table(n=60))


@pytest.fixture(scope="module")
def short() -> Iterator[None]:
    """Few gradient steps in all of a file, by ``pytestmark = pytest.mark.usefixtures("short")``."""
    with short_trainings():
        yield


@pytest.fixture(scope="module")
def blank() -> Iterator[None]:
    """Reports without pictures in all of a file, in the same way."""
    with blank_pictures():
        yield
