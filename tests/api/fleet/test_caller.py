"""Connections to another daemon, whose side the test plays over real HTTP."""

import asyncio

import pytest
from aiohttp import web

from zotd.api.fleet import caller
from zotd.api.fleet.relay import RelayError
from zotd.fleet_key import FleetKey
from zotd.store.members import FleetMember
from zotd.wire import api

KEY = FleetKey("k" * 40)


class Client:
    id, client, role, can_decide = "k_1", api.Client(name="phone"), api.Role.SUBMIT, True
    user = ""
    account = "local:ann"

    def write(self, data):
        raise AssertionError(data)

    async def room(self):
        raise AssertionError

    def end(self):
        raise AssertionError


@pytest.fixture
async def there():
    """`await there(handler)`: the address of a server that treats requests so."""
    runners = []

    async def there(handler):
        app = web.Application()
        app.router.add_get("/v1", handler)
        runner = web.AppRunner(app)
        await runner.setup()
        runners.append(runner)
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        return f"ws://127.0.0.1:{runner.addresses[0][1]}"

    yield there
    for runner in runners:
        await runner.cleanup()


async def call(address, key=KEY):
    return await caller.call(FleetMember(1, "home", "box", address), Client(), key)


def answering(proof_of):
    """A daemon that answers a hello with this proof."""
    heard = []

    async def handle(request):
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        heard.append(await socket.receive_json())
        data = {"protocol_version": 1, "version": "1", "proof": proof_of(heard[-1]["fleet"]["nonce"])}
        await socket.send_json({"type": "response", "command": "hello", "success": True, "id": 0, "data": data})
        await socket.receive()
        return socket

    return handle, heard


async def test_a_daemon_with_the_key_is_told_who_the_client_is(there):
    handle, heard = answering(lambda nonce: KEY.callee_proof("home", nonce, ""))
    relay = await call(await there(handle))
    relay.close()
    await relay.run()
    (hello,) = heard
    assert (hello["client"]["name"], hello["role"], hello["can_approve"]) == ("phone", "submit", True)
    assert hello["fleet"]["connection"] == "k_1"
    assert hello["fleet"]["proof"] == KEY.caller_proof("home", hello["fleet"]["nonce"], "")


@pytest.mark.parametrize(
    "proof_of",
    [
        lambda nonce: FleetKey("l" * 40).callee_proof("home", nonce, ""),
        lambda nonce: KEY.caller_proof("home", nonce, ""),
        lambda _nonce: KEY.callee_proof("home", "another", ""),
        lambda _nonce: None,
    ],
)
async def test_a_server_that_does_not_prove_that_it_has_the_key_gets_no_commands(there, proof_of):
    handle, _ = answering(proof_of)
    with pytest.raises(RelayError, match="does not have the fleet key") as refused:
        await call(await there(handle))
    assert refused.value.is_lasting


@pytest.mark.parametrize(("code", "is_lasting"), [(4401, True), (1013, False), (1001, False)])
async def test_a_door_that_is_full_is_tried_again_and_one_that_refuses_the_key_is_not(there, code, is_lasting):
    async def handle(request):
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.receive()
        await socket.close(code=code)
        return socket

    with pytest.raises(RelayError) as refused:
        await call(await there(handle))
    assert refused.value.is_lasting is is_lasting


async def test_a_redirect_is_not_followed(there):
    followed = []

    async def elsewhere(request):
        followed.append(request)
        return web.Response()

    target = await there(elsewhere)

    async def handle(_request):
        raise web.HTTPFound(target.replace("ws:", "http:") + "/v1")

    with pytest.raises(RelayError, match="redirect"):
        await call(await there(handle))
    assert followed == []


async def test_a_door_that_does_not_accept_the_host_name_is_said_to(there):
    async def handle(_request):
        raise web.HTTPForbidden

    with pytest.raises(RelayError, match=r"403; add this host name to websocket\.hosts"):
        await call(await there(handle))


async def test_a_daemon_that_does_not_answer_is_not_waited_for(there, monkeypatch):
    monkeypatch.setattr(caller, "CALL_S", 0.05)
    over = asyncio.Event()

    async def handle(request):
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await over.wait()
        return socket

    with pytest.raises(RelayError, match="has not answered within"):
        await call(await there(handle))
    over.set()


@pytest.mark.parametrize("address", ["", "ws://box.example.org:1", "wss://127.0.0.1:1"])
async def test_an_address_without_a_daemon_is_refused_in_a_sentence(address):
    with pytest.raises(RelayError, match=r"\w"):
        await call(address)
