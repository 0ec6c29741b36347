"""What an encoder that was fitted knows of its columns, and does with a table that has them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mvenet._columns import cells as columns
from mvenet._columns.dates import Dates
from mvenet._columns.kept import check_kept
from mvenet._columns.levels import Levels
from mvenet._models.columns import Column, Columns
from mvenet._models.numbers import Numbers

Array = NDArray[np.float64]
NUMERIC = ("number", "truth", "date")


class Encoding:
    """What every fitted :class:`TableEncoder` does; its attributes are described there.

    It needs no scikit-learn: a model file can be built with this, and predicts the same.
    """

    target: str | None
    feature_names_in_: NDArray[Any]
    kinds_: NDArray[Any]
    remarks_: NDArray[Any]
    date_forms_: NDArray[Any]
    date_origins_: Array
    date_cycles_: NDArray[Any]
    medians_: Array
    told_: NDArray[np.int64]
    n_rows_: int
    seen_: Array
    missing_: Array

    @staticmethod
    def of_numbers(known: Numbers, names: list[str]) -> Encoding:
        """What makes the same of a frame with these columns as is made of an array of numbers."""
        made = Encoding()
        kept = np.isfinite(known.median)
        told = known.columns(names)
        made.target = None
        made.feature_names_in_ = np.array(names, dtype=object)
        made.kinds_, made.remarks_ = (
            np.array([getattr(column, part) for column in told.values()], dtype=object)
            for part in ("kind", "remark")
        )
        made.date_forms_ = made.date_cycles_ = np.empty(0, dtype=object)
        made.date_origins_ = np.empty(0)
        made.medians_, made.seen_ = known.median[kept], known.seen[:, kept]
        made.missing_ = known.missing[kept]
        made.told_ = (np.cumsum(kept) - 1)[known.told]
        return made

    @property
    def columns_(self) -> Columns:
        """What each column was taken for, and why."""
        self._require_fitted()
        told = zip(self.feature_names_in_, self.kinds_, self.remarks_, strict=True)
        return Columns({str(name): Column(str(kind), str(remark)) for name, kind, remark in told})

    @property
    def width(self) -> int:
        """How many columns ``transform`` returns."""
        return sum(len(made) for made in self.places().values())

    def _filled(self) -> tuple[Array, NDArray[Any]]:
        """In the place of gaps, and the columns whose gaps are told; old files have an imputer."""
        if "imputer_" not in vars(self):
            return self.medians_, self.told_
        imputer = vars(self)["imputer_"]
        if imputer is None:
            return np.empty(0), np.arange(0)
        return imputer.statistics_, imputer.indicator_.features_

    @property
    def levels_(self) -> Mapping[str, Levels]:
        """Of the categories: their levels, and the numbers that each becomes."""
        return Levels.unpacked(vars(self), self.named("category"))

    @property
    def dates_(self) -> Mapping[str, Dates]:
        """Of the dates: how they are written, the origin, the cycles."""
        names = self.named("date")
        if not names:
            return {}
        told = zip(self.date_forms_, self.date_origins_, self.date_cycles_, strict=True)
        return {
            n: Dates(str(f), float(o), str(c)) for n, (f, o, c) in zip(names, told, strict=True)
        }

    def named(self, *kinds: str) -> list[str]:
        """Names of the columns that were taken for one of these."""
        self._require_fitted()
        return [str(n) for n in self.feature_names_in_[np.isin(self.kinds_, kinds)]]

    def transform(self, X: Any, rows: NDArray[Any] | None = None) -> Array:
        """Turn a table into numbers; its columns may come in any order, and further ones too.

        Parameters
        ----------
        X : DataFrame of shape (n, n_features)
        rows : ndarray of shape (n,) or None
            Numbers of the rows in their file, from 0, for error messages.

        Returns
        -------
        ndarray of shape (n, n_features_out)
        """
        return self.with_unseen(X, rows)[0]

    def marked(self, X: Any, rows: NDArray[Any] | None = None) -> Array:
        """The same with NaN where a cell is not known: a gap that the fit had none of, a new level.

        For a model that knows what to do about it.
        """
        return self.with_unseen(X, rows, mark=True)[0]

    def with_unseen(
        self, X: Any, rows: NDArray[Any] | None = None, mark: bool = False
    ) -> tuple[Array, list[str]]:
        """The same, and a sentence for each category with levels that the fit did not see."""
        table = self._complete(X)
        numbers = self._numbers(table, np.arange(len(table)) if rows is None else rows)
        coded, told, unknown = [], [], self._gaps(numbers) if mark else {}
        for name, levels in self.levels_.items():
            texts = columns.texts(table[name])
            coded.append(levels.encode(texts))
            unseen = levels.unseen(texts)
            new = texts.filter(pl.Series(unseen))
            if mark:
                empty = np.zeros(len(texts), dtype=bool)
                if "" not in levels.names:
                    empty = texts.is_null().to_numpy()
                unknown[name] = unseen | empty
            if len(new):
                told.append(
                    f"{len(new):,} row(s) have a level of {name!r} that no row of the fit had, "
                    f"such as {new[0][:30]!r}: taken as an unknown one."
                )
        made, places = self._together(numbers, [*self._cycles(numbers), *coded]), self.places()
        for name, cells in unknown.items():
            made[np.flatnonzero(cells)[:, None], places[name]] = np.nan
        return made, told

    def _gaps(self, numbers: Array) -> dict[str, NDArray[np.bool_]]:
        """Columns with gaps that no further column tells of, and where they are."""
        told, gaps = set(self._filled()[1].tolist()), np.isnan(numbers)
        names = enumerate(self.named(*NUMERIC))
        return {name: gaps[:, i] for i, name in names if i not in told and gaps[:, i].any()}

    def tidy(self, X: Any) -> pl.DataFrame:
        """The columns that are used, each as what it was taken for.

        Numbers and truth values (1 and 0) are floats, dates are moments (of UTC if they had a
        zone), categories text; missing cells are null. What :meth:`transform` makes of it is what
        it makes of ``X``.

        Parameters
        ----------
        X : DataFrame of shape (n, n_features)

        Returns
        -------
        polars.DataFrame
        """
        table = self._complete(X)
        rows = np.arange(len(table))
        numbers = dict(zip(self.named(*NUMERIC), self._numbers(table, rows).T, strict=True))
        made = {}
        dates = self.dates_
        for name in self.named(*NUMERIC, "category"):
            if name not in numbers:
                made[name] = columns.texts(table[name])
                continue
            values = pl.Series(numbers[name], nan_to_null=True)
            if name in dates:
                moments = ((values + dates[name].origin) * 86_400e6).round().cast(pl.Int64)
                zone = "UTC" if "%z" in dates[name].form else None
                values = moments.cast(pl.Datetime("us", zone))
            made[name] = values
        return pl.DataFrame(made)

    def get_feature_names_out(self, input_features: object = None) -> NDArray[Any]:
        """Names of the columns that ``transform`` returns; one that is taken gets a number."""
        numeric, told = self.named(*NUMERIC), self._filled()[1]
        names = [*numeric, *(f"missingindicator_{numeric[i]}" for i in told)]
        for name, dates in self.dates_.items():
            names += dates.names(name)
        for name, levels in self.levels_.items():
            names += levels.feature_names(name)
        return np.array(_apart(names), dtype=object)

    def places(self) -> dict[str, list[int]]:
        """Which of the columns that ``transform`` returns each column becomes."""
        numeric = self.named(*NUMERIC)
        made = {name: [i] for i, name in enumerate(numeric)}
        end = len(numeric)
        for i in self._filled()[1]:
            made[numeric[i]].append(end)
            end += 1
        blocks = {name: len(dates.names(name)) for name, dates in self.dates_.items()}
        blocks |= {name: len(levels.feature_names(name)) for name, levels in self.levels_.items()}
        for name, width in blocks.items():
            made.setdefault(name, []).extend(range(end, end + width))
            end += width
        return made

    def _complete(self, X: Any) -> pl.DataFrame:
        """The table, if it has all columns that are used."""
        table = columns.as_polars(X)
        present = set(table.columns)
        missing = [n for n in self.named(*NUMERIC, "category") if n not in present]
        if missing:
            named = ", ".join(map(repr, missing[:5])) + (" and more" if len(missing) > 5 else "")
            raise ValueError(f"The table lacks the column(s) {named}: add them, empty if unknown.")
        return table

    def _numbers(self, table: pl.DataFrame, rows: NDArray[Any]) -> Array:
        """The columns of numbers, truths and days, NaN where missing."""
        dates, truths = self.dates_, set(self.named("truth"))
        names = self.named(*NUMERIC)
        made = np.empty((len(table), len(names)), order="F")
        parsed = columns.parsed(table, self.named("number"))  # all at once, on all threads
        for i, name in enumerate(names):
            if name in dates:
                made[:, i] = columns.days(table[name], dates[name], rows)
            elif name in truths:
                made[:, i] = columns.truths(table[name], rows)
            else:
                made[:, i] = columns.numbers(table[name], rows, parsed.get(name))
        return made

    def _cycles(self, numbers: Array) -> list[Array]:
        """Sines and cosines of the dates."""
        place = {name: i for i, name in enumerate(self.named(*NUMERIC))}
        return [d.cycle_numbers(numbers[:, place[n]] + d.origin) for n, d in self.dates_.items()]

    def _together(self, numbers: Array, blocks: list[Array]) -> Array:
        """All blocks side by side, the numbers without gaps first."""
        medians, told = self._filled()
        gaps = np.isnan(numbers)
        blocks = [numbers, gaps[:, told], *blocks]
        made = np.empty((len(numbers), sum(block.shape[1] for block in blocks)))
        end = 0
        for block in blocks:
            start, end = end, end + block.shape[1]
            made[:, start:end] = block
        if gaps.any():
            np.copyto(made[:, : numbers.shape[1]], medians, where=gaps)
        return made

    def _require_fitted(self) -> None:
        """What a model file holds is fitted; an encoder looks whether it is."""

    def _check_attributes(self) -> None:
        """Raise an error if no table can have taught what it holds."""
        check_kept(self)


def _apart(names: list[str]) -> list[str]:
    """The names, of which several may be alike, made different: level x of a_b, and b_x of a."""
    every, made = set(names), dict[str, None]()
    for name in names:
        numbered = (f"{name}_{i}" for i in count(2))
        free = (other for other in numbered if other not in every and other not in made)
        made[next(free) if name in made else name] = None
    return list(made)
