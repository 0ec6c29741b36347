"""The page of the reference about the command, from what ``--help`` says."""

from __future__ import annotations

import click
from click.testing import CliRunner

from mvenet.cli._commands import app


def page() -> str:
    """Markdown with the help of every command."""
    intro = (
        "What `mvenet COMMAND --help` says. The "
        "[tutorial](../start/tutorial.md#on-the-command-line) shows the commands at work."
    )
    lines = ["# The command `mvenet`", "", intro, ""]
    for name in sorted(app.commands):
        shown = CliRunner().invoke(app, [name, "--help"], terminal_width=88, env={"COLUMNS": "88"})
        lines += [f"## `mvenet {name}`", "", "```text", shown.output.rstrip(), "```", ""]
    assert isinstance(app, click.Group)
    return "\n".join(lines)
