"""What a fitted estimator shows of itself, in text and in a notebook."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from fitted import TINY
from sklearn import config_context
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from mvenet import AutoRegressor, CalibratedRegressor, MVERegressor

pytestmark = pytest.mark.usefixtures("short")

HOSTILE = ["<script>alert(1)</script>", "c\x1b[2J", "a name that is longer than anybody needs", "d"]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 5)), columns=[*HOSTILE, "e"])
    return X, X["e"].to_numpy() + rng.normal(size=60)


@pytest.fixture(scope="module")
def model(table):
    return AutoRegressor(effort="low", cv=2, candidates=["linear"], random_state=0).fit(*table)


def test_five_lines_of_what_was_found(model, table):
    first, *lines = repr(model).splitlines()
    assert first == "AutoRegressor(candidates=['linear'], cv=2, effort='low', random_state=0)"
    assert len(lines) == 5 and all(len(line) < 115 for line in lines)
    assert lines[0].startswith(
        "  Fitted to 60 rows, 5 columns: <script>alert(1)</s…, c\\x1b[2J, a n"
    )
    assert lines[0].endswith(" and 1 more.")
    below, up_to = model.oof_pit_.T
    share = np.mean((up_to >= 0.05) & (below <= 0.95))
    assert f"hold {share:.1%} of the rows" in lines[-1]
    assert 0.5 < share <= 1


def test_unfitted_is_as_scikit_learn_has_it(model):
    assert repr(MVERegressor()) == "MVERegressor()"
    assert max(map(len, repr(MVERegressor(**TINY)).splitlines())) <= 80  # wrapped
    assert repr(clone(model)).count("\n") == 0
    assert "Fitted" not in repr(make_pipeline(model))


def test_html_is_escaped_and_keeps_the_parameters(model):
    html = model._repr_mimebundle_()["text/html"]
    assert len(html) == len(model._repr_html_())
    assert "<script>alert" not in html and "&lt;script&gt;alert(1)&lt;/s…" in html
    assert html.count("<li>") == 5 and "Parameters" in html
    assert "Fitted to" not in MVERegressor()._repr_mimebundle_()["text/html"]
    with config_context(display="text"):
        assert list(model._repr_mimebundle_()) == ["text/plain"]


def test_few_columns_without_names_and_networks_alone():
    X = np.random.default_rng(0).normal(size=(20, 1))
    lines = repr(MVERegressor(**TINY).fit(X, X[:, 0])).splitlines()
    assert "  Fitted to 1 column." in lines
    assert lines[-1].strip().startswith("1 network")


def test_a_calibration_shows_its_model_and_by_what_it_was_calibrated(table):
    model = CalibratedRegressor(MVERegressor(**TINY), cv=3)
    assert "calibrated by" not in repr(model)
    *lines, last = repr(model.fit(*table)).splitlines()
    assert any(line.startswith("  Fitted to 5 columns") for line in lines)
    assert last == "  Intervals calibrated by 60 rows left out."
    assert "<script>alert(1)" not in model._repr_html_()
