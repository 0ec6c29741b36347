"""What the commands print: tables and JSON on standard output, signs of life on standard error."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

from mvenet._utils.wording import harmless, readable, with_error

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from mvenet._training.plan import Workload
    from mvenet.cli._demo import Car, Starts, Third
    from mvenet.table import TableEncoder
    from mvenet.workflow import (
        Check,
        Evaluation,
        FittedTable,
        FittedTargets,
        JointEvaluation,
        ModelComparison,
    )

MOST_LINES = 15  # of a table that must fit a screen
MOST_COLUMNS = 60  # that are told one by one


def say(line: str) -> None:
    """Print a line, or several."""
    sys.stdout.write(harmless_lines(line) + "\n")


def harmless_lines(text: str) -> str:
    """Lines in which no name of a file's column steers the terminal."""
    return "\n".join(map(harmless, text.split("\n")))


def screen(stderr: bool = False) -> Console:
    """Where rich draws; nothing that a file says is markup, an emoji, a link or a command."""
    from rich.console import Console  # the one thing that a line of text need not wait for

    class Screen(Console):
        def render_str(self, text: str, **more: Any) -> Text:
            return super().render_str(harmless(text), **more)

    return Screen(markup=False, highlight=False, emoji=False, stderr=stderr)


def titled(title: str, *headings: str, numbers: Sequence[str] = ()) -> Table:
    """An empty table: columns of text, then columns of numbers; perhaps none has a heading."""
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="bold", show_header=bool(headings))
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for heading in numbers:
        table.add_column(heading, justify="right")
    return table


def verbosity(silent: bool) -> int:
    """1 if somebody is watching."""
    return int(not silent and sys.stderr.isatty())


@contextlib.contextmanager
def busy(doing: str, silent: bool) -> Iterator[None]:
    """A sign of life on a terminal, for what cannot be counted."""
    if not verbosity(silent):
        yield
        return
    from rich.markup import escape

    with screen(stderr=True).status(f"{escape(harmless(doing))} …"):
        yield


@contextlib.contextmanager
def progress_bar(doing: str, silent: bool) -> Iterator[Callable[[float], None] | None]:
    """Yield a function of the share that is done, or None if nobody is watching."""
    if not verbosity(silent):
        yield None
        return
    from rich.markup import escape
    from rich.progress import Progress

    with Progress(console=screen(stderr=True), transient=True) as bar:
        task = bar.add_task(escape(harmless(doing)), total=None)
        yield lambda share: bar.update(task, total=1.0, completed=share)


def say_reading(source: str, silent: bool) -> None:
    """Say at once that something happens, where no bar does: imports take a second or more."""
    if not silent and not verbosity(silent):
        say(f"Reading {source}.")
        sys.stdout.flush()


def stdout_bytes() -> BinaryIO:
    """Standard output for a table: UTF-8, whatever the terminal's letters are."""
    sys.stdout.flush()
    return sys.stdout.buffer


def print_json(value: Any) -> None:
    """Print one line of JSON, null where a number is not finite."""
    line = json.dumps(_plain(value), ensure_ascii=False)
    sys.stdout.write("".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in line) + "\n")


def _plain(value: Any) -> Any:
    """What JSON knows: NaN and infinity are not among it."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = dataclasses.asdict(value)
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_facts(facts: dict[str, Any], as_json: bool, quiet: bool) -> None:
    """Names and values, one a line."""
    if as_json:
        print_json(facts)
    elif not quiet:
        from rich.table import Table

        table = Table(show_header=False, box=None)
        for name, value in facts.items():
            nested = isinstance(value, dict | list)
            table.add_row(name, json.dumps(value, ensure_ascii=False) if nested else str(value))
        screen().print(table)


def _card_lines(card: dict[str, Any]) -> dict[str, Any]:
    """The facts of a card, in words."""
    told = dict(card)
    for name in ("rows_left_out", "rows_held_out"):
        if name in told:
            told[name] = ", ".join(_score(key, value) for key, value in told[name].items())
    if "log_scale" in told:
        told["log_scale"] = "yes" if told["log_scale"] else "no"
    return {name.replace("_", " "): value for name, value in told.items()}


def _score(name: str, value: float) -> str:
    if name == "covered_by_90":
        return f"90 % intervals cover {100 * value:.1f} %"
    words = name.replace("_", " ")
    return f"{words.upper() if name in ('rmse', 'crps') else words} {readable(value)}"


def print_card(facts: dict[str, Any]) -> None:
    """A model card: what it predicts, what it was fitted to, how good it is; then its columns."""
    card = dict(facts["card"])
    columns, together = card.pop("columns", []), card.pop("together", None)
    for one in card.pop("targets", []):
        print_facts(_card_lines(one), False, False)
        say("")
    print_facts(_card_lines(card), False, False)
    if together is not None:
        differs = "" if together["same_for_all_rows"] else ", on average: it differs between rows"
        pairs = titled(f"Correlation of errors{differs}", "targets", numbers=("correlation",))
        for pair in together["errors"][:MOST_LINES]:
            pairs.add_row(" and ".join(pair["targets"]), f"{pair['correlation']:.2f}")
        screen().print(pairs)
    table = titled("Columns", "column", "taken for", "range", "remark")
    for column in columns[:MOST_LINES]:
        ends = [column[end] for end in ("low", "high") if end in column]
        shown = (end if isinstance(end, str) else readable(end) for end in ends)
        span = "no to yes" if column["kind"] == "truth" else " to ".join(shown)
        cells = column["name"], column["kind"], span, column["remark"]
        table.add_row(*(harmless(str(cell)) for cell in cells))
    screen().print(table)
    if len(columns) > MOST_LINES:
        say(f"and {len(columns) - MOST_LINES:,} more: --json tells all.")


def evaluation_facts(evaluation: Evaluation | JointEvaluation) -> dict[str, Any]:
    """Scores by name; of several targets, of each and of all together."""
    from mvenet.workflow import JointEvaluation

    if isinstance(evaluation, JointEvaluation):
        together = {
            **evaluation.scores,
            "coverage": {f"{level:g}": share for level, share in evaluation.coverage.items()},
            "coverage_of_separate_90": evaluation.separate,
        }
        each = {name: evaluation_facts(one) for name, one in evaluation.each.items()}
        return {"targets": each, "together": together}
    covered = {f"{level:g}": share for level, share in evaluation.coverage.items()}
    facts = {"rows": len(evaluation.y), "rows_without_target": evaluation.without_target}
    return {**facts, **evaluation.scores, "coverage": covered}


def fit_facts(fitted: FittedTable | FittedTargets) -> dict[str, Any]:
    """All that a fit tells, by name."""
    from mvenet.workflow import model_in_words

    facts = {
        "rows": len(fitted.train),
        "rows_without_target": fitted.without_target,
        "columns": fitted.model.columns_,
        "model": model_in_words(fitted.model).splitlines(),
        "notes": fitted.notes,
        **({"promise": fitted.promise} if fitted.promise else {}),
        "seconds": fitted.seconds,
    }
    evaluation = fitted.evaluation
    return facts | ({} if evaluation is None else {"held_out": evaluation_facts(evaluation)})


def print_columns(
    encoder: TableEncoder, source: str, targets: Sequence[str], rows: int, without: int = 0
) -> None:
    """What each column was taken for."""
    table = titled(f"Columns of {source}", "column", "taken for", "remark")
    columns = encoder.columns_
    shown = list(columns.items())
    if len(shown) > MOST_COLUMNS:  # what has a remark is worth a line
        shown = sorted(shown, key=lambda item: not item[1].remark)[:MOST_LINES]
    for name, column in shown:
        table.add_row(name, column.kind, column.remark)
    if len(shown) < len(columns):
        table.add_row(f"… {len(columns) - len(shown):,} more", "", "--json has all")
    lacking = "without it" if len(targets) == 1 else "that lack one of the targets"
    left_out = f", {without:,} {lacking} left out" if without else ""
    for target in targets:
        table.add_row(target, "target", f"{several_rows(rows)}{left_out}")
    screen().print(table)


def print_expected(work: Workload, search: bool) -> None:
    """How long a fit will take, before it starts."""
    from mvenet._utils.wording import duration

    several = f"{work.networks:,} network{'s' * (work.networks != 1)} to train"
    if search:  # long trainings are left out where short ones show that they do not pay
        hint = "Ctrl-C keeps the best model so far."
        say(f"About {duration(work.seconds)} at most: {several}. {hint}")
    else:
        say(f"About {duration(work.seconds)}: {several}.")


def print_fit(fitted: FittedTable | FittedTargets) -> None:
    """What was done, and how well it went on rows held out."""
    from mvenet.workflow import FittedTargets, JointEvaluation, model_in_words

    say(
        f"Fitted to {several_rows(len(fitted.train))} in {fitted.seconds:.1f} s. "
        f"{model_in_words(fitted.model)}"
    )
    for note in fitted.notes:
        say(f"Note: {note}")
    if isinstance(fitted, FittedTargets) and not len(fitted.test):
        for part in fitted.parts:
            if part.evaluation is not None:
                rows = several_rows(len(part.evaluation.y))
                name = part.model.target_name_
                print_evaluation(part.evaluation, f"{rows} that each fold left out", f"{name}: on ")
        return
    if fitted.evaluation is None:
        say(
            "Not checked, because no rows were held out: use --holdout, or mvenet evaluate with "
            "new rows."
        )
        return
    where = "held out" if len(fitted.test) else "that each fold left out"
    if fitted.promise:
        say(f"What is promised holds for {fitted.promise}.")
    evaluation, where = fitted.evaluation, f"{several_rows(len(fitted.evaluation.y))} {where}"
    if isinstance(evaluation, JointEvaluation):
        print_joint(evaluation, where)
    else:
        print_evaluation(evaluation, where)


def several_rows(n: int) -> str:
    """``1 row``, ``1,234 rows``."""
    return f"{n:,} row{'s' * (n != 1)}"


def print_evaluation(evaluation: Evaluation, where: str, before: str = "On ") -> None:
    """A small honest table."""
    scores = evaluation.scores
    constant = readable(float(evaluation.y.std()))
    table = titled(f"{before}{where}")
    table.add_row("RMSE", readable(scores["rmse"]), f"a constant has {constant}")
    middle = readable(evaluation.middle)
    table.add_row("mean absolute error", readable(scores["mae"]), f"the median has {middle}")
    table.add_row("log-likelihood a row", readable(-scores["nll"]), "higher is better")
    table.add_row("CRPS", readable(scores["crps"]), "lower is better")
    for level in (0.5, 0.9):
        share = evaluation.coverage[level]
        word = evaluation.verdict(level)[0]
        table.add_row(f"{100 * level:.0f} % interval", f"covers {100 * share:.1f} %", word)
    below, above = evaluation.misses
    table.add_row("misses of the 90 %", f"{100 * below:.1f} % below", f"{100 * above:.1f} % above")
    screen().print(table)
    if evaluation.without_target:
        say(f"Note: {evaluation.without_target:,} row(s) without the target left out")


def print_joint(evaluation: JointEvaluation, where: str) -> None:
    """A table for each target, and one for all of them together."""
    for name, one in evaluation.each.items():
        print_evaluation(dataclasses.replace(one, without_target=0), where, f"{name}: on ")
    gain = f"{readable(evaluation.scores['gain'])} more than if targets were independent"
    table = titled(f"All targets together: on {where}")
    table.add_row("log-likelihood a row", readable(-evaluation.scores["nll"]), gain)
    for level, share in evaluation.coverage.items():
        held = f"hold {100 * share:.1f} %"
        word = evaluation.verdict(level)[0]
        table.add_row(f"{100 * level:.0f} % intervals for all at once", held, word)
    apart = f"hold {100 * evaluation.separate:.1f} %"
    table.add_row("90 % intervals of each target", apart, "all of them at once")
    screen().print(table)
    if evaluation.without_target:
        say(f"Note: {evaluation.without_target:,} row(s) without a target left out")


def print_flattered(evaluation: Evaluation) -> None:
    """A word if the intervals hold more than they claim, as they do of rows trained on."""
    if evaluation.verdict(0.9)[0] == "too wide":
        say(
            "Note: a model does better on rows that it was trained on; if some of these are, take "
            "others."
        )


def check_facts(checked: Check) -> dict[str, Any]:
    """All that a check tells, by name."""
    told = {
        "rows": checked.rows,
        "rows_outside": int(checked.outside.sum()),
        "findings": checked.findings,
        "columns": checked.drifts,
    }
    known = checked.evaluation
    return told | ({} if known is None else {"evaluation": evaluation_facts(known)})


def print_check(checked: Check, source: str) -> None:
    """One screen: the columns that changed, the rows outside, and the coverage."""
    changed = [drift for drift in checked.drifts if drift.changed]
    if changed:
        title = f"Columns of {source} that have changed"
        table = titled(title, "column", "moved", "outside", "remark")
        for drift in changed[:MOST_LINES]:
            shares = (f"{100 * share:.0f} %" for share in (drift.moved, drift.outside))
            table.add_row(drift.column, *shares, drift.remark)
        screen().print(table)
        if len(changed) > MOST_LINES:
            say(f"… and {len(changed) - MOST_LINES} more (--json has all)")
    if checked.evaluation is not None:
        print_evaluation(
            checked.evaluation, f"{several_rows(len(checked.evaluation.y))} of {source}"
        )
        print_flattered(checked.evaluation)
    n, every = int(checked.outside.sum()), len(checked.drifts)
    say(
        f"{several_rows(checked.rows)}, {n:,} of them outside what the model has seen; "
        f"{len(changed)} of {every} columns changed."
    )
    if checked.changes:
        say("Changed: look before you trust.")
    elif checked.failure:
        if checked.evaluation is None:
            say(f"Of the targets: {checked.failure}.")
        say("The intervals do not hold: look before you trust.")
    else:
        say("As at the fit.")


def print_cars(thirds: Sequence[Third], cars: Sequence[Car]) -> None:
    """Interval widths that differ and hold, beside one width for all; and three predictions."""
    title = "90 % intervals for the mpg of 392 cars, by folds that left each out"
    headings = ("mvenet's", "holds", "one width for all", "holds")
    table = titled(title, "cars", numbers=headings)
    for t in thirds:
        ours = f"± {t.width:.1f}", f"{100 * t.holds:.0f} %"
        table.add_row(t.cars, *ours, f"± {t.same_width:.1f}", f"{100 * t.same_holds:.0f} %")
    screen().print(table)
    for car in cars:
        say(
            f"{car.weight:,.0f} pounds, {car.year}: {car.mean:.0f} mpg, "
            f"90 % between {car.low:.0f} and {car.high:.0f}"
        )


def print_sine(starts: Sequence[Starts]) -> None:
    """How many starts of each training find the sine."""
    title = "The paper's sine: random starts that find it"
    table = titled(title, "training", numbers=("find it",))
    for each in starts:
        table.add_row(each.training, f"{each.learned} of {each.starts}")
    screen().print(table)


@contextlib.contextmanager
def models_and_folds(silent: bool) -> Iterator[Callable[[str, int], object] | None]:
    """What is said after each model of a fold; nothing unless somebody is watching."""
    if not verbosity(silent):
        yield None
        return
    with screen(stderr=True).status("fold 1 …") as status:
        yield lambda name, fold: status.update(f"fold {fold + 1}: {name} done")


def print_models(found: ModelComparison, title: str) -> None:
    """Scores of several models, the best CRPS first, with their standard errors over the folds."""
    ours = found.mean("crps")[0]
    above, error = found.worse("crps")
    headings = ("CRPS", "behind by", "RMSE", "covers", "s")
    table = titled(title, "model", numbers=headings)
    for i in sorted(range(len(found.names)), key=lambda i: float(found.mean("crps")[i])):
        table.add_row(
            found.names[i],
            _mean_and_error(found, "crps", i),
            f"{100 * above[i] / ours:+.0f} % ± {100 * error[i] / ours:.0f}" if i else "",
            _mean_and_error(found, "rmse", i),
            f"{100 * found.mean('coverage')[i]:.0f} % ± {100 * found.error('coverage')[i]:.0f}",
            f"{found.mean('seconds')[i]:.1f}",
        )
    screen().print(table)
    say(found.conclusion)
    say(
        "\nCRPS and RMSE: lower is better. 90 % intervals should cover 90 %. Behind by: the CRPS\n"
        "above that of AutoRegressor. ± is the standard error over the folds, s the seconds of a\n"
        "fold. AutoRegressor and MVERegressor are mvenet's; the others have the defaults of their\n"
        "libraries. Bayesian ridge, random forest (one width for all rows) and boosted trees\n"
        "(quantiles) are scikit-learn's."
    )
    if found.not_installed:
        packages = " ".join(found.not_installed)
        say(f"Not installed, so not compared: {packages} (pip install {packages}).")


def _mean_and_error(found: ModelComparison, score: str, i: int) -> str:
    return with_error(float(found.mean(score)[i]), float(found.error(score)[i]))
