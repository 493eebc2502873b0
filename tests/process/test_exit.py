import asyncio
import os
import signal

import pytest

from zotd.process.exit import UNKNOWN_EXIT, ThreadWatch, watch_exit


def start(command: str) -> int:
    return os.posix_spawn("/bin/sh", ["sh", "-c", command], {})


def collect(pid: int) -> None:
    os.waitpid(pid, 0)


@pytest.mark.parametrize("watch", [ThreadWatch, watch_exit], ids=["thread", "this system"])
@pytest.mark.parametrize(("command", "code"), [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", -signal.SIGKILL)])
async def test_an_exit_is_reported_with_its_code(watch, command, code):
    exited = asyncio.Event()
    watching = watch(start(command), exited.set)
    async with asyncio.timeout(60):
        await exited.wait()
    assert watching.reap() == code


async def test_a_child_reaped_by_other_code_is_still_reported():
    exited = asyncio.Event()
    pid = start("exit 7")
    watching = watch_exit(pid, exited.set)
    collect(pid)
    async with asyncio.timeout(60):
        await exited.wait()
    assert watching.reap() == UNKNOWN_EXIT
