"""Timers in a real daemon: what is due is sent once, over crashes and clocks that jump, and people see and stop it."""

import asyncio
import sys
import time
from contextlib import AsyncExitStack

import pytest

from tests.e2e.conftest import House
from tests.e2e.timed_site import NINE, Site, ended, said, timer_of
from zotd.app import Daemon, prepare
from zotd.clock import rfc3339
from zotd.sessions.timers import MAX_OF_SESSION, POINTS
from zotd.testing.live_daemon import DaemonProcess, place
from zotd.testing.script import CallPart, Gate, ScriptedReply, TextPart, calls, text
from zotd.wire.content import Tokens

HOUR_S = 3600.0
DAY_S = 24 * HOUR_S

QUARTER = Tokens(input=100_000)
"""What a request takes that costs a quarter of a dollar."""

DAILY = {"cron": "0 10 * * *", "tz": "UTC"}


@pytest.fixture
async def site(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    async with AsyncExitStack() as stack:
        yield Site(stack, tmp_path)


async def test_a_prompt_is_sent_when_it_is_due_and_again_the_next_day(site, model):
    talk = await site.start(await model(text("one"), text("two")))
    timer = await talk.ask("timer.add", message="check the CI", **DAILY)
    assert (timer["state"], timer["due"], timer["rule"]) == ("active", rfc3339(NINE + HOUR_S), "0 10 * * * (UTC)")
    for day in (0, 1):
        site.now = NINE + day * DAY_S + HOUR_S
        await talk.ask("timer.list")
        await ended(talk)
    assert await said(talk) == ["check the CI"] * 2
    timer = await timer_of(talk.client, timer["id"], fired=2)
    assert (timer["due"], timer["last_session"]) == (rfc3339(NINE + 2 * DAY_S + HOUR_S), talk.id)


async def test_a_year_without_a_daemon_is_made_up_for_by_one_firing_or_none(site, model):
    talk = await site.start(await model(text("one"), text("two")))
    once = await talk.ask("timer.add", message="once", every_s=60)
    skip = await talk.ask("timer.add", message="skip", every_s=60, missed="skip")
    site.now += 366 * DAY_S + 50
    talk = await site.restart(talk)
    due = rfc3339(NINE + 366 * DAY_S + 60)
    once = await timer_of(talk.client, once["id"], due=due)
    assert once["fired"] == 1
    # The last of the times that it missed was 50 s ago, which is no delay that counts.
    skip = await timer_of(talk.client, skip["id"], due=due)
    assert skip["fired"] == 1


async def test_missed_times_are_passed_over_if_that_is_wanted(site, model):
    talk = await site.start(await model())
    timer = await talk.ask("timer.add", message="p", missed="skip", **DAILY)
    site.now += 10 * DAY_S
    talk = await site.restart(talk)
    timer = await timer_of(talk.client, timer["id"], due=rfc3339(NINE + 10 * DAY_S + HOUR_S))
    assert ("fired" in timer, timer["outcome"]) == (False, "missed, and passed over")


async def test_two_timers_that_are_due_at_once_both_fire(site, model):
    talk = await site.start(await model(text("one"), text("two")))
    for message in ("a", "b"):
        await talk.ask("timer.add", message=message, at=rfc3339(NINE + HOUR_S))
    site.now += HOUR_S
    await talk.ask("timer.list")
    await talk.until("done")
    await talk.until("done")
    assert sorted(await said(talk)) == ["a", "b"]
    assert (await talk.ask("timer.list"))["timers"] == []


async def test_a_clock_that_goes_back_sends_nothing_again(site, model):
    talk = await site.start(await model(text("one")))
    timer = await talk.ask("timer.add", message="p", **DAILY)
    for now in (NINE + HOUR_S, NINE + 600, NINE + HOUR_S + 600):
        site.now = now
        await timer_of(talk.client, timer["id"], fired=1, due=rfc3339(NINE + DAY_S + HOUR_S))
    await ended(talk)
    assert await said(talk) == ["p"]


async def test_a_clock_that_was_years_ahead_pauses_the_timer_and_resume_goes_on_from_now(site, model):
    talk = await site.start(await model(text("one")))
    timer = await talk.ask("timer.add", message="p", **DAILY)
    site.now = NINE + 1000 * DAY_S
    await timer_of(talk.client, timer["id"], fired=1)
    site.now = NINE
    timer = await timer_of(talk.client, timer["id"], state="paused")
    assert timer["reason"].endswith("days before the last time that it has fired for; resume it to begin from now")
    assert any(timer["reason"] in one for one in (await talk.client.ask("daemon.status"))["warnings"])
    assert "timer" in (await talk.until("notice"))[-1]["text"]
    resumed = await talk.ask("timer.resume", timer=timer["id"])
    assert (resumed["state"], resumed["due"]) == ("active", rfc3339(NINE + HOUR_S))


async def test_each_firing_can_have_a_session_of_its_own(site, model):
    talk = await site.start(await model(text("one"), text("two")))
    await talk.client.ask("subscribe", topics=["sessions"])
    order = {"message": "p", "every_s": 600, "cwd": str(site.house.cwd), "mode": "read-only"}
    timer = await talk.client.ask("timer.add", **order, limit_usd=1.0)
    begun = []
    for number in (1, 2):
        site.now += 600
        await timer_of(talk.client, timer["id"], fired=number)
        begun.append((await talk.client.until("session_added"))[-1]["session"])
        while (await talk.client.ask("session.get", session=begun[-1]))["state"] != "idle":
            await talk.client.event()
    assert len(set(begun)) == 2
    for session in begun:
        other = await site.house.follow(session)
        assert await said(other) == ["p"]
        assert (await other.ask("session.get"))["mode"] == "read-only"


async def test_a_session_that_is_busy_gets_the_prompt_afterwards_or_not_at_all(site, model):
    gate = asyncio.Event()
    talk = await site.start(await model(ScriptedReply([TextPart(["wait"]), Gate(gate)]), text("one")))
    await talk.ask("prompt", message="go")
    await talk.until("text_delta")
    queue = await talk.ask("timer.add", message="queued", every_s=600)
    skip = await talk.ask("timer.add", message="skipped", every_s=600, busy="skip")
    site.now += 600
    await timer_of(talk.client, queue["id"], fired=1)
    skip = await timer_of(talk.client, skip["id"], outcome="left out, because the session was busy")
    site.now += 600
    outcome = "left out, because the firing before it has not ended"
    queue = await timer_of(talk.client, queue["id"], outcome=outcome)
    assert (queue["fired"], skip.get("fired", 0)) == (1, 0)
    gate.set()
    await talk.until("done")
    await talk.until("done")
    assert await said(talk) == ["go", "queued"]


async def test_a_timer_that_has_spent_its_limit_is_paused_and_says_so(site, model):
    talk = await site.start(await model(text("one", usage=QUARTER), text("two", usage=QUARTER)))
    timer = await talk.ask("timer.add", message="p", every_s=600, limit_usd=0.3)
    for number in (1, 2):
        site.now += 600
        await timer_of(talk.client, timer["id"], fired=number)
        await ended(talk)
    site.now += 600
    timer = await timer_of(talk.client, timer["id"], state="paused")
    assert timer["reason"] == "it has spent $0.5000 of its limit of $0.30"
    assert (timer["fired"], timer["spent_usd"]) == (2, 0.5)
    assert "limit of $0.30" in (await talk.until("notice"))[-1]["text"]
    assert await talk.refused("timer.resume", timer=timer["id"]) == "conflict"
    assert await talk.refused("timer.run", timer=timer["id"]) == "conflict"


async def test_what_a_session_of_its_own_may_spend_is_what_is_left_of_the_limit(site, model):
    server = await model(calls(CallPart("glob", {"pattern": "*"})), text("never"))
    talk = await site.start(server)
    order = {"message": "p", "every_s": 600, "cwd": str(site.house.cwd), "limit_usd": 0.00001}
    timer = await talk.client.ask("timer.add", **order)
    ran = await talk.client.ask("timer.run", timer=timer["id"])
    other = await site.house.follow(ran["session"])
    while await other.state() == "running":
        pass
    assert len(server.requests) == 1


async def test_a_budget_that_is_used_up_leaves_times_out_and_pauses_only_a_single_timer(site, model):
    talk = await site.start(await model(text("one", usage=QUARTER)))
    poor = await site.create(budget_usd=0.1)
    await poor.run()
    timer = await poor.ask("timer.add", message="p", every_s=600)
    single = await poor.ask("timer.add", message="p", at=rfc3339(NINE + 600))
    for number in range(1, 8):
        site.now = NINE + number * 600
        timer = await timer_of(talk.client, timer["id"], due=rfc3339(site.now + 600), state="active")
    assert "budget" in timer["outcome"]
    single = await timer_of(talk.client, single["id"], state="paused")
    assert single["reason"] == f"it failed: {timer['outcome']}"


async def test_firings_that_fail_pause_the_timer_with_the_reason(site, model):
    talk = await site.start(await model())
    gone = site.house.cwd / "gone"
    gone.mkdir()
    timer = await talk.client.ask("timer.add", message="p", every_s=600, cwd=str(gone))
    gone.rmdir()
    for number in range(1, 6):
        site.now = NINE + number * 600
        due = None if number == 5 else rfc3339(site.now + 600)
        timer = await timer_of(talk.client, timer["id"], due=due)
    assert timer["reason"].startswith(f"it failed 5 times: {gone} is not a directory")
    assert "fired" not in timer


async def test_a_slash_command_is_looked_up_when_the_timer_fires(site, model):
    talk = await site.start(await model(*[text("fine")] * 3))
    file = site.house.place.home / "commands" / "review.md"
    file.parent.mkdir()
    timer = await talk.ask("timer.add", message="/review main", every_s=600)
    site.now += 600
    timer = await timer_of(talk.client, timer["id"], due=rfc3339(site.now + 600))
    assert timer["outcome"].startswith("there is no /review")
    for number, words in ((1, "review $1"), (2, "look at $ARGUMENTS")):
        file.write_text(words)
        site.now += 600
        await timer_of(talk.client, timer["id"], fired=number)
        await ended(talk)
    assert await said(talk) == ["review main", "look at main"]
    loop = await talk.ask("timer.add", message="//review", every_s=6000)
    await talk.client.ask("timer.run", timer=loop["id"])
    await ended(talk)
    assert (await said(talk))[-1] == "/review"


async def test_nobody_there_to_approve_means_denied_unless_the_timer_waits(site, model):
    write = calls(CallPart("write", {"path": "a.txt", "content": "x"}))
    talk = await site.start(await model(write, text("denied"), write))
    other = await site.create(mode="ask")
    denies = await other.ask("timer.add", message="p", every_s=600)
    await talk.client.ask("timer.run", timer=denies["id"])
    found = await other.until("done")
    (result,) = [event for event in found if event["type"] == "tool_result"]
    assert "no attached client can decide" in result["content"][0]["text"]
    parks = await other.ask("timer.add", message="p", every_s=600, unattended="park")
    await talk.client.ask("timer.run", timer=parks["id"])
    await other.until("approval_requested")


async def test_people_pause_resume_fire_and_remove_it(site, model):
    talk = await site.start(await model(text("one"), text("two")))
    timer = await talk.ask("timer.add", message="p", every_s=600)
    paused = await talk.ask("timer.pause", timer=timer["id"][:6])
    assert (paused["state"], "due" in paused) == ("paused", False)
    site.now += 6000
    await timer_of(talk.client, timer["id"], state="paused")
    assert (await talk.ask("timer.run", timer=timer["id"]))["fired"] is True
    await ended(talk)
    resumed = await talk.ask("timer.resume", timer=timer["id"])
    assert (resumed["due"], resumed["fired"]) == (rfc3339(site.now + 600), 1)
    await talk.ask("timer.remove", timer=timer["id"])
    assert (await talk.client.ask("timer.list"))["timers"] == []
    assert await talk.refused("timer.run", timer=timer["id"]) == "not_found"


async def test_a_timer_goes_with_its_session(site, model):
    talk = await site.start(await model())
    other = await site.house.connect(role="admin")
    await talk.ask("timer.add", message="p", every_s=600)
    await other.ask("session.delete", session=talk.id)
    assert (await other.ask("timer.list"))["timers"] == []
    talk = await site.restart(await site.create())
    assert (await talk.client.ask("timer.list"))["timers"] == []


async def test_loop_begins_at_once_is_listed_and_ends(site, model):
    talk = await site.start(await model(text("one"), text("two")))
    said_ = (await talk.ask("run_command", name="loop", args="10m check the CI"))["text"]
    (timer,) = (await talk.ask("timer.list"))["timers"]
    assert said_ == f"{timer['id']} begins now, and then every 10m; /loop stop ends it"
    await ended(talk)
    assert await said(talk) == ["check the CI"]
    site.now += 600
    await timer_of(talk.client, timer["id"], fired=2)
    await ended(talk)
    listed = (await talk.ask("run_command", name="loop", args=""))["text"]
    assert listed == f"{timer['id']}  every 10m  next at 09:20 UTC  check the CI"
    await talk.ask("timer.add", message="not a loop", every_s=600)
    assert "has ended" in (await talk.ask("run_command", name="loop", args="stop"))["text"]
    assert [one["message"] for one in (await talk.ask("timer.list"))["timers"]] == ["not a loop"]


@pytest.mark.parametrize(
    ("args", "code"),
    [
        ("check the CI", "bad_request"),
        ("10m", "bad_request"),
        ("5s check", "bad_request"),
        ("stop", "not_found"),
        ("stop t_1", "not_found"),
    ],
)
async def test_a_loop_that_cannot_be_is_refused_with_what_to_type(site, model, args, code):
    talk = await site.start(await model())
    answer = await talk.client.answer("run_command", session=talk.id, name="loop", args=args)
    assert answer["code"] == code
    assert "/loop" in answer["error"] or "interval" in answer["error"]


@pytest.mark.parametrize(
    ("order", "why"),
    [
        ({}, "exactly one"),
        ({"every_s": 600, "at": "2027-01-01T00:00:00Z"}, "exactly one"),
        ({"every_s": 5}, "60 s to 366 days"),
        ({"cron": "61 * * * *"}, "bad minute"),
        ({"cron": "* * * * *", "tz": "Europe/Atlantis"}, "no time zone"),
        ({"cron": "* * * * *", "tz": "../etc/passwd"}, "no time zone"),
        ({"every_s": 600, "tz": "UTC"}, "for `cron` only"),
        ({"at": "tomorrow"}, "RFC 3339"),
        ({"at": "2027-01-01T00:00:00"}, "offset"),
        ({"at": "2020-01-01T00:00:00Z"}, "the time is over"),
        ({"every_s": 600, "until": "2020-01-01T00:00:00Z"}, "the time is over"),
        ({"every_s": 600, "times": 0}, "at least 1"),
        ({"every_s": 600, "limit_usd": -1}, "more than 0"),
        ({"every_s": 600, "missed": "all"}, "unknown missed"),
        ({"every_s": 600, "message": "  "}, "empty"),
        ({"every_s": 600, "message": "/compact now"}, "/compact sends no prompt"),
        ({"every_s": 600, "message": "x" * 20_001}, "20,000 characters"),
        ({"every_s": 600, "cwd": "/"}, "either"),
        ({"every_s": 600, "model": "m"}, "new sessions"),
    ],
)
async def test_a_timer_that_cannot_be_is_refused_with_a_sentence(site, model, order, why):
    talk = await site.start(await model())
    answer = await talk.client.answer("timer.add", session=talk.id, **{"message": "p", **order})
    assert answer["code"] == "bad_request"
    assert why in answer["error"]


async def test_a_session_has_only_so_many_timers_and_an_ephemeral_one_none(site, model):
    talk = await site.start(await model())
    for _ in range(MAX_OF_SESSION):
        await talk.ask("timer.add", message="p", every_s=600)
    assert await talk.refused("timer.add", message="p", every_s=600) == "conflict"
    brief = await site.create(ephemeral=True)
    assert await brief.refused("timer.add", message="p", every_s=600) == "conflict"


@pytest.mark.parametrize("point", [*POINTS, "input taken", "attempt on record"])
@pytest.mark.parametrize("prompt", ["review main", "/review main"])
async def test_a_daemon_that_is_killed_while_it_fires_sends_the_prompt_once(tmp_path, model, point, prompt):
    file = place(tmp_path).home / "commands" / "review.md"
    file.parent.mkdir(mode=0o700, parents=True)
    file.write_text("review $1")
    server = await model(lambda _: text("ok"))
    dying = (sys.executable, "-m", "tests.e2e.dying_daemon", point)
    async with AsyncExitStack() as stack:
        first = stack.enter_context(DaemonProcess(tmp_path, wrapper=dying))
        house = House(stack, first.place, first)
        talk = await house.create("ollama", None, base_url=server.openai_url, secrets=None, model="m")
        began = rfc3339()
        talk.send("timer.add", message=prompt, every_s=3600, now=True)  # it may die before it answers
        assert await asyncio.to_thread(first.wait) != 0
        second = stack.enter_context(DaemonProcess(tmp_path))
        talk = await House(stack, second.place, second).follow(talk.id)
        (timer,) = (await talk.ask("timer.list"))["timers"]
        timer = await timer_of(talk.client, timer["id"], fired=1, state="active")
        assert timer["due"] > began
        assert await said(talk) == ["review main"]


async def test_an_autostarted_daemon_stays_for_a_timer_and_leaves_when_there_is_none(tmp_path, model):
    where = place(tmp_path)
    where.home.mkdir(0o700)
    (where.home / "config.toml").write_text("[limits]\nidle_exit_s = 1\n")
    server = await model(text("ok"))
    daemon = Daemon(prepare(where.env, autostarted=True, flags={}))
    ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    async with AsyncExitStack() as stack, asyncio.TaskGroup() as tasks:
        tasks.create_task(daemon.run(ready), name="daemon")
        await ready
        house = House(stack, where)
        client = await house.connect()
        options = {"provider": "ollama", "model": "m", "base_url": server.openai_url}
        session = (await client.ask("session.create", cwd=str(where.cwd), **options))["session"]["id"]
        await client.ask("timer.add", session=session, message="p", at=rfc3339(time.time() + 2))
        client.cut()
        await server.received(1)
    # The task group has ended, so the daemon has left.
