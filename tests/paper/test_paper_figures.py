"""paper/figures.py: a quick run writes everything, and verdicts follow the numbers."""

import importlib
import json
from pathlib import Path

import numpy as np
import pytest

PAPER = Path(__file__).parents[2] / "paper"
FIGURES = ["architectures", "local_minima", "quadratic", "sine", "sine_separate", "sine_warmup"]


@pytest.fixture
def load(monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.syspath_prepend(str(PAPER))
    return importlib.import_module


@pytest.fixture
def verdicts(load):
    return load("verdicts")


@pytest.fixture
def fits(load):
    """Networks with given errors of the mean, and of the std if it matters."""
    measure = load("measure")
    nothing = np.zeros(1)

    def make(errors, stds=None, calibration=1.0, unevenness=0.0):
        stds = stds or [0.0] * len(errors)
        return [
            measure.Fit("", seed, 0.0, 0.0, nothing, nothing, mean, std, calibration, unevenness)
            for seed, (mean, std) in enumerate(zip(errors, stds, strict=True))
        ]

    return make


@pytest.mark.slow
def test_a_quick_run_writes_every_figure_and_its_numbers(load, tmp_path, capsys):
    figures = load("figures")
    assert figures.main(["--quick", "--output", str(tmp_path), "--jobs", "1"]) == 0
    printed = capsys.readouterr().out
    for name in FIGURES:
        path = tmp_path / f"{name}.png"
        assert f"{name}.png" in printed
        assert path.read_bytes().startswith(b"\x89PNG")
        assert 5_000 < path.stat().st_size < 150_000
    kept = json.loads((tmp_path / "figures.json").read_text(encoding="utf-8"))
    assert sorted({row["figure"] for row in kept["rows"]}) == FIGURES
    assert sorted({verdict["figure"] for verdict in kept["verdicts"]}) == FIGURES
    keys = [(row["figure"], row["setting"], row["seed"]) for row in kept["rows"]]
    assert len(set(keys)) == len(keys)
    assert {seed for _, _, seed in keys} == {0, 1}


def test_every_sine_network_differs_only_in_what_it_is_to_show(load):
    figures = load("figures")
    settings = figures.sine_settings(figures.Plan())
    assert len(settings) == 17
    assert settings["equal 0"]["epochs"] == settings["squared error"]["warmup_epochs"]
    same = set(figures.SINE) - {"epochs", "warmup_epochs", "strategy", "hidden_var"}
    for name, setting in settings.items():
        if "tables" not in name:
            assert {key: setting[key] for key in same} == {key: figures.SINE[key] for key in same}
    assert all(s["reg_mean"] == s["reg_var"] for n, s in settings.items() if n.startswith("equal"))
    assert all(s["reg_mean"] < s["reg_var"] for n, s in settings.items() if n.startswith("sep"))


@pytest.mark.parametrize(
    ("errors", "works", "fails"),
    [
        ([0.01, 0.01, 0.01], "holds", "CONTRADICTED"),
        ([0.01, 0.01, 0.3], "holds in part", "CONTRADICTED"),
        ([0.01, 0.3, 0.3], "CONTRADICTED", "holds in part"),
        ([0.3, 0.3, 0.3], "CONTRADICTED", "holds"),
        ([np.inf, 0.3, 0.3], "CONTRADICTED", "holds"),
    ],
)
def test_verdicts_count_the_seeds_that_learned(verdicts, fits, errors, works, fails):
    assert verdicts.works("", fits(errors), 0.05).outcome == works
    assert verdicts.fails("", fits(errors), 0.05).outcome == fails


def test_a_grid_is_judged_by_its_best_setting(verdicts, fits):
    groups = {"weak": fits([0.3, 0.3]), "strong": fits([0.01, 0.02])}
    assert verdicts.none_works("", groups, 0.05).outcome == "CONTRADICTED"
    assert verdicts.one_works("", groups, 0.05).outcome == "holds"
    assert "strong" in verdicts.one_works("", groups, 0.05).evidence
    groups.pop("strong")
    assert verdicts.none_works("", groups, 0.05).outcome == "holds"
    assert verdicts.one_works("", groups, 0.05).outcome == "CONTRADICTED"


def test_a_note_says_what_most_seeds_did(verdicts, fits):
    assert "does learn" in verdicts.noted("it", fits([0.01, 0.01, 0.3]), 0.05).claim
    assert "does not learn" in verdicts.noted("it", fits([0.3, 0.3]), 0.05).claim


@pytest.mark.parametrize(
    ("unevenness", "calibration", "outcome"),
    [(0.3, 1.1, "holds"), (0.0, 1.1, "CONTRADICTED"), (0.3, 5.0, "holds in part")],
)
def test_a_std_overfits_if_it_wavers(verdicts, fits, unevenness, calibration, outcome):
    made = fits([0.01], calibration=calibration, unevenness=unevenness)
    assert verdicts.overfits("", made).outcome == outcome


def test_a_mean_learned_with_a_worthless_std_is_told(verdicts, fits):
    assert "std" not in verdicts.fails("", fits([0.01, 0.3]), 0.05).evidence
    blind = fits([0.01, 0.3], calibration=60.0)
    assert "in 1 of them the std is less than half" in verdicts.fails("", blind, 0.05).evidence


def test_a_second_stage_that_undoes_the_first_is_told(verdicts, fits):
    before, after = fits([0.01, 0.01, 0.3]), fits([0.01, 0.2, 0.3])
    assert "in 1 of 2 seeds" in verdicts.undone(before, after, 0.05).evidence


def test_the_parabola_as_the_paper_has_it_holds_and_upside_down_does_not(verdicts, fits):
    flat, n = (0.298, 0.06), 3
    panels = [
        fits([0.05] * n, [0.06] * n),
        fits([0.03] * n, [0.01] * n),
        fits([0.2] * n, [0.1] * n),
        fits([0.3] * n, [0.3] * n),
    ]
    assert {v.outcome for v in verdicts.quadratic(panels, *flat, "")} == {"holds"}
    turned = [panels[1], panels[0], panels[1], panels[1]]
    assert {v.outcome for v in verdicts.quadratic(turned, *flat, "")} == {"CONTRADICTED"}


def test_local_minima_are_all_found_and_refined(load):
    figures = load("figures")
    grid = np.linspace(0, 7, 200)
    found = figures.minima_of(lambda x: (x - 2.03) ** 2 * (x - 5.01) ** 2, grid)
    assert found == pytest.approx([2.03, 5.01], abs=1e-4)


@pytest.mark.parametrize(
    ("found", "outcome"),
    [
        ([[2.08, 4.99], [5.0, 2.1]], "holds"),
        ([[2.08, 4.99], [2.1, 4.98], [5.0]], "holds in part"),
        ([[2.08, 4.8], [3.5]], "CONTRADICTED"),
        ([[2.0, 3.5, 5.0]], "CONTRADICTED"),
    ],
)
def test_minima_elsewhere_or_too_many_are_told(verdicts, found, outcome):
    assert verdicts.minima("", found).outcome == outcome


def test_the_profile_is_the_likelihood_at_the_best_variances(load):
    figures = load("figures")
    rng = np.random.default_rng(0)
    groups = rng.normal(2, 0.5, 100), rng.normal(5, 0.1, 100)
    at = figures.profile(2.1, groups)

    def loss(factor):
        total = 0.0
        for y in groups:
            variance = factor * np.mean((y - 2.1) ** 2)
            total += np.sum(0.5 * np.log(variance) + 0.5 * (y - 2.1) ** 2 / variance)
        return total

    assert at == pytest.approx(loss(1.0))
    assert at < min(loss(0.9), loss(1.1))


def test_a_mean_that_moves_with_the_variance_is_told(verdicts):
    assert verdicts.untouched("", [0.0, 0.0]).outcome == "holds"
    assert verdicts.untouched("", [0.0, 1e-9]).outcome == "CONTRADICTED"


def test_a_diverged_network_counts_as_not_learned(load, verdicts):
    measure = load("measure")
    x = np.linspace(0, 1, 5)
    truth = measure.Truth(x, x, np.ones(5))
    lost = measure.judged("", 0, 0.0, 0.0, *np.full((2, 5), np.inf), truth)
    assert lost.rmse_mean == np.inf
    assert lost.row("sine")["rmse_mean"] is None
    assert verdicts.works("", [lost], 0.05).outcome == "CONTRADICTED"


def test_errors_are_those_against_the_truth(load):
    measure = load("measure")
    x = np.linspace(0, 1, 5)
    truth = measure.Truth(x, np.zeros(5), np.full(5, 0.3))
    fit = measure.judged("", 0, 0.0, 0.0, np.full(5, 0.4), np.full(5, 0.25), truth)
    assert fit.rmse_mean == pytest.approx(0.4)
    assert fit.rmse_std == pytest.approx(0.05)
    assert fit.calibration == pytest.approx(0.5 / 0.25)
    assert fit.unevenness == pytest.approx(0.0)


def test_the_typical_fit_is_the_median_one(load, fits):
    measure = load("measure")
    assert measure.typical(fits([0.3, 0.1, 0.2])).rmse_mean == 0.2
    assert measure.typical(fits([0.4, 0.3, 0.1, np.inf])).rmse_mean == 0.3
