"""SIGTERM: nothing new is taken, and runs stop where they can be gone on with."""

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import AsyncExitStack

import pytest

from tests.e2e.conftest import House, kinds, only
from zotd.testing.live_daemon import STOP_S, DaemonProcess, place
from zotd.testing.script import Call, Gate, Hang, Reply, Text, calls, text

FOREVER_S = "3600"
"""Nobody waits so long here: what ends before has not waited for it."""

WAITS = calls(Call("bash", {"command": "echo started; cat go"}))
"""A call that ends when somebody writes into the pipe `go`."""


@pytest.fixture
async def draining(tmp_path):
    """`draining(seconds)`: a daemon that gives its runs so long after SIGTERM."""
    async with AsyncExitStack() as stack:

        def started(seconds=FOREVER_S):
            daemon = stack.enter_context(DaemonProcess(tmp_path, {"ZOT_LIMITS_DRAIN_S": seconds}))
            return House(stack, daemon.place, daemon)

        yield started


async def begin_draining(house, client):
    """Send SIGTERM, and wait until the daemon has noticed."""
    os.kill(house.daemon.pid, signal.SIGTERM)
    async with asyncio.timeout(20):
        while (await client.ask("daemon.status"))["state"] != "stopping":
            pass


async def ended(house):
    return await asyncio.to_thread(house.daemon.wait)


async def test_a_run_stops_after_its_calls_and_goes_on_after_the_restart(draining, model):
    house = draining()
    os.mkfifo(house.cwd / "go")
    server = await model(WAITS, text("It went on."))
    talk = await house.create("anthropic", server)
    await talk.ask("prompt", message="go")
    await talk.until("tool_progress")
    await begin_draining(house, talk.client)
    assert await talk.refused("prompt", message="and then?") == "shutting_down"
    (house.cwd / "go").write_text("walrus")
    events = await talk.until("done")
    assert kinds(events)[-3:] == ["tool_result", "interrupted", "done"]
    assert "walrus" in str(only(events, "tool_result"))
    assert await ended(house) == 0
    assert len(server.requests) == 1

    house.daemon.start()
    again = await house.follow(talk.id)
    assert await again.state() == "held"
    await again.ask("session.configure", secrets={"api_key": "sk-scripted-key"})
    await again.ask("prompt", message="/continue")
    await again.until("done")
    assert "walrus" in str(server.requests[-1].messages)
    assert (await again.texts())[-1] == ("assistant", ["It went on."])


async def test_a_run_that_comes_to_its_end_is_over_and_what_waited_is_held(draining, model):
    house = draining()
    gate = asyncio.Event()
    server = await model(Reply([Text(["Once "]), Gate(gate), Text(["upon."])]))
    talk = await house.create("openai", server)
    await talk.ask("prompt", message="go")
    await talk.ask("prompt", message="the next", when_busy="queue")
    await talk.until("text_delta")
    await begin_draining(house, talk.client)
    gate.set()
    assert "interrupted" not in kinds(await talk.until("done"))
    assert await ended(house) == 0
    house.daemon.start()
    again = await house.follow(talk.id)
    assert (await again.texts())[-1] == ("assistant", ["Once upon."])
    assert [item["text"] for item in again.snapshot["queue"]] == ["the next"]
    assert len(server.requests) == 1


async def test_a_question_outlives_a_drain_and_does_not_hold_it_up(draining, model):
    house = draining()
    client = await house.connect(can_approve=True)
    server = await model(calls(Call("write", {"path": "a.txt", "content": "one\n"})), text("written"))
    talk = await house.create("anthropic", server, client, mode="ask")
    await talk.ask("prompt", message="go")
    asked = (await talk.until("approval_requested"))[-1]
    assert await asyncio.to_thread(house.daemon.end) == 0
    house.daemon.start()
    again = await house.follow(talk.id)
    assert [one["approval"] for one in again.snapshot["approvals"]] == [asked["approval"]]


async def test_a_question_of_a_session_that_is_not_kept_does_not_hold_it_up_either(draining, model):
    house = draining()
    client = await house.connect(can_approve=True)
    server = await model(calls(Call("write", {"path": "a.txt", "content": "one\n"})))
    talk = await house.create("anthropic", server, client, mode="ask", ephemeral=True)
    await talk.ask("prompt", message="go")
    await talk.until("approval_requested")
    assert await asyncio.to_thread(house.daemon.end) == 0


async def test_a_run_that_does_not_come_to_a_stop_is_cut_when_the_time_is_over(draining, model):
    house = draining("0.2")
    talk = await house.create("anthropic", await model(Reply([Text(["Once "]), Hang()])))
    await talk.ask("prompt", message="go")
    await talk.until("text_delta")
    assert await asyncio.to_thread(house.daemon.end) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_second_signal_ends_it_at_once(draining, model, number):
    house = draining()
    talk = await house.create("anthropic", await model(Reply([Text(["Once "]), Hang()])))
    await talk.ask("prompt", message="go")
    await talk.until("text_delta")
    await begin_draining(house, talk.client)
    os.kill(house.daemon.pid, number)
    assert await ended(house) in {0, -signal.SIGALRM}


async def test_a_stop_that_was_asked_for_does_not_drain(draining, model):
    house = draining()
    talk = await house.create("anthropic", await model(Reply([Text(["Once "]), Hang()])))
    await talk.ask("prompt", message="go")
    await talk.until("text_delta")
    admin = await house.connect(role="admin")
    await admin.ask("daemon.shutdown")
    assert await ended(house) == 0


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
