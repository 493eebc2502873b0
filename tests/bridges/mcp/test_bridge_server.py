"""Several bridges in one process: what they share, and that none of them disturbs another."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest

from tests.bridges.conftest import program
from tests.exthost.conftest import Heard, context, run
from zotd.exthost.discovery import Discovered
from zotd.exthost.host import Host
from zotd.exthost.mcp import servers
from zotd.exthost.surroundings import Surroundings
from zotd.process import OrphanReaper
from zotd.tasks import contained

LIMIT_S = 30

COLD = pytest.mark.usefixtures("cold_bridge")
"""The process itself is looked at, and not the one through which the tests' template process runs it."""

NOISY = Path(__file__).parent.parent / "noisy_server.py"


class Place:
    """A workspace with MCP servers."""

    def __init__(self, path):
        self.path = path
        self.heard = Heard()

    def configure(self, **entries):
        (self.path / "mcp.json").write_text(json.dumps({"mcpServers": entries}))

    def find(self):
        return Discovered(servers(self.path / "mcp.json", directory=self.path)[0])

    @asynccontextmanager
    async def host(self, *tools, **entries):
        """A host that runs these servers, and offers these tools."""
        self.configure(**entries)
        async with asyncio.TaskGroup() as tasks:

            def spawn(name, work):
                contained(tasks, name, work)

            home = self.path / "home"
            reaper = OrphanReaper(home, spawn)
            env = {"PATH": os.environ["PATH"]}
            host = Host(
                discover=self.find,
                surroundings=Surroundings(str(self.path), home, env, reaper=reaper),
                listener=self.heard,
            )
            try:
                await host.start()
                await self.heard.until(lambda: set(tools) <= names(host))
                yield host
            finally:
                await host.stop()
                await reaper.close()


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


def void(_):
    """The task group owns the task."""


def processes_of_a_daemon_that_is_killed(path):
    command = [sys.executable, "-m", "tests.bridges.a_daemon", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as daemon:
        assert daemon.stdout is not None
        process = psutil.Process(int(daemon.stdout.readline().removeprefix("ready ")))
        found = [process, *process.children(recursive=True)]
        daemon.kill()
    return found


def names(host):
    return {tool.spec.name for tool in host.offers.tools()}


def pids(host):
    """The processes of the bridges, by extension."""
    return {extension.name: extension.serving.process.pid for extension in host.extensions if extension.serving}


def tool(host, name):
    return next(one for one in host.offers.tools() if one.spec.name == name)


def noisy(how):
    return {"command": sys.executable, "args": ["-S", str(NOISY), how]}


async def test_servers_of_a_workspace_share_one_process(place):
    async with place.host("a__hi", "b__hi", a=program("odd_server"), b=program("odd_server")) as host:
        assert len(set(pids(host).values())) == 1
        assert await run(host, "a__hi") == await run(host, "b__hi") == (False, "hi")


@COLD
async def test_a_process_that_is_killed_is_replaced_and_all_its_servers_are_back(place):
    async with place.host("a__hi", "b__hi", a=program("odd_server"), b=program("odd_server")) as host:
        before = pids(host)
        psutil.Process(before["mcp-a"]).kill()
        await place.heard.until(lambda: len(pids(host)) == 2 and not set(pids(host).values()) & set(before.values()))
        await place.heard.until(lambda: names(host) == {"a__hi", "b__hi"})
        assert len(set(pids(host).values())) == 1
        assert await run(host, "a__hi") == await run(host, "b__hi") == (False, "hi")
    reasons = {(name, reason[:20]) for name, state, reason in place.heard.states if state == "restarting"}
    assert reasons == {("mcp-a", "was ended by SIGKILL"), ("mcp-b", "was ended by SIGKILL")}


async def test_a_reload_of_one_server_leaves_the_others_calls_alone(place):
    entries = {"a": program("odd_server"), "b": program("sample_server")}
    async with place.host("a__hi", "b__slowly", **entries) as host:
        began = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            slow = group.create_task(tool(host, "b__slowly").run({}, context(progress=lambda _: began.set())))
            await began.wait()
            before = tool(host, "a__hi")
            assert await host.reload("mcp-a") is None
            assert await run(host, "a__hi") == (False, "hi")
            assert before is not None
        outcome = slow.result()
        assert (outcome.is_error, outcome.content[0].text) == (False, "done")
    assert [state for name, state, _ in place.heard.states if name == "mcp-b"] == [
        "starting",
        "ready",
        "stopping",
        "stopped",
    ]


@pytest.mark.parametrize("how", ["progress", "lines", "stderr", "requests", "endless line", "huge lines", "hangs"])
async def test_a_server_that_misbehaves_does_not_keep_another_from_answering(place, how):
    async with place.host("bad__go", "good__hi", bad=noisy(how), good=program("odd_server")) as host:
        process = pids(host)["mcp-good"]
        began = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            bad = group.create_task(tool(host, "bad__go").run({}, context(progress=lambda _: began.set())))
            await began.wait()
            async with asyncio.timeout(LIMIT_S):
                for _ in range(20):
                    assert await run(host, "good__hi") == (False, "hi")
            assert pids(host)["mcp-good"] == process
            bad.cancel()


@COLD
async def test_an_endless_flood_takes_a_limited_amount_of_memory(place):
    async with place.host("bad__go", "good__hi", bad=noisy("progress"), good=program("odd_server")) as host:
        process = psutil.Process(pids(host)["mcp-good"])
        began = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            bad = group.create_task(tool(host, "bad__go").run({}, context(progress=lambda _: began.set())))
            await began.wait()
            before = process.memory_info().rss
            for _ in range(600):
                await run(host, "good__hi")
            assert process.memory_info().rss - before < 16 * 1024 * 1024
            bad.cancel()


@COLD
async def test_a_server_that_is_killed_with_its_bridge_takes_no_other_along(place):
    async with place.host("a__hi", "b__hi", a=noisy("stubborn"), b=program("odd_server")) as host:
        process = psutil.Process(pids(host)["mcp-b"])
        stubborn = next(one for one in process.children() if "stubborn" in one.cmdline())
        place.configure(b=program("odd_server"))
        report = await host.reload_all()
        assert report.stopped == ["mcp-a"]
        assert not psutil.pid_exists(stubborn.pid) or stubborn.status() == psutil.STATUS_ZOMBIE
        assert pids(host) == {"mcp-b": process.pid}
        assert await run(host, "b__hi") == (False, "hi")


async def test_each_server_has_its_own_environment_directory_and_log(place, tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    entries = {name: {**program("sample_server"), "cwd": name, "env": {"MINE": name}} for name in ("a", "b")}
    async with place.host("a__environment", "b__environment", **entries) as host:
        for name in ("a", "b"):
            found = json.loads((await run(host, f"{name}__environment"))[1])
            assert (found["MINE"], found["cwd"]) == (name, str(tmp_path / name))
        await run(host, "a__crash")
        await place.heard.until(
            lambda: ("mcp-a", "restarting") in {(name, state) for name, state, _ in place.heard.states}
        )
    logs = {name: (tmp_path / "home" / "logs" / f"ext-mcp-{name}.log") for name in ("a", "b")}
    assert "the MCP server a has exited with code 3" in logs["a"].read_text()
    assert not logs["b"].exists() or "code 3" not in logs["b"].read_text()


@COLD
async def test_the_process_ends_with_the_host_of_its_servers(place):
    async with place.host("a__hi", a=program("odd_server")) as host:
        process = psutil.Process(pids(host)["mcp-a"])
        (server,) = process.children()
    assert not psutil.pid_exists(process.pid)
    assert not psutil.pid_exists(server.pid) or server.status() == psutil.STATUS_ZOMBIE


@COLD
async def test_a_process_that_hangs_is_killed_with_all_its_servers(place):
    async with place.host("a__hi", "b__hi", a=program("odd_server"), b=program("odd_server")) as host:
        before = pids(host)
        os.kill(before["mcp-a"], signal.SIGSTOP)
        (extension,) = (one for one in host.extensions if one.name == "mcp-a")
        extension.serving.process.end(kill=True)
        await place.heard.until(lambda: len(pids(host)) == 2 and not set(pids(host).values()) & set(before.values()))
        await place.heard.until(lambda: names(host) == {"a__hi", "b__hi"})
        assert await run(host, "b__hi") == (False, "hi")


@COLD
async def test_nothing_is_left_when_the_daemon_is_killed(place, tmp_path):
    place.configure(a=noisy("stubborn"), b=program("odd_server"))
    all_of_it = processes_of_a_daemon_that_is_killed(tmp_path)
    assert len(all_of_it) == 4  # one of bridges, two servers, and a process that has left its server's group
    async with asyncio.TaskGroup() as tasks:
        reaper = OrphanReaper(tmp_path / "home", lambda name, work: void(contained(tasks, name, work)))
        reaper.sweep()
        async with asyncio.timeout(LIMIT_S):
            await reaper.swept.wait()
        await reaper.close()
    assert [one for one in all_of_it if one.is_running() and one.status() != psutil.STATUS_ZOMBIE] == []
