"""The documentation agrees with the sources and with itself."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")])

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
ANCHOR = re.compile(r'<a id="([^"]+)">')
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
SOURCE = re.compile(r"`((?:zotd|zotctl|zottui|tests|scripts|examples|benchmarks|systemd|docs)/[\w./-]*)`")
TARGET = re.compile(r"`make (\w+)`")


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def anchors(page: Path) -> set[str]:
    text = page.read_text()
    headings = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in HEADING.findall(text)}
    return headings | set(ANCHOR.findall(text))


def is_dead(page: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = (page.parent / path) if path else page
    return not target.exists() or bool(anchor and anchor not in anchors(target))


def test_the_generated_pages_are_what_the_sources_say():
    checked = subprocess.run(
        [sys.executable, ROOT / "scripts/reference.py", "--check"], capture_output=True, check=False, text=True
    )
    assert checked.stderr == ""
    assert checked.returncode == 0


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_leads_somewhere(page):
    links = [link for link in LINK.findall(page.read_text()) if not link.startswith("http")]
    assert [link for link in links if is_dead(page, link)] == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_file_and_target_that_is_named_exists(page):
    text = page.read_text()
    assert [path for path in SOURCE.findall(text) if "<" not in path and not (ROOT / path).exists()] == []
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(TARGET.findall(text)) <= set(targets)


def test_every_decision_is_in_the_index():
    folder = ROOT / "docs/decisions"
    index = (folder / "README.md").read_text()
    assert [page.name for page in folder.glob("0*.md") if f"({page.name})" not in index] == []


def test_every_dependency_is_accounted_for():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    page = (ROOT / "docs/decisions/0004-dependencies.md").read_text()
    names = [re.split(r"[<>=~!]", dependency)[0] for dependency in project["dependencies"]]
    assert [dependency for dependency in names if f"`{dependency}`" not in page] == []
