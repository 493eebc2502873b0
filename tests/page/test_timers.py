"""Timers on the page: when they are due, what they have cost and why they are paused, and buttons that change them."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
import pytest_asyncio
from playwright.async_api import WebSocketRoute, expect

from tests.page.world import PHONE, WAIT_MS, entry
from zotd.testing.script import text
from zotd.testing.wire_client import WireClient

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module")
async def session(world):
    """A session whose timers are removed after the test."""
    session = await world.session("Nightly", mode="yolo")
    yield session
    for timer in (await world.ask("timer.list"))["timers"]:
        await world.ask("timer.remove", timer=timer["id"])


def item(page, words):
    """The timer with these words."""
    return page.get_by_role("list", name="Timers").get_by_role("listitem").filter(has_text=words)


def button(page, words, name):
    return item(page, words).get_by_role("button", name=name, exact=True)


async def test_a_timer_is_shown_from_when_another_client_makes_it_until_that_removes_it(world, token, session):
    async with world.page(token) as page:
        await page.get_by_role("link", name="Timers").click()
        await expect(page.get_by_role("heading", name="Timers")).to_be_focused()
        await expect(page.get_by_role("status").filter(has_text="No timers.")).to_be_visible()
        due = datetime.now(UTC).replace(microsecond=0) + timedelta(days=2)
        made = await world.ask("timer.add", message="check the CI", session=session, at=due.isoformat(), limit_usd=5)
        shown = item(page, "check the CI")
        await expect(shown).to_contain_text("fired 0 times · $0.00 of $5.00")
        assert await shown.get_by_role("time").get_attribute("datetime") == made["due"]
        await expect(page.get_by_role("status").filter(has_text="1 timer.")).to_be_visible()
        await world.ask("timer.edit", timer=made["id"], message="check the nightly build")
        await expect(item(page, "check the nightly build")).to_be_visible()
        await item(page, "check the nightly build").get_by_role("link", name="Nightly").click()
        await expect(page.get_by_role("heading", name="Nightly")).to_be_visible()
        await page.go_back()
        await world.ask("timer.remove", timer=made["id"])
        await expect(page.get_by_role("list", name="Timers").get_by_role("listitem")).to_have_count(0)


async def test_a_timer_is_paused_and_resumed_with_the_keyboard(world, token, session):
    await world.ask("timer.add", message="look for issues", session=session, every_s=3600)
    async with world.page(token, "timers") as page:
        await button(page, "look for issues", "Pause").press("Enter")
        await expect(item(page, "look for issues")).to_contain_text("Paused.")
        await expect(page.get_by_role("status").filter(has_text="1 timer, 1 paused.")).to_be_visible()
        await expect(button(page, "look for issues", "Resume")).to_be_focused()
        await page.keyboard.press("Enter")
        await expect(button(page, "look for issues", "Pause")).to_be_focused()
        await expect(item(page, "look for issues")).to_contain_text("next")
    (timer,) = (await world.ask("timer.list"))["timers"]
    assert timer["state"] == "active"


async def test_a_timer_is_fired_now_and_what_that_has_cost_is_shown(world, token, session):
    await world.ask("timer.add", message="sum up the day", session=session, every_s=3600)
    world.answers.append(text("It was quiet."))
    async with world.page(token, "timers") as page:
        await button(page, "sum up the day", "Run now").click()
        await expect(item(page, "sum up the day")).to_contain_text("fired once")
        await item(page, "sum up the day").get_by_role("link", name="Nightly").click()
        await expect(entry(page, "It was quiet.")).to_be_visible()


async def test_a_timer_is_removed_only_when_that_is_confirmed(world, token, session):
    await world.ask("timer.add", message="tidy up", session=session, every_s=3600)
    async with world.page(token, "timers", **PHONE) as page:
        await button(page, "tidy up", "Remove").click()
        await expect(button(page, "tidy up", "Keep it")).to_be_focused()
        await button(page, "tidy up", "Keep it").click()
        await expect(button(page, "tidy up", "Remove")).to_be_focused()
        assert len((await world.ask("timer.list"))["timers"]) == 1
        await button(page, "tidy up", "Remove").click()
        await button(page, "tidy up", "Remove it").click()
        await expect(item(page, "tidy up")).to_have_count(0)
        await expect(page.get_by_role("heading", name="Timers")).to_be_focused()
    assert (await world.ask("timer.list"))["timers"] == []


async def test_what_the_daemon_refuses_is_shown_in_its_sentence(world, token, session):
    world.answers.append(text("That was it."))
    async with WireClient.connect(world.daemon.place.socket) as other:
        await other.ask("attach", session=session)
        rules = {"every_s": 3600, "limit_usd": 0.000001}
        await other.ask("timer.add", message="too dear", session=session, now=True, **rules)
        await other.until("done")
    async with world.page(token, "timers") as page:
        await button(page, "too dear", "Run now").click()
        await expect(page.get_by_role("alert").filter(has_text="zotctl schedule edit")).to_be_visible()


async def test_a_press_whose_answer_was_lost_fires_once_when_it_is_repeated(world, token, session):
    world.answers.extend([text("one"), text("two")])
    timer = await world.ask("timer.add", message="look once", session=session, every_s=3600)
    lost, answered = asyncio.Event(), asyncio.Event()
    routes: list[WebSocketRoute] = []

    def between(route):
        def pass_on(frame):
            if not lost.is_set() and '"command":"timer.run"' in frame:
                lost.set()
                return
            if '"command":"timer.run"' in frame:
                answered.set()
            route.send(frame)

        routes.append(route)
        route.connect_to_server().on_message(pass_on)

    async with world.page(token, "timers") as page:
        await page.route_web_socket("**/v1", between)
        await page.reload()
        await button(page, "look once", "Run now").click()
        async with asyncio.timeout(WAIT_MS / 1000):
            await lost.wait()
        await routes[0].close()
        await expect(page.get_by_role("alert").filter(has_text="The connection was lost")).to_be_visible()
        while (await world.ask("session.get", session=session))["state"] == "running":
            pass  # a firing is left out while the one before has not ended
        await button(page, "look once", "Run now").click()  # as soon as the connection is back
        async with asyncio.timeout(WAIT_MS / 1000):
            await answered.wait()
        await expect(page.get_by_role("alert").filter(has_text="The connection was lost")).to_be_hidden()
    (found,) = [one for one in (await world.ask("timer.list"))["timers"] if one["id"] == timer["id"]]
    world.answers.clear()
    assert found["fired"] == 1


async def test_who_may_only_read_sees_timers_without_buttons(world, session):
    await world.ask("timer.add", message="read the news", session=session, every_s=3600)
    async with world.page(await world.token("timer-reader", "read"), "timers") as page:
        await expect(item(page, "read the news")).to_contain_text("every 1h")
        await expect(item(page, "read the news").get_by_role("button")).to_have_count(0)


async def test_timers_that_changed_while_the_daemon_was_away_are_shown_when_it_is_back(world, token, session):
    timer = await world.ask("timer.add", message="back up", session=session, every_s=3600)
    async with world.page(token, "timers") as page:
        await expect(button(page, "back up", "Pause")).to_be_enabled()
        await page.context.set_offline(True)
        world.restart()
        await world.ask("timer.pause", timer=timer["id"])
        await page.context.set_offline(False)
        await expect(button(page, "back up", "Resume")).to_be_enabled()
        await button(page, "back up", "Resume").click()
        await expect(button(page, "back up", "Pause")).to_be_enabled()
