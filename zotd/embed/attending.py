"""The questions about tool calls of one session, for the program that embeds it: it decides in place of a person."""

import asyncio
from collections.abc import Sequence
from typing import Self

from zotd.wire import events

ApprovalEvent = events.ApprovalRequested | events.ApprovalResolved


class ApprovalInbox:
    """Queues what is asked and what is over. Unbounded, because a session asks about few calls at once.

    Satisfies `ledger.Subscriber` and `approvals.ApprovalFollower`.
    """

    can_decide = True

    def __init__(self) -> None:
        self._events: asyncio.Queue[ApprovalEvent] = asyncio.Queue()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ApprovalEvent:
        return await self._events.get()

    def committed(self, shown: Sequence[events.Event], data: bytes, last_seq: int) -> None:
        """Queue those of these events that are about approvals."""
        del data, last_seq
        for event in shown:
            if isinstance(event, ApprovalEvent):
                self._events.put_nowait(event)

    def early(self, shown: events.Event, data: bytes, seq: int) -> bool:
        """Leave the event to `committed`: no approval comes early."""
        del shown, data, seq
        return False

    def live(self, shown: Sequence[events.Event], data: bytes) -> None:
        """Drop live events: none is about an approval."""
