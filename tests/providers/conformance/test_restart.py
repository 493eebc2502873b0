"""Reasoning that only its vendor understands survives a kill of the daemon between two steps, and goes back unchanged."""

import asyncio
import json
from contextlib import AsyncExitStack

from tests.e2e.conftest import House
from tests.providers.conformance.conftest import (
    VARIABLES,
    assert_authorized,
    furnish,
    is_answered,
    keys,
    model_of,
    parts,
)
from tests.providers.conformance.table import ROWS, Carried, vendors
from zotd.testing.live_daemon import DaemonProcess
from zotd.testing.model_server import Received
from zotd.testing.script import CallPart, Hang, ScriptedReply, TextPart, ThinkingPart, text

THOUGHT, SIGNED = "Which animal it is.", "b25seSB0aGUgdmVuZG9yIHJlYWRzIHRoaXM="

REPLY = ScriptedReply(
    [ThinkingPart([THOUGHT], SIGNED), TextPart(["I look."]), CallPart("read", {"path": "a.txt"}, signature=SIGNED)]
)


class Restarted:
    """Every vendor at once: replies with a call, hangs behind its result, and answers after the restart."""

    def __init__(self):
        self.is_back = False
        self.requests: dict[str, list[Received]] = {vendor.name: [] for vendor in vendors()}

    def answer(self, received):
        name = next(name for name in self.requests if f"<{name}>" in json.dumps(received.messages))
        self.requests[name].append(received)
        if not is_answered(received):
            return text("More.") if self.is_back else REPLY
        return text("A walrus.") if self.is_back else ScriptedReply([Hang()])


def assert_carried(vendor, received):
    """What the vendor wants back of the reasoning is in the request, and nothing else of it."""
    found = [*parts(received)]
    match ROWS[vendor.name].carried:
        case Carried.SIGNED:
            (block,) = [part for part in found if part.get("type") == "thinking"]
            assert block == {"type": "thinking", "thinking": THOUGHT, "signature": SIGNED}
        case Carried.ENCRYPTED:
            (item,) = [part for part in found if part.get("type") == "reasoning"]
            assert (item["encrypted_content"], item["summary"][0]["text"]) == (SIGNED, THOUGHT)
        case Carried.SIGNATURE:
            (call,) = [call for part in found for call in part.get("tool_calls", ())]
            assert call["extra_content"] == {"google": {"thought_signature": SIGNED}}
            assert THOUGHT not in str(found)
        case Carried.TEXT:
            assert [part["reasoning_content"] for part in found if part.get("reasoning_content")] == [THOUGHT]
            assert SIGNED not in str(found)
        case Carried.THINKING:
            assert [part["thinking"] for part in found if part.get("thinking")] == [THOUGHT]
            assert SIGNED not in str(found)
        case Carried.NOTHING:
            assert not any(one in str(found) for one in (THOUGHT, SIGNED))


async def test_reasoning_is_carried_over_a_kill_between_two_steps_as_each_vendor_wants_it(tmp_path, serve, google):
    script = Restarted()
    server = await serve(script.answer)
    async with AsyncExitStack() as stack:
        furnish(tmp_path / "zot", server, vendors())
        variables = {**VARIABLES, **keys(), "GOOGLE_APPLICATION_CREDENTIALS": google}
        daemon = stack.enter_context(DaemonProcess(tmp_path, variables))
        house = House(stack, daemon.place, daemon)
        (house.cwd / "a.txt").write_text("walrus\n")

        async def begin(vendor):
            options = {"secrets": None, "model": model_of(vendor), "reasoning": "high"}
            talk = await house.create(vendor.name, None, **options)
            await talk.ask("prompt", message=f"<{vendor.name}>")
            return vendor, talk.id

        async with asyncio.TaskGroup() as tasks:
            begun = [tasks.create_task(begin(vendor)) for vendor in vendors()]
        talks = [task.result() for task in begun]
        await server.received(2 * len(talks))
        daemon.end(9)
        script.is_back = True
        daemon.start()

        async def go_on(vendor, talk_id):
            talk = await house.follow(talk_id)
            assert (await talk.ask("run_command", name="continue"))["started"] is True
            assert "A walrus." in json.dumps(await talk.until("done"))
            assert "More." in json.dumps(await talk.run("and then?"))

        async with asyncio.TaskGroup() as tasks:
            for talk in talks:
                tasks.create_task(go_on(*talk))
    for vendor in vendors():
        first, before, after, later = script.requests[vendor.name]
        assert before.messages == after.messages, vendor.name
        for received in (first, before, after, later):
            assert_authorized(vendor, received)
        for received in (before, after, later):
            assert_carried(vendor, received)
