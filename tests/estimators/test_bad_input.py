"""What users get wrong: a clear sentence or a documented result, and never a half-fitted model."""

from __future__ import annotations

import _thread
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from fitted import FAST, assert_unfitted, fast
from numpy.testing import assert_allclose
from processes import python
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning, NotFittedError
from sklearn.pipeline import make_pipeline

from mvenet import AutoRegressor, CalibratedRegressor, MVERegressor, MVERegressorCV
from mvenet._models.architecture import Architecture
from mvenet._training import fleet
from mvenet._utils.finite import NotFiniteError, check_finite
from mvenet.recipes import Stage, Training

pytestmark = pytest.mark.usefixtures("short")

ONE_PAIR = FAST | {"strategy": "warmup", "reg_mean": [1e-3], "reg_var": [1e-3], "cv": 2}
FRAMES = (pd.DataFrame, pl.DataFrame)
LONG = {"epochs": 10**6, "warmup_epochs": 10**6, "random_state": 0}  # minutes, if not stopped


def line(n=60, d=3):
    """A table that is learnt in a moment."""
    rng = np.random.default_rng(0)
    X = rng.normal(3.0, 2.0, (n, d))
    return X, 5 + 2 * X[:, 0] + 0.3 * rng.standard_normal(n)


X, Y = line()


def replaced(array, value, at=7):
    array = np.array(array, copy=True, dtype=np.result_type(array, value))
    array.flat[at] = value
    return array


def assert_refused(error, match, X=X, y=Y, sample_weight=None, **settings):
    """`fit` refuses, on a new estimator and on one that was fitted before."""
    for model in (fast(), fast().fit(*line())):
        model.set_params(**settings)
        with pytest.raises(error, match=match):
            model.fit(X, y, sample_weight)
        if not settings:
            assert_unfitted(model, X)


def refusal(attempt):
    """The message of the ValueError, or an empty string if there was none."""
    try:
        attempt()
    except ValueError as error:
        return str(error)
    return ""


def assert_sane(model, X, y):
    """Finite, positive, and about as large as y."""
    mean, std = model.predict(X, return_std=True)
    assert np.isfinite(mean).all() and np.isfinite(std).all() and (std > 0).all()
    size = abs(y - y.mean()).max() or 1.0
    assert abs(mean - y.mean()).max() <= 10 * size
    assert std.max() <= 10 * size
    low, high = model.predict_interval(X).T
    assert (low <= mean).all() and (mean <= high).all()


# --- the table -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "error", "match"),
    [
        (np.full(X.shape, np.nan), ValueError, "No column of X holds a number"),
        (replaced(X, np.inf), ValueError, "Input X contains infinity"),
        (replaced(X, -np.inf), ValueError, "Input X contains infinity"),
        (X.astype(str).astype(object) + "?", ValueError, "could not convert string to float"),
        (np.full(X.shape, "blue"), ValueError, "could not convert string to float|dtype='numeric'"),
        (X + 1j, ValueError, "Complex data not supported"),
        (sparse.csr_matrix(X), TypeError, "Sparse data was passed for X, but dense data is requir"),
        (X[:0], ValueError, r"Found array with 0 sample\(s\).*minimum of 2 is required"),
        (X[:1], ValueError, r"Found array with 1 sample\(s\).*minimum of 2 is required"),
        (X[:, :0], ValueError, r"Found array with 0 feature\(s\).*minimum of 1 is required"),
        (X[:, 0], ValueError, r"Expected 2D array, got 1D array.*Reshape your data"),
        (X[:, :, None], ValueError, "Found array with dim 3"),
        (3.0, ValueError, "Expected 2D array, got scalar array"),
        (None, ValueError, "2D array"),
        (X[:-1], ValueError, r"inconsistent numbers of samples: \[59, 60\]"),
        (pd.DataFrame(X, columns=["a", "b", 3]), TypeError, "all input features have string names"),
        (pd.DataFrame({"a": ["x"] * 60}), ValueError, r"No column can be used.*always x"),
        (pl.DataFrame({"a": [None] * 60}), ValueError, r"No column can be used.*all missing"),
    ],
)
def test_bad_table(bad, error, match):
    n = np.shape(bad)[0] if np.ndim(bad) else 60
    assert_refused(error, f"(?s){match}", X=bad, y=Y if n in (59, 60) else Y[:n])


EVERY = {
    "MVERegressor": fast(),
    "MVERegressorCV": MVERegressorCV(**ONE_PAIR),
    "AutoRegressor": AutoRegressor(effort="low", cv=2, random_state=0),
    "CalibratedRegressor": CalibratedRegressor(fast(), cv=3),
    "a pipeline": CalibratedRegressor(make_pipeline("passthrough", fast()), cv=3),
}
AT = 7 * X.shape[1] + 1  # row 7, column 1


@pytest.mark.parametrize("model", EVERY.values(), ids=EVERY)
def test_infinity_is_refused_with_its_place_and_a_remedy(model):
    bad, kind = replaced(X, -np.inf, AT), "infinity"
    named = {f: f(dict(zip(["size", "age", "cost"], X.T, strict=True))) for f in FRAMES}
    where = rf"^Input X contains {kind} in column {{}}, row 7 \(counted from 0\): .* first.*, or"
    for frame, good in ((np.array, X), *named.items()):
        column = "1" if frame is np.array else "'age'"
        worse = bad if frame is np.array else frame(dict(zip(good.columns, bad.T, strict=True)))
        with pytest.raises(ValueError, match=where.format(column)):
            clone(model).fit(worse, Y)
    fitted = clone(model).fit(good, Y)
    with pytest.raises(ValueError, match=where.format("'age'")):
        fitted.predict(worse, return_std=True)


def test_of_many_cells_that_are_not_finite_the_first_is_named():
    bad = X.copy()
    bad[40:, 2], bad[30, 1] = np.nan, np.inf
    with pytest.raises(ValueError, match=r"infinity in column 1, row 30 \(counted from 0\): "):
        fast().fit(bad, Y)
    bad[40:, 2] = np.inf
    with pytest.raises(ValueError, match=r"infinity in column 1, row 30 .*, and 20 more such cel"):
        fast().fit(bad, Y)
    many = np.arange(600_000.0).reshape(-1, 3)
    many[199_999, 2] = np.inf
    for table in (many, pl.DataFrame(many, schema=["a", "b", "c"])):  # looked at in parts
        with pytest.raises(ValueError, match=r"in column (2|'c'), row 199999 "):
            fast().fit(table, np.zeros(200_000))


def test_numbers_whose_sum_is_too_large_are_finite():
    check_finite(np.full((9, 2), 1e308))
    check_finite(np.full((9, 2), np.float32(3e38)))


def test_the_refusal_of_a_cell_passes_from_process_to_process():
    error = NotFiniteError("NaN", "column 3", 7, 1)
    again = pickle.loads(pickle.dumps(error))
    assert isinstance(again, ValueError) and str(again) == str(error)
    assert "row 7 (counted from 0), and 1 more such cell: " in str(error)


@pytest.mark.parametrize(
    ("bad", "error", "match"),
    [
        (replaced(Y, np.nan), ValueError, "Input y contains NaN in 1 of 60 rows, .* row [0-9]+ "),
        (replaced(Y, np.inf), ValueError, "Input y contains infinity"),
        (np.full(60, "blue"), ValueError, "y must hold numbers, and row 0 .* holds 'blue'"),
        (np.full(60, "blue", dtype=object), ValueError, "row 0 .* holds 'blue'"),
        ([*Y[:59], None], ValueError, "row 59 .* holds 'None'"),
        (np.arange(60).astype("M8[D]"), ValueError, "is of type datetime64.*: give days"),
        (Y + 1j, ValueError, "Complex data not supported"),
        (sparse.csr_matrix(Y[:, None]), (TypeError, ValueError), "[Ss]parse|dense"),
        (np.column_stack([Y, Y]), ValueError, "Several targets need rows left out"),
        (Y[:, None, None], ValueError, r"y should be a 1d array|dim 3"),
        (Y[:-1], ValueError, r"inconsistent numbers of samples: \[60, 59\]"),
        (None, ValueError, "requires y to be passed, but the target y is None"),
        (3.0, (TypeError, ValueError), "1d array|[Ss]ingleton"),
    ],
)
def test_bad_target(bad, error, match):
    assert_refused(error, match, y=bad)


@pytest.mark.parametrize(
    ("bad", "match"),
    [
        (replaced(np.ones(60), -1.0), "Negative values in data passed to `sample_weight`"),
        (replaced(np.ones(60), np.nan), "Input sample_weight contains NaN"),
        (replaced(np.ones(60), np.inf), "Input sample_weight contains infinity"),
        (
            np.zeros(60),
            "Sample weights must contain at least one non-zero|at least 2 rows must count",
        ),
        (replaced(np.zeros(60), 1.0), r"sample_weight is positive for 1 row\(s\).*at least 2 rows"),
        (np.ones(59), r"sample_weight.shape == \(59,\), expected \(60,\)"),
        (np.ones((60, 2)), "[Ss]ample.?weights? must be 1D"),
        (np.full(60, "heavy"), "could not convert string to float"),
    ],
)
def test_bad_weights(bad, match):
    assert_refused(ValueError, match, sample_weight=bad)


@pytest.mark.parametrize("early_stopping", [False, True])
def test_weights_that_vanish_beside_the_others_are_zero(early_stopping):
    w = np.where(np.arange(60) % 2, 1e-300, 1e300)
    model = fast(early_stopping=early_stopping).fit(X, Y, w)
    expected = fast(early_stopping=early_stopping).fit(X[::2], Y[::2])
    assert model.predict(X).tobytes() == expected.predict(X).tobytes()


def test_a_column_vector_is_taken_with_scikit_learns_warning():
    with pytest.warns(DataConversionWarning, match="column-vector y was passed"):
        model = fast().fit(X, Y[:, None])
    assert model.predict(X).tobytes() == fast().fit(X, Y).predict(X).tobytes()


@pytest.mark.parametrize("n", [2, 3, 5, 31, 32, 33])
def test_few_rows(n):
    # Fewer than a batch, one row in the last batch.
    assert_sane(fast().fit(X[:n], Y[:n]), X[:n], Y[:n])
    assert_sane(fast(n_members=2).fit(X[:n], Y[:n]), X[:n], Y[:n])


def test_too_few_rows_for_early_stopping():
    for n, fraction in ((2, 0.1), (10, 0.85)):
        message = f"validation_fraction={fraction} leaves 1 of {n} rows for training: lower it or"
        model = fast(early_stopping=True, validation_fraction=fraction)
        with pytest.raises(ValueError, match=message):
            model.fit(X[:n], Y[:n])
        assert_unfitted(model, X)
    fast(early_stopping=True).fit(X[:3], Y[:3])


@pytest.mark.parametrize("options", [{}, {"n_members": 2}, {"early_stopping": True}], ids=str)
@pytest.mark.parametrize("value", [0.0, 3.0, -1e12, 1e12])
def test_constant_target(value, options):
    # There is no scale to learn from: the constant comes back, with the smallest std there is.
    y = np.full(60, value)
    options = options | {"warmup_epochs": 300, "epochs": 300}
    mean, std = fast(**options).fit(X, y).predict(X, return_std=True)
    assert_allclose(mean, value, atol=0.05)
    assert (std > 0).all() and std.max() < 0.05


def test_target_that_is_constant_but_for_rounding():
    y = np.full(60, 0.3)
    y[::2] = 0.1 + 0.2
    mean, std = fast().fit(X, y).predict(X, return_std=True)
    assert_allclose(mean, 0.3, rtol=1e-12)
    assert (std > 0).all() and std.max() < 1e-12


def test_constant_and_nearly_constant_columns():
    constant = np.column_stack([X, np.full(60, 5.0), np.zeros(60), np.full(60, 1e300)])
    model = fast().fit(constant, Y)
    assert_sane(model, constant, Y)
    assert model.score(constant, Y) > 0.9
    assert_sane(fast().fit(np.ones((60, 2)), Y), np.ones((60, 2)), Y)
    jitter = np.column_stack([X, np.nextafter(5.0, np.where(X[:, 0] > 3, 9, 0))])
    assert_sane(fast().fit(jitter, Y), jitter, Y)
    # A constant column that changes at predict: an answer, finite.
    moved = constant.copy()
    moved[:, 3:] = -7e200
    mean, std = model.predict(moved, return_std=True)
    assert np.isfinite(mean).all() and np.isfinite(std).all()


def test_zero_residuals():
    y = 2 * X[:, 0] - 1
    options = {"hidden_mean": (), "reg_mean": 0.0, "reg_var": 0.0, "learning_rate": 0.05}
    with pytest.warns(ConvergenceWarning, match="either y has no noise"):
        model = fast(**options, warmup_epochs=500, epochs=500).fit(X, y)
    mean, std = model.predict(X, return_std=True)
    assert_allclose(mean, y, atol=1e-3 * y.std())
    assert (std > 0).all() and std.max() < 0.05 * y.std()
    assert np.isfinite(model.history_["nll"]).all()


def test_duplicated_rows_and_contradicting_ones():
    same = np.repeat(X[:1], 60, axis=0)
    mean, std = fast(warmup_epochs=300, epochs=300).fit(same, Y).predict(same, return_std=True)
    assert_allclose(mean, Y.mean(), atol=0.1 * Y.std())
    assert_allclose(std, Y.std(), rtol=0.1)
    assert_sane(fast().fit(np.repeat(X[:5], 12, axis=0), np.repeat(Y[:5], 12)), X[:5], Y[:5])


def test_one_far_outlier():
    for value in (1e6, 1e200):
        mean, std = fast().fit(replaced(X, value), Y).predict(X, return_std=True)
        assert np.isfinite(mean).all() and np.isfinite(std).all()
        mean, std = fast().fit(X, replaced(Y, value)).predict(X, return_std=True)
        assert np.isfinite(mean).all() and np.isfinite(std).all() and (std > 0).all()


@pytest.mark.filterwarnings("ignore:invalid value encountered in reduce")  # scikit-learn's own sum
@pytest.mark.parametrize("size", [1e305, 1.7e308])
@pytest.mark.parametrize("n", [60, 5000])
@pytest.mark.parametrize("where", ["column", "target"])
def test_numbers_near_the_largest(where, size, n):
    # Sums and ranges of such numbers overflow.
    X, y = line(n)
    side = np.where(np.arange(n) % 2, size, -size)
    X, y = (np.column_stack([X, side]), y) if where == "column" else (X, side)
    assert_refused(ValueError, "too large to standardise: divide by a constant", X, y)


# --- arrays of all kinds -------------------------------------------------------------------------


def views(X, folder):
    """The same numbers in every layout that NumPy knows."""
    n, d = X.shape
    readonly = X.copy()
    readonly.setflags(write=False)
    np.save(folder / "table.npy", X)
    wide = np.zeros((2 * n, 2 * d))
    wide[::2, 1::2] = X
    packed = np.zeros((n, d), dtype=[("value", "<f8"), ("flag", "<i4")])  # 12 bytes a number
    packed["value"] = X
    return {
        "read-only": readonly,
        "Fortran": np.asfortranarray(X),
        "strided": wide[::2, 1::2],
        "reversed": X[::-1, ::-1].copy()[::-1, ::-1],
        "memory-mapped": np.load(folder / "table.npy", mmap_mode="r"),
        "big-endian": X.astype(">f8"),
        "unaligned": np.frombuffer(b"!" + X.tobytes(), dtype=np.float64, offset=1).reshape(n, d),
        "packed": packed["value"],
        "longdouble": X.astype(np.longdouble),
        "object": X.astype(object),
    }


KINDS = ["read-only", "Fortran", "strided", "reversed", "memory-mapped", "big-endian", "unaligned",
         "packed", "longdouble", "object"]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_every_layout_gives_the_same_bits(kind, tmp_path):
    w = np.random.default_rng(0).uniform(0.5, 2, 60)
    expected = fast().fit(X, Y, w).predict(X, return_std=True)
    everything = views(np.column_stack([X, Y, w]), tmp_path)[kind]
    other, y, weight = everything[:, :3], everything[:, 3], everything[:, 4]
    got = fast().fit(other, y, weight).predict(other, return_std=True)
    for a, b in zip(got, expected, strict=True):
        assert a.tobytes() == b.tobytes()


def test_lists_integers_and_booleans_are_numbers():
    expected = fast().fit(X, Y).predict(X)
    assert fast().fit(X.tolist(), Y.tolist()).predict(X.tolist()).tobytes() == expected.tobytes()
    whole, y = np.round(X - X.min()), np.round(Y)
    expected = fast().fit(whole, y).predict(whole)
    for dtype in (np.uint8, np.int16, np.int64, np.float16):
        model = fast().fit(whole.astype(dtype), y.astype(np.int64))
        assert model.predict(whole.astype(dtype)).tobytes() == expected.tobytes()
    assert_sane(fast().fit(X > 3, Y > 10), X > 3, (Y > 10).astype(float))


def test_inputs_are_never_changed():
    w = np.random.default_rng(0).uniform(0, 2, 60)
    w[3] = 0
    frame = pd.DataFrame(X, columns=list("abc"))
    before = [a.copy() for a in (X, Y, w, frame)]
    for options in ({}, {"n_members": 2}, {"early_stopping": True}):
        model = fast(**options).fit(X, Y, w)
        model.predict(X), model.predict_interval(X), model.predict_dist(X).crps(Y)
        fast(**options).fit(frame, Y, w).predict(frame)
        for array, copy in zip((X, Y, w, frame), before, strict=True):
            assert np.array_equal(array, copy)
    hidden = [5, 4]
    model = fast(hidden_mean=hidden).fit(X, Y)
    assert hidden == [5, 4] and model.hidden_mean is hidden
    # and the model does not look at them again
    table_, y = X.copy(), Y.copy()
    model = fast().fit(table_, y)
    expected = model.predict(X)
    table_[:], y[:] = 0, 0
    assert model.predict(X).tobytes() == expected.tobytes()


# --- at predict ----------------------------------------------------------------------------------


def test_predict_before_fit():
    assert_unfitted(fast(), X)
    with pytest.raises(NotFittedError):
        fast().score(X, Y)


@pytest.mark.parametrize(
    ("bad", "error", "match"),
    [
        (X[:, :2], ValueError, "X has 2 features, but MVERegressor is expecting 3 features"),
        (np.column_stack([X, X]), ValueError, "X has 6 features, but MVERegressor is expecting 3"),
        (replaced(X, np.inf), ValueError, "Input X contains infinity"),
        (X[:0], ValueError, r"Found array with 0 sample\(s\)"),
        (X[0], ValueError, "Expected 2D array, got 1D array"),
        (X + 1j, ValueError, "Complex data not supported"),
        (sparse.csr_matrix(X), TypeError, "Sparse data was passed for X"),
        (np.full(X.shape, "blue"), ValueError, "could not convert string to float|dtype='numeric'"),
    ],
)
def test_bad_table_at_predict(bad, error, match):
    model = fast().fit(X, Y)
    for method in (model.predict, model.predict_dist, model.predict_interval):
        with pytest.raises(error, match=match):
            method(bad)
    assert np.isfinite(model.predict(X)).all()  # no harm done


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_columns_are_checked_by_name(frame):
    good = frame(dict(zip("abc", X.T, strict=True)))
    model = fast().fit(good, Y)
    renamed = frame(dict(zip("abz", X.T, strict=True)))
    reordered = frame(dict(zip("bac", X.T, strict=True)))
    missing = frame(dict(zip("ab", X.T[:2], strict=True)))
    with pytest.raises(ValueError, match=r"(?s)feature names.*unseen at fit time.*z.*missing.*c"):
        model.predict(renamed)
    with pytest.raises(ValueError, match=r"(?s)feature names.*same order as they were in fit"):
        model.predict(reordered)
    with pytest.raises(ValueError, match=r"(?s)feature names.*missing.*c"):
        model.predict(missing)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        model.predict(X)
    with pytest.warns(UserWarning, match="X has feature names, but MVERegressor was fitted withou"):
        fast().fit(X, Y).predict(good)


@pytest.mark.parametrize("bad", [0, 1, 2, -0.5, 90, np.nan, [0.5, 1.0], "most", 0.5j])
def test_bad_coverage_and_quantiles(bad):
    model = fast().fit(X, Y)
    value = "" if isinstance(bad, list | str | complex) else f"got {float(bad)}"
    with pytest.raises(ValueError, match=f"coverage must .*{value}.*;"):
        model.predict_interval(X, coverage=bad)
    with pytest.raises(ValueError, match=f"q(uantiles)? must .*{value}.*;"):
        model.predict_quantiles(X, bad)


def test_coverage_remedy():
    with pytest.raises(ValueError, match=r"write 0\.95 for 95 %"):
        fast().fit(X, Y).predict_interval(X, coverage=95)


@pytest.mark.filterwarnings("ignore:invalid value encountered in reduce")  # scikit-learn's own sum
@pytest.mark.parametrize("activation", ["elu", "relu", "tanh", "silu"])
@pytest.mark.parametrize("hidden", [(), (8,), (40, 20, 20)])
def test_rows_far_away_give_finite_numbers(activation, hidden):
    options = {"activation": activation, "hidden_mean": hidden, "hidden_var": hidden}
    far = np.array([[s * 10.0**e] * 3 for e in range(0, 309, 11) for s in (-1, 1)])
    far = np.concatenate(
        [far, far * [1, -1, 1], np.full((1, 3), 1.79e308), np.full((1, 3), 5e-324)]
    )
    for n_members in (1, 3):
        model = fast(n_members=n_members, **options).fit(X, Y)
        mean, std = model.predict(far, return_std=True)
        assert np.isfinite(mean).all() and np.isfinite(std).all() and (std > 0).all()
        dist = model.predict_dist(far)
        for values in (dist.var, dist.interval([0.5, 0.99]), dist.crps(0.0), dist.sample(3, 0)):
            assert np.isfinite(values).all()
        assert not np.isnan(dist.logpdf(0.0)).any()
        single = model.predict(np.clip(far, -3e38, 3e38).astype(np.float32))
        assert np.isfinite(single).all()


def test_rows_far_away_of_a_large_target_give_finite_numbers():
    far = np.array([[1e300] * 3, [-1e300] * 3, [1e30, -1e200, 1e300]])
    for n_members in (1, 3):
        mean, std = fast(n_members=n_members).fit(X, 1e300 * Y).predict(far, return_std=True)
        assert np.isfinite(mean).all() and np.isfinite(std).all() and (std > 0).all()


# --- parameters ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "values"),
    {
        "hidden_mean": [5, "40", (0,), (-3,), (4.0,), (np.nan,), (True,), (70000,), ("a",),
                        ((4, 3), (2, 1)), ((4,), (3, 2)), {4: 1}],
        "hidden_var": [5, "40", (0,), (-3,), (4.0,), (70000,), ((4,), (3, 2))],
        "activation": ["gelu", None, 3],
        "strategy": ["warm-up", None, 1],
        "objective": ["mse", None],
        "beta": [-0.1, 1.1, np.nan, "half", None],
        "df": [2.9, 0, -1, 1001, np.nan, np.inf, "five", None],
        "bootstrap": [2, "yes", None],
        "reg_mean": [-1e-9, np.nan, np.inf, 1e39, "ten", None],
        "reg_var": [-1e-9, np.nan, np.inf, 1e39, "ten", None],
        "epochs": [0, -1, 1.5, 10**10, "many", None],
        "warmup_epochs": [0, -1, 1.5, 10**10, "many", None],
        "batch_size": [0, -1, 1.5, 2**40, "all", None],
        "learning_rate": [0, -1.0, np.nan, np.inf, "fast", None],
        "schedule": ["linear", None],
        "clip_value": [0, -1.0, np.nan, "none"],
        "n_members": [0, -1, 1.5, None],
        "early_stopping": [2, "yes", None],
        "validation_fraction": [0, 1, -0.1, np.nan, None],
        "n_iter_no_change": [0, -1, 1.5, None],
        "n_jobs": [0, 1.5, "all"],
        "random_state": [-1, 1.5, "seed", 2**32],
        "verbose": [-1, "yes", None],
    }.items(),
)  # fmt: skip
def test_parameters_out_of_range(name, values):
    for value in values:
        model = fast(**{name: value})  # as scikit-learn has it: the constructor takes anything
        with pytest.raises(ValueError, match=f"(?s){name}.*(must|has no meaning).*") as caught:
            model.fit(X, Y)
        assert repr(value) in str(caught.value)
        assert_unfitted(model, X)


@pytest.mark.parametrize(
    "settings",
    [
        {"n_jobs": -1},
        {"n_jobs": -100},
        {"n_jobs": 10**12},
        {"n_members": np.int64(2)},
        {"hidden_mean": np.array([5, 4])},
        {"hidden_mean": [], "hidden_var": []},
        {"batch_size": 2**31 - 1},
        {"clip_value": None},
        {"clip_value": 1e300},
        {"learning_rate": 1e-300},
        {"beta": 0, "objective": "beta-nll"},
        {"beta": 1, "objective": "beta-nll"},
        {"df": 3, "objective": "student-t"},
        {"df": 1000, "objective": "student-t"},
        {"reg_mean": 0, "reg_var": 0},
        {"reg_mean": 1e6},
        {"early_stopping": np.True_, "n_iter_no_change": 10**12},
        {"verbose": 0, "random_state": np.uint32(7)},
    ],
    ids=str,
)
def test_unusual_parameters_that_mean_something(settings):
    assert_sane(fast(**settings).fit(X, Y), X, Y)


@pytest.mark.parametrize(
    "model",
    [
        fast(n_members=10**8),
        fast(n_members=10**8, hidden_mean=None, hidden_var=None),
        MVERegressorCV(n_members=10**8, **ONE_PAIR),
        MVERegressorCV(n_members=10**8, final="refit", **ONE_PAIR),
    ],
    ids=["networks", "constants", "folds", "refit"],
)
def test_more_members_than_memory_are_told_before_they_are_described(model, monkeypatch):
    seeds = []

    def derived_seed(*key):
        seeds.append(key)
        assert len(seeds) == 1  # that of the folds
        return 0

    monkeypatch.setattr(fleet, "derived_seed", derived_seed)
    with pytest.raises(MemoryError, match=r"[123]00,000,00\d trainings .* members \(n_members\)"):
        model.fit(X, Y)


def test_the_largest_number_of_epochs_costs_nothing_until_it_is_used():
    # "As many as it takes", with early stopping: within the memory of a small machine.
    code = f"""
    import resource
    import numpy as np
    from mvenet import MVERegressor, MVERegressorCV
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2))
    y = X[:, 0] + rng.normal(size=100)
    MVERegressor(**{FAST | {"epochs": 5, "warmup_epochs": 5}}).fit(X, y)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    many = dict(epochs=3 * 10**7, warmup_epochs=3 * 10**7, early_stopping=True)
    MVERegressor(**{FAST} | many).fit(X, y)
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
    """
    assert int(python(code)) < 100  # MB


# --- divergence ----------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"n_members": 3}, {"early_stopping": True}], ids=str)
@pytest.mark.parametrize("strategy", ["warmup", "no-warmup", "warmup-fixed-mean"])
def test_all_members_diverge(strategy, options):
    model = fast(**options).fit(X, Y)
    model.set_params(learning_rate=1e30, clip_value=None, strategy=strategy)
    with pytest.raises(ValueError, match=r"diverged \(learning_rate=1e\+30.*lower learning_rate"):
        model.fit(X, Y)
    assert_unfitted(model, X)


def test_some_members_diverge():
    """Which ones depends on rounding, so look for a learning rate between all and none."""
    rates = 10.0 ** np.arange(6, 14, 0.25)
    for rate in rates:
        model = fast(learning_rate=rate, clip_value=None, n_members=6, warmup_epochs=3, epochs=2)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warnings.filterwarnings("ignore", "The standard deviation is at its floor")
            refused = refusal(lambda model=model: model.fit(X, Y))
        if refused:
            assert "diverged" in refused
            continue
        kept = len(model.model_.networks)
        assert np.isfinite(model.model_.networks.parameters).all()
        assert np.isfinite(model.predict(X)).all()
        if kept == 6:
            assert not caught
            continue
        assert set(model.history_["member"]) == set(range(kept))  # of those that are left
        [warning] = caught
        assert warning.category is ConvergenceWarning
        assert str(warning.message).startswith(f"{6 - kept} of 6 members diverged and were left")
        assert f"lower learning_rate (now {rate})" in str(warning.message)
        assert warning.filename == __file__  # it points at the user's line
        return
    pytest.fail("no learning rate makes some members diverge: widen the search")


@pytest.mark.parametrize("rate", [1e20, 1e30, 1e37])
def test_divergence_in_the_very_last_step_is_seen(rate):
    model = fast(learning_rate=rate, strategy="no-warmup", epochs=1, batch_size=1000)
    assert "lower learning_rate" in refusal(lambda: model.fit(X, Y))
    assert_unfitted(model, X)


@pytest.mark.filterwarnings("ignore:The standard deviation is at its floor")
def test_weights_that_are_only_large_predict():
    model = fast(learning_rate=1e10, strategy="no-warmup", epochs=1, batch_size=1000).fit(X, Y)
    mean, std = model.predict(X, return_std=True)
    assert np.isfinite(mean).all() and np.isfinite(std).all()


# --- interrupts ----------------------------------------------------------------------------------


def interrupted_after(seconds, how, run):
    """Interrupt what would run for hours: it must end by the KeyboardInterrupt."""

    def interrupt():
        time.sleep(seconds)
        how()

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            run()
    finally:
        thread.join()


HOW = {
    "SIGINT": lambda: os.kill(os.getpid(), signal.SIGINT),
    "interrupt_main": _thread.interrupt_main,
}


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize(
    "options", [{}, {"n_members": 5}, {"early_stopping": True, "n_iter_no_change": 10**9}], ids=str
)
def test_ctrl_c(how, options):
    model = MVERegressor(**LONG, **options)
    interrupted_after(0.2, HOW[how], lambda: model.fit(X, Y))
    assert_unfitted(model, X)
    model.set_params(**FAST)
    assert_sane(model.fit(X, Y), X, Y)  # and it can be used again


def test_ctrl_c_unfits_what_was_fitted_before():
    model = fast().fit(X, Y)
    model.set_params(**LONG)
    interrupted_after(0.1, HOW["SIGINT"], lambda: model.fit(X, Y))
    assert_unfitted(model, X)


def test_ctrl_c_during_long_steps():
    # A full batch of a wide network takes a second.
    X, y = line(n=300_000, d=5)
    wide = {"hidden_mean": (256, 256), "hidden_var": None, "batch_size": len(y)}
    model = MVERegressor(**LONG, **wide)
    interrupted_after(0.5, HOW["SIGINT"], lambda: model.fit(X, y))
    assert_unfitted(model, X)


def test_other_signals_are_handled_during_fit(monkeypatch):
    calls = []
    before = signal.signal(signal.SIGALRM, lambda *_: calls.append(1))
    try:
        options = FAST | {"epochs": 4000, "hidden_mean": (40, 20)}
        expected = MVERegressor(**options).fit(X, Y).predict(X)
        signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
        got = MVERegressor(**options).fit(X, Y).predict(X)
        signal.setitimer(signal.ITIMER_REAL, 0)
        assert calls and got.tobytes() == expected.tobytes()

        def too_late(*_):
            raise TimeoutError("too late")

        signal.signal(signal.SIGALRM, too_late)
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        model = MVERegressor(**LONG)
        with pytest.raises(TimeoutError, match="too late"):
            model.fit(X, Y)
        assert_unfitted(model, X)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_ctrl_c_in_a_process_of_its_own():
    code = """
    import sys
    import numpy as np
    from mvenet import MVERegressor, MVERegressorCV
    X = np.random.default_rng(0).normal(size=(200, 3))
    print("ready", flush=True)
    MVERegressor(epochs=10**7, warmup_epochs=10**7).fit(X, X[:, 0])
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=900)  # its training would take an hour
        assert process.returncode == -signal.SIGINT  # as the shell expects it
        assert errors.rstrip().endswith("KeyboardInterrupt")
    finally:
        process.kill()
        process.wait()


def train_with(progress, epochs=10):
    rows = np.arange(len(Y))
    stage = Stage("joint", epochs, 1e-3)
    return fleet.train(
        X, Y, None, [(rows, rows[:0])], [fleet.Network((stage,), 1)],
        architecture=Architecture((40, 20), (40, 20)), training=Training(), progress=progress,
    )  # fmt: skip


@pytest.mark.parametrize("epochs", [1, 10**7])
def test_what_a_progress_callback_raises_comes_out(epochs):
    class EnoughError(Exception):
        pass

    calls = []

    def progress(steps):
        calls.append(steps)
        raise EnoughError(f"{steps} steps")

    with pytest.raises(EnoughError, match=r"\d+ steps"):
        train_with(progress, epochs)
    assert len(calls) == 1


def test_progress_counts_up_to_all_steps():
    seen = []
    result = train_with(seen.append, epochs=20_000)
    assert seen == sorted(seen) and len(seen) > 1
    assert seen[-1] == result.steps == 40_000


def test_ctrl_c_in_a_fit_on_another_thread_reaches_the_main_thread_alone():
    training, interrupted, results = threading.Event(), threading.Event(), []

    def progress(_):
        training.set()
        interrupted.wait()

    thread = threading.Thread(target=lambda: results.append(train_with(progress)))
    thread.start()
    training.wait()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    interrupted.set()
    thread.join()
    assert results[0].steps == 20
