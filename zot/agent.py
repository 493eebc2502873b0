"""`Agent`: a conversation with a model that has tools."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager
from functools import partial
from types import TracebackType
from typing import Self, TypeVar, Unpack, overload

from zot.attach_options import AttachOptions, checked_attach
from zot.attempts import OneAttempt, PromptAttempts, TypedAttempts
from zot.conversation import Conversation, ConversationSource
from zot.errors import AgentError, RunError, RunStoppedError
from zot.handlers import EventHandlers, Handler, Heard, check_kind
from zot.options import AgentOptions, checked
from zot.output_types import OutputType
from zot.permissions import GuardFunction, check_function
from zot.prompts import check_prompt, encoded
from zot.results import CollectedRun, RunResult
from zot.run_stream import RunStream
from zot.sources import AttachedSource, EmbeddedSource
from zot.turns import AgentPlace, AgentTurn, AgentTurns
from zotd.sdk.values import Image
from zotd.wire import events
from zotd.wire.content import Message

E = TypeVar("E", bound=Heard)
Guarding = TypeVar("Guarding", bound=GuardFunction)
T = TypeVar("T")
Output = TypeVar("Output")

TRIES = 3
"""Most replies that are asked for until one matches an output type."""


class Agent:
    """A model with tools in a directory, and the conversation with it.

        agent = Agent(model="claude-opus-4-8", tools=[lookup])
        result = await agent.run("Who has not paid?")

    Its prompts are answered one after another; for several at once, use several agents. In an `async with` block its session
    is kept from the beginning to the end, so that a prompt starts at once. Without one, each run opens a session that
    continues the conversation, and nothing is left running after it.
    """

    def __init__(self, source: ConversationSource | None = None, /, **options: Unpack[AgentOptions]) -> None:
        """Check the options; nothing is started. `AgentOptions` says what each one means. `source` is for `attach`.

        Raises:
            OptionError: an option is unknown or wrong.
            TypeError: a function in `tools` cannot be a tool.
        """
        self._source: ConversationSource = source or EmbeddedSource(checked(options))
        self._messages: Sequence[Message] = self._source.messages
        self._handlers = EventHandlers()
        self._turns = AgentTurns()
        self._kept: tuple[Conversation, AgentPlace] | None = None
        """The session of an `async with` block, and where it was opened."""
        self._running: tuple[Conversation, asyncio.AbstractEventLoop] | None = None

    @classmethod
    def attach(cls, session: str, **options: Unpack[AttachOptions]) -> Self:
        """Return an agent whose conversation is a session of a daemon, by its id or its name; nothing is sent.

        Its runs are seen by all clients of the session, which stays in the daemon when the program ends. The session has
        its own model, tools and mode. `AttachOptions` says what each option means.

        Raises:
            OptionError: an option is unknown or wrong.
        """
        return cls(AttachedSource(checked_attach(session, options)))

    async def __aenter__(self) -> Self:
        if self._kept is not None:
            raise AgentError("this agent is open already; leave its `async with` block first")
        conversation = await self._source.open(self._messages)
        self._kept = conversation, AgentPlace.here()
        self._messages = await conversation.messages()
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

    @overload
    async def run(
        self, prompt: str, *, images: Sequence[Image] = (), output_type: None = None, tries: int = TRIES
    ) -> RunResult[str]: ...

    @overload
    async def run(
        self, prompt: str, *, images: Sequence[Image] = (), output_type: type[T], tries: int = TRIES
    ) -> RunResult[T]: ...

    async def run(
        self, prompt: str, *, images: Sequence[Image] = (), output_type: type[T] | None = None, tries: int = TRIES
    ) -> RunResult[str] | RunResult[T]:
        """Send a prompt, wait for the end of its run, and return the result. Cancelled, it aborts the run.

        Args:
            prompt: what the model is to do.
            images: sent along.
            output_type: what `output` of the result will be, instead of text: a dataclass, a TypedDict, a NamedTuple, a
                msgspec Struct, a model of pydantic, or what is made of these, such as `list[Invoice]`.
            tries: most replies that are asked for until one matches `output_type`.

        Raises:
            RunError: the run ended without an answer; `OutputError` if none of its replies matched.
            AgentBusyError: the agent is answering another prompt.
            AgentError: the agent cannot be opened.
            OptionError: `output_type` cannot be expressed as JSON, or another argument is wrong.
        """
        if output_type is None:
            return await _finished(self.stream(prompt, images=images))
        return await _finished(self.stream(prompt, images=images, output_type=output_type, tries=tries))

    @overload
    def stream(
        self, prompt: str, *, images: Sequence[Image] = (), output_type: None = None, tries: int = TRIES
    ) -> RunStream[str]: ...

    @overload
    def stream(
        self, prompt: str, *, images: Sequence[Image] = (), output_type: type[T], tries: int = TRIES
    ) -> RunStream[T]: ...

    def stream(
        self, prompt: str, *, images: Sequence[Image] = (), output_type: type[T] | None = None, tries: int = TRIES
    ) -> RunStream[str] | RunStream[T]:
        """Send a prompt and iterate over the events of its run (`zot.events`); then the stream has its `result`.

        Arguments and errors are those of `run`; most errors are raised in the loop. With an `output_type`, each reply that is
        asked for ends with an event `Done`.
        """
        check_prompt(prompt, images, tries)
        if output_type is None or output_type is str:
            return self._stream(OneAttempt(prompt), images)
        return self._stream(TypedAttempts(prompt, OutputType(output_type), tries), images)

    @overload
    def run_sync(
        self, prompt: str, *, images: Sequence[Image] = (), output_type: None = None, tries: int = TRIES
    ) -> RunResult[str]: ...

    @overload
    def run_sync(
        self, prompt: str, *, images: Sequence[Image] = (), output_type: type[T], tries: int = TRIES
    ) -> RunResult[T]: ...

    def run_sync(
        self, prompt: str, *, images: Sequence[Image] = (), output_type: type[T] | None = None, tries: int = TRIES
    ) -> RunResult[str] | RunResult[T]:
        """`run` for programs without asyncio."""
        with _runner() as runner:
            if output_type is None:
                return runner.run(self.run(prompt, images=images))
            return runner.run(self.run(prompt, images=images, output_type=output_type, tries=tries))

    def stream_sync(self, prompt: str, *, images: Sequence[Image] = ()) -> Iterator[events.Event]:
        """`stream` for programs without asyncio, and for text. The run goes on only while the next event is waited for."""
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

    # --- hooks --------------------------------------------------------------------------------------------------------

    def on(self, kind: type[E]) -> Callable[[Handler[E]], Handler[E]]:
        """Tell the decorated function of finished calls, or of events of a kind (`zot.events`), before the stream has them.

            @agent.on(FinishedCall)
            def log(call: FinishedCall) -> None: ...

        It runs on the agent's event loop, and the run's next event waits for it. What it raises is logged.

        Raises:
            OptionError: `kind` is none of these, or what is decorated is no function.
        """
        check_kind(kind)

        def add(handler: Handler[E]) -> Handler[E]:
            check_function("what is told of events", handler)
            self._handlers.add(kind, handler)
            return handler

        return add

    def guard(self, function: Guarding) -> Guarding:
        """Ask the decorated function about every tool call, in every mode, before rules and `can_use_tool`.

            @agent.guard
            async def check(name: str, args: dict[str, object], context: CallContext) -> Allow | Deny | None: ...

        None has nothing against the call; `Allow(args)` changes its arguments. A coroutine function runs on the agent's
        event loop, another one in a thread. An exception denies the call.

        Raises:
            AgentError: the agent is attached to a session of a daemon.
        """
        if self._source.guards is None:
            raise AgentError(
                "guards see the calls of this process; a session of the daemon has those of its extensions"
            )
        check_function("a guard", function)
        self._source.guards.add(function)
        return function

    def fork(self, **changes: Unpack[AgentOptions]) -> Self:
        """Return an agent that goes on from the end of this one's last run, with the same options, guards and handlers.

        Neither agent sees what the other one is asked from then on. `changes` replace options. The fork of an attached agent
        is another session of the daemon, which is made when the fork is first used.

        Raises:
            OptionError: a change is wrong, or the agent is attached: the options of a session are its own.
        """
        fork = type(self)(self._source.fork(self._messages, changes))
        for kind, handler in self._handlers:
            fork.on(kind)(handler)
        return fork

    # --- state --------------------------------------------------------------------------------------------------------

    @property
    def messages(self) -> Sequence[Message]:
        """The conversation up to the end of the last run, oldest first."""
        return self._messages

    # --- inside -------------------------------------------------------------------------------------------------------

    def _stream(self, attempts: PromptAttempts[Output], images: Sequence[Image]) -> RunStream[Output]:
        turn = AgentTurn()
        stream = RunStream(partial(self._streamed, attempts, images, turn))
        turn.watch(stream)
        return stream

    async def _streamed(
        self,
        attempts: PromptAttempts[Output],
        images: Sequence[Image],
        turn: AgentTurn,
        ended: Callable[[RunResult[Output]], None],
    ) -> AsyncGenerator[events.Event, None]:
        async with (
            self._opened(turn) as conversation,
            aclosing(self._attempted(conversation, attempts, images, ended)) as source,
        ):
            async for event in source:
                yield event

    async def _attempted(
        self,
        conversation: Conversation,
        attempts: PromptAttempts[Output],
        images: Sequence[Image],
        ended: Callable[[RunResult[Output]], None],
    ) -> AsyncGenerator[events.Event, None]:
        result: RunResult[Output] | None = None
        while result is None:
            collected = CollectedRun()
            async with aclosing(self._events(conversation, attempts.prompt, images, collected)) as source:
                async for event in source:
                    yield event
            images, result = (), attempts.take(self._result(collected, attempts))
        ended(result)

    def _result(self, collected: CollectedRun, attempts: PromptAttempts[Output]) -> RunResult[str]:
        """Return the result of one attempt; raises RunError if it failed."""
        result = collected.result(self._messages)
        if collected.failure is not None:
            kind = RunStoppedError if collected.is_aborted else RunError
            raise kind(collected.failure, attempts.in_all(result))
        return result

    async def _events(
        self, conversation: Conversation, prompt: str, images: Sequence[Image], collected: CollectedRun
    ) -> AsyncGenerator[events.Event, None]:
        try:
            async with aclosing(conversation.prompt(prompt, encoded(images))) as source:
                async for event in source:
                    await self._handlers.tell(event, collected.see(event))
                    yield event
        finally:
            self._messages = await conversation.messages()

    @asynccontextmanager
    async def _opened(self, turn: AgentTurn) -> AsyncIterator[Conversation]:
        """Take the turn in the session of the `async with` block, or in one for this turn."""
        async with self._turns.take(turn):
            if self._kept is not None:
                conversation, place = self._kept
                place.check()
            else:
                conversation = await self._source.open(self._messages)
            self._running = conversation, asyncio.get_running_loop()
            try:
                yield conversation
            finally:
                self._running = None
                if self._kept is None:
                    await conversation.close()


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


async def _finished(stream: RunStream[Output]) -> RunResult[Output]:
    async with stream:
        async for _ in stream:
            pass
    return stream.result


async def _next(stream: RunStream[str]) -> events.Event | None:
    return await anext(stream, None)
