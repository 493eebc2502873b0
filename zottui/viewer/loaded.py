"""The loaded part of a conversation: consecutive messages, limited in number and size."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from zotd.wire.content import Message, Text, ToolCall, ToolResult
from zottui.blocks import Block, Prose, ToolRan, UserSaid

MOST_MESSAGES = 600
"""Most messages in memory: three pages, so that changing the direction needs no request."""

MOST_CHARS = 4_000_000
"""Most characters in memory, 4 to 16 MB: outputs of tools may be long."""

NEAR = 60
"""Messages around the cursor that are kept whatever their size: more than a screen shows, results included."""


def seq_of(message: Message) -> int:
    """Return the `seq` of a message from a history page, which always has one."""
    assert message.seq is not None
    return message.seq


class Loaded:
    """Consecutive messages, oldest first."""

    def __init__(self, messages: Sequence[Message] = (), *, has_older: bool = False, has_newer: bool = False) -> None:
        """`has_older` and `has_newer`: there may be more messages on that side."""
        self.messages = list(messages)
        self.has_older = has_older
        self.has_newer = has_newer
        self._know_results()

    def __len__(self) -> int:
        return len(self.messages)

    @property
    def first(self) -> int:
        """`seq` of the oldest message; 0 if there is none."""
        return seq_of(self.messages[0]) if self.messages else 0

    @property
    def last(self) -> int:
        """`seq` of the newest message; 0 if there is none."""
        return seq_of(self.messages[-1]) if self.messages else 0

    def seq(self, index: int) -> int:
        """Return the `seq` of the message at `index`; 0 if there is none."""
        return seq_of(self.messages[index]) if index < len(self.messages) else 0

    def has(self, seq: int) -> bool:
        """Return whether the message is loaded."""
        return bool(self.messages) and self.seq(self.index(seq)) == seq

    def index(self, seq: int) -> int:
        """Return the index of the message `seq`, or else of the one before it, or else 0."""
        return max(bisect_right(self.messages, seq, key=seq_of) - 1, 0)

    def add_older(self, messages: Sequence[Message], before: int, *, has_older: bool, near: int) -> None:
        """Prepend a page that ends below `before`; no-op if `before` is no longer the first message.

        That happens when another load was faster, and would leave a gap. Messages beyond the limits are dropped from the
        other end, but not those around the message `near`.
        """
        if before != self.first:
            return
        self.messages[:0] = messages
        self.has_older = has_older
        kept = _fitting(self.messages, self.index(near) + NEAR)
        self.has_newer = self.has_newer or kept < len(self.messages)  # dropped messages can be loaded again
        del self.messages[kept:]
        self._know_results()

    def add_newer(self, messages: Sequence[Message], after: int, *, has_newer: bool, near: int) -> None:
        """Append a page that follows `after`; as `add_older` otherwise."""
        if after != self.last:
            return
        self.messages += messages
        self.has_newer = has_newer
        kept = _fitting(reversed(self.messages), len(self.messages) - self.index(near) + NEAR)  # counted from the end
        self.has_older = self.has_older or kept < len(self.messages)
        del self.messages[: len(self.messages) - kept]
        self._know_results()

    # --- calls and results --------------------------------------------------------------------------------------------

    def with_results(self, index: int) -> list[Message]:
        """Return a message and the loaded results of its calls."""
        message = self.messages[index]
        return [message, *(self._results[call] for call in calls_of(message) if call in self._results)]

    def is_answered(self, call: str) -> bool:
        """Return whether the result of a call is loaded."""
        return call in self._results

    def caller(self, index: int) -> int:
        """Return the index of the message that shows this one: for a result the one with its call, -1 if not loaded."""
        message = self.messages[index]
        if message.role != "tool":
            return index
        wanted = _answered(message)
        return next((at for at in range(index, -1, -1) if wanted & calls_of(self.messages[at]).keys()), -1)

    def above(self, index: int) -> Block | None:
        """Return a stand-in for the block above a message, which decides about the blank line; None if there is none."""
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
    """Return the calls of a reply by id, in order."""
    if message.role != "assistant":
        return {}
    return {part.id: part for part in message.content if isinstance(part, ToolCall)}


def weight(message: Message) -> int:
    """Return the number of characters in the message's texts."""
    return sum(
        len(part.text) for block in message.content for part in (block.content if isinstance(block, ToolResult) else [block])
        if isinstance(part, Text)
    )  # fmt: skip


def _answered(message: Message) -> set[str]:
    return {part.call_id for part in message.content if isinstance(part, ToolResult)}


def _fitting(messages: Iterable[Message], least: int) -> int:
    """Return how many messages from the first on fit into the limits, but at least `least`."""
    chars = count = 0
    for message in messages:
        chars += weight(message)
        if count >= least and (count >= MOST_MESSAGES or chars > MOST_CHARS):
            break
        count += 1
    return count
