"""The commands that use a model: ``predict``, ``evaluate``, ``check``, ``export`` and ``info``."""

from __future__ import annotations

import gzip
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from mvenet.cli import _printing as printing
from mvenet.cli._options import (
    CHANGED,
    DATA,
    DATA_OR_FOLDER,
    FOR_REPORTS,
    HEADER_ROWS,
    MODEL,
    PATH,
    REPORT,
    SHEET,
    UNIT,
    Argument,
    check_packages,
    check_places,
    check_units,
    command,
    option,
    write_report,
)
from mvenet.cli._predicting_folder import predict_folder
from mvenet.cli._printing import busy, print_json, progress_bar, say

if TYPE_CHECKING:
    from mvenet.workflow import Evaluation, JointEvaluation


@command(
    MODEL,
    DATA_OR_FOLDER,
    option(
        "--output",
        "-o",
        type=PATH,
        required=True,
        help="CSV, Parquet or Arrow to write; - prints CSV. Of a folder: another folder.",
    ),
    option(
        "--interval",
        type=float,
        multiple=True,
        help="Central interval to add, such as 0.9; repeatable.",
    ),
    option(
        "--quantile", type=float, multiple=True, help="Quantile to add, such as 0.1; repeatable."
    ),
    option(
        "--simultaneous",
        is_flag=True,
        help="With several targets: intervals that hold for all of them at once.",
    ),
    HEADER_ROWS,
    SHEET,
    option("--dask", help="Address of a Dask scheduler, for a folder of Parquet files."),
    example="mvenet predict houses.mve new.csv -o out.csv --interval 0.9",
)
def predict(
    model: Path,
    data: Path,
    output: Path,
    interval: tuple[float, ...],
    quantile: tuple[float, ...],
    simultaneous: bool,
    header_rows: int,
    sheet: str | None,
    dask: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Add mean, std and, if asked, intervals and quantiles to a table, or to a folder of them."""
    from mvenet._utils import atomic

    _check_levels(interval, "--interval")
    _check_levels(quantile, "--quantile")
    check_order(model, data)
    if data.is_dir():
        asked = {
            "intervals": interval, "quantiles": quantile, "simultaneous": simultaneous,
        }  # fmt: skip
        predict_folder(model, data, output, asked, sheet, dask, as_json, quiet)
        return
    if dask is not None:
        raise click.BadParameter(
            f"a folder of Parquet files goes to a cluster, and {data} is none: drop --dask",
            param_hint="--dask",
        )
    _check_ending(output)
    printed = str(output) == "-"
    if not printed:
        check_places([output], [data, model])
    with busy(f"loading {model.name}", quiet or as_json or printed):
        from mvenet import persistence
        from mvenet.table._files import COLUMNAR
        from mvenet.workflow import _known_targets, _serving

        loaded = persistence.load_to_predict(model)
    _known_targets.check_known(loaded, simultaneous)
    start = time.perf_counter()

    form = output.with_suffix("").suffix if output.suffix.lower() == ".gz" else output.suffix

    def predict_into(place: BinaryIO | Path) -> _serving.Served:
        with progress_bar("predicting", quiet or as_json or printed) as bar:
            return _serving.predict_file(
                loaded, data, place, intervals=interval, quantiles=quantile,
                simultaneous=simultaneous, header_rows=header_rows, sheet=sheet,
                form=form.lower(), progress=bar,
            )  # fmt: skip

    if printed:
        predict_into(printing.stdout_bytes())
        return
    opened: Any = gzip.open if output.suffix.lower() == ".gz" else open
    with atomic.replacing(output) as fresh:
        if form.lower() in COLUMNAR:
            served = predict_into(fresh)
        else:
            with opened(fresh, "wb") as file:
                served = predict_into(file)
    seconds = time.perf_counter() - start
    if as_json:
        told = {"rows": served.rows, "rows_far_outside": served.outside, "seconds": seconds}
        told |= served.compared.facts
        print_json({"output": str(output), **told})
    elif not quiet:
        say(f"{printing.several_rows(served.rows)} in {seconds:.1f} s: {output}")
        if served.outside:
            where = "far outside what the model has seen: mvenet check tells where"
            say(f"{served.outside:,} of them {where}.")
        for sentence in served.compared.sentences():
            say(f"Note: {sentence}")


def _check_levels(levels: tuple[float, ...], name: str) -> None:
    for level in levels:
        if not 0 < level < 1:
            raise click.BadParameter(
                f"{level:g} must lie between 0 and 1, such as 0.9", param_hint=name
            )


def _check_ending(output: Path) -> None:
    ending = output.suffix.lower()
    if ending in (".xlsx", ".xls", ".ods", ".json", ".html"):
        raise click.BadParameter(
            f"{output} would hold no {ending[1:]}: name it .csv, .parquet or .arrow",
            param_hint="--output",
        )


@command(
    MODEL,
    DATA,
    REPORT,
    UNIT,
    HEADER_ROWS,
    SHEET,
    example="mvenet evaluate houses.mve test.csv --report test.html",
)
def evaluate(
    model: Path,
    data: Path,
    report: Path | None,
    unit: tuple[str, ...],
    header_rows: int,
    sheet: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Check a model by a table that has the target, on rows that it was not trained on."""
    check_order(model, data)
    check_places([report], [data, model])
    if report is not None:
        check_packages(**FOR_REPORTS)
    silent = quiet or as_json
    loaded, frame = model_and_table(
        model, data, header_rows, sheet, silent, whole=report is not None
    )
    from mvenet.workflow import _evaluation, _targets
    from mvenet.workflow._known_targets import joint_of

    joint = joint_of(loaded)
    check_units(unit, ("",) if joint is None else joint.names)
    evaluation: Evaluation | JointEvaluation
    with busy("evaluating", silent):
        if joint is None:
            evaluation = _evaluation.evaluate(loaded, frame)
        else:
            evaluation = _targets.evaluate_targets(loaded, frame)
    if report is not None:
        write_report(report, loaded, evaluation, data, silent, frame=frame, unit=unit)
    if as_json:
        print_json(printing.evaluation_facts(evaluation))
    elif not quiet:
        where = f"{printing.several_rows(len(evaluation.y))} of {data.name}"
        if isinstance(evaluation, _targets.JointEvaluation):
            printing.print_joint(evaluation, where)
        else:
            printing.print_evaluation(evaluation, where)
            for remark in _evaluation.remarks(loaded, evaluation):
                say(f"Note: {remark}")
            printing.print_flattered(evaluation)
        if report is not None:
            say(f"Report: {report}")


@command(
    MODEL,
    DATA,
    HEADER_ROWS,
    SHEET,
    example="mvenet check houses.mve new.csv && mvenet predict houses.mve …",
)
def check(
    model: Path, data: Path, header_rows: int, sheet: str | None, as_json: bool, quiet: bool
) -> None:
    """Tell whether a new table is like the one of the fit; exit code 3 if it is not."""
    check_order(model, data)
    loaded, frame = model_and_table(model, data, header_rows, sheet, quiet or as_json)
    from mvenet.workflow import _evaluation

    checked = _evaluation.check(loaded, frame)
    if as_json:
        print_json(printing.check_facts(checked))
    elif not quiet:
        printing.print_check(checked, data.name)
    if checked.findings:
        raise click.exceptions.Exit(CHANGED)


def model_and_table(
    model: Path, data: Path, header_rows: int, sheet: str | None, quiet: bool, whole: bool = False
) -> tuple[Any, Any]:
    """A model that knows its target, and a table to compare it with.

    Only a report needs the whole model, with scikit-learn, which takes a second to import.
    """
    with busy(f"loading {model.name}", quiet):
        from mvenet import persistence, table
        from mvenet.workflow import _known_targets

        loaded = (persistence.load if whole else persistence.load_to_predict)(model)
    _known_targets.check_known(loaded)
    with progress_bar(f"reading {data.name}", quiet) as bar:
        return loaded, table.read(data, header_rows=header_rows, sheet=sheet, progress=bar)


def check_order(model: Path, data: Path) -> None:
    if data.suffix == ".mve" and model.suffix != ".mve":
        raise click.BadParameter(f"the model comes first: {data} {model}", param_hint="'model'")


@command(
    MODEL,
    Argument("output", "ONNX file to write."),
    option(
        "--quantiles",
        "--quantile",
        type=float,
        multiple=True,
        help="Quantile to put out, too, such as 0.05; repeatable.",
    ),
    option(
        "--encode",
        is_flag=True,
        help="Put the encoding of numbers, truth values and categories into the file: an input a "
        "column.",
    ),
    example="mvenet export houses.mve houses.onnx --encode",
)
def export(
    model: Path,
    output: Path,
    quantiles: tuple[float, ...],
    encode: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Write a model as ONNX; tells which columns it takes."""
    import mvenet.onnx
    from mvenet import persistence
    from mvenet._models.predictor import Predictor
    from mvenet.workflow._known import known

    _check_levels(quantiles, "--quantiles")
    check_places([output], [model])
    loaded = persistence.load_to_predict(model)
    last = loaded[-1] if isinstance(loaded, tuple) else loaded
    if not isinstance(last, Predictor):
        loaded = persistence.load(model)  # with the name that the error says
        last = loaded[-1] if hasattr(loaded, "steps") else loaded
    encoder = (
        known(loaded).encoder if encode or last is not loaded or last._takes_frames() else None
    )
    if encode:
        last.encoder_ = encoder
    mvenet.onnx.export(last, output, quantiles=quantiles, encode=encode)
    names = [] if encoder is None else list(map(str, encoder.get_feature_names_out()))
    if encoder is not None and encode:
        names = encoder.named("number", "truth", "category")
    told = "outputs mean, std and quantiles" if quantiles else "outputs mean and std"
    if as_json:
        print_json({"output": str(output), "columns": names})
    elif not quiet:
        given = "an input a column" if encode else "input X (float32)"
        say(f"{output}: {given}, {told}.")
        if names:
            made = (
                "The columns" if encode else "The columns of X, as the model's encoder makes them"
            )
            say(f"{made}: {', '.join(names)}")


@command(MODEL, example="mvenet info houses.mve")
def info(model: Path, as_json: bool, quiet: bool) -> None:
    """Tell what is in a model file, without loading the model; --quiet only checks it."""
    from mvenet import persistence

    facts = persistence.info(model)
    if "card" in facts and not as_json and not quiet:
        printing.print_card(facts)
        facts = {name: facts[name] for name in ("model", "format", "versions", "fingerprint")}
    printing.print_facts(facts, as_json, quiet)
