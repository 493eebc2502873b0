"""What an agent needs of a session, wherever that is."""

from collections.abc import AsyncGenerator, Sequence
from typing import Protocol

from zot.call_guards import CallGuards
from zot.options import AgentOptions
from zotd.wire import events
from zotd.wire.api import PromptImage
from zotd.wire.content import Message


class Conversation(Protocol):
    """An open session. Its methods raise `AgentError`."""

    async def messages(self) -> Sequence[Message]:
        """Return the conversation now, oldest first."""
        ...

    def prompt(self, text: str, images: Sequence[PromptImage]) -> AsyncGenerator[events.Event, None]:
        """Send a prompt and yield its events; the last one is `Done`. Closing the generator aborts the run."""
        ...

    async def abort(self) -> None:
        """Abort the run; its events still end with `Done`."""
        ...

    async def close(self) -> None:
        """Leave the session; end it if no other client uses it."""
        ...


class ConversationSource(Protocol):
    """Opens the sessions of an agent. Its methods raise `AgentError`."""

    messages: Sequence[Message]
    """The conversation before the first session, as far as it is known, oldest first."""
    guards: CallGuards | None
    """Asked about every tool call; None: the calls are not made in this process."""

    def fork(self, messages: Sequence[Message], changes: AgentOptions) -> "ConversationSource":
        """Return a source whose sessions go on after these messages, with the same options and guards.

        Raises:
            OptionError: an option cannot be changed in this way.
        """
        ...

    async def open(self, messages: Sequence[Message]) -> Conversation:
        """Open a session that continues after `messages`, for the caller to close."""
        ...
