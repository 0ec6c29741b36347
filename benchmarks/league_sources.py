"""Where the tables of the league come from: each is fetched from its public source and checked.

    python benchmarks/league.py fetch FOLDER [--tables yacht guns ...]

writes FOLDER/NAME.csv, header first and target last. What is there and right is left alone; what
cannot be had is told, and the others go on. The checksum is that of the cells, numbers to twelve
digits, and not of the file: other mirrors, or a folder of files of your own, do as well.

The paper's seven sets come through `mvenet.datasets`. Seven more are those of Yang et al. (2015)
as T. Evans publishes them: centred, five digits, columns without names. Airfoil and bike are
UCI's own, the others data of R's packages AER, MASS, plm and ggplot2 as V. Arel-Bundock collects
them.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import math
import os
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from urllib.request import urlopen

EVANS = "https://raw.githubusercontent.com/treforevans/uci_datasets/{}/uci_datasets/{}/data.csv.gz"
UCI = "https://archive.ics.uci.edu/static/public/{}.zip"
R = (
    "https://raw.githubusercontent.com/vincentarelbundock/Rdatasets/"
    "1c33d6651186a5673fe87d1ca83d1341ff397be9/csv/{}.csv"
)
TIMEOUT = 60  # seconds without an answer
Cells = list[list[str]]  # the names first


@dataclass(frozen=True)
class Source:
    """A file, how to make a table of it, and the checksum of that."""

    url: str
    make: Callable[[bytes], Cells]
    sha256: str


def digest(cells: Cells) -> str:
    """SHA-256 of all rows but the names; numbers count to twelve digits."""
    text = "\n".join(",".join(map(_canonical, row)) for row in cells[1:])
    return hashlib.sha256(text.encode()).hexdigest()


def _canonical(cell: str) -> str:
    try:
        return f"{float(cell) + 0.0:.12g}"
    except ValueError:
        return cell


def unnamed(data: bytes) -> Cells:
    """Packed numbers with commas; the columns become x0, x1, ..., y."""
    rows = [line.split(",") for line in gzip.decompress(data).decode().split()]
    return [[*(f"x{k}" for k in range(len(rows[0]) - 1)), "y"], *rows]


def airfoil(data: bytes) -> Cells:
    """UCI's file has no names."""
    names = ["frequency", "angle", "chord", "velocity", "thickness", "sound_pressure"]
    lines = _member(data, "airfoil_self_noise.dat").splitlines()
    return [names, *(line.split() for line in lines if line.strip())]


def bike(data: bytes) -> Cells:
    """The hours, without dates and without the two parts of the count."""
    names = "season yr mnth hr holiday weekday workingday weathersit temp atemp hum windspeed cnt"
    return _chosen(_member(data, "hour.csv"), names.split())


def columns(names: str) -> Callable[[bytes], Cells]:
    """Some columns of a file with names, in this order."""
    return lambda data: _chosen(data.decode(), names.split())


def quarters(names: str) -> Callable[[bytes], Cells]:
    """The same from 1950 on, a row a quarter, whose first day comes first."""

    def make(data: bytes) -> Cells:
        head, *rows = _chosen(data.decode(), names.split())
        days = [f"{1950 + k // 4}-{1 + 3 * (k % 4):02}-01" for k in range(len(rows))]
        return [["quarter", *head], *([day, *row] for day, row in zip(days, rows, strict=True))]

    return make


def djia(data: bytes) -> Cells:
    """Changes in percent on every third day, the five before and the mean size of twenty."""
    rows = _chosen(data.decode(), ["rownames", "dat"])[1:]
    prices = [float(price) for _, price in rows]
    change = [math.nan] + [100 * math.log(b / a) for a, b in pairwise(prices)]
    made = []
    for k in range(25, len(rows), 3):
        volatility = sum(map(abs, change[k - 20 : k])) / 20
        numbers = [*change[k - 5 : k][::-1], volatility, change[k]]
        made.append([rows[k][0], *(repr(round(number, 5)) for number in numbers)])
    return [["day", *(f"lag{k}" for k in range(1, 6)), "volatility", "change"], *made]


def _member(data: bytes, name: str) -> str:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return archive.read(name).decode()


def _chosen(text: str, names: Sequence[str]) -> Cells:
    head, *rows = list(csv.reader(io.StringIO(text)))
    places = [head.index(name) for name in names]
    return [list(names), *([row[place] for place in places] for row in rows)]


# fmt: off
SOURCES = {
    "autompg": Source(EVANS.format("44e180090ed474858f5a9f3bd38ff2c24eac5174", "autompg"), unnamed,
        "ba98d0fd6870f12123dafbda9de9f496e6474371367c7e3be00c6b47ec5b1822"),
    "elevators": Source(
        EVANS.format("36a67b7e5d4b1c08151a7d044f555f50af16548a", "elevators"), unnamed,
        "b36580844e713e2c98b9aebc4b51cab785397a01f3de44c31cfe6b5961a09a13"),
    "forest": Source(EVANS.format("44e180090ed474858f5a9f3bd38ff2c24eac5174", "forest"), unnamed,
        "b8e3d10915c23457dfd002d827103d177edc9b164ec479012534f133308fb2aa"),
    "kin40k": Source(EVANS.format("36a67b7e5d4b1c08151a7d044f555f50af16548a", "kin40k"), unnamed,
        "aaf212c560bd09897ff7e3044c04decf7acd07bceae3bbb083c46ea31e0d1e38"),
    "machine": Source(EVANS.format("44e180090ed474858f5a9f3bd38ff2c24eac5174", "machine"), unnamed,
        "771a5709bf3fab440f3e685c46f161e1e8d3d06259e759e4def973254a3dd664"),
    "skillcraft": Source(
        EVANS.format("44e180090ed474858f5a9f3bd38ff2c24eac5174", "skillcraft"), unnamed,
        "77c04e436da9370cd50aa128c2c694ebe1a220f17023244626e2391c5c880123"),
    "stock": Source(EVANS.format("44e180090ed474858f5a9f3bd38ff2c24eac5174", "stock"), unnamed,
        "4944f85dc42f500e541512ffb1115dfbb1aae8780c458d6309f9df41b5f766d2"),
    "airfoil": Source(UCI.format("291/airfoil+self+noise"), airfoil,
        "c6e62116b55692f227e25b503afa2270ff83bd3257182022e2d417877e9f9dda"),
    "bike": Source(UCI.format("275/bike+sharing+dataset"), bike,
        "15d24fa8d013b643eeefc643553e8b773c9df5f5537288b0a5a4adfb01ed1ca9"),
    "epil": Source(R.format("MASS/epil"), columns("trt base age V4 subject period y"),
        "4d2e0bcee9629a427087fdb612cf22ada81d9f76e5cc5bc61cc5d4debf6a837e"),
    "guns": Source(R.format("AER/Guns"), columns(
        "year murder prisoners afam cauc male population income density state law violent"),
        "b038194b529e707c21a80850e8720c461e6b1ef4a121ae5d194d17c989058e22"),
    "rice": Source(R.format("plm/RiceFarms"), columns(
        "id size status varieties bimas seed urea phosphate pesticide pseed purea pphosph "
        "hiredlabor famlabor totlabor wage price region goutput"),
        "9c954c39c4f7af7f83b4753b68357c19322b1aca6415f704f4d750b175d69ca2"),
    "macro": Source(R.format("AER/USMacroG"), quarters("consumption tbill unemp m1 cpi invest"),
        "9a78dc3202ee8b4e05f36b6f2fac0b08b4ec0d663981f600dece9a05f5731f3b"),
    "djia": Source(R.format("AER/DJIA8012"), djia,
        "f65e9fb2825c01cdfa86aa9630b7e067a22c06a1f032c6136ddc8d2b8a7defc6"),
    "doctor_visits": Source(R.format("AER/DoctorVisits"), columns(
        "gender age income illness reduced health private freepoor freerepat nchronic lchronic "
        "visits"),
        "341f1079ad44c47c591ed3ed4ca9713966d58232c6c8a5d63a2dad15a46147c8"),
    "nmes": Source(R.format("AER/NMES1988"), columns(
        "emergency hospital health chronic adl region age afam gender married school income "
        "employed insurance medicaid visits"),
        "8f1891828a7f3c66717f170ebc28ee6c6aa096b8261681db9070411362db31b6"),
    "cps1988": Source(R.format("AER/CPS1988"), columns(
        "education experience ethnicity smsa region parttime wage"),
        "ef0ebcb5de832b059c1e6e44546e35d2f57e2182a3ff0a331851abfd13c50d48"),
    "diamonds": Source(R.format("ggplot2/diamonds"), columns(
        "carat cut color clarity depth table x y z price"),
        "ae86ddd06a9f301ff890ab0374a881106715beb97d6a92fbb3dbc478c93a7340"),
}
# fmt: on


def fetch(name: str, folder: Path) -> str:
    """Write FOLDER/NAME.csv; in one sentence what came of it. Raises OSError if nothing did."""
    path = folder / f"{name}.csv"
    source = SOURCES.get(name)
    if source is None:
        return _through_the_library(name, path)
    if path.is_file():
        with path.open(newline="") as file:
            if digest(list(csv.reader(file))) == source.sha256:
                return f"{path} is there."
    try:
        with urlopen(source.url, timeout=TIMEOUT) as answer:
            cells = source.make(answer.read())
    except (OSError, ValueError, KeyError, IndexError, zipfile.BadZipFile) as error:
        raise OSError(
            f"{name} could not be had from {source.url} ({error}): put {name}.csv (header row, "
            "target last) in the folder by hand."
        ) from error
    found = digest(cells)
    if found != source.sha256:
        raise OSError(
            f"{name} from {source.url} is not the table that was measured: its SHA-256 is {found} "
            f"instead of {source.sha256}."
        )
    _write(path, cells)
    return f"{path} is written."


def _through_the_library(name: str, path: Path) -> str:
    from mvenet.datasets import load

    if path.is_file():
        load(name, path.parent)  # which checks it, and warns
        return f"{path} is there."
    kept = os.environ.pop("MVENET_DATA", None)  # a folder that is named is never supplemented
    try:
        data = load(name)
    finally:
        if kept is not None:
            os.environ["MVENET_DATA"] = kept
    rows = zip(data.X.tolist(), data.y.tolist(), strict=True)
    cells = [[*data.feature_names, data.target_name]]
    cells += [[repr(number) for number in (*inputs, target)] for inputs, target in rows]
    _write(path, cells)
    return f"{path} is written."


def _write(path: Path, cells: Cells) -> None:
    part = path.with_suffix(".part")
    with part.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(cells)
    os.replace(part, path)
