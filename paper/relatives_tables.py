"""Tables of what relatives.py and relatives_torch.py have trained, with paired tests, as Markdown.

    python paper/relatives_tables.py            print them
    python paper/relatives_tables.py --write    put them into paper/relatives.md

A test is a two-sided paired t-test over the outer folds against the paper's own advice, a warm-up
and separate penalties; its p-values are corrected for the number of arms by Holm's method. The
folds' training rows overlap, so that all of them are a little too sure.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from relatives import DATASETS, OUTER_FOLDS, n_folds
from scipy import stats

HERE = Path(__file__).parent
ARM = ["method", "strategy", "regularization"]
ADVICE = ("nll", "warmup", "separate")
TORCH = ("shared-trunk", "student-t-learned", "skafte", "quality-driven")
METRICS = {"loglik": ("log-likelihood", 1), "crps": ("CRPS", -1), "rmse": ("RMSE", -1)}
START, END = "<!-- tables -->", "<!-- end of tables -->"
LEVEL = 0.1
DRAWS = 2000


def load(folder: Path) -> pd.DataFrame:
    """All folds that are there; of what is PyTorch's, whose penalties it was trained with."""
    frames = []
    for name in DATASETS:
        path, torch = folder / f"{name}.csv", folder / f"{name}_torch.csv"
        frames += [pd.read_csv(path)] if path.exists() else []
        if torch.exists():
            rows = pd.read_csv(torch)
            rows["regularization"] += ", of " + rows["variant"]
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


def missing(results: pd.DataFrame) -> list[str]:
    """What of the study is not trained yet."""
    from relatives import GROUPS

    told = []
    for name in DATASETS:
        wanted = OUTER_FOLDS.get(name, n_folds(name))
        part = results[results["dataset"] == name]
        have = {
            group: min(
                part[part["method"] == arm.split(", ")[0]]["fold"].nunique() for arm in make(1000)
            )
            for group, make in GROUPS.items()
        }
        have |= {method: part[part["method"] == method]["fold"].nunique() for method in TORCH}
        left = [f"{group} {wanted - n}" for group, n in have.items() if n < wanted]
        if left:
            every = not any(have.values())
            told.append(f"- {name}: {'all of it' if every else ', '.join(left)}")
    return told or ["- nothing"]


def document(results: pd.DataFrame) -> str:
    """All tables."""
    lines = []
    sets = [name for name in DATASETS if name in set(results["dataset"])]
    for name in sets:
        part = results[results["dataset"] == name]
        folds = part["fold"].nunique()
        lines += [f"### {name}, {folds} outer folds", "", *scores(part), ""]
        found = intervals(part)
        if found:
            lines += ["Intervals for 90 %, best interval score first:", "", *found]
    lines += ["### Ranking by log-likelihood", "", *ranking(results), ""]
    lines += ["### Outer folds that are missing", "", *missing(results), ""]
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
