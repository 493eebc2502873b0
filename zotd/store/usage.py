"""Usage of models: every `usage` record of the stored sessions, and the requests that a crash cut.

Reports add up whole hours from the table of `zotd.store.sums`, and read the records of the hour in which they begin.

A request that was in progress when the daemon died gets its `usage` record when its session is next opened. Older
versions wrote none; for their sessions, the `interrupted` record after an attempt counts as the request
(`docs/durability.md`).
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import datetime

import msgspec
from msgspec import Struct

from zotd.core import budget, records
from zotd.core.records import DECODER, AnyRecord
from zotd.store.connection import SqlConnection
from zotd.store.forks import OWN
from zotd.wire.content import Tokens
from zotd.wire.reports import UsageSum

GROUPS = ("model", "session", "cwd", "user", "day")
"""Values of `by` in `sums`."""

HOUR_CHARS = len("2026-11-21T20")
"""Length of the prefix of a record's time that identifies the hour."""

END = "~"
"""Sorts after every time; appended to an hour, it sorts after every time of that hour."""

DAMAGED = "unreadable record"
"""Shown as the model of an attempt whose record is damaged: the attempt still counts."""

FOUND = f"""
SELECT sessions.id, sessions.name, sessions.cwd, sessions.user_name, records.time, records.session, records.number, records.body
FROM records JOIN sessions ON sessions.key = records.session
WHERE records.kind IN ('usage', 'interrupted') AND records.time >= ? AND records.time < ?
    AND sessions.state <> 'staged' AND {OWN}
"""  # noqa: S608  (the condition is ours)
"""`kind IN` repeats the condition of the partial index `records_usage`; otherwise SQLite would not use the index.
Records shared by a fork count for the other session."""

_SUMS = """
SELECT {key}, {name}, CAST(sum(input) AS BIGINT), CAST(sum(output) AS BIGINT), CAST(sum(cache_read) AS BIGINT),
    CAST(sum(cache_write) AS BIGINT), sum(cost_usd), CAST(sum(attempts) AS BIGINT), CAST(sum(unknown) AS BIGINT),
    sum(estimated_usd)
FROM sums JOIN sessions ON sessions.key = sums.session
WHERE hour > ? AND sessions.state <> 'staged' GROUP BY {group}
"""

SUMS_BY = {
    "model": _SUMS.format(key="model", name="''", group="model"),
    "session": _SUMS.format(key="sessions.id", name="sessions.name", group="sessions.key"),
    "cwd": _SUMS.format(key="sessions.cwd", name="''", group="sessions.cwd"),
    "user": _SUMS.format(key="sessions.user_name", name="''", group="sessions.user_name"),
    "day": _SUMS.format(key="hour", name="''", group="hour"),
}

_CUT = "SELECT key, records FROM sessions WHERE state IN ('running', 'waiting')"
"""At the start of the daemon nothing runs, so these are the sessions that a crash has cut."""

_BEFORE = """
SELECT body FROM records
WHERE session = ? AND number < ? AND kind IN ('attempt', 'usage', 'message')
ORDER BY number DESC LIMIT 1
"""


class RequestUsage(Struct, frozen=True):
    """Usage of one request."""

    model: str
    tokens: Tokens | None
    """As reported by the provider; None if it reported nothing."""
    counted: Tokens
    """As counted by budgets, which use an estimate if the provider reported nothing."""


class _Attempt(Struct, frozen=True):
    session: str
    name: str
    cwd: str
    user: str
    day: str
    figures: RequestUsage


def sums(connection: SqlConnection, since: str, by: str) -> list[UsageSum]:
    """One row for each model, session, directory, user or day (`by`, one of `GROUPS`), most expensive first.

    A day is one of this machine's time zone; an hour that two days share counts for the first of them.

    `since` is RFC 3339 in UTC; empty: from the beginning. Deleted sessions are not included.
    """
    # Whole hours come from the table; only the hour in which `since` lies has to be read record by record.
    hour = since[:HOUR_CHARS]
    rows = [UsageSum(*row) for row in connection.execute(SUMS_BY[by], (hour,)).fetchall()]
    found = _by_day(rows) if by == "day" else {row.key: row for row in rows}
    for attempt in _attempts(connection, since, hour and hour + END):
        key = attempt.figures.model if by == "model" else str(getattr(attempt, by))
        row = found.get(key) or UsageSum(key, attempt.name if by == "session" else "")
        found[key] = added(row, attempt.figures)
    return sorted(found.values(), key=lambda row: (-row.cost_usd, -row.attempts, row.key))


def spent(connection: SqlConnection, since: str) -> Tokens:
    """Return the usage counted by budgets since then, including requests cut by a crash.

    Call it before anything runs: sessions marked as running are taken for interrupted ones. `since` is as for `sums`;
    deleted sessions are not included.
    """
    found = [attempt.figures.counted for attempt in _attempts(connection, since, END)]
    for session, records_ in connection.execute(_CUT).fetchall():
        # The number after the last one, so that the search includes the last record.
        cut = _cut_attempt(connection, session, records_ + 1)
        if cut is not None and cut.time >= since:
            found.append(_figures_of_cut(cut).counted)
    return sum(found, Tokens())


def _attempts(connection: SqlConnection, since: str, until: str) -> Iterator[_Attempt]:
    with closing(connection.execute(FOUND, (since, until))) as rows:
        for session, name, cwd, user, time, key, number, body in rows:
            figures = figures_of(connection, key, number, body)
            if figures is not None:
                yield _Attempt(session, name, cwd, user, _day(time), figures)


def _by_day(hours: Sequence[UsageSum]) -> dict[str, UsageSum]:
    """Add up the hours of each day."""
    found: dict[str, UsageSum] = {}
    for hour in hours:
        day = _day(f"{hour.key}:00:00Z")
        so_far = found.get(day, UsageSum(day))
        figures = zip(msgspec.structs.astuple(so_far)[2:], msgspec.structs.astuple(hour)[2:], strict=True)
        found[day] = UsageSum(day, "", *(one + other for one, other in figures))
    return found


def _day(time: str) -> str:
    """Return the day of a time in this machine's time zone."""
    return datetime.fromisoformat(time).astimezone().date().isoformat()


def figures_of(connection: SqlConnection, session: int, number: int, body: bytes) -> RequestUsage | None:
    """Return the usage of the attempt that a record describes; None if it describes none."""
    match _record(body):
        case records.UsageRow() as row:
            return figures_of_row(row)
        case records.Interrupted():
            cut = _cut_attempt(connection, session, number)
            return None if cut is None else _figures_of_cut(cut)
        case _:
            return RequestUsage(DAMAGED, None, budget.UNKNOWN)


def figures_of_row(row: records.UsageRow) -> RequestUsage:
    """Return the usage that a record states."""
    return RequestUsage(f"{row.provider}/{row.model}", row.tokens, budget.counted(row))


def _cut_attempt(connection: SqlConnection, session: int, number: int) -> records.Attempt | None:
    """Return the attempt that was in progress when record `number` was written, or None."""
    # The newest of these kinds decides: a `usage` or `message` after an attempt means that the attempt had ended.
    before = connection.execute(_BEFORE, (session, number)).fetchone()
    cut = _record(*before) if before else None
    return cut if isinstance(cut, records.Attempt) and not cut.resumes else None


def _figures_of_cut(cut: records.Attempt) -> RequestUsage:
    return RequestUsage(f"{cut.provider}/{cut.model}", None, cut.estimate or budget.UNKNOWN)


def _record(body: bytes) -> AnyRecord | None:
    try:
        record: AnyRecord = DECODER.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, TypeError):
        return None
    return record


def added(row: UsageSum, figures: RequestUsage) -> UsageSum:
    """Return the sum with one more request."""
    tokens = figures.tokens
    known = tokens.cost_usd if tokens else 0.0
    row = msgspec.structs.replace(row, estimated_usd=row.estimated_usd + figures.counted.cost_usd - known)
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
