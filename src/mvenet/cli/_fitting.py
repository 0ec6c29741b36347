"""The command that trains: ``fit``."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import click

from mvenet.cli import INTERRUPTED
from mvenet.cli import _printing as printing
from mvenet.cli._misuse import in_options
from mvenet.cli._options import (
    DASK,
    DATA,
    FOR_REPORTS,
    GROUP,
    HEADER_ROWS,
    HORIZON,
    PATH,
    REPORT,
    SEED,
    TARGET,
    TIME,
    UNIT,
    check_packages,
    check_places,
    command,
    option,
    write_report,
)
from mvenet.cli._printing import print_json, progress_bar, say

SCALES = {None: "auto", True: "log", False: "identity"}  # of the target, by --log and --no-log


def _end(text: str) -> float | None:
    """One of two bounds: a number, or an open end."""
    if text.lower() == "none":
        return None
    try:
        return float(text)
    except ValueError:
        raise click.BadParameter(
            f"{text} is no number; write none for an open end", param_hint="'--bounds'"
        ) from None


@command(
    DATA,
    TARGET,
    option("--output", "-o", type=PATH, required=True, help="Where to save the model."),
    option(
        "--search/--no-search", default=True,
        help="Find the best model; --no-search trains one kind of network, quickly.",
    ),
    option(
        "--members", type=click.IntRange(1),
        help="With --no-search: networks for each fold.",
    ),
    option("--calibrate", is_flag=True, help="Intervals that hold, by rows the folds left out."),
    option(
        "--log/--no-log", default=None,
        help="Model the target's logarithm: nothing is below zero. Else rows left out decide.",
    ),
    option(
        "--effort", type=click.Choice(("low", "medium", "high")), show_default="medium",
        help="How much the search tries.",
    ),
    option(
        "--bounds", nargs=2, metavar="LOW HIGH",
        help="Ends that the target cannot leave, such as 0 100; none for an open end.",
    ),
    option(
        "--holdout", type=click.FloatRange(0, 0.9), default=0.2,
        help="Share of the rows kept to check the model by.",
    ),
    option(
        "--copies", type=click.Choice(("auto", "together", "apart")), default="auto",
        help="Whether exact copies of rows are one row or several.",
    ),
    GROUP,
    TIME,
    HORIZON,
    REPORT,
    DASK,
    UNIT,
    option("--drop", multiple=True, help="Column to leave out; repeatable."),
    HEADER_ROWS,
    SEED,
    example="mvenet fit houses.csv --target price -o houses.mve",
)  # fmt: skip
def fit(
    data: Path,
    target: str,
    output: Path,
    search: bool,
    members: int | None,
    calibrate: bool,
    log: bool | None,
    effort: str | None,
    bounds: tuple[str, str] | None,
    holdout: float,
    copies: str,
    group: str | None,
    time: str | None,
    horizon: float | None,
    report: Path | None,
    dask: str | None,
    unit: str,
    drop: tuple[str, ...],
    header_rows: int,
    seed: int,
    as_json: bool,
    quiet: bool,
) -> None:
    """Fit a model to a table, check it on rows held out, and save it."""
    from mvenet import persistence, table
    from mvenet._columns.cells import split_target, without
    from mvenet._training import distributed

    if holdout != holdout:  # which click finds in every range
        raise click.BadParameter("it must be from 0 to 0.9", param_hint="'--holdout'")
    known = None if bounds is None else (_end(bounds[0]), _end(bounds[1]))
    check_places([output, report], [data])
    check_packages(skops="persist", **({} if report is None else FOR_REPORTS))
    silent = quiet or as_json
    with progress_bar(f"reading {data.name}", silent) as bar:
        frame = table.read(data, header_rows=header_rows, progress=bar)
    frame = without(frame, drop, target)
    rows = len(split_target(frame, target)[1])
    from mvenet import workflow  # with scikit-learn, for which no error of the table need wait
    from mvenet._training.plan import Stop

    with distributed.on_dask(dask):
        fitted = workflow.fit_table(
            frame, target, search=search, members=members, calibrate=calibrate,
            target=SCALES[log], effort=effort, bounds=known, holdout=holdout, seed=seed,
            group=group, time=time, horizon=horizon, copies=copies, unit=unit,
            verbose=printing.verbosity(silent),
            columns=None if silent else lambda encoder: printing.print_columns(
                encoder, data.name, target, rows, len(frame) - rows
            ),
            expect=None if silent or dask else lambda work: printing.print_expected(work, search),
        )  # fmt: skip
    notes = [in_options(note, [fit]) for note in fitted.notes]
    fitted = dataclasses.replace(fitted, notes=notes)
    stop = Stop()
    stop.finish(lambda: persistence.save(fitted.model, output))
    if report is not None:
        with stop:
            write_report(
                report, fitted.model, fitted.evaluation, data, silent, fitted=fitted, unit=unit
            )
    if as_json:
        print_json({"model": str(output), **printing.fit_facts(fitted)})
    elif not quiet:
        printing.print_fit(fitted)
        written = "stopped, and not written" if stop.pressed else report
        say(f"Model: {output}" + (f"   Report: {written}" if report else ""))
    if fitted.stopped or stop.pressed:
        sys.exit(INTERRUPTED)  # past the sentence for who is left with nothing
