"""However a session went on and went back, a restart sees what was there; and going back shows what was seen then."""

import asyncio
from itertools import pairwise

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.ledger.test_ledger_restart import Restarts, choices
from zotd.core import records
from zotd.history.past import past_at
from zotd.history.rewind import go_back
from zotd.ledger.ledger import Shown
from zotd.store.journal import SqliteJournal
from zotd.store.memory import Memory
from zotd.testing.histories import TIME, assert_legal
from zotd.wire import events
from zotd.wire.content import Text, Tokens
from zotd.wire.errors import Code, CommandError

marches = st.lists(st.tuples(st.integers(1, 15), st.integers(0, 10**6), st.booleans()), min_size=1, max_size=6)
"""How many commits a session makes, to which of its messages it then goes back, and whether it is restarted then."""


class Rewinds(Restarts):
    """Shows an event for each message, and remembers what the model saw at it."""

    def __init__(self, journal, choices):
        super().__init__(journal, choices)
        self.seen = {}
        """`seq` of a message at which the history was legal: the transcript then."""
        self.life = self.scribe.life()

    async def live(self, commits):
        for _ in range(commits):
            await self.write(next(self.life))

    async def restart(self):
        await super().restart()
        self.life = self.scribe.life()

    async def write(self, commit):
        for record in commit:  # one by one: each is a point to go back to
            before = self.ledger.transcript.messages
            count = len(before)
            compacts = isinstance(record, records.Compaction | records.Clear)
            await self.ledger.write([Shown(record, [self._said()])], durable=False)
            after = self.ledger.transcript
            seq = self.ledger.row.seq
            if not compacts and len(after.messages) != count and not after.open_calls:
                self.seen[seq] = list(after.messages)
        await self.compare()

    def _said(self):
        return events.UserMessage([Text("x")], TIME)

    async def go_back(self, choice):
        """To any message of any branch, when nothing runs."""
        transcript = self.ledger.transcript
        if transcript.run_open or transcript.open_calls or not self.seen:
            return
        seq = sorted(self.seen)[choice % len(self.seen)]
        past = await past_at(self.journal, self.ledger.row, seq, whole=True)
        await go_back(self.ledger, past)
        self.life = self.scribe.life()
        assert self.ledger.transcript.messages == self.seen[seq]
        assert_legal(self.ledger.transcript.messages)
        await self.compare()
        self._check_history(seq)

    def _check_history(self, seq):
        left = self.ledger.row.abandoned
        assert all(first <= last for first, last in left)
        assert all(one[1] < other[0] for one, other in pairwise(left))
        assert left == [] or left[-1][1] < self.ledger.row.seq
        assert not any(first <= seq <= last for first, last in left)


async def tell_a_history(journal, choices, marches):
    session = Rewinds(journal, choices)
    for commits, choice, restarts in marches:
        await session.live(commits)
        await session.go_back(choice)
        if restarts:
            await session.restart()


@given(choices, marches)
@settings(deadline=None, max_examples=150)
def test_a_restart_restores_the_branch_the_session_was_rewound_to(choices, marches):
    asyncio.run(tell_a_history(Memory(), choices, marches))


@given(choices, marches)
@settings(deadline=None, max_examples=10, phases=[Phase.explicit, Phase.reuse, Phase.generate])
def test_a_restart_from_disk_sees_it_too(tmp_path_factory, choices, marches):
    async def on_disk():
        journal = await SqliteJournal.open(tmp_path_factory.mktemp("journal") / "zot.db")
        try:
            await tell_a_history(journal, choices, marches)
        finally:
            await journal.close()

    asyncio.run(on_disk())


@pytest.fixture
def session():
    """A session that can be told what to say."""
    return Talk(Memory())


class Talk:
    """Prompts and answers by hand."""

    def __init__(self, journal):
        self.history = Rewinds(journal, [])
        self.count = 0

    async def say(self, *contents, stop="end_turn"):
        """A prompt and its reply; the `seq` of both."""
        self.count += 1
        key = f"i{self.count}"
        prompt = records.Input(time=TIME, id=key, content=[Text(key)])
        start = records.Attempt(time=TIME, run="r", step=1, number=1, provider="p", model="m", input=key)
        reply = records.Reply(time=TIME, run="r", step=1, content=list(contents) or [Text("a " + key)], stop=stop)
        await self.history.write([prompt, start])
        asked = self.history.ledger.row.seq
        await self.history.write([reply])
        return asked, self.history.ledger.row.seq

    @property
    def texts(self):
        return [block.text for message in self.history.ledger.transcript.messages for block in message.content]

    async def past(self, seq):
        return await past_at(self.history.journal, self.history.ledger.row, seq, whole=True)

    async def go_back(self, seq):
        await go_back(self.history.ledger, await self.past(seq))
        await self.history.compare()


@pytest.mark.parametrize(
    "record",
    [records.Clear(time=TIME), records.Compaction(time=TIME, summary="short", kept=0)],
    ids=["clear", "compaction"],
)
async def test_one_can_go_back_to_before_a_compaction_or_a_clear(session, record):
    _, answered = await session.say()
    await session.history.write([record])
    assert session.history.ledger.row.base > 1
    await session.go_back(answered)
    assert session.texts == ["i1", "a i1"]
    assert session.history.ledger.row.base == 1


async def test_an_abandoned_branch_can_be_restored(session):
    _, first = await session.say()
    _, second = await session.say()
    await session.go_back(first)
    await session.say()
    assert session.texts == ["i1", "a i1", "i3", "a i3"]
    await session.go_back(second)
    assert session.texts == ["i1", "a i1", "i2", "a i2"]


async def test_an_input_that_waits_still_waits_afterwards(session):
    _, answered = await session.say()
    await session.say()
    waiting = records.Input(time=TIME, id="later", content=[Text("later")])
    await session.history.write([waiting, records.QueueOrder(time=TIME, order=["later"], held=True)])
    await session.go_back(answered)
    assert list(session.history.ledger.transcript.waiting) == ["later"]
    start = records.Attempt(time=TIME, run="r", step=1, number=1, provider="p", model="m", input="later")
    await session.history.write([start])
    assert session.texts == ["i1", "a i1", "later"]


@pytest.mark.parametrize("seq", [0, 1, 99])
async def test_a_record_that_is_no_message_is_no_target_of_a_rewind(session, seq):
    ledger = session.history.ledger
    await ledger.write([Shown(records.Note(time=TIME, level="warn", text="n"), [events.TurnStart(1)])], durable=False)
    with pytest.raises(CommandError, match=f"no message has the seq {seq}") as caught:
        await session.past(seq)
    assert caught.value.code is Code.NOT_FOUND


async def test_the_size_of_the_last_request_is_that_of_then(session):
    def took(count):
        return records.UsageRow(time=TIME, run="r", step=1, provider="p", model="m", tokens=Tokens(count, 5))

    await session.history.write([took(100)])
    _, first = await session.say()
    await session.history.write([took(200)])
    await session.say()
    await session.history.write([records.Compaction(time=TIME, summary="short", kept=0)])
    _, last = await session.say()
    assert [(await session.past(seq)).context for seq in (first, last)] == [105, 0]
    await session.go_back(first)
    assert session.history.ledger.row.context == 105
