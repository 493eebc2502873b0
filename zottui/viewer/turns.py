"""The prompts of a conversation, of which nobody knows the number before all of it was looked at."""

from bisect import bisect_left, bisect_right
from collections.abc import AsyncIterator
from dataclasses import dataclass

from zotd.wire import api
from zotd.wire.content import Message
from zottui.transcript import is_prompt, text_of
from zottui.ui_context import UiContext

MOST = 500
"""Messages in a page: as many as the daemon gives. With 50,000 messages that are 100 questions."""


@dataclass(frozen=True, slots=True)
class PromptEntry:
    """A prompt of the conversation."""

    text: str
    seq: int
    before: int | None
    """The `seq` of the message before it; None: it is the first one."""


async def turns(desk: UiContext, session: str, at: int | None = None) -> AsyncIterator[PromptEntry]:
    """The prompts as the conversation goes on, or went on to the message `at`; newest first.

    One page of messages is in memory at a time, however many there are.
    """
    before: int | None = None
    prompt: Message | None = None
    has_more = True
    while has_more:
        page = await desk.ask(api.History(session=session, before=before, limit=MOST, at=at), api.HistoryPage)
        for message in reversed(page.messages):
            before = message.seq
            if prompt is not None:
                yield _turn(prompt, before)
            prompt = message if is_prompt(message) else None
        has_more = page.has_more and bool(page.messages)
    if prompt is not None:
        yield _turn(prompt, None)


def _turn(prompt: Message, before: int | None) -> PromptEntry:
    return PromptEntry(text_of(prompt.content), prompt.seq or 0, before)


class Numbers:
    """Which number a prompt has, from 1, as soon as all are counted."""

    def __init__(self) -> None:
        """None is known yet."""
        self.is_complete = False
        self._seqs: list[int] = []
        """Ascending; while they are counted, the newest of them."""

    def __len__(self) -> int:
        return len(self._seqs)

    def complete(self, seqs: list[int]) -> None:
        """All prompts up to some moment, newest first; those that were added in between are kept."""
        newer = [seq for seq in self._seqs if not seqs or seq > seqs[0]]
        self._seqs = [*reversed(seqs), *newer]
        self.is_complete = True

    def add(self, seq: int) -> None:
        """A prompt that was sent meanwhile."""
        if not self._seqs or seq > self._seqs[-1]:
            self._seqs.append(seq)

    def of(self, seq: int) -> int:
        """The number of the prompt that a message belongs to; 0: it stands before the first."""
        return bisect_right(self._seqs, seq)

    def seq(self, number: int) -> int | None:
        """Where the prompt with that number stands; None: there is none."""
        return self._seqs[number - 1] if 1 <= number <= len(self._seqs) else None

    def beyond(self, seq: int, *, down: bool) -> int | None:
        """The next prompt behind `seq`, or before it; None: there is none."""
        at = bisect_right(self._seqs, seq) if down else bisect_left(self._seqs, seq) - 1
        return self._seqs[at] if 0 <= at < len(self._seqs) else None
