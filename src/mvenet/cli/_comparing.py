"""The commands that compare: ``compare`` models, and ``strategies`` of training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np

from mvenet.cli import _printing as printing
from mvenet.cli._options import (
    DASK,
    DATA,
    GROUP,
    HEADER_ROWS,
    HORIZON,
    PATH,
    SEED,
    SHEET,
    TARGET,
    TIME,
    command,
    option,
)
from mvenet.cli._printing import busy, print_json, progress_bar, say


@command(
    DATA,
    TARGET,
    option("--folds", type=click.IntRange(2), default=5, help="Folds, to compare by."),
    option(
        "--effort", type=click.Choice(("low", "medium", "high")), default="medium",
        help="How much the automatic search tries.",
    ),
    GROUP,
    TIME,
    HORIZON,
    option("--drop", multiple=True, help="Column to leave out; repeatable."),
    HEADER_ROWS,
    SHEET,
    SEED,
    example="mvenet compare houses.csv --target price",
)  # fmt: skip
def compare(
    data: Path,
    target: str,
    folds: int,
    effort: str,
    group: str | None,
    time: str | None,
    horizon: float | None,
    drop: tuple[str, ...],
    header_rows: int,
    sheet: str | None,
    seed: int,
    as_json: bool,
    quiet: bool,
) -> None:
    """Compare mvenet with scikit-learn's, LightGBM's and CatBoost's usual models on a table."""
    silent = quiet or as_json
    printing.say_reading(data.name, silent)
    from mvenet import table
    from mvenet._columns.cells import split_target, without

    with progress_bar(f"reading {data.name}", silent) as bar:
        frame = table.read(data, header_rows=header_rows, sheet=sheet, progress=bar)
    frame = without(frame, drop, [target])
    _, y, _ = split_target(frame, target)  # a wrong name need not wait for scikit-learn
    from mvenet import workflow

    with printing.models_and_folds(silent) as done:
        found = workflow.compare_models(
            frame, target, folds=folds, effort=effort, group=group, time=time, horizon=horizon,
            seed=seed, done=done,
        )  # fmt: skip
    if as_json:
        scores = {name: values.tolist() for name, values in found.scores.items()}
        facts = {"models": found.names, "scores": scores, "not_installed": found.not_installed}
        print_json(facts)
    elif not quiet:
        title = f"{target} of {data.name}, {len(y):,} rows: {found.scores['crps'].shape[1]} folds"
        if group is not None:
            title += f", each of new values of {group}"
        if time is not None:
            title += f", each later by {time}"
        printing.print_models(found, title)


@command(
    DATA,
    TARGET,
    option("--store", type=PATH, help="Folder for finished folds: stopped, it can go on."),
    option("--outer", type=click.IntRange(2), default=10, help="Outer folds, to compare by."),
    option("--inner", type=click.IntRange(2), default=10, help="Inner folds, for the penalties."),
    option("--paper", is_flag=True, help="1000 epochs a stage, as in the paper."),
    GROUP,
    TIME,
    HORIZON,
    DASK,
    option("--dry-run", is_flag=True, help="Only tell what it costs."),
    HEADER_ROWS,
    SHEET,
    SEED,
    example="mvenet strategies houses.csv --target price --store runs --dry-run",
)
def strategies(
    data: Path,
    target: str,
    store: Path | None,
    outer: int,
    inner: int,
    paper: bool,
    group: str | None,
    time: str | None,
    horizon: float | None,
    dask: str | None,
    dry_run: bool,
    header_rows: int,
    sheet: str | None,
    seed: int,
    as_json: bool,
    quiet: bool,
) -> None:
    """Compare the paper's three training strategies, with equal and with separate penalties."""
    silent = quiet or as_json
    printing.say_reading(data.name, silent)
    from mvenet import recipes, table
    from mvenet._columns.cells import split_target
    from mvenet._training import distributed

    with progress_bar(f"reading {data.name}", silent) as bar:
        frame = table.read(data, header_rows=header_rows, sheet=sheet, progress=bar)
    X, y, _ = split_target(frame, target)
    from mvenet import comparison  # with scikit-learn, for which a wrong path need not wait
    from mvenet.workflow._belonging import Belonging

    tied = Belonging.of(X, target, group, time, horizon)
    X = tied.inputs(X)

    if not silent:
        encoder = table.TableEncoder(target=target).fit(X, y)  # each fold fits one of its own
        printing.print_columns(encoder, data.name, target, len(y), len(frame) - len(y))
    settings: dict[str, Any] = {
        "arms": comparison.strategy_arms(**(recipes.PAPER if paper else {})),
        "outer_cv": outer, "inner_cv": inner, "store": store, "random_state": seed,
        "encoder": table.TableEncoder(target=target), **tied.given(np.arange(len(y))),
    }  # fmt: skip
    if dry_run:
        with busy("measuring the speed", silent):
            plan = comparison.plan_comparison(X, y, **settings)
        if as_json:
            print_json(plan.as_dict())
        elif not quiet:
            say(str(plan))
        return
    with distributed.on_dask(dask):
        outcome = comparison.compare_strategies(
            X, y, verbose=printing.verbosity(silent), **settings
        )
    if as_json:
        print_json({"folds": outcome.to_frame().to_dict("records"), "steps": outcome.steps})
    elif not quiet:
        say(str(outcome))
