"""`zot acp` with an editor that is broken, or means harm: it answers what can be answered, and lives."""

import asyncio
import json
import signal
from types import SimpleNamespace

import pytest

from tests.bridges.acp.test_stdio import started
from tests.npm.packages import INSTALL_S
from zotd.bridges.acp.editor import MAX_REQUESTS, Editor
from zotd.testing.script import CallPart, Hang, ScriptedReply, TextPart, calls, text
from zotd.testing.wire_client import WireClient
from zotd.wire import acp as frames

pytestmark = pytest.mark.timeout(INSTALL_S + 20)

WRITE = calls(CallPart("write", {"path": "a.txt", "content": "one\n"}))

ENDLESS = ScriptedReply([TextPart(["Once"]), Hang()])

DEEP = b"[" * 100_000 + b"]" * 100_000

BAD = [
    (b'{"jsonrpc":"2.0","id":NaN,"method":"initialize"}', None, -32700),
    (b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":NaN}', None, -32700),
    (b'{"jsonrpc":"2.0","id":"\\ud800","method":"initialize"}', None, -32700),
    (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', None, -32700),
    (b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":' + DEEP + b"}", None, -32700),
    (DEEP, None, -32600),
    (b'[{"jsonrpc":"2.0","id":1,"method":"initialize"}]', None, -32600),
    (b'{"jsonrpc":"2.0","id":1.5,"method":"initialize"}', None, -32600),
    (b'{"jsonrpc":"2.0","id":{},"method":"initialize"}', None, -32600),
    (b'{"jsonrpc":"2.0","id":true,"method":"initialize"}', None, -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":7}', None, -32600),
    (b"null", None, -32600),
    (b'{"jsonrpc":"2.0","id":null,"method":"initialize"}', None, -32602),
    (b'{"jsonrpc":"2.0","id":%d,"method":"none"}' % 10**30, 10**30, -32601),
    (b'{"jsonrpc":"2.0","id":-1,"method":"initialize","params":null}', -1, -32602),
    (b'{"jsonrpc":"2.0","id":"","method":""}', "", -32601),
    (b'{"jsonrpc":"2.0","id":1,"method":"session/close","params":{"sessionId":"s"}}', 1, -32002),
]


def send_answer(raw, request, option, **more):
    """The person has chosen `option`."""
    result = {"outcome": {"outcome": "selected", "optionId": option}}
    raw.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result, **more}).encode() + b"\n")


async def until(raw, method):
    """The next frame of this method."""
    while (frame := await raw.frame()).get("method") != method:
        pass
    return frame


async def answers(raw, count):
    """The next answers, by their ids."""
    found: dict[object, dict[str, object]] = {}
    while len(found) < count:
        frame = await raw.frame()
        if "method" not in frame:
            found[frame["id"]] = frame
    return found


async def asked(raw, here, request=2):
    """A session whose run waits for a person, and the question."""
    session = await raw.new(here.cwd)
    raw.send(1, "session/set_mode", sessionId=session, modeId="ask")
    await raw.answer(1)
    raw.prompt(request, session, "go")
    return session, await until(raw, "session/request_permission")


async def run_begins(here, count=1):
    async with here.server.arrived:
        await here.server.arrived.wait_for(lambda: len(here.server.requests) == count)


async def visit_ends(here, raw):
    """It still answers; and what it has said is right. What it was asked is wrong on purpose, so is not judged."""
    raw.send("alive", "initialize", protocolVersion=1)
    assert (await raw.answer("alive"))["result"]["protocolVersion"] == 1
    here.judge([("agent", frame) for frame in raw.frames if "result" not in frame])


async def test_a_line_of_any_bad_shape_is_answered_once(world):
    here = await world()
    async with started(here) as raw:
        for line, request, code in BAD:
            raw.write(line + b"\n")
            frame = await raw.frame()
            assert (frame["id"], frame["error"]["code"]) == (request, code), line[:80]
        await visit_ends(here, raw)


async def test_who_asks_and_does_not_read_is_read_no_further():
    written: list[bytes] = []
    output = SimpleNamespace(transport=SimpleNamespace(write=written.append), control=lambda _: None)

    async def serve(request, respond):
        respond(frames.Empty())

    async def hear(notification):
        pass

    async with asyncio.TaskGroup() as group:
        spawn = lambda name, work: group.create_task(work, name=name).cancel  # noqa: E731
        editor = Editor(output, spawn)  # type: ignore[arg-type]  # the little of it that is needed
        editor.start(serve=serve, hear=hear)
        request = b'{"jsonrpc":"2.0","id":1,"method":"x"}\n'
        for line in (request, b"no JSON\n", b'{"jsonrpc":"2.0","method":"x"}\n'):
            editor.paused()
            editor.received(line * (MAX_REQUESTS - 1))
            await editor.settled()  # all are answered
            assert editor.may_read.is_set()
            editor.received(line)
            await editor.settled()
            assert not editor.may_read.is_set()
            editor.resumed()
            await asyncio.to_thread(editor.may_read.wait, 20)
            assert editor.may_read.is_set()
    assert len(written) == 2 * MAX_REQUESTS


async def test_fifty_prompts_at_once_are_fifty_answers(world):
    here = await world(lambda _: text("ok"))
    async with started(here) as raw:
        session = await raw.new(here.cwd)
        for number in range(50):
            raw.prompt(number, session, "again")
        found = await answers(raw, 50)
        assert {frame["result"]["stopReason"] for frame in found.values()} == {"end_turn"}
        await visit_ends(here, raw)


async def test_prompts_of_a_session_that_is_closed_or_opened_again_are_answered(world):
    here = await world(lambda _: ENDLESS)
    async with started(here) as raw:
        session = await raw.new(here.cwd)
        where = {"sessionId": session, "cwd": str(here.cwd), "mcpServers": []}
        raw.send(None, "session/cancel", sessionId=session)  # nothing runs
        raw.prompt(1, session, "runs")
        raw.prompt(2, session, "waits")
        await run_begins(here)
        raw.send(3, "session/close", sessionId=session)
        found = await answers(raw, 3)
        assert [found[one]["result"] for one in (1, 2)] == [{"stopReason": "cancelled"}] * 2
        raw.send(4, "session/load", **where)
        raw.send(5, "session/load", **where)
        found = await answers(raw, 2)  # both are under way at once, and either may be the later one
        refused = [found[one]["error"]["message"] for one in (4, 5) if "error" in found[one]]
        assert len(refused) < 2
        assert all("opened a second time" in message for message in refused)
        raw.prompt(6, session, "runs on")
        await run_begins(here, 2)
        raw.send(7, "session/resume", **where)
        assert "opened a second time" in (await raw.answer(6))["error"]["message"]
        raw.send(None, "session/cancel", sessionId=session)
        raw.send(None, "session/cancel", sessionId=session)
        await visit_ends(here, raw)


async def test_only_the_first_answer_to_a_question_counts_and_only_an_offered_one(world):
    here = await world(WRITE, text("denied"), WRITE)
    async with started(here) as raw:
        session, question = await asked(raw, here)
        send_answer(raw, question, "reject_once", error=None)
        send_answer(raw, question, "allow_once")
        assert (await raw.answer(2))["result"] == {"stopReason": "end_turn"}
        send_answer(raw, question, "allow_once")
        raw.prompt(3, session, "go")
        send_answer(raw, await until(raw, "session/request_permission"), "allow_everything")
        raw.send(None, "session/cancel", sessionId=session)
        assert (await raw.answer(3))["result"] == {"stopReason": "cancelled"}
        assert not (here.cwd / "a.txt").exists()
        await visit_ends(here, raw)


async def test_of_two_editors_the_first_answer_counts(world):
    here = await world(WRITE, text("done"))
    async with started(here) as one, started(here) as two:
        session = await two.new(here.cwd)
        two.send(1, "session/close", sessionId=session)
        await two.answer(1)
        one.send(1, "session/load", sessionId=session, cwd=str(here.cwd), mcpServers=[])
        two.send(2, "session/load", sessionId=session, cwd=str(here.cwd), mcpServers=[])
        await one.answer(1)
        await two.answer(2)
        one.send(2, "session/set_mode", sessionId=session, modeId="ask")
        await one.answer(2)
        one.prompt(3, session, "go")
        questions = [await until(raw, "session/request_permission") for raw in (one, two)]
        send_answer(two, questions[1], "allow_once")
        assert (await one.answer(3))["result"] == {"stopReason": "end_turn"}
        send_answer(one, questions[0], "reject_once")
        assert (here.cwd / "a.txt").exists()
        await visit_ends(here, one)
        await visit_ends(here, two)


async def test_a_question_is_withdrawn_when_its_daemon_is_killed(world, ended):
    here = await world(WRITE, process=True)
    async with started(here) as raw:
        _, question = await asked(raw, here)
        here.daemon.end(signal.SIGKILL)
        assert (await until(raw, "$/cancel_request"))["params"] == {"requestId": question["id"]}
        assert "error" in await raw.answer(2)
        send_answer(raw, question, "allow_once")
        await visit_ends(here, raw)
        assert not (here.cwd / "a.txt").exists()
    async with WireClient.connect(here.place.socket) as other:
        pid = (await other.ask("hello", role="admin"))["pid"]
        await other.ask("daemon.shutdown")
        await ended(pid)
