"""A report on a fitted model: one HTML file that opens offline. Needs jinja2 and matplotlib."""

from __future__ import annotations

import base64
import functools
import io
import os
import platform
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from importlib.resources import files
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from mvenet._columns.cells import as_polars, from_array
from mvenet._utils.atomic import replacing
from mvenet._utils.wording import readable, with_unit
from mvenet.explain import Importance, PartialDependence
from mvenet.predictive import last_step
from mvenet.report import _findings as findings
from mvenet.report import _insight as insight
from mvenet.report import _targets as targets
from mvenet.report import _whatif as whatif
from mvenet.workflow import (
    Evaluation,
    FittedTable,
    FittedTargets,
    JointEvaluation,
    model_in_words,
)
from mvenet.workflow._evaluation import evaluated
from mvenet.workflow._fitting import innermost
from mvenet.workflow._known import TableModel, known
from mvenet.workflow._known_targets import TableModels
from mvenet.workflow._targets import evaluated_together

__all__ = ["render", "write"]

Drawing = Callable[[Any], object]  # onto axes
Progress = Callable[[float], object]

MOST_ODD = 20
MOST_COLUMNS = 60  # that are told one by one, unless there is a remark
MOST_CELLS, MOST_IMPORTANT = 5, 15  # columns of an example, and of the list of those that matter
MOST_PAGES = 8  # targets that have a page of their own: each carries its model
SMALL = (3.5, 2.7)
SIZE = (4.8, 4.1)  # inches: text is readable at the width of a telephone and of half a screen
MOST_BASELINE_ROWS = 20_000  # gradient boosting on more would take longer than the networks


def render(
    model: Any,
    evaluation: Evaluation | JointEvaluation | None,
    *,
    source: str = "",
    fitted: FittedTable | FittedTargets | None = None,
    frame: Any = None,
    unit: str | Sequence[str] = "",
    progress: Progress | None = None,
) -> str:
    """Write a report.

    Parameters
    ----------
    model : estimator
        As made by :func:`mvenet.workflow.fit_table`, or fitted in Python; of a
        ``TorchMVERegressor``, which knows no columns, the report tells less.
    evaluation : Evaluation, JointEvaluation or None
        On rows that were not trained on, as ``workflow.evaluate_predictions`` returns it, or
        ``workflow.evaluate_targets`` of several targets: then a page tells of all of them
        together, and of each. Without one the report tells of the training alone.
    source : str
        Name of the table.
    fitted : FittedTable, FittedTargets or None
        The fit, for baselines and what was done to the rows; None for a model from a file.
    frame : DataFrame or None
        The table that the evaluation is of, if there is no ``fitted``: for the columns that matter,
        rows to look at, and the page to try values on.
    unit : str, or sequence of str
        Of the target, such as "€"; of several targets one for all, or one for each.
    progress : callable or None
        Told the share that is done.

    Returns
    -------
    str
        HTML, complete: style and pictures are in it, and nothing is fetched.
    """
    several = TableModels.of(last_step(model))
    units = [unit] if isinstance(unit, str) else list(unit) or [""]
    told = progress or (lambda share: None)
    if several is None:
        if isinstance(evaluation, JointEvaluation) or isinstance(fitted, FittedTargets):
            raise ValueError("The evaluation is of several targets, and the model has one.")
        part = _Part(model, evaluation, fitted, frame, units[0])
        (section, title), made = part.rendered(source, "", told), datetime.now()
        return _page(section, title, source, made)
    parts = _parts(several, evaluation, fitted, frame, units)
    return _several(several, parts, evaluation, source, told)


@dataclass(frozen=True)
class _Part:
    """What is told of a target."""

    model: Any
    evaluation: Evaluation | None
    fitted: FittedTable | None
    frame: Any
    unit: str

    def rendered(self, source: str, prefix: str, progress: Progress) -> tuple[str, str]:
        """HTML, and the name of the target; ``prefix`` begins all names within the page."""
        model, evaluation, unit = self.model, self.evaluation, self.unit
        content = _content(model, evaluation, source, self.fitted)
        content |= {"unit": unit, "prefix": prefix}
        telling = unit and unit != content["target"]  # not "mpg (mpg)"
        label = _short(content["target"], 30) + (f" ({unit})" if telling else "")
        drawings = _drawings(_networks(model), evaluation, label)
        tidy = _rows(model, evaluation, self.fitted, self.frame)
        if tidy is not None and evaluation is not None:
            content |= _insight(model, evaluation, tidy, unit)
            drawings |= {
                f"curve {d.column}": functools.partial(_curve, d, label)
                for d in content["dependences"]
            }
        content["pictures"] = {}
        for done, (name, draw) in enumerate(drawings.items()):
            size = SMALL if name.startswith("curve ") else SIZE
            content["pictures"][name] = _picture(draw, size)
            progress((done + 1) / len(drawings))
        return _filled("target.html", content, unit), content["target"]


def _parts(
    several: TableModels, evaluation: Any, fitted: Any, frame: Any, units: list[str]
) -> list[_Part]:
    """Of several targets, what is told of each."""
    k = len(several.each)
    if evaluation is not None and not isinstance(evaluation, JointEvaluation):
        raise ValueError(
            "The model has several targets, and the evaluation is of one: use evaluate_targets."
        )
    if len(units) not in (1, k):
        raise ValueError(f"unit has {len(units)} values for {k} targets: give one, or one a target")
    fits = [None] * k if fitted is None else fitted.parts
    alone = [None if fit is None else fit.evaluation for fit in fits]
    if evaluation is not None:
        alone = list(evaluation.each.values())
    models = several.joint.estimators
    every = zip(models, alone, fits, units * (k // len(units)), strict=True)
    return [_Part(m, e, f, frame, u) for m, e, f, u in every]


def _several(
    several: TableModels,
    parts: list[_Part],
    evaluation: Any,
    source: str,
    progress: Progress,
) -> str:
    """A page of several targets: all of them together, then each."""
    shown = parts[:MOST_PAGES]
    sections = []
    for i, part in enumerate(shown):
        step = functools.partial(_share, progress, i, len(shown))
        section, _ = part.rendered(source, f"t{i + 1}-", step)
        sections.append(f'<article id="target-{i + 1}">\n{section}</article>\n')
    content = targets.content(several, evaluation, parts, len(shown))
    content["picture"] = _picture(content.pop("draw"))
    title = ", ".join(several.joint.names)
    whole = _filled("targets.html", content, "") + "".join(sections)
    return _page(whole, _short(title), source, datetime.now())


def _share(progress: Progress, before: int, parts: int, done: float) -> None:
    progress((before + done) / parts)


def _page(content: str, title: str, source: str, made: datetime) -> str:
    """The whole page around what it tells; the script only where there is something to try."""
    script = ""
    if 'what-if-data">' in content:
        script = files("mvenet.report").joinpath("whatif.js").read_text(encoding="utf-8")
    told = {"title": title, "source": source, "made": made.strftime("%Y-%m-%d %H:%M")}
    return _filled("page.html", told, "", content=content, script=script)


def _filled(name: str, told: dict[str, Any], unit: str, **whole: str) -> str:
    """A template with what it tells; what is ``whole`` is HTML already."""
    try:
        from jinja2 import Environment
    except ImportError as error:
        raise ImportError('A report needs jinja2: pip install "mvenet[report]"') from error
    from markupsafe import Markup

    text = files("mvenet.report").joinpath(name).read_text(encoding="utf-8")
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["number"] = readable
    environment.filters["amount"] = lambda v: with_unit(readable(v), unit)
    environment.filters["short"] = lambda column: _short(column, 30)
    environment.filters["percent"] = lambda share: f"{100 * share:.1f}\N{NO-BREAK SPACE}%"
    given = {key: Markup(html) for key, html in whole.items()}
    return environment.from_string(text).render(told | given)


def write(
    model: Any,
    path: str | os.PathLike[str],
    X: Any = None,
    y: ArrayLike | None = None,
    *,
    unit: str | Sequence[str] = "",
    source: str = "",
) -> None:
    """Write a report on a model, and on rows that it was not trained on, as one HTML file.

    Parameters
    ----------
    model : estimator
        Fitted: one of ours, or a pipeline that begins with a ``TableEncoder``.
    path : str or path
        Replaced whole or not at all.
    X : array-like or DataFrame of shape (n, n_features), or None
    y : array-like of shape (n,), or (n, k) of several targets, or None
        What was observed; needed with ``X``.
    unit, source
        As in :func:`render`.
    """
    if (X is None) != (y is None):
        raise ValueError("X and y are rows and what was observed in them: give both, or neither.")
    frame = None
    evaluation: Evaluation | JointEvaluation | None = None
    if X is not None:
        several = TableModels.of(last_step(model))
        table = known(model) if several is None else several.each[0]
        names = [str(name) for name in table.encoder.feature_names_in_]
        frame = as_polars(X) if hasattr(X, "columns") else from_array(np.asarray(X), names)
        observed, rows = np.asarray(y, dtype=np.float64), np.arange(len(frame))
        shape = (len(frame),) if several is None else (len(frame), len(several.each))
        if observed.shape != shape:
            raise ValueError(f"y has shape {observed.shape}, and must have {shape}.")
        if several is None:
            evaluation = evaluated(table, table.encoded(frame), observed, rows)
        else:
            evaluation = evaluated_together(several, frame, observed, rows)
    page = render(model, evaluation, frame=frame, unit=unit, source=source)
    with replacing(path) as fresh:
        fresh.write_text(page, encoding="utf-8")


def _table(model: Any) -> TableModel | None:
    """The model with its columns, if it knows them."""
    try:
        return known(model)
    except ValueError:
        return None


def _networks(model: Any) -> Any:
    """The estimator at the end of a pipeline, or within a calibration, or the model itself."""
    return innermost(last_step(model))


def _content(
    model: Any, evaluation: Evaluation | None, source: str, fitted: FittedTable | None
) -> dict[str, Any]:
    """All that the page tells in words and numbers."""
    networks, table = _networks(model), _table(model)
    target = (table.target if table else "") or "y"
    columns = table.encoder.columns_ if table else {}
    settings = {k: v for k, v in networks.get_params().items() if k not in ("n_jobs", "verbose")}
    content: dict[str, Any] = {
        "target": target,
        "name": _short(target),
        "source": source,
        "columns": columns,
        "remarkable": [(name, column) for name, column in columns.items() if column.remark],
        "most_columns": MOST_COLUMNS,
        "notes": [] if fitted is None else fitted.notes,
        "promise": table.promise if table else "",
        "without_target": 0 if fitted is None else fitted.without_target,
        "in_words": model_in_words(last_step(model)).splitlines(),
        "candidates": _candidates(networks),
        "on_log": bool(getattr(getattr(networks, "model_", None), "log", False)),
        "recognised": findings.recognised(networks, _short(target)),
        "settings": {name: repr(value) for name, value in settings.items()},
        "versions": {
            "Python": platform.python_version(),
            **{name: version(name) for name in ("mvenet", "numpy", "scikit-learn")},
        },
        "fitted": fitted,
        "evaluation": None,
    }
    if evaluation is not None:
        content |= _evaluated(model, evaluation, fitted)
    return content


def _candidates(networks: Any) -> list[tuple[str, float, float, float]]:
    """What a search tried: name, RMSE of rows left out, shares in the mean and in the mixture."""
    results = getattr(networks, "cv_results_", {})
    if not {"name", "rmse", "share", "weight"} <= set(results):
        return []
    columns = (results[name] for name in ("name", "rmse", "share", "weight"))
    return [(str(n), float(r), float(s), float(w)) for n, r, s, w in zip(*columns, strict=True)]


def _short(name: str, most: int = 60) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _evaluated(model: Any, evaluation: Evaluation, fitted: FittedTable | None) -> dict[str, Any]:
    """All that needs rows which were not trained on."""
    y, dist = evaluation.y, evaluation.dist
    n, r2 = len(y), evaluation.scores["r2"]
    odd = findings.odd_rows(y, dist)
    table = _table(model)
    known_promise = table.promise if table else ""
    low, high = dist.interval(findings.ODD).T
    content: dict[str, Any] = {
        "evaluation": evaluation,
        "n": n,
        "held_out": fitted is None or len(fitted.test) > 0,
        "given": fitted is None,  # by whoever knows whether the model was trained on them
        "explained": round(100 * r2) if np.isfinite(r2) else None,
        "typical": float(np.mean(np.abs(y - np.median(y)))),
        "width": float(np.median(np.diff(dist.interval(0.9), axis=1))),
        "trust": [
            (level, share, *evaluation.verdict(level))
            for level, share in evaluation.coverage.items()
        ],
        "odd": [
            {
                "row": int(evaluation.rows[i]) + 1,
                "y": y[i],
                "mean": dist.mean[i],
                "low": low[i],
                "high": high[i],
            }
            for i in odd[:MOST_ODD]
        ],
        "n_odd": len(odd),
        "misses": evaluation.misses,
        # Conformal intervals are made by rows like those of the table: of others they know nothing.
        "calibrating_helps": not (known_promise or evaluation.elsewhere or evaluation.calibrated),
        "elsewhere": evaluation.elsewhere,
        "by": findings.coverage_by(evaluation),
        "at_atoms": evaluation.expected(0.9) if evaluation.expected(0.9) > 0.9 else None,
        "lines": [findings.scores("mvenet", y, dist)],
        "drivers": [],
    }
    if fitted is not None:
        encoder = known(model).encoder
        tidy = encoder.tidy(fitted.evaluated_rows)
        content["drivers"] = findings.drivers(tidy, encoder.columns_, dist.std)[:3]
        content["lines"] += _baselines(known(model), fitted)
    return content


def _rows(
    model: Any, evaluation: Evaluation | None, fitted: FittedTable | None, frame: Any
) -> pl.DataFrame | None:
    """The rows that the evaluation is of, as the model's encoder takes them."""
    table = _table(model)
    if evaluation is None or table is None:
        return None
    encoder = table.encoder
    if fitted is not None:
        return encoder.tidy(fitted.evaluated_rows)
    return None if frame is None else encoder.tidy(frame)[evaluation.rows]


def _insight(model: Any, evaluation: Evaluation, tidy: pl.DataFrame, unit: str) -> dict[str, Any]:
    """Which columns matter and how, rows to look at, thresholds, and the page to try values on."""
    y, dist, rows = evaluation.y, evaluation.dist, evaluation.rows
    found = insight.importances(model, tidy, y)
    names, most = found.columns, max(float(found.crps.max()), 1e-300)
    shown = [n for n, rise in zip(names, found.crps, strict=True) if rise >= 0.01 * most]
    truths = known(model).encoder.named("truth")
    looked_at = insight.examples(tidy, names[:MOST_CELLS], y, dist, rows, truths)
    place = {int(row): i for i, row in enumerate(rows)}
    starts = {
        f"row {example.row}, {word}": place[example.row - 1]
        for word, several in looked_at.items()
        for example in several[:1]
    }
    rest = [name for name in tidy.columns if name not in set(names)]
    data = whatif.payload(model, tidy, [*names, *rest], starts, unit)
    return {
        "importances": _lines(found)[:MOST_IMPORTANT],
        "dependences": insight.dependences(model, tidy, shown or names[:1], truths),
        "examples": looked_at,
        "example_columns": names[:MOST_CELLS],
        "decisions": insight.decisions(y, dist),
        "stand_in": data["stand_in"],
        "rounding": data["rounding"],
        "n_controls": len(data["controls"]),
        "n_columns": tidy.width,
        "what_if": whatif.script_safe(data),
    }


def _lines(found: Importance) -> list[dict[str, Any]]:
    """The importance of each column, as the page tells it: below zero is by chance only."""
    lines = zip(found.columns, found.crps, found.mean, found.std, strict=True)
    most = max(float(found.crps.max()), 1e-300)
    return [
        {
            "column": name,
            "share": max(0.0, float(rise)) / most,
            **{part: max(0.0, float(v)) for part, v in (("all", rise), ("mean", a), ("std", b))},
        }
        for name, rise, a, b in lines
    ]


def _curve(dependence: PartialDependence, target: str, ax: Any) -> None:
    """A small picture of how the prediction depends on a column; the page explains its colours."""
    from mvenet import plots

    label = target.replace("$", r"\$")
    plots.DependenceDisplay(dependence=dependence, y_label=label, explained=False).plot(ax)


def _baselines(model: TableModel, fitted: FittedTable) -> list[findings.Line]:
    """Simpler models on the rows held out; none if there were none, or too many rows."""
    if not len(fitted.test) or len(fitted.train) > MOST_BASELINE_ROWS:
        return []
    X, X_test = (model.encoded(part) for part in (fitted.train, fitted.test))
    y, y_test = (part[model.target].to_numpy() for part in (fitted.train, fitted.test))
    return findings.baselines(X, y, X_test, y_test)


def _drawings(networks: Any, evaluation: Evaluation | None, label: str) -> dict[str, Drawing]:
    """What to draw, by the picture's name; ``label`` is what the target is called there."""
    from mvenet import plots

    drawings: dict[str, Drawing] = {}
    if evaluation is not None:
        given = evaluation.y, evaluation.dist
        label = label.replace("$", r"\$")  # a dollar sign is one, no formula
        drawings = {
            "predicted": lambda ax: plots.PredictionDisplay.from_predictions(
                *given, y_label=label, ax=ax
            ),
            "coverage": lambda ax: _coverage(evaluation, ax),
            **({} if evaluation.by is None else {"by": lambda ax: _coverage_by(evaluation, ax)}),
            "pit": lambda ax: plots.PITDisplay.from_predictions(*given, ax=ax),
            "spread": lambda ax: plots.SpreadDisplay.from_predictions(*given, y_label=label, ax=ax),
        }
    if hasattr(networks, "best_index_"):  # a search over pairs of penalties
        drawings["search"] = lambda ax: plots.SearchDisplay.from_estimator(networks, ax=ax)
    if hasattr(networks, "history_"):  # files of the first searches had none
        drawings["history"] = lambda ax: plots.HistoryDisplay.from_estimator(networks, ax=ax)
    return drawings


def _coverage(evaluation: Evaluation, ax: Any) -> object:
    """Coverage of the distributions' intervals, or of the conformal ones."""
    from mvenet import plots

    if not evaluation.calibrated:
        return plots.CoverageDisplay.from_predictions(evaluation.y, evaluation.dist, ax=ax)
    nominal, observed = (np.array(list(v)) for v in zip(*evaluation.coverage.items(), strict=True))
    display = plots.CoverageDisplay(nominal=nominal, observed=observed, n_rows=len(evaluation.y))
    return display.plot(ax=ax)


def _coverage_by(evaluation: Evaluation, ax: Any) -> object:
    """Coverage by group, the least covered first, or along time."""
    from mvenet import plots

    counted, by = evaluation.coverage_by(), evaluation.by
    if counted is None or by is None:
        return None
    order, name = "group" if by.along else "coverage", _short(by.name, 30).replace("$", r"\$")
    return plots.CoverageByDisplay._of(counted, 0.9, order, 20, name).plot(ax)


def _picture(draw: Drawing, size: tuple[float, float] = SIZE) -> str:
    """An SVG as an address that holds it, so that pictures cannot disturb each other."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        content = _svg(draw, size, letters="path")
    if any("missing from font" in str(warning.message) for warning in caught):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            content = _svg(draw, size, letters="none")  # the reader's browser may have the letters
    return f"data:image/svg+xml;base64,{base64.b64encode(content).decode()}"


def _svg(draw: Drawing, size: tuple[float, float], letters: str) -> bytes:
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with rc_context({"svg.hashsalt": "mvenet", "svg.fonttype": letters}):
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasSVG(figure)
        draw(figure.subplots())
        content = io.BytesIO()
        figure.savefig(content, format="svg", metadata={"Date": None})
    return content.getvalue()
