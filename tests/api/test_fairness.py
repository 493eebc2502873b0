"""A client with many requests delays others little, and the memory for its requests is bounded."""

import asyncio
import base64
import json

import pytest

from zotd.api.repeats import MAX_BYTES
from zotd.testing.model_server import ModelServer
from zotd.testing.script import text

MANY = 150
"""More than `BETWEEN` for each of the 20 pings, so the greedy client still has requests left at the last ping."""

BETWEEN = 6
"""Responses to the greedy client between two to another one: as many as fit into the loop iterations of a ping."""


async def large(client, place):
    """A session with 14 MB in one message."""
    png = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(3_400_000)).decode()
    async with ModelServer([text("seen")]) as server:
        given = {"provider": "openai", "model": "m", "base_url": server.openai_url, "secrets": {"api_key": "k"}}
        session = (await client.ask("session.create", cwd=str(place.cwd), **given))["session"]["id"]
        await client.ask("attach", session=session)
        await client.ask(
            "prompt", session=session, message="look", images=[{"mime_type": "image/png", "data": png}] * 3
        )
        await client.until("done")
    await client.ask("detach", session=session)
    return session


@pytest.mark.parametrize(
    "command", [{"type": "get_messages", "full": True}, {"type": "complete", "kind": "model", "text": "gpt"}]
)
async def test_many_requests_of_one_client_hardly_delay_others(connect, place, command):
    person = await connect()
    session = await large(person, place)
    greedy = await connect(role="read")
    order: list[str] = []
    line = json.dumps({"id": "x", "session": session, **command}).encode() + b"\n"
    greedy.write(line * MANY)

    async def read_all():
        for _ in range(MANY):
            await greedy.frame()
            order.append("greedy")

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(read_all(), name="the answers of the greedy one")
        for _ in range(20):
            await person.ask("ping")
            order.append("person")
    gaps = "".join("p" if who == "person" else "g" for who in order).strip("g").split("p")
    assert max(map(len, gaps)) <= BETWEEN, gaps


async def test_many_remote_clients_delay_others_no_more_than_one(door):
    person = door.admin
    session = await large(person, door.place)
    token = await door.token("readers", "read")
    readers = [await door.member(token) for _ in range(20)]
    order: list[str] = []

    async def read_all(reader):
        for _ in range(10):
            await reader.ask("get_messages", session=session, full=True)
            order.append("greedy")

    async with asyncio.TaskGroup() as tasks:
        for reader in readers:
            tasks.create_task(read_all(reader), name="a greedy one")
        for _ in range(20):
            await person.ask("ping")
            order.append("person")
    gaps = "".join("p" if who == "person" else "g" for who in order).strip("g").split("p")
    assert max(map(len, gaps)) <= BETWEEN, gaps


async def test_a_reload_of_all_extensions_is_remembered_like_any_request(connect, caplog):
    client = await connect(role="submit")
    first = await client.answer("ext.reload", request_id="r")
    again = await client.answer("ext.reload", request_id="r")
    assert first["success"], first
    assert (again["data"], again["success"]) == (first["data"], True)
    large = "r" * (MAX_BYTES // 3)
    for number in range(4):
        await client.ask("ext.reload", request_id=f"{number}{large}")
    assert (await client.answer("ext.reload", request_id="r", name="another")).get(
        "code"
    ) != "duplicate_key"  # forgotten
    assert "Traceback" not in caplog.text
