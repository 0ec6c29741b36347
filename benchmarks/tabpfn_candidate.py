"""TabPFN v2 as a candidate of the automatic search: what share its density earns.

    python benchmarks/league.py install tabpfn
    .venv-peer-tabpfn/bin/python -m pip install .
    .venv-peer-tabpfn/bin/python benchmarks/tabpfn_candidate.py boston concrete --folds 0 1

On the league's folds: TabPFN alone, ``AutoRegressor()`` alone, and with TabPFN among its
candidates, which it then fits once for each of its own folds. A row of tabpfn_candidate.csv each.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import league_methods
import league_tables
import numpy as np
import records
from sklearn.base import BaseEstimator, RegressorMixin

from mvenet import AutoRegressor
from mvenet._automatic.baselines import NAMES

RAW = Path(__file__).with_name("tabpfn_candidate.csv")
FIELDS = ("table", "fold", "method", "crps", "log_score", "rmse", "share", "fit_seconds")


class _WithQuantiles:
    """The league's distributions call quantiles what SciPy calls ppf."""

    def __init__(self, found: Any) -> None:
        self.found, self.ppf = found, found.quantiles
        self.mean, self.crps, self.logpdf = found.mean, found.crps, found.logpdf


class TabPFN(RegressorMixin, BaseEstimator):
    """TabPFN v2 with the interface that a candidate's density needs."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> TabPFN:
        """Keep the rows, which is all that it learns."""
        self.model_ = league_methods.fit_tabpfn(league_tables.Rows(X, y))
        self.seen_: tuple[bytes, Any] = (b"", None)
        return self

    def predict_dist(self, X: np.ndarray) -> Any:
        """Bars, with ``ppf``; of the same rows again, those of before: each takes a minute."""
        rows = np.ascontiguousarray(X).tobytes()
        if rows != self.seen_[0]:
            self.seen_ = rows, league_methods.predict_tabpfn(self.model_, X)
        return _WithQuantiles(self.seen_[1])

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Means."""
        return self.predict_dist(X).mean


def measured(name: str, fold: int) -> Iterator[dict[str, Any]]:
    """The three of them on one fold."""
    table = next(table for table in league_tables.TABLES if table.name == name)
    train, test = league_tables.fold_of(table, fold)
    usual = {"random_state": 1, "n_jobs": 1}
    contestants = {"TabPFN v2": TabPFN(), "mvenet": AutoRegressor(**usual)}
    contestants["both"] = AutoRegressor(**usual, candidates=[*NAMES, TabPFN()])
    for method, model in contestants.items():
        start = time.process_time()
        model.fit(train.X, train.y)
        seconds = time.process_time() - start
        dist = model.predict_dist(test.X)
        share = re.search(r"(\d+)% TabPFN", getattr(model, "summary_", ""))
        error = np.sqrt(np.mean((dist.mean - test.y) ** 2))
        found = (dist.crps(test.y).mean(), dist.logpdf(test.y).mean(), error)
        told = (name, fold, method, *(f"{score:.6g}" for score in found))
        row = dict(zip(FIELDS, (*told, share[1] if share else "", f"{seconds:.1f}"), strict=True))
        print(row, flush=True)
        yield row


def main() -> None:
    """Measure what is not there yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="+", choices=[table.name for table in league_tables.TABLES])
    parser.add_argument("--folds", type=int, nargs="+", default=[0])
    given = parser.parse_args()
    there = {(row["table"], int(row["fold"])) for row in records.read(RAW)}
    for fold in given.folds:
        for name in given.tables:
            if (name, fold) not in there:
                records.add(RAW, FIELDS, measured(name, fold))


if __name__ == "__main__":
    main()
