"""What a session has of extensions: tools, slash commands, events; in a real daemon, with a scripted model."""

import os

import pytest

from tests.e2e.shop import WEATHER
from zotd.testing.script import CallPart, calls, text

OPENER = r"""
import json, sys

def say(**frame):
    print(json.dumps(frame), flush=True)

say(type="hello", name="opener")
say(type="register_command", name="look")
say(type="ready")
for line in sys.stdin:
    frame = json.loads(line)
    if frame["type"] == "command_invoked":
        say(type="command_response", id=frame["id"], action="tool_prompt", prompt="What is in it?",
            tool_name="read", tool_args={"path": frame["args"]})
"""
"""An extension whose command begins a run with a tool call."""


# --- tools ----------------------------------------------------------------------------------------------------


async def test_the_model_calls_a_tool_of_an_extension(shop, model, vendor, look, results):
    shop.install("weather")
    server = await model(*WEATHER)
    talk = await shop.open(server, vendor)
    events = await talk.run("What is the weather in Berlin?")
    result = look.only(events, "tool_result")[0]
    assert (result["name"], result["extension"], result["is_error"]) == ("weather", "weather", False)
    assert "Berlin: 16 " in results(server.requests[1])[0]
    assert look.only(events, "assistant_message")[-1]["content"][0]["text"] == "It is 16 °C and foggy."


async def test_a_tool_that_is_registered_during_a_run_is_there_at_the_next_step(shop, model, look):
    shop.write(
        "late",
        '''
        def second() -> str:
            """Comes later."""
            return "here"

        @ext.tool
        def first() -> str:
            """Registers another one."""
            ext.tool(second)
            return "registered"
        ''',
    )
    server = await model(calls(CallPart("first")), calls(CallPart("second")), text("done"))
    talk = await shop.open(server)
    events = await talk.run()
    assert [result["content"][0]["text"] for result in look.only(events, "tool_result")] == ["registered", "here"]


async def test_a_session_without_extensions_starts_none(shop, model):
    shop.install("weather")
    server = await model(text("hi"))
    talk = await shop.open(server, no_ext=True)
    await talk.run()
    assert "weather" not in str(server.requests[0].body["tools"])
    assert (await talk.client.ask("daemon.status"))["extensions"] == 0


async def test_an_extension_of_one_session_is_seen_by_no_other(shop, model):
    directory = shop.write("mine", '@ext.tool\ndef mine() -> str:\n    "Mine."\n    return "ok"', into=shop.house.cwd)
    server = await model(text("one"), text("two"))
    with_it = await shop.open(server, extensions=[str(directory)])
    without = await shop.open(server)
    await with_it.run()
    await without.run()
    assert ["mine" in str(request.body["tools"]) for request in server.requests] == [True, False]


async def test_an_unknown_tool_is_named_when_the_run_starts(shop, model, look):
    server = await model(text("hi"))
    talk = await shop.open(server, tools=["read", "fly"])
    notice = look.only(await talk.run(), "notice")[0]
    assert "there is no tool fly" in notice["text"]


# --- slash commands -------------------------------------------------------------------------------------------


async def test_a_command_of_an_extension_becomes_a_prompt(shop, model, look):
    shop.install("hello")
    server = await model(text("Hello, Ada!"))
    talk = await shop.open(server)
    answer = await talk.ask("run_command", name="/hello", args=" Ada ")
    events = await talk.until("done")
    assert (answer["action"], answer["extension"], answer["started"]) == ("prompt", "hello", True)
    assert look.only(events, "user_message")[0]["content"][0]["text"] == "Greet Ada in one short sentence."


@pytest.mark.parametrize(
    ("body", "event", "fields"),
    [
        ('return Display("seen")', "ext_display", {"extension": "acts", "text": "seen"}),
        ('return Insert("typed")', "ext_insert", {"text": "typed"}),
        ('ext.notify("warn", "careful")', "ext_notify", {"extension": "acts", "level": "warn", "message": "careful"}),
        ('ext.set_status("k", "busy")', "ext_status", {"extension": "acts", "key": "k", "text": "busy"}),
    ],
)
async def test_what_a_command_wants_shown_reaches_the_client(shop, model, body, event, fields):
    shop.write("acts", f"@ext.command('act')\ndef act(args):\n    {body}")
    talk = await shop.open(await model(text("-")))
    await talk.ask("run_command", name="act")
    shown = (await talk.until(event))[-1]
    assert {key: shown[key] for key in fields} == fields


async def test_a_command_that_fails_says_why(shop, model):
    shop.install("weather")
    talk = await shop.open(await model(text("-")))
    response = await talk.client.answer("run_command", session=talk.id, name="weather")
    assert response["error"].endswith("which city? For example: /weather Berlin")
    response = await talk.client.answer("run_command", session=talk.id, name="wetter")
    assert "there is no /wetter; there are " in response["error"]
    assert "/weather" in response["error"]


async def test_a_command_whose_session_is_closed_meanwhile_says_so(shop, model, tmp_path):
    go = tmp_path / "go"
    os.mkfifo(go)
    shop.write(
        "slow",
        f"""
        @ext.command("slow")
        def slow(args):
            open({str(go)!r}).read()  # until somebody writes
            return Display("late")
        """,
    )
    talk = await shop.open(await model(text("-")), ephemeral=True)
    await talk.run()
    watcher = await shop.house.connect()
    await watcher.ask("ext.tap", name="slow")
    request = talk.send("run_command", name="slow")
    await watcher.until("ext_frame")
    await watcher.ask("session.close", session=talk.id)
    go.write_text("now")
    response = await talk.client.answer_to(request)
    assert (response["code"], response["error"]) == ("conflict", "the session was closed before slow answered")


async def test_a_panel_is_shown_takes_keys_and_is_in_the_snapshot(shop, model):
    shop.install("todo")
    talk = await shop.open(await model(text("-")))
    await talk.ask("run_command", name="todo", args="write tests")
    panel = (await talk.until("ext_panel"))[-1]
    assert (panel["panel_id"], panel["lines"]) == ("todo", ["> [ ] write tests"])
    await talk.ask("panel.key", panel_id="todo", key="enter")
    assert (await talk.until("ext_panel"))[-1]["lines"] == ["> [x] write tests"]
    other = await shop.house.follow(talk.id)
    assert [one["lines"] for one in other.snapshot["panels"]] == [["> [x] write tests"]]
    await talk.ask("panel.key", panel_id="todo", key="esc")
    await talk.until("ext_panel_closed")
    assert await talk.refused("panel.key", panel_id="todo", key="up") == "not_found"


async def test_a_command_can_begin_a_run_with_a_tool_call(shop, model, look, results):
    (shop.write("opener", "") / "main.py").write_text(OPENER)
    (shop.house.cwd / "a.txt").write_text("walrus\n")
    server = await model(text("A walrus."))
    talk = await shop.open(server)
    await talk.ask("run_command", name="look", args="a.txt")
    events = await talk.until("done")
    assert "walrus" in look.only(events, "tool_result")[0]["content"][0]["text"]
    assert len(server.requests) == 1
    assert "walrus" in results(server.requests[0])[0]


# --- what extensions hear and say -----------------------------------------------------------------------------


async def test_events_reach_an_extension_in_their_order(shop, model):
    shop.write(
        "ears",
        """
        names = ["session_start", "user_prompt_submit", "turn_start", "assistant_message", "tool_call", "turn_end",
                 "permission_decision", "tool_result"]
        for one in names:
            @ext.on(one)
            def hear(event):
                ext.notify("info", event.name)

        @ext.command("there")
        def there(args):
            return Display("yes")
        """,
    )
    server = await model(calls(CallPart("read", {"path": "a.txt"}), before="I look."), text("nothing"))
    talk = await shop.open(server)
    await talk.ask("run_command", name="there")
    talk.send("prompt", message="go")
    step = ["turn_start", "assistant_message", "tool_call", "turn_end", "permission_decision", "tool_result"]
    expected = ["session_start", "user_prompt_submit", *step, "turn_start", "assistant_message", "turn_end"]
    assert [(await talk.until("ext_notify"))[-1]["message"] for _ in expected] == expected


async def test_an_extension_submits_a_prompt_of_its_own(shop, model, look):
    shop.write(
        "pusher",
        """
        @ext.command("push")
        def push(args):
            ext.submit("from the extension")
        """,
    )
    server = await model(text("heard"))
    talk = await shop.open(server)
    await talk.ask("run_command", name="push")
    events = await talk.until("done")
    assert look.only(events, "user_message")[0]["content"][0]["text"] == "from the extension"


async def test_an_extension_that_always_submits_is_stopped_by_an_abort(shop, model, look):
    shop.write(
        "pusher",
        """
        @ext.on("turn_end")
        def push(event):
            ext.submit("once more")
        """,
    )
    server = await model(lambda _: text("again"))
    talk = await shop.open(server)
    await talk.run()
    await talk.until("done")
    await talk.ask("abort")
    note = (await talk.until("ext_notify"))[-1]
    assert note["message"] == "its submission is not run: the user has aborted the session and sent nothing since"
    while await talk.state() == "running":
        await talk.until("done")
    count = len(server.requests)
    assert await talk.state() in {"idle", "held"}
    await talk.run()
    assert len(server.requests) > count


async def test_what_a_person_s_command_submits_is_run_also_after_an_abort(shop, model, look):
    shop.write("pusher", "@ext.command('push')\ndef push(args):\n    ext.submit('from the extension')")
    talk = await shop.open(await model(text("heard")))
    await talk.ask("abort")
    await talk.ask("run_command", name="push")
    events = await talk.until("done")
    assert look.only(events, "user_message")[0]["content"][0]["text"] == "from the extension"


async def test_a_note_is_in_the_snapshot_until_the_next_prompt(shop, model):
    shop.write("notes", '@ext.command("note")\ndef note(args):\n    ext.notify("info", args)')
    talk = await shop.open(await model(text("hi")))
    await talk.ask("run_command", name="note", args="careful")
    await talk.until("ext_notify")
    assert [note["message"] for note in (await shop.house.follow(talk.id)).snapshot["notes"]] == ["careful"]
    await talk.run()
    assert (await shop.house.follow(talk.id)).snapshot["notes"] == []
