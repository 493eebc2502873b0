"""Signals reach the right processes, and waiting ends with them."""

import asyncio
import signal
import subprocess

import pytest

from tests.process.conftest import who
from zotd.process.census import Identity
from zotd.process.ladder import signal_all


@pytest.fixture
def sleeper():
    process = subprocess.Popen(["sleep", "1000"])
    yield process
    process.kill()
    process.wait()


async def test_the_wait_ends_with_the_last_process(sleeper):
    async with asyncio.timeout(60):
        await signal_all([who(sleeper.pid)], signal.SIGTERM, within_s=1000)
    assert sleeper.wait() == -signal.SIGTERM


async def test_the_wait_has_a_time_limit(sleeper):
    async with asyncio.timeout(60):
        await signal_all([who(sleeper.pid)], signal.SIGCONT, within_s=0.01)
    assert sleeper.poll() is None


async def test_without_processes_there_is_no_wait(sleeper):
    await signal_all([], signal.SIGKILL, within_s=1000)
    await signal_all([Identity(sleeper.pid, who(sleeper.pid).started - 1)], signal.SIGKILL, within_s=1000)
    gone = who(sleeper.pid)
    assert sleeper.poll() is None
    sleeper.kill()
    sleeper.wait()
    await signal_all([gone], signal.SIGKILL, within_s=1000)
