"""Commands of the model that a person sends to the background while they run."""

import asyncio
import signal

import pytest

from tests.e2e.background import (
    PATIENCE_S,
    STUBBORN,
    ended,
    fifo,
    is_gone,
    output,
    pid_from,
    plain,
    read,
    told,
    write,
)
from tests.e2e.family import OPENING
from zotd.testing.script import CallPart, calls, text

SLOW = "echo one; echo on > begun; cat go; echo two; exit 3"


@pytest.fixture
def slow(house):
    """The pipes of `SLOW`: what it has begun, and what it waits for."""
    return fifo(house, "begun"), fifo(house, "go")


def bash(command, **args):
    return CallPart("bash", {"command": command, **args})


async def test_a_person_sends_a_running_command_to_the_background(house, vendor, model, slow, results):
    begun, go = slow
    server = await model(calls(bash(SLOW, timeout=PATIENCE_S)), text("I go on."), calls(output()), text("I see."))
    talk = await house.create(vendor, server)
    await talk.ask("prompt", message="go")
    await read(begun)
    await talk.until("tool_progress")
    moved = await talk.ask("session.job_move")
    assert (moved["id"], moved["command"], moved["state"]) == ("j1", SLOW, "running")
    await talk.until("done")
    (said,) = plain(results(server.requests[1]))
    assert said.startswith(f"$ {SLOW}\n\none\n[the user has sent this command to the background: it goes on as job j1,")
    await write(go, "walrus\n")
    over = await ended(talk)
    assert (over["state"], over["exit"]) == ("ended", 3)
    await talk.run("and?")
    assert told(server.requests[2])[0].startswith(f"j1 ({SLOW}) has ended: exit 3")
    assert plain(results(server.requests[3]))[1].startswith("walrus\ntwo\n[j1 ")


async def test_a_moved_command_ends_with_its_session_and_all_that_descends_from_it(house, model):
    talk = await house.create("openai", await model(calls(bash(STUBBORN)), text("ok")))
    main, left = fifo(house, "main"), fifo(house, "left")
    await talk.ask("prompt", message="go")
    processes = [await pid_from(left), await pid_from(main)]
    await talk.ask("session.job_move")
    await talk.until("done")
    await talk.ask("session.close")
    assert [await is_gone(one) for one in processes] == [True, True]


async def test_what_cannot_be_moved_is_refused_in_one_sentence(house, model, slow):
    begun, go = slow
    talk = await house.create("openai", await model(calls(bash(SLOW)), text("ok")))
    assert await talk.refused("session.job_move") == "conflict"
    await talk.ask("prompt", message="go")
    await read(begun)
    assert await talk.refused("session.job_move", call="another") == "conflict"
    await talk.ask("session.job_move")
    assert await talk.refused("session.job_move") == "conflict"
    await write(go)
    await talk.until("done")


async def test_after_a_kill_a_moved_command_is_interrupted_and_gone(process, model):
    server = await model(calls(bash(STUBBORN)), text("ok"), text("I see."))
    talk = await process.create("ollama", None, **OPENING, base_url=server.openai_url)
    main, left = fifo(process, "main"), fifo(process, "left")
    await talk.ask("prompt", message="go")
    processes = [await pid_from(left), await pid_from(main)]
    await talk.ask("session.job_move")
    await talk.until("done")
    await asyncio.to_thread(process.restart, signal.SIGKILL)
    left_over, main_process = processes
    signal.pidfd_send_signal(left_over, signal.SIGKILL)  # it has left the group, and has no mark
    assert await is_gone(main_process)
    assert await is_gone(left_over)
    talk = await process.follow(talk.id)
    await talk.run("and?")
    (said,) = told(server.requests[2])
    assert "was interrupted, outcome unknown" in said
