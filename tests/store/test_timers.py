"""The contract of `store.timers.TimerStore`, checked with both implementations, and what only the one on disk does."""

import pytest
from msgspec.structs import replace

from zotd.core.due_times import CronRule, IntervalRule, MomentRule
from zotd.core.timers import Claim, Firing, NewTimerSession, Timer
from zotd.store.journal import SqliteJournal
from zotd.store.timers import StoredTimers, TimersInMemory

IN_A_FILE = pytest.mark.parametrize("stored_journal", ["sqlite"], indirect=True)
"""For tests of damage, and of what SQLite does with a query."""

TIMER = Timer(
    id="t_1",
    rule=CronRule("0 9 * * *", "Europe/Berlin"),
    prompt="check the CI",
    due=2_000,
    made=1_000,
    session="s_1",
    claim=Claim(2, 2_000),
    latest=Firing("s_1", "i_1", 7, 1_500),
    limit_usd=1.5,
)

OTHER = Timer(id="t_2", rule=IntervalRule(60), prompt="p", due=1, made=0, new=NewTimerSession("/src", mode="ask"))

ONCE = Timer(id="t_3", rule=MomentRule(5), prompt="p", due=5, made=0, session="s_1", paused="")


@pytest.fixture
def journal(stored_journal):
    return stored_journal


@pytest.fixture(params=["memory", "sqlite"])
def store(request, journal):
    return TimersInMemory() if request.param == "memory" else StoredTimers(journal.database, journal.ownership)


async def test_timers_are_returned_as_they_were_put_oldest_first(store):
    for timer in (ONCE, TIMER, OTHER):
        await store.put(timer)
    assert await store.all() == [TIMER, OTHER, ONCE]


async def test_a_timer_replaces_the_one_with_its_id(store):
    await store.put(TIMER)
    changed = replace(TIMER, claim=None, fired=3)
    await store.put(changed)
    assert await store.all() == [changed]


async def test_a_timer_that_was_removed_is_gone_and_removing_it_again_does_nothing(store):
    await store.put(TIMER)
    for _ in range(2):
        await store.remove("t_1")
    assert await store.all() == []


async def test_the_timers_of_a_session_are_deleted_with_it(journal, author_of):
    store = StoredTimers(journal.database, journal.ownership)
    await author_of(journal).commit(durable=True)
    for timer in (TIMER, OTHER, ONCE):
        await store.put(timer)
    await journal.delete("s_1")
    assert await store.all() == [OTHER]


async def test_timers_are_there_when_the_database_is_opened_again(tmp_path):
    for expected in ([], [TIMER]):
        journal = await SqliteJournal.open(tmp_path / "again.db")
        store = StoredTimers(journal.database, journal.ownership)
        assert await store.all() == expected
        await store.put(TIMER)
        await journal.close()


async def test_a_timer_that_cannot_be_read_is_left_where_it_is_and_the_others_are_returned(journal, caplog):
    store = StoredTimers(journal.database, journal.ownership)
    await store.put(TIMER)
    await journal.database.perform(
        lambda connection: connection.execute(
            "INSERT INTO timers VALUES ('t_9', '', '{\"rule\": {\"type\": \"tide\"}}')"
        )
    )
    assert await store.all() == [TIMER]
    assert "the timer t_9 cannot be read, and does not fire" in caplog.text
    left = await journal.database.read(lambda connection: connection.execute("SELECT id FROM timers").fetchall())
    assert left == [("t_1",), ("t_9",)]
