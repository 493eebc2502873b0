"""A session's events, folded into the answers that people on channels wait for. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from zotd.wire import events
from zotd.wire.content import Text

ABORTED = "Stopped before there was an answer."
CUT_SHORT = "Stopped here."
"""Instead, behind what was written before."""
INTERRUPTED = (
    "zot was restarted in the middle of this; what was under way may or may not have happened. Please ask again."
)
WITHDRAWN = "This message was taken out of the queue."
WORDLESS = "Done; there is nothing to say about it."
COMPACTED = "The conversation so far was summarised."


@dataclass(frozen=True, slots=True)
class ChannelReply:
    """What there is to say about an input, or (without one) about a compaction."""

    run: str | None
    input: str | None
    text: str
    """Never empty."""


class Answers:
    """The fold. Give it events in order, without holes from before the first input of interest."""

    def __init__(self) -> None:
        self._input: str | None = None
        """What the current run is about."""
        self._text = ""
        """The last words of the model in it."""
        self._outcome = ""
        """What is said instead, when it went wrong."""
        self._is_compacted = False
        self._queued: set[str] = set()
        self._gone: set[str] = set()
        """Left the queue, and it is not known yet why."""

    def feed(self, shown: Sequence[events.Event]) -> list[ChannelReply]:
        """Take the events of one commit; the answers that are known now."""
        found = [answer for event in shown for answer in self._take(event)]
        # An input that starts leaves the queue and is shown in the same commit; what only left was withdrawn.
        withdrawn, self._gone = self._gone, set()
        return [*found, *(ChannelReply(None, one, WITHDRAWN) for one in sorted(withdrawn))]

    def _take(self, event: events.Event) -> Iterable[ChannelReply]:
        match event:
            case events.QueueChanged(items):
                waiting = {item.id for item in items}
                self._gone |= self._queued - waiting
                self._queued = waiting
            case events.UserMessage(input=str(key)):
                self._begin(key)
            case events.AssistantMessage(content):
                self._text = "".join(block.text for block in content if isinstance(block, Text)).strip() or self._text
            case events.CompactDone():
                self._is_compacted = True
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
