"""The writer thread: groups, durability, failures, limits."""

import asyncio
import queue
import sqlite3
import threading

import pytest

from zotd.core.ports import StorageError
from zotd.store.connection import Write
from zotd.store.schema import open_for_writing
from zotd.store.write_queue import QUEUE_BYTES
from zotd.store.writer import POINTS, Writer

FULL, NORMAL = 2, 1


class Desk:
    """Submits writes, and can block the thread in one of them so that others queue up."""

    def __init__(self, writer):
        self.writer = writer
        self.reported = []
        self.gate = threading.Event()

    def hold(self):
        entered = threading.Event()

        def apply(_):
            entered.set()
            assert self.gate.wait(5)

        held = self.submit(apply)
        assert entered.wait(5)
        return held

    def submit(self, apply=lambda _: None, *, durable=False, size_bytes=0):
        end = asyncio.get_running_loop().create_future()

        def done(error):
            self.reported.append(end)
            end.set_result(error)

        self.writer.submit(Write(apply, done, durable=durable, size_bytes=size_bytes))
        return end

    def put(self, key, **options):
        return self.submit(lambda c: c.execute("INSERT INTO settings VALUES (?, '')", (key,)), **options)

    async def keys(self):
        found: list[str] = []
        await self.submit(lambda c: found.extend(key for (key,) in c.execute("SELECT key FROM settings")))
        return found


@pytest.fixture
async def desk(tmp_path):
    writer = Writer(lambda: open_for_writing(tmp_path / "zot.db"))
    await writer.open()
    desk = Desk(writer)
    yield desk
    desk.gate.set()
    await writer.close()


async def test_all_queued_writes_share_a_transaction_and_a_sync(desk):
    desk.hold()
    ends = [desk.put(f"{n:02}", durable=n % 7 == 0) for n in range(50)]
    desk.gate.set()
    assert await ends[-1] is None

    assert desk.reported[1:] == ends
    assert (desk.writer.counts.transactions, desk.writer.counts.synced) == (2, 1)
    assert len(await desk.keys()) == 50


async def test_only_durable_writes_are_committed_with_synchronous_full(desk):
    levels = []

    def look(connection):
        levels.extend(connection.execute("PRAGMA synchronous").fetchone())

    await desk.submit(look)
    await desk.submit(look, durable=True)
    await desk.submit(look)
    assert levels == [NORMAL, FULL, NORMAL]


async def test_a_group_with_a_durable_write_is_synced(desk):
    levels = []
    desk.hold()
    desk.submit(lambda c: levels.extend(c.execute("PRAGMA synchronous").fetchone()))
    end = desk.put("a", durable=True)
    desk.gate.set()
    await end
    assert levels == [FULL]


async def test_a_refused_write_does_not_fail_its_group(desk):
    await desk.put("taken")
    desk.hold()
    before, failing, after = desk.put("before"), desk.put("taken"), desk.put("after")
    desk.gate.set()

    assert await before is None
    assert "UNIQUE" in str(await failing)
    assert await after is None
    assert desk.reported[-3:] == [before, failing, after]
    assert sorted(await desk.keys()) == ["after", "before", "taken"]


async def test_changes_of_a_failed_write_are_rolled_back(desk):
    def half(connection):
        connection.execute("INSERT INTO settings VALUES ('half', '')")
        connection.execute("INSERT INTO nowhere VALUES (1)")

    assert "nowhere" in str(await desk.submit(half))
    assert await desk.keys() == []


async def test_a_bug_in_a_write_fails_that_write_only_and_is_logged(desk, caplog):
    def bug(_):
        raise KeyError("bug")

    assert isinstance(await desk.submit(bug), StorageError)
    assert "KeyError: 'bug'" in caplog.text
    assert await desk.put("next") is None


async def test_an_error_in_one_callback_does_not_affect_the_others(desk, caplog):
    def broken(_):
        raise RuntimeError("the session is broken")

    desk.hold()
    desk.writer.submit(Write(lambda _: None, broken))
    end = desk.put("a")
    desk.gate.set()
    assert await end is None
    assert "the session is broken" in caplog.text


def not_synced(_):
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC
    raise error


async def test_the_log_is_rewritten_after_a_failed_sync(desk, tmp_path):
    """The kernel may have dropped the pages that it could not sync, and the next sync would succeed regardless."""
    await desk.put("before")
    with sqlite3.connect(tmp_path / "zot.db") as reader:
        reader.execute("BEGIN").execute("SELECT count(*) FROM settings").fetchone()
        assert "disk I/O error" in str(await desk.submit(not_synced, durable=True))
        assert "while it is being read" in str(await desk.put("refused", durable=True))
    reader.close()
    assert await desk.put("after", durable=True) is None
    without_log = sqlite3.connect(f"{(tmp_path / 'zot.db').as_uri()}?immutable=1", uri=True)
    assert without_log.execute("SELECT key FROM settings").fetchall() == [("before",)]
    without_log.close()
    assert await desk.keys() == ["after", "before"]


async def test_a_write_beyond_the_limit_is_refused_in_its_turn(desk):
    desk.hold()
    large = desk.put("large", size_bytes=QUEUE_BYTES + 1)
    refused = desk.put("refused", size_bytes=1)
    assert not refused.done()
    desk.gate.set()

    assert await large is None
    assert "too slow" in str(await refused)
    assert desk.reported[-2:] == [large, refused]
    assert await desk.put("small again", size_bytes=1) is None


# --- spare work ---


@pytest.fixture
async def spare(tmp_path):
    """A `Desk` with spare work: three slices after each pause, each of which waits for the test."""

    class Spare:
        def __init__(self):
            self.begun = queue.SimpleQueue[int]()
            self.let = queue.SimpleQueue[None]()
            self.left = 3
            self.seen = set()

        def __call__(self, connection):
            self.left -= 1
            self.begun.put(self.left)
            self.let.get(timeout=30)
            self.seen.add((connection.in_transaction, *connection.execute("PRAGMA synchronous").fetchone()))
            return self.left > 0

        async def next(self):
            return await asyncio.to_thread(self.begun.get, timeout=30)

    work = Spare()
    writer = Writer(lambda: open_for_writing(tmp_path / "zot.db"), spare=work)
    await writer.open()
    yield Desk(writer), work
    work.let.put(None)
    await writer.close()


async def test_a_write_waits_for_at_most_one_slice_of_spare_work(spare):
    desk, work = spare
    await desk.submit(durable=True)
    assert await work.next() == 2
    end = desk.put("between")
    work.let.put(None)
    assert await end is None  # even though the second slice is still blocked
    for left in (1, 0):
        assert await work.next() == left
        work.let.put(None)
    assert await desk.keys() == ["between"]
    assert work.seen == {(True, NORMAL)}


async def test_failed_spare_work_is_rolled_back(tmp_path, caplog):
    failed = threading.Event()

    def fail(connection):
        connection.execute("INSERT INTO settings VALUES ('half', '')")
        failed.set()
        raise sqlite3.OperationalError("disk full")

    writer = Writer(lambda: open_for_writing(tmp_path / "zot.db"), spare=fail)
    await writer.open()
    assert await asyncio.to_thread(failed.wait, 5)
    desk = Desk(writer)
    assert await desk.put("whole") is None
    assert await desk.keys() == ["whole"]
    assert "the journal's index and free space are not being maintained: disk full" in caplog.text
    assert "Traceback" not in caplog.text
    await writer.close()


async def test_close_writes_the_queue_and_refuses_later_writes(desk):
    desk.hold()
    ends = [desk.put(str(n)) for n in range(10)]
    async with asyncio.TaskGroup() as group:
        group.create_task(desk.writer.close())
        await asyncio.sleep(0)
        late = desk.put("late")
        desk.gate.set()

    assert [await end for end in ends] == [None] * 10
    assert str(await late) == "the journal is closed"


async def test_submitted_writes_are_completed_even_if_the_loop_is_closed(tmp_path):
    path = tmp_path / "zot.db"
    gate = threading.Event()

    def leave():
        async def go():
            writer = Writer(lambda: open_for_writing(path))
            await writer.open()
            desk = Desk(writer)
            desk.gate = gate
            desk.hold()
            desk.put("orphan")
            return writer

        return asyncio.run(go())

    writer = await asyncio.to_thread(leave)
    writer._queue._queue.put(None)
    gate.set()
    writer._thread.join(5)
    assert not writer._thread.is_alive()
    assert sqlite3.connect(path).execute("SELECT key FROM settings").fetchall() == [("orphan",)]


async def test_the_probe_is_called_at_each_point_in_order(tmp_path):
    reached: list[str] = []
    writer = Writer(lambda: open_for_writing(tmp_path / "zot.db"), probe=reached.append)
    await writer.open()
    desk = Desk(writer)
    assert await desk.put("a", durable=True) is None
    await writer.close()
    assert tuple(reached) == POINTS
