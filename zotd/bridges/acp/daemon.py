"""Commands of `zot acp` to the daemon, on a connection that comes back at the next command.

Not the connection that follows a session: that one is left unread while the editor is slow, and then no answer would
come on it. A daemon that does not run is started: the person wants something of it now.
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
from zotd.client.errors import ClientError, ConnectionLostError
from zotd.wire import api
from zotd.wire.base import Frozen

log = logging.getLogger(__name__)

T = TypeVar("T", bound=Frozen)


class DaemonLink:
    """The daemon of this user. Ended by `close`."""

    def __init__(self, env: Mapping[str, str]) -> None:
        """`env` says where it is, and is what new sessions run in; there is no connection yet. Raises `ClientError`."""
        self.env = env
        self.place = place.of(env)
        self.name = "acp"
        """What this client calls itself for others: the editor's name, when that is known."""
        self._stack = AsyncExitStack()
        self._client: Client | None = None
        self._connecting = asyncio.Lock()

    async def ask(self, params: Frozen, result: type[T], *, command: str | None = None, timeout_s: float = CALL_S) -> T:
        """As `Client.ask`. Raises `ClientError`."""
        client = await self._connected()
        return await client.ask(params, result, command=command, timeout_s=timeout_s)

    async def prompt(self, session: str, message: str, images: list[api.PromptImage]) -> api.Started:
        """Give a session an input, exactly once: lost on the way it is sent again, with the same `request_id`.

        Raises `ClientError`.
        """
        params = api.Prompt(session=session, message=message, images=images, request_id=ids.new("q"))
        try:
            return await self.ask(params, api.Started)
        except ConnectionLostError:
            return await self.ask(params, api.Started)

    async def revive(self) -> None:
        """Start it again, if it was killed: one that was stopped takes its socket away, and is left stopped."""
        try:
            if self.place.was_killed():
                await (await open_connection(self.place, start=True)).close()
        except ClientError as error:
            log.warning("zotd could not be started again: %s", error)

    async def close(self) -> None:
        """Leave; what was asked for goes on."""
        await self._stack.aclose()

    async def _connected(self) -> Client:
        # Held across the start of a daemon, so that two commands do not make two connections.
        async with self._connecting:
            if self._client is None or self._client.connection.is_lost:
                await self._stack.aclose()
                self._client = None
                connecting = Client.connect(env=self.env, name=self.name)
                self._client = await self._stack.enter_async_context(connecting)
            return self._client
