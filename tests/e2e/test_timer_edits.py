"""Edits of timers in a real daemon: what is given changes, what is not stays, and nothing fires for it twice."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from tests.e2e.timed_site import Site, ended, said, timer_of
from zotd.clock import rfc3339
from zotd.testing.script import Gate, ScriptedReply, TextPart, text


@pytest.fixture
async def site(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    async with AsyncExitStack() as stack:
        yield Site(stack, tmp_path)


async def test_people_change_it_and_what_is_not_named_stays(site, model):
    talk = await site.start(await model(text("one")))
    made = await talk.ask("timer.add", message="p", every_s=600, limit_usd=2, times=9, busy="skip")
    changed = await talk.ask("timer.edit", timer=made["id"][:6], message="walrus", clear=["times"])
    assert changed == {**{name: value for name, value in made.items() if name != "times"}, "message": "walrus"}
    site.now += 100
    changed = await talk.ask("timer.edit", timer=made["id"], every_s=3600, limit_usd=5)
    assert (changed["rule"], changed["due"], changed["limit_usd"]) == ("every 1h", rfc3339(site.now + 3600), 5)
    site.now += 3599
    assert (await talk.ask("timer.list"))["timers"][0].get("fired", 0) == 0
    site.now += 1
    await timer_of(talk.client, made["id"], fired=1, state="active")
    assert await said(talk) == ["walrus"]
    talk = await site.restart(talk)
    (kept,) = (await talk.ask("timer.list"))["timers"]
    assert (kept["message"], kept["rule"], kept["fired"]) == ("walrus", "every 1h", 1)


async def test_a_time_that_was_missed_does_not_count_after_an_edit_of_the_time_and_a_time_zone_alone_moves_it(
    site, model
):
    talk = await site.start(await model())
    made = await talk.ask("timer.add", message="p", cron="0 9 * * *", tz="UTC")
    await talk.ask("timer.pause", timer=made["id"])
    site.now += 10 * 24 * 3600
    changed = await talk.ask("timer.edit", timer=made["id"], tz="Europe/Berlin")
    assert (changed["rule"], changed["state"]) == ("0 9 * * * (Europe/Berlin)", "paused")
    changed = await talk.ask("timer.edit", timer=made["id"], cron="30 9 * * *")
    assert changed["rule"] == "30 9 * * * (Europe/Berlin)"
    resumed = await talk.ask("timer.resume", timer=made["id"])
    assert resumed["due"] > rfc3339(site.now)
    assert "fired" not in resumed


async def test_a_limit_that_was_raised_lets_a_paused_timer_go_on(site, model):
    talk = await site.start(await model(text("one"), text("two")))
    made = await talk.ask("timer.add", message="p", every_s=600, limit_usd=1e-9)
    await talk.ask("timer.run", timer=made["id"])
    await ended(talk)
    await talk.ask("timer.pause", timer=made["id"])
    answer = await talk.client.answer("timer.resume", timer=made["id"])
    if not answer["success"]:  # a scripted model without a price costs nothing
        assert f"`zotctl schedule edit {made['id']} --limit-usd` sets a higher one" in answer["error"]
    await talk.ask("timer.edit", timer=made["id"], clear=["limit_usd"])
    assert (await talk.ask("timer.resume", timer=made["id"]))["state"] == "active"


@pytest.mark.parametrize(
    ("order", "why"),
    [
        ({}, "nothing about the timer is to change"),
        ({"every_s": 600, "cron": "* * * * *"}, "exactly one"),
        ({"tz": "UTC"}, "for `cron` only"),
        ({"at": "2020-01-01T00:00:00Z"}, "the time is over"),
        ({"until": "2020-01-01T00:00:00Z"}, "the time is over"),
        ({"times": 1}, "it has fired 1 times already"),
        ({"times": 0}, "at least 1"),
        ({"limit_usd": 0}, "more than 0"),
        ({"missed": "all"}, "unknown missed"),
        ({"message": " "}, "empty"),
        ({"message": "/compact"}, "/compact sends no prompt"),
        ({"clear": ["busy"]}, 'unknown limit "busy"'),
        ({"times": 7, "clear": ["times"]}, "both set and cleared"),
    ],
)
async def test_an_edit_that_cannot_be_is_refused_with_a_sentence_and_changes_nothing(site, model, order, why):
    talk = await site.start(await model(text("one")))
    made = await talk.ask("timer.add", message="p", every_s=600)
    await talk.ask("timer.run", timer=made["id"])
    await ended(talk)
    before = await talk.ask("timer.list")
    answer = await talk.client.answer("timer.edit", timer=made["id"], **order)
    assert answer["code"] == "bad_request"
    assert why in answer["error"]
    assert await talk.ask("timer.list") == before


async def test_the_prompt_of_a_timer_with_a_wider_mode_needs_the_role_that_may_choose_it(site, model):
    await site.start(await model(), ZOT_APPROVAL_MODE="ask")
    approver = await site.house.connect(role="approve")
    made = await approver.ask("timer.add", message="p", every_s=600, cwd=str(site.house.cwd), mode="yolo")
    client = await site.house.connect(role="submit")
    answer = await client.answer("timer.edit", timer=made["id"], message="rm -rf /")
    assert answer["code"] == "forbidden"
    assert (await approver.ask("timer.edit", timer=made["id"], message="q"))["message"] == "q"


async def test_an_edit_during_a_firing_is_kept_and_the_firing_happens_once(site, model):
    gate = asyncio.Event()
    server = await model(ScriptedReply([Gate(gate), TextPart("one")]), text("two"))
    talk = await site.start(server)
    made = await talk.ask("timer.add", message="p", every_s=600, now=True)
    await server.received(1)
    await talk.ask("timer.edit", timer=made["id"], message="q")
    gate.set()
    await ended(talk)
    timer = await timer_of(talk.client, made["id"], fired=1, state="active")
    assert timer["message"] == "q"
    site.now += 600
    await timer_of(talk.client, made["id"], fired=2, state="active")
    assert await said(talk) == ["p", "q"]
