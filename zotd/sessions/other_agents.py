"""The agents of others that run the turns of sessions.

What speaks ACP (`sessions.agent_runs`, `zotd.adapters`) is loaded with the first of them.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

from zotd.core import records
from zotd.runs.context import RunContext
from zotd.sessions.machine import Machine
from zotd.sessions.session import Session
from zotd.wire.api import AgentOptionList, Completion
from zotd.wire.errors import Code, CommandError


class AgentRuns(Protocol):
    """`sessions.agent_runs.LoadedAgentRuns`."""

    def context(self, session: Session, first: records.Input | None, context: RunContext) -> RunContext:
        """Return what the next run of the session works with; `context` is that of a run of ours."""
        ...

    def commands(self, session: str) -> Sequence[Completion] | None:
        """Return the slash commands of the session's agent; None: it has not listed any yet."""
        ...

    def resting(self, session: Session) -> AbstractAsyncContextManager[None]:
        """Have the session's agent begin no turn for the block. Raises CommandError if it cannot copy its own session."""
        ...

    async def copy(self, session: Session) -> None:
        """Have the agent of a fork copy what it is to copy. Raises CommandError."""
        ...

    async def options(self, session: Session) -> AgentOptionList:
        """Return what people can choose of the session's agent, which is started if it does not run. Raises CommandError."""
        ...

    async def choose(self, session: Session, option: str, value: str) -> AgentOptionList:
        """Have the agent take a value for one of its options, and remember it; returns all options. Raises CommandError."""
        ...

    def forget(self, session: str) -> None:
        """End the agent of a session that leaves memory."""
        ...

    async def stop(self) -> None:
        """End all agents; takes a few seconds at most."""
        ...


class OtherAgents:
    """The agents of others, of all sessions."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._load: Callable[[Machine], AgentRuns] | None = None
        self._loaded: AgentRuns | None = None

    def connect(self, load: Callable[[Machine], AgentRuns]) -> None:
        """Have `load` called for the first session that has one; without it there can be none."""
        self._load = load

    def context(self, session: Session, first: records.Input | None, context: RunContext) -> RunContext:
        """Return what the next run of a session works with that another agent runs; `context` is that of a run of ours."""
        return self._runs().context(session, first, context)

    def commands(self, session: Session) -> Sequence[Completion] | None:
        """Return the slash commands of the agent that runs the session.

        None: it has not listed any yet, which it does when its process has opened its session. Empty: there are none.
        """
        if not session.ledger.row.settings.agent:
            return ()
        return None if self._loaded is None else self._loaded.commands(session.id)

    @asynccontextmanager
    async def forking(self, session: Session, *, is_earlier: bool) -> AsyncGenerator[str | None, None]:
        """Yield the agent's session that the fork's agent has to copy, for a block in which it stays as it is.

        None: the agent remembers nothing that could be copied. `is_earlier`: the copy is to end before the last message.
        Raises CommandError: it cannot be copied, now or ever; one sentence says why.
        """
        agent, found = session.ledger.row.settings.agent, session.ledger.transcript.agent_session
        if found is None:
            yield None
            return
        if is_earlier:
            raise CommandError(
                Code.UNSUPPORTED, f"{agent} forks its session only as it is now; leave out the message to fork at"
            )
        if session.work.is_active:
            raise CommandError(Code.BUSY, f"{agent} is at work; fork the session when its run has ended")
        async with self._runs().resting(session):
            yield found.copied_from or found.id

    async def copy(self, session: Session) -> None:
        """Have the agent of a fork copy its origin's session. Raises CommandError: there is no copy; one sentence says why."""
        await self._runs().copy(session)

    async def options(self, session: Session) -> AgentOptionList:
        """Return what people can choose of the agent that runs a session; it is started if it does not run.

        Raises CommandError: there is no such agent, or it cannot be started.
        """
        _check_driven(session)
        return await self._runs().options(session)

    async def choose(self, session: Session, option: str, value: str) -> AgentOptionList:
        """Have that agent take a value for one of its options, and again in its later processes; returns all options.

        Raises CommandError: also if there is no such option or value, or the agent does not take it.
        """
        _check_driven(session)
        return await self._runs().choose(session, option, value)

    def forget(self, session: str) -> None:
        """The session leaves memory."""
        if self._loaded is not None:
            self._loaded.forget(session)

    async def stop(self) -> None:
        """The process ends."""
        if self._loaded is not None:
            await self._loaded.stop()

    def _runs(self) -> AgentRuns:
        if self._loaded is None:
            assert self._load is not None, "connect was not called"
            self._loaded = self._load(self._machine)
        return self._loaded


def _check_driven(session: Session) -> None:
    if not session.ledger.row.settings.agent:
        raise CommandError(
            Code.BAD_REQUEST, "no other agent runs the turns of this session, so it has no options of one"
        )
