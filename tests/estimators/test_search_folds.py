"""Which rows a search leaves out, what it says of them, and what their weights do."""

from __future__ import annotations

import numpy as np
import pytest
from fitted import assert_same_bits
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from searches import (
    FOLDS,
    WARMUP,
    W,
    X,
    Y,
    assert_same_search,
    fast,
    out_of_fold,
    rms_of_standardised,
    split_scores,
)
from sklearn.base import clone
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    PredefinedSplit,
    RepeatedKFold,
    ShuffleSplit,
)

from mvenet._training import fleet

# --- rows left out -------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("n_members", [1, 3])
def test_out_of_fold_predictions(n_members, scale):
    model = fast(cv=FOLDS, n_members=n_members, scale=scale).fit(X, Y)
    pair = model.best_reg_mean_, model.best_reg_var_
    assert model.oof_mean_.shape == model.oof_std_.shape == (90,)
    parts = out_of_fold(pair, FOLDS, n_members)
    for (_, test), (means, stds, _) in zip(FOLDS, parts, strict=True):
        variance = ((model.model_.scale * stds) ** 2).mean(axis=0) + means.var(axis=0)
        assert_allclose(model.oof_mean_[test], means.mean(axis=0), rtol=1e-10)
        assert_allclose(model.oof_std_[test], np.sqrt(variance), rtol=1e-10)


def test_out_of_fold_predictions_of_one_member_carry_the_score():
    model = fast(cv=FOLDS).fit(X, Y)
    assert_allclose(norm(model.oof_mean_, model.oof_std_).logpdf(Y).mean(), model.best_score_)
    assert_allclose((((Y - model.oof_mean_) / model.oof_std_) ** 2).mean(), 1.0)


@pytest.mark.parametrize("final", ["folds", "refit"])
def test_rows_of_weight_zero_have_no_out_of_fold_prediction(final):
    w = np.where(np.arange(90) % 7 == 0, 0.0, W)
    model = fast(final=final, n_members=2).fit(X, Y, w)
    assert_array_equal(np.isnan(model.oof_mean_), w == 0)
    assert_array_equal(np.isnan(model.oof_std_), w == 0)


def test_rows_left_out_never_or_several_times():
    cv = ShuffleSplit(4, test_size=0.3, random_state=1)
    folds = list(cv.split(X))
    count = np.bincount(np.concatenate([test for _, test in folds]), minlength=90)
    assert set(count) >= {0, 1, 2, 3}
    model = fast(cv=cv).fit(X, Y)
    assert_array_equal(np.isnan(model.oof_mean_), count == 0)
    assert_array_equal(np.isnan(model.oof_std_), count == 0)
    pair = model.best_reg_mean_, model.best_reg_var_
    parts = out_of_fold(pair, folds)
    mean, variance = np.zeros(90), np.zeros(90)
    for (_, test), (means, stds, _) in zip(folds, parts, strict=True):
        mean[test] += means[0] / count[test]
        variance[test] += (model.model_.scale * stds[0]) ** 2 / count[test]
    seen = count > 0
    assert_allclose(model.oof_mean_[seen], mean[seen], rtol=1e-10)
    assert_allclose(model.oof_std_[seen] ** 2, variance[seen], rtol=1e-10)
    assert_allclose(model.model_.scale, rms_of_standardised(pair, folds), rtol=1e-12)


# --- weights -------------------------------------------------------------------------------------


@pytest.mark.parametrize("final", ["folds", "refit"])
@pytest.mark.parametrize("n_members", [1, 2])
@pytest.mark.parametrize(
    "cv",
    [3, KFold(3), RepeatedKFold(n_splits=2, n_repeats=2, random_state=0)],
    ids=["int", "KFold", "RepeatedKFold"],
)
def test_rows_of_weight_zero_are_left_out_to_the_bit(cv, n_members, final):
    w = np.where(np.arange(90) % 5 == 0, 0.0, W)
    kept = w > 0
    wild = np.where(kept[:, None], X, 1e9)
    settings = {"cv": cv, "n_members": n_members, "final": final}
    everything = fast(**settings).fit(wild, np.where(kept, Y, -1e9), w)
    removed = fast(**settings).fit(X[kept], Y[kept], w[kept])
    assert_same_search(everything, removed)
    assert_same_bits(everything, removed, X)
    assert everything.oof_mean_[kept].tobytes() == removed.oof_mean_.tobytes()
    assert everything.oof_std_[kept].tobytes() == removed.oof_std_.tobytes()


@pytest.mark.parametrize("kind", ["iterable", "PredefinedSplit"])
def test_given_folds_number_the_rows_of_the_table(kind):
    # As everywhere in scikit-learn: whoever made the folds from X knows nothing of weights.
    w = np.where(np.arange(90) % 5 == 0, 0.0, W)
    kept = np.flatnonzero(w)
    of = np.empty(90, dtype=int)
    for number, (_, test) in enumerate(FOLDS):
        of[test] = number
    if kind == "iterable":
        given, smaller = (
            [(np.flatnonzero(f != k), np.flatnonzero(f == k)) for k in range(3)]
            for f in (of, of[kept])
        )
    else:
        given, smaller = PredefinedSplit(of), PredefinedSplit(of[kept])
    removed = fast(cv=smaller).fit(X[kept], Y[kept], w[kept])
    everything = fast(cv=given).fit(X, Y, w)
    assert_same_search(everything, removed)
    assert everything.oof_mean_[kept].tobytes() == removed.oof_mean_.tobytes()


@pytest.mark.parametrize("final", ["folds", "refit"])
def test_equal_weights_are_no_weights_to_the_bit(final):
    plain = fast(n_members=2, final=final).fit(X, Y)
    for w in (np.ones(90), np.full(90, 7.0), 3.0):
        assert_same_search(fast(n_members=2, final=final).fit(X, Y, w), plain)


def test_only_ratios_of_weights_matter_to_the_bit():
    assert_same_search(fast(n_members=2).fit(X, Y, W), fast(n_members=2).fit(X, Y, 2.0**40 * W))


# --- folds ---------------------------------------------------------------------------------------


def test_a_number_of_folds_is_shuffled_folds_of_the_seed():
    seed = fleet.derived_seed(0, 0, 0, 0) % 2**32
    shuffled = KFold(3, shuffle=True, random_state=seed)
    model = fast(n_members=2).fit(X, Y)
    assert_same_search(model, fast(n_members=2, cv=shuffled).fit(X, Y))
    assert_same_search(model, fast(n_members=2, cv=np.int64(3)).fit(X, Y))
    assert np.isfinite(model.oof_mean_).all()
    # Sorted rows do no harm.
    order = np.argsort(Y)
    train = [len(set(t)) for t, _ in shuffled.split(X)]
    assert train == [60, 60, 60]
    sorted_scores = split_scores(fast().fit(X[order], Y[order]))
    in_blocks = split_scores(fast(cv=KFold(3)).fit(X[order], Y[order]))
    assert sorted_scores.min() > in_blocks.min()


def test_splitters_iterables_generators_and_masks_are_the_same_folds():
    groups = np.arange(90) // 6
    folds = list(GroupKFold(3).split(X, Y, groups))
    model = fast(cv=folds).fit(X, Y)
    masks = [tuple(np.isin(np.arange(90), part) for part in fold) for fold in folds]
    for cv in (
        (fold for fold in folds),
        tuple(folds),
        masks,
        [(list(a), list(b)) for a, b in folds],
    ):
        assert_same_search(fast(cv=cv).fit(X, Y), model)
    assert_same_search(fast(cv=KFold(3)).fit(X, Y), fast(cv=list(KFold(3).split(X))).fit(X, Y))
    assert fast(cv=LeaveOneOut()).fit(X[:8], Y[:8]).n_splits_ == 8


def test_early_stopping_within_folds():
    model = fast(
        cv=FOLDS, early_stopping=True, validation_fraction=0.25, epochs=200, n_iter_no_change=3
    ).fit(X, Y)
    assert model.n_steps_ < 3 * 2 * (2 * WARMUP + 4 * 200)
    assert np.isfinite(model.oof_std_).all()
    # Rows held out for stopping are rows of the fold, so what a fold leaves out is never seen.
    changed = Y.copy()
    changed[FOLDS[0][1]] += 100.0
    other = clone(model).set_params(reg_mean=[model.best_reg_mean_], reg_var=[model.best_reg_var_])
    other.fit(X, changed)
    assert (
        other.model_.networks.parameters[0].tobytes()
        == model.model_.networks.parameters[0].tobytes()
    )


def test_left_out_rows_do_not_touch_their_networks():
    settings = {"cv": FOLDS, "reg_mean": [1e-3], "reg_var": [1e-2]}
    model = fast(**settings).fit(X, Y)
    far, changed = X.copy(), Y.copy()
    far[FOLDS[1][1]] *= 50.0
    changed[FOLDS[1][1]] -= 1000.0
    other = fast(**settings).fit(far, changed)
    assert (
        other.model_.networks.parameters[1].tobytes()
        == model.model_.networks.parameters[1].tobytes()
    )
    assert (
        other.model_.networks.parameters[0].tobytes()
        != model.model_.networks.parameters[0].tobytes()
    )
