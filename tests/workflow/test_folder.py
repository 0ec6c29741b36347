"""Predictions for a folder of Parquet files: whole or not at all, resumed, alike on a cluster."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mvenet import MVERegressor
from mvenet._training import distributed as over_dask
from mvenet.persistence import load_to_predict, save

pl = pytest.importorskip("polars")
pytest.importorskip("skops")
from mvenet.table import _files  # noqa: E402
from mvenet.workflow import _folder, _serving  # noqa: E402

LEVELS: dict[str, Any] = {"intervals": [0.9], "quantiles": [], "simultaneous": False}


def flats(n: int, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    size = rng.uniform(20, 200, n)
    town = rng.choice(["Bonn", "Köln"], n)
    return pl.DataFrame({"size": size, "town": town, "price": 3 * size + rng.normal(0, 10, n)})


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """Two models as loaded, each with what no other has."""
    place, frame, loaded = tmp_path_factory.mktemp("models"), flats(60, 0), []
    for seed in (0, 1):
        model = MVERegressor(strategy="warmup", epochs=3, warmup_epochs=3, random_state=seed)
        save(model.fit(frame.drop("price"), frame["price"]), place / f"{seed}.mve")
        loaded.append((load_to_predict(place / f"{seed}.mve"), f"model {seed}"))
    return loaded


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Three files, of several row groups each, one of them without rows, and what is no data."""
    folder = tmp_path / "data"
    folder.mkdir()
    for number, n in enumerate((50, 70, 0)):
        flats(n, number).write_parquet(folder / f"part {number}.parquet", row_group_size=30)
    (folder / "_SUCCESS").touch()
    (folder / ".part 0.parquet.crc").touch()
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_each_file_gets_the_predictions_that_it_gets_alone(models, data, tmp_path, monkeypatch):
    monkeypatch.setattr(_files, "CHUNK_ROWS", 20)  # several parts a file
    told = _folder.predict_folder(*models[0], data, tmp_path / "out", **LEVELS)
    assert (told.files, told.empty, told.finished, told.failed) == (3, 1, 0, {})
    assert told.served is not None and told.served.rows == 120
    assert sorted(contents(tmp_path / "out")) == ["part 0.parquet", "part 1.parquet"]
    for name in contents(tmp_path / "out"):
        frame = pl.read_parquet(data / name)
        alone = _serving.predictions(models[0][0], frame, [0.9])
        assert pl.read_parquet(tmp_path / "out" / name).equals(frame.hstack(alone))


def test_what_is_finished_is_not_predicted_again_and_all_else_is(
    models, data, tmp_path, monkeypatch
):
    out, predicted = tmp_path / "out", []
    predict = _folder.predict_file

    def watched(model, source, *more, **named):
        predicted.append(source.name)
        return predict(model, source, *more, **named)

    monkeypatch.setattr(_folder, "predict_file", watched)

    def again(model=0, **changed):
        predicted.clear()
        _folder.predict_folder(*models[model], data, out, **(LEVELS | changed))
        return predicted

    assert again() == ["part 0.parquet", "part 1.parquet"]
    whole = contents(out)
    assert again() == []
    (out / "part 0.parquet").write_bytes(whole["part 0.parquet"][:-9])  # half-written by others
    assert again() == ["part 0.parquet"] and contents(out) == whole
    (out / "part 1.parquet").unlink()
    assert again() == ["part 1.parquet"] and contents(out) == whole
    stamp = (data / "part 0.parquet").stat()
    flats(50, 9).write_parquet(data / "part 0.parquet", row_group_size=30)
    os.utime(data / "part 0.parquet", ns=(stamp.st_atime_ns, stamp.st_mtime_ns))  # unnoticed
    assert again() == ["part 0.parquet"]
    assert again(intervals=[0.5]) == ["part 0.parquet", "part 1.parquet"]
    assert again(model=1, intervals=[0.5]) == ["part 0.parquet", "part 1.parquet"]
    assert again(model=1, intervals=[0.5]) == []


def test_a_file_that_fails_leaves_nothing_and_the_others_are_done(models, data, tmp_path):
    out, good = tmp_path / "out", data / "part 1.parquet"
    (data / "part 0.parquet").write_bytes(good.read_bytes()[:-9])
    broken = bytearray(good.read_bytes())
    broken[8:200] = bytes(192)  # what the end of the file does not tell
    (data / "part 3.parquet").write_bytes(broken)
    flats(9, 0).drop("size").write_parquet(data / "part 4.parquet")
    told = _folder.predict_folder(*models[0], data, out, **LEVELS)
    assert list(contents(out)) == ["part 1.parquet"]
    assert list(told.failed) == ["part 0.parquet", "part 3.parquet", "part 4.parquet"]
    assert "part 0.parquet cannot be read as Parquet" in told.failed["part 0.parquet"]
    assert "part 3.parquet cannot be read as Parquet" in told.failed["part 3.parquet"]
    assert "'size'" in told.failed["part 4.parquet"]


def test_an_error_in_a_later_part_leaves_nothing(models, data, tmp_path, monkeypatch):
    monkeypatch.setattr(_files, "CHUNK_ROWS", 20)
    frame = flats(50, 0).with_columns(pl.col("size").cast(pl.String))
    frame[45, "size"] = "large"
    frame.write_parquet(data / "part 0.parquet")
    told = _folder.predict_folder(*models[0], data, tmp_path / "out", **LEVELS)
    assert list(told.failed) == ["part 0.parquet"] and "'large'" in told.failed["part 0.parquet"]
    assert list(contents(tmp_path / "out")) == ["part 1.parquet"]


def test_a_cluster_writes_the_same_bytes(models, data, tmp_path):
    distributed = pytest.importorskip("distributed")
    here, there = tmp_path / "here", tmp_path / "there"
    (data / "part 3.parquet").write_bytes(b"PAR1")
    alone = _folder.predict_folder(*models[0], data, here, **LEVELS)
    options = {"processes": False, "n_workers": 2, "threads_per_worker": 1}
    shares: list[float] = []
    with (
        distributed.LocalCluster(**options, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        settings = {"client": client, "progress": shares.append}
        told = _folder.predict_folder(*models[0], data, there, **settings, **LEVELS)
        assert any("predict_on_worker" in prefix for prefix in cluster.scheduler.task_prefixes)
        again = _folder.predict_folder(*models[0], data, there, **settings, **LEVELS)
        blind = tmp_path / "not there"
        with pytest.raises(OSError, match=r"sees no folder .*not there: use one on a disk that"):
            over_dask.require_folders(client, [data, blind])
    assert contents(here) == contents(there)
    assert told.served.rows == alone.served.rows and told.failed == alone.failed
    assert shares[:4] == [0.25, 0.5, 0.75, 1.0] and again.finished == 2


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("empty", r"empty holds no Parquet files: name a folder"),
        ("years", r"holds no Parquet files itself \(its folders, such as 2020, may\)"),
        ("mixed", r"mixed holds more.csv beside Parquet files: move it"),
        ("missing", r"missing"),
    ],
)
def test_folders_that_are_no_table(models, data, tmp_path, name, told):
    (tmp_path / "empty").mkdir()
    (tmp_path / "years" / "2020").mkdir(parents=True)
    (tmp_path / "mixed").mkdir()
    (tmp_path / "mixed" / "a.parquet").touch()
    (tmp_path / "mixed" / "more.csv").touch()
    with pytest.raises((OSError, ValueError), match=told):
        _folder.predict_folder(*models[0], tmp_path / name, tmp_path / "out", **LEVELS)
    assert not (tmp_path / "out").exists()


def test_places_that_cannot_be_written_to(models, data, tmp_path):
    def into(output: Path) -> None:
        _folder.predict_folder(*models[0], data, output, **LEVELS)

    before = contents(data)
    with pytest.raises(ValueError, match="is the folder that is read: name another"):
        into(data / ".." / "data")
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match=r"is a file, and .* a folder: name a folder"):
        into(tmp_path / "file")
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*/none"):
        into(tmp_path / "none" / "out")
    (tmp_path / "mine").mkdir()
    flats(5, 0).write_parquet(tmp_path / "mine" / "part 1.parquet")
    mine = contents(tmp_path / "mine")
    with pytest.raises(ValueError, match=r"part 1.parquet was not made by mvenet predict"):
        into(tmp_path / "mine")
    assert contents(tmp_path / "mine") == mine and contents(data) == before


def test_files_beside_those_written_are_told(models, data, tmp_path):
    (tmp_path / "out").mkdir()
    flats(5, 0).write_parquet(tmp_path / "out" / "old.parquet")
    told = _folder.predict_folder(*models[0], data, tmp_path / "out", **LEVELS)
    assert told.strangers == ["old.parquet"]
