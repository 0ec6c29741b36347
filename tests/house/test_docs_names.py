"""What the pages name exists: parameters, fitted attributes, functions, options, files.

Their code blocks are run by test_docs.py; here is what stands within the text, between backquotes.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import re
from pathlib import Path

import pytest

import mvenet

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "mvenet"
OTHERS = ("league.md",)  # tells the settings of other libraries
DOCS = sorted(path for path in (ROOT / "docs").rglob("*.md") if path.name not in OTHERS)
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS]
MODULES = [
    name for name in mvenet._MODULES if name != "torch" or importlib.util.find_spec("skorch")
]


HOMES = (mvenet, *(importlib.import_module(f"mvenet.{name}") for name in MODULES))
THINGS = {name: getattr(home, name) for home in HOMES for name in home.__all__}
METHODS = [m for c in THINGS.values() if inspect.isclass(c) for _, m in inspect.getmembers(c)]


def parameters(thing):
    """Names of what a thing takes, or None if it takes anything."""
    try:
        taken = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return None
    return None if any(p.kind is p.VAR_KEYWORD for p in taken) else {p.name for p in taken}


KNOWN = {name for thing in (*THINGS.values(), *METHODS) for name in parameters(thing) or ()}
# As docstrings list them, torch's too: "oof_mean_, oof_std_ : ndarray"; and properties.
LISTED = re.compile(r"^ +((?:\w+_, )*\w+_) : |def ([a-z]\w*_)\(self\)", re.MULTILINE)
ATTRIBUTES = {
    name
    for path in SOURCE.rglob("*.py")
    for pair in LISTED.findall(path.read_text(encoding="utf-8"))
    for name in "".join(pair).split(", ")
}


def spans(page):
    """What stands between backquotes, outside of code blocks, on one line."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", text)]


def calls(span):
    """Calls of what is ours: the thing and the names of its arguments. "…" may stand for more."""
    whole = re.sub(r",? ?(…|\.\.\.)", "", span)
    try:
        tree = ast.parse(whole)
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
            if name in THINGS:
                yield name, [word.arg for word in node.keywords if word.arg is not None]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_parameters(page):
    unknown = []
    for span in spans(page):
        for name, given in calls(span):
            allowed = parameters(THINGS[name])
            unknown += [f"{name}({word}=)" for word in given if allowed and word not in allowed]
        alone = re.match(r"([a-z]\w*)=[^=]", span)
        unknown += [span] if alone and alone[1] not in KNOWN else []
    assert not unknown


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_fitted_attributes(page):
    named = re.compile(r"(?:\w+\.)?([a-z]\w*_)(?:[.\[].*)?")
    assert not {match[1] for match in map(named.fullmatch, spans(page)) if match} - ATTRIBUTES


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_names_of_public_modules(page):
    ours = re.compile(rf"(?:mvenet\.)?({'|'.join(MODULES)})\.([A-Za-z]\w*)")
    for module, name in (m.groups() for m in map(ours.fullmatch, spans(page)) if m):
        assert hasattr(importlib.import_module(f"mvenet.{module}"), name), f"{module}.{name}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_options_of_the_command(page):
    pytest.importorskip("click")
    from mvenet.cli._commands import app

    shown = re.findall(r"```console\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    for line in (*spans(page), *"\n".join(shown).splitlines()):
        first, *words = line.partition("#")[0].split() or [""]
        if first == "mvenet" and words and words[0] != "COMMAND":
            parameters = app.commands[words[0]].params
            known = {o for p in parameters for o in (*p.opts, *p.secondary_opts)} | {"--help"}
            assert not {word for word in words if word.startswith("-")} - known, line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_of_the_repository(page):
    """Paths within the repository, or within src/mvenet; of a module also the name in it."""
    for path in filter(re.compile(r"[\w/]+/[\w.]*\w").fullmatch, spans(page)):
        if not any((home / path).exists() for home in (ROOT, SOURCE)):
            room, _, name = path.rpartition(".")
            assert (SOURCE / f"{room}.py").exists(), path
            module = importlib.import_module("mvenet." + room.replace("/", "."))
            assert hasattr(module, name), path


# --- the pictures of the architecture -------------------------------------------------------------


def test_what_the_pictures_name_exists():
    page = (ROOT / "docs" / "develop" / "architecture.md").read_text(encoding="utf-8")
    text = "\n".join(re.findall(r"```text\n(.*?)```", page, re.DOTALL))
    named = re.findall(r"(_[a-z]+(?:/[a-z_]+)+)\.(\w+)", text)
    assert len(named) > 10
    for room, name in named:
        module = importlib.import_module("mvenet." + room.replace("/", "."))
        assert hasattr(module, name), f"{room}.{name}"
    for path in re.findall(r"engine/\w+\.[ch]pp", text):
        assert (ROOT / path).exists()
