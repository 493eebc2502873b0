"""What a session's model saw at an earlier message: to go back there, or to begin another session there.

Every record up to the one that shows that message is folded, a page at a time.
"""

from msgspec import Struct

from zotd.core import records
from zotd.core.fold import Fold, outlined
from zotd.core.lineage import RewindPoint, holds, records_left
from zotd.core.ports import Journal, SessionRow, Stored
from zotd.core.records import AnyRecord
from zotd.core.transcript import Transcript
from zotd.store import slices
from zotd.wire.errors import Code, CommandError
from zotd.wire.plan import Plan

PAGE_BYTES = 128 * 1024
"""Size of the records that are read and folded at a time: about 1 ms of the event loop."""


class Past(Struct, frozen=True):
    """A session as it was at a message."""

    fold: Fold
    number: int
    """Number of the last record that counts."""
    seq: int
    """`seq` of the last message."""
    context: int
    """Tokens of the last model request; 0: none since the transcript was compacted or cleared."""
    rewinds: list[RewindPoint]
    """Those before."""
    plan: Plan | None


async def past_at(journal: Journal, row: SessionRow, seq: int | None, *, whole: bool) -> Past:
    """The session of `row` as it was at the message `seq`; None: at the last one after which it could go on.

    `whole`: the transcript is to have what was said; without it there is only its outline, in little memory.

    Raises:
        CommandError: there is no such message, or calls had no result yet.
        StorageError: the journal cannot be read.
    """
    end = row.records if seq is None else await _record_of(journal, row.id, seq)
    rewinds = await journal.history.rewinds(row.id)
    reading = _Reading(rewinds, whole=whole)
    await reading.read(journal, row.id, end)
    if seq is None and not reading.is_legal and reading.legal is not None:
        end = reading.legal[0]
        reading = _Reading(rewinds, whole=whole)
        await reading.read(journal, row.id, end)
    if reading.legal is None:
        raise CommandError(Code.NOT_FOUND, "there is no message to return to")
    if not reading.is_legal:
        sentence = f"the message {seq} is between calls and their results; the last valid message before it is {{}}"
        raise CommandError(Code.BAD_REQUEST, sentence.format(reading.legal[1]))
    earlier = [rewind for rewind in rewinds if rewind.number <= end]
    return Past(reading.fold, min(end, reading.last), reading.legal[1], reading.context, earlier, reading.plan)


async def _record_of(journal: Journal, session: str, seq: int) -> int:
    """The record that shows the message."""
    number = await journal.history.record_at(session, seq)
    if number is not None:
        (stored,) = await journal.history.entries(session, number - 1, 0)
        if slices.is_message(stored.events.splitlines()[seq - stored.first_seq]):
            return number
    raise CommandError(
        Code.NOT_FOUND, f"no message has the seq {seq}; `zotctl log --json` shows the messages with theirs"
    )


class _Reading:
    """Folds a session up to a record."""

    def __init__(self, rewinds: list[RewindPoint], *, whole: bool) -> None:
        self.fold = Fold(Transcript())
        self.context = 0
        self.plan: Plan | None = None
        self.last = 0
        """The last record that was read: the newest may not be committed yet."""
        self.legal: tuple[int, int] | None = None
        """The last record after which each call had its result, and the last message that it showed."""
        self._rewinds = rewinds
        self._whole = whole

    @property
    def is_legal(self) -> bool:
        """A conversation may go on from here."""
        return self.fold.is_legal

    async def read(self, journal: Journal, session: str, end: int) -> None:
        """Fold the records up to `end`, as far as they are there."""
        left = records_left([rewind for rewind in self._rewinds if rewind.number <= end])
        after = 0
        while after < end and (page := await journal.history.entries(session, after, PAGE_BYTES)):
            for stored in page:
                if stored.number <= end:
                    self._take(stored, is_left=holds(left, stored.number))
            after = page[-1].number

    def _take(self, stored: Stored, *, is_left: bool) -> None:
        self.last = stored.number
        record = stored.record if self._whole else outlined(stored.record)
        self.fold.replay([(stored.number, record)], [(stored.number, stored.number)] if is_left else [])
        if is_left:
            return
        self._count(record)
        seq = slices.last_message(stored)
        if seq is not None and self.is_legal:
            self.legal = (stored.number, seq)

    def _count(self, record: AnyRecord) -> None:
        match record:
            case records.UsageRow(tokens=tokens, purpose="reply") if tokens is not None:
                self.context = tokens.input + tokens.cache_read + tokens.cache_write + tokens.output
            case records.PlanChange(plan=plan):
                self.plan = plan
            case records.Clear():
                self.context, self.plan = 0, None
            case records.Compaction():
                self.context = 0
            case _:
                pass
