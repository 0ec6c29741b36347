"""The commands behind ``mvenet``, as typer wants them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

import mvenet

if TYPE_CHECKING:
    from mvenet.demo import Score

app = typer.Typer(
    help="Regression with honest uncertainty.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
console = Console(markup=False, highlight=False)


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
) -> None:
    """Regression with honest uncertainty."""


@app.command(epilog="Example: mvenet demo --picture sine.png")
def demo(
    picture: Annotated[Path, typer.Option(help="Where to write the picture of the sine.")] = Path(
        "mvenet-demo.png"
    ),
    seed: Annotated[int, typer.Option(min=0, help="Seed of data and networks.")] = 0,
) -> None:
    """Train on two small data sets, print how it went, and draw the sine."""
    if not picture.parent.is_dir():
        raise typer.BadParameter(
            f"the folder {picture.parent} does not exist: create it or name another",
            param_hint="--picture",
        )
    from mvenet import datasets
    from mvenet import demo as show

    start = time.perf_counter()
    _print_scores("Diabetes (scikit-learn), 111 rows held out", show.diabetes_scores(seed))
    sample, fresh = datasets.sine(random_state=seed), datasets.sine(random_state=seed + 1)
    models = show.sine_models(sample)
    _print_scores("The paper's sine, 1000 fresh rows", show.sine_scores(models, fresh))
    seconds = time.perf_counter() - start
    console.print(
        "Lower RMSE and higher log-likelihood are better; the interval should cover 90 %.\n"
        f"{seconds:.1f} s for all of it.",
    )
    try:
        show.draw_sine(models, sample, picture)
    except ImportError:
        console.print("No picture: it needs matplotlib, pip install 'mvenet[plot]'.")
    except OSError as error:
        raise typer.BadParameter(
            f"cannot write {picture}: {error.strerror}", param_hint="--picture"
        ) from None
    else:
        console.print(f"Picture: {picture}")


def _print_scores(title: str, scores: Sequence[Score]) -> None:
    table = Table(title=title, title_justify="left", title_style="bold")
    table.add_column("model")
    for heading in ("RMSE", "log-likelihood", "90 % interval covers"):
        table.add_column(heading, justify="right")
    for s in scores:
        table.add_row(s.model, f"{s.rmse:.4g}", f"{s.loglik:.3f}", f"{100 * s.coverage:.1f} %")
    console.print(table)
