"""What was wrong, in the words of the command line: click's complaints, and the library's."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Any

# What click says of a value, and what people say.
_PLAINLY = (
    (r"'[^']*' is not a valid float( range)?", "it must be a number"),
    (r"'[^']*' is not a valid integer( range)?", "it must be a whole number"),
    (r"Got unexpected extra argument\S* \((.*)\)", r"What is \1? It is one argument too many"),
)


# The library's target="log" has an option of its own; other parameters are called as theirs are.
_LOG = {"use target='auto'": "drop --log", "target='log'": "--log", "target='identity'": "--no-log"}


def in_options(sentence: str, commands: Iterable[Any]) -> str:
    """A sentence of the library with its parameters as options: ``search=False`` as --no-search.

    ``commands`` are those whose options count.
    """
    options = {param.name: param for command in commands for param in command.params}

    def told(given: re.Match[str]) -> str:
        option = options.get(given[1])
        if option is None:
            return given[0]
        if getattr(option, "is_flag", False):
            return str((option.opts if given[2] == "True" else option.secondary_opts)[0])
        return f"{option.opts[0]} {given[2].strip(chr(39))}"

    for words, option in _LOG.items():
        sentence = sentence.replace(words, option)
    return re.sub(r"\b([a-z_]+)=('[^']*'|[-+\w.]*\w)", told, sentence)


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
