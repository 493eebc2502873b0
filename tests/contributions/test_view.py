"""How long a run waits for extensions that are starting."""

import asyncio
from pathlib import Path
from types import SimpleNamespace

import pytest

from zotd.contributions.resolution import Resolution
from zotd.contributions.view import Extensions
from zotd.core.ports import SessionRow
from zotd.core.records import Settings
from zotd.core.run_watch import Unwatched
from zotd.core.transcript import Transcript
from zotd.exthost.host import READY_S, ExtensionTimeouts
from zotd.ledger.ledger import Ledger
from zotd.store.memory import Memory

TIME = "2026-11-21T20:11:18.919Z"


def looking():
    """A `sessions.resolution.Layer` that is looking for its extensions, for ever."""
    return SimpleNamespace(started=asyncio.Event(), host=SimpleNamespace(extensions=[]), trusting=None)


@pytest.fixture
def extensions():
    row = SessionRow("s_1", "", "/", TIME, TIME, Settings(provider="p", model="m"), "idle")
    ledger = Ledger(row, Memory(), Transcript(), addressed=True)
    resolution = Resolution(own=None, shared=[looking()], home=Path("/nowhere"))
    return Extensions(
        ledger, resolution, limits=ExtensionTimeouts(), reserved_commands=(), submit=lambda *_: None, watch=Unwatched()
    )


@pytest.mark.looptime
async def test_no_command_waits_longer_than_three_seconds(extensions, looptime):
    await extensions.ready_for_run()
    assert looptime == READY_S
    await extensions.ready()
    assert looptime == 2 * READY_S


@pytest.mark.looptime
async def test_an_abort_ends_the_wait_of_the_run_that_it_aborts_and_no_other(extensions, looptime):
    async with asyncio.TaskGroup() as tasks:
        command = tasks.create_task(extensions.ready())
        run = tasks.create_task(extensions.ready_for_run())
        await asyncio.sleep(0)
        extensions.hurry()
        await asyncio.sleep(0)
        extensions.hurry()  # the wait is just ending
        await run
        assert (looptime, command.done()) == (0, False)
    extensions.hurry()  # nothing waits
    await extensions.ready_for_run()
    assert looptime == 2 * READY_S
