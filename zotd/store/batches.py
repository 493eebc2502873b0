"""Batches of prompts in the journal's database: which wait, which daemon runs which, and what has come of them.

    waiting ──claim──> running ──end──> ended       the result has the next place among those of its batch
       ^                  │  └─adopt─> running      by another daemon, in the same session
       └──────retry───────┘

A claim names the session before that is made, so that the daemon that adopts it finds what was begun.
"""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TypeVar

import msgspec
from msgspec import Struct

from zotd import ids
from zotd.core.batches import BatchPrompt, PromptResult, is_same_prompt, label_sets
from zotd.core.ports import StorageError
from zotd.store import batch_sums
from zotd.store.batch_sums import BatchSum
from zotd.store.claims import ClaimRules
from zotd.store.connection import Row, SqlConnection
from zotd.store.ownership import Ownership
from zotd.store.ports import JournalDatabase
from zotd.wire.base import ENCODER

T = TypeVar("T")

_ADD_BATCH = "INSERT INTO batches (id, submitter, priority, made) VALUES (?, ?, ?, ?) ON CONFLICT (id) DO NOTHING"

_ADD_PROMPT = """
INSERT INTO batch_prompts (batch, number, state, labels, row) VALUES (?, ?, 'waiting', ?, ?)
ON CONFLICT (batch, number) DO NOTHING
"""

_FORGET_PROMPTS = """
DELETE FROM batch_prompts WHERE batch IN (
    SELECT id FROM batches WHERE made < :before AND id <> :batch AND NOT EXISTS (
        SELECT 1 FROM batch_prompts AS other WHERE other.batch = id AND state <> 'ended'
    )
)
"""

_FORGET_BATCHES = """
DELETE FROM batches WHERE made < :before AND id <> :batch
    AND NOT EXISTS (SELECT 1 FROM batch_prompts WHERE batch_prompts.batch = id)
"""

_LABELS = "SELECT DISTINCT labels FROM batch_prompts WHERE state = 'waiting'"

_WAITING = "SELECT labels, count(*) FROM batch_prompts WHERE state = 'waiting' GROUP BY labels ORDER BY labels"

_BATCHES_BY_TURN = """
SELECT id FROM batches WHERE EXISTS (
    SELECT 1 FROM batch_prompts WHERE batch = id AND state = 'waiting' AND labels IN ({})
) ORDER BY priority DESC, (
    SELECT count(*) FROM batch_prompts JOIN batches AS other ON other.id = batch
    WHERE state = 'running' AND other.submitter = batches.submitter
), made, id
"""
"""First the priority, then the submitter of whom the fewest prompts run, then the age."""

_NEXT = """
SELECT number, attempts, row FROM batch_prompts WHERE batch = ? AND state = 'waiting' AND labels IN ({})
ORDER BY number LIMIT 1 {}
"""

_CLAIM = """
UPDATE batch_prompts SET state = 'running', daemon = ?, session = ?, attempts = ? WHERE batch = ? AND number = ?
"""

_ADOPTABLE = """
SELECT batch, number, attempts, session, row FROM batch_prompts WHERE state = 'running' AND {} ORDER BY batch, number
"""

_ADOPT = """
UPDATE batch_prompts SET daemon = :me
WHERE batch = :batch AND number = :number AND attempts = :attempt AND state = 'running' AND {} RETURNING number
"""

_OWN = """
SELECT 1 FROM batch_prompts
WHERE batch = ? AND number = ? AND state = 'running' AND daemon = ? AND attempts = ? {}
"""

_PLACE = "UPDATE batches SET ended = ended + 1 WHERE id = ? RETURNING ended"
"""A counter in the row, which is locked until the result is there: with a sequence a reader could miss a result that is
committed after one with a later place."""

_END = """
UPDATE batch_prompts SET state = 'ended', daemon = NULL, ended = ?, result = ? WHERE batch = ? AND number = ?
"""

_RETRY = "UPDATE batch_prompts SET state = 'waiting', daemon = NULL WHERE batch = ? AND number = ?"

_RESULTS = """
SELECT ended, number, result FROM batch_prompts WHERE batch = ? AND ended > ? ORDER BY ended
"""

CANCELLED = "the batch was cancelled"
"""`PromptResult.error` of a prompt that is not run for that reason."""


class BatchError(StorageError):
    """What is asked for cannot be done with this batch; nothing was changed. The message is one sentence."""


class LostClaimError(StorageError):
    """Another daemon has the prompt now."""


class PromptClaim(Struct, frozen=True):
    """A prompt that a daemon runs."""

    batch: str
    number: int
    attempt: int
    """Counts from 1."""
    session: str
    """Id of the session of this attempt, which may not have been made yet."""
    daemon: int
    prompt: BatchPrompt

    @property
    def key(self) -> tuple[str, int, int]:
        """Identifies the attempt."""
        return self.batch, self.number, self.attempt

    @property
    def name(self) -> str:
        """How the attempt is named in logs and in its session."""
        return f"batch {self.batch} {self.number} {self.attempt}"


class PlacedResult(Struct, frozen=True):
    """A result, and where it stands among those of its batch."""

    place: int
    """Counts from 1, in the order in which they were stored."""
    number: int
    result: PromptResult


class NewBatch(Struct, frozen=True):
    """Which batch prompts are added to."""

    id: str
    submitter: str
    priority: int
    made: str
    """The time, for a batch that is not there yet."""
    forgets: str
    """Batches without prompts to run that were made before this time are deleted."""


class StoredBatches:
    """The tables `batches` and `batch_prompts`. Methods raise StorageError."""

    def __init__(self, database: JournalDatabase, ownership: Ownership) -> None:
        self._database = database
        self._ownership = ownership
        self.rules: ClaimRules = ownership.claims
        """How daemons share the work."""

    def offer(self, labels: Collection[str]) -> None:
        """Tell the other daemons which labels this one has. Returns at once."""
        self._ownership.members.offer(sorted(labels))

    async def submit(self, batch: NewBatch, prompts: Sequence[tuple[int, BatchPrompt]]) -> int:
        """Add these numbered prompts, unless they are there; return how many are new. When it returns, they are stored.

        Raises BatchError if other prompts have these numbers, or the batch was cancelled.
        """
        rows = [(number, _labels(prompt), ENCODER.encode(prompt).decode()) for number, prompt in prompts]
        return await self._perform(partial(_submit, batch=batch, rows=rows, rules=self.rules))

    async def has_work(self, own: Collection[str]) -> bool:
        """Return whether a prompt waits that a daemon with these labels runs."""
        return bool(await self._database.read(partial(_waiting_labels, own=own)))

    async def waiting(self) -> Sequence[tuple[Sequence[str], int]]:
        """Return the sets of labels of prompts that wait, and how many have each."""
        rows = await self._database.read(lambda connection: connection.execute(_WAITING).fetchall())
        return [(msgspec.json.decode(labels, type=list[str]), count) for labels, count in rows]

    async def claim(self, own: Collection[str]) -> PromptClaim | None:
        """Take the next prompt that waits for a daemon with these labels; None: there is none."""
        return await self._perform(partial(_claim, own=own, rules=self.rules))

    async def adoptable(self) -> Sequence[PromptClaim]:
        """Return what this daemon runs, or may `adopt`, as claims of its own."""
        rules = self.rules
        query, me = _ADOPTABLE.format(rules.adoptable), rules.number
        rows = await self._database.read(lambda connection: connection.execute(query, {"me": me}).fetchall())
        return [_claimed(me, row) for row in rows]

    async def adopt(self, claim: PromptClaim) -> bool:
        """Make a claim that `adoptable` has returned this daemon's; False if it is not possible any more."""
        values = {"me": claim.daemon, "batch": claim.batch, "number": claim.number, "attempt": claim.attempt}
        query = _ADOPT.format(self.rules.adoptable)
        if claim.daemon != self.rules.number:  # this daemon has lost its lease since
            return False
        return await self._perform(lambda connection: bool(connection.execute(query, values).fetchall()))

    async def end(self, claim: PromptClaim, result: PromptResult) -> None:
        """Store the result of a claim, once; raises LostClaimError, OwnedElsewhereError if another daemon has it."""
        text = ENCODER.encode(result).decode()
        await self._perform(partial(_end, claim=claim, result=text, ownership=self._ownership))

    async def retry(self, claim: PromptClaim) -> None:
        """Let the prompt wait again, for another attempt; raises like `end`. It is over if its batch was cancelled."""
        await self._perform(partial(_retry, claim=claim, ownership=self._ownership))

    async def results(self, batch: str, after: int, limit_bytes: int) -> Sequence[PlacedResult]:
        """Return results behind a place, in order, as many as have that size together, at least one if there is one."""
        return await self._database.read(partial(_results, batch=batch, after=after, limit_bytes=limit_bytes))

    async def sums(self, batch: str) -> Sequence[BatchSum]:
        """Return the batch with this id, if there is one."""
        return await self._database.read(partial(batch_sums.of, batch=batch))

    async def newest(self, limit: int, *, active: bool = False) -> Sequence[BatchSum]:
        """Return batches, newest first; `active`: only those that have prompts to run."""
        return await self._database.read(partial(batch_sums.newest, limit=limit, active=active))

    async def cancel(self, batch: str) -> int:
        """End all prompts of a batch that wait, and have those that run be aborted; return how many have not run.

        Raises BatchError if there is no such batch.
        """
        return await self._perform(partial(_cancel, batch=batch, rules=self.rules))

    async def cancelled(self, batches: Collection[str]) -> Collection[str]:
        """Return which of these batches were cancelled."""
        query = f"SELECT id FROM batches WHERE cancelled = 1 AND id IN ({_marks(batches)})"  # noqa: S608  (marks)
        keys = tuple(batches)
        return {key for (key,) in await self._database.read(lambda one: one.execute(query, keys).fetchall())}

    async def _perform(self, change: Callable[[SqlConnection], T]) -> T:
        found: list[T] = []
        await self._database.perform(lambda connection: found.append(change(connection)), durable=True)
        return found[-1]


# --- in a thread of the database -----------------------------------------------------------------------------


def _submit(connection: SqlConnection, batch: NewBatch, rows: Sequence[tuple[int, str, str]], rules: ClaimRules) -> int:
    # First: it waits for another client that makes the same batch. It changes nothing if the batch is there already, and only
    # such a batch is refused.
    connection.execute(_ADD_BATCH, (batch.id, batch.submitter, batch.priority, batch.made))
    known = _known(connection, batch, [number for number, _, _ in rows], rules)
    values = [(batch.id, number, labels, row) for number, labels, row in rows if number not in known]
    for number, _, row in rows:
        if not is_same_prompt(known.get(number, row), row):
            raise BatchError(
                f"the batch {batch.id} has another prompt {number} already: use another id for a changed file"
            )
    connection.executemany(_ADD_PROMPT, values)
    old = {"before": batch.forgets, "batch": batch.id}
    connection.execute(_FORGET_PROMPTS, old)
    connection.execute(_FORGET_BATCHES, old)
    rules.tell(connection)
    return len(values)


def _known(connection: SqlConnection, batch: NewBatch, numbers: Sequence[int], rules: ClaimRules) -> dict[int, str]:
    """Return the prompts that are there already; raises BatchError for a batch that was cancelled."""
    query = f"SELECT cancelled FROM batches WHERE id = ? {rules.lock}"  # noqa: S608  (a clause of our own)
    (is_cancelled,) = connection.execute(query, (batch.id,)).fetchone()
    if is_cancelled:
        raise BatchError(f"the batch {batch.id} was cancelled: use another id")
    query = f"SELECT number, row FROM batch_prompts WHERE batch = ? AND number IN ({_marks(numbers)})"  # noqa: S608
    return dict(connection.execute(query, (batch.id, *numbers)).fetchall())


def _claim(connection: SqlConnection, own: Collection[str], rules: ClaimRules) -> PromptClaim | None:
    labels = _waiting_labels(connection, own)
    if not labels:
        return None
    marks = _marks(labels)
    for (batch,) in connection.execute(_BATCHES_BY_TURN.format(marks), labels).fetchall():
        found = connection.execute(_NEXT.format(marks, rules.lock_free), (batch, *labels)).fetchone()
        if found is not None:
            number, attempts, row = found
            session, attempt = ids.new("s"), attempts + 1
            connection.execute(_CLAIM, (rules.number, session, attempt, batch, number))
            return _claimed(rules.number, (batch, number, attempt, session, row))
    return None


def _end(connection: SqlConnection, claim: PromptClaim, result: str, ownership: Ownership) -> None:
    _check(connection, claim, ownership)
    _place(connection, claim.batch, claim.number, result)
    ownership.claims.tell(connection)


def _retry(connection: SqlConnection, claim: PromptClaim, ownership: Ownership) -> None:
    _check(connection, claim, ownership)
    query = f"SELECT cancelled FROM batches WHERE id = ? {ownership.claims.lock}"  # noqa: S608  (a clause of our own)
    (is_cancelled,) = connection.execute(query, (claim.batch,)).fetchone()
    if is_cancelled:
        _place(connection, claim.batch, claim.number, _cancelled(claim.attempt))
    else:
        connection.execute(_RETRY, (claim.batch, claim.number))
    ownership.claims.tell(connection)


def _check(connection: SqlConnection, claim: PromptClaim, ownership: Ownership) -> None:
    """Raise an error unless the claim is this daemon's, as its session is; keep it so until the end of the transaction."""
    rules = ownership.claims
    ownership.check_session(connection, claim.session)
    mine = (claim.batch, claim.number, rules.number, claim.attempt)
    if rules.number != claim.daemon or connection.execute(_OWN.format(rules.lock), mine).fetchone() is None:
        raise LostClaimError(f"{claim.name} was taken over by another daemon")


def _place(connection: SqlConnection, batch: str, number: int, result: str) -> None:
    (place,) = connection.execute(_PLACE, (batch,)).fetchone()
    connection.execute(_END, (place, result, batch, number))


def _cancel(connection: SqlConnection, batch: str, rules: ClaimRules) -> int:
    if connection.execute("SELECT 1 FROM batches WHERE id = ?", (batch,)).fetchone() is None:
        raise BatchError(f'there is no batch "{batch}"; `zotctl fleet batches` lists them')
    connection.execute("UPDATE batches SET cancelled = 1 WHERE id = ?", (batch,))
    query = "SELECT number, attempts FROM batch_prompts WHERE batch = ? AND state = 'waiting' ORDER BY number "
    waiting = connection.execute(query + rules.lock, (batch,)).fetchall()
    for number, attempts in waiting:
        _place(connection, batch, number, _cancelled(attempts))
    rules.tell(connection)
    return len(waiting)


def _cancelled(attempts: int) -> str:
    result = PromptResult(state="cancelled", error=CANCELLED, attempts=attempts)
    return ENCODER.encode(result).decode()


def _results(connection: SqlConnection, batch: str, after: int, limit_bytes: int) -> list[PlacedResult]:
    found, left_bytes = list[PlacedResult](), limit_bytes
    rows = connection.execute(_RESULTS, (batch, after))
    for place, number, result in rows:
        left_bytes -= len(result)
        if found and left_bytes < 0:
            break
        found.append(PlacedResult(place, number, msgspec.json.decode(result, type=PromptResult)))
    rows.close()
    return found


def _waiting_labels(connection: SqlConnection, own: Collection[str]) -> Sequence[str]:
    """Return the sets of labels, as they are stored, of prompts that wait for a daemon with these."""
    stored = {
        tuple(msgspec.json.decode(text, type=list[str])): text for (text,) in connection.execute(_LABELS).fetchall()
    }
    return [stored[labels] for labels in label_sets(stored, own)]


def _labels(prompt: BatchPrompt) -> str:
    return ENCODER.encode(prompt.labels).decode()


def _claimed(daemon: int, found: Row) -> PromptClaim:
    batch, number, attempt, session, row = found
    return PromptClaim(batch, number, attempt, session, daemon, msgspec.json.decode(row, type=BatchPrompt))


def _marks(values: Collection[object]) -> str:
    return ", ".join("?" * len(values))
