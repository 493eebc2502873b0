"""A daemon in the test's loop, and a client that sees every frame."""

from contextlib import AsyncExitStack

import pytest

from zotd.testing.live_daemon import serving
from zotd.testing.wire_client import WireClient


@pytest.fixture
async def place(tmp_path):
    async with serving(tmp_path) as where:
        yield where


@pytest.fixture
async def connect(place):
    """`await connect(**hello)`: another client; it says hello when it has something to say."""
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
    """A session's id; its provider needs no key, and nobody prompts it."""
    made = await client.ask("session.create", cwd=str(place.cwd), provider="ollama", model="none")
    return made["session"]["id"]
