"""Sessions that the daemon deletes by itself: only what the configuration says, oldest first, and nothing in use."""

import sqlite3
from contextlib import AsyncExitStack, closing

import pytest

from tests.e2e.conftest import House
from zotd.history import retention
from zotd.testing.live_daemon import serving
from zotd.testing.script import text

WORDS = "words that take space " * 20_000
"""Some 440 KB."""


def change(database, session, field, value):
    """As if it had been so."""
    database.execute(
        f"UPDATE sessions SET {field} = ?, row = json_set(row, '$.{field}', ?) WHERE id = ?", (value, value, session)
    )


@pytest.fixture
def filled(tmp_path, model):
    """`await filled(count)`: a home with so many sessions, each used a day after the one before; ids, oldest first."""

    async def filled(count):
        server = await model(*[text("read")] * count)
        async with AsyncExitStack() as stack:
            place = await stack.enter_async_context(serving(tmp_path))
            house = House(stack, place)
            talks = [await house.create("openai", server) for _ in range(count)]
            for talk in talks:
                await talk.run(WORDS)
        with closing(sqlite3.connect(place.home / "zot.db")) as database, database:
            for number, talk in enumerate(talks, 1):
                when = f"2026-01-{number:02}T00:00:00.000Z"
                change(database, talk.id, "updated", when)
        return place.home / "zot.db", [talk.id for talk in talks]

    return filled


async def kept(folder, until, **variables):
    """The sessions that a daemon with these variables has left, once `until` holds of them."""
    async with AsyncExitStack() as stack:
        place = await stack.enter_async_context(serving(folder, variables))
        client = await House(stack, place).connect()
        while True:
            found = [one["id"] for one in (await client.ask("session.list"))["sessions"]]
            if until(found):
                return found


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(retention, "FIRST_S", 0.0)


async def test_old_sessions_go_and_those_that_were_cut_stay(filled, tmp_path):
    file, (cut, first, second, recent) = await filled(4)
    with closing(sqlite3.connect(file)) as database, database:
        change(database, cut, "state", "running")
        change(database, recent, "updated", "2999-01-01T00:00:00.000Z")
    found = await kept(tmp_path, lambda found: not {first, second} & set(found), ZOT_RETENTION_MAX_AGE_DAYS="90")
    assert set(found) == {cut, recent}


async def test_the_oldest_go_while_the_database_is_too_large(filled, tmp_path):
    _, ids = await filled(6)
    found = await kept(tmp_path, lambda found: len(found) < len(ids), ZOT_RETENTION_MAX_SIZE_MB="4")
    assert 0 < len(found) < len(ids)
    assert set(found) <= set(ids[-len(found) :])


async def test_old_entries_of_the_audit_trail_go_and_newer_ones_stay(tmp_path):
    async with AsyncExitStack() as stack:
        place = await stack.enter_async_context(serving(tmp_path))
        client = await House(stack, place).connect(role="admin")
        for name in ("old", "new"):
            await client.ask("token.create", name=name, role="read")
    with closing(sqlite3.connect(place.home / "zot.db")) as database, database:
        database.execute("UPDATE audit SET time = '2026-01-01T00:00:00.000Z' WHERE details LIKE '%old%'")
        database.execute("UPDATE audit SET time = '2999-01-01T00:00:00.000Z' WHERE details LIKE '%new%'")
        database.execute(
            "INSERT INTO user_days VALUES ('alice', '2026-01-01', 0, 1.0), ('alice', '2999-01-01', 0, 1.0)"
        )
    async with AsyncExitStack() as stack:
        place = await stack.enter_async_context(serving(tmp_path, {"ZOT_RETENTION_AUDIT_DAYS": "90"}))
        client = await House(stack, place).connect(role="admin")
        while True:
            found = [one["details"]["name"] for one in (await client.ask("audit.list"))["entries"]]
            if "old" not in found:
                break
    assert found == ["new"]
    with closing(sqlite3.connect(place.home / "zot.db")) as database:
        assert database.execute("SELECT day FROM user_days").fetchall() == [("2999-01-01",)]


async def test_without_the_section_nothing_is_deleted(filled, tmp_path):
    _, ids = await filled(2)
    assert set(await kept(tmp_path, lambda _: True)) == set(ids)


async def test_a_session_with_a_timer_is_not_deleted(filled, tmp_path):
    _, sessions = await filled(3)
    async with serving(tmp_path) as place, AsyncExitStack() as stack:
        client = await House(stack, place).connect()
        await client.ask("timer.add", session=sessions[0], message="p", every_s=3600)
    assert await kept(tmp_path, lambda found: len(found) == 1, ZOT_RETENTION_MAX_AGE_DAYS="1") == sessions[:1]
