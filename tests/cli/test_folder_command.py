"""The command and folders of Parquet files: predicted file by file, here or on a cluster."""

from __future__ import annotations

import json

import pytest

pl = pytest.importorskip("polars")
pytest.importorskip("skops")
pytest.importorskip("rich")

import numpy as np  # noqa: E402
from click.testing import CliRunner  # noqa: E402

from mvenet import MVERegressor, persistence  # noqa: E402
from mvenet.cli._commands import app  # noqa: E402


def flats(n, seed):
    rng = np.random.default_rng(seed)
    size = rng.uniform(20, 200, n).round()
    town = rng.choice(["Bonn", "Köln"], n)
    return pl.DataFrame({"size": size, "town": town, "price": 3 * size + rng.normal(0, 10, n)})


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A model, and a folder of three files."""
    folder = tmp_path_factory.mktemp("folder")
    (folder / "data").mkdir()
    for number in range(3):
        flats(40, number).write_parquet(folder / "data" / f"{number}.parquet", row_group_size=16)
    model = MVERegressor(strategy="warmup", epochs=3, warmup_epochs=3, random_state=0)
    model.fit(flats(60, 9).drop("price"), flats(60, 9)["price"])
    persistence.save(model, folder / "flats.mve")
    return folder


@pytest.fixture
def ran(place, monkeypatch):
    monkeypatch.chdir(place)

    def ran(*arguments):
        outcome = CliRunner().invoke(app, list(map(str, arguments)))
        return outcome.exit_code, " ".join(f"{outcome.output} {outcome.exception or ''}".split())

    return ran


def test_a_folder_is_predicted_and_what_is_finished_is_told(ran, tmp_path):
    command = ("predict", "flats.mve", "data", "-o", tmp_path / "out", "--interval", "0.9")
    code, told = ran(*command)
    assert code == 0 and told.startswith("3 of 3 files, 120 rows in ")
    made = pl.read_parquet(tmp_path / "out" / "*.parquet")
    names = ["size", "town", "price", "mean", "std", "low_90", "high_90", "outside"]
    assert len(made) == 120 and made.columns == names
    assert "0 of 3 files, 0 rows in" in (told := ran(*command)[1])
    assert "3 were finished before, by this model and of the same data." in told
    assert ran(*command, "-q") == (0, "")


def test_the_cluster_of_an_address_writes_the_same_bytes(ran, tmp_path):
    distributed = pytest.importorskip("distributed")
    command = ("predict", "flats.mve", "data", "--quantile", "0.1", "--json", "-o")
    assert ran(*command, tmp_path / "here")[0] == 0
    settings = {"processes": False, "n_workers": 2, "threads_per_worker": 1}
    with distributed.LocalCluster(**settings, dashboard_address=":0") as cluster:
        code, told = ran(*command, tmp_path / "there", "--dask", cluster.scheduler_address)
    facts = json.loads(told)
    assert code == 0 and (facts["files"], facts["rows"], facts["failed"]) == (3, 120, {})
    for file in (tmp_path / "here").iterdir():
        assert (tmp_path / "there" / file.name).read_bytes() == file.read_bytes()


def test_a_corrupt_file_is_named_and_the_others_are_predicted(ran, place, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    for file in (place / "data").iterdir():
        (data / file.name).write_bytes(file.read_bytes())
    (data / "1.parquet").write_bytes(b"PAR1 and no more")
    code, told = ran("predict", "flats.mve", data, "-o", tmp_path / "out")
    assert code == 1 and "2 of 3 files, 80 rows in" in told
    assert "1 of 3 files could not be predicted: " in told
    assert "1.parquet cannot be read as Parquet" in told


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("data", "-o", "-"), "data is a folder: name a folder to write to, not -"),
        (("data", "-o", "out.csv"), "data is a folder: name a folder to write to, not out.csv"),
        (("data", "-o", "out", "--sheet", "a"), "which have no sheets: drop it"),
        (("data", "-o", "data"), "data is the folder that is read: name another one"),
        (("data/0.parquet", "-o", "o.csv", "--dask", "tcp://h:1"), "data/0.parquet is none: drop"),
        (("data", "-o", "out", "--dask", "zzz://h:1"), "No Dask scheduler answers at zzz://h:1"),
    ],
    ids=str,
)
def test_what_cannot_be_is_told(ran, place, arguments, told):
    code, words = ran("predict", "flats.mve", *arguments)
    assert code != 0 and told in words and not (place / "out").exists()


# --- fit -----------------------------------------------------------------------------------------

QUICKLY = ("--target", "price", "--no-search", "--holdout", "0")


def test_a_share_of_a_folder_is_fitted_and_told(ran, tmp_path, short):
    command = ("fit", "data", *QUICKLY, "--share", "0.5", "-o", tmp_path / "m.mve")
    code, told = ran(*command)
    assert code == 0 and "Reading data. 60 of 120 rows, drawn at random." in told
    facts = json.loads(ran(*command, "--json")[1])
    assert (facts["rows_read"], facts["rows_there"]) == (60, 120)


def test_a_folder_that_does_not_fit_into_memory_is_sampled(ran, tmp_path, monkeypatch, short):
    from mvenet._columns import lazy

    monkeypatch.setattr(
        lazy, "memory", lambda: 2 * 50 * (lazy.BYTES_A_ROW + 4 * lazy.BYTES_A_NUMBER)
    )
    code, told = ran("fit", "data", *QUICKLY, "-o", tmp_path / "m.mve")
    assert code == 0 and "50 of 120 rows, drawn at random." in told


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("data", *QUICKLY, "--share", "0"), "--share"),
        (("data", *QUICKLY, "--share", "2"), "--share"),
        (("data", *QUICKLY, "--share", "nan"), "it must be above 0 and at most 1"),
        (("data",), "--target"),
        (
            ("empty", *QUICKLY),
            "empty holds no Parquet files: name a folder of *.parquet, or a file",
        ),
        (("data", "--target", "prize"), "There is no column 'prize'"),
    ],
    ids=str,
)
def test_what_cannot_be_fitted_is_told(ran, place, tmp_path, arguments, told):
    (place / "empty").mkdir(exist_ok=True)
    code, words = ran("fit", *arguments, "-o", tmp_path / "m.mve")
    assert code != 0 and told in words and not (tmp_path / "m.mve").exists()
