"""The events of one run, for `async for`."""

from collections.abc import AsyncGenerator
from types import TracebackType
from typing import Self

from zotd.wire import events


class RunStream:
    """Yields the events of a run (`zot.events`) up to `Done`, then raises if the run failed.

    Leaving the loop early aborts the run: at once in an `async with` block, otherwise as soon as Python drops the stream.
    """

    def __init__(self, source: AsyncGenerator[events.Event, None]) -> None:
        """`source` is closed with the stream."""
        self._source = source

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> events.Event:
        return await anext(self._source)

    async def aclose(self) -> None:
        """End the run, if it has not ended, and wait until nothing of it runs."""
        await self._source.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
