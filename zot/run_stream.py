"""The events of one run, for `async for`."""

from collections.abc import AsyncGenerator, Callable
from types import TracebackType
from typing import Generic, Self, TypeVar

from zot.errors import AgentError
from zot.results import RunResult
from zotd.wire import events

Output = TypeVar("Output")


class RunStream(Generic[Output]):
    """Yields the events of a run (`zot.events`) up to `Done`, then raises if the run failed.

    Leaving the loop early aborts the run: at once in an `async with` block, otherwise as soon as Python drops the stream.
    """

    def __init__(
        self, source: Callable[[Callable[[RunResult[Output]], None]], AsyncGenerator[events.Event, None]]
    ) -> None:
        """`source` is called with what takes the result; the stream closes what it returns."""
        results: list[RunResult[Output]] = []
        self._results = results
        # Not a method of this object: the stream has to end when Python drops the last reference of the program.
        self._source = source(results.append)

    @property
    def result(self) -> RunResult[Output]:
        """The result of the run, when the loop has ended.

        Raises:
            AgentError: the run has not ended, or has failed.
        """
        if not self._results:
            raise AgentError("there is no result: the stream was not read to its end, or the run has failed")
        return self._results[0]

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
