"""The database of daemons goes away for good, and its standby is promoted."""

import asyncio
from contextlib import closing

import psycopg
import pytest

from tests.e2e.fleet import FAILOVER_S, until
from zotd.testing.postgres_copies import PostgresStandby
from zotd.testing.script import text

PROMPTS = 20
"""Accepted before the database goes away, at least."""


@pytest.fixture
def standby(server):
    with closing(PostgresStandby(server, fsync=True)) as standby:
        yield standby


@pytest.fixture
async def database(server, standby):
    """The address of a database on both servers, of which the second one has each commit before it is reported."""
    url = server.database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        connection.execute("SELECT pg_reload_conf()")
    await until(url, "SELECT coalesce(bool_or(sync_state = 'sync'), false) FROM pg_stat_replication")
    return url.replace(str(server.directory), f"{server.directory},{standby.directory}&target_session_attrs=read-write")


async def prompt_until_refused(client, session, accepted):
    """Send one prompt after the other; note those that are accepted."""
    while True:
        message = f"number {len(accepted)}"
        if not (await client.answer("prompt", session=session, message=message))["success"]:
            return
        accepted.append(message)
        answer = await client.answer("get_state", session=session)
        while answer["success"] and answer["data"]["state"] == "running":
            await client.event()
            answer = await client.answer("get_state", session=session)


async def attached(house, session):
    """The session, when its daemon can read it again."""
    client = await house.connect()
    async with asyncio.timeout(FAILOVER_S):
        while not (await client.answer("attach", session=session))["success"]:
            pass
    return await house.follow(session, client)


async def test_daemons_go_on_with_a_promoted_standby_and_nothing_that_was_accepted_is_lost(
    fleet, server, standby, talk_in
):
    one, two = fleet
    accepted: list[str] = []
    talk = await talk_in(one, *[text("fine")] * 1000)
    client = await one.connect()
    await client.ask("attach", session=talk.id)
    async with asyncio.timeout(FAILOVER_S), asyncio.TaskGroup() as tasks:
        tasks.create_task(prompt_until_refused(client, talk.id, accepted))
        while len(accepted) < PROMPTS:
            await talk.client.event()
        await asyncio.to_thread(server.kill)
    await asyncio.to_thread(standby.promote)

    again = await attached(one, talk.id)
    sent = [words for role, (words,) in await again.texts() if role == "user"]
    waiting = [item["text"] for item in again.snapshot["queue"]]
    stored = [*sent, *waiting]
    assert stored[: len(accepted)] == accepted
    assert len(stored) <= len(accepted) + 1  # one whose answer the daemon could not give
    other = await attached(two, talk.id)  # forwarded by a daemon that has found the new server, too
    assert await other.texts() == await again.texts()
    fresh = await talk_in(two, text("fine"))
    await fresh.run("new")
