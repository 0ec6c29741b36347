"""The gallery: each of examples/*.py is run and becomes a page with text, picture, code, output.

An example begins with a docstring: its title, what it shows, and as the last paragraph
``Picture: ...``, for those who cannot see it. It saves its picture as ``NAME.png``. What was made
is kept in build/gallery and made again only if the example or the library has changed (with
``GALLERY=kept`` not even then: for whoever writes text).
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"

# Chapters of the gallery, in the order of its front page.
CHAPTERS = {
    "First steps": (
        "first_model",
        "flats_as_they_are",
        "table_of_cars",
        "noise_that_differs",
    ),
    "Intervals that hold": (
        "calibrated_intervals",
        "new_patients",
        "next_year",
        "two_kinds_of_uncertainty",
        "with_mapie",
    ),
    "Shapes": ("two_modes", "counts", "bounded_shares"),
    "Several targets, reasons, decisions": (
        "two_targets",
        "reasons",
        "newsvendor",
        "measure_next",
    ),
    "Files and serving": ("from_file_to_onnx",),
    "The paper": ("sine_warmup", "both_penalties", "compare_strategies"),
}
# Folders of examples that need more than the tests do: shown, not run.
SHOWN = {
    "own_network": ("Networks of your own", "These need PyTorch."),
    "serving": ("Serving elsewhere", "Needs MLflow; run by hand with mlflow-skinny 3.17."),
}


@dataclass(frozen=True)
class Example:
    """What an example says and shows."""

    title: str
    text: str
    alt: str
    code: str

    @classmethod
    def read(cls, path: Path) -> Example:
        """Take a script apart into docstring and code."""
        source = path.read_text("utf-8")
        whole = ast.get_docstring(ast.parse(source)) or ""
        title, _, text = whole.partition("\n")
        text, _, alt = text.partition("Picture: ")
        code = source.split('"""', 2)[2].lstrip()
        return cls(title.rstrip("."), text.strip(), " ".join(alt.split()), code)


@dataclass(frozen=True)
class Outcome:
    """What an example has printed and drawn."""

    printed: str
    picture: bytes
    report: str = ""  # a page of its own, if the example writes one


def stems() -> list[str]:
    """Names of the examples, those that are only shown included."""
    paths = [*EXAMPLES.glob("*.py")]
    for folder in SHOWN:
        paths += (EXAMPLES / folder).glob("*.py")
    return sorted(path.relative_to(EXAMPLES).with_suffix("").as_posix() for path in paths)


def pages(cache_folder: Path) -> dict[str, str | bytes]:
    """Pages and pictures of the gallery by their place on the site."""
    cache_folder.mkdir(parents=True, exist_ok=True)
    listed = [stem for chapter in CHAPTERS.values() for stem in chapter]
    ours = [stem for stem in stems() if "/" not in stem]
    if sorted(listed) != ours:
        raise ValueError(f"gallery.CHAPTERS and examples/ differ: {set(listed) ^ set(ours)}")
    with ThreadPoolExecutor(2) as pool:
        outcomes = dict(zip(listed, pool.map(lambda s: made(s, cache_folder), listed), strict=True))
    found: dict[str, str | bytes] = {}
    for stem, outcome in outcomes.items():
        found[f"gallery/{stem}.png"] = outcome.picture
        found[f"gallery/{stem}.md"] = _page(stem, outcome.printed)
        if outcome.report:
            found[f"gallery/report-{stem}.html"] = outcome.report
    for stem in stems():
        if "/" in stem:
            found[f"gallery/{stem}.md"] = _page(stem, None)
    found["gallery/index.md"] = _front()
    return found


def made(stem: str, folder: Path) -> Outcome:
    """Run an example, or take what it made before if nothing has changed."""
    path = EXAMPLES / f"{stem}.py"
    key = hashlib.sha256(path.read_bytes() + _library()).hexdigest()
    kept, picture = folder / f"{stem}.json", folder / f"{stem}.png"
    if kept.exists() and picture.exists():
        known = json.loads(kept.read_text("utf-8"))
        if known["key"] == key or os.environ.get("GALLERY") == "kept":
            return Outcome(known["printed"], picture.read_bytes(), known.get("report", ""))
    outcome = run(path)
    picture.write_bytes(outcome.picture)
    told = {"key": key, "printed": outcome.printed, "report": outcome.report}
    kept.write_text(json.dumps(told), "utf-8")
    return outcome


def run(path: Path) -> Outcome:
    """Run an example in an empty folder; what it prints, and its picture."""
    settings = {
        **os.environ,
        "MPLBACKEND": "agg",
        "OMP_NUM_THREADS": "1",
        "PYTHONWARNINGS": "error",
    }
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, str(path)], cwd=folder, env=settings, capture_output=True, text=True
        )
        if done.returncode:
            raise RuntimeError(f"{path.name} failed:\n{done.stderr}")
        report = Path(folder) / f"{path.stem}.html"
        return Outcome(
            done.stdout,
            (Path(folder) / f"{path.stem}.png").read_bytes(),
            report.read_text("utf-8") if report.exists() else "",
        )


@cache
def _library() -> bytes:
    """A digest of everything that can change what an example makes."""
    digest = hashlib.sha256()
    folders = ((ROOT / "src" / "mvenet").rglob("*"), (ROOT / "engine").rglob("*"))
    for path in sorted(path for found in folders for path in found if path.suffix in KINDS):
        digest.update(path.read_bytes())
    return digest.digest()


KINDS = {".py", ".cpp", ".hpp", ".html", ".js", ".csv"}


def _page(stem: str, printed: str | None) -> str:
    path = EXAMPLES / f"{stem}.py"
    example = Example.read(path)
    name = path.stem
    lines = [f"# {example.title}", "", example.text, ""]
    if printed is not None:
        lines += [f"![{example.alt}]({name}.png){{ .gallery }}", ""]
    lines += ["```python", example.code.rstrip(), "```", ""]
    if printed is not None and printed.strip():
        lines += ["It prints:", "", "```text", printed.rstrip(), "```", ""]
    return "\n".join([*lines, f"The script is `examples/{stem}.py`."])


def _front() -> str:
    lines = [
        "# Gallery",
        "",
        "Short examples, one idea each. They are run when this site is built: you see what the",
        "code on their pages prints and draws.",
        "",
    ]
    for chapter, names in CHAPTERS.items():
        lines += [f"## {chapter}", "", '<div class="cards" markdown>', ""]
        for stem in names:
            example = Example.read(EXAMPLES / f"{stem}.py")
            lines += [f"[![{example.alt}]({stem}.png) {example.title}]({stem}.md){{ .card }}", ""]
        lines += ["</div>", ""]
    for folder, (title, why) in SHOWN.items():
        lines += [f"## {title}", "", f"{why} They are not run when the site is built.", ""]
        for stem in stems():
            if stem.startswith(f"{folder}/"):
                lines.append(f"- [{Example.read(EXAMPLES / f'{stem}.py').title}]({stem}.md)")
        lines.append("")
    return "\n".join(lines)
