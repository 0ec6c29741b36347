"""Benchmarks that look into the library run: what they look at moves."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import profile_search


def test_the_profile_tells_the_steps_of_a_search_and_their_sum():
    lines = profile_search.profile("60x3", "low", 1, 1).splitlines()
    steps = [line[:28].strip() for line in lines[1:]]
    for step in ("joint networks", "means, tier 0", "linear, trees, process", "blend and mixture"):
        assert step in steps
    counts = [int(line[64:].replace(",", "").strip() or 0) for line in lines[1:]]
    assert steps[-1] == "total" and counts[-1] == sum(counts[:-1]) > 0
