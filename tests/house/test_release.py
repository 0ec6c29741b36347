"""Version, changelog, citation and policy agree; what is deprecated warns, and ends in time."""

from __future__ import annotations

import re
import runpy
from importlib.metadata import version
from pathlib import Path

import pytest

import mvenet
from mvenet._utils.deprecation import deprecated

ROOT = Path(__file__).parents[2]
RELEASE = runpy.run_path(str(ROOT / "tools" / "release.py"))


def numbers(text):
    return tuple(int(part) for part in text.split("."))


def test_the_version_stands_in_one_place():
    assert RELEASE["version"]() == mvenet.__version__ == version("mvenet")


def test_metadata():
    assert RELEASE["metadata"]() == []


def test_a_table_that_is_shipped_has_its_licence_beside_it():
    shipped = ["mvenet/cli/cars.csv", "mvenet/cli/cars.md", "mvenet/__init__.py"]
    assert all((ROOT / "src" / name).exists() for name in shipped)
    assert RELEASE["unlicensed"](shipped) == []
    assert RELEASE["unlicensed"](["mvenet/a.csv", "mvenet/b.md"]) == ["mvenet/a.csv"]


def test_deprecated_names_the_line_of_the_caller():
    def public():
        deprecated("old=1", "new=1", removed_in="9.0")

    with pytest.warns(FutureWarning, match=r"old=1 is deprecated.* mvenet 9\.0: use new=1") as told:
        public()
    assert told[0].filename == __file__


def test_nothing_deprecated_is_past_its_time():
    calls = re.compile(r'deprecated\([^)]*removed_in="([\d.]+)"', re.DOTALL)
    for path in (ROOT / "src").rglob("*.py"):
        for removed_in in calls.findall(path.read_text(encoding="utf-8")):
            assert numbers(removed_in) > numbers(mvenet.__version__)[:2], path


def test_policy_names_the_oldest_dependencies():
    policy = (ROOT / "docs" / "develop" / "policy.md").read_text(encoding="utf-8")
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for name, word in {"numpy": "NumPy", "scipy": "SciPy", "scikit-learn": "scikit-learn"}.items():
        oldest = re.search(rf'"{name}>=([\d.]+)"', project)[1]
        assert f"| {word} | {oldest} |" in policy
