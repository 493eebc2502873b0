"""Where an agent has its session: in this process or in a daemon. What opens one is imported then."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Self

from zot.attach_options import CheckedAttachOptions
from zot.call_guards import CallGuards
from zot.conversation import Conversation
from zot.errors import OptionError
from zot.options import AgentOptions, CheckedOptions, checked
from zotd.wire.content import Message


class EmbeddedSource:
    """Begins sessions in this process; satisfies `conversation.ConversationSource`."""

    def __init__(self, options: CheckedOptions) -> None:
        self.messages = options.resume
        self.guards: CallGuards | None = CallGuards(options.decide_within_s)
        self._options = options

    def fork(self, messages: Sequence[Message], changes: AgentOptions) -> Self:
        """Return a source with changed options, and the same guards."""
        given = self._options.given.copy()
        given["resume"] = messages
        given.update(changes)
        fork = type(self)(checked(given))
        assert self.guards is not None
        assert fork.guards is not None
        for guard in self.guards.functions:
            fork.guards.add(guard)
        return fork

    async def open(self, messages: Sequence[Message]) -> Conversation:
        """Begin a session that continues after `messages`."""
        # 0.3 s and all of zot, which a program that only makes an agent does not need.
        from zot.embedded import EmbeddedConversation  # noqa: PLC0415

        assert self.guards is not None
        self._check_agent(messages)
        return await EmbeddedConversation.open(self._options, messages, self.guards)

    def _check_agent(self, messages: Sequence[Message]) -> None:
        """Raise OptionError for what another agent would not know of."""
        agent = self._options.given.get("agent")
        if not agent:
            return
        if messages:
            raise OptionError(
                f"agent: {agent} keeps its conversation itself and cannot go on with one that has ended; send all prompts in"
                " one `async with` block, without resume and fork"
            )
        if self.guards is not None and self.guards.functions:
            raise OptionError(f"agent: {agent} makes its calls itself, and guards do not see them; use can_use_tool")


class AttachedSource:
    """Attaches to one session of a daemon; satisfies `conversation.ConversationSource`."""

    guards: CallGuards | None = None

    def __init__(
        self, options: CheckedAttachOptions, messages: Sequence[Message] = (), *, is_fork: bool = False
    ) -> None:
        """`messages`: what is known of the conversation. `is_fork`: the first `open` forks the session of the options."""
        self.messages = messages
        self._options = options
        self._is_fork = is_fork
        self._last: int | None = None
        """`seq` of the last reply that the agent has got; None: there was none."""

    def fork(self, messages: Sequence[Message], changes: AgentOptions) -> Self:
        """Return the source of a session that is yet to be made."""
        for name in changes:
            raise OptionError(f"{name}: a fork of a session has the options of that session")
        if self._is_fork:
            raise OptionError("this fork was not used yet; fork the agent that it comes from once more")
        return type(self)(replace(self._options, fork_at=self._last), messages, is_fork=True)

    async def open(self, messages: Sequence[Message]) -> Conversation:
        """Attach to the session, which has its own messages."""
        del messages
        from zot.attached import AttachedConversation, forked  # noqa: PLC0415  (the client, which others do not need)

        if self._is_fork:
            self._options = replace(self._options, session=await forked(self._options))
            self._is_fork = False
        return await AttachedConversation.open(self._options, self._replied)

    def _replied(self, seq: int) -> None:
        self._last = seq
