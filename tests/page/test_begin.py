"""A session that is begun on the page."""

import asyncio
import sys

import pytest
from playwright.async_api import expect

from tests.page.world import PHONE, entry
from tests.zottui.journeys.deciding import decide
from tests.zottui.tmux import Tmux
from zotd.testing.live_daemon import leave_mark
from zotd.testing.script import CallPart, calls, text

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def open_form(page):
    await page.get_by_role("link", name="New session", exact=True).click()
    await expect(page.get_by_role("heading", name="New session")).to_be_focused()


async def begin(page, **fields):
    await open_form(page)
    for label, value in fields.items():
        await page.get_by_label(label).fill(value)
    await page.get_by_role("button", name="Begin").click()


async def test_a_session_is_begun_with_a_directory_a_model_and_a_mode(world, token):
    world.answers.append(text("here I am"))
    await world.session("Known")
    async with world.page(token) as page:
        await expect(page.get_by_role("link", name="Known")).to_be_visible()
        await open_form(page)
        await expect(page.get_by_label("Directory")).to_have_value(str(world.daemon.place.cwd))
        await expect(page.locator("#models option").first).to_be_attached()
        await page.get_by_label("Model").fill("openai/scripted")
        await page.get_by_label("Mode", exact=True).select_option("ask")
        await page.get_by_role("button", name="Begin").click()
        await expect(page.get_by_role("heading", name="New session")).to_be_focused()
        await expect(page.locator("#facts")).to_have_text(f"scripted · ask · {world.daemon.place.cwd}")
        await page.get_by_label("Prompt").fill("hello")
        await page.get_by_role("button", name="Send").click()
        await expect(entry(page, "here I am")).to_be_visible()
        await page.go_back()
        await expect(page.get_by_role("heading", name="zot")).to_be_focused()
    assert world.model.requests[-1].body["model"] == "scripted"


async def test_a_directory_that_does_not_exist_is_told_in_a_sentence(world, token):
    missing = str(world.daemon.place.cwd / "nowhere")
    async with world.page(token) as page:
        await begin(page, Directory=missing)
        problem = page.get_by_role("alert").filter(has_text=f"{missing} is not a directory")
        await expect(problem).to_be_visible()
        await expect(page.get_by_label("Directory")).to_have_value(missing)
        await page.get_by_label("Directory").fill("nowhere")
        await page.get_by_role("button", name="Begin").click()
        await expect(page.get_by_role("alert").filter(has_text="must be an absolute path")).to_be_visible()


async def test_a_session_is_begun_that_another_agent_runs(world, token):
    async with world.page(token) as page:
        await open_form(page)
        await page.get_by_label("Directory").fill(str(world.daemon.place.cwd))
        await page.get_by_label("Agent").fill("odd")
        await page.get_by_label("Mode", exact=True).select_option("ask")
        await page.get_by_role("button", name="Begin").click()
        await expect(page.locator("#facts")).to_have_text(f"odd · ask · {world.daemon.place.cwd}")
        await page.get_by_label("Prompt").fill("walrus")
        await page.get_by_role("button", name="Send").click()
        await expect(page.get_by_role("log").get_by_text("walrus")).to_have_count(
            2
        )  # as a prompt, and as it is answered


async def test_an_agent_that_does_not_exist_is_told_with_those_that_do(world, token):
    async with world.page(token) as page:
        await begin(page, Directory=str(world.daemon.place.cwd), Agent="nobody")
        await expect(page.get_by_role("alert").filter(has_text='no adapter "nobody"; there are claude')).to_be_visible()
        await page.get_by_label("Agent").fill("odd")
        await page.get_by_label("Model").fill("scripted")
        await page.get_by_role("button", name="Begin").click()
        await expect(page.get_by_role("alert").filter(has_text="leave out a model")).to_be_visible()


async def test_another_agent_needs_a_token_that_may_approve(world):
    async with world.page(await world.token("hand", "submit")) as page:
        await begin(page, Directory=str(world.daemon.place.cwd), Agent="odd")
        await expect(page.get_by_role("alert").filter(has_text="role approve")).to_be_visible()


async def test_a_token_that_may_submit_begins_a_session(world):
    async with world.page(await world.token("helper", "submit")) as page:
        await open_form(page)
        await page.get_by_label("Directory").fill(str(world.daemon.place.cwd))
        await page.get_by_label("Model").fill("scripted")
        await page.get_by_label("Mode", exact=True).select_option("read-only")
        await page.get_by_role("button", name="Begin").click()
        await expect(page.locator("#facts")).to_contain_text("read-only")


async def test_a_reader_cannot_begin_a_session(world):
    async with world.page(await world.token("spectator", "read")) as page:
        await expect(page.get_by_role("button", name="Forget token")).to_be_visible()
        await expect(page.get_by_role("link", name="New session", exact=True)).to_be_hidden()
        await page.goto(f"{world.url}/#new")
        await expect(page.get_by_role("button", name="Begin")).to_be_disabled()


async def test_a_prompt_that_is_begun_on_a_phone_is_finished_in_a_terminal(world, token):
    place = world.daemon.place
    leave_mark(place.home)
    call = CallPart("bash", {"command": "echo sown > bed.txt"})
    world.answers.extend([calls(call), text("the bed is sown")])
    async with world.page(token, **PHONE) as page:
        await open_form(page)
        await page.get_by_label("Directory").fill(str(place.cwd))
        await page.get_by_label("Model").fill("scripted")
        await page.get_by_label("Mode", exact=True).select_option("ask")
        assert await page.evaluate("document.querySelector('#beginner').scrollWidth") == 390
        await page.get_by_role("button", name="Begin").click()
        await page.get_by_label("Prompt").fill("sow the bed")
        await page.get_by_role("button", name="Send").click()
        await expect(page.get_by_role("heading", name="Allow bash?")).to_be_visible()
        session = page.url.rpartition("#")[2]
        zot = [sys.executable, "-m", "zotd.cli", "--session", session]
        with Tmux(zot, folder=place.cwd, env={**place.env, "LANG": "C.UTF-8", "TERM": "tmux-256color"}) as terminal:
            await asyncio.to_thread(terminal.wait, "sow the bed")
            await asyncio.to_thread(decide, terminal, "y", "the bed is sown")
        await expect(page.get_by_role("heading", name="Allow bash?")).to_be_hidden()
        await expect(entry(page, "the bed is sown")).to_be_visible()
    assert (place.cwd / "bed.txt").read_text() == "sown\n"
