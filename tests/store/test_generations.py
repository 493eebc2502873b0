"""Cursors over several generations of a database: valid as far as the shown events are the stored ones."""

import shutil

import pytest

from zotd.core import records
from zotd.store.journal import SqliteJournal
from zotd.store.queries import MAX_SEQ
from zotd.testing.histories import TIME


def copied(path, folder):
    """Copy the files of an open database: what the disk contains if the power fails now."""
    folder.mkdir()
    for part in ("", "-wal"):
        shutil.copy(f"{path}{part}", f"{folder / path.name}{part}")
    return folder / path.name


@pytest.fixture
async def cut(tmp_path, author_of, say):
    """A database that has lost event 2 of `s_1`, which clients have seen; and the epoch of these clients."""
    path = tmp_path / "live" / "zot.db"
    path.parent.mkdir()
    journal = await SqliteJournal.open(path)
    author = author_of(journal)
    await author.commit((say.note("0"), [say.said("kept")]), durable=True)
    found = copied(path, tmp_path / "cut")
    await author.commit((say.note("1"), [say.said("lost")]))
    epoch = journal.epoch
    await journal.close()
    return found, epoch


async def gone_on_with(journal, author_of, say, text):
    author = author_of(journal)
    author.row = await journal.row("s_1")
    await author.commit((say.note(text), [say.said(text)]), durable=True)


async def test_a_cursor_of_lost_events_is_invalid_after_their_numbers_are_reused(cut, author_of, say):
    path, epoch = cut
    journal = await SqliteJournal.open(path)
    await gone_on_with(journal, author_of, say, "another second event")
    assert await journal.history.holds_to("s_1", epoch) == 1
    await journal.close()
    journal = await SqliteJournal.open(path)
    assert await journal.history.holds_to("s_1", epoch) == 1  # also in all later generations
    await journal.close()


async def test_a_cursor_stays_valid_over_generations_without_loss(tmp_path, author_of, say):
    path = tmp_path / "zot.db"
    journal = await SqliteJournal.open(path)
    await author_of(journal).commit((say.note("0"), [say.said("0")]))
    epochs = [journal.epoch]
    for number in range(1, 4):
        await journal.close()
        journal = await SqliteJournal.open(path)
        await gone_on_with(journal, author_of, say, str(number))
        epochs.append(journal.epoch)
    assert len(set(epochs)) == 4
    assert [await journal.history.holds_to("s_1", epoch) for epoch in epochs] == [1, 2, 3, MAX_SEQ]
    await journal.close()


async def test_a_generation_that_writes_nothing_invalidates_no_cursor(tmp_path, author_of, say):
    path = tmp_path / "zot.db"
    journal = await SqliteJournal.open(path)
    epoch = journal.epoch
    await author_of(journal).commit((say.note("0"), [say.said("0")]))
    await journal.close()
    journal = await SqliteJournal.open(path)
    assert await journal.history.holds_to("s_1", epoch) == MAX_SEQ
    await journal.close()


@pytest.mark.parametrize("name", ["", "x", "9", "99999999999999999999999", "-1", "1.1", "²"])
async def test_an_unknown_epoch_is_invalid(journal, name):
    database = journal.epoch.partition(".")[0]
    assert await journal.history.holds_to("s_1", f"{database}.{name}") is None
    assert await journal.history.holds_to("s_1", name) is None
    assert await journal.history.holds_to("s_1", f"{'0' * 32}.1") is None


async def test_a_deleted_session_leaves_no_generations_for_the_next_one_with_its_key(tmp_path, author_of, say):
    path = tmp_path / "zot.db"
    journal = await SqliteJournal.open(path)
    await author_of(journal).commit((say.note("0"), [say.said("0")]))
    await journal.close()
    journal = await SqliteJournal.open(path)
    await gone_on_with(journal, author_of, say, "1")
    await journal.delete("s_1")
    left = await journal.database.read(lambda connection: connection.execute("SELECT * FROM generations").fetchall())
    assert left == []
    await journal.close()


@pytest.mark.parametrize("answered", [True, False])
async def test_the_beginning_of_a_reply_may_have_been_shown_by_the_generation_before(
    tmp_path, author_of, say, answered
):
    """It is shown before its commit, and a restart repeats it; other first events are new."""
    path = tmp_path / "zot.db"
    journal = await SqliteJournal.open(path)
    await author_of(journal).commit((say.note("0"), [say.said("kept")]))
    epoch = journal.epoch
    await journal.close()
    journal = await SqliteJournal.open(path)
    author = author_of(journal)
    author.row = await journal.row("s_1")
    first = records.Attempt(time=TIME, run="r", step=1, number=1, provider="p", model="m", answered=answered)
    await author.commit((first, [say.said("begun")]), (say.note("1"), [say.said("new")]))
    assert await journal.history.holds_to("s_1", epoch) == (2 if answered else 1)
    await journal.close()
