"""paper/theory.py: the appendix holds, and a wrong formula would be found out."""

import importlib
from pathlib import Path

import numpy as np
import pytest

PAPER = Path(__file__).parents[2] / "paper"


@pytest.fixture
def theory(monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.syspath_prepend(str(PAPER))
    return importlib.import_module("theory")


def failed(checks):
    return [check.claim for check in checks if check.holds is False]


def test_quick_run_holds_and_draws(theory, tmp_path, capsys):
    assert theory.main(["--quick", "--output", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "13 of 13 claims hold" in printed
    assert "FAILS" not in printed
    pictures = sorted(path.name for path in tmp_path.iterdir())
    assert pictures == ["theory_gauss_markov.png", "theory_ridge.png"]
    assert all(5_000 < path.stat().st_size < 150_000 for path in tmp_path.iterdir())


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_claims_hold_whatever_the_seed(theory, seed):
    checks, _, _ = theory.check_all(2_000, seed)
    assert failed(checks) == []


WRONG = {
    "no p": lambda p, noise, beta: noise / (beta @ beta),
    "norm instead of its square": lambda p, noise, beta: p * noise / np.sqrt(beta @ beta),
    "standard deviation instead of variance": lambda p, noise, beta: (
        p * np.sqrt(noise) / (beta @ beta)
    ),
    "ten per cent too much": lambda p, noise, beta: 1.1 * p * noise / (beta @ beta),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_best_penalty_is_found_out(theory, name):
    checks, _, _ = theory.check_all(2_000, 0, WRONG[name])
    assert "λ of lowest MSE, mean" in failed(checks)
    assert "λ of lowest MSE, log-variance" in failed(checks)


def test_a_wrong_formula_ends_with_status_one(theory, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(theory, "best_penalty", WRONG["no p"])
    assert theory.main(["--quick", "--output", str(tmp_path)]) == 1
    assert "FAILS" in capsys.readouterr().out


def test_a_wrong_constant_of_the_log_residuals_is_found_out(theory, monkeypatch):
    monkeypatch.setattr(theory, "digamma", lambda x: -1.9)  # instead of -1.9635
    checks = theory.check_log_residuals(40_000, 0, (1.0,))
    assert failed(checks) == ["mean of log((y−μ)²), σ = 1"]


def test_equal_estimators_gain_nothing(theory):
    sample = theory.simulate_least_squares(2_000, 0)
    same = theory.LeastSquares(
        sample.beta, sample.general, sample.general, sample.cov_general, sample.cov_general
    )
    assert [c.holds for c in theory.check_least_squares(same, 0)] == [True, True, False, False]


def test_the_jackknife_error_is_that_of_repeated_simulations(theory):
    found = [theory.simulate_mean(1_000, seed).optimum() for seed in range(30)]
    optima, errors = np.array(found).T
    # Thirty repetitions know their own spread to about an eighth.
    assert np.std(optima, ddof=1) == pytest.approx(np.mean(errors), rel=0.35)


def test_the_simulated_minimum_is_the_minimum_of_the_mse(theory):
    model = theory.simulate_mean(2_000, 5, correlated=True)
    best, _ = model.optimum()
    at = [model.errors(best * factor).mean() for factor in (0.9, 1.0, 1.1)]
    assert at[1] < min(at[0], at[2])


@pytest.mark.parametrize(
    ("simulated", "words"), [(1.0, "needs XᵀX = I"), (0.51, "only 0.1 errors")]
)
def test_the_note_on_correlated_columns_follows_the_numbers(theory, simulated, words):
    assert words in theory.beyond(theory.Check("", 0.5, simulated, 0.1, None))
