"""What users have spent on a day, in both databases."""

import pytest

from zotd.core import records
from zotd.core.budget import UNKNOWN
from zotd.store.staging import staging
from zotd.store.user_days import DAY_CHARS, UserDays
from zotd.wire.content import Tokens

DAYS = ("2026-11-21T23:59:59.000Z", "2026-11-22T00:00:00.000Z")


def took(usd, *, day=0, estimate=None):
    tokens = Tokens(cost_usd=usd)
    return records.UsageRow(
        time=DAYS[day],
        run="r",
        step=1,
        provider="p",
        model="m",
        tokens=tokens,
        estimate=estimate and Tokens(cost_usd=estimate),
    )


@pytest.fixture
def spent(stored_journal):
    """`await spent(user, day)`"""

    async def spent(user="alice", day=0):
        return await UserDays(stored_journal.database).spent(user, DAYS[day][:DAY_CHARS])

    return spent


async def test_what_all_sessions_of_a_user_spend_is_added_up_by_day(stored_journal, author_of, spent):
    one, two = (author_of(stored_journal, key, user="alice") for key in ("s_1", "s_2"))
    await one.commit((took(1.0),), (took(0.5),), (took(8.0, day=1),))
    await two.commit((took(0.25),))
    await author_of(stored_journal, "s_3", user="bob").commit((took(2.0),))
    await author_of(stored_journal, "s_4").commit((took(4.0),))
    assert [await spent(), await spent(day=1), await spent("bob"), await spent("carol")] == [1.75, 8.0, 2.0, 0.0]


async def test_estimates_count_as_budgets_count_them_and_so_do_requests_that_a_crash_has_cut(
    stored_journal, author_of, spent
):
    author = author_of(stored_journal, user="alice")
    attempt = records.Attempt(time=DAYS[0], run="r", step=1, number=1, provider="p", model="m")
    await author.commit((took(0.0, estimate=0.5),))
    await author.commit((attempt,))
    await author.commit((records.Interrupted(time=DAYS[0], what="run", text="cut"),))
    assert await spent() == pytest.approx(0.5 + UNKNOWN.cost_usd)


async def test_a_commit_that_is_refused_counts_for_nobody(stored_journal, author_of, spent):
    author, behind = author_of(stored_journal, user="alice"), author_of(stored_journal, user="alice")
    await author.commit((took(1.0),))
    with pytest.raises(Exception, match="was not saved"):
        await behind.commit((took(1.0),))
    assert await spent() == 1.0


async def test_what_a_deleted_session_has_spent_stays_and_what_a_copied_one_had_spent_does_not_count(
    stored_journal, author_of, spent
):
    await author_of(stored_journal, user="alice").commit((took(1.0),))
    copy = author_of(stored_journal, "s_2", user="bob")
    async with staging(stored_journal.database, copy.row) as made:
        entry = copy.seal(took(1.0))
        await made.publish(copy.row, [entry])
    await stored_journal.delete("s_1")
    assert (await spent(), await spent("bob")) == (1.0, 0.0)


async def test_old_days_can_be_forgotten(stored_journal, author_of, spent):
    await author_of(stored_journal, user="alice").commit((took(1.0),), (took(2.0, day=1),))
    await UserDays(stored_journal.database).forget("2026-11-22")
    assert (await spent(), await spent(day=1)) == (0.0, 2.0)
