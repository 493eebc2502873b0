"""A daemon keeps a connection to another one ready for its next client."""

import asyncio
import json
import os
import signal
from contextlib import AsyncExitStack
from functools import partial
from types import SimpleNamespace

import aiohttp
import psutil
import pytest

from tests.e2e.fleet import FAILOVER_S, row, until
from zotd import fleet_key
from zotd.api.websocket import visitor
from zotd.fleet_key import FleetKey
from zotd.testing.live_daemon import free_port, serving
from zotd.testing.script import text
from zotd.testing.wire_client import WireClient

KNOWN = "SELECT count(*) = 2 FROM daemons WHERE address <> ''"


async def figures(client):
    """The metrics of a fleet: how many connections are ready, and how many clients got one, or a new one."""
    found = {family["name"]: family.get("samples", []) for family in (await client.ask("daemon.metrics"))["families"]}
    taken = {one["labels"]["from"]: one["value"] for one in found["zotd_fleet_connections"]}
    return {"ready": found["zotd_fleet_spares"][0]["value"], "new": 0, "spare": 0, **taken}


async def until_ready(client, count=1):
    async with asyncio.timeout(FAILOVER_S):
        while (await figures(client))["ready"] != count:
            pass


@pytest.fixture
async def there(fleet, talk_in):
    """A session of the first daemon, for which the second one has a connection ready."""
    one, two = fleet
    there = await talk_in(one, *[text("fine")] * 4)
    await two.follow(there.id)
    await until_ready(await two.connect())
    return there


async def test_the_next_client_gets_the_connection_and_another_one_is_made(fleet, there):
    two = fleet[1]
    client = await two.connect()
    assert await figures(client) == {"ready": 1, "new": 1, "spare": 0}
    here = await two.follow(there.id, client)
    await here.run("go")
    await until_ready(client)
    assert await figures(client) == {"ready": 1, "new": 1, "spare": 1}


async def test_each_client_has_its_own_role_and_name_over_a_connection_that_was_there_before(fleet, there):
    two = fleet[1]
    reader = await two.connect(client={"name": "reader"}, role="read")
    here = await two.follow(there.id, reader)
    assert await here.refused("prompt", message="go") == "forbidden"
    listed = (await there.ask("presence"))["clients"]
    assert "reader" in [one["name"] for one in listed]
    await until_ready(reader)
    admin = await two.connect(client={"name": "admin"}, role="admin")
    await admin.ask("session.rename", session=there.id, name="renamed")
    assert (await figures(admin))["spare"] == 2
    assert await here.refused("prompt", message="go") == "forbidden"


async def test_a_daemon_that_hangs_is_waited_for_although_the_connection_was_ready(fleet, there):
    one, two = fleet
    client = await two.connect()
    os.kill(one.daemon.pid, signal.SIGSTOP)
    try:
        attaching = client.send("attach", session=there.id)
        async with WireClient.connect(two.place.socket) as watching:
            await until_ready(watching, 0)
    finally:
        os.kill(one.daemon.pid, signal.SIGCONT)
    assert (await client.answer_to(attaching))["success"]
    here = await two.follow(there.id, client)
    await here.run("go")
    assert [words for role, words in await here.texts() if role == "user"] == [["go"]]


async def test_a_daemon_that_was_started_again_with_another_certificate_is_reached(
    member, database, talk_in, certificate
):
    port = free_port()
    one = member("one", **certificate("one"), ZOT_WEBSOCKET_LISTEN=f"127.0.0.1:{port}")
    two = member("two", **certificate("two"))
    await until(database, KNOWN)
    there = await talk_in(one, *[text("fine")] * 2)
    await there.run("first")
    client = await two.connect()
    await two.follow(there.id)
    await until_ready(client)
    certificate("one")  # replaces the files
    one.restart(signal.SIGKILL)
    await until(database, KNOWN)
    await (await one.connect()).ask("attach", session=there.id)
    async with asyncio.timeout(FAILOVER_S):
        while not (await client.answer("attach", session=there.id))["success"]:
            pass
    assert (await client.ask("prompt", session=there.id, message="second"))["input"]


async def test_neither_daemon_keeps_anything_of_clients_that_have_gone(fleet, there):
    async with AsyncExitStack() as stack:
        watches = [await stack.enter_async_context(WireClient.connect(house.place.socket)) for house in fleet]

        async def held():
            """TCP connections, clients and tasks. Descriptors also grow by connections of readers to the database."""
            await until_ready(watches[1])
            found = [await watch.ask("daemon.metrics") for watch in watches]
            sockets = [len(psutil.Process(house.daemon.pid).net_connections("tcp")) for house in fleet]
            return [*sockets, *(one[name] for one in found for name in ("clients", "tasks"))]

        before = await held()
        for _ in range(20):
            async with WireClient.connect(fleet[1].place.socket) as client:
                await client.ask("attach", session=there.id)
        async with asyncio.timeout(FAILOVER_S):
            while any(now > then for now, then in zip(await held(), before, strict=True)):
                await until_ready(watches[1])


# --- the daemon at the other end ---


@pytest.fixture
async def door(database, tmp_path, key_file):
    """`await door.call(**fields)`: another daemon's connection to the one in this loop, and the answer to a hello with a proof."""
    given = {"ZOT_JOURNAL_URL": database, "ZOT_WEBSOCKET_LISTEN": "127.0.0.1:0", "ZOT_FLEET_KEY_FILE": str(key_file)}
    async with AsyncExitStack() as stack:
        place = await stack.enter_async_context(serving(tmp_path, given))
        admin = await stack.enter_async_context(WireClient.connect(place.socket))
        url = str((await admin.ask("daemon.status"))["websocket"])
        (home,) = row(database, "SELECT home FROM daemons")
        http = await stack.enter_async_context(aiohttp.ClientSession())

        async def call(**fields):
            socket = await stack.enter_async_context(http.ws_connect(url))
            return socket, await say_hello(socket, proof_of(key_file, home, **fields))

        yield SimpleNamespace(admin=admin, call=call, proof=partial(proof_of, key_file, home))


def proof_of(key_file, home, **fields):
    nonce = fleet_key.nonce()
    proof = FleetKey.read(str(key_file)).caller_proof(home, nonce, "")
    return {"connection": "", "nonce": nonce, "proof": proof, "spare": True, **fields}


async def say_hello(socket, fleet):
    """The data of the response; else the code with which the connection is closed."""
    await socket.send_json({"type": "hello", "id": 1, "fleet": fleet})
    message = await socket.receive()
    return json.loads(message.data)["data"] if message.type is aiohttp.WSMsgType.TEXT else message.data


async def clients_of(door):
    return (await door.admin.ask("daemon.status"))["clients"]


async def test_a_connection_without_a_client_is_no_client_and_ends_after_a_while(door, monkeypatch):
    monkeypatch.setattr(visitor, "SPARE_S", 0.05)
    socket, answer = await door.call()
    assert answer["spare"]
    assert await clients_of(door) == 1
    assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE


async def test_a_client_over_it_needs_a_proof_of_its_own(door):
    socket, _ = await door.call()
    answer = await say_hello(socket, door.proof(spare=False, connection="k_1"))
    assert (answer["connection"], answer.get("spare")) == ("k_1", None)
    assert await clients_of(door) == 2
    socket, _ = await door.call()
    assert await say_hello(socket, door.proof(spare=False, proof="0" * 64)) == 4401


async def test_a_connection_without_a_client_can_do_nothing(door):
    socket, _ = await door.call()
    await socket.send_json({"type": "daemon.status", "id": 2})
    assert (await socket.receive()).data == 4401


async def test_there_are_not_too_many_of_them_and_clients_get_in_all_the_same(door):
    for _ in range(visitor.MAX_SPARES):
        assert (await door.call())[1]["spare"]
    assert (await door.call())[1] == 1013
    assert (await door.call(spare=False, connection="k_1"))[1]["connection"] == "k_1"
