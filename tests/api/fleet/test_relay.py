"""What a relay forwards, with the other daemon played by the test."""

import asyncio

import msgspec
import pytest

from zotd.api.fleet.relay import Relay, RelayError
from zotd.store.members import FleetMember
from zotd.wire import api

THERE = FleetMember(7, "home", "box:/home", "wss://box:1")


class Messages:
    """The connection, with queues in the place of the network."""

    def __init__(self):
        self.sent: asyncio.Queue[dict[str, object]] = asyncio.Queue()
        self.coming: asyncio.Queue[str | None] = asyncio.Queue()
        self.closed = asyncio.Event()

    @property
    def is_closed(self):
        return self.closed.is_set()

    async def send(self, line):
        self.sent.put_nowait(msgspec.json.decode(line))

    async def receive(self):
        return await self.coming.get()

    async def close(self):
        self.closed.set()

    def say(self, **frame):
        self.coming.put_nowait(msgspec.json.encode(frame).decode())

    def end(self):
        self.coming.put_nowait(None)


class Reader:
    """The client."""

    id, client, role, can_decide = "k_1", api.Client(), api.Role.APPROVE, False

    def __init__(self):
        self.got = []
        self.is_over = False

    def write(self, data):
        self.got += [msgspec.json.decode(line) for line in data.splitlines()]

    async def room(self):
        pass

    def end(self):
        self.is_over = True


@pytest.fixture
async def there():
    return Messages()


@pytest.fixture
def client():
    return Reader()


@pytest.fixture
async def relay(there, client):
    relay = Relay(THERE, there, client)
    async with asyncio.TaskGroup() as tasks:
        reading = tasks.create_task(relay.run())
        yield relay
        relay.close()
        reading.cancel()
    assert there.is_closed


async def asked(tasks, relay, there, request_id, command="get_state", told=lambda: None):
    """A command that is being forwarded, and its id there."""
    task = tasks.create_task(relay.ask(command, api.OfSession("s_1"), request_id, told))
    return task, (await there.sent.get())["id"]


async def test_each_response_has_the_id_that_the_client_has_given(relay, there, client):
    async with asyncio.TaskGroup() as tasks:
        _, first = await asked(tasks, relay, there, "a")
        _, second = await asked(tasks, relay, there, "a")
        there.say(type="response", command="get_state", success=True, id=second, data={"n": 2})
        there.say(type="response", command="get_state", success=False, id=first, error="no", code="not_found")
    assert [(frame["id"], frame["success"]) for frame in client.got] == [("a", True), ("a", False)]
    assert (client.got[0]["data"], client.got[1]["code"]) == ({"n": 2}, "not_found")


async def test_events_are_fleet_in_their_place_and_heartbeats_are_not(relay, there, client):
    async with asyncio.TaskGroup() as tasks:
        told = []
        _, key = await asked(tasks, relay, there, 1, "attach", lambda: told.append(list(client.got)))
        there.say(type="heartbeat")
        there.say(type="response", command="attach", success=True, id=key, data={})
        there.say(type="done", session="s_1", seq=4)
        there.end()
    assert told == [[]]
    assert [frame["type"] for frame in client.got] == ["response", "done"]


async def test_a_conflict_is_left_to_the_caller_because_the_session_may_have_moved(relay, there, client):
    async with asyncio.TaskGroup() as tasks:
        task, key = await asked(tasks, relay, there, 1)
        there.say(type="response", command="get_state", success=False, id=key, error="moved", code="conflict")
    assert task.result().error == "moved"
    assert client.got == []


async def test_a_client_whose_command_is_not_answered_is_disconnected(relay, there, client):
    async with asyncio.TaskGroup() as tasks:
        task, _ = await asked(tasks, relay, there, 1)
        there.end()
    assert task.result() is None
    assert client.is_over
    with pytest.raises(RelayError):
        await relay.ask("get_state", api.OfSession("s_1"), 2, lambda: None)


async def test_an_attach_that_is_not_answered_can_be_sent_again_elsewhere(relay, there, client):
    async def attach():
        with pytest.raises(RelayError, match="the connection has ended"):
            await relay.ask("attach", api.OfSession("s_1"), 1, lambda: None)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(attach())
        await there.sent.get()
        there.end()
    assert not client.is_over


async def test_a_client_is_disconnected_if_another_command_beside_its_attach_is_not_answered(relay, there, client):
    async with asyncio.TaskGroup() as tasks:
        attaching, _ = await asked(tasks, relay, there, 1, "attach")
        asking, _ = await asked(tasks, relay, there, 2)
        there.end()
    assert (attaching.result(), asking.result()) == (None, None)
    assert client.is_over


async def test_a_client_that_follows_a_session_there_is_told_why_it_is_disconnected(relay, there, client):
    relay.sessions.add("s_1")
    there.end()
    await there.closed.wait()
    assert client.is_over
    assert client.got == [{"type": "evicted", "session": "s_1", "reason": client.got[0]["reason"], "last_seq": 0}]
    assert "box:/home" in client.got[0]["reason"]


async def test_a_client_that_needs_nothing_from_there_stays_connected(relay, there, client):
    there.end()
    await there.closed.wait()
    assert not client.is_over


async def test_responses_to_requests_that_nobody_has_made_are_dropped(relay, there, client):
    for key in (99, "text", None):
        there.say(type="response", command="get_state", success=True, id=key, data={})
    there.say(type="done", session="s_1")
    there.end()
    await there.closed.wait()
    assert [frame["type"] for frame in client.got] == ["done"]


async def test_a_client_that_the_other_daemon_disconnects_is_told_so_once(relay, there, client):
    relay.sessions.add("s_1")
    there.say(type="evicted", session="s_1", reason="moved", last_seq=4)
    await there.closed.wait()
    assert client.is_over
    assert [frame["reason"] for frame in client.got] == ["moved"]
