"""Two sessions in one directory: the one that begins to change files there hears of the other."""

import asyncio
import contextlib

from tests.e2e.conftest import only
from zotd.testing.script import CallPart, Gate, ScriptedReply, TextPart, calls, text

WARNING = "is working in"


def write(name):
    return calls(CallPart("write", {"path": name, "content": "x"}))


def warnings(events):
    return [one["text"] for one in only(events, "notice") if WARNING in one["text"]]


@contextlib.asynccontextmanager
async def working(house, model, **options):
    """A session whose run is in the middle of a reply."""
    gate = Gate(asyncio.Event())
    talk = await house.create("openai", await model(ScriptedReply([TextPart(["hm"]), gate])), **options)
    await talk.ask("prompt", message="go")
    await talk.until("text_delta")
    try:
        yield talk
    finally:
        gate.event.set()
        await talk.until("done")


async def test_the_second_session_that_changes_files_is_warned_once(house, model):
    async with working(house, model, name="first") as first:
        second = await house.create(
            "openai", await model(write("a"), write("b"), text("done"), write("c"), text("done"))
        )
        (warning,) = warnings(await second.run())
        assert f"the session first is working in {house.cwd}, too" in warning
        assert "zot -w" in warning
        assert warnings(await second.run()) == []
        assert warnings(first.client.seen) == []


async def test_a_session_that_only_reads_or_is_elsewhere_or_alone_is_not_warned(house, model, tmp_path):
    read = calls(CallPart("glob", {"pattern": "*"}))
    async with working(house, model):
        reading = await house.create("openai", await model(read, text("done")))
        assert warnings(await reading.run()) == []
        (tmp_path / "elsewhere").mkdir()
        elsewhere = await house.create("openai", await model(write("a"), text("done")), cwd=str(tmp_path / "elsewhere"))
        assert warnings(await elsewhere.run()) == []
    alone = await house.create("openai", await model(write("a"), text("done")))
    assert warnings(await alone.run()) == []
