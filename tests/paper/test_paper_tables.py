"""The tables of the paper: a quick run from data to CSV to Markdown, and what was committed."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import processes
import pytest
from scipy import stats

from mvenet import datasets

ROOT = Path(__file__).parents[2]
PAPER = ROOT / "paper"
sys.path.insert(0, str(PAPER))
tables = pytest.importorskip("tables")
pd = pytest.importorskip("pandas")


def have_data():
    try:
        datasets.load("yacht")
    except (OSError, ValueError):
        return False
    return True


needs_data = pytest.mark.skipif(not have_data(), reason="needs the data sets (MVENET_DATA)")


def script(name, *arguments):
    return processes.script(PAPER / name, *arguments)


@pytest.fixture
def results():
    rng = np.random.default_rng(0)
    keys = [(f, s, r) for f in range(10) for s in tables.STRATEGIES for r in ("equal", "separate")]
    frame = pd.DataFrame(keys, columns=["fold", "strategy", "regularization"])
    frame["loglik"] = rng.normal(-0.3, 0.1, len(frame)) + 0.5 * (frame.regularization == "separate")
    frame["rmse"] = rng.normal(1.0, 0.1, len(frame))
    frame["reg_mean"], frame["reg_var"] = 0.01, 0.1
    return frame.assign(dataset="yacht")


# --- numbers -------------------------------------------------------------------------------------


def test_cells_agree_within_two_joint_standard_errors(results):
    cells = tables.cells(results, "loglik", PAPER / "published").set_index(tables.KEY)
    for key, cell in cells.iterrows():
        mine = results[(results.strategy == key[1]) & (results.regularization == key[2])]["loglik"]
        assert cell["mean"] == pytest.approx(mine.mean())
        assert cell["sem"] == pytest.approx(stats.sem(mine))
        joint = np.hypot(stats.sem(mine), cell["paper_sem"])
        assert cell["agrees"] == (abs(mine.mean() - cell["paper"]) <= 2 * joint)
        assert cell["better"] == ("ours" if mine.mean() > cell["paper"] else "paper")


def test_significance_is_a_paired_t_test(results):
    winners = tables.significance(results, "loglik")
    assert winners["winner"].tolist() == ["separate"] * 3
    flipped = results.assign(loglik=-results["loglik"])
    assert tables.significance(flipped, "loglik")["winner"].tolist() == ["equal"] * 3
    same = results.assign(loglik=results["fold"])
    assert tables.significance(same, "loglik")["winner"].tolist() == [""] * 3
    lower = results.assign(rmse=-results["loglik"])
    assert tables.significance(lower, "rmse")["winner"].tolist() == ["separate"] * 3


def test_lower_variance_penalties_are_counted(results):
    results.loc[results.index[:2], ["reg_mean", "reg_var"]] = [0.1, 0.01]
    both = pd.concat([tables.cells(results, m, PAPER / "published") for m in tables.METRICS])
    text = "\n".join(tables.counts(results, both))
    assert "lower than the mean's in 1 of 30 searches" in text


def test_a_single_fold_is_shown_and_not_judged(results):
    first = results[results.fold == 0].assign(dataset="protein", loglik=100.0)
    both = pd.concat([results, first])
    cells = tables.cells(both, "loglik", PAPER / "published")
    shown = tables.table(cells, tables.significance(both, "loglik"))
    assert [line.split(" | ")[2] for line in shown if "protein" in line] == ["100"] * 3
    cells = pd.concat([tables.cells(both, m, PAPER / "published") for m in tables.METRICS])
    text = "\n".join(tables.counts(both, cells))
    assert "of 12 cells agree" in text and " 12 cells of a single fold are not counted" in text
    assert "protein" not in text and "significantly 3 times of 3" in text
    assert "of 30 searches" in text


def test_a_folder_without_results_is_told(tmp_path):
    done = script("tables.py", "--results", tmp_path)
    assert done.returncode != 0 and "run paper/run.py first" in done.stderr


# --- what was committed --------------------------------------------------------------------------

COMMITTED = sorted((PAPER / "results").glob("*.csv"))


@pytest.mark.parametrize("path", [p for p in COMMITTED if "-" not in p.stem], ids=lambda p: p.stem)
def test_committed_results_are_whole(path):
    frame = pd.read_csv(path)
    assert list(frame) == [
        "fold", "strategy", "regularization", "loglik", "rmse", "reg_mean", "reg_var",
    ]  # fmt: skip
    folds = frame["fold"].nunique()
    assert len(frame) == 6 * folds and not frame.isna().any(axis=None)
    grid = [1e-5, 1e-4, 1e-3, 1e-2, 1e-1]
    assert frame[["reg_mean", "reg_var"]].isin(grid).all(axis=None)
    equal = frame[frame["regularization"] == "equal"]
    assert (equal["reg_mean"] == equal["reg_var"]).all()


def test_the_page_shows_the_committed_results():
    page = (PAPER / "README.md").read_text()
    for name, text in {
        "tables": tables.report(PAPER / "results", PAPER / "published"),
        "figures": "\n".join(tables.figures(PAPER / "figures" / "figures.json")),
    }.items():
        shown = page.partition(f"<!-- {name} -->\n")[2].partition("\n<!-- end -->")[0]
        assert shown == text, "run `python paper/tables.py --write`"


# --- a quick run ---------------------------------------------------------------------------------


@needs_data
@pytest.mark.slow
def test_a_quick_run_from_data_to_tables_that_no_other_settings_join(tmp_path):
    places = ["--runs", tmp_path / "runs", "--results", tmp_path / "results"]
    done = script("run.py", "yacht", "--epochs", 1, *places)
    assert done.returncode == 0, done.stderr
    before = (tmp_path / "results" / "yacht.csv").read_bytes()
    again = script("run.py", "yacht", "--epochs", 1, *places)
    assert "10 of them done. To do: 0 trainings" in again.stdout  # never trained again
    assert (tmp_path / "results" / "yacht.csv").read_bytes() == before
    exported = script("run.py", "yacht", "--export", *places)
    assert "10 of 10 outer folds" in exported.stdout, exported.stderr
    assert (tmp_path / "results" / "yacht.csv").read_bytes() == before
    default = pd.DataFrame({"fold": range(10), "loglik": 0.5, "rmse": 0.4, "seconds": 1.0})
    default.to_csv(tmp_path / "results" / "yacht-default.csv", index=False)
    done = script("tables.py", "--results", tmp_path / "results")
    assert done.returncode == 0, done.stderr
    assert "| yacht | warmup | " in done.stdout and "Outer folds: yacht 10." in done.stdout
    assert "\n| yacht | " in done.stdout.partition("### Beyond the paper")[2]
    other = script("run.py", "yacht", *places)  # the recipe's own epochs
    assert other.returncode == 1 and "Traceback" not in other.stderr
    assert "holds results of another run" in other.stderr and "epochs" in other.stderr


@needs_data
def test_a_dry_run_trains_nothing(tmp_path):
    done = script("run.py", "boston", "--dry-run", "--runs", tmp_path)
    assert "7,560 trainings" in done.stdout and not list(tmp_path.iterdir())
    boston, together = (line.split(" | ") for line in done.stdout.splitlines()[-2:])
    assert boston[1:3] == together[1:3] == ["7,560", "106"]  # million steps; alone 164 million
    assert boston[4] == "164" and boston[5] == "1.9 |"


def test_bad_names_and_missing_data_are_told(tmp_path, monkeypatch):
    done = script("run.py", "bostn")
    assert done.returncode == 2 and "unknown data set 'bostn'" in done.stderr
    done = script("run.py", "--default", "--epochs", 3)
    assert done.returncode == 2 and "leave it out with --default" in done.stderr
    monkeypatch.setenv("MVENET_DATA", str(tmp_path))
    places = ["--runs", tmp_path / "r", "--results", tmp_path]
    done = script("run.py", "yacht", "--epochs", 10, *places)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "yacht" in done.stderr and len(done.stderr.strip().splitlines()) == 1
