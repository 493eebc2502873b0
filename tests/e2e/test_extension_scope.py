"""Whom an extension serves: what it is told about sessions, and what it gets of the environment."""

import json
from contextlib import AsyncExitStack
from types import SimpleNamespace

import pytest

from tests.e2e.conftest import House
from tests.e2e.shop import Shop
from zotd.testing.live_daemon import place, serving
from zotd.testing.script import Call, calls, text

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
    talk = await shop.open(await model(calls(Call("look")), text("done")))
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
