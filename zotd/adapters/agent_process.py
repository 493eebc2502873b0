"""The process of another agent, and the agent's own session in it.

    start ──> initialize ──> session/new | resume | load ──> ready for turns
                                 └──> session/fork ──> the id of a copy

A process that does not get that far within the adapter's `start_s` is ended.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Protocol

from zotd.adapters.catalog import Adapter
from zotd.adapters.choices import AgentChoices
from zotd.adapters.connection import AdapterConnection, AdapterError, RpcRefusedError
from zotd.core.retry import Failure, ModelError
from zotd.wire.acp import VERSION, ClientCapabilities, Implementation, Initialize, NewSession, OldSession
from zotd.wire.acp_reports import (
    ChangedOptions,
    ChosenMode,
    ChosenOption,
    Ignored,
    Introduction,
    OpenedSession,
    ReopenedSession,
    ReportedCapabilities,
    ReportedSessionCapabilities,
)
from zotd.wire.api import AgentOption
from zotd.wire.jsonrpc import RpcErrorCode
from zotd.wire.version import VERSION as OUR_VERSION

CHOOSE_S = 30.0
"""How long an agent has to take another mode or model, in seconds."""


class SessionMemory(Protocol):
    """What the session of ours keeps of that of its agent."""

    cwd: str

    @property
    def remembered(self) -> str | None:
        """The id of the agent's session, as it is on record."""
        ...

    @property
    def has_history(self) -> bool:
        """Whether there was a conversation before this turn."""
        ...

    @property
    def copied_from(self) -> str:
        """The session of the agent's that this one is a copy of, or is to be; empty: of none, or there was a turn in it."""
        ...

    async def remember(self, agent_session: str, *, copied_from: str = "") -> None:
        """Put the id of the agent's session on record."""
        ...

    @property
    def chosen(self) -> Mapping[str, str]:
        """What people have chosen of the agent's options, by the option's id; also in sessions of the agent's before this one."""
        ...


class AgentProcess:
    """The process, if it runs."""

    def __init__(
        self, adapter: Callable[[], Adapter], memory: SessionMemory, connect: Callable[[], AdapterConnection]
    ) -> None:
        """`adapter` returns it as the configuration has it now. `connect` starts it, and raises as `AdapterConnection`."""
        self.connection: AdapterConnection | None = None
        """None: it does not run."""
        self.session = ""
        """The agent's id of its session, when the process has it open."""
        self.choices = AgentChoices()
        """What can be chosen in the session."""
        self._adapter = adapter
        self._memory = memory
        self._connect = connect
        self._abilities = ReportedCapabilities()

    @property
    def adapter(self) -> Adapter:
        """What speaks ACP for the agent."""
        return self._adapter()

    @property
    def title(self) -> str:
        """The agent's name, for people."""
        return self.adapter.title

    @property
    def takes_images(self) -> bool:
        """Whether prompts may contain images."""
        can = self._abilities.prompt_capabilities
        return can is not None and bool(can.image)

    @property
    def is_open(self) -> bool:
        """It runs, and has the session open that is on record."""
        return self.connection is not None and self.session != "" and self.session == self._memory.remembered

    def gone(self) -> None:
        """It has ended."""
        self.connection, self.session = None, ""
        # The next process reports where it begins before its session is open; compared with the end of this one,
        # that would look like a choice that the agent has given up.
        self.choices = AgentChoices()

    async def ready(self, notes: list[str]) -> AdapterConnection:
        """Return the connection to a process that has the session open; adds to `notes` what people should know.

        Raises ModelError when there is none.
        """
        if self.is_open and self.connection is not None:
            return self.connection
        async with self._started() as connection:
            self.session = ""
            await self._open(connection, notes)
        return connection

    async def check_fork(self) -> None:
        """Raise ModelError if the agent cannot copy its session; starts the process if it does not run."""
        async with self._started():
            self._check_fork()

    async def fork(self) -> None:
        """Have the agent copy the session that is on record as the one to copy, and open the copy. Raises ModelError."""
        async with self._started() as connection:
            await self._copy(connection, [])

    async def choose(self, connection: AdapterConnection, option: str, value: str) -> Sequence[AgentOption]:
        """Have the agent take a value that its session, which is open, has for an option; returns what has changed.

        Raises AdapterError and RpcRefusedError.
        """
        session = self.session
        if self.choices.is_mode(session, option):
            await connection.call("session/set_mode", ChosenMode(session, value), Ignored, within_s=CHOOSE_S)
            return self.choices.set(session, option, value)
        params = ChosenOption(session, option, value)
        found = await connection.call("session/set_config_option", params, ChangedOptions, within_s=CHOOSE_S)
        return self.choices.replaced(session, found)

    def refusal(self, error: RpcRefusedError) -> ModelError:
        """Return the sentence for a request that the agent has refused."""
        if error.code == RpcErrorCode.AUTH:
            how = f": {self.adapter.login}" if self.adapter.login else ""
            return ModelError(Failure.AUTH, f"{self.title} wants you to log in{how}; then send the prompt again")
        return ModelError(Failure.REFUSED, f"{self.title} refused: {error}")

    # --- inside -------------------------------------------------------------------------------------------------------

    @property
    def _can(self) -> ReportedSessionCapabilities:
        return self._abilities.session_capabilities or ReportedSessionCapabilities()

    @asynccontextmanager
    async def _started(self) -> AsyncGenerator[AdapterConnection, None]:
        """Start the process if it does not run; it is ended if it, or what follows, is not done in time or fails."""
        connection, is_new = self.connection, self.connection is None
        try:
            connection = connection or self._connect()
        except (OSError, ValueError) as error:
            raise self._unstarted(error) from error
        self.connection = connection
        try:
            async with asyncio.timeout(self.adapter.start_s):
                if is_new:
                    await self._introduce(connection)
                yield connection
        except TimeoutError as error:
            await connection.stop()
            sentence = f"{self.title} was not ready within {self.adapter.start_s:g} s; it was ended"
            raise ModelError(Failure.UNAVAILABLE, sentence) from error
        except AdapterError as error:
            await connection.stop()
            raise ModelError(Failure.UNAVAILABLE, str(error)) from error
        except RpcRefusedError as error:
            await connection.stop()
            raise self.refusal(error) from error
        except ModelError:  # it is ready, and cannot do what was wanted
            raise
        except BaseException:
            connection.kill(f"the start of {self.title} was cancelled; it was ended")
            raise

    async def _introduce(self, connection: AdapterConnection) -> None:
        ours = Initialize(VERSION, ClientCapabilities(), Implementation("zot", OUR_VERSION))
        theirs = await connection.call("initialize", ours, Introduction)
        if theirs.protocol_version != VERSION:
            raise AdapterError(
                f"{self.title} speaks version {theirs.protocol_version} of ACP, and zot speaks {VERSION}; update the older one"
            )
        self._abilities = theirs.agent_capabilities or ReportedCapabilities()

    async def _open(self, connection: AdapterConnection, notes: list[str]) -> None:
        """Open the agent's session: the one on record if the agent can, else a new one."""
        known = self._memory.remembered
        if self._memory.copied_from:
            if await self._copied_again(connection, notes):
                return
        elif known is not None and await self._resumed(connection, known, notes):
            return
        opened = await connection.call("session/new", NewSession(self._memory.cwd, []), OpenedSession)
        if self._memory.has_history:
            notes.append(f"{self.title} begins anew: it knows nothing of what was said before")
        await self._memory.remember(opened.session_id)
        self.session = opened.session_id
        await self._opened(connection, opened, notes)

    def _check_fork(self) -> None:
        if self._can.fork is None or (self._can.resume is None and not self._abilities.load_session):
            raise ModelError(
                Failure.REFUSED,
                f"{self.title} cannot fork its session; begin a new one with: zot --agent {self.adapter.name}",
            )

    async def _copy(self, connection: AdapterConnection, notes: list[str]) -> None:
        self._check_fork()
        source = self._memory.copied_from
        copy = await connection.call("session/fork", OldSession(source, self._memory.cwd, []), OpenedSession)
        if copy.session_id in {"", source}:
            raise ModelError(Failure.UNAVAILABLE, f"{self.title} has named no new session for the copy")
        await self._memory.remember(copy.session_id, copied_from=source)
        self.session = copy.session_id
        await self._opened(connection, copy, notes)

    async def _copied_again(self, connection: AdapterConnection, notes: list[str]) -> bool:
        """Copy once more what only the memory of a process had that has ended; some agents store a copy with its first turn."""
        is_new = not self._memory.remembered
        try:
            await self._copy(connection, notes)
        except RpcRefusedError as error:
            if error.code == RpcErrorCode.AUTH:
                raise
            notes.append(f"{self.title} could not copy its session: {error}")
            return False
        except ModelError as error:
            notes.append(error.sentence)
            return False
        if not is_new:
            notes.append(
                f"{self.title} has copied its session once more, so it also knows what was said there since the fork"
            )
        return True

    async def _resumed(self, connection: AdapterConnection, known: str, notes: list[str]) -> bool:
        method = "session/load" if self._can.resume is None else "session/resume"
        if method == "session/load" and not self._abilities.load_session:
            return False
        try:
            # What is replayed of the history is on record here, and comes before `session` is set.
            opened = await connection.call(method, OldSession(known, self._memory.cwd, []), ReopenedSession)
        except RpcRefusedError as error:
            if error.code == RpcErrorCode.AUTH:
                raise
            notes.append(f"{self.title} could not take up its session again: {error}")
            return False
        self.session = known
        await self._opened(connection, opened, notes)
        return True

    async def _opened(self, connection: AdapterConnection, opened: ReopenedSession, notes: list[str]) -> None:
        """Have the agent take again what people have chosen before."""
        self.choices.opened(self.session, opened)
        for option, value in self._memory.chosen.items():
            known = next((one for one in self.choices.of(self.session) if one.id == option), None)
            if known is None or known.current == value:
                continue
            try:
                await self.choose(connection, option, value)
            except RpcRefusedError as error:
                notes.append(f"{self.title} does not take {value} for {known.name} any more: {error}")

    def _unstarted(self, error: OSError | ValueError) -> ModelError:
        program = self.adapter.command[0]
        if isinstance(error, FileNotFoundError):
            how = f"; install it with: {self.adapter.install}" if self.adapter.install else ""
            return ModelError(Failure.UNAVAILABLE, f"{self.title} needs {program}, which is not on the PATH{how}")
        return ModelError(Failure.UNAVAILABLE, f"{program} could not be started: {error}")
