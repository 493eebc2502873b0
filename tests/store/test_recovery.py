"""A journal that cannot write acknowledges nothing, and reports when it can write again."""

import asyncio
import os
import sqlite3
from contextlib import closing

import pytest

from tests.store.failing import FULL, NOT_SYNCED, log_leads_to
from zotd.core.ports import StorageError
from zotd.store.journal import SqliteJournal
from zotd.store.recovery import FIRST_S, LONGEST_S, Recovery

WAIT_S = 30.0


@pytest.fixture
def path(tmp_path):
    return tmp_path / "zot.db"


def stored(path):
    with closing(sqlite3.connect(path)) as connection:
        return [body for (body,) in connection.execute("SELECT json_extract(body, '$.text') FROM records ORDER BY key")]


@pytest.mark.parametrize(
    ("device", "flags", "reason"),
    [(FULL, os.O_RDWR, "full"), (FULL, os.O_RDONLY, "disk I/O error"), (NOT_SYNCED, os.O_RDWR, "disk I/O error")],
    ids=["no space", "no write", "no sync"],
)
async def test_exactly_the_acknowledged_commits_are_stored_whatever_fails(
    path, journal, author_of, say, device, flags, reason
):
    author = author_of(journal)
    await author.commit((say.note("before"),), durable=True)
    kept = author.row
    with log_leads_to(device, path, flags):
        with pytest.raises(StorageError, match=reason):
            await author.commit((say.note("refused"),), durable=True)
        author.row = kept
        with pytest.raises(StorageError):
            await author.commit((say.note("refused too"),), durable=True)
        assert [record.text for record in await journal.records("s_1", 1)] == ["before"]  # reading still works
    author.row = kept
    assert await journal.recovery.attempt()
    await author.commit((say.note("after"),), durable=True)
    assert stored(path) == ["before", "after"]
    assert journal.damage("s_1") is None


async def test_writing_resumes_when_the_log_can_be_synced_again(path, journal, author_of, say):
    author = author_of(journal)
    with log_leads_to(NOT_SYNCED, path):
        with pytest.raises(StorageError):
            await author.commit((say.note("lost"),), durable=True)
        with pytest.raises(StorageError):
            await author_of(journal, "s_2").commit((say.note("not durable, and refused as well"),))
    await author_of(journal, "s_3").commit((say.note("kept"),), durable=True)
    assert stored(path) == ["kept"]


async def test_waiting_callbacks_are_called_after_a_successful_trial(path, journal, author_of, say):
    called = asyncio.Event()
    with log_leads_to(FULL, path):
        with pytest.raises(StorageError):
            await author_of(journal).commit((say.note("refused"),))
        journal.recovery.when_writable(called.set)
        assert not await journal.recovery.attempt()
        assert not called.is_set()
    async with asyncio.timeout(WAIT_S):
        await called.wait()
    await author_of(journal).commit((say.note("stored"),))
    assert stored(path) == ["stored"]
    assert await journal.settings.get("trial") is None


async def test_a_trial_is_as_large_as_the_records_of_some_steps(path, journal, author_of, say):
    await author_of(journal).commit((say.note("a"),))
    before = path.stat().st_size + path.with_name("zot.db-wal").stat().st_size
    assert await journal.recovery.attempt()
    assert path.stat().st_size + path.with_name("zot.db-wal").stat().st_size - before >= 256 * 1024


async def test_waiting_callbacks_are_dropped_when_the_journal_is_closed(tmp_path):
    journal = await SqliteJournal.open(tmp_path / "other.db")
    called = []
    journal.recovery.when_writable(lambda: called.append(1))
    await journal.close()
    assert not await journal.recovery.attempt()
    assert called == []


class Disk:
    """Accepts writes, and completes them when the test says so."""

    def __init__(self):
        self.trials = []
        self.error: StorageError | None = StorageError("full")

    def submit(self, write):
        loop = asyncio.get_running_loop()
        if write.durable:
            self.trials.append(loop.time())
        loop.call_soon(write.done, self.error)


@pytest.mark.looptime
async def test_all_callbacks_share_one_series_of_trials_with_growing_intervals():
    disk, ends = Disk(), asyncio.Event()
    recovery = Recovery(disk.submit)
    for _ in range(50):
        recovery.when_writable(ends.set)
    await asyncio.sleep(20)
    assert disk.trials == [0.5, 1.5, 3.5, 7.5, 12.5, 17.5]
    disk.error = None
    await ends.wait()
    assert disk.trials[-1] == 22.5
    await asyncio.sleep(60)
    assert len(disk.trials) == 7
    assert (FIRST_S, LONGEST_S) == (0.5, 5.0)


@pytest.mark.looptime
async def test_a_callback_added_during_a_trial_waits_for_the_next_one():
    disk, first, second = Disk(), asyncio.Event(), asyncio.Event()
    disk.error = None
    recovery = Recovery(disk.submit)
    recovery.when_writable(first.set)
    recovery.when_writable(lambda: recovery.when_writable(second.set))
    await first.wait()
    assert not second.is_set()
    await second.wait()
    assert disk.trials == [0.5, 1.0]
