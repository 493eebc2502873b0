"""Sums over what model requests took: every `usage` record of the stored sessions, and the requests that a crash cut.

A request that was in flight when the daemon died has no `usage` record; its session's `interrupted` record, written
at the next look at it, stands for it when a request is what was cut (`docs/durability.md`).
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import msgspec

from zotd.core import records
from zotd.core.records import DECODER, AnyRecord
from zotd.wire.content import Tokens
from zotd.wire.reports import UsageSum

GROUPS = ("model", "session", "cwd")
"""What `sums` can group by."""

DAMAGED = "unreadable record"
"""The model of an attempt whose record is damaged: that it was made is known."""

FOUND = """
SELECT sessions.id, sessions.name, sessions.cwd, records.session, records.number, records.body
FROM records JOIN sessions ON sessions.key = records.session
WHERE records.kind IN ('usage', 'interrupted') AND records.time >= ?
"""
"""The words of `kind IN` are those of the index `records_usage`, which SQLite therefore uses."""

_BEFORE = """
SELECT body FROM records
WHERE session = ? AND number < ? AND kind IN ('attempt', 'usage', 'message')
ORDER BY number DESC LIMIT 1
"""


@dataclass(frozen=True, slots=True)
class _Attempt:
    session: str
    name: str
    cwd: str
    model: str
    tokens: Tokens | None


def sums(connection: sqlite3.Connection, since: str, by: str) -> list[UsageSum]:
    """One row for each model, session or directory (`by`, one of `GROUPS`), most expensive first.

    `since` is RFC 3339 in UTC; empty: from the beginning. What deleted sessions took is not in it.
    """
    found: dict[str, UsageSum] = {}
    for attempt in _attempts(connection, since):
        key = {"model": attempt.model, "session": attempt.session, "cwd": attempt.cwd}[by]
        row = found.get(key) or UsageSum(key, attempt.name if by == "session" else "")
        found[key] = _with(row, attempt.tokens)
    return sorted(found.values(), key=lambda row: (-row.cost_usd, -row.attempts, row.key))


def _attempts(connection: sqlite3.Connection, since: str) -> Iterator[_Attempt]:
    with closing(connection.execute(FOUND, (since,))) as rows:
        for session, name, cwd, key, number, body in rows:
            figures = _figures(connection, key, number, body)
            if figures is not None:
                yield _Attempt(session, name, cwd, *figures)


def _figures(
    connection: sqlite3.Connection, session: int, number: int, body: bytes
) -> tuple[str, Tokens | None] | None:
    """The model of the attempt that a record tells of, and what it took; None when it tells of none."""
    match _record(body):
        case records.UsageRow(provider=provider, model=model, tokens=tokens):
            return f"{provider}/{model}", tokens
        case records.Interrupted():
            before = connection.execute(_BEFORE, (session, number)).fetchone()
            cut = _record(*before) if before else None
            return (f"{cut.provider}/{cut.model}", None) if isinstance(cut, records.Attempt) else None
        case _:
            return DAMAGED, None


def _record(body: bytes) -> AnyRecord | None:
    try:
        record: AnyRecord = DECODER.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return record


def _with(row: UsageSum, tokens: Tokens | None) -> UsageSum:
    if tokens is None:
        return msgspec.structs.replace(row, attempts=row.attempts + 1, unknown=row.unknown + 1)
    return msgspec.structs.replace(
        row,
        input=row.input + tokens.input,
        output=row.output + tokens.output,
        cache_read=row.cache_read + tokens.cache_read,
        cache_write=row.cache_write + tokens.cache_write,
        cost_usd=row.cost_usd + tokens.cost_usd,
        attempts=row.attempts + 1,
    )
