"""Connections that wait for a client, to a daemon whose side the test plays over real HTTP."""

import asyncio

import msgspec
import pytest
from aiohttp import web

from zotd.api.fleet import spares as module
from zotd.api.fleet.relay import RelayError
from zotd.api.fleet.spares import MAX_SPARES, Spares
from zotd.fleet_key import FleetKey
from zotd.store.members import FleetMember
from zotd.wire import api

KEY = FleetKey("k" * 40)


class Client:
    client, role, can_decide, account, user = api.Client(name="phone"), api.Role.SUBMIT, True, "local:ann", "ann"

    def __init__(self, key="k_1"):
        self.id = key
        self.got = []

    def write(self, data):
        self.got.append(data)

    async def room(self):
        pass

    def end(self):
        raise AssertionError


class Other:
    """A daemon of the fleet: answers hellos with its proof, and `attach`."""

    def __init__(self, *, knows_spares=True, answers_clients=True, key=KEY):
        self.heard = []
        self.open = 0
        self.changed = asyncio.Condition()
        self._knows_spares = knows_spares
        self._answers_clients = answers_clients
        self._key = key
        """With which it answers clients."""

    async def handle(self, request):
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await self._count(1)
        try:
            async for message in socket:
                found = message.json()
                self.heard.append(found)
                await self._answer(socket, found)
        finally:
            await self._count(-1)
        return socket

    async def until(self, count):
        async with asyncio.timeout(20), self.changed:
            await self.changed.wait_for(lambda: self.open == count)

    async def _count(self, more):
        async with self.changed:
            self.open += more
            self.changed.notify_all()

    async def _answer(self, socket, found):
        fleet = found.get("fleet")
        data: dict[str, object] = {}
        if fleet is not None:
            is_spare = fleet.get("spare", False)
            if not (is_spare or self._answers_clients):
                return
            proof = (KEY if is_spare else self._key).callee_proof("home", fleet["nonce"], "")
            data = {"protocol_version": 1, "version": "1", "proof": proof}
            data |= {"spare": is_spare and self._knows_spares}
        head = {"type": "response", "command": found["type"], "success": True, "id": found["id"]}
        await socket.send_str(msgspec.json.encode({**head, "data": data}).decode())


@pytest.fixture
async def member():
    """`await member(other)`: the daemon as this one knows it."""
    runners = []

    async def member(other):
        app = web.Application()
        app.router.add_get("/v1", other.handle)
        runner = web.AppRunner(app)
        await runner.setup()
        runners.append(runner)
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        return FleetMember(len(runners), "home", "box", f"ws://127.0.0.1:{runner.addresses[0][1]}")

    yield member
    for runner in runners:
        await runner.cleanup()


@pytest.fixture
async def spares():
    async with asyncio.TaskGroup() as tasks:

        def spawn(name, work):
            tasks.create_task(work, name=name)

        spares = Spares(KEY, spawn)
        yield spares
        spares.close()


async def ready(spares, count=1):
    async with asyncio.timeout(20):
        while spares.ready != count:
            await asyncio.to_thread(int)  # it tells nobody, and is ready within milliseconds


async def attach(relay, client):
    assert await relay.ask("attach", api.Attach("s_1"), 7, lambda: None) is None
    assert len(client.got) == 1


async def test_a_client_is_introduced_over_a_connection_that_was_there_before_it(spares, member):
    other = Other()
    there = await member(other)
    spares.keep(there)
    await ready(spares)
    client = Client()
    relay = await spares.take(there, client)
    assert relay is not None
    await attach(relay, client)
    first, hello, _ = other.heard
    assert (first["fleet"]["spare"], first["fleet"]["connection"]) == (True, "")
    assert (hello["role"], hello["can_approve"]) == ("submit", True)
    assert (hello["fleet"]["connection"], hello["fleet"]["account"], hello["fleet"]["user"]) == (
        "k_1",
        "local:ann",
        "ann",
    )
    assert hello["fleet"]["nonce"] != first["fleet"]["nonce"]
    assert other.open == 1
    assert await spares.take(there, Client("k_2")) is None  # it is the first client's
    relay.close()
    await other.until(0)


async def test_there_is_one_connection_for_each_daemon_and_no_more_than_some_daemons(spares, member):
    other = Other()
    there = await member(other)
    for _ in range(3):
        spares.keep(there)
    await ready(spares)
    assert other.open == 1
    more = [FleetMember(100 + number, "home", "box", there.address) for number in range(MAX_SPARES)]
    for one in more:
        spares.keep(one)
    await ready(spares, MAX_SPARES)
    assert other.open == MAX_SPARES
    assert await spares.take(more[-1], Client()) is None
    assert await spares.take(there, Client("k_2")) is not None  # none of them was replaced
    spares.keep(more[-1])  # and there is room again
    await ready(spares, MAX_SPARES)


async def test_a_connection_that_no_client_needs_is_closed(spares, member, monkeypatch):
    monkeypatch.setattr(module, "IDLE_S", 0.05)
    other = Other()
    spares.keep(await member(other))
    await other.until(1)
    await other.until(0)
    assert spares.ready == 0


async def test_no_connection_to_a_daemon_that_takes_it_for_a_client_is_kept(spares, member):
    other = Other(knows_spares=False)
    there = await member(other)
    spares.keep(there)
    await other.until(1)
    await other.until(0)
    assert await spares.take(there, Client()) is None


@pytest.mark.parametrize("is_there", [True, False], ids=["refuses", "is not there"])
async def test_a_daemon_with_which_no_connection_got_ready_is_left_alone_for_a_while(member, monkeypatch, is_there):
    there = await member(Other(knows_spares=False)) if is_there else FleetMember(7, "home", "box", "ws://127.0.0.1:1")

    async def tried():
        found: list[asyncio.Task[None]] = []
        async with asyncio.TaskGroup() as tasks:
            spares = Spares(KEY, lambda name, work: found.append(tasks.create_task(work, name=name)))
            for _ in range(3):
                spares.keep(there)
                await asyncio.wait(found)
        return len(found)

    assert await tried() == 1
    monkeypatch.setattr(module, "IDLE_S", 0.0)
    assert await tried() == 3


async def test_a_daemon_that_does_not_answer_any_more_is_asked_nothing_that_could_happen_twice(
    spares, member, monkeypatch
):
    monkeypatch.setattr(module, "ANSWER_S", 0.05)
    other = Other(answers_clients=False)
    there = await member(other)
    spares.keep(there)
    await ready(spares)
    client = Client()
    relay = await spares.take(there, client)
    assert relay is not None
    async with asyncio.TaskGroup() as tasks:
        asked = [tasks.create_task(failure_of(relay, command)) for command in ("prompt", "attach", "abort")]
    assert all(asked)
    assert [frame["type"] for frame in other.heard] == ["hello", "hello", "attach"]
    assert client.got == []
    assert relay.is_over


async def test_the_answer_to_the_hello_of_a_client_needs_a_proof_of_its_own(spares, member):
    other = Other(key=FleetKey("l" * 40))
    there = await member(other)
    spares.keep(there)
    await ready(spares)
    client = Client()
    relay = await spares.take(there, client)
    assert relay is not None
    assert "does not have the fleet key" in await failure_of(relay, "attach")
    await other.until(0)
    assert client.got == []


async def failure_of(relay, command):
    with pytest.raises(RelayError) as failed:
        await relay.ask(command, api.OfSession("s_1"), 7, lambda: None)
    return str(failed.value)


async def test_what_waits_ends_with_the_daemon(spares, member):
    other = Other()
    spares.keep(await member(other))
    await ready(spares)
    spares.close()
    await other.until(0)
    assert spares.ready == 0
