"""The league: its scores, what it keeps, how it can be stopped, and who it says is best."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import signal
import subprocess
import sys
import zipfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm, t
from sklearn.model_selection import KFold

import mvenet
import mvenet.datasets
from mvenet import metrics

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import league  # noqa: E402
import league_environments  # noqa: E402
import league_methods  # noqa: E402
import league_page  # noqa: E402
import league_scores  # noqa: E402
import league_sources  # noqa: E402
import league_tables  # noqa: E402
import league_worker  # noqa: E402
import records  # noqa: E402
from league_predictions import (  # noqa: E402
    Library,
    NormalMixture,
    Parametric,
    PiecewiseLinear,
    Point,
    Samples,
    joined,
)

LEVELS = np.array([0.01, 0.05, 0.5, 0.95, 0.99])
Y = np.array([0.3, 5.5, -12.0])
MEANS, STDS = np.array([0.0, 5.0, -3.0]), np.array([1.0, 0.2, 3.0])


# Predictions


def test_our_mixture_for_the_peers_is_the_library_s():
    rng = np.random.default_rng(0)
    means, stds = rng.normal(size=(4, 3)), rng.uniform(0.1, 2, (4, 3))
    plain, library = NormalMixture(means, stds), Library(mvenet.NormalMixture(means, stds))
    np.testing.assert_allclose(plain.mean, library.mean)
    np.testing.assert_allclose(plain.std, library.std)
    np.testing.assert_allclose(plain.crps(Y), library.crps(Y))
    np.testing.assert_allclose(plain.cdf(Y), library.cdf(Y))
    np.testing.assert_allclose(plain.logpdf(Y), library.logpdf(Y))
    np.testing.assert_allclose(plain.quantiles(LEVELS), library.quantiles(LEVELS), atol=1e-9)


def test_one_normal_is_a_mixture_of_one():
    one = NormalMixture(MEANS[None], STDS[None])
    np.testing.assert_allclose(one.quantiles(LEVELS)[1], norm(5, 0.2).ppf(LEVELS))
    np.testing.assert_allclose(one.crps(Y), mvenet.Normal(MEANS, STDS).crps(Y))


@pytest.mark.parametrize("y", [-3.0, 0.0, 0.4, 1.0, 2.5, 9.0])
def test_crps_of_pieces_is_the_integral_of_its_definition(y):
    pieces = PiecewiseLinear(np.array([0, 1, 1, 3.0]), np.array([0, 0.2, 0.5, 1.0]), "")

    def square(z):
        return float((pieces.cdf(np.array([z]))[0] - (z >= y)) ** 2)

    expected, _ = quad(square, min(y, -1), max(y, 4), points=[0, 1, 3, y], limit=200)
    assert pieces.crps(np.array([y]))[0] == pytest.approx(expected, abs=1e-6)


def test_pieces_jump_where_edges_are_equal():
    pieces = PiecewiseLinear(np.array([[0, 1, 1, 3.0]] * 3), np.array([0, 0.2, 0.5, 1.0]), "")
    np.testing.assert_allclose(pieces.cdf(np.array([1 - 1e-12, 1, 3])), [0.2, 0.5, 1], atol=1e-9)
    np.testing.assert_allclose(pieces.cdf(np.array([-1.0, 5, 2])), [0, 1, 0.75])
    np.testing.assert_allclose(pieces.quantiles(np.array([0.1, 0.3, 0.75]))[0], [0.5, 1, 2])
    np.testing.assert_allclose(pieces.mean, 0.2 * 0.5 + 0.3 * 1 + 0.5 * 2)
    assert pieces.logpdf(Y) is None and pieces.std is None


def test_many_rows_are_scored_in_parts_as_at_once(monkeypatch):
    rng = np.random.default_rng(0)
    pieces = PiecewiseLinear(np.sort(rng.normal(size=(7, 9))), np.linspace(0, 1, 9), "")
    y = rng.normal(size=7)
    whole = pieces.crps(y)
    monkeypatch.setattr("league_predictions.ROWS_AT_ONCE", 3)
    np.testing.assert_array_equal(pieces.crps(y), whole)


def test_a_normal_given_by_its_quantiles_scores_as_the_normal():
    levels = league_methods.PINBALL_LEVELS
    values = norm.ppf(levels[None], MEANS[:, None], STDS[:, None])
    crossed = values[:, ::-1]  # networks know nothing of the order of their heads
    quantiles, normal = joined(levels, crossed, "50"), mvenet.Normal(MEANS, STDS)
    np.testing.assert_allclose(quantiles.mean, MEANS, atol=1e-9)
    np.testing.assert_allclose(quantiles.quantiles(LEVELS), normal.ppf(LEVELS), atol=0.02)
    np.testing.assert_allclose(quantiles.crps(Y), normal.crps(Y), rtol=0.01)


def test_draws_are_scored_without_bias():
    rng = np.random.default_rng(1)
    y = np.zeros(4000)
    few = Samples(rng.normal(size=(4000, 5)))  # the plain estimate is too large by a fifth
    assert np.mean(few.crps(y)) == pytest.approx(norm.pdf(0) * 2 - 1 / np.sqrt(np.pi), abs=0.005)
    assert few.origin == "5 draws"
    many = Samples(rng.normal(size=(1, 20_000)))
    assert many.cdf(np.array([1.0]))[0] == pytest.approx(norm.cdf(1), abs=0.01)
    assert many.logpdf(np.array([1.0]))[0] == pytest.approx(norm.logpdf(1), abs=0.05)
    np.testing.assert_allclose(many.quantiles(LEVELS)[0], norm.ppf(LEVELS), atol=0.1)


def test_draws_that_are_all_equal_have_a_width():
    same = Samples(np.full((1, 50), 3.0))
    assert same.cdf(np.array([2.99]))[0] == 0 and same.cdf(np.array([3.01]))[0] == 1


def test_a_distribution_of_scipy_answers_for_itself():
    student = Parametric(t([3.0, 50.0, 50.0], MEANS, STDS))
    np.testing.assert_allclose(student.mean, MEANS)
    np.testing.assert_allclose(student.cdf(student.quantiles(LEVELS)[:, 1]), 0.05)
    normal = Parametric(norm(MEANS, STDS))
    np.testing.assert_allclose(normal.crps(Y), mvenet.Normal(MEANS, STDS).crps(Y), rtol=1e-3)


# Scores


def test_resolution_is_the_smallest_step_but_never_minute():
    assert league_scores.resolution(np.array([5.0, 6, 5, 8])) == 1
    assert league_scores.resolution(np.array([0, 1e-9, 1])) == pytest.approx(1e-3, rel=0.6)
    y = np.random.default_rng(0).normal(size=1000)
    assert league_scores.resolution(y) == pytest.approx(y.std() / 1000)


def test_scores_are_those_of_the_library():
    y = np.array([0.0, 2.0, 7.0])
    dist = mvenet.Normal([0.0, 1.0, 2.0], [1.0, 0.5, 2.0])
    found = league_scores.scores(y, Library(dist), 1e-4, y)
    assert found["loglik"] == pytest.approx(-metrics.nll(y, dist))
    assert found["gaussian_loglik"] == pytest.approx(-metrics.nll(y, dist))
    assert found["log_cells"] == pytest.approx(-metrics.nll(y, dist), abs=1e-6)
    assert found["crps"] == pytest.approx(metrics.crps(y, dist))
    assert found["coverage"] == pytest.approx(metrics.coverage(y, dist, nominal=0.9))
    low, high = dist.interval(0.9).T
    assert found["width"] == pytest.approx(np.mean(high - low))
    missed = np.maximum(low - y, 0) + np.maximum(y - high, 0)
    assert found["interval_score"] == pytest.approx(np.mean(high - low + 20 * missed))
    assert league_scores.scores(y, Point(dist.mean), 1.0, y) == {
        "rmse": pytest.approx(metrics.rmse(y, dist))
    }


def test_a_spike_is_not_rewarded_beyond_its_cell():
    y = np.array([3.0, 4.0])
    wide, narrow = (NormalMixture(y[None], np.full((1, 2), s)) for s in (0.05, 1e-7))
    found = [league_scores.scores(y, one, 1.0, np.arange(9.0)) for one in (wide, narrow)]
    assert found[0]["log_cells"] == pytest.approx(0) == found[1]["log_cells"]
    assert found[1]["loglik"] > 10 > found[0]["loglik"]


def test_an_atom_is_scored_by_its_probability():
    atoms = PiecewiseLinear(np.array([0, 0, 1, 1.0]), np.array([0, 0.3, 0.3, 1.0]), "")
    found = league_scores.scores(np.array([1.0]), atoms, 0.5, np.arange(3.0))
    assert found["log_cells"] == pytest.approx(np.log(0.7 / 0.5))


def test_what_was_impossible_costs_much_but_not_everything():
    y, known = np.array([0.5, 9.0]), np.arange(10.0)
    bar = PiecewiseLinear(np.array([0, 1.0]), np.array([0, 1.0]), "")
    pieces = PiecewiseLinear(np.tile(bar.edges, (2, 1)), bar.levels, "")
    found = league_scores.scores(y, pieces, 0.1, known)
    assert found["log_cells"] == -np.inf and found["impossible"] == 0.5
    wide = t(3, known.mean(), known.std())
    cells = (wide.cdf(y + 0.05) - wide.cdf(y - 0.05)) * 1e-3 + np.array([0.1, 0]) * (1 - 1e-3)
    assert found["log_score"] == pytest.approx(np.mean(np.log(cells / 0.1)))


def test_pit_is_flat_for_what_is_right_also_with_atoms():
    rng = np.random.default_rng(3)
    y = rng.choice([0.0, 1.0], 5000, p=[0.7, 0.3])
    edges, levels = np.array([0, 0, 1, 1.0]), np.array([0, 0.7, 0.7, 1.0])
    right = PiecewiseLinear(np.tile(edges, (5000, 1)), levels, "")
    found = league_scores.scores(y, right, 1.0, y)
    assert found["pit_gap"] < 0.01
    assert sum(map(int, found["pit"].split())) == 5000
    assert found["coverage"] == 1  # an interval that ends on an atom holds it
    sure = NormalMixture(np.zeros((1, 5000)), np.full((1, 5000), 0.1))
    assert league_scores.scores(rng.normal(size=5000), sure, 0.01, y)["pit_gap"] > 0.05


# Tables


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a few small tables under names that the league knows."""
    rng = np.random.default_rng(0)
    data = np.column_stack([rng.normal(3, 5, (50, 2)), rng.normal(-7, 2, 50)])
    for name in ("airfoil", "machine"):
        np.savetxt(tmp_path / f"{name}.csv", data, delimiter=",", header="a,b,y", comments="")
    lines = [f"{k % 12},{'ab'[k % 2]},{'xyz'[k % 3]},{k},{k % 5}" for k in range(48)]
    (tmp_path / "epil.csv").write_text("\n".join(["subject,two,three,v,y", *lines]))
    days = [f"19{80 + (7 * k) % 20}-01-{k % 28 + 1:02},{k},{k}" for k in range(40)]
    (tmp_path / "djia.csv").write_text("\n".join(["day,lag,y", *days]))
    monkeypatch.setenv("MVENET_DATA", "")
    monkeypatch.setenv("MVENET_TABLES", f"{tmp_path / 'none'}{os.pathsep}{tmp_path}")
    return tmp_path


def test_folds_are_dealt_at_random(folder):
    table = league_tables.BY_NAME["airfoil"]
    rows = league_tables.load(table)
    found = list(league_tables.splits(table, rows))
    expected = KFold(10, shuffle=True, random_state=1).split(rows.X)
    assert len(found) == table.n_folds == 10
    for (train, test), (train_too, test_too) in zip(found, expected, strict=True):
        np.testing.assert_array_equal(train, train_too)
        np.testing.assert_array_equal(test, test_too)
    assert league_tables.BY_NAME["protein"].n_folds == 3


def test_groups_are_new_and_categories_become_columns(folder):
    table = league_tables.BY_NAME["epil"]
    rows = league_tables.load(table)
    assert rows.X.shape == (48, 1 + 3 + 1)  # the group is no input
    np.testing.assert_array_equal(rows.X[:, 1:4].sum(axis=1), 1)
    seen = []
    for train, test in league_tables.splits(table, rows):
        assert not set(rows.groups[train]) & set(rows.groups[test])
        assert len(train) + len(test) == 48
        seen.extend(test)
    assert sorted(seen) == list(range(48))


def test_the_future_is_predicted_from_the_past(folder):
    table = league_tables.BY_NAME["djia"]
    rows = league_tables.load(table)
    assert rows.X.shape == (40, 2)
    np.testing.assert_array_equal(rows.X[:, 0], rows.time)
    np.testing.assert_array_equal(rows.time[:1], [3652.0])  # the first of January 1980
    found = list(league_tables.splits(table, rows))
    assert len(found) == table.n_folds == 5
    for train, test in found:
        assert rows.time[train].max() < rows.time[test].min()
    assert sum(len(test) for _, test in found) == 20 == len(found[0][0])


def test_bde_s_split_is_standardised_on_its_training_rows(folder):
    train, test = league_tables.fold_of(league_tables.BY_NAME["airfoil (BDE)"], 0)
    assert (len(train), len(test)) == (40, 10)
    moments = [train.X.mean(), train.X.std(), train.y.mean(), train.y.std()]
    np.testing.assert_allclose(moments, [0, 1, 0, 1], atol=1e-9)
    assert abs(test.y.mean()) > 1e-6


def test_a_share_of_the_rows_is_the_same_every_time(folder):
    rows = league_tables.load(league_tables.BY_NAME["machine"])
    some, again = league_tables.drawn(rows, 20), league_tables.drawn(rows, 20)
    np.testing.assert_array_equal(some.X, again.X)
    assert len(some) == 20 and league_tables.drawn(rows, 50) is rows
    assert len(np.unique(some.y)) == 20


def test_a_missing_table_is_one_sentence(folder):
    with pytest.raises(SystemExit, match=r"yacht.csv is missing: set MVENET_DATA or MVENET_TABLES"):
        league_tables.load(league_tables.BY_NAME["yacht"])


# Sources


def test_every_table_has_a_public_source():
    files = {table.file.removesuffix(".csv") for table in league_tables.TABLES}
    assert files == {*league_sources.SOURCES, *mvenet.datasets._SOURCES}
    for source in league_sources.SOURCES.values():
        assert len(source.sha256) == 64 and source.url.startswith("https://")


def served(monkeypatch, path, name, data, **changed):
    """A source as a file of this machine."""
    path.write_bytes(data)
    source = replace(league_sources.SOURCES[name], url=path.as_uri(), **changed)
    monkeypatch.setitem(league_sources.SOURCES, name, source)


def zipped(**members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in members.items():
            archive.writestr(name.replace("__", "."), text)
    return buffer.getvalue()


QUOTED = 'rownames,trt,base,age,y,"V4",subject,period,lage\n1,"a",11,31,5,0,1,2,9\n'
PRICES = "rownames,dat\n" + "".join(f"1980-{k},{100 * 1.01**k}\n" for k in range(30))


@pytest.mark.parametrize(
    ("name", "data", "head", "first"),
    [
        ("machine", gzip.compress(b"1,2,3e0\n4,5,6\n", mtime=0), "x0,x1,y", "1,2,3e0"),
        (
            "airfoil",
            zipped(airfoil_self_noise__dat="800\t0\t0.3\t71.3\t0.002\t126.2\n\n"),
            "frequency,angle,chord,velocity,thickness,sound_pressure",
            "800,0,0.3,71.3,0.002,126.2",
        ),
        ("epil", QUOTED.encode(), "trt,base,age,V4,subject,period,y", "a,11,31,0,1,2,5"),
        (
            "macro",
            b"rownames,m1,cpi,invest,consumption,tbill,unemp\n1,1,2,3,4,5,6\n",
            "quarter,consumption,tbill,unemp,m1,cpi,invest",
            "1950-01-01,4,5,6,1,2,3",
        ),
        (
            "djia",
            PRICES.encode(),
            "day,lag1,lag2,lag3,lag4,lag5,volatility,change",
            "1980-25," + ",".join(["0.99503"] * 7),
        ),
    ],
)
def test_a_table_is_made_from_its_source(tmp_path, monkeypatch, name, data, head, first):
    expected = league_sources.digest(league_sources.SOURCES[name].make(data))
    served(monkeypatch, tmp_path / "source", name, data, sha256=expected)
    assert league_sources.fetch(name, tmp_path).endswith("is written.")
    assert (tmp_path / f"{name}.csv").read_text().splitlines()[:2] == [head, first]
    (tmp_path / "source").unlink()
    assert league_sources.fetch(name, tmp_path).endswith("is there.")


def test_the_hours_of_bike_lose_dates_and_parts_of_the_count():
    names = "instant,dteday,season,yr,mnth,hr,holiday,weekday,workingday,weathersit,temp,atemp,hum"
    text = f"{names},windspeed,casual,registered,cnt\n" + ",".join(map(str, range(17)))
    _, row = league_sources.bike(zipped(hour__csv=text))
    assert row == [str(k) for k in (*range(2, 14), 16)]


@pytest.mark.parametrize("data", [b"", b"no archive", gzip.compress(b"1,2,3\n4,5,7\n", mtime=0)])
def test_a_source_that_has_changed_is_refused_and_the_others_go_on(
    tmp_path, monkeypatch, capsys, data
):
    served(monkeypatch, tmp_path / "source", "machine", data)
    served(monkeypatch, tmp_path / "other", "epil", QUOTED.encode())
    made = league_sources.SOURCES["epil"].make(QUOTED.encode())
    changed = replace(league_sources.SOURCES["epil"], sha256=league_sources.digest(made))
    monkeypatch.setitem(league_sources.SOURCES, "epil", changed)
    arguments = ["fetch", str(tmp_path / "new"), "--tables", "machine", "epil"]
    monkeypatch.setattr(sys, "argv", ["league.py", *arguments])
    assert league.main() == 1
    told = capsys.readouterr()
    assert told.err.startswith("machine ") and told.err.count("\n") == 1
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["epil.csv"]


def test_digits_beyond_the_twelfth_do_not_count():
    cells = [["a", "b"], ["1.0000000000000002", "x"], ["-0.0", "y"]]
    assert league_sources.digest(cells) == league_sources.digest([["?"], ["1", "x"], ["0", "y"]])
    assert league_sources.digest(cells) != league_sources.digest(
        [["?"], ["1.001", "x"], ["0", "y"]]
    )


@pytest.mark.parametrize("name", sorted(league_sources.SOURCES))
def test_the_tables_here_are_those_of_the_sources(name):
    named = os.environ.get("MVENET_TABLES", "").split(os.pathsep)
    paths = [Path(folder) / f"{name}.csv" for folder in named]
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
        pytest.skip("set MVENET_TABLES to the folders with the league's tables")
    with path.open(newline="") as file:
        found = league_sources.digest(list(csv.reader(file)))
    assert found == league_sources.SOURCES[name].sha256


# What is kept


def test_a_half_written_file_resumes(tmp_path):
    path = tmp_path / "results.csv"
    records.add(path, ["a", "b"], [{"a": 1, "b": 2}, {"a": 3, "b": 4}])
    path.write_bytes(path.read_bytes() + b"5,")
    assert [row["a"] for row in records.read(path)] == ["1", "3"]
    records.add(path, ["a", "b"], [{"a": 7, "b": 8}])
    assert [row["a"] for row in records.read(path)] == ["1", "3", "7"]
    path.write_bytes(path.read_bytes()[:2])  # not even the names
    assert records.read(path) == []
    records.add(path, ["a", "b"], [{"a": 9, "b": 0}])
    assert records.read(path) == [{"a": "9", "b": "0"}]


def add_many(path: Path, start: int) -> None:
    records.add(path, ["a"], ({"a": start + k} for k in range(50)))


@pytest.mark.slow
def test_two_runs_at_once_do_not_write_over_each_other(tmp_path):
    path = tmp_path / "results.csv"
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        list(pool.map(add_many, [path, path], [0, 1000]))
    found = sorted(int(row["a"]) for row in records.read(path))
    assert found == [*range(50), *range(1000, 1050)]


# The run

METHOD = league_methods.BY_NAME["XGBoost"]
TABLE = league_tables.BY_NAME["machine"]
GOOD = {"crps": 1.0, "training_rows": 188, "all_rows": 188, "test_rows": 21, "fit_seconds": 2.0}


@pytest.fixture
def worker(monkeypatch, tmp_path):
    """Stands for the worker: its answers in turn, a row or an exit code; what it was asked."""
    asked, answers = [], []

    def attempt(method, table, fold, most, result, given):
        asked.append((fold, most))
        answer = answers.pop(0) if answers else GOOD
        if isinstance(answer, tuple):
            return answer
        result.with_suffix(".json").write_text(json.dumps(answer))
        np.savez(result.with_suffix(".npz"), mean=np.full(2, fold, np.float32))
        return 0, ""

    monkeypatch.setattr(league, "attempt", attempt)
    attempt.asked, attempt.answers = asked, answers
    return attempt


def test_what_is_finished_is_not_measured_again(worker, tmp_path, capsys):
    for fold in (0, 1, 0, 1):
        league.measure(METHOD, TABLE, fold, folder=tmp_path, predictions=tmp_path / "kept")
    assert worker.asked == [(0, 209), (1, 209)]
    rows = records.read(tmp_path / "xgboost.csv")
    assert [(row["table"], row["fold"], row["crps"]) for row in rows] == [
        ("machine", "0", "1"),
        ("machine", "1", "1"),
    ]
    with np.load(tmp_path / "kept" / "machine" / "xgboost.npz") as kept:
        assert sorted(kept.files) == ["fold0_mean", "fold1_mean"]
        assert kept["fold1_mean"].dtype == np.float32 and kept["fold1_mean"][0] == 1
    assert "machine, fold 1, XGBoost: 2.0 s" in capsys.readouterr().out
    assert list((tmp_path / ".running").iterdir()) == []


def test_another_run_at_the_same_fold_is_left_alone(worker, tmp_path):
    with league.claimed(tmp_path / ".running" / "xgboost machine 0") as mine:
        assert mine
        league.measure(METHOD, TABLE, 0, folder=tmp_path)
    assert worker.asked == []
    league.measure(METHOD, TABLE, 0, folder=tmp_path)
    assert worker.asked == [(0, 209)]


def test_who_needs_more_time_gets_a_share_of_the_rows(worker, tmp_path):
    worker.answers += [(-signal.SIGXCPU, ""), (-signal.SIGKILL, ""), GOOD | {"training_rows": 52}]
    league.measure(METHOD, TABLE, 0, folder=tmp_path)
    league.measure(METHOD, TABLE, 1, folder=tmp_path)
    assert worker.asked == [(0, 209), (0, 104), (0, 52), (1, 52)]
    worker.answers += [(-signal.SIGXCPU, "")] * 4
    league.measure(METHOD, TABLE, 2, folder=tmp_path)
    last = records.read(tmp_path / "xgboost.csv")[-1]
    assert last["error"] == "more than 20 minutes, or out of memory, with 6 rows"
    advised = replace(METHOD, most_rows=100, file="other.csv")
    league.measure(advised, TABLE, 0, folder=tmp_path)
    assert worker.asked[-1] == (0, 100)


def test_a_failure_is_a_row_that_can_be_retried(worker, tmp_path):
    worker.answers += [{"error": "ValueError: no\n  good | reason"}, (-signal.SIGSEGV, "")]
    for retry in (False, False, True):
        league.measure(METHOD, TABLE, 0, folder=tmp_path, retry=retry)
    league.measure(METHOD, TABLE, 0, folder=tmp_path, retry=True)
    league.measure(METHOD, TABLE, 0, folder=tmp_path, retry=True)
    rows = records.read(tmp_path / "xgboost.csv")
    errors = ["ValueError: no good | reason", "ended by SIGSEGV", ""]
    assert [row["error"] for row in rows] == errors and len(worker.asked) == 3
    results = league_page.read(tmp_path)
    assert results.failed["XGBoost", "machine"] == {} and 0 in results.scores["XGBoost", "machine"]


def test_what_is_missing_is_told_and_the_rest_goes_on(worker, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(league_environments, "ROOT", tmp_path)
    worker.answers.append((1, "yacht.csv is missing: set MVENET_DATA"))
    arguments = ["run", "--methods", "TabPFN v2", "mvenet", "--tables", "machine", "--folds", "0"]
    monkeypatch.setattr(sys, "argv", ["league.py", *arguments, "1", "--results", str(tmp_path)])
    assert league.main() == 1
    told = capsys.readouterr().err
    assert "TabPFN v2 is left out. The environment" in told
    assert "run python benchmarks/league.py install tabpfn." in told
    assert "mvenet on machine is left out. yacht.csv is missing" in told
    assert worker.asked == [(0, 209), (1, 209)]
    assert len(records.read(tmp_path / "mvenet.csv")) == 1


def test_a_checkpoint_that_is_missing_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(league_environments, "ROOT", tmp_path)
    python = league_environments.python_of("tabpfn")
    python.parent.mkdir(parents=True)
    python.touch()
    message = f"{league_methods.CHECKPOINT} is missing: run python benchmarks/league.py install"
    assert league_environments.missing("tabpfn") == f"{message} tabpfn."
    (python.parents[1] / league_methods.CHECKPOINT).touch()
    assert league_environments.missing("tabpfn") == ""
    assert league_environments.missing("mvenet") == ""
    assert "make .venv/.installed" in league_environments.missing("mvenet", "/nowhere/bin/python")


def test_a_third_of_the_folds_of_every_table_comes_first():
    tables = [league_tables.BY_NAME[name] for name in ("machine", "protein", "airfoil (BDE)")]
    order = [(table.name, fold) for table, fold in league.queue(tables, range(10))]
    first = [("machine", 0), ("machine", 1), ("machine", 2), ("protein", 0), ("airfoil (BDE)", 0)]
    assert order[:5] == first and len(order) == len(set(order)) == 14
    assert [fold for _, fold in league.queue(tables[:1], [5, 0])] == [0, 5]


def test_every_contestant_has_an_environment_and_a_file_of_its_own():
    files = [method.file for method in league_methods.METHODS]
    assert len(set(files)) == len(files)
    known = {*league_environments.PACKAGES, "mvenet"}
    assert {method.environment for method in league_methods.METHODS} == known
    for steps in league_environments.PACKAGES.values():
        packages = [package for step in steps for package in step]
        needs_torch = any("torch" in package for package in packages)
        assert not needs_torch or packages[0] == "torch==2.13.0"


def worked(folder, *arguments):
    command = [sys.executable, BENCHMARKS / "league_worker.py", *arguments, folder / "result"]
    return subprocess.run(
        list(map(str, command)), env=os.environ | league.ALONE, capture_output=True, text=True
    )


@pytest.mark.slow
def test_the_worker_measures_one_fold_in_a_process_of_its_own(folder):
    done = worked(folder, "Gaussian process", "machine", 0, 30)
    assert done.returncode == 0, done.stderr
    row = json.loads((folder / "result.json").read_text())
    assert (row["training_rows"], row["all_rows"], row["test_rows"]) == (30, 45, 5)
    assert row["fit_seconds"] > 0 and row["peak_mb"] > 10 and row["model_mb"] > 0
    assert row["crps_from"] == "exact" and np.isfinite(row["log_score"])
    assert set(row) < set(league.FIELDS)
    with np.load(folder / "result.npz") as kept:
        assert kept["quantiles"].shape == (5, 99) and kept["quantiles"].dtype == np.float32
        assert (np.diff(kept["quantiles"]) > 0).all() and kept["mean"].shape == (5,)


@pytest.mark.slow
def test_the_worker_s_troubles(folder):
    done = worked(folder, "NGBoost", "machine", 0, 30)  # which is not installed here
    assert done.returncode == 0
    assert "ModuleNotFoundError" in json.loads((folder / "result.json").read_text())["error"]
    done = worked(folder, "Gaussian process", "yacht", 0, 30)
    assert done.returncode == 1
    assert done.stderr.strip().splitlines()[-1].startswith("yacht.csv is missing: set MVENET_DATA")


def test_a_contestant_that_predicts_no_number_has_failed(folder):
    def predicted(_, X):
        return NormalMixture(np.full((1, len(X)), np.nan), np.ones((1, len(X))))

    method = replace(league_methods.METHODS[0], fit=len, predict=predicted)
    with pytest.raises(ValueError, match="predicts NaN for 5 of 5 rows"):
        league_worker.measure(method, league_tables.BY_NAME["machine"], 0, 30)


# The page


def made(tmp_path, table="machine", **scores):
    """Results of some methods on one table: CRPS by fold, a third of it as RMSE."""
    names = {"ours": "mvenet", "before": "mvenet before"}
    for key, values in scores.items():
        rows = [
            {
                "method": names.get(key, key),
                "table": table,
                "fold": fold,
                "crps": value,
                "rmse": value / 3,
                "training_rows": 50,
                "all_rows": 100 if key == "NGBoost" else 50,
                "test_rows": 10,
                "fit_seconds": 3,
                "predict_us": 5,
                "model_mb": 1,
                "peak_mb": 100,
                "coverage": 0.8,
                "pit": "10 0 0 0 0 0 0 0 0 0",
                "version": "1",
            }
            for fold, value in enumerate(values)
        ]
        records.add(tmp_path / f"{key}.csv", league.FIELDS, rows)
    return league_page.read(tmp_path)


def test_the_best_is_bold_on_the_folds_that_all_have(tmp_path):
    results = made(tmp_path, ours=[1.0, 3.0, 9.0], CatBoost=[2.0, 3.0, 3.0], NGBoost=[2.5, 2.5])
    text = league_page.score_table(results, league_page.CRPS)
    assert "| machine, 2 folds | **2.00** | 2.50 | 2.50 |" in text
    assert league_page.score_table(results, league_page.LOG_SCORE).count("\n") == 1


def test_a_contestant_without_a_common_fold_does_not_silence_the_others(tmp_path):
    results = made(tmp_path, ours=[1.0, 3.0], CatBoost=[2.0, 3.0])
    results.scores["NGBoost", "machine"] = {7: {"crps": 0.5}}
    found, folds = league_page.means(results, "machine", league_page.CRPS, league_page.NAMES)
    assert set(found) == {"mvenet", "CatBoost"} and folds == 2


def test_a_contestant_of_one_fold_does_not_reduce_the_others_to_it(tmp_path):
    results = made(
        tmp_path,
        ours=[1.0, 3.0, 5.0],
        CatBoost=[2.0, 3.0, 4.0],
        XGBoost=[2.0, 2.0, 2.0],
        TabM=[9.0],
    )
    found, folds = league_page.means(results, "machine", league_page.CRPS, league_page.NAMES)
    assert found == {"mvenet": 3, "CatBoost": 3, "XGBoost": 2} and folds == 3
    assert "| TabM | 1 | 1 | 0 | 0 | 0 | 9.00 (9.00 to 9.00) |" in league_page.duels(results)


def test_contestants_of_one_fold_who_are_many_count(tmp_path):
    results = made(tmp_path, ours=[1.0, 3.0, 5.0], CatBoost=[2.0, 3.0, 4.0], TabM=[9.0])
    found, folds = league_page.means(results, "machine", league_page.CRPS, league_page.NAMES)
    assert found == {"mvenet": 1, "CatBoost": 2, "TabM": 9} and folds == 1


def test_later_folds_of_one_do_not_silence_who_has_the_first(tmp_path):
    results = made(tmp_path, ours=[1.0, 3.0], CatBoost=[2.0], NGBoost=[2.0])
    results.scores["TabM", "machine"] = {1: {"crps": 0.5}, 2: {"crps": 0.5}}
    found, folds = league_page.means(results, "machine", league_page.CRPS, league_page.NAMES)
    assert set(found) == {"mvenet", "CatBoost", "NGBoost"} and folds == 1


def test_one_against_one_counts_what_is_clear_and_what_is_not(tmp_path):
    made(
        tmp_path, "machine", ours=[1.0, 1.0, 1.0], CatBoost=[2.0, 2.1, 1.9], NGBoost=[0.5, 0.6, 0.4]
    )
    results = made(tmp_path, "yacht", ours=[1.0, 2.0], CatBoost=[0.5, 2.4], NGBoost=[2.0, 2.0])
    told = league_page.duels(results)
    assert "| CatBoost | 2 | 5 | 0 | 1 | 1 | 1.39 (0.97 to 2.00) |" in told
    assert "| NGBoost | 2 | 5 | 1 | 1 | 0 | 0.82 (0.50 to 1.33) |" in told


def test_one_table_makes_no_rank(tmp_path):
    for table in ("machine", "yacht"):
        made(tmp_path, table, ours=[2.0, 2.0], CatBoost=[3.0, 3.0])
    results = made(tmp_path, "boston", ours=[2.0, 2.0], CatBoost=[3.0, 3.0], NGBoost=[1.0, 1.0])
    told = league_page.summary(results, league_page.CRPS)
    assert "| CatBoost | 3 |" in told and "| NGBoost |" not in told
    assert told.endswith("On too few tables for a rank: NGBoost (1).")
    assert "| CatBoost, 2.3 |" in league_page.short(results)


def test_cost_is_set_beside_ours_on_the_folds_that_both_have(tmp_path):
    results = made(tmp_path, ours=[1.0, 1.0, 1.0], CatBoost=[2.0])
    results.scores["CatBoost", "machine"][0]["fit_seconds"] = 6.0
    results.scores["mvenet", "machine"][2]["fit_seconds"] = 99.0
    assert league_page.times_ours(results, "CatBoost", "fit_seconds") == "2"
    assert league_page.times_ours(results, "CatBoost", "width") == "–"
    assert "| CatBoost | 1 | 10.0 | 18.0 | – | 2 |" in league_page.cost_table(results)


def test_what_is_not_measured_is_said_first(tmp_path):
    made(tmp_path, "machine", ours=[1.0, 1.0, 1.0], CatBoost=[2.0, 2.1, 1.9])
    results = made(tmp_path, "yacht", ours=[1.0], CatBoost=[2.0], NGBoost=[2.0])
    told = " ".join(league_page.so_far(results).split())
    assert "measured on 2 of 25 tables**; all that is measured took 0.0 hours" in told
    assert "On yacht there are fewer than three folds of ours." in told
    assert "Not compared yet: autompg, boston," in told
    assert "tables only: NGBoost (1). Mean ranks" in told and "ten CatBoost" in told
    assert league_page.text_of_page(results).startswith("**We and at least one peer")


@pytest.mark.parametrize(
    ("theirs", "verdict"),
    [
        ([1.1, 5.2, 9.1], "best"),
        ([1.0, 5.0, 9.0], "best"),
        ([1.5, 4.0, 9.3], "close"),
        ([0.5, 4.4, 8.6], "worse"),
        ([0.9], "worse"),  # of a single fold no error is known
    ],
)
def test_differences_are_paired_by_fold(tmp_path, theirs, verdict):
    results = made(tmp_path, ours=[1.0, 5.0, 9.0], CatBoost=theirs, NGBoost=[9.0, 9.0, 19.0])
    [standing] = league_page.standings(results, league_page.CRPS)
    assert (standing.peer, standing.verdict) == ("CatBoost", verdict)
    expected = ["best", "close", "worse"].index(verdict)
    assert league_page.counts(results, league_page.CRPS)[expected] == 1
    told = league_page.losses(results)
    assert ("CatBoost" in told) == (verdict != "best")
    assert told.count("| behind |") == 2 * (verdict == "worse")


def test_a_higher_log_score_is_better(tmp_path):
    results = made(tmp_path, ours=[1.0, 1.0], CatBoost=[1.0, 1.0])
    for name, value in (("mvenet", -2.0), ("CatBoost", -1.5)):
        for fold in (0, 1):
            results.scores[name, "machine"][fold]["log_score"] = value + fold
    [standing] = league_page.standings(results, league_page.LOG_SCORE)
    assert standing.difference == -0.5 and standing.verdict == "worse"
    ours = league_page.overall(results, league_page.LOG_SCORE, "mvenet")
    assert (ours.rank, ours.distance) == (2, 0.5)


def test_distance_to_the_best_is_a_geometric_mean_over_tables(tmp_path):
    made(tmp_path, "machine", ours=[1.0, 1.0], CatBoost=[4.0, 4.0])
    results = made(tmp_path, "yacht", ours=[2.0, 4.0], CatBoost=[2.0, 1.0])
    ours, cat = (league_page.overall(results, league_page.CRPS, n) for n in ("mvenet", "CatBoost"))
    assert (ours.tables, ours.rank, cat.rank) == (2, 1.5, 1.5)
    assert ours.distance == pytest.approx(np.sqrt(2.0)) and cat.distance == pytest.approx(2.0)
    assert (ours.low, ours.high) == (pytest.approx(1), pytest.approx(2))


def test_before_stands_beside_us_and_not_against_us(tmp_path):
    results = made(tmp_path, ours=[2.0, 2.0], before=[1.0, 1.5], CatBoost=[3.0, 3.0])
    assert league_page.counts(results, league_page.CRPS) == (1, 0, 0)
    assert league_page.overall(results, league_page.CRPS, "mvenet").rank == 1
    assert league_page.overall(results, league_page.CRPS, "mvenet before").rank == 1
    assert "| machine | −0.75, −37.5 % (−3.0 se) |" in league_page.before_and_after(results)
    (tmp_path / "ours.csv").unlink()
    results = league_page.read(tmp_path)
    assert results.ours == "mvenet before" and league_page.before_and_after(results) == ""


def test_shares_and_failures_are_told(tmp_path):
    results = made(tmp_path, ours=[2.0, 2.0], NGBoost=[3.0, 3.0])
    row = {"method": "TabPFN v2", "table": "yacht", "fold": 0, "error": "ValueError: a | b"}
    records.add(tmp_path / "tabpfn.csv", league.FIELDS, [row])
    told = league_page.progress(league_page.read(tmp_path))
    assert "| NGBoost | 2 of" in told and "| machine 50 | none |" in told
    assert "| yacht, 1 fold: ValueError: a / b |" in told
    assert results.failed == {}


def test_the_page_and_the_readme_are_written_between_their_marks(tmp_path):
    made(tmp_path, ours=[2.0, 2.0], before=[2.0, 3.0], CatBoost=[1.0, 1.5])
    docs, readme = tmp_path / "docs", tmp_path / "README.md"
    docs.mkdir()
    marks = "before\n<!-- {0} -->\nstale\n<!-- end of {0} -->\nafter\n"
    (docs / "league.md").write_text(marks.format("league") + marks.format("settings"))
    readme.write_text(marks.format("league"))
    league_page.write(tmp_path, docs, readme)
    page = (docs / "league.md").read_text()
    assert "stale" not in page and page.count("after\n") >= 2
    assert page.index("### Where we lose") < page.index("### In short")
    assert "| TabPFN v2 | as shipped" in page
    assert "| CRPS | 1: machine | 0 | 0 | 2.0 | CatBoost, 1.0 |" in readme.read_text()
    assert (docs / "league.png").stat().st_size > 1000
    (docs / "league.md").write_text("no marks")
    assert not league_page.fill(docs / "league.md", "league", "text")
    assert (docs / "league.md").read_text() == "no marks"
