"""Misbehaving connections, and many at once: their cost is bounded, and nothing remains of them."""

import asyncio
import gc
from types import SimpleNamespace

import pytest

from zotd.api.connection import HALF_LINE_BEATS, MAX_IN_FLIGHT, ServerConnection
from zotd.api.context import Tally
from zotd.sessions.session import Session
from zotd.testing.model_server import ModelServer
from zotd.testing.script import text
from zotd.wire.api import COMMANDS, Role

CROWD = 100

STORIES = 24
"""Number of sessions that one client replays at once; each has more than a page of events."""


async def test_metrics_report_what_the_daemon_holds_and_has_done(connect, session):
    client, other = await connect(), await connect()
    before = await client.ask("daemon.metrics")
    await other.ask("attach", session=session)
    await client.ask("session.rename", session=session, name="walrus")
    assert (await other.until("session_changed"))[-1]["name"] == "walrus"
    other.cut()
    after = await client.ask("daemon.metrics")
    assert (before["clients"], before["sessions"], before["running"]) == (3, 1, 0)
    assert after["events"] == before["events"] + 1
    assert after["commits"] == before["commits"] + 1
    assert after["commands"] == before["commands"] + 3
    assert after["connections"] == before["connections"]
    assert after["evictions"] == 0
    assert min(after["tasks"], after["descriptors"], after["rss_bytes"], after["uptime_s"]) > 0


@pytest.mark.parametrize("leaves_first", [True, False])
async def test_a_deleted_session_leaves_nothing_in_memory(connect, session, leaves_first):
    admin, follower = await connect(role="admin"), await connect()
    await follower.ask("attach", session=session)
    if leaves_first:
        await follower.ask("detach", session=session)
    await admin.ask("session.delete", session=session)
    await follower.ask("detach", session=session)
    gc.collect()
    assert [one for one in gc.get_objects() if isinstance(one, Session) and one.id == session] == []


# --- presence ---------------------------------------------------------------------------------------------------


async def lists_until(client, count):
    """Every presence list, up to the first one with this many clients."""
    found = [(await client.until("presence"))[-1]["clients"]]
    while len(found[-1]) != count:
        found.append((await client.until("presence"))[-1]["clients"])
    return found


async def test_clients_that_attach_at_once_cause_only_a_few_presence_lists(connect, session):
    first = await connect(client={"name": "first"})
    await first.ask("attach", session=session)
    others = [await connect() for _ in range(CROWD)]
    asked = [(other, other.send("attach", session=session)) for other in others]
    for other, request in asked:
        await other.answer_to(request)
    lists = await lists_until(first, CROWD + 1)
    assert len(lists) < CROWD / 2
    assert lists[-1][0]["name"] == "first"
    for other in others:
        other.cut()
    await lists_until(first, 1)


# --- many requests on one connection ------------------------------------------------------------------------------


async def test_a_reading_client_is_not_disconnected_while_many_sessions_replay(connect, place):
    client = await connect()
    async with ModelServer(lambda _: text("I see")) as model:
        options = {"cwd": str(place.cwd), "provider": "openai", "base_url": model.openai_url, "no_ext": True}
        cursors = {}
        for _ in range(STORIES):
            made = await client.ask("session.create", **options, secrets={"api_key": "sk-x"})
            key = made["session"]["id"]
            await client.ask("attach", session=key)
            for _ in range(3):
                await client.ask("prompt", session=key, message="x" * 120_000)
                await client.until("done")
            cursors[key] = {"epoch": made["epoch"], "seq": 0}
    late = await connect()
    for key, cursor in cursors.items():
        late.send("attach", session=key, after=cursor)
    complete = 0
    while complete < STORIES:
        complete += (await late.event())["type"] == "replay_complete"
    for key in cursors:
        seqs = [frame["seq"] for frame in late.seen if frame.get("session") == key and "seq" in frame]
        assert seqs[:-1] == list(range(1, seqs[-1] + 1))


async def test_the_concurrent_commands_of_a_client_are_limited_and_all_answered(client):
    requests = {client.send("daemon.metrics") for _ in range(MAX_IN_FLIGHT * 3)}
    found = [await client.frame() for _ in requests]
    assert {answer["id"] for answer in found} == requests
    assert max(answer["data"]["tasks"] for answer in found) < MAX_IN_FLIGHT * 2


# --- incomplete lines ---------------------------------------------------------------------------------------------


class Wire(asyncio.Transport):
    """A transport without a peer."""

    def __init__(self):
        super().__init__()
        self.is_closed = False

    def set_write_buffer_limits(self, high=None, low=None):
        pass

    def write(self, data):
        pass

    def resume_reading(self):
        pass

    def close(self):
        self.is_closed = True

    abort = close

    def is_closing(self):
        return self.is_closed


class Ignored:
    """A dispatcher that ignores every line."""

    def take(self, *_):
        return None


@pytest.fixture
def wire():
    return Wire()


@pytest.fixture
def connection(wire):
    house = SimpleNamespace(tally=Tally(), fleet=None, listen=lambda _: lambda: None)
    return ServerConnection(wire, context=house, dispatcher=Ignored(), peer="a test")  # type: ignore[arg-type]  # as far as used


async def test_a_connection_that_has_ended_listens_to_no_topic(wire):
    stopped: list[object] = []
    house = SimpleNamespace(tally=Tally(), fleet=None, listen=lambda heard: lambda: stopped.append(heard))
    ended = ServerConnection(wire, context=house, dispatcher=Ignored(), peer="a test")  # type: ignore[arg-type]  # as far as used
    assert stopped == []
    ended.lost()
    assert len(stopped) == 1


async def test_a_client_that_does_not_finish_its_line_is_disconnected(connection, wire):
    connection.received(b'{"type":"ping","x":"')
    for _ in range(HALF_LINE_BEATS):
        connection.heartbeat()
    assert not wire.is_closed
    connection.heartbeat()
    assert wire.is_closed


async def test_a_slow_client_that_finishes_its_lines_stays_connected(connection, wire):
    for _ in range(HALF_LINE_BEATS * 2):
        connection.received(b'"}\n{"type":"ping","x":"')
        connection.heartbeat()
    connection.received(b'"}\n')
    for _ in range(HALF_LINE_BEATS * 2):
        connection.heartbeat()
    assert not wire.is_closed


# --- repeated requests --------------------------------------------------------------------------------------------

CHANGE_NOTHING = {
    *("daemon.compact", "daemon.reload", "ext.tap", "session.export", "token.list", "trust.list"),
    "model.check",
    "session.side_question",  # adds nothing to the conversation
    *("session.mcp_servers", "files.offer", "terminals.offer"),  # replace what the client has brought before
    *("files.answer", "terminals.answer"),  # a request has one answer
    "session.agent_options",
    *("audit.list", "push.list", "push.remove"),
    *("push.subscribe", "push.unsubscribe"),  # by the endpoint of the browser
    *("auth.check", "auth.login", "auth.logout"),  # their keys must not be in any digest
    *("auth.begin", "auth.wait", "auth.cancel"),  # each `begin` replaces the one before
}
"""Commands above the role `read` that only read, or that have no further effect when repeated."""


def test_every_changing_command_accepts_a_request_id():
    without = {
        row.name for row in COMMANDS if "request_id" not in row.params.__struct_fields__ and row.role > Role.READ
    }
    assert without == CHANGE_NOTHING


async def test_a_request_repeated_on_another_connection_gets_the_first_response(connect, place):
    fields = {"cwd": str(place.cwd), "provider": "ollama", "model": "none", "request_id": "made once"}
    first = await connect()
    made = await first.ask("session.create", **fields)
    first.cut()
    second = await connect()
    assert await second.ask("session.create", **fields) == made
    assert len((await second.ask("session.list"))["sessions"]) == 1
    assert await second.refused("session.create", **fields | {"model": "other"}) == "duplicate_key"
