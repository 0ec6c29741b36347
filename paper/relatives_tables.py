"""Tables of what relatives.py and its kin have trained, with paired tests, as Markdown.

    python paper/relatives_tables.py            print them
    python paper/relatives_tables.py --write    put them into paper/relatives.md

A test is a two-sided paired t-test over the outer folds against the paper's own advice, a warm-up
and separate penalties; its p-values are corrected for the number of arms by Holm's method. Those of
the published claims are corrected for the number of claims and sets together. The folds' training
rows overlap, so that all of them are a little too sure.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from pathlib import Path

import numpy as np
import pandas as pd
from relatives import DATASETS, GROUPS, OUTER_FOLDS, n_folds
from scipy import stats

HERE = Path(__file__).parent
Arm = tuple[str, str, str]
ARM = ["method", "strategy", "regularization"]
ADVICE = ("nll", "warmup", "separate")
TORCH: dict[str, tuple[str, ...]] = {  # what exists in PyTorch only, and its penalties
    "shared-trunk": ("equal",),
    "student-t-learned": ("equal", "separate"),
    "skafte": ("equal", "separate", "none"),
    "quality-driven": ("equal", "separate", "none"),
}
METRICS = {"loglik": ("log-likelihood", 1), "crps": ("CRPS", -1), "rmse": ("RMSE", -1)}
MEAN, WIDTHS = "rmse", "loglik"
TRUNK = ("shared-trunk", "warmup", "equal, of nll")


def nll(strategy: str, penalties: str) -> Arm:
    """An arm of the Gaussian likelihood."""
    return "nll", strategy, penalties


# What was published, as (what, by whom, score, the better arm, the other).
CLAIMS: tuple[tuple[str, str, str, Arm, Arm], ...] = (
    ("A warm-up, equal penalties", "the paper", WIDTHS, nll("warmup", "equal"),
     nll("no-warmup", "equal")),
    ("A warm-up, separate penalties", "the paper", WIDTHS, ADVICE, nll("no-warmup", "separate")),
    ("Separate penalties, with a warm-up", "the paper", WIDTHS, ADVICE, nll("warmup", "equal")),
    ("Separate penalties, without one", "the paper", WIDTHS, nll("no-warmup", "separate"),
     nll("no-warmup", "equal")),
    ("Both: the advice against neither", "the paper", WIDTHS, ADVICE, nll("no-warmup", "equal")),
    ("The mean goes on after the warm-up", "the paper", WIDTHS, ADVICE,
     ("fixed-mean", "warmup-fixed-mean", "separate")),
    ("A variance network with data of its own", "the paper", WIDTHS,
     ("own-data", "rows left out", "separate"), ADVICE),
    ("The same: a better CRPS", "the paper", "crps", ("own-data", "rows left out", "separate"),
     ADVICE),
    ("Five networks", "Lakshminarayanan", WIDTHS, ("ensemble", "warmup", "separate"), ADVICE),
    ("Bootstrap beside starts alone", "Heskes", WIDTHS, ("bootstrap", "warmup", "separate"),
     ("ensemble", "warmup", "separate")),
    ("β-NLL: a better mean", "Seitzer", MEAN, ("beta-nll", "no-warmup", "equal"),
     nll("no-warmup", "equal")),
    ("β-NLL: a likelihood no worse", "Seitzer", WIDTHS, ("beta-nll", "no-warmup", "equal"),
     nll("no-warmup", "equal")),
    ("Faithful: a better mean", "Stirn", MEAN, ("faithful", "no-warmup", "equal"),
     nll("no-warmup", "equal")),
    ("Faithful: a likelihood no worse", "Stirn", WIDTHS, ("faithful", "no-warmup", "equal"),
     nll("no-warmup", "equal")),
    ("Natural: a better likelihood", "Immer", WIDTHS, ("natural", "no-warmup", "equal"),
     nll("no-warmup", "equal")),
    ("CRPS as loss: a better CRPS", "Gneiting", "crps", ("crps", "no-warmup", "equal"),
     nll("no-warmup", "equal")),
    ("Student's t: a better likelihood", "Takahashi", WIDTHS, ("student-t", "no-warmup", "equal"),
     nll("no-warmup", "equal")),
    ("The same with a warm-up, separate penalties", "Takahashi", WIDTHS,
     ("student-t", "warmup", "separate"), ADVICE),
    ("Its tails learned by row", "Takahashi", WIDTHS,
     ("student-t-learned", "warmup", "separate, of student-t"),
     ("student-t", "warmup", "separate")),
    ("All four parts: a better likelihood", "Skafte", WIDTHS,
     ("skafte", "alternating", "separate, of student-t"), ADVICE),
    ("The same without penalties", "Skafte", WIDTHS, ("skafte", "alternating", "none"), ADVICE),
    ("Quality-driven: a better interval score", "Pearce", "interval_score",
     ("quality-driven", "warmup", "none"), ("nll", "warmup", "separate, of nll")),
    ("Two networks, not two heads", "the paper", WIDTHS, ADVICE, TRUNK),
)  # fmt: skip
SIGNS = {"loglik": 1, "crps": -1, "rmse": -1, "interval_score": -1}
START, END = "<!-- tables -->", "<!-- end of tables -->"
LEVEL = 0.1
DRAWS = 2000


def load(folder: Path) -> pd.DataFrame:
    """All folds that are there; of what is PyTorch's, whose penalties it was trained with."""
    frames = []
    for name in DATASETS:
        torch = folder / f"{name}_torch.csv"
        engine = (folder / f"{name}{end}.csv" for end in ("", "_own"))
        frames += [pd.read_csv(path) for path in engine if path.exists()]
        if torch.exists():
            rows = pd.read_csv(torch)
            nearest = rows["variant"].fillna("")
            rows["regularization"] += nearest.map(lambda name: f", of {name}" if name else "")
            frames.append(rows)
    if not frames:
        sys.exit(f"{folder} holds no results: run paper/relatives.py first.")
    return pd.concat(frames, ignore_index=True)


def pivot(rows: pd.DataFrame, metric: str) -> pd.DataFrame:
    """A row a fold, a column an arm; only arms that have all of the data set's folds."""
    wide = rows.pivot_table(index="fold", columns=ARM, values=metric, dropna=False)
    return wide.dropna(axis="columns", how="any")


def p_values(wide: pd.DataFrame) -> pd.Series:
    """Of each arm against the paper's advice, after Holm's correction."""
    if ADVICE not in wide or len(wide) < 2:
        return pd.Series(np.nan, index=wide.columns)
    others = [arm for arm in wide if arm != ADVICE]
    found = [stats.ttest_rel(wide[arm], wide[ADVICE]).pvalue for arm in others]
    return pd.Series(holm(found), index=others)


def holm(p: list[float]) -> list[float]:
    """Holm's correction: the k-th smallest of m times m - k, never below the one before it."""
    values = np.array(p)
    order = np.argsort(values)
    steps = values[order] * np.arange(len(values), 0, -1)
    out = np.empty(len(values))
    out[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return out.tolist()


def claims(results: pd.DataFrame) -> list[str]:
    """Each published claim on each set: how much better the one is than the other, and tests."""
    sets = [name for name in DATASETS if name in set(results["dataset"])]
    wides = {
        (name, metric): pivot(results[results["dataset"] == name], metric)
        for name in sets
        for metric in SIGNS
        if metric in results
    }
    found: dict[tuple[int, str], tuple[float, float]] = {}
    for number, (_, _, metric, one, other) in enumerate(CLAIMS):
        for name in sets:
            wide = wides.get((name, metric), pd.DataFrame())
            if one in wide and other in wide and len(wide) > 1:
                gain = SIGNS[metric] * (wide[one] - wide[other])
                relative = 1.0 if metric == "loglik" else 100 / wide[other].mean()
                p = stats.ttest_rel(wide[one], wide[other]).pvalue
                found[number, name] = gain.mean() * relative, p
    corrected = dict(zip(found, holm([p for _, p in found.values()]), strict=True))
    names = {"loglik": "log-likelihood", "crps": "CRPS, %", "rmse": "RMSE, %",
             "interval_score": "interval score, %"}  # fmt: skip
    lines = [
        f"| what is better | said by | score | {' | '.join(sets)} |",
        f"| {' | '.join(['---'] * (3 + len(sets)))} |",
    ]
    for number, (what, source, metric, *_) in enumerate(CLAIMS):
        cells = []
        for name in sets:
            gain, _ = found.get((number, name), (np.nan, np.nan))
            mark = ""
            if corrected.get((number, name), 1.0) < LEVEL:
                mark = " ▲" if gain > 0 else " ▼"
            digits = ".2f" if metric == "loglik" else ".0f"
            cells.append("" if np.isnan(gain) else f"{gain:+{digits}}{mark}")
        lines.append(f"| {' | '.join([what, source, names[metric], *cells])} |")
    return lines


def overview(results: pd.DataFrame) -> list[str]:
    """Of each arm, how much better its likelihood is on each set than that of the advice.

    The means are those of the sets that all of the engine's methods are trained on: of the
    likelihood, of CRPS and RMSE in per cent of the advice's, and of the coverage.
    """
    gains, marks, others = {}, {}, {}
    for name in (name for name in DATASETS if name in set(results["dataset"])):
        part = results[results["dataset"] == name]
        wide = pivot(part, "loglik")
        if ADVICE not in wide:
            continue
        gains[name] = wide.sub(wide[ADVICE], axis="index").mean()
        p = p_values(wide)
        marks[name] = {
            arm: (" ▲" if gains[name][arm] > 0 else " ▼") for arm in p.index if p[arm] < LEVEL
        }
        for metric in ("crps", "rmse", "coverage"):
            values = pivot(part, metric).mean()
            usual = values[ADVICE] if metric != "coverage" else 1.0
            others[name, metric] = 100 * (values / usual - (metric != "coverage"))
    table = pd.DataFrame(gains)
    whole = [name for name in finished(results) if name in gains] or list(gains)
    means = table[whole].dropna().mean(axis="columns")
    beside = {
        metric: pd.DataFrame({name: others[name, metric] for name in whole}).mean(axis="columns")
        for metric in ("crps", "rmse", "coverage")
    }
    order = means.sort_values(ascending=False, kind="stable").index
    arms = [*order, *(arm for arm in table.index if arm not in set(order))]
    lines = [
        f"| method | strategy | penalties | {' | '.join(gains)} "
        "| mean | CRPS, % | RMSE, % | within 90 % |",
        f"| {' | '.join(['---'] * (7 + len(gains)))} |",
    ]
    for arm in arms:
        row = table.loc[[arm]].iloc[0]
        cells = [
            "" if np.isnan(row[name]) else f"{row[name]:+.2f}{marks[name].get(arm, '')}"
            for name in gains
        ]
        last = ["", "", "", ""]
        if arm in means:
            crps, rmse, covered = (beside[m][arm] for m in ("crps", "rmse", "coverage"))
            last = [f"{means[arm]:+.2f}", f"{crps:+.0f}", f"{rmse:+.0f}", f"{covered:.0f}%"]
        lines.append(f"| {' | '.join([*arm, *cells, *last])} |")
    return lines


def hours(results: pd.DataFrame) -> str:
    """Time of all folds: of the engine the clock's, of PyTorch the processor's."""
    torch = results["method"].isin(TORCH)
    folds = results[~torch].drop_duplicates(["dataset", "fold", "seconds"])  # of a group together
    engine, own = (part["seconds"].sum() / 3600 for part in (folds, results[torch]))
    return (
        f"All this took {engine:.1f} hours by the clock (engine, beside other work on two cores) "
        f"and {own:.1f} hours of one core (PyTorch)."
    )


def cell(values: pd.Series) -> str:
    """Mean ± standard error."""
    if not np.isfinite(values).all():
        return f"{values.mean():.3g}"
    return f"{values.mean():.3g} ± {values.sem():.2g}"


def scores(rows: pd.DataFrame) -> list[str]:
    """The table of one data set, best log-likelihood first."""
    wides = {metric: pivot(rows, metric) for metric in METRICS}
    tests = {metric: p_values(wide) for metric, wide in wides.items()}
    covered = pivot(rows, "coverage")
    lines = [
        "| method | strategy | penalties | log-likelihood | CRPS | RMSE | within 90 % |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for arm in wides["loglik"].mean().sort_values(ascending=False).index:
        line = list(arm)
        for metric, (_, sign) in METRICS.items():
            text, p = cell(wides[metric][arm]), tests[metric].get(arm, np.nan)
            if p < LEVEL:
                ahead = sign * (wides[metric][arm].mean() - wides[metric][ADVICE].mean()) > 0
                text += " ▲" if ahead else " ▼"
            line.append(text)
        lines.append(f"| {' | '.join([*line, f'{covered[arm].mean():.0%}'])} |")
    return lines


def intervals(rows: pd.DataFrame) -> list[str]:
    """Widths and interval scores of what has no density, and of its neighbours."""
    if "interval_score" not in rows or rows["interval_score"].isna().all():
        return []
    wide, score = (pivot(rows, name) for name in ("width", "interval_score"))
    covered = pivot(rows, "coverage")
    if score.shape[1] < 2:  # nothing beside the paper's advice yet
        return []
    lines = [
        "| method | strategy | penalties | interval score | mean width | within 90 % |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for arm in score.mean().sort_values().index:
        last = f"{covered[arm].mean():.0%}"
        lines.append(f"| {' | '.join([*arm, cell(score[arm]), cell(wide[arm]), last])} |")
    return [*lines, ""]


def ranking(results: pd.DataFrame, metric: str = "loglik") -> list[str]:
    """Mean rank over the folds of all data sets that an arm shares, and its 90 % interval.

    The interval is that of data sets' folds drawn anew with replacement, each set weighing as much.
    """
    sign = METRICS[metric][1]
    wides = {name: pivot(part, metric) for name, part in results.groupby("dataset")}
    shared = set.intersection(*(set(wide.columns) for wide in wides.values()))
    ranks = [
        (-sign * wide[sorted(shared)]).rank(axis="columns").to_numpy() for wide in wides.values()
    ]
    random = np.random.default_rng(0)
    drawn = np.array([
        np.mean([part[random.integers(len(part), size=len(part))].mean(axis=0) for part in ranks],
                axis=0)
        for _ in range(DRAWS)
    ])  # fmt: skip
    mean = np.mean([part.mean(axis=0) for part in ranks], axis=0)
    low, high = np.quantile(drawn, [0.05, 0.95], axis=0)
    names = sorted(shared)
    lines = [
        "| method | strategy | penalties | mean rank | 90 % interval |",
        "| --- | --- | --- | --- | --- |",
    ]
    for i in np.argsort(mean):
        place = f"{mean[i]:.1f} | {low[i]:.1f} to {high[i]:.1f}"
        lines.append(f"| {' | '.join(names[i])} | {place} |")
    return lines


def trained(part: pd.DataFrame) -> dict[str, int]:
    """Outer folds of one set that each group of the engine's methods has."""
    folds = part.groupby("method")["fold"].nunique()
    return {
        group: min(folds.get(arm.split(", ")[0], 0) for arm in make(1000))
        for group, make in GROUPS.items()
    }


def finished(results: pd.DataFrame) -> list[str]:
    """Sets that all of the engine's methods are trained on."""
    return [
        name
        for name in DATASETS
        if min(trained(results[results["dataset"] == name]).values()) == wanted(name)
    ]


def wanted(name: str) -> int:
    """Outer folds of a set."""
    return OUTER_FOLDS.get(name, n_folds(name))


def missing(results: pd.DataFrame) -> list[str]:
    """What of the study is not trained yet."""
    told = []
    for name in DATASETS:
        part = results[results["dataset"] == name]
        have = trained(part)
        have["own-data"] = part[part["method"] == "own-data"]["fold"].nunique()
        kinds = part["regularization"].str.split(",").str[0]
        for method, penalties in TORCH.items():
            own = part["method"] == method
            counts = {kind: part[own & (kinds == kind)]["fold"].nunique() for kind in penalties}
            same = len(set(counts.values())) == 1
            have |= {method if same else f"{method} ({kind})": n for kind, n in counts.items()}
        left = [f"{group} {wanted(name) - n}" for group, n in have.items() if n < wanted(name)]
        if left:
            complete = [group for group, n in have.items() if n >= wanted(name)]
            if not any(have.values()):
                left = ["all of it"]
            elif len(complete) < 3 and len(left) + len(complete) == len(have):
                begun = [f"{group} {n}" for group, n in have.items() if n]
                left = [f"all of it but {', '.join(begun)}"]
            line = f"- {name}: {', '.join(left)}"
            told.append(textwrap.fill(line, 118, subsequent_indent="  ", break_on_hyphens=False))
    return told or ["- nothing"]


def document(results: pd.DataFrame) -> str:
    """All tables; of sets that lack the paper's advice only what is missing."""
    begun = [
        name for name in DATASETS if ADVICE in pivot(results[results["dataset"] == name], "loglik")
    ]
    done, every = finished(results), results
    results = results[results["dataset"].isin(begun)]
    lines = ["### Published claims", "", *claims(results), ""]
    lines += ["### Log-likelihood beside the paper's advice", "", *overview(results), ""]
    ranked = results[results["dataset"].isin(done)]
    if done:
        lines += [f"### Ranking by log-likelihood on {', '.join(done)}", "", *ranking(ranked), ""]
    for name in begun:
        part = results[results["dataset"] == name]
        folds = part["fold"].nunique()
        lines += [f"### {name}, {folds} outer folds", "", *scores(part), ""]
        found = intervals(part)
        if found:
            lines += ["Intervals for 90 %, best interval score first:", "", *found]
    lines += ["### Outer folds that are missing", "", *missing(every), "", hours(every), ""]
    return "\n".join(lines)


def main() -> None:
    """Print the tables, and write them if asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="into paper/relatives.md, too")
    parser.add_argument("--results", type=Path, default=HERE / "results" / "relatives")
    given = parser.parse_args()
    text = document(load(given.results))
    print(text)
    if given.write:
        page = HERE / "relatives.md"
        before, rest = page.read_text(encoding="utf-8").split(START)
        after = rest.split(END)[1]
        page.write_text(f"{before}{START}\n\n{text}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
