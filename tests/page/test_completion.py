"""Completion in the prompt box of the page: files, what extensions offer to mention, slash commands."""

import asyncio
import json

import pytest
import pytest_asyncio
from playwright.async_api import expect

from tests.page.world import PHONE

pytestmark = pytest.mark.asyncio(loop_scope="module")

FILES = ("src/main.py", "src/my page.md", "src/view.py", "README.md", "<img src=x onerror=alert(1)>.txt")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session(world):
    folder = world.daemon.place.cwd / "completed"
    for name in FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return await world.session("Completing", mode="yolo", cwd=str(folder))


def choices(page):
    return page.get_by_role("listbox", name="Completions").get_by_role("option")


def chosen(page):
    return page.get_by_role("option", selected=True)


async def typed(page, words):
    box = page.get_by_label("Prompt")
    await expect(box).to_be_visible()  # what is not cannot be focused
    await box.press_sequentially(words)
    return box


async def test_files_are_offered_and_taken_with_the_keyboard(world, token, session):
    async with world.page(token, session) as page:
        box = await typed(page, "see @vi")
        await expect(choices(page).first).to_have_text("src/view.py")
        await expect(chosen(page)).to_have_text("src/view.py")
        await expect(box).to_have_attribute("aria-activedescendant", "choice-0")
        await box.press("Enter")
        await expect(box).to_have_value("see @src/view.py ")
        await expect(page.get_by_role("listbox")).to_be_hidden()
        await expect(box).not_to_have_attribute("aria-activedescendant", "choice-0")
        await expect(box).to_be_focused()


async def test_arrows_move_and_go_round_and_escape_closes_until_another_word(world, token, session):
    async with world.page(token, session) as page:
        box = await typed(page, "@src/")
        await expect(choices(page)).to_have_count(4)
        names = await choices(page).all_inner_texts()
        for key, at in (("ArrowDown", 1), ("ArrowUp", 0), ("ArrowUp", 3), ("ArrowDown", 0)):
            await box.press(key)
            await expect(chosen(page)).to_have_text(names[at].strip())
        await box.press("Escape")
        await expect(page.get_by_role("listbox")).to_be_hidden()
        await box.press_sequentially("m")
        await expect(box).to_have_value("@src/m")
        await expect(page.get_by_role("listbox")).to_be_hidden()
        await box.press_sequentially(" @READ")
        await expect(choices(page)).to_have_text(["README.md"])


async def test_tab_goes_into_a_directory_and_quotes_a_name_with_a_space(world, token, session):
    async with world.page(token, session) as page:
        box = await typed(page, "@sr")
        await expect(choices(page).first).to_have_text("src/")
        await box.press("Tab")
        await expect(box).to_have_value("@src/")
        await expect(choices(page)).to_have_count(4)
        await box.press_sequentially("my")
        await expect(choices(page).first).to_have_text("src/my page.md")
        await box.press("Tab")
        await expect(box).to_have_value('@"src/my page.md" ')


async def test_enter_sends_a_prompt_whose_mention_is_already_written(world, token, session):
    async with world.page(token, session) as page:
        box = await typed(page, "@README.md")
        await expect(choices(page)).to_have_text(["README.md"])
        await box.press("Enter")
        await expect(box).to_have_value("")
        await expect(page.get_by_role("log")).to_contain_text("@README.md")


async def test_slash_commands_are_offered_with_what_they_do(world, token, session):
    async with world.page(token, session) as page:
        box = await typed(page, "/")
        await expect(choices(page).filter(has_text="/compact")).to_be_visible()
        await expect(chosen(page)).to_have_count(0)
        await box.press_sequentially("und")
        await expect(chosen(page)).to_contain_text("/undo")
        await expect(chosen(page)).to_contain_text("built in")
        await box.press("Enter")
        await expect(box).to_have_value("/undo ")


async def test_an_answer_that_comes_too_late_is_not_shown(world, token, session):
    """The first answer is held back until something else is typed."""
    held, go = asyncio.Event(), asyncio.Event()
    async with world.page(token) as page:
        asked = []

        async def pass_on(route):
            server = route.connect_to_server()

            def from_page(message):
                frame = json.loads(message)
                if frame["type"] == "complete":
                    asked.append((frame["id"], frame["text"]))
                server.send(message)

            async def hold_back(message):
                held.set()
                await go.wait()
                route.send(message)

            def from_server(message):
                frame = json.loads(message)
                if asked and frame.get("id") == asked[0][0]:
                    tasks.create_task(hold_back(message))
                else:
                    route.send(message)

            route.on_message(from_page)
            server.on_message(from_server)

        async with asyncio.TaskGroup() as tasks:
            await page.route_web_socket("**/v1", pass_on)
            await page.reload()
            await page.goto(f"{world.url}/#{session}")
            box = await typed(page, "@vi")
            await held.wait()
            await box.fill("@READ")
            go.set()
            await expect(choices(page)).to_have_text(["README.md"])
        assert [text for _, text in asked][-1] == "READ"


async def test_a_choice_is_taken_by_touch_on_a_phone_without_losing_the_keyboard(world, token, session):
    async with world.page(token, session, **PHONE) as page:
        box = page.get_by_label("Prompt")
        await box.tap()
        await typed(page, "@view")
        row = choices(page).first
        await expect(row).to_be_in_viewport(ratio=1)
        rect = await page.get_by_role("listbox").bounding_box()
        assert rect["x"] >= 0
        assert rect["x"] + rect["width"] <= 390
        assert (await row.bounding_box())["height"] >= 40
        await row.tap()
        await expect(box).to_have_value("@src/view.py ")
        await expect(box).to_be_focused()
        assert await page.evaluate("document.documentElement.scrollWidth") <= 390


async def test_the_list_does_not_vanish_between_two_keys(world, token, session):
    async with world.page(token, session) as page:
        await typed(page, "@src/")
        await expect(choices(page)).to_have_count(4)
        await page.evaluate(
            """() => { window.vanished = 0;
                new MutationObserver(() => { window.vanished += document.getElementById("choices").hidden; })
                    .observe(document.getElementById("choices"), {attributes: true}); }"""
        )
        await page.get_by_label("Prompt").press_sequentially("view")
        await expect(choices(page)).to_have_text(["src/view.py"])
        assert await page.evaluate("window.vanished") == 0


async def test_names_of_files_are_text(world, token, session):
    async with world.page(token, session) as page:
        await typed(page, "@onerror")
        await expect(choices(page)).to_have_text(["<img src=x onerror=alert(1)>.txt"])
        await expect(page.locator("#choices img")).to_have_count(0)
