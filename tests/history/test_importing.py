"""A session file becomes one session that can go on, or none: what the original has written, and what we have."""

import asyncio
import json
import os
import resource
from contextlib import asynccontextmanager

import pytest

from tests.history import original_files as old
from zotd.core.transcript import SUMMARY_HEAD, Transcript
from zotd.history import export
from zotd.history.importing import LINE_BYTES, ImportSource, import_file
from zotd.ledger.ledger import Ledger
from zotd.store import staged
from zotd.store.archive import Archive
from zotd.store.journal import SqliteJournal
from zotd.store.verification import verify
from zotd.wire import events
from zotd.wire.content import Image, Text, Tokens, ToolCall, ToolResult
from zotd.wire.errors import CommandError

EVERYTHING = 10**9


class Desk:
    """A journal, and files to be read into it."""

    def __init__(self, journal, folder):
        self.journal = journal
        self.folder = folder
        self.archive = Archive(journal.database)

    def file(self, *lines, name="talk.jsonl"):
        path = self.folder / name
        path.write_text("".join(lines))
        return str(path)

    async def read(self, *lines, cwd="", **fields):
        """The session that a file with these lines becomes."""
        return await self.take(self.file(*lines), cwd=cwd, **fields)

    async def take(self, path, cwd="", mode="ask"):
        session, known = await import_file(self.journal, ImportSource(path, cwd, mode))
        assert not known
        return await self.open(session)

    async def open(self, session):
        row = await self.journal.row(session)
        ledger = Ledger(row, self.journal, Transcript(), addressed=True)
        ledger.load(await self.journal.records(session, row.base))
        assert row.messages == len(ledger.transcript.messages)
        return ledger

    async def refused(self, *lines, **fields):
        return await self.refuses(self.file(*lines), **fields)

    async def refuses(self, path, cwd=""):
        """The sentence; nothing is there afterwards."""
        with pytest.raises(CommandError) as caught:
            await import_file(self.journal, ImportSource(path, cwd, "ask"))
        assert (await self.journal.list())[0] == []
        return caught.value.sentence

    async def events(self, ledger):
        _, data = await self.journal.events_after(ledger.row.id, 0, EVERYTHING)
        return [events.DECODER.decode(line) for line in data.splitlines()]

    async def export(self, ledger, form="jsonl"):
        pages: list[str] = []
        after: int | None = 0
        while after is not None:
            page, after = await export.page(self.journal, ledger.row, form, after)
            pages.append(page)
        return "".join(pages), len(pages)


@asynccontextmanager
async def opened(folder):
    journal = await SqliteJournal.open(folder / "zot.db")
    try:
        yield Desk(journal, folder)
    finally:
        await journal.close()


@pytest.fixture
async def desk(tmp_path):
    async with opened(tmp_path) as desk:
        yield desk


ROUND = (
    old.message("user", old.text("what is in here?"), old.image(), minute=1),
    old.message("assistant", old.text("I look."), old.call("call_0", command="ls"), minute=2),
    old.message("tool", old.result("call_0", old.text("a.py")), minute=3),
    old.message("assistant", old.text("A program."), minute=4),
)


# --- what the original has written ------------------------------------------------------------------------------


async def test_an_imported_transcript_has_the_messages_and_their_events(desk):
    ledger = await desk.read(old.meta(), *ROUND)
    asked, wanted, answered, told = ledger.transcript.messages
    assert [asked.role, wanted.role, answered.role, told.role] == ["user", "assistant", "tool", "assistant"]
    assert asked.content == [Text("what is in here?"), Image("image/png", 4, "iVBORw==")]
    (_, call) = wanted.content
    assert isinstance(call, ToolCall)
    assert (call.name, call.args) == ("bash", {"command": "ls"})
    assert answered.content == [ToolResult(call.id, is_error=False, content=[Text("a.py")])]
    shown = [type(event).__name__ for event in await desk.events(ledger)]
    assert shown == [
        "UserMessage",
        "AssistantMessage",
        "ToolCallEvent",
        "ToolResultEvent",
        "AssistantMessage",
        "Forked",
    ]


async def test_an_imported_session_keeps_its_name_dates_and_settings(desk):
    ledger = await desk.read(old.meta(), *ROUND, old.rename("the directory"))
    row = ledger.row
    assert (row.name, row.cwd, row.state) == ("the directory", "/old/work", "idle")
    assert (row.created, row.updated) == ("2026-05-04T09:00:00.123Z", "2026-05-04T09:04:00.987Z")
    assert (row.settings.provider, row.settings.model, row.settings.mode) == ("openai", "gpt-5", "ask")


async def test_a_name_that_was_never_given_is_the_beginning_of_the_first_prompt(desk):
    assert (await desk.read(old.meta(), *ROUND)).row.name == "what is in here?"


async def test_the_directory_may_be_another_one_and_has_to_be_when_the_file_says_none(desk):
    path = desk.file(old.meta(cwd=""), *ROUND)
    assert "names no directory" in await desk.refuses(path)
    assert (await desk.take(path, cwd="/new/work")).row.cwd == "/new/work"


async def test_a_later_meta_row_switches_the_model(desk):
    ledger = await desk.read(old.meta(), *ROUND, old.meta(model="claude", provider="anthropic"))
    assert (ledger.row.settings.provider, ledger.row.settings.model) == ("anthropic", "claude")


async def test_each_call_gets_a_result_and_each_result_has_a_call(desk):
    ledger = await desk.read(
        old.meta(),
        old.message("user", old.text("go")),
        old.message("assistant", old.call("call_0"), old.call("call_1")),
        old.message("tool", old.result("call_1", old.text("one")), old.result("call_7", old.text("stray"))),
        old.message("user", old.text("again")),
        old.message("assistant", old.call("call_0")),
    )
    transcript = ledger.transcript
    assert transcript.open_calls == []
    asked = [block.id for m in transcript.messages for block in m.content if isinstance(block, ToolCall)]
    results = [block for m in transcript.messages for block in m.content if isinstance(block, ToolResult)]
    assert sorted(result.call_id for result in results) == sorted(asked)
    assert len(set(asked)) == 3
    assert [result.is_error for result in results] == [False, True, True]
    roles = [message.role for message in transcript.messages]
    assert roles == ["user", "assistant", "tool", "tool", "user", "assistant", "tool"]


async def test_what_requests_took_is_summed_up_also_where_sums_stand_in_the_place_of_parts(desk):
    ledger = await desk.read(
        old.meta(),
        *ROUND,
        old.usage(old.tokens(100, 0.5), old.tokens(100, 0.5)),
        old.usage(old.tokens(130, 0.75), old.tokens(130, 0.75)),
    )
    assert ledger.row.usage == Tokens(130, 130, 0, 0, 0.75)
    assert ledger.row.context == 60
    (sums,) = await desk.archive.usage()
    assert (sums.key, sums.attempts, sums.input, sums.cost_usd) == ("openai/gpt-5", 2, 130, 0.75)


async def test_after_a_compaction_the_model_sees_the_summary_and_what_was_kept(desk):
    summary = old.said("user", old.text("## Context Summary (compacted)\n\nWe looked."))
    kept = old.said("assistant", old.text("A program."), minute=4)
    ledger = await desk.read(
        old.meta(), *ROUND, old.compaction(summary, kept), old.message("user", old.text("and now?"), minute=5)
    )
    said = [block.text for message in ledger.transcript.messages for block in message.content]
    assert said == [SUMMARY_HEAD + "We looked.", "A program.", "and now?"]
    shown = [event for event in await desk.events(ledger) if isinstance(event, events.AssistantMessage)]
    assert len(shown) == 2  # nobody sees what was kept a second time
    assert ledger.row.base > 1


async def test_reasoning_and_rows_of_newer_versions_are_left_out_and_it_says_so(desk):
    thought = {"reasoning_id": "r1", "summary": ["hm"], "encrypted_content": "xx"}
    ledger = await desk.read(
        old.meta(),
        old.message("user", old.text("go")),
        old.line({"type": "weather"}),
        old.message("assistant", thought),
    )
    assert len(ledger.transcript.messages) == 1
    (told,) = [event for event in await desk.events(ledger) if isinstance(event, events.Forked)]
    assert told.text == "1 rows of the unknown kind weather"
    assert told.file == str(desk.folder / "talk.jsonl")


async def test_a_last_line_that_a_crash_has_cut_is_left_out(desk):
    ledger = await desk.read(old.meta(), *ROUND, old.message("user", old.text("and"))[:20])
    assert len(ledger.transcript.messages) == 4


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ([old.message("user", old.text("x"))], "line 1: not a session file of zot"),
        ([old.meta(), "nonsense\n", *ROUND], "line 2: it cannot be read: JSON is malformed"),
        ([old.meta(), *ROUND, '{"type":"message"}\n'], "line 6: the row message lacks its content"),
        ([old.meta(), '{"type":"message","message":{"role":3}}\n'], "line 2: it cannot be read"),
        ([old.meta(), old.message("user", {"mime_type": "image/png", "data": "?"})], "line 2: an image is not base64"),
        ([], "line 1: the file is empty"),
        ([old.meta()], "has no messages"),
    ],
)
async def test_a_file_with_something_wrong_in_it_becomes_nothing_and_its_line_is_named(desk, lines, sentence):
    assert sentence in await desk.refused(*lines)


async def test_lines_read_before_an_invalid_one_are_dropped_after_a_pause(desk):
    many = [old.message("user", old.text("x" * 1000)) for _ in range(2000)]
    await desk.refused(old.meta(), *many, "nonsense\n")
    assert (await desk.archive.search("x" * 1000)).hits == []

    def left(connection):
        return connection.execute("SELECT count(*) FROM records").fetchone()[0]

    swept: list[bool] = []
    while not swept or swept[-1]:
        await desk.journal.database.perform(
            lambda c: swept.append(staged.sweep(c, lambda _: {desk.journal.database.maker}))
        )
    assert await desk.journal.database.read(left) == 0


async def test_a_line_without_end_is_refused(desk):
    path = desk.folder / "long.jsonl"
    with path.open("wb") as file:
        file.write(old.meta().encode())
        file.truncate(LINE_BYTES + 1000)
    assert "line 2: it is longer than 64 MiB" in await desk.refuses(str(path))


# --- which file -------------------------------------------------------------------------------------------------


async def test_the_same_content_is_imported_once_until_its_session_is_deleted(desk):
    first = await desk.read(old.meta(), *ROUND)
    copy = desk.file(old.meta(), *ROUND, name="copy.jsonl")
    assert await import_file(desk.journal, ImportSource(copy, "", "ask")) == (first.row.id, True)
    await desk.journal.delete(first.row.id)
    assert (await desk.take(copy)).row.id != first.row.id


async def test_two_at_once_make_one_session(desk):
    path = desk.file(old.meta(), *ROUND)
    outcomes: list[object] = []

    async def take():
        try:
            outcomes.append(await import_file(desk.journal, ImportSource(path, "", "ask")))
        except Exception as error:  # noqa: BLE001  (the one that loses says so)
            outcomes.append(str(error))

    async with asyncio.TaskGroup() as tasks:
        for _ in range(2):
            tasks.create_task(take())
    rows, _ = await desk.journal.list()
    assert len(rows) == 1
    assert any(rows[0].id in str(outcome) for outcome in outcomes)


async def test_a_path_that_is_no_file_of_the_user_is_refused_without_a_wait(desk, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert "is not a file" in await desk.refuses(str(pipe))
    assert "is not a file" in await desk.refuses("/dev/zero")
    assert "is not a file" in await desk.refuses(str(tmp_path))
    assert "cannot be read" in await desk.refuses(str(tmp_path / "none"))
    assert "absolute path" in await desk.refuses("talk.jsonl")
    assert "cannot be read" in await desk.refuses("/x\0y")


async def test_a_large_file_takes_little_memory(desk):
    path = desk.folder / "large.jsonl"
    picture = old.image(b"\x00" * 750_000)
    with path.open("w") as file:
        file.write(old.meta())
        for minute in range(60):
            file.write(old.message("user", old.text(f"look at {minute}"), picture, minute=minute))
    assert path.stat().st_size > 60_000_000
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    session, _ = await import_file(desk.journal, ImportSource(str(path), "", "ask"))
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert (await desk.journal.row(session)).messages == 60
    assert grown_kib < 40_000


# --- what we have written ---------------------------------------------------------------------------------------


async def test_an_export_is_the_same_session_again(desk):
    ledger = await desk.read(old.meta(), *ROUND, old.usage(old.tokens(100, 0.5), old.tokens(100, 0.5)))
    text, _ = await desk.export(ledger)
    again = await desk.read(text)
    assert again.row.id != ledger.row.id
    assert again.transcript.messages == ledger.transcript.messages
    unchanged = ("name", "cwd", "created", "updated", "usage", "context", "messages")
    assert [getattr(again.row, name) for name in unchanged] == [getattr(ledger.row, name) for name in unchanged]
    shown, before = await desk.events(again), await desk.events(ledger)
    assert [(event.seq, type(event)) for event in shown[:-1]] == [(event.seq, type(event)) for event in before]
    assert {event.session for event in shown} == {again.row.id}
    assert verify(desk.folder / "zot.db").problems == []


async def test_a_file_chooses_neither_url_nor_mode_nor_programs(desk):
    ledger = await desk.read(old.meta(), *ROUND)
    first, rest = (await desk.export(ledger))[0].split("\n", 1)
    header = json.loads(first)
    header["settings"] |= {"base_url": "http://evil", "mode": "yolo", "extensions": ["/evil"], "own_key": True}
    settings = (await desk.read(json.dumps(header, separators=(",", ":")), "\n", rest)).row.settings
    assert (settings.base_url, settings.mode, settings.extensions, settings.own_key) == (None, "ask", [], False)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda lines: lines[:-1], "the file ends in the middle"),
        (lambda lines: lines[:2] + lines[3:], "it has record 3 where 2 is due"),
        (lambda lines: lines[:4] + lines[5:], "where"),
        (lambda lines: [*lines, lines[-1]], "there are lines after the end"),
        (lambda lines: [lines[0].replace('"v":1', '"v":2'), *lines[1:]], "which is newer"),
    ],
)
async def test_an_export_of_which_something_is_missing_is_refused(desk, change, sentence):
    async def exported():
        async with opened(desk.folder / "other") as other:
            return (await other.export(await other.read(old.meta(), *ROUND)))[0]

    (desk.folder / "other").mkdir()
    lines = (await exported()).splitlines(keepends=True)
    assert sentence in await desk.refused(*change(lines))


async def test_an_export_of_any_length_comes_in_pages_that_join(desk):
    long = "ü" * 3_000_000
    ledger = await desk.read(old.meta(), *ROUND, old.message("user", old.text(long), old.text('"\\')))
    for form, times in (("jsonl", 2), ("markdown", 1)):
        text, pages = await desk.export(ledger, form)
        assert pages > 3
        assert text.count(long) == times
