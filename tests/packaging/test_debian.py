"""The Debian package: built, installed into a directory by dpkg, and a session run from there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.needs import needs
from tests.packaging.conftest import ANSWER_S
from zotd.wire.version import VERSION

ROOT = Path(__file__).parent.parent.parent

PYTHON = "/usr/bin/python3"

BUILD_S = 900
"""For the installation of all that zot needs, and its compilation."""

pytestmark = pytest.mark.timeout(BUILD_S + ANSWER_S + 120)


@pytest.fixture(scope="module")
def package(wheel, tmp_path_factory):
    needs("dpkg-deb", PYTHON)
    folder = tmp_path_factory.mktemp("deb")
    script = ROOT / "packaging/debian/build.py"
    subprocess.run([sys.executable, script, wheel, "-o", folder, "--python", PYTHON], check=True, timeout=BUILD_S)
    return next(folder.glob("*.deb"))


@pytest.fixture(scope="module")
def system(package, tmp_path_factory):
    """A directory in which the package is installed, as root or not."""
    root = tmp_path_factory.mktemp("system")
    for folder in ("info", "updates", "triggers"):
        (root / "var/lib/dpkg" / folder).mkdir(parents=True)
    (root / "var/lib/dpkg/status").touch()
    dpkg(root, "--force-depends", "--force-not-root", "--log=/dev/null", "-i", package)
    return root


def dpkg(root, *words):
    command = ["dpkg", f"--root={root}", *words]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout


def field(package, name):
    return subprocess.run(["dpkg-deb", "-f", package, name], check=True, capture_output=True, text=True).stdout.strip()


def test_the_control_file_says_what_it_is_and_needs(package):
    assert (field(package, "Package"), field(package, "Version")) == ("zotd", VERSION)
    assert re.fullmatch(r"python3 \(>= 3\.\d+\), python3 \(<< 3\.\d+\), libc6 \(>= 2\.\d+\)", field(package, "Depends"))
    assert "bubblewrap" in field(package, "Recommends")


def test_all_files_belong_to_root_and_nobody_else_may_change_them(package):
    listing = subprocess.run(["dpkg-deb", "-c", package], check=True, capture_output=True, text=True).stdout
    for line in listing.splitlines():
        mode, owner = line.split()[:2]
        assert owner == "root/root", line
        assert mode[0] == "l" or (mode[5], mode[8]) == ("-", "-"), line


def test_it_is_installed_by_dpkg_and_its_sums_are_right(system):
    assert "/usr/bin/zot\n" in dpkg(system, "-L", "zotd")
    assert dpkg(system, "--verify", "zotd") == ""


def test_nothing_names_the_directory_in_which_it_was_built(system):
    library = system / "usr/lib/zotd"
    assert [path for path in library.rglob("*") if path.is_file() and b"/stage/usr/lib" in path.read_bytes()] == []
    assert (library / "bin/zot").read_text().startswith("#!/usr/lib/zotd/bin/python3\n")


def test_the_units_differ_from_those_of_the_sources_in_their_program_only(system):
    for name, changed in ("zotd.service", {"ExecStart=/usr/bin/zotd"}), ("zotd.socket", set()):
        lines = (system / "usr/lib/systemd/user" / name).read_text().splitlines()
        assert set(lines) - set((ROOT / "systemd" / name).read_text().splitlines()) == changed


async def test_it_runs_a_session(system, installation):
    await installation(system / "usr/bin", interpreter=system / "usr/lib/zotd/bin/python3").check()
