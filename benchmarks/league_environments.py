"""The environments of the league's contestants, each made by one command.

    python benchmarks/league.py install NAME ...

Each is a folder .venv-peer-NAME beside the benchmarks. PyTorch always comes first and in one
release: what needs it would otherwise bring gigabytes for a GPU.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from league_methods import CHECKPOINT

ROOT = Path(__file__).parents[1]
TORCH = ("torch==2.13.0",)
# Each tuple is one call of pip.
PACKAGES: dict[str, tuple[tuple[str, ...], ...]] = {
    "tabpfn": (TORCH, ("tabpfn==2.2.1",)),
    "quantile-forest": (("quantile-forest==1.4.2",),),
    "pytabkit": (TORCH, ("pytabkit[models]==1.7.3",)),
    "treeffuser": (TORCH, ("treeffuser==0.2.0",)),
    # It asks for an older PyTorch, which comes with a GPU's libraries only, and works with this.
    "lightgbmlss": (
        TORCH,
        ("lightgbm==4.7.0", "pyro-ppl==1.9.2", "scikit-learn==1.7.2", "pandas", "tqdm"),
        ("--no-deps", "lightgbmlss==0.6.1"),
    ),
    "bde": (("sklearn-contrib-bde==1.0.2",),),
    "boosting": (("catboost==1.2.10", "ngboost==0.5.11", "xgboost==3.2.0", "scikit-learn==1.9.1"),),
}
CHECKPOINT_SOURCE = "tabpfn-time-series==0.1.3"  # its sdist has the official weights, Apache 2.0
CHECKPOINT_SHA256 = "e2d4a06eeb4521dee71fc68d819e277ffb97614cc3695dc9ac3030dd9da36c21"


def python_of(environment: str, given: str | None = None) -> Path:
    """The Python of an environment; mvenet's is the one that runs this."""
    if environment == "mvenet":
        return Path(given or sys.executable)
    return ROOT / f".venv-peer-{environment}" / "bin" / "python"


def missing(environment: str, given: str | None = None) -> str:
    """One sentence that says what is missing, and the command that brings it; empty if nothing."""
    python = python_of(environment, given)
    if not python.is_file():
        command = "make .venv/.installed"
        if environment != "mvenet":
            command = f"python benchmarks/league.py install {environment}"
        return f"The environment {str(python.parents[1])!r} is missing: run {command}."
    if environment == "tabpfn" and not (python.parents[1] / CHECKPOINT).is_file():
        return f"{CHECKPOINT} is missing: run python benchmarks/league.py install tabpfn."
    return ""


def install(environment: str) -> None:
    """Make an environment, or finish one that was begun."""
    folder = ROOT / f".venv-peer-{environment}"
    python = folder / "bin" / "python"
    if not python.is_file():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    for packages in PACKAGES[environment]:
        subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
    if environment == "tabpfn":
        fetch_checkpoint(python, folder / CHECKPOINT)


def fetch_checkpoint(python: Path, target: Path) -> None:
    """Take the weights out of the source distribution that has them."""
    if target.is_file() and _digest(target) == CHECKPOINT_SHA256:
        return
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        options = ("--quiet", "--no-deps", "--no-binary", ":all:", "--dest", folder)
        subprocess.run([python, "-m", "pip", "download", *options, CHECKPOINT_SOURCE], check=True)
        [archive] = Path(folder).glob("*.tar.gz")
        part = Path(folder) / CHECKPOINT
        with tarfile.open(archive) as tar:
            [member] = [m for m in tar.getmembers() if m.name.endswith("/" + CHECKPOINT)]
            with tar.extractfile(member) as source, part.open("wb") as copy:  # type: ignore[union-attr]
                shutil.copyfileobj(source, copy)
        if _digest(part) != CHECKPOINT_SHA256:
            raise SystemExit(
                f"{CHECKPOINT} from {CHECKPOINT_SOURCE} is not the one that was measured: its "
                f"SHA-256 is {_digest(part)} instead of {CHECKPOINT_SHA256}."
            )
        os.replace(part, target)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
