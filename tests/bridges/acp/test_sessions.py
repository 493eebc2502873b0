"""What an editor does with whole sessions, and what it is told when one does not go on."""

import asyncio

import pytest

from tests.npm.packages import INSTALL_S
from zotd.bridges.acp.turns import HELD
from zotd.testing.script import CallPart, Gate, Hang, Refusal, ScriptedReply, TextPart, calls, text
from zotd.testing.wire_client import WireClient

pytestmark = pytest.mark.timeout(INSTALL_S + 20)


async def test_a_fork_knows_what_was_said_and_goes_its_own_way(world):
    here = await world(text("Blue."), text("A summary."), text("Still blue."))
    editor = await here.editor()
    assert editor.introduced.agent_capabilities.session_capabilities.fork is not None
    session = await editor.open(here.cwd)
    await editor.say(session, "which colour?")
    forked = await editor.agent.fork_session(cwd=str(here.cwd), session_id=session, mcp_servers=[])
    assert forked.session_id != session
    assert forked.modes.current_mode_id == "yolo"
    assert await editor.say(forked.session_id, "summarise") == "end_turn"
    assert editor.read(session=forked.session_id) == "A summary."
    assert editor.read("user_message_chunk", session=forked.session_id) == ""
    assert "which colour?" in str(here.server.requests[1].body)
    await editor.say(session, "and now?")
    assert "summarise" not in str(here.server.requests[2].body)


async def test_a_session_that_is_deleted_is_gone_for_all(world):
    here = await world(text("hi"), ScriptedReply([TextPart(["Once"]), Hang()]))
    editor = await here.editor()
    assert editor.introduced.agent_capabilities.session_capabilities.delete is not None
    session = await editor.open(here.cwd)
    await editor.say(session, "hi")
    async with asyncio.TaskGroup() as group:
        answer = group.create_task(editor.say(session, "tell me"))
        await editor.until(lambda: editor.read().endswith("Once"))
        await editor.delete(session)
    assert answer.result() == "cancelled"
    assert (await editor.agent.list_sessions()).sessions == []
    await editor.delete(session)
    assert (await editor.refused(editor.say(session, "?")))[0] == -32002


async def test_a_prompt_behind_a_run_that_failed_is_answered_and_told_how_it_goes_on(world):
    gate = asyncio.Event()
    begun = ScriptedReply([TextPart(["Wait"]), Gate(gate), CallPart("glob", {"pattern": "*"})])
    here = await world(begun, Refusal(400, "too hot today"), text("One."), text("Two."))
    editor = await here.editor()
    session = await editor.open(here.cwd)
    async with asyncio.TaskGroup() as group:
        failed = group.create_task(editor.refused(editor.say(session, "first")))
        await editor.until(lambda: editor.read() == "Wait")
        held = group.create_task(editor.refused(editor.say(session, "second")))
        await until_queued(here, session)
        gate.set()
    assert "too hot today" in failed.result()[1]
    assert held.result() == (-32603, HELD)
    assert await editor.say(session, "/continue") == "end_turn"
    await editor.until(lambda: editor.read().endswith("One.Two."))


async def test_a_prompt_after_a_stop_of_the_daemon_starts_it_and_is_answered_at_once(world, ended):
    here = await world(text("One."), text("Two."), process=True)
    editor = await here.editor()
    session = await editor.open(here.cwd)
    await editor.say(session, "go")
    here.daemon.end()
    await editor.until(lambda: "it continues when zotd is back (zotctl start)" in editor.read())
    assert await editor.say(session, "go") == "end_turn"
    assert editor.read().endswith("Two.")
    async with WireClient.connect(here.place.socket) as other:
        pid = (await other.ask("hello", role="admin"))["pid"]
        await other.ask("daemon.shutdown")
        await ended(pid)


async def test_the_plan_is_shown_as_it_changes_and_when_a_session_is_loaded(world):
    steps = [{"text": "look", "state": "active"}, {"text": "change"}]
    here = await world(calls(CallPart("plan", {"steps": steps})), text("ok"))
    editor = await here.editor()
    session = await editor.open(here.cwd)
    await editor.say(session, "make a plan")
    [update] = editor.seen("plan")
    assert [(one["content"], one["status"]) for one in update["entries"]] == [
        ("look", "in_progress"),
        ("change", "pending"),
    ]
    assert [call["kind"] for call in editor.seen("tool_call")] == ["think"]
    async with WireClient.connect(here.place.socket) as other:
        await other.ask("session.plan_edit", session=session, revision=1, steps=[{"text": "rest", "state": "done"}])
    await editor.until(lambda: len(editor.seen("plan")) > 1)
    rest = [{"content": "rest", "status": "completed", "priority": "medium"}]
    assert editor.seen("plan")[-1]["entries"] == rest
    late = await here.editor()
    await late.agent.load_session(cwd=str(here.cwd), session_id=session)
    assert [one["entries"] for one in late.seen("plan")] == [rest]


async def until_queued(here, session):
    """Wait until a prompt waits in the session's queue."""
    async with WireClient.connect(here.place.socket) as other:
        await other.ask("attach", session=session)
        while not (await other.ask("queue.list", session=session))["items"]:
            await other.until("queue_changed")


async def test_a_plan_is_approved_in_the_editor(world):
    here = await world(calls(CallPart("plan", {"steps": [{"text": "look"}]})), text("Done."))
    editor = await here.editor(answer="allow_once")
    session = await editor.open(here.cwd)
    assert await editor.say(session, "/plan make it") == "end_turn"
    [asked] = editor.asked
    assert [one["optionId"] for one in asked["options"]] == ["allow_once", "reject_once"]
    assert "[ ] look" in str(asked["toolCall"]["content"])
    assert [update["currentModeId"] for update in editor.seen("current_mode_update")] == ["read-only", "yolo"]
    assert editor.read() == "Done."
