"""What a comparison found: scores by fold and arm, significance, a table and a plot."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from mvenet._utils.wording import with_error

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

METRICS = {"loglik": ("log-likelihood", 1), "rmse": ("RMSE", -1)}  # title, sign of better


@dataclass(frozen=True)
class Comparison:
    """Scores of several arms on the same outer folds.

    ``print`` it to see the table.

    Attributes
    ----------
    results : dict of ndarray
        A row for each fold and arm: ``fold``, ``arm``, ``strategy``, ``regularization``;
        ``loglik``, ``rmse``, ``crps`` and ``coverage`` (share within the central 90 % interval), on
        the rows left out and in units of y; the chosen ``reg_mean``, ``reg_var``, and the
        ``inner_score`` that they were chosen by. An arm whose networks all diverged has ``loglik``
        -inf, ``rmse`` and ``crps`` inf.
    steps : int
        Gradient steps done, those that arms share counted once.
    seconds : float
        Time that the folds took, added up.
    """

    results: dict[str, NDArray[Any]]
    steps: int
    seconds: float

    @property
    def arms(self) -> list[str]:
        """Names of the arms."""
        return list(dict.fromkeys(self.results["arm"].tolist()))

    def to_frame(self) -> pd.DataFrame:
        """``results`` as a DataFrame (needs pandas)."""
        return _frame(self.results)

    def summary(self) -> pd.DataFrame:
        """Mean and standard error of both scores for each arm (needs pandas)."""
        rows: dict[str, list[Any]] = {"arm": self.arms}
        for metric in METRICS:
            moments = [_mean_and_error(self._scores(metric, arm)) for arm in self.arms]
            rows[metric] = [mean for mean, _ in moments]
            rows[f"{metric}_error"] = [error for _, error in moments]
        return _frame(rows)

    def significance(self, level: float = 0.9) -> pd.DataFrame:
        """Two-sided paired t-tests between all arms over the folds (needs pandas).

        Parameters
        ----------
        level : float, default=0.9
            Confidence; the paper's is 90 %.

        Returns
        -------
        DataFrame
            ``metric``, ``arm``, ``other``, ``difference`` (arm minus other), ``standard_error``,
            ``p_value``, and ``better``: the name of the better arm if significant, else empty.
        """
        return _frame(self._tests(level))

    def _scores(self, metric: str, arm: str) -> NDArray[np.float64]:
        scores: NDArray[np.float64] = self.results[metric][self.results["arm"] == arm]
        return scores

    def _tests(self, level: float) -> dict[str, list[Any]]:
        names = ("metric", "arm", "other", "difference", "standard_error", "p_value", "better")
        columns: dict[str, list[Any]] = {name: [] for name in names}
        for metric, (arm, other) in itertools.product(
            METRICS, itertools.combinations(self.arms, 2)
        ):
            mean, error, p = _paired(self._scores(metric, arm), self._scores(metric, other))
            ahead = arm if mean * METRICS[metric][1] > 0 else other
            row = (metric, arm, other, mean, error, p, ahead if p < 1 - level else "")
            for name, value in zip(names, row, strict=True):
                columns[name].append(value)
        return columns

    def __str__(self) -> str:
        arms = self.arms
        tests = self._tests(0.9)
        lines = [["", "arm"]]
        for title, _ in METRICS.values():
            lines[0] += [title, "better than"]
        lines[0] += ["reg_mean", "reg_var"]
        for number, arm in enumerate(arms, 1):
            line = [str(number), arm]
            for metric in METRICS:
                mean, error = _mean_and_error(self._scores(metric, arm))
                line += [with_error(mean, error), ", ".join(_beaten(tests, metric, arm, arms))]
            mine = self.results["arm"] == arm
            line += [_most_frequent(self.results[name][mine]) for name in ("reg_mean", "reg_var")]
            lines.append(line)
        n_folds = len(set(self.results["fold"].tolist()))
        return (
            f"{_aligned(lines)}\n\n"
            f"Mean ± standard error over {n_folds} outer folds; the penalty chosen most often and "
            "how often.\nBetter than: numbers of the arms that it beats significantly (two-sided "
            "paired t-test, 90 %)."
        )

    def plot(self) -> Figure:
        """Draw mean ± standard error of each arm, with the folds as small dots (needs matplotlib).

        Returns
        -------
        matplotlib.figure.Figure
        """
        try:
            from matplotlib.figure import Figure
        except ImportError as missing:
            raise ImportError('plot needs matplotlib: pip install "mvenet[plot]"') from missing
        arms = self.arms
        figure = Figure(figsize=(9, 1.2 + 0.42 * len(arms)), layout="constrained")
        axes = figure.subplots(1, len(METRICS), sharey=True)
        for axis, (metric, (title, sign)) in zip(axes, METRICS.items(), strict=True):
            for row, arm in enumerate(arms):
                scores = self._scores(metric, arm)
                mean, error = _mean_and_error(scores)
                shown = scores[np.isfinite(scores)]
                axis.plot(shown, np.full(len(shown), row), ".", color="#bbbbbb", markersize=5)
                if np.isfinite(mean):
                    axis.errorbar(mean, row, xerr=error, fmt="o", color="#0072b2", capsize=3)
            axis.set_xlabel(f"{title} ({'higher' if sign > 0 else 'lower'} is better)")
            axis.grid(axis="x", color="#e6e6e6")
            axis.spines[["top", "right"]].set_visible(False)
        axes[0].set_yticks(range(len(arms)), arms)
        axes[0].set_ylim(len(arms) - 0.5, -0.5)
        return figure


def _frame(columns: dict[str, Any]) -> pd.DataFrame:
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("A DataFrame needs pandas: pip install pandas") from error
    return pd.DataFrame(columns)


def _mean_and_error(scores: NDArray[np.float64]) -> tuple[float, float]:
    """Mean and its standard error; NaN where a score is infinite or there is only one."""
    if not np.isfinite(scores).all():
        return float(scores.mean()), float("nan")
    error = scores.std(ddof=1) / np.sqrt(len(scores)) if len(scores) > 1 else np.nan
    return float(scores.mean()), float(error)


def _paired(a: NDArray[np.float64], b: NDArray[np.float64]) -> tuple[float, float, float]:
    """Mean difference, its standard error and the p-value of the two-sided paired t-test."""
    if not (np.isfinite(a).all() and np.isfinite(b).all()):  # an arm that diverged: no t-test
        with np.errstate(invalid="ignore"):
            return float(np.mean(a - b)), float("nan"), float("nan")
    mean, error = _mean_and_error(a - b)
    if not error > 0:  # the same in all folds, or a single fold
        return mean, error, 1.0 if mean == 0 else float("nan")
    return mean, error, float(2 * stats.t.sf(abs(mean / error), len(a) - 1))


def _beaten(tests: dict[str, list[Any]], metric: str, arm: str, arms: list[str]) -> list[str]:
    """Numbers of the arms that this one beats."""
    rows = zip(tests["metric"], tests["arm"], tests["other"], tests["better"], strict=True)
    losers = {a if b == arm else b for m, a, b, best in rows if m == metric and best == arm}
    return [str(number) for number, name in enumerate(arms, 1) if name in losers]


def _most_frequent(values: NDArray[np.float64]) -> str:
    """``0.01 (7)``: the value met most often and how often."""
    value, times = Counter(values.tolist()).most_common(1)[0]
    return f"{value:g} ({times})"


def _aligned(lines: list[list[str]]) -> str:
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    rows = ("  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) for line in lines)
    return "\n".join(row.rstrip() for row in rows)
