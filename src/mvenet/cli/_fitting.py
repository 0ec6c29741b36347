"""The command that trains: ``fit``."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mvenet.cli import INTERRUPTED
from mvenet.cli import _printing as printing
from mvenet.cli._misuse import in_options
from mvenet.cli._options import (
    DASK,
    DATA_OR_FOLDER,
    FOR_REPORTS,
    GROUP,
    HEADER_ROWS,
    HORIZON,
    PATH,
    REPORT,
    SEED,
    SHEET,
    TARGETS,
    TIME,
    UNIT,
    check_packages,
    check_places,
    check_units,
    command,
    option,
    write_report,
)
from mvenet.cli._printing import print_json, progress_bar, say

if TYPE_CHECKING:
    from mvenet.table import TableEncoder
    from mvenet.workflow import FittedTable, FittedTargets

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
    DATA_OR_FOLDER,
    TARGETS,
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
    option(
        "--share", type=click.FloatRange(0, 1, min_open=True), show_default="all that fit",
        help="Share of the rows to fit, drawn at random by the seed.",
    ),
    option("--drop", multiple=True, help="Column to leave out; repeatable."),
    HEADER_ROWS,
    SHEET,
    SEED,
    example="mvenet fit houses.csv --target price -o houses.mve",
)  # fmt: skip
def fit(
    data: Path,
    target: tuple[str, ...],
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
    unit: tuple[str, ...],
    share: float | None,
    drop: tuple[str, ...],
    header_rows: int,
    sheet: str | None,
    seed: int,
    as_json: bool,
    quiet: bool,
) -> None:
    """Fit a model to a table, check it on rows held out, and save it."""
    if holdout != holdout:  # which click finds in every range
        raise click.BadParameter("it must be from 0 to 0.9", param_hint="'--holdout'")
    if share != share:
        raise click.BadParameter("it must be above 0 and at most 1", param_hint="'--share'")
    check_units(unit, target)
    if calibrate and len(target) > 1:
        raise click.UsageError("--calibrate is for one target: drop it, or fit target by target")
    known = None if bounds is None else (_end(bounds[0]), _end(bounds[1]))
    check_places([output, report], [data])
    check_packages(skops="persist", **({} if report is None else FOR_REPORTS))
    silent = quiet or as_json
    printing.say_reading(data.name, silent)
    from mvenet import persistence, table
    from mvenet._columns.cells import split_targets, without
    from mvenet._training import distributed

    with progress_bar(f"reading {data.name}", silent) as bar:
        read = table.sample(
            data, share, seed=seed, header_rows=header_rows, sheet=sheet, progress=bar
        )
    if read.sentence and not silent:
        say(f"{read.sentence[:1].upper()}{read.sentence[1:]}.")
    frame = without(read.frame, drop, target)
    rows = len(split_targets(frame, target)[1])
    from mvenet import workflow  # with scikit-learn, for which no error of the table need wait
    from mvenet._training.plan import Stop

    def shown(encoder: TableEncoder) -> None:
        printing.print_columns(encoder, data.name, target, rows, len(frame) - rows)

    settings: dict[str, Any] = {
        "search": search, "members": members, "target": SCALES[log], "effort": effort,
        "bounds": known, "holdout": holdout, "seed": seed, "group": group, "time": time,
        "horizon": horizon, "copies": copies, "verbose": printing.verbosity(silent),
        "expect": None if silent or dask else lambda work: printing.print_expected(work, search),
    }  # fmt: skip
    told = None if silent else shown
    fitted: FittedTable | FittedTargets
    with distributed.on_dask(dask):
        if len(target) == 1:
            fitted = workflow.fit_table(
                frame, target[0], calibrate=calibrate, columns=told, unit="".join(unit), **settings
            )
        else:
            fitted = workflow.fit_targets(frame, target, told=told, units=unit, **settings)
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
        counted = {"rows_read": len(read.rows), "rows_there": read.total}
        print_json({"model": str(output), **counted, **printing.fit_facts(fitted)})
    elif not quiet:
        printing.print_fit(fitted)
        written = "stopped, and not written" if stop.pressed else report
        say(f"Model: {output}" + (f"   Report: {written}" if report else ""))
    if fitted.stopped or stop.pressed:
        sys.exit(INTERRUPTED)  # past the sentence for who is left with nothing
