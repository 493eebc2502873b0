"""Files that are open in the editor: tools see changes that are not saved, and write through the editor."""

import asyncio

import pytest

from tests.npm.packages import INSTALL_S
from zotd.testing.script import CallPart, calls, text
from zotd.tools.shared import UNSAVED
from zotd.tools.shared import editor as editor_files

pytestmark = pytest.mark.timeout(INSTALL_S + 20)


@pytest.fixture(autouse=True)
def noticed(monkeypatch):
    """The editor has noticed all changes at once."""
    monkeypatch.setattr(editor_files, "NOTICE_S", 0)


def changing(old, new):
    return calls(CallPart("edit", {"path": "a.txt", "edits": [{"oldText": old, "newText": new}]}))


def results(request):
    """The results of tools in a request to the model."""
    return [message["content"] for message in request.messages if message["role"] == "tool"]


READ = calls(CallPart("read", {"path": "a.txt"}))


@pytest.fixture
def asked_for():
    """The methods that an agent has called, without those about what is shown."""

    def asked_for(editor):
        methods = [message.get("method") for sender, message in editor.frames if sender == "agent"]
        return [method for method in methods if method is not None and method.startswith("fs/")]

    return asked_for


async def test_tools_see_and_save_what_is_not_saved(world, asked_for):
    here = await world(READ, changing("unsaved\n", "edited\n"), text("done"))
    file = here.cwd / "a.txt"
    file.write_text("one\n")
    editor = await here.editor(buffers={str(file): "one\nunsaved\n"})
    session = await editor.open(here.cwd)
    assert await editor.say(session, "go") == "end_turn"
    read, edited = results(here.server.requests[2])
    assert read == f"one\nunsaved\n\n[a.txt {UNSAVED}]"
    assert edited.startswith("Edited a.txt: 1 replacement")
    assert editor.buffers[str(file)] == file.read_text() == "one\nedited\n"
    assert asked_for(editor) == ["fs/read_text_file", "fs/read_text_file", "fs/write_text_file"]


async def test_what_the_editor_does_not_save_is_written_to_the_disk(world):
    here = await world(changing("one", "two"), text("done"))
    file = here.cwd / "a.txt"
    file.write_text("one\n")
    editor = await here.editor(buffers={str(file): "one\n"})
    editor.saves = False
    await editor.say(await editor.open(here.cwd), "go")
    assert editor.buffers[str(file)] == file.read_text() == "two\n"


async def test_a_file_that_the_editor_does_not_have_is_read_and_changed_on_the_disk(world, asked_for):
    here = await world(
        READ, changing("one", "two"), calls(CallPart("write", {"path": "b/c.txt", "content": "new"})), text(".")
    )
    (here.cwd / "a.txt").write_text("one\n")
    editor = await here.editor(buffers={})
    await editor.say(await editor.open(here.cwd), "go")
    assert results(here.server.requests[3])[0] == "one\n"
    assert (here.cwd / "a.txt").read_text() == "two\n"
    assert (here.cwd / "b/c.txt").read_text() == "new"
    assert asked_for(editor) == ["fs/read_text_file", "fs/read_text_file", "fs/write_text_file"]


async def test_an_editor_that_leaves_in_the_middle_of_a_call_leaves_the_call_the_disk(world):
    here = await world(READ, text("I have read it."), text("later"))
    file = here.cwd / "a.txt"
    file.write_text("one\n")
    first, second = await here.editor(buffers={str(file): None}), await here.editor()
    session = await first.open(here.cwd)
    await second.agent.load_session(cwd=str(here.cwd), session_id=session)
    async with asyncio.TaskGroup() as group:
        asking = group.create_task(first.refused(first.say(session, "read it")))
        await first.until(lambda: "fs/read_text_file" in str(first.frames))
        first.process.kill()
        asking.cancel()
    await second.until(lambda: second.read().endswith("I have read it."))
    assert "one\\n" in str(here.server.requests[1].body)


async def test_a_link_that_the_editor_has_opened_is_the_directory_of_its_files(world, asked_for):
    here = await world(changing("one", "two"), text("done"))
    file, link = here.cwd / "a.txt", here.place.folder / "link"
    file.write_text("one\n")
    link.symlink_to(here.cwd)
    editor = await here.editor(buffers={str(link / "a.txt"): "one\n"})
    await editor.say(await editor.open(link), "go")
    assert editor.buffers[str(link / "a.txt")] == file.read_text() == "two\n"


async def test_an_undo_takes_back_what_was_written_through_the_editor(world):
    here = await world(changing("one", "two"), text("done"))
    file = here.cwd / "a.txt"
    file.write_text("one\n")
    editor = await here.editor(buffers={str(file): "one\n"})
    session = await editor.open(here.cwd)
    await editor.say(session, "go")
    assert file.read_text() == "two\n"
    await editor.say(session, "/undo")
    assert file.read_text() == "one\n"
