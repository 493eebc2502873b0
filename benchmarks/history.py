"""Stored sessions by the thousand, written into a journal as the daemon writes them, but not one prompt at a time."""

import asyncio
from pathlib import Path

from zotd import ids, paths
from zotd.clock import rfc3339
from zotd.core import records
from zotd.core.ports import SessionRow
from zotd.core.records import Settings
from zotd.core.transcript import Transcript
from zotd.ledger.ledger import Ledger, Shown
from zotd.store.journal import SqliteJournal
from zotd.store.opening import FILE
from zotd.wire import events
from zotd.wire.content import Text

QUESTION = "What does the function in the file that I have just opened do, and who calls it? " * 3

ANSWER = "It reads the configuration, checks every key, and returns what the caller asked for. " * 9
"""With the question about a kilobyte: two messages of the size that real ones have on average."""

IN_FLIGHT = 1000
"""Commits that wait at once; the journal takes them as one transaction."""

SETTINGS = Settings(provider="anthropic", model="claude-sonnet-4-5")


async def write(home: Path, cwd: Path, *, sessions: int, messages: int, first: str = QUESTION) -> list[str]:
    """Store so many sessions with so many messages each, the first of which says `first`; their ids.

    The daemon of `home` must not run.
    """
    paths.make_private_dir(str(home))
    journal = await SqliteJournal.open(home / FILE)
    try:
        return [await _session(journal, cwd, messages, first) for _ in range(sessions)]
    finally:
        await journal.close()


async def _session(journal: SqliteJournal, cwd: Path, messages: int, first: str) -> str:
    now = rfc3339()
    row = SessionRow(ids.new("s"), "benchmark", str(cwd), now, now, SETTINGS, "idle")
    ledger = Ledger(row, journal, Transcript(), addressed=True)
    waiting = [ledger.write([Shown(records.ConfigRecord(time=now, settings=SETTINGS, name=row.name))], durable=False)]
    for number in range(messages // 2):
        question = QUESTION if number else first
        waiting += [ledger.write(items, durable=False) for items in _exchange(question)]
        if len(waiting) >= IN_FLIGHT:
            await _all(waiting)
    await _all(waiting)
    return row.id


async def _all(waiting: list[asyncio.Future[None]]) -> None:
    """Until they are committed."""
    while waiting:
        await waiting.pop()


def _exchange(question: str) -> list[list[Shown]]:
    """A prompt and its answer, as a run records them: one commit each."""
    now, run, key = rfc3339(), ids.new("r"), ids.new("i")
    prompt = records.Input(time=now, id=key, content=[Text(question)])
    attempt = records.Attempt(
        time=now, run=run, step=1, number=1, provider=SETTINGS.provider, model=SETTINGS.model, input=key
    )
    reply = records.Reply(time=now, run=run, step=1, content=[Text(ANSWER)], stop="end_turn")
    asked = [events.UserMessage([Text(question)], now, input=key, run=run), events.TurnStart(1)]
    answered = [events.AssistantMessage([Text(ANSWER)], now), events.TurnEnd("end_turn"), events.Done(run=run)]
    return [[Shown(prompt), Shown(attempt, asked)], [Shown(reply, answered)]]
