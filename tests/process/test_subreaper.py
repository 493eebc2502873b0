"""Orphans are adopted and reaped, and children of other code are left to it."""

import asyncio
import os
import subprocess
from pathlib import Path

import psutil
import pytest

from tests.process.conftest import AWAY, ENV, STUBBORN, Told, claimed, opened
from zotd.process import orphans_adopted, spawn
from zotd.process.exit import reap_orphans, watch_exit


@pytest.fixture
def run(tmp_path):
    """Run a shell command and return its output."""

    async def go(command: str) -> str:
        told = Told()
        assert await spawn(["sh", "-c", command], cwd=str(tmp_path), env=ENV, on_output=told.output).wait() == 0
        return told.out.decode().strip()

    return go


def started(command: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(["sh", "-c", command], env=ENV, stdout=subprocess.PIPE)


def is_freed(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


async def freed(pid: int) -> None:
    """Wait until the pid is free."""
    while not is_freed(pid):  # noqa: ASYNC110  (there is no event for a process reaped by init or by us)
        await asyncio.sleep(0)


def zombie(pid: int) -> None:
    """Wait until a child of ours is a zombie."""
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


async def test_orphans_of_a_command_are_adopted_and_reaped(run):
    with orphans_adopted():
        pid = int(await run(AWAY % "echo $$; exec sleep 1000 >&2"))
        assert psutil.Process(pid).ppid() == os.getpid()
        os.kill(pid, 9)
        await freed(pid)


async def test_orphans_are_not_adopted_outside_the_block(run, lives):
    with orphans_adopted():
        pass
    pid = int(await run(AWAY % "echo $$; exec sleep 1000 >&2"))
    assert psutil.Process(pid).ppid() != os.getpid()
    assert lives(pid)


async def test_children_of_other_code_are_not_reaped():
    with orphans_adopted(), started("exit 7") as child:
        zombie(child.pid)
        reap_orphans()
        assert child.wait() == 7


async def test_a_child_that_other_code_reaps_meanwhile_does_not_hide_an_orphan(run, monkeypatch):
    with orphans_adopted(), started("exit 7") as child:
        orphan = int(await run(AWAY % "echo $$; exec sleep 1000 >&2"))
        zombie(child.pid)
        look = os.waitid

        def look_and_reap(*arguments):
            found = look(*arguments)
            if found is not None and found.si_pid == child.pid and arguments[0] == os.P_ALL:
                child.wait()
                os.kill(orphan, 9)
                zombie(orphan)
            return found

        with monkeypatch.context() as patch:
            patch.setattr(os, "waitid", look_and_reap)
            reap_orphans()
        assert child.returncode == 7
        assert is_freed(orphan)


async def test_an_orphan_behind_a_watched_zombie_is_reaped_after_it():
    with orphans_adopted():
        exited = asyncio.Event()
        with started(f"{AWAY % 'echo $$; exec >&-; exec sleep 0.05'}; exit 7") as child:
            assert child.stdout is not None
            orphan = int(child.stdout.read())
            watch = watch_exit(child.pid, exited.set)
            child.returncode = 0  # disowned, as in `spawn`
        zombie(child.pid)
        zombie(orphan)
        reap_orphans()
        assert not is_freed(child.pid)
        assert not is_freed(orphan)
        async with asyncio.timeout(60):
            await exited.wait()
        assert watch.reap() == 7
        assert is_freed(orphan)


async def test_exit_codes_are_not_affected():
    with orphans_adopted():
        children = [
            spawn(["sh", "-c", f"{AWAY % 'true'}; exit {code}"], cwd="/", env=ENV, on_output=lambda _: None)
            for code in range(20)
        ]
        assert [await child.wait() for child in children] == list(range(20))


async def test_strays_of_a_service_are_ended_and_reaped(tmp_path, told):
    with orphans_adopted():
        async with opened(tmp_path) as reaper:
            service = claimed(reaper, f"{STUBBORN}; read line", told)
            pid = await told.pid()
            assert psutil.Process(pid).ppid() == os.getpid()
            service.end_input()
            await told.exit()
        await freed(pid)
