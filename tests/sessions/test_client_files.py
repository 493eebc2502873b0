"""Which editor is asked about a file, and what becomes of a question without an answer."""

import asyncio

import pytest

from zotd.sessions.client_files import MAX_KNOWN, READ_S, WRITE_S, ClientFiles
from zotd.wire.api import FileAnswer
from zotd.wire.errors import CommandError
from zotd.wire.events import FileRequest


@pytest.fixture
def told():
    return []


@pytest.fixture
def files(told):
    return ClientFiles("s_1", told.append)


def answering(files, client, *, content=None, error=None):
    """A client that answers at once."""
    asked = []

    def send(request):
        asked.append(request)
        answer = FileAnswer(session="s_1", request=request.id, content=content, error=error)
        asyncio.get_running_loop().call_soon(files.answer, client, answer)

    return asked, send


async def test_the_client_that_offered_last_is_asked(files):
    _, old = answering(files, "k_1", content="old")
    asked, new = answering(files, "k_2", content="new")
    files.offer("k_1", old)
    files.offer("k_2", new)
    assert await files.read("/a") == "new"
    assert [(one.action, one.path, one.content, one.session) for one in asked] == [("read", "/a", None, "s_1")]
    files.withdraw("k_2")
    assert await files.read("/a") == "old"
    files.withdraw("k_1")
    assert (await files.read("/a"), await files.write("/a", ""), files.offers) == (None, False, {})


async def test_a_client_that_only_reads_is_not_asked_to_write(files):
    asked, send = answering(files, "k_1", content="text")
    files.offer("k_1", send, writes=False)
    assert (await files.read("/a"), await files.write("/a", "b"), len(asked)) == ("text", False, 1)


async def test_an_error_of_the_editor_leaves_the_disk(files):
    _, send = answering(files, "k_1", error="it is not open")
    files.offer("k_1", send)
    assert (await files.read("/a"), await files.write("/a", "b")) == (None, False)


@pytest.mark.looptime
async def test_an_editor_that_does_not_answer_is_asked_once_and_people_are_told(files, told, looptime):
    files.offer("k_1", lambda _: None)
    assert await files.read("/a") is None
    assert looptime == READ_S
    assert await files.read("/a") is None
    assert looptime == READ_S
    [sentence] = told
    assert sentence.startswith("the editor did not read /a within 5 s")
    files.offer("k_1", lambda _: None)
    assert await files.write("/a", "b") is False
    assert looptime == READ_S + WRITE_S


async def test_a_client_that_leaves_is_waited_for_no_more(files, told):
    files.offer("k_1", lambda _: asyncio.get_running_loop().call_soon(files.withdraw, "k_1"))
    assert await files.read("/a") is None
    assert told == []


async def test_only_the_client_that_was_asked_answers(files):
    asked: list[FileRequest] = []
    files.offer("k_1", asked.append)
    async with asyncio.TaskGroup() as group:
        reading = group.create_task(files.read("/a"))
        await asyncio.sleep(0)
        answer = FileAnswer(session="s_1", request=asked[0].id, content="text")
        for client, given in (("k_2", answer), ("k_1", FileAnswer(session="s_1", request="f_0"))):
            with pytest.raises(CommandError, match="no open request"):
                files.answer(client, given)
        files.answer("k_1", answer)
    assert reading.result() == "text"


def test_what_editor_and_disk_had_last_is_known_of_the_newest_files(files):
    for number in range(MAX_KNOWN + 1):
        files.agreed(f"/{number}", "a")
    files.agreed("/2", "b")
    assert [files.has_agreed(path, "a") for path in ("/0", "/1", "/2")] == [False, True, False]
    assert files.has_agreed("/2", "b")
