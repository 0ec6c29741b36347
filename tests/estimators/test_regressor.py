"""MVERegressor: scikit-learn's contract, the mathematics, and what must not depend on units."""

from __future__ import annotations

import io
import pickle
import warnings
from functools import partial

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from fitted import EXPECTED_FAILURES, STRICT, assert_same_bits, fast, table, weights
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import BaggingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from mvenet import MVERegressor, MVERegressorCV, Normal, NormalMixture, recipes
from mvenet._models.architecture import Architecture
from mvenet._training import fleet

few = settings(max_examples=12, deadline=None, derandomize=True)


# --- contract ------------------------------------------------------------------------------------


@parametrize_with_checks(
    [fast(), fast(n_members=2), fast(early_stopping=True)],
    expected_failed_checks=lambda estimator: EXPECTED_FAILURES,
    **STRICT,
)
def test_sklearn_contract(estimator, check):
    check(estimator)


@pytest.mark.parametrize("options", [{}, {"n_members": 2}, {"early_stopping": True}])
def test_rows_of_weight_zero_are_left_out_to_the_bit(options):
    X, y = table()
    w = weights(len(y))
    w[::5] = 0.0
    kept = w > 0
    wild = np.where(kept[:, None], X, 1e9)  # neither the values nor the scale of the others matter
    everything = fast(**options).fit(wild, np.where(kept, y, -1e9), w)
    assert_same_bits(everything, fast(**options).fit(X[kept], y[kept], w[kept]), X)


def test_equal_weights_are_no_weights_to_the_bit():
    X, y = table()
    plain = fast().fit(X, y)
    for w in (np.ones(len(y)), np.full(len(y), 7.0), np.full(len(y), 1e-300), 3.0):
        assert_same_bits(fast().fit(X, y, w), plain, X)


def test_a_weight_is_a_number_of_copies():
    # A full batch, so that a repeated row falls into the same step as its copies.
    X, y = table(n=40)
    copies = np.random.default_rng(2).integers(0, 4, len(y))
    options = {"batch_size": 1000, "warmup_epochs": 40, "epochs": 40}
    weighted = fast(**options).fit(X, y, copies)
    repeated = fast(**options).fit(np.repeat(X, copies, axis=0), np.repeat(y, copies))
    for a, b in zip(
        weighted.predict(X, return_std=True), repeated.predict(X, return_std=True), strict=True
    ):
        assert_allclose(a, b, atol=1e-3 * y.std())


def test_grid_search():
    X, y = table()
    search = GridSearchCV(fast(), {"reg_mean": [1e-3, 100.0], "strategy": ["warmup"]}, cv=3)
    search.fit(X, y)
    assert search.best_params_["reg_mean"] == 1e-3
    assert_same_bits(search.best_estimator_, fast().fit(X, y), X)


def test_pipeline_and_cross_validation():
    X, y = table(n=300)
    pipe = make_pipeline(StandardScaler(), fast(epochs=30))
    scores = cross_val_score(pipe, X, y, cv=3)
    assert scores.shape == (3,) and scores.min() > 0.5
    pipe.fit(X, y, mveregressor__sample_weight=weights(len(y)))
    mean, std = pipe.predict(X, return_std=True)
    assert mean.shape == std.shape == y.shape


def test_bagging():
    X, y = table()
    bag = BaggingRegressor(fast(), n_estimators=3, random_state=0).fit(X, y)
    assert bag.score(X, y) > 0.3
    again = BaggingRegressor(fast(), n_estimators=3, random_state=0).fit(X, y)
    assert bag.predict(X).tobytes() == again.predict(X).tobytes()


def test_transformed_target():
    X, y = table()
    model = TransformedTargetRegressor(fast(), func=np.log1p, inverse_func=np.expm1)
    y = np.exp(y / 5)
    direct = fast().fit(X, np.log1p(y))
    assert_array_equal(model.fit(X, y).predict(X), np.expm1(direct.predict(X)))


def test_imputer_draws_from_the_predictive_distribution():
    X, y = table(n=200)
    full = np.column_stack([X, y])
    holes = full.copy()
    holes[::7, 3] = np.nan
    drawn = [
        IterativeImputer(fast(), sample_posterior=True, max_iter=2, random_state=seed)
        .fit_transform(holes)[::7, 3]
        .copy()
        for seed in (0, 1)
    ]
    assert np.isfinite(drawn).all()
    assert (drawn[0] != drawn[1]).all()  # draws, not means


def test_clone_and_parameters():
    model = fast(hidden_mean=[5, 4], n_members=2)
    twin = clone(model)
    assert twin.get_params() == model.get_params() and twin is not model
    X, y = table()
    assert_same_bits(model.fit(X, y), twin.fit(X, y), X)
    assert not hasattr(clone(model), "model_")
    model.set_params(reg_var=0.5)
    assert model.fit(X, y).reg_var_ == 0.5


def test_weights_are_routed():
    X, y = table()
    w = weights(len(y))
    with config_context(enable_metadata_routing=True):
        model = fast().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        search = GridSearchCV(model, {"reg_mean": [1e-3]}, cv=3).fit(X, y, sample_weight=w)
    assert_same_bits(search.best_estimator_, fast().fit(X, y, w), X)


def test_fit_returns_self_and_a_second_fit_starts_afresh():
    X, y = table()
    model = fast()
    assert model.fit(X[:, :2], y) is model
    assert_same_bits(model.fit(X, y), fast().fit(X, y), X)
    assert model.n_features_in_ == 3


@pytest.mark.parametrize("options", [{}, {"n_members": 3}, {"hidden_var": None}])
def test_pickle_round_trip_to_the_bit(options, tmp_path):
    X, y = table()
    model = fast(**options).fit(pd.DataFrame(X, columns=list("abc")), y)
    frame = pd.DataFrame(X, columns=list("abc"))
    copy = pickle.loads(pickle.dumps(model))
    assert_same_bits(model, copy, frame)
    assert_array_equal(copy.feature_names_in_, list("abc"))
    assert_array_equal(copy.history_["nll"], model.history_["nll"])
    joblib.dump(model, tmp_path / "model")
    mapped = joblib.load(tmp_path / "model", mmap_mode="r")  # as joblib's workers see it
    assert_same_bits(model, mapped, frame)


def test_frames_give_numpys_result_to_the_bit():
    X, y = table()
    X[:, 1] = np.round(X[:, 1])
    names = ["wind", "hour", "price (€)"]
    plain = fast(n_members=2).fit(X, y, weights(len(y)))
    pandas = pd.DataFrame(X, columns=names).astype({"hour": int})
    polars = pl.DataFrame(X, schema=names).with_columns(pl.col("hour").cast(pl.Int64))
    for frame, series in ((pandas, pd.Series(y)), (polars, pl.Series(y))):
        w = type(series)(weights(len(y)))
        model = fast(n_members=2).fit(frame, series, w)
        assert_same_bits(model, plain, frame, X)
        assert_array_equal(model.feature_names_in_, names)
        assert model.score(frame, series) == plain.score(X, y)
    # the names are what counts, not who made the frame
    assert_same_bits(fast(n_members=2).fit(pandas, y, weights(len(y))), plain, polars, X)


def test_float32_tables_are_taken_as_they_are():
    X, y = table()
    X = X.astype(np.float32)
    model = fast().fit(X, y)
    assert_same_bits(model, fast().fit(X.astype(np.float64), y), X)
    names = ["a", "b", "c"]
    plain = pd.DataFrame(X, columns=names)
    frames = {
        "pandas": plain,
        "nullable": plain.astype("Float32"),
        "Arrow": plain.astype(pd.ArrowDtype(pa.float32())),
        "polars": pl.DataFrame(X, schema=names),
    }
    for kind, frame in frames.items():
        again = fast().fit(frame, y)
        assert_same_bits(again, model, frame, X)
        assert again._checked(frame).dtype == np.float32, kind
        mixed = frame.assign(a=1.5) if kind != "polars" else frame.with_columns(a=pl.lit(1.5))
        assert again._checked(mixed).dtype == np.float64, kind


def test_large_frames_become_one_table_in_row_order():
    X = np.random.default_rng(0).standard_normal((2_700, 101)).astype(np.float32)
    y = X[:, 0].astype(np.float64)
    names = [f"column {j}" for j in range(X.shape[1])]
    plain = pd.DataFrame(X, columns=names)
    model = fast(warmup_epochs=1, epochs=1).fit(X, y)
    frames = (plain.astype(pd.ArrowDtype(pa.float32())), pl.DataFrame(X, schema=names))
    for frame in frames:
        again = fast(warmup_epochs=1, epochs=1).fit(frame, y)
        assert_same_bits(again, model, frame[:100], X[:100])
        assert_array_equal(again.feature_names_in_, names)
        assert again._checked(frame).flags.c_contiguous
    assert np.shares_memory(again._checked(plain), plain[names[7]].to_numpy())  # not copied
    with pytest.raises(ValueError, match="feature names should match"):
        again.predict(frames[1].rename({"column 7": "other"}))
    hole = frames[1].with_columns(pl.lit(None).alias("column 7").cast(pl.Float32))
    assert again.fit(hole, y).columns_["column 7"].remark == "all missing"


def test_score_is_r_squared():
    X, y = table()
    w = weights(len(y))
    model = fast().fit(X, y)
    assert model.score(X, y) == r2_score(y, model.predict(X))
    assert model.score(X, y, w) == r2_score(y, model.predict(X), sample_weight=w)


def test_verbose_shows_progress_and_nothing_else_changes(capsys):
    X, y = table()
    quiet = fast().fit(X, y)
    assert capsys.readouterr() == ("", "")
    assert_same_bits(fast(verbose=1).fit(X, y), quiet, X)
    assert "training" in capsys.readouterr().err


def test_the_representation_shows_what_was_changed():
    assert repr(MVERegressor(reg_mean=0.1)) == "MVERegressor(reg_mean=0.1)"
    assert "MVERegressor" in fast()._repr_html_()


# --- predictions ---------------------------------------------------------------------------------


def test_shapes_of_predictions():
    X, y = table(n=50)
    for n_members, kind in ((1, Normal), (3, NormalMixture)):
        model = fast(n_members=n_members).fit(X, y)
        dist = model.predict_dist(X)
        assert isinstance(dist, kind) and len(dist) == 50
        assert model.predict(X).shape == (50,)
        assert model.predict_interval(X).shape == (50, 2)
        assert model.predict_interval(X, coverage=0.5).shape == (50, 2)
        assert model.predict_interval(X, coverage=[0.5]).shape == (50, 1, 2)
        assert model.predict_interval(X, coverage=[0.5, 0.9]).shape == (50, 2, 2)
        assert model.predict_quantiles(X).shape == (50, 3)
        assert model.predict_quantiles(X, 0.5).shape == (50, 1)
        assert model.predict_quantiles(X, [0.2, 0.3, 0.4, 0.5]).shape == (50, 4)
        interval = model.predict_interval(X, 0.8)
        assert_allclose(interval, model.predict_quantiles(X, (0.1, 0.9)), rtol=1e-9)
        if kind is Normal:
            assert_allclose(interval, dist.mean[:, None] + dist.std[:, None] * [-1.2816, 1.2816],
                            rtol=1e-3, atol=1e-4)  # fmt: skip


def test_members_are_a_mixture():
    X, y = table()
    model = fast(n_members=4).fit(X, y)
    means, stds = model.model_.networks.predict(X)
    assert means.shape == stds.shape == (4, len(y))
    assert len({m.tobytes() for m in means}) == 4
    mean, std = model.predict(X, return_std=True)
    assert_allclose(mean, means.mean(axis=0))
    assert_allclose(std**2, (stds**2).mean(axis=0) + means.var(axis=0))
    dist = model.predict_dist(X)
    assert_allclose(dist.aleatoric, (stds**2).mean(axis=0))
    assert_allclose(dist.epistemic, means.var(axis=0))
    assert_allclose(dist.var, std**2)


def test_std_is_in_units_of_y_and_is_no_variance():
    # Noise of standard deviation 30: a variance of 900, and no confusion between the two.
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (2000, 1))
    y = 1000 + 100 * X[:, 0] + 30 * rng.standard_normal(2000)
    model = fast(epochs=30).fit(X, y)
    mean, std = model.predict(X, return_std=True)
    assert_allclose(std, 30, rtol=0.15)
    assert_allclose(mean, 1000 + 100 * X[:, 0], atol=10)
    inside = (abs(y - mean) < std).mean()
    assert 0.64 < inside < 0.73
    low, high = model.predict_interval(X, 0.9).T
    assert 0.87 < ((low < y) & (y < high)).mean() < 0.93


@given(st.lists(st.floats(0.001, 0.999), min_size=2, max_size=6, unique=True))
@few
def test_intervals_are_nested_and_quantiles_rise(levels):
    X, y = table(n=40)
    levels = sorted(levels)
    for n_members in (1, 3):
        model = fast(n_members=n_members, epochs=2, warmup_epochs=2).fit(X, y)
        quantiles = model.predict_quantiles(X, levels)
        assert (np.diff(quantiles, axis=1) >= 0).all()
        ends = model.predict_interval(X, levels)
        assert (np.diff(ends[:, :, 0], axis=1) <= 0).all()
        assert (np.diff(ends[:, :, 1], axis=1) >= 0).all()
        assert (ends[:, :, 0] < ends[:, :, 1]).all()
        # What does not depend on its companions: each level alone gives the same.
        assert_array_equal(quantiles[:, 0], model.predict_quantiles(X, levels[0])[:, 0])


def test_intervals_are_in_order_where_std_is_a_rounding_error():
    rng = np.random.default_rng(0)
    means = 1e6 + 1e-7 * rng.random((3, 500))
    dist = NormalMixture(means, np.full_like(means, 5e-11))  # half a unit in the mean's last place
    ends = dist.interval([0.01, 0.1, 0.5, 0.9])
    assert (ends[:, :, 0] <= ends[:, :, 1]).all()
    rounding = 64 * np.spacing(1e6)
    assert (np.diff(ends[:, :, 0], axis=1) <= rounding).all()
    assert (np.diff(ends[:, :, 1], axis=1) >= -rounding).all()


# --- mathematics ---------------------------------------------------------------------------------


def standardised(X, y, w):
    """Rows and targets as networks are trained on them, and how to go back."""
    x_mean, y_mean = np.average(X, axis=0, weights=w), np.average(y, weights=w)
    x_std = np.sqrt(np.average((X - x_mean) ** 2, axis=0, weights=w))
    y_std = np.sqrt(np.average((y - y_mean) ** 2, weights=w))
    return (X - x_mean) / x_std, (y - y_mean) / y_std, y_mean, y_std


@pytest.mark.parametrize("reg_mean", [0.0, 1e-2, 0.3])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_linear_mean_is_ridge_regression(reg_mean, weighted):
    # mean(w r²)/e + reg |W|² is least where sum(w r²) + n e reg |W|² is.
    X, y = table(n=200)
    w = weights(len(y)) if weighted else np.ones(len(y))
    Z, t, y_mean, y_std = standardised(X, y, w)
    ridge = Ridge(alpha=len(y) * np.e * reg_mean).fit(Z, t, w / w.mean())
    model = MVERegressor(
        hidden_mean=(),
        hidden_var=None,
        strategy="warmup-fixed-mean",
        reg_mean=reg_mean,
        batch_size=len(y),
        warmup_epochs=1500,
        epochs=1500,
        learning_rate=0.05,
        random_state=0,
    ).fit(X, y, w if weighted else None)
    mean, std = model.predict(X, return_std=True)
    assert_allclose(mean, y_mean + y_std * ridge.predict(Z), atol=1e-4 * y_std)
    # The best constant variance is the mean squared residual.
    assert_allclose(std, np.sqrt(np.average((y - mean) ** 2, weights=w)), rtol=1e-4)


def test_a_linear_joint_network_is_weighted_least_squares():
    # At the optimum of the likelihood, the mean is the regression weighted by 1/variance.
    rng = np.random.default_rng(3)
    X = rng.normal(size=(2000, 2))
    y = 1 + X @ [2.0, -1.0] + np.exp(0.5 + X @ [0.8, 0.0]) * rng.standard_normal(2000)
    model = MVERegressor(
        strategy="warmup", hidden_mean=(), hidden_var=(), reg_mean=0.0, reg_var=0.0,
        batch_size=2000, warmup_epochs=300, epochs=1500, learning_rate=0.03, clip_value=None,
        random_state=0,
    ).fit(X, y)  # fmt: skip
    mean, std = model.predict(X, return_std=True)
    weighted = LinearRegression().fit(X, y, std**-2.0)
    assert_allclose(mean, weighted.predict(X), atol=0.01)
    assert abs(mean - LinearRegression().fit(X, y).predict(X)).max() > 0.05


def test_a_linear_log_variance_recovers_its_coefficients():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(5000, 3))
    log_variance = -1 + X @ [0.8, -0.5, 0.0]
    y = 3 + X @ [1.0, 0.0, 2.0] + np.exp(0.5 * log_variance) * rng.standard_normal(5000)
    model = MVERegressor(
        hidden_mean=(), hidden_var=(), reg_mean=0.0, reg_var=0.0, warmup_epochs=5, epochs=30,
        learning_rate=0.01, random_state=0,
    ).fit(X, y)  # fmt: skip
    mean, std = model.predict(X, return_std=True)
    found_mean = LinearRegression().fit(X, mean)
    found_variance = LinearRegression().fit(X, 2 * np.log(std))
    # Standard errors are about 0.01 and sqrt(2 / 5000) = 0.02: four of them.
    assert_allclose([found_mean.intercept_, *found_mean.coef_], [3, 1, 0, 2], atol=0.04)
    assert_allclose(
        [found_variance.intercept_, *found_variance.coef_], [-1, 0.8, -0.5, 0], atol=0.08
    )


def parameters_after_one_step(reg_mean, reg_var):
    X, y = table(n=30)
    rows = np.arange(len(y))
    stage = recipes.Stage("joint", 1, 0.01, reg_mean=reg_mean, reg_var=reg_var)
    result = fleet.train(
        X, y, None, [(rows, rows[:0])], [fleet.Network((stage,), 5)],
        architecture=Architecture((6,), (5,)),
        training=recipes.Training(batch_size=len(y)),
    )  # fmt: skip
    n_mean = 6 * 4 + 7
    theta = result.networks.parameters[0]
    return theta[:n_mean].tobytes(), theta[n_mean:].tobytes()


def test_each_penalty_moves_only_its_own_network():
    mean, variance = parameters_after_one_step(0.0, 0.0)
    other_mean, same_variance = parameters_after_one_step(10.0, 0.0)
    same_mean, other_variance = parameters_after_one_step(0.0, 10.0)
    assert other_mean != mean and same_variance == variance
    assert other_variance != variance and same_mean == mean


@pytest.mark.parametrize(
    "options", [{"strategy": "warmup-fixed-mean"}, {"objective": "faithful"}], ids=str
)
def test_the_variance_penalty_leaves_a_mean_that_ignores_the_variance_alone(options):
    X, y = table()
    one, other = (fast(**options, reg_var=r).fit(X, y) for r in (1e-4, 1.0))
    assert one.predict(X).tobytes() == other.predict(X).tobytes()
    assert abs(one.predict(X, return_std=True)[1] - other.predict(X, return_std=True)[1]).max() > 0


def test_a_huge_variance_penalty_gives_a_constant_std():
    X, y = table(n=400)
    spread = {}
    for reg_var in (1e-4, 100.0):
        std = fast(epochs=60, reg_var=reg_var).fit(X, y).predict(X, return_std=True)[1]
        spread[reg_var] = std.max() / std.min()
    assert spread[1e-4] > 2
    assert spread[100.0] < 1.02


def test_a_huge_mean_penalty_gives_the_mean_of_y():
    X, y = table(n=400)
    mean, std = fast(epochs=60, reg_mean=100.0, reg_var=100.0).fit(X, y).predict(X, return_std=True)
    assert_allclose(mean, y.mean(), atol=0.05 * y.std())
    assert_allclose(std, y.std(), rtol=0.05)


def test_fixed_mean_is_the_warm_ups_mean():
    X, y = table()
    model = fast(strategy="warmup-fixed-mean").fit(X, y)
    longer = fast(strategy="warmup-fixed-mean", epochs=33).fit(X, y)
    assert model.predict(X).tobytes() == longer.predict(X).tobytes()
    rows = np.arange(len(y))
    warmup = model._stages(len(y), model.reg_mean, model.reg_var_)[:1]
    alone = fleet.train(
        X, y, None, [(rows, rows[:0])], [fleet.Network(warmup, fleet.derived_seed(0, 0, 0))],
        architecture=model.model_.networks.architecture, training=model._training(32),
    )  # fmt: skip
    assert alone.networks.predict(X)[0][0].tobytes() == model.predict(X).tobytes()
    assert fast(strategy="warmup").fit(X, y).predict(X).tobytes() != model.predict(X).tobytes()


def test_reg_var_auto_is_ten_times_reg_mean():
    X, y = table()
    auto = fast(reg_mean=3e-3).fit(X, y)
    assert auto.reg_var_ == 10 * 3e-3
    assert_same_bits(auto, fast(reg_mean=3e-3, reg_var=10 * 3e-3).fit(X, y), X)
    assert fast(reg_var=0).fit(X, y).reg_var_ == 0


def test_recipes_are_constructor_arguments():
    parameters = MVERegressor().get_params()
    assert set(recipes.DEFAULT) <= set(parameters)
    paper = MVERegressor(**recipes.PAPER).get_params()
    assert {name: paper[name] for name in recipes.PAPER} == dict(recipes.PAPER)
    with pytest.raises(TypeError):
        recipes.PAPER["epochs"] = 1
    X, y = table(n=40)
    MVERegressor(**{**recipes.PAPER, "epochs": 2, "warmup_epochs": 2}).fit(X, y)
    model = MVERegressor(strategy="warmup", random_state=0).fit(X, y)
    assert model.n_steps_ == 2 * sum(s.epochs for s in model._stages(40, 0.0, 0.0))
    assert model.n_steps_ >= 1000  # forty rows are trained as thoroughly as forty thousand


def test_every_parameter_is_documented_and_validated():
    names = set(MVERegressor().get_params())
    assert names == set(MVERegressor._parameter_constraints)
    documented = MVERegressor.__doc__.split("Attributes\n")[0]
    assert [name for name in names if name not in documented] == []


# --- history -------------------------------------------------------------------------------------

COLUMNS = ["member", "stage", "epoch", "nll", "validation_nll"]


def test_history_columns():
    X, y = table(n=100)
    model = fast(n_members=2).fit(X, y)
    history = pd.DataFrame(model.history_)
    assert list(history) == COLUMNS
    assert len(history) == 2 * (30 + 10)
    assert history["validation_nll"].isna().all()
    for _, member in history.groupby("member"):
        assert list(member["stage"]) == ["warmup"] * 30 + ["joint"] * 10
        assert list(member["epoch"]) == [*range(1, 31), *range(1, 11)]
        assert member["nll"].iloc[-1] < member["nll"].iloc[0]
    assert model.n_steps_ == 2 * 40 * 4
    stages = fast(strategy="no-warmup").fit(X, y).history_["stage"]
    assert list(stages) == ["joint"] * 10
    stages = fast(strategy="warmup-fixed-mean").fit(X, y).history_["stage"]
    assert list(stages) == ["warmup"] * 30 + ["variance"] * 10


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("objective", fleet.OBJECTIVES)
def test_history_is_the_negative_log_likelihood_in_units_of_y(weighted, objective):
    X, y = table(n=90)
    y = 1000 * y  # units matter: log 1000 is 6.9
    w = weights(len(y)) if weighted else None
    options = {"learning_rate": 1e-12, "schedule": "constant", "objective": objective}
    options["strategy"] = "no-warmup" if objective == "natural" else "warmup"
    model = fast(**options).fit(X, y, w)  # nothing moves, so that every epoch sees the same
    at_the_end = -np.average(model.predict_dist(X).logpdf(y), weights=w)
    assert_allclose(model.history_["nll"][-10:], at_the_end, rtol=1e-5)


def test_validation_history_is_about_the_rows_held_out():
    X, y = table(n=90)
    model = fast(
        learning_rate=1e-12, schedule="constant", early_stopping=True, validation_fraction=0.3
    ).fit(X, 1000 * y)
    total = -model.predict_dist(X).logpdf(1000 * y).sum()
    history = model.history_
    assert_allclose(63 * history["nll"][-1] + 27 * history["validation_nll"][-1], total, rtol=1e-5)


def test_history_of_a_trained_network_ends_where_its_likelihood_is():
    X, y = table(n=300)
    model = fast(epochs=60).fit(X, y)  # the cosine ends at a learning rate of zero
    assert_allclose(model.history_["nll"][-1], -model.predict_dist(X).logpdf(y).mean(), atol=0.01)


def test_early_stopping_stops_and_says_so():
    X, y = table(n=120)
    model = fast(
        early_stopping=True, epochs=400, warmup_epochs=400, n_iter_no_change=5, hidden_mean=(30,),
        reg_mean=0.0, learning_rate=0.05, validation_fraction=0.25, n_members=2,
    ).fit(X, y)  # fmt: skip
    history = pd.DataFrame(model.history_)
    assert len(history) < 2 * 800
    assert model.n_steps_ == len(history) * 3  # 90 rows are three batches
    for _, stage in history.groupby(["member", "stage"]):
        best = int(np.argmin(stage["validation_nll"])) + 1
        assert len(stage) == min(best + 5, 400)
        assert np.isfinite(stage["validation_nll"]).all()
    patient = fast(early_stopping=True, n_iter_no_change=10**6).fit(X, y)
    assert len(patient.history_["nll"]) == 40


# --- units ---------------------------------------------------------------------------------------


@given(st.integers(-200, 200), st.lists(st.integers(-200, 200), min_size=3, max_size=3))
@few
def test_powers_of_two_change_units_to_the_bit(y_exponent, x_exponents):
    X, y = table(n=60)
    a, c = 2.0**y_exponent, 2.0 ** np.array(x_exponents)
    for n_members in (1, 2):
        mean, std = fast(n_members=n_members).fit(X, y).predict(X, return_std=True)
        scaled = fast(n_members=n_members).fit(X * c, a * y)
        got_mean, got_std = scaled.predict(X * c, return_std=True)
        assert (a * mean).tobytes() == got_mean.tobytes()
        assert (a * std).tobytes() == got_std.tobytes()


scales = st.floats(-12, 12).map(lambda e: 10.0**e)


@given(scales, st.floats(-100, 100))
@few
def test_units_of_y(a, b):
    X, y = table(n=60)
    mean, std = fast().fit(X, y).predict(X, return_std=True)
    b *= a
    got_mean, got_std = fast().fit(X, a * y + b).predict(X, return_std=True)
    assert_allclose((got_mean - b) / a, mean, atol=1e-3 * y.std())
    assert_allclose(got_std / a, std, rtol=1e-3)


@given(scales, st.floats(-100, 100))
@few
def test_sign_of_y(a, b):
    # A network with hidden units starts elsewhere for -y; one without has but one minimum.
    X, y = table(n=60)
    options = {"hidden_mean": (), "hidden_var": (), "batch_size": 60, "learning_rate": 0.1}
    options |= {"warmup_epochs": 200, "epochs": 400}
    mean, std = fast(**options).fit(X, y).predict(X, return_std=True)
    b *= a
    got_mean, got_std = fast(**options).fit(X, -a * y + b).predict(X, return_std=True)
    assert_allclose((b - got_mean) / a, mean, atol=5e-3 * y.std())
    assert_allclose(got_std / a, std, rtol=5e-3)


@given(st.lists(st.tuples(scales, st.floats(-100, 100)), min_size=3, max_size=3))
@few
def test_units_of_x(changes):
    X, y = table(n=60)
    a, b = np.array(changes).T
    mean, std = fast().fit(X, y).predict(X, return_std=True)
    other = a * X + a * b
    got_mean, got_std = fast().fit(other, y).predict(other, return_std=True)
    assert_allclose(got_mean, mean, atol=1e-3 * y.std())
    assert_allclose(got_std, std, rtol=1e-3)


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e-12, 1e12, 1e150, 1e300])
def test_training_works_at_any_scale(scale):
    X, y = table(n=200)
    expected = fast().fit(X, y).score(X, y)
    for model in (fast().fit(scale * X, y), fast(n_members=2).fit(scale * X, y)):
        assert model.score(scale * X, y) > expected - 0.1
    model = fast(n_members=2).fit(X, scale * y)
    mean, std = model.predict(X, return_std=True)
    assert r2_score(y, mean / scale) > expected - 0.1
    assert 0.1 < np.mean(std / scale) / y.std() < 1
    low, high = model.predict_interval(X).T
    assert (low < mean).all() and (mean < high).all()


def test_columns_of_very_different_scale_and_offset():
    X, y = table(n=200)
    odd = X * [1e-9, 1e9, 1.0] + [1e-3, 1e15, -1e6]
    expected = fast().fit(X, y).predict(X)
    assert_allclose(fast().fit(odd, y).predict(odd), expected, atol=0.05 * y.std())


# --- statistics ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, *(pytest.param(s, marks=pytest.mark.slow) for s in (1, 2))])
@pytest.mark.parametrize(
    ("estimator", "n"),
    [
        (MVERegressor, 5000),
        pytest.param(partial(MVERegressorCV, cv=5), 500, marks=pytest.mark.slow),
    ],
)
def test_the_default_finds_noise_that_grows_on_both_sides(estimator, n, seed):
    # Std 0.1 in the middle, 0.3 at both ends. With few rows the default penalties of MVERegressor
    # are too careful to see it: that is what the search is for.
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 1))
    y = X[:, 0] ** 2 + (0.1 + 0.2 * X[:, 0] ** 2) * rng.standard_normal(n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a penalty at the end of its grid
        model = estimator(random_state=seed).fit(X, y)
    mean, std = model.predict([[-1], [0], [1]], return_std=True)
    assert_allclose(mean, [1, 0, 1], atol=0.3)
    assert std[1] < 0.14
    assert min(std[0], std[2]) > 0.2


def test_a_variance_that_is_even_in_x_is_found():
    # std is even in x: nothing linear leads away from a constant.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 2))
    std = 0.2 + 0.4 * abs(X[:, 0])
    y = X[:, 1] + std * rng.standard_normal(2000)
    best = Normal(X[:, 1], std).logpdf(y).mean()
    for seed in range(2):
        model = MVERegressor(random_state=seed, reg_mean=1e-3, reg_var=1e-2).fit(X, y)
        assert model.predict_dist(X).logpdf(y).mean() > best - 0.1


# --- the paper's example -------------------------------------------------------------------------


@pytest.mark.slow
def test_the_sine_needs_its_warm_up():
    """Figure 1 of the paper: without a warm-up the mean is lost to an ever larger variance."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 5, 400)
    truth = 0.4 * np.sin(2 * np.pi * x)
    y = truth + 0.01 * rng.standard_normal(400)
    X = x[:, None]

    def errors(**options):
        settings = {
            "strategy": "warmup", "hidden_mean": (50, 50, 50), "hidden_var": (50, 50, 50),
            "activation": "silu", "batch_size": 16, "learning_rate": 5e-3, "reg_mean": 0.0,
            "reg_var": 0.0, "n_members": 4, "random_state": 0,
        }  # fmt: skip
        model = MVERegressor(**settings | options).fit(X, y)
        means, _ = model.model_.networks.predict(X)
        return np.sort(np.sqrt(((means - truth) ** 2).mean(axis=1)))

    # A start may lose a period of the sine all the same, and one or two may be lucky.
    assert errors(warmup_epochs=1200, epochs=200)[2] < 0.05
    assert errors(strategy="no-warmup", epochs=1400)[2] > 0.1


def test_example_in_memory_only(tmp_path, monkeypatch, capfd):
    """Fitting and predicting write no file and print nothing."""
    monkeypatch.chdir(tmp_path)
    stream = io.BytesIO()
    X, y = table()
    joblib.dump(fast().fit(X, y), stream)
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")


# --- two kinds of uncertainty --------------------------------------------------------------------


def test_epistemic_grows_in_a_gap_and_aleatoric_with_the_noise():
    rng = np.random.default_rng(0)
    x = np.r_[rng.uniform(-3, -1, 200), rng.uniform(1, 3, 200)]
    y = np.sin(2 * x) + np.where(x > 0, 0.4, 0.05) * rng.standard_normal(400)
    model = MVERegressor(n_members=5, reg_mean=1e-4, reg_var=1e-2, random_state=0)
    dist = model.fit(x[:, None], y).predict_dist([[-2.0], [0.0], [2.0]])
    quiet, gap, noisy = range(3)
    assert dist.epistemic[gap] > 2 * max(dist.epistemic[quiet], dist.epistemic[noisy])
    assert dist.aleatoric[noisy] > 10 * dist.aleatoric[quiet]
    assert_allclose(dist.aleatoric + dist.epistemic, dist.var)
    assert_allclose(np.sqrt(dist.aleatoric[[quiet, noisy]]), [0.05, 0.4], rtol=0.35)


@pytest.mark.slow
def test_epistemic_shrinks_with_more_rows_and_aleatoric_does_not():
    rng = np.random.default_rng(1)
    parts = {}
    for n in (50, 1500):
        X = rng.uniform(-1, 1, (n, 2))
        y = X[:, 0] * X[:, 1] + 0.2 * rng.standard_normal(n)
        model = MVERegressor(n_members=4, reg_mean=1e-3, reg_var=1e-1, random_state=0).fit(X, y)
        dist = model.predict_dist(rng.uniform(-0.8, 0.8, (200, 2)))
        parts[n] = dist.aleatoric.mean(), dist.epistemic.mean()
    assert parts[1500][1] < 0.5 * parts[50][1]
    assert parts[1500][0] == pytest.approx(0.04, rel=0.15)


# --- large tables --------------------------------------------------------------------------------


@pytest.mark.parametrize("n_members", [1, 3])
def test_many_rows_in_blocks_are_the_same_as_at_once(n_members, monkeypatch):
    X, y = table()
    model = fast(n_members=n_members).fit(X, y)
    rows = np.random.default_rng(0).normal(size=(1000, X.shape[1]))
    dist = model.predict_dist(rows)
    outcomes = dist.mean + 0.3
    levels = [0.05, 0.5]
    monkeypatch.setattr("mvenet._models.predictor._AT_ONCE", 600)
    assert_array_equal(model.predict_interval(rows, [0.5, 0.9]), dist.interval([0.5, 0.9]))
    assert_array_equal(model.predict_quantiles(rows, levels), dist.ppf(levels))
    assert_array_equal(model.logpdf(rows, outcomes), dist.logpdf(outcomes))
    mean, std = model.predict(rows, return_std=True)
    assert_allclose(mean, dist.mean, rtol=1e-12, atol=1e-12)
    assert_allclose(std, dist.std, rtol=1e-12)
    with pytest.raises(ValueError, match="y must have shape"):
        model.logpdf(rows, outcomes[:-1])


def test_a_std_at_its_floor_is_a_warning():
    X = np.linspace(-1, 1, 60)[:, None]
    settings = {"reg_mean": 0.0, "reg_var": 0.0, "hidden_mean": (), "random_state": 0}
    settings |= {"strategy": "warmup"}
    with pytest.warns(ConvergenceWarning, match="at its floor, 0.001 of that of y"):
        MVERegressor(**settings).fit(X, 3 * X[:, 0])
