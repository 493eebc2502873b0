"""Extensions that misbehave in a daemon, each beside a good one.

The daemon answers, the good one answers while the bad one misbehaves, and people can read what is wrong.
"""

import asyncio
from contextlib import AsyncExitStack
from functools import partial

import pytest

from tests.e2e.conftest import House
from zotd.exthost.host import READY_S
from zotd.testing.live_daemon import serving
from zotd.testing.misbehaviours import MISBEHAVIOURS
from zotd.testing.provoking import GOOD, Witness, answer, install, provoke

LIMITS = {f"ZOT_EXT_{what}_TIMEOUT_S": "2" for what in ("TOOL", "COMMAND", "INTERCEPT")}
"""How long a bad one is waited for: by those who asked it, and by nobody else."""


@pytest.fixture
async def house(tmp_path, monkeypatch):
    async with AsyncExitStack() as stack:
        place = await stack.enter_async_context(serving(tmp_path, LIMITS))
        monkeypatch.setenv("HOME", place.env["HOME"])
        yield House(stack, place)


async def set_up(house, model, bad):
    """A session with this extension and a good one, which is ready, and somebody who watches."""
    install(house.place.home, "good", GOOD)
    install(house.place.home, bad.name, bad.argv)
    witness = await Witness.of(bad, await house.connect())
    talk = await house.create("openai", await model(partial(answer, bad)), ephemeral=True)
    await witness.until_good_is_ready(talk.id)
    return witness, talk


async def good_one_answers(client, session):
    said = await client.ask("run_command", session=session, name="good", args="still here")
    assert (said["extension"], said["text"]) == ("good", "still here")


async def notes(talk):
    """All that the session's client was ever shown."""
    await talk.ask("get_state")  # what came before the answer has been read
    shown = [*talk.snapshot["notes"], *(frame for frame in talk.client.seen if frame["type"] == "ext_notify")]
    return [note["message"] for note in shown]


ONE_OF_EACH_KIND = {(bad.probe, bad.is_fatal): bad for bad in reversed(MISBEHAVIOURS)}.values()
"""The first of those that are provoked and end alike. `tests/exthost/test_hostile.py` runs the whole table on a host;
here it matters that each kind of fault reaches the clients of a daemon."""


@pytest.mark.parametrize("bad", ONE_OF_EACH_KIND, ids=lambda bad: bad.id)
async def test_a_bad_extension_costs_the_daemon_nothing_and_says_why(house, model, bad):
    witness, talk = await set_up(house, model, bad)
    other = await house.connect()
    async with asyncio.TaskGroup() as tasks:
        provoked = tasks.create_task(provoke(bad, talk.client, talk.id))
        assert await other.ask("ping") == {"pong": True}
        await good_one_answers(other, talk.id)
        if "did not answer" in bad.told:
            assert not provoked.done(), "only the one who asked it waits for it"
    if bad.is_fatal:
        reason = await witness.told()
        assert f"{bad.name} {reason}" in await notes(talk)
    elif bad.told not in provoked.result():
        await provoke(bad, talk.client, talk.id)  # what it said too much about the first time has been read by now
        await witness.told()
    await good_one_answers(other, talk.id)


async def test_a_command_does_not_wait_for_another_extension_that_is_still_starting(house, model):
    silent = next(bad for bad in MISBEHAVIOURS if bad.id == "silent")
    _, talk = await set_up(house, model, silent)
    async with asyncio.timeout(READY_S * 0.9):  # that is how long a session waits for extensions when it starts
        await good_one_answers(talk.client, talk.id)
