"""A session is moved from one daemon of a database to another, and both go on."""

import asyncio
import json
import os
from datetime import UTC, datetime, timedelta

from tests.e2e.background import job
from tests.e2e.family import OPENING, Cast, tasks
from tests.e2e.fleet import name_of, number_of, output_of, row, until
from zotd.core.closings import INTERRUPTED
from zotd.testing.script import CallPart, Gate, ScriptedReply, TextPart, calls, text

BUSY = {"command": "echo x >> ran; echo started; read < go"}
"""Arguments of a command that runs until a test lets it end, and leaves a trace of each start."""


async def started(talk, house):
    """Have the session run the command until the test ends it."""
    os.mkfifo(house.cwd / "go")
    await talk.ask("prompt", message="go")
    await talk.until("tool_progress")


async def admin_of(house):
    return await house.connect(client={"name": "test"}, role="admin")


async def move(house, talk, to=""):
    """The answer to the command, sent to this daemon."""
    admin = await admin_of(house)
    return await admin.answer("session.move", session=talk.id, to=to)


async def refused(talk):
    """The refusal of a prompt, as soon as the session is being moved."""
    while (answer := await talk.client.answer("prompt", session=talk.id, message="x", when_busy="reject"))[
        "code"
    ] == "busy":
        pass
    return answer


async def until_owned(database, talk, house):
    await until(database, "SELECT owner = %s FROM sessions WHERE id = %s", number_of(database, house), talk.id)


async def at_rest(house, talk):
    """The session as this daemon has it, when it is idle."""
    moved = await house.follow(talk.id)
    while await moved.state() != "idle":
        await moved.client.event()
    return moved


async def users(talk):
    return [words for role, [words] in await talk.texts() if role == "user"]


async def test_a_run_goes_on_in_the_other_daemon_from_the_end_of_its_step(fleet, talk_in):
    one, two = fleet
    talk = await talk_in(one, calls(CallPart("bash", BUSY)), text("all done"))
    other = await talk_in(one, text("still here"))
    await started(talk, one)
    async with asyncio.TaskGroup() as tasks:
        moving = tasks.create_task(output_of(one, "zotctl", "move", talk.id))
        refusal = await refused(talk)
        (one.cwd / "go").write_text("\n")
    assert refusal["code"] == "shutting_down"
    assert refusal["error"] == "the session is being moved to another daemon; send it again in a moment"
    assert moving.result() == f"moved {talk.id} to {name_of(two)}\n"
    await talk.until("evicted")
    moved = await at_rest(two, talk)
    roles, words = zip(*await moved.texts(), strict=True)
    assert (roles, words[-1]) == (("user", "assistant", "tool", "assistant"), ["all done"])
    assert INTERRUPTED not in str(words)
    assert (one.cwd / "ran").read_text() == "x\n"
    await other.run("go on")


async def test_an_idle_session_is_moved_at_once_and_both_ways_with_its_cursor(fleet, database, talk_in):
    one, two = fleet
    talk = await talk_in(one, *[text("fine")] * 3)
    await talk.run("first")
    cursor = {"epoch": talk.epoch, "seq": max(frame.get("seq") or 0 for frame in talk.client.seen)}
    printed = await output_of(two, "zotctl", "move", talk.id, name_of(two), "--json")  # forwarded to its daemon
    assert json.loads(printed) == {"v": 1, "session": talk.id, "done": "moved", "daemon": name_of(two)}
    assert row(database, "SELECT owner FROM sessions WHERE id = %s", talk.id) == (number_of(database, two),)
    again = await one.follow(talk.id, after=cursor)  # which forwards it
    assert again.snapshot["mode"] == "resumed"
    await again.run("second")
    assert (await move(one, talk, str(one.place.home)))["data"] == {"daemon": name_of(one)}
    assert (await move(one, talk, str(one.place.home)))["data"] == {"daemon": name_of(one)}  # it is there already
    back = await one.follow(talk.id)
    await back.run("third")
    assert await users(back) == ["first", "second", "third"]


async def test_a_question_is_asked_again_by_the_other_daemon_and_decided_there(fleet, talk_in):
    one, two = fleet
    talk = await talk_in(one, calls(CallPart("bash", {"command": "echo x >> ran"})), text("done"), mode="ask")
    await talk.ask("prompt", message="go")
    asked = (await talk.until("approval_requested"))[-1]
    assert (await move(one, talk))["data"] == {"daemon": name_of(two)}
    client = await two.connect(client={"name": "phone"}, role="approve", can_approve=True)
    moved = await two.follow(talk.id, client)
    (pending,) = moved.snapshot["approvals"]
    assert pending["approval"] == asked["approval"]
    await moved.ask("approve", decision="allow", approval=pending["approval"], args_digest=pending["args_digest"])
    await moved.until("done")
    assert (one.cwd / "ran").read_text() == "x\n"


async def test_an_input_that_waits_behind_the_run_is_run_by_the_other_daemon(fleet, talk_in):
    one, two = fleet
    talk = await talk_in(one, calls(CallPart("bash", BUSY)), text("first"), text("second"))
    await started(talk, one)
    await talk.ask("prompt", message="and then", when_busy="queue")
    async with asyncio.TaskGroup() as tasks:
        moving = tasks.create_task(move(one, talk))
        await refused(talk)
        (one.cwd / "go").write_text("\n")
    assert moving.result()["success"]
    moved = await at_rest(two, talk)
    assert await users(moved) == ["go", "and then"]
    assert (await moved.texts())[-1] == ("assistant", ["second"])


async def test_an_input_behind_a_run_that_comes_to_its_end_is_run_by_the_other_daemon(fleet, talk_in):
    one, two = fleet
    gate = asyncio.Event()
    talk = await talk_in(one, ScriptedReply([TextPart(["Once "]), Gate(gate), TextPart(["upon."])]), text("second"))
    await talk.ask("prompt", message="go")
    await talk.until("text_delta")
    await talk.ask("prompt", message="and then", when_busy="queue")
    async with asyncio.TaskGroup() as tasks:
        moving = tasks.create_task(move(one, talk))
        await refused(talk)
        gate.set()
    assert moving.result()["success"]
    moved = await at_rest(two, talk)
    assert [words for _, words in await moved.texts()] == [["go"], ["Once upon."], ["and then"], ["second"]]


async def test_an_aborted_run_is_not_begun_again_by_the_other_daemon(fleet, talk_in):
    one, two = fleet
    talk = await talk_in(one, calls(CallPart("bash", BUSY)), text("never said"))
    await started(talk, one)
    async with asyncio.TaskGroup() as tasks:
        moving = tasks.create_task(move(one, talk))
        await refused(talk)
        await talk.ask("abort")
    assert moving.result()["success"]
    moved = await two.follow(talk.id)
    assert await moved.state() == "idle"
    assert "never said" not in str(await moved.texts())


async def test_its_timers_move_with_it(fleet, database, talk_in):
    one, two = fleet
    talk = await talk_in(one, text("fired"))
    due = datetime.now(UTC) + timedelta(seconds=4)
    await talk.client.ask("timer.add", session=talk.id, message="wake up", at=f"{due:%FT%TZ}")
    assert (await move(one, talk))["success"]
    assert (await (await admin_of(one)).ask("timer.list"))["timers"] == []
    moved = await two.follow(talk.id)
    if not await users(moved):
        await moved.until("done")
    assert await users(await at_rest(two, talk)) == ["wake up"]
    assert row(database, "SELECT count(*) FROM timers") == (0,)


async def test_its_timers_are_fired_by_the_daemon_in_which_it_was_opened(fleet, database, talk_in):
    one, two = fleet
    talk = await talk_in(one, text("fired"))
    due = datetime.now(UTC) + timedelta(seconds=4)
    await talk.client.ask("timer.add", session=talk.id, message="wake up", at=f"{due:%FT%TZ}")
    await talk.ask("detach")
    await talk.client.ask("session.close", session=talk.id)
    await until(database, "SELECT owner IS NULL FROM sessions WHERE id = %s", talk.id)
    moved = await two.follow(talk.id)
    if not await users(moved):
        await moved.until("done")
    assert await users(await at_rest(two, talk)) == ["wake up"]


async def test_a_session_goes_on_here_if_the_other_daemon_ends_before_it_has_it(fleet, talk_in):
    one, two = fleet
    talk = await talk_in(one, calls(CallPart("bash", BUSY)), text("all done"))
    await started(talk, one)
    async with asyncio.TaskGroup() as tasks:
        moving = tasks.create_task(move(one, talk))
        await refused(talk)
        await asyncio.to_thread(two.daemon.end)
        (one.cwd / "go").write_text("\n")
    assert moving.result()["error"] == f"the daemon {name_of(two)} has ended, so the session goes on here"
    here = await at_rest(one, talk)
    assert (await here.texts())[-1] == ("assistant", ["all done"])


async def test_what_cannot_be_moved_is_refused_with_a_reason(fleet, talk_in):
    one, two = fleet
    talk = await talk_in(one, calls(job("read < go")), text("begun"))
    os.mkfifo(one.cwd / "go")
    both = f"{name_of(one)}, {name_of(two)}"
    assert (await move(one, talk, "box9"))["error"] == f'no running daemon is called "box9"; there are {both}'
    machine = name_of(one).partition(":")[0]
    assert (await move(one, talk, machine))["error"] == f'"{machine}" is not unique; it could be {both}'
    await talk.run("begin")
    assert (await move(one, talk))["error"] == "work in the background would end (j1); wait for it, or stop it first"
    brief = await talk_in(one, text("fine"), ephemeral=True)
    assert (await move(one, brief))["error"] == "an ephemeral session is not stored, so it cannot be moved"
    client = await one.connect(role="submit")
    assert (await client.answer("session.move", session=talk.id))["code"] == "forbidden"
    (one.cwd / "go").write_text("\n")


async def test_the_sessions_of_its_subagents_move_with_it_and_not_without_it(fleet, model, database):
    one, two = fleet
    cast = Cast(go=[tasks("a"), text("done")], a=[text("fine")])
    talk = await one.create("ollama", None, base_url=(await model(cast)).openai_url, **OPENING)
    await talk.run("go")
    _, child = (await talk.client.ask("session.family", session=talk.id))["sessions"]
    admin = await admin_of(one)
    refusal = await admin.answer("session.move", session=child["id"])
    assert refusal["error"] == f"a subagent goes where its session is; move {talk.id}"
    assert (await move(one, talk))["success"]
    owners = "SELECT owner FROM sessions WHERE id = %s"
    assert row(database, owners, child["id"]) == row(database, owners, talk.id) == (number_of(database, two),)
