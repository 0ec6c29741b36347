"""Files that are there whole or not at all, and that nobody else may read meanwhile."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from mvenet._utils.atomic import replacing


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def umask():
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.parametrize("private", [0o600, 0o640, 0o400])
def test_what_replaces_a_private_file_is_private_from_the_first_byte(tmp_path, umask, private):
    place = tmp_path / "private.csv"
    place.write_text("old")
    place.chmod(private)
    with replacing(place) as fresh:
        assert mode(fresh) == 0o600
        fresh.write_text("new")
        assert mode(fresh) == 0o600
    assert mode(place) == private and place.read_text() == "new"
    assert os.listdir(tmp_path) == ["private.csv"]


def test_a_new_file_has_the_mode_of_any_new_file(tmp_path, umask):
    with replacing(tmp_path / "new.csv") as fresh:
        fresh.write_text("new")
    assert mode(tmp_path / "new.csv") == 0o644


def test_nothing_is_left_of_a_file_that_was_not_finished(tmp_path):
    with pytest.raises(KeyError), replacing(tmp_path / "new.csv"):
        raise KeyError
    assert os.listdir(tmp_path) == []


def test_a_file_that_vanishes_meanwhile_is_written_all_the_same(tmp_path):
    place = tmp_path / "old.csv"
    place.write_text("old")
    with replacing(place) as fresh:
        place.unlink()
        fresh.write_text("new")
    assert place.read_text() == "new"
