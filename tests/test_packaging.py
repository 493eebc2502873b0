"""What is built and given away: the archives hold what they should, and say who, what and which version."""

import asyncio
import email.parser
import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path

import pytest
from packaging.metadata import Metadata
from packaging.version import Version

from zotd.store.migrations import MIGRATIONS
from zotd.template.client import SWITCH
from zotd.testing.model_server import ModelServer
from zotd.testing.script import CallPart, calls, text
from zotd.wire.version import PROTOCOL, VERSION

ROOT = Path(__file__).parent.parent

MADE_BY = {
    "0.1.0": (1, 5),
    "0.2.0": (1, 11),
}
"""Each version with its protocol and the newest schema that it wrote. A line is never changed once its version was given
to anybody: a new schema or protocol raises the version, and gets a line."""

BUILD = "import sys; from hatchling.build import {0} as build; print(build(sys.argv[1]))"

PRIVATE = re.compile(
    r"(?i)\b(?:localhost|127\.0\.0\.1|[\w.-]+\.(?:local|internal|lan|corp|example))\b|/(?:home|work|tmp|root)/"
)
"""What leads nowhere for anybody else."""

OLDEST_S = 300
"""For the installation of the oldest packages, which takes half a minute on an idle machine."""

LIMIT_BYTES = 10 * 1024 * 1024
"""Of an archive; each has about 1 MiB, the sources some more for their pictures."""


def test_a_version_names_one_schema_and_one_protocol():
    assert MADE_BY.get(VERSION) == (PROTOCOL, len(MIGRATIONS)), (
        "the schema or the protocol has changed: raise VERSION in zotd/wire/version.py, and add a line for it here"
    )


def test_a_later_version_has_no_earlier_schema():
    versions = sorted(MADE_BY, key=Version)
    assert versions == list(MADE_BY)
    assert versions[-1] == VERSION
    made = list(MADE_BY.values())
    assert made == sorted(made)
    assert len({version.rpartition(".")[0] for version in versions}) == len(set(made)), "the middle number rises"


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    """The wheel and the archive of the sources."""
    folder = tmp_path_factory.mktemp("dist")
    for build in ("build_wheel", "build_sdist"):
        subprocess.run([sys.executable, "-c", BUILD.format(build), str(folder)], cwd=ROOT, check=True)
    return next(folder.glob("*.whl")), next(folder.glob("*.tar.gz"))


@pytest.fixture(scope="module")
def told(archives):
    """The metadata of the wheel."""
    with zipfile.ZipFile(archives[0]) as wheel:
        (name,) = [one for one in wheel.namelist() if one.endswith(".dist-info/METADATA")]
        return wheel.read(name).decode()


def test_the_metadata_are_valid_and_say_who_and_what(told):
    metadata = Metadata.from_email(told.encode(), validate=True)
    assert (metadata.name, str(metadata.version)) == ("zotd", VERSION)
    assert (metadata.author, metadata.license_expression) == ("The zotd authors", "MIT")
    assert metadata.keywords
    assert any(one.startswith("Programming Language :: Python :: 3.11") for one in metadata.classifiers or [])
    assert metadata.provides_extra == ["bedrock", "keyring", "local", "otel", "postgres", "vertex", "web"]
    assert any("xllamacpp" in str(one) and "local" in str(one.marker) for one in metadata.requires_dist or [])


def test_the_page_of_an_index_has_no_link_that_leads_nowhere(told):
    page = str(email.parser.Parser().parsestr(told).get_payload())
    assert page.startswith("# zot\n")
    links = re.findall(r"\]\(([^)\s]+)", page)
    assert [one for one in links if not one.startswith("https://")] == []
    assert PRIVATE.findall(told) == []


def test_the_wheel_holds_the_four_packages_and_nothing_else(archives):
    with zipfile.ZipFile(archives[0]) as wheel:
        names = wheel.namelist()
    assert {name.partition("/")[0] for name in names} == {
        "zot",
        "zotd",
        "zotctl",
        "zottui",
        f"zotd-{VERSION}.dist-info",
    }
    assert [name for name in names if name.endswith((".pyc", ".db", ".log"))] == []
    assert {"zot/py.typed", "zotd/py.typed"} <= set(names)
    assert any(name.endswith("/licenses/LICENSE") for name in names)
    assert {str(path.relative_to(ROOT)) for path in (ROOT / "zotd" / "api" / "page").glob("*.js")} <= set(names)


def test_the_wheel_holds_the_sdk_that_new_extensions_get(archives):
    sources = {path.name: path.read_text() for path in (ROOT / "sdk" / "typescript" / "src").iterdir()}
    with zipfile.ZipFile(archives[0]) as wheel:
        copied = [one for one in wheel.namelist() if one.startswith("zotctl/skeletons/ts/zot_sdk/")]
        assert {Path(one).name: wheel.read(one).decode() for one in copied} == sources


@pytest.fixture
def oldest(archives, told, tmp_path):
    """The programs of an environment with the oldest versions that the metadata allow."""
    required = Metadata.from_email(told, validate=False).requires_dist or []
    floors = [f"{one.name}=={spec.version}\n" for one in required for spec in one.specifier]
    (tmp_path / "floors.txt").write_text("".join(floors))
    uv = Path(sys.executable).with_name("uv")
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, tmp_path / "env"], check=True)
    install = [uv, "pip", "install", "--quiet", "--python", tmp_path / "env/bin/python"]
    wanted = ["--constraint", tmp_path / "floors.txt", f"zotd[otel] @ {archives[0].as_uri()}"]
    subprocess.run([*install, *wanted], check=True, timeout=OLDEST_S)
    return tmp_path / "env/bin"


@pytest.fixture
def stopped(oldest, tmp_path):
    """The environment of a daemon that is stopped at the end."""
    env = {"PATH": f"{oldest}:{os.environ['PATH']}", "HOME": str(tmp_path), "ZOT_HOME": str(tmp_path / "zot")}
    env[SWITCH] = "off"  # a template process would outlive the test by half an hour
    yield env
    subprocess.run([oldest / "zotctl", "stop"], env=env, check=True)


@pytest.mark.timeout(OLDEST_S)
async def test_the_oldest_versions_that_are_allowed_run_a_session(stopped, tmp_path):
    """A floor is a promise to those who have other packages beside this one."""
    for provider in ("anthropic", "openai"):
        async with ModelServer(
            [calls(CallPart("bash", {"command": "echo from the tool"})), text("the answer")]
        ) as server:
            url = server.url if provider == "anthropic" else server.openai_url
            flags = ("--mode", "yolo", "--provider", provider, "--base-url", url, "--api-key", "sk-scripted-key")
            program = tmp_path / "env/bin/zot"
            process = await asyncio.create_subprocess_exec(
                *(program, "-p", "hi", *flags), cwd=tmp_path, env=stopped, stdout=PIPE, stderr=PIPE, stdin=DEVNULL
            )
            out, err = await process.communicate()
            assert (process.returncode, out) == (0, b"the answer\n"), err
            assert "from the tool" in str(server.requests[1].body)


def test_the_package_for_npm_has_the_same_version_and_needs_nothing():
    package = json.loads((ROOT / "sdk" / "typescript" / "package.json").read_text())
    assert package["version"] == VERSION
    assert package.keys().isdisjoint({"dependencies", "peerDependencies", "optionalDependencies"})


def test_the_sources_can_be_built_again_and_hold_the_documents(archives):
    with tarfile.open(archives[1]) as sources:
        names = {name.partition("/")[2] for name in sources.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "docs/package.md", "docs/security.md"} <= names
    assert [name for name in names if name.startswith((".venv", ".git/")) or "__pycache__" in name] == []


def test_an_archive_has_a_modest_size(archives):
    assert [path.name for path in archives if path.stat().st_size > LIMIT_BYTES] == []
