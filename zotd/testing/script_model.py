"""A `core.ports.Model` in memory, for tests of what is above it: it says what a script tells it, without a network."""

import asyncio
from collections.abc import AsyncGenerator, Sequence

from zotd.core.budget import FREE, Rates
from zotd.core.ports import ModelRequest
from zotd.core.reply import Part, RequestAccepted, Stopped, TextChunk
from zotd.core.retry import ModelError
from zotd.wire.content import Tokens

Step = Sequence[Part] | ModelError | asyncio.Event
"""Parts that arrive together, a failure, or something to wait for."""


def says(text: str) -> list[Step]:
    """A reply of one text."""
    return [[RequestAccepted()], [TextChunk(text), Stopped("end_turn")]]


class ScriptModel:
    """Plays one list of steps for each request."""

    def __init__(self, *replies: Sequence[Step], context_window: int = 0, rates: Rates | None = FREE) -> None:
        """`context_window`: in tokens, as `Model.context_window`; `rates` as there."""
        self.context_window = context_window
        self.rates = rates
        self.requests: list[ModelRequest] = []
        self._replies = iter(replies)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[Part], None]:
        """As `Model.stream`."""
        self.requests.append(request)
        for step in next(self._replies):
            if isinstance(step, ModelError):
                raise step
            if isinstance(step, asyncio.Event):
                await step.wait()
            else:
                yield step

    def price(self, tokens: Tokens) -> Tokens:
        """As the script says: free, unless its figures have a price."""
        return tokens
