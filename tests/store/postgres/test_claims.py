"""Prompts of batches in a database that several daemons use: who runs which, and who goes on."""

import asyncio

import pytest

from tests.store.postgres.leases import UNRENEWED, WAIT_S, number_of, sql
from tests.store.test_batches import batch, done, prompt
from zotd.core.ports import StorageError
from zotd.store.batches import LostClaimError, StoredBatches
from zotd.store.ownership import OwnedElsewhereError


def batches_of(journal):
    return StoredBatches(journal.database, journal.ownership)


async def test_daemons_that_look_at_once_take_different_prompts(open_as):
    many = [batches_of(await open_as(name)) for name in ("one", "two", "three")]
    await many[0].submit(batch(), [(n, prompt()) for n in range(30)])
    taken = []

    async def take(batches):
        while (claim := await batches.claim(())) is not None:
            taken.append(claim.number)

    async with asyncio.TaskGroup() as tasks:
        for batches in many:
            tasks.create_task(take(batches))
    assert sorted(taken) == list(range(30))


async def test_a_claim_is_adopted_only_when_its_daemon_is_gone(open_as, url):
    one, two = await open_as("one"), await open_as("two")
    await batches_of(one).submit(batch(), [(1, prompt())])
    claim = await batches_of(one).claim(())
    assert await batches_of(two).adoptable() == []
    sql(url, "DELETE FROM daemons WHERE number = %s", number_of(one))
    (found,) = await batches_of(two).adoptable()
    assert (found.session, found.attempt, found.daemon) == (claim.session, 1, number_of(two))
    assert await batches_of(two).adopt(found)
    assert not await batches_of(await open_as("three")).adopt(found)
    await batches_of(two).end(found, done())


@UNRENEWED
async def test_a_daemon_that_has_lost_its_lease_stores_no_result(open_as, url):
    lost, two = await open_as("lost"), await open_as("two")
    await batches_of(lost).submit(batch(), [(1, prompt())])
    claim = await batches_of(lost).claim(())
    sql(url, "DELETE FROM daemons WHERE number = %s", number_of(lost))
    with pytest.raises(StorageError, match="has lost its lease"):
        await batches_of(lost).end(claim, done("late"))
    (found,) = await batches_of(two).adoptable()
    await batches_of(two).adopt(found)
    await batches_of(two).end(found, done("fine"))
    assert [one.result.text for one in await batches_of(two).results("b", 0, 1)] == ["fine"]


async def test_a_claim_follows_its_session_to_the_daemon_that_has_it(open_as, author_of, say):
    one, two, three = await open_as("one"), await open_as("two"), await open_as("three")
    await batches_of(one).submit(batch(), [(1, prompt())])
    claim = await batches_of(one).claim(())
    await author_of(one, claim.session).commit((say.note("a"),))
    assert await batches_of(two).adoptable() == []
    (member,) = [load.member for load in await one.ownership.members.loads() if load.member.number == number_of(two)]
    assert await one.ownership.move(claim.session, member, goes_on=True)
    assert await batches_of(three).adoptable() == []
    with pytest.raises(OwnedElsewhereError):
        await batches_of(one).end(claim, done())
    (found,) = await batches_of(two).adoptable()
    assert await batches_of(two).adopt(found)
    with pytest.raises((LostClaimError, OwnedElsewhereError)):
        await batches_of(one).end(claim, done())
    await batches_of(two).end(found, done())


async def test_other_daemons_are_told_of_prompts(open_as):
    one, two = await open_as("one"), await open_as("two")
    told = asyncio.Event()
    batches_of(two).rules.listen(told.set)
    async with asyncio.timeout(WAIT_S):
        while not told.is_set():  # the connection that listens may still be opened
            await batches_of(one).submit(batch(), [(1, prompt())])
