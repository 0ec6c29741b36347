"""Turn paper/results/*.csv into Tables 1 and 2 beside the paper's own, and say where they agree.

python paper/tables.py               print them
python paper/tables.py --write       put them into paper/README.md as well
"""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from pathlib import Path

import pandas as pd

from mvenet.comparison import Comparison

HERE = Path(__file__).parent
DATASETS = ("boston", "energy", "yacht", "concrete", "wine_red", "kin8nm", "protein")
STRATEGIES = ("no-warmup", "warmup", "warmup-fixed-mean")
METRICS = {"loglik": ("log-likelihood", 1), "rmse": ("RMSE", -1)}  # title, sign of better
KEY = ["dataset", "strategy", "regularization"]


def load(folder: Path) -> pd.DataFrame:
    """All folds of all data sets that are there."""
    files = [folder / f"{name}.csv" for name in DATASETS]
    frames = [pd.read_csv(f).assign(dataset=f.stem) for f in files if f.exists()]
    if not frames:
        sys.exit(f"{folder} holds no results: run paper/run.py first.")
    return pd.concat(frames, ignore_index=True)


def cells(results: pd.DataFrame, metric: str, published: Path) -> pd.DataFrame:
    """One row for each cell of a table: ours, the paper's, and whether they agree."""
    ours = results.groupby(KEY)[metric].agg(["mean", "sem", "count"])
    theirs = pd.read_csv(published / f"{metric}.csv").set_index(KEY)
    both = ours.join(theirs.rename(columns={"mean": "paper", "standard_error": "paper_sem"}))
    joint = (both["sem"] ** 2 + both["paper_sem"] ** 2) ** 0.5
    sign = METRICS[metric][1]
    both["agrees"] = (both["mean"] - both["paper"]).abs() <= 2 * joint
    both["better"] = ["ours" if sign * (a - b) > 0 else "paper" for a, b in
                      zip(both["mean"], both["paper"], strict=True)]  # fmt: skip
    return both.assign(metric=metric).reset_index()


def winner(part: pd.DataFrame, column: str, one: str, other: str, metric: str) -> str:
    """The better of two by a two-sided paired t-test at 90 % over the folds, "" if neither."""
    folds = part.sort_values("fold").rename(columns={column: "arm"})
    pair = folds[folds["arm"].isin([one, other])][["fold", "arm", *METRICS]]
    compared = Comparison({name: pair[name].to_numpy() for name in pair}, steps=0, seconds=0.0)
    tests = compared.significance(level=0.9).set_index("metric")
    return str(tests.at[metric, "better"])


def significance(results: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Equal against separate for each data set and strategy."""
    rows = [
        {"dataset": dataset, "strategy": strategy}
        | {"winner": winner(part, "regularization", "separate", "equal", metric)}
        for (dataset, strategy), part in results.groupby(["dataset", "strategy"])
    ]
    return pd.DataFrame(rows)


def between_strategies(results: pd.DataFrame, one: str, other: str) -> str:
    """How often one strategy beats another, both with separate penalties."""
    separate = results[results["regularization"] == "separate"]
    told = []
    for metric, (title, _) in METRICS.items():
        found = [
            winner(part, "strategy", one, other, metric) for _, part in separate.groupby("dataset")
        ]
        told.append(
            f"{title} {found.count(one)} to {found.count(other)} (of {len(found)} data sets)"
        )
    return f"- {one} against {other}, separate penalties, significant wins: {'; '.join(told)}."


def table(both: pd.DataFrame, winners: pd.DataFrame) -> list[str]:
    """Markdown: a row for each data set and strategy, bold as in the paper."""
    lines = [
        "| data set | strategy | equal | paper | separate | paper |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    indexed = both.set_index(KEY)
    best = winners.set_index(["dataset", "strategy"])["winner"]
    for dataset in [name for name in DATASETS if name in set(both["dataset"])]:
        for strategy in STRATEGIES:
            line = [dataset, strategy]
            for kind in ("equal", "separate"):
                cell = indexed.loc[(dataset, strategy, kind)]
                alone = pd.isna(cell["sem"])
                ours = f"{cell['mean']:.3g}" + ("" if alone else f" ± {cell['sem']:.2g}")
                theirs = f"{cell['paper']:.3g} ± {cell['paper_sem']:.2g}"
                bold = "**" if best[dataset, strategy] == kind else ""
                mark = "" if cell["agrees"] or alone else " ✗"
                line += [f"{bold}{ours}{bold}{mark}"]
                line += [f"**{theirs}**" if cell["significant"] else theirs]
            lines.append(f"| {' | '.join(line)} |")
    return lines


def counts(results: pd.DataFrame, everything: pd.DataFrame) -> list[str]:
    """What the tables add up to; a single fold has no standard error and is not counted."""
    results = results[results.groupby("dataset")["fold"].transform("nunique") > 1]
    alone = int(everything["sem"].isna().sum())
    everything = everything[everything["sem"].notna()]
    lines = [
        f"- **{int(everything['agrees'].sum())} of {len(everything)} cells agree** with the "
        "paper's (difference within two joint standard errors)."
        + (f" {alone} cells of a single fold are not counted here or below." if alone else "")
    ]
    for _, cell in everything[~everything["agrees"]].iterrows():
        lines.append(
            f"  - {cell['dataset']}, {cell['strategy']}, {cell['regularization']}: "
            f"{METRICS[cell['metric']][0]} {cell['mean']:.3g} ± {cell['sem']:.2g} against "
            f"{cell['paper']:.3g} ± {cell['paper_sem']:.2g}; {cell['better']} better."
        )
    for metric, (title, _) in METRICS.items():
        winners = significance(results, metric)["winner"]
        published = everything[everything["metric"] == metric]
        paper = published.groupby("regularization")["significant"].sum()
        lines.append(
            f"- {title}: separate beats equal significantly {(winners == 'separate').sum()} times "
            f"of {len(winners)}, equal separate {(winners == 'equal').sum()} times (the paper: "
            f"{paper['separate']} and {paper['equal']}, of the same)."
        )
    separate = results[results["regularization"] == "separate"]
    lower = separate[separate["reg_var"] < separate["reg_mean"]]
    lines.append(
        f"- Chosen penalties: the variance's is lower than the mean's in {len(lower)} of "
        f"{len(separate)} searches (the paper: in none), equal in "
        f"{(separate['reg_var'] == separate['reg_mean']).sum()}. By strategy: "
        + ", ".join(f"{s} {(lower['strategy'] == s).sum()}" for s in STRATEGIES)
        + "."
    )
    lines.append(between_strategies(results, "warmup", "no-warmup"))
    lines.append(between_strategies(results, "warmup", "warmup-fixed-mean"))
    return lines


def beyond(results: pd.DataFrame, folder: Path) -> list[str]:
    """An early default on the same outer folds, against the paper's best procedure."""
    lines = [
        "| data set | paper's procedure | default | gain | RMSE, paper's | default | s a fit |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    arm = (results["strategy"] == "warmup") & (results["regularization"] == "separate")
    for dataset in DATASETS:
        path = folder / f"{dataset}-default.csv"
        base = results[arm & (results["dataset"] == dataset)].set_index("fold")
        if not path.exists() or base.empty:
            continue
        ours = pd.read_csv(path).set_index("fold").loc[base.index]
        gain = ours["loglik"] - base["loglik"]
        lines.append(
            f"| {dataset} | {base['loglik'].mean():.3f} ± {base['loglik'].sem():.3f} | "
            f"{ours['loglik'].mean():.3f} ± {ours['loglik'].sem():.3f} | "
            f"{gain.mean():+.3f} ± {gain.sem():.3f} | {base['rmse'].mean():.3g} | "
            f"{ours['rmse'].mean():.3g} | {ours['seconds'].iloc[0]:.1f} |"
        )
    return [
        *lines,
        "",
        "The paper's procedure is the warm-up with separate penalties; the gain is in "
        "log-likelihood, fold by fold. Seconds beside whatever else the machine had to do: "
        "`make bench-search` times a fit by itself. The default is that of commit 31a0c5e, close "
        "to `MVERegressorCV()` of today: the networks of all folds, and one factor on their "
        "standard deviations. [The league](../docs/compare/league.md) has `AutoRegressor()`.",
    ]


def figures(path: Path) -> list[str]:
    """What the figures' numbers say about the paper's claims (made by paper/figures.py)."""
    if not path.exists():
        return ["Run paper/figures.py first."]
    verdicts = json.loads(path.read_text())["verdicts"]
    lines = ["| figure | the paper's claim | ours | numbers |", "| --- | --- | --- | --- |"]
    for v in verdicts:
        link = f"[{v['figure']}](figures/{v['figure']}.png)"
        lines.append(f"| {link} | {v['claim']} | **{v['outcome']}** | {v['evidence']} |")
    return lines


def report(folder: Path, published: Path) -> str:
    """Everything, as Markdown."""
    results = load(folder)
    parts: list[str] = []
    all_cells = []
    for number, (metric, (title, _)) in enumerate(METRICS.items(), 1):
        both = cells(results, metric, published)
        all_cells.append(both)
        parts += [f"### Table {number}: {title}", ""]
        parts += [*table(both, significance(results, metric)), ""]
    folds = results.groupby("dataset")["fold"].nunique()
    parts += ["### What they add up to", "", *counts(results, pd.concat(all_cells)), ""]
    parts += [f"Outer folds: {', '.join(f'{d} {folds[d]}' for d in DATASETS if d in folds)}.", ""]
    parts += ["### Beyond the paper", "", *beyond(results, folder)]
    return "\n".join(map(wrapped, parts))


def wrapped(line: str) -> str:
    """A line of prose as several short ones; what belongs to a table cannot be."""
    if line.startswith("|"):
        return line
    bullet = line[: len(line) - len(line.lstrip(" -"))]
    hang = " " * len(bullet)
    return textwrap.fill(line, 118, subsequent_indent=hang, break_on_hyphens=False)


def write(name: str, block: str) -> None:
    """Put a block between its marks in paper/README.md."""
    page = HERE / "README.md"
    start, mark, rest = page.read_text().partition(f"<!-- {name} -->\n")
    _, _, end = rest.partition("<!-- end -->\n")
    page.write_text(f"{start}{mark}{block}\n<!-- end -->\n{end}")


def main() -> None:
    """Print the tables, and put them into the README if asked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--results", type=Path, default=HERE / "results")
    parser.add_argument("--write", action="store_true", help="also into paper/README.md")
    given = parser.parse_args()
    text = report(given.results, HERE / "published")
    print(text)
    if given.write:
        write("tables", text)
        write("figures", "\n".join(figures(HERE / "figures" / "figures.json")))


if __name__ == "__main__":
    main()
