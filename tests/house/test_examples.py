"""Examples are short, say what their picture shows, and stand in the gallery.

`make docs` runs them all; here run those whose numbers are a promise.
"""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest
from processes import script

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
GALLERY = runpy.run_path(str(ROOT / "tools" / "site" / "gallery.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_it_is_short_and_can_be_read_aloud(path):
    example = GALLERY["Example"].read(path)
    assert len(example.code.splitlines()) < 50
    assert example.title and example.text and len(example.alt) > 40
    assert f'"{path.stem}.png"' in example.code


def test_the_gallery_has_them_all():
    listed = [stem for chapter in GALLERY["CHAPTERS"].values() for stem in chapter]
    assert sorted(listed) == [path.stem for path in EXAMPLES]
    assert len(listed) >= 12


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


@pytest.mark.parametrize(
    ("stem", "check"), [("two_kinds_of_uncertainty", kinds), ("calibrated_intervals", covers)]
)
def test_what_it_prints(stem, check, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    done = script(ROOT / "examples" / f"{stem}.py")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / f"{stem}.png").stat().st_size > 5000
    check(done.stdout)
