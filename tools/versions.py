"""Test with other Pythons, and with the oldest and the newest dependencies that are allowed.

    python tools/versions.py [--tests PATH ...] [PYTHON ...]

Each Python is tried with the newest of all dependencies; the first of them that can also with the
oldest that pyproject.toml allows. What cannot be installed is told, and the others go on; a test
that fails makes this fail in the end.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = (
    "regressor",
    "search",
    "search_scores",
    "search_folds",
    "search_units",
    "search_bad_input",
    "plan",
    "persistence",
    "hostile_files",
    "calibration",
    "comparison",
    "table",
    "drift",
    "cli",
)
EXTRAS = "cli,plot,report,persist"
# Beside NumPy 1.26: newer ones want NumPy 2, and pip does not know.
OF_THAT_AGE = ("pandas==2.2.*", "pyarrow==17.*")
NEEDS = ("pytest>=8", "pytest-timeout", "pytest-xdist", "hypothesis", "polars", "pandas", "pyarrow")


def oldest() -> list[str]:
    """The lowest version of each dependency and extra that pyproject.toml names, as constraints."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = list(project["dependencies"])
    for extra in EXTRAS.split(","):
        named += project["optional-dependencies"][extra]
    found = (re.fullmatch(r"([\w-]+)>=([\d.]+)", name) for name in named)
    return sorted({f"{m[1]}=={m[2]}.*" for m in found if m}) + list(OF_THAT_AGE)


def attempt(python: str, constraints: list[str], tests: list[str]) -> tuple[bool, str]:
    """Install into a new environment and test; whether a test failed, and what came of it."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "constraints.txt").write_text("\n".join(constraints) + "\n")
        made = subprocess.run(
            [python, "-m", "venv", place / "venv"], capture_output=True, text=True, check=False
        )
        if made.returncode:  # a name that pyenv knows and has no Python for, say
            return False, f"cannot be run: {(made.stderr.splitlines() or ['?'])[0]}"
        inside = place / "venv" / "bin" / "python"
        install = [inside, "-m", "pip", "install", "--quiet", "--only-binary=:all:"]
        install += ["--no-binary=mvenet", "-c", place / "constraints.txt", f"{ROOT}[{EXTRAS}]"]
        done = subprocess.run([*install, *NEEDS], capture_output=True, text=True, check=False)
        if done.returncode:
            reason = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
            return False, f"cannot be installed: {(reason or ['?'])[-1]}"
        command = [inside, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", *tests]
        # Old releases use what newer ones warn of, and warn of files that newer ones wrote.
        command += ["-o", "filterwarnings=default"] if constraints else []
        wide = {**os.environ, "COLUMNS": "200", "OMP_NUM_THREADS": "1"}  # room for the reasons
        done = subprocess.run(
            command, cwd=ROOT, env=wide, capture_output=True, text=True, check=False
        )
        lines = done.stdout.splitlines()
        failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))][:10]
        told = "\n    ".join([*(lines or ["no tests ran"])[-1:], *failed])
        return done.returncode != 0, told


def main() -> None:
    """Try them one by one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pythons", nargs="*", default=[sys.executable])
    parser.add_argument(
        "--tests",
        nargs="*",
        default=[str(p) for name in TESTS for p in Path("tests").glob(f"*/test_{name}.py")],
    )
    options = parser.parse_args()
    failed = False
    for number, python in enumerate(options.pythons):
        for name in ("newest", "oldest")[: 1 if number else 2]:
            constraints = oldest() if name == "oldest" else []
            wrong, told = attempt(python, constraints, options.tests)
            print(f"{python}, {name}: {told}", flush=True)
            failed |= wrong
    sys.exit(failed)


if __name__ == "__main__":
    main()
