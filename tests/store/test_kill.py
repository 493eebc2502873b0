"""Kills a process with SIGKILL while it commits (`docs/durability.md`)."""

import asyncio
import sys
from pathlib import Path

from zotd.core.records import UsageRow
from zotd.store.archive import Archive
from zotd.store.journal import SqliteJournal
from zotd.wire.content import Tokens

COMMITTER = Path(__file__).with_name("committer.py")
REPOSITORY = Path(__file__).parents[2]
SESSIONS = [f"s_{n}" for n in range(4)]
ACKNOWLEDGED_BEFORE_THE_KILL = (0, 1, 2, 7, 40, 300)


async def acknowledged(path, count, seen):
    """Start the committer, kill it after `count` acknowledgements, and return everything it has printed."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, COMMITTER, path, stdout=asyncio.subprocess.PIPE, cwd=REPOSITORY, env={"PYTHONPATH": REPOSITORY}
    )
    assert process.stdout is not None
    for _ in range(count):
        note(await process.stdout.readline(), seen)
    process.kill()
    for line in (await process.stdout.read()).splitlines(keepends=True):
        note(line, seen)
    await process.wait()


def note(line, seen):
    if line.endswith(b"\n"):
        session, number = line.split()
        seen[session.decode()] = int(number)


def took(number):
    """A record as the committer writes it."""
    time = "2026-11-21T20:11:18.919Z"
    return UsageRow(time=time, run="r", step=1, provider="p", model="m", tokens=Tokens(input=number))


async def test_acknowledged_commits_survive_every_kill_without_gaps(tmp_path):
    path = tmp_path / "zot.db"
    seen: dict[str, int] = {}
    for count in ACKNOWLEDGED_BEFORE_THE_KILL:
        await acknowledged(path, count, seen)
        journal = await SqliteJournal.open(path)
        taken = {row.key: row.input for row in await Archive(journal.database).usage(by="session")}
        for session in SESSIONS:
            stored = await journal.records(session, 1)
            row = await journal.row(session)
            reached, data = await journal.events_after(session, 0, 10**9)

            assert len(stored) >= seen.get(session, 0)
            assert stored == [took(number) for number in range(1, len(stored) + 1)]
            assert taken.get(session, 0) == sum(range(len(stored) + 1))
            assert data.splitlines() == [b'{"type":"turn_start","seq":%d}' % n for n in range(1, 2 * len(stored) + 1)]
            assert reached == 2 * len(stored)
            assert row is None or (row.records, row.seq) == (len(stored), reached)
        await journal.close()
    assert sum(seen.values()) >= sum(ACKNOWLEDGED_BEFORE_THE_KILL)
