"""The commands that show what mvenet can do, and how fast here: ``demo`` and ``doctor``."""

from __future__ import annotations

import time
from pathlib import Path

import click

from mvenet.cli import _printing as printing
from mvenet.cli._options import PATH, SEED, check_places, command, has, option
from mvenet.cli._printing import busy, print_json, say


@command(
    option(
        "--picture",
        type=PATH,
        default="mvenet-demo.png",
        help="Where to write the picture of the sine.",
    ),
    SEED,
    example="mvenet demo --picture sine.png",
)
def demo(picture: Path, seed: int, as_json: bool, quiet: bool) -> None:
    """Train on a table of cars and on the paper's sine, print how it went, and draw the sine."""
    if picture.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise click.BadParameter(
            f"{picture} must end in .png, .svg or .pdf", param_hint="--picture"
        )
    check_places([picture], [])
    from mvenet import datasets
    from mvenet.cli import _demo as show

    silent = quiet or as_json
    start = time.perf_counter()
    watched = printing.verbosity(silent)
    thirds = show.cars_thirds(seed, watched)
    if not silent:
        printing.print_cars(thirds, show.cars()[1])
    sample, fresh = datasets.sine(random_state=seed), datasets.sine(random_state=seed + 1)
    models = show.sine_models(sample, watched)
    sine = show.sine_scores(models, fresh)
    seconds = time.perf_counter() - start
    drawn = has("matplotlib")
    if drawn:
        show.draw_sine(models, sample, picture)
    if as_json:
        content = {"cars": thirds, "sine": sine, "seconds": seconds}
        print_json(content | ({"picture": str(picture)} if drawn else {}))
    elif not quiet:
        printing.print_demo("The paper's sine, 1000 fresh rows", sine)
        say(
            "Lower RMSE and higher log-likelihood are better; the interval should cover 90 %.\n"
            f"{seconds:.1f} s for all of it.",
        )
        missing = "No picture: it needs matplotlib, pip install 'mvenet[plot]'."
        say(f"Picture: {picture}" if drawn else missing)


@command(example="mvenet doctor")
def doctor(as_json: bool, quiet: bool) -> None:
    """Tell versions, instruction set and threads, and measure the speed for five seconds."""
    from mvenet.cli import _doctor

    with busy("measuring the speed", quiet or as_json):
        facts = _doctor.diagnose(seconds=5.0)
    printing.print_facts(facts, as_json, quiet)
