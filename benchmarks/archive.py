"""Questions about all sessions, at the socket of a daemon with a million records: earlier prompts, and usage.

The records are inserted at once, as a daemon would have written them: too many for one commit at a time. They count as
searched already, which a daemon would have done in its pauses.
"""

import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta

import msgspec

from benchmarks import history, rig
from benchmarks.rig import Place, Row
from zotd.client.client import Client
from zotd.core import records
from zotd.core.ports import SessionRow
from zotd.store import sums
from zotd.store.batch import save_row
from zotd.store.opening import FILE
from zotd.store.schema import open_for_writing, transaction
from zotd.wire.api import PromptHistory, UsageReport
from zotd.wire.base import ENCODER
from zotd.wire.content import Text, Tokens
from zotd.wire.reports import PromptPage, UsageSums

SESSIONS = 2_000

EXCHANGES = 125
"""In a session; each is four records."""

TARGET_MS = 50.0

ROUNDS = 20

Asked = PromptHistory | UsageReport

START = datetime(2026, 1, 1, 8, tzinfo=UTC)

PAUSE = timedelta(minutes=1)
"""From one exchange to the next, and from one session to the next."""

SAVE = """
INSERT INTO records (session, number, kind, v, time, body, first_seq, last_seq, events, messages)
VALUES (?, ?, ?, 1, ?, ?, 0, 0, x'', 0)
"""

READ = "SELECT body FROM records WHERE kind = 'input' ORDER BY key DESC LIMIT 50"

LATE = "2026-01-05T08:30:00Z"

ASKED: Mapping[str, Asked] = {
    "the newest 50 prompts": PromptHistory(),
    "prompts with a word that none has": PromptHistory(query="zymurgy"),
    "usage by model": UsageReport(),
    "usage by session": UsageReport(by="session"),
    "usage by directory since a moment": UsageReport(by="cwd", since=LATE),
}


async def measure() -> list[Row]:
    """A row for each question."""
    with rig.place() as where:
        _fill(where)
        floor = rig.median([_sqlite(where) for _ in range(ROUNDS)]) * 1000
        async with rig.daemon(where), rig.connect(where) as client:
            return [await _row(client, name, command, floor) for name, command in ASKED.items()]


async def _row(client: Client, name: str, command: Asked, floor: float) -> Row:
    taken = [await _ask(client, command) for _ in range(ROUNDS)]
    ms = rig.median(taken) * 1000
    title = f"{name}, of {SESSIONS * EXCHANGES * 4:,} records"
    return Row(title, ms, "ms", floor, "bare SQLite read", f"<= {TARGET_MS:g} ms", ms <= TARGET_MS)


async def _ask(client: Client, command: Asked) -> float:
    start = time.perf_counter()
    expected = PromptPage if isinstance(command, PromptHistory) else UsageSums
    await client.ask(command, expected)
    return time.perf_counter() - start


def _fill(where: Place) -> None:
    path = where.home / FILE
    path.parent.mkdir(mode=0o700, exist_ok=True)
    with closing(open_for_writing(path)) as connection, transaction(connection):
        for number in range(SESSIONS):
            at = START + number * PAUSE
            now = _rfc3339(at)
            row = SessionRow(f"s_{number:08x}", "benchmark", f"/work/{number % 50}", now, now, history.SETTINGS, "idle")
            key = save_row(connection, msgspec.structs.replace(row, records=EXCHANGES * 4))
            written = [(key, place, *columns) for place, columns in enumerate(_records(number, at), 1)]
            connection.executemany(SAVE, written)
            sums.add(connection, [(key, columns[1], *columns[3:]) for columns in written if columns[2] == "usage"])
        connection.execute("UPDATE meta SET value = (SELECT max(key) FROM records) WHERE key = 'searchable'")


def _records(session: int, at: datetime) -> Iterator[tuple[str, str, bytes]]:
    for number in range(EXCHANGES):
        now, run = _rfc3339(at + number * PAUSE), f"r_{session}_{number}"
        asked = Text(f"{number} of {session}: {history.QUESTION}")
        provider, model = history.SETTINGS.provider, history.SETTINGS.model
        tokens = Tokens(input=1_000, output=100, cost_usd=0.01)
        for record in (
            records.Input(time=now, id=run, content=[asked]),
            records.Attempt(time=now, run=run, step=1, number=1, provider=provider, model=model, input=run),
            records.UsageRow(time=now, run=run, step=1, provider=provider, model=model, tokens=tokens),
            records.Reply(time=now, run=run, step=1, content=[Text(history.ANSWER)], stop="end_turn"),
        ):
            yield records.kind_of(record), now, ENCODER.encode(record)


def _rfc3339(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%S.000Z")


def _sqlite(where: Place) -> float:
    start = time.perf_counter()
    with closing(sqlite3.connect(where.home / FILE)) as connection:
        connection.execute(READ).fetchall()
    return time.perf_counter() - start


if __name__ == "__main__":
    rig.run(measure)
