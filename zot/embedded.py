"""The session of an agent in this process, while it is open."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager
from typing import Self

from zot.approver import deciding
from zot.call_guards import CallGuards
from zot.errors import AgentError, OptionError
from zot.held import HeldContext
from zot.options import CheckedOptions
from zotd.config import ConfigError
from zotd.embed.session_runtime import Runtime
from zotd.wire import events
from zotd.wire.api import Approve, PromptImage
from zotd.wire.content import Message
from zotd.wire.errors import Code, CommandError


class EmbeddedConversation:
    """A session without a daemon; satisfies `conversation.Conversation`."""

    def __init__(self, runtime: HeldContext[Runtime]) -> None:
        """Use `open`."""
        self._held = runtime
        self._runtime = runtime.value

    @classmethod
    async def open(cls, options: CheckedOptions, messages: Sequence[Message], guards: CallGuards) -> Self:
        """Begin a session that continues after `messages`, and whose calls `guards` are asked about.

        Raises:
            OptionError: an option cannot be used, such as a model that does not exist.
            AgentError: there is no key, or zot's configuration is wrong.
        """
        with _told():
            return cls(await HeldContext.enter(_session(options, messages, guards)))

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
        await self._held.leave()


@asynccontextmanager
async def _session(options: CheckedOptions, messages: Sequence[Message], guards: CallGuards) -> AsyncIterator[Runtime]:
    opening = Runtime.open(options.session, env=options.env, tools=options.tools, messages=messages, guard=guards)
    async with opening as runtime:
        if options.approver is None:
            yield runtime
            return

        async def decide(decision: Approve) -> None:
            with _told():
                await runtime.decide(decision, "the program")

        with runtime.attended() as asked:
            async with deciding(options.approver, asked, decide):
                yield runtime


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
