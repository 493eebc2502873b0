"""The contract of `core.ports.Journal`, checked with all implementations."""

import msgspec
import pytest

from zotd.core import records
from zotd.core.ports import PartialText, StorageError
from zotd.store.memory import Memory

MANY = 1_000_000


async def test_records_are_returned_from_any_number_on_oldest_first(any_journal, author_of, say):
    author = author_of(any_journal)
    await author.commit((say.note("one"),), (say.note("two"),), durable=True)
    await author.commit((say.note("three"),))

    assert [record.text for record in await any_journal.records("s_1", 1)] == ["one", "two", "three"]
    assert [record.text for record in await any_journal.records("s_1", 3)] == ["three"]
    assert await any_journal.records("s_1", 4) == []


async def test_the_row_of_the_last_commit_is_kept(any_journal, author_of, say):
    author = author_of(any_journal)
    await author.commit((say.note("one"), [say.step()]))
    await author.commit(name="new name", state="busy", context=17)

    assert await any_journal.row("s_1") == author.row
    assert author.row.name == "new name"


async def test_completions_are_reported_in_the_order_of_the_commits(any_journal, author_of, say):
    order = []
    authors = [author_of(any_journal, f"s_{n}") for n in range(5)]
    ends = [
        author.commit((say.note("x"),), durable=n % 3 == 0, done=lambda _, n=n: order.append(n))
        for n, author in enumerate(authors * 4)
    ]
    await ends[-1]
    assert order == list(range(20))


async def test_a_read_after_a_completion_sees_the_commit(any_journal, author_of, say):
    author = author_of(any_journal)
    for n in range(1, 20):
        await author.commit((say.note("x"),))
        assert len(await any_journal.records("s_1", 1)) == n


async def test_a_cursor_within_a_record_returns_the_rest_of_its_events(any_journal, author_of, say):
    author = author_of(any_journal)
    await author.commit((say.note("a"), [say.step(n) for n in range(4)]), (say.note("b"), [say.said("x")]))

    reached, data = await any_journal.events_after("s_1", 2, MANY)
    assert (reached, data.splitlines()) == (5, author.lines()[2:])


async def test_events_are_returned_in_whole_records_and_at_least_one(any_journal, author_of, say):
    author = author_of(any_journal)
    for n in range(3):
        await author.commit((say.note("a"), [say.step(n), say.step(n)]))
    one_record = len(author.entries[0].events)

    assert (await any_journal.events_after("s_1", 0, 1))[0] == 2
    assert (await any_journal.events_after("s_1", 0, 2 * one_record))[0] == 4
    assert (await any_journal.events_after("s_1", 0, 2 * one_record - 1))[0] == 2


@pytest.mark.parametrize("seq", [1, 2, 10**30])
async def test_a_cursor_at_the_end_or_in_the_future_gets_nothing(any_journal, author_of, say, seq):
    await author_of(any_journal).commit((say.note("a"), [say.step()]))
    assert await any_journal.events_after("s_1", seq, MANY) == (seq, b"")


async def test_messages_before_a_seq_are_returned_oldest_first(any_journal, author_of, say):
    author = author_of(any_journal)
    await author.commit((say.note("a"), [say.said("one"), say.step(), say.said("two")]))
    await author.commit((say.note("no events"),))
    await author.commit((say.note("b"), [say.step()]), (say.note("c"), [say.said("three")]))
    seqs = lambda lines: [msgspec.json.decode(line)["seq"] for line in lines]  # noqa: E731

    assert seqs(await any_journal.messages_before("s_1", None, 10)) == [1, 3, 5]
    assert seqs(await any_journal.messages_before("s_1", None, 2)) == [3, 5]
    assert seqs(await any_journal.messages_before("s_1", 5, 10)) == [1, 3]
    assert seqs(await any_journal.messages_before("s_1", 3, 10)) == [1]
    assert seqs(await any_journal.messages_before("s_1", 1, 10)) == []
    assert seqs(await any_journal.messages_before("s_1", None, 0)) == []


async def test_an_unknown_session_has_no_records(any_journal):
    assert await any_journal.records("s_none", 1) == []
    assert await any_journal.events_after("s_none", 0, MANY) == (0, b"")
    assert await any_journal.messages_before("s_none", None, 5) == []
    assert await any_journal.row("s_none") is None


async def test_a_deleted_session_leaves_nothing_and_its_id_can_be_reused(any_journal, author_of, say):
    await author_of(any_journal).commit((say.note("a"), [say.said("x")]))
    other = author_of(any_journal, "s_2")
    await other.commit((say.note("b"), [say.said("y")]))
    await any_journal.delete("s_1")

    assert await any_journal.row("s_1") is None
    assert await any_journal.records("s_1", 1) == []
    assert await any_journal.messages_before("s_2", None, 5) == other.lines()
    await author_of(any_journal).commit((say.note("again"),))
    assert len(await any_journal.records("s_1", 1)) == 1


@pytest.fixture
def ends():
    """Records that end a step, by kind."""
    reply = records.Reply(time="", run="r_1", step=2, content=[], stop="end_turn")
    return {"message": reply, "interrupted": records.Interrupted(time="", what="run", text="cut")}


async def test_the_newest_partial_text_is_kept_until_its_message_is_recorded(any_journal, author_of, say, ends):
    author = author_of(any_journal)
    await author.commit((say.note("a"),))
    for text in ("He", "Hell", "Hello"):
        any_journal.keep_partial("s_1", PartialText("r_1", 2, text))
    await author.commit((say.note("says nothing of it"),))
    assert await any_journal.partial("s_1") == PartialText("r_1", 2, "Hello")
    assert await any_journal.partial("s_2") is None

    any_journal.keep_partial("s_1", PartialText("r_1", 2, "Hello t"))
    await author.commit((say.note("b"),), (ends["message"],))
    assert await any_journal.partial("s_1") is None


async def test_the_partial_text_of_a_cut_step_is_kept_until_the_interruption_is_recorded(
    any_journal, author_of, say, ends
):
    author = author_of(any_journal)
    await author.commit((say.note("a"),))
    any_journal.keep_partial("s_1", PartialText("r_1", 2, "Hell"))
    await author.commit((ends["interrupted"],))
    assert await any_journal.partial("s_1") is None


async def test_a_message_does_not_remove_the_partial_text_of_the_next_step(any_journal, author_of, say, ends):
    author = author_of(any_journal)
    await author.commit((say.note("a"),))
    any_journal.keep_partial("s_1", PartialText("r_1", 2, "Hello"))
    author.commit((ends["message"],))
    any_journal.keep_partial("s_1", PartialText("r_1", 3, "And"))
    await author.commit((say.note("b"),))
    assert await any_journal.partial("s_1") == PartialText("r_1", 3, "And")


async def test_a_deleted_or_unknown_session_has_no_partial_text(any_journal, author_of, say):
    author = author_of(any_journal)
    await author.commit((say.note("a"),))
    any_journal.keep_partial("s_1", PartialText("r_1", 1, "Hello"))
    await any_journal.delete("s_1")
    any_journal.keep_partial("s_1", PartialText("r_1", 1, "Hello again"))
    await author_of(any_journal).commit((say.note("a"),))
    assert await any_journal.partial("s_1") is None


async def test_a_commit_that_leaves_a_gap_is_refused_as_a_whole(any_journal, author_of, say):
    author = author_of(any_journal)
    await author.commit((say.note("a"), [say.step()]))
    stored = author.row
    author.seal(say.note("lost"), [say.step()])

    with pytest.raises(StorageError, match="record 3 does not follow"):
        await author.commit((say.note("b"), [say.step()]))
    assert await any_journal.row("s_1") == stored
    assert len(await any_journal.records("s_1", 1)) == 1


async def test_a_row_that_does_not_match_its_records_is_refused(any_journal, author_of, say):
    author = author_of(any_journal)
    author.seal(say.note("lost"))
    with pytest.raises(StorageError, match="failed"):
        await author.commit(name="renamed")
    assert await any_journal.row("s_1") is None


async def test_two_journals_have_different_epochs_of_128_bits(any_journal):
    assert len(bytes.fromhex(any_journal.epoch.partition(".")[0])) == 16
    assert any_journal.epoch != Memory().epoch
