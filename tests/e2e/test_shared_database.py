"""Several daemons whose sessions are in one database: each has its own, and others go on with those of one that has ended."""

import asyncio
import os
import signal
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from tests.e2e.conftest import House
from tests.e2e.fleet import FAILOVER_S, name_of, number_of, output_of, row
from zotd.core.closings import INTERRUPTED
from zotd.testing.live_daemon import DaemonProcess
from zotd.testing.script import CallPart, calls, text

BUSY = {"command": "echo x >> ran; echo started; read < go"}
"""Arguments of a command that runs until a test lets it end, and leaves a trace of each start."""


@pytest.fixture
async def houses(database, tmp_path):
    """Two daemons with homes of their own."""
    async with AsyncExitStack() as stack:

        def made(name):
            (tmp_path / name).mkdir()
            daemon = stack.enter_context(
                DaemonProcess(tmp_path / name, {"ZOT_JOURNAL_URL": database, "ZOT_LIMITS_DRAIN_S": "60"})
            )
            return House(stack, daemon.place, daemon)

        yield made("one"), made("two")


async def listed(house, key):
    """A session as another client of this daemon sees it in the list."""
    client = await house.connect()
    (found,) = [one for one in (await client.ask("session.list"))["sessions"] if one["id"] == key]
    return found


async def until_owned(database, key, number):
    """Wait until the session belongs to the daemon with this number, or to none."""

    def wait():
        with psycopg.connect(database, autocommit=True) as watch:
            while watch.execute("SELECT owner FROM sessions WHERE id = %s", (key,)).fetchone() != (number,):
                pass  # the server does not report it

    async with asyncio.timeout(FAILOVER_S):
        await asyncio.to_thread(wait)


async def started(talk, house):
    """Have the session run the command until the test ends it."""
    os.mkfifo(house.cwd / "go")
    await talk.ask("prompt", message="go")
    await talk.until("tool_progress")


async def test_a_session_of_another_daemon_is_listed_with_its_state_and_refused_with_the_name_of_its_daemon(
    houses, talk_in
):
    one, two = houses
    talk = await talk_in(one, calls(CallPart("bash", BUSY)), text("done"))
    await started(talk, one)
    found = await listed(two, talk.id)
    assert (found["state"], found["daemon"]) == ("running", name_of(one))
    assert "daemon" not in await listed(one, talk.id)
    table = await output_of(two, "zotctl", "sessions")
    assert f"running at {name_of(one)}" in table
    client = await two.connect()
    refusal = await client.answer("attach", session=talk.id)
    assert refusal["code"] == "conflict"
    assert refusal["error"] == (
        f"session {talk.id} is open in the daemon {name_of(one)}; use that one, or close the session there"
    )
    (one.cwd / "go").write_text("\n")
    await talk.until("done")


async def test_a_session_that_was_closed_goes_on_in_another_daemon_with_the_same_cursor(houses, database, talk_in):
    one, two = houses
    talk = await talk_in(one, *[text("fine")] * 2)
    await talk.run("first")
    cursor = {"epoch": talk.epoch, "seq": max(frame.get("seq") or 0 for frame in talk.client.seen)}
    await talk.ask("detach")
    await talk.client.ask("session.close", session=talk.id)
    await until_owned(database, talk.id, None)  # closing goes on after the answer
    moved = await two.follow(talk.id, after=cursor)
    assert moved.snapshot["mode"] == "resumed"
    await moved.run("second")
    assert [words for role, words in await moved.texts() if role == "user"] == [["first"], ["second"]]


async def test_a_daemon_that_is_stopped_leaves_its_sessions_at_once(houses, talk_in):
    one, two = houses
    talk = await talk_in(one, *[text("fine")] * 2)
    await talk.run("first")
    one.daemon.end()
    moved = await two.follow(talk.id)
    await moved.run("second")


async def test_the_run_of_a_killed_daemon_waits_in_another_one_and_its_command_is_not_repeated(
    houses, database, talk_in
):
    one, two = houses
    talk = await talk_in(one, calls(CallPart("bash", BUSY)), text("It was cut."))
    await started(talk, one)
    one.daemon.end(signal.SIGKILL)
    await until_owned(database, talk.id, number_of(database, two))
    moved = await two.follow(talk.id)
    assert (moved.snapshot["session"]["state"], moved.snapshot["held"]) == ("held", True)
    await moved.ask("run_command", name="continue")
    await moved.until("done")
    assert INTERRUPTED in str((await moved.texts())[2])
    assert (one.cwd / "ran").read_text() == "x\n"

    one.daemon.start()  # and does not take back what another daemon has
    client = await one.connect()
    assert (await client.answer("attach", session=talk.id))["code"] == "conflict"
    fresh = await talk_in(one, text("fine"))
    await fresh.run("new")


async def test_a_daemon_that_was_paused_for_longer_than_its_lease_ends_what_it_did_and_stores_nothing(
    houses, database, talk_in
):
    one, two = houses
    talk = await talk_in(one, calls(CallPart("bash", BUSY)), text("It was cut."))
    await started(talk, one)
    os.kill(one.daemon.pid, signal.SIGSTOP)
    try:
        await until_owned(database, talk.id, number_of(database, two))
        moved = await two.follow(talk.id)
        await moved.ask("run_command", name="continue")
        await moved.until("done")
        before = row(database, "SELECT records FROM sessions WHERE id = %s", talk.id)
    finally:
        os.kill(one.daemon.pid, signal.SIGCONT)
    (evicted,) = [event for event in await talk.until("evicted") if event["type"] == "evicted"]
    assert f"is open in the daemon {name_of(two)}" in evicted["reason"]
    late = await one.connect()
    assert await late.refused("prompt", session=talk.id, message="late") == "conflict"
    assert row(database, "SELECT records FROM sessions WHERE id = %s", talk.id) == before
    assert (one.cwd / "ran").read_text() == "x\n"
    fresh = await talk_in(one, text("fine"))
    await fresh.run("new")
    assert row(database, "SELECT owner FROM sessions WHERE id = %s", fresh.id) == (number_of(database, one),)


async def test_the_timers_of_a_killed_daemon_fire_once_in_another_one(houses, database, talk_in):
    one, two = houses
    talk = await talk_in(one, text("fired"))
    due = datetime.now(UTC) + timedelta(seconds=10)  # it is killed before, also on a busy machine
    await talk.client.ask("timer.add", session=talk.id, message="wake up", at=f"{due:%FT%TZ}")
    one.daemon.end(signal.SIGKILL)
    await until_owned(database, talk.id, number_of(database, two))
    moved = await two.follow(talk.id)
    while (await moved.state()) != "idle":
        await moved.client.event()
    assert await moved.texts() == [("user", ["wake up"]), ("assistant", ["fired"])]
    assert row(database, "SELECT count(*) FROM timers") == (0,)


async def test_what_runs_goes_on_in_another_daemon_at_the_end_of_its_step_when_its_daemon_is_drained(
    houses, database, talk_in
):
    one, two = houses
    talk = await talk_in(one, calls(CallPart("bash", BUSY)), text("all done"))
    await started(talk, one)
    async with asyncio.TaskGroup() as tasks:
        drained = tasks.create_task(output_of(one, "zotctl", "drain"))
        while (await talk.client.ask("daemon.status"))["state"] != "stopping":
            pass
        (one.cwd / "go").write_text("\n")
    assert drained.result() == f"zotd has stopped; what ran goes on in {name_of(two)}\n"
    moved = await two.follow(talk.id)
    while (await moved.state()) != "idle":
        await moved.client.event()
    roles, words = zip(*await moved.texts(), strict=True)
    assert (roles, words[-1]) == (("user", "assistant", "tool", "assistant"), ["all done"])
    assert INTERRUPTED not in str(words)
    assert (one.cwd / "ran").read_text() == "x\n"


async def test_a_daemon_is_not_drained_when_no_other_one_could_go_on(houses):
    one, two = houses
    two.daemon.end()
    client = await one.connect(client={"name": "test"}, role="admin")
    refusal = await client.answer("daemon.drain")
    assert refusal["code"] == "conflict"
    assert refusal["error"].startswith("no other daemon has the same journal")
    assert (await client.ask("daemon.status"))["state"] == "running"
