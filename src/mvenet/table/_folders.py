"""Folders of Parquet files: which of their files are meant."""

from __future__ import annotations

from pathlib import Path

from mvenet._utils.wording import no_file
from mvenet.table._excel import EXCEL
from mvenet.table._files import COLUMNAR

PARQUET = (".parquet", ".pq")
# Other tables: whether a folder that holds them, too, is one table, nobody can tell.
OTHERS = {*COLUMNAR, *EXCEL, ".csv", ".tsv", ".txt", ".gz"} - set(PARQUET)


def parquet_files(folder: str | Path) -> list[Path]:
    """The Parquet files of a folder, by name; what begins with ``.`` or ``_`` is no data.

    Raises
    ------
    OSError
        If there is no such folder.
    ValueError
        If it holds no Parquet files, or other tables beside them.
    """
    place = Path(folder)
    if not place.is_dir():
        raise FileNotFoundError(no_file(place))
    there = sorted(entry for entry in place.iterdir() if entry.name[0] not in "._")
    files = [entry for entry in there if entry.suffix.lower() in PARQUET and entry.is_file()]
    if not files:
        within = next((entry for entry in there if entry.is_dir()), None)
        hint = "" if within is None else f" itself (its folders, such as {within.name}, may)"
        raise ValueError(
            f"{folder} holds no Parquet files{hint}: name a folder of *.parquet, or a file."
        )
    other = next((entry for entry in there if entry.suffix.lower() in OTHERS), None)
    if other is not None:
        raise ValueError(
            f"{folder} holds {other.name} beside Parquet files: move it elsewhere, or name a file."
        )
    return files
