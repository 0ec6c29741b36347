"""Models of several targets in files: the same again, and nothing that no fit has made."""

from __future__ import annotations

import copy
import dataclasses

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from mvenet import MVERegressor, load
from mvenet._models.checks import MalformedError
from mvenet._models.joint import JointModel

pytest.importorskip("skops.io")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(320, 2))
E = RNG.normal(size=(320, 2))
E[:, 1] = 0.9 * np.sign(X[:, 0]) * E[:, 0] + 0.4 * E[:, 1]
QUICK = {"hidden_mean": (4,), "hidden_var": (3,), "encoding": None, "epochs": 2,
         "warmup_epochs": 3, "random_state": 0}  # fmt: skip


@pytest.fixture(scope="module")
def model():
    found = MVERegressor(**QUICK).fit(X, E)
    assert found.model_.local is not None
    return found


def test_a_model_of_several_targets_comes_back_the_same(model, tmp_path):
    model.save(tmp_path / "joint.mve")
    again = load(tmp_path / "joint.mve")
    for one, other in zip(
        model.predict(X, return_std=True), again.predict(X, return_std=True), strict=True
    ):
        assert_array_equal(one, other)
    assert_array_equal(model.predict_dist(X).cov, again.predict_dist(X).cov)
    assert again.model_.names == model.model_.names and again.summary_ == model.summary_
    again.save(tmp_path / "again.mve")
    first, second = ((tmp_path / f"{n}.mve").read_bytes() for n in ("joint", "again"))
    assert first == second


def broken(model: JointModel, **change) -> JointModel:
    return dataclasses.replace(model, **change)


WRONG = {
    "no estimators": lambda m: broken(m, estimators=()),
    "a list of estimators": lambda m: broken(m, estimators=list(m.estimators)),
    "an estimator too few": lambda m: broken(m, estimators=m.estimators[:1]),
    "a text for an estimator": lambda m: broken(m, estimators=("a", "b")),
    "equal names": lambda m: broken(m, names=("a", "a")),
    "a name that is no text": lambda m: broken(m, names=("a", 1)),
    "a correlation of two": lambda m: broken(m, constant=np.array([[1.0, 2.0], [2.0, 1.0]])),
    "no symmetry": lambda m: broken(m, constant=np.array([[1.0, 0.5], [0.2, 1.0]])),
    "claims that fall": lambda m: broken(m, claims=np.array([0.0, 0.5, 0.4])),
    "claims of certainty": lambda m: broken(m, claims=np.array([0.0, 1.0])),
    "a claim": lambda m: broken(m, claims=0.5),
    "a singular one": lambda m: broken(m, constant=np.ones((2, 2))),
    "NaN": lambda m: broken(m, constant=np.array([[1.0, np.nan], [np.nan, 1.0]])),
    "a diagonal of two": lambda m: broken(m, constant=2 * np.eye(2)),
    "a large matrix": lambda m: broken(m, constant=np.eye(3)),
    "doubts of two": lambda m: broken(m, independent=2.0),
    "doubts of NaN": lambda m: broken(m, independent=float("nan")),
    "a share of two": lambda m: broken(m, share=2.0),
    "other trees": lambda m: broken(m, local="trees"),
    "leaves too few": lambda m: local(m, products=m.local.products[1:]),
    "a leaf without spread": lambda m: local(m, products=0.0 * m.local.products),
    "a leaf of NaN": lambda m: local(m, products=np.nan * m.local.products),
    "a leaf with no number": lambda m: local(m, forest=numbers_off(m.local.forest)),
}


def local(model, **change):
    return broken(model, local=dataclasses.replace(model.local, **change))


def numbers_off(forest):
    return dataclasses.replace(forest, threshold=forest.threshold + np.float32(1.0))


@pytest.mark.parametrize("name", WRONG)
def test_what_no_fit_has_made_is_refused(name, model, tmp_path):
    wrong = WRONG[name](model.model_)
    with pytest.raises(MalformedError):
        wrong.check(2)
    bad = copy.copy(model)
    bad.model_ = wrong
    with pytest.raises(ValueError, match="cannot be saved"):
        bad.save(tmp_path / "bad.mve")
    assert not (tmp_path / "bad.mve").exists()


def test_targets_do_not_consist_of_targets(model):
    nested = broken(model.model_, estimators=(model, model))
    with pytest.raises(MalformedError, match="consists of targets"):
        nested.check(2)
