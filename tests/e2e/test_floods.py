"""A model server that answers without measure costs its own run only."""

import pathlib
from contextlib import AsyncExitStack

import pytest

from tests.e2e.conftest import House
from zotd.core.reply import REPLY_CHARS
from zotd.testing.flood_server import FloodServer
from zotd.testing.live_daemon import DaemonProcess
from zotd.testing.script import text

MIB = 1024**2

MUST_STAY_BELOW = 200 * MIB

SAID = {
    "plain_error": "answered 400",
    "chunked_error": "answered 400",
    "gzip_error": "answered 400",
    "gzip_reply": "an event of more than 4 MiB",
    "headers": "headers of more than 100 KiB",
    "text": "more than 2 Mi characters",
    "thinking": "more than",
    "arguments": "more than",
    "calls": "more than 256 tool calls",
    "pings": "more than 64 MiB",
    "line": "an event of more than 4 MiB",
    "document": "more than 8 MiB",
}


@pytest.fixture
async def floods():
    async with FloodServer() as server:
        yield server


def peak(pid):
    """The most memory that the process ever had, in bytes."""
    with pathlib.Path(f"/proc/{pid}/status").open(encoding="ascii") as status:
        return int(status.read().split("VmHWM:")[1].split()[0]) * 1024


async def followed_to_the_end(process, talk):
    """Every event up to `done`. A client that a busy machine lets read too slowly is cut, and goes on at its cursor."""
    client = talk.client
    events: list[dict[str, object]] = []
    while not events or events[-1]["type"] != "done":
        try:
            events.append(await client.event())
        except EOFError:
            seq = max([int(str(event["seq"])) for event in events if "seq" in event], default=0)
            client = await process.connect()
            await client.ask("attach", session=talk.id, after={"epoch": talk.epoch, "seq": seq})
    return events


@pytest.fixture
async def alone(tmp_path, variables):
    """A daemon that is not forked from the tests' template process, whose memory would count."""
    async with AsyncExitStack() as stack:
        daemon = stack.enter_context(DaemonProcess(tmp_path, variables, is_child=True))
        yield House(stack, daemon.place, daemon)


async def test_the_daemon_stays_small_whatever_a_model_server_sends(alone, floods, model, look):
    """And each run ends with a sentence that says what was too much."""
    told = {}
    for flood in SAID:
        talk = await alone.create("openai", None, base_url=floods.url(flood))
        await talk.ask("prompt", message="go")
        events = await followed_to_the_end(alone, talk)
        told[flood] = look.only(events, "error")[0]["message"]
        assert not look.only(events, "retry")
    assert {flood: words for flood, words in told.items() if SAID[flood] not in words} == {}
    assert peak(alone.daemon.pid) < MUST_STAY_BELOW
    answered = await alone.create("openai", await model(text("still here")))
    await answered.run()
    assert ("assistant", ["still here"]) in await answered.texts()


async def test_what_came_of_a_reply_that_is_too_long_is_kept(house, floods, look):
    talk = await house.create("openai", None, base_url=floods.url("text"))
    events = await talk.run()
    written = look.only(events, "assistant_message")[0]["content"][0]["text"]
    assert REPLY_CHARS <= len(written) < REPLY_CHARS + MIB
    assert look.only(events, "turn_end")[-1]["stop"] == "error"
