"""Any allowed combination of parameters fits any table, or says why not: no NaN, no crash.

The combinations are drawn from the estimators' own constraints, so that a new parameter is tried
without a line here.
"""

from __future__ import annotations

import math
import warnings
from numbers import Integral

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mvenet import CalibratedRegressor, MVERegressor, MVERegressorCV
from mvenet._utils.sklearn import Interval, StrOptions

pytestmark = pytest.mark.usefixtures("short")

QUICK, THOROUGH = 40, 3400  # combinations of each estimator; three times that many fits at least
KINDS = ("networks", "searches", "calibrated", "automatic")
HIDDEN = st.lists(st.integers(1, 5), max_size=2).map(tuple)
PENALTIES = st.lists(st.sampled_from([0.0, 1e-6, 1e-3, 1e-1, 1.0, 1e4]), min_size=1, max_size=2)
SMALL = {
    # what would only take long, or is a list whose rules scikit-learn cannot know
    "epochs": st.integers(1, 5),
    "warmup_epochs": st.integers(1, 5),
    "n_members": st.integers(1, 3),
    "batch_size": st.sampled_from([1, 2, 7, 32, 10**6]),
    "hidden_mean": st.none() | HIDDEN,
    "hidden_var": st.none() | HIDDEN,
    "n_jobs": st.sampled_from([None, 1, 2, -1]),
    "cv": st.integers(2, 3),
    "random_state": st.integers(0, 99),
    "verbose": st.just(0),
}


def numbers(allowed):
    """Numbers of an interval, small and large ones alike."""
    low = allowed.left if allowed.left is not None else -5
    high = allowed.right if allowed.right is not None else 1e9
    if allowed.type is Integral:
        return st.integers(int(low), int(min(high, low + 5)))
    inside = st.floats(-12, math.log10(high)).map(lambda power: min(10.0**power, high))
    ends = [v for v, kind in ((low, "left"), (high, "right")) if allowed.closed in (kind, "both")]
    drawn = inside.filter(lambda value: value in allowed)
    return drawn | st.sampled_from(ends) if ends else drawn


def values(name, constraints):
    """Values that a parameter may have, as its constraints say."""
    if name in SMALL:
        return SMALL[name]
    kinds = []
    for allowed in constraints:
        if isinstance(allowed, StrOptions):
            kinds.append(st.sampled_from(sorted(allowed.options)))
        elif isinstance(allowed, Interval):
            kinds.append(numbers(allowed))
        elif allowed == "boolean":
            kinds.append(st.booleans())
        elif allowed is None:
            kinds.append(st.none())
        elif allowed == "array-like":
            kinds.append(PENALTIES)
        else:
            pytest.fail(f"{name} allows {allowed}: say here how to draw one")
    return st.one_of(kinds)


def parameters(estimator):
    every = estimator._parameter_constraints
    return st.fixed_dictionaries({}, optional={n: values(n, c) for n, c in every.items()})


@st.composite
def tables(draw):
    """A few rows: any scale, ties, constants, weights that may be zero."""
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    n, d = draw(st.integers(2, 30)), draw(st.integers(1, 4))
    X = rng.normal(size=(n, d)) * 10.0 ** draw(st.integers(-9, 9))
    y = rng.normal(size=n) * 10.0 ** draw(st.integers(-12, 12)) + draw(st.sampled_from([0, 1e6]))
    if draw(st.booleans()):
        X[:, 0] = X[0, 0]
    kind = draw(st.sampled_from(["any", "any", "constant", "two values", "linear"]))
    y = {"any": y, "constant": y * 0, "two values": np.where(y > 0, 1.0, 0.0), "linear": X[:, -1]}[
        kind
    ]
    weight = rng.integers(0, 3, n).astype(float) if draw(st.booleans()) else None
    return X, y, weight


def fits_or_says_why_not(model, table):
    X, y, weight = table
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        said = None
        try:
            model.fit(X, y, sample_weight=weight)
        except ValueError as error:
            said = str(error)
        if said is not None:
            assert len(said) > 20 and "\n" not in said
            return
        far = np.vstack([X, 1e9 * X])
        mean, std = model.predict(far, return_std=True)
        ends = model.predict_dist(far).interval(0.9)
    assert np.isfinite(mean).all() and np.isfinite(std).all() and (std > 0).all()
    assert np.isfinite(ends).all() and (ends[:, 0] <= ends[:, 1]).all()


def tried(count):
    """What is tried, for so many combinations."""
    allowed = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    often = settings(max_examples=count, deadline=None, suppress_health_check=allowed)

    @often
    @given(chosen=parameters(MVERegressor), table=tables())
    def networks(chosen, table):
        fits_or_says_why_not(MVERegressor(**{"epochs": 3, "warmup_epochs": 2, **chosen}), table)

    @often
    @given(chosen=parameters(MVERegressorCV), table=tables())
    def searches(chosen, table):
        grid = {"reg_mean": [1e-3, 1e-1], "reg_var": [1e-2], "cv": 2}
        quick = {"epochs": 3, "warmup_epochs": 2, **grid, **chosen}
        fits_or_says_why_not(MVERegressorCV(**quick), table)

    @often
    @given(
        chosen=parameters(MVERegressor),
        method=st.sampled_from(["scale", "conformal"]),
        cv=st.integers(2, 3),
        table=tables(),
    )
    def calibrated(chosen, method, cv, table):
        inner = MVERegressor(**{"epochs": 3, "warmup_epochs": 2, **chosen})
        fits_or_says_why_not(CalibratedRegressor(inner, method, cv), table)

    @settings(often, max_examples=max(2, count // 60))  # a second or two each
    @given(cv=st.integers(2, 4), seed=st.integers(0, 99), table=tables())
    def automatic(cv, seed, table):
        fits_or_says_why_not(MVERegressorCV(cv=cv, random_state=seed), table)

    kinds = (networks, searches, calibrated, automatic)
    return {kind.__name__: kind for kind in kinds}


@pytest.mark.parametrize("kind", KINDS)
def test_any_settings_fit_or_are_refused_in_words(kind):
    tried(QUICK)[kind]()


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_ten_thousand_settings_fit_or_are_refused_in_words(kind):
    tried(THOROUGH)[kind]()
