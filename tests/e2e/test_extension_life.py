"""Extensions while sessions use them: reload, crash, install, trust, modules, logs; until the daemon ends."""

import json

import psutil
import pytest

from tests.e2e.shop import EXAMPLES, WEATHER, Shop, until_state
from zotd.testing.script import CallPart, calls, text


@pytest.fixture
def impatient(tmp_path):
    """Before the daemon starts: tools may take half a second."""
    home = tmp_path / "zot"
    home.mkdir(0o700)
    (home / "config.toml").write_text("[ext]\ntool_timeout_s = 0.5\n")


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
    server = await model(calls(CallPart("fall")), text("it fell"))
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
    findings = (await admin.ask("ext.doctor", cwd=str(shop.house.cwd)))["findings"]
    assert any("is not trusted" in one["text"] for one in findings)
    talk = await shop.open(await model(text("hi")))
    await talk.run()
    running = {one["name"]: one for one in (await talk.client.ask("ext.list", session=talk.id))["extensions"]}
    assert (running["clock"]["state"], running["clock"]["commands"]) == ("ready", ["clock"])
    assert "nothing" in running["broken"]["reason"]
    findings = (await talk.client.ask("ext.doctor", session=talk.id))["findings"]
    assert {one["extension"] for one in findings} >= {"broken", "weather"}
    assert any("is not trusted" in one["text"] for one in findings)


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


@pytest.mark.parametrize("opened_by_link", [True, False])
async def test_trust_is_of_a_directory_whatever_it_is_called(shop, model, opened_by_link):
    directory, link = shop.house.cwd, shop.house.place.folder / "link"
    link.symlink_to(directory)
    shop.write(
        "local", '@ext.tool\ndef local() -> str:\n    "Local."\n    return "ok"', into=directory / ".zot/extensions"
    )
    opened, called = (link, directory) if opened_by_link else (directory, link)
    server = await model(text("one"), text("two"), text("three"))
    admin = await shop.house.connect(role="admin")
    await admin.ask("subscribe", topics=["extensions"])
    talk = await shop.open(server, cwd=str(opened))
    await talk.run()
    await admin.ask("trust.grant", path=str(called))
    await until_state(admin, "local", "ready")
    await talk.run()
    await admin.ask("trust.revoke", path=f"{called}/.zot/..")
    await until_state(admin, "local", "stopped")
    await talk.run()
    assert ["local" in str(request.body["tools"]) for request in server.requests] == [False, True, False]


@pytest.mark.parametrize("name", ["a\0b", "n" * 300, "../zotd", ".."])
async def test_what_cannot_be_a_name_or_a_path_is_not_found(shop, model, name):
    admin = await shop.house.connect(role="admin")
    assert await admin.refused("ext.logs", name=name) == "not_found"
    for command in ("trust.list", "trust.grant", "trust.revoke"):
        assert await admin.refused(command, path="/" + name * 20) in {"not_found", "conflict", "bad_request"}


async def test_a_python_module_is_a_tool_and_a_saved_change_counts_at_the_next_step(shop, model, look):
    tools = shop.installed / "tools"
    tools.mkdir(parents=True)
    (tools / "count.py").write_text(
        'async def run(text: str) -> int:\n    """Count."""\n    return len(text.split())\n'
    )
    server = await model(calls(CallPart("count", {"text": "one two"})), text("done"))
    talk = await shop.open(server)
    result = look.only(await talk.run(), "tool_result")[0]
    assert (result["content"][0]["text"], result["extension"]) == ("2", f"py-{shop.house.cwd.name}")


async def test_the_first_module_of_a_home_is_found_when_it_is_saved_and_a_saved_change_counts(shop, model, look):
    file = shop.installed / "tools" / "count.py"
    watcher = await shop.house.connect()
    await watcher.ask("subscribe", topics=["extensions"])
    server = await model(text("hi"), calls(CallPart("count")), text("one"))
    talk = await shop.open(server)
    await talk.run()
    file.parent.mkdir(parents=True)
    file.write_text('async def run() -> str:\n    """Count."""\n    return "one"\n')
    await until_state(watcher, f"py-{shop.house.cwd.name}", "ready")
    assert look.only(await talk.run(), "tool_result")[0]["content"][0]["text"] == "one"


async def test_a_module_that_does_not_load_is_told_where_people_look(shop, model):
    file = shop.installed / "tools" / "count.py"
    file.parent.mkdir(parents=True)
    file.write_text("def run(:\n")
    talk = await shop.open(await model(text("hi")))
    note = (await talk.until("ext_notify"))[-1]
    assert "count.py" in note["message"]
    (one,) = (await talk.client.ask("ext.list", session=talk.id))["extensions"]
    assert (one["source"], "count.py" in one["reason"]) == ("modules", True)
    file.write_text('async def run() -> str:\n    return "mended"\n')
    assert (await talk.until("ext_notify"))[-1]["level"] == "success"
    (one,) = (await talk.client.ask("ext.list", session=talk.id))["extensions"]
    assert (one["tools"], one["reason"]) == (["count"], "")


async def test_a_directory_that_was_trusted_when_it_was_empty_asks_about_its_first_module(shop, model, look):
    admin = await shop.house.connect(role="admin")
    await admin.ask("subscribe", topics=["extensions", "trust"])
    await admin.ask("trust.grant", path=str(shop.house.cwd))
    server = await model(text("hi"), calls(CallPart("count")), text("one"))
    talk = await shop.open(server)
    await talk.run()
    file = shop.house.cwd / ".zot" / "extensions" / "tools" / "count.py"
    file.parent.mkdir(parents=True)
    file.write_text('async def run() -> str:\n    """Count."""\n    return "one"\n')
    assert (await admin.until("trust_required"))[-1]["items"] == [".zot/extensions/tools/count.py"]
    await admin.ask("trust.grant", path=str(shop.house.cwd))
    await until_state(admin, f"py-{shop.house.cwd.name}", "ready")
    assert look.only(await talk.run(), "tool_result")[0]["content"][0]["text"] == "one"


async def test_a_stuck_module_is_restarted_and_the_others_answer(impatient, shop, model, look):
    del impatient
    tools = shop.installed / "tools"
    tools.mkdir(parents=True)
    (tools / "stick.py").write_text("import time\n\n\nasync def run() -> None:\n    time.sleep(60)\n")
    (tools / "well.py").write_text('async def run() -> str:\n    return "well"\n')
    server = await model(calls(CallPart("stick")), calls(CallPart("well")), text("done"))
    talk = await shop.open(server)
    first, second = look.only(await talk.run(), "tool_result")
    assert "did not answer within" in first["content"][0]["text"]
    assert second["content"][0]["text"] == "well"


async def test_a_module_that_ends_its_process_costs_the_others_a_moment(shop, model, look):
    tools = shop.installed / "tools"
    tools.mkdir(parents=True)
    (tools / "fall.py").write_text('import os\n\n\nasync def run() -> str:\n    """Falls."""\n    os._exit(3)\n')
    (tools / "well.py").write_text('async def run() -> str:\n    """Well."""\n    return "well"\n')
    server = await model(
        calls(CallPart("fall")), calls(CallPart("well")), text("broken"), calls(CallPart("well")), text("whole again")
    )
    watcher = await shop.house.connect()
    await watcher.ask("subscribe", topics=["extensions"])
    talk = await shop.open(server)
    first, second = look.only(await talk.run(), "tool_result")
    assert "exited with code 3" in first["content"][0]["text"]
    assert "call the tool again" in second["content"][0]["text"]
    assert "unknown tool" not in second["content"][0]["text"]
    await until_state(watcher, f"py-{shop.house.cwd.name}", "restarting")
    await until_state(watcher, f"py-{shop.house.cwd.name}", "ready")
    assert look.only(await talk.run(), "tool_result")[0]["content"][0]["text"] == "well"


async def test_a_project_s_extensions_wait_for_trust(shop, model, results):
    project = shop.house.cwd / ".zot" / "extensions"
    shop.write("local", '@ext.tool\ndef local() -> str:\n    "Local."\n    return "ok"', into=project)
    server = await model(text("one"), text("two"))
    await (await shop.open(server)).run()
    shop.env["ZOT_TRUST"] = "1"
    await (await shop.open(server)).run()
    assert ["local" in str(request.body["tools"]) for request in server.requests] == [False, True]


async def test_an_abort_does_not_wait_for_an_extension_that_is_slow_to_start(shop, model, look):
    shop.write("slow", "import time\ntime.sleep(2)")  # a run would wait for it
    server = await model(text("never"))
    talk = await shop.open(server)
    talk.send("prompt", message="go")
    await talk.ask("abort")
    events = await talk.until("done")
    assert look.only(events, "turn_end")[0]["stop"] == "aborted"
    assert server.requests == []
    (slow,) = (await talk.client.ask("ext.list", session=talk.id))["extensions"]
    assert slow["state"] == "starting"


async def test_extensions_end_with_the_daemon(process, model):
    shop = Shop(process)
    shop.install("clock")
    server = await model(text("hi"))
    talk = await shop.open(server)
    await talk.run()
    pid = (await talk.client.ask("ext.list", session=talk.id))["extensions"][0]["pid"]
    assert psutil.pid_exists(pid)
    process.daemon.end()
    assert not psutil.pid_exists(pid)
