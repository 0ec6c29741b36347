"""The commands behind ``mvenet``, as typer wants them."""

from __future__ import annotations

import gzip
import sys
import time
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

import mvenet
from mvenet.cli import _printing as printing
from mvenet.cli._printing import busy, console, print_json, progress_bar

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

    from mvenet.workflow import Evaluation

app = typer.Typer(
    help="Regression with honest uncertainty: from a table to predictions that say how sure they "
    "are.",
    add_completion=False,
    pretty_exceptions_enable=False,
)

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
INTERRUPTED = 130  # of fit, also if it kept a model


class Effort(StrEnum):
    """How much a search tries."""

    low = "low"
    medium = "medium"
    high = "high"


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
    debug: Debug = False,
) -> None:
    """Regression with honest uncertainty."""


@app.command(epilog="Example: mvenet fit houses.csv --target price -o houses.mve")
def fit(
    data: Data,
    target: Annotated[str, typer.Option(help="Column to predict.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to save the model.")],
    search: Annotated[
        bool,
        typer.Option(help="Let folds find the best model; --no-search is faster."),
    ] = True,
    members: Annotated[
        int | None, typer.Option(min=1, help="Networks for each fold; without a search in all.")
    ] = None,
    calibrate: Annotated[
        bool, typer.Option("--calibrate", help="Intervals that hold, by rows the folds left out.")
    ] = False,
    log: Annotated[
        bool | None,
        typer.Option(
            "--log/--no-log",
            help="Model the target's logarithm: nothing below zero. Else the evidence decides.",
        ),
    ] = None,
    effort: Annotated[
        Effort | None, typer.Option(help="How much the search tries.", show_default="medium")
    ] = None,
    holdout: Annotated[
        float, typer.Option(min=0, max=0.9, help="Share of the rows kept to check the model by.")
    ] = 0.2,
    report: Report = None,
    dask: Dask = None,
    unit: Unit = "",
    drop: Annotated[list[str] | None, typer.Option(help="Column to leave out; repeatable.")] = None,
    header_rows: HeaderRows = 1,
    seed: Seed = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Fit a model to a table, check it on rows held out, and save it."""
    from mvenet import _distributed, persistence, table, workflow

    _check_places([output, report], [data])
    _check_packages(skops="persist", **({} if report is None else _FOR_REPORTS))
    silent = quiet or as_json
    with progress_bar(f"reading {data.name}", silent) as bar:
        frame = table.read(data, header_rows=header_rows, progress=bar)
    frame = table.without(frame, drop or (), target)
    with _distributed.on_dask(dask):
        fitted = workflow.fit_table(
            frame, target, search=search, members=members, calibrate=calibrate,
            log=log, effort=effort and effort.value, holdout=holdout, seed=seed,
            verbose=printing.verbosity(silent),
            expect=None if silent or dask else lambda work: printing.print_expected(work, search),
        )  # fmt: skip
    persistence.save(fitted.model, output)
    if report is not None:
        _write_report(
            report, fitted.model, fitted.evaluation, data, silent, fitted=fitted, unit=unit
        )
    if as_json:
        print_json({"model": str(output), **printing.fit_facts(fitted)})
    elif not quiet:
        printing.print_fit(fitted, data.name, target)
        console.print(
            f"Model: {output}" + (f"   Report: {report}" if report else ""), soft_wrap=True
        )
    if fitted.stopped:
        sys.exit(INTERRUPTED)  # past the sentence for who is left with nothing


@app.command(epilog="Example: mvenet predict houses.mve new.csv -o out.csv --interval 0.9")
def predict(
    model: Model,
    data: Data,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="CSV, Parquet or Arrow to write; - prints CSV.")
    ],
    interval: Annotated[
        list[float] | None, typer.Option(help="Central interval to add, such as 0.9; repeatable.")
    ] = None,
    quantile: Annotated[
        list[float] | None, typer.Option(help="Quantile to add, such as 0.1; repeatable.")
    ] = None,
    header_rows: HeaderRows = 1,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Add mean, std and, if asked, intervals and quantiles to a table."""
    from mvenet import _atomic

    for levels, name in ((interval, "--interval"), (quantile, "--quantile")):
        for level in levels or ():
            if not 0 < level < 1:
                raise typer.BadParameter(
                    f"{level:g} must lie between 0 and 1, such as 0.9", param_hint=name
                )
    _check_order(model, data)
    if output.suffix.lower() in (".xlsx", ".xls", ".ods", ".json", ".html"):
        raise typer.BadParameter(
            f"{output} would hold no {output.suffix[1:]}: name it .csv, .parquet or .arrow",
            param_hint="--output",
        )
    printed = str(output) == "-"
    if not printed:
        _check_places([output], [data, model])
    with busy(f"loading {model.name}", quiet or as_json or printed):
        from mvenet import _serving, persistence, table

        loaded = persistence.load_to_predict(model)
    _serving.target_of(loaded)
    start = time.perf_counter()

    form = output.with_suffix("").suffix if output.suffix.lower() == ".gz" else output.suffix

    def predict_into(place: BinaryIO | Path) -> int:
        with progress_bar("predicting", quiet or as_json or printed) as bar:
            return _serving.predict_file(
                loaded, data, place, intervals=interval or (), quantiles=quantile or (),
                header_rows=header_rows, form=form.lower(), progress=bar,
            )  # fmt: skip

    if printed:
        predict_into(printing.stdout_bytes())
        return
    opened: Any = gzip.open if output.suffix.lower() == ".gz" else open
    with _atomic.replacing(output) as fresh:
        if form.lower() in table.COLUMNAR:
            rows = predict_into(fresh)
        else:
            with opened(fresh, "wb") as file:
                rows = predict_into(file)
    seconds = time.perf_counter() - start
    if as_json:
        print_json({"output": str(output), "rows": rows, "seconds": seconds})
    elif not quiet:
        console.print(f"{rows:,} rows in {seconds:.1f} s: {output}", soft_wrap=True)


def _model_and_table(model: Path, data: Path, header_rows: int, quiet: bool) -> tuple[Any, Any]:
    """A model that knows its target, and a table to compare it with."""
    with busy(f"loading {model.name}", quiet):
        from mvenet import _serving, persistence, table

        loaded = persistence.load(model)
    _serving.target_of(loaded)
    with progress_bar(f"reading {data.name}", quiet) as bar:
        return loaded, table.read(data, header_rows=header_rows, progress=bar)


@app.command(epilog="Example: mvenet evaluate houses.mve test.csv --report test.html")
def evaluate(
    model: Model,
    data: Data,
    report: Report = None,
    unit: Unit = "",
    header_rows: HeaderRows = 1,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Check a model by a table that has the target, on rows that it was not trained on."""
    _check_order(model, data)
    _check_places([report], [data, model])
    if report is not None:
        _check_packages(**_FOR_REPORTS)
    loaded, frame = _model_and_table(model, data, header_rows, quiet or as_json)
    from mvenet import workflow

    with busy("evaluating", quiet or as_json):
        evaluation = workflow.evaluate(loaded, frame)
    if report is not None:
        _write_report(report, loaded, evaluation, data, quiet or as_json, frame=frame, unit=unit)
    if as_json:
        print_json(printing.evaluation_facts(evaluation))
    elif not quiet:
        printing.print_evaluation(evaluation, f"{len(evaluation.y):,} rows of {data.name}")
        if report is not None:
            console.print(f"Report: {report}", soft_wrap=True)


@app.command(epilog="Example: mvenet check houses.mve new.csv && mvenet predict houses.mve …")
def check(
    model: Model,
    data: Data,
    header_rows: HeaderRows = 1,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Tell whether a new table is like the one of the fit; exit code 3 if it is not."""
    _check_order(model, data)
    loaded, frame = _model_and_table(model, data, header_rows, quiet or as_json)
    from mvenet import workflow

    checked = workflow.check(loaded, frame)
    if as_json:
        print_json(printing.check_facts(checked))
    elif not quiet:
        printing.print_check(checked, data.name)
    if checked.findings:
        raise typer.Exit(CHANGED)


@app.command(epilog="Example: mvenet compare houses.csv --target price --store runs --dry-run")
def compare(
    data: Data,
    target: Annotated[str, typer.Option(help="Column to predict.")],
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
    from mvenet import _distributed, comparison, recipes, table

    silent = quiet or as_json
    with progress_bar(f"reading {data.name}", silent) as bar:
        frame = table.read(data, header_rows=header_rows, progress=bar)
    X, y, _ = table.split_target(frame, target)
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


@app.command(epilog="Example: mvenet export houses.mve houses.onnx")
def export(
    model: Model,
    output: Annotated[Path, typer.Argument(help="ONNX file to write.")],
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write a model's networks as ONNX; tells which columns they take."""
    import mvenet.onnx
    from mvenet import persistence

    _check_places([output], [model])
    loaded = persistence.load(model)
    networks = loaded[-1] if hasattr(loaded, "steps") else loaded
    mvenet.onnx.export(networks, output)
    encoded = networks is not loaded
    names = list(map(str, loaded[:-1].get_feature_names_out())) if encoded else []
    if as_json:
        print_json({"output": str(output), "columns": names})
    elif not quiet:
        console.print(f"{output}: input X (float32), outputs mean and std.", soft_wrap=True)
        if encoded:
            console.print(
                f"The columns of X, as the model's encoder makes them: {', '.join(names)}",
                soft_wrap=True,
            )


@app.command(epilog="Example: mvenet info houses.mve")
def info(model: Model, as_json: AsJson = False, quiet: Quiet = False, debug: Debug = False) -> None:
    """Tell what is in a model file, without loading the model; --quiet only checks it."""
    from mvenet import persistence

    printing.print_facts(persistence.info(model), as_json, quiet)


@app.command(epilog="Example: mvenet doctor")
def doctor(as_json: AsJson = False, quiet: Quiet = False, debug: Debug = False) -> None:
    """Tell versions, instruction set and threads, and measure the speed for five seconds."""
    from mvenet.cli import _doctor

    with busy("measuring the speed", quiet or as_json):
        facts = _doctor.diagnose(seconds=5.0)
    printing.print_facts(facts, as_json, quiet)


@app.command(epilog="Example: mvenet demo --picture sine.png")
def demo(
    picture: Annotated[Path, typer.Option(help="Where to write the picture of the sine.")] = Path(
        "mvenet-demo.png"
    ),
    seed: Seed = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Train on a table of cars and on the paper's sine, print how it went, and draw the sine."""
    if picture.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise typer.BadParameter(
            f"{picture} must end in .png, .svg or .pdf", param_hint="--picture"
        )
    _check_places([picture], [])
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
    drawn = _has("matplotlib")
    if drawn:
        show.draw_sine(models, sample, picture)
    if as_json:
        told = {"cars": thirds, "sine": sine, "seconds": seconds}
        print_json(told | ({"picture": str(picture)} if drawn else {}))
    elif not quiet:
        printing.print_demo("The paper's sine, 1000 fresh rows", sine)
        console.print(
            "Lower RMSE and higher log-likelihood are better; the interval should cover 90 %.\n"
            f"{seconds:.1f} s for all of it.",
        )
        missing = "No picture: it needs matplotlib, pip install 'mvenet[plot]'."
        console.print(f"Picture: {picture}" if drawn else missing, soft_wrap=True)


_FOR_REPORTS = {"jinja2": "report", "matplotlib": "report"}


def _has(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ValueError:  # taken out of sys.modules by hand
        return False


def _check_packages(**extras: str) -> None:
    """Before the work, not after it."""
    for package, extra in extras.items():
        if not _has(package):
            raise ImportError(f"This needs {package}: pip install 'mvenet[{extra}]'")


def _check_order(model: Path, data: Path) -> None:
    if data.suffix == ".mve" and model.suffix != ".mve":
        raise typer.BadParameter(f"the model comes first: {data} {model}", param_hint="'model'")


def _check_places(outputs: list[Path | None], inputs: list[Path]) -> None:
    """Before the work, not after it: each can be written to, and none is read from."""
    from mvenet import _atomic

    given = [_atomic.place_for(place) for place in outputs if place is not None]
    read = {place.resolve() for place in inputs}
    for i, place in enumerate(given):
        if place in read or place in given[:i]:
            raise ValueError(f"{place} is named twice: name another file to write to.")


def _write_report(
    place: Path,
    model: Pipeline,
    evaluation: Evaluation | None,
    data: Path,
    silent: bool,
    **more: Any,
) -> None:
    from mvenet import _atomic, report

    with progress_bar("writing the report", silent) as bar:
        page = report.render(model, evaluation, source=data.name, progress=bar, **more)
    with _atomic.replacing(place) as fresh:
        fresh.write_text(page, encoding="utf-8")
