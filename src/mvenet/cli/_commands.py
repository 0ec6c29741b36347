"""The command ``mvenet`` as click wants it: all that it can do."""

from __future__ import annotations

import click

import mvenet
from mvenet.cli._comparing import compare, strategies
from mvenet.cli._fitting import fit
from mvenet.cli._options import DEBUG, option
from mvenet.cli._printing import say
from mvenet.cli._showing import demo, doctor
from mvenet.cli._using import check, evaluate, export, info, predict


class InOrder(click.Group):
    """Commands as a user comes to need them, not by the alphabet."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Their names."""
        return list(self.commands)


def _version(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked:
        say(f"mvenet {mvenet.__version__}")
        ctx.exit()


app = InOrder(
    "mvenet",
    {
        str(command.name): command
        for command in (
            *(fit, predict, evaluate, check, compare, strategies, export, info, doctor, demo),
        )
    },
    params=[
        option(
            "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version,
            help="Print the version.",
        ),
        DEBUG,
    ],
    help="Regression with honest uncertainty: from a table to predictions that say how sure they "
    "are.",
    context_settings={"help_option_names": ["--help", "-h"], "show_default": True},
)  # fmt: skip
