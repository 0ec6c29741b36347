"""The pages' Python runs, page by page from top to bottom, and their pictures and links exist."""

from __future__ import annotations

import importlib
import importlib.util
import re
import runpy
from pathlib import Path

import pytest
from processes import python, script

import mvenet

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NAMES = [page.name for page in PAGES]
OF_THEIR_OWN = ("README.md", "cluster.md")  # a process: as a newcomer starts, as a cluster needs


def blocks(page):
    return re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.S)


def printed(page, folder):
    """What a page's blocks print, run as one script in the current folder."""
    path = folder / "page.py"
    path.write_text("\n".join(blocks(page)))
    if page.name in OF_THEIR_OWN:
        return python(path.read_text(), flags=("-W", "error"))
    done = script(path)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p)], ids=lambda page: page.name)
def test_code_runs(page, tmp_path, monkeypatch):
    if "mvenet.torch" in "".join(blocks(page)) and importlib.util.find_spec("skorch") is None:
        pytest.skip("needs PyTorch and skorch: make test-torch")
    monkeypatch.chdir(tmp_path)
    out = printed(page, tmp_path)
    assert out.strip()
    if page.name == "README.md":
        assert float(re.search(r"coverage\s+([\d.]+)", out)[1]) > 0.75
        assert re.search(r"warmup, separate +-?\d", out)


def test_the_readme_has_an_example():
    assert blocks(ROOT / "README.md")


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_links_lead_somewhere(page):
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text())
    missing = [t for t in targets if not t.startswith("http") and not (page.parent / t).exists()]
    assert not missing


def test_the_api_reference_is_that_of_the_docstrings():
    script = runpy.run_path(str(ROOT / "docs" / "make_api.py"))
    assert script["PAGE"].read_text() == script["page"](), "run `python docs/make_api.py`"


def test_what_is_public_is_in_the_reference_and_nothing_else_is():
    script = runpy.run_path(str(ROOT / "docs" / "make_api.py"))
    homes = {f"mvenet.{name}" for name in mvenet._MODULES} - {"mvenet.torch"} | {"mvenet"}
    public, listed = set(), set()
    for home in map(importlib.import_module, homes):
        public |= {id(getattr(home, name)) for name in home.__all__ if name != "recipes"}
    for home, names in script["MODULES"].items():
        module = importlib.import_module(home)
        listed |= {id(getattr(module, name)) for name in names or module.__all__}
    assert public == listed


def test_so_is_that_of_torch():
    pytest.importorskip("skorch", reason="needs PyTorch and skorch: make test-torch")
    script = runpy.run_path(str(ROOT / "docs" / "make_api.py"))
    assert script["TORCH_PAGE"].read_text() == script["page"]({"mvenet.torch": None})
