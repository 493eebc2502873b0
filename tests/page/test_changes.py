"""What runs change in files, on the page: shown, undone, made again; and the slash commands of its prompt box."""

import asyncio
import json
import sys

import pytest
from playwright.async_api import WebSocketRoute, expect

from tests.jail.conftest import files
from tests.needs import needs
from tests.page.world import PHONE, WAIT_MS, entry
from zotd.testing.script import CallPart, calls, text

pytestmark = pytest.mark.asyncio(loop_scope="module")


GREETER = """
from zotd.sdk import *

ext = Extension("greeter")


@ext.command("greet")
def greet(args):
    return Display(f"hello, {args}")


ext.run()
"""


def write(world, path, content):
    """Let the model write a file in its next run."""
    world.answers.extend([calls(CallPart("write", {"path": path, "content": content})), text("written")])


async def prompt(page, words):
    await page.get_by_label("Prompt").fill(words)
    await page.get_by_role("button", name="Send").click()


async def run(page, words, answer):
    """Send a prompt, and wait for the end of its run: until then each changed file counts as the run's."""
    await prompt(page, words)
    await expect(entry(page, answer)).to_be_visible()
    await expect(page.get_by_role("button", name="Send")).to_be_visible()


async def open_changes(page):
    await page.get_by_role("button", name="Changes").click()
    return page.get_by_role("region", name="Changes of the last run")


async def test_the_changes_of_a_run_are_shown_undone_and_made_again(world, token):
    file = world.daemon.place.cwd / "poem.txt"
    write(world, "poem.txt", "roses\n")
    session = await world.session("Poetry", mode="yolo")
    async with world.page(token, session) as page, world.page(token, session) as other:
        await run(page, "write", "written")
        changes = await open_changes(page)
        await expect(changes).to_contain_text("The last run has changed 1 file")
        await expect(changes).to_contain_text("poem.txt +1 -0")
        await expect(changes.locator(".added")).to_have_text("+ roses")
        await changes.get_by_role("button", name="Undo").click()
        for each in (page, other):
            await expect(entry(each, "undone: 1 file (poem.txt) as before")).to_be_visible()
        assert not file.exists()
        await changes.get_by_role("button", name="Redo").click()
        await expect(entry(page, "done again: 1 file (poem.txt)")).to_be_visible()
        assert file.read_text() == "roses\n"


async def test_what_the_user_has_changed_since_is_overwritten_only_when_asked(world, token):
    file = world.daemon.place.cwd / "list.txt"
    file.write_text("milk\n")
    write(world, "list.txt", "milk\nbread\n")
    async with world.page(token, await world.session("Shopping", mode="yolo")) as page:
        await run(page, "add bread", "written")
        file.write_text("mine\n")
        changes = await open_changes(page)
        await changes.get_by_role("button", name="Undo").click()
        await expect(changes.get_by_role("alert")).to_contain_text("list.txt was changed since then")
        assert file.read_text() == "mine\n"
        await changes.get_by_label("Files that you have changed since").select_option("restore them, too (--force)")
        await changes.get_by_role("button", name="Undo").click()
        await expect(entry(page, "undone: 1 file (list.txt)")).to_be_visible()
    assert file.read_text() == "milk\n"


async def test_a_refused_undo_stays_explained_when_an_earlier_answer_comes_late(world, token):
    held: list[tuple[WebSocketRoute, str]] = []
    late = asyncio.Event()
    is_late = False

    def between(page):
        page.connect_to_server().on_message(lambda frame: pass_on(page, frame))

    def pass_on(page, frame):
        if is_late and '"patch"' in frame:
            held.append((page, frame))
            late.set()
        else:
            page.send(frame)

    write(world, "late.txt", "1\n")
    write(world, "late.txt", "2\n")
    session = await world.session("Late", mode="yolo")
    async with world.page(token, session) as page:
        await page.route_web_socket("**/*", between)
        await page.reload()
        await run(page, "one", "written")
        changes = await open_changes(page)
        await expect(changes).to_contain_text("late.txt +1 -0")
        is_late = True
        await world.run(session, "two")  # at its end the page asks what it has changed
        await expect(entry(page, "written")).to_have_count(2)
        await expect(changes.get_by_role("button", name="Undo")).to_be_enabled()  # the page has seen the end
        (world.daemon.place.cwd / "late.txt").write_text("mine\n")
        await changes.get_by_role("button", name="Undo").click()
        await expect(changes.get_by_role("alert")).to_contain_text("late.txt was changed since then")
        async with asyncio.timeout(WAIT_MS / 1000):
            await late.wait()  # the daemon compares files for this answer, which may take longer than the refusal
        for door, frame in held:
            door.send(frame)
        await expect(changes).to_contain_text("+ 2")
        await expect(changes.get_by_role("alert")).to_contain_text("late.txt was changed since then")


async def test_nothing_to_undo_is_told_in_a_sentence(world, token):
    async with world.page(token, await world.session("Blank", mode="yolo")) as page:
        changes = await open_changes(page)
        await expect(changes.get_by_role("alert")).to_contain_text("no run")
        await page.get_by_role("button", name="Changes").click()
        await expect(changes).to_be_hidden()


async def test_open_changes_follow_the_next_run(world, token):
    write(world, "first.txt", "1\n")
    write(world, "second.txt", "2\n")
    session = await world.session("Series", mode="yolo")
    async with world.page(token, session) as page:
        await run(page, "one", "written")
        changes = await open_changes(page)
        await expect(changes).to_contain_text("first.txt")
        await world.run(session, "two")
        await expect(changes).to_contain_text("second.txt")
        await expect(changes).not_to_contain_text("first.txt")


async def test_a_reader_sees_the_changes_and_cannot_undo_them(world):
    write(world, "exhibit.txt", "look\n")
    session = await world.session("Gallery", mode="yolo")
    await world.run(session, "write")
    async with world.page(await world.token("visitor", "read"), session) as page:
        changes = await open_changes(page)
        await expect(changes).to_contain_text("exhibit.txt")
        await expect(changes.get_by_role("button", name="Undo")).to_be_hidden()


async def test_slash_commands_are_run_and_their_answers_shown(world, token):
    file = world.daemon.place.cwd / "draft.txt"
    write(world, "draft.txt", "words\n")
    async with world.page(token, await world.session("Commands", mode="yolo")) as page:
        await run(page, "write", "written")
        await prompt(page, "/diff")
        await expect(page.get_by_role("region", name="Changes of the last run")).to_contain_text("draft.txt")
        await prompt(page, "/undo")
        await expect(entry(page, "undone: 1 file (draft.txt)")).to_have_count(1)
        await expect(page.get_by_label("Prompt")).to_have_value("")
        assert not file.exists()
        await prompt(page, "/reload-ext")
        await expect(page.get_by_role("status").filter(has_text="extensions reloaded")).to_be_visible()
        await prompt(page, "/nonsense here")
        await expect(page.get_by_role("alert").filter(has_text="there is no /nonsense")).to_be_visible()
        await expect(page.get_by_label("Prompt")).to_have_value("/nonsense here")
        world.answers.append(text("a path"))
        await prompt(page, "//etc")
        await expect(page.locator(".user").last).to_contain_text("/etc")
        await expect(entry(page, "a path")).to_be_visible()
    assert world.model.requests[-1].messages[-1]["content"] == "/etc"


async def test_commands_of_extensions_and_skills_are_run(world, token):
    home = world.daemon.place.home
    (home / "skills" / "release").mkdir(parents=True)
    (home / "skills" / "release" / "SKILL.md").write_text("---\nname: release\ndescription: Releases.\n---\nTag it.\n")
    extension = home / "extensions" / "greeter"
    extension.mkdir(parents=True)
    manifest = {"name": "greeter", "exec": sys.executable, "args": ["main.py"]}
    (extension / "extension.json").write_text(json.dumps(manifest))
    (extension / "main.py").write_text(GREETER)
    world.answers.append(text("released"))
    async with world.page(token, await world.session("Extended", mode="yolo")) as page:
        await prompt(page, "/reload-ext")
        await expect(page.get_by_role("status").filter(has_text="extensions reloaded")).to_be_visible()
        await prompt(page, "/greet the team")
        await expect(entry(page, "hello, the team")).to_have_count(1)
        await prompt(page, "/skill:release now")
        await expect(entry(page, "released")).to_be_visible()
    assert "Tag it." in str(world.model.requests[-1].messages)


async def test_an_unknown_host_is_allowed_from_a_phone(world, token, tmp_path):
    needs("bwrap", "curl")
    (tmp_path / "page").write_text("a page")
    session = await world.session("Errand", mode="workspace")
    with files(tmp_path) as port:
        host = f"127.0.0.3:{port}"
        world.answers.extend([calls(CallPart("bash", {"command": f"curl -sS http://{host}/page"})), text("fetched")])
        async with world.page(token, session, **PHONE) as page:
            await prompt(page, "fetch")
            question = page.get_by_label("Decision")
            await expect(question).to_contain_text("Allow network?")
            await expect(question).to_contain_text(host)
            await question.get_by_role("button", name="Allow once").click()
            await expect(entry(page, "fetched")).to_be_visible()
            await expect(page.locator(".tool .output")).to_contain_text("a page")
            await expect(question).to_be_hidden()


async def test_a_long_name_does_not_lie_below_the_button(world, token):
    session = await world.session("the " * 40, mode="yolo")
    async with world.page(token, session) as page:
        button = page.get_by_role("button", name="Changes")
        await expect(button).to_be_visible()
        title, beside = await page.locator("#title").bounding_box(), await button.bounding_box()
        assert title["x"] + title["width"] <= beside["x"]
