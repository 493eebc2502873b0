"""The connection to the daemon, as long as the program runs: followed, lost, found again."""

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
"""What of the daemon it wants to hear, besides its session."""


class SessionLink:
    """One session at a time."""

    def __init__(self, env: Mapping[str, str]) -> None:
        """`env`: of this program; it says where the daemon is."""
        self._env = env
        self._name = _name()
        self._follower: Follower | None = None
        self.remedy = "" if place.of(env).is_remote else " (zotctl start)"
        """What the person can do about a daemon that is gone; from here nothing, when it is on another machine."""
        self._secrets: dict[str, api.Secrets] = {}
        """Keys that sessions were given from here, by their ids."""
        self.trouble = ""
        """Why the daemon could not be started again when that was tried last."""

    def keep(self, session_id: str, secrets: api.Secrets) -> None:
        """Give the key to that session again when the daemon has lost it, with its memory."""
        self._secrets[session_id] = secrets

    async def items(self, session_id: str) -> AsyncGenerator[Item, None]:
        """What `zotd.client.follow` gives of this session; a daemon that was killed is started again."""
        self._follower = Follower(session_id, env=self._env, name=self._name, can_approve=True)
        async with aclosing(self._follower.items()) as items:
            async for item in items:
                if isinstance(item, Attached):
                    await self._give_again(session_id)  # before a prompt that waits can go out
                yield item
                if isinstance(item, Disconnected):
                    await self._revive()

    async def topics(self) -> AsyncGenerator[AnyEvent, None]:
        """What happens in the daemon beside the session, until the connection ends, which raises."""
        client = self._client()
        with client.connection.feed(None) as feed:
            await client.ask(api.Subscribe(TOPICS), api.Nothing)
            while True:
                for event in await feed.batch():
                    yield event

    async def _give_again(self, session_id: str) -> None:
        secrets = self._secrets.get(session_id)
        if secrets is None:
            return
        # Refused: it has its key, or somebody has sent the session elsewhere. Lost: it is tried at the next connection.
        with suppress(ClientError):
            await self.ask(api.SessionConfigure(session=session_id, secrets=secrets), api.SessionInfo)

    async def _revive(self) -> None:
        self.trouble = ""
        try:
            await asyncio.get_running_loop().run_in_executor(None, revive, self._env)
        except ClientError as error:
            self.trouble = str(error)

    async def ask(
        self, params: Frozen, result: type[T], *, command: str | None = None, timeout_s: float | None = CALL_S
    ) -> T:
        """Carry out a command. Raises `ClientError`, also while there is no connection."""
        return await self._client().ask(params, result, command=command, timeout_s=timeout_s)

    async def administer(self, params: Frozen, result: type[T], *, command: str | None = None) -> T:
        """The same with the role `admin`, which a terminal does not have all day."""
        async with Client.connect(env=self._env, autostart=False, name=self._name, role="admin") as client:
            return await client.ask(params, result, command=command)

    def _client(self) -> Client:
        client = self._follower.client if self._follower is not None else None
        if client is None:
            raise ConnectionLostError("not connected to zotd; reconnecting")
        return client


def _name() -> str:
    """What this client calls itself for others: whoever has several of them knows which is where."""
    try:
        return f"{PROGRAM}@{os.ttyname(0).removeprefix('/dev/')}"
    except OSError:
        return PROGRAM
