"""The command ``mvenet`` as typer wants it: all that it can do, with an example of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

import mvenet
from mvenet.cli._fitting import compare, fit
from mvenet.cli._options import Debug
from mvenet.cli._printing import console
from mvenet.cli._showing import demo, doctor
from mvenet.cli._using import check, evaluate, export, info, predict

app = typer.Typer(
    help="Regression with honest uncertainty: from a table to predictions that say how sure they "
    "are.",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)
EXAMPLES: dict[Callable[..., None], str] = {
    fit: "mvenet fit houses.csv --target price -o houses.mve",
    predict: "mvenet predict houses.mve new.csv -o out.csv --interval 0.9",
    evaluate: "mvenet evaluate houses.mve test.csv --report test.html",
    check: "mvenet check houses.mve new.csv && mvenet predict houses.mve …",
    compare: "mvenet compare houses.csv --target price --store runs --dry-run",
    export: "mvenet export houses.mve houses.onnx",
    info: "mvenet info houses.mve",
    doctor: "mvenet doctor",
    demo: "mvenet demo --picture sine.png",
}


def _version(asked: bool) -> None:
    if asked:
        console.print(f"mvenet {mvenet.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
    debug: Debug = False,
) -> None:
    """Regression with honest uncertainty."""


for command, example in EXAMPLES.items():
    app.command(epilog=f"Example: {example}")(command)
