"""What tests of daemons that share a database have in common."""

import asyncio
from collections.abc import Sequence

import psycopg
import pytest

from zotd.core.ports import StorageError
from zotd.store.ownership import Handover, LeaseEvents

WAIT_S = 30

STATES = ("running", "waiting")

UNRENEWED = pytest.mark.usefixtures("unrenewed")

QUICK = pytest.mark.usefixtures("quick")


class Told:
    """What journals say of their leases."""

    def __init__(self, *journals):
        self.lost: asyncio.Queue[StorageError] = asyncio.Queue()
        self.changed: asyncio.Queue[Sequence[str]] = asyncio.Queue()
        self.given: asyncio.Queue[Sequence[Handover]] = asyncio.Queue()
        for journal in journals:
            journal.ownership.follow(
                LeaseEvents(self.lost.put_nowait, self.changed.put_nowait, self.given.put_nowait, STATES)
            )


async def soon(queue):
    """The next of what is told."""
    async with asyncio.timeout(WAIT_S):
        return await queue.get()


def sql(url, statement, *values):
    """The cursor of a statement that was run on a connection of its own."""
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(statement, values)


def number_of(journal):
    return journal.database.lease.number


def expire(url, journal):
    """Let the lease of the daemon be over by the clock of the server."""
    sql(url, "UPDATE daemons SET expires = clock_timestamp() - interval '1 s' WHERE number = %s", number_of(journal))


async def texts_of(journal, session="s_1"):
    return [record.text for record in await journal.records(session, 1)]
