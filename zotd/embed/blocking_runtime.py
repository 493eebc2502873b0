"""`Runtime` for programs without asyncio: the same methods, with plain iterators. Runs an event loop in a thread."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from types import TracebackType
from typing import Self, TypeVar

from zotd.embed.session_runtime import Runtime
from zotd.wire import events
from zotd.wire.api import ModelInfo, PromptImage
from zotd.wire.content import Message, Tokens

T = TypeVar("T")

SIGNALS_S = 0.5
"""Longest wait without a look at signals, in seconds: Ctrl-C right before a wait begins does not end it."""

CLOSE_S = 10.0
"""Time limit for `close` to abort and clean up a run, in seconds."""


class BlockingRuntime:
    """One agent session, as a context manager. One thread may iterate over a prompt while another one aborts it."""

    def __init__(self, options: Mapping[str, object] | None = None, *, env: Mapping[str, str] | None = None) -> None:
        """Open a session; see `Runtime.open` for the options and errors."""
        self._loop = asyncio.new_event_loop()
        self._closing = asyncio.Event()
        opened: Future[Runtime] = Future()
        # A task group has to be left by the task that entered it, so one coroutine owns the runtime for its life.
        work = self._own(opened, options, env)
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=[work], name="zot", daemon=True)
        self._thread.start()
        try:
            self._runtime = _result(opened)
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
        """Iterate over the events of a prompt; see `Runtime.prompt`."""
        return self._iterate(self._runtime.prompt(text, images))

    def compact(self, instructions: str = "") -> Generator[events.Event, None, None]:
        """Iterate over the events of a compaction; see `Runtime.compact`."""
        return self._iterate(self._runtime.compact(instructions))

    def abort(self) -> None:
        """Abort the current run; may be called from any thread. See `Runtime.abort`."""
        self._loop.call_soon_threadsafe(self._runtime.abort)

    def set_model(self, model: str) -> None:
        """Use another model from the next prompt on; see `Runtime.set_model`."""
        self._call(self._runtime.set_model(model))

    @property
    def state(self) -> str:
        """`idle` or `running`; see `Runtime.state`."""
        return self._look(lambda runtime: runtime.state)

    @property
    def messages(self) -> list[Message]:
        """The transcript as the model sees it, with image data."""
        return self._look(lambda runtime: runtime.messages)

    @property
    def usage(self) -> Tokens:
        """Tokens and cost so far."""
        return self._look(lambda runtime: runtime.usage)

    @property
    def models(self) -> list[ModelInfo]:
        """The models of the provider."""
        return self._look(lambda runtime: runtime.models)

    def close(self) -> None:
        """Abort the current run and release all resources. May be called twice."""
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
        return _result(asyncio.run_coroutine_threadsafe(work, self._loop))

    def _look(self, read: Callable[[Runtime], T]) -> T:
        async def look() -> T:
            return read(self._runtime)

        return self._call(look())

    def _iterate(self, source: AsyncGenerator[events.Event, None]) -> Generator[events.Event, None, None]:
        coming = self._next(source)
        try:
            while (event := _result(coming)) is not None:
                yield event
                coming = self._next(source)
        finally:
            if not coming.done():  # Ctrl-C during the wait: a generator that is suspended in `anext` cannot be closed
                self.abort()
                wait([coming])
            self._call(source.aclose())

    def _next(self, source: AsyncGenerator[events.Event, None]) -> Future[events.Event | None]:
        return asyncio.run_coroutine_threadsafe(_next(source), self._loop)


def _result(future: Future[T]) -> T:
    """Wait for the result, in the main thread such that Ctrl-C raises KeyboardInterrupt."""
    while True:
        with suppress(TimeoutError):
            return future.result(SIGNALS_S)
        if future.done():  # the error is its own, or it has come meanwhile
            return future.result()


async def _next(source: AsyncGenerator[events.Event, None]) -> events.Event | None:
    return await anext(source, None)
