"""The part of a conversation that is in memory: messages in a row, and never too many."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from zotd.wire.content import Message, Text, ToolCall, ToolResult
from zottui.blocks import Block, Prose, ToolRan, UserSaid

MOST_MESSAGES = 600
"""Kept at most: three pages, so that turning around costs no question."""

MOST_CHARS = 4_000_000
"""Kept at most: tools print long texts. 4 to 16 MB."""

NEAR = 60
"""Messages around the cursor that are kept whatever they weigh: more than a screen shows, with results between them."""


def seq_of(message: Message) -> int:
    """The `seq` of a message of a history, which has one."""
    assert message.seq is not None
    return message.seq


class Loaded:
    """Messages without a gap between them, oldest first."""

    def __init__(self, messages: Sequence[Message] = (), *, has_older: bool = False, has_newer: bool = False) -> None:
        """`has_older`, `has_newer`: there may be more on that side."""
        self.messages = list(messages)
        self.has_older = has_older
        self.has_newer = has_newer
        self._know_results()

    def __len__(self) -> int:
        return len(self.messages)

    @property
    def first(self) -> int:
        """The `seq` of the oldest message; 0: there is none."""
        return seq_of(self.messages[0]) if self.messages else 0

    @property
    def last(self) -> int:
        """The `seq` of the newest message; 0: there is none."""
        return seq_of(self.messages[-1]) if self.messages else 0

    def seq(self, index: int) -> int:
        """Of the message at `index`; 0: there is none."""
        return seq_of(self.messages[index]) if index < len(self.messages) else 0

    def has(self, seq: int) -> bool:
        """Whether the message is here."""
        return bool(self.messages) and self.seq(self.index(seq)) == seq

    def index(self, seq: int) -> int:
        """Where the message `seq` stands, or else the one before it, or else the first."""
        return max(bisect_right(self.messages, seq, key=seq_of) - 1, 0)

    def add_older(self, messages: Sequence[Message], before: int, *, has_older: bool, near: int) -> None:
        """Put a page that ends below `before` in front; nothing, when that is no longer the first message.

        `near`: the message whose surroundings stay. What is then too much goes from the other end.
        """
        if before != self.first:
            return
        self.messages[:0] = messages
        self.has_older = has_older
        kept = _fitting(self.messages, self.index(near) + NEAR)
        self.has_newer = self.has_newer or kept < len(self.messages)
        del self.messages[kept:]
        self._know_results()

    def add_newer(self, messages: Sequence[Message], after: int, *, has_newer: bool, near: int) -> None:
        """The same at the end, for messages that follow `after`."""
        if after != self.last:
            return
        self.messages += messages
        self.has_newer = has_newer
        kept = _fitting(reversed(self.messages), len(self.messages) - self.index(near) + NEAR)
        self.has_older = self.has_older or kept < len(self.messages)
        del self.messages[: len(self.messages) - kept]
        self._know_results()

    # --- what belongs together ----------------------------------------------------------------------------------------

    def with_results(self, index: int) -> list[Message]:
        """A message, and the results of the calls in it, as far as they are here."""
        message = self.messages[index]
        return [message, *(self._results[call] for call in calls_of(message) if call in self._results)]

    def is_answered(self, call: str) -> bool:
        """Whether the result of a call is here."""
        return call in self._results

    def caller(self, index: int) -> int:
        """Where the message stands that shows this one: a result is shown with its call. -1: it is not here."""
        message = self.messages[index]
        if message.role != "tool":
            return index
        wanted = _answered(message)
        return next((at for at in range(index, -1, -1) if wanted & calls_of(self.messages[at]).keys()), -1)

    def above(self, index: int) -> Block | None:
        """A block of the kind that stands above a message: it decides about the blank line. None: nothing does."""
        for at in range(index - 1, -1, -1):
            message = self.messages[at]
            if message.shell is not None:
                return ToolRan("", {}, "")
            if message.role == "user":
                return UserSaid("")
            if message.role == "assistant" and message.content:
                return ToolRan("", {}, "") if calls_of(message) else Prose("")
        return Prose("") if self.has_older else None

    def _know_results(self) -> None:
        tools = (message for message in self.messages if message.role == "tool")
        self._results = {call: message for message in tools for call in _answered(message)}


def calls_of(message: Message) -> dict[str, ToolCall]:
    """The calls of a reply by their ids, in their order."""
    if message.role != "assistant":
        return {}
    return {part.id: part for part in message.content if isinstance(part, ToolCall)}


def weight(message: Message) -> int:
    """The characters of its texts."""
    return sum(
        len(part.text) for block in message.content for part in (block.content if isinstance(block, ToolResult) else [block])
        if isinstance(part, Text)
    )  # fmt: skip


def _answered(message: Message) -> set[str]:
    return {part.call_id for part in message.content if isinstance(part, ToolResult)}


def _fitting(messages: Iterable[Message], least: int) -> int:
    """How many of them may be kept, from the first on; `least` are, if there are as many."""
    chars = count = 0
    for message in messages:
        chars += weight(message)
        if count >= least and (count >= MOST_MESSAGES or chars > MOST_CHARS):
            break
        count += 1
    return count
