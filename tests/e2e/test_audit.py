"""The audit trail of real daemons."""

import asyncio
import os
import pwd
from urllib.parse import urlsplit

import psycopg
import pytest

from tests.e2e.fleet import name_of, output_of, printed_by, row
from tests.e2e.limits import Limit
from zotd.testing.script import CallPart, calls, text

ME = f"local:{pwd.getpwuid(os.getuid()).pw_name}"

WAIT_S = 30.0
"""Longest wait for an outcome."""


async def entries_of(house, **fields):
    """The entries that an administrator sees, when all have an outcome: that may be stored after the response."""
    client = await house.connect(role="admin")
    async with asyncio.timeout(WAIT_S):
        while True:
            entries = (await client.ask("audit.list", **fields))["entries"]
            if all(one["outcome"] for one in entries):
                return entries


@pytest.fixture
def trail(house):
    """`await trail(**filters)`: the entries of the daemon."""

    async def trail(**fields):
        return await entries_of(house, **fields)

    return trail


async def test_a_decision_is_recorded_with_its_tool_and_digest_and_without_texts(house, model, trail):
    server = await model(calls(CallPart("bash", {"command": "echo s3cret"})), text("done"))
    client = await house.connect(client={"name": "phone"}, can_approve=True)
    talk = await house.create("openai", server, client, mode="ask")
    await talk.ask("prompt", message="go")
    asked = (await talk.until("approval_requested"))[-1]
    about = {"approval": asked["approval"], "args_digest": asked["args_digest"]}
    assert await talk.refused("approve", approval=asked["approval"], args_digest="x", decision="allow") == "stale_args"
    await talk.ask("approve", decision="deny", reason="a private reason", **about)
    await talk.until("done")
    last, first = await trail(command="approve")
    assert (last["who"], last["client"], last["session"]) == (ME, "phone", talk.id)
    assert last["details"] == {**about, "decision": "deny", "scope": "once", "tool": "bash"}
    assert (first["outcome"], last["outcome"]) == ("stale_args", "done")
    assert not any(word in str([first, last]) for word in ("s3cret", "private"))


async def test_a_stored_key_is_recorded_without_its_value(house, trail):
    client = await house.connect(role="admin")
    await client.ask("auth.login", provider="openai", api_key="sk-very-secret-0123456789")
    await client.ask("token.create", name="phone", role="approve")
    entries = await trail()
    assert [(one["command"], one["outcome"]) for one in entries] == [("token.create", "done"), ("auth.login", "done")]
    assert entries[1]["details"] == {"provider": "openai"}
    assert "sk-very" not in str(entries)


async def test_an_address_is_recorded_without_its_user_and_password(house, trail):
    client = await house.connect(role="admin")
    await client.answer("ext.install", source="https://ann:s3cret@127.0.0.1:1/x.git")  # refused: nothing listens there
    (entry,) = await trail()
    assert entry["details"] == {"source": "https://127.0.0.1:1/x.git"}


async def test_entries_stay_when_their_session_is_deleted(house, model, trail):
    client = await house.connect(role="admin")
    talk = await house.create("openai", await model(text("fine")), client)
    await talk.ask("set_mode", mode="yolo")
    await client.ask("session.delete", session=talk.id)
    assert [one["command"] for one in await trail(session=talk.id)] == ["session.delete", "set_mode"]


async def test_prompts_and_reads_are_not_recorded(house, model, trail):
    talk = await house.create("openai", await model(text("fine")), await house.connect())
    await talk.run("go")
    assert await trail() == []


async def test_the_trail_is_for_administrators_and_has_limits(house):
    client = await house.connect()
    assert (await client.answer("audit.list"))["code"] == "forbidden"
    admin = await house.connect(role="admin")
    response = await admin.answer("audit.list", limit=0)
    assert (response["code"], response["error"]) == ("bad_request", "audit.list: limit must be from 1 to 500")


async def test_a_forwarded_decision_is_recorded_once_by_the_daemon_that_has_the_session(fleet, talk_in):
    one, two = fleet
    there = await talk_in(one, text("done"), mode="ask")
    # Not attached, so that the daemon learns only from the command itself that the session is elsewhere.
    client = await two.connect(client={"name": "phone"}, role="approve", can_approve=True)
    await client.ask("set_mode", session=there.id, mode="yolo")
    (entry,) = await entries_of(two)
    assert (entry["command"], entry["who"], entry["client"]) == ("set_mode", ME, "phone")
    assert (entry["details"], entry["outcome"]) == ({"mode": "yolo"}, "done")


async def test_a_forwarded_client_with_a_token_is_recorded_by_the_name_of_its_token(fleet, talk_in, database):
    one, two = fleet
    there = await talk_in(one, text("done"), mode="ask")
    file = two.cwd / "token"
    await output_of(two, "zotctl", "token", "create", "phone", "--role", "approve", "--out", file)
    (address,) = row(database, "SELECT address FROM daemons WHERE name = %s", name_of(two))
    flags = ("--host", address, "--token-file", file)
    assert (await printed_by(two, "zotctl", *flags, "mode", "read-only", "--session", there.id))[::2] == (0, "")
    (entry,) = await entries_of(one, session=there.id)
    assert (entry["who"], entry["details"], entry["outcome"]) == ("token:phone", {"mode": "read-only"}, "done")
    assert await entries_of(two, who="token:phone") == [entry]


async def test_what_a_full_disk_keeps_out_of_the_trail_does_not_take_effect(process):
    client = await process.connect(client={"name": "test"}, role="admin")
    await client.ask("token.create", name="before", role="read")
    limit = Limit(process.daemon)
    limit.set(len(process.daemon.log.encode()) + 4096)  # room for the file of tokens, and for no commit
    assert await client.refused("token.create", name="lost", role="admin") == "storage_blocked"
    limit.lift()
    assert [one["name"] for one in (await client.ask("token.list"))["tokens"]] == ["before"]
    await client.ask("token.create", name="after", role="read")
    names = [one["details"]["name"] for one in await entries_of(process, command="token.create")]
    assert names == ["after", "before"]


async def test_what_a_read_only_database_keeps_out_of_the_trail_does_not_take_effect(member, database, server):
    house = member("one")
    client = await house.connect(client={"name": "test"}, role="admin")
    await client.ask("token.create", name="before", role="read")
    name = urlsplit(database).path.removeprefix("/")
    await asyncio.to_thread(make_read_only, server, name)
    answer = await client.answer("token.create", name="lost", role="admin")
    assert (answer["code"], "read-only" in answer["error"]) == ("storage_blocked", True)
    assert [one["name"] for one in (await client.ask("token.list"))["tokens"]] == ["before"]


def make_read_only(server, name):
    """Have all transactions of the database be read-only, from now on."""
    with psycopg.connect(server.url("postgres"), autocommit=True) as admin:
        admin.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
        admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,))
