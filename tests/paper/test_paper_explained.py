"""Why cells differ from the paper's: the studies' networks, their numbers, the page."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import KFold

from mvenet import MVERegressorCV, datasets, recipes
from mvenet.distributions import Normal

PAPER = Path(__file__).parents[2] / "paper"
sys.path.insert(0, str(PAPER))
pd = pytest.importorskip("pandas")
pytest.importorskip("matplotlib")
explain = pytest.importorskip("explain")
explained = pytest.importorskip("explained")
plain = pytest.importorskip("plain")
readings = pytest.importorskip("readings")


def test_a_studys_network_is_the_one_that_the_tables_would_have_had():
    data = datasets.quadratic(60, random_state=0)
    paper = {**recipes.PAPER, "strategy": "warmup", "epochs": 2, "warmup_epochs": 2}
    search = MVERegressorCV(
        **paper,
        reg_mean=[1e-3], reg_var=[1e-2], cv=KFold(3), final="refit", scale=False, n_members=1,
        random_state=explain.fold_seed(1, 4),
    ).fit(data.X, data.y)  # fmt: skip
    seed = explain.fleet.derived_seed(explain.fold_seed(1, 4), 3, 0)
    job = (np.arange(60), (1e-3, 1e-2), seed)
    networks = explain.train(data, "warmup", [job], 2)
    np.testing.assert_array_equal(networks.parameters, search.model_.networks.parameters)


def test_the_numbers_of_a_part_belong_together():
    rng = np.random.default_rng(0)
    y, mean, std = rng.normal(size=50), rng.normal(size=50), rng.uniform(0.01, 1, 50)
    numbers = explained.judge(y, Normal(mean, std), spread=1.0)
    part = dict(zip(explained.PART_COLUMNS[len(explained.PLACE) :], numbers, strict=True))
    rows = Normal(mean, std).logpdf(y)
    constant = 0.5 * np.log(2 * np.pi)
    assert part["loglik"] == pytest.approx(-constant - part["log_std"] - part["z2"] / 2)
    assert part["without_worst"] == pytest.approx(np.sort(rows)[1:].mean())
    assert part["floor_0.2"] == pytest.approx(Normal(mean, np.maximum(std, 0.2)).logpdf(y).mean())


def test_a_rule_chooses_by_its_own_score():
    place = ("wine_red", "warmup", 4)
    bad, good = (Normal(np.full(3, m), np.full(3, s)) for m, s in ((0.0, 0.01), (0.5, 0.7)))
    lines = [
        (*place, penalty, penalty, part, *explained.judge(np.array([0.0, 0.0, 1.0]), dist, 1.0))
        for penalty, dist in ((1e-3, bad), (1e-2, good))
        for part in ("0", "outer")
    ]
    table = explained.criteria(pd.DataFrame(lines, columns=explained.PART_COLUMNS))
    chosen = {name: scores["inner"].idxmax()[0] for name, scores in table.items()}
    assert chosen["log-likelihood (the paper's rule)"] == 1e-2
    assert chosen["the same without the worst row of each inner fold"] == 1e-3
    assert chosen["CRPS"] == 1e-2


def test_plain_gradients_are_those_of_finite_differences():
    rng = np.random.default_rng(0)
    reading = plain.Plain(hidden=(4, 3), start="pytorch")
    network = [p.astype(float) for p in plain._start(reading, 1.0, 1, rng)]
    x, weight = rng.normal(size=(1, 5)), rng.normal(size=(1, 5, 1))
    layers = plain._forward(network, x)
    for p, gradient in zip(network, plain._backward(network, layers, weight), strict=True):
        for at in np.ndindex(p.shape):
            values = []
            for step in (1e-6, -1e-6):
                p[at] += step
                values.append((plain._forward(network, x)[-1] * weight).sum())
                p[at] -= step
            assert (values[0] - values[1]) / 2e-6 == pytest.approx(gradient[at], abs=1e-6)


@pytest.mark.parametrize("optimiser", ["adam", "adamw", "sgd"])
def test_plain_networks_learn_a_line_and_a_penalty_shrinks_it(optimiser):
    x = np.linspace(-1, 1, 64)
    y = 2 * x + 0.1 * np.random.default_rng(0).normal(size=64)
    reading = plain.Plain(optimiser=optimiser, learning_rate=1e-2, epochs=100, hidden=(8,))
    both, penalties = np.tile([x, y], (2, 1, 1)), np.array([[0, 0], [10.0, 0]])
    mean, std = plain.train(reading, both[:, 0], both[:, 1], x, penalties, 0)
    assert np.abs(mean[0] - 2 * x).mean() < 0.2 and (std > 0).all()
    assert np.ptp(mean[1]) < 0.7 * np.ptp(mean[0])


def test_a_reading_counts_its_pictures():
    truth = readings.TRUTH

    def fit(mean, std):
        return readings.judged("", 0, 0.1, 0.1, mean, std, truth)

    flat = np.full_like(truth.mean, truth.mean.mean())
    even = np.full_like(truth.std, truth.std.mean())
    fits = [
        [fit(truth.mean, even)],
        [fit(truth.mean, truth.std)],
        [fit(0.7 * truth.mean, truth.std)],
        [fit(flat, truth.std)],
    ]
    told = readings.line(readings.READINGS[0], fits)
    assert [told[f"picture_{i}"] for i in (1, 2, 3, 4)] == [1, 1, 1, 1] and told["all_four"] == 1
    told = readings.line(readings.READINGS[0], [fits[3], fits[0], fits[1], fits[2]])
    assert [told[f"picture_{i}"] for i in (1, 2, 3, 4)] == [0, 0, 0, 0]


def test_the_page_shows_what_was_committed():
    page = (PAPER / "README.md").read_text()
    for name, text in {
        "explained": explained.report(explain.FOLDER),
        "readings": readings.table(readings.CSV),
    }.items():
        shown = page.partition(f"<!-- {name} -->\n")[2].partition("\n<!-- end -->")[0]
        assert shown == text, f"run `make paper-explain` ({name})"
