"""What users may spend in a day: what is stored, what is under way, and the end of a day."""

import asyncio

import pytest

from zotd.config import Config, UserQuota
from zotd.config.current import CurrentConfig
from zotd.core.ports import StorageError
from zotd.ledger.user_spending import READ_S, UserSpending
from zotd.wire.content import Tokens

NOON = 1_795_262_400.0
"""2026-11-21T12:00:00Z."""

HALF = Tokens(cost_usd=0.5)


class Store:
    """What is stored of each user and day."""

    def __init__(self):
        self.usd: dict[tuple[str, str], float] = {}
        self.reads = 0
        self.failure: StorageError | None = None
        self.answers = asyncio.Event()
        self.answers.set()
        self.delays_s: list[float] = []
        """How long the next reads take, last first; looked at in virtual time."""

    async def read(self, user, day):
        self.reads += 1
        await self.answers.wait()
        await asyncio.sleep(self.delays_s.pop() if self.delays_s else 0)
        if self.failure is not None:
            raise self.failure
        return self.usd.get((user, day), 0.0)


@pytest.fixture
def store():
    return Store()


@pytest.fixture
def clock():
    return [NOON]


@pytest.fixture
def spending(store, clock):
    config = CurrentConfig(Config(users={"alice": UserQuota(usd_per_day=1)}))
    return UserSpending(config, store.read, now=lambda: clock[0])


async def test_requests_under_way_are_set_aside_until_they_are_settled(spending):
    await spending.look("alice")
    spending.reserve(1, "alice", HALF)
    assert spending.refusal("alice") is None
    spending.reserve(2, "alice", HALF)
    assert "$0.00 of $1.00, and $1.00 are set aside for requests under way" in spending.refusal("alice")
    spending.settle(1, Tokens(cost_usd=0.1))
    spending.settle(2, Tokens(cost_usd=0.1))
    assert spending.refusal("alice") is None
    assert spending.is_scarce("alice", Tokens(cost_usd=0.7))
    assert not spending.is_scarce("alice", Tokens(cost_usd=0.5))


async def test_what_is_not_stored_yet_counts_and_what_is_stored_counts_once(spending, store):
    await spending.look("alice")
    spending.reserve(1, "alice", HALF)
    spending.settle(1, Tokens(cost_usd=0.9))
    await spending.look("alice")  # before it is stored
    spending.reserve(2, "alice", HALF)
    assert spending.refusal("alice") is not None
    spending.settle(2, Tokens())
    store.usd["alice", "2026-11-21"] = 0.9
    await spending.look("alice")
    assert spending.refusal("alice") is None


async def test_a_day_ends_at_midnight_in_utc(spending, store, clock):
    store.usd["alice", "2026-11-21"] = 1.0
    await spending.look("alice")
    assert spending.refusal("alice") is not None
    clock[0] = NOON + 12 * 3600 - 1
    assert spending.refusal("alice") is not None
    clock[0] += 1
    assert spending.refusal("alice") is None
    store.usd["alice", "2026-11-22"] = 1.0
    await spending.look("alice", within_s=3600)  # the day before was read just now, this one was not
    assert spending.refusal("alice") is not None
    clock[0] -= 3600  # a clock that is put back gives no second budget
    assert spending.refusal("alice") is not None


async def test_it_is_read_again_only_when_what_is_known_is_too_old_and_only_of_limited_users(spending, store):
    await spending.look("alice", within_s=3600)
    await spending.look("alice", within_s=3600)
    assert store.reads == 1
    await spending.look("alice")
    await spending.look("bob")
    assert store.reads == 2


@pytest.mark.looptime
async def test_looks_of_a_user_end_in_the_order_in_which_they_began(spending, store):
    """Whatever the order in which the journal answers: else an abort could overtake its prompt."""
    ended: list[int] = []
    store.delays_s = [0.1, 0.2, 0.3, 0.4, 0.5]

    async def look(number):
        await spending.look("alice")
        ended.append(number)

    async with asyncio.TaskGroup() as tasks:
        for number in range(5):
            tasks.create_task(look(number))
    assert ended == [0, 1, 2, 3, 4]


async def test_what_is_known_holds_if_the_journal_cannot_be_read(spending, store):
    store.usd["alice", "2026-11-21"] = 1.0
    await spending.look("alice")
    store.failure = StorageError("away")
    await spending.look("alice")
    assert spending.refusal("alice") is not None
    await spending.look("alice", within_s=3600)
    assert store.reads == 2, "the next command waits for it again"


@pytest.mark.looptime
async def test_a_journal_that_does_not_answer_is_waited_for_two_seconds(spending, store):
    store.answers.clear()
    begun = asyncio.get_running_loop().time()
    await spending.look("alice")
    assert asyncio.get_running_loop().time() - begun == pytest.approx(READ_S)


@pytest.mark.looptime
async def test_many_looks_at_a_journal_that_does_not_answer_wait_for_two_reads_at_most(spending, store):
    store.answers.clear()
    begun = asyncio.get_running_loop().time()
    async with asyncio.TaskGroup() as tasks:
        for _ in range(20):
            tasks.create_task(spending.look("alice"))
    assert asyncio.get_running_loop().time() - begun == pytest.approx(2 * READ_S)
    assert store.reads == 2, "the second one serves all that waited for the first"
