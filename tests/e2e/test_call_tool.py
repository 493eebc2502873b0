"""`call_tool` in a real daemon: extensions whose tools and commands have the host run other tools."""

import json
import signal
from base64 import b64decode

import psutil
import pytest

from tests.e2e.shop import Shop
from zotd.testing.script import CallPart, calls, text

NEST = '''
import json

async def call(name: str, args: dict) -> str:
    result = await ext.call_tool(name, args)
    return json.dumps([result.text, result.is_error, result.truncated, [image.mime_type for image in result.images]])

{options}
async def {name}(name: str, args: dict) -> str:
    """Has another tool called."""
    return await call(name, args)
'''
"""A tool that calls the tool that its arguments say, and tells what came of it."""

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="


def nest(shop, *names, options="@ext.tool", more=""):
    """Install extensions of one such tool each."""
    for name in names:
        shop.write(name, NEST.format(name=name, options=options) + more)


@pytest.fixture
def impatient(tmp_path):
    """Before the daemon starts: tools may take half a second."""
    home = tmp_path / "zot"
    home.mkdir(0o700)
    (home / "config.toml").write_text("[ext]\ntool_timeout_s = 0.5\n")


@pytest.fixture
def ask(shop, model, look):
    """`ask(tool, args, ...)`: have the model call the tool; its result, and the events of the run."""

    async def ask(tool, args, **options):
        server = await model(calls(CallPart(tool, args)), text("done"))
        talk = await shop.open(server, **options)
        events = await talk.run()
        result = look.only(events, "tool_result")[0]["content"][0]["text"]
        return (json.loads(result) if result.startswith("[") else result), events

    return ask


def nested(*chain, args):
    """The arguments of the first tool of a chain, whose last one gets `args`."""
    for name in reversed(chain):
        args = {"name": name, "args": args}
    return args


# --- what comes back ------------------------------------------------------------------------------------------


async def test_a_tool_of_an_extension_calls_one_of_ours(shop, ask):
    nest(shop, "outer")
    (shop.house.cwd / "a.txt").write_text("walrus")
    result, _ = await ask("outer", nested("read", args={"path": "a.txt"}))
    assert "walrus" in result[0]
    assert result[1:] == [False, False, []]


async def test_an_image_comes_back_as_one(shop, ask):
    nest(shop, "outer")
    (shop.house.cwd / "a.png").write_bytes(b64decode(PIXEL))
    result, _ = await ask("outer", nested("read", args={"path": "a.png"}))
    assert result[1:] == [False, False, ["image/png"]]


async def test_a_result_that_is_too_long_is_cut(shop, ask):
    nest(shop, "outer")
    shop.write("long", '@ext.tool\ndef long() -> str:\n    "Long."\n    return "äö" * 100_000')
    result, _ = await ask("outer", nested("long", args={}), tools=["outer", "long"])
    assert result[1:] == [False, True, []]


async def test_the_failure_of_a_tool_is_a_result(shop, ask):
    nest(shop, "outer")
    result, _ = await ask("outer", nested("read", args={"path": "nowhere"}))
    assert result[1] is True
    assert "nowhere" in result[0]


async def test_a_command_calls_a_tool(shop, model):
    nest(
        shop,
        "outer",
        more="""
@ext.command("peek")
async def peek(args):
    return Display((await ext.call_tool("read", {"path": args})).text)
""",
    )
    (shop.house.cwd / "a.txt").write_text("walrus")
    talk = await shop.open(await model(text("-")))
    answer = await talk.ask("run_command", name="peek", args="a.txt")
    assert "walrus" in answer["text"]


async def test_progress_is_shown_as_that_of_the_call_that_the_model_made(shop, ask, look):
    nest(shop, "outer", "inner")
    _, events = await ask("outer", nested("inner", "bash", args={"command": "echo half"}))
    called = look.only(events, "tool_call")[0]["id"]
    assert {event["id"] for event in look.only(events, "tool_progress")} == {called}


# --- what is refused ------------------------------------------------------------------------------------------


async def test_a_chain_has_four_tools_and_none_of_them_twice(shop, ask):
    nest(shop, "a", "b", "c", "d", "e")
    result, _ = await ask("a", nested("b", "c", "d", "e", args=nested("read", args={})))
    for _ in range(3):
        result = json.loads(result[0])
    assert result[0] == "e is not called: the chain of calls is too long: a > b > c > d have called each other"
    result, _ = await ask("a", nested("b", "a", args=nested("read", args={})))
    assert json.loads(result[0])[0] == "a must not call itself: a > b > a"


@pytest.mark.parametrize(
    ("options", "name", "why"),
    [
        ({}, "nothing", 'unknown tool "nothing"; the tools here are: bash, '),
        ({"tools": ["outer"]}, "read", 'unknown tool "read"; the tools here are: outer'),
        ({}, "later", "later is deferred"),
        ({}, "private", "only the model can call private"),
    ],
)
async def test_what_the_session_does_not_have_cannot_be_called(shop, ask, options, name, why):
    nest(shop, "outer")
    for other, exposure in (("later", "deferred"), ("private", "model-only")):
        shop.write(other, f'@ext.tool(exposure={exposure!r})\ndef {other}() -> str:\n    "Hidden."\n    return "no"')
    result, _ = await ask("outer", nested(name, args={}), **options)
    assert result[1] is True
    assert result[0].startswith(why)


async def test_a_guard_has_its_say_about_nested_calls(shop, ask, look):
    nest(shop, "outer")
    shop.write(
        "safer",
        """
        @ext.guard("tool_call")
        def check(event):
            if event.tool_name == "bash":
                return Decision.args({"command": "echo safe"})
            if event.tool_name == "write":
                return Decision.block("not today")
        """,
    )
    result, events = await ask("outer", nested("bash", args={"command": "echo danger"}))
    assert "safe" in result[0]
    assert "changed the arguments of bash" in look.only(events, "guard_note")[0]["text"]
    result, _ = await ask("outer", nested("write", args={"path": "x", "content": "y"}))
    assert result[:2] == ["not today", True]
    assert not (shop.house.cwd / "x").exists()


# --- how it ends ----------------------------------------------------------------------------------------------

STAYS = "echo $$ > pid; echo here; exec sleep 60"


async def test_an_abort_ends_what_the_aborted_call_has_called(shop, model, look):
    nest(shop, "outer")
    talk = await shop.open(await model(calls(CallPart("outer", nested("bash", args={"command": STAYS})))))
    await talk.ask("prompt", message="go")
    await talk.until("tool_progress")
    await talk.ask("abort")
    events = await talk.until("done")
    assert "aborted" in look.only(events, "tool_result")[0]["content"][0]["text"]
    # The test fails if the shell is left running.


async def test_an_extension_ends_what_it_has_called(shop, ask):
    shop.write(
        "impatient",
        '''
        import time, os

        @ext.tool
        def outer() -> str:
            """Calls and gives up."""
            call = ext.call_tool("bash", {"command": "mkfifo gate; exec cat gate"})
            call.cancel()
            return call.result().text
        ''',
    )
    result, _ = await ask("outer", {})
    assert result == "stopped, because its caller is gone; changes that it had already made remain"


async def test_a_crash_of_the_extension_ends_what_it_has_called(shop, model, look):
    shop.write(
        "fragile",
        '''
        import os, threading

        @ext.tool
        def outer() -> str:
            """Falls."""
            ext.call_tool("bash", {"command": "echo here; exec sleep 60"}).result()

        @ext.command("fall")
        def fall(args):
            os._exit(3)
        ''',
    )
    talk = await shop.open(await model(calls(CallPart("outer")), text("it fell")))
    await talk.ask("prompt", message="go")
    await talk.until("tool_progress")
    talk.send("run_command", name="fall")
    events = await talk.until("done")
    assert "exited with code 3" in look.only(events, "tool_result")[0]["content"][0]["text"]


async def test_an_interactive_tool_has_no_more_time_than_others_when_an_extension_calls_it(impatient, shop, ask):
    shop.write(
        "slow",
        '''
        import asyncio

        @ext.tool(interactive=True)
        async def outer() -> str:
            """Waits for a person, who waits for another one."""
            return (await ext.call_tool("inner")).text

        @ext.tool(interactive=True)
        async def inner() -> str:
            """Waits for a person."""
            await asyncio.Event().wait()
        ''',
    )
    result, _ = await ask("outer", {})
    assert result == "inner did not end within 0.5 s and was stopped"


# --- after a crash --------------------------------------------------------------------------------------------


async def test_a_call_that_had_something_unsafe_run_is_not_repeated_whatever_it_says(process, model):
    shop = Shop(process)
    nest(shop, "outer", options='@ext.tool(replay="safe")')
    talk = await shop.open(await model(calls(CallPart("outer", nested("bash", args={"command": STAYS})))))
    await talk.ask("prompt", message="go")
    await talk.until("tool_progress")
    process.restart(signal.SIGKILL)
    psutil.Process(int((process.cwd / "pid").read_text())).kill()
    later = await process.follow(talk.id)
    assert ("tool", [["interrupted, outcome unknown"]]) in await later.texts()


async def test_a_tool_that_can_be_repeated_is_told_how_to_know_a_repetition(shop, ask):
    for name, replay in (("plain", "never"), ("sure", "idempotent"), ("asked", "reconcile")):
        shop.write(
            name, f'@ext.tool(replay={replay!r})\ndef {name}(call) -> str:\n    "Key."\n    return call.operation_key'
        )
    assert (await ask("plain", {}))[0] == "(no content)"
    assert (await ask("sure", {}))[0].startswith("o_")
    assert (await ask("asked", {}))[0].startswith("o_")
