"""`/btw` on the page: a question beside the conversation."""

import pytest
from playwright.async_api import expect

from tests.page.world import entry
from zotd.testing.script import Refusal, text

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_an_answer_is_shown_below_the_prompt_box_and_not_in_the_conversation(world, token):
    world.answers.extend([text("the first"), text("It is <b>a needle</b>."), Refusal(400, "no such thing")])
    session = await world.session("Beside", mode="yolo")
    await world.run(session, "hello")
    async with world.page(token, session) as page:
        await expect(entry(page, "the first")).to_be_visible()
        for question, shown in (("what is it?", "It is <b>a needle</b>."), ("and now?", "no such thing")):
            await page.get_by_label("Prompt").fill(f"/btw {question}")
            await page.get_by_role("button", name="Send").click()
            await expect(page.get_by_text(shown)).to_be_visible()
            await expect(page.get_by_label("Prompt")).to_have_value("")
        await expect(page.locator(".entry")).to_have_count(2)
