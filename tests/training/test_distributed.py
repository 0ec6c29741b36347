"""A fit on other processes: the same bits as here, and nothing but the units in hand is lost."""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
import time
from pathlib import Path

import joblib
import numpy as np
import pytest
from processes import small_disk
from shorter import short_trainings
from sklearn.model_selection import cross_val_score

from mvenet import AutoRegressor, MVERegressor, MVERegressorCV, compare_strategies
from mvenet._training import distributed as over_dask
from mvenet._training import fleet
from mvenet._utils.machine import effective_threads, instruction_set
from mvenet.comparison import _run
from mvenet.recipes import Stage

distributed = pytest.importorskip("distributed")
dask = pytest.importorskip("dask")

SEARCH = {
    "strategy": "warmup",
    "hidden_mean": (8,),
    "hidden_var": (4,),
    "reg_mean": (1e-3, 1e-2),
    "reg_var": (1e-3, 1e-1),
    "cv": 3,
    "n_members": 2,
    "epochs": 20,
    "warmup_epochs": 20,
    "random_state": 0,
}


def table(n=150, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X[:, 0] + (0.1 + 0.3 * (X[:, 1] > 0)) * rng.standard_normal(n)


@pytest.fixture(scope="module")
def client():
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        yield client


def assert_same(a, b):
    assert a.model_.networks.parameters.tobytes() == b.model_.networks.parameters.tobytes()
    assert a.n_steps_ == b.n_steps_
    for name in ("mean_test_score", "split0_test_score"):
        assert a.cv_results_[name].tobytes() == b.cv_results_[name].tobytes()
    for name, column in a.history_.items():
        assert column.tobytes() == b.history_[name].tobytes()


def test_a_search_on_dask_is_the_same_to_the_bit_and_uses_every_worker(client):
    X, y = table()
    here = MVERegressorCV(**SEARCH).fit(X, y)
    before = client.run(lambda dask_worker: dask_worker.state.transition_counter)
    with joblib.parallel_config(backend="dask"):
        there = MVERegressorCV(**SEARCH).fit(X, y)
    after = client.run(lambda dask_worker: dask_worker.state.transition_counter)
    assert_same(here, there)
    assert all(after[worker] > before[worker] for worker in before)


@short_trainings(others=False)
def test_all_that_an_automatic_search_fits_goes_to_workers_and_is_the_same_to_the_bit(client):
    X, y = table(80)
    model = AutoRegressor("low", ["networks", "trees", "gaussian process"], cv=2, random_state=0)
    here = model.fit(X, y).predict_quantiles(X, [0.1, 0.5, 0.9])
    with distributed.get_task_stream(client) as stream, joblib.parallel_config(backend="dask"):
        there = model.fit(X, y).predict_quantiles(X, [0.1, 0.5, 0.9])
    np.testing.assert_array_equal(here, there)
    kinds = [distributed.utils.key_split(task["key"]) for task in stream.data]
    # Trees and process for each of two folds, a refit, and the free shape.
    assert kinds.count("made") >= 6
    assert "train_unit" in kinds


def test_a_search_on_processes_of_joblib_is_the_same_to_the_bit():
    X, y = table()
    here = MVERegressorCV(**SEARCH).fit(X, y)
    with joblib.parallel_config(backend="loky", n_jobs=2):
        there = MVERegressorCV(**SEARCH).fit(X, y)
    assert_same(here, there)


def test_a_worker_killed_in_the_middle_costs_its_units_only(client):
    X, y = table(400)
    long = SEARCH | {"epochs": 10_000, "warmup_epochs": 500, "n_members": 1}
    here = MVERegressorCV(**long).fit(X, y)
    address, victim = next(iter(client.run(os.getpid).items()))
    killed = []

    def kill_it_at_work():
        while not client.processing([address])[address]:
            time.sleep(0.01)
        os.kill(victim, signal.SIGKILL)
        killed.append(victim)

    killer = threading.Thread(target=kill_it_at_work, daemon=True)
    with joblib.parallel_config(backend="dask"):
        killer.start()
        there = MVERegressorCV(**long).fit(X, y)
    assert killed == [victim]
    assert_same(here, there)


@pytest.mark.parametrize("automatic", [False, pytest.param(True, marks=pytest.mark.slow)])
@short_trainings(others=False)
def test_folds_of_a_comparison_run_side_by_side(client, automatic, monkeypatch):
    small = {"hidden_mean": (4,), "hidden_var": (), "random_state": 0}
    plain = MVERegressor(**small, reg_mean=1e-3, epochs=5, warmup_epochs=5)
    folds = 2 if automatic else 4
    arms = {
        "plain": plain,
        **({"searched": AutoRegressor("low", ["trees"], cv=2)} if automatic else {}),
    }
    here = compare_strategies(*table(), arms, outer_cv=folds, random_state=0)
    at_work, most, run = [], [], _run._run_fold

    def watched(experiment, fold, *more):
        at_work.append(fold)
        most.append(len(at_work))
        time.sleep(0.2)  # long enough for a second one to begin
        done = run(experiment, fold, *more)
        at_work.remove(fold)
        return done

    monkeypatch.setattr(_run, "_run_fold", watched)
    with joblib.parallel_config(backend="dask"):
        there = compare_strategies(*table(), arms, outer_cv=folds, random_state=0)
    for column in here.results:
        np.testing.assert_array_equal(there.results[column], here.results[column])
    assert (max(most) > 1) == (not automatic)  # its trees do not bear company


def test_an_estimator_within_a_task_stays_on_its_worker(client):
    X, y = table()
    model = MVERegressor(hidden_mean=(8,), hidden_var=(4,), epochs=20, random_state=0)
    here = cross_val_score(model, X, y, cv=3)
    with joblib.parallel_config(backend="dask"):
        there = cross_val_score(model, X, y, cv=3)
    np.testing.assert_array_equal(here, there)


def test_a_task_has_the_threads_of_its_worker_whatever_the_environment_says(client):
    assert client.submit(os.environ.get, "OMP_NUM_THREADS", pure=False).result() == "1"
    assert client.submit(effective_threads, None, pure=False).result() == 1
    assert client.submit(effective_threads, 3, pure=False).result() == 3
    options = {"n_workers": 1, "threads_per_worker": 4, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as wide:
        assert wide.submit(effective_threads, None, pure=False).result() == 4


def test_workers_that_would_give_other_numbers_are_told(client, monkeypatch):
    monkeypatch.setenv("MVENET_SIMD", "baseline")  # here, not there
    if instruction_set() == client.submit(instruction_set, pure=False).result():
        pytest.skip("this processor has but one instruction set")
    with (
        joblib.parallel_config(backend="dask"),
        pytest.raises(RuntimeError, match=r"A worker has mvenet .* with avx.*set MVENET_SIMD"),
    ):
        MVERegressor(epochs=2, warmup_epochs=2).fit(*table())


def test_workers_with_another_version_are_refused_by_name(client, tmp_path):
    other = tmp_path / "mvenet-99.0.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: mvenet\nVersion: 99.0\n")
    worker = next(iter(client.scheduler_info()["workers"]))
    client.run(lambda: sys.path.insert(0, str(tmp_path)), workers=[worker])
    try:
        with (
            joblib.parallel_config(backend="dask"),
            pytest.raises(RuntimeError, match=rf"{worker} has mvenet 99\.0, but this is mvenet"),
        ):
            MVERegressor(epochs=2, warmup_epochs=2).fit(*table())
    finally:
        client.run(lambda: sys.path.remove(str(tmp_path)), workers=[worker])


@pytest.mark.slow
def test_a_worker_that_dies_when_asked_for_its_version_is_done_without(client):
    X, y = table()
    model = MVERegressor(epochs=2, warmup_epochs=2, random_state=0)
    here = model.fit(X, y).predict(X)
    worker = next(iter(client.scheduler_info()["workers"]))
    client.run(die_when_asked, workers=[worker])
    with joblib.parallel_config(backend="dask"):
        there = model.fit(X, y).predict(X)
    np.testing.assert_array_equal(here, there)
    while worker in client.scheduler_info()["workers"]:  # until the scheduler has noticed
        time.sleep(0.1)
    client.wait_for_workers(2)  # for the tests that follow; a busy machine may take its time


def die_when_asked():
    import importlib.metadata

    importlib.metadata.version = lambda name: os._exit(1)


@pytest.mark.skipif(sys.platform == "win32", reason="limits on files are POSIX's")
@pytest.mark.slow
def test_full_disks_at_the_workers_lose_nothing(tmp_path):
    X, y = table()
    here = MVERegressorCV(**SEARCH).fit(X, y)
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    at_once = {"distributed.worker.memory.target": 1e-9}  # whatever a worker keeps goes to its disk
    with (
        small_disk(tmp_path, 1 << 20) as real,
        dask.config.set(at_once),
        distributed.LocalCluster(**options, local_directory=tmp_path) as cluster,
        distributed.Client(cluster) as client,
    ):
        full = client.run(fill_the_disk if real else limit_files)
        assert set(full.values()) == {errno.ENOSPC if real else errno.EFBIG}
        with joblib.parallel_config(backend="dask"):
            there = MVERegressorCV(**SEARCH).fit(X, y)
    assert_same(here, there)


def fill_the_disk(dask_worker):
    """Write until there is no room; tell what came of it."""
    try:
        with Path(dask_worker.local_directory, "large").open("wb", buffering=0) as file:
            while file.write(bytes(4096)):
                pass
    except OSError as error:
        return error.errno


def limit_files(dask_worker):
    """Let no file grow from now on, and tell what comes of trying."""
    import resource

    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        Path(dask_worker.local_directory, "a file").write_text("a word")
    except OSError as error:
        return error.errno


def test_units_keep_what_shares_a_warm_up_together_and_weigh_alike():
    stages = [
        (Stage("warmup", 10, 0.1, reg_mean=a), Stage("joint", 10, 0.1, reg_mean=a, reg_var=b))
        for a in (0.1, 0.2, 0.3)
        for b in (1.0, 2.0)
    ]
    networks = [fleet.Network(s, seed=1) for s in stages]
    families = fleet.families(networks)
    assert families == [[0, 1], [2, 3], [4, 5]]
    units = over_dask._units(families, [1, 1, 5, 5, 2, 2], 2)
    assert sorted(map(sorted, units)) == [[0, 1, 4, 5], [2, 3]]
    assert over_dask._units(families, [1] * 6, 100) == families
