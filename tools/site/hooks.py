"""What MkDocs asks us when it builds the site (mkdocs.yml).

Pages that nobody writes are made here: the reference, the command, the gallery. Files outside of
docs/ that pages link to become pages or files of the site, so that a link which works in the
repository works on the site. A public name between backquotes becomes a link to the reference.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

import command
import gallery
import reference
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]

# Files outside of docs/, and where they stand on the site.
OUTSIDE = {
    "README.md": "index.md",
    "CHANGELOG.md": "develop/changelog.md",
    "CONTRIBUTING.md": "develop/contributing.md",
    "SECURITY.md": "develop/security.md",
    "CODE_OF_CONDUCT.md": "develop/conduct.md",
    "benchmarks/README.md": "develop/benchmarks.md",
    "benchmarks/league/former/README.md": "compare/former-league.md",
    "paper/README.md": "understand/paper.md",
    "paper/relatives.md": "understand/relatives.md",
    "examples": "gallery/index.md",
    "examples/own_network": "gallery/index.md",
}
OUTSIDE |= {
    f"paper/figures/{path.name}": f"understand/figures/{path.name}"
    for path in sorted((ROOT / "paper" / "figures").glob("*.png"))
}
OUTSIDE |= {f"examples/{stem}.py": f"gallery/{stem}.md" for stem in gallery.stems()}
WHERE = {site: repository for repository, site in OUTSIDE.items()}

LINK = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)#\s]+)(#[^)]*)?\)")
FENCED = re.compile(r"(^ *```.*?^ *```[^\n]*$|^#.*?$|^    .*?$)", re.DOTALL | re.MULTILINE)
SPAN = re.compile(r"(?<![\[`])`([^`\n]+)`(?![\]`])")
SPOKEN = ("start/", "guides/", "understand/", "gallery/", "compare/")  # where names are used
NAME = re.compile(r"(?:mvenet\.)?((?:[a-z]+\.)?[A-Za-z]\w*)(?:\(.*\))?")


def on_files(files: Files, config: Any) -> Files:
    """Add what is not in docs/."""
    written = [file for file in files if file.src_uri.endswith(".md")]
    texts = {file.src_uri: file.content_string for file in written}
    for repository, site in OUTSIDE.items():
        source = ROOT / repository
        if source.is_file() and site not in texts and not site.startswith("gallery/"):
            files.append(File.generated(config, site, abs_src_path=str(source)))
            if site.endswith(".md"):
                texts[site] = source.read_text("utf-8")
    made = gallery.pages(ROOT / "build" / "gallery")
    for site, content in made.items():
        files.append(File.generated(config, site, content=content))
        if isinstance(content, str):
            texts[site] = content
    named = mentions(texts)
    for page in reference.PAGES:
        text = reference.text_of_page(page, named)
        files.append(File.generated(config, f"reference/{page}.md", content=text))
    files.append(File.generated(config, "reference/command.md", content=command.page()))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Links that leave docs/, and names of the reference."""
    site = page.file.src_uri
    markdown = LINK.sub(lambda found: moved(found, site), markdown)
    return markdown if site.startswith("reference/") else linked(markdown)


def on_post_build(config: Any) -> None:
    """Leave out a page whose links hold only at the root of a host."""
    (Path(config.site_dir) / "404.html").unlink(missing_ok=True)


def moved(found: re.Match[str], page: str) -> str:
    """A link as it must be on the site."""
    text, target, anchor = found.groups()
    if re.match(r"[a-z]+:", target) or page.startswith("gallery/"):
        return found[0]
    here = WHERE.get(page, f"docs/{page}") if page != "index.md" else "docs/index.md"
    path = posixpath.normpath(posixpath.join(posixpath.dirname(here), target))
    if path not in OUTSIDE and not path.startswith("docs/"):
        return text  # a folder of raw results, say: there is no such page
    site = OUTSIDE.get(path) or path.removeprefix("docs/")
    return f"[{text}]({posixpath.relpath(site, posixpath.dirname(page) or '.')}{anchor or ''})"


def linked(markdown: str) -> str:
    """The first mention of each public name as a link into the reference."""
    seen: set[str] = set()

    def link(found: re.Match[str]) -> str:
        path = _path_of(found[1])
        if path is None or path in seen:
            return found[0]
        seen.add(path)
        return f"[{found[0]}][{path}]"

    parts = FENCED.split(markdown)
    return "".join(part if i % 2 else SPAN.sub(link, part) for i, part in enumerate(parts))


def mentions(texts: dict[str, str]) -> dict[str, list[tuple[str, str]]]:
    """For each public name the pages that speak of it: title and link from the reference."""
    found: dict[str, list[tuple[str, str]]] = {}
    for site, text in texts.items():
        title = re.search(r"^# (.+)$", text, re.MULTILINE)
        if title is None or not site.startswith(SPOKEN):
            continue
        for path in dict.fromkeys(_names(text)):
            found.setdefault(path, []).append((title[1].replace("`", ""), f"../{site}"))
    return found


def _names(text: str) -> list[str]:
    spans = SPAN.findall(FENCED.sub("", text))
    imported = re.findall(r"from (mvenet[\w.]*) import ([\w, ]+)", text)
    named = [f"{m}.{n.strip()}" for m, names in imported for n in names.split(",")]
    called = re.findall(r"\b([a-z]+\.\w+)\(", text)
    return [p for p in (_path_of(each) for each in (*spans, *named, *called)) if p]


def _path_of(span: str) -> str | None:
    name = NAME.fullmatch(span)
    return KNOWN.get(name[1]) if name else None


def _known() -> dict[str, str]:
    """Names as the text has them: `AutoRegressor`, `metrics.nll`, and the public modules' own."""
    found = {}
    for path in reference.entries():
        short = path.removeprefix("mvenet.")
        found[short] = path
        if short.rpartition(".")[2][0].isupper():
            found.setdefault(short.rpartition(".")[2], path)
    return found | {
        "compare_strategies": "mvenet.comparison.compare_strategies",
        "load": "mvenet.persistence.load",
    }


KNOWN = _known()
