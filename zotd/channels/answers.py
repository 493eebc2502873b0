"""Derives the answers for people on channels from a session's events. Pure."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from zotd.wire import events
from zotd.wire.content import Text

ABORTED = "Stopped before there was an answer."
CUT_SHORT = "Stopped here."
"""Used instead after text that was written before the abort."""
INTERRUPTED = (
    "zot was restarted during this run; it is unknown whether the interrupted actions happened. Please ask again."
)
WITHDRAWN = "This message was taken out of the queue."
WORDLESS = "Done, without a reply."
COMPACTED = "The conversation so far was summarised."


class ChannelReply(Struct, frozen=True):
    """The answer to an input or, without one, to a compaction."""

    run: str | None
    input: str | None
    text: str
    """The text, never empty."""


class Answers:
    """Collects answers. Feed it all events in order, starting before the first input of interest."""

    def __init__(self) -> None:
        self._input: str | None = None
        """Input of the current run."""
        self._text = ""
        """The newest text of the model in this run."""
        self._outcome = ""
        """Sentence about a failure or an abort, if there was one."""
        self._is_compacted = False
        self._queued: set[str] = set()
        self._gone: set[str] = set()
        """Inputs that left the queue in this commit, for a reason not yet known."""

    def feed(self, shown: Sequence[events.Event]) -> list[ChannelReply]:
        """Process the events of one commit; return the answers that are complete now."""
        found = [answer for event in shown for answer in self._take(event)]
        # An input that starts leaves the queue and appears as a message in the same commit. One that only leaves was withdrawn.
        withdrawn, self._gone = self._gone, set()
        return [*found, *(ChannelReply(None, one, WITHDRAWN) for one in sorted(withdrawn))]

    def _take(self, event: events.Event) -> Iterable[ChannelReply]:
        match event:
            case events.QueueChanged(items):
                waiting = {item.id for item in items}
                # Only leaving the queue is visible here; `feed` decides whether the input was started or withdrawn.
                self._gone |= self._queued - waiting
                self._queued = waiting
            case events.UserMessage(input=str(key)):
                self._begin(key)
            case events.AssistantMessage(content):
                # A step without text, only with calls, must not erase the text of the step before.
                self._text = "".join(block.text for block in content if isinstance(block, Text)).strip() or self._text
            case events.CompactDone():
                self._is_compacted = True
            # Text that was written before an abort is still part of the answer.
            case events.TurnEnd(stop="aborted"):
                self._outcome = CUT_SHORT if self._text else ABORTED
            case events.Interrupted(what="run"):
                self._outcome = INTERRUPTED
            case events.Error(message):
                self._outcome = f"That went wrong: {message}"
            case events.Done(run):
                yield self._end(run)
            case _:
                pass

    def _begin(self, key: str) -> None:
        self._gone.discard(key)
        self._input, self._text, self._outcome, self._is_compacted = key, "", "", False

    def _end(self, run: str | None) -> ChannelReply:
        said = self._text or WORDLESS
        if self._input is None:
            said = COMPACTED if self._is_compacted else ABORTED
        if self._outcome:
            said = f"{self._text}\n\n{self._outcome}" if self._text else self._outcome
        answer = ChannelReply(run, self._input, said)
        self._input, self._text, self._outcome, self._is_compacted = None, "", "", False
        return answer
