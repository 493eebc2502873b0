"""A session of which something stored is damaged: it is read-only and says so, the others go on."""

import signal
import sqlite3
from contextlib import closing

import pytest

from zotd.testing.script import text


@pytest.fixture
async def pair(process, model):
    """Two sessions with a run each, in a daemon that is about to be stopped; and the model."""
    server = await model(text("One."), text("Two."), text("Three."))
    talks = [await process.create("openai", server, name=name) for name in ("first", "second")]
    for talk in talks:
        await talk.run("hello")
    return talks


def damage(process, *statements):
    """Stop the daemon, change its database, start it again."""
    process.daemon.end()
    with closing(sqlite3.connect(process.place.home / "zot.db")) as connection, connection:
        for statement in statements:
            connection.execute(statement)
    process.daemon.start()


async def states(process):
    client = await process.connect()
    return {one["name"]: one["state"] for one in (await client.ask("session.list"))["sessions"]}


def said(talk):
    """The errors that the daemon has told this client of."""
    return [frame["text"] for frame in talk.client.seen if frame["type"] == "notice" and frame["level"] == "error"]


async def test_an_unreadable_record_blocks_its_session_only_as_soon_as_it_is_needed(process, pair):
    first, second = pair
    damage(process, "UPDATE records SET body = x'7b22' WHERE number = 2 AND session = 1")
    late = await process.follow(first.id)
    await late.ask("session.configure", secrets={"api_key": "sk-scripted-key"})
    error = await late.client.answer("prompt", session=first.id, message="go on")
    assert error["code"] == "blocked"
    assert error["error"].startswith(f"record 2 of session {first.id} cannot be read")
    assert await states(process) == {"first": "blocked", "second": "idle"}
    for command, fields in [("prompt", {"message": "again"}), ("session.rename", {"name": "x"}), ("clear", {})]:
        assert await late.refused(command, **fields) == "blocked"

    again = await process.follow(first.id)
    assert again.snapshot["session"]["state"] == "blocked"
    assert [message["role"] for message in again.snapshot["messages"]] == ["user", "assistant"]
    assert said(again) == [error["error"]]

    other = await process.follow(second.id)
    await other.ask("session.configure", secrets={"api_key": "sk-scripted-key"})
    assert (await other.run("go on"))[-1]["type"] == "done"
    assert said(other) == []


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE sessions SET row = 5 WHERE key = 1",
        "UPDATE sessions SET row = CAST(x'ff' AS TEXT) WHERE key = 1",
        "UPDATE sessions SET row = (SELECT row FROM sessions WHERE key = 2) WHERE key = 1",
        "UPDATE sessions SET row = x'00', name = 7, cwd = 2.5, records = 'many' WHERE key = 1",
    ],
)
async def test_a_damaged_row_costs_the_list_one_session_and_an_attach_to_it_says_so(process, pair, change):
    first, second = pair
    damage(process, change)
    client = await process.connect()
    found = {one["id"]: one["state"] for one in (await client.ask("session.list"))["sessions"]}
    assert found == {first.id: "blocked", second.id: "idle"}
    error = await client.answer("attach", session=first.id)
    assert error["code"] == "blocked"
    assert first.id in error["error"]
    assert "\n" not in error["error"]


async def test_a_message_that_is_no_utf8_any_more_blocks_its_session_and_an_attach_still_works(process, pair):
    first, _ = pair
    spoilt = "CAST(replace(CAST(events AS TEXT), 'hello', CAST(x'ff' AS TEXT)) AS BLOB)"
    damage(process, f"UPDATE records SET events = {spoilt} WHERE messages > 0 AND session = 1")
    late = await process.follow(first.id)
    assert late.snapshot["session"]["state"] == "blocked"
    (sentence,) = said(late)
    assert sentence.startswith(f"part of session {first.id} cannot be read (an event is damaged")
    assert await states(process) == {"first": "blocked", "second": "idle"}


async def test_messages_that_cannot_be_read_are_missing_from_a_snapshot_that_says_so(process, pair):
    first, _ = pair
    damage(process, "UPDATE records SET events = x'7b220a' WHERE messages > 0 AND session = 1")
    late = await process.follow(first.id)
    assert (late.snapshot["session"]["state"], late.snapshot["messages"]) == ("blocked", [])
    (sentence,) = said(late)
    assert sentence.startswith(f"part of session {first.id} cannot be read (an event is damaged")
    assert await late.refused("session.history") == "blocked"
    resumed = await process.follow(first.id, after={"epoch": first.epoch, "seq": 0})
    assert resumed.snapshot["mode"] == "resumed"
    assert said(resumed) == [sentence]
    assert await states(process) == {"first": "blocked", "second": "idle"}


async def test_a_session_that_a_crash_cut_can_be_looked_at_although_it_cannot_be_repaired(process, pair):
    first, _ = pair
    row = 'row = replace(row, \'"state":"idle"\', \'"state":"running"\')'
    damage(
        process,
        f"UPDATE sessions SET state = 'running', {row} WHERE key = 1",
        "DELETE FROM records WHERE number = 2 AND session = 1",
    )
    late = await process.follow(first.id)
    assert late.snapshot["session"]["state"] == "blocked"
    assert said(late) == [f"record 2 of session {first.id} cannot be read (it is missing): the session is read-only"]


async def test_a_damaged_index_row_hides_neither_its_session_nor_the_others(process, pair):
    first, _ = pair
    damage(process, "UPDATE sessions SET row = '{}' WHERE key = 1")
    assert await states(process) == {"first": "blocked", "second": "idle"}
    client = await process.connect()
    assert (await client.ask("session.get", session=first.id))["state"] == "blocked"
    error = await client.answer("attach", session=first.id)
    assert error["code"] == "blocked"
    assert error["error"].startswith(f"the index row of session {first.id} cannot be read")


async def test_a_journal_that_has_lost_its_log_is_not_opened_and_the_sentence_says_how_to_go_on(process, pair):
    process.daemon.end(signal.SIGKILL)
    home = process.place.home
    (home / "zot.db-wal").unlink()
    before = (home / "zot.db").read_bytes()
    said = process.daemon.try_to_start()
    assert said.startswith(f"error the journal {home}/zot.db was not closed")
    assert f"zotctl restore {home}/zot.db" in said
    assert process.daemon.wait() == 1
    assert (home / "zot.db").read_bytes() == before
    assert len(pair) == 2
