"""Same call, same bits: whatever the companions, the threads, the process and the world outside."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import threading
import warnings
from pathlib import Path

import joblib
import numpy as np
import pytest
import threadpoolctl
from fitted import fast, table
from processes import python
from sklearn.base import clone

from mvenet import AutoRegressor, MVERegressor, MVERegressorCV, _engine
from mvenet._estimators.base import fit_together
from mvenet._models.architecture import Architecture
from mvenet._training import fleet
from mvenet._utils import machine
from mvenet._utils.machine import effective_threads
from mvenet._utils.one_order import one_order
from mvenet.recipes import Stage, Training, stages

SETS = _engine.instruction_sets()
ARCHITECTURE = Architecture((9, 5), (6,))
TRAINING = Training(batch_size=16, clip_value=5.0)


X, Y = table(n=90)


def bits(model, X=X):
    return b"".join(a.tobytes() for a in model.predict(X, return_std=True))


# --- fleets --------------------------------------------------------------------------------------


def plan(strategy="warmup", **settings):
    settings = {"learning_rate": 0.01, "reg_mean": 1e-3, "reg_var": 1e-2} | settings
    return stages(
        strategy, n_rows=len(Y), batch_size=16, epochs=4, warmup_epochs=3,
        schedule="cosine", **settings,
    )  # fmt: skip


def subsets(n_folds=4):
    rows = np.arange(len(Y))
    return [(rows[rows % n_folds != f], rows[rows % n_folds == f]) for f in range(n_folds)]


def companions(n):
    """Networks that differ in seed, subset, penalties, strategy, learning rate and patience."""
    strategies = ("warmup", "warmup-fixed-mean", "no-warmup")
    return [
        fleet.Network(
            plan(
                strategies[i % 3],
                reg_mean=10.0 ** -(i % 5),
                reg_var=10.0 ** -(i % 4),
                learning_rate=(0.01, 0.03, 1e300)[i % 7 // 3],  # some diverge
                patience=i % 2,
            ),
            seed=i % 11,
            subset=i % 4,
        )
        for i in range(n)
    ]


def train(networks, threads=1, weight=None, **settings):
    return fleet.train(
        X, Y, weight, subsets(), networks,
        architecture=ARCHITECTURE, training=TRAINING, threads=threads, record_history=True,
        **settings,
    )  # fmt: skip


def contents(result, i):
    """Everything that is known about network i, as bytes."""
    nets = result.networks
    arrays = [nets.x_mean, nets.x_scale, nets.y_mean, nets.y_scale, result.diverged]
    if not result.diverged[i]:
        arrays += [nets.parameters, *nets.predict(X)]
    return b"".join(np.ascontiguousarray(a[i]).tobytes() for a in arrays) + b"".join(
        piece.tobytes() for piece in result.history[i]
    )


@pytest.mark.parametrize("precise", [False, True])
@pytest.mark.parametrize("simd", SETS)
def test_companions_order_and_threads(simd, precise, monkeypatch):
    monkeypatch.setenv("MVENET_SIMD", simd)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(Y))
    everyone = companions(200)
    options = {"weight": weight, "precise": precise}
    alone = [contents(train([network], **options), 0) for network in everyone[:7]]
    for n in (1, 2, 7, 200):
        for threads in (1, 2):
            result = train(everyone[:n], threads=threads, **options)
            assert [contents(result, i) for i in range(min(n, 7))] == alone[:n]
    assert 0 < result.diverged.sum() < 100  # companions that fail are companions too
    order = np.random.default_rng(0).permutation(200)
    shuffled = train([everyone[i] for i in order], threads=2, **options)
    for i in range(7):
        assert contents(shuffled, int(np.flatnonzero(order == i)[0])) == alone[i]


def test_other_subsets_of_the_fleet_do_not_matter():
    network = fleet.Network(plan(), 3, subset=0)
    args = {"architecture": ARCHITECTURE, "training": TRAINING, "record_history": True}
    one = fleet.train(X, Y, None, subsets()[2:3], [network], **args)
    moved = fleet.Network(plan(), 3, subset=2)
    many = fleet.train(X, Y, None, subsets(), [*companions(5), moved], **args)
    assert contents(one, 0) == contents(many, 5)
    # nor do the rows that no subset names
    kept = np.sort(np.concatenate(subsets()[2]))
    position = np.full(len(Y), -1)
    position[kept] = np.arange(len(kept))
    own = [tuple(position[part] for part in subsets()[2])]
    small = fleet.train(X[kept], Y[kept], None, own, [network], **args)
    assert small.networks.parameters.tobytes() == one.networks.parameters.tobytes()


def test_shared_warm_ups_are_done_once_and_change_nothing():
    grid = [1e-4, 1e-3, 1e-2, 1e-1, 1.0]
    networks = [fleet.Network(plan(reg_var=r), 5) for r in grid]
    together = train(networks, threads=2)
    alone = [train([network]) for network in networks]
    assert [contents(together, i) for i in range(5)] == [contents(a, 0) for a in alone]
    batches = -(-len(subsets()[0][0]) // 16)
    warmup, main = 3 * batches, 4 * batches
    assert alone[0].steps == warmup + main
    assert together.steps == warmup + 5 * main
    assert fleet.planned_steps(networks, subsets(), 16) == together.steps
    # Both warm-up strategies share it too; what differs in content is not shared.
    both = [*networks, fleet.Network(plan("warmup-fixed-mean", reg_var=0.5), 5)]
    assert train(both).steps == warmup + 6 * main
    for other in (
        fleet.Network(plan(), 6),
        fleet.Network(plan(), 5, subset=1),
        fleet.Network(plan(reg_mean=0.5), 5),
        fleet.Network(plan(learning_rate=0.02), 5),
    ):
        twins = train([networks[0], other])
        assert twins.steps == alone[0].steps + train([other]).steps
    assert train([networks[0], networks[0]]).steps == alone[0].steps


def test_networks_that_are_compared_see_the_same_start_and_batches():
    # One step of almost no length: what is left is the start, whatever the penalties.
    still = {"epochs": 1, "learning_rate": 1e-30}
    networks = [
        fleet.Network((Stage("joint", **still, reg_mean=a, reg_var=b),), 5)
        for a, b in ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0))
    ]
    result = train(networks)
    assert len({theta.tobytes() for theta in result.networks.parameters}) == 1
    assert len({piece[0].tobytes() for piece in result.history}) == 1


# --- estimators ----------------------------------------------------------------------------------

OPTIONS = [
    {},
    {"n_members": 3},
    {"early_stopping": True},
    {"early_stopping": True, "n_members": 3, "strategy": "no-warmup"},
    {"strategy": "warmup-fixed-mean", "objective": "beta-nll", "activation": "silu"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("simd", SETS)
def test_same_call_same_bits_whatever_n_jobs(options, simd, monkeypatch):
    monkeypatch.setenv("MVENET_SIMD", simd)
    expected = fast(**options).fit(X, Y)
    for n_jobs in (None, 1, 2, 3, 16, -1, -2):
        model = fast(**options, n_jobs=n_jobs).fit(X, Y)
        assert bits(model) == bits(expected)
        assert model.n_steps_ == expected.n_steps_
        for name, column in expected.history_.items():
            assert column.tobytes() == model.history_[name].tobytes()


@pytest.mark.parametrize("early_stopping", [False, True])
def test_a_member_does_not_depend_on_how_many_others_there_are(early_stopping):
    few = fast(n_members=2, early_stopping=early_stopping).fit(X, Y)
    many = fast(n_members=7, early_stopping=early_stopping).fit(X, Y)
    alone = fast(early_stopping=early_stopping).fit(X, Y)
    assert (
        alone.model_.networks.parameters[0].tobytes()
        == many.model_.networks.parameters[0].tobytes()
    )
    assert few.model_.networks.parameters.tobytes() == many.model_.networks.parameters[:2].tobytes()


def hashes():
    """Of what three estimators predict, trained with each set of instructions."""
    for os.environ["MVENET_SIMD"] in SETS:
        for options in ({}, {"n_members": 3}, {"early_stopping": True}):
            yield hashlib.sha256(bits(fast(**options).fit(X, Y))).hexdigest()


def test_a_fresh_process(monkeypatch):
    monkeypatch.setenv("MVENET_SIMD", SETS[0])
    here = Path(__file__).parent
    folders = [str(here), str(here.parent / "helpers"), os.environ.get("PYTHONPATH", "")]
    path = os.pathsep.join(folders)
    environment = {"PYTHONHASHSEED": "7", "OMP_NUM_THREADS": "1", "LC_ALL": "C", "PYTHONPATH": path}
    code = "import test_determinism\nprint(*test_determinism.hashes())"
    found = python(code, env=os.environ | environment).split()
    assert found == list(hashes())


def test_workers_of_joblib_give_the_same_bits():
    expected = [bits(fast(random_state=seed).fit(X, Y)) for seed in range(4)]
    for backend in ("threading", "loky"):
        models = joblib.Parallel(n_jobs=2, backend=backend)(
            joblib.delayed(fast(random_state=seed).fit)(X, Y) for seed in range(4)
        )
        assert [bits(model) for model in models] == expected


def test_threads_that_fit_at_once():
    options = [{"random_state": seed, "n_members": 1 + seed % 3, "epochs": 60} for seed in range(8)]
    expected = [bits(fast(**o).fit(X, Y)) for o in options]
    found = [None] * len(options)
    barrier = threading.Barrier(len(options))

    def work(i):
        barrier.wait()
        model = fast(**options[i]).fit(X, Y)
        found[i] = bits(model)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(options))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == expected


def test_a_search_is_the_same_whatever_the_threads_of_linear_algebra():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1000, 8))
    y = 10 * np.sin(3 * X[:, 0]) + X[:, 1] ** 2 * X[:, 2] + 0.5 * rng.standard_normal(1000)
    found = []
    for threads in (1, 2, 3):
        with threadpoolctl.threadpool_limits(threads):
            found.append(bits(AutoRegressor(effort="low", cv=3, random_state=0).fit(X, y), X))
    assert found[0] == found[1] == found[2]


def test_linear_algebra_has_its_threads_again_after_the_last_of_fits_that_overlap():
    def threads():
        return {pool["filepath"]: pool["num_threads"] for pool in threadpoolctl.threadpool_info()}

    with threadpoolctl.threadpool_limits(2):
        before = threads()
        first, second = one_order(), one_order()
        first.__enter__()
        second.__enter__()
        assert set(threads().values()) == {1}
        first.__exit__(None, None, None)
        assert set(threads().values()) == {1}
        second.__exit__(None, None, None)
        assert threads() == before


def test_threads_that_share_a_model_predict_alike():
    model = fast(n_members=3).fit(X, Y)
    expected, found = bits(model), []
    threads = [threading.Thread(target=lambda: found.append(bits(model))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 8


def test_a_row_is_predicted_alike_wherever_it_stands():
    model = fast(n_members=3).fit(X, Y)
    big = np.random.default_rng(1).normal(3, 2, (9001, 3))
    mean, std = model.predict(big, return_std=True)
    interval = model.predict_interval(big)
    for pick in ([0], [9000], [4095, 4096], np.arange(17), [5] * 40, slice(None, None, -1)):
        for part, whole in zip(model.predict(big[pick], return_std=True), (mean, std), strict=True):
            assert part.tobytes() == whole[pick].tobytes()
        assert model.predict_interval(big[pick]).tobytes() == interval[pick].tobytes()


# --- random_state --------------------------------------------------------------------------------


def test_random_state_that_is_a_number():
    assert bits(fast(random_state=7).fit(X, Y)) == bits(fast(random_state=np.int64(7)).fit(X, Y))
    model = fast(random_state=7).fit(X, Y)
    first = bits(model)
    assert bits(model.fit(X, Y)) == first
    assert len({bits(fast(random_state=seed).fit(X, Y)) for seed in range(5)}) == 5
    fast(random_state=2**32 - 1).fit(X, Y)


def test_random_state_none_is_fresh_and_ignores_the_global_seed():
    found = set()
    for _ in range(3):
        np.random.seed(0)  # noqa: NPY002
        random.seed(0)
        found.add(bits(fast(random_state=None).fit(X, Y)))
    assert len(found) == 3


@pytest.mark.parametrize("make", [np.random.RandomState, np.random.default_rng])
def test_random_state_that_is_a_generator_moves_on(make):
    source = make(0)
    first, second = (bits(fast(random_state=source).fit(X, Y)) for _ in range(2))
    assert first != second
    source = make(0)
    assert [bits(fast(random_state=source).fit(X, Y)) for _ in range(2)] == [first, second]


def test_members_differ():
    for options in ({}, {"early_stopping": True}):
        parameters = fast(n_members=5, **options).fit(X, Y).model_.networks.parameters
        assert len({theta.tobytes() for theta in parameters}) == 5


# --- the world outside ---------------------------------------------------------------------------


def world():
    """Everything global that a library could leave changed."""
    kind, key, *rest = np.random.get_state()  # noqa: NPY002
    return {
        "numpy's random state": (kind, key.tobytes(), *rest),
        "random": random.getstate(),
        "warning filters": list(warnings.filters),
        "floating point errors": np.geterr(),
        "print options": np.get_printoptions(),
        "environment": dict(os.environ),
        "thread pools": [
            (pool["filepath"], pool["num_threads"]) for pool in threadpoolctl.threadpool_info()
        ],
        "affinity": getattr(os, "sched_getaffinity", lambda _: None)(0),
        "signals": [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)],
        "folder": Path.cwd(),
        "threads": threading.active_count(),
        "native threads": len(os.listdir("/proc/self/task")) if Path("/proc/self/task").exists()
        else 0,
    }  # fmt: skip


@pytest.mark.parametrize("n_jobs", [None, 1, 2])
def test_nothing_global_is_changed(n_jobs):
    bits(fast().fit(X, Y))  # what is loaded on first use is not counted
    with warnings.catch_warnings(), np.errstate(under="raise"):
        warnings.simplefilter("always")
        before = world()
        for options in OPTIONS:
            model = fast(**options, n_jobs=n_jobs).fit(X, Y)
            model.predict_interval(X)
            model.predict_dist(X).sample(2, random_state=0)
        model = fast(random_state=None, n_jobs=n_jobs).fit(X, Y)
        model.predict_dist(X).sample(2)
        after = world()
    for name, value in before.items():
        assert after[name] == value, name


def test_nothing_global_is_changed_by_a_fit_that_fails():
    bits(fast().fit(X, Y))
    before = world()
    with pytest.raises(ValueError, match="diverged"):
        fast(learning_rate=1e30, clip_value=None).fit(X, Y)
    with pytest.raises(ValueError, match="NaN"):
        fast().fit(X, np.full(len(Y), np.nan))
    after = world()
    for name, value in before.items():
        assert after[name] == value, name


def test_thread_limits_are_obeyed(monkeypatch):
    cpus = joblib.cpu_count()
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert effective_threads(None) == effective_threads(-1) == cpus
    assert effective_threads(3) == 3
    assert effective_threads(-cpus) == effective_threads(-100) == 1
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert effective_threads(None) == effective_threads(-1) == 1
    monkeypatch.delenv("OMP_NUM_THREADS")
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")
    assert effective_threads(None) == joblib.cpu_count() == 1
    monkeypatch.delenv("LOKY_MAX_CPU_COUNT")
    for nonsense in ("", "many", "0", "-2", "4,2"):
        monkeypatch.setenv("OMP_NUM_THREADS", nonsense)
        assert effective_threads(None) == cpus


@pytest.mark.parametrize(
    ("files", "share"),
    [
        ({}, 99),
        ({"cpu.max": "max 100000\n"}, 99),
        ({"cpu.max": "150000 100000\n"}, 2),
        ({"cpu.max": "10000 100000\n"}, 1),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, 99),
        ({"cpu/cpu.cfs_quota_us": "100000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 1),
        ({"cpu.max": "nonsense"}, 99),
    ],
)
def test_a_container_has_its_share_of_the_cores(tmp_path, files, share):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert machine.cores(tmp_path) == min(share, len(os.sched_getaffinity(0)))


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="counts threads through /proc")
def test_n_jobs_is_the_number_of_threads():
    code = """
    import os, threading, time
    import numpy as np
    from mvenet import MVERegressor
    X = np.random.default_rng(0).normal(size=(200, 3))
    count = lambda: len(os.listdir("/proc/self/task"))
    def watch(seen, done):
        while not done.is_set():
            seen.append(count())
            time.sleep(0.002)
    idle = count()
    for n_jobs in (1, 2, 4):
        model = MVERegressor(n_members=6, n_jobs=n_jobs, epochs=40, warmup_epochs=40)
        most = 0
        for tries in range(5):  # a busy machine may not let the watcher look in time
            if tries > 1 and most >= n_jobs:
                break
            while count() > idle:  # a thread that was joined is listed a moment longer
                time.sleep(0.001)
            seen, done = [], threading.Event()
            watcher = threading.Thread(target=watch, args=(seen, done))
            watcher.start()
            model.fit(X, X[:, 0])
            done.set()
            watcher.join()
            most = max(most, max(seen) - idle - 1)
        print(most)
    """
    assert python(code).split() == ["1", "2", "4"]


def test_estimators_fitted_together_are_as_if_fitted_alone():
    X, y = table(n=60)
    grid = {"reg_mean": [1e-3, 1e-2], "reg_var": [1e-2, 1e-1], "cv": 3, "n_members": 2}
    short = {"epochs": 4, "warmup_epochs": 3, "random_state": 0, "hidden_mean": (6,)}
    estimators = [
        MVERegressor(**short, strategy="warmup"),
        MVERegressorCV(**grid, **short, strategy="warmup"),
        MVERegressorCV(**grid, **short, strategy="warmup", scale=False, final="refit"),
        MVERegressorCV(**grid, **short, strategy="warmup-fixed-mean"),
    ]
    together = [clone(e) for e in estimators]
    fit_together(together, X, y, n_jobs=2)
    alone = [e.fit(X, y) for e in estimators]
    for a, b in zip(together, alone, strict=True):
        assert a.model_.networks.parameters.tobytes() == b.model_.networks.parameters.tobytes()
        assert a.predict(X).tobytes() == b.predict(X).tobytes()
    assert together[1].n_steps_ < sum(e.n_steps_ for e in alone[:3])
