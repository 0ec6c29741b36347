"""The command ``mvenet``: it parses and prints, and computes nothing itself."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import traceback

__all__: list[str] = []  # the command is all that is public


INTERRUPTED = 130  # the exit code; of fit, also if it kept a model
SELDOM = 200_000  # new objects between two searches for garbage: importing makes many that stay


def main() -> None:
    """Run the command line; errors are one line, and the traceback only with ``--debug``."""
    gc.set_threshold(SELDOM)
    try:
        code = _run()
    except KeyboardInterrupt:  # perhaps while Python still imports
        code = INTERRUPTED
    gc.freeze()  # no search at the end: all that is left goes with the process
    if code == INTERRUPTED:
        sys.stderr.write("Stopped: no file was left half-written.\n")
    sys.exit(code)


def _run() -> int:
    """Do what the words say; returns the exit code."""
    try:
        import click
        import rich  # noqa: F401
    except ImportError as error:
        sys.exit(f"The mvenet command needs {error.name}: pip install 'mvenet[cli]'")
    from mvenet.cli import _misuse
    from mvenet.cli._commands import app
    from mvenet.cli._printing import harmless_lines

    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError):  # a terminal that lacks a letter shows its code
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        with app.make_context("mvenet", sys.argv[1:] or ["--help"]) as context:
            app.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as error:  # how the command was called
        sys.stderr.write(harmless_lines(f"Error: {_misuse.explained(error)}\n"))
        return error.exit_code
    except BrokenPipeError:  # whoever read our output has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        if "--debug" in sys.argv:
            sys.stderr.write(harmless_lines(traceback.format_exc()))
        else:
            line = _misuse.in_options(_sentence(error), app.commands.values())
            sys.stderr.write(harmless_lines(f"Error: {line}\n"))
        return 1
    return 0


def _sentence(error: Exception) -> str:
    line = " ".join(str(error).split())
    if isinstance(error, MemoryError):
        return f"The memory is full: use fewer rows or columns. {line}".rstrip()
    if isinstance(error, ImportError | OSError | TypeError | ValueError) and line:
        return line
    return f"{type(error).__name__} {line} (not foreseen: add --debug, and report what it says)"
