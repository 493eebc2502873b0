"""Batches that several daemons of a database work through: each prompt has one result, whichever daemons end meanwhile."""

import asyncio
import json
import os
import signal
import socket
from contextlib import AsyncExitStack
from types import SimpleNamespace

import pytest

from tests.e2e.batch_house import opened, result, results, submit
from tests.e2e.fleet import name_of, printed_by, row, until
from zotd.testing import warm
from zotd.testing.script import CallPart, Gate, ScriptedReply, TextPart, calls, text

BUSY = {"command": "echo x >> ran; echo > begun; read < go"}
"""Arguments of a command that runs until a test lets it end, and leaves a trace of each start."""


@pytest.fixture
async def open_as(database, tmp_path, model):
    """`await open_as(name, server)`: a daemon of the database with this model."""
    async with AsyncExitStack() as stack:

        def open_as(name, server, **variables):
            given = {"ZOT_JOURNAL_URL": database, "ZOT_LIMITS_DRAIN_S": "60", **variables}
            return opened(stack, tmp_path / name, server, **given)

        yield open_as


async def until_ran(house):
    async with asyncio.timeout(30):
        await asyncio.to_thread((house.cwd / "begun").read_text)


async def test_all_daemons_work_and_any_of_them_has_all_results(open_as, model, database):
    gate = asyncio.Event()
    server = await model(lambda _: ScriptedReply([Gate(gate), TextPart("fine")]))
    one, two = (open_as(name, server, ZOT_FLEET_PROMPTS_AT_ONCE="2") for name in ("one", "two"))
    await submit(one, *"abcdef")
    await until(database, "SELECT count(*) = 4 FROM batch_prompts WHERE state = 'running'")
    per_daemon = (
        "SELECT count(*) = 2 FROM batch_prompts JOIN daemons ON daemons.number = daemon WHERE daemons.name = %s"
    )
    assert row(database, per_daemon, name_of(two)) == (True,)
    gate.set()
    found = await results(two, 6)
    assert found == await results(one, 6)
    assert {one["state"] for one in found} == {"done"}


async def test_prompts_of_a_killed_daemon_go_on_in_another_one_and_each_has_one_result(open_as, model, database):
    gate = asyncio.Event()
    server = await model(lambda _: ScriptedReply([Gate(gate), TextPart("fine")]))
    one, two = (open_as(name, server) for name in ("one", "two"))
    await submit(one, *(f"task {n}" for n in range(12)))
    await until(database, "SELECT count(*) = 8 FROM batch_prompts WHERE state = 'running'")
    one.daemon.end(signal.SIGKILL)
    gate.set()
    found = await results(two, 12)
    assert sorted(one["number"] for one in found) == list(range(1, 13))
    assert {(one["state"], one["text"], one["attempts"]) for one in found} == {("done", "fine", 1)}
    assert row(database, "SELECT count(*) FROM sessions") == (12,)


async def test_a_command_of_a_killed_daemon_is_not_run_again_by_another_one(open_as, model):
    server = await model(calls(CallPart("bash", BUSY)), text("never"))
    one = open_as("one", server)
    for name in ("go", "begun"):
        os.mkfifo(one.cwd / name)
    await submit(one, "a", mode="yolo", retries=3)
    await until_ran(one)
    two = open_as("two", server)
    one.daemon.end(signal.SIGKILL)
    found = await result(two)
    assert (found["state"], found["attempts"]) == ("unknown", 1)
    assert (one.cwd / "ran").read_text() == "x\n"


async def test_a_prompt_goes_on_in_the_daemon_that_gets_its_session_from_one_that_is_drained(open_as, model):
    server = await model(calls(CallPart("bash", BUSY)), text("all done"))
    one = open_as("one", server)
    for name in ("go", "begun"):
        os.mkfifo(one.cwd / name)
    await submit(one, "a", mode="yolo")
    await until_ran(one)
    two = open_as("two", server)
    client = await one.connect(client={"name": "test"}, role="admin")
    await client.ask("daemon.drain")
    await asyncio.to_thread((one.cwd / "go").write_text, "\n")
    found = await result(two)
    assert (found["state"], found["text"], found["attempts"]) == ("done", "all done", 1)
    assert (one.cwd / "ran").read_text() == "x\n"


async def test_a_paused_daemon_stores_no_result_when_it_comes_back(open_as, model, database):
    gate = asyncio.Event()
    server = await model(lambda _: ScriptedReply([Gate(gate), TextPart("fine")]))
    one = open_as("one", server)
    await submit(one, "a")
    await until(database, "SELECT count(*) = 1 FROM sessions WHERE state = 'running'")
    two = open_as("two", server)
    os.kill(one.daemon.pid, signal.SIGSTOP)
    try:
        query = "SELECT count(*) = 1 FROM batch_prompts JOIN daemons ON daemons.number = daemon WHERE daemons.name = %s"
        await until(database, query, name_of(two))
        gate.set()
        found = await results(two, 1)
    finally:
        os.kill(one.daemon.pid, signal.SIGCONT)
    await submit(two, "b", batch="next", labels=["none"])
    client = await one.connect()
    async with asyncio.timeout(60):
        while not await client.ask("batch.list"):
            pass
    assert await results(one, 1) == found
    assert row(database, "SELECT ended FROM batches WHERE id = 'b'") == (1,)


async def test_prompts_wait_for_a_daemon_with_their_labels(open_as, model, database):
    server = await model(lambda _: text("fine"))
    plain = open_as("plain", server)
    await submit(plain, "a", labels=["gpu", "big"])
    await submit(plain, "b", batch="any")
    await results(plain, 1, "any")
    assert row(database, "SELECT state FROM batch_prompts WHERE batch = 'b'") == ("waiting",)
    client = await plain.connect()
    waiting = (await client.ask("fleet.list"))["waiting"]
    assert waiting == [{"labels": ["big", "gpu"], "prompts": 1, "daemons": 0}]
    large = open_as("large", server, ZOT_FLEET_LABELS="gpu big more")
    assert (await result(plain))["state"] == "done"
    await until(database, "SELECT labels LIKE '%%more%%' FROM daemons WHERE name = %s", name_of(large))
    daemons = (await client.ask("fleet.list"))["daemons"]
    here = f"place:{socket.gethostname()}"
    assert [one["labels"] for one in daemons] == [[here], ["big", "gpu", "more", here]]


async def test_prompts_are_run_at_the_place_that_they_name(open_as, model, database):
    far = open_as("far", await model(lambda _: text("far")), ZOT_FLEET_PLACE="box2")
    near = open_as("near", await model(lambda _: text("near")), ZOT_FLEET_PLACE="box1")
    await until(database, "SELECT labels LIKE '%%box1%%' FROM daemons WHERE name = %s", name_of(near))
    await submit(far, "a", labels=["place:box1"])
    assert (await result(far))["text"] == "near"


async def test_a_single_prompt_is_run_by_a_daemon_that_has_its_labels(open_as, model, database):
    plain = open_as("plain", await model(lambda _: text("never")))
    large = open_as("large", await model(lambda _: text("fine")), ZOT_FLEET_LABELS="gpu")
    await until(database, "SELECT labels LIKE '%%gpu%%' FROM daemons WHERE name = %s", name_of(large))
    flags = ("-p", "--fleet", "--label", "gpu", "--cwd", str(large.cwd), "hello")
    assert await printed_by(plain, "zotd.cli", *flags) == (0, "fine\n", "")


async def test_results_are_awaited_also_while_the_database_is_away(open_as, server):
    house = open_as("one", SimpleNamespace(openai_url="http://127.0.0.1:9"))
    await submit(house, "a", labels=["nowhere"])
    client = await house.connect()
    server.kill()
    command = warm.command("zotctl", "fleet", "results", "b")
    pipe = asyncio.subprocess.PIPE
    waiting = await asyncio.create_subprocess_exec(*command, env=house.place.env, stdout=pipe, stderr=pipe)
    async with asyncio.timeout(60):
        while (await client.ask("daemon.status"))["clients"] < 2:
            pass
        assert await client.refused("batch.list") == "storage_blocked"
        server.start()
        while not (await client.answer("batch.cancel", batch="b"))["success"]:
            pass
        out, err = await waiting.communicate()
    assert (waiting.returncode, err) == (1, b"")
    assert json.loads(out)["state"] == "cancelled"
