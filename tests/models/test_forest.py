"""Trees as plain arrays, against scikit-learn's own."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import ExtraTreesRegressor

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
