"""What is loaded from the base on is what was written, whatever was written."""

import asyncio

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from zotd.core import records
from zotd.core.closings import closings, unrepeatable
from zotd.core.ports import SessionRow
from zotd.core.transcript import Transcript
from zotd.ledger.ledger import Ledger, Shown
from zotd.store.journal import SqliteJournal
from zotd.store.memory import Memory
from zotd.testing.histories import TIME, Scribe
from zotd.wire.content import Text


def ledger_of(journal):
    settings = records.Settings(provider="p", model="m")
    row = SessionRow(id="s_1", name="", cwd="/home", created=TIME, updated=TIME, settings=settings, state="idle")
    return Ledger(row, journal, Transcript(), addressed=True)


def attempt(key):
    return records.Attempt(time=TIME, run="r", step=1, number=1, provider="p", model="m", input=key)


@pytest.fixture(params=["memory", "sqlite"])
async def journal(request, tmp_path):
    """Both implementations of the port, one after the other."""
    if request.param == "memory":
        yield Memory()
        return
    opened = await SqliteJournal.open(tmp_path / "zot.db")
    yield opened
    await opened.close()


choices = st.lists(st.integers(0, 59), min_size=40, max_size=100)
lives = st.lists(st.integers(1, 25), min_size=1, max_size=3)
"""How many commits the session lives to see, each time it is started."""


class Restarts:
    """Writes a history of any shape to a journal, and loads it anew after each commit or crash."""

    def __init__(self, journal, choices):
        self.journal = journal
        self.ledger = ledger_of(journal)
        rest = iter(choices)
        self.scribe = Scribe(lambda below: next(rest, 0) % below, self.ledger.transcript)

    async def live(self, commits):
        life = self.scribe.life()
        for _ in range(commits):
            await self.write(next(life))

    async def write(self, commit):
        await self.ledger.write([Shown(record) for record in commit], durable=False)
        await self.compare()

    async def compare(self):
        anew = await self.load()
        one, other = self.ledger.transcript, anew.transcript
        assert other.messages == one.messages
        assert list(other.waiting.items()) == list(one.waiting.items())
        assert other.held == one.held
        assert other.run_open == one.run_open
        assert closings(other, TIME) == closings(one, TIME)
        assert unrepeatable(other, TIME) == unrepeatable(one, TIME)
        assert (other.interrupted, other.can_resume) == (one.interrupted, one.can_resume)
        assert self.ledger.row.messages == len(other.messages)

    async def load(self):
        row = await self.journal.row("s_1")
        assert row == self.ledger.row
        anew = Ledger(row, self.journal, Transcript(), addressed=True)
        anew.load(await self.journal.records("s_1", row.base))
        return anew

    async def restart(self):
        """The daemon was killed; the next one goes on from what is stored."""
        self.ledger = await self.load()
        self.scribe.transcript = self.ledger.transcript
        await self.write(self.scribe.repair())


async def tell_a_history(journal, choices, lives):
    session = Restarts(journal, choices)
    for commits in lives:
        await session.live(commits)
        await session.restart()


@given(choices, lives)
@settings(deadline=None, max_examples=200)
def test_a_restart_that_reads_from_the_base_restores_the_transcript(choices, lives):
    asyncio.run(tell_a_history(Memory(), choices, lives))


@given(choices, lives)
@settings(deadline=None, max_examples=15, phases=[Phase.explicit, Phase.reuse, Phase.generate])
def test_a_restart_from_disk_restores_the_transcript(tmp_path_factory, choices, lives):
    async def on_disk():
        journal = await SqliteJournal.open(tmp_path_factory.mktemp("journal") / "zot.db")
        try:
            await tell_a_history(journal, choices, lives)
        finally:
            await journal.close()

    asyncio.run(on_disk())


async def test_an_input_that_waited_through_an_earlier_run_is_read_after_a_compaction(journal):
    """Its record is older than those of the messages before it: the run that it waited for was still writing."""
    ledger = ledger_of(journal)
    first, second = (records.Input(time=TIME, id=key, content=[Text(key)]) for key in ("i", "j"))
    answers = [records.Reply(time=TIME, run="r", step=1, content=[Text(text)], stop="end_turn") for text in ("1", "2")]
    summary = records.Compaction(time=TIME, summary="short", kept=3)
    for record in (first, attempt("i"), second, answers[0], attempt("j"), answers[1], summary):
        await ledger.write([Shown(record)], durable=False)
    anew = Ledger(ledger.row, journal, Transcript(), addressed=True)
    anew.load(await journal.records("s_1", ledger.row.base))
    assert anew.transcript.messages == ledger.transcript.messages
    assert [message.role for message in anew.transcript.messages] == ["user", "assistant", "user", "assistant"]


async def test_a_restart_does_not_read_compacted_or_cleared_records(journal):
    ledger = ledger_of(journal)
    for key in ("i", "j", "k"):
        prompt = records.Input(time=TIME, id=key, content=[Text(key)])
        await ledger.write([Shown(prompt), Shown(attempt(key))], durable=False)
    assert ledger.row.base == 1
    await ledger.write([Shown(records.Compaction(time=TIME, summary="short", kept=1))], durable=False)
    assert ledger.row.base == 5
    await ledger.write([Shown(records.Clear(time=TIME))], durable=False)
    assert ledger.row.base == 9
