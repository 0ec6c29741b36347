"""The README's Python runs, and its pictures and links exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.S)


@pytest.mark.parametrize("code", BLOCKS)
def test_code_blocks_run(code, capsys):
    exec(compile(code, "README.md", "exec"), {"__name__": "readme"})
    printed = capsys.readouterr().out
    assert float(re.search(r"coverage\s+([\d.]+)", printed)[1]) > 0.75


def test_there_is_an_example():
    assert BLOCKS


def test_links_lead_somewhere():
    targets = re.findall(r"\]\(([^)]+)\)", README)
    missing = [t for t in targets if not t.startswith("http") and not (ROOT / t).exists()]
    assert not missing
