"""A disk that is full, or fails: nothing is acknowledged that is not stored, and sessions come back by themselves."""

import asyncio
import errno
import json
import os
import sqlite3
import subprocess
from contextlib import AsyncExitStack, closing, contextmanager

import pytest

from tests.e2e.conftest import House
from tests.e2e.limits import Limit
from zotd.testing.live_daemon import DaemonProcess
from zotd.testing.script import Gate, ScriptedReply, TextPart, text

BURST = 12


@pytest.fixture
def limit(process):
    return Limit(process.daemon)


def notices(frames):
    return [(frame["level"], frame["text"]) for frame in frames if frame["type"] == "notice"]


async def answered(client, request):
    """The response to one of many requests; a prompt that starts is answered after one that waits."""
    while True:
        for frame in client.seen:
            if frame["type"] == "response" and frame.get("id") == request:
                return frame
        await client.frame()


async def until_stored_again(talk):
    """Everything up to the word that the session goes on; nobody sends a command."""
    frames: list[dict[str, object]] = []
    while ("info", "the journal can be written again; the session continues from what is stored") not in notices(
        frames
    ):
        frames.append(await talk.client.event())
    return frames


def inputs(database):
    """What the database knows as accepted, by the words."""
    with closing(sqlite3.connect(database)) as connection:
        bodies = connection.execute("SELECT body FROM records WHERE kind = 'input'").fetchall()
    return {json.loads(body)["content"][0]["text"] for (body,) in bodies}


async def test_while_nothing_can_be_stored_the_status_warns_and_the_log_has_one_line(process, model, limit):
    talk = await process.create("openai", await model(*[text("fine")] * 2))
    await talk.run("before")
    limit.set(len(process.daemon.log.encode()) + 4096)  # room for lines, and for no commit
    assert await talk.refused("prompt", message="lost") == "storage_blocked"
    for _ in range(3):  # each is a trial
        assert await talk.refused("session.rename", name="lost") == "storage_blocked"
    (warning,) = (await talk.ask("daemon.status"))["warnings"]
    assert warning.startswith("nothing is stored: the journal could not be written")
    limit.lift()
    await until_stored_again(talk)
    assert (await talk.ask("daemon.status"))["warnings"] == []
    log = process.daemon.log
    assert log.count("retrying until it succeeds") == 1
    assert "Traceback" not in log


async def test_a_blocked_session_says_so_and_comes_back_without_a_command(process, model, limit, look):
    server = await model(*[text("fine")] * 4)
    talk = await process.create("openai", server)
    watcher = await process.connect()
    await watcher.ask("subscribe", topics=["sessions"])
    await talk.run("before")
    limit.set()
    assert await talk.refused("prompt", message="lost") == "storage_blocked"
    assert await talk.refused("session.rename", name="lost") == "storage_blocked"
    late = await process.follow(talk.id)
    assert late.snapshot["session"]["state"] == "blocked"
    assert [look.words(message["content"]) for message in late.snapshot["messages"]] == [["before"], ["fine"]]
    assert [level for level, _ in notices(late.client.seen)] == ["error"]
    assert [one["state"] for one in (await watcher.ask("session.list"))["sessions"]] == ["blocked"]
    assert (await watcher.ask("daemon.status"))["state"] == "running"

    limit.lift()
    for one in (talk, late):
        await until_stored_again(one)
    states = [event["state"] for event in watcher.seen if event["type"] == "session_updated"]
    while states[-1] != "idle":
        states.append((await watcher.until("session_updated"))[-1]["state"])
    assert "blocked" in states
    assert look.only(await talk.run("after"), "done")
    assert inputs(process.place.home / "zot.db") == {"before", "after"}


async def test_a_run_that_could_not_be_stored_is_closed_as_after_a_crash_and_what_waits_is_held(
    process, model, limit, look
):
    go = asyncio.Event()
    server = await model(ScriptedReply([TextPart(["Once "]), Gate(go), TextPart(["upon"])]), *[text("fine")] * 4)
    talk = await process.create("openai", server)
    await talk.ask("prompt", message="first")
    await talk.until("text_delta")
    waits = await talk.ask("prompt", message="second")
    limit.set()
    go.set()
    while not any(level == "error" for level, _ in notices(talk.client.seen)):
        await talk.client.event()
    limit.lift()
    frames = await until_stored_again(talk)
    assert [event["what"] for event in look.only(frames, "interrupted")][-1:] == ["run"]
    assert len(look.only(frames, "done")) == 1
    seqs = [frame["seq"] for frame in talk.client.seen if frame.get("seq") and frame["type"] != "replay_complete"]
    assert seqs == list(range(1, len(seqs) + 1))
    late = await process.follow(talk.id)
    assert late.snapshot["session"]["state"] == "held"
    assert [item["id"] for item in late.snapshot["queue"]] == [waits["input"]]
    assert len(server.requests) == 1


async def test_a_session_that_fails_takes_no_other_with_it(process, model, limit):
    """One writes more than there is room for, the other little."""
    server = await model(*[text("fine")] * 8)
    large = await process.create("openai", server)
    small = await process.create("openai", server)
    log = process.place.home / "zot.db-wal"
    limit.set(log.stat().st_size + 500_000)
    assert await large.refused("prompt", message="x" * 1_000_000) == "storage_blocked"
    assert (await small.run("fits"))[-1]["type"] == "done"
    await until_stored_again(large)
    assert (await large.run("fits too"))[-1]["type"] == "done"


async def test_whatever_the_disk_does_exactly_the_accepted_input_is_stored(process, model, limit):
    server = await model(lambda _: text("fine"))
    talks = [await process.create("openai", server) for _ in range(3)]
    answers: dict[str, dict[str, object]] = {}
    for change in (None, limit.set, None, limit.lift, None):
        if change is not None:
            change()
        sent = [(talk, f"{talk.id} {len(answers)} {n}") for n in range(BURST) for talk in talks]
        asked = [(talk, words, talk.send("prompt", message=words)) for talk, words in sent]
        for talk, words, request in asked:
            answers[words] = await answered(talk.client, request)
    process.daemon.end()
    stored = inputs(process.place.home / "zot.db")
    accepted = {words for words, answer in answers.items() if answer["success"]}
    refused = {answer["code"] for answer in answers.values() if not answer["success"]}
    assert accepted == stored
    assert refused == {"storage_blocked"}
    assert len(accepted) >= 3 * BURST


@contextmanager
def small_disk(path):
    """A file system of 4 MiB."""
    path.mkdir(mode=0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m,mode=700", "tmpfs", path], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", path], check=True)


def fill(path):
    with path.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError as error:
            assert error.errno == errno.ENOSPC  # noqa: PT017  (it is reached: nothing else ends the loop)


async def test_a_disk_that_is_really_full_is_the_same(tmp_path, model):
    if os.geteuid() != 0:
        return  # only root can make a disk; the tests above have another way, and tests/store has a third one
    home = tmp_path / "zot"
    async with AsyncExitStack() as stack:
        stack.enter_context(small_disk(home))
        daemon = stack.enter_context(DaemonProcess(tmp_path))
        house = House(stack, daemon.place, daemon)
        talk = await house.create("openai", await model(*[text("fine")] * 3))
        await talk.run("before")
        fill(home / "ballast")
        answer = await talk.client.answer("prompt", session=talk.id, message="x" * 200_000)
        assert answer["code"] == "storage_blocked"
        assert "disk is full" in answer["error"]
        assert (await talk.client.ask("daemon.status"))["state"] == "running"
        (home / "ballast").unlink()
        await until_stored_again(talk)
        assert (await talk.run("after"))[-1]["type"] == "done"
        assert inputs(home / "zot.db") == {"before", "after"}
