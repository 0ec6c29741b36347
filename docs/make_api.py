"""Write docs/api.md from the docstrings: python docs/make_api.py."""

from __future__ import annotations

import importlib.util
import inspect
import textwrap
from pathlib import Path
from typing import Any

PAGE = Path(__file__).with_name("api.md")
TORCH_PAGE = Path(__file__).with_name("api-torch.md")  # made where PyTorch is
MODULES = {
    "mvenet": [
        *("MVERegressor", "AutoRegressor", "MVERegressorCV", "CalibratedRegressor"),
        "DependenceWarning",
        *("Normal", "NormalMixture", "LogNormalMixture", "WithAtoms"),
    ],
    "mvenet.distributions": ["Distribution"],
    "mvenet.recipes": None,
    "mvenet.comparison": [
        "compare_strategies",
        "strategy_arms",
        "plan_comparison",
        "Comparison",
        "Plan",
    ],
    "mvenet.metrics": None,
    "mvenet.predictive": None,
    "mvenet.explain": None,
    "mvenet.plots": None,
    "mvenet.persistence": None,
    "mvenet.onnx": None,
    "mvenet.datasets": None,
    "mvenet.table": None,
    "mvenet.workflow": None,
    "mvenet.report": None,
}


def signature(thing: Any, name: str) -> str:
    """The call as one types it, without annotations."""
    try:
        parameters = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return name
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in parameters]
    shown = [p for p in plain if p.name not in ("self", "cls")]
    return f"{name}{inspect.Signature(shown)}"


def documented(cls: type) -> list[tuple[str, Any]]:
    """Public methods and properties with a docstring of mvenet, in alphabetical order."""
    found = []
    for name, member in inspect.getmembers(cls):
        function = member.fget if isinstance(member, property) else member
        ours = getattr(function, "__module__", "") or ""
        if not name.startswith("_") and ours.startswith("mvenet") and inspect.getdoc(function):
            found.append((name, member))
    return found


def entry(thing: Any, name: str, level: int) -> list[str]:
    """Heading, signature and docstring of an object, then of its methods."""
    text = inspect.getdoc(thing) or ""
    lines = [f"{'#' * level} {name}", ""]
    if callable(thing):
        lines += ["```text", _wrapped(signature(thing, name), "    "), "```", ""]
    lines += ["```text", text, "```", ""]
    if inspect.isclass(thing):
        for method, member in documented(thing):
            function = member.fget if isinstance(member, property) else member
            call = method if isinstance(member, property) else signature(function, method)
            summary = (inspect.getdoc(function) or "").split("\n\n")[0].replace("\n", " ")
            lines.append(_wrapped(f"- `.{call}`: {summary}", "  "))
        lines.append("")
    return lines


def page(modules: dict[str, Any] = MODULES) -> str:
    """The whole reference, or that of some modules."""
    lines = [
        "# API reference",
        "",
        "Made from the docstrings by `python docs/make_api.py`; `help(mvenet.MVERegressor)` says",
        "the same with the methods in full.",
        "",
    ]
    for module_name, names in modules.items():
        module = importlib.import_module(module_name)
        lines += [f"## {module_name}", "", (inspect.getdoc(module) or "").split("\n\n")[0], ""]
        for name in names or module.__all__:
            thing = getattr(module, name)
            if isinstance(thing, type) or callable(thing):
                lines += entry(thing, name, 3)
            else:
                lines += [f"### {name}", "", "```text", *_mapping(thing), "```", ""]
    return "\n".join(lines).rstrip() + "\n"


def _wrapped(line: str, indent: str) -> str:
    return textwrap.fill(line, 118, subsequent_indent=indent, break_on_hyphens=False)


def _mapping(thing: Any) -> list[str]:
    return [f"{key} = {value!r}" for key, value in thing.items()]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    if importlib.util.find_spec("skorch") is not None:
        TORCH_PAGE.write_text(page({"mvenet.torch": None}), encoding="utf-8")
