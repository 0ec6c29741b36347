"""A comparison that is killed, resumed, raced, starved of disk, or run on a cluster."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from functools import partial
from pathlib import Path

import joblib
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from processes import full_disk, script, small_disk, somebody_else
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, PredefinedSplit, ShuffleSplit
from sklearn.preprocessing import StandardScaler

from mvenet import MVERegressor, MVERegressorCV, compare_strategies
from mvenet.comparison._canonical import canonical
from mvenet.comparison._store import Store, differences

RNG = np.random.default_rng(5)
X = RNG.uniform(-1, 1, (60, 2))
Y = X[:, 0] ** 2 + 0.2 * RNG.standard_normal(60)
BRIEF = {"epochs": 3, "warmup_epochs": 3}
ARMS = {"a": MVERegressor(**BRIEF), "b": MVERegressor(epochs=3, strategy="no-warmup")}

# A comparison of seven folds of about a tenth of a second, run as another process.
SCRIPT = """
import sys
import numpy as np
from mvenet import compare_strategies
from mvenet.comparison import strategy_arms
rng = np.random.default_rng(5)
X = rng.uniform(-1, 1, (60, 2))
y = X[:, 0] ** 2 + 0.2 * rng.standard_normal(60)
arms = strategy_arms(reg_mean=(1e-3, 1e-2), reg_var=(1e-3, 1e-2), epochs=80, warmup_epochs=80)
result = compare_strategies(X, y, arms, 7, 3, sys.argv[1], n_jobs=1, random_state=0)
print(result.to_frame().to_json(double_precision=15), result, flush=True)
"""


def start(folder, script=SCRIPT, **options):
    return subprocess.Popen(
        [sys.executable, "-c", script, str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def finished(folder):
    """Folds in the store, read from outside while nobody holds it."""
    path = folder / "results.sqlite"
    if not path.exists():
        return 0
    with sqlite3.connect(path) as db:
        try:
            return db.execute("SELECT count(*) FROM folds").fetchone()[0]
        except sqlite3.OperationalError:
            return 0


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    (folder / "run.py").write_text(SCRIPT)
    return script(folder / "run.py", folder).stdout


# --- killed and resumed --------------------------------------------------------------------------


@pytest.mark.slow
def test_killed_at_random_moments_it_ends_with_the_same_table(whole, tmp_path):
    """Alternately once another fold is there, and at any moment, in the middle of imports too."""
    chance = random.Random(1)
    done = 0
    for kills in range(2):
        process = start(tmp_path)
        if kills % 2:
            time.sleep(chance.uniform(0, 2))
        else:
            while finished_while_running(tmp_path) <= done and process.poll() is None:
                time.sleep(0.01)
            time.sleep(chance.uniform(0, 0.1))
        process.kill()
        process.communicate()
        now = finished(tmp_path)
        assert now >= done  # nothing that was finished is lost
        done = now
    assert done
    out, err = start(tmp_path).communicate(timeout=900)
    assert out == whole, err


def test_killed_between_two_folds_only_the_rest_is_trained(tmp_path):
    arms, folds = ARMS, 5
    complete = compare_strategies(X, Y, arms, folds, random_state=0)
    compare_strategies(X, Y, arms, folds, store=tmp_path, random_state=0)
    path = tmp_path / "results.sqlite"
    with sqlite3.connect(path) as db:
        db.execute("DELETE FROM folds WHERE fold IN (1, 3)")
        kept = dict(db.execute("SELECT fold, result FROM folds"))
    again = compare_strategies(X, Y, arms, folds, store=tmp_path, random_state=0)
    assert_array_equal(again.results["loglik"], complete.results["loglik"])
    with sqlite3.connect(path) as db:
        after = dict(db.execute("SELECT fold, result FROM folds"))
    assert {fold: after[fold] for fold in kept} == kept  # to the digit, seconds included
    assert len(after) == 5


def test_a_finished_store_answers_without_training(tmp_path):
    first = compare_strategies(X, Y, ARMS, 3, store=tmp_path, random_state=0)
    with Store(tmp_path) as store, Store(tmp_path / "marked") as marked:
        marked.begin(store.settings())
        for fold, result in store.results().items():  # with a time that no training would take
            marked.add(fold, {**result, "seconds": 1e6})
    again = compare_strategies(X, Y, ARMS, 3, store=tmp_path / "marked", random_state=0)
    assert str(first) == str(again)
    assert (again.steps, again.seconds) == (first.steps, 3e6)


def test_without_a_seed_the_stores_is_taken(tmp_path):
    first = compare_strategies(X, Y, ARMS, 3, store=tmp_path)
    with sqlite3.connect(tmp_path / "results.sqlite") as db:
        db.execute("DELETE FROM folds WHERE fold = 1")
    again = compare_strategies(X, Y, ARMS, 3, store=tmp_path)
    assert_array_equal(first.results["loglik"], again.results["loglik"])


def test_ctrl_c_keeps_the_finished_folds(tmp_path):
    process = start(tmp_path)
    while finished_while_running(tmp_path) < 2 and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=900)
    assert process.returncode != 0 and "KeyboardInterrupt" in err
    assert 2 <= finished(tmp_path) < 10


def finished_while_running(folder):
    """Roughly, from the size of the file: the store itself is locked."""
    path = folder / "results.sqlite"
    return (
        0
        if not path.exists() or path.stat().st_size < 12288
        else path.read_bytes().count(b'"seconds"')
    )


def test_minus_infinity_and_nan_survive(tmp_path):
    arms = {"wild": MVERegressor(epochs=5, learning_rate=1e30, clip_value=None)}
    first = compare_strategies(X, Y, arms, 3, store=tmp_path, random_state=0)
    again = compare_strategies(X, Y, arms, 3, store=tmp_path, random_state=0)
    for column in first.results:
        assert_array_equal(first.results[column], again.results[column])
    assert (again.results["loglik"] == -np.inf).all() and np.isnan(again.results["reg_var"]).all()


# --- a store of something else -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": X[:, :1]}, "data is 60 rows × 2 columns .* there and 60 rows × 1 columns"),
        ({"X": X + 1e-9}, "data is"),
        ({"y": Y[::-1]}, "data is"),
        ({"random_state": 1}, "random_state is 0 there and 1 here"),
        ({"outer_cv": 4}, "outer folds is 3"),
        ({"arms": {**ARMS, "c": MVERegressor()}}, "arms, c is not in the store"),
        ({"arms": {"a": ARMS["a"]}}, "arms, b is only in the store"),
        (
            {"arms": {"a": MVERegressor(epochs=7, warmup_epochs=3), "b": ARMS["b"]}},
            "arms, a, epochs is 3 there and 7 here",
        ),
    ],
)
def test_a_store_of_another_run_is_refused(tmp_path, change, message):
    args = {"X": X, "y": Y, "arms": ARMS, "outer_cv": 3, "store": tmp_path, "random_state": 0}
    compare_strategies(**args)
    with Store(tmp_path) as store:
        before = store.settings(), store.results()
    with pytest.raises(ValueError, match=f"holds results of another run: .*{message}"):
        compare_strategies(**args | change)
    with Store(tmp_path) as store:
        assert (store.settings(), store.results()) == before


def many_folds(moved):
    """Folds given row by row, more than NumPy prints; so many rows of them in another."""
    fold = np.arange(1500) % 3
    fold[500 : 500 + moved] = (fold[500 : 500 + moved] + 1) % 3
    return PredefinedSplit(fold)


def test_a_store_of_other_folds_within_is_refused_though_they_print_alike(tmp_path):
    x = np.linspace(-1, 1, 3000)[:, None]
    first, second = many_folds(0), many_folds(600)
    assert repr(first) == repr(second)
    settings = {"hidden_mean": (), "hidden_var": None, "epochs": 1, "warmup_epochs": 1}
    arms = [
        {"a": MVERegressorCV([1e-3], [1e-3], cv=cv, strategy="warmup", batch_size=500, **settings)}
        for cv in (first, second)
    ]
    args = {"outer_cv": KFold(2), "inner_cv": None, "store": tmp_path, "random_state": 0}
    compare_strategies(x, x[:, 0], arms[0], **args)
    compare_strategies(x, x[:, 0], arms[0], **args)
    with pytest.raises(ValueError, match="another run: arms, a, cv is PredefinedSplit"):
        compare_strategies(x, x[:, 0], arms[1], **args)


def test_a_store_of_another_encoder_is_refused(tmp_path):
    args = {"outer_cv": 3, "store": tmp_path, "random_state": 0}
    compare_strategies(X, Y, ARMS, encoder=StandardScaler(), **args)
    with pytest.raises(ValueError, match="another run: encoder is StandardScaler"):
        compare_strategies(X, Y, ARMS, encoder=StandardScaler(copy=False), **args)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.arange(1500), np.arange(1500)[::-1]),
        (np.array([0.1]), np.array([0.1 + 1e-12])),
        (np.zeros(200), np.zeros((200, 1))),
        (np.array([None, 1]), np.array([None, 2])),
        ([np.arange(1500)], [np.arange(1500) % 700]),
        ({"a": 1}, {"a": 2}),
        ({1, 2}, {1, 3}),
        (1, "1"),
        (slice(2, None), slice(None, 2)),
        (partial(max, 1), partial(max, 2)),
        (PredefinedSplit(np.arange(1500)), PredefinedSplit(np.arange(1500) % 700)),
        (np.random.RandomState(0), np.random.RandomState(1)),
        (Ridge(), Ridge(2.0)),
        (np.sin, np.cos),
        (KFold, ShuffleSplit),
        (lambda: 0, lambda: 1),
    ],
)
def test_values_that_differ_have_other_texts(one, other):
    assert canonical(one) != canonical(other)
    assert canonical(one) == canonical(copy.deepcopy(one))


def test_the_text_of_a_value_is_the_same_in_every_process():
    code = """
    import numpy as np
    from sklearn.linear_model import Ridge
    from sklearn.model_selection import PredefinedSplit, ShuffleSplit
    from mvenet.comparison._canonical import canonical
    state = np.random.RandomState(0)
    values = [PredefinedSplit(np.arange(999)), ShuffleSplit(random_state=state), Ridge, {"b", "a"}]
    print(canonical(values))
    """
    code = textwrap.dedent(code)
    there = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    with contextlib.redirect_stdout(io.StringIO()) as here:
        exec(code, {})
    assert there.stdout == here.getvalue()


def test_what_does_not_change_the_result_is_not_refused(tmp_path):
    quiet = {name: MVERegressor(**arm.get_params()) for name, arm in ARMS.items()}
    compare_strategies(X, Y, quiet, 3, store=tmp_path, random_state=0, n_jobs=1)
    loud = {name: arm.set_params(n_jobs=2, random_state=9) for name, arm in quiet.items()}
    compare_strategies(X.tolist(), Y, loud, 3, store=tmp_path, random_state=0, n_jobs=2)


def test_a_store_of_another_version_is_refused(tmp_path):
    compare_strategies(X, Y, ARMS, 3, store=tmp_path / "ours", random_state=0)
    with Store(tmp_path / "ours") as ours, Store(tmp_path / "theirs") as theirs:
        theirs.begin({**ours.settings(), "mvenet": "9.9"})
    with pytest.raises(ValueError, match=r"run: mvenet is 9\.9 there and .* here\. Use"):
        compare_strategies(X, Y, ARMS, 3, store=tmp_path / "theirs", random_state=0)


def test_a_newer_format_is_refused(tmp_path):
    compare_strategies(X, Y, ARMS, 3, store=tmp_path, random_state=0)
    with sqlite3.connect(tmp_path / "results.sqlite") as db:
        db.execute("PRAGMA user_version = 2")
    with pytest.raises(ValueError, match="has format 2, this mvenet writes 1"):
        compare_strategies(X, Y, ARMS, 3, store=tmp_path, random_state=0)


def test_differences_are_few():
    there = {"a": 1, "b": {"x": 1, "y": 2, "z": 3}, "c": 4}
    assert differences(there, there) == []
    assert differences(there, {**there, "a": 2}) == ["a is 1 there and 2 here"]
    many = differences(there, {"a": 0, "b": {"x": 0, "y": 0, "z": 0}, "c": 0})
    assert len(many) == 4 and many[-1] == "and more"


# --- two processes -------------------------------------------------------------------------------


def test_a_second_process_is_told_and_changes_nothing(tmp_path):
    with Store(tmp_path) as store:
        process = start(tmp_path)
        _, err = process.communicate(timeout=900)
        assert store.settings() is None and store.results() == {}
    assert process.returncode != 0 and "is in use by another process: wait" in err


def test_a_store_can_be_opened_once_in_a_process(tmp_path, monkeypatch):
    monkeypatch.setattr("mvenet.comparison._store.PATIENCE", 0.1)
    with Store(tmp_path), pytest.raises(BlockingIOError, match="in use"), Store(tmp_path):
        pass
    with Store(tmp_path):
        pass


@pytest.mark.slow
def test_two_processes_at_once_end_with_one_table(whole, tmp_path):
    processes = [start(tmp_path) for _ in range(2)]
    outs = [p.communicate(timeout=900)[0] for p in processes]
    assert whole in outs
    assert set(outs) <= {whole, ""}


# --- disks ---------------------------------------------------------------------------------------


def test_a_full_disk_is_told_and_loses_no_finished_fold(tmp_path):
    args = (X, Y, ARMS, 30)
    safe = "cannot be written.* The folds in it are safe"
    with full_disk(16_384), pytest.raises(OSError, match=safe):
        compare_strategies(*args, store=tmp_path, random_state=0)
    with Store(tmp_path) as store:
        kept = store.results()
    assert 0 < len(kept) < 30
    resumed = compare_strategies(*args, store=tmp_path, random_state=0)
    assert str(resumed) == str(compare_strategies(*args, random_state=0))
    with Store(tmp_path) as store:
        assert kept.items() <= store.results().items()  # seconds included


@pytest.mark.slow
def test_a_disk_that_is_full_indeed_loses_no_finished_fold(tmp_path):
    args = (X, Y, ARMS, 30)
    with small_disk(tmp_path, 32_768) as mounted:
        if not mounted:
            pytest.skip("no right to mount a disk")
        with pytest.raises(OSError, match=r"disk is full.* The folds in it are safe") as told:
            compare_strategies(*args, store=tmp_path, random_state=0)
        assert "\n" not in str(told.value)
        kept = tmp_path.parent / "kept"
        shutil.copytree(tmp_path, kept)  # to a disk with room
    with Store(kept) as store:
        assert 0 < len(store.results()) < 30
    resumed = compare_strategies(*args, store=kept, random_state=0)
    assert str(resumed) == str(compare_strategies(*args, random_state=0))


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(OSError, match="cannot be made"):
        compare_strategies(X, Y, ARMS, 3, store=tmp_path / "file" / "store")


def test_a_read_only_folder_is_told():
    safe = "cannot be written.* The folds in it are safe"
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "store"
        compare_strategies(X, Y, ARMS, 3, store=folder, random_state=0)
        os.chmod(place, 0o755)
        (folder / "results.sqlite").chmod(0o444)
        folder.chmod(0o555)
        with somebody_else(), pytest.raises(OSError, match=safe), Store(folder):
            pass
        folder.chmod(0o755)


@pytest.mark.parametrize("size", [10, 100, 1000, 4096, 5000, 8192])
def test_a_truncated_store_is_told_and_left_alone(tmp_path, size):
    compare_strategies(X, Y, ARMS, 5, store=tmp_path, random_state=0)
    path = tmp_path / "results.sqlite"
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(ValueError, match=r"results\.sqlite is damaged: .* Move it away"):
        compare_strategies(X, Y, ARMS, 5, store=tmp_path, random_state=0)
    assert len(path.read_bytes()) == size


def test_a_file_of_something_else_is_told_and_left_alone(tmp_path):
    path = tmp_path / "results.sqlite"
    path.write_text("fold,arm\n" * 1000)
    with pytest.raises(ValueError, match="is damaged"):
        compare_strategies(X, Y, ARMS, 3, store=tmp_path)
    assert path.read_text().startswith("fold,arm")


def test_flipped_bytes_never_give_another_table(tmp_path):
    """Damaged stores are told or give the true table, whatever byte was hit."""
    true = compare_strategies(X, Y, ARMS, 5, store=tmp_path / "whole", random_state=0)
    good = (tmp_path / "whole" / "results.sqlite").read_bytes()
    rng = random.Random(0)
    told = []
    for i in range(60):
        data = bytearray(good)
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        folder = tmp_path / str(i)
        folder.mkdir()
        (folder / "results.sqlite").write_bytes(data)
        try:
            result = compare_strategies(X, Y, ARMS, 5, store=folder, random_state=0)
        except ValueError as error:
            told.append(str(error))
        else:
            assert str(result) == str(true)
    assert len(told) > 5
    assert all("is damaged" in message or "has format" in message for message in told)


def test_settings_are_readable_json(tmp_path):
    compare_strategies(X, Y, ARMS, 3, store=tmp_path, random_state=0)
    with Store(tmp_path) as store:
        settings = store.settings()
        results = store.results()
    assert settings["arms"]["b"]["strategy"] == "'no-warmup'"
    assert json.dumps(settings) and list(results) == [0, 1, 2]
    assert set(results[0]) >= {"arms", "steps", "seconds"}


# --- beyond one machine --------------------------------------------------------------------------


# Slow: on a busy machine joblib's Dask backend has waited for ever for a result whose worker was
# killed while it sent it.
@pytest.mark.slow
def test_on_a_dask_cluster_with_a_worker_killed_the_table_is_the_same(tmp_path):
    distributed = pytest.importorskip("distributed")
    arms = {name: clone(arm).set_params(epochs=3000) for name, arm in ARMS.items()}
    local = compare_strategies(X, Y, arms, 12, random_state=0)
    options = {
        "n_workers": 2,
        "threads_per_worker": 1,
        "processes": True,
        "dashboard_address": ":0",
    }
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        pids = list(client.run(os.getpid).values())
        assert len(set(pids)) == 2
        killed = []

        def kill_one(pid=pids[0]):
            while finished_while_running(tmp_path) < 2:
                time.sleep(0.02)
            os.kill(pid, signal.SIGKILL)
            killed.append(finished_while_running(tmp_path))

        killer = threading.Thread(target=kill_one, daemon=True)
        killer.start()
        with joblib.parallel_config(backend="dask"):
            remote = compare_strategies(X, Y, arms, 12, store=tmp_path, random_state=0, n_jobs=1)
        killer.join(10)
        assert killed and killed[0] < 12  # in the middle
    for column in local.results:
        assert_array_equal(remote.results[column], local.results[column])
    assert str(remote) == str(local)


@pytest.mark.slow
def test_a_loky_worker_that_dies_is_told_and_loses_no_finished_fold(tmp_path, monkeypatch):
    script = SCRIPT.replace(
        "import sys\n", "import sys, os, joblib, mvenet.comparison._run as c\n", 1
    )
    dying = """
run = c._run_fold
def dying(experiment, fold, n_jobs, ticks):
    if fold == 5:
        import time; time.sleep(1.0); os.kill(os.getpid(), 9)
    return run(experiment, fold, n_jobs, ticks)
c._run_fold = dying
joblib.parallel_config(backend="loky", n_jobs=2)
"""
    path = tmp_path / "script.py"
    path.write_text(script.replace("rng =", dying + "rng =", 1))
    done = subprocess.run(
        [sys.executable, str(path), str(tmp_path)], capture_output=True, text=True, timeout=900
    )
    assert done.returncode != 0 and "TerminatedWorkerError" in done.stderr
    assert finished(tmp_path) >= 1
