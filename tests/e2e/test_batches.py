"""Batches in a real daemon with a file: each prompt is run in a session of its own, and has one result."""

import asyncio
import os
import signal
from contextlib import AsyncExitStack

import pytest

from tests.e2e.batch_house import opened, result, results, submit
from zotd.core.closings import INTERRUPTED
from zotd.testing.script import CallPart, Gate, ScriptedReply, TextPart, calls, text

BUSY = {"command": "echo x >> ran; echo > begun; read < go"}
"""Arguments of a command that runs until a test lets it end, and leaves a trace of each start."""


@pytest.fixture
async def batch_house(tmp_path, model):
    """`await batch_house(answer, ...)`: a daemon whose model answers like this."""
    async with AsyncExitStack() as stack:

        async def batch_house(*answers, **variables):
            return opened(stack, tmp_path, await model(*answers), **variables)

        yield batch_house


def prepare(house):
    """Make what the command reads and writes."""
    os.mkfifo(house.cwd / "go")
    os.mkfifo(house.cwd / "begun")


async def until_ran(house):
    """Wait until the command has begun."""
    async with asyncio.timeout(30):
        await asyncio.to_thread((house.cwd / "begun").read_text)


async def test_each_prompt_is_run_in_a_session_of_its_own_and_has_a_result(batch_house):
    house = await batch_house(lambda _: text("fine"))
    assert await submit(house, *"abcdef") == {"added": 6}
    found = await results(house, 6)
    assert sorted(one["number"] for one in found) == [1, 2, 3, 4, 5, 6]
    assert {(one["state"], one["text"], one["attempts"]) for one in found} == {("done", "fine", 1)}
    assert len({one["session"] for one in found}) == 6
    talk = await house.follow(found[0]["session"])
    assert (await talk.texts())[1] == ("assistant", ["fine"])
    client = await house.connect()
    assert await submit(house, *"abcdef", client=client) == {"added": 0, "known": 6}
    assert (await client.ask("batch.results", batch="b", after=6))["results"] == []
    (batch,) = (await client.ask("batch.list"))["batches"]
    assert (batch["id"], batch["waiting"], batch["running"], batch["ended"]) == ("b", 0, 0, 6)


async def test_no_more_prompts_run_at_once_than_the_daemon_has_places(batch_house):
    gate, asked = asyncio.Event(), asyncio.Semaphore(0)

    def answer(_):
        asked.release()
        return ScriptedReply([Gate(gate), TextPart("fine")])

    house = await batch_house(answer, ZOT_FLEET_PROMPTS_AT_ONCE="2")
    client = await house.connect()
    await submit(house, *"abcde", client=client)
    async with asyncio.timeout(30):
        for _ in range(2):
            await asked.acquire()
    (batch,) = (await client.ask("batch.list"))["batches"]
    assert (batch["waiting"], batch["running"]) == (3, 2)
    gate.set()
    await results(house, 5)


async def test_a_prompt_is_retried_in_a_new_session_as_often_as_it_may_be(batch_house):
    house = await batch_house(lambda _: text("never"))
    missing = str(house.cwd / "missing")
    await submit(house, "a", cwd=missing, retries=2)
    found = await result(house)
    assert (found["state"], found["attempts"]) == ("failed", 3)
    assert f"{missing} is not a directory" in found["error"]


async def test_a_run_that_takes_longer_than_its_limit_is_aborted(batch_house):
    house = await batch_house(calls(CallPart("bash", {"command": "sleep 600"})), text("never"))
    await submit(house, "a", limit_s=1, mode="yolo")
    found = await result(house)
    assert (found["state"], found["error"]) == ("failed", "aborted after 1 s, the limit of the prompt")


async def test_approvals_are_refused_because_no_person_is_there(batch_house):
    house = await batch_house(calls(CallPart("bash", {"command": "echo x > ran"})), text("It was refused."))
    await submit(house, "a", mode="ask")
    assert (await result(house))["text"] == "It was refused."
    assert not (house.cwd / "ran").exists()


async def test_a_prompt_goes_on_after_a_restart_where_it_was_stopped(batch_house):
    house = await batch_house(calls(CallPart("bash", BUSY)), text("all done"))
    prepare(house)
    await submit(house, "a", mode="yolo")
    await until_ran(house)
    house.restart(signal.SIGTERM)
    found = await result(house)
    assert (found["state"], found["text"], found["attempts"]) == ("done", "all done", 1)
    assert (house.cwd / "ran").read_text() == "x\n"


async def test_a_command_that_a_crash_has_cut_is_not_run_again_and_the_prompt_is_not_either(batch_house):
    house = await batch_house(calls(CallPart("bash", BUSY)), text("never"))
    prepare(house)
    await submit(house, "a", mode="yolo", retries=5)
    await until_ran(house)
    house.restart(signal.SIGKILL)
    found = await result(house)
    assert (found["state"], found["attempts"]) == ("unknown", 1)
    assert "bash was running when this run was cut off" in found["error"]
    assert (house.cwd / "ran").read_text() == "x\n"
    talk = await house.follow(found["session"])
    assert INTERRUPTED in str(await talk.texts())


async def test_a_reply_that_a_crash_has_cut_is_asked_for_again(batch_house):
    gate, asked = asyncio.Event(), asyncio.Event()

    def answer(_):
        is_first = not asked.is_set()
        asked.set()
        return ScriptedReply([Gate(gate), TextPart("never")]) if is_first else text("fine")

    house = await batch_house(answer)
    await submit(house, "a")
    async with asyncio.timeout(30):
        await asked.wait()
    house.restart(signal.SIGKILL)
    found = await result(house)
    assert (found["state"], found["text"], found["attempts"]) == ("done", "fine", 1)
    gate.set()


async def test_a_cancelled_batch_aborts_what_runs_and_ends_what_waits(batch_house):
    house = await batch_house(lambda _: calls(CallPart("bash", BUSY)), ZOT_FLEET_PROMPTS_AT_ONCE="1")
    prepare(house)
    client = await house.connect()
    await submit(house, *"abc", client=client, mode="yolo")
    await until_ran(house)
    assert await client.ask("batch.cancel", batch="b") == {"waiting": 2}
    found = await results(house, 3)
    assert {one["state"] for one in found} == {"cancelled"}
    assert await client.refused("batch.cancel", batch="none") == "not_found"


@pytest.mark.parametrize("command", ["abort", "session.close"])
async def test_a_run_that_a_person_aborts_is_not_retried(batch_house, command):
    house = await batch_house(calls(CallPart("bash", BUSY)), text("never"))
    prepare(house)
    await submit(house, "a", mode="yolo", retries=5)
    await until_ran(house)
    client = await house.connect()
    (session,) = (await client.ask("session.list"))["sessions"]
    await client.ask(command, session=session["id"])
    found = await result(house)
    assert (found["state"], found["error"], found["attempts"]) == ("failed", "aborted", 1)


async def test_a_prompt_whose_session_is_deleted_is_not_run_again(batch_house):
    house = await batch_house(calls(CallPart("bash", BUSY)), text("never"))
    prepare(house)
    await submit(house, "a", mode="yolo")
    await until_ran(house)
    client = await house.connect(client={"name": "test"}, role="admin")
    (session,) = (await client.ask("session.list"))["sessions"]
    await client.ask("session.delete", session=session["id"])
    found = await result(house)
    assert found["state"] == "failed"
    assert (house.cwd / "ran").read_text() == "x\n"


async def test_a_daemon_that_stops_when_it_is_idle_takes_no_more_prompts(batch_house):
    house = await batch_house(calls(CallPart("bash", BUSY)), text("one"), text("two"), ZOT_FLEET_PROMPTS_AT_ONCE="1")
    prepare(house)
    client = await house.connect(client={"name": "test"}, role="admin")
    await submit(house, "a", "b", client=client, mode="yolo")
    await until_ran(house)
    await client.ask("daemon.shutdown", when_idle=True)
    await asyncio.to_thread((house.cwd / "go").write_text, "\n")
    await asyncio.to_thread(house.daemon.end, 0)
    house.daemon.start()
    assert [one["text"] for one in await results(house, 2)] == ["one", "two"]


async def test_a_list_of_batches_has_a_limit_and_says_if_there_are_older_ones(batch_house):
    house = await batch_house(lambda _: text("fine"))
    client = await house.connect()
    for name in ("one", "two"):
        await submit(house, "a", batch=name, client=client, labels=["nowhere"])
    found = await client.ask("batch.list", limit=1)
    assert ([one["id"] for one in found["batches"]], found["more"]) == (["two"], True)
    found = await client.ask("batch.list", active=True, limit=2)
    assert ([one["id"] for one in found["batches"]], found.get("more", False)) == (["two", "one"], False)
    await client.ask("batch.cancel", batch="two")
    assert [one["id"] for one in (await client.ask("batch.list", active=True))["batches"]] == ["one"]
    for limit in (0, 1001):
        refusal = await client.answer("batch.list", limit=limit)
        assert refusal["error"] == "batch.list: limit must be from 1 to 1000"


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"cwd": "here"}, 'prompt 1: cwd must be an absolute path, not "here"'),
        ({"message": " "}, "prompt 1: the prompt is empty"),
        ({"retries": -1}, "prompt 1: retries are between 0 and 100"),
        ({"limit_s": 0}, "prompt 1: limit_s must be above 0"),
        ({"mode": "odd"}, 'prompt 1: unknown mode "odd"'),
        ({"number": -1}, "prompt 1: its number is not"),
    ],
)
async def test_a_prompt_that_no_daemon_could_run_is_refused_with_its_number(batch_house, fields, sentence):
    house = await batch_house(text("never"))
    client = await house.connect()
    order = {"number": 1, "message": "a", "cwd": str(house.cwd), **fields}
    refusal = await client.answer("batch.submit", batch="b", prompts=[order])
    assert refusal["error"].startswith(sentence.replace("prompt 1", f"prompt {order['number']}"))
    assert (await client.ask("batch.list"))["batches"] == []


@pytest.mark.parametrize("after", [-1, 2**53 + 1, 2**64])
async def test_results_behind_a_place_that_no_result_can_have_are_refused(batch_house, after):
    house = await batch_house(text("fine"))
    answer = await (await house.connect()).answer("batch.results", batch="b", after=after)
    assert (answer["code"], answer["error"].startswith("after is between 0 and")) == ("bad_request", True)
