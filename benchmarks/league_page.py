"""Turn league/*.csv into docs/compare/league.md, its picture, and the short table of the README.

A table's figures are means over the folds that all contestants of its row have; who has too few
of them is left out of that row. We are compared with each peer on the folds that both have,
paired. Where we lose stands first.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import records
from league_methods import METHODS
from league_tables import TABLES, Array

NOW, BEFORE = "mvenet", "mvenet before"
NAMES = tuple(method.name for method in METHODS)
PEERS = tuple(method.name for method in METHODS if not method.ours)
ORDER = tuple(table.name for table in TABLES if not table.name.endswith("(BDE)"))
FOLDS = {table.name: table.n_folds for table in TABLES}
RESAMPLES = 2000
PREDICTED_AT_ONCE = 100  # fewer rows tell the cost of a call, not of a row
ENOUGH = 3  # folds; who has fewer must not reduce the others to these,
MOST = 0.75  # if so many of the contestants have them
FARTHEST = 10.0  # times our CRPS, where the picture ends
Folds = dict[int, dict[str, float]]


@dataclass(frozen=True)
class Score:
    """A column of the results: its title, the sign of better and how it is printed.

    Scores that cannot be negative are compared by ratios, the others by differences.
    """

    key: str
    title: str
    sign: int
    digits: str

    @property
    def ratios(self) -> bool:
        """Whether a ratio of two of them means something."""
        return self.sign < 0


CRPS = Score("crps", "CRPS", -1, "#.3g")
LOG_SCORE = Score("log_score", "Log score", 1, ".2f")
RMSE = Score("rmse", "RMSE", -1, "#.3g")
INTERVAL = Score("interval_score", "Interval score", -1, "#.3g")
SCORES = (CRPS, LOG_SCORE, RMSE, INTERVAL)

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


@dataclass
class Results:
    """All that is measured: scores by method and table and fold, and what failed."""

    scores: dict[tuple[str, str], Folds] = field(default_factory=dict)
    failed: dict[tuple[str, str], dict[int, str]] = field(default_factory=dict)
    versions: dict[str, set[str]] = field(default_factory=dict)

    @property
    def ours(self) -> str:
        """What we are judged by: mvenet as it is, if that is measured."""
        return NOW if any(name == NOW for name, _ in self.scores) else BEFORE

    @property
    def field(self) -> tuple[str, ...]:
        """Whom the summaries compare."""
        return (self.ours, *PEERS)

    def of(self, method: str, table: str, key: str) -> dict[int, float]:
        """A score of a method, fold by fold."""
        folds = self.scores.get((method, table), {})
        return {fold: found[key] for fold, found in folds.items() if key in found}


def read(folder: Path) -> Results:
    """All results. What was measured twice counts as it was measured last."""
    results = Results()
    texts = ("method", "table", "fold", "version", "error", "crps_from", "pit")
    for path in sorted(folder.glob("*.csv")):
        for row in records.read(path):
            place, fold = (row["method"], row["table"]), int(row["fold"])
            if row["error"]:
                results.failed.setdefault(place, {})[fold] = row["error"]
                continue
            results.failed.get(place, {}).pop(fold, None)
            numbers = {key: float(v) for key, v in row.items() if key not in texts and v}
            pit = {f"pit{k}": float(v) for k, v in enumerate(row["pit"].split())}
            results.scores.setdefault(place, {})[fold] = numbers | pit
            results.versions.setdefault(row["method"], set()).add(row["version"])
    return results


def mean_and_error(numbers: Sequence[float]) -> tuple[float, float]:
    """Mean and its standard error; the error of a single number is not known."""
    error = np.std(numbers, ddof=1) / len(numbers) ** 0.5 if len(numbers) > 1 else np.nan
    return float(np.mean(numbers)), float(error)


def number(value: float, digits: str) -> str:
    """A figure with a true minus sign, and no more decimals than it deserves."""
    text = f"{value:.0f}" if abs(value) >= 100 else f"{value:{digits}}"
    return text.rstrip(".").replace("-", "−")


def signed(value: float, digits: str) -> str:
    """A figure with its sign, also if that is plus."""
    return ("+" if value >= 0 else "") + number(value, digits)


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


# Tables of means


def means(
    results: Results, table: str, score: Score, names: Sequence[str]
) -> tuple[dict[str, float], int]:
    """Means over the folds that all have, and how many those are.

    Who has fewer folds than most is left out, up to three: rather sixteen contestants on three
    folds than seventeen on one.
    """
    found = {name: results.of(name, table, score.key) for name in names}
    numbers = [len(of) for of in found.values() if of]
    enough = (k for k in range(2, ENOUGH + 1) if np.mean([n >= k for n in numbers]) >= MOST)
    least = max(enough, default=1) if numbers else 1
    found = {name: of for name, of in found.items() if len(of) >= least}
    common = set.intersection(*(set(of) for of in found.values())) if found else set()
    if found and not common:  # the fold that most have decides who stays
        folds = [fold for of in found.values() for fold in of]
        kept = max(sorted(set(folds)), key=folds.count)
        found = {name: of for name, of in found.items() if kept in of}
        common = set.intersection(*(set(of) for of in found.values()))
    return {name: float(np.mean([of[f] for f in common])) for name, of in found.items()}, len(
        common
    )


def score_table(results: Results, score: Score) -> str:
    """A row a table, a column a contestant; bold: the best."""
    names = [name for name in NAMES if any((name, table) in results.scores for table in ORDER)]
    rows = []
    for table in ORDER:
        found, n_folds = means(results, table, score, names)
        if not found:
            continue
        best = max(found, key=lambda name: score.sign * found[name])
        cells = [number(found[name], score.digits) if name in found else "–" for name in names]
        cells = [
            f"**{cell}**" if name == best else cell for name, cell in zip(names, cells, strict=True)
        ]
        rows.append([f"{table}, {n_folds} fold{'s'[: n_folds > 1]}", *cells])
    return markdown(["", *names], rows)


# We and the others


@dataclass(frozen=True)
class Standing:
    """We and the peer that leaves us least, on one table; positive differences are for us."""

    table: str
    peer: str
    difference: float
    error: float
    folds: int
    ratio: float  # their score over ours

    @property
    def verdict(self) -> str:
        """Best, close (within two standard errors of the best), or worse."""
        if self.difference >= 0:
            return "best"
        return "close" if self.difference > -2 * self.error else "worse"  # NaN: worse


def compared(
    results: Results, other: str, table: str, score: Score, ours: str | None = None
) -> Standing | None:
    """We and one other on the folds that both have."""
    mine = results.of(ours or results.ours, table, score.key)
    theirs = results.of(other, table, score.key)
    common = sorted(mine.keys() & theirs.keys())
    if not common:
        return None
    mean, error = mean_and_error([score.sign * (mine[f] - theirs[f]) for f in common])
    ratio = np.mean([theirs[f] for f in common]) / np.mean([mine[f] for f in common])
    return Standing(table, other, mean, error, len(common), float(ratio))


def standings(results: Results, score: Score) -> list[Standing]:
    """On every table, against the peer that comes out best there, which favours the peers."""
    found = []
    for table in ORDER:
        against = [compared(results, peer, table, score) for peer in PEERS]
        known = [standing for standing in against if standing is not None]
        if known:
            found.append(min(known, key=lambda standing: standing.difference))
    return found


def in_words(standing: Standing | None, score: Score) -> str:
    """By how much, and in how many standard errors."""
    if standing is None:
        return "–"
    text = signed(standing.difference, ".2g")
    if score.ratios:
        text += f", {signed(100 * (standing.ratio - 1), '.1f')} %"
    if standing.error > 0:
        text += f" ({signed(standing.difference / standing.error, '.1f')} se)"
    return text


def losses(results: Results) -> str:
    """Every table and score where a peer is ahead, the clearest first."""
    behind = [
        (standing, score)
        for score in SCORES
        for standing in standings(results, score)
        if standing.verdict != "best"
    ]
    behind.sort(key=lambda pair: (pair[0].verdict != "worse", ORDER.index(pair[0].table)))
    rows = [
        [
            standing.table,
            score.title,
            standing.peer,
            in_words(standing, score),
            f"{standing.folds} fold{'s'[: standing.folds > 1]}",
            "behind" if standing.verdict == "worse" else "within two standard errors",
        ]
        for standing, score in behind
    ]
    if not rows:
        return "On none of the tables, and by no score, is a peer ahead."
    columns = ["table", "score", "best peer", f"{results.ours} minus it", "on", ""]
    return markdown(columns, rows)


def so_far(results: Results) -> str:
    """How much of the league there is, and whom the summaries cannot know well."""
    compared_on = [
        table
        for table in ORDER
        if any(compared(results, peer, table, CRPS) is not None for peer in PEERS)
    ]
    thin = [table for table in compared_on if len(results.of(results.ours, table, "crps")) < ENOUGH]
    hours = sum(seconds(results, name) for name in NAMES) / 3600
    told = [
        f"**We and at least one peer are measured on {len(compared_on)} of {len(ORDER)} tables**; "
        f"all that is measured took {hours:.1f} hours of one core."
    ]
    if thin:
        told.append(f"On {', '.join(thin)} there are fewer than three folds of ours.")
    unmeasured = [table for table in ORDER if table not in compared_on]
    if unmeasured:
        told.append(f"Not compared yet: {', '.join(unmeasured)}.")
    on = {peer: sum((peer, table) in results.scores for table in compared_on) for peer in PEERS}
    absent = [peer for peer in PEERS if not on[peer]]
    if absent:
        told.append(f"Not measured: {', '.join(absent)}.")
    few = [f"{peer} ({on[peer]})" for peer in PEERS if 0 < on[peer] < len(compared_on)]
    if few:
        told.append(
            f"On some of the {len(compared_on)} tables only: {', '.join(few)}. Mean ranks and "
            "ratios of these are over other tables than ours; *one against one* is fair to them."
        )
    return "\n".join(textwrap.wrap(" ".join(told), 118, break_on_hyphens=False))


def seconds(results: Results, name: str) -> float:
    """Processor seconds of a contestant, for all that is kept of it."""
    return sum(
        fold["fit_seconds"] + fold.get("predict_us", 0) * fold["test_rows"] / 1e6
        for (other, _), folds in results.scores.items()
        if other == name
        for fold in folds.values()
    )


def counts(results: Results, score: Score) -> tuple[int, int, int]:
    """On how many tables we are best, within two standard errors of the best, worse."""
    verdicts = [standing.verdict for standing in standings(results, score)]
    return verdicts.count("best"), verdicts.count("close"), verdicts.count("worse")


def duels(results: Results) -> str:
    """We and each peer on what both have, so that gaps of other peers do not matter."""
    rows = []
    for peer in PEERS:
        against = [compared(results, peer, table, CRPS) for table in ORDER]
        known = [standing for standing in against if standing is not None]
        if not known:
            continue
        clear = [s for s in known if abs(s.difference) > 2 * s.error]  # not with one fold
        ahead = sum(s.difference > 0 for s in clear)
        rows.append(
            [
                peer,
                f"{len(known)}",
                f"{sum(s.folds for s in known)}",
                f"{len(clear) - ahead}",
                f"{sum(s.difference < 0 for s in known)}",
                f"{ahead}",
                in_figures(np.log([s.ratio for s in known]), np.exp),
            ]
        )
    columns = ["", "tables", "folds", "behind by two se", "behind", "ahead by two se"]
    return markdown([*columns, f"its CRPS over that of {results.ours}"], rows)


# Over tables


def in_figures(gaps: Sequence[float], unit: Callable[[Array], Array] = np.asarray) -> str:
    """A mean over tables with its bootstrap interval (95 %)."""
    mean, low, high = (number(figure, ".2f") for figure in unit(bootstrapped(gaps)))
    return f"{mean} ({low} to {high})"


def bootstrapped(gaps: Sequence[float]) -> Array:
    """Mean, and the ends of 95 % of the means of tables drawn anew."""
    drawn = np.random.default_rng(0).choice(gaps, (RESAMPLES, len(gaps))).mean(axis=1)
    return np.array([np.mean(gaps), *np.quantile(drawn, [0.025, 0.975])])


@dataclass(frozen=True)
class Overall:
    """A contestant over all tables that it has: mean rank, and distance to the best."""

    name: str
    tables: int
    rank: float
    distance: float  # a geometric mean of ratios, or a mean of differences
    low: float
    high: float


def distances(results: Results, score: Score, name: str) -> tuple[list[float], list[float]]:
    """Rank and distance to the best on each table; the log of the ratio where that is one."""
    names = [name if other == results.ours and name == BEFORE else other for other in results.field]
    ranks, gaps = [], []
    for table in ORDER:
        found, _ = means(results, table, score, names)
        if name not in found or len(found) < 2:
            continue
        best = max(found.values(), key=lambda value: score.sign * value)
        better = [score.sign * value > score.sign * found[name] for value in found.values()]
        ranks.append(1.0 + sum(better))
        gaps.append(float(np.log(found[name] / best)) if score.ratios else best - found[name])
    return ranks, gaps


def overall(results: Results, score: Score, name: str) -> Overall | None:
    """With a bootstrap interval over tables (95 %)."""
    ranks, gaps = distances(results, score, name)
    if not gaps:
        return None
    figures = bootstrapped(gaps)
    figures = np.exp(figures) if score.ratios else figures
    return Overall(name, len(gaps), float(np.mean(ranks)), *map(float, figures))


def summary(results: Results, score: Score) -> str:
    """One row a contestant, the best mean rank first; who has few tables has no rank."""
    names = results.field if results.ours == BEFORE else (*results.field, BEFORE)
    found = [overall(results, score, name) for name in names]
    known = sorted((one for one in found if one is not None), key=lambda one: one.rank)
    if not known:
        return ""
    listed = [one for one in known if 2 * one.tables >= max(one.tables for one in known)]
    few = ", ".join(f"{one.name} ({one.tables})" for one in known if one not in listed)
    rows = [
        [
            f"**{one.name}**" if one.name == results.ours else one.name,
            str(one.tables),
            f"{one.rank:.1f}",
            f"{number(one.distance, '.2f')} ({number(one.low, '.2f')} to "
            f"{number(one.high, '.2f')})",
        ]
        for one in listed
    ]
    distance = "ratio to the best" if score.ratios else "below the best, in nats"
    text = markdown(["", "tables", "mean rank", distance], rows)
    return text + (f"\n\nOn too few tables for a rank: {few}." if few else "")


def short(results: Results) -> str:
    """For the README: what we are, score by score, and who is ahead where."""
    rows = []
    for score in SCORES:
        best, close, worse = counts(results, score)
        ranks = [overall(results, score, name) for name in results.field]
        known = sorted((one for one in ranks if one is not None), key=lambda one: one.rank)
        known = [one for one in known if 2 * one.tables >= max(one.tables for one in known)]
        if not known:
            continue
        mine = next((one for one in known if one.name == results.ours), known[0])
        next_best = next((one for one in known if one.name != results.ours), known[0])
        behind = [s.table for s in standings(results, score) if s.verdict == "worse"]
        rows.append(
            [
                score.title,
                f"{worse}" + (f": {', '.join(behind)}" if behind else ""),
                str(close),
                str(best),
                f"{mine.rank:.1f}",
                f"{next_best.name}, {next_best.rank:.1f}",
            ]
        )
    head = ["", "behind on", "within two standard errors", "best on", "mean rank", "next"]
    return markdown(head, rows)


def before_and_after(results: Results) -> str:
    """What has changed since the commit before."""
    if results.ours == BEFORE:
        return ""
    rows = []
    for table in ORDER:
        found = [compared(results, BEFORE, table, score) for score in SCORES]
        if any(found):
            cells = [in_words(one, score) for one, score in zip(found, SCORES, strict=True)]
            rows.append([table, *cells])
    return markdown([f"{NOW} minus {BEFORE}", *(score.title for score in SCORES)], rows)


# Calibration, time and size


def pooled(results: Results, name: str, table: str, key: str) -> list[float]:
    """A column over all folds of a table."""
    return list(results.of(name, table, key).values())


def coverage_table(results: Results) -> str:
    """Share of the rows within the central 90 % interval."""
    names = [name for name in NAMES if any(results.of(name, t, "coverage") for t in ORDER)]
    rows = []
    for table in ORDER:
        found = [pooled(results, name, table, "coverage") for name in names]
        if any(found):
            rows.append([table, *(f"{100 * np.mean(of):.1f}" if of else "–" for of in found)])
    return "On all folds that each has.\n\n" + markdown(["90 % covers, in %", *names], rows)


def calibration(results: Results, name: str) -> tuple[float, float] | None:
    """Mean over tables of |coverage - 90 %| and of the gap of ten PIT bins, folds pooled."""
    gaps, covers = [], []
    for table in ORDER:
        bins = np.array([sum(pooled(results, name, table, f"pit{k}")) for k in range(10)])
        if bins.sum():
            gaps.append(np.mean(np.abs(bins / bins.sum() - 0.1)))
            covers.append(abs(np.mean(pooled(results, name, table, "coverage")) - 0.9))
    return (float(np.mean(covers)), float(np.mean(gaps))) if gaps else None


def times_ours(results: Results, name: str, key: str) -> str:
    """A figure over ours on the folds that both have: the geometric mean over tables."""
    ratios = []
    for table in ORDER:
        theirs, mine = results.of(name, table, key), results.of(results.ours, table, key)
        common = theirs.keys() & mine.keys()
        if common:
            ratios.append(sum(theirs[f] for f in common) / sum(mine[f] for f in common))
    return number(np.exp(np.mean(np.log(ratios))), ".2g") if ratios else "–"


def cost_table(results: Results) -> str:
    """Calibration, seconds, microseconds and megabytes: what a contestant's quality costs."""
    rows = []
    for name in NAMES:
        tables = [table for table in ORDER if (name, table) in results.scores]
        if not tables:
            continue
        known = calibration(results, name)

        def typical(key: str, tables: Sequence[str] = tables, name: str = name) -> float:
            each = [np.median(of) for t in tables if (of := pooled(results, name, t, key))]
            return float(np.median(each)) if each else np.nan

        large = [t for t in tables if max(pooled(results, name, t, "test_rows")) >= 800]
        slow = [max(pooled(results, name, t, "fit_seconds")) for t in tables]
        many = [
            t for t in tables if min(pooled(results, name, t, "test_rows")) >= PREDICTED_AT_ONCE
        ]
        rows.append(
            [
                name,
                str(len(tables)),
                *(("–", "–") if known is None else (f"{100 * k:.1f}" for k in known)),
                times_ours(results, name, "width"),
                times_ours(results, name, "fit_seconds"),
                number(typical("fit_seconds"), "#.2g"),
                number(typical("fit_seconds", large), "#.2g") if large else "–",
                number(max(slow), "#.2g"),
                number(typical("predict_us", many), "#.2g") if many else "–",
                number(typical("model_mb"), "#.2g"),
                number(max(max(pooled(results, name, t, "peak_mb")) for t in tables), ".0f"),
            ]
        )
    head = [
        "",
        "tables",
        "90 % off by, points",
        "PIT gap, points",
        "90 % width, times ours",
        "fit, times ours",
        "fit, s",
        "fit, large tables, s",
        "longest fit, s",
        "µs a predicted row",
        "model, MB",
        "peak, MB",
    ]
    return markdown(head, rows)


# What is missing


def progress(results: Results) -> str:
    """How much of the league is measured, in a table."""
    wanted = sum(FOLDS[table] for table in ORDER)
    rows = []
    for name in NAMES:
        there = {t: results.scores[name, t] for t in ORDER if (name, t) in results.scores}
        if not there and not any(other == name for other, _ in results.failed):
            continue
        shares = [
            f"{table} {min(int(f['training_rows']) for f in folds.values()):,}"
            for table, folds in there.items()
            if any(f["training_rows"] < f["all_rows"] for f in folds.values())
        ]
        failures = [
            f"{table}, {len(errors)} fold{'s'[: len(errors) > 1]}: {list(errors.values())[-1]}"
            for (other, table), errors in results.failed.items()
            if other == name and table in ORDER and errors
        ]
        rows.append(
            [
                name,
                f"{sum(map(len, there.values()))} of {wanted}",
                "; ".join(shares) or "all",
                "; ".join(failures).replace("|", "/") or "none",
                f"{seconds(results, name) / 3600:.2f}",
                ", ".join(sorted(results.versions.get(name, ()))),
            ]
        )
    head = ["", "folds", "training rows, if a share only", "failures", "hours", "version"]
    return markdown(head, rows)


def settings() -> str:
    """What each contestant is run with."""
    return markdown(["method", "settings"], [[one.name, one.settings] for one in METHODS])


# Beside what others have published


def published_table(results: Results) -> str:
    """Our folds beside other people's splits, by the density score that they use."""
    names = [
        name for name in (NOW, BEFORE, "TabPFN v2") if any(n == name for n, _ in results.scores)
    ]
    rows = []
    for table, theirs in PUBLISHED.items():
        if not any((name, table) in results.scores for name in names):
            continue
        cells = []
        for name in names:
            loglik, rmse = (pooled(results, name, table, key) for key in ("loglik", "rmse"))
            pair = (
                f"{number(np.mean(loglik), '.2f')} ({number(np.mean(rmse), '#.3g')})"
                if loglik
                else "–"
            )
            cells.append(pair)
        rows.append([table, *cells, *theirs])
    others = ("TabPFN v2 (a)", "best other", "NGBoost (b)", "deep ensembles (c)")
    note = (
        "Log-likelihood (RMSE), means over the folds that each has. On wine_red, which holds six\n"
        "values, a density means nothing."
    )
    head = ["", *names, *(f"*published:* {name}" for name in others)]
    return note + "\n\n" + markdown(head, rows)


def bde_table(results: Results, table: str) -> str:
    """Airfoil or bike as BDE splits it, published rows first."""
    rows = []
    for name, (rmse, nll, seconds) in PUBLISHED_BDE[table].items():
        gaussian = "–" if nll is None else number(nll, ".3f")
        rows.append([f"*published:* {name}", number(rmse, "#.3g"), gaussian, "–", f"{seconds:,}"])
    for name in NAMES:
        found = results.scores.get((name, table), {}).get(0)
        if found:
            nll, log_score = (
                number(-found[k], ".3f") if k in found else "–"
                for k in ("gaussian_loglik", "loglik")
            )
            seconds = f"{found['fit_seconds']:.0f}"
            rows.append([name, number(found["rmse"], "#.3g"), nll, log_score, seconds])
    return markdown([table, "RMSE", "Gaussian NLL", "NLL of the whole distribution", "s"], rows)


# The page


def text_of_page(results: Results) -> str:
    """All that is measured, as Markdown."""
    parts = [so_far(results), "### Where we lose", losses(results)]
    parts += ["### In short", short(results), "![CRPS of every contestant over ours](league.png)"]
    parts += ["### One against one", duels(results)]
    for score in SCORES:
        parts += [f"### {score.title}, over all tables", summary(results, score)]
    changed = before_and_after(results)
    parts += ["### Before and after", changed] if changed else []
    parts += ["### Calibration, time and size", cost_table(results)]
    parts += ["### What is measured, and what is not", progress(results)]
    for score in SCORES:
        better = "higher" if score.sign > 0 else "lower"
        parts += [f"### {score.title}, table by table ({better} is better)"]
        parts.append(score_table(results, score))
    parts += ["### Coverage", coverage_table(results)]
    parts += ["### Beside published figures, from other splits", published_table(results)]
    split = [table for table in PUBLISHED_BDE if any(t == table for _, t in results.scores)]
    parts += ["### As BDE splits them"] if split else []
    parts += [bde_table(results, table) for table in split]
    return "\n\n".join(part for part in parts if part)


def picture(results: Results, path: Path) -> None:
    """CRPS of every contestant over ours, a dot a table; left of the line is better than we."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    ratios: dict[str, list[float]] = {}
    for peer in (*PEERS, *((BEFORE,) if results.ours == NOW else ())):
        found = [compared(results, peer, table, CRPS) for table in ORDER]
        known = [standing.ratio for standing in found if standing is not None]
        if known:
            ratios[peer] = known
    listed = sorted(ratios, key=lambda name: np.mean(np.log(ratios[name])), reverse=True)
    labels = [
        f"{name} ({len(ratios[name])} table{'s'[: len(ratios[name]) > 1]})" for name in listed
    ]
    figure, axes = pyplot.subplots(figsize=(8, 0.36 * len(listed) + 1.2), layout="constrained")
    for height, name in enumerate(listed):
        values = np.array(ratios[name])
        for shown, marker in ((values <= FARTHEST, "o"), (values > FARTHEST, ">")):
            some = np.minimum(values[shown], FARTHEST)
            colours = np.where(some < 1, "#c2410c", "#64748b")
            dots = {"s": 22, "c": colours, "alpha": 0.6, "lw": 0, "marker": marker}
            axes.scatter(some, np.full(len(some), height), **dots)
        middle = float(np.exp(np.mean(np.log(values))))
        axes.scatter(middle, height, s=70, marker="D", facecolor="none", edgecolor="black")
    axes.axvline(1, color="black", lw=1)
    axes.set_xscale("log")
    low = min(value for of in ratios.values() for value in of)
    high = min(FARTHEST, max(value for of in ratios.values() for value in of))
    ticks = [0.5, 0.7, 1, 1.5, 2, 3, 5, FARTHEST]
    axes.set_xticks([tick for tick in ticks if low / 1.3 <= tick <= high * 1.3])
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.minorticks_off()
    axes.set_yticks(range(len(listed)), labels)
    axes.set_xlabel(
        f"CRPS over that of {results.ours}, a dot a table, orange where it is less\n"
        f"diamond: geometric mean; triangle: more than {FARTHEST:g} times"
    )
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def fill(path: Path, mark: str, text: str) -> bool:
    """Put text between the marks of a page; False if it has none."""
    start, opening, rest = path.read_text().partition(f"<!-- {mark} -->\n")
    _, closing, end = rest.partition(f"<!-- end of {mark} -->\n")
    if not closing:
        return False
    path.write_text(f"{start}{opening}{text}\n{closing}{end}")
    return True


def write(folder: Path, docs: Path, readme: Path) -> None:
    """The page, its picture and the short table."""
    results = read(folder)
    fill(docs / "league.md", "league", text_of_page(results))
    fill(docs / "league.md", "settings", settings())
    fill(readme, "league", short(results))
    picture(results, docs / "league.png")
    print(so_far(results), short(results), losses(results), duels(results), sep="\n\n")
