"""The engine called with arguments that nobody has checked: each is refused, in words."""

from __future__ import annotations

import numpy as np
import pytest

from mvenet import _engine

RNG = np.random.default_rng(0)
X = RNG.normal(size=(5, 2))

# Two trees: a root with two leaves, and the same once more.
FOREST = {
    "feature": np.array([0, -1, -1, 1, -1, -1], np.int16),
    "threshold": np.array([0, 1, 2, 0, 3, 4], np.float32),
    "right": np.array([2, 0, 0, 2, 0, 0], np.int32),
    "starts": np.array([0, 3, 6]),
}


def changed(name, place, number):
    """The forest with one number of an array replaced."""
    array = FOREST[name].copy()
    array[place] = number
    return FOREST | {name: array}


def trees(forest, rows=5, columns=2, threads=1):
    return _engine.predict_trees(x=np.ones((rows, columns)), threads=threads, **forest)


UNUSED = 100_000  # nodes
# Of the first tree: rows of ones go to the right, to node 2.
LEADS_ASTRAY = {
    "a column too many": changed("feature", 0, 2),
    "a column far away": changed("feature", 0, 30_000),
    "a right child beyond the tree": changed("right", 0, 3 + UNUSED),
    "a right child far away": changed("right", 0, 2**31 - 1),
    "a right child before the tree": changed("right", 0, -1),
    "a node that is its own right child": changed("right", 0, 0),
    "a left child that is the right one": changed("right", 0, 1),
    "a leaf that goes on": changed("feature", 2, 0),
    "a way back": changed("feature", 2, 0) | {"right": np.array([2, 0, 1, 2, 0, 0], np.int32)},
}
NO_TREES = {
    "none": {"starts": np.array([0])},
    "nothing at all": {"starts": np.array([], np.int64)},
    "before the first node": {"starts": np.array([-3, 3, 6])},
    "beyond the last node": {"starts": np.array([0, 3, 7])},
    "far beyond": {"starts": np.array([0, 2**62])},
    "an empty one": {"starts": np.array([0, 3, 3])},
    "backwards": {"starts": np.array([0, 6, 3])},
}


@pytest.mark.parametrize("forest", LEADS_ASTRAY.values(), ids=LEADS_ASTRAY)
@pytest.mark.parametrize("rows", [1, 5, 5000])  # the last on two threads
@pytest.mark.parametrize("unused", [0, UNUSED])  # of a large tree only a path is read
@pytest.mark.parametrize("dtype", [np.int16, np.int32])
def test_trees_that_lead_astray_are_refused(forest, rows, unused, dtype):
    padded = {n: np.insert(forest[n], 3, np.full(unused, -1)) for n in ("feature", "threshold")}
    padded["feature"] = padded["feature"].astype(dtype)
    padded["right"] = np.insert(forest["right"], 3, np.zeros(unused))
    padded["starts"] = forest["starts"] + [0, unused, unused]
    with pytest.raises(ValueError, match="asks for a column that is not there or leads nowhere"):
        trees(padded, rows, threads=2)


@pytest.mark.parametrize("starts", NO_TREES.values(), ids=NO_TREES)
def test_trees_that_do_not_follow_each_other_are_refused(starts):
    with pytest.raises(ValueError, match="needs trees, one after the other"):
        trees(FOREST | starts)


@pytest.mark.parametrize("name", ["feature", "threshold", "right"])
def test_trees_with_too_few_numbers_are_refused(name):
    with pytest.raises(ValueError, match="needs feature, threshold and right of each node"):
        trees(FOREST | {name: FOREST[name][:-1]})


def test_a_column_that_four_bytes_count_is_refused():
    feature = FOREST["feature"].astype(np.int32)
    feature[0] = 2**31 - 1
    with pytest.raises(ValueError, match="asks for a column that is not there"):
        trees(FOREST | {"feature": feature})


def test_trees_as_they_should_be():
    assert trees(FOREST).tolist() == [3.0] * 5
    leaf = {"feature": [-1], "threshold": [7.0], "right": [0], "starts": [0, 1]}
    forest = {name: np.array(leaf[name], array.dtype) for name, array in FOREST.items()}
    assert trees(forest, columns=0).tolist() == [7.0] * 5
    assert trees(FOREST, rows=0).tolist() == []


def networks(**changes):
    """Arguments of predict for one network that is a constant."""
    one = np.zeros((1, 2))
    given = {
        "x": X, "parameters": np.zeros((1, 2)), "x_mean": one, "x_scale": one + 1,
        "y_mean": one[0, :1], "y_scale": one[0, :1] + 1, "mean_sizes": [0, 1], "var_sizes": [0, 1],
        "activation": "elu", "input_bound": np.inf, "natural": False, "threads": 1,
        "deviations": True, "mixture": False, "factor": 1.0, "steps": None, "last": None,
    }  # fmt: skip
    return given | changes


def predicted(x, threads, deviations, mixture, factor, last=None, **given):
    made = _engine.networks(**given, last=last is not None)
    options = {"deviations": deviations, "mixture": mixture, "factor": factor}
    return made.predict(x, last, threads, **options)


def process(**changes):
    two = np.zeros(2)
    given = {
        "x": X, "center": two, "scale": two + 1, "points": np.zeros((2, 3)), "weights": np.zeros(3),
        "polynomial": np.zeros(3), "slope": two, "intercept": 0.0, "threads": 1,
    }  # fmt: skip
    return given | changes


def training(epochs=1, **changes):
    job = _engine.Job(
        mode="joint", subset=0, parent=-1, seed=0, epochs=epochs, learning_rate=0.01,
        schedule="cosine", reg_mean=0.0, reg_var=0.0, init_var_bias=False, patience=0, window=0,
    )  # fmt: skip
    given = {
        "x": X, "y": X[:, 0].copy(), "weight": None, "jobs": [job],
        "subsets": [(np.arange(5), np.arange(0))], "mean_sizes": [2, 1], "var_sizes": [2, 1],
        "activation": "elu", "input_bound": np.inf, "objective": "nll", "beta": 0.5, "df": 5.0,
        "batch_size": 2, "clip_value": 5.0, "precise": False, "threads": 1,
        "record_history": True, "progress": None,
    }  # fmt: skip
    return given | changes


@pytest.mark.parametrize("threads", [0, -1, -(2**31)])
def test_no_threads_are_refused(threads):
    calls = [
        lambda: trees(FOREST, threads=threads),
        lambda: predicted(**networks(threads=threads)),
        lambda: _engine.predict_process(**process(threads=threads)),
        lambda: _engine.train(**training(threads=threads)),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=f"threads={threads} must be at least 1"):
            call()


@pytest.mark.parametrize("threads", [2**30, 2**31 - 1])
def test_more_threads_than_anybody_has(threads):
    assert trees(FOREST, threads=threads).tolist() == [3.0] * 5
    assert (predicted(**networks(threads=threads))[0] == 0).all()
    assert (_engine.predict_process(**process(threads=threads)) == 0).all()
    assert _engine.train(**training(threads=threads))["status"].tolist() == [0]


@pytest.mark.parametrize(
    "units", [[2, 0, 1], [2, -5, 1], [2, 70_000, 70_000, 1], [2, 2**31 - 1, 1]]
)
def test_layers_of_no_or_too_many_units_are_refused(units):
    for call, arguments in ((_engine.train, training), (predicted, networks)):
        for name in ("mean_sizes", "var_sizes"):
            with pytest.raises(ValueError, match="units, but must have 1 to 65536"):
                call(**arguments(**{name: units}))


def test_a_training_that_no_memory_holds_is_refused():
    wide = [2, *[65_536] * 8, 1]
    with pytest.raises(
        MemoryError, match=r"1 trainings of networks with 30,\d+,\d+,\d+ parameters"
    ):
        _engine.train(**training(mean_sizes=wide))
    with pytest.raises(MemoryError, match="but this machine has"):
        _engine.train(**training(jobs=training(epochs=2**31 - 1)["jobs"] * 1000))


@pytest.mark.parametrize("epochs", [-1, 2**31, 2**63 - 1])
def test_epochs_that_cannot_be_counted_are_refused(epochs):
    with pytest.raises(ValueError, match=f"epochs={epochs} must be 0 to"):
        _engine.train(**training(epochs))


@pytest.mark.parametrize("batch_size", [0, -1, 2**31, 2**63 - 1])
def test_batches_that_cannot_be_counted_are_refused(batch_size):
    with pytest.raises(ValueError, match=f"batch_size={batch_size} must be 1 to"):
        _engine.train(**training(batch_size=batch_size))


def test_more_columns_than_can_be_counted_are_refused():
    wide = np.broadcast_to(np.zeros((1, 1)), (5, 2**24 + 1))
    calls = [
        lambda: _engine.predict_trees(x=wide, threads=1, **FOREST),
        lambda: predicted(**networks(x=wide)),
        lambda: _engine.predict_process(**process(x=wide)),
        lambda: _engine.train(**training(x=wide)),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="more than 16777216 columns"):
            call()


@pytest.mark.parametrize("changes", [
    {"center": np.zeros(1)}, {"scale": np.ones(3)}, {"slope": np.zeros(0)},
    {"points": np.zeros((3, 3))}, {"points": np.zeros((2, 4))}, {"weights": np.zeros(4)},
    {"polynomial": np.zeros(2)},
])  # fmt: skip
def test_a_process_whose_arrays_do_not_fit_is_refused(changes):
    with pytest.raises(ValueError, match="a process of other columns or points"):
        _engine.predict_process(**process(**changes))


@pytest.mark.parametrize("changes", [
    {"points": np.zeros((2, 4))}, {"linear": np.zeros((4, 5))}, {"linear": np.zeros((5, 4))},
    {"amplitudes": np.ones(2)}, {"t": np.zeros(4)}, {"factor": np.zeros((5, 6))},
    {"factor": np.zeros((4, 5))},
])  # fmt: skip
def test_rows_of_a_process_whose_arrays_do_not_fit_are_refused(changes):
    pairs = {"points": np.zeros((2, 5)), "linear": np.eye(5), "amplitudes": np.ones(3)}
    sums = pairs | {"t": np.zeros(5), "factor": np.eye(5)}
    with pytest.raises(ValueError, match="a process of other rows or kernels"):
        _engine.pair_sums(**sums | changes)
    if pairs.keys() & changes.keys():
        with pytest.raises(ValueError, match="a process of other rows or kernels"):
            _engine.covariances(**pairs | changes, slope=1.0)


@pytest.mark.parametrize("changes", [
    {"parameters": np.zeros((1, 3))}, {"parameters": np.zeros((0, 2))},
    {"x_mean": np.zeros((1, 3))}, {"x_scale": np.ones((2, 2))}, {"y_mean": np.zeros(2)},
    {"y_scale": np.ones(0)},
])  # fmt: skip
def test_networks_whose_arrays_do_not_fit_are_refused(changes):
    with pytest.raises(ValueError, match="parameters and scalings do not fit together"):
        predicted(**networks(**changes))


@pytest.mark.parametrize(("column", "message"), [
    ([0, 2], "do not follow the table's columns"), ([-1, 0], "do not follow the table's columns"),
    ([1, 0], "do not follow the table's columns"), ([0], "do not fit the table"),
])  # fmt: skip
def test_steps_that_do_not_fit_are_refused(column, message):
    two = np.zeros(2)
    steps = (two, two + 1, np.array(column), two, two + 1, 3.0)
    scaling = {"x_mean": np.zeros((1, 4)), "x_scale": np.ones((1, 4))}  # two columns, two steps
    with pytest.raises(ValueError, match=message):
        predicted(**networks(steps=steps, **scaling))


def test_a_table_that_is_not_the_networks_is_refused():
    for given in ({"x": np.zeros((5, 3))}, {"last": np.zeros(5)}):
        with pytest.raises(ValueError, match=r"the table is not the networks'|only networks of"):
            predicted(**networks(**given))
    two = np.zeros(2)
    steps = (two, two + 1, np.array([0, 1]), two, two + 1, 3.0)
    scaling = {"x_mean": np.zeros((1, 5)), "x_scale": np.ones((1, 5))}
    for last in (np.zeros(4), np.zeros(6)):
        with pytest.raises(ValueError, match="the table is not the networks'"):
            predicted(**networks(steps=steps, last=last, **scaling))


def test_quantiles_of_mixtures_that_do_not_fit_are_refused():
    members = {"means": np.zeros((2, 3)), "stds": np.ones((2, 3)), "weights": np.full((2, 1), 0.5)}
    level = {"mass": 0.5, "sign": 1.0, "probit": 0.0}
    assert _engine.quantiles(**members, **level).tolist() == [0.0] * 3
    for name, array in members.items():
        with pytest.raises(ValueError, match="for each member"):
            _engine.quantiles(**members | {name: array[:1]}, **level)
    with pytest.raises(ValueError, match="for each member"):
        _engine.quantiles(**members | {"stds": np.ones((2, 2))}, **level)
    with pytest.raises(ValueError, match="for each member"):
        _engine.quantiles(**members | {"weights": np.full((2, 2), 0.5)}, **level)
    with pytest.raises(ValueError, match="for each member"):
        _engine.probabilities(
            **members | {"means": np.zeros((2, 4))}, places=np.zeros((1, 1)), sign=1.0
        )
    with pytest.raises(ValueError, match="one for each row"):
        _engine.probabilities(**members, places=np.zeros((1, 2)), sign=1.0)
    with pytest.raises(ValueError, match="one outcome for each row"):
        _engine.crps(**members, y=np.zeros(2))
