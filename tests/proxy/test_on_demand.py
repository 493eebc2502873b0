"""The one proxy of a program: it starts once, ends with its task, and says why it cannot start."""

import asyncio

import pytest

from tests.proxy.conftest import handed_over
from zotd.paths import UnsafePathError
from zotd.proxy import AllowList
from zotd.proxy.on_demand import ProxyOnDemand
from zotd.tasks import contained


@pytest.fixture
async def started(tmp_path):
    tasks: list[asyncio.Task[None]] = []
    async with asyncio.TaskGroup() as group:

        def spawn(name, work):
            tasks.append(contained(group, name, work))

        yield ProxyOnDemand(str(tmp_path / "outlets"), str(tmp_path / "home"), spawn), tasks
        for task in tasks:
            task.cancel()


async def test_outlets_that_are_wanted_at_once_share_one_proxy(started):
    proxy, tasks = started
    assert tasks == []
    async with asyncio.TaskGroup() as group:
        wanted = [group.create_task(proxy.outlet(f"session {n}", AllowList(()))) for n in range(5)]
    assert len(tasks) == 1
    for outlet in wanted:
        await handed_over(outlet.result().admit())


async def test_without_a_private_directory_it_says_so_and_tries_again(started, tmp_path):
    proxy, tasks = started
    outlets = tmp_path / "outlets"
    outlets.mkdir(mode=0o755)
    with pytest.raises(UnsafePathError, match="is open to other users"):
        await proxy.outlet("a session", AllowList(()))
    outlets.chmod(0o700)
    await proxy.outlet("a session", AllowList(()))
    assert len(tasks) == 2
