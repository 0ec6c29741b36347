"""What was wrong with the words on the command line, said plainly whatever click's version."""

from __future__ import annotations

import difflib
import re
from typing import Any

# What click says of a value, and what people say.
_PLAINLY = (
    (r"'[^']*' is not a valid float( range)?", "it must be a number"),
    (r"'[^']*' is not a valid integer( range)?", "it must be a whole number"),
    (r"Got unexpected extra argument\S* \((.*)\)", r"What is \1? It is one argument too many"),
)


def explained(error: Any) -> str:
    """One line: what is wrong, what was perhaps meant, and where to look."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "mvenet"
    return f"{_reason(error, context).rstrip('.')} (see {command} --help)"


def _reason(error: Any, context: Any) -> str:
    param, wrong = getattr(error, "param", None), getattr(error, "option_name", "")
    if hasattr(error, "param_type") and param is not None:
        kind = "option" if param.opts[0].startswith("-") else "argument"
        return f"The {kind} {' or '.join(param.opts)} is missing: {param.help}"
    if wrong and hasattr(error, "possibilities"):
        near = difflib.get_close_matches(wrong, error.possibilities or (), n=2, cutoff=0.7)
        return f"There is no option {wrong}" + _meant(near)
    known = list(getattr(getattr(context, "command", None), "commands", ()))
    word = re.match(r"No such command '([^']*)'", error.message)
    if known and word:
        near = difflib.get_close_matches(word[1], known, n=1)
        return f"There is no command {word[1]!r}" + (_meant(near) or f": use {', '.join(known)}")
    line = " ".join(error.format_message().split())
    for pattern, plain in _PLAINLY:
        line = re.sub(pattern, plain, line)
    return line


def _meant(near: Any) -> str:
    return f": did you mean {' or '.join(near)}?" if near else ""
