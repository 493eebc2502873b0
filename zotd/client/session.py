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
    """What a session needs of its client."""

    connection: ClientConnection

    async def ask(
        self, params: Frozen, result: type[T], *, command: str | None = None, timeout_s: float | None = CALL_S
    ) -> T:
        """Send a command and return its response as a `result`; see `Client.ask`."""
        ...

    async def ensure_attached(self, session_id: str) -> None:
        """Follow the session, unless the connection does."""
        ...


class Session:
    """A session by its id. Cheap: several objects may stand for the same session.

    All methods raise `CallError` when the daemon refuses, `NoAnswerError` and `ConnectionLostError`.
    """

    def __init__(self, client: Caller, session_id: str) -> None:
        """Made by `Client.create` and `Client.session`."""
        self.id = session_id
        self._client = client
        self._prompting = False

    async def prompt(
        self, message: str, *, images: Sequence[api.PromptImage] = (), when_busy: str = "queue"
    ) -> AsyncGenerator[AnyEvent, None]:
        """Give the session an input; the events of its run, up to and with its `Done`.

        Leaving the loop early does not end the run: `abort` does. `when_busy`: `queue`, `steer` or `reject`. Raises
        `BusyError` while the prompt before is still being read from this object.
        """
        async with aclosing(self.prompt_batches(message, images=images, when_busy=when_busy)) as batches:
            async for batch in batches:
                for event in batch:
                    yield event

    async def prompt_batches(
        self, message: str, *, images: Sequence[api.PromptImage] = (), when_busy: str = "queue"
    ) -> AsyncGenerator[list[AnyEvent], None]:
        """Like `prompt`, as many events at a time as have come: half the time for each. A batch may be empty."""
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
        """Everything that happens in the session from now on, until the connection ends, which raises."""
        await self._client.ensure_attached(self.id)
        with self._client.connection.feed(self.id) as feed:
            while True:
                yield await feed.batch()

    async def compact(self, instructions: str = "") -> str:
        """Summarise the transcript, after what runs now; the summary. Raises `RunFailedError` when that fails."""
        await self._client.ensure_attached(self.id)
        params = api.Compact(session=self.id, instructions=instructions)
        seen: list[AnyEvent] = []
        with self._client.connection.feed(self.id) as feed:
            # Answered when it starts, and whatever runs now may take hours.
            started = await self._client.ask(params, api.Started, timeout_s=None)
            run = Run(None, started.run, starts_now=True)
            while not run.over:
                seen.extend(select(run, await feed.batch()))
        return summary_of(seen)

    async def abort(self) -> None:
        """Cancel what runs now, whoever asked for it; nothing happens when nothing runs."""
        await self._client.ask(api.Mutation(session=self.id), api.Nothing, command="abort")

    async def set_model(self, model: str, provider: str | None = None) -> api.ModelName:
        """Switch the model from the next run on."""
        return await self._client.ask(api.SetModel(session=self.id, model=model, provider=provider), api.ModelName)

    async def state(self) -> api.State:
        """Model, figures, and whether it is busy."""
        return await self._client.ask(api.OfSession(self.id), api.State, command="get_state")

    async def usage(self) -> Tokens:
        """Tokens and money of the session so far."""
        return (await self.state()).usage

    async def messages(self, *, full: bool = False) -> list[Message]:
        """The transcript as the model sees it, oldest first; `full` with the data of images."""
        return (await self._client.ask(api.GetMessages(session=self.id, full=full), api.Messages)).messages

    async def models(self) -> list[api.ModelInfo]:
        """The models that this session could switch to."""
        return (await self._client.ask(api.GetModels(session=self.id), api.Models)).models

    async def close(self) -> None:
        """Unload the session; an ephemeral one is gone, a stored one can be opened again."""
        await self._client.ask(api.Mutation(session=self.id), api.Nothing, command="session.close")
