"""Typed blocking client of the daemon: `zotd.client.client` without asyncio.

    with BlockingClient.connect() as client:
        session = client.create(cwd=".")
        for event in session.prompt("what is in this directory?"): ...

One operation at a time: responses to other commands of the client wait behind the events of a prompt.
"""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Self, TypeVar, Unpack

from zotd.client import frames, place, settings
from zotd.client.blocking import CALL_S, LineSocket
from zotd.client.core import ClientCore, Feed
from zotd.client.errors import BusyError, ConnectionLostError, NoAnswerError
from zotd.client.place import Place
from zotd.client.runs import Run
from zotd.client.selection import run_of, select, summary_of
from zotd.wire import api
from zotd.wire.base import Frozen
from zotd.wire.content import Message, Tokens
from zotd.wire.events import AnyEvent

T = TypeVar("T", bound=Frozen)


class BlockingClient:
    """A connection to the daemon; created by `connect`, ended by `close`. Not thread-safe."""

    def __init__(self, wire: LineSocket, where: Place) -> None:
        """Take ownership of `wire`; `where` determines the environment and directory of new sessions."""
        self._wire = wire
        self._where = where
        self._core = ClientCore()
        self._attached: set[str] = set()

    @classmethod
    def connect(
        cls,
        *,
        env: Mapping[str, str] | None = None,
        autostart: bool = True,
        name: str = "python",
        can_approve: bool = False,
        role: str | None = None,
        **where: Unpack[settings.Where],
    ) -> Self:
        """Connect; the caller closes the client. Arguments and errors as for `client.Client.connect`."""
        there = place.of(os.environ if env is None else env, **where)
        client = cls(LineSocket(there.ensure() if autostart else there.open()), there)
        try:
            client.call(settings.hello(name, can_approve=can_approve, role=role))
        except BaseException:
            client.close()
            raise
        return client

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; runs continue."""
        self._wire.close()

    def call(self, params: Frozen, *, command: str | None = None, timeout_s: float | None = CALL_S) -> Frozen:
        """Send a command and return its data; arguments and errors as for `client.Client.call`."""
        name = frames.command_for(params, command)
        answer: Future[frames.ResponseFrame] = Future()
        with self._core.call(name, params, answer) as line:
            self._wire.send(line)
            deadline = None if timeout_s is None else time.monotonic() + timeout_s
            while not answer.done():
                if not self._receive(None if deadline is None else max(0.0, deadline - time.monotonic())):
                    raise NoAnswerError(f"zotd did not answer `{name}` within {timeout_s:g} s")
            return frames.unpack(answer.result(), name)

    def ask(
        self, params: Frozen, result: type[T], *, command: str | None = None, timeout_s: float | None = CALL_S
    ) -> T:
        """Like `call`, with the type of the response for type checkers."""
        answer = self.call(params, command=command, timeout_s=timeout_s)
        if not isinstance(answer, result):
            raise TypeError(f"{type(params).__name__} is answered with {type(answer).__name__}, not {result.__name__}")
        return answer

    def create(
        self, cwd: str = ".", *, api_key: str | None = None, **options: Unpack[settings.SessionSettings]
    ) -> "BlockingSession":
        """Create a session in the directory `cwd` and attach to it."""
        created = self.ask(settings.new_session(self._where, cwd, api_key, **options), api.Created)
        self.attach(created.session.id, after=api.Cursor(created.epoch, created.seq))
        return BlockingSession(self, created.session.id)

    def session(self, session_id: str) -> "BlockingSession":
        """Return an object for an existing session, without a request: the first use fails if there is none."""
        return BlockingSession(self, session_id)

    def attach(self, session_id: str, *, after: api.Cursor | None = None, limit: int = 50) -> api.Attached:
        """Follow the session, from a cursor if given; return a snapshot of it."""
        params = api.Attach(session=session_id, after=after, limit=limit, env=self._where.variables)
        snapshot = self.ask(params, api.Attached)
        self._attached.add(session_id)
        return snapshot

    def ensure_attached(self, session_id: str) -> None:
        """Follow the session unless this connection already does."""
        if session_id not in self._attached:
            self.attach(session_id, limit=1)

    @contextmanager
    def feed(self, session_id: str) -> Iterator[Feed]:
        """Collect the session's events during the block; outside of it they are dropped. `fill` waits for more."""
        feed = Feed()
        with self._core.registered(session_id, feed):
            yield feed

    def fill(self, feed: Feed) -> list[AnyEvent]:
        """Wait without limit for at least one event, and return all events of the feed, oldest first."""
        while feed.is_empty:
            self._receive(None)
        return feed.take()

    def _receive(self, timeout_s: float | None) -> bool:
        """Wait for data and route it; return False on timeout. The end of the connection ends all calls and feeds."""
        try:
            data = self._wire.read(timeout_s)
        except ConnectionLostError as error:
            self._core.end(error)
            return True
        if data is None:
            return False
        self._core.receive(data)
        return True


class BlockingSession:
    """A session, identified by its id; like `session.Session`, with plain iterators."""

    def __init__(self, client: BlockingClient, session_id: str) -> None:
        """Use `BlockingClient.create` or `BlockingClient.session` instead."""
        self.id = session_id
        self._client = client
        self._prompting = False

    def prompt(
        self, message: str, *, images: Sequence[api.PromptImage] = (), when_busy: str = "queue"
    ) -> Iterator[AnyEvent]:
        """Send a prompt and yield the events of its run, up to and including its `Done`.

        Leaving the loop early does not end the run; use `abort`. Raises `BusyError` while an earlier prompt of this
        object is still being read.
        """
        if self._prompting:
            raise BusyError(f"session {self.id}: the previous prompt is still being read; use a second Session object")
        self._prompting = True
        try:
            self._client.ensure_attached(self.id)
            params = api.Prompt(session=self.id, message=message, images=list(images), when_busy=when_busy)
            with self._client.feed(self.id) as feed:
                run = run_of(self._client.ask(params, api.Started))
                while not run.over:
                    yield from select(run, self._client.fill(feed))
        finally:
            self._prompting = False

    def events(self) -> Iterator[AnyEvent]:
        """Yield all events of the session from now on, without end."""
        self._client.ensure_attached(self.id)
        with self._client.feed(self.id) as feed:
            while True:
                yield from self._client.fill(feed)

    def compact(self, instructions: str = "") -> str:
        """Summarise the transcript after the current run; return the summary. Raises `RunFailedError` if it fails."""
        self._client.ensure_attached(self.id)
        params = api.Compact(session=self.id, instructions=instructions)
        seen: list[AnyEvent] = []
        with self._client.feed(self.id) as feed:
            # No timeout: the response is sent when the compaction starts, which may be after hours.
            run = Run(None, self._client.ask(params, api.Started, timeout_s=None).run, starts_now=True)
            while not run.over:
                seen.extend(select(run, self._client.fill(feed)))
        return summary_of(seen)

    def abort(self) -> None:
        """Abort the current run, whichever client started it; does nothing if there is none."""
        self._client.ask(api.Mutation(session=self.id), api.Nothing, command="abort")

    def set_model(self, model: str, provider: str | None = None) -> api.ModelName:
        """Switch the model from the next run on."""
        return self._client.ask(api.SetModel(session=self.id, model=model, provider=provider), api.ModelName)

    def state(self) -> api.State:
        """Return the model, the figures and the state of the session."""
        return self._client.ask(api.OfSession(self.id), api.State, command="get_state")

    def usage(self) -> Tokens:
        """Return the tokens and the cost of the session so far."""
        return self.state().usage

    def messages(self, *, full: bool = False) -> list[Message]:
        """Return the transcript as the model sees it, oldest first; with `full` including image data."""
        return self._client.ask(api.GetMessages(session=self.id, full=full), api.Messages).messages

    def models(self) -> list[api.ModelInfo]:
        """Return the models that this session can switch to."""
        return self._client.ask(api.GetModels(session=self.id), api.Models).models

    def close(self) -> None:
        """Unload the session. An ephemeral one is deleted; a stored one can be opened again."""
        self._client.ask(api.Mutation(session=self.id), api.Nothing, command="session.close")
