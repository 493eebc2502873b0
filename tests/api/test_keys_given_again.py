"""Sending a key again that the daemon has lost in a restart."""

from contextlib import asynccontextmanager

from zotd.testing.live_daemon import serving
from zotd.testing.wire_client import WireClient

HERE = "http://127.0.0.1:9/v1"


@asynccontextmanager
async def daemon(tmp_path):
    async with serving(tmp_path) as place, WireClient.connect(place.socket) as client:
        await client.ask("hello", role="admin")
        yield place, client


async def made(place, client, **fields):
    options = {"cwd": str(place.cwd), "provider": "openai", "model": "m", "base_url": HERE, "env": {}}
    return (await client.ask("session.create", **options, **fields))["session"]["id"]


def again(key="k", **given_for):
    return {"api_key": key, "given_for": {"provider": "openai", "base_url": HERE} | given_for}


async def test_a_key_is_accepted_again_only_if_missing_and_for_the_same_destination(tmp_path):
    async with daemon(tmp_path) as (place, client):
        session = await made(place, client, secrets={"api_key": "k"})
        moved = await made(place, client, secrets={"api_key": "k"})
        keyless = await made(place, client)
        assert await client.refused("session.configure", session=session, secrets=again()) == "conflict"
        await client.ask("session.configure", session=moved, base_url="http://127.0.0.1:8/v1", secrets={"api_key": "l"})
    async with daemon(tmp_path) as (place, client):
        assert await client.refused("session.configure", session=session, name="x") == "blocked"
        for elsewhere in ({"base_url": None}, {"base_url": f"{HERE}/"}, {"provider": "anthropic"}):
            assert await client.refused("session.configure", session=session, secrets=again(**elsewhere)) == "conflict"
        for other in (moved, keyless):
            assert await client.refused("session.configure", session=other, secrets=again()) == "conflict"
        await client.ask("session.configure", session=session, secrets=again())
        await client.ask("session.configure", session=session, name="x")
        assert await client.refused("session.configure", session=session, secrets=again("l")) == "conflict"
