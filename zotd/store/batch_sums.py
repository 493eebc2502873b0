"""Batches in numbers: how many of their prompts wait, run and have ended."""

from msgspec import Struct

from zotd.store.connection import Row, SqlConnection

_SUMS = """
SELECT id, submitter, priority, made, cancelled, ended,
    (SELECT count(*) FROM batch_prompts WHERE batch = id AND state = 'waiting'),
    (SELECT count(*) FROM batch_prompts WHERE batch = id AND state = 'running')
FROM
"""

_NEWEST = "SELECT * FROM batches {} ORDER BY made DESC, id DESC LIMIT ?"

_IS_ACTIVE = """
WHERE EXISTS (SELECT 1 FROM batch_prompts WHERE batch = id AND state = 'waiting')
    OR EXISTS (SELECT 1 FROM batch_prompts WHERE batch = id AND state = 'running')
"""


class BatchSum(Struct, frozen=True):
    """A batch in numbers."""

    id: str
    submitter: str
    priority: int
    made: str
    is_cancelled: bool
    ended: int
    waiting: int
    running: int


def of(connection: SqlConnection, batch: str) -> list[BatchSum]:
    """Return the batch with this id, if there is one."""
    return [_summed(row) for row in connection.execute(f"{_SUMS} batches WHERE id = ?", (batch,)).fetchall()]


def newest(connection: SqlConnection, limit: int, *, active: bool) -> list[BatchSum]:
    """Return batches, newest first; `active`: only those that have prompts to run."""
    # In a query of its own, so that prompts are counted of those batches only that are returned.
    found = _NEWEST.format(_IS_ACTIVE if active else "")
    query = f"{_SUMS} ({found}) AS batches ORDER BY made DESC, id DESC"
    return [_summed(row) for row in connection.execute(query, (limit,)).fetchall()]


def _summed(row: Row) -> BatchSum:
    key, submitter, priority, made, cancelled, *counts = row
    return BatchSum(key, submitter, priority, made, bool(cancelled), *counts)
