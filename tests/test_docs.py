"""The documentation agrees with the sources and with itself."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from zotd.wire.api import BY_NAME

ROOT = Path(__file__).parent.parent

PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md"), *ROOT.glob("packaging/*.md")]
)

CURRENT = [page for page in PAGES if page.name != "CHANGELOG.md"]
"""Pages about what there is; the changelog is about what there was."""

PACKAGES = {"zotd", "zotctl", "zottui"}

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
ANCHOR = re.compile(r'<a id="([^"]+)">')
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
SOURCE = re.compile(r"`((?:zotd|zotctl|zottui|tests|packaging|scripts|examples|benchmarks|systemd|docs)/[\w./-]*)`")
TARGET = re.compile(r"`make (\w+)`")
NAMED = re.compile(r"`([\w.]+\.\w+|[\w./-]+\.(?:py|js))`(?: \((?:removed|now|not taken)\b[^)]*\))?")
MARKED = re.compile(r"`[^`]+` \((?:removed|now|not taken)\b")

FOREIGN = {"core.fsmonitor", "zotd.lock", "zotd.log", "zotd.service", "zotd.socket"}
"""Looks like a module and is none: a setting of git, and files at run time."""


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


def modules_named(page: Path) -> list[str]:
    """Modules of ours, and their members, that the page names in backticks; commands and settings look the same."""
    known = FOREIGN | set(BY_NAME) | set(re.findall(r"`([\w.]+)`", (ROOT / "docs/configuration.md").read_text()))
    return [found for found in names_of(page) if re.fullmatch(r"\w+(\.\w+)+", found) and found not in known]


def names_of(page: Path) -> list[str]:
    """What the page names in backticks and might be a module or a file of ours, outside of code blocks."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    is_decision = page.parent.name == "decisions"
    return [found[1] for found in NAMED.finditer(text) if not (is_decision and MARKED.match(found[0]))]


def is_module(name: str) -> bool:
    """Whether a module, a package, or a name in one of them is called that, in full or from `zotd.` on."""
    here, parts = ROOT, name.split(".")
    if parts[0] not in PACKAGES:
        here = ROOT / "zotd"
    while parts and (here / parts[0]).is_dir():
        here /= parts.pop(0)
    if not parts:
        return True
    module = here / f"{parts[0]}.py"
    source, member = (module, parts[1:]) if module.exists() else (here / "__init__.py", parts)
    return not member or (source.exists() and bool(re.search(rf"\b{member[0]}\b", source.read_text())))


def is_ours(name: str) -> bool:
    """Whether the first part of a dotted name is one of our packages."""
    first = name.partition(".")[0]
    return first in PACKAGES or (ROOT / "zotd" / first / "__init__.py").exists()


def is_file(page: Path, path: str) -> bool:
    """Whether this file is in the tree, from the root, from `zotd/` or from the page on; a bare name is anybody's."""
    return "/" not in path or any((folder / path).exists() for folder in (ROOT, ROOT / "zotd", page.parent))


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


@pytest.mark.parametrize("page", CURRENT, ids=name)
def test_every_module_that_is_named_exists(page):
    assert [found for found in modules_named(page) if is_ours(found) and not is_module(found)] == []


@pytest.mark.parametrize("page", CURRENT, ids=name)
def test_every_source_file_that_is_named_exists(page):
    paths = [found for found in names_of(page) if found.endswith((".py", ".js")) and "NAME" not in found]
    assert [path for path in paths if not is_file(page, path)] == []


@pytest.mark.parametrize(
    ("module", "exists"),
    [
        ("zotd.api.follower", True),
        ("api.follower.OutboxSubscriber", True),
        ("zotd.core", True),
        ("zottui.printer", True),
        ("api.hub", False),
        ("zotd.api.follower.Hub", False),
        ("zotd.core.nothing", False),
    ],
)
def test_a_module_is_distinguished_from_other_files(module, exists):
    assert is_module(module) is exists


def test_every_decision_is_in_the_index():
    folder = ROOT / "docs/decisions"
    index = (folder / "README.md").read_text()
    assert [page.name for page in folder.glob("0*.md") if f"({page.name})" not in index] == []


def test_every_dependency_is_accounted_for():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    page = (ROOT / "docs/decisions/0004-dependencies.md").read_text()
    names = [re.split(r"[<>=~!]", dependency)[0] for dependency in project["dependencies"]]
    assert [dependency for dependency in names if f"`{dependency}`" not in page] == []
