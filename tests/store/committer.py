"""A process to be killed: commits to several sessions without end, and prints each acknowledged commit."""

import asyncio
import os
import sys
from pathlib import Path

import msgspec

from zotd.core.ports import JournalEntry, SessionRow
from zotd.core.records import Settings, UsageRow
from zotd.store.journal import SqliteJournal
from zotd.wire.content import Tokens

SESSIONS = 4


async def main():
    journal = await SqliteJournal.open(Path(sys.argv[1]))
    async with asyncio.TaskGroup() as group:
        for n in range(SESSIONS):
            group.create_task(write(journal, f"s_{n}"))


async def write(journal, session):
    new = SessionRow(session, session, "/", "", "", Settings(provider="p", model="m"), "idle")
    row = await journal.row(session) or new
    while True:
        ends = []
        for durable in (False, True, False):  # submitted without waiting for the one before
            entry = JournalEntry(
                number=row.records + 1,
                record=took(row.records + 1),
                first_seq=row.seq + 1,
                last_seq=row.seq + 2,
                events=b"".join(b'{"type":"turn_start","seq":%d}\n' % (row.seq + n) for n in (1, 2)),
            )
            row = msgspec.structs.replace(row, records=entry.number, seq=entry.last_seq)
            ends.append(send(journal, row, entry, durable=durable))
        for end in ends:
            await end


def took(number):
    time = "2026-11-21T20:11:18.919Z"
    return UsageRow(time=time, run="r", step=1, provider="p", model="m", tokens=Tokens(input=number))


def send(journal, row, entry, *, durable):
    end = asyncio.get_running_loop().create_future()

    def done(error):
        assert error is None, error
        os.write(1, f"{row.id} {row.records}\n".encode())
        end.set_result(None)

    journal.commit(row, [entry], durable=durable, done=done)
    return end


asyncio.run(main())
