"""Turn league/*.csv into the tables of docs/league.md: who is best at what, and by how much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import records
from league_methods import METHODS

US, QUICK, BEFORE = "MVERegressorCV", "MVERegressor", "mvenet 0.1 (before)"
NAMES = tuple(method.name for method in METHODS)
PEERS = tuple(method.name for method in METHODS if not method.ours)
ALL_FOLDS = 11 * 10 + 5 * 3  # eleven tables have fewer than 5,000 rows
Results = dict[tuple[str, str], dict[int, dict[str, float]]]  # (method, table) -> fold -> scores


@dataclass(frozen=True)
class Score:
    """A column of the results: its title, the sign of better and how it is printed."""

    key: str
    title: str
    sign: int
    digits: str


LOGLIK = Score("loglik", "Log-likelihood", 1, ".2f")
CRPS = Score("crps", "CRPS", -1, "#.3g")
RMSE = Score("rmse", "RMSE", -1, "#.3g")

# From other people's random splits (90/10, mostly twenty of them), log-likelihood (RMSE). a: the
# README of ayhamo/Probabilistic_Point_Estimations, not refereed; b: Matsubara 2024; c: Lakshmi-
# narayanan et al. 2017; d: assets of astirn/variational-variance; e: Fantasy98/FDD3412.
PUBLISHED = {
    "boston": ("–", "−2.31 (3.04), Gamma-normal VBEM (d)", "−2.43 (2.94)", "−2.41 (3.28)"),
    "concrete": ("−2.21 (3.86)", "−2.83 (4.15), WGBoost (b)", "−3.04 (5.06)", "−3.06"),
    "energy": ("−0.15 (0.42)", "−0.26 (0.32), XGBoost (a)", "−0.60 (0.46)", "−1.38"),
    "kin8nm": ("1.27 (0.070)", "1.35, natural-EB (e)", "0.49", "1.20"),
    "protein": ("−1.73 (3.53)", "−1.93 (4.37), TabResFlow (a)", "−2.81 (4.33)", "−2.83"),
    "wine_red": ("–", "−0.84 (0.56), XGBoost (a)", "−0.91", "−0.94"),
    "yacht": ("0.73 (0.42)", "−0.16 (0.48), WGBoost (b)", "−0.20 (0.50)", "−1.18"),
}
# RMSE and negative Gaussian log-likelihood as BDE's benchmark publishes them, and its seconds.
PUBLISHED_BDE = {
    "airfoil (BDE)": {
        "BDE": (0.122, -0.913, 240),
        "TabPFN v2": (0.136, -0.934, 9),
        "XGBoost": (0.20, None, 1),
        "CatBoost": (0.239, 0.148, 1),
        "deep ensemble of ten": (0.365, 0.176, 19),
    },
    "bike (BDE)": {
        "BDE": (0.226, -0.732, 2550),
        "TabPFN v2": (0.210, -0.686, 1245),
        "XGBoost": (0.214, None, 2),
        "CatBoost": (0.265, -0.374, 3),
        "deep ensemble of ten": (0.288, -0.455, 39),
    },
}


def read(folder: Path) -> Results:
    """All results, by method and table."""
    results: Results = {}
    for path in sorted(folder.glob("*.csv")):
        for row in records.read(path):
            fold = results.setdefault((row["method"], row["table"]), {})
            numbers = {k: v for k, v in row.items() if k not in ("method", "table", "version")}
            fold[int(row["fold"])] = {key: float(v) for key, v in numbers.items() if v}
    return results


def values(results: Results, method: str, table: str, key: str) -> dict[int, float]:
    """A score of a method, fold by fold."""
    folds = results.get((method, table), {})
    return {fold: scores[key] for fold, scores in folds.items() if key in scores}


def mean_and_error(numbers: Sequence[float]) -> tuple[float, float]:
    """Mean and its standard error; the error of a single number is not known."""
    error = np.std(numbers, ddof=1) / len(numbers) ** 0.5 if len(numbers) > 1 else np.nan
    return float(np.mean(numbers)), float(error)


def number(value: float, digits: str) -> str:
    """A figure with a true minus sign, and no more decimals than it deserves."""
    text = f"{value:.0f}" if abs(value) >= 100 else f"{value:{digits}}"
    return text.rstrip(".").replace("-", "−")


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def score_table(results: Results, tables: Sequence[str], score: Score) -> str:
    """Mean ± standard error over the folds that all methods of a row have; bold: the best."""
    rows = []
    wins = dict.fromkeys(NAMES, 0)
    for table in tables:
        found = {name: values(results, name, table, score.key) for name in NAMES}
        found = {name: of for name, of in found.items() if of}
        common = sorted(set.intersection(*(set(of) for of in found.values()))) if found else []
        if not common:
            continue
        means = {name: mean_and_error([of[fold] for fold in common]) for name, of in found.items()}
        best = max(means, key=lambda name: score.sign * means[name][0])
        wins[best] += 1
        cells = []
        for name in NAMES:
            mean, error = means.get(name, (np.nan, np.nan))
            cell = "–" if np.isnan(mean) else number(mean, score.digits)
            cell = f"**{cell}**" if name == best else cell
            cells.append(cell + ("" if np.isnan(error) else f" ± {number(error, '.2g')}"))
        rows.append([f"{table}, {len(common)} fold{'s'[: len(common) > 1]}", *cells])
    rows.append(["*best on*", *(str(wins[name]) for name in NAMES)])
    return markdown(["", *NAMES], rows)


def difference(results: Results, other: str, table: str, score: Score) -> tuple[float, float, int]:
    """How much better we are than another on the folds of both: mean, its error, folds."""
    ours, theirs = (values(results, name, table, score.key) for name in (US, other))
    common = sorted(ours.keys() & theirs.keys())
    if not common:
        return np.nan, np.nan, 0
    paired = [score.sign * (ours[fold] - theirs[fold]) for fold in common]
    return *mean_and_error(paired), len(common)


def compared(results: Results, other: str, table: str, score: Score) -> str:
    """The difference in words: by how much, in how many standard errors."""
    mean, error, folds = difference(results, other, table, score)
    if not folds:
        return "–"
    sign = "+" if mean >= 0 else ""
    if not error > 0:
        return f"{sign}{number(mean, '.2g')}"
    return f"{sign}{number(mean, '.2g')} ({sign}{number(mean / error, '.1f')} se)"


def verdict(results: Results, tables: Sequence[str], score: Score) -> str:
    """Our search against the best peer and against what it was before; positive is better."""
    rows, won, against, worse = [], 0, 0, []
    for table in tables:
        reach = {peer: difference(results, peer, table, score) for peer in PEERS}
        reach = {peer: found for peer, found in reach.items() if found[2]}
        if not reach:
            continue
        # The peer that leaves us least, on however many folds.
        best = min(reach, key=lambda peer: reach[peer][0])
        against += 1
        won += reach[best][0] > 0
        mean, error, folds = difference(results, BEFORE, table, score)
        if folds > 1 and mean < -2 * error:
            worse.append(table)
        before = compared(results, BEFORE, table, score)
        before += f", {folds} folds" if folds and folds < reach[best][2] else ""
        rows.append([table, best, compared(results, best, table, score), before])
    if not rows:
        return ""
    text = markdown(["", "best peer", f"{US} minus best peer", f"minus {BEFORE}"], rows)
    return (
        f"{text}\n\n{score.title}: {US} is better than every peer on **{won} of {against}** "
        "tables; worse than before by more than two standard errors on "
        f"{', '.join(worse) or 'none'}."
    )


def coverage_table(results: Results, tables: Sequence[str]) -> str:
    """Share of the rows within the central 90 % interval."""
    methods = [name for name in NAMES if name != "XGBoost"]
    rows = []
    for table in tables:
        found = [list(values(results, name, table, "coverage").values()) for name in methods]
        rows.append([table, *(f"{100 * np.mean(of):.1f}" if of else "–" for of in found)])
    return markdown(["90 % covers, in %", *methods], rows)


def seconds_table(results: Results, tables: Sequence[str]) -> str:
    """Median over the folds."""
    rows = []
    for table in tables:
        found = [list(values(results, name, table, "seconds").values()) for name in NAMES]
        rows.append([table, *(number(float(np.median(of)), ".1f") if of else "–" for of in found)])
    return markdown(["seconds", *NAMES], rows)


def published_table(results: Results) -> str:
    """Our folds beside other people's splits."""
    rows = []
    for table, theirs in PUBLISHED.items():
        cells = []
        for name in (US, QUICK, BEFORE):
            loglik, rmse = (
                list(values(results, name, table, k).values()) for k in ("loglik", "rmse")
            )
            pair = (
                "{} ({})".format(
                    *(number(float(np.mean(v)), d) for v, d in ((loglik, ".2f"), (rmse, "#.3g")))
                )
                if loglik
                else "–"
            )
            cells.append(pair)
        rows.append([table, *cells, *theirs])
    others = ("TabPFN v2 (a)", "best other", "NGBoost (b)", "deep ensembles (c)")
    return markdown(["", US, QUICK, BEFORE, *(f"*published:* {name}" for name in others)], rows)


def bde_table(results: Results, table: str) -> str:
    """Airfoil or bike as BDE splits it, published rows first."""
    rows = []
    for name, (rmse, nll, seconds) in PUBLISHED_BDE[table].items():
        gaussian = "–" if nll is None else number(nll, ".3f")
        rows.append([f"*published:* {name}", number(rmse, "#.3g"), gaussian, "–", f"{seconds:,}"])
    for name in NAMES:
        found = results.get((name, table), {}).get(0)
        if found:
            nll, log_score = (
                number(-found[k], ".3f") if k in found else "–"
                for k in ("gaussian_loglik", "loglik")
            )
            cells = [number(found["rmse"], "#.3g"), nll, log_score, f"{found['seconds']:.0f}"]
            rows.append([name, *cells])
    return markdown([table, "RMSE", "Gaussian NLL", "NLL of the whole distribution", "s"], rows)


def progress(results: Results, tables: Sequence[str]) -> str:
    """How much of the league is measured, in a sentence."""
    counts = {name: sum(len(results.get((name, t), ())) for t in tables) for name in NAMES}
    listed = ", ".join(f"{name} {count}" for name, count in counts.items())
    return f"Folds measured so far, of {ALL_FOLDS} (a Gaussian process fits 80 of them): {listed}."


def tables_of_the_page(results: Results, order: Sequence[str]) -> str:
    """All that is measured, as Markdown."""
    measured = {table for _, table in results}
    tables = [name for name in order if name in measured and not name.endswith("(BDE)")]
    parts = [progress(results, tables)]
    for score, better in ((LOGLIK, "higher"), (CRPS, "lower"), (RMSE, "lower")):
        parts += [f"### {score.title} ({better} is better)", score_table(results, tables, score)]
        parts.append(verdict(results, tables, score))
    parts += ["### Coverage", coverage_table(results, tables)]
    parts += ["### Seconds, from a busy machine", seconds_table(results, tables)]
    parts += ["### Beside published figures, from other splits", published_table(results)]
    parts.append("### Airfoil and bike as BDE splits them")
    parts += [bde_table(results, name) for name in PUBLISHED_BDE]
    return "\n\n".join(part for part in parts if part)


def write(page: Path, folder: Path, order: Sequence[str]) -> None:
    """Put the tables between the marks of the page."""
    text = tables_of_the_page(read(folder), order)
    start, mark, rest = page.read_text().partition("<!-- league -->\n")
    _, _, end = rest.partition("<!-- end -->\n")
    page.write_text(f"{start}{mark}{text}\n<!-- end -->\n{end}")
    print(text)
