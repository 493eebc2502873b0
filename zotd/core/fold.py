"""A session's records, folded: the transcript, and in which record the content of each message stands.

Live, each record is applied as it is written. After a restart `replay` takes those from `base` on: what a rewind has
left behind still tells what waits and who asked, but says nothing to the model.
"""

from collections.abc import Iterable, Sequence

import msgspec

from zotd.core import records
from zotd.core.lineage import Span, holds
from zotd.core.records import AnyRecord
from zotd.core.transcript import Transcript
from zotd.wire.content import Block, Text, ToolCall


class Fold:
    """The state of one session, as its records tell it."""

    def __init__(self, transcript: Transcript, base: int = 1) -> None:
        """`base`: no record before it holds a message of the transcript, or an input that waits."""
        self.transcript = transcript
        self._numbers: list[int] = []
        """Of each message in the transcript: the number of the record that holds its content."""
        self._oldest = base
        """No record before it holds a message of the transcript. They do not stand in the order of the messages: an
        input that waited through a run is older than the messages of that run."""
        self._inputs: dict[str, int] = {}

    @property
    def base(self) -> int:
        """The first record that a restart has to read: nothing before it is seen by the model or waits."""
        return min([self._oldest, *(self._inputs[key] for key in self.transcript.waiting)])

    @property
    def is_legal(self) -> bool:
        """Each call has its result: a conversation may go on from here."""
        return not self.transcript.open_calls

    def replay(self, numbered: Iterable[tuple[int, AnyRecord]], left: Sequence[Span]) -> None:
        """Apply records with their numbers, oldest first; those in `left` have been left behind."""
        for number, record in numbered:
            if holds(left, number):
                self._pass_over(number, record)
            else:
                self.apply(number, record)

    def apply(self, number: int, record: AnyRecord) -> None:
        """Fold the record with this number."""
        before = len(self.transcript.messages)
        self.transcript.apply(record)
        after = len(self.transcript.messages)
        match record:
            case records.Input(id=key):
                self._inputs[key] = number
            case records.Attempt(input=first, steered=steered):
                del self._numbers[after:]  # a reply that was cut is dropped when its run goes on
                self._begin([*([first] if first else []), *steered])
            case records.Compaction(kept=kept):
                self._numbers = [number, *(self._numbers[-kept:] if kept else [])]
                self._oldest = min(self._numbers)
            case records.Clear():
                self._numbers = []
                self._oldest = number + 1
            case records.ForkRow():
                self._inputs.clear()
            case _ if after > before:
                self._numbers.append(number)
            case _:
                pass

    def go_back(self, past: "Fold") -> None:
        """See what `past`, folded up to an earlier record, sees; the rewind's own record is applied after this."""
        self.transcript.replace_messages(past.transcript.messages)
        self._numbers, self._oldest = past._numbers, past._oldest  # noqa: SLF001  (of the same class)

    def _pass_over(self, number: int, record: AnyRecord) -> None:
        """What waits and what runs goes on as if nothing had been left behind; what was said does not count."""
        said, numbers, oldest = self.transcript.replace_messages([]), self._numbers, self._oldest
        self._numbers = []
        self.apply(number, record)
        self.transcript.replace_messages(said)
        self._numbers, self._oldest = numbers, oldest

    def _begin(self, keys: list[str]) -> None:
        """These inputs, as far as they waited, are messages now."""
        for key in keys:
            if key in self._inputs and key not in self.transcript.waiting:
                self._numbers.append(self._inputs.pop(key))
                self._oldest = min(self._oldest, self._numbers[-1])


def outlined(record: AnyRecord) -> AnyRecord:
    """The record without what was said in it: folded, it takes no memory to speak of, and counts the same."""
    match record:
        case records.Input():
            return msgspec.structs.replace(record, content=[])
        case records.Reply(content=content):
            return msgspec.structs.replace(record, content=_outline(content))
        case records.CallResult() | records.ShellResult():
            return msgspec.structs.replace(record, content=[])
        case records.Compaction():
            return msgspec.structs.replace(record, summary="")
        case _:
            return record


def _outline(content: list[Block]) -> list[Block]:
    calls: list[Block] = [ToolCall(block.id, block.name, {}) for block in content if isinstance(block, ToolCall)]
    return calls or ([Text("")] if content else [])
