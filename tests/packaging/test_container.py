"""The file for a container: linted, and its steps carried out as far as that needs no container."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packaging.conftest import ANSWER_S

ROOT = Path(__file__).parent.parent.parent

FILE = ROOT / "packaging/container/Containerfile"

INSTALL_S = 900
"""For its pip step."""

pytestmark = pytest.mark.timeout(INSTALL_S + ANSWER_S + 120)


@pytest.fixture(scope="module")
def steps():
    """Word and rest of each instruction."""
    text = re.sub(r"(?m)^#.*\n", "", FILE.read_text()).replace("\\\n", " ")
    return [tuple(line.split(maxsplit=1)) for line in text.splitlines() if line.strip()]


def rests(steps, word):
    return [rest for found, rest in steps if found == word]


def test_the_linter_finds_nothing():
    hadolint = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([hadolint, FILE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_it_ends_as_a_user_without_rights_whose_programs_are_in_the_path(steps):
    assert rests(steps, "USER") == ["1000:1000"]
    assert rests(steps, "ENTRYPOINT") == ['["zotd"]']
    (environment,) = rests(steps, "ENV")
    assert environment.split() == ["PATH=/srv/zotd/bin:$PATH", "ZOT_HOME=/var/lib/zot"]
    assert rests(steps, "COPY")[-1] == "--from=build /srv/zotd /srv/zotd"


def copied(steps, into):
    """Carry out the COPY steps of the first stage."""
    for rest in rests(steps, "COPY")[:-1]:
        *sources, target = shlex.split(rest)
        for source in sources:
            if (ROOT / source).is_dir():
                ignored = shutil.ignore_patterns("__pycache__")
                shutil.copytree(ROOT / source, into / target, symlinks=True, ignore=ignored)
            else:
                (into / target).mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / source, into / target)


@pytest.fixture
def programs(steps, tmp_path):
    """What the pip step of the first stage has installed."""
    sources, environment = tmp_path / "sources", tmp_path / "env"
    sources.mkdir()
    copied(steps, sources)
    command = rests(steps, "RUN")[0].replace("/srv/zotd", str(environment)).replace("--no-cache-dir ", "")
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    env = os.environ | {"PATH": path, "PIP_NO_COMPILE": "1"}  # a session imports a tenth of what pip would compile
    subprocess.run(["sh", "-ec", command], cwd=sources, check=True, timeout=INSTALL_S, env=env)
    return environment / "bin"


async def test_what_it_copies_is_enough_for_its_pip_step(programs, installation):
    made = installation(programs)
    await made.check()
    await made.run("python", "-c", "import psycopg")  # sessions can be in PostgreSQL
