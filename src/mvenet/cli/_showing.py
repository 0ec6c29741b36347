"""The commands that show what mvenet can do, and how fast here: ``demo`` and ``doctor``."""

from __future__ import annotations

import time
from pathlib import Path

import click

from mvenet.cli import _printing as printing
from mvenet.cli._options import (
    FOR_REPORTS,
    PATH,
    SEED,
    check_places,
    command,
    has,
    option,
    write_report,
)
from mvenet.cli._printing import busy, print_json, say


@command(
    option(
        "--report", type=PATH, default="mvenet-demo.html", help="Where to write the cars' report."
    ),
    option(
        "--picture", type=PATH, default="mvenet-demo.png", help="Where to draw the sine.",
    ),
    SEED,
    example="mvenet demo --report cars.html",
)  # fmt: skip
def demo(report: Path, picture: Path, seed: int, as_json: bool, quiet: bool) -> None:
    """Fit a table of cars, predict and write the report; then train on the paper's sine."""
    if picture.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise click.BadParameter(
            f"{picture} must end in .png, .svg or .pdf", param_hint="--picture"
        )
    check_places([report, picture], [])
    from mvenet import datasets
    from mvenet.cli import _demo as show

    silent = quiet or as_json
    start = time.perf_counter()
    watched = printing.verbosity(silent)
    fitted = show.fit_cars(seed, watched)
    thirds, cars = show.thirds(fitted), show.three_cars(fitted)
    reported, drawn = all(map(has, FOR_REPORTS)), has("matplotlib")
    if reported:
        write_report(
            report, fitted.model, fitted.evaluation, Path("cars.csv"), silent, fitted=fitted,
            unit="mpg",
        )  # fmt: skip
    if not silent:
        printing.print_cars(thirds, cars)
        say(f"Report: {report}" if reported else WITHOUT.format("report", "report"))
    sample = datasets.sine(random_state=seed)
    models = show.sine_models(sample, seed, watched)
    sine = show.sine_starts(models)
    if drawn:
        show.draw_sine(models, sample, picture)
    seconds = time.perf_counter() - start
    if as_json:
        content = {"cars": thirds, "predicted": cars, "sine": sine, "seconds": seconds}
        made = {"report": report} if reported else {}
        made |= {"picture": picture} if drawn else {}
        print_json(content | {name: str(place) for name, place in made.items()})
    elif not quiet:
        printing.print_sine(sine)
        say(f"Picture: {picture}" if drawn else WITHOUT.format("picture", "plot"))
        say(f"{seconds:.0f} s for all of it. {YOURS}")


WITHOUT = "No {0}: it needs more packages, pip install 'mvenet[{1}]'."
YOURS = """The same with your own table:
  mvenet fit table.csv --target COLUMN -o model.mve --report report.html
  mvenet predict model.mve new.csv -o predictions.csv --interval 0.9"""


@command(example="mvenet doctor")
def doctor(as_json: bool, quiet: bool) -> None:
    """Tell versions, instruction set and threads, and measure the speed for five seconds."""
    from mvenet.cli import _doctor

    with busy("measuring the speed", quiet or as_json):
        facts = _doctor.diagnose(seconds=5.0)
    printing.print_facts(facts, as_json, quiet)
