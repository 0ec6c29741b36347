"""The examples of own networks run in a short form and print their tables."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip(
    "mvenet.torch", reason="needs PyTorch and skorch: make test-torch", exc_type=ImportError
)

EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "own_network").glob("*.py"))
SHOWN = {
    "digits": ["no-warmup  equal", "warmup     separate"],
    "dropout": ["2 × concrete dropout", "epistemic share"],
    "sequence": ["covered by 90 % intervals"],
    "sine": ["shared trunk", "two networks"],
}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_short_form(path, tmp_path):
    environment = {**os.environ, "MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(path), "--quick"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for text in SHOWN[path.stem]:
        assert text in done.stdout


def test_they_are_all_here():
    assert {path.stem for path in EXAMPLES} == set(SHOWN)
