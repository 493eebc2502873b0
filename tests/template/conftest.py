"""A template process of a daemon, with a directory of programs that it forks."""

import asyncio
import os
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.process.conftest import Told
from zotd.process import ChildLedger, orphans_adopted, start_service
from zotd.tasks import contained
from zotd.template.forks import Forks

KEPT = {name: value for name, value in os.environ.items() if name.startswith("PYTHON") or name == "PATH"}
ENV = {**KEPT, "LANG": "C.UTF-8"}
LIMIT_S = 30


class Rig:
    """A template process, and programs in a directory."""

    def __init__(self, path: Path, forks: Forks):
        self.path = path
        self.forks = forks

    def script(self, source: str, name: str = "main.py") -> str:
        (self.path / name).write_text(source)
        return name

    async def start(self, *words: str, env=ENV, cwd=None, argv=None, claim=None):
        """Start a program as an extension is; its listener, its service and whether it was forked."""
        argv = argv or (sys.executable, *words)
        future = asyncio.get_running_loop().create_future()
        given = claim.environment(env) if claim else env
        pending = self.forks.fork(argv, cwd=str(cwd or self.path), env=given, is_bound=True, then=future.set_result)
        async with asyncio.timeout(LIMIT_S):
            forked = None if pending is None else await future
        told = Told()
        service = start_service(argv, cwd=str(cwd or self.path), env=env, listener=told, claim=claim, forked=forked)
        return told, service, forked is not None

    async def run(self, *words: str, stdin: bytes = b"", **options):
        """Run a program to its end; what it wrote, its exit code, and whether it was forked."""
        told, service, is_forked = await self.start(*words, **options)
        service.write(stdin)
        service.end_input()
        await told.until(lambda: told.code is not None)
        return told, is_forked

    async def serving(self):
        self.forks.begin()
        async with asyncio.timeout(LIMIT_S):
            await self.forks.extensions.serves.wait()


@asynccontextmanager
async def rigged(path: Path, env=ENV, *, serves=True, lasts=True):
    with orphans_adopted():
        async with asyncio.TaskGroup() as tasks:

            def spawn(name, work):
                contained(tasks, name, work)

            forks = Forks(env, spawn, ChildLedger(path / "ledger"), lasts=lasts)
            (path / "work").mkdir()
            rig = Rig(path / "work", forks)
            try:
                if serves:
                    await rig.serving()
                yield rig
            finally:
                await forks.stop()


@pytest.fixture
async def rig(tmp_path):
    async with rigged(tmp_path) as rig:
        yield rig
