"""Sums of model usage."""

import sqlite3
from contextlib import closing

import msgspec
import pytest

from zotd.core import records
from zotd.core.budget import UNKNOWN
from zotd.core.ports import StorageError
from zotd.store.archive import Archive
from zotd.store.usage import FOUND, SUMS_BY
from zotd.wire.content import Tokens

IN_A_FILE = pytest.mark.parametrize("stored_journal", ["sqlite"], indirect=True)
"""For tests of damage, and of what SQLite does with a query."""


@pytest.fixture
def journal(stored_journal):
    return stored_journal


DAYS = [f"2026-11-{day:02}T12:00:00.000Z" for day in range(32)]


def took(tokens, *, day=1, model="m", run="r", step=1):
    return records.UsageRow(time=DAYS[day], run=run, step=step, provider="p", model=model, tokens=tokens)


def attempt(*, day=1, model="m", answered=False):
    return records.Attempt(time=DAYS[day], run="r", step=1, number=1, provider="p", model=model, answered=answered)


def reply(*, day=1):
    return records.Reply(time=DAYS[day], run="r", step=1, content=[], stop="tool_use")


def interrupted(*, day=1):
    return records.Interrupted(time=DAYS[day], what="run", text="cut")


@pytest.fixture
def archive(journal):
    return Archive(journal.database)


async def keys(archive, **options):
    return [row.key for row in await archive.usage(**options)]


async def test_usage_is_summed_by_model_most_expensive_first(archive, journal, author_of):
    await author_of(journal, "s_1").commit((took(Tokens(1, 2, 3, 4, 0.25)),), (took(Tokens(10, 0, 0, 0, 0.25)),))
    await author_of(journal, "s_2").commit((took(Tokens(1, 1, 1, 1, 0.5)),), (took(Tokens(cost_usd=9), model="big"),))
    big, small = await archive.usage()
    assert (big.key, big.cost_usd, big.attempts) == ("p/big", 9.0, 1)
    assert (small.key, small.input, small.output, small.cache_read, small.cache_write) == ("p/m", 12, 3, 4, 5)
    assert (small.cost_usd, small.attempts, small.unknown, small.name) == (1.0, 3, 0, "")


async def test_usage_can_be_summed_by_session_or_directory(archive, journal, author_of):
    for session, cwd, cost in [("s_1", "/a", 1.0), ("s_2", "/b", 2.5), ("s_3", "/a", 2.0)]:
        await author_of(journal, session, cwd=cwd, name=f"name of {session}").commit((took(Tokens(cost_usd=cost)),))
    assert [(row.key, row.name) for row in await archive.usage(by="session")] == [
        ("s_2", "name of s_2"),
        ("s_3", "name of s_3"),
        ("s_1", "name of s_1"),
    ]
    assert [(row.key, row.cost_usd, row.name) for row in await archive.usage(by="cwd")] == [
        ("/a", 3.0, ""),
        ("/b", 2.5, ""),
    ]


async def test_usage_can_be_summed_by_user(archive, journal, author_of):
    for session, user, cost in [("s_1", "alice", 1.0), ("s_2", "bob", 2.5), ("s_3", "alice", 2.0), ("s_4", "", 0.5)]:
        await author_of(journal, session, user=user).commit((took(Tokens(cost_usd=cost)),))
    for since in ("", "2026-11-01T12:00:00.000Z"):
        found = [(row.key, row.cost_usd, row.name) for row in await archive.usage(by="user", since=since)]
        assert found == [("alice", 3.0, ""), ("bob", 2.5, ""), ("", 0.5, "")]


async def test_usage_can_be_summed_by_day_with_the_hour_in_which_the_report_begins(archive, journal, author_of):
    days = [(took(Tokens(input=day), day=day),) for day in (1, 2, 2, 3)]
    await author_of(journal).commit(*days)
    found = await archive.usage(by="day", since="2026-11-01T12:00:00.000Z")
    assert {row.key[-2:]: (row.input, row.attempts) for row in found} == {"01": (1, 1), "02": (4, 2), "03": (3, 1)}
    assert {row.key[:8] for row in found} == {"2026-11-"}


async def test_only_requests_after_the_given_time_count(archive, journal, author_of):
    await author_of(journal).commit(*[(took(Tokens(input=1), day=day),) for day in (1, 2, 3)])
    assert [row.input for row in await archive.usage(since=DAYS[2])] == [2]
    assert await archive.usage(since=DAYS[4]) == []


async def test_a_request_without_figures_counts_as_unknown(archive, journal, author_of):
    await author_of(journal).commit((took(None),), (took(Tokens(input=5)),))
    (row,) = await archive.usage()
    assert (row.input, row.attempts, row.unknown) == (5, 2, 1)


async def test_a_request_cut_by_a_crash_counts_as_unknown_and_a_cut_tool_does_not(archive, journal, author_of):
    await author_of(journal, "s_1").commit((attempt(model="cut"),), (interrupted(),))
    await author_of(journal, "s_2").commit(
        (attempt(model="cut"),), (attempt(model="cut", answered=True),), (interrupted(),)
    )
    await author_of(journal, "s_3").commit((attempt(),), (took(Tokens(input=1)),), (reply(),), (interrupted(),))
    assert [(row.key, row.attempts, row.unknown) for row in await archive.usage()] == [("p/cut", 2, 2), ("p/m", 1, 0)]


@IN_A_FILE
async def test_a_damaged_record_in_the_first_hour_counts_as_unknown(tmp_path, archive, journal, author_of):
    await author_of(journal).commit((took(Tokens(input=1)),), (took(Tokens(input=2)),))
    with closing(sqlite3.connect(tmp_path / "zot.db")) as connection, connection:
        connection.execute("UPDATE records SET body = x'7b22' WHERE number = 1")
    known, damaged = sorted(await archive.usage(since=DAYS[1]), key=lambda row: row.unknown)
    assert (known.key, known.input, known.unknown) == ("p/m", 2, 0)
    assert (damaged.key, damaged.attempts, damaged.unknown) == ("unreadable record", 1, 1)


GUESS = Tokens(input=7, output=3, cost_usd=0.5)


def guessed(record):
    return msgspec.structs.replace(record, estimate=GUESS)


async def test_estimated_cost_is_reported_separately(archive, journal, author_of):
    await author_of(journal).commit(
        (took(Tokens(cost_usd=2)),),
        (guessed(took(None)),),
        (guessed(took(Tokens(input=5, cost_usd=0.125))),),
    )
    (row,) = await archive.usage()
    assert (row.input, row.attempts, row.unknown) == (5, 3, 1)
    assert (row.cost_usd, row.estimated_usd) == (2.125, 0.5 + 0.375)


async def test_budgets_count_known_usage_and_estimates(archive, journal, author_of):
    await author_of(journal, "s_1").commit((took(Tokens(input=1, cost_usd=0.25)),), (guessed(took(None)),))
    await author_of(journal, "s_2").commit((guessed(took(Tokens(input=9))),))
    assert await archive.spent(DAYS[1]) == Tokens(input=15, output=6, cost_usd=1.25)
    assert await archive.spent(DAYS[2]) == Tokens()


@pytest.mark.parametrize("state", ["running", "waiting"])
async def test_budgets_count_the_estimate_of_a_request_cut_by_a_crash(archive, journal, author_of, state):
    author = author_of(journal)
    await author.commit((took(Tokens(input=1)),), (guessed(attempt(day=3)),), (reply(day=2),), state=state)
    assert await archive.spent(DAYS[1]) == Tokens(input=1)  # the reply is recorded
    await author.commit((guessed(attempt(day=3)),), (guessed(attempt(day=3, answered=True)),))
    assert await archive.spent(DAYS[1]) == Tokens(input=1) + GUESS
    assert await archive.spent(DAYS[3]) == GUESS
    assert await archive.spent(DAYS[4]) == Tokens()
    await author.commit((guessed(took(None, day=4)),), (interrupted(day=4),), state="held")
    assert await archive.spent(DAYS[1]) == Tokens(input=1) + GUESS


async def test_resuming_a_run_counts_no_request(archive, journal, author_of):
    resumed = msgspec.structs.replace(attempt(), resumes=True)
    await author_of(journal).commit((resumed,), state="running")
    assert await archive.spent("") == Tokens()
    await author_of(journal, "s_2").commit((resumed,), (interrupted(),))
    assert await archive.usage() == []


@IN_A_FILE
async def test_an_attempt_without_any_figures_is_never_free(tmp_path, archive, journal, author_of):
    await author_of(journal, "s_1").commit((took(None),))
    await author_of(journal, "s_2").commit((took(Tokens(input=2)),), (attempt(),), (interrupted(),))
    with closing(sqlite3.connect(tmp_path / "zot.db")) as connection, connection:
        connection.execute("UPDATE records SET body = x'7b22' WHERE session = 2 AND number = 1")
    assert await archive.spent("") == UNKNOWN + UNKNOWN + UNKNOWN


@IN_A_FILE
async def test_a_record_that_is_damaged_later_still_counts(tmp_path, archive, journal, author_of):
    await author_of(journal).commit((took(Tokens(input=1)),), (took(Tokens(input=2)),))
    with closing(sqlite3.connect(tmp_path / "zot.db")) as connection, connection:
        connection.execute("UPDATE records SET body = x'7b22' WHERE number = 1")
    assert [(row.key, row.input) for row in await archive.usage()] == [("p/m", 3)]


async def test_a_report_may_start_within_an_hour(archive, journal, author_of):
    minutes = [f"2026-11-21T{time}:00.000Z" for time in ("19:59", "20:10", "20:30", "20:59", "21:00", "21:01")]
    rows = [msgspec.structs.replace(took(Tokens(input=10**place)), time=time) for place, time in enumerate(minutes)]
    await author_of(journal).commit(*[(row,) for row in rows])
    assert [row.input for row in await archive.usage(since=minutes[2])] == [111_100]
    assert [row.input for row in await archive.usage(since=minutes[4], by="cwd")] == [110_000]
    assert [row.input for row in await archive.usage(by="session")] == [111_111]


async def test_a_failed_commit_is_in_no_sum(archive, journal, author_of):
    author = author_of(journal)
    await author.commit((took(Tokens(input=1)),))
    author.seal(took(Tokens(input=10)))  # not committed, so the next commit does not continue the stored session
    with pytest.raises(StorageError):
        await author.commit((took(Tokens(input=100)),))
    assert [row.input for row in await archive.usage()] == [1]


@IN_A_FILE
async def test_a_report_over_all_time_reads_no_records(journal):
    def plans(connection):
        return [
            row[3] for query in SUMS_BY.values() for row in connection.execute(f"EXPLAIN QUERY PLAN {query}", ("",))
        ]

    assert not [step for step in await journal.database.read(plans) if "records" in step]


async def test_deleted_sessions_are_in_no_sum(archive, journal, author_of):
    await author_of(journal).commit((took(Tokens(input=1)),))
    await journal.delete("s_1")
    assert await archive.usage() == []


@IN_A_FILE
async def test_usage_records_are_found_by_an_index(tmp_path, journal):
    with closing(sqlite3.connect(tmp_path / "zot.db")) as connection:
        plan = " | ".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {FOUND}", ("", "")))
    assert "records_usage (time>? AND time<?)" in plan
    assert "SCAN" not in plan
