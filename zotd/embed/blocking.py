"""`Runtime` for programs without asyncio: the same methods, plain iterators. An event loop runs in a thread of its own."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Mapping, Sequence
from concurrent.futures import Future, wait
from types import TracebackType
from typing import Self, TypeVar

from zotd.embed.runtime import Runtime
from zotd.wire import events
from zotd.wire.api import ModelInfo, PromptImage
from zotd.wire.content import Message, Tokens

T = TypeVar("T")

CLOSE_S = 10.0
"""Longest wait for what runs to be aborted and cleaned up when it is closed."""


class BlockingRuntime:
    """One agent session; a context manager. One thread may iterate while another aborts."""

    def __init__(self, options: Mapping[str, object] | None = None, *, env: Mapping[str, str] | None = None) -> None:
        """As `Runtime.open`, which see for the options and the errors."""
        self._loop = asyncio.new_event_loop()
        self._closing = asyncio.Event()
        opened: Future[Runtime] = Future()
        # A task group has to be left by the task that entered it, so one coroutine owns the runtime for its life.
        work = self._own(opened, options, env)
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=[work], name="zot", daemon=True)
        self._thread.start()
        try:
            self._runtime = opened.result()
        except BaseException:
            self._thread.join(CLOSE_S)
            self._loop.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def prompt(self, text: str, images: Sequence[PromptImage] = ()) -> Generator[events.Event, None, None]:
        """As `Runtime.prompt`."""
        return self._iterate(self._runtime.prompt(text, images))

    def compact(self, instructions: str = "") -> Generator[events.Event, None, None]:
        """As `Runtime.compact`."""
        return self._iterate(self._runtime.compact(instructions))

    def abort(self) -> None:
        """As `Runtime.abort`; from any thread."""
        self._loop.call_soon_threadsafe(self._runtime.abort)

    def set_model(self, model: str) -> None:
        """As `Runtime.set_model`."""
        self._call(self._runtime.set_model(model))

    @property
    def state(self) -> str:
        """As `Runtime.state`."""
        return self._look(lambda runtime: runtime.state)

    @property
    def messages(self) -> list[Message]:
        """As `Runtime.messages`."""
        return self._look(lambda runtime: runtime.messages)

    @property
    def usage(self) -> Tokens:
        """As `Runtime.usage`."""
        return self._look(lambda runtime: runtime.usage)

    @property
    def models(self) -> list[ModelInfo]:
        """As `Runtime.models`."""
        return self._look(lambda runtime: runtime.models)

    def close(self) -> None:
        """Abort what runs and let go; may be called twice."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._closing.set)
            self._thread.join(CLOSE_S)
            self._loop.close()

    async def _own(
        self, opened: Future[Runtime], options: Mapping[str, object] | None, env: Mapping[str, str] | None
    ) -> None:
        try:
            async with Runtime.open(options, env=env) as runtime:
                opened.set_result(runtime)
                await self._closing.wait()
        except Exception as error:
            if opened.done():
                raise
            opened.set_exception(error)

    def _call(self, work: Coroutine[object, object, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _look(self, read: Callable[[Runtime], T]) -> T:
        async def look() -> T:
            return read(self._runtime)

        return self._call(look())

    def _iterate(self, source: AsyncGenerator[events.Event, None]) -> Generator[events.Event, None, None]:
        coming = self._next(source)
        try:
            while (event := coming.result()) is not None:
                yield event
                coming = self._next(source)
        finally:
            if not coming.done():  # Ctrl-C while it waited: the generator can only be closed when it has an event
                self.abort()
                wait([coming])
            self._call(source.aclose())

    def _next(self, source: AsyncGenerator[events.Event, None]) -> Future[events.Event | None]:
        return asyncio.run_coroutine_threadsafe(_next(source), self._loop)


async def _next(source: AsyncGenerator[events.Event, None]) -> events.Event | None:
    return await anext(source, None)
