"""SIGTERM: nothing new is taken, and runs stop where they can be gone on with."""

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from tests.e2e.conftest import House, kinds, only
from tests.e2e.family import OPENING, Cast, of, results_of, tasks
from tests.e2e.fleet import begin_draining
from zotd.testing.live_daemon import STOP_S, DaemonProcess, place, serving
from zotd.testing.script import CallPart, Gate, Hang, Refusal, ScriptedReply, TextPart, calls, text

FOREVER_S = "3600"
"""Longer than any wait of these tests, so a drain that ends has not waited for it."""

WAITS = calls(CallPart("bash", {"command": "echo started; cat go"}))
"""A call that ends when a test writes into the pipe `go`."""


@pytest.fixture
def draining(tmp_path, monkeypatch):
    """`async with draining(seconds) as house`: a daemon in this loop that gives its runs so long after SIGTERM."""

    @asynccontextmanager
    async def draining(seconds=FOREVER_S):
        async with AsyncExitStack() as stack:
            where = await stack.enter_async_context(serving(tmp_path, {"ZOT_LIMITS_DRAIN_S": seconds}))
            monkeypatch.setenv("HOME", where.env["HOME"])
            yield House(stack, where)

    return draining


async def test_a_run_stops_after_its_calls_and_continues_after_the_restart(draining, model):
    server = await model(WAITS, text("It went on."))
    async with draining() as house:
        os.mkfifo(house.cwd / "go")
        talk = await house.create("anthropic", server)
        await talk.ask("prompt", message="go")
        await talk.until("tool_progress")
        await begin_draining(talk.client)
        assert await talk.refused("prompt", message="and then?") == "shutting_down"
        (house.cwd / "go").write_text("walrus")
        events = await talk.until("done")
        assert kinds(events)[-3:] == ["tool_result", "interrupted", "done"]
        assert "walrus" in str(only(events, "tool_result"))
        await talk.client.rest()
    assert len(server.requests) == 1

    async with draining() as house:
        again = await house.follow(talk.id)
        assert await again.state() == "held"
        await again.ask("session.configure", secrets={"api_key": "sk-scripted-key"})
        await again.ask("prompt", message="/continue")
        await again.until("done")
        assert "walrus" in str(server.requests[-1].messages)
        assert (await again.texts())[-1] == ("assistant", ["It went on."])


async def test_a_subagent_is_drained_and_its_parent_goes_on_with_its_answer_after_the_restart(draining, model):
    server = await model(Cast(go=[tasks("a"), text("done")], a=[WAITS, text("It went on.")]))
    async with draining() as house:
        os.mkfifo(house.cwd / "go")
        talk = await house.create("ollama", None, **OPENING, base_url=server.openai_url)
        await talk.ask("prompt", message="go")
        await server.received(2)
        _, child = (await talk.client.ask("session.family", session=talk.id))["sessions"]
        below = await house.follow(child["id"])
        await begin_draining(talk.client)
        await asyncio.to_thread((house.cwd / "go").write_text, "walrus")
        assert kinds(await below.until("done"))[-3:] == ["tool_result", "interrupted", "done"]
        await talk.client.rest()

    async with draining() as house:
        again = await house.follow(talk.id)
        assert [one["state"] for one in (await again.client.ask("session.family", session=talk.id))["sessions"]] == [
            "held"
        ] * 2
        await again.ask("run_command", name="continue")
        await again.until("done")
        assert results_of(of(server, "go")[1]) == ["It went on."]
        assert [len(of(server, name)) for name in ("go", "a")] == [2, 2]


async def test_a_run_that_waits_for_a_retry_stops_at_once_and_can_be_continued(draining, model):
    server = await model(Refusal(503, headers={"retry-after": "25"}), text("It went on."))
    async with draining() as house:
        talk = await house.create("openai", server)
        await talk.ask("prompt", message="go")
        await talk.until("retry")
        os.kill(os.getpid(), signal.SIGTERM)
        assert kinds(await talk.until("done"))[-2:] == ["interrupted", "done"]
        await talk.client.rest()
    async with draining() as house:
        again = await house.follow(talk.id)
        await again.ask("session.configure", secrets={"api_key": "sk-scripted-key"})
        await again.ask("prompt", message="/continue")
        await again.until("done")
        assert (await again.texts())[-1] == ("assistant", ["It went on."])


async def test_a_run_that_comes_to_its_end_is_over_and_what_waited_is_held(draining, model):
    gate = asyncio.Event()
    server = await model(ScriptedReply([TextPart(["Once "]), Gate(gate), TextPart(["upon."])]))
    async with draining() as house:
        talk = await house.create("openai", server)
        await talk.ask("prompt", message="go")
        await talk.ask("prompt", message="the next", when_busy="queue")
        await talk.until("text_delta")
        await begin_draining(talk.client)
        gate.set()
        assert "interrupted" not in kinds(await talk.until("done"))
        await talk.client.rest()
    async with draining() as house:
        again = await house.follow(talk.id)
        assert (await again.texts())[-1] == ("assistant", ["Once upon."])
        assert [item["text"] for item in again.snapshot["queue"]] == ["the next"]
    assert len(server.requests) == 1


@pytest.mark.parametrize("ephemeral", [False, True], ids=["kept", "not kept"])
async def test_a_question_does_not_hold_a_drain_up_and_outlives_it_where_its_session_does(draining, model, ephemeral):
    server = await model(calls(CallPart("write", {"path": "a.txt", "content": "one\n"})), text("written"))
    async with draining() as house:
        client = await house.connect(can_approve=True)
        talk = await house.create("anthropic", server, client, mode="ask", ephemeral=ephemeral)
        await talk.ask("prompt", message="go")
        asked = (await talk.until("approval_requested"))[-1]
        os.kill(os.getpid(), signal.SIGTERM)
        await client.rest()
    if not ephemeral:
        async with draining() as house:
            again = await house.follow(talk.id)
            assert [one["approval"] for one in again.snapshot["approvals"]] == [asked["approval"]]


async def test_a_run_that_does_not_come_to_a_stop_is_cut_when_the_time_is_over(draining, model):
    server = await model(ScriptedReply([TextPart(["Once "]), Hang()]))
    async with draining("0.2") as house:
        talk = await house.create("anthropic", server)
        await talk.ask("prompt", message="go")
        await talk.until("text_delta")
        os.kill(os.getpid(), signal.SIGTERM)
        await talk.client.rest()


async def test_a_stop_that_was_asked_for_does_not_drain(draining, model):
    server = await model(ScriptedReply([TextPart(["Once "]), Hang()]))
    async with draining() as house:
        talk = await house.create("anthropic", server)
        await talk.ask("prompt", message="go")
        await talk.until("text_delta")
        admin = await house.connect(role="admin")
        await admin.ask("daemon.shutdown")
        await talk.client.rest()


async def test_a_second_signal_ends_it_at_once(tmp_path, model):
    server = await model(ScriptedReply([TextPart(["Once "]), Hang()]))
    async with AsyncExitStack() as stack:
        daemon = stack.enter_context(DaemonProcess(tmp_path, {"ZOT_LIMITS_DRAIN_S": FOREVER_S}))
        talk = await House(stack, daemon.place, daemon).create("openai", server)
        await talk.ask("prompt", message="go")
        await talk.until("text_delta")
        await begin_draining(talk.client, daemon.pid)
        os.kill(daemon.pid, signal.SIGINT)
        assert await asyncio.to_thread(daemon.wait) in {0, -signal.SIGALRM}


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM, signal.SIGINT])
def test_started_in_a_terminal_it_drains_also_when_that_is_closed(tmp_path, number):
    where = place(tmp_path)
    ours, theirs = os.openpty()
    read, write = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-m", "zotd", "--ready-fd", str(write)],
        env=where.env,
        stdin=theirs,
        stderr=subprocess.DEVNULL,
        pass_fds=[write],
    )
    os.close(write)
    assert os.read(read, 100).startswith(b"ready")
    process.send_signal(number)
    assert process.wait(STOP_S) == 0
    for descriptor in (ours, theirs, read):
        os.close(descriptor)
