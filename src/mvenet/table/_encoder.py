"""TableEncoder: columns as people have them turned into numbers, one by one."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.validation import check_is_fitted

if TYPE_CHECKING:
    import pandas as pd

_MONTH = "(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_DATE = re.compile(
    r"(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{4}[-/]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](\d{2}|\d{4})"
    rf"|\d{{1,2}}(st|nd|rd|th)?[-/. ]+{_MONTH}[-/., ]+\d{{2,4}}"
    rf"|{_MONTH}[. ]+\d{{1,2}}(st|nd|rd|th)?,? +\d{{2,4}})([ T]\d{{1,2}}:\d{{2}}.*)?"
    r"|\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?",
    re.IGNORECASE,
)
_DRESSED = re.compile(r"\W{0,3}\d[\d.,' ]*\W{0,2}[^\W\d]{0,3}")  # 1,234 or $ 5 or 12 % or 3 kg
_TRUTHS = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0, "1": 1.0, "0": 0.0}


def split_target(frame: pd.DataFrame, target: str) -> tuple[pd.DataFrame, NDArray[np.float64], int]:
    """Columns without the target, the target as numbers, and how many rows had none (left out)."""
    import pandas as pd

    names = [str(name) for name in frame.columns]
    if target not in names:
        near = difflib.get_close_matches(target, names, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"choose from {', '.join(names[:10])}."
        raise ValueError(f"There is no column {target!r}: {hint}")
    column = frame[target]
    given = column.notna().to_numpy()
    if _is_time(column):
        raise ValueError(f"The target {target!r} holds dates: make numbers of them first.")
    values = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    text = given & np.isnan(values)
    if text.any():
        raise ValueError(
            f"The target {target!r} must hold numbers: {_first(column, text)}. Correct or remove "
            "such rows."
        )
    if np.isinf(values).any():
        raise ValueError(
            f"The target {target!r} holds infinity ({_first(column, np.isinf(values))}): correct "
            "or remove such rows."
        )
    if given.sum() < 2:
        raise ValueError(f"There are {given.sum()} rows with a {target!r}: at least 2 are needed.")
    return frame.drop(columns=target)[given], values[given], int((~given).sum())


@dataclass(frozen=True)
class Column:
    """What a column was taken for: "number", "truth", "category" or "dropped", and a remark."""

    kind: str
    remark: str = ""


class TableEncoder(TransformerMixin, BaseEstimator):
    """Turn the columns of a DataFrame into numbers, and say what each was taken for.

    Numbers stay; a missing one becomes the median, and a further column says where. Categories
    become a column of zeros and ones for each level; levels never seen, and the rare ones where
    there are many, are zero in all of them. Dates, free text, and columns that hold one value are
    dropped.

    Parameters
    ----------
    max_categories : int, default=30
        Columns made of a category at most.
    target : str or None
        Name of the column that is predicted, for whoever loads the model; it is not looked at.

    Attributes
    ----------
    columns_ : dict of Column
        What each column was taken for, and why.
    imputer_ : SimpleImputer or None
        Of the numbers; None if there are none.
    one_hot_ : OneHotEncoder or None
        Of the categories.
    kinds_, remarks_ : ndarray of str
        What ``columns_`` is made of, for small files.
    feature_names_in_ : ndarray of str
    n_features_in_ : int

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"size": [1.0, 2.0, None], "town": ["A", "B", "A"]})
    >>> encoder = TableEncoder().fit(frame)
    >>> encoder.transform(frame)
    array([[1. , 0. , 1. , 0. ],
           [2. , 0. , 0. , 1. ],
           [1.5, 1. , 1. , 0. ]])
    >>> {name: column.kind for name, column in encoder.columns_.items()}
    {'size': 'number', 'town': 'category'}
    """

    def __init__(self, max_categories: int = 30, target: str | None = None) -> None:
        self.max_categories = max_categories
        self.target = target

    @property
    def columns_(self) -> dict[str, Column]:
        """What each column was taken for, and why."""
        check_is_fitted(self)
        told = zip(self.feature_names_in_, self.kinds_, self.remarks_, strict=True)
        return {str(name): Column(str(kind), str(remark)) for name, kind, remark in told}

    def named(self, *kinds: str) -> list[str]:
        """Names of the columns that were taken for one of these."""
        check_is_fitted(self)
        return [str(n) for n in self.feature_names_in_[np.isin(self.kinds_, kinds)]]

    def fit(self, X: pd.DataFrame, y: object = None) -> Self:
        """Find out what each column is.

        Parameters
        ----------
        X : DataFrame of shape (n, n_features)
        y : ignored

        Returns
        -------
        self
        """
        names = [str(name) for name in X.columns]
        found = [_taken_for(series, self.max_categories) for _, series in X.items()]
        if all(column.kind == "dropped" for column in found):
            dropped = zip(names[:5], found, strict=False)
            reasons = "; ".join(f"{name} is dropped ({column.remark})" for name, column in dropped)
            raise ValueError(f"No column can be used to predict: {reasons or 'there is none'}.")
        self.feature_names_in_ = np.array(names, dtype=object)
        self.n_features_in_ = len(names)
        self.kinds_ = np.array([column.kind for column in found])
        self.remarks_ = np.array([column.remark for column in found])
        numbers, texts = self._numbers(X), self._texts(X)
        self.imputer_ = self.one_hot_ = None
        if numbers.shape[1]:
            self.imputer_ = SimpleImputer(strategy="median", add_indicator=True).fit(numbers)
        if texts.shape[1]:
            levels = [_levels(column, self.max_categories) for column in texts.T]
            one_hot = OneHotEncoder(categories=levels, handle_unknown="ignore", sparse_output=False)
            known = np.array([column[0] for column in levels], dtype=object)[None]
            self.one_hot_ = one_hot.fit(known)  # the rare levels are unknown to it
        return self

    def transform(self, X: pd.DataFrame) -> NDArray[np.float64]:
        """Turn a table into numbers; its columns may come in any order, and further ones too.

        Parameters
        ----------
        X : DataFrame of shape (n, n_features)

        Returns
        -------
        ndarray of shape (n, n_features_out)
        """
        present = {str(name) for name in X.columns}
        missing = [n for n in self.named("number", "truth", "category") if n not in present]
        if missing:
            named = ", ".join(map(repr, missing[:5])) + (" and more" if len(missing) > 5 else "")
            raise ValueError(f"The table lacks the column(s) {named}: add them, empty if unknown.")
        blocks = []
        if self.imputer_ is not None:
            blocks.append(self.imputer_.transform(self._numbers(X)))
        if self.one_hot_ is not None:
            blocks.append(self.one_hot_.transform(self._texts(X)))
        return np.ascontiguousarray(np.hstack(blocks), dtype=np.float64)

    def get_feature_names_out(self, input_features: object = None) -> NDArray[Any]:
        """Names of the columns that ``transform`` returns."""
        names: list[str] = []
        if self.imputer_ is not None:
            names += list(self.imputer_.get_feature_names_out(self.named("number", "truth")))
        if self.one_hot_ is not None:
            every = zip(self.named("category"), self.one_hot_.categories_, strict=True)
            names += [f"{n}_{level or '(missing)'}" for n, levels in every for level in levels]
        return np.array(names, dtype=object)

    def _numbers(self, X: pd.DataFrame) -> NDArray[np.float64]:
        """The columns of numbers and truths, NaN where missing."""
        columns = {str(name): series for name, series in X.items()}
        truths = set(self.named("truth"))
        names = self.named("number", "truth")
        made = np.empty((len(X), len(names)), order="F")
        for i, name in enumerate(names):
            convert = _as_truths if name in truths else _as_numbers
            made[:, i] = convert(columns[name])
        return made

    def _texts(self, X: pd.DataFrame) -> NDArray[Any]:
        """The categories as text, empty where missing."""
        columns = {str(name): series for name, series in X.items()}
        names = self.named("category")
        made = np.empty((len(X), len(names)), dtype=object, order="F")
        for i, name in enumerate(names):
            made[:, i] = _as_texts(columns[name])
        return made


def _taken_for(series: pd.Series, max_categories: int) -> Column:
    """What a column is, from its type and its values."""
    import pandas as pd

    given = series.dropna()
    gaps = len(series) - len(given)
    remark = f"{gaps} missing" if gaps else ""
    if given.empty:
        return Column("dropped", "all missing")
    if _is_time(series):
        return Column("dropped", "dates: make numbers of them, such as the month or days since")
    numeric = pd.api.types.is_numeric_dtype(series)  # truth values are
    texts = given if numeric else given.astype(str).str.strip()
    if not gaps and texts.nunique() == 1:
        return Column("dropped", f"always {texts.iloc[0]!s:.30}")
    if pd.api.types.is_bool_dtype(series):
        return Column("truth", remark)
    if numeric or pd.api.types.infer_dtype(given) == "decimal":
        return Column("number", remark)
    levels = texts.nunique()
    if set(texts.str.lower().unique()) <= set(_TRUTHS):
        return Column("truth", remark)
    if texts.head(1000).map(lambda text: bool(_DATE.fullmatch(text))).mean() > 0.9:
        return Column("dropped", "dates: make numbers of them, such as the month or days since")
    parsed = pd.to_numeric(texts, errors="coerce")
    wrong = parsed.isna().to_numpy()
    if parsed.nunique() > 20 and texts[wrong].nunique() <= 3:  # marks such as ?, no codes
        told = f"{wrong.sum()} row(s) do not hold a number ({_first(texts, wrong)})"
        return Column("dropped", f"{told}: correct them, or leave them empty")
    if levels > max(20, 0.5 * len(texts)):
        told = f"text, {levels} different values"
        if texts.head(1000).map(lambda text: bool(_DRESSED.fullmatch(text))).mean() > 0.9:
            advice = "if they are numbers, write them plainly, as 1234.5"
            return Column("dropped", f"{told}, such as {texts.iloc[0]!s:.20}: {advice}")
        return Column("dropped", f"{told}: an identifier or free text")
    kept = f", the {max_categories} most frequent kept apart" if levels > max_categories else ""
    told = f"{levels} level{'s' * (levels != 1)}{kept}"
    return Column("category", f"{told}, {remark}" if remark else told)


def _is_time(series: pd.Series) -> bool:
    from pandas.api import types

    return bool(types.is_datetime64_any_dtype(series) or types.is_timedelta64_dtype(series))


def _levels(texts: NDArray[Any], most: int) -> NDArray[Any]:
    """The most frequent levels, in alphabetical order."""
    return np.array(sorted(text for text, _ in Counter(texts).most_common(most)), dtype=object)


def _as_texts(series: pd.Series) -> NDArray[Any]:
    """Categories as text, so that 1, "1" and "1 " are one level; empty where missing."""
    values, given = series.to_numpy(dtype=object), series.notna().to_numpy()
    texts = [str(v).strip() if there else "" for v, there in zip(values, given, strict=True)]
    return np.array(texts, dtype=object)


def _as_truths(series: pd.Series) -> NDArray[np.float64]:
    """Truth values as 1 and 0; what is neither is missing, as an unseen level would be."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(series):
        truths: NDArray[np.float64] = series.to_numpy(dtype=np.float64, na_value=np.nan)
        return truths
    return np.array([_TRUTHS.get(text.lower(), np.nan) for text in _as_texts(series)])


def _as_numbers(series: pd.Series) -> NDArray[np.float64]:
    """Numbers, also those that are still text; NaN where missing."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(series):
        numbers: NDArray[np.float64] = series.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        values = series.to_numpy(dtype=object, na_value=np.nan)
        try:
            numbers = values.astype(np.float64)
        except (TypeError, ValueError):
            wrong = np.array([not _is_number(value) for value in values])
            raise ValueError(
                f"The column {series.name!r} held numbers when the model was fitted: "
                f"{_first(series, wrong)}. Correct it, or leave it empty."
            ) from None
    infinite = np.isinf(numbers)
    if infinite.any():
        raise ValueError(
            f"The column {series.name!r} holds infinity ({_first(series, infinite)}): correct it, "
            "or leave it empty."
        )
    return numbers


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _first(series: pd.Series, wrong: NDArray[np.bool_]) -> str:
    """The first cell that is wrong, and its row in the file."""
    i = int(np.flatnonzero(wrong)[0])
    row = series.index[i]
    number = row + 1 if isinstance(row, int | np.integer) else row
    return f"row {number} has {str(series.iloc[i])[:50]!r}"
