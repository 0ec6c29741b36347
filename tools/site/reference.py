"""Pages of the reference: which public names stand where, and which pages of the text name them.

The texts themselves come from the docstrings, by mkdocstrings. ``tests/house/test_docs.py``
compares ``PAGES`` with ``__all__`` of every public module.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"

# Page of the reference: its title, and modules with the names that stand there (None: all).
PAGES: dict[str, tuple[str, dict[str, list[str] | None]]] = {
    "estimators": (
        "Estimators",
        {
            "mvenet": [
                "AutoRegressor",
                "MVERegressor",
                "MVERegressorCV",
                "CalibratedRegressor",
                "DependenceWarning",
                "UnseenWarning",
            ],
        },
    ),
    "distributions": (
        "Distributions",
        {
            "mvenet": ["Normal", "NormalMixture", "LogNormalMixture", "WithAtoms"],
            "mvenet.distributions": ["Bounded", "Distribution", "Joint"],
            "mvenet.predictive": None,
        },
    ),
    "metrics": ("Metrics", {"mvenet.metrics": None}),
    "explain": ("Reasons", {"mvenet.explain": None}),
    "plots": ("Plots", {"mvenet.plots": None}),
    "files": ("Files and ONNX", {"mvenet.persistence": None, "mvenet.onnx": None}),
    "tables": (
        "Tables, reports, data sets",
        {
            "mvenet.table": None,
            "mvenet.workflow": None,
            "mvenet.report": None,
            "mvenet.datasets": None,
        },
    ),
    "training": (
        "Recipes and comparisons",
        {
            "mvenet.recipes": None,
            "mvenet.comparison": [
                "compare_strategies",
                "strategy_arms",
                "plan_comparison",
                "Comparison",
                "Plan",
            ],
        },
    ),
    "torch": ("Networks of your own (PyTorch)", {"mvenet.torch": None}),
}


@cache
def public(module: str) -> list[str]:
    """``__all__`` as it is written: the pages of PyTorch are made where there is none."""
    path = SOURCE.joinpath(*module.split("."))
    text = (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text("utf-8")
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    raise ValueError(f"{module} has no __all__ that can be read without running it")


def entries() -> dict[str, str]:
    """Every public name with its module, and the page on which it stands."""
    found = {}
    for page, (_, modules) in PAGES.items():
        for module, names in modules.items():
            found |= {f"{module}.{name}": page for name in names or public(module)}
    return found


def text_of_page(page: str, named_by: dict[str, list[tuple[str, str]]]) -> str:
    """Markdown with a directive for each name, after the pages that speak of it."""
    title, modules = PAGES[page]
    lines = [f"# {title}", ""]
    for module, names in modules.items():
        lines += [
            f"## {module}",
            "",
            f"::: {module}",
            *_options(members="[]", show_root_toc_entry="false", show_root_heading="false"),
            "",
        ]
        for name in names or public(module):
            path = f"{module}.{name}"
            lines += [f"::: {path}", *_options(), ""]
            mentions = named_by.get(path, [])
            if mentions:
                links = ", ".join(f"[{title}]({link})" for title, link in mentions)
                lines += [f"*`{name}` in the text:* {links}", "", "---", ""]
    return "\n".join(lines)


def _options(**options: str) -> list[str]:
    if not options:
        return []
    return ["    options:", *(f"      {key}: {value}" for key, value in options.items())]
