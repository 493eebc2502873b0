"""A plan on the page: the question about it, its steps as they are done, and an edit."""

import pytest
from playwright.async_api import expect

from tests.page.world import entry
from zotd.testing.script import CallPart, calls, text

pytestmark = pytest.mark.asyncio(loop_scope="module")


def plan(*steps):
    return calls(CallPart("plan", {"steps": [{"text": words, "state": state} for words, state in steps]}))


async def prompt(page, words):
    await page.get_by_label("Prompt").fill(words)
    await page.get_by_role("button", name="Send").click()


async def test_a_plan_is_approved_with_changes_followed_and_edited(world, token):
    world.answers.extend(
        [
            plan(("look", "pending"), ("change", "pending")),
            plan(("look", "done"), ("test", "active")),
            text("halfway"),
            text("yes"),
        ]
    )
    session = await world.session("Planning", mode="yolo")
    async with world.page(token, session) as page:
        await prompt(page, "/plan make it")
        question = page.get_by_role("region", name="Decision")
        await expect(question).to_contain_text("Approve the plan?")
        await expect(question).to_contain_text("[ ] look")
        shown = page.get_by_role("region", name="Plan")
        await expect(shown).to_be_hidden()
        await question.get_by_text("Change the steps").click()
        await question.get_by_label("Steps").fill("look\ntest")
        await question.get_by_role("button", name="Approve").click()
        await expect(entry(page, "halfway")).to_be_visible()
        await expect(shown).to_contain_text("1 of 2 done · approved")
        await expect(shown.get_by_role("listitem")).to_have_text(["done: look", "active: test"])
        await shown.get_by_role("button", name="Edit").click()
        await shown.get_by_label("Steps").fill("[x] look\n[>] test it well")
        await shown.get_by_role("button", name="Save").click()
        await expect(shown.get_by_role("listitem")).to_have_text(["done: look", "active: test it well"])
        await prompt(page, "go on")
        await expect(entry(page, "yes")).to_be_visible()
    assert "test it well" in str(world.model.requests[-1].body)


async def test_an_edit_of_a_plan_that_changed_meanwhile_says_so_and_keeps_the_text(world, token):
    session = await world.session("Racing", mode="yolo")
    await world.ask("session.plan_edit", session=session, revision=0, steps=[{"text": "look"}])
    async with world.page(token, session) as page:
        shown = page.get_by_role("region", name="Plan")
        await shown.get_by_role("button", name="Edit").click()
        await shown.get_by_label("Steps").fill("mine")
        await world.ask("session.plan_edit", session=session, revision=1, steps=[{"text": "theirs"}])
        await expect(shown.get_by_role("listitem")).to_have_text(["pending: theirs"])
        await shown.get_by_role("button", name="Save").click()
        await expect(shown.get_by_role("alert")).to_contain_text("the plan was changed meanwhile")
        await expect(shown.get_by_label("Steps")).to_have_value("mine")
        await shown.get_by_role("button", name="Cancel").click()
        await expect(shown.get_by_role("listitem")).to_have_text(["pending: theirs"])


async def test_a_plan_is_rejected_with_a_comment(world, token):
    world.answers.extend([plan(("look", "pending")), text("I will think again")])
    session = await world.session("Rejecting", mode="yolo")
    async with world.page(token, session) as page:
        await prompt(page, "/plan make it")
        question = page.get_by_role("region", name="Decision")
        await question.get_by_label("because").fill("too short")
        await question.get_by_role("button", name="Reject").click()
        await expect(entry(page, "I will think again")).to_be_visible()
        await expect(page.get_by_role("region", name="Plan")).to_contain_text("rejected by")
        await expect(page.get_by_role("region", name="Plan")).to_contain_text(": too short")
