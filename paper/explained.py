"""What the studies of paper/explain.py say: numbers of one part, and tables of all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import tables
from numpy.typing import NDArray

from mvenet.distributions import Normal

FIXED_COLUMNS = [
    "dataset", "strategy", "fold", "reg_mean", "reg_var", "seed", "epochs", "loglik", "rmse",
]  # fmt: skip
PAIR = ["reg_mean", "reg_var"]
PLACE = ["dataset", "strategy", "fold", "reg_mean", "reg_var", "part"]
FLOORS = (0.05, 0.1, 0.2)  # of the standard deviation of y
PART_COLUMNS = [
    *PLACE, "rows", "loglik", "without_worst", "log_std", "z2", "crps", "rmse",
    *(f"floor_{floor:g}" for floor in FLOORS),
]  # fmt: skip
CLOSE = 0.15
ROW_COLUMNS = [*PLACE, "row", "y", "mean", "std", "loglik"]


def judge(y: NDArray[np.float64], dist: Normal, spread: float) -> tuple[float, ...]:
    """Numbers of one part, in the order of PART_COLUMNS.

    ``log_std`` and ``z2`` (means of log σ and of the squared standardised residual) give the
    log-likelihood after any factor on σ; ``floor_f`` is the log-likelihood with no σ below f times
    the standard deviation of y.
    """
    logpdf = dist.logpdf(y)
    z2 = ((y - dist.mean) / dist.std) ** 2
    floors = [Normal(dist.mean, np.maximum(dist.std, f * spread)).logpdf(y).mean() for f in FLOORS]
    return (
        len(y),
        logpdf.mean(),
        np.delete(logpdf, logpdf.argmin()).mean(),
        np.log(dist.std).mean(),
        z2.mean(),
        dist.crps(y).mean(),
        np.sqrt(np.mean((y - dist.mean) ** 2)),
        *floors,
    )


def report(folder: Path) -> str:
    """Everything that the files tell, as Markdown."""
    lines = [*shorter(folder.with_name("50-epochs")), ""]
    if (folder / "fixed.csv").exists():
        every = pd.read_csv(folder / "fixed.csv")
        fixed = every[every["epochs"] == every["epochs"].max()]
        lines += ["### RMSE (and log-likelihood) of every pair", "", *grid(fixed), ""]
        lines += ["### Pairs that the likelihood cannot tell apart", "", *rivals(fixed), ""]
        lines += ["### Ten starts at one pair", "", *starts(fixed), ""]
        lines += ["### Fewer epochs a stage", "", *epochs(every[every["seed"] == 1]), ""]
    if (folder / "parts.csv").exists():
        parts, rows = (
            pd.read_csv(folder / f"{name}.csv", dtype={"part": str}) for name in ("parts", "rows")
        )
        searched = parts.groupby(PLACE[:3])["reg_var"].transform("nunique") > 1
        lines += ["### Outer folds that inner folds did not foresee", "", *decided(parts, rows), ""]
        parts = parts[searched]
        lines += ["### How close the searches are", "", *margins(parts), ""]
        for (dataset, strategy, fold), part in parts.groupby(PLACE[:3], sort=False):
            if alone(parts, dataset) > 1:
                continue
            where = (rows["dataset"] == dataset) & (rows["strategy"] == strategy)
            lines += [f"### One search: {dataset}, {strategy}, outer fold {fold}", ""]
            same = part[part["reg_mean"] == part["reg_var"]]
            lines += [*choices(part), ""] if same["reg_mean"].nunique() == 5 else []
            lines += [*inner_scores(part), ""]
            lines += [*worst_rows(part, rows[where & (rows["fold"] == fold)]), ""]
    return "\n".join(lines).rstrip("\n")


def shorter(folder: Path) -> list[str]:
    """Protein with fewer epochs a stage: its cells beside the paper's."""
    if not (folder / "protein.csv").exists():
        return []
    results = tables.load(folder)
    lines = [f"### Protein with 50 epochs a stage, outer folds: {results['fold'].nunique()}", ""]
    lines += ["| metric | strategy | equal | paper | separate | paper |"]
    lines += ["| --- | --- | --- | --- | --- | --- |"]
    for metric, (title, _) in tables.METRICS.items():
        both = tables.cells(results, metric, tables.HERE / "published")
        rows = tables.table(both, tables.significance(results, metric))[2:]
        lines += [row.replace("| protein |", f"| {title} |") for row in rows]
    return lines


def rivals(fixed: pd.DataFrame) -> list[str]:
    """Pairs whose log-likelihood on the outer folds cannot be told from that of the best.

    Within two standard errors of it, fold by fold, and within ``CLOSE`` a row.
    """
    lines = [
        "| data set | strategy | choice | mean, variance | log-likelihood | RMSE |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    whole = fixed[fixed["seed"] == 1]
    for (dataset, strategy), study in whole.groupby(["dataset", "strategy"], sort=False):
        equal = study[study["reg_mean"] == study["reg_var"]]
        for choice, part in {"equal": equal, "separate": study}.items():
            if part.groupby(PAIR).ngroups < {"equal": 5, "separate": 25}[choice]:
                continue
            table = part.pivot_table(index="fold", columns=PAIR, values="loglik")
            best = table.mean().idxmax()
            behind = table.rsub(table[best], axis=0)
            close = (behind.mean() <= 2 * behind.sem()) & (behind.mean() <= CLOSE)
            for pair in table.mean()[close | (behind.columns == best)].sort_values().index[::-1]:
                mine = part[(part["reg_mean"] == pair[0]) & (part["reg_var"] == pair[1])]
                shown = f"{plus_minus(mine['loglik'])} | {plus_minus(mine['rmse'])}"
                lines.append(
                    f"| {dataset} | {strategy} | {choice} | {pair[0]:g}, {pair[1]:g} | {shown} |"
                )
    return lines


def grid(fixed: pd.DataFrame) -> list[str]:
    """RMSE of every pair on the outer folds, and its log-likelihood."""
    lines: list[str] = []
    for (dataset, strategy), study in fixed[fixed["seed"] == 1].groupby(PLACE[:2], sort=False):
        means = study.groupby(PAIR)[["rmse", "loglik"]].mean()
        if len(means) < 25:
            continue
        shown = (
            means["rmse"].map("{:.3g}".format) + means["loglik"].map(" ({:.3g})".format)
        ).unstack()
        lines += [
            f"| {dataset}, {strategy}: mean's penalty | "
            + " | ".join(f"variance's {v:g}" for v in shown)
            + " |",
            f"| --- |{' --- |' * shown.shape[1]}",
        ]
        lines += [
            f"| {m:g} | {' | '.join(row)} |"
            for m, row in zip(shown.index, shown.to_numpy(), strict=True)
        ]
        lines.append("")
    return lines[:-1]


def alone(parts: pd.DataFrame, dataset: str) -> int:
    """How many outer folds of a data set were searched."""
    return int(parts.loc[parts["dataset"] == dataset, "fold"].nunique())


def decided(parts: pd.DataFrame, rows: pd.DataFrame) -> list[str]:
    """Outer folds whose worst row lowers the log-likelihood by more than one a row.

    The typical std tells whether it is that row or all of them.
    """
    lines = [
        "| data set | strategy | fold | mean, variance | log-likelihood | without the row | "
        "typical std | worst row | y | mean | std |",
        f"|{' --- |' * 11}",
    ]
    outer = parts[(parts["part"] == "outer") & (parts["without_worst"] > parts["loglik"] + 1)]
    for key, part in outer.groupby(PLACE[:3], sort=False):
        best = part.loc[part["without_worst"].idxmax()]
        there = (rows[PLACE[:5]] == best[PLACE[:5]].to_numpy()).all(axis=1)
        worst = rows[there & (rows["part"] == "outer")]
        row = worst.loc[worst["loglik"].idxmin()]
        lines.append(
            f"| {key[0]} | {key[1]} | {key[2]} | {best['reg_mean']:g}, {best['reg_var']:g} | "
            f"{best['loglik']:.4g} | {best['without_worst']:.4g} | {np.exp(best['log_std']):.3g} | "
            f"{row['row']} | {row['y']:.4g} | {row['mean']:.4g} | {row['std']:.3g} |"
        )
    return lines


def margins(parts: pd.DataFrame) -> list[str]:
    """Inner score of each pair less that of the best, for data sets with several searches."""
    inner = parts[parts["part"] != "outer"]
    lines: list[str] = []
    for (dataset, strategy), study in inner.groupby(PLACE[:2], sort=False):
        if alone(parts, dataset) == 1:
            continue
        scores = {
            name: study.pivot_table(index="fold", columns=PAIR, values=name)
            for name in ("loglik", "without_worst")
        }
        pairs = list(scores["loglik"].columns)
        lines += [
            f"| {dataset}, {strategy}: outer fold | "
            + " | ".join(f"{a:g}, {b:g}" for a, b in pairs)
            + " |",
            f"| --- |{' --- |' * len(pairs)}",
        ]
        for fold in scores["loglik"].index:
            told = (
                f"{scores['loglik'].loc[fold, p]:.3f} ({scores['without_worst'].loc[fold, p]:.3f})"
                for p in pairs
            )
            lines.append(f"| {fold} | {' | '.join(told)} |")
        lines += ["", "Inner score; in brackets without the worst row of each inner fold."]
    return lines


def epochs(every: pd.DataFrame) -> list[str]:
    """The same pairs after fewer epochs."""
    lines = [
        "| data set | strategy | mean, variance | epochs | log-likelihood | RMSE |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for key, study in every.groupby(["dataset", "strategy", *PAIR], sort=False):
        if study["epochs"].nunique() > 1:
            lines += [
                f"| {key[0]} | {key[1]} | {key[2]:g}, {key[3]:g} | {number} | "
                f"{plus_minus(mine['loglik'])} | {plus_minus(mine['rmse'])} |"
                for number, mine in study.groupby("epochs")
            ]
    return lines


def starts(fixed: pd.DataFrame) -> list[str]:
    """How far the random start alone moves a cell: mean over the folds, for each start."""
    lines = [
        "| data set | strategy | mean, variance | RMSE of the cell, lowest to highest | "
        "log-likelihood |",
        "| --- | --- | --- | --- | --- |",
    ]
    for key, study in fixed.groupby(["dataset", "strategy", *PAIR], sort=False):
        if study["seed"].nunique() == 1:
            continue
        cell = study.groupby("seed")[["rmse", "loglik"]].mean()
        low, high = cell.min(), cell.max()
        lines.append(
            f"| {key[0]} | {key[1]} | {key[2]:g}, {key[3]:g} | {low['rmse']:.3g} to "
            f"{high['rmse']:.3g} | {low['loglik']:.3g} to {high['loglik']:.3g} |"
        )
    return lines


def criteria(part: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """For each way to score a search: its inner score and its outer log-likelihood, by pair."""
    inner, outer = part[part["part"] != "outer"], part[part["part"] == "outer"].set_index(PAIR)
    sums = inner.groupby(PAIR)[[c for c in PART_COLUMNS if c not in PLACE]].mean()
    factor2 = inner["z2"].mul(inner["rows"]).groupby([inner[c] for c in PAIR]).sum()
    factor2 /= inner.groupby(PAIR)["rows"].sum()
    scaled = [
        -0.5 * np.log(2 * np.pi * factor2) - table["log_std"] - 0.5 * table["z2"] / factor2
        for table in (sums, outer)
    ]
    scores = {
        "log-likelihood (the paper's rule)": (sums["loglik"], outer["loglik"]),
        "the same without the worst row of each inner fold": (
            sums["without_worst"],
            outer["loglik"],
        ),
        "CRPS": (-sums["crps"], outer["loglik"]),
        "log-likelihood after one factor on σ": tuple(scaled),
    }
    for floor in FLOORS:
        name = f"floor_{floor:g}"
        scores[f"log-likelihood, σ at least {floor:g} of y's"] = (sums[name], outer[name])
    return {
        name: pd.DataFrame({"inner": a, "outer": b, "rmse": outer["rmse"]})
        for name, (a, b) in scores.items()
    }


def choices(part: pd.DataFrame) -> list[str]:
    """What each way to choose a pair would have chosen, and what that gives on the outer fold."""
    lines = [
        "| among | choice by | mean, variance | inner score | outer log-likelihood | outer RMSE |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    equal = part[part["reg_mean"] == part["reg_var"]]
    for among, some in {"equal pairs": equal, "all trained": part}.items():
        for name, table in criteria(some).items():
            pair = table["inner"].idxmax()
            at = table.loc[pair]
            lines.append(
                f"| {among} | {name} | {pair[0]:g}, {pair[1]:g} | {at['inner']:.3f} | "
                f"{at['outer']:.3f} | {at['rmse']:.3g} |"
            )
    return lines


def inner_scores(part: pd.DataFrame) -> list[str]:
    """Log-likelihood of each inner fold at the equal pairs, and without its worst row."""
    equal = part[part["reg_mean"] == part["reg_var"]]
    names = list(dict.fromkeys(equal["part"]))
    lines = [
        f"| equal penalty | {' | '.join(f'inner {n}' if n != 'outer' else n for n in names)} |",
        f"| --- |{' --- |' * len(names)}",
    ]
    for penalty, mine in equal.groupby("reg_mean"):
        told = mine.set_index("part").loc[names]
        pairs = zip(told["loglik"], told["without_worst"], strict=True)
        lines.append(f"| {penalty:g} | {' | '.join(f'{a:.4g} ({b:.4g})' for a, b in pairs)} |")
    return [*lines, "", "In brackets: without the worst row of that fold."]


def worst_rows(part: pd.DataFrame, rows: pd.DataFrame) -> list[str]:
    """The worst row of each equal pair on the inner folds, and those of the best one outside."""
    lines = [
        "| mean, variance | left out by | row | y | mean | std | log-likelihood |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    same = part[part["reg_mean"] == part["reg_var"]]
    chosen = criteria(same)["log-likelihood (the paper's rule)"]["inner"].idxmax()
    mine = (rows["reg_mean"] == chosen[0]) & (rows["reg_var"] == chosen[1])
    outside = rows[mine & (rows["part"] == "outer")]
    equal = rows[(rows["reg_mean"] == rows["reg_var"]) & (rows["part"] != "outer")]
    shown = equal.loc[equal.groupby("reg_mean")["loglik"].idxmin()]
    for r in pd.concat([shown, outside]).itertuples():
        place = "the outer fold" if r.part == "outer" else f"inner fold {r.part}"
        lines.append(
            f"| {r.reg_mean:g}, {r.reg_var:g} | {place} | {r.row} | {r.y:.4g} | {r.mean:.4g} | "
            f"{r.std:.3g} | {r.loglik:.4g} |"
        )
    return lines


def plus_minus(values: pd.Series) -> str:
    """Mean and standard error."""
    return f"{values.mean():.3g} ± {values.sem():.2g}"
