"""Lays out what `make site` builds from: the pages and the files they link to, at their places in the tree, and the API.

The pages are copied and not changed, so a link that works in the repository works on the site.
"""

import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent

FOLDERS = ("docs", "examples", "packaging", "systemd")

LINK = re.compile(r"\]\(([^)#\s]+)")

MODULES = {
    "Embedding": ["zot"],
    "Clients": ["zotd.client.client", "zotd.client.follow", "zotd.client.session", "zotd.client.errors"],
    "Extensions in Python": ["zotd.sdk"],
    "The wire": ["zotd.wire.api", "zotd.wire.events", "zotd.wire.content", "zotd.wire.errors", "zotd.wire.ext"],
    "Test doubles": ["zotd.testing.model_server"],
}
"""What programs outside this repository import; everything else may change without notice."""


def pages() -> list[Path]:
    """Every Markdown page of the site."""
    return sorted([*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md"))])


def linked(page: Path) -> set[Path]:
    """The files of the repository to which the page links."""
    targets = ((page.parent / link).resolve() for link in LINK.findall(page.read_text()) if "://" not in link)
    return {target for target in targets if target.is_file() and target.is_relative_to(ROOT)}


def lay_out(target: Path) -> None:
    """Make the folder `target` anew."""
    shutil.rmtree(target, ignore_errors=True)
    found = pages()
    for source in {*found, *(file for page in found for file in linked(page))}:
        copy = target / source.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, copy)
    (target / "api").mkdir()
    for title, modules in MODULES.items():
        body = "\n\n".join(f"::: {module}" for module in modules)
        (target / "api" / f"{title.lower().replace(' ', '-')}.md").write_text(f"# {title}\n\n{body}\n")


if __name__ == "__main__":
    lay_out(Path(sys.argv[1]))
