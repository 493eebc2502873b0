"""The audit trail, in both databases."""

import pytest

from zotd.core.ports import StorageError
from zotd.store.audit import DETAIL_CHARS, AuditedAct, AuditFilter, AuditTrail
from zotd.wire.errors import Code, CommandError


@pytest.fixture
def trail(stored_journal):
    return AuditTrail(stored_journal.database)


def act(command="approve", who="token:ann", session="s_1", **details):
    return AuditedAct(who, "phone", command, session, details)


async def record(trail, *args, **fields):
    async with trail.recorded(act(*args, **fields)):
        pass


async def test_an_act_is_stored_before_it_takes_effect_and_its_outcome_after(trail):
    async with trail.recorded(act(decision="allow")):
        (before,) = (await trail.page(AuditFilter())).entries
    (after,) = (await trail.page(AuditFilter())).entries
    assert (before.outcome, after.outcome) == ("", "done")
    assert (after.who, after.client, after.command, after.session) == ("token:ann", "phone", "approve", "s_1")
    assert after.details == {"decision": "allow"}


@pytest.mark.parametrize(
    ("error", "outcome"), [(CommandError(Code.STALE_ARGS, "x"), "stale_args"), (ValueError(), "failed")]
)
async def test_the_outcome_of_an_act_that_fails_is_its_error(trail, error, outcome):
    with pytest.raises(type(error)):
        async with trail.recorded(act()):
            raise error
    assert [one.outcome for one in (await trail.page(AuditFilter())).entries] == [outcome]


async def test_what_cannot_be_stored_does_not_take_effect(trail, stored_journal):
    await stored_journal.close()
    done = []
    with pytest.raises(StorageError):
        async with trail.recorded(act()):
            done.append(1)
    assert done == []


async def test_pages_go_back_in_time_without_gaps(trail):
    for number in range(7):
        await record(trail, f"c{number}")
    page = await trail.page(AuditFilter(), limit=3)
    found = [one.command for one in page.entries]
    while page.cursor:
        page = await trail.page(AuditFilter(), before=page.cursor, limit=3)
        found += [one.command for one in page.entries]
    assert found == [f"c{number}" for number in reversed(range(7))]


async def test_entries_are_found_by_account_command_and_session(trail):
    await record(trail, "approve")
    await record(trail, "approve", who="local:bob")
    await record(trail, "set_mode", session="s_2")

    async def count(**fields):
        return len((await trail.page(AuditFilter(**fields))).entries)

    assert await count(command="approve") == await count(who="token:ann") == await count(session="s_1") == 2
    assert await count(command="approve", who="token:ann") == 1
    assert await count(session="' OR 1 = 1") == 0


async def test_long_details_are_cut(trail):
    await record(trail, path="x" * 10_000)
    (entry,) = (await trail.page(AuditFilter())).entries
    assert entry.details == {"path": "x" * DETAIL_CHARS}


async def test_old_entries_are_forgotten(trail):
    await record(trail)
    (entry,) = (await trail.page(AuditFilter())).entries
    await trail.forget(entry.time)
    assert (await trail.page(AuditFilter())).entries == [entry]
    await trail.forget("9999-01-01T00:00:00")
    assert (await trail.page(AuditFilter())).entries == []
