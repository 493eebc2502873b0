"""Frames that mean harm, and clients that are slow: what has no test where the frames are made."""

import asyncio
import json

import pytest

from tests.api.test_outbox import Full
from zotd.api.outbox import Outbox
from zotd.testing.script import text

AT_ONCE = 100

LARGE = 3 * 1024 * 1024
"""More than may wait for a client, less than a frame may have."""


@pytest.fixture
async def client(house):
    return await house.connect()


async def test_of_a_name_that_comes_twice_the_last_one_counts_and_gives_no_more_than_it_alone(client):
    client.write(b'{"type":"hello","id":1,"role":"admin","role":"read"}\n')
    assert (await client.frame())["success"]
    assert await client.refused("daemon.shutdown") == "forbidden"
    client.write(b'{"type":"daemon.shutdown","id":2,"type":"ping"}\n')
    assert (await client.frame())["data"] == {"pong": True}


async def test_an_unsolicited_answer_is_a_bad_request(client):
    client.write(b'{"type":"response","id":7,"command":"ping","success":true}\n')
    response = await client.frame()
    assert (response["code"], response["id"]) == ("bad_request", 7)
    assert await client.ask("ping") == {"pong": True}


async def test_two_requests_under_one_id_get_two_answers_under_it(client, house):
    create = {"type": "session.create", "id": 1, "cwd": str(house.cwd), "provider": "ollama", "model": "none"}
    client.write(json.dumps(create).encode() + b'\n{"type":"ping","id":1}\n')
    frames = [await client.frame(), await client.frame()]
    assert {(frame["id"], frame["command"], frame["success"]) for frame in frames} == {
        (1, "session.create", True),
        (1, "ping", True),
    }


async def test_one_request_that_comes_a_hundred_times_at_once_is_done_once(house, client):
    others = [client, *[await house.connect() for _ in range(3)]]
    fields = {"cwd": str(house.cwd), "provider": "ollama", "model": "none", "request_id": "made once"}
    sent = [(one, one.send("session.create", **fields)) for _ in range(AT_ONCE // len(others)) for one in others]
    answers = [await one.answer_to(request) for one, request in sent]
    assert all(answer["success"] for answer in answers)
    assert len({json.dumps(answer["data"]) for answer in answers}) == 1
    assert len((await client.ask("session.list"))["sessions"]) == 1


async def test_one_large_event_arrives_and_disconnects_no_client(house, model):
    talk = await house.create("openai", await model(text("fine")))
    await talk.run("x" * LARGE)
    late = await house.follow(talk.id, after={"epoch": talk.epoch, "seq": 0})
    for one in (talk, late):
        assert any(len(str(frame)) > LARGE for frame in one.client.seen)
        assert await one.client.ask("ping") == {"pong": True}


class Trickling(Full):
    """A transport whose peer reads a little of it now and then, and never enough that it asks for more."""


async def test_a_client_that_reads_a_trickle_is_disconnected():
    """Only a transport that is almost empty resumes: what a trickle takes out of it does not count."""
    cut: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    box = Outbox(Trickling(), cut=cut.set_result, stall_s=0.01)
    box.pause()
    async with asyncio.timeout(60):
        assert "the client read nothing" in await cut
    box.close()
