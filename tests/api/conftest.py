"""A daemon in the test's event loop, and clients that see every frame."""

from contextlib import AsyncExitStack

import pytest

from tests.api.web import stranger, visitor
from zotd.testing.live_daemon import serving
from zotd.testing.wire_client import WireClient


@pytest.fixture
async def place(tmp_path):
    async with serving(tmp_path) as where:
        yield where


@pytest.fixture
async def connect(place):
    """`await connect(**hello)`: another client; it sends a hello if there are arguments."""
    async with AsyncExitStack() as stack:

        async def connect(**hello):
            client = await stack.enter_async_context(WireClient.connect(place.socket))
            if hello:
                await client.ask("hello", **hello)
            return client

        yield connect


@pytest.fixture
async def client(connect):
    return await connect()


@pytest.fixture
async def session(client, place):
    """Id of a session whose provider needs no key, and which gets no prompts."""
    made = await client.ask("session.create", cwd=str(place.cwd), provider="ollama", model="none")
    return made["session"]["id"]


class Door:
    """A daemon with a WebSocket door, and an admin client on its Unix socket."""

    def __init__(self, stack, place, admin, url):
        self.stack = stack
        self.place = place
        self.admin = admin
        self.url = url

    async def token(self, name="tests", role="admin", **fields):
        return (await self.admin.ask("token.create", name=name, role=role, **fields))["token"]

    async def local(self):
        """A client on the Unix socket that has not sent a hello."""
        return await self.stack.enter_async_context(WireClient.connect(self.place.socket))

    async def visitor(self, **options):
        return await self.stack.enter_async_context(visitor(self.url, **options))

    async def stranger(self, **options):
        return await self.stack.enter_async_context(stranger(self.url, **options))

    async def member(self, token, **hello):
        web = await self.stranger()
        await web.hello(token, **hello)
        return web


@pytest.fixture
async def door(tmp_path):
    async with serving(tmp_path, {"ZOT_WEBSOCKET_LISTEN": "127.0.0.1:0"}) as place, AsyncExitStack() as stack:
        admin = await stack.enter_async_context(WireClient.connect(place.socket))
        await admin.ask("hello", role="admin")
        yield Door(stack, place, admin, (await admin.ask("daemon.status"))["websocket"])


@pytest.fixture
async def token(door):
    return await door.token()


@pytest.fixture
async def member(door, token):
    return await door.member(token, role="admin")
