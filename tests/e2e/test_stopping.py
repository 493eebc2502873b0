"""A daemon that stops when that cuts nothing, or leaves by itself when nobody needs it."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from tests.e2e.conftest import House
from tests.e2e.shop import Shop
from tests.e2e.test_call_tool import nest, nested
from zotd.app import Daemon, prepare
from zotd.testing.live_daemon import place
from zotd.testing.script import CallPart, calls, text

WRITE = calls(CallPart("write", {"path": "a.txt", "content": "one\n"})), text("written")


async def stop_when_idle(house):
    admin = await house.connect(role="admin")
    await admin.ask("daemon.shutdown", when_idle=True)


async def allow(talk, asked):
    about = {"approval": asked["approval"], "args_digest": asked["args_digest"], "decision": "allow"}
    await talk.ask("approve", **about)


async def asked_by(talk):
    await talk.ask("prompt", message="go")
    return (await talk.until("approval_requested"))[-1]


async def test_it_stops_beside_a_question_which_the_next_one_still_asks(process, model):
    client = await process.connect(can_approve=True)
    server = await model(*WRITE)
    talk = await process.create(
        "ollama", None, client, provider="ollama", model="m", base_url=server.openai_url, secrets=None, mode="ask"
    )
    asked = await asked_by(talk)
    await stop_when_idle(process)
    assert process.daemon.wait() == 0
    process.daemon.start()
    again = await process.follow(talk.id, await process.connect(can_approve=True))
    assert [one["approval"] for one in again.snapshot["approvals"]] == [asked["approval"]]
    await allow(again, asked)
    await again.until("done")
    assert (process.cwd / "a.txt").read_text() == "one\n"


async def test_it_waits_for_a_call_of_an_extension_that_needs_an_approval(process, model, results):
    """Its tool runs, and would be cut: a later decision would have no effect."""
    shop = Shop(process)
    (process.place.home / "config.toml").write_text('[[rules]]\ntool = "outer"\naction = "allow"\n')
    nest(shop, "outer")
    process.restart(15)
    client = await process.connect(can_approve=True)
    server = await model(
        calls(CallPart("outer", nested("write", args={"path": "a.txt", "content": "x"}))), text("done")
    )
    talk = await shop.open(server, client=client, mode="ask")
    asked = await asked_by(talk)
    await stop_when_idle(process)
    await allow(talk, asked)
    await talk.until("done")
    assert process.daemon.wait() == 0
    assert "a.txt" in results(server.requests[1])[0]


@pytest.fixture
async def stack():
    async with AsyncExitStack() as made:
        yield made


async def test_an_autostarted_one_does_not_leave_a_question_before_its_deadline(tmp_path, model, stack):
    where = place(tmp_path)
    where.home.mkdir(0o700)
    (where.home / "config.toml").write_text("[approval]\nttl_s = 4\n[limits]\nidle_exit_s = 2\n")
    server = await model(*WRITE)
    daemon = Daemon(prepare(where.env, autostarted=True, flags={}))
    ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(daemon.run(ready), name="daemon")
        await ready
        client = await House(stack, where).connect(can_approve=True)
        options = {"provider": "ollama", "model": "m", "base_url": server.openai_url, "mode": "ask"}
        session = (await client.ask("session.create", cwd=str(where.cwd), **options))["session"]["id"]
        await client.ask("attach", session=session)
        await client.ask("prompt", session=session, message="go")
        await client.until("approval_requested")
        client.cut()
        await server.received(2)
    assert "there was no decision within 4 s" in str(server.requests[1].messages)
