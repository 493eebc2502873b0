"""The summary of a session's older messages that is requested before the transcript has to be summarised.

    begin -> end -> ready -> used by a compaction
       |      `---> failed: not requested again for these messages
       `-> replaced, at any time: what was requested covers messages that the model no longer sees

The state follows from the records alone, so it is the same live and after a restart. A request covers the first messages
of the transcript, by their number. Messages are only added behind those, until a record replaces them: a compaction,
`clear` or a rewind. Each of these ends the validity of the request and of the summary.
"""

from collections.abc import Sequence

from msgspec import Struct

from zotd.core import budget
from zotd.core.records import Attempt, Settings, UsageRow
from zotd.wire.content import Message

PURPOSE = "early_summary"
"""`purpose` of the usage row of such a request."""


class PreparedSummary(Struct, frozen=True):
    """A summary that is on record and not used yet."""

    text: str
    covers: int
    """So many of the first messages of the transcript."""


class EarlySummary:
    """At most one request at a time, and at most one summary that was not used yet."""

    def __init__(self) -> None:
        self.sent: Attempt | None = None
        """The request that was sent and has no usage row."""
        self.ready: PreparedSummary | None = None
        """The summary, until a compaction uses it or makes it invalid."""
        self._is_stale = False
        self._has_failed = False

    @property
    def is_wanted(self) -> bool:
        """Whether the request under way, if there is one, still covers what the model sees."""
        return self.sent is not None and not self._is_stale

    @property
    def may_begin(self) -> bool:
        """Whether another request makes sense: none is under way or done, and none has failed for these messages."""
        return self.sent is None and self.ready is None and not self._has_failed

    def begin(self, attempt: Attempt) -> None:
        """The request is on record; it covers the first `attempt.covers` messages."""
        self.sent, self._is_stale = attempt, False

    def end(self, row: UsageRow) -> None:
        """The request has ended, with the summary in its usage row or without one."""
        sent = self.sent
        if sent is None or (sent.run, sent.step) != (row.run, row.step):  # late or repeated
            return
        self.sent = None
        if self._is_stale:
            return
        if row.summary:
            self.ready = PreparedSummary(row.summary, sent.covers)
        # What was cut by a person or a crash says nothing about the model.
        self._has_failed = row.failure not in {"", "aborted", "interrupted"}

    def replaced(self) -> None:
        """Other messages are in the place of those that were covered."""
        self.ready, self._has_failed, self._is_stale = None, False, True

    def configured(self, settings: Settings) -> None:
        """The session has these settings now. Another model's request is dropped; a summary that is there is kept."""
        if self.sent is not None and (self.sent.provider, self.sent.model) != (settings.provider, settings.model):
            self._is_stale = True
        self._has_failed = False

    def disowned(self) -> None:
        """The records so far are a copy of another session's: its request is not ours, its finished summary is."""
        self.sent = None

    def usable(self, messages: Sequence[Message], limit: int) -> PreparedSummary | None:
        """Return the summary if it makes enough room: what it leaves out has fewer than `limit` tokens."""
        ready = self.ready
        if ready is None or ready.covers > len(messages):
            return None
        rest = messages[ready.covers :]
        if rest and rest[0].role == "tool":  # its call would be in the summary, and vendors refuse that
            return None
        return ready if sum(budget.size(message.content) for message in rest) < limit else None
