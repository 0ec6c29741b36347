"""Benchmarks that look into the library run: what they look at moves."""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl

from mvenet import MVERegressor

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import command
import profile_search


def test_the_profile_tells_the_steps_of_a_search_and_their_sum():
    lines = profile_search.profile("60x3", "low", 1, 1).splitlines()
    steps = [line[:28].strip() for line in lines[1:]]
    for step in ("joint networks", "means, tier 0", "linear, trees, process", "blend and mixture"):
        assert step in steps
    counts = [int(line[64:].replace(",", "").strip() or 0) for line in lines[1:]]
    assert steps[-1] == "total" and counts[-1] == sum(counts[:-1]) > 0


def test_the_command_s_prediction_is_timed_step_by_step(tmp_path):
    small, model, out = tmp_path / "small.csv", tmp_path / "model.mve", tmp_path / "out.csv"
    rows = command.table(80, 3)
    rows.write_csv(small)
    MVERegressor(epochs=2, random_state=0).fit(rows.drop("y"), rows["y"]).save(model)
    took = command.stages(model, small, out)
    assert {"read", "encode", "networks", "distances", "write"} <= set(took)
    with_mean = pl.read_csv(out)
    assert with_mean.columns == ["x0", "x1", "x2", "y", "mean", "std"] and len(with_mean) == 80
