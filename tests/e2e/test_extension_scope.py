"""Whom an extension serves: what it is told about sessions, and what it gets of the environment."""

import asyncio
import json
import shutil
from contextlib import AsyncExitStack
from types import SimpleNamespace

import pytest

from tests.e2e.conftest import House
from tests.e2e.shop import Shop
from zotd.testing.live_daemon import place, serving
from zotd.testing.script import CallPart, calls, text

DAEMON_KEY = "sk-a-key-of-the-daemon"

WITHHELD = {
    "OPENAI_API_KEY": DAEMON_KEY,
    "ANTHROPIC_API_KEY": DAEMON_KEY,
    "ZOT_X_TOKEN": "a token of ours",
    "TELEGRAM_BOT_TOKEN": "123:token",
}

RECORDER = r"""
import json, os, sys

def say(**frame):
    print(json.dumps(frame), flush=True)

say(type="hello", name="recorder")
say(type="register_tool", name="look", description="Looks.", schema={"type": "object"})
say(type="register_command", name="env")
say(type="register_command", name="panel")
say(type="subscribe", events=["session_start", "turn_start", "session_end"], intercept=["turn_start"])
say(type="ready")
with open("frames", "a") as record:
    for line in sys.stdin:
        record.write(line)
        record.flush()
        frame = json.loads(line)
        if frame["type"] == "tool_call":
            say(type="tool_result", id=frame["id"], content=[])
        if frame["type"] == "event_intercept":
            say(type="event_intercept_response", id=frame["id"])
        if frame["type"] == "command_invoked" and frame["name"] == "env":
            say(type="command_response", id=frame["id"], action="display", display=json.dumps(dict(os.environ)))
        if frame["type"] == "command_invoked" and frame["name"] == "panel":
            say(type="command_response", id=frame["id"], action="open_panel", open_panel={"id": "p"})
"""
"""An extension that writes down all that it is told."""


@pytest.fixture
async def recorded(tmp_path, monkeypatch):
    """`await recorded(scope=...)`: a shop with the recorder, and what that was told; the daemon has keys and tokens."""
    async with AsyncExitStack() as stack:

        async def recorded(**fields):
            home = place(tmp_path, WITHHELD)
            home.home.mkdir(0o700)
            directory = Shop(SimpleNamespace(place=home)).write("recorder", "", **fields)
            (directory / "main.py").write_text(RECORDER)
            monkeypatch.setenv("HOME", home.env["HOME"])
            house = House(stack, await stack.enter_async_context(serving(tmp_path, WITHHELD)))
            return Shop(house), lambda: [json.loads(line) for line in (directory / "frames").read_text().splitlines()]

        yield recorded


async def environment(talk):
    await talk.ask("run_command", name="env")
    return json.loads((await talk.until("ext_display"))[-1]["text"])


async def test_every_frame_to_an_extension_of_the_daemon_says_what_it_is_about(recorded, model):
    shop, told = await recorded(scope="daemon")
    talk = await shop.open(await model(calls(CallPart("look")), text("done")))
    await talk.ask("run_command", name="panel")
    await talk.ask("panel.key", panel_id="p", key="up")
    await talk.ask("panel.resize", panel_id="p", width=80, height=20)
    await talk.ask("panel.close", panel_id="p")
    await talk.run()
    frames = [frame for frame in told() if frame["type"] not in {"hello_ack", "shutdown"}]
    assert {frame["type"] for frame in frames} == {
        *("event", "event_intercept", "command_invoked", "tool_call"),
        *("panel_key", "panel_resize", "panel_close"),
    }
    assert {(frame.get("session_id"), frame.get("cwd")) for frame in frames} == {(talk.id, str(shop.house.cwd))}


async def test_an_extension_of_the_daemon_gets_its_environment_without_keys_and_tokens(recorded, model):
    shop, _ = await recorded(scope="daemon")
    seen = await environment(await shop.open(await model(text("-"))))
    assert seen["ZOT_HOME"] == str(shop.house.place.home)
    assert not WITHHELD.keys() & seen.keys()


async def test_a_key_that_the_manifest_names_comes_from_the_daemon_or_from_the_client(recorded, model):
    shop, _ = await recorded(env=["OPENAI_API_KEY", "ANTHROPIC_API_KEY"])
    shop.env["OPENAI_API_KEY"] = "sk-a-key-of-the-client"
    del shop.env["ANTHROPIC_API_KEY"]
    seen = await environment(await shop.open(await model(text("-"))))
    assert (seen["OPENAI_API_KEY"], seen["ANTHROPIC_API_KEY"]) == ("sk-a-key-of-the-client", DAEMON_KEY)
    assert "ZOT_X_TOKEN" not in seen


async def test_a_session_s_end_is_told_when_the_daemon_stops(tmp_path, monkeypatch, model):
    home = place(tmp_path)
    home.home.mkdir(0o700)
    directory = Shop(SimpleNamespace(place=home)).write("recorder", "")
    (directory / "main.py").write_text(RECORDER)
    monkeypatch.setenv("HOME", home.env["HOME"])
    async with AsyncExitStack() as stack:
        house = House(stack, await stack.enter_async_context(serving(tmp_path)))
        talk = await Shop(house).open(await model(text("hi")))
        await talk.run()
    frames = [json.loads(line) for line in (directory / "frames").read_text().splitlines()]
    assert [(frame["type"], frame.get("event")) for frame in frames[-2:]] == [
        ("event", "session_end"),
        ("shutdown", None),
    ]


# --- of one session -------------------------------------------------------------------------------------------

TWIN = """
import threading

@ext.command("who")
def who(args):
    ext.notify("info", {who!r} + args)

@ext.on("turn_end")
def hear(event):
    thread = threading.Thread(target=ext.notify, args=["info", "to all, from {who}"])
    thread.start()
    thread.join()
"""


@pytest.fixture
def twins(shop):
    """Two extensions of one name: an installed one, and the directory of another one."""
    shop.write("twin", TWIN.format(who="the installed one"))
    return shop.write("twin", TWIN.format(who="the session's"), into=shop.house.cwd)


async def test_an_extension_of_a_session_hides_one_of_its_name_with_all_that_this_one_says(shop, twins, model, look):
    talk = await shop.open(await model(text("hi")), extensions=[str(twins)])
    other = await shop.open(await model(text("hi")))
    await talk.ask("run_command", name="who")
    assert (await talk.until("ext_notify"))[-1]["message"] == "the session's"
    await other.ask("run_command", name="who")
    assert (await other.until("ext_notify"))[-1]["message"] == "the installed one"
    await other.run()  # which the installed one hears, and tells everybody who uses it
    assert (await other.until("ext_notify"))[-1]["message"] == "to all, from the installed one"
    await talk.ask("run_command", name="who", args=", again")
    notes = look.only(await talk.until("ext_notify"), "ext_notify")
    assert [note["message"] for note in notes] == ["the session's, again"]


async def test_the_doctor_tells_what_a_session_s_own_extensions_hide(shop, twins, model):
    shop.write("also", '@ext.command("who")\ndef who(args):\n    return None')
    talk = await shop.open(await model(text("hi")), extensions=[str(twins)])
    other = await shop.open(await model(text("hi")))
    await talk.run()
    await other.run()
    texts = [one["text"] for one in (await talk.client.ask("ext.doctor", session=talk.id))["findings"]]
    assert texts.count(f"{shop.installed / 'twin'} is hidden by {twins}") == 1
    assert any("its command /who is hidden by that of twin" in one for one in texts)
    assert len(set(texts)) == len(texts)
    texts = [one["text"] for one in (await talk.client.ask("ext.doctor", session=other.id))["findings"]]
    assert not any("is hidden by" in one and str(twins) in one for one in texts)


async def test_a_reload_of_the_directory_reaches_what_a_session_has_named(shop, model):
    directory = shop.write("mine", '@ext.command("v")\ndef v(args):\n    return Display("one")', into=shop.house.cwd)
    talk = await shop.open(await model(text("hi")), extensions=[str(directory)])
    await talk.run()
    shop.write("mine", '@ext.command("v")\ndef v(args):\n    return Display("two")', into=shop.house.cwd)
    report = await talk.client.ask("ext.reload", cwd=str(shop.house.cwd))
    assert (report["ready"], report["errors"]) == (["mine"], [])
    assert (await talk.ask("run_command", name="v"))["text"] == "two"


async def test_a_named_extension_that_is_not_there_is_refused(shop, model):
    talk = await shop.open(await model(text("hi")))
    answer = await talk.client.answer("session.create", cwd=str(shop.house.cwd), extensions=["/nowhere"])
    assert (answer["code"], answer["error"]) == (
        "bad_request",
        "/nowhere/extension.json cannot be read: no such file or directory",
    )
    assert await talk.refused("session.configure", extensions=["/nowhere"]) == "bad_request"


async def test_a_named_extension_that_has_vanished_is_told_once_when_a_run_starts(shop, model, look):
    directory = shop.write("mine", "", into=shop.house.cwd)
    talk = await shop.open(await model(text("hi"), text("hi"), text("hi")), extensions=[str(directory)])
    assert look.only(await talk.run(), "notice") == []
    shutil.rmtree(directory)
    await talk.ask("session.configure", no_ext=True)  # looks for them anew
    notices = look.only(await talk.run(), "notice")
    sentence = f"{directory}/extension.json cannot be read: no such file or directory"
    assert [notice["text"] for notice in notices] == [sentence]
    assert look.only(await talk.run(), "notice") == []


async def test_a_session_that_gives_up_its_extensions_is_not_heard_by_them_and_shows_nothing_of_them(
    recorded, model, look
):
    shop, told = await recorded()
    talk = await shop.open(await model(text("hi"), text("hi")))
    await talk.ask("run_command", name="panel")
    await talk.ask("session.configure", no_ext=True)
    assert look.only(await talk.until("ext_panel_closed"), "ext_panel_closed")[0]["panel_id"] == "p"
    await talk.run()
    async with asyncio.timeout(60):
        while "session_end" not in (events := [frame["event"] for frame in told() if frame["type"] == "event"]):
            await talk.client.ask("ping")  # the recorder is a process of its own, which nothing waits for
    assert events == ["session_start", "session_end"]
