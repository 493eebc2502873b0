"""Editors that use the published Python SDK; every frame of both directions is judged by the published schema."""

import asyncio
import base64
import signal

import acp
import pytest

from tests.e2e.shop import Shop
from tests.npm.packages import INSTALL_S
from zotd.bridges.acp.updates import CUT
from zotd.runs import recovery
from zotd.testing.script import CallPart, Gate, Hang, Refusal, ScriptedReply, TextPart, ThinkingPart, calls, text
from zotd.testing.wire_client import WireClient

pytestmark = pytest.mark.timeout(INSTALL_S + 20)

WRITE = calls(CallPart("write", {"path": "a.txt", "content": "one\n"}))

PIXEL = base64.b64encode(
    bytes.fromhex(
        "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
        "1f15c4890000000d49444154789c6360000002000001e221bc330000000049454e44ae426082"
    )
).decode()


async def test_a_prompt_is_answered_as_it_is_written(world):
    gate = asyncio.Event()
    here = await world(
        ScriptedReply([ThinkingPart(["Let me see."]), TextPart(["Hello"]), Gate(gate), TextPart([" there."])])
    )
    editor = await here.editor()
    session = await editor.open(here.cwd)
    async with asyncio.TaskGroup() as group:
        answer = group.create_task(editor.say(session, "hi"))
        await editor.until(lambda: editor.read() == "Hello")
        gate.set()
    assert answer.result() == "end_turn"
    assert editor.read() == "Hello there."
    assert editor.read("agent_thought_chunk") == "Let me see."
    assert editor.seen("user_message_chunk") == []  # it has shown its own prompt itself
    assert [one["title"] for one in editor.seen("session_info_update")] == ["hi"]
    [usage] = editor.seen("usage_update")
    assert (usage["used"], usage["cost"]["currency"]) == (15, "USD")
    assert usage["size"] > 100_000
    await editor.until(lambda: editor.seen("available_commands_update"))
    names = [one["name"] for one in editor.seen("available_commands_update")[-1]["availableCommands"]]
    assert {"clear", "compact", "continue", "skill:zot"} <= set(names)


async def test_a_person_decides_in_the_editor(world):
    here = await world(WRITE, text("denied"), WRITE, text("written"), WRITE, text("again"), WRITE, text("unasked"))
    editor = await here.editor()
    session = await editor.open(here.cwd)
    await editor.agent.set_session_mode(session_id=session, mode_id="ask")
    await editor.until(lambda: editor.seen("current_mode_update"))

    await editor.say(session, "go")
    [asked] = editor.asked
    file = here.cwd / "a.txt"
    assert not file.exists()
    assert [one["kind"] for one in asked["options"]] == ["allow_once", *["allow_always"] * 3, "reject_once"]
    assert asked["options"][3]["name"] == f"Allow every edit and write in {here.cwd} for this session"
    call = asked["toolCall"]
    assert (call["title"], call["kind"], call["status"]) == ("write a.txt", "edit", "pending")
    assert call["locations"] == [{"path": str(file)}]
    assert call["content"] == [{"type": "diff", "path": str(file), "newText": "one\n"}]
    assert editor.seen("tool_call_update")[-1]["status"] == "failed"

    editor.answer = "allow_once"
    await editor.say(session, "go")
    assert file.read_text() == "one\n"
    done = editor.seen("tool_call_update")[-1]
    assert (done["status"], done["content"][0]["type"]) == ("completed", "diff")
    assert done["rawOutput"] == {"is_error": False, "output": ["Created a.txt (4 bytes)"]}

    editor.answer = "allow_edits_session"
    await editor.say(session, "go")
    assert len(editor.asked) == 3
    await editor.say(session, "go")
    assert len(editor.asked) == 3
    assert editor.read().endswith("unasked")


async def test_the_first_decision_counts_wherever_it_is_made(world):
    here = await world(WRITE, text("written"))
    editor = await here.editor(answer=None)
    session = await editor.open(here.cwd)
    await editor.agent.set_session_mode(session_id=session, mode_id="ask")
    async with asyncio.TaskGroup() as group, WireClient.connect(here.place.socket) as other:
        answer = group.create_task(editor.say(session, "go"))
        await editor.until(lambda: editor.asked)
        epoch = (await other.ask("hello"))["epoch"]
        await other.ask("attach", session=session, after={"epoch": epoch, "seq": 0})
        question = (await other.until("approval_requested"))[-1]
        about = {"approval": question["approval"], "args_digest": question["args_digest"]}
        await other.ask("approve", session=session, decision="allow", **about)
    assert answer.result() == "end_turn"
    assert (here.cwd / "a.txt").exists()
    assert "$/cancel_request" in [message.get("method") for _, message in editor.frames]


async def test_a_cancelled_prompt_ends_as_cancelled(world):
    here = await world(ScriptedReply([TextPart(["Once"]), Hang()]), WRITE, ScriptedReply([Hang()]))
    editor = await here.editor(answer=None)
    session = await editor.open(here.cwd)
    async with asyncio.TaskGroup() as group:
        answer = group.create_task(editor.say(session, "tell me"))
        await editor.until(lambda: editor.read() == "Once")
        await editor.agent.cancel(session_id=session)
    assert answer.result() == "cancelled"

    await editor.agent.set_session_mode(session_id=session, mode_id="ask")
    async with asyncio.TaskGroup() as group:
        answer = group.create_task(editor.say(session, "write"))
        await editor.until(lambda: editor.asked)
        editor.answer = "cancelled"
        await editor.agent.cancel(session_id=session)
    assert answer.result() == "cancelled"
    assert not (here.cwd / "a.txt").exists()

    # Of two prompts the second one waits; both are the editor's, so both are cancelled.
    async with asyncio.TaskGroup() as group:
        running = group.create_task(editor.say(session, "first"))
        async with here.server.arrived:
            await here.server.arrived.wait_for(lambda: len(here.server.requests) == 3)
        waiting = group.create_task(editor.say(session, "second"))
        async with WireClient.connect(here.place.socket) as other:
            await other.ask("attach", session=session)
            while not (await other.ask("queue.list", session=session))["items"]:
                await other.until("queue_changed")
        await editor.agent.cancel(session_id=session)
    assert (running.result(), waiting.result()) == ("cancelled", "cancelled")
    assert len(here.server.requests) == 3


async def test_a_cancellation_spares_what_others_have_asked_for(world):
    gate = asyncio.Event()
    here = await world(
        ScriptedReply([TextPart(["On"]), Gate(gate), TextPart(["ce"])]), ScriptedReply([TextPart(["For ever"]), Hang()])
    )
    editor = await here.editor()
    session = await editor.open(here.cwd)
    async with WireClient.connect(here.place.socket) as other:
        await other.ask("attach", session=session)
        await other.ask("prompt", session=session, message="from a terminal")
        await other.until("assistant_start")
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(editor.say(session, "mine"))
            await other.until("queue_changed")
            await editor.agent.cancel(session_id=session)
        assert waiting.result() == "cancelled"
        await editor.agent.set_session_mode(session_id=session, mode_id="ask")  # whatever the cancellation did is done
        gate.set()
        assert (await other.until("turn_end"))[-1]["stop"] == "end_turn"
        await other.until("done")
        await other.ask("prompt", session=session, message="another")
        await other.until("assistant_start")
        await editor.agent.cancel(session_id=session)  # nothing is its own now: the person means what is seen
        assert (await other.until("turn_end"))[-1]["stop"] == "aborted"
        await other.until("done")


async def test_what_others_do_in_the_session_is_seen(world):
    here = await world(text("for the terminal"), text("for the editor"))
    editor = await here.editor()
    session = await editor.open(here.cwd)
    async with WireClient.connect(here.place.socket) as other:
        await other.ask("attach", session=session)
        await other.ask("prompt", session=session, message="from a terminal")
        await other.until("done")
        assert await editor.say(session, "from the editor") == "end_turn"
        await other.ask("session.rename", session=session, name="both of us")
        await other.ask("set_reasoning", session=session, reasoning="high")
        await editor.until(lambda: editor.seen("config_option_update"))
    assert editor.read("user_message_chunk") == "from a terminal"
    assert editor.read() == "for the terminalfor the editor"
    assert editor.seen("session_info_update")[-1]["title"] == "both of us"


async def test_sessions_are_listed_loaded_resumed_and_closed(world):
    here = await world(
        calls(CallPart("bash", {"command": "echo hi"}), before="Looking. "), text("It says hi."), text("!")
    )
    first = await here.editor()
    session = await first.open(here.cwd)
    await first.say(session, "what does it say?")
    async with WireClient.connect(here.place.socket) as other:
        for _ in range(50):
            await other.ask(
                "session.create", cwd=str(here.place.folder), provider="openai", env={}, secrets={"api_key": "x"}
            )

    second = await here.editor()
    page = await second.agent.list_sessions()
    assert len(page.sessions) == 50
    rest = await second.agent.list_sessions(cursor=page.next_cursor)
    assert ([one.session_id for one in rest.sessions], rest.next_cursor) == ([session], None)
    [listed] = (await second.agent.list_sessions(cwd=str(here.cwd))).sessions
    assert (listed.session_id, listed.title) == (session, "what does it say?")

    loaded = await second.agent.load_session(cwd=str(here.cwd), session_id=session)
    assert loaded.modes.current_mode_id == "yolo"
    assert second.read("user_message_chunk") == "what does it say?"
    assert second.read() == "Looking. It says hi."
    [call] = second.seen("tool_call")
    assert (call["kind"], call["title"], call["rawInput"]) == ("execute", "bash echo hi", {"command": "echo hi"})
    [result] = second.seen("tool_call_update")
    assert result["status"] == "completed"
    assert result["content"][0]["content"]["text"].startswith("$ echo hi\n\nhi\n")

    third = await here.editor()
    await third.agent.resume_session(cwd=str(here.cwd), session_id=session)
    assert await third.say(session, "more") == "end_turn"
    assert third.read() == "!"
    assert await third.agent.close_session(session_id=session) is not None
    code, sentence = await third.refused(third.agent.prompt(session_id=session, prompt=[acp.text_block("?")]))
    assert (code, "session/load" in sentence) == (-32002, True)
    await second.until(lambda: second.read().endswith("!"))


async def test_model_and_reasoning_are_options(world):
    here = await world(text("cheaper"))
    editor = await here.editor()
    made = await editor.agent.new_session(str(here.cwd), mcp_servers=[])
    session = made.session_id
    assert [one.id for one in made.config_options] == ["mode", "model", "reasoning"]
    changed = await editor.agent.set_config_option(session_id=session, config_id="mode", value="ask")
    assert changed.config_options[0].current_value == "ask"
    await editor.until(lambda: editor.seen("current_mode_update"))
    assert editor.seen("current_mode_update")[-1]["currentModeId"] == "ask"
    changed = await editor.agent.set_config_option(session_id=session, config_id="model", value="openai/gpt-4o-mini")
    assert changed.config_options[1].current_value == "openai/gpt-4o-mini"
    changed = await editor.agent.set_config_option(session_id=session, config_id="reasoning", value="low")
    assert changed.config_options[2].current_value == "low"
    await editor.say(session, "hi")
    assert here.server.requests[0].body["model"] == "gpt-4o-mini"
    for option, value in (("reasoning", "very"), ("mode", "wild")):
        wrong = editor.agent.set_config_option(session_id=session, config_id=option, value=value)
        assert (await editor.refused(wrong))[0] == -32602


async def test_files_and_images_go_to_the_model(world):
    here = await world(text("seen"))
    editor = await here.editor()
    session = await editor.open(here.cwd)
    await editor.say(
        session,
        "Look at ",
        acp.resource_link_block("b c.txt", "file:///src/b%20c.txt"),
        acp.resource_block(acp.embedded_text_resource("file:///src/d.txt", "the content")),
        acp.image_block(PIXEL, "image/png"),
    )
    content = {one["type"]: one for one in here.server.requests[0].messages[-1]["content"]}
    words, image = content["text"], content["image_url"]
    assert words["text"] == 'Look at `/src/b c.txt`\n<file uri="file:///src/d.txt">\nthe content\n</file>\n'
    assert image["image_url"]["url"].endswith(PIXEL)
    sound = editor.agent.prompt(session_id=session, prompt=[acp.audio_block(PIXEL, "audio/wav")])
    assert (await editor.refused(sound))[0] == -32602


async def test_slash_commands_run(world):
    here = await world(text("ok"), text("a summary"))
    Shop(here).write(
        "greeter",
        """
        @ext.command("greet", "says hello")
        def greet(args):
            return f"hello {args}"
        """,
    )
    editor = await here.editor()
    session = await editor.open(here.cwd)
    await editor.until(lambda: "greet" in str(editor.seen("available_commands_update")))
    assert await editor.say(session, "/greet you") == "end_turn"
    assert editor.read() == "hello you"
    assert await editor.say(session, "/gret you") == "end_turn"
    assert "there is no /gret" in editor.read()
    assert await editor.say(session, "//greet you") == "end_turn"
    assert here.server.requests[0].messages[-1]["content"] == "/greet you"
    assert await editor.say(session, "/compact") == "end_turn"
    assert editor.read().endswith("The conversation was summarised.")


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (text("cut", stop="length"), "max_tokens"),
        (text("no", stop="refusal"), "refusal"),
        (calls(CallPart("bash", {"command": "true"})), "max_turn_requests"),
    ],
    ids=["length", "refusal", "steps"],
)
async def test_a_run_ends_for_a_reason(world, reply, reason):
    here = await world(reply, config="max_steps = 1")
    editor = await here.editor()
    assert await editor.say(await editor.open(here.cwd), "go") == reason


async def test_a_failure_is_the_answer_to_the_prompt_and_is_not_said_twice(world):
    here = await world(Refusal(400, "too hot today"))
    editor = await here.editor()
    code, sentence = await editor.refused(editor.say(await editor.open(here.cwd), "go"))
    assert (code, "too hot today" in sentence) == (-32603, True)
    assert editor.read() == ""


async def test_without_a_key_the_editor_is_told_how_to_log_in(world):
    here = await world()
    editor = await here.editor(env={**here.env, "OPENAI_API_KEY": ""})
    [way] = editor.introduced.auth_methods
    assert "zotctl login" in way.description
    code, sentence = await editor.refused(editor.open(here.cwd))
    assert (code, "zotctl login" in sentence) == (-32000, True)
    assert (await editor.refused(editor.agent.authenticate(method_id=way.id)))[0] == -32000


async def test_the_error_names_the_fault_of_the_request(world):
    here = await world()
    editor = await here.editor()
    assert (await editor.refused(editor.open("work")))[0] == -32602
    assert (await editor.refused(editor.agent.load_session(cwd=str(here.cwd), session_id="s_none")))[0] == -32002
    session = await editor.open(here.cwd)
    elsewhere = editor.agent.load_session(cwd=str(here.place.folder), session_id=session)
    assert (await editor.refused(elsewhere))[0] == -32602
    astray = editor.agent.fork_session(cwd=str(here.place.folder), session_id=session)
    assert (await editor.refused(astray))[0] == -32602
    assert (await editor.refused(editor.agent.fork_session(cwd=str(here.cwd), session_id="s_none")))[0] == -32002
    assert (await editor.refused(editor.agent.set_session_mode(session_id=session, mode_id="wild")))[0] == -32602
    assert (await editor.refused(editor.say(session, " ")))[0] == -32602


async def test_a_killed_daemon_is_started_again_and_the_editor_gets_the_interrupted_run(world, ended):
    here = await world(ScriptedReply([TextPart(["Once upon"]), Hang()]), text("a time"), process=True)
    editor = await here.editor()
    session = await editor.open(here.cwd)
    async with asyncio.TaskGroup() as group:
        answer = group.create_task(editor.refused(editor.say(session, "tell me")))
        await editor.until(lambda: editor.read() == "Once upon")
        here.daemon.end(signal.SIGKILL)
    code, sentence = answer.result()
    assert code == -32603
    assert sentence in editor.read()
    assert await editor.say(session, "go on") == "end_turn"
    assert editor.read().endswith("a time")
    async with WireClient.connect(here.place.socket) as other:
        pid = (await other.ask("hello", role="admin"))["pid"]
        await other.ask("daemon.shutdown")
        await ended(pid)


async def test_a_reply_that_a_crash_cut_is_not_shown_again_and_the_editor_is_told_that_it_begins_anew(world, ended):
    whole = ScriptedReply([TextPart(["Once upon a time"])])
    here = await world(ScriptedReply([TextPart(["Once upon"]), Hang()]), whole, process=True, config='resume = "auto"')
    editor = await here.editor()
    session = await editor.open(here.cwd)
    async with asyncio.TaskGroup() as group:
        group.create_task(editor.refused(editor.say(session, "tell me")))
        await editor.until(lambda: editor.read() == "Once upon")
        here.daemon.end(signal.SIGKILL)
    await editor.until(lambda: editor.read().endswith("Once upon a time"))
    # The second if `zot acp` is back before the run goes on, and hears that it was cut.
    beginnings = [f"Once upon\n\n[warning: {said}" for said in (CUT, recovery.CUT)]
    assert editor.read().startswith(tuple(beginnings))
    assert editor.read().count("Once upon") == 2
    async with WireClient.connect(here.place.socket) as other:
        pid = (await other.ask("hello", role="admin"))["pid"]
        await other.ask("daemon.shutdown")
        await ended(pid)


async def test_a_list_of_sessions_continues_only_at_a_cursor_of_its_own(world):
    here = await world()
    editor = await here.editor()
    await editor.open(here.cwd)
    for cursor in ("garbage", "", "two words", "2026-01-01T00:00:00Z"):
        code, sentence = await editor.refused(editor.agent.list_sessions(cursor=cursor))
        assert code == -32602
        assert "cursor" in sentence
