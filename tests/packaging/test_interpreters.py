"""The wheel on other Pythons, in empty environments, and through the programs that people install it with."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packaging.conftest import ANSWER_S

VERSIONS = ("3.11", "3.12", "3.13", "3.14")

INSTALL_S = 900
"""For an installation with all that zot needs."""

pytestmark = pytest.mark.timeout(INSTALL_S + ANSWER_S + 120)

HERE = f"{sys.version_info.major}.{sys.version_info.minor}"


def interpreters():
    """Version and path of each Python of this machine, one of a kind. Never empty: the tests themselves run in one."""
    found = {HERE: sys.executable}
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    for version in VERSIONS:
        named = shutil.which(f"python{version}") or ""
        kept = [str(one) for one in sorted(pyenv.glob(f"versions/{version}.*/bin/python3"))]
        for path in [*kept, *([named] if named and "shims" not in named else [])]:
            found.setdefault(version, path)
    return sorted(found.items())


PROGRAMS = {"zot", "zotd", "zotctl", "zottui"}


def run(program, *words, **places):
    """Run a program that is installed beside the interpreter of the tests."""
    command = [Path(sys.executable).with_name(program), *words]
    subprocess.run(command, check=True, timeout=INSTALL_S, env=os.environ | places)


@pytest.fixture(params=interpreters(), ids=[version for version, _ in interpreters()])
def environment(request, wheel, tmp_path):
    """The version of a Python, and the programs of an environment that has only the wheel and what it needs."""
    version, python = request.param
    run("uv", "venv", "--quiet", "--python", python, tmp_path / "env")
    run("uv", "pip", "install", "--quiet", "--python", tmp_path / "env/bin/python", wheel)
    return version, tmp_path / "env/bin"


async def test_the_wheel_runs_a_session_in_an_empty_environment_of_each_python(environment, installation):
    version, folder = environment
    programs = installation(folder)
    assert await programs.run("python", "-c", "import sys; print('%d.%d' % sys.version_info[:2])") == f"{version}\n"
    await programs.check()


@pytest.fixture(params=["uv", "pipx"])
def tools(request, wheel, tmp_path):
    """The commands that a program for installing commands has installed."""
    places = {"UV_TOOL_DIR": str(tmp_path / "uv"), "UV_TOOL_BIN_DIR": str(tmp_path / "bin")}
    places |= {"PIPX_HOME": str(tmp_path / "pipx"), "PIPX_BIN_DIR": str(tmp_path / "bin")}
    install = ("tool", "install") if request.param == "uv" else ("install",)
    run(request.param, *install, "--quiet", "--python", sys.executable, wheel, **places)
    return tmp_path / "bin"


async def test_uv_and_pipx_install_the_commands(tools, installation):
    assert {path.name for path in tools.iterdir()} == PROGRAMS
    await installation(tools).check()


@pytest.mark.parametrize("extra", ["bedrock", "keyring", "local", "otel", "vertex"])
def test_each_extra_can_be_installed(wheel, extra):
    run("uv", "pip", "install", "--dry-run", "--quiet", "--python", sys.executable, f"zotd[{extra}] @ {wheel.as_uri()}")


NEIGHBOURS = ("langchain-openai", "litellm", "pydantic-ai-slim[anthropic,openai]")
"""Packages of others that need what zot needs, with opinions of their own about versions."""


@pytest.fixture
def shared(wheel, tmp_path):
    """The programs of an environment that zot shares with other users of the same libraries."""
    run("uv", "venv", "--quiet", "--python", sys.executable, tmp_path / "env")
    run("uv", "pip", "install", "--quiet", "--python", tmp_path / "env/bin/python", wheel, *NEIGHBOURS)
    return tmp_path / "env/bin"


async def test_it_works_beside_others_that_need_the_same_packages(shared, installation):
    programs = installation(shared)
    await programs.run("python", "-c", "import langchain_openai, litellm, pydantic_ai.models.openai, zot")
    await programs.check()
