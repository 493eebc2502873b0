"""Extensions that misbehave in a daemon, each beside a good one.

The daemon answers, the good one answers while the bad one misbehaves, and people can read what is wrong.
"""

import asyncio
from contextlib import AsyncExitStack
from functools import partial

import pytest

from tests.e2e.conftest import House
from zotd.testing.live_daemon import serving
from zotd.testing.misbehaviours import MISBEHAVIOURS
from zotd.testing.provoking import answer, install, provoke

LIMITS = {"ZOT_EXT_TOOL_TIMEOUT_S": "2", "ZOT_EXT_COMMAND_TIMEOUT_S": "2", "ZOT_EXT_INTERCEPT_TIMEOUT_S": "1"}
"""How long a bad one is waited for; the good one's answer must not be."""

GOOD = next(one for one in MISBEHAVIOURS if one.id == "noise").argv[:-2]


@pytest.fixture
async def house(tmp_path, monkeypatch):
    async with AsyncExitStack() as stack:
        place = await stack.enter_async_context(serving(tmp_path, LIMITS))
        monkeypatch.setenv("HOME", place.env["HOME"])
        yield House(stack, place)


class Watch:
    """What people can learn about a bad extension, without the session: states and the log."""

    def __init__(self, client, bad):
        self.client = client
        self.bad = bad
        self.sentences: list[str] = []

    async def begin(self, session):
        """Follow its log."""
        await self.client.ask("ext.list", session=session)  # which starts it, if nothing has yet
        page = await self.client.ask("ext.logs", session=session, name=self.bad.name, follow=True)
        self.sentences += page["text"].splitlines()

    async def until_good_is_ready(self):
        while not await self._hear("good"):
            pass

    async def until_told(self):
        """Wait until the reason for its state, its log or the doctor says what it should."""
        while not any(self.bad.told in sentence for sentence in self.sentences):
            findings = (await self.client.ask("ext.doctor"))["findings"]
            if any(self.bad.told in one["text"] for one in findings if one["extension"] == self.bad.name):
                return
            await self._hear("good")

    async def _hear(self, name):
        """The next event; whether this extension is ready now."""
        event = await self.client.event()
        if event["extension"] == self.bad.name:
            self.sentences += event.get("reason", event.get("text", "")).splitlines()
        return event["type"] == "ext_state" and (event["extension"], event["state"]) == (name, "ready")


@pytest.mark.parametrize("bad", MISBEHAVIOURS, ids=lambda bad: bad.id)
async def test_a_bad_extension_costs_the_daemon_nothing_and_says_why(house, model, bad):
    install(house.place.home, "good", [*GOOD, "good", "good"])
    install(house.place.home, bad.name, bad.argv)
    watch = Watch(await house.connect(), bad)
    await watch.client.ask("subscribe", topics=["extensions"])
    talk = await house.create("openai", await model(partial(answer, bad)), ephemeral=True)
    await watch.begin(talk.id)
    await watch.until_good_is_ready()
    other = await house.connect()
    async with asyncio.TaskGroup() as tasks:
        provoked = tasks.create_task(provoke(talk.client, talk.id, bad))
        assert await other.ask("ping") == {"pong": True}
        said = await other.ask("run_command", session=talk.id, name="good", args="still here")
        assert (said["extension"], said["text"]) == ("good", "still here")
        if "did not answer" in bad.told:
            assert not provoked.done(), "the bad one was waited for"
    told = provoked.result()
    if bad.told in told:
        return
    if not bad.is_fatal:
        await provoke(talk.client, talk.id, bad)  # what it said too much about the first time has been read by now
    await watch.until_told()
