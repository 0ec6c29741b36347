"""Trees as plain arrays, against scikit-learn's own."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import reference
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import chisquare
from sklearn.ensemble import ExtraTreesRegressor

from mvenet import _engine
from mvenet._models.forest import Forest
from mvenet.persistence import load, save

RNG = np.random.default_rng(0)
FIXTURES = Path(__file__).parents[1] / "fixtures/format-2"


@pytest.mark.parametrize("columns", [40_000, 66_000])
def test_a_forest_of_very_many_columns_is_scikit_learns(columns):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, columns)).astype(np.float32)
    y = x[:, -1] + x[:, 100]
    forest = ExtraTreesRegressor(10, max_features=200, random_state=0).fit(x, y)
    ours = Forest.of(forest.estimators_, 0.0, 1.0)
    many = np.concatenate([x, rng.normal(size=(110, columns)).astype(np.float32)])
    expected = forest.predict(many)
    assert_allclose(ours.predict(many), expected, atol=1e-6)
    assert_allclose(ours.predict(many[:1]), expected[:1], atol=1e-6)  # too few to unfold a tree
    assert ours.feature.max() > 2**15


def test_features_take_two_bytes_where_that_is_enough_and_four_say_the_same():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3))
    trees = ExtraTreesRegressor(3, random_state=0).fit(x, x[:, 0]).estimators_
    forest = Forest.of(trees, 0.0, 1.0)
    assert forest.feature.dtype == np.int16
    wide = replace(forest, feature=forest.feature.astype(np.int32))
    for rows in (x, x[:1]):
        assert_array_equal(wide.predict(rows), forest.predict(rows))
    other = replace(forest, feature=forest.feature.astype(np.int64))
    with pytest.raises(TypeError, match="incompatible function arguments"):
        other.predict(x)


def test_features_of_four_bytes_in_model_files(tmp_path):
    """The files of this format have those of two bytes."""
    model = load(FIXTURES / "automatic-search.mve")
    X = np.loadtxt(FIXTURES / "numbers.csv", delimiter=",")[:, :3]
    expected = model.predict(X)

    def with_features(dtype):
        means = [
            replace(mean, feature=mean.feature.astype(dtype)) if isinstance(mean, Forest) else mean
            for mean in model.model_.means
        ]
        assert any(isinstance(mean, Forest) for mean in means)
        changed = copy.copy(model)
        changed.model_ = replace(model.model_, means=tuple(means))
        return changed

    path = tmp_path / "wide.mve"
    save(with_features(np.int32), path)
    assert_array_equal(load(path).predict(X), expected)
    with pytest.raises(ValueError, match="feature is not a block"):
        save(with_features(np.int64), path)


def check_growth(tree, x, y, weight, seed):
    """Follow a tree with the thresholds that its seed draws: the fifth stream is that of trees.

    Two columns may part the rows alike, so that the one taken must be as good as any.
    """
    (feature, threshold, right), rng = tree, reference.Rng(seed, 4)

    def squares(rows):
        mean = np.average(y[rows], weights=weight[rows]) if len(rows) else 0.0
        return (weight[rows] * (y[rows] - mean) ** 2).sum()

    def follow(node, rows):
        low, high = x[rows].min(axis=0), x[rows].max(axis=0)
        same = np.ptp(y[rows]) == 0
        if not same:
            at = low + np.array([rng.uniform() for _ in low], dtype=np.float32) * (high - low)
            at = np.where(at < high, at, low)
            rng.below(len(low))
        if same or (low == high).all():
            assert feature[node] == -1
            assert threshold[node] == pytest.approx(np.average(y[rows], weights=weight[rows]))
            return node + 1
        left = [sum(map(squares, (rows[side], rows[~side]))) for side in (x[rows] <= at).T]
        best = feature[node]
        assert low[best] < high[best]
        assert left[best] == pytest.approx(np.min(left, where=low < high, initial=np.inf), abs=1e-4)
        assert threshold[node] == pytest.approx(at[best], rel=1e-5, abs=1e-6)
        goes = x[rows, best] <= threshold[node]
        assert right[node] == follow(node + 1, rows[goes])
        return follow(right[node], rows[~goes])

    assert follow(0, np.arange(len(y))) == len(feature)


@pytest.mark.parametrize("columns", [1, 5, 16, 35])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_tree_is_grown_as_by_hand(columns, weighted):
    rng = np.random.default_rng(columns)
    x = rng.normal(size=(80, columns)).astype(np.float32)
    x[:, 0] = x[:, 0].round()  # rows that nothing tells apart, if it is the only column
    y = x[:, 0] + rng.normal(size=80).round(1)
    weight = rng.uniform(0.5, 2.0, 80).astype(np.float32).astype(np.float64)
    given = weight if weighted else None
    seeds = np.array([3, 2**64 - 1], dtype=np.uint64)
    forest = Forest.grown(x, y, given, seeds, 0, 0.0, 1.0)
    for tree, seed in enumerate(seeds.tolist()):
        part = slice(*forest.starts[tree : tree + 2])
        nodes = [a[part] for a in (forest.feature, forest.threshold, forest.right)]
        check_growth(nodes, x, y, weight if weighted else np.ones(80), seed)


def test_of_equal_columns_each_is_taken_as_often():
    """Beside constant ones, too: any column tells two rows apart equally well."""
    x = np.array([[0.0, 1, 1, 0, 1, 5, 5, 0], [1.0, 1, 1, 2, 0, 5, 5, 3]])
    seeds = np.arange(4000, dtype=np.uint64)
    forest = Forest.grown(x, np.array([0.0, 1.0]), None, seeds, 0, 0.0, 1.0)
    taken = np.bincount(forest.feature[forest.starts[:-1]], minlength=8)
    assert taken[[1, 2, 5, 6]].sum() == 0
    assert chisquare(taken[[0, 3, 4, 7]]).pvalue > 1e-3


def test_grown_trees_are_as_good_as_scikit_learns():
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, (800, 4))
    y = np.sin(2 * x[:, 0]) + x[:, 1] ** 2 + 0.3 * rng.normal(size=800)
    seen, new = slice(400), slice(400, None)
    theirs = ExtraTreesRegressor(300, random_state=0).fit(x[seen], y[seen])
    ours = Forest.grown(x[seen], y[seen], None, np.arange(300, dtype=np.uint64), 0, 0.0, 1.0)
    errors = [np.sqrt(np.mean((y - m.predict(x))[new] ** 2)) for m in (ours, theirs)]
    assert errors[0] == pytest.approx(errors[1], rel=0.03)
    columns = np.concatenate([tree.tree_.feature for tree in theirs.estimators_])
    used = [np.bincount(some[some >= 0]) for some in (ours.feature, columns)]
    assert_allclose(*used, rtol=0.04)
    assert_allclose(ours.values(x[seen]), np.tile(y[seen], (300, 1)), atol=1e-5)


def test_a_tree_may_draw_its_rows_and_weights_count_as_copies():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(50, 3)), rng.normal(size=50)
    seeds = np.arange(400, dtype=np.uint64)
    drawn = Forest.grown(x, y, None, seeds, 50, 0.0, 1.0)
    leaves = np.diff(drawn.starts) / 2 + 0.5
    assert leaves.mean() == pytest.approx(50 * (1 - (1 - 1 / 50) ** 50), rel=0.02)
    counts = rng.integers(1, 4, 50)
    copied = Forest.grown(np.repeat(x, counts, 0), np.repeat(y, counts), None, seeds, 0, 0.0, 1.0)
    weighed = Forest.grown(x, y, counts.astype(float), seeds, 0, 0.0, 1.0)
    roots = [(f.feature[f.starts[:-1]], f.threshold[f.starts[:-1]]) for f in (copied, weighed)]
    assert_array_equal(*(columns for columns, _ in roots))  # further down, columns may be as good
    assert_array_equal(*(thresholds for _, thresholds in roots))


@pytest.mark.parametrize("little", [1e-7, 1e-8, 1e-12])
def test_rows_that_hardly_weigh_decide_nothing(little):
    for seed in range(30):  # sums of weights are rounded in a lucky way in most tables
        rng = np.random.default_rng(seed)
        x = rng.uniform(size=(200, 5))
        y, light = np.sign(x[:, 0] - 0.5) + 0.1 * rng.normal(size=200), x[:, 1] > 0.5
        weight = np.where(light, little, rng.uniform(0.5, 1.5, 200))
        forest = Forest.grown(x, y, weight, np.arange(30, dtype=np.uint64), 0, 0.0, 1.0)
        roots = forest.starts[:-1]
        apart = forest.threshold[roots] >= x[~light, 1].max()  # all that weigh are on one side
        assert not (apart & (forest.feature[roots] == 1)).any()


@pytest.mark.parametrize(
    "wrong",
    [{"y": np.ones(3)}, {"weight": np.ones(3)}, {"seeds": np.empty(0, np.uint64)}, {"drawn": -1}],
    ids=["y", "weight", "seeds", "drawn"],
)
def test_nothing_grows_from_half_a_table(wrong):
    given = {"x": np.ones((4, 2)), "y": np.ones(4), "weight": None, "drawn": 0}
    seeds = {"seeds": np.ones(1, np.uint64)}
    feature, threshold, right, starts = _engine.grow_trees(**given, **seeds)
    assert (feature.tolist(), threshold.tolist(), right.tolist()) == ([-1], [1.0], [0])
    assert starts.tolist() == [0, 1]
    with pytest.raises(ValueError, match="as many rows of x as of y"):
        _engine.grow_trees(**given | seeds | wrong)


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf, 0.0, 1e-60])
@pytest.mark.parametrize("name", ["x", "y", "weight"])
def test_growing_comes_to_an_end_whatever_it_is_given(name, number):
    rng = np.random.default_rng(0)
    given = {"x": rng.normal(size=(30, 3)), "y": rng.normal(size=30), "weight": np.ones(30)}
    for some in (slice(1), slice(4), slice(None)):
        given[name][some] = number
        grown = _engine.grow_trees(**given, seeds=np.arange(5, dtype=np.uint64), drawn=0)
        assert len(np.diff(grown[3])) == 5 and (np.diff(grown[3]) < 60).all()


def test_a_forest_is_scikit_learns(tmp_path):
    x = RNG.normal(size=(300, 3)).round(1)  # ties, which lie on thresholds
    y = x[:, 0] ** 2 + RNG.normal(size=300)
    forest = ExtraTreesRegressor(20, random_state=0).fit(x, y)
    ours = Forest.of(forest.estimators_, 0.0, 1.0)
    new = np.vstack([x, RNG.normal(size=(5000, 3)) * 3])
    assert_allclose(ours.predict(new, threads=2), forest.predict(new), atol=1e-6)
    best_first = ExtraTreesRegressor(5, max_leaf_nodes=9, random_state=0).fit(x, y)
    again = Forest.of(best_first.estimators_, 0.0, 1.0)
    assert_allclose(again.predict(new), best_first.predict(new), atol=1e-6)
