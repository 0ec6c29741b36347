"""paper/relatives_torch.py: whose penalties are taken, what is scored, and that it goes on."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip(
    "mvenet.torch", reason="needs PyTorch and skorch: make test-torch", exc_type=ImportError
)
sys.path.insert(0, str(Path(__file__).parents[2] / "paper"))

import relatives_torch

from mvenet import datasets
from mvenet.datasets import Dataset

SHORT = {"epochs": 1, "warmup_epochs": 1}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Two folds of a small table, penalties chosen by the engine in all but one, short arms."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    data = Dataset(X, X[:, 0] + 0.1 * rng.normal(size=120), ("a", "b", "c"), "y", "yacht")
    monkeypatch.setattr(datasets, "load", lambda _: data)
    monkeypatch.setattr(relatives_torch, "n_folds", lambda _: 2)
    short = [replace(arm, make=partial(arm.make, **SHORT)) for arm in relatives_torch.ARMS]
    monkeypatch.setattr(relatives_torch, "ARMS", short)
    rows = [
        {"method": method, "strategy": "warmup", "regularization": kind, "fold": fold,
         "reg_mean": 0.1 * (fold + 1), "reg_var": 0.1 * (fold + 1) * (1 + (kind == "separate"))}
        for method in ("nll", "student-t") for kind in ("equal", "separate") for fold in (0, 1)
    ]  # fmt: skip
    pd.DataFrame(rows[:-1]).to_csv(tmp_path / "yacht.csv", index=False)
    return tmp_path


def run(folder, monkeypatch, *more):
    given = ["relatives_torch.py", "yacht", "--results", str(folder), *more]
    monkeypatch.setattr(sys, "argv", given)
    relatives_torch.main()
    return pd.read_csv(folder / "yacht_torch.csv")


def test_every_arm_takes_the_penalties_of_its_nearest_and_goes_on(folder, monkeypatch, capsys):
    assert len(run(folder, monkeypatch, "--methods", "skafte", "--penalties", "none")) == 2
    (folder / "yacht_torch.csv").unlink()
    rows = run(folder, monkeypatch, "--methods", "shared-trunk")
    assert list(rows["reg_mean"]) == list(rows["reg_var"]) == pytest.approx([0.1, 0.2])
    trained = []
    monkeypatch.setattr(
        relatives_torch, "trained", partial(watched, trained, relatives_torch.trained)
    )
    rows = run(folder, monkeypatch)
    assert "student-t, warmup, separate is not trained in fold 1" in capsys.readouterr().out
    assert len(rows) == 20 - 2 and "shared-trunk" not in trained
    tails = rows[(rows["method"] == "skafte")].iloc[0]
    assert (tails["reg_mean"], tails["reg_var"]) == pytest.approx((0.1, 0.2))
    assert tails["variant"] == "student-t"
    none = rows[rows["regularization"] == "none"]
    assert len(none) == 4 and (none[["reg_mean", "reg_var"]] == 0).all(axis=None)
    with_density = rows[rows["method"].isin(["shared-trunk", "student-t-learned", "skafte"])]
    assert np.isfinite(with_density[["loglik", "crps", "rmse", "interval_score"]]).all(axis=None)
    without = rows[rows["method"] == "quality-driven"]
    assert without[["loglik", "crps", "rmse"]].isna().all(axis=None)
    assert np.isfinite(without[["coverage", "width", "interval_score"]]).all(axis=None)
    trained.clear()
    assert run(folder, monkeypatch).equals(rows) and not trained


def test_the_tables_know_every_arm():
    import relatives_tables

    arms = {(arm.method, arm.regularization) for arm in relatives_torch.ARMS if arm.method != "nll"}
    known = {(method, kind) for method, kinds in relatives_tables.TORCH.items() for kind in kinds}
    assert arms == known


def watched(seen, trained, arm, *others):
    seen.append(arm.method)
    return trained(arm, *others)


def test_what_is_typed_wrongly_is_told(folder, monkeypatch, capsys):
    for given in (["iris"], ["yacht", "--methods", "nonsense"]):
        monkeypatch.setattr(sys, "argv", ["relatives_torch.py", *given])
        with pytest.raises(SystemExit):
            relatives_torch.main()
    told = capsys.readouterr().err
    assert "unknown data set 'iris'" in told and "invalid choice: 'nonsense'" in told
    monkeypatch.setattr(sys, "argv", ["relatives_torch.py", "energy", "--results", str(folder)])
    relatives_torch.main()
    assert "energy: paper/relatives.py has trained nothing there yet" in capsys.readouterr().out
