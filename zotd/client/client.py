"""Typed asyncio client of the daemon.

    async with Client.connect() as client:
        session = await client.create(cwd=".", provider="anthropic")
        async for event in session.prompt("what is in this directory?"):
            match event:
                case events.TextDelta(delta): print(delta, end="")

One connection carries any number of sessions. It does not reconnect; `zotd.client.follow` does. Runs continue in the
daemon when the connection ends.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Self, TypeVar, Unpack

from zotd.client import place, settings
from zotd.client.connection import CALL_S, ClientConnection, open_connection
from zotd.client.frames import command_for
from zotd.client.place import Place
from zotd.client.session import Session
from zotd.wire import api
from zotd.wire.base import Frozen

T = TypeVar("T", bound=Frozen)


class Client:
    """A connection to the daemon; created by `connect`."""

    def __init__(self, connection: ClientConnection, where: Place, hello: api.HelloResult) -> None:
        """`connection` is closed by the caller; `where` determines the environment and directory of new sessions."""
        self.connection = connection
        self.hello = hello
        """The daemon's response to `hello`: version, epoch, role, limits."""
        self._where = where
        self._attached: set[str] = set()
        self._attaching = asyncio.Lock()

    @classmethod
    @asynccontextmanager
    async def connect(
        cls,
        *,
        env: Mapping[str, str] | None = None,
        autostart: bool = True,
        name: str = "python",
        can_approve: bool = False,
        role: str | None = None,
        **where: Unpack[settings.Where],
    ) -> AsyncIterator[Self]:
        """Connect for the duration of an `async with` block.

        Args:
            path: socket of a daemon on this machine. Without `path` and `host`, as `env` says.
            host: URL of a daemon on another machine.
            token_file: file with the token for that daemon.
            ca_file: certificates to verify that daemon with, if it is not the system's.
            env: environment of new sessions; default: that of this program.
            autostart: start a daemon on this machine if none is running.
            name: shown to other clients.
            can_approve: whether this client answers approval requests.
            role: `admin`, for commands that need it.

        Raises:
            ClientError: `NotRunningError`, `StartError`, `NoAnswerError`, or `CallError` if the daemon does not support
                our protocol.
        """
        env = os.environ if env is None else env
        there = place.of(env, **where)
        connection = await open_connection(there, start=autostart)
        try:
            greeting = settings.hello(name, can_approve=can_approve, role=role)
            said = await connection.call("hello", greeting)
            assert isinstance(said, api.HelloResult)
            yield cls(connection, there, said)
        finally:
            await connection.close()

    async def call(self, params: Frozen, *, command: str | None = None, timeout_s: float = CALL_S) -> Frozen:
        """Send the command that takes `params` and return the data of its response, decoded by the command table.

        `command` names it if several take the same parameters (`api.OfSession`, `api.Mutation`, …).
        """
        return await self.connection.call(command_for(params, command), params, timeout_s=timeout_s)

    async def ask(
        self, params: Frozen, result: type[T], *, command: str | None = None, timeout_s: float | None = CALL_S
    ) -> T:
        """Like `call`, with the type of the response for type checkers; `result` must agree with the command table."""
        name = command_for(params, command)
        answer = await self.connection.call(name, params, timeout_s=timeout_s)
        if not isinstance(answer, result):
            raise TypeError(f"`{name}` answers with {type(answer).__name__}, not {result.__name__}")
        return answer

    async def create(
        self, cwd: str = ".", *, api_key: str | None = None, **options: Unpack[settings.SessionSettings]
    ) -> Session:
        """Create a session in the directory `cwd` and attach to it. Its tools run in this client's environment."""
        params = settings.new_session(self._where, cwd, api_key, **options)
        created = await self.ask(params, api.Created)
        session = Session(self, created.session.id)
        await self.attach(session.id, after=api.Cursor(created.epoch, created.seq))
        return session

    def session(self, session_id: str) -> Session:
        """Return an object for an existing session, without a request: the first use fails if there is none."""
        return Session(self, session_id)

    async def sessions(self, cwd: str | None = None) -> list[api.SessionInfo]:
        """Return all sessions, or those of one directory, newest first."""
        found: list[api.SessionInfo] = []
        real = None if cwd is None else self._where.real_path(cwd)
        page = await self.ask(api.SessionList(cwd=real), api.Sessions)
        found.extend(page.sessions)
        while page.cursor is not None:
            page = await self.ask(api.SessionList(cwd=real, cursor=page.cursor), api.Sessions)
            found.extend(page.sessions)
        return found

    async def attach(self, session_id: str, *, after: api.Cursor | None = None, limit: int = 50) -> api.Attached:
        """Follow the session on this connection, from a cursor if given; return a snapshot of it."""
        params = api.Attach(session=session_id, after=after, limit=limit, env=self._where.variables)
        snapshot = await self.ask(params, api.Attached)
        self._attached.add(session_id)
        return snapshot

    async def ensure_attached(self, session_id: str) -> None:
        """Follow the session unless this connection already does."""
        # Held across the call, so that the second of two prompts does not miss events before the first is attached.
        async with self._attaching:
            if session_id not in self._attached:
                await self.attach(session_id, limit=1)
