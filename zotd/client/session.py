"""One session of the daemon, for asyncio programs."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Protocol, TypeVar

from zotd.client.connection import CALL_S, ClientConnection
from zotd.client.errors import BusyError
from zotd.client.runs import Run
from zotd.client.selection import run_of, select, summary_of
from zotd.wire import api
from zotd.wire.base import Frozen
from zotd.wire.content import Message, Tokens
from zotd.wire.events import AnyEvent

T = TypeVar("T", bound=Frozen)


class Caller(Protocol):
    """The methods of the client that a session uses."""

    connection: ClientConnection

    async def ask(
        self, params: Frozen, result: type[T], *, command: str | None = None, timeout_s: float | None = CALL_S
    ) -> T:
        """Send a command and return its response as a `result`; see `Client.ask`."""
        ...

    async def ensure_attached(self, session_id: str) -> None:
        """Follow the session unless the connection already does."""
        ...


class Session:
    """A session, identified by its id. Several objects may refer to the same session.

    All methods raise `CallError` if the daemon refuses a command, `NoAnswerError` and `ConnectionLostError`.
    """

    def __init__(self, client: Caller, session_id: str) -> None:
        """Use `Client.create` or `Client.session` instead."""
        self.id = session_id
        self._client = client
        self._prompting = False

    async def prompt(
        self, message: str, *, images: Sequence[api.PromptImage] = (), when_busy: str = "queue"
    ) -> AsyncGenerator[AnyEvent, None]:
        """Send a prompt and yield the events of its run, up to and including its `Done`.

        Leaving the loop early does not end the run; use `abort`. `when_busy` is `queue`, `steer` or `reject`. Raises
        `BusyError` while an earlier prompt of this object is still being read.
        """
        async with aclosing(self.prompt_batches(message, images=images, when_busy=when_busy)) as batches:
            async for batch in batches:
                for event in batch:
                    yield event

    async def prompt_batches(
        self, message: str, *, images: Sequence[api.PromptImage] = (), when_busy: str = "queue"
    ) -> AsyncGenerator[list[AnyEvent], None]:
        """Like `prompt`, but yield all events that have arrived at once, in half the time. A batch may be empty."""
        if self._prompting:
            raise BusyError(f"session {self.id}: the previous prompt is still being read; use a second Session object")
        self._prompting = True
        try:
            await self._client.ensure_attached(self.id)
            params = api.Prompt(session=self.id, message=message, images=list(images), when_busy=when_busy)
            with self._client.connection.feed(self.id) as feed:
                run = run_of(await self._client.ask(params, api.Started))
                while not run.over:
                    yield select(run, await feed.batch())
        finally:
            self._prompting = False

    async def batches(self) -> AsyncGenerator[list[AnyEvent], None]:
        """Yield all events of the session from now on; raises when the connection ends."""
        await self._client.ensure_attached(self.id)
        with self._client.connection.feed(self.id) as feed:
            while True:
                yield await feed.batch()

    async def compact(self, instructions: str = "") -> str:
        """Summarise the transcript after the current run; return the summary. Raises `RunFailedError` if it fails."""
        await self._client.ensure_attached(self.id)
        params = api.Compact(session=self.id, instructions=instructions)
        seen: list[AnyEvent] = []
        with self._client.connection.feed(self.id) as feed:
            # No timeout: the response is sent when the compaction starts, which may be after hours.
            started = await self._client.ask(params, api.Started, timeout_s=None)
            run = Run(None, started.run, starts_now=True)
            while not run.over:
                seen.extend(select(run, await feed.batch()))
        return summary_of(seen)

    async def abort(self) -> None:
        """Abort the current run, whichever client started it; does nothing if there is none."""
        await self._client.ask(api.Mutation(session=self.id), api.Nothing, command="abort")

    async def set_model(self, model: str, provider: str | None = None) -> api.ModelName:
        """Switch the model from the next run on."""
        return await self._client.ask(api.SetModel(session=self.id, model=model, provider=provider), api.ModelName)

    async def state(self) -> api.State:
        """Return the model, the figures and the state of the session."""
        return await self._client.ask(api.OfSession(self.id), api.State, command="get_state")

    async def usage(self) -> Tokens:
        """Return the tokens and the cost of the session so far."""
        return (await self.state()).usage

    async def messages(self, *, full: bool = False) -> list[Message]:
        """Return the transcript as the model sees it, oldest first; with `full` including image data."""
        return (await self._client.ask(api.GetMessages(session=self.id, full=full), api.Messages)).messages

    async def models(self) -> list[api.ModelInfo]:
        """Return the models that this session can switch to."""
        return (await self._client.ask(api.GetModels(session=self.id), api.Models)).models

    async def close(self) -> None:
        """Unload the session. An ephemeral one is deleted; a stored one can be opened again."""
        await self._client.ask(api.Mutation(session=self.id), api.Nothing, command="session.close")
