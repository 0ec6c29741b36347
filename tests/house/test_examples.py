"""Every example runs, says something, and stays short."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import pytest
from processes import script

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))
NOTEBOOK = EXAMPLES[0].with_name("8_cars.ipynb")
NEEDS = {"7_with_mapie": ["mapie"], "5_from_file_to_onnx": ["skops", "onnx", "onnxruntime"]}
SHOWN = {
    "1_first_model": "90 % intervals that hold y",
    "2_choose_penalties": "search.png",
    "3_two_kinds_of_uncertainty": "uncertainty.png",
    "4_calibrated_intervals": "conformal, CV+",
    "5_from_file_to_onnx": "diabetes.onnx",
    "6_compare_strategies": "comparison.png",
    "7_with_mapie": "MAPIE's 90 % intervals cover",
}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_it_runs_and_ends_in_something_visible(path, tmp_path, monkeypatch):
    for package in NEEDS.get(path.stem, ()):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"needs {package}")
    monkeypatch.chdir(tmp_path)
    done = script(path)
    assert done.returncode == 0, done.stderr
    shown = SHOWN[path.stem]
    if shown.endswith((".png", ".onnx")):
        assert (tmp_path / shown).stat().st_size > 5000
    else:
        assert shown in done.stdout
    check = CHECKS.get(path.stem)
    if check is not None:
        check(done.stdout)


def test_the_notebook_runs(tmp_path, monkeypatch):
    for package in ("polars", "jinja2", "matplotlib"):
        pytest.importorskip(package)
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    (tmp_path / "cells.py").write_text("\n".join(code), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    done = script(tmp_path / "cells.py")
    assert done.returncode == 0, done.stderr
    assert "origin         category   3 levels" in done.stdout and "low_90" in done.stdout
    assert (tmp_path / "cars.html").stat().st_size < 3e6
    assert not any(cell.get("outputs") for cell in cells)  # no figures that may be out of date


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_it_is_short(path):
    assert len(path.read_text().splitlines()) < 40


def numbers(line):
    return [float(n) for n in re.findall(r"-?\d+\.\d+", line)]


def kinds(out):
    """Epistemic uncertainty is largest in the gap, aleatoric where the noise is."""
    rows = {line.split()[-1]: numbers(line)[1:] for line in out.splitlines() if line.strip()}
    quiet, gap, noisy = (rows[name] for name in ("quiet", "gap", "noisy"))
    assert gap[1] > 1.5 * max(quiet[1], noisy[1])
    assert noisy[0] > 3 * quiet[0]


def covers(out):
    """The plain network misses 90 %, the conformal intervals do not."""
    rows = {line[:18].strip(): numbers(line) for line in out.splitlines() if "%" in line}
    assert rows["plain network"][0] < 85
    assert rows["conformal, CV+"][0] > 88


CHECKS = {"3_two_kinds_of_uncertainty": kinds, "4_calibrated_intervals": covers}
