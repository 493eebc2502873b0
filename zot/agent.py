"""`Agent`: a conversation with a model that has tools."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager
from types import TracebackType
from typing import Self, Unpack

from zot.conversation import Conversation
from zot.errors import AgentError, RunError, RunStoppedError
from zot.options import AgentOptions, checked
from zot.results import CollectedRun, RunResult
from zot.run_stream import RunStream
from zot.turns import AgentPlace, AgentTurn, AgentTurns
from zotd.sdk.values import Image
from zotd.wire import events
from zotd.wire.api import PromptImage
from zotd.wire.content import Message


class Agent:
    """A model with tools in a directory, and the conversation with it.

        agent = Agent(model="claude-opus-4-8", tools=[lookup])
        result = await agent.run("Who has not paid?")

    Its prompts are answered one after another; for several at once, use several agents. In an `async with` block its session
    is kept from the beginning to the end, so that a prompt starts at once. Without one, each run opens a session that
    continues the conversation, and nothing is left running after it.
    """

    def __init__(self, **options: Unpack[AgentOptions]) -> None:
        """Check the options; nothing is started. `AgentOptions` says what each one means.

        Raises:
            OptionError: an option is unknown or wrong.
            TypeError: a function in `tools` cannot be a tool.
        """
        self._options = checked(options)
        self._messages: Sequence[Message] = self._options.resume
        self._turns = AgentTurns()
        self._kept: tuple[Conversation, AgentPlace] | None = None
        """The session of an `async with` block, and where it was opened."""
        self._running: tuple[Conversation, asyncio.AbstractEventLoop] | None = None

    async def __aenter__(self) -> Self:
        if self._kept is not None:
            raise AgentError("this agent is open already; leave its `async with` block first")
        self._kept = await self._open(), AgentPlace.here()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        conversation, _ = self._kept or (None, None)
        self._kept = None
        if conversation is not None:
            self._messages = await conversation.messages()
            await conversation.close()

    # --- prompts ------------------------------------------------------------------------------------------------------

    async def run(self, prompt: str, *, images: Sequence[Image] = ()) -> RunResult[str]:
        """Send a prompt, wait for the end of its run, and return the result. Cancelled, it aborts the run.

        Raises:
            RunError: the run ended without an answer.
            AgentBusyError: the agent is answering another prompt.
            AgentError: the agent cannot be opened.
        """
        collected = CollectedRun()
        async with self._stream(prompt, images, collected) as stream:
            async for _ in stream:
                pass
        return collected.result(self._messages)

    def stream(self, prompt: str, *, images: Sequence[Image] = ()) -> RunStream:
        """Send a prompt and iterate over the events of its run (`zot.events`). Raises like `run`, in the loop."""
        return self._stream(prompt, images, CollectedRun())

    def run_sync(self, prompt: str, *, images: Sequence[Image] = ()) -> RunResult[str]:
        """`run` for programs without asyncio."""
        with _runner() as runner:
            return runner.run(self.run(prompt, images=images))

    def stream_sync(self, prompt: str, *, images: Sequence[Image] = ()) -> Iterator[events.Event]:
        """`stream` for programs without asyncio. The run goes on only while the next event is waited for."""
        with _runner() as runner:
            stream = self.stream(prompt, images=images)
            try:
                while (event := runner.run(_next(stream))) is not None:
                    yield event
            finally:
                runner.run(stream.aclose())

    def abort(self) -> None:
        """Abort the run, which then raises `RunStoppedError`. Does nothing if there is none. May be called from any thread."""
        if self._running is not None:
            conversation, loop = self._running
            loop.call_soon_threadsafe(lambda: loop.create_task(conversation.abort()))

    # --- state --------------------------------------------------------------------------------------------------------

    @property
    def messages(self) -> Sequence[Message]:
        """The conversation up to the end of the last run, oldest first."""
        return self._messages

    # --- inside -------------------------------------------------------------------------------------------------------

    def _stream(self, prompt: str, images: Sequence[Image], collected: CollectedRun) -> RunStream:
        encoded = [PromptImage(image.mime_type, b64encode(image.data).decode()) for image in images]
        turn = AgentTurn()
        stream = RunStream(self._events(prompt, encoded, turn, collected))
        turn.watch(stream)
        return stream

    async def _events(
        self, prompt: str, images: Sequence[PromptImage], turn: AgentTurn, collected: CollectedRun
    ) -> AsyncGenerator[events.Event, None]:
        async with (
            self._turns.take(turn),
            self._opened() as conversation,
            aclosing(conversation.prompt(prompt, images)) as source,
        ):
            async for event in source:
                collected.see(event)
                yield event
        if collected.failure is not None:
            kind = RunStoppedError if collected.is_aborted else RunError
            raise kind(collected.failure, collected.result(self._messages))

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[Conversation]:
        """The session of the `async with` block, or one for this run."""
        if self._kept is not None:
            conversation, place = self._kept
            place.check()
        else:
            conversation = await self._open()
        self._running = conversation, asyncio.get_running_loop()
        try:
            yield conversation
        finally:
            self._running = None
            self._messages = await conversation.messages()
            if self._kept is None:
                await conversation.close()

    async def _open(self) -> Conversation:
        # 0.3 s and all of zot, which a program that only makes an agent does not need.
        from zot.embedded import EmbeddedConversation  # noqa: PLC0415

        return await EmbeddedConversation.open(self._options, self._messages)


@contextmanager
def _runner() -> Iterator[asyncio.Runner]:
    """A loop for a program without asyncio."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        with asyncio.Runner() as runner:
            yield runner
        return
    raise AgentError(
        "this would block the running event loop; use `await agent.run(…)` or `async for` over `agent.stream(…)`"
    )


async def _next(stream: RunStream) -> events.Event | None:
    return await anext(stream, None)
