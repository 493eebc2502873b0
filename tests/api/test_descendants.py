"""Rights of programs that descend from the daemon: real processes, started by this one, which acts as the daemon."""

import asyncio
import logging
import os
import socket
import subprocess
import sys
from contextlib import AsyncExitStack

import pytest

from tests.api.handlers import HANDLERS
from tests.e2e.conftest import House
from tests.e2e.holders import joined
from zotd.process import descent, orphans_adopted, spawn
from zotd.testing.live_daemon import serving
from zotd.testing.wire_client import LINE_BYTES, WireClient
from zotd.wire import api

CONNECT = """
import os, socket, sys
path, parent, how = sys.argv[1:]
pair = socket.socket(fileno=0)
if how == "orphan":
    if os.fork():
        os._exit(0)
    os.setsid()
    while os.getppid() != int(parent):
        os.sched_yield()
daemon = socket.socket(socket.AF_UNIX)
daemon.connect(path)
socket.send_fds(pair, [b"."], [daemon.fileno()])
pair.recv(1)
"""
"""Connects and passes the connection on; the kernel still reports the process that has connected."""

ABOUT_NONE = {"hello", "ping", "subscribe", "session.list", "get_models", "daemon.status", "daemon.metrics"}

READS = {"session.get", "session.history", "attach", "detach", "presence", "get_state", "get_messages", "queue.list"}

VALUES = {
    "args": "", "batch": "b", "code": "x", "cwd": "/", "height": 1, "input": "i_1", "job": "j1", "key": "up", "message": "go", "model": "x", "name": "nobody",
    "panel_id": "p", "position": 1, "prompts": [], "query": "x", "question": "x", "reasoning": "low", "seq": 1, "servers": {}, "timer": "t_1", "topics": [], "width": 1,
}  # fmt: skip
"""A value for each required field of a command."""


def fields(command):
    return api.BY_NAME[command].params.__struct_fields__


def connecting(place, how=""):
    return [sys.executable, "-c", CONNECT, place.socket, str(os.getpid()), how]


def client_on(fd):
    return asyncio.open_unix_connection(sock=socket.socket(fileno=fd), limit=LINE_BYTES)


class Family:
    """Starts programs that connect to the daemon."""

    def __init__(self, stack, place):
        self._stack = stack
        self._place = place

    async def descendant(self, *owners, how=""):
        """A connection of a program that was started for these sessions."""
        ours, theirs = socket.socketpair()
        child = spawn(connecting(self._place, how), cwd="/", env={}, on_output=print, stdin=theirs.fileno())
        descent.belongs(child.pid, owners)
        await self._stack.enter_async_context(child)
        return await self._connection(ours, theirs)

    async def stranger(self):
        """A connection of a program that stays in our session, like the children of a shell."""
        ours, theirs = socket.socketpair()
        program = await asyncio.create_subprocess_exec(*connecting(self._place), stdin=theirs.fileno())
        self._stack.push_async_callback(program.wait)
        return await self._connection(ours, theirs)

    async def _connection(self, ours, theirs):
        theirs.close()
        self._stack.callback(ours.close)
        _, (fd,), _, _ = await asyncio.to_thread(socket.recv_fds, ours, 1, 1)
        client = WireClient(*await client_on(fd))
        self._stack.callback(client.cut)
        return client


@pytest.fixture
async def family(place):
    async with AsyncExitStack() as stack:
        yield Family(stack, place)


@pytest.fixture
async def nesting(tmp_path):
    """Like `house`, but with `nested = "submit"`; and a client of a user."""
    async with AsyncExitStack() as stack:
        where = await stack.enter_async_context(serving(tmp_path, {"ZOT_NESTED": "submit"}))
        person = await stack.enter_async_context(WireClient.connect(where.socket))
        yield Family(stack, where), person, where


async def made(client, place, **fields):
    """Id of a new session whose provider needs no key."""
    found = await client.ask("session.create", cwd=str(place.cwd), provider="ollama", model="none", **fields)
    return found["session"]["id"]


async def sentence(client, command, **fields):
    """The message of the refusal."""
    answer = await client.answer(command, **fields)
    assert (answer["success"], answer.get("code")) == (False, "forbidden"), answer
    return answer["error"]


# --- approvals ----------------------------------------------------------------------------------------------------


async def test_a_descendant_cannot_approve_and_is_told_the_rule(family, session, caplog):
    program = await family.descendant(session)
    with caplog.at_level(logging.WARNING):
        said = await sentence(program, "approve", session=session, approval="a_1", args_digest="", decision="allow")
    assert "rule: descendants never decide" in said
    assert "approve was refused: uid:" in caplog.text


@pytest.mark.parametrize("role", ["approve", "admin"])
async def test_a_descendant_cannot_get_a_higher_role(family, session, role):
    program = await family.descendant(session)
    assert "rule: descendants never decide" in await sentence(program, "hello", role=role)
    assert (await program.ask("hello"))["role"] == "submit"
    assert (await program.ask("hello", role="read"))["role"] == "read"


async def test_an_unrelated_program_is_not_confined(family, session):
    person = await family.stranger()
    assert (await person.ask("hello"))["role"] == "approve"
    assert (await person.ask("hello", role="admin"))["role"] == "admin"
    assert (await person.ask("session.list"))["sessions"]


# --- visibility ---------------------------------------------------------------------------------------------------


async def test_every_command_not_listed_is_forbidden_for_descendants(family, session):
    """So a new command is forbidden until it is added to the rule."""
    program = await family.descendant(session)
    found = {}
    for row in api.COMMANDS:
        if row.name in HANDLERS and row.name != "attach":  # its events would come between the responses
            values = {"session": session, **VALUES}
            known = {key: value for key, value in values.items() if key in fields(row.name)}
            found[row.name] = (await program.answer(row.name, **known)).get("code")
    allowed = {name for name, code in found.items() if code != "forbidden"}
    reads = {name for name in found if "session" in fields(name) and api.BY_NAME[name].role is api.Role.READ}
    assert allowed == (ABOUT_NONE & found.keys()) | reads - {"presence.update"} | {"ext.reload", "ext.tap"}


async def test_a_descendant_sees_only_its_own_session(family, client, session, place):
    other = await made(client, place)
    program = await family.descendant(session)
    assert [one["id"] for one in (await program.ask("session.list"))["sessions"]] == [session]
    assert (await program.ask("session.get", session=session))["id"] == session
    for command in READS:
        said = await sentence(program, command, session=other)
        assert f"was started for {session} and cannot see other sessions (rule: " in said
    assert {one["id"] for one in (await client.ask("session.list"))["sessions"]} == {session, other}


async def test_a_descendant_can_follow_but_not_change_its_own_session(family, session):
    program = await family.descendant(session)
    assert (await program.ask("attach", session=session))["session"]["id"] == session
    await program.until("replay_complete")
    changes: dict[str, dict[str, object]] = {
        "prompt": {"message": "go"},
        "abort": {},
        "session.configure": {"mode": "yolo"},
        "session.mcp_servers": {"servers": {"a": {"command": "/bin/true"}}},
    }
    for command, fields in changes.items():
        assert "only read their own session" in await sentence(program, command, session=session, **fields)


async def test_a_descendant_gets_only_topic_events_about_its_own_session(family, client, session, place):
    program = await family.descendant(session)
    await program.ask("subscribe", topics=["sessions", "extensions", "trust", "timers"])
    await client.ask("timer.add", message="secret", cwd=str(place.cwd), every_s=3600)
    other = await made(client, place)
    await client.ask("session.rename", session=other, name="secret")
    await client.ask("session.rename", session=session, name="own")
    heard = await program.event()
    assert (heard["session"], heard["name"]) == (session, "own")


async def test_a_descendant_sees_the_extensions_of_its_session_or_directory(family, session, place):
    program = await family.descendant(session)
    for command in ("ext.list", "ext.doctor", "ext.reload"):
        assert await program.ask(command, session=session) == await program.ask(command, cwd=str(place.cwd))
        assert "see their own session" in await sentence(program, command)
        assert "see their own session" in await sentence(program, command, cwd="/")


async def test_an_orphan_sees_no_session(family, session):
    with orphans_adopted():
        program = await family.descendant(session, how="orphan")
        assert (await program.ask("session.list"))["sessions"] == []
        assert "belongs to no session and cannot see any" in await sentence(program, "get_state", session=session)
        assert "never decide" in await sentence(program, "hello", role="admin")


async def test_a_program_that_exits_before_it_is_identified_sees_no_session(place, session):
    """The loop is blocked meanwhile, so that the connection waits to be accepted."""
    ours, theirs = socket.socketpair()
    with ours, subprocess.Popen(connecting(place), stdin=theirs.fileno()) as program:  # noqa: ASYNC220  (it has to block)
        theirs.close()
        _, (fd,), _, _ = socket.recv_fds(ours, 1, 1)
        ours.send(b".")
        program.wait()
    client = WireClient(*await client_on(fd))
    assert (await client.ask("session.list"))["sessions"] == []
    client.cut()


# --- nested sessions ----------------------------------------------------------------------------------------------


async def test_a_descendant_cannot_create_sessions_by_default(family, session, place):
    program = await family.descendant(session)
    said = await sentence(program, "session.create", cwd=str(place.cwd), ephemeral=True)
    assert "(rule: descendants only read their own)" in said
    assert 'nested = "submit"' in said


async def test_with_nested_submit_a_descendant_can_use_its_own_ephemeral_session(nesting):
    family, person, place = nesting
    own = await made(person, place)
    program, beside = await family.descendant(own), await family.descendant(own)
    assert "only create ephemeral sessions" in await sentence(program, "session.create", cwd=str(place.cwd))
    nested = await made(program, place, ephemeral=True)
    await program.ask("session.rename", session=nested, name="helper")
    assert {one["id"] for one in (await program.ask("session.list"))["sessions"]} == {own, nested}
    assert "only read their own" in await sentence(program, "session.rename", session=own, name="x")
    assert "cannot see other sessions" in await sentence(beside, "session.rename", session=nested, name="x")
    assert "never decide" in await sentence(program, "approve", session=nested)
    assert "not stored" in await sentence(program, "session.fork", session=nested)


async def test_a_program_of_a_nested_session_cannot_create_another(nesting):
    family, person, place = nesting
    program = await family.descendant(await made(person, place))
    below = await family.descendant(await made(program, place, ephemeral=True))
    assert "(rule: one level deep)" in await sentence(below, "session.create", cwd=str(place.cwd), ephemeral=True)


async def test_a_nested_session_is_no_more_permissive_than_its_origin(nesting):
    family, person, place = nesting
    own = await made(person, place, mode="ask")
    program = await family.descendant(own)
    options = {"cwd": str(place.cwd), "provider": "ollama", "model": "none", "ephemeral": True}
    assert "rule: descendants never decide" in await sentence(program, "session.create", mode="yolo", **options)
    nested = (await program.ask("session.create", **options))["session"]
    assert nested["mode"] == "ask"
    assert "never decide" in await sentence(program, "session.configure", session=nested["id"], mode="yolo")
    assert (await program.ask("session.configure", session=nested["id"], mode="read-only"))["mode"] == "read-only"
    await person.ask("session.close", session=own)
    assert "never decide" in await sentence(program, "session.configure", session=nested["id"], mode="ask")


async def test_a_program_in_a_jail_cannot_have_another_session_do_what_the_jail_refuses(nesting):
    family, person, place = nesting
    program = await family.descendant(await made(person, place, mode="workspace"))
    for mode in ("workspace", "read-only"):
        said = await sentence(program, "session.create", cwd="/", ephemeral=True, mode=mode)
        assert "(rule: what a jail refuses, no other session does)" in said


async def test_a_nested_session_cannot_trust_a_workspace(nesting):
    family, person, place = nesting
    mine = place.cwd / ".zot" / "extensions" / "mine"
    mine.mkdir(parents=True)
    (mine / "extension.json").write_text('{"name": "mine", "exec": "cat"}')
    program = await family.descendant(await made(person, place))
    trusting = {"PATH": place.env["PATH"], "ZOT_TRUST": "1"}
    nested = await made(program, place, ephemeral=True, env=trusting)
    await program.ask("attach", session=nested, env=trusting)
    await program.ask("session.configure", session=nested, env=trusting)
    (found,) = (await person.ask("ext.list", session=nested))["extensions"]
    assert (found["name"], found["state"]) == ("mine", "untrusted")


async def test_a_program_of_a_users_ephemeral_session_can_create_a_nested_one(nesting):
    family, person, place = nesting
    program = await family.descendant(await made(person, place, ephemeral=True))
    assert await made(program, place, ephemeral=True)


async def test_a_descendant_without_a_session_cannot_create_one(nesting):
    family, _, place = nesting
    program = await family.descendant()
    assert "cannot see any" in await sentence(program, "session.create", cwd=str(place.cwd), ephemeral=True)


# --- users --------------------------------------------------------------------------------------------------------


@pytest.fixture
async def sharing(tmp_path):
    """Like `nesting`, with a session of each user and the daemon with its door."""
    async with AsyncExitStack() as stack:
        where = await stack.enter_async_context(
            serving(tmp_path, {"ZOT_NESTED": "submit", "ZOT_WEBSOCKET_LISTEN": "127.0.0.1:0"})
        )
        house = House(stack, where)
        sessions = {user: (await (await joined(stack, house, user)).begin()).id for user in ("alice", "bob")}
        sessions[""] = await made(await house.connect(), where)
        yield Family(stack, where), sessions, house


@pytest.mark.parametrize("users", [("alice", "bob"), ("alice", "")])
async def test_a_program_that_works_for_sessions_of_several_users_creates_none(sharing, users):
    """An extension of a directory: which of them would it be for?"""
    family, sessions, house = sharing
    program = await family.descendant(*(sessions[user] for user in users))
    said = await sentence(program, "session.create", cwd=str(house.cwd), ephemeral=True)
    named = ", ".join(user or "none" for user in sorted(users))
    assert f"works for sessions of several users ({named})" in said
    assert "(rule: a session has one user)" in said
    of_one = await family.descendant(sessions["alice"])
    nested = await made(of_one, house, ephemeral=True)
    assert (await of_one.ask("session.get", session=nested))["user"] == "alice"


async def test_a_program_of_a_session_whose_user_has_a_quota_creates_none_and_gets_one_sentence(sharing):
    family, sessions, house = sharing
    (house.place.home / "config.toml").write_text("[users.alice]\nusd_per_day = 5\n")
    await (await house.connect(role="admin")).ask("daemon.reload")
    program = await family.descendant(sessions["alice"])
    for ephemeral in (True, False):  # neither is told that the other one would do
        said = await sentence(program, "session.create", cwd=str(house.cwd), ephemeral=ephemeral)
        assert said == (
            "a program of a session of alice cannot create sessions, because this user has a quota (rule: nested sessions are "
            "not stored, so not counted); use your own terminal"
        )
    assert await made(await family.descendant(sessions["bob"]), house, ephemeral=True)
