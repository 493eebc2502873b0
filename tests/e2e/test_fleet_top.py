"""`zotctl fleet top` with several daemons."""

import asyncio
import json
from contextlib import AsyncExitStack

import pytest

from tests.e2e.batch_house import opened, submit
from tests.e2e.fleet import name_of, output_of, until
from zotd.testing.script import Gate, ScriptedReply, TextPart


@pytest.fixture
async def open_as(database, tmp_path):
    """`open_as(name, server)`: a daemon of the database with this model."""
    async with AsyncExitStack() as stack:

        def open_as(name, server, **variables):
            return opened(stack, tmp_path / name, server, ZOT_JOURNAL_URL=database, **variables)

        yield open_as


async def test_each_daemon_has_its_lease_and_the_prompts_that_it_runs(open_as, model, database):
    gate = asyncio.Event()
    server = await model(lambda _: ScriptedReply([Gate(gate), TextPart("fine")]))
    one, two = (open_as(name, server, ZOT_FLEET_PROMPTS_AT_ONCE="2") for name in ("one", "two"))
    await submit(one, *"abcdef")
    await until(database, "SELECT count(*) = 4 FROM batch_prompts WHERE state = 'running'")
    flags = ("fleet", "top", "--once", "--delay", "0.2")
    found = json.loads(await output_of(one, "zotctl", *flags, "--json"))
    assert [(daemon["name"], daemon["prompts"]) for daemon in found["daemons"]] == [
        (name_of(one), 2),
        (name_of(two), 2),
    ]
    assert all(0 < daemon["lease_s"] <= 10 for daemon in found["daemons"])
    shown = await output_of(two, "zotctl", *flags)
    assert "2 daemons" in shown
    assert "0% of 6" in shown
    assert "2 prompts wait for a free place in one of 2" in shown
    gate.set()
