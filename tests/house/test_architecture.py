"""The shape of the house (docs/develop/architecture.md): who imports whom, what an import costs."""

from __future__ import annotations

import ast
import doctest
import importlib
import importlib.util
import inspect
import pkgutil
import re
from contextlib import nullcontext
from functools import cache
from pathlib import Path

import pytest
from processes import python
from shorter import short_trainings

import mvenet

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "mvenet"
# Lowest first; a room may import those before it.
ORDER = (
    ("_utils",),
    ("distributions",),
    ("predictive",),
    ("_models",),
    ("recipes",),
    ("_training",),
    ("_columns",),
    ("_automatic",),
    ("_estimators",),
    ("metrics",),
    ("comparison", "datasets", "explain", "table", "torch"),
    ("onnx", "persistence", "plots", "workflow"),
    ("report",),
    ("cli",),
    ("", "__main__"),  # mvenet itself, which imports its names when they are asked for
)
EDGES = {"_columns", "table", "torch", "datasets"}  # beside others, but with libraries of their own
LEVELS = {name: level for level, names in enumerate(ORDER) for name in names}
OPTIONAL = {"matplotlib", "torch", "click", "jinja2", "pandas", "rich", "polars", "skops", "onnx",
            "onnxruntime", "dask", "distributed", "pyarrow", "skorch", "safetensors",
            "lightning"}  # fmt: skip
# rich draws the bar; pandas and matplotlib show a comparison; Dask is asked for by its address
ON_REQUEST = {"progress.py", "_result.py", "distributed.py"}
# A model can save itself, and write its report: imports within methods.
LOOKS_UP = {("predictor.py", "persistence"), ("predictor.py", "report")}
FILES = sorted(SOURCE.rglob("*.py"))


def module_of(path):
    """The name within mvenet that has a level: the first part of the path, "" for mvenet itself."""
    first = path.relative_to(SOURCE).parts[0]
    return "" if first == "__init__.py" else first.removesuffix(".py")


@cache
def statements(path):
    """All imports of a file, at the top or within a function."""
    every = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return [node for node in every if isinstance(node, ast.Import | ast.ImportFrom)]


def imports(path):
    """Full names of all that a file imports."""
    package = ["mvenet", *path.relative_to(SOURCE).parts[:-1]]
    for node in statements(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        else:
            base = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                submodule = base == "mvenet" and alias.name != "__version__"
                yield f"{base}.{alias.name}" if submodule else base


def own_imports(path):
    """The parts of mvenet that a file imports: "" is mvenet itself."""
    for name in imports(path):
        top, _, rest = name.partition(".")
        if top == "mvenet":
            yield rest.partition(".")[0]


def test_every_module_has_a_level():
    assert {module_of(path) for path in FILES} <= set(LEVELS)


def test_imports_point_downwards():
    wrong = [
        f"{path} (level {LEVELS[module_of(path)]}) imports {name} ({LEVELS[name]})"
        for path in FILES
        for name in set(own_imports(path)) - {"_engine", module_of(path), ""}
        if (path.name, name) not in LOOKS_UP and LEVELS[name] >= LEVELS[module_of(path)]
    ]
    assert wrong == []


def test_who_knows_what():
    for path in FILES:
        tops = {name.partition(".")[0] for name in imports(path)}
        level = LEVELS[module_of(path)]
        if level <= LEVELS["_training"] and path.name != "sklearn.py":
            assert "sklearn" not in tops, path
        if module_of(path) == "_models":
            assert "scipy.stats" not in set(imports(path)), path
        if level <= LEVELS["comparison"] and module_of(path) not in EDGES:
            assert not tops & OPTIONAL or path.name in ON_REQUEST, path


def test_no_import_goes_in_a_circle():
    graph = {}
    for path in FILES:
        others = set(own_imports(path)) - {module_of(path)}
        others -= {name for file, name in LOOKS_UP if path.name == file}
        graph.setdefault(module_of(path), set()).update(others if module_of(path) else ())
    done = set()

    def visit(name, way):
        assert name not in way, " -> ".join([*way, name])
        if name not in done:
            for other in graph.get(name, ()):
                visit(other, [*way, name])
            done.add(name)

    for name in graph:
        visit(name, [])


def test_the_map_for_contributors_is_that_of_the_house():
    """Level by level, and in the order of the levels."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = page.partition("| rooms | what lives there |")[2].partition("\n\n")[0]
    told = [tuple(re.findall(r"`(\w+)/?`", row.split("|")[1])) for row in rows.splitlines()[2:]]
    assert [tuple(sorted(names)) for names in told] == [tuple(sorted(n)) for n in ORDER[:-1]]
    for room, module, name in re.findall(r"`(\w+)/(\w+)\.([A-Z]\w+)`", page):
        found = importlib.import_module(f"mvenet.{room}.{module}")
        assert hasattr(found, name), f"{room}/{module}.{name}"


def test_the_picture_of_the_house_is_the_house():
    """From the roof to the cellar, which is the engine."""
    page = (ROOT / "docs" / "develop" / "architecture.md").read_text(encoding="utf-8")
    levels = re.findall(r"^[┌├└]─ (.*?) ─+ ", page, re.MULTILINE)[:-1]
    shown = [tuple(sorted(names.split(", "))) for names in levels]
    assert shown == [tuple(sorted(names)) for names in reversed(ORDER[:-1])]


def test_pages_agree_on_the_oldest_compilers():
    pages = [
        ROOT / "CMakeLists.txt",
        ROOT / "CONTRIBUTING.md",
        ROOT / "docs" / "guides" / "troubleshooting.md",
    ]
    found = [
        re.findall(r"\b(GCC|Clang) (\d+)", page.read_text(encoding="utf-8"))[:2] for page in pages
    ]
    assert found == 3 * [[("GCC", "12"), ("Clang", "15")]]


# --- the public face -----------------------------------------------------------------------------


STRICT = ("-W", "error")
OUR_NEEDS = """
import joblib, numpy, scipy.special, sklearn.base, sklearn.utils.validation, sklearn.exceptions
import sklearn.utils._param_validation, sklearn.model_selection, sklearn.metrics
"""


def test_import_loads_nothing_that_is_optional():
    # scikit-learn itself looks for some of these; what counts is what we add.
    code = "before = set(sys.modules)\nfrom mvenet import *\nimport mvenet.onnx, mvenet.plots\n"
    code += "print(*set(sys.modules) - before)"
    loaded = set(python(f"import sys\n{OUR_NEEDS}\n{code}", flags=STRICT).split())
    assert loaded >= {
        "mvenet._estimators.regressor",
        "mvenet.persistence",
        "mvenet.plots",
        "mvenet.onnx",
    }
    assert sorted({name.partition(".")[0] for name in loaded} & OPTIONAL) == []


def test_import_brings_no_package_beside_those_we_need():
    told = "print(*{name.partition('.')[0] for name in sys.modules} - before)"
    before = "import sys\nbefore = set(sys.stdlib_module_names) | set(sys.modules)\n"
    assert python(f"{before}import mvenet\n{told}", flags=STRICT).split() == ["mvenet"]
    code = f"import sys\n{OUR_NEEDS}\n{before}from mvenet import *\n{told}"
    assert python(code, flags=STRICT).split() == ["mvenet"]


def test_few_public_names():
    assert len(mvenet.__all__) <= 14
    assert sorted(mvenet.__all__) == sorted(set(mvenet.__all__))
    for name in mvenet.__all__:
        assert hasattr(mvenet, name)


def modules():
    found = [name for _, name, _ in pkgutil.walk_packages([str(SOURCE)], "mvenet.")]
    return ["mvenet", *(n for n in found if not n.endswith(("_engine", "__main__")))]


def has_examples(name):
    """Whether the text of a module shows any."""
    place = SOURCE.parent / Path(*name.split("."))
    path = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    return ">>> " in path.read_text(encoding="utf-8")


def load(name):
    """Import a module, or skip the test if what it needs is optional and absent."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        missing = (error.name or "").partition(".")[0]
        if missing in OPTIONAL and importlib.util.find_spec(missing) is None:
            pytest.skip(f"{name} needs {missing}")
        raise


@pytest.mark.parametrize("name", modules())
def test_every_public_object_has_a_docstring(name):
    module = load(name)
    assert module.__doc__
    missing = []
    for public in getattr(module, "__all__", []):
        thing = getattr(module, public)
        if not (inspect.isclass(thing) or inspect.isfunction(thing)):
            continue
        if not inspect.getdoc(thing):
            missing.append(public)
        if inspect.isclass(thing):
            missing += [
                f"{public}.{attribute}"
                for attribute, value in inspect.getmembers(thing)
                if not attribute.startswith("_")
                and (inspect.isfunction(value) or isinstance(value, property))
                and (getattr(value, "__module__", None) or "mvenet").startswith("mvenet")
                and not inspect.getdoc(value)
            ]
    assert missing == []


@pytest.mark.parametrize("name", modules())
def test_all_is_true(name):
    module = load(name)
    private = any(part.startswith("_") for part in name.split("."))
    assert hasattr(module, "__all__") != private or name == "mvenet._utils.sklearn", (
        "a public module says what is public, and nothing in another one is"
    )
    for public in getattr(module, "__all__", ()):
        assert hasattr(module, public)


def test_public_modules_need_no_import_of_their_own():
    public = [n for n in modules() if "._" not in n and n != "mvenet"]
    if importlib.util.find_spec("skorch") is None:
        public.remove("mvenet.torch")
    code = f"import mvenet\nfor name in {public}: print(eval(name).__name__)"
    assert python(code, flags=STRICT).split() == public
    assert {name.split(".")[1] for name in public} <= set(dir(mvenet))


def test_what_scikit_learn_keeps_to_itself_is_in_one_module():
    for path in (path for path in FILES if path.name != "sklearn.py"):
        for node in statements(path):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sklearn"):
                names = [*node.module.split("."), *(alias.name for alias in node.names)]
                assert not [name for name in names if name.startswith("_")], path


WHOLE = ("mvenet._estimators.regressor_cv",)  # trainings: shorter ones choose other penalties


@pytest.mark.parametrize("name", [n for n in modules() if has_examples(n)])
def test_examples_in_docstrings(name, tmp_path, monkeypatch):
    module = load(name)
    monkeypatch.chdir(tmp_path)
    with nullcontext() if name in WHOLE else short_trainings():
        result = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert result.failed == 0


def test_the_main_names_have_an_example():
    for name in mvenet.__all__:
        thing = getattr(mvenet, name)
        if inspect.isclass(thing):
            assert ">>> " in inspect.getdoc(thing), name
