"""A session that a client has made and nobody has used goes when its last client has left; any other one stays."""

import pytest

from zotd.sessions import manager
from zotd.testing.script import text


@pytest.fixture
def leave(monkeypatch):
    """`await leave(talk)`: detach, and what comes a minute later comes now."""

    async def leave(talk):
        monkeypatch.setattr(manager, "MIN_STAY_S", 0.0)
        monkeypatch.setattr(manager, "LINGER_S", 0.0)
        await talk.ask("detach")

    return leave


async def listed(client):
    return [one["id"] for one in (await client.ask("session.list"))["sessions"]]


async def test_one_in_which_nothing_was_said_is_deleted(house, model, leave):
    watcher = await house.connect()
    await watcher.ask("subscribe", topics=["sessions"])
    talk = await house.create("openai", await model(), discard_unused=True)
    await talk.ask("session.configure", reasoning="low")
    assert await listed(watcher) == [talk.id]
    await leave(talk)
    assert (await watcher.until("session_removed"))[-1]["session"] == talk.id
    assert await listed(watcher) == []


@pytest.mark.parametrize("used", ["a prompt", "a name", "not asked for"])
async def test_one_that_was_used_or_named_or_made_to_stay_stays(house, model, used, leave):
    talk = await house.create("openai", await model(text("hi")), discard_unused=used != "not asked for")
    if used == "a prompt":
        await talk.run("hello")
    elif used == "a name":
        await talk.ask("session.rename", name="mine")
    other = await house.connect()
    unused = await house.create("openai", await model(), client=other, discard_unused=True)
    await other.ask("subscribe", topics=["sessions"])
    await leave(talk)
    await leave(unused)
    await other.until("session_removed")  # by now the first one would have gone, too
    assert await listed(other) == [talk.id]
