"""What several commands share: their arguments, what is checked before any work, the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mvenet.cli._printing import progress_bar

if TYPE_CHECKING:
    from mvenet.workflow import Evaluation, JointEvaluation

PATH = click.Path(path_type=Path)


class Argument(click.Argument):
    """A file that must be named; before click 8.5 no argument of its own has a text."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__([name], type=PATH)
        self.help = text

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        """Name and text."""
        return self.make_metavar(ctx), self.help or ""


def option(*names: str, **more: Any) -> click.Option:
    """An option as click has it: names, kind, default, help."""
    return click.Option(names, **more)


class Command(click.Command):
    """A command whose options are given once: of two values one would not count, silently."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Refuse what is given twice, then do as click does."""
        _, _, given = self.make_parser(ctx).parse_args(list(args))
        for parameter, times in Counter(given).items():
            if isinstance(parameter, click.Option) and times > 1 and _takes_one(parameter):
                names = " or ".join([*parameter.opts, *parameter.secondary_opts])
                raise click.UsageError(f"{names} is given {times} times: give it once", ctx)
        return super().parse_args(ctx, args)


def _takes_one(option: click.Option) -> bool:
    """Whether one value counts; a flag that is set twice is set."""
    return not option.multiple and not (option.is_flag and not option.secondary_opts)


DATA = Argument("data", "CSV, Parquet, Arrow or Excel file; - is CSV from standard input.")
DATA_OR_FOLDER = Argument(
    "data",
    "CSV, Parquet, Arrow or Excel file, or a folder of Parquet; - is CSV from standard input.",
)
MODEL = Argument("model", "Model file made by `mvenet fit`.")
TARGET = option("--target", required=True, help="Column to predict.")
TARGETS = option(
    "--target", required=True, multiple=True,
    help="Column to predict; repeated, several of them at once.",
)  # fmt: skip
HEADER_ROWS = option(
    "--header-rows", type=click.IntRange(1, 9), default=1,
    help="Rows above the data: names, and perhaps units.",
)  # fmt: skip
SHEET = option("--sheet", help="Sheet of an Excel file; needed if it has several.")
GROUP = option(
    "--group", help="Column of rows that belong together, such as patient: the promise is about "
    "new ones.",
)  # fmt: skip
TIME = option("--time", help="Column that orders rows in time: the promise is about later ones.")
HORIZON = option(
    "--horizon", type=click.FloatRange(0, min_open=True),
    help="With --time: how far the promise reaches, in days or in units of the column.",
)  # fmt: skip
REPORT = option("--report", type=PATH, help="Write a report as one HTML file.")
DASK = option("--dask", help="Address of a Dask scheduler.")
UNIT = option(
    "--unit", multiple=True,
    help="Unit of the target in the report, such as €; repeatable, one for each target.",
)  # fmt: skip
SEED = option(
    "--seed", type=click.IntRange(0, 2**32 - 1), default=0,
    help="Seed: the same one gives the same result.",
)  # fmt: skip
# The word counts, before and after the command's name.
DEBUG = option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")
EVERYWHERE = (
    option("--json", "as_json", is_flag=True, help="Print JSON instead of tables."),
    option("--quiet", "-q", is_flag=True, help="Print nothing but errors."),
    DEBUG,
)


def command(
    *parameters: click.Parameter, example: str
) -> Callable[[Callable[..., None]], click.Command]:
    """Make a command of a function, with its name and the first line of what it says of itself."""

    def made(function: Callable[..., None]) -> click.Command:
        return Command(
            function.__name__, callback=function, params=[*parameters, *EVERYWHERE],
            help=function.__doc__, short_help=function.__doc__, epilog=f"Example: {example}",
        )  # fmt: skip

    return made


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


def check_units(units: Sequence[str], targets: Sequence[str]) -> None:
    """One unit for all targets, or one for each."""
    if len(units) > 1 and len(units) != len(targets):
        given = "1 target" if len(targets) == 1 else f"{len(targets)} targets"
        raise click.UsageError(
            f"--unit is given {len(units)} times, and there is {given}: give it once, or once for "
            "each target"
        )


def check_places(outputs: list[Path | None], inputs: list[Path]) -> None:
    """Before the work, not after it: each can be written to, and none is read from."""
    from mvenet._utils import atomic

    given = [atomic.place_for(place) for place in outputs if place is not None]
    read = {place.resolve() for place in inputs}
    for i, place in enumerate(given):
        if place in read or place in given[:i]:
            raise ValueError(f"{place} is named twice: name another file to write to.")


def write_report(
    place: Path,
    model: Any,
    evaluation: Evaluation | JointEvaluation | None,
    data: Path,
    silent: bool,
    **more: Any,
) -> None:
    """Render a report, and write it whole or not at all."""
    from mvenet import report
    from mvenet._utils import atomic

    with progress_bar("writing the report", silent) as bar:
        page = report.render(model, evaluation, source=data.name, progress=bar, **more)
    with atomic.replacing(place) as fresh:
        fresh.write_text(page, encoding="utf-8")
