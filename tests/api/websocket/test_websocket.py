"""The WebSocket door: the same daemon as behind the Unix socket, for clients with a token."""

import asyncio

import aiohttp
import pytest

from tests.api.web import CLOSE, PONG, TEXT, ClosedError, masked, visitor
from zotd.api.connection import ServerConnection
from zotd.api.context import MAX_CONNECTIONS
from zotd.api.websocket.carrier import QUIET_BEATS, FrameCarrier
from zotd.api.websocket.server import RESERVED
from zotd.testing.live_daemon import serving
from zotd.testing.wire_client import WireClient

SESSION = {"provider": "ollama", "model": "none"}


async def new_session(client, door, **fields):
    return (await client.ask("session.create", cwd=str(door.place.cwd), **SESSION, **fields))["session"]["id"]


# --- the same protocol ---


async def test_an_independent_websocket_client_works(door, token):
    async with aiohttp.ClientSession() as http, http.ws_connect(door.url) as web:
        await web.send_json({"id": 1, "type": "hello", "token": token, "role": "admin", "client": {"name": "another"}})
        hello = await web.receive_json()
        assert (hello["data"]["role"], hello["data"]["epoch"]) == (
            "admin",
            (await door.admin.ask("daemon.status"))["epoch"],
        )
        await web.send_json({"id": 2, "type": "ping"})
        assert (await web.receive_json())["data"] == {"pong": True}
        await web.ping()
        await web.close(code=4242)
        assert web.close_code == 4242


async def test_both_doors_provide_the_same_sessions_and_events(door, member):
    session = await new_session(member, door)
    for client in (member, door.admin):
        await client.ask("attach", session=session)
    await door.admin.ask("session.rename", session=session, name="Ärger \u2028 mit\u0085Zeilen")
    ours = [event for event in await member.until("session_changed") if event.get("seq")]
    theirs = [event for event in await door.admin.until("session_changed") if event.get("seq")]
    assert ours == theirs
    people = (await door.admin.ask("presence", session=session))["clients"]
    assert len(people) == 2


async def test_a_cursor_of_one_door_is_valid_at_the_other(door, member, token):
    session = await new_session(member, door)
    attached = await member.ask("attach", session=session)
    after = {"epoch": attached["epoch"], "seq": attached["seq"]}
    member.cut()
    await door.admin.ask("session.rename", session=session, name="renamed")
    again = await door.member(token)
    assert (await again.ask("attach", session=session, after=after))["mode"] == "resumed"
    assert (await again.until("session_changed"))[-1]["name"] == "renamed"


async def test_a_request_repeated_through_the_other_door_gets_the_first_response(door, member):
    fields = {"cwd": str(door.place.cwd), **SESSION, "request_id": "once"}
    first = await member.ask("session.create", **fields)
    assert await door.admin.ask("session.create", **fields) == first


# --- slow, silent and too many clients ---


async def test_a_client_that_stops_reading_is_disconnected(door, member, token):
    slow = await door.member(token)
    for number in range(4000):
        slow.text(f'{{"id":"{number:04000}","type":"ping"}}'.encode())  # each response repeats the id
    async with asyncio.timeout(30):
        while (await member.ask("daemon.metrics"))["evictions"] == 0:
            assert await member.ask("ping") == {"pong": True}
    assert await slow.end() in {1001, None}  # the code arrives only if the client reads in time


class Network(asyncio.Transport):
    """A confinement that allows everything."""

    def __init__(self):
        super().__init__()
        self.sent = []

    def write(self, data):
        self.sent.append(bytes(data))

    def get_write_buffer_size(self):
        return 0


async def test_a_client_that_answers_no_ping_is_disconnected():
    said: list[str] = []

    class Member(ServerConnection):
        def __init__(self):
            pass

        def heartbeat(self):
            pass

        def end(self, reason=None):
            said.append(reason or "")

        def received(self, data):
            pass

    wire = FrameCarrier(Network(), admit=lambda *_: Member())
    wire.feed_data(masked(TEXT, b"hello"))
    for _ in range(10):
        wire.beat()
        wire.feed_data(masked(PONG))
    assert said == []
    for _ in range(QUIET_BEATS):
        wire.beat()
    assert said == []
    wire.beat()
    assert said == ["it sent nothing and did not answer a ping"]


async def test_connections_of_both_doors_are_limited_with_a_reserve_for_the_user(door, token):
    for _ in range(MAX_CONNECTIONS - RESERVED - 1):
        await door.member(token)
    late = await door.stranger()
    late.send("hello", token=token)
    assert await late.end() == 1013
    for _ in range(RESERVED):
        client = await door.stack.enter_async_context(WireClient.connect(door.place.socket))
        assert await client.ask("ping") == {"pong": True}
    assert (await door.admin.ask("daemon.status"))["clients"] == MAX_CONNECTIONS


async def test_clients_are_told_when_the_daemon_stops(tmp_path):
    env = {"ZOT_WEBSOCKET_LISTEN": "127.0.0.1:0"}
    async with serving(tmp_path, env) as where, WireClient.connect(where.socket) as admin:
        await admin.ask("hello", role="admin")
        url = (await admin.ask("daemon.status"))["websocket"]
        token = (await admin.ask("token.create", name="t", role="read"))["token"]
        async with visitor(url) as web, visitor(url) as silent:
            assert await web.upgrade() == 101
            await web.hello(token)
            await admin.ask("daemon.shutdown")
            assert await web.end() == 1001
            assert await silent.reader.read(1) == b""


# --- other URLs ---


async def test_healthz_needs_no_token_and_reveals_nothing(door):
    assert (await (await door.visitor()).request("/healthz"))[::2] == (200, "ok\n")


async def test_metrics_need_a_token_and_contain_no_names(door, token):
    await new_session(door.admin, door, name="a-name-that-nobody-may-read")
    reader = await door.token("prometheus", "read")
    code, headers, body = await (await door.visitor()).request("/metrics", Authorization=f"Bearer {reader}")
    assert (code, headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert "\nzotd_sessions 1.0\n" in body
    assert "\nzotd_connections_total 1.0\n" in body
    assert "a-name" not in body
    for header in ({}, {"Authorization": "Bearer zot_x"}, {"Authorization": f"Basic {reader}"}):
        assert (await (await door.visitor()).request("/metrics", **header))[0] == 401


async def test_a_token_for_one_session_cannot_read_metrics(door):
    guest = await door.token("guest", "read", session=await new_session(door.admin, door))
    assert (await (await door.visitor()).request("/metrics", Authorization=f"Bearer {guest}"))[0] == 403


async def test_the_page_is_served_unchanged(door):
    code, headers, body = await (await door.visitor()).request("/")
    assert (code, headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert body.startswith("<!doctype html>")


async def test_a_client_that_disconnects_at_any_point_leaves_nothing(door, token):
    before = (await door.admin.ask("daemon.metrics"))["descriptors"]
    for _ in range(10):
        member = await door.member(token)
        member.write(b"\x81")
        member.cut()
        (await door.stranger()).cut()
        half = await door.visitor()
        half.write(b"GET /v1 HT")
        half.cut()
    async with asyncio.timeout(60):
        while (await door.admin.ask("daemon.status"))["clients"] > 1:
            await door.admin.ask("ping")
        while (await door.admin.ask("daemon.metrics"))["descriptors"] > before:
            await door.admin.ask("ping")


async def test_a_close_frame_is_answered_with_its_code(door, token):
    web = await door.member(token)
    web.write(masked(CLOSE, (4001).to_bytes(2, "big") + b"bye"))
    with pytest.raises(ClosedError) as closed:
        await web.frame()
    assert closed.value.code == 4001
