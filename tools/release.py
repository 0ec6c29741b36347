"""What must hold before a version is tagged, as far as no other target of the Makefile asks for it.

    python tools/release.py before       the tree and the metadata
    python tools/release.py after dist   what was built

``make release-check`` runs both, with tests, site and wheels between them.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
ADDRESSES = ("Source", "Documentation", "Changelog")
SHIPPED = re.compile(r"mvenet/.*|mvenet-.*\.dist-info/.*|mvenet\.libs/.*")


def text(name: str) -> str:
    """A file of the repository."""
    return (ROOT / name).read_text("utf-8")


def version() -> str:
    """The version, from the one place where it stands."""
    return re.search(r'^__version__ = "(.+)"$', text("src/mvenet/__init__.py"), re.M)[1]


def before() -> list[str]:
    """Complaints about the tree and the metadata."""
    found = []
    if subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, capture_output=True).stdout:
        found.append("the tree is not clean: commit, or remove what does not belong there")
    return [*found, *metadata()]


def metadata() -> list[str]:
    """Complaints about what stands in pyproject.toml, CITATION.cff and CHANGELOG.md."""
    project = tomllib.loads(text("pyproject.toml"))["project"]
    found = [
        f"pyproject.toml has no {key}" for key in ("description", "keywords") if not project[key]
    ]
    if "version" not in project.get("dynamic", ()):
        found.append("pyproject.toml repeats the version: it stands in src/mvenet/__init__.py")
    if f"\nversion: {version()}\n" not in text("CITATION.cff"):
        found.append(f"CITATION.cff has another version than {version()}")
    if not re.search(
        rf"^## \[{re.escape(version())}\] - \d{{4}}-\d\d-\d\d$", text("CHANGELOG.md"), re.M
    ):
        found.append(f"CHANGELOG.md has no dated section [{version()}]")
    oldest = project["requires-python"].removeprefix(">=")
    if f"Programming Language :: Python :: {oldest}" not in project["classifiers"]:
        found.append(f"no classifier for Python {oldest}")
    return found


def for_the_publisher() -> list[str]:
    """What nobody can do without an account or a public address; told, not asked for."""
    urls = tomllib.loads(text("pyproject.toml"))["project"]["urls"]
    return [f"[project.urls] has no {name}: the repository has no public address yet"
            for name in ADDRESSES if name not in urls]  # fmt: skip


def after(folder: Path) -> list[str]:
    """Complaints about wheels and sdist."""
    built = [*sorted(folder.glob("*.whl")), *sorted(folder.glob("*.tar.gz"))]
    if not any(path.suffix == ".whl" for path in built) or built[-1].suffix == ".whl":
        return [f"{folder} must hold wheels and an sdist, and holds {[p.name for p in built]}"]
    found = []
    for path in built:
        names = contents(path)
        if not any(name.endswith("/LICENSE") for name in names):
            found.append(f"{path.name} has no LICENSE")
        if version() not in path.name:
            found.append(f"{path.name} is not of version {version()}")
        if path.suffix == ".whl":
            others = [name for name in names if not SHIPPED.fullmatch(name)]
            libraries = [name for name in names if name.startswith("mvenet.libs/")]
            found += [
                f"{path.name} ships {name}, whose licence must go with it" for name in libraries
            ]
            found += [f"{path.name} puts {name} outside of the package" for name in others]
            found += [f"{path.name}: {name} has no licence beside it" for name in unlicensed(names)]
    return [*found, *twine(built)]


def unlicensed(names: list[str]) -> list[str]:
    """Tables of others without a page of the same name that says whose they are."""
    tables = [name for name in names if name.endswith((".csv", ".parquet"))]
    return [name for name in tables if f"{name.rpartition('.')[0]}.md" not in names]


def contents(path: Path) -> list[str]:
    """Names of the files in a wheel or an sdist."""
    if path.suffix == ".whl":
        return zipfile.ZipFile(path).namelist()
    with tarfile.open(path) as archive:
        return archive.getnames()


def twine(built: list[Path]) -> list[str]:
    """What PyPI would complain about."""
    with tempfile.TemporaryDirectory() as folder:
        python = Path(folder) / "bin" / "python"
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "twine"], check=True)
        check = [python, "-m", "twine", "check", "--strict", *built]
        done = subprocess.run(check, capture_output=True, text=True)
    return [f"twine check: {done.stdout}{done.stderr}"] if done.returncode else []


if __name__ == "__main__":
    complaints = before() if sys.argv[1] == "before" else after(Path(sys.argv[2]))
    print(*complaints, sep="\n") if complaints else print(
        f"{sys.argv[1]}: all holds for {version()}"
    )
    if sys.argv[1] == "after":
        print(*(f"for whoever publishes: {what}" for what in for_the_publisher()), sep="\n")
    sys.exit(bool(complaints))
