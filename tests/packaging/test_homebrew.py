"""The Homebrew formula, as far as it can be looked at without Homebrew: its blocks, and what it names."""

import hashlib
import importlib.metadata
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from zotd.wire.version import VERSION

ROOT = Path(__file__).parent.parent.parent

RESOURCE = re.compile(r'  resource "([\w-]+)" do\n    url "([^"]+)"\n    sha256 "([0-9a-f]{64})"\n  end\n')

OPENS = re.compile(r"^\s*(?:class|def)\b|\bdo$")


@pytest.fixture(scope="module")
def formula(sdist):
    script = ROOT / "packaging/homebrew/formula.py"
    command = [
        sys.executable,
        script,
        sdist,
        "--url",
        "https://example.org/zotd.tar.gz",
        "--homepage",
        "https://example.org",
    ]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def pinned():
    """Version of each package that the formula installs, by name."""
    resources = json.loads((ROOT / "packaging/resources.json").read_text())
    return {one["name"]: one["version"] for one in resources}


def test_each_block_is_closed_and_nothing_is_left_of_the_template(formula):
    lines = formula.splitlines()
    assert sum(bool(OPENS.search(line)) for line in lines) == sum(line.strip() == "end" for line in lines)
    assert re.findall(r"@[A-Z0-9]+@", formula) == []
    assert lines[1] == "class Zotd < Formula"
    assert lines[-1] == "end"


def test_it_names_the_archive_that_was_built(formula, sdist):
    digest = hashlib.sha256(sdist.read_bytes()).hexdigest()
    assert f'  url "https://example.org/zotd.tar.gz"\n  sha256 "{digest}"\n' in formula
    assert f"for zot {VERSION}." in formula


def test_each_resource_is_an_archive_of_its_version_on_pypi(formula, pinned):
    found = RESOURCE.findall(formula)
    assert [name for name, _, _ in found] == sorted(pinned)
    for name, url, _ in found:
        archive = re.fullmatch(r"https://files\.pythonhosted\.org/packages/\w\w/\w\w/\w{60}/([^/]+)", url)
        assert archive is not None, url
        stem = f"{name.replace('-', '_')}-{pinned[name]}"
        assert re.sub(r"[-_.]+", "_", archive[1].lower()).startswith(re.sub(r"[-_.]+", "_", stem)), url


def needed(name, known, extra=""):
    """Add to `known` what a package needs here, directly and indirectly; the extra `crypto` comes with PyJWT for mcp."""
    for text in importlib.metadata.requires(name) or []:
        requirement = Requirement(text)
        other = canonicalize_name(requirement.name)
        if other not in known and (requirement.marker is None or requirement.marker.evaluate({"extra": extra})):
            known.add(other)
            for one in ("", *requirement.extras):
                needed(requirement.name, known, one)
    return known


def test_nothing_that_zot_needs_is_missing_or_older_than_it_allows(pinned):
    assert needed("zotd", set()) - set(pinned) == set()
    for text in importlib.metadata.requires("zotd") or []:
        requirement = Requirement(text)
        if requirement.marker is None:
            assert requirement.specifier.contains(pinned[canonicalize_name(requirement.name)]), text


def test_the_constraints_are_the_same_versions_and_those_of_what_the_container_has_besides(pinned):
    lines = (ROOT / "packaging/constraints.txt").read_text().splitlines()[1:]
    versions = dict(line.split("==") for line in lines)
    assert list(versions) == sorted(versions)
    besides = needed("zotd", set(), "postgres") - set(pinned)
    assert besides == {"psycopg", "psycopg-binary"}
    assert versions == pinned | {name: versions[name] for name in besides}
