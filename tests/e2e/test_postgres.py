"""A daemon whose sessions are in PostgreSQL: what it does when it, the database, or the connection goes away."""

import os
import signal

import psycopg
import pytest

from zotd.core.closings import INTERRUPTED
from zotd.testing.postgres_server import MISSING, PostgresServer
from zotd.testing.script import CallPart, ScriptedReply, TextPart, calls, text

STORED_AGAIN = ("info", "the journal can be written again; the session continues from what is stored")


@pytest.fixture
def server():
    """A server of one test, which may end it."""
    if MISSING is not None:
        pytest.skip(MISSING)
    server = PostgresServer(fsync=True)
    yield server
    server.close()


@pytest.fixture
def database(server):
    return server.database()


@pytest.fixture
def variables(database):
    return {"ZOT_JOURNAL_URL": database}


@pytest.fixture
def talk_of(process, model):
    """`await talk_of(answer, ...)`: a session with a model that needs no key, so that it goes on in the next daemon."""

    async def talk_of(*answers):
        url = (await model(*answers)).openai_url
        return await process.create("ollama", None, model="m", provider="ollama", base_url=url, secrets=None)

    return talk_of


def rows(database, query):
    with psycopg.connect(database, autocommit=True) as connection:
        return connection.execute(query).fetchall()


def notices(frames):
    return [(frame["level"], frame["text"]) for frame in frames if frame["type"] == "notice"]


async def test_a_killed_daemon_finds_its_sessions_again_and_runs_no_command_twice(process, database, talk_of):
    os.mkfifo(process.cwd / "go")
    talk = await talk_of(
        calls(CallPart("bash", {"command": "echo x >> ran; echo started; read < go"})),
        text("It was a zebra."),
        text("ok"),
    )
    await talk.ask("prompt", message="which animal")
    await talk.until("tool_progress")
    process.restart(signal.SIGKILL)
    assert not (process.place.home / "zot.db").exists()
    talk = await process.follow(talk.id)
    assert (talk.snapshot["session"]["state"], talk.snapshot["held"]) == ("held", True)
    await talk.ask("run_command", name="continue")
    await talk.until("done")
    assert (process.cwd / "ran").read_text() == "x\n"
    roles, words = zip(*await talk.texts(), strict=True)
    assert roles == ("user", "assistant", "tool", "assistant")
    assert INTERRUPTED in str(words[2])
    assert rows(database, "SELECT count(*) FROM records WHERE kind = 'call_started'") == [(1,)]

    await talk.run("and now")
    assert [hit["session"] for hit in (await talk.client.ask("session.search", query="zebra"))["hits"]] == [talk.id]
    assert [row["attempts"] for row in (await talk.client.ask("usage.report"))["rows"]] == [3]
    fork = await talk.ask("session.fork")
    copied = await process.follow(fork["session"]["id"])
    assert await copied.texts() == await talk.texts()
    listed = (await talk.client.ask("session.list"))["sessions"]
    assert {one["id"] for one in listed} == {talk.id, fork["session"]["id"]}


async def test_a_daemon_whose_database_is_away_does_not_start_and_says_why_in_a_sentence(process, server):
    process.daemon.end()
    server.stop()
    said = process.daemon.try_to_start()
    process.daemon.wait()
    server.start()
    process.daemon.start()
    assert said.startswith("error the journal postgresql:///")
    assert "cannot be opened" in said
    assert "\n" not in said


async def test_while_the_database_is_away_inputs_are_refused_and_afterwards_sessions_go_on(process, server, talk_of):
    talk = await talk_of(*[text("fine")] * 3)
    await talk.run("before")
    server.kill()
    assert await talk.refused("prompt", message="lost") == "storage_blocked"
    (warning,) = (await talk.ask("daemon.status"))["warnings"]
    assert warning.startswith("nothing is stored: the journal")
    server.start()
    while STORED_AGAIN not in notices(talk.client.seen):
        await talk.client.event()
    await talk.run("after")
    assert [words for role, words in await talk.texts() if role == "user"] == [["before"], ["after"]]


async def test_a_database_that_ends_during_a_run_ends_the_run_and_loses_nothing_that_was_stored(
    process, server, talk_of
):
    os.mkfifo(process.cwd / "go")
    command = calls(CallPart("bash", {"command": "echo started; read < go"}))
    talk = await talk_of(command, ScriptedReply([TextPart(["fine"])]), text("fine"))
    await talk.ask("prompt", message="go")
    await talk.until("tool_progress")
    server.kill()
    (process.cwd / "go").write_text("\n")
    while not any(level == "error" for level, _ in notices(talk.client.seen)):
        await talk.client.event()
    server.start()
    while STORED_AGAIN not in notices(talk.client.seen):
        await talk.client.event()
    late = await process.follow(talk.id)
    await late.ask("run_command", name="continue")
    await late.until("done")
    assert [role for role, _ in await late.texts()] == ["user", "assistant", "tool", "assistant"]
    seqs = [frame["seq"] for frame in talk.client.seen if frame.get("seq") and frame["type"] != "replay_complete"]
    assert seqs == sorted(set(seqs))


async def test_connections_that_the_server_ends_while_nothing_happens_are_not_noticed(process, database, talk_of):
    talk = await talk_of(*[text("fine")] * 2)
    await talk.run("before")
    await talk.texts()
    ended = rows(
        database,
        "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity"
        " WHERE application_name = 'zotd' AND datname = current_database()",
    )
    assert len(ended) >= 2
    assert [words for role, words in await talk.texts() if role == "user"] == [["before"]]
    await talk.run("after")
    assert "ERROR" not in process.daemon.log
