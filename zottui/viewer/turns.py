"""Enumerates the prompts of a conversation. Counting them requires reading all of its messages."""

from bisect import bisect_left, bisect_right
from collections.abc import AsyncIterator
from dataclasses import dataclass

from zotd.wire import api
from zotd.wire.content import Message
from zottui.transcript import is_prompt, text_of
from zottui.ui_context import CommandSender

MOST = 500
"""Messages in a page, the daemon's maximum. A session with 50,000 messages takes 100 requests."""


@dataclass(frozen=True, slots=True)
class PromptEntry:
    """A prompt of the conversation."""

    text: str
    seq: int
    before: int | None
    """`seq` of the message before it; None for the first message."""


async def turns(ui: CommandSender, session: str, at: int | None = None) -> AsyncIterator[PromptEntry]:
    """Yield the prompts on the current branch, or on the branch of the message `at`, newest first.

    Holds one page in memory at a time.
    """
    before: int | None = None
    prompt: Message | None = None
    has_more = True
    while has_more:
        page = await ui.ask(api.History(session=session, before=before, limit=MOST, at=at), api.HistoryPage)
        for message in reversed(page.messages):
            # A prompt is yielded only with the message before it, whose `seq` a rewind to before the prompt needs.
            before = message.seq
            if prompt is not None:
                yield _turn(prompt, before)
            prompt = message if is_prompt(message) else None
        has_more = page.has_more and bool(page.messages)
    if prompt is not None:
        yield _turn(prompt, None)


async def prompts(ui: CommandSender, session: str) -> list[PromptEntry]:
    """Return the prompts on the current branch of the conversation, oldest first."""
    return [turn async for turn in turns(ui, session)][::-1]


def _turn(prompt: Message, before: int | None) -> PromptEntry:
    return PromptEntry(text_of(prompt.content), prompt.seq or 0, before)


class Numbers:
    """Numbers prompts from 1, once all are counted."""

    def __init__(self) -> None:
        self.is_complete = False
        # Ascending; before the count is complete, only the newest ones.
        self._seqs: list[int] = []

    def __len__(self) -> int:
        return len(self._seqs)

    def complete(self, seqs: list[int]) -> None:
        """Set the counted prompts, given newest first; keeps those that were added during the count."""
        newer = [seq for seq in self._seqs if not seqs or seq > seqs[0]]
        self._seqs = [*reversed(seqs), *newer]
        self.is_complete = True

    def add(self, seq: int) -> None:
        """Add a prompt that is newer than all known ones."""
        if not self._seqs or seq > self._seqs[-1]:
            self._seqs.append(seq)

    def of(self, seq: int) -> int:
        """Return the number of the prompt that a message belongs to; 0 before the first one."""
        return bisect_right(self._seqs, seq)

    def seq(self, number: int) -> int | None:
        """Return the `seq` of the prompt with a number; None if there is none."""
        return self._seqs[number - 1] if 1 <= number <= len(self._seqs) else None

    def beyond(self, seq: int, *, down: bool) -> int | None:
        """Return the `seq` of the next prompt after `seq`, or before it; None if there is none."""
        at = bisect_right(self._seqs, seq) if down else bisect_left(self._seqs, seq) - 1
        return self._seqs[at] if 0 <= at < len(self._seqs) else None
