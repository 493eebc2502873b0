"""Extensions in `zot rpc`: the same ones as in the daemon, in processes that end with it."""

import asyncio
import os
from types import SimpleNamespace

import psutil
import pytest

from tests.e2e.shop import EXAMPLES, WEATHER, Shop
from zotd.testing.script import CallPart, calls, text


@pytest.fixture
def shop(place):
    return Shop(SimpleNamespace(place=place))


async def test_the_model_calls_a_tool_of_an_extension(rpc_child, model, vendor, shop):
    shop.install("weather")
    program = await rpc_child(vendor, await model(*WEATHER))
    program.send("prompt", message="What is the weather in Berlin?")
    frames = await program.until("done")
    result = next(frame for frame in frames if frame["type"] == "tool_result")
    assert (result["is_error"], result["content"][0]["text"]) == (False, "Berlin: 16 °C, fog")
    assert set(result) == {"type", "id", "is_error", "content"}
    children = psutil.Process(program.process.pid).children(recursive=True)
    assert children
    assert (await program.end())[0] == 0
    assert not any(child.is_running() for child in children)


async def test_notes_are_sent_but_no_events_that_need_a_daemon(rpc, model, shop):
    shop.write(
        "speaker",
        '''
        @ext.tool
        def speak() -> str:
            """Speaks."""
            ext.notify("warn", "careful")
            ext.set_status("key", "busy")
            ext.clear_notes()
            return "ok"
        ''',
    )
    program = await rpc("openai", await model(calls(CallPart("speak")), text("ok")))
    program.send("prompt", message="go")
    frames = await program.until("done")
    shown = [frame for frame in frames if frame["type"].startswith("ext_")]
    assert shown == [
        {"type": "ext_notify", "extension": "speaker", "level": "warn", "message": "careful"},
        {"type": "ext_clear_notes", "extension": "speaker"},
    ]


async def test_a_guard_works_and_its_message_is_sent_as_a_note(rpc, model, shop):
    shop.install("guard")
    program = await rpc("openai", await model(calls(CallPart("bash", {"command": "rm -rf x"})), text("ok")))
    program.send("prompt", message="go")
    frames = await program.until("done")
    result = next(frame for frame in frames if frame["type"] == "tool_result")
    assert result["is_error"]
    notes = [frame["message"] for frame in frames if frame["type"] == "ext_notify"]
    assert any(note.startswith("blocked a call of bash") for note in notes)


async def test_a_crashing_guard_causes_no_duplicate_notes(rpc, model, shop):
    shop.write(
        "fragile",
        """
        import os

        @ext.guard("turn_start")
        def start(event):
            os._exit(9)

        @ext.guard("tool_call")
        def call(event):
            os._exit(9)
        """,
    )
    program = await rpc("openai", await model(calls(CallPart("bash", {"command": "true"})), text("ok")))
    program.send("prompt", message="go")
    frames = await program.until("done")
    notes = [frame["message"] for frame in frames if frame["type"] == "ext_notify"]
    assert "fragile exited with code 9" in notes
    assert "fragile exited with code 9 (asked about turn_start)" in notes
    assert len(set(notes)) == len(notes)


async def test_the_log_of_an_extension_is_complete_even_for_a_short_session(rpc, model, shop, place):
    directory = shop.write("talker", "", exec="sh", args=["main.sh"])
    started = directory / "started"
    os.mkfifo(started)
    hello = '{"type":"hello","name":"talker","version":"1"}'
    (directory / "main.sh").write_text(
        f"echo first >&2; echo '{hello}'; echo > started; while read l; do :; done; echo last >&2"
    )
    program = await rpc("openai", await model())
    program.send("hello")
    await asyncio.to_thread(started.read_text)
    assert (await program.end())[0] == 0
    assert (place.home / "logs" / "ext-talker.log").read_text() == "first\nlast\n"


async def test_ext_loads_an_extension_and_no_ext_omits_the_others(rpc_child, model, shop):
    shop.install("clock")
    server = await model(text("hi"))
    program = await rpc_child("openai", server, "--no-ext", "--ext", str(EXAMPLES / "weather"))
    program.send("prompt", message="go")
    await program.until("done")
    assert "weather" in str(server.requests[0].body["tools"])
    (child,) = psutil.Process(program.process.pid).children()
    assert child.cwd() == str(EXAMPLES / "weather")
