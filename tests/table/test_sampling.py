"""Tables larger than memory: a uniform random sample of rows, read once."""

from __future__ import annotations

import numpy as np
import pytest

from mvenet import CalibratedRegressor, MVERegressor
from mvenet._columns import lazy
from mvenet._estimators.dependence import Belonging
from mvenet._estimators.lazy_frames import in_memory
from mvenet._utils import machine

pl = pytest.importorskip("polars")
pd = pytest.importorskip("pandas")
from mvenet.table import read, sample  # noqa: E402

QUICK = {"strategy": "warmup", "epochs": 3, "warmup_epochs": 3, "random_state": 0}


def flats(n, seed=0):
    rng = np.random.default_rng(seed)
    size = rng.uniform(20, 200, n).round(1)
    town = rng.choice(["Bonn", "Köln"], n)
    return pl.DataFrame(
        {"size": size, "town": town, "id": range(n), "price": 3 * size + rng.normal(0, 10, n)}
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three files of several row groups, one with its columns in another order."""
    place, whole = tmp_path_factory.mktemp("data"), flats(300)
    for number, (low, high) in enumerate([(0, 80), (80, 90), (90, 300)]):
        part = whole[low:high]
        part = part.select(reversed(part.columns)) if number == 1 else part
        part.write_parquet(place / f"{number}.parquet", row_group_size=25)
    return place


@pytest.fixture
def little_memory(monkeypatch):
    """As much as 100 rows of flats need, which become five numbers each."""
    rows = 100
    monkeypatch.setattr(
        lazy, "memory", lambda: 2 * rows * (lazy.BYTES_A_ROW + 5 * lazy.BYTES_A_NUMBER)
    )
    return rows


def test_what_fits_is_all_of_it(folder):
    found = sample(folder)
    assert found.frame.equals(flats(300)) and found.total == 300 and not found.sentence
    assert found.rows.tolist() == list(range(300))
    one = folder / "2.parquet"
    assert sample(one).frame.equals(read(one))


def test_as_many_rows_as_fit_are_drawn_whatever_the_files(folder, little_memory):
    found = sample(folder, seed=3)
    assert found.sentence == "100 of 300 rows, drawn at random"
    assert found.frame["id"].to_list() == found.rows.tolist()  # those rows, in their order
    assert found.frame.equals(flats(300)[found.rows])
    other = sample(flats(300).lazy(), seed=3)
    assert other.frame.equals(found.frame)
    assert sample(folder, seed=4).rows.tolist() != found.rows.tolist()
    assert len(sample(folder, 0.5, seed=3).rows) == 150  # who asks for more gets more


def test_every_row_is_as_likely_as_any_other():
    counts = np.zeros(50)
    for seed in range(1000):
        rows = lazy.drawn(50, 0.2, 1, seed)
        assert len(np.unique(rows)) == 10
        counts[rows] += 1
    # Means of 1,000 draws of probability 0.2: five standard deviations are 0.063.
    assert abs(counts / 1000 - 0.2).max() < 0.065
    assert np.corrcoef(counts, np.arange(50))[0, 1] < 0.5


def test_what_fits_is_derived_from_memory(monkeypatch, tmp_path):
    monkeypatch.setattr(lazy, "memory", lambda: 16 << 30)
    assert lazy.rows_that_fit(10) == (8 << 30) // 15_000
    assert lazy.numbers_of_a_row(flats(300).lazy()) == 5  # two towns
    assert lazy.numbers_of_a_row(flats(300).lazy().with_columns(t=pl.col("id").cast(str))) == 7
    (tmp_path / "memory.max").write_text("12345678\n")
    assert machine.memory(tmp_path) == 12345678
    (tmp_path / "memory.max").write_text("max\n")
    assert machine.memory(tmp_path) == machine.memory(tmp_path / "none") > 1 << 28


def test_a_csv_is_read_whole_and_sampled_if_asked(tmp_path, little_memory):
    flats(300).write_csv(tmp_path / "flats.csv")
    assert not sample(tmp_path / "flats.csv").sentence
    found = sample(tmp_path / "flats.csv", 0.1)
    assert found.frame["id"].to_list() == [str(row) for row in found.rows] and found.total == 300


@pytest.mark.parametrize("share", [0, -0.1, 2, float("nan")])
def test_shares_that_are_none(folder, share):
    with pytest.raises(ValueError, match=r"share=.* must be above 0 and at most 1"):
        sample(folder, share)


def test_files_that_do_not_go_together(tmp_path):
    flats(5).write_parquet(tmp_path / "a.parquet")
    flats(5).drop("town").write_parquet(tmp_path / "b.parquet")
    with pytest.raises(ValueError, match=r"a.parquet has a column 'town' that .*b.parquet lacks"):
        sample(tmp_path)
    flats(5).with_columns(town=pl.concat_list("id")).write_parquet(tmp_path / "b.parquet")
    with pytest.raises(ValueError, match="types that do not go together"):
        sample(tmp_path)
    (tmp_path / "b.parquet").write_bytes(b"PAR1")
    with pytest.raises(ValueError, match=r"b.parquet cannot be read as Parquet"):
        sample(tmp_path)
    flats(0).write_parquet(tmp_path / "b.parquet")
    flats(0).write_parquet(tmp_path / "a.parquet")
    with pytest.raises(ValueError, match="has no rows"):
        sample(tmp_path)


def test_whole_numbers_in_one_file_and_others_in_the_next(tmp_path):
    pl.DataFrame({"x": [1, 2]}).write_parquet(tmp_path / "a.parquet")
    pl.DataFrame({"x": [0.5, None]}).write_parquet(tmp_path / "b.parquet")
    assert sample(tmp_path).frame["x"].to_list() == [1.0, 2.0, 0.5, None]


# --- fit -----------------------------------------------------------------------------------------


def as_dask(frame, partitions=4):
    dask = pytest.importorskip("dask.dataframe")
    return dask.from_pandas(frame.to_pandas(), npartitions=partitions)


@pytest.mark.parametrize("kind", ["polars", "dask"])
def test_a_lazy_frame_is_fitted_as_the_frame_in_memory(folder, kind):
    whole = flats(300)
    given = pl.scan_parquet(folder / "*.parquet") if kind == "polars" else as_dask(whole)
    given = whole.lazy() if kind == "polars" else given
    eager = whole if kind == "polars" else whole.to_pandas()
    expected = MVERegressor(**QUICK).fit(eager[["size", "town", "id"]], eager["price"])
    by_name = MVERegressor(**QUICK).fit(given, "price")
    assert by_name.target_name_ == "price" and list(by_name.feature_names_in_) == [
        *("size", "town", "id")
    ]
    inputs = given.drop("price") if kind == "polars" else given.drop(columns="price")
    target = given.select("price") if kind == "polars" else given["price"]
    by_column = MVERegressor(**QUICK).fit(inputs, target)
    for model in (by_name, by_column):
        np.testing.assert_array_equal(model.predict(eager), expected.predict(eager))
        np.testing.assert_array_equal(model.predict(given), expected.predict(eager))


@pytest.mark.parametrize("kind", ["polars", "dask"])
def test_what_does_not_fit_is_sampled_and_told(kind, little_memory):
    whole = flats(300)
    given = whole.lazy() if kind == "polars" else as_dask(whole)
    rows = sample(given, seed=0).rows
    eager = whole[rows] if kind == "polars" else whole.to_pandas().iloc[rows]
    groups = np.arange(300) // 3
    with pytest.warns(UserWarning, match="Fitted to 100 of 300 rows, drawn at random: more do not"):
        model = MVERegressor(**QUICK).fit(given, "price", sample_weight="size", groups=groups)
    alone = MVERegressor(**QUICK).fit(
        eager[["town", "id"]], eager["price"], eager["size"], groups[rows]
    )
    np.testing.assert_array_equal(model.predict(eager), alone.predict(eager))
    assert model.n_rows_ == 100


def test_several_targets_by_name_and_a_calibrated_estimator():
    whole = flats(60).with_columns(rent=pl.col("size"))
    X, y, _, tied = in_memory(whole.lazy(), ["price", "rent"], None, Belonging("town"), 0)
    assert y.equals(whole[["price", "rent"]]) and X.equals(whole[["size", "id"]])
    assert tied.groups.equals(whole["town"])
    model = CalibratedRegressor(MVERegressor(**QUICK), cv=2).fit(whole.lazy(), "price")
    assert model.predict_interval(whole, 0.9).shape == (60, 2) and model.target_name_ == "price"


@pytest.mark.parametrize(
    ("X", "given", "told"),
    [
        (flats(20).lazy(), {"y": "prize"}, "y='prize' is no column of X, which has size, town"),
        (flats(20).lazy(), {"y": "price", "groups": "town hall"}, "groups='town hall' is no col"),
        (flats(20).lazy(), {"y": np.zeros(3)}, "y has 3 values, and X has 20 rows"),
        (flats(20).lazy(), {"y": flats(9).lazy().select("price")}, "y has 9 values, and X has 20"),
        (flats(20).lazy().select("price"), {"y": "price"}, "No column of X is left to predict"),
        (flats(20).lazy().filter(pl.col("size") < 0), {"y": "price"}, "X has no rows: is its"),
    ],
)
def test_lazy_frames_that_cannot_be_fitted(X, given, told):
    with pytest.raises(ValueError, match=told):
        MVERegressor(**QUICK).fit(X, **given)
