"""Searching all sessions on the page, and jumping to what was found."""

import pytest
from playwright.async_api import expect

from tests.page.world import PHONE, entry
from zotd.testing.script import CallPart, calls, text

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def search(page, words):
    await page.get_by_role("searchbox", name="Search all sessions").fill(words)
    await page.keyboard.press("Enter")
    return page.get_by_role("list", name="Messages that were found").get_by_role("listitem")


async def test_messages_of_all_sessions_are_found_and_the_list_comes_back(world, token):
    world.answers.extend([text("the marmoset sleeps"), text("no animals here")])
    first = await world.session("Zoo", mode="yolo")
    await world.run(first, "who sleeps?")
    await world.run(await world.session("Office", mode="yolo"), "any marmoset?")
    async with world.page(token) as page:
        hits = await search(page, "marmoset")
        await expect(hits).to_have_count(2)
        await expect(page.get_by_role("status").filter(has_text="2 messages, newest first.")).to_be_visible()
        await expect(page.get_by_role("list", name="Sessions")).to_be_hidden()
        await hits.filter(has_text="the marmoset sleeps").get_by_role("link").click()
        await expect(page.get_by_role("heading", name="Zoo")).to_be_visible()
        await expect(page.locator(".sought")).to_have_text("the marmoset sleeps")
        await expect(page.locator(".sought")).to_be_focused()
        await expect(page.get_by_role("button", name="To the newest")).to_be_hidden()
        await page.get_by_role("button", name="Show sessions").click()
        await expect(hits).to_have_count(0)
        await expect(page.get_by_role("list", name="Sessions")).to_be_visible()
        await search(page, "ocelot")
        await expect(page.get_by_role("status").filter(has_text="No message has these words.")).to_be_visible()


async def test_a_hit_far_back_is_shown_with_what_is_around_it(world, token):
    session = await world.session("Long", mode="yolo")
    world.answers.extend([calls(CallPart("bash", {"command": "echo needle"})), text("found it")])
    world.answers.extend(text(f"answer {number}") for number in range(60))
    await world.run(session, "look")
    for number in range(60):
        await world.run(session, f"question {number}")
    async with world.page(token, **PHONE) as page:
        hits = await search(page, "needle")
        await hits.filter(has_text="Tool").get_by_role("link").click()
        await expect(page.locator(".sought")).to_contain_text("needle")
        await expect(page.locator(".sought")).to_be_in_viewport()
        await expect(entry(page, "answer 59")).to_have_count(0)
        await page.get_by_role("button", name="To the newest").click()
        await expect(entry(page, "answer 59")).to_be_in_viewport()
        await expect(entry(page, "found it")).to_have_count(0)
        await page.get_by_role("link", name="Sessions").click()
        await hits.filter(has_text="Tool").get_by_role("link").click()
        await expect(page.locator(".sought")).to_be_in_viewport()
        world.answers.append(text("the newest answer"))
        await page.get_by_label("Prompt").fill("more")
        await page.get_by_role("button", name="Send").click()
        await expect(entry(page, "the newest answer")).to_be_in_viewport()


async def test_a_message_that_was_rewound_is_shown_as_it_was(world, token):
    world.answers.extend([text("hi"), text("the walrus said no")])
    session = await world.session("Rewound", mode="yolo")
    await world.run(session, "hello")
    messages = (await world.ask("session.history", session=session))["messages"]
    await world.run(session, "ask the walrus")
    await world.ask("session.rewind", session=session, seq=messages[-1]["seq"])
    async with world.page(token, session) as page:
        hits = await search(page, '"walrus said"')
        await hits.get_by_role("link").click()
        await expect(page.locator(".sought")).to_have_text("the walrus said no")


async def test_a_token_for_one_session_is_told_that_it_cannot_search(world):
    session = await world.session("Cell", mode="yolo")
    limited = (await world.ask("token.create", name="cell", role="read", session=session))["token"]
    async with world.page(limited, session) as page:
        await search(page, "anything")
        await expect(page.get_by_role("status").filter(has_text="is limited to")).to_be_visible()
