"""Notebooks run from top to bottom, and what they hold is what they show."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

import pytest

pytest.importorskip("pandas")
pytest.importorskip("polars")

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
RUN = runpy.run_path(str(ROOT / "tools" / "site" / "notebook.py"))["run"]


def words(cells):
    """Lines that cells show, without their digits; another processor may end up with others.

    Nor does their order count: columns that matter little change places with those digits.
    """
    shown = [output for cell in cells for output in cell.get("outputs", [])]
    texts = ["".join(o.get("text") or o["data"]["text/plain"]) for o in shown]
    return [sorted(re.sub(r"[-\d., ]+", " ", text).splitlines()) for text in texts]


@pytest.mark.pages
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_shows_what_it_holds(path):
    book = json.loads(path.read_text("utf-8"))
    again = RUN(book["cells"])
    assert words(again) == words(book["cells"]) and len(words(again)) > 3
    counts = [cell["execution_count"] for cell in book["cells"] if cell["cell_type"] == "code"]
    assert counts == list(range(1, len(counts) + 1))


def test_there_are_some():
    assert NOTEBOOKS
