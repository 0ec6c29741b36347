"""The commands that train: ``fit`` and ``compare``."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from mvenet.cli import INTERRUPTED
from mvenet.cli import _printing as printing
from mvenet.cli._options import (
    FOR_REPORTS,
    AsJson,
    Dask,
    Data,
    Debug,
    HeaderRows,
    Quiet,
    Report,
    Seed,
    Unit,
    check_packages,
    check_places,
    write_report,
)
from mvenet.cli._printing import busy, console, print_json, progress_bar


class Effort(StrEnum):
    """How much a search tries."""

    low = "low"
    medium = "medium"
    high = "high"


Target = Annotated[str, typer.Option(help="Column to predict.")]
Output = Annotated[Path, typer.Option("--output", "-o", help="Where to save the model.")]
Search = Annotated[bool, typer.Option(help="Let folds find the best model; --no-search is faster.")]
Members = Annotated[
    int | None, typer.Option(min=1, help="Networks for each fold; without a search in all.")
]
Calibrate = Annotated[
    bool, typer.Option("--calibrate", help="Intervals that hold, by rows the folds left out.")
]
Positive = Annotated[
    bool | None,
    typer.Option(
        "--positive/--no-log",
        "--log",
        help="Nothing below zero: model the target's logarithm. Else the evidence decides.",
    ),
]
HowMuch = Annotated[
    Effort | None, typer.Option(help="How much the search tries.", show_default="medium")
]
Holdout = Annotated[
    float, typer.Option(min=0, max=0.9, help="Share of the rows kept to check the model by.")
]
Drop = Annotated[list[str] | None, typer.Option(help="Column to leave out; repeatable.")]


def fit(
    data: Data,
    target: Target,
    output: Output,
    search: Search = True,
    members: Members = None,
    calibrate: Calibrate = False,
    log: Positive = None,
    effort: HowMuch = None,
    holdout: Holdout = 0.2,
    report: Report = None,
    dask: Dask = None,
    unit: Unit = "",
    drop: Drop = None,
    header_rows: HeaderRows = 1,
    seed: Seed = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Fit a model to a table, check it on rows held out, and save it."""
    from mvenet import _distributed, persistence, table

    if not 0 <= holdout <= 0.9:  # typer of old lets nan pass
        raise typer.BadParameter("it must be from 0 to 0.9", param_hint="'--holdout'")
    check_places([output, report], [data])
    check_packages(skops="persist", **({} if report is None else FOR_REPORTS))
    silent = quiet or as_json
    with progress_bar(f"reading {data.name}", silent) as bar:
        frame = table.read(data, header_rows=header_rows, progress=bar)
    frame = table.without(frame, drop or (), target)
    rows = len(table.split_target(frame, target)[1])
    from mvenet import workflow  # with scikit-learn, for which no error of the table need wait
    from mvenet._plan import Stop

    with _distributed.on_dask(dask):
        fitted = workflow.fit_table(
            frame, target, search=search, members=members, calibrate=calibrate,
            log=log, effort=effort and effort.value, holdout=holdout, seed=seed,
            verbose=printing.verbosity(silent),
            columns=None if silent else lambda encoder: printing.print_columns(
                encoder, data.name, target, rows, len(frame) - rows
            ),
            expect=None if silent or dask else lambda work: printing.print_expected(work, search),
        )  # fmt: skip
    stop = Stop()
    stop.insisting(lambda: persistence.save(fitted.model, output))
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
        console.print(
            f"Model: {output}" + (f"   Report: {written}" if report else ""), soft_wrap=True
        )
    if fitted.stopped or stop.pressed:
        sys.exit(INTERRUPTED)  # past the sentence for who is left with nothing


def compare(
    data: Data,
    target: Target,
    store: Annotated[
        Path | None, typer.Option(help="Folder for finished folds: stopped, it can go on.")
    ] = None,
    outer: Annotated[int, typer.Option(min=2, help="Outer folds, which judge.")] = 10,
    inner: Annotated[int, typer.Option(min=2, help="Inner folds, which choose.")] = 10,
    paper: Annotated[
        bool, typer.Option("--paper", help="1000 epochs a stage, as in the paper.")
    ] = False,
    dask: Dask = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what it costs.")] = False,
    header_rows: HeaderRows = 1,
    seed: Seed = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Compare the three training strategies, each with equal and with separate penalties."""
    from mvenet import _distributed, recipes, table

    silent = quiet or as_json
    with progress_bar(f"reading {data.name}", silent) as bar:
        frame = table.read(data, header_rows=header_rows, progress=bar)
    X, y, _ = table.split_target(frame, target)
    from mvenet import comparison  # with scikit-learn, for which a wrong path need not wait

    if not silent:
        encoder = table.TableEncoder(target=target).fit(X, y)  # each fold fits one of its own
        printing.print_columns(encoder, data.name, target, len(y), len(frame) - len(y))
    settings: dict[str, Any] = {
        "arms": comparison.strategy_arms(**(recipes.PAPER if paper else {})),
        "outer_cv": outer, "inner_cv": inner, "store": store, "random_state": seed,
        "encoder": table.TableEncoder(target=target),
    }  # fmt: skip
    if dry_run:
        with busy("measuring the speed", silent):
            plan = comparison.plan_comparison(X, y, **settings)
        if as_json:
            print_json(plan.as_dict())
        elif not quiet:
            console.print(str(plan), soft_wrap=True)
        return
    with _distributed.on_dask(dask):
        outcome = comparison.compare_strategies(
            X, y, verbose=printing.verbosity(silent), **settings
        )
    if as_json:
        print_json({"folds": outcome.to_frame().to_dict("records"), "steps": outcome.steps})
    elif not quiet:
        console.print(str(outcome), soft_wrap=True)
