"""paper/relatives.py and its tables: what is compared, what is chosen, and how it is tested."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

sys.path.insert(0, str(Path(__file__).parents[2] / "paper"))

import relatives
import relatives_own
import relatives_sine
import relatives_tables
import relatives_toys
from measure import judged
from sklearn.model_selection import KFold

from mvenet import MVERegressorCV, datasets
from mvenet.datasets import Dataset


def test_every_arm_is_named_by_its_method_strategy_and_penalties():
    arms = {name: arm for make in relatives.GROUPS.values() for name, arm in make(300).items()}
    methods = {name.split(", ")[0] for name in arms}
    assert len(methods) >= 12
    for name, arm in arms.items():
        _, strategy, selection, *_ = name.split(", ", 3)
        assert arm.strategy == strategy
        assert getattr(arm, "selection", "fixed") == selection
    assert arms["crps, warmup, equal"].objective == "crps"
    assert arms["bootstrap, warmup, separate"].bootstrap
    assert arms["fixed-mean, warmup-fixed-mean, equal"].warmup_epochs > 200


def folds(arm, loglik, inner=0.0, variant=""):
    method, strategy, selection = arm
    row = {"dataset": "yacht", "method": method, "strategy": strategy, "variant": variant}
    row |= {"regularization": selection, "inner_score": inner, "coverage": 0.9}
    return pd.DataFrame(
        [row | {"fold": k, "loglik": v, "crps": -v, "rmse": -v} for k, v in enumerate(loglik)]
    )


def test_of_variants_the_inner_folds_choose():
    arm = ("hidden-var", "warmup", "equal")
    wide, narrow = folds(arm, [9.0, 9.0], 0.1, "(40, 20)"), folds(arm, [1.0, 1.0], 0.2, "()")
    narrow.loc[1, "inner_score"] = 0.0
    chosen = relatives.chosen(pd.concat([wide, narrow]))
    assert list(chosen["variant"]) == ["()", "(40, 20)"]
    assert list(chosen["loglik"]) == [1.0, 9.0]


def test_holm_by_hand():
    found = relatives_tables.holm([0.01, 0.04, 0.03, 0.005])
    assert found == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert relatives_tables.holm([0.6, 0.5]) == [1.0, 1.0]


def test_arms_are_tested_against_the_papers_advice_and_ranked():
    rng = np.random.default_rng(0)
    advice = rng.normal(size=10)
    worse = advice - 1 + 0.1 * rng.normal(size=10)
    same = advice + rng.normal(size=10)
    rows = pd.concat(
        [
            folds(relatives_tables.ADVICE, advice),
            folds(("crps", "warmup", "equal"), worse),
            folds(("natural", "no-warmup", "equal"), same),
            folds(("nll", "warmup", "equal"), advice[:4]),  # not finished: it takes no part
        ]
    )
    p = relatives_tables.p_values(relatives_tables.pivot(rows, "loglik"))
    one, other = stats.ttest_rel(worse, advice).pvalue, stats.ttest_rel(same, advice).pvalue
    assert p["crps", "warmup", "equal"] == pytest.approx(2 * one)
    assert p["natural", "no-warmup", "equal"] == pytest.approx(max(other, 2 * one))
    table = "\n".join(relatives_tables.scores(rows))
    assert table.count("▼") == 3 and "▲" not in table
    assert "| nll | warmup | equal" not in table
    ranked = relatives_tables.ranking(rows)
    assert len(ranked) == 2 + 3 and ranked[-1].startswith("| crps |")


@pytest.mark.filterwarnings("ignore")
def test_a_run_goes_on_and_writes_a_row_for_each_fold(tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    small = Dataset(X, X[:, 0] + rng.normal(size=40), ("a", "b"), "y", "yacht")
    monkeypatch.setattr(datasets, "load", lambda _: small)
    monkeypatch.setattr(relatives, "n_folds", lambda _: 2)
    quick = {"epochs": 2, "warmup_epochs": 2, "reg_mean": [0.1], "reg_var": [0.1, 1.0]}
    arms = relatives.searches("nll", ("warmup",), **quick | {"reg_mean": [0.1, 1.0]})
    monkeypatch.setattr(relatives, "GROUPS", {"nll": lambda _: arms})
    given = ["relatives.py", "yacht", "--runs", str(tmp_path / "runs"), "--results", str(tmp_path)]
    for extra in ([], ["--export"], []):
        monkeypatch.setattr(sys, "argv", given + extra)
        relatives.main()
    rows = pd.read_csv(tmp_path / "yacht.csv")
    assert len(rows) == 2 * 2
    assert set(rows["regularization"]) == {"equal", "separate"}
    assert np.isfinite(rows[["loglik", "crps", "rmse", "coverage", "inner_score"]]).all(axis=None)
    monkeypatch.setattr(sys, "argv", ["relatives.py", "iris"])
    with pytest.raises(SystemExit):
        relatives.main()
    assert "unknown data set 'iris'" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore")
def test_a_variance_network_has_rows_of_its_own(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = 5 + X[:, 0] + (0.1 + 0.5 * (X[:, 1] > 0)) * rng.normal(size=60)
    monkeypatch.setattr(relatives_own, "USUAL", relatives_own.USUAL | {"epochs": 30})
    model = relatives_own.OwnData([0.1, 1.0], [0.1, 1.0], KFold(3), seed=4).fit(X, y)
    usual = {**relatives_own.USUAL, "cv": KFold(3), "random_state": 4}
    plain = MVERegressorCV([0.1, 1.0], [0.0], hidden_var=None, **usual).fit(X, y)
    assert model.penalties[0] == plain.best_reg_mean_
    left = y - plain.oof_mean_  # each row by networks that have not seen it
    settings = {**usual, "hidden_mean": None, "strategy": "no-warmup"}
    expected = MVERegressorCV([0.0], [0.1, 1.0], **settings).fit(X, left)
    bias, std = expected.predict(X, return_std=True)
    dist = model.predict_dist(X)
    np.testing.assert_allclose(dist.std, std)
    np.testing.assert_allclose(dist.mean, plain.predict(X) + bias)
    small = Dataset(X, y, ("a", "b"), "y", "yacht")
    monkeypatch.setattr(datasets, "load", lambda _: small)
    monkeypatch.setattr(relatives_own, "n_folds", lambda _: 2)
    monkeypatch.setattr(relatives_own, "GRID", (0.1,))
    monkeypatch.setattr(sys, "argv", ["relatives_own.py", "yacht", "--results", str(tmp_path)])
    relatives_own.main()
    rows = pd.read_csv(tmp_path / "yacht_own.csv")
    assert list(rows["regularization"]) == ["equal"] * 2 + ["separate"] * 2
    assert np.isfinite(rows[["loglik", "crps", "rmse", "coverage"]]).all(axis=None)
    monkeypatch.setattr(relatives_own, "trained", None)  # what is there is not trained again
    relatives_own.main()
    monkeypatch.setattr(sys, "argv", ["relatives_own.py", "iris"])
    with pytest.raises(SystemExit):
        relatives_own.main()


def test_tables_say_whose_penalties_pytorchs_methods_have(tmp_path):
    engine = folds(relatives_tables.ADVICE, [0.0, 0.5, 1.0])
    trunk = folds(("shared-trunk", "warmup", "equal"), [1.0, 1.6, 2.1], variant="nll")
    quality = folds(("quality-driven", "warmup", "separate"), [np.nan] * 3, variant="nll")
    again = folds(relatives_tables.ADVICE, [np.nan] * 3, variant="nll")
    for rows, score in ((trunk, 2.0), (quality, 1.5), (again, 3.0)):
        rows["interval_score"], rows["width"] = score, 1.0
    engine.to_csv(tmp_path / "yacht.csv", index=False)
    pd.concat([again, trunk, quality]).to_csv(tmp_path / "yacht_torch.csv", index=False)
    found = relatives_tables.load(tmp_path)
    table = "\n".join(relatives_tables.scores(found))
    assert "| shared-trunk | warmup | equal, of nll | 1.57" in table
    assert table.count("| nll |") == 1 and "quality-driven" not in table
    scored = relatives_tables.intervals(found)
    assert [line.split(" | ")[0] for line in scored[2:-1]] == [
        "| quality-driven",
        "| shared-trunk",
        "| nll",
    ]
    assert relatives_tables.intervals(engine) == []
    told = relatives_tables.missing(found)
    assert told[0] == "- yacht: all of it but shared-trunk 3, quality-driven (separate) 3"
    assert told[1] == "- boston: all of it" and relatives_tables.finished(found) == []
    arms = {name for make in relatives.GROUPS.values() for name in make(300)}
    engine = [folds(tuple(arm.split(", ")[:3]), [0.0] * 10) for arm in arms]
    most = pd.concat([*engine, trunk.assign(regularization="equal, of nll")])
    assert relatives_tables.finished(most) == ["yacht"]
    told = relatives_tables.missing(most)[0]
    assert told.startswith("- yacht: own-data 10, shared-trunk 7, student-t-learned 10, skafte 10")


def test_claims_are_tested_together_and_in_units_that_can_be_read(monkeypatch):
    rng = np.random.default_rng(1)
    base = rng.normal(size=10) - 5
    plain, better = ("nll", "no-warmup", "equal"), ("beta-nll", "no-warmup", "equal")
    noise = 0.01 * rng.normal(size=10)
    rows = pd.concat([folds(plain, base), folds(better, 0.5 * base + noise)])
    found = relatives_tables.claims(rows)
    lines = {line.split(" | ")[0][2:]: line for line in found[2:]}
    assert len(lines) == len(relatives_tables.CLAIMS)
    assert lines["β-NLL: a better mean"].endswith("| RMSE, % | +50 ▲ |")
    gain = np.mean(0.5 * base + noise - base)
    assert lines["β-NLL: a likelihood no worse"].endswith(f"| log-likelihood | {gain:+.2f} ▲ |")
    assert lines["Five networks"].endswith("| log-likelihood |  |")
    # as many comparisons as there are: what is alone significant may not be among many
    p = [stats.ttest_rel(0.5 * base + noise, base).pvalue] * 2
    monkeypatch.setattr(relatives_tables, "LEVEL", relatives_tables.holm(p)[0] * 0.99)
    assert "▲" not in "\n".join(relatives_tables.claims(rows))


def test_the_overview_has_differences_and_means_of_what_is_complete():
    arm = ("crps", "warmup", "equal")
    one = pd.concat([folds(relatives_tables.ADVICE, [0.0, 1.0]), folds(arm, [0.5, 1.7])])
    two = folds(relatives_tables.ADVICE, [0.0, 1.0]).assign(dataset="boston")
    found = relatives_tables.overview(pd.concat([one, two]))
    assert found[0].endswith("| yacht | boston | mean | CRPS, % | RMSE, % | within 90 % |")
    assert found[2] == "| nll | warmup | separate | +0.00 | +0.00 | +0.00 | +0 | +0 | 90% |"
    assert found[3].startswith("| crps | warmup | equal | +0.60")
    assert found[3].endswith(" |  |  |  |  |  |")
    alone = relatives_tables.overview(one)
    assert alone[2].endswith(" | +0.60 | +120 | +120 | 90% |")  # scores of -1.1 beside -0.5


def test_hours_count_a_group_once():
    rows = pd.concat(
        [folds(relatives_tables.ADVICE, [0.0, 1.0]), folds(("ensemble", "a", "b"), [1.0, 2.0])]
    )
    rows["seconds"] = rows["fold"].map({0: 1800.0, 1: 3600.0})
    torch = folds(("skafte", "a", "b"), [0.0]).assign(seconds=7200.0)
    told = relatives_tables.hours(pd.concat([rows, torch]))
    assert "1.5 hours by the clock" in told and "2.0 hours of one core" in told


def test_curves_are_kept_and_not_trained_again(tmp_path, monkeypatch, capsys):
    plan = relatives_sine.Plan(seeds=range(2), sine_epochs=8, n_rows=20)
    x = np.linspace(0, 10, 5)
    truth = relatives_sine.Truth(x, np.sin(x), np.ones(5))
    monkeypatch.setattr(relatives_sine, "HAS_TORCH", False)
    first = relatives_sine.all_methods(plan, truth, tmp_path, 1)
    assert "quality-driven, short: left out" in capsys.readouterr().out
    monkeypatch.setattr(relatives_sine, "train", None)  # would fail
    again = relatives_sine.all_methods(plan, truth, tmp_path, 1)
    assert list(first) == list(again) and len(first) >= 16
    for name, fits in first.items():
        for fit, same in zip(fits, again[name], strict=True):
            np.testing.assert_array_equal(fit.mean, same.mean)
    np.savez(tmp_path / "quality-driven, short, 8.npz", curves=np.ones((2, 2, 5)))
    more = relatives_sine.all_methods(plan, truth, tmp_path, 1)
    assert len(more["quality-driven, short"]) == 2


def test_which_starts_of_the_toys_succeed():
    truth = relatives_toys.GREW
    flat = np.full_like(truth.mean, truth.mean.mean()), np.full_like(truth.std, truth.std.mean())
    for mean, std, count in ((truth.mean, truth.std, 1), (flat[0], truth.std, 0),
                             (truth.mean, flat[1], 0)):  # fmt: skip
        fit = judged("any", 0, 0.0, 0.0, mean, std, truth)
        assert relatives_toys.quadratic_learned([fit]) == count
    place = relatives_toys.deeper(3)
    sample = datasets.two_gaussians(random_state=3)
    quiet = sample.y[sample.X[:, 0] == 1]
    assert abs(place - quiet.mean()) < 0.02 < abs(place - sample.y[sample.X[:, 0] == 0].mean())
    one, other = (judged("any", 3, 0.0, 0.0, np.full(2, m), np.ones(2), truth_of_two()) for m in
                  (place, 2.0))  # fmt: skip
    assert relatives_toys.deeper_found([one, other]) == 1


def truth_of_two():
    return relatives_toys.Truth(np.array([0.0, 1.0]), np.array([2.0, 5.0]), np.array([0.5, 0.1]))
