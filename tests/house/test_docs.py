"""The pages' Python runs, page by page from top to bottom, and their pictures and links exist."""

from __future__ import annotations

import importlib
import importlib.util
import re
import runpy
import tomllib
from contextlib import nullcontext
from pathlib import Path

import pytest
from processes import python, script
from shorter import short_trainings

import mvenet
from mvenet.cli._options import FOR_REPORTS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BESIDE = [ROOT / f"{name}.md" for name in ("CHANGELOG", "CONTRIBUTING", "SECURITY")]
NAMES = [page.name for page in PAGES]
REFERENCE = runpy.run_path(str(ROOT / "tools" / "site" / "reference.py"))
OF_THEIR_OWN = ("cluster.md",)  # a process: as a cluster needs
WHOLE = ("penalties.md",)  # trainings: shorter ones choose other penalties


def blocks(page):
    return re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.S)


def printed(page, folder):
    """What a page's blocks print, run as one script in the current folder."""
    path = folder / "page.py"
    path.write_text("\n".join(blocks(page)))
    if page.name in OF_THEIR_OWN:
        return python(path.read_text(), flags=("-W", "error"))
    with nullcontext() if page.name in WHOLE else short_trainings():
        done = script(path)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.pages
@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p)], ids=lambda page: page.name)
def test_code_runs(page, tmp_path, monkeypatch):
    if "mvenet.torch" in "".join(blocks(page)) and importlib.util.find_spec("skorch") is None:
        pytest.skip("needs PyTorch and skorch: make test-torch")
    monkeypatch.chdir(tmp_path)
    out = printed(page, tmp_path)
    assert out.strip()
    if page.name == "README.md":  # also of short trainings: rows left out see to that
        assert float(re.search(r"coverage\s+([\d.]+)", out)[1]) > 0.75


@pytest.mark.parametrize("page", ["README.md", "docs/start/install.md"])
def test_what_the_first_command_installs_is_enough_for_the_second(page):
    """``mvenet fit --report`` checks for these before it reads anything."""
    extras = re.search(r'pip install "\.\[([\w,]+)\]"', (ROOT / page).read_text())[1].split(",")
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    installed = {re.match(r"[\w-]+", need)[0] for extra in extras for need in known[extra]}
    assert installed >= {"click", "rich", "polars", "skops", *FOR_REPORTS}


def test_the_readme_has_an_example():
    assert blocks(ROOT / "README.md")


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_links_lead_somewhere(page):
    """To a file, or to a page of the reference, which is made when the site is built."""
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text())
    made = [ROOT / "docs" / "reference" / f"{name}.md" for name in (*REFERENCE["PAGES"], "command")]
    there = [(page.parent / t).resolve() for t in targets if not t.startswith("http")]
    missing = [path for path in there if not path.exists() and path not in made]
    assert not missing


@pytest.mark.parametrize("page", [*PAGES, *BESIDE], ids=lambda page: page.name)
def test_lines_are_wrapped(page):
    """All but tables, code and what a script writes between two comments."""
    text = re.sub(r"<!-- (league|settings) -->.*?<!-- end", "", page.read_text(), flags=re.S)
    text = re.sub(r"```.*?```", "", text, flags=re.S)
    long = [
        line for line in text.splitlines() if len(line) > 120 and not line.lstrip().startswith("|")
    ]
    assert not long


def anchors(page):
    """Of a page's headings, as the site makes them."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
    plain = [re.sub(r"[^\w\- ]", "", line.lower()) for line in re.findall(r"^#+ (.+)$", text, re.M)]
    return {line.replace(" ", "-") for line in plain}


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_links_to_headings_lead_to_one(page):
    links = re.findall(r"\]\((?!http)([^)#]*\.md)#([^)]+)\)", page.read_text())
    known = [((page.parent / name).resolve(), anchor) for name, anchor in links]
    assert not [(p.name, a) for p, a in known if p.exists() and a not in anchors(p)]


QUESTIONS = (
    *("interval", "class", "missing", "how long", "save", "patients", "several targets"),
    *("columns matter", "serve", "too sure", "LightGBM", "wrong"),
)


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_newcomers_question_is_answered_one_click_from_the_start_page(question):
    page = ROOT / "docs" / "index.md"
    rows = [
        row for row in page.read_text().partition("## Questions")[2].splitlines() if "](" in row
    ]
    asked = [row for row in rows if question.lower() in row.split("|")[1].lower()]
    assert len(asked) >= 1 and all("](" in row.split("|")[2] for row in asked)


def test_what_is_public_is_in_the_reference_and_nothing_else_is():
    """A class may be reached from two modules; it stands in the reference once."""
    homes = ["mvenet", *(f"mvenet.{name}" for name in mvenet._MODULES if name != "torch")]
    public = {
        id(getattr(home, name))
        for home in map(importlib.import_module, homes)
        for name in home.__all__
        if name != "recipes"
    }
    listed = [path.rpartition(".") for path in REFERENCE["entries"]()]
    found = [
        id(getattr(importlib.import_module(module), name))
        for module, _, name in listed
        if module != "mvenet.torch"
    ]
    assert set(found) == public and len(found) == len(set(found))


def test_pages_of_the_site_are_those_of_the_folder():
    """What is in no menu is found by search only, if at all."""
    menu = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    pages = {page.relative_to(ROOT / "docs").as_posix() for page in PAGES[1:]}
    assert not {page for page in pages if page not in menu}


def test_the_check_of_a_site_complains(tmp_path):
    check = runpy.run_path(str(ROOT / "tools" / "site" / "check.py"))["complaints"]
    (tmp_path / "a.html").write_text('<h1 id="top"></h1><a href="b.html#there">b</a>')
    (tmp_path / "b.html").write_text('<p id="there"></p><a href="a.html#top">a</a>')
    assert check(tmp_path) == []
    (tmp_path / "b.html").write_text(
        '<a href="a.html#gone">a</a><a href="c.html">c</a><img src="d.png">'
        '<script src="https://elsewhere.example/x.js"></script>'
        "<p>First:\n2. second</p><p>one\n<pre>\n- code</pre></p>"
    )
    words = (
        "without alternative",
        "no such anchor",
        "c.html leads",
        "d.png leads",
        "elsewhere",
        "2. sec",
    )
    told = " ".join(check(tmp_path))
    assert all(word in told for word in words) and len(check(tmp_path)) == 7  # with #there of a
