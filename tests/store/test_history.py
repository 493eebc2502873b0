"""The contract of `core.ports.RecordReader`, checked with both implementations."""

import pytest

from zotd.core.lineage import RewindPoint
from zotd.core.records import RewindRow
from zotd.store.errors import UnreadableSessionError
from zotd.wire import events

TIME = "2026-11-21T20:11:18.919Z"
EVERYTHING = 10**9


@pytest.fixture
async def author(any_journal, author_of, say):
    """Three records; the second has three events."""
    author = author_of(any_journal)
    await author.commit((say.note("a"), [say.said("one")]))
    await author.commit((say.note("b"), [say.step(), say.said("two"), say.step()]), (say.note("c"),))
    return author


async def test_entries_have_the_record_and_its_events(any_journal, author):
    found = await any_journal.history.entries("s_1", 0, EVERYTHING)
    assert [stored.number for stored in found] == [1, 2, 3]
    assert [stored.record for stored in found] == [entry.record for entry in author.entries]
    assert [stored.events for stored in found] == [entry.events for entry in author.entries]
    assert [(stored.first_seq, stored.messages) for stored in found] == [(1, 1), (2, 1), (0, 0)]
    assert b'"text":"a"' in found[0].body
    assert [stored.number for stored in await any_journal.history.entries("s_1", 2, EVERYTHING)] == [3]
    assert await any_journal.history.entries("s_1", 3, EVERYTHING) == []
    assert await any_journal.history.entries("s_none", 0, EVERYTHING) == []


async def test_a_page_has_at_least_one_record_and_respects_the_limit(any_journal, author):
    first, second, _ = await any_journal.history.entries("s_1", 0, EVERYTHING)
    size = len(first.body) + len(first.events)
    assert len(await any_journal.history.entries("s_1", 0, 1)) == 1
    assert len(await any_journal.history.entries("s_1", 0, size + len(second.body) + len(second.events))) == 2


async def test_the_record_of_an_event_is_found(any_journal, author):
    assert [await any_journal.history.record_at("s_1", seq) for seq in range(7)] == [None, 1, 2, 2, 2, None, None]
    assert await any_journal.history.record_at("s_1", 10**30) is None


async def test_rewinds_are_returned_with_their_targets(any_journal, author):
    assert await any_journal.history.rewinds("s_1") == []
    await author.commit((RewindRow(time=TIME, to=1, seq=1), [events.Rewound(1)]))
    assert await any_journal.history.rewinds("s_1") == [RewindPoint(4, 1, 5, 1)]


@pytest.mark.parametrize(
    ("left", "before", "expected"),
    [
        ([(2, 4)], None, [1, 5]),
        ([(2, 4)], 5, [1]),
        ([(2, 4)], 3, [1]),
        ([(1, 1), (5, 5)], None, [3]),
        ([(1, 5)], None, []),
    ],
)
async def test_abandoned_messages_are_skipped(any_journal, author, say, left, before, expected):
    await author.commit((say.note("d"), [say.said("three")]))
    lines = await any_journal.messages_before("s_1", before, 9, left)
    assert [events.DECODER.decode(line).seq for line in lines] == expected


async def test_a_damaged_record_is_reported_and_makes_its_session_read_only(journal, author_of, say):
    await author_of(journal).commit((say.note("a"), [say.said("one")]), (say.note("b"),))
    await journal.database.perform(lambda c: c.execute("UPDATE records SET body = x'7b' WHERE number = 2"))
    with pytest.raises(UnreadableSessionError, match="record 2"):
        await journal.history.entries("s_1", 0, EVERYTHING)
    assert journal.damage("s_1") is not None
