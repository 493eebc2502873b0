"""Prompt history of all sessions."""

import sqlite3
from contextlib import closing

import pytest

from zotd.core import records
from zotd.store import prompts
from zotd.store.archive import PROMPT_SLICES, Archive
from zotd.wire.content import Block, Image, Text

IN_A_FILE = pytest.mark.parametrize("stored_journal", ["sqlite"], indirect=True)
"""For tests of damage, and of what SQLite does with a query."""


@pytest.fixture
def journal(stored_journal):
    return stored_journal


TIME = "2026-11-21T20:11:18.919Z"


def asked(*texts, image=None):
    content: list[Block] = [*map(Text, texts)]
    if image:
        content.append(Image("image/png", len(image), image))
    return (records.Input(time=TIME, id="i", content=content),)


@pytest.fixture
def archive(journal):
    return Archive(journal.database)


async def texts(archive, query="", **options):
    return [prompt.text for prompt in (await archive.prompts(query, **options)).prompts]


@IN_A_FILE
async def test_a_damaged_prompt_is_skipped(archive, journal, author_of, tmp_path):
    await author_of(journal).commit(asked("one"), asked("two"), asked("three"))
    with closing(sqlite3.connect(tmp_path / "zot.db")) as connection, connection:
        connection.execute("UPDATE records SET body = ? WHERE number = 2", (b'{"kind": "input", "content": 7}',))
        connection.execute("UPDATE records SET body = ? WHERE number = 3", (b"\xff",))
    assert await texts(archive) == ["one"]


async def test_a_page_examines_a_limited_number_of_prompts_and_has_a_cursor(archive, journal, author_of):
    most = PROMPT_SLICES * prompts.SLICE
    author = author_of(journal)
    await author.commit(asked("the oldest"), *(asked(f"number {number}") for number in range(most)))
    page = await archive.prompts("oldest")
    assert (page.prompts, page.cursor is None) == ([], False)
    rest = await archive.prompts("oldest", before=int(page.cursor))
    assert ([prompt.text for prompt in rest.prompts], rest.cursor) == (["the oldest"], None)


async def test_prompts_with_images_are_read_in_small_slices(archive, journal, author_of):
    large = "x" * prompts.SLICE_BYTES
    await author_of(journal).commit(*(asked(f"look {number}", image=large) for number in range(3)))
    part = await journal.database.read(lambda connection: prompts.before(connection, prompts.MAX_KEY))
    assert ([prompt.text for _, prompt in part.prompts], part.end is None) == (["look 2"], False)
    assert await texts(archive) == ["look 2", "look 1", "look 0"]


@IN_A_FILE
async def test_prompts_are_found_by_an_index(archive, journal):
    def plan(connection):
        return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {prompts.KEYS}", (9, 9)).fetchall()]

    (step,) = await journal.database.read(plan)
    assert "USING COVERING INDEX records_input" in step
    assert "TEMP B-TREE" not in step
