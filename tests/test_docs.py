"""The pages' Python runs, page by page from top to bottom, and their pictures and links exist."""

from __future__ import annotations

import importlib.util
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
NAMES = [page.name for page in PAGES]


def blocks(page):
    return re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.S)


def printed(page, folder):
    """What a page's blocks print, run as one script in a folder of their own."""
    (folder / "page.py").write_text("\n".join(blocks(page)))
    command = [sys.executable, "-W", "error", "page.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p)], ids=lambda page: page.name)
def test_code_runs(page, tmp_path):
    if "mvenet.torch" in page.read_text() and importlib.util.find_spec("skorch") is None:
        pytest.skip("needs PyTorch and skorch: make test-torch")
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


def test_so_is_that_of_torch():
    pytest.importorskip("skorch", reason="needs PyTorch and skorch: make test-torch")
    script = runpy.run_path(str(ROOT / "docs" / "make_api.py"))
    assert script["TORCH_PAGE"].read_text() == script["page"]({"mvenet.torch": None})
