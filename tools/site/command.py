"""The page of the reference about the command, from what ``--help`` says."""

from __future__ import annotations

import click
from click.testing import CliRunner

from mvenet.cli._commands import app


def page() -> str:
    """Markdown with the help of every command."""
    lines = ["# The command `mvenet`", "", "What `mvenet COMMAND --help` says.", ""]
    for name in sorted(app.commands):
        shown = CliRunner().invoke(app, [name, "--help"], terminal_width=88, env={"COLUMNS": "88"})
        lines += [f"## `mvenet {name}`", "", "```text", shown.output.rstrip(), "```", ""]
    assert isinstance(app, click.Group)
    return "\n".join(lines)
