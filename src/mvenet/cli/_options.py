"""What several commands share: their arguments, what is checked before any work, the report."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mvenet.cli._printing import progress_bar

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

    from mvenet.workflow import Evaluation

Data = Annotated[
    Path, typer.Argument(help="CSV, Parquet or Arrow file; - is CSV from standard input.")
]
Model = Annotated[Path, typer.Argument(help="Model file made by `mvenet fit`.")]
HeaderRows = Annotated[
    int, typer.Option(min=1, max=9, help="Rows above the data: names, and perhaps units.")
]
Report = Annotated[Path | None, typer.Option(help="Write a report as one HTML file.")]
Dask = Annotated[str | None, typer.Option(help="Address of a Dask scheduler.")]
Unit = Annotated[str, typer.Option(help="Unit of the target in the report, such as €.")]
Seed = Annotated[
    int, typer.Option(min=0, max=2**32 - 1, help="Seed: the same one gives the same result.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]

# Exit codes besides 1 for an error and 2 for a misuse.
CHANGED = 3  # of check
FOR_REPORTS = {"jinja2": "report", "matplotlib": "report"}


def has(package: str) -> bool:
    """Whether a package is installed, without importing it."""
    try:
        return find_spec(package) is not None
    except ValueError:  # taken out of sys.modules by hand
        return False


def check_packages(**extras: str) -> None:
    """Before the work, not after it."""
    for package, extra in extras.items():
        if not has(package):
            raise ImportError(f"This needs {package}: pip install 'mvenet[{extra}]'")


def check_places(outputs: list[Path | None], inputs: list[Path]) -> None:
    """Before the work, not after it: each can be written to, and none is read from."""
    from mvenet import _atomic

    given = [_atomic.place_for(place) for place in outputs if place is not None]
    read = {place.resolve() for place in inputs}
    for i, place in enumerate(given):
        if place in read or place in given[:i]:
            raise ValueError(f"{place} is named twice: name another file to write to.")


def write_report(
    place: Path,
    model: Pipeline,
    evaluation: Evaluation | None,
    data: Path,
    silent: bool,
    **more: Any,
) -> None:
    """Render a report, and write it whole or not at all."""
    from mvenet import _atomic, report

    with progress_bar("writing the report", silent) as bar:
        page = report.render(model, evaluation, source=data.name, progress=bar, **more)
    with _atomic.replacing(place) as fresh:
        fresh.write_text(page, encoding="utf-8")
