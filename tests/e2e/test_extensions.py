"""Extensions in a session: the examples and small ones made for a test, in a real daemon, with a scripted model."""

import json
import os
import shutil
import sys
import textwrap
from pathlib import Path

import pytest

from zotd.testing.live_daemon import ROOT
from zotd.testing.script import Call, Hang, Reply, Text, calls, text

EXAMPLES = ROOT / "examples" / "extensions"

WEATHER = calls(Call("weather", {"city": "Berlin"})), text("It is 16 °C and foggy.")


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


class Shop:
    """A home with extensions in it."""

    def __init__(self, house):
        self.house = house
        self.env = {
            **house.place.env,
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), house.place.env["PATH"]]),
            "PYTHONPATH": str(ROOT),
        }

    @property
    def installed(self):
        return self.house.place.home / "extensions"

    def install(self, name):
        """One of the examples."""
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(EXAMPLES / name, self.installed / name, ignore=ignored)

    def write(self, name, body, *, into=None, **fields):
        """A small one, with the SDK; `ext` is there."""
        directory = (into or self.installed) / name
        directory.mkdir(parents=True, exist_ok=True)
        manifest = {"name": name, "exec": "python3", "args": ["main.py"], **fields}
        (directory / "extension.json").write_text(json.dumps(manifest))
        head = f"from zotd.sdk import *\next = Extension({name!r})\n"
        (directory / "main.py").write_text(head + textwrap.dedent(body) + "\next.run()\n")
        return directory

    async def open(self, server, vendor="openai", **options):
        return await self.house.create(vendor, server, env=self.env, **options)


@pytest.fixture
def shop(house):
    return Shop(house)


@pytest.fixture
def impatient(tmp_path):
    """Before the daemon starts: tools may take half a second."""
    home = tmp_path / "zot"
    home.mkdir(0o700)
    (home / "config.toml").write_text("[ext]\ntool_timeout_s = 0.5\n")


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
    server = await model(calls(Call("first")), calls(Call("second")), text("done"))
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


async def test_a_tool_that_nobody_has_is_named_when_the_run_starts(shop, model, look):
    server = await model(text("hi"))
    talk = await shop.open(server, tools=["read", "fly"])
    notice = look.only(await talk.run(), "notice")[0]
    assert "nobody has the tool fly" in notice["text"]


# --- guards ---------------------------------------------------------------------------------------------------


async def test_a_guard_refuses_a_call_and_the_model_is_told_why(shop, model, vendor, look, results):
    shop.install("guard")
    (shop.house.cwd / "keep").mkdir()
    server = await model(calls(Call("bash", {"command": "rm -rf keep"})), text("I may not."))
    talk = await shop.open(server, vendor)
    events = await talk.run("delete keep")
    assert (shop.house.cwd / "keep").exists()
    assert "rm -rf is not allowed here" in results(server.requests[1])[0]
    note = look.only(events, "guard_note")[0]
    assert (note["extension"], note["event"]) == ("guard", "tool_call")
    assert note["text"].startswith("blocked a call of bash: rm -rf is not allowed")


async def test_changed_arguments_run_and_the_transcript_keeps_the_model_s_own(shop, model, look, results):
    shop.write(
        "safer",
        """
        @ext.guard("tool_call")
        def check(event):
            return Decision.args({"command": "echo safe"})
        """,
    )
    server = await model(calls(Call("bash", {"command": "echo danger"})), text("ok"))
    talk = await shop.open(server)
    events = await talk.run()
    assert look.only(events, "tool_call")[0]["args"] == {"command": "echo danger"}
    assert "safe" in results(server.requests[1])[0]
    assert "changed the arguments of bash" in look.only(events, "guard_note")[0]["text"]
    assert "echo danger" in str((await talk.ask("get_messages"))["messages"])


async def test_text_is_held_until_the_guards_have_seen_it_and_people_see_what_they_say(shop, model, look):
    shop.write(
        "censor",
        """
        @ext.guard("assistant_message")
        def check(event):
            return Decision.text(event.text.replace("walrus", "******"))
        """,
    )
    server = await model(text("It ", "says ", "walrus."), text("again"))
    talk = await shop.open(server)
    events = await talk.run()
    assert [event["delta"] for event in look.only(events, "text_delta")] == ["It says ******."]
    assert look.only(events, "assistant_message")[0]["content"][0]["text"] == "It says ******."
    history = await talk.ask("session.history")
    assert "walrus" not in str(history)
    assert "It says walrus." in str(await talk.texts())
    await talk.run()
    assert "It says walrus." in str(server.requests[1].messages)


async def test_a_reply_that_a_guard_hides_is_kept_for_the_model_only(shop, model, look):
    shop.write("censor", '@ext.guard("assistant_message")\ndef check(event):\n    return Decision.block("secret")')
    server = await model(text("walrus"))
    talk = await shop.open(server)
    events = await talk.run()
    assert look.only(events, "text_delta") == look.only(events, "assistant_message") == []
    assert "secret" in look.only(events, "guard_note")[0]["text"]
    assert "walrus" in str(await talk.texts())


async def test_what_a_guard_has_not_seen_stays_hidden_when_the_run_is_aborted(shop, model, look):
    shop.write("censor", '@ext.guard("assistant_message")\ndef check(event):\n    return None')
    server = await model(Reply([Text(["walrus"]), Hang()]))
    talk = await shop.open(server)
    await talk.ask("prompt", message="go")
    await talk.until("assistant_start")
    await talk.ask("abort")
    events = await talk.until("done")
    assert "walrus" not in str(events)
    assert "walrus" not in str(await talk.ask("session.history"))


async def test_a_guard_stops_a_step_before_the_model_is_called(shop, model, look):
    shop.write("brake", '@ext.guard("turn_start")\ndef check(event):\n    return Decision.block("not on Sundays")')
    server = await model(text("never"))
    talk = await shop.open(server)
    events = await talk.run()
    end = look.only(events, "turn_end")[0]
    assert (end["stop"], end["error"]) == ("error", "not on Sundays")
    assert look.only(events, "error")[0]["message"] == "not on Sundays"
    assert server.requests == []


async def test_a_guard_replaces_the_system_prompt(shop, model, look):
    shop.write(
        "prompter",
        """
        @ext.guard("before_agent_start")
        def check(event):
            return Decision.system_prompt("You are a walrus.")
        """,
    )
    server = await model(text("hi"))
    talk = await shop.open(server)
    await talk.run()
    assert server.requests[0].messages[0]["content"] == "You are a walrus."


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
    response = await talk.client.answer("run_command", session=talk.id, name="wether")
    assert "there is no /wether; there are " in response["error"]
    assert "/weather" in response["error"]


async def test_a_panel_is_shown_worked_with_keys_and_stands_in_the_snapshot(shop, model):
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


async def test_events_reach_an_extension_in_their_order(shop, model, tmp_path):
    heard = tmp_path / "heard"
    shop.write(
        "ears",
        f"""
        names = ["session_start", "user_prompt_submit", "turn_start", "assistant_message", "tool_call", "turn_end",
                 "tool_result"]
        for one in names:
            @ext.on(one)
            def hear(event):
                with open({str(heard)!r}, "a") as file:
                    file.write(event.name + "\\n")

        @ext.command("flush")
        def flush(args):
            return Display("flushed")
        """,
    )
    server = await model(calls(Call("read", {"path": "a.txt"}), before="I look."), text("nothing"))
    talk = await shop.open(server)
    await talk.ask("run_command", name="flush")  # it is there from the beginning
    await talk.run()
    await talk.ask("run_command", name="flush")
    step = ["turn_start", "assistant_message", "tool_call", "turn_end", "tool_result"]
    expected = ["session_start", "user_prompt_submit", *step, "turn_start", "assistant_message", "turn_end"]
    assert heard.read_text().split() == expected


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


async def test_a_note_stands_in_the_snapshot_until_the_next_prompt(shop, model):
    shop.write("notes", '@ext.command("note")\ndef note(args):\n    ext.notify("info", args)')
    talk = await shop.open(await model(text("hi")))
    await talk.ask("run_command", name="note", args="careful")
    await talk.until("ext_notify")
    assert [note["message"] for note in (await shop.house.follow(talk.id)).snapshot["notes"]] == ["careful"]
    await talk.run()
    assert (await shop.house.follow(talk.id)).snapshot["notes"] == []


# --- life -----------------------------------------------------------------------------------------------------


async def test_reload_makes_a_new_extension_callable_in_the_same_session(shop, model, look, results):
    server = await model(text("hi"), *WEATHER)
    talk = await shop.open(server)
    await talk.run()
    shop.install("weather")
    answer = await talk.ask("run_command", name="reload-ext")
    assert answer["text"] == "extensions reloaded: 1 loaded, 1 ready, 0 stopped"
    await talk.run("What is the weather in Berlin?")
    assert results(server.requests[2]) == ["Berlin: 16 °C, fog"]


async def test_an_extension_that_crashes_in_a_call_fails_that_call_and_comes_back(shop, model, look):
    shop.write(
        "fragile",
        '''
        import os

        @ext.tool
        def fall() -> str:
            """Falls."""
            os._exit(3)
        ''',
    )
    server = await model(calls(Call("fall")), text("it fell"))
    talk = await shop.open(server)
    events = await talk.run()
    result = look.only(events, "tool_result")[0]
    assert result["is_error"]
    assert "fragile exited with code 3" in result["content"][0]["text"]
    notes = look.only(events, "ext_notify")
    assert any("exited with code 3" in note["message"] for note in notes)


async def test_the_list_tells_what_runs_what_rests_and_what_waits_for_trust(shop, model):
    shop.install("clock")
    shop.install("weather")
    shop.write("broken", "", exec="./nothing")
    shop.write("local", "", into=shop.house.cwd / ".zot" / "extensions")
    admin = await shop.house.connect(role="admin")
    await admin.ask("ext.disable", name="weather")
    resting = (await admin.ask("ext.list", cwd=str(shop.house.cwd)))["extensions"]
    assert {one["name"]: one["state"] for one in resting} == {
        "broken": "stopped",
        "clock": "stopped",
        "weather": "disabled",
        "local": "untrusted",
    }
    talk = await shop.open(await model(text("hi")))
    await talk.run()
    running = {one["name"]: one for one in (await talk.client.ask("ext.list", session=talk.id))["extensions"]}
    assert (running["clock"]["state"], running["clock"]["commands"]) == ("ready", ["clock"])
    assert "nothing" in running["broken"]["reason"]
    findings = (await talk.client.ask("ext.doctor", session=talk.id))["findings"]
    assert {one["extension"] for one in findings} >= {"broken", "weather"}
    assert any("nobody trusts" in one["text"] for one in findings)


async def test_frames_are_shown_to_who_taps_with_the_time_an_answer_took(shop, model):
    shop.install("hello")
    talk = await shop.open(await model(text("hi"), text("hi")))
    await talk.run()
    watcher = await shop.house.connect()
    await watcher.ask("ext.tap", name="hello")
    await talk.ask("run_command", name="hello")
    frames = [await watcher.event(), await watcher.event()]
    assert [(one["direction"], json.loads(one["frame"])["type"]) for one in frames] == [
        ("out", "command_invoked"),
        ("in", "command_response"),
    ]
    assert frames[1]["latency_s"] > 0
    assert await watcher.refused("ext.tap", name="nobody") == "not_found"


async def test_a_log_is_read_and_followed(shop, model):
    shop.write("speaker", "@ext.command('say')\ndef say(args):\n    ext.log(args)")
    talk = await shop.open(await model(text("hi")))
    await talk.ask("run_command", name="say", args="first words")
    reader = await shop.house.connect()
    page = await reader.ask("ext.logs", name="speaker", follow=True)
    assert "first words" in page["text"]
    await talk.ask("run_command", name="say", args="second words")
    assert "second words" in (await reader.until("ext_log"))[-1]["text"]


async def test_an_installed_extension_runs_after_a_reload_and_is_gone_when_it_is_removed(shop, model, results):
    server = await model(text("hi"), *WEATHER, text("gone"))
    talk = await shop.open(server)
    await talk.run()
    admin = await shop.house.connect(role="admin")
    installed = await admin.ask("ext.install", source=str(EXAMPLES / "weather"))
    assert (installed["name"], installed["version"]) == ("weather", "1.0.0")
    answer = await admin.ask("ext.reload", cwd=str(shop.house.cwd))
    assert (answer["loaded"], answer["ready"], answer["errors"]) == (["weather"], ["weather"], [])
    await talk.run("What is the weather in Berlin?")
    assert "Berlin: 16 " in results(server.requests[2])[0]
    await admin.ask("ext.remove", name="weather")
    await talk.run()
    assert "weather" not in str(server.requests[3].body["tools"])
    assert not (shop.installed / "weather").exists()


async def test_trust_starts_what_a_project_brings_along_and_revoking_it_ends_that(shop, model, look):
    project = shop.house.cwd / ".zot" / "extensions"
    shop.write("local", '@ext.tool\ndef local() -> str:\n    "Local."\n    return "ok"', into=project)
    server = await model(text("one"), text("two"), text("three"))
    admin = await shop.house.connect(role="admin")
    await admin.ask("subscribe", topics=["trust", "extensions"])
    talk = await shop.open(server)
    asked = (await admin.until("trust_required"))[-1]
    assert (asked["cwd"], asked["items"]) == (str(shop.house.cwd), [".zot/extensions/local"])
    notice = look.only(await talk.run(), "notice")[0]["text"]
    assert notice.endswith(f"zotctl trust grant {shop.house.cwd}")
    await admin.ask("trust.grant", path=str(shop.house.cwd))
    await until_state(admin, "local", "ready")
    await talk.run()
    await admin.ask("trust.revoke", path=str(shop.house.cwd))
    await until_state(admin, "local", "stopped")
    await talk.run()
    assert ["local" in str(request.body["tools"]) for request in server.requests] == [False, True, False]


async def until_state(client, name, state):
    event: dict[str, object] = {}
    while (event.get("extension"), event.get("state")) != (name, state):
        event = (await client.until("ext_state"))[-1]


async def test_a_python_module_is_a_tool_and_a_saved_change_counts_at_the_next_step(shop, model, look):
    tools = shop.installed / "tools"
    tools.mkdir(parents=True)
    (tools / "count.py").write_text(
        'async def run(text: str) -> int:\n    """Count."""\n    return len(text.split())\n'
    )
    server = await model(calls(Call("count", {"text": "one two"})), text("done"))
    talk = await shop.open(server)
    result = look.only(await talk.run(), "tool_result")[0]
    assert (result["content"][0]["text"], result["extension"]) == ("2", f"py-{shop.house.cwd.name}")


async def test_a_stuck_module_is_restarted_and_the_others_answer(impatient, shop, model, look):
    del impatient
    tools = shop.installed / "tools"
    tools.mkdir(parents=True)
    (tools / "stick.py").write_text("import time\n\n\nasync def run() -> None:\n    time.sleep(60)\n")
    (tools / "well.py").write_text('async def run() -> str:\n    return "well"\n')
    server = await model(calls(Call("stick")), calls(Call("well")), text("done"))
    talk = await shop.open(server)
    first, second = look.only(await talk.run(), "tool_result")
    assert "did not answer within" in first["content"][0]["text"]
    assert second["content"][0]["text"] == "well"


async def test_a_project_s_extensions_wait_for_trust(shop, model, results):
    project = shop.house.cwd / ".zot" / "extensions"
    shop.write("local", '@ext.tool\ndef local() -> str:\n    "Local."\n    return "ok"', into=project)
    server = await model(text("one"), text("two"))
    await (await shop.open(server)).run()
    shop.env["ZOT_TRUST"] = "1"
    await (await shop.open(server)).run()
    assert ["local" in str(request.body["tools"]) for request in server.requests] == [False, True]


async def test_extensions_end_with_the_daemon(process, model):
    shop = Shop(process)
    shop.install("clock")
    server = await model(text("hi"))
    talk = await shop.open(server)
    await talk.run()
    assert (await talk.client.ask("daemon.status"))["extensions"] == 1
    pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit() and _is_clock(path, shop)]
    assert pids
    process.daemon.end()
    assert not any(Path("/proc", str(pid)).exists() for pid in pids)


def _is_clock(path, shop):
    try:
        return os.readlink(path / "cwd") == str(shop.installed / "clock")
    except OSError:
        return False
