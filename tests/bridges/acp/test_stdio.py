"""`zot acp` as bytes: what is no message, what ends it, and an editor that does not read."""

import asyncio
import json
import os
import signal
from asyncio.subprocess import PIPE
from contextlib import asynccontextmanager

import pytest

from tests.npm.packages import INSTALL_S
from zotd.testing.script import CallPart, Gate, Hang, ScriptedReply, TextPart, calls, text
from zotd.testing.wire_client import WireClient
from zotd.wire.framing import CLIENT_LIMIT

pytestmark = pytest.mark.timeout(INSTALL_S + 20)

WAIT_S = 30.0


class Raw:
    """The program, and its standard input and output."""

    def __init__(self, process):
        self.process = process
        self.frames = []

    def write(self, data):
        self.process.stdin.write(data)

    def send(self, request, method, **params):
        """A request, or with None a notification."""
        head = {} if request is None else {"id": request}
        self.write(json.dumps({"jsonrpc": "2.0", **head, "method": method, "params": params}).encode() + b"\n")

    async def frame(self):
        async with asyncio.timeout(WAIT_S):
            line = await self.process.stdout.readline()
        assert line, "it has closed its standard output"
        self.frames.append(json.loads(line))
        return self.frames[-1]

    async def answer(self, request):
        """The answer with this id; what comes before is kept."""
        while True:
            frame = await self.frame()
            if frame.get("id", "") == request and "method" not in frame:
                return frame

    async def exit(self):
        async with asyncio.timeout(WAIT_S):
            return await self.process.wait()

    async def new(self, cwd):
        self.send("new", "session/new", cwd=str(cwd), mcpServers=[])
        return (await self.answer("new"))["result"]["sessionId"]

    def prompt(self, request, session, words):
        self.send(request, "session/prompt", sessionId=session, prompt=[{"type": "text", "text": words}])


@asynccontextmanager
async def started(here, **options):
    process = await asyncio.create_subprocess_exec(
        *here.command, env=here.env, stdin=PIPE, **{"stdout": PIPE, **options}, limit=32 * 1024 * 1024
    )
    try:
        yield Raw(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        if process.stdin is not None:
            process.stdin.close()


async def state_of(here, session):
    async with WireClient.connect(here.place.socket) as other:
        return (await other.ask("get_state", session=session))["state"]


async def test_an_invalid_request_is_answered_as_json_rpc_requires(world):
    here = await world()
    async with started(here) as raw:
        raw.write(b"{\n")
        assert (await raw.answer(None))["error"]["code"] == -32700
        raw.write(b'[]\n{"jsonrpc":"2.0","id":7}\n{"id":8,"method":"initialize"}\n')
        errors = [await raw.frame() for _ in range(3)]
        assert [(one["id"], one["error"]["code"]) for one in errors] == [(None, -32600), (7, -32600), (8, -32600)]
        raw.write(b'"' + b"x" * CLIENT_LIMIT + b'"\n')
        assert (await raw.answer(None))["error"]["code"] == -32600
        raw.send(9, "initialize", protocolVersion="1")
        assert (await raw.answer(9))["error"]["code"] == -32602
        raw.send(None, "session/cancel", sessionId=3)  # nobody answers these
        raw.send(None, "session/cancel", sessionId="s_none")
        raw.send(None, "$/whatever")
        raw.write(b'{"jsonrpc":"2.0","id":99,"result":{}}\n')
        raw.send("last", "initialize", protocolVersion=2)
        assert (await raw.frame())["result"]["protocolVersion"] == 1
        raw.process.stdin.close()
        assert await raw.exit() == 0


async def test_runs_go_on_when_the_editor_is_closed(world):
    gate = asyncio.Event()
    here = await world(ScriptedReply([TextPart(["Once"]), Gate(gate)]))
    async with started(here) as raw:
        session = await raw.new(here.cwd)
        raw.prompt(1, session, "go")
        raw.process.stdin.close()
        assert await raw.exit() == 0
    async with WireClient.connect(here.place.socket) as other:
        found = await other.ask("attach", session=session)
        assert found["run"] is not None
        gate.set()
        await other.until("done")


async def test_requests_before_the_end_of_input_are_answered(world):
    here = await world()
    async with started(here) as raw:
        raw.send(1, "initialize", protocolVersion=1)
        raw.send(2, "session/list")
        raw.process.stdin.close()
        assert (await raw.answer(2))["result"] == {"sessions": []}
        assert await raw.exit() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_it_and_not_the_run(world, number):
    here = await world(ScriptedReply([TextPart(["Once"]), Hang()]))
    async with started(here) as raw:
        session = await raw.new(here.cwd)
        raw.prompt(1, session, "go")
        async with here.server.arrived:
            await here.server.arrived.wait_for(lambda: here.server.requests)
        raw.process.send_signal(number)
        assert await raw.exit() == 128 + number
    assert await state_of(here, session) == "running"


async def test_it_ends_when_its_output_is_closed(world):
    here = await world()
    read, write = os.pipe()
    async with started(here, stdout=write) as raw:
        os.close(write)
        raw.send(1, "initialize", protocolVersion=1)
        assert await asyncio.to_thread(os.read, read, 10)
        os.close(read)
        assert await raw.exit() == 0


async def test_an_editor_that_does_not_read_costs_the_daemon_nothing_and_misses_nothing(world):
    pages = [f"page {number}\n{'x' * 1_000_000}\n" for number in range(8)]
    here = await world(
        *(calls(CallPart("bash", {"command": "true"}), before=page) for page in pages), text("end"), text("!")
    )
    async with started(here) as raw, WireClient.connect(here.place.socket) as other:
        session = await raw.new(here.cwd)
        await other.ask("attach", session=session)
        raw.process.stdout._transport.pause_reading()
        raw.prompt(1, session, "go")
        await other.until("done")
        assert (await other.ask("daemon.metrics"))["evictions"] == 1
        raw.process.stdout._transport.resume_reading()
        assert (await raw.answer(1))["result"] == {"stopReason": "end_turn"}
        assert said(raw) == "".join(pages) + "end"
        raw.prompt(2, session, "go")
        assert (await raw.answer(2))["result"] == {"stopReason": "end_turn"}
        assert said(raw) == "".join(pages) + "end!"


def said(raw):
    updates = [frame["params"]["update"] for frame in raw.frames if frame.get("method") == "session/update"]
    return "".join(one["content"]["text"] for one in updates if one["sessionUpdate"] == "agent_message_chunk")
