"""Sends commands of `zot acp` to the daemon, over a connection that is renewed by the next command.

Sessions are followed over other connections. Those are not read while the editor is slow, so answers would not arrive. A
daemon that does not run is started, because each command is a request of a person.
"""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import TypeVar

from zotd import ids
from zotd.client import place
from zotd.client.client import Client
from zotd.client.connection import CALL_S, open_connection
from zotd.client.errors import CallError, ClientError, ConnectionLostError
from zotd.wire import api
from zotd.wire.base import Frozen

log = logging.getLogger(__name__)

T = TypeVar("T", bound=Frozen)


class DaemonLink:
    """The connection to the daemon of this user; call `close` at the end."""

    def __init__(self, env: Mapping[str, str]) -> None:
        """Locate the daemon from `env`, which new sessions also get. Does not connect yet. Raises ClientError."""
        self.env = env
        self.place = place.of(env)
        self.name = "acp"
        """Name of this client for other clients: that of the editor once it is known."""
        self._stack = AsyncExitStack()
        self._client: Client | None = None
        self._connecting = asyncio.Lock()

    def introduce(self, name: str) -> None:
        """Call this client `name` for others from the next connection on; an empty name changes nothing."""
        self.name = name or self.name

    async def ask(self, params: Frozen, result: type[T], *, command: str | None = None, timeout_s: float = CALL_S) -> T:
        """Send a command like `Client.ask`, connecting first if necessary. Raises ClientError."""
        client = await self._connected()
        return await client.ask(params, result, command=command, timeout_s=timeout_s)

    async def prompt(self, session: str, message: str, images: list[api.PromptImage]) -> api.Started:
        """Submit a prompt exactly once: if the connection is lost, it is sent again with the same `request_id`.

        Raises ClientError.
        """
        params = api.Prompt(session=session, message=message, images=images, request_id=ids.new("q"))
        try:
            return await self.ask(params, api.Started)
        # The prompt may have arrived. The daemon recognises its `request_id`, so this cannot start a second run.
        except ConnectionLostError:
            return await self.ask(params, api.Started)

    async def delete(self, session: str) -> None:
        """Delete a session, unless there is none with this id. Raises ClientError."""
        # A connection of its own: no other command of an editor needs this role.
        async with Client.connect(env=self.env, name=self.name, role="admin") as client:
            try:
                await client.ask(api.Mutation(session=session), api.Nothing, command="session.delete")
            except CallError as error:
                if error.code != "not_found":
                    raise

    async def revive(self) -> None:
        """Start the daemon again if it was killed. One that was stopped has removed its socket and stays stopped."""
        try:
            if self.place.was_killed():
                await (await open_connection(self.place, start=True)).close()
        except ClientError as error:
            log.warning("zotd could not be started again: %s", error)

    async def close(self) -> None:
        """Close the connection; runs continue."""
        await self._stack.aclose()

    async def _connected(self) -> Client:
        # Held during the start of a daemon, so that two commands do not open two connections.
        async with self._connecting:
            if self._client is None or self._client.connection.is_lost:
                await self._stack.aclose()
                self._client = None
                connecting = Client.connect(env=self.env, name=self.name)
                self._client = await self._stack.enter_async_context(connecting)
            return self._client
