"""The process of the bridges, by itself; `tests/bridges/mcp/test_bridge_server.py` has it in a workspace."""

import asyncio
import json
import os
import sys

import pytest

from zotd.exthost import mcp
from zotd.exthost.bridge_process import BridgeProcess
from zotd.testing import warm
from zotd.wire.bridges import BridgeRequest

ENV = {"PATH": os.environ["PATH"]}

LIMIT_S = 30


class Told:
    """The listener of one bridge."""

    def __init__(self):
        self.out = b""
        self.err = b""
        self.codes = []
        self.changed = asyncio.Event()

    def output(self, data):
        self.out += data
        self.changed.set()

    def errors(self, data):
        self.err += data
        self.changed.set()

    def closed(self, pipe):
        pass

    def stalled(self, reason):
        raise AssertionError(reason)

    def exited(self, code):
        self.codes.append(code)
        self.changed.set()

    async def until(self, holds):
        async with asyncio.timeout(LIMIT_S):
            while not holds():
                self.changed.clear()
                await self.changed.wait()


@pytest.fixture
async def begin(tmp_path):
    """Starts a process of bridges, or another program in its place."""
    begun = []

    def begin(*argv, **options):
        command = argv or tuple(warm.command("zotd.bridges.mcp"))
        process = BridgeProcess(
            command, cwd=str(tmp_path), env=ENV, claim=None, forked=None, on_end=lambda _: None, **options
        )
        begun.append(process)
        return process

    yield begin
    for process in begun:
        process.close()
        async with asyncio.timeout(LIMIT_S):
            await process.gone.wait()


@pytest.fixture
def request_of(tmp_path):
    """The request of a bridge to this server."""

    def request_of(*argv):
        entry = {"command": argv[0], "args": argv[1:]}
        (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"a": entry}}))
        (manifest,), _ = mcp.servers(tmp_path / "mcp.json", directory=tmp_path)
        return BridgeRequest(manifest.argv[len(manifest.host_argv) :], ENV, str(tmp_path)).packed()

    return request_of


async def test_a_bridge_says_why_it_ends_and_reports_its_code(begin, request_of):
    process, told = begin(), Told()
    process.start(request_of("no-such-program"), None, told)
    await told.until(lambda: told.codes)
    assert told.codes == [1]
    assert told.out.startswith(b'{"type":"hello","name":"mcp-a"')
    assert told.err == b"the MCP server a could not be started: no-such-program: no such file or directory\n"


async def test_a_bridge_that_is_terminated_ends_alone(begin, request_of):
    process, one, other = begin(), Told(), Told()
    first = process.start(request_of("sleep", "600"), None, one)
    process.start(request_of("sleep", "600"), None, other)
    await one.until(lambda: one.out)
    await other.until(lambda: other.out)
    first.terminate()
    await one.until(lambda: one.codes)
    assert (other.codes, process.gone.is_set()) == ([], False)


async def test_a_bridge_that_is_killed_is_reported_as_killed(begin, request_of):
    process, told = begin(), Told()
    service = process.start(request_of("sleep", "600"), None, told)
    await told.until(lambda: told.out)
    service.kill()
    await told.until(lambda: told.codes)
    assert told.codes == [-9]


async def test_the_process_ends_some_time_after_its_last_bridge(begin, request_of):
    process, told = begin(linger_s=0.05), Told()
    process.start(request_of("no-such-program"), None, told)
    async with asyncio.timeout(LIMIT_S):
        await process.gone.wait()
    assert told.codes == [1]


async def test_its_bridges_end_with_the_process(begin, request_of):
    process, told = begin(sys.executable, "-S", "-c", "import sys; sys.stdin.buffer.raw.read(5); sys.exit(7)"), Told()
    process.start(request_of("sleep", "600"), None, told)
    await told.until(lambda: told.codes)
    assert told.codes == [7]
    with pytest.raises(OSError):
        process.start(request_of("sleep", "600"), None, Told())


async def test_a_report_that_is_none_ends_nothing(begin, request_of):
    code = "import sys, time; sys.stdin.buffer.raw.read(5); print('what\\n1 5', flush=True); time.sleep(600)"
    process, told = begin(sys.executable, "-S", "-c", code), Told()
    process.start(request_of("sleep", "600"), None, told)
    await told.until(lambda: told.codes)
    assert (told.codes, process.gone.is_set()) == ([5], False)
