"""The command ``mvenet``: it parses and prints, and computes nothing itself."""

from __future__ import annotations

import contextlib
import os
import sys

__all__ = ["main"]


INTERRUPTED = 130  # the exit code; of fit, also if it kept a model


def main() -> None:
    """Run the command line; errors are one line, and the traceback only with ``--debug``."""
    try:
        code = _run()
    except KeyboardInterrupt:  # perhaps while Python still imports
        code = INTERRUPTED
    if code == INTERRUPTED:
        sys.stderr.write("Stopped: no file was left half-written.\n")
    sys.exit(code)


def _run() -> int | None:
    """Do what the words say; returns the exit code."""
    try:
        import rich  # noqa: F401
        import typer
    except ImportError as error:
        sys.exit(f"The mvenet command needs {error.name}: pip install 'mvenet[cli]'")
    from mvenet.cli import _commands, _misuse

    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError):  # a terminal that lacks a letter shows its code
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    code: int | None
    try:
        code = _commands.app(sys.argv[1:] or ["--help"], prog_name="mvenet", standalone_mode=False)
        sys.stdout.flush()
    except typer.Abort:
        code = INTERRUPTED
    except BrokenPipeError:  # whoever read our output has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    except Exception as error:
        misused = hasattr(error, "format_message")  # how the command was called
        if "--debug" in sys.argv and not misused:
            raise
        sys.stderr.write(f"Error: {_misuse.explained(error) if misused else _sentence(error)}\n")
        code = getattr(error, "exit_code", 1)
    return code


def _sentence(error: Exception) -> str:
    line = " ".join(str(error).split())
    if isinstance(error, MemoryError):
        return f"The memory is full: use fewer rows or columns. {line}".rstrip()
    if isinstance(error, ImportError | OSError | TypeError | ValueError) and line:
        return line
    return f"{type(error).__name__} {line} (not foreseen: add --debug, and report what it says)"
