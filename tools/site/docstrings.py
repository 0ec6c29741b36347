"""What mkdocstrings is to see of our docstrings: roles as links, parameters of dataclasses."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from pathlib import Path
from typing import Any

import griffe

sys.path.insert(0, str(Path(__file__).parent))
from reference import entries

ROLE = re.compile(r":(?:class|func|meth|mod|data|attr):`~?([^`]+)`")
# {"a", "b"}, default="b": griffe takes the first of such a set for the default.
CHOICE = re.compile(r"^( *[\w, ]+ : [^\n{]*)\{([^}\n]*)\}", re.MULTILINE)
SEE_ALSO = re.compile(r"(See Also\n *-+\n)(.*?)(?=\n\n|\Z)", re.DOTALL)


class Readable(griffe.Extension):
    """Docstrings are written for ``help`` and editors; the site wants links instead of roles."""

    def __init__(self) -> None:
        """Know where each public name stands."""
        self.known = {path.rpartition(".")[2]: path for path in reversed(entries())}
        self.known |= {path: path for path in entries()}

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Rewrite one docstring."""
        if obj.docstring is not None:
            text = ROLE.sub(lambda found: self.link(found[1]), obj.docstring.value)
            text = CHOICE.sub(lambda found: found[1] + found[2].replace(", ", " | "), text)
            obj.docstring.value = SEE_ALSO.sub(self.see_also, text)

    def on_class(self, *, cls: griffe.Class, **kwargs: Any) -> None:
        """Give a class whose ``__init__`` is made at run time its parameters."""
        if "__init__" in cls.members:
            return
        if cls.path.startswith("mvenet._estimators"):
            made = getattr(importlib.import_module(cls.module.path), cls.name)
            if "__init__" in vars(made):
                cls.set_member("__init__", _constructor(cls, _at_run_time(made)))
        elif any(str(each.value) == "with_settings" for each in cls.decorators):
            # One of mvenet.torch, which cannot be imported here without PyTorch.
            cls.set_member("__init__", _constructor(cls, _as_written(cls)))

    def link(self, name: str) -> str:
        """A name as a link into the reference, if it stands there."""
        target = self.known.get(name.removeprefix("mvenet.")) or self.known.get(name)
        return f"[`{name}`][{target}]" if target else f"`{name}`"

    def see_also(self, found: re.Match[str]) -> str:
        """Lines ``Name : why`` as a list of links."""
        lines = []
        for line in found[2].splitlines():
            indent = line[: len(line) - len(line.lstrip())]
            name, _, why = line.strip().partition(" : ")
            linked = ", ".join(self.link(each) for each in name.split(", "))
            lines.append(f"{indent}- {linked}: {why}" if why else line)
        return found[1] + "\n".join(lines)


def _constructor(cls: griffe.Class, parameters: list[griffe.Parameter]) -> griffe.Function:
    itself = griffe.Parameter("self", kind=griffe.ParameterKind.positional_or_keyword)
    return griffe.Function(
        "__init__", parameters=griffe.Parameters(itself, *parameters), parent=cls
    )


def _at_run_time(made: type) -> list[griffe.Parameter]:
    return [
        griffe.Parameter(p.name, kind=_KINDS[p.kind], default=_default(p.default))
        for p in inspect.signature(made).parameters.values()
    ]


def _as_written(cls: griffe.Class) -> list[griffe.Parameter]:
    """Fields ``name: type = setting(..., default=...)``."""
    found = []
    for name, member in cls.members.items():
        default = re.search(r"default=([^,)]+)", str(getattr(member, "value", None)))
        if default:
            needed = "MISSING" in default[1]
            kind = griffe.ParameterKind.positional_or_keyword if needed else _KEYWORD
            found.append(griffe.Parameter(name, kind=kind, default=None if needed else default[1]))
    return found


_KEYWORD = griffe.ParameterKind.keyword_only


_KINDS = {
    inspect.Parameter.POSITIONAL_ONLY: griffe.ParameterKind.positional_only,
    inspect.Parameter.POSITIONAL_OR_KEYWORD: griffe.ParameterKind.positional_or_keyword,
    inspect.Parameter.VAR_POSITIONAL: griffe.ParameterKind.var_positional,
    inspect.Parameter.KEYWORD_ONLY: griffe.ParameterKind.keyword_only,
    inspect.Parameter.VAR_KEYWORD: griffe.ParameterKind.var_keyword,
}


def _default(value: Any) -> str | None:
    return None if value is inspect.Parameter.empty else repr(value)
