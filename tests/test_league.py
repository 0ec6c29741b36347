"""The league's arithmetic: its scores, what it keeps, and who it says is best."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from mvenet import Normal, metrics

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import league  # noqa: E402
import league_methods  # noqa: E402
import league_page  # noqa: E402
import records  # noqa: E402


def test_a_normal_given_by_its_quantiles_scores_as_the_normal():
    means, stds = np.array([0.0, 5.0, -3.0]), np.array([1.0, 0.2, 3.0])
    y = np.array([0.3, 5.5, -12.0])
    levels = np.arange(1, 20) / 20
    quantiles = league_methods.Quantiles(norm.ppf(levels[None], means[:, None], stds[:, None]))
    normal = Normal(means, stds)
    np.testing.assert_allclose(quantiles.mean, means, atol=1e-9)
    np.testing.assert_allclose(quantiles.interval(0.9), normal.interval(0.9))
    np.testing.assert_allclose(quantiles.crps(y), normal.crps(y), rtol=0.03)


def test_scores_are_those_of_the_library():
    y, dist = np.array([0.0, 2.0, 7.0]), Normal([0.0, 1.0, 2.0], [1.0, 0.5, 2.0])
    found = league.scores(y, dist)
    assert found["loglik"] == pytest.approx(-metrics.nll(y, dist))
    assert found["gaussian_loglik"] == pytest.approx(-metrics.nll(y, dist))
    assert found["crps"] == pytest.approx(metrics.crps(y, dist))
    assert found["coverage"] == pytest.approx(metrics.coverage(y, dist, nominal=0.9))
    assert league.scores(y, dist.mean) == {"rmse": pytest.approx(metrics.rmse(y, dist))}


def test_what_is_finished_is_not_measured_again(tmp_path):
    calls = []

    def method(X, y, X_new):
        calls.append(len(X))
        return Normal(np.zeros(len(X_new)), np.ones(len(X_new)))

    def too_large(X, y, X_new):
        return None

    contestant = league_methods.Method("ours", method, "mvenet")
    split = (np.zeros((3, 1)), np.zeros(3), np.zeros((2, 1)), np.ones(2))
    for fold in (0, 1, 0, 1):
        league.measure(contestant, "made", fold, split, tmp_path)
    assert calls == [3, 3]
    rows = records.read(tmp_path / "method.csv")
    assert [(row["table"], row["fold"], row["rmse"]) for row in rows] == [
        ("made", "0", "1"),
        ("made", "1", "1"),
    ]
    league.measure(league_methods.Method("none", too_large, "mvenet"), "made", 0, split, tmp_path)
    assert not (tmp_path / "too_large.csv").exists()


def made(tmp_path, **logliks):
    """Results of some methods on one table, by fold."""
    names = {"ours": league_page.US, "before": league_page.BEFORE}
    for key, values in logliks.items():
        name = names.get(key, key)
        rows = [
            {"method": name, "table": "made", "fold": fold, "loglik": value, "version": "1"}
            for fold, value in enumerate(values)
        ]
        records.add(tmp_path / f"{key}.csv", league.FIELDS, rows)
    return league_page.read(tmp_path)


def test_the_best_is_bold_on_the_folds_that_all_have(tmp_path):
    results = made(tmp_path, ours=[1.0, 3.0, -9.0], CatBoost=[0.0, 1.0, 3.0], NGBoost=[0.5, 0.5])
    text = league_page.score_table(results, ["made", "another"], league_page.LOGLIK)
    assert "| made, 2 folds | **2.00** ± 1 |" in text and "another" not in text
    assert "| 0.50 ± 0.5 | 0.50 ± 0 |" in text
    assert text.splitlines()[-1].startswith("| *best on* | 1 | 0 |")


def test_differences_are_paired_by_fold(tmp_path):
    results = made(tmp_path, ours=[1.0, 5.0, 9.0], CatBoost=[0.5, 4.4, 8.6], before=[1.1, 5.1, 9.1])
    text = league_page.verdict(results, ["made"], league_page.LOGLIK)
    assert "| made | CatBoost | +0.5 (+8.7 se) | −0.1" in text
    assert "**1 of 1** tables" in text
    assert "two standard errors on made." in text
    mean, _, folds = league_page.difference(results, "CatBoost", "made", league_page.LOGLIK)
    assert (mean, folds) == (pytest.approx(0.5), 3)


def test_bde_s_split_is_standardised_on_its_training_rows(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    table = np.column_stack([rng.normal(3, 5, (50, 2)), rng.normal(-7, 2, 50)])
    np.savetxt(tmp_path / "airfoil.csv", table, delimiter=",", header="a,b,y")
    monkeypatch.setenv("MVENET_TABLES", str(tmp_path))
    [(fold, (X, y, X_new, y_new))] = league.splits("airfoil (BDE)")
    assert (fold, len(X), len(X_new)) == (0, 40, 10)
    np.testing.assert_allclose([X.mean(), X.std(), y.mean(), y.std()], [0, 1, 0, 1], atol=1e-9)
    assert abs(y_new.mean()) > 1e-6
    assert len(list(league.splits("airfoil"))) == 10
