"""Why cells differ from the paper's: the studies' networks, their numbers, the page."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import KFold

from mvenet import MVERegressorCV, datasets, recipes
from mvenet.distributions import Normal

PAPER = Path(__file__).parents[1] / "paper"
sys.path.insert(0, str(PAPER))
pd = pytest.importorskip("pandas")
explain = pytest.importorskip("explain")
explained = pytest.importorskip("explained")


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
    np.testing.assert_array_equal(networks.parameters, search.networks_.parameters)


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


def test_the_page_shows_what_was_committed():
    page = (PAPER / "README.md").read_text()
    shown = page.partition("<!-- explained -->\n")[2].partition("\n<!-- end -->")[0]
    assert shown == explained.report(explain.FOLDER), "run `make paper-explain`"
