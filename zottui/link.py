"""The connection to the daemon. Reconnects after it is lost and restarts a daemon that was killed."""

import asyncio
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from typing import TypeVar

from zotd.client import place
from zotd.client.client import Client
from zotd.client.connection import CALL_S
from zotd.client.errors import ClientError, ConnectionLostError
from zotd.client.follow import Disconnected, Follower, Item
from zotd.wire import api
from zotd.wire.api import Attached
from zotd.wire.base import Frozen
from zotd.wire.events import AnyEvent
from zottui.startup import revive

T = TypeVar("T", bound=Frozen)

PROGRAM = "zot"

TOPICS = ["sessions", "trust", "extensions"]
"""The daemon's topics that the client subscribes to, besides its session."""


class SessionLink:
    """Follows one session at a time and sends commands on its connection."""

    def __init__(self, env: Mapping[str, str]) -> None:
        """`env` is the client's environment, which tells where the daemon is."""
        self._env = env
        self._name = _name()
        self._follower: Follower | None = None
        self.remedy = "" if place.of(env).is_remote else " (zotctl start)"
        """Advice for the user when the daemon is gone; empty for a remote daemon, which cannot be started from here."""
        # API keys that this client gave to sessions (`--api-key`), by session id. The daemon keeps them only in memory.
        self._secrets: dict[str, api.Secrets] = {}
        self.trouble = ""
        """Why the last attempt to restart the daemon failed; empty if it did not."""

    def keep(self, session_id: str, secrets: api.Secrets) -> None:
        """Send this key to the session again whenever a restarted daemon has lost it."""
        self._secrets[session_id] = secrets

    async def items(self, session_id: str) -> AsyncGenerator[Item, None]:
        """Yield the items of `zotd.client.follow` for this session. Restarts a daemon that was killed."""
        self._follower = Follower(session_id, env=self._env, name=self._name, can_approve=True)
        async with aclosing(self._follower.items()) as items:
            async for item in items:
                if isinstance(item, Attached):
                    await self._give_again(session_id)  # before waiting prompts go out, which need the key
                yield item
                if isinstance(item, Disconnected):
                    await self._revive()

    async def topics(self) -> AsyncGenerator[AnyEvent, None]:
        """Yield events of `TOPICS` until the connection is lost, which raises `ConnectionLostError`."""
        client = self._client()
        # Open the feed before subscribing, or events right after the answer would be lost.
        with client.connection.feed(None) as feed:
            await client.ask(api.Subscribe(TOPICS), api.Nothing)
            while True:
                for event in await feed.batch():
                    yield event

    async def _give_again(self, session_id: str) -> None:
        secrets = self._secrets.get(session_id)
        if secrets is None:
            return
        # Refused: the session still has its key, or was switched to another provider. Connection lost: the next attach
        # tries again.
        with suppress(ClientError):
            await self.ask(api.SessionConfigure(session=session_id, secrets=secrets), api.SessionInfo)

    async def _revive(self) -> None:
        self.trouble = ""
        try:
            # A thread, since starting a daemon blocks until its socket answers.
            await asyncio.get_running_loop().run_in_executor(None, revive, self._env)
        except ClientError as error:
            self.trouble = str(error)

    async def ask(
        self, params: Frozen, result: type[T], *, command: str | None = None, timeout_s: float | None = CALL_S
    ) -> T:
        """Send a command and return its answer. Raises `ClientError`, also while there is no connection."""
        return await self._client().ask(params, result, command=command, timeout_s=timeout_s)

    async def administer(self, params: Frozen, result: type[T], *, command: str | None = None) -> T:
        """Like `ask`, with the role `admin` on a new connection: the permanent one has a lower role."""
        async with Client.connect(env=self._env, autostart=False, name=self._name, role="admin") as client:
            return await client.ask(params, result, command=command)

    def _client(self) -> Client:
        client = self._follower.client if self._follower is not None else None
        if client is None:
            raise ConnectionLostError("not connected to zotd; reconnecting")
        return client


def _name() -> str:
    """Return this client's name for other clients, with its terminal to tell several of them apart."""
    try:
        return f"{PROGRAM}@{os.ttyname(0).removeprefix('/dev/')}"
    except OSError:
        return PROGRAM
