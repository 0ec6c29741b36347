"""Check a built site as a visitor meets it: python tools/site/check.py FOLDER.

Every link and anchor within it leads somewhere, every picture is there and has an alternative text,
nothing is loaded from elsewhere, no list has become a paragraph (what belongs to an item must be
indented by four), and all of it is small enough to send around.
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

MOST_BYTES = 30_000_000
LOADS = {("script", "src"), ("link", "href"), ("img", "src"), ("iframe", "src"), ("source", "src")}
# Of <link rel=...> what only names a page.
NOT_LOADED = {
    "canonical",
    "next",
    "prev",
    "edit",
    "alternate",
}

# An item of a list within a paragraph: Markdown that was taken for text.
LOST = re.compile(r"<p>(?:(?!</p>|<pre).)*?\n\s*((?:\d+\.|[-*|]) [^\n]{1,40})", re.S)


class Page(HTMLParser):
    """What one page links to, loads and can be jumped to."""

    def __init__(self, path: Path) -> None:
        """Read the file."""
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.without_text: list[str] = []
        text = path.read_text("utf-8")
        self.lost: list[str] = LOST.findall(text)
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note one tag."""
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        for name, value in values.items():
            if (tag, name) in LOADS and values.get("rel") not in NOT_LOADED:
                self.loaded.append(value)
        if tag == "img" and not values.get("alt") and "data-decorative" not in values:
            self.without_text.append(values.get("src", "?"))


def complaints(folder: Path) -> list[str]:
    """All that is wrong with a site, a sentence each."""
    pages = {path: Page(path) for path in sorted(folder.rglob("*.html"))}
    found = [] if pages else [f"{folder} has no page"]
    for path, page in pages.items():
        where = path.relative_to(folder)
        found += [f"{where}: picture {src} without alternative text" for src in page.without_text]
        found += [f"{where}: '{item}' is no item of a list" for item in page.lost]
        for target in page.loaded:
            if urlsplit(target).netloc:
                found.append(f"{where}: loads {target} from elsewhere")
            elif not target.startswith("data:"):
                found += _missing(path, target, pages, folder)
        for target in page.links:
            if not urlsplit(target).scheme and not urlsplit(target).netloc:
                found += _missing(path, target, pages, folder)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    if size > MOST_BYTES:
        found.append(f"the site has {size / 1e6:.0f} MB, more than {MOST_BYTES / 1e6:.0f}")
    return found


def _missing(path: Path, target: str, pages: dict[Path, Page], folder: Path) -> list[str]:
    parts = urlsplit(target)
    aim = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    aim = aim / "index.html" if aim.is_dir() else aim
    where = path.relative_to(folder)
    if not aim.exists():
        return [f"{where}: {target} leads nowhere"]
    if parts.fragment and aim in pages and unquote(parts.fragment) not in pages[aim].anchors:
        return [f"{where}: {target} has no such anchor"]
    return []


if __name__ == "__main__":
    root = Path(sys.argv[1]).resolve()
    wrong = complaints(root)
    sys.stdout.write(
        "\n".join([*wrong, f"{len(list(root.rglob('*.html')))} pages, {len(wrong)} complaints"])
        + "\n"
    )
    sys.exit(bool(wrong))
