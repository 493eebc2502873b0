"""The archives of a release, and a session that shows whether an installation works."""

import asyncio
import subprocess
import sys
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path

import pytest

from zotd.testing.model_server import ModelServer
from zotd.testing.script import CallPart, calls, text

ROOT = Path(__file__).parent.parent.parent

BUILD = "import sys; from hatchling.build import {0} as build; print(build(sys.argv[1]))"

ANSWER_S = 180.0
"""Longest wait for a program of an installation. The first one compiles what it imports, because uv installs no bytecode:
14 s of computing for `litellm` alone."""


@pytest.fixture(scope="session")
def dist(tmp_path_factory):
    """Where the wheel and the archive of the sources are."""
    folder = tmp_path_factory.mktemp("dist")
    for build in ("build_wheel", "build_sdist"):
        subprocess.run([sys.executable, "-c", BUILD.format(build), str(folder)], cwd=ROOT, check=True)
    return folder


@pytest.fixture(scope="session")
def wheel(dist):
    return next(dist.glob("*.whl"))


@pytest.fixture(scope="session")
def sdist(dist):
    return next(dist.glob("*.tar.gz"))


class Installation:
    """Programs somewhere, with a home that nothing else uses."""

    def __init__(self, programs, folder, *, interpreter=None):
        self._programs = Path(programs)
        self._folder = folder
        self._interpreter = [interpreter] if interpreter else []
        self._env = {
            "PATH": f"{programs}:/usr/bin:/bin",
            "HOME": str(folder),
            "ZOT_HOME": str(folder / "zot-home"),
            "ZOT_TEMPLATE": "off",  # its process would outlive the test by half an hour
        }

    async def run(self, program, *args):
        """Standard output of a program that must succeed."""
        command = (*self._interpreter, self._programs / program, *args)
        process = await asyncio.create_subprocess_exec(
            *command, cwd=self._folder, env=self._env, stdin=DEVNULL, stdout=PIPE, stderr=PIPE
        )
        try:
            async with asyncio.timeout(ANSWER_S):
                out, err = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.communicate()  # closes its pipes: left open, they would fail a later test
        assert process.returncode == 0, err.decode()
        return out.decode()

    async def check(self):
        """Run a session with a tool call, in a daemon that is started and stopped."""
        async with ModelServer(
            [calls(CallPart("bash", {"command": "echo of the tool"})), text("the answer")]
        ) as server:
            flags = (
                "--mode",
                "yolo",
                "--provider",
                "openai",
                "--base-url",
                server.openai_url,
                "--api-key",
                "sk-scripted",
            )
            try:
                assert await self.run("zot", "-p", "hi", *flags) == "the answer\n"
            finally:
                await self.run("zotctl", "stop")
            assert "of the tool" in str(server.requests[1].body)


@pytest.fixture
def installation(tmp_path):
    """Makes an `Installation`, in which `check` runs a session."""

    def made(programs, **options):
        return Installation(programs, tmp_path, **options)

    return made
