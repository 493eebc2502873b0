"""Full-text search: results, their order, and keeping the index up to date."""

import asyncio
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from zotd.store import search
from zotd.store.archive import Archive
from zotd.store.journal import SqliteJournal
from zotd.store.verification import verify
from zotd.wire import events
from zotd.wire.content import Image, Text, ToolCall

IN_A_FILE = pytest.mark.parametrize("stored_journal", ["sqlite"], indirect=True)
"""For tests of damage, and of what SQLite does with a query."""


@pytest.fixture
def journal(stored_journal):
    return stored_journal


TIME = "2026-11-21T20:11:18.919Z"


@pytest.fixture
def archive(journal):
    return Archive(journal.database)


async def places(archive, query, **options):
    return [(hit.session, hit.seq) for hit in (await archive.search(query, **options)).hits]


async def test_a_hit_has_its_session_seq_and_role(archive, journal, author_of, say):
    author = author_of(journal, name="tests", cwd="/src")
    await author.commit((say.note("a"), [say.step(), say.said("why does the\nbuild   fail?")]))
    page = await archive.search("build")
    (hit,) = page.hits
    assert (hit.session, hit.name, hit.cwd, hit.seq, hit.time, hit.role) == ("s_1", "tests", "/src", 2, TIME, "user")
    assert hit.snippet == "why does the build fail?"
    assert (page.cursor, page.complete) == (None, True)


async def test_replies_and_results_are_indexed_by_their_text_only(archive, journal, author_of, say):
    reply = events.AssistantMessage([Text("the reply"), ToolCall("c", "bash", {"command": "secret"})], TIME)
    result = events.ToolResultEvent("c", False, [Text("one"), Image("image/png", 3), Text("two")])
    await author_of(journal).commit((say.note("hidden"), [reply]), (say.note("n"), [result, say.step()]))
    assert [hit.role for hit in (await archive.search("reply")).hits] == ["assistant"]
    assert [hit.snippet for hit in (await archive.search("one two")).hits] == ["one two"]
    for words in ("secret", "bash", "png", "hidden", "turn_start"):
        assert await places(archive, words) == []


# --- a damaged index ---


def damage_index(path, statement):
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


WORDS_LOST = "UPDATE texts_data SET block = x'00' WHERE id > 100"

STRUCTURE_LOST = "UPDATE texts_data SET block = x'00'"


@IN_A_FILE
async def test_a_search_rebuilds_a_damaged_index(archive, journal, author_of, say, tmp_path, caplog):
    await author_of(journal).commit((say.note("a"), [say.said("red green")]))
    assert await places(archive, "red") == [("s_1", 1)]
    damage_index(tmp_path / "zot.db", WORDS_LOST)
    assert await places(archive, "red") == [("s_1", 1)]
    assert await places(archive, "green") == [("s_1", 1)]
    assert "the search index is damaged; rebuilding it" in caplog.text
    assert verify(tmp_path / "zot.db").problems == []


@IN_A_FILE
@pytest.mark.parametrize("damage", [WORDS_LOST, STRUCTURE_LOST])
async def test_a_damaged_index_does_not_prevent_commits_or_deletions(
    archive, journal, author_of, say, tmp_path, damage
):
    for session in ("s_1", "s_2"):
        await author_of(journal, session).commit((say.note("a"), [say.said("red")]))
    assert len(await places(archive, "red")) == 2
    damage_index(tmp_path / "zot.db", damage)
    await journal.delete("s_1")
    await author_of(journal, "s_3").commit((say.note("a"), [say.said("red")]))
    assert sorted(await places(archive, "red")) == [("s_2", 1), ("s_3", 1)]
    assert verify(tmp_path / "zot.db").problems == []


async def test_an_unreadable_record_does_not_stop_the_indexing(tmp_path, author_of, say):
    path = tmp_path / "zot.db"
    journal = await SqliteJournal.open(path)
    await author_of(journal).commit((say.note("a"), [say.said("red")]), (say.note("X" * 20_000), [say.said("lost")]))
    await author_of(journal, "s_2").commit((say.note("a"), [say.said("red")]))
    await journal.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA auto_vacuum = NONE")  # with it, SQLite finds its way past a damaged chain
        connection.execute("VACUUM")
    content = bytearray(path.read_bytes())
    page = content.index(b"X" * 4000) // 4096 * 4096
    content[page : page + 4] = b"\xff\xff\xff\xff"  # number of the next page in the chain
    path.write_bytes(content)
    damage_index(path, "UPDATE meta SET value = '0' WHERE key = 'searchable'")

    journal = await SqliteJournal.open(path)
    archive = Archive(journal.database)
    assert await places(archive, "red") == [("s_2", 1), ("s_1", 1)]
    assert await places(archive, "lost") == []
    await journal.close()


async def test_all_words_must_match_in_any_order_and_a_phrase_exactly(archive, journal, author_of, say):
    author = author_of(journal)
    for words in ("red green blue", "green red", "blue"):
        await author.commit((say.note("n"), [say.said(words)]))
    assert await places(archive, "red green") == [("s_1", 2), ("s_1", 1)]
    assert await places(archive, '"red green"') == [("s_1", 1)]
    assert await places(archive, 'blue "green') == [("s_1", 1)]
    assert await places(archive, "red yellow") == []


async def test_search_ignores_case_accents_and_punctuation_but_not_word_order_in_names(
    archive, journal, author_of, say
):
    await author_of(journal).commit((say.note("n"), [say.said("Das Café in zotd/store_search.py")]))
    for words in ("cafe", "CAFÉ", "store_search", "zotd/store", "search.py", "das!?", "-- das"):
        assert await places(archive, words) == [("s_1", 1)], words
    assert await places(archive, "search_store") == []


@pytest.mark.parametrize(
    "query", ['"', '""', "AND", "NOT x", "text:x", "x*", "^x", "(", "NEAR(a b)", "a\0b", "' OR 1", "…"]
)
async def test_fts_syntax_in_a_query_has_no_effect(archive, journal, author_of, say, query):
    await author_of(journal).commit((say.note("n"), [say.said("something else")]))
    assert await places(archive, query) == []


@given(query=st.text(max_size=200))
def test_no_query_is_an_error(query):
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE VIRTUAL TABLE texts USING fts5 (text)")
        wanted = search.words(query)
        if wanted:
            connection.execute("SELECT rowid FROM texts WHERE texts MATCH ?", (wanted,)).fetchall()


async def test_pages_are_newest_first_and_do_not_shift_when_messages_are_added(archive, journal, author_of, say):
    authors = [author_of(journal, "s_1"), author_of(journal, "s_2")]
    for n in range(5):
        await authors[n % 2].commit((say.note("n"), [say.said(f"word {n}")]))
    found, before = [], None
    while True:
        page = await archive.search("word", before=before, limit=2)
        found.append([(hit.session, hit.snippet) for hit in page.hits])
        if page.cursor is None:
            break
        before = int(page.cursor)
        await authors[0].commit((say.note("n"), [say.said("word, and later")]))
    assert found == [
        [("s_1", "word 4"), ("s_2", "word 3")],
        [("s_1", "word 2"), ("s_2", "word 1")],
        [("s_1", "word 0")],
    ]


async def test_a_deleted_session_is_not_found_and_its_keys_can_be_reused(archive, journal, author_of, say):
    await author_of(journal, "s_1").commit((say.note("n"), [say.said("kept word")]))
    await author_of(journal, "s_2").commit((say.note("n"), [say.said("gone word")]))
    assert len(await places(archive, "word")) == 2
    await journal.delete("s_2")
    assert await places(archive, "word") == [("s_1", 1)]
    await author_of(journal, "s_3").commit((say.note("n"), [say.said("new word")]))
    assert await places(archive, "word") == [("s_3", 1), ("s_1", 1)]
    assert await places(archive, "gone") == []


async def test_long_texts_are_indexed_by_their_beginning_and_shown_as_snippets(archive, journal, author_of, say):
    log = "start " + "x " * search.TOOL_CHARS + "end"
    result = events.ToolResultEvent("c", False, [Text(log)])
    await author_of(journal).commit((say.note("n"), [result, say.said(log), say.said("y" * 10_000)]))
    assert await places(archive, "start") == [("s_1", 2), ("s_1", 1)]
    assert await places(archive, "end") == [("s_1", 2)]
    for query in ("end", "y" * 10_000):
        (hit,) = (await archive.search(query)).hits
        assert len(hit.snippet) <= search.SNIPPET_CHARS


@IN_A_FILE
async def test_an_unreadable_record_does_not_hide_others(tmp_path, archive, journal, author_of, say):
    await author_of(journal).commit(*[(say.note("n"), [say.said(f"word {n}")]) for n in range(3)])
    with closing(sqlite3.connect(tmp_path / "zot.db")) as connection, connection:
        connection.execute("UPDATE records SET events = x'7b22' WHERE number = 2")
    assert await places(archive, "word") == [("s_1", 3), ("s_1", 1)]


class Sessions(RuleBasedStateMachine):
    """Commits, deletions, restarts and searches in any order, compared with a plain list."""

    def __init__(self, author_of, say):
        super().__init__()
        self.author_of, self.say = author_of, say
        self.directory = tempfile.TemporaryDirectory()
        self.path = Path(self.directory.name, "zot.db")
        self.runner = asyncio.Runner()
        self.journal = self.runner.run(SqliteJournal.open(self.path))
        self.authors = {}
        self.said: list[tuple[str, int, str]] = []

    def teardown(self):
        self.runner.run(self.journal.close())
        self.runner.close()
        self.directory.cleanup()

    @rule(session=st.sampled_from("abc"), words=st.lists(st.sampled_from(["red", "green", "red green"]), max_size=3))
    def commit(self, session, words):
        self.runner.run(self._commit(session, words))

    async def _commit(self, session, words):
        author = self.authors.setdefault(session, self.author_of(self.journal, session))
        first = author.row.seq + 1
        await author.commit((self.say.note("n"), [self.say.said(text) for text in words]))
        self.said += [(session, first + n, text) for n, text in enumerate(words)]

    @rule(session=st.sampled_from("abc"))
    def delete(self, session):
        self.runner.run(self.journal.delete(session))
        self.authors.pop(session, None)
        self.said = [one for one in self.said if one[0] != session]

    @rule()
    def reopen(self):
        self.runner.run(self.journal.close())
        self.journal = self.runner.run(SqliteJournal.open(self.path))
        for author in self.authors.values():
            author.journal = self.journal

    @rule()
    def follow_a_little(self):
        self.runner.run(self.journal.database.perform(search.advance))

    @rule(word=st.sampled_from(["red", "green", "red green"]))
    def search(self, word):
        archive = Archive(self.journal.database)
        found = [(hit.session, hit.seq) for hit in self.runner.run(archive.search(word, limit=100)).hits]
        # Within a record, later messages are newer, as they are among records.
        wanted = [(session, seq) for session, seq, text in self.said if set(word.split()) <= set(text.split())]
        assert found == wanted[::-1]

    @invariant()
    def nothing_stays_of_what_was_deleted(self):
        with closing(sqlite3.connect(self.path)) as connection:
            (stored,) = connection.execute("SELECT count(*) FROM texts").fetchone()
        assert stored <= len(self.said)


def test_search_finds_exactly_the_messages_that_were_not_deleted(author_of, say):
    few = settings(max_examples=25, stateful_step_count=15, deadline=None)
    run_state_machine_as_test(lambda: Sessions(author_of, say), settings=few)  # type: ignore[arg-type]  # any factory
