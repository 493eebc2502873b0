"""Where an agent has its session: in this process or in a daemon. What opens one is imported then."""

from collections.abc import Sequence

from zot.attach_options import CheckedAttachOptions
from zot.call_guards import CallGuards
from zot.conversation import Conversation
from zot.options import AgentOptions, CheckedOptions
from zotd.wire.content import Message


class EmbeddedSource:
    """Begins sessions in this process; satisfies `conversation.ConversationSource`."""

    def __init__(self, options: CheckedOptions) -> None:
        self.given: AgentOptions | None = options.given
        self.guards: CallGuards | None = CallGuards(options.decide_within_s)
        self._options = options

    async def open(self, messages: Sequence[Message]) -> Conversation:
        """Begin a session that continues after `messages`."""
        # 0.3 s and all of zot, which a program that only makes an agent does not need.
        from zot.embedded import EmbeddedConversation  # noqa: PLC0415

        assert self.guards is not None
        return await EmbeddedConversation.open(self._options, messages, self.guards)


class AttachedSource:
    """Attaches to one session of a daemon; satisfies `conversation.ConversationSource`."""

    given: AgentOptions | None = None
    guards: CallGuards | None = None

    def __init__(self, options: CheckedAttachOptions) -> None:
        self._options = options

    async def open(self, messages: Sequence[Message]) -> Conversation:
        """Attach to the session, which has its own messages."""
        del messages
        from zot.attached import AttachedConversation  # noqa: PLC0415  (the client, which other agents do not need)

        return await AttachedConversation.open(self._options)
