"""The session of an agent in this process, while it is open."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, contextmanager
from typing import Self

from zot.approver import Approver
from zot.call_guards import CallGuards
from zot.errors import AgentError, OptionError
from zot.options import CheckedOptions
from zotd.config import ConfigError
from zotd.embed.runtime import Runtime
from zotd.wire import events
from zotd.wire.api import Approve, PromptImage
from zotd.wire.content import Message
from zotd.wire.errors import Code, CommandError


class EmbeddedConversation:
    """A session without a daemon; satisfies `conversation.Conversation`."""

    def __init__(self, runtime: Runtime, owner: asyncio.Task[None], closing: asyncio.Event) -> None:
        """Use `open`. `owner` has opened the runtime, and closes it when `closing` is set."""
        self._runtime = runtime
        self._owner = owner
        self._closing = closing

    @classmethod
    async def open(cls, options: CheckedOptions, messages: Sequence[Message], guards: CallGuards) -> Self:
        """Begin a session that continues after `messages`, and whose calls `guards` are asked about.

        Raises:
            OptionError: an option cannot be used, such as a model that does not exist.
            AgentError: there is no key, or zot's configuration is wrong.
        """
        loop = asyncio.get_running_loop()
        opened: asyncio.Future[Runtime] = loop.create_future()
        closing = asyncio.Event()
        # A task group has to be left by the task that entered it, and a stream may be closed by another one than began it.
        owner = loop.create_task(
            _own(_runtime(options, messages, guards), options.approver, opened, closing), name="zot agent"
        )
        try:
            with _told():
                return cls(await asyncio.shield(opened), owner, closing)
        except BaseException:
            owner.cancel()
            await asyncio.wait([owner])
            raise

    async def messages(self) -> Sequence[Message]:
        """Return the conversation now, oldest first."""
        return tuple(self._runtime.messages)

    async def prompt(self, text: str, images: Sequence[PromptImage]) -> AsyncGenerator[events.Event, None]:
        """Send a prompt and yield its events; the last one is `Done`. Closing the generator aborts the run."""
        with _told():
            async with aclosing(self._runtime.prompt(text, images)) as source:
                async for event in source:
                    yield event

    async def abort(self) -> None:
        """Abort the run; its events still end with `Done`."""
        self._runtime.abort()

    async def close(self) -> None:
        """End the session and everything that it has started."""
        self._closing.set()
        # Cancelled, the caller does not wait, but the session still ends in order.
        await asyncio.shield(self._owner)


def _runtime(
    options: CheckedOptions, messages: Sequence[Message], guards: CallGuards
) -> AbstractAsyncContextManager[Runtime]:
    return Runtime.open(options.session, env=options.env, tools=options.tools, messages=messages, guard=guards)


async def _own(
    opening: AbstractAsyncContextManager[Runtime],
    approver: Approver | None,
    opened: asyncio.Future[Runtime],
    closing: asyncio.Event,
) -> None:
    try:
        async with opening as runtime, _decided(runtime, approver):
            opened.set_result(runtime)
            await closing.wait()
    except Exception as error:
        if opened.done():
            raise
        opened.set_exception(error)


@asynccontextmanager
async def _decided(runtime: Runtime, approver: Approver | None) -> AsyncIterator[None]:
    """Have the approver decide about the calls of the session, for the block."""
    if approver is None:
        yield
        return

    async def decide(decision: Approve) -> None:
        with _told():
            await runtime.decide(decision, "the program")

    async with asyncio.TaskGroup() as tasks:
        with runtime.attended() as asked:
            serving = tasks.create_task(approver.serve(asked, decide), name="zot approver")
            yield
            serving.cancel()


@contextmanager
def _told() -> Iterator[None]:
    """Translate the errors of sessions."""
    try:
        yield
    except CommandError as error:
        is_option = error.code in {Code.BAD_REQUEST, Code.NOT_FOUND}
        raise (OptionError if is_option else AgentError)(error.sentence) from error
    except ConfigError as error:
        raise AgentError(str(error)) from error
