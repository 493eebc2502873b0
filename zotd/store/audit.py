"""The audit trail: who has decided what, with which outcome (`docs/audit.md`)."""

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial

import msgspec
from msgspec import Struct

from zotd import ids
from zotd.clock import rfc3339
from zotd.core.ports import StorageError
from zotd.store.connection import SqlConnection
from zotd.store.ports import JournalDatabase
from zotd.wire.base import encode
from zotd.wire.errors import CommandError
from zotd.wire.reports import AuditEntry, AuditPage

DONE = "done"

FAILED = "failed"
"""Outcome of a command that has ended with an error other than one of `wire.errors.Code`."""

DETAIL_CHARS = 300
"""Longest value that is kept of a detail, and longest name."""

COLUMNS = "id, time, who, client, command, session, details, outcome"

_DETAILS = msgspec.json.Decoder(dict[str, str])

log = logging.getLogger(__name__)


class AuditedAct(Struct, frozen=True):
    """A command that is about to take effect."""

    who: str
    """`local:ACCOUNT`, `token:NAME` or `channel:NAME:SENDER`."""
    client: str
    """What the client calls itself."""
    command: str
    session: str
    """Id of the session that it is about; empty: none."""
    details: Mapping[str, str]


class AuditFilter(Struct, frozen=True):
    """Which entries to return: those with all the values that are not empty."""

    who: str = ""
    command: str = ""
    session: str = ""

    def given(self) -> list[tuple[str, str]]:
        """Return the columns to compare, with their values."""
        wanted = [("who", self.who), ("command", self.command), ("session", self.session)]
        return [(column, value) for column, value in wanted if value]


class AuditTrail:
    """The audit trail in a database that the caller opens and closes."""

    def __init__(self, database: JournalDatabase) -> None:
        self._database = database

    @asynccontextmanager
    async def recorded(self, act: AuditedAct) -> AsyncIterator[None]:
        """Store the act durably before the block runs, and its outcome after.

        Raises:
            StorageError: the act cannot be stored; the block does not run. A failure to store the outcome is logged only,
                because the act has taken effect.
        """
        key, time = ids.new("d"), rfc3339()
        await self._database.perform(partial(_add, key=key, time=time, act=act), durable=True)
        outcome = FAILED
        try:
            yield
            outcome = DONE
        except CommandError as error:
            outcome = error.code.value
            raise
        finally:
            try:
                await self._database.perform(partial(_end, key=key, outcome=outcome))
            except StorageError as error:
                log.warning("the audit trail lacks the outcome %s of %s: %s", outcome, key, error)

    async def page(self, wanted: AuditFilter, *, before: str = "", limit: int = 50) -> AuditPage:
        """Return entries, newest first; `before` is the cursor of the previous page. Raises StorageError."""
        find = partial(_find, wanted=wanted, before=before, limit=limit + 1)
        found = await self._database.read(find)
        return AuditPage(found[:limit], found[limit - 1].id if len(found) > limit else None)

    async def forget(self, before: str) -> None:
        """Delete the entries of before that time, RFC 3339 in UTC. Raises StorageError."""
        await self._database.perform(partial(_forget, before=before))


def _add(connection: SqlConnection, key: str, time: str, act: AuditedAct) -> None:
    details = {name: value[:DETAIL_CHARS] for name, value in act.details.items()}
    values = (act.who[:DETAIL_CHARS], act.client[:DETAIL_CHARS], act.command, act.session[:DETAIL_CHARS])
    # A transaction that fails may run again.
    connection.execute(
        f"INSERT INTO audit ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",  # noqa: S608  (ours)
        (key, time, *values, encode(details).decode(), ""),
    )


def _end(connection: SqlConnection, key: str, outcome: str) -> None:
    connection.execute("UPDATE audit SET outcome = ? WHERE id = ?", (outcome, key))


def _find(connection: SqlConnection, wanted: AuditFilter, before: str, limit: int) -> list[AuditEntry]:
    given = wanted.given()
    tests = [f"{column} = ?" for column, _ in given] + (["id < ?"] if before else [])
    where = f"WHERE {' AND '.join(tests)}" if tests else ""
    query = f"SELECT {COLUMNS} FROM audit {where} ORDER BY id DESC LIMIT ?"  # noqa: S608  (the names are ours)
    values = [value for _, value in given] + ([before] if before else [])
    return [_entry(row) for row in connection.execute(query, (*values, limit)).fetchall()]


def _entry(row: tuple[str, str, str, str, str, str, str, str]) -> AuditEntry:
    key, time, who, client, command, session, details, outcome = row
    return AuditEntry(key, time, who, client, command, session, _DETAILS.decode(details), outcome)


def _forget(connection: SqlConnection, before: str) -> None:
    connection.execute("DELETE FROM audit WHERE time < ?", (before,))
