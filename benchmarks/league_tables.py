"""The tables of the league and their folds.

A table is a file NAME.csv, header first and target last, in one of the folders that MVENET_DATA
and MVENET_TABLES name (several of them with a colon between). Rows of most tables are independent
and dealt at random; where they belong together, whole groups are left out, and where they come in
time, their future is.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np
from sklearn.model_selection import KFold, train_test_split
from sklearn.preprocessing import StandardScaler

Array = np.ndarray
FOLDERS = ("MVENET_DATA", "MVENET_TABLES")
MANY_ROWS = 5000  # from here on, three of the ten folds are measured


@dataclass(frozen=True)
class Table:
    """What is known of a table before it is read.

    ``groups`` names the column that says which rows belong together, ``time`` the one that says
    when a row was; the first is no input, the second is.
    """

    name: str
    n_rows: int
    groups: str | None = None
    time: str | None = None

    @property
    def file(self) -> str:
        """Name of the file; two tables may be two ways to split one."""
        return self.name.removesuffix(" (BDE)") + ".csv"

    @property
    def n_folds(self) -> int:
        """How many folds are measured."""
        if self.name.endswith("(BDE)"):
            return 1
        if self.time:
            return 5
        return 10 if self.n_rows < MANY_ROWS else 3


# By size: the small ones first, so that a table of results is there soon.
TABLES = (
    Table("machine", 209),
    Table("yacht", 308),
    Table("autompg", 392),
    Table("boston", 506),
    Table("forest", 517),
    Table("stock", 536),
    Table("energy", 768),
    Table("concrete", 1030),
    Table("airfoil", 1503),
    Table("wine_red", 1599),
    Table("skillcraft", 3338),
    Table("airfoil (BDE)", 1503),
    Table("kin8nm", 8192),
    Table("elevators", 16599),
    Table("bike", 17379),
    Table("bike (BDE)", 17379),
    Table("kin40k", 40000),
    Table("protein", 45730),
    Table("epil", 236, groups="subject"),
    Table("guns", 1173, groups="state"),
    Table("rice", 1026, groups="id"),
    Table("macro", 204, time="quarter"),
    Table("djia", 2862, time="day"),
    Table("doctor_visits", 5190),
    Table("nmes", 4406),
    Table("cps1988", 28155),
    Table("diamonds", 53940),
)
BY_NAME = {table.name: table for table in TABLES}


@dataclass(frozen=True)
class Rows:
    """Rows of a table: inputs (n, d), target (n,), and what ties them together, if anything."""

    X: Array
    y: Array
    groups: Array | None = None
    time: Array | None = None

    def __getitem__(self, which: Array) -> Rows:
        """Some of the rows."""
        parts = (self.X, self.y, self.groups, self.time)
        return Rows(*(part if part is None else part[which] for part in parts))

    def __len__(self) -> int:
        return len(self.y)


def path_of(table: Table) -> Path:
    """Where the file is; one sentence if nowhere."""
    named = (os.environ.get(variable, "").split(os.pathsep) for variable in FOLDERS)
    folders = [folder for several in named for folder in several if folder]
    for folder in folders:
        path = Path(folder) / table.file
        if path.is_file():
            return path
    raise SystemExit(
        f"{table.file} is missing: set {' or '.join(FOLDERS)} to the folder that has it, or run "
        f"python benchmarks/league.py fetch FOLDER first (looked in {folders}).".replace("'", "")
    )


def load(table: Table) -> Rows:
    """All rows of a table. Categories become a column a level, dates days since 1970."""
    with path_of(table).open(newline="") as file:
        names, *lines = list(csv.reader(file))
    columns = dict(zip(names, zip(*lines, strict=True), strict=True))
    y = np.array(columns.pop(names[-1]), dtype=float)
    groups = np.array(columns.pop(table.groups)) if table.groups else None
    time = _numbers(columns[table.time])[:, 0] if table.time else None
    return Rows(np.hstack([_numbers(column) for column in columns.values()]), y, groups, time)


def _numbers(column: tuple[str, ...]) -> Array:
    for read in (float, lambda text: float(date.fromisoformat(text).toordinal() - 719163)):
        try:
            return np.array([[read(text)] for text in column])
        except ValueError:
            continue
    levels = sorted(set(column))
    levels = levels[1:] if len(levels) == 2 else levels
    return np.array([[float(text == level) for level in levels] for text in column])


def splits(table: Table, rows: Rows) -> Iterator[tuple[Array, Array]]:
    """Training and test rows of every fold that is measured, by number."""
    everything = np.arange(len(rows))
    if table.name.endswith("(BDE)"):
        yield tuple(train_test_split(everything, test_size=0.2, random_state=0))
    elif rows.groups is not None:
        names = np.random.default_rng(1).permutation(np.unique(rows.groups))
        for left_out in np.array_split(names, table.n_folds):
            test = np.isin(rows.groups, left_out)
            yield everything[~test], everything[test]
    elif rows.time is not None:
        # Half of the rows to begin with; then each stretch is predicted from all before it.
        order = np.argsort(rows.time, kind="stable")
        past, *stretches = np.array_split(order, [len(order) // 2])
        for stretch in np.array_split(stretches[0], table.n_folds):
            yield past, stretch
            past = np.concatenate([past, stretch])
    else:
        folds = KFold(10, shuffle=True, random_state=1).split(rows.X)
        for (train, test), _ in zip(folds, range(table.n_folds), strict=False):
            yield train, test


def fold_of(table: Table, fold: int) -> tuple[Rows, Rows]:
    """Training and test rows of one fold."""
    rows = load(table)
    train, test = list(splits(table, rows))[fold]
    if table.name.endswith("(BDE)"):  # its authors standardise, the target too
        X = StandardScaler().fit(rows.X[train]).transform(rows.X)
        y = (rows.y - rows.y[train].mean()) / rows.y[train].std()
        rows = Rows(X, y)
    return rows[train], rows[test]


def drawn(rows: Rows, most: int) -> Rows:
    """At most so many rows, drawn at random."""
    if len(rows) <= most:
        return rows
    return rows[np.sort(np.random.default_rng(0).choice(len(rows), most, replace=False))]
