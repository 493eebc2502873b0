"""`zotctl fleet ready` in a fleet; with a daemon whose sessions are in a file: tests/zotctl/test_fleet.py."""

import asyncio
import os

import psycopg

from tests.e2e.fleet import FAILOVER_S, begin_draining, name_of, printed_by
from zotd.store.postgres.registration import LEASE_S
from zotd.testing.script import CallPart, calls, text

READY = (0, "ready\n", "")


async def ready(house):
    return await printed_by(house, "zotctl", "fleet", "ready")


async def test_a_daemon_is_ready_until_its_database_is_away_and_again_afterwards(member, server):
    house = member("one")
    assert await ready(house) == READY
    server.kill()
    code, out, err = await ready(house)
    assert (code, out) == (1, "")
    assert err.startswith("zotctl: ")
    assert err.count("\n") == 1
    server.start()
    async with asyncio.timeout(FAILOVER_S):
        while await ready(house) != READY:
            pass  # until the lease was renewed


async def test_a_daemon_whose_lease_another_one_has_is_not_ready(fleet, database):
    one, two = fleet
    with psycopg.connect(database) as connection:  # as a copy of its home registers
        connection.execute("UPDATE daemons SET number = 1000 WHERE name = %s", (name_of(one),))
    code, out, err = await ready(one)
    assert (code, out) == (1, "")
    assert err.startswith("zotctl: this daemon has no lease on the database")
    assert await ready(two) == READY


async def test_a_daemon_that_is_being_drained_is_not_ready(fleet, talk_in):
    one, two = fleet
    os.mkfifo(one.cwd / "go")
    talk = await talk_in(one, calls(CallPart("bash", {"command": "echo started; read < go"})), text("done"))
    await talk.ask("prompt", message="go")
    await talk.until("tool_progress")
    await begin_draining(await one.connect(), one.daemon.pid)
    assert await ready(one) == (1, "", "zotctl: this daemon is stopping, and takes no new work\n")
    assert await ready(two) == READY
    (one.cwd / "go").write_text("\n")


async def test_what_a_probe_asks_costs_the_database_the_same_with_many_daemons_and_sessions(fleet, database):
    one, _ = fleet
    client = await one.connect()
    found = await client.ask("fleet.ready")
    assert (found["ready"], found["stopping"]) == (True, False)
    assert 0 < found["lease_s"] <= LEASE_S
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("ALTER TABLE sessions RENAME TO elsewhere")  # nothing that reads it could answer
        assert (await client.answer("fleet.list"))["success"] is False
        assert (await client.ask("fleet.ready"))["ready"]
        connection.execute("ALTER TABLE elsewhere RENAME TO sessions")
