"""The daemon for programs that block, typed: `zotd.client.client` without asyncio.

    with BlockingClient.connect() as client:
        session = client.create(cwd=".")
        for event in session.prompt("what is in this directory?"): ...

One conversation at a time: while a prompt is read, other commands of the same client wait behind its events.
"""

import os
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Self, TypeVar, Unpack

from zotd.client import frames, place, settings
from zotd.client.blocking import CALL_S, HELD_LIMIT, LineSocket
from zotd.client.errors import BusyError, FellBehindError
from zotd.client.place import Place
from zotd.client.runs import Run
from zotd.client.selection import run_of, select, summary_of
from zotd.wire import api
from zotd.wire.base import Frozen
from zotd.wire.content import Message, Tokens
from zotd.wire.events import AnyEvent

T = TypeVar("T", bound=Frozen)


class BlockingClient:
    """A connection to the daemon. Made by `connect`, ended by `close`. Not for several threads."""

    def __init__(self, wire: LineSocket, where: Place) -> None:
        """Owns `wire`; `where` it leads says what new sessions run in."""
        self._wire = wire
        self._where = where
        self._last_id = 0
        self._readers: dict[str | None, list[deque[AnyEvent]]] = {}
        self._answers: dict[int, frames.ResponseFrame | None] = {}
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
        """A client for the caller to close; arguments and errors as for `client.Client.connect`."""
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
        """End the connection; what was asked goes on."""
        self._wire.close()

    def call(self, params: Frozen, *, command: str | None = None, timeout_s: float | None = CALL_S) -> Frozen:
        """Send a command and return its data; arguments and errors as for `client.Client.call`."""
        name = frames.command_for(params, command)
        self._last_id += 1
        request_id = self._last_id
        self._answers[request_id] = None
        try:
            self._wire.send(frames.encode_request(name, request_id, params))
            deadline = None if timeout_s is None else time.monotonic() + timeout_s
            while (answer := self._answers[request_id]) is None:
                self._receive(None if deadline is None else max(0.0, deadline - time.monotonic()))
        finally:
            del self._answers[request_id]
        return frames.unpack(answer, name)

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
        """A new session in the directory `cwd`, already attached."""
        created = self.ask(settings.new_session(self._where, cwd, api_key, **options), api.Created)
        self.attach(created.session.id, after=api.Cursor(created.epoch, created.seq))
        return BlockingSession(self, created.session.id)

    def session(self, session_id: str) -> "BlockingSession":
        """An existing session; whether it exists is found out at its first use."""
        return BlockingSession(self, session_id)

    def attach(self, session_id: str, *, after: api.Cursor | None = None, limit: int = 50) -> api.Attached:
        """Follow the session from now on, or from a cursor; a snapshot of it."""
        params = api.Attach(session=session_id, after=after, limit=limit, env=self._where.variables)
        snapshot = self.ask(params, api.Attached)
        self._attached.add(session_id)
        return snapshot

    def ensure_attached(self, session_id: str) -> None:
        """Follow the session, unless this connection does."""
        if session_id not in self._attached:
            self.attach(session_id, limit=1)

    @contextmanager
    def feed(self, session_id: str) -> Iterator[deque[AnyEvent]]:
        """The session's events from now on; outside of it they are thrown away. `fill` waits for more."""
        held: deque[AnyEvent] = deque()
        self._readers.setdefault(session_id, []).append(held)
        try:
            yield held
        finally:
            # By identity: two readers that hold the same events are still two.
            self._readers[session_id] = [reader for reader in self._readers[session_id] if reader is not held]

    def fill(self, feed: deque[AnyEvent]) -> list[AnyEvent]:
        """Take what the feed holds, at least one event, oldest first; waits for ever."""
        while not feed:
            self._receive(None)
        batch = list(feed)
        feed.clear()
        return batch

    def _receive(self, timeout_s: float | None) -> None:
        for frame in frames.decode(self._wire.receive(timeout_s)):
            if isinstance(frame, frames.ResponseFrame):
                self._take(frame)
                continue
            for held in self._readers.get(frame.session, ()):
                held.append(frame)
                if len(held) > HELD_LIMIT:
                    raise FellBehindError(f"{HELD_LIMIT} events of session {frame.session} were waiting to be read")

    def _take(self, answer: frames.ResponseFrame) -> None:
        if answer.is_of_unread_line:  # of the call that waits; there is one at a time
            self._answers.update(dict.fromkeys(self._answers, answer))
        elif isinstance(answer.id, int) and answer.id in self._answers:
            self._answers[answer.id] = answer


class BlockingSession:
    """A session by its id; as `session.Session`, with plain iterators."""

    def __init__(self, client: BlockingClient, session_id: str) -> None:
        """Made by `BlockingClient.create` and `BlockingClient.session`."""
        self.id = session_id
        self._client = client
        self._prompting = False

    def prompt(
        self, message: str, *, images: Sequence[api.PromptImage] = (), when_busy: str = "queue"
    ) -> Iterator[AnyEvent]:
        """Give the session an input; the events of its run, up to and with its `Done`.

        Leaving the loop early does not end the run: `abort` does. Raises `BusyError` while the prompt before is
        still being read from this object.
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
        """Everything that happens in the session from now on, for ever."""
        self._client.ensure_attached(self.id)
        with self._client.feed(self.id) as feed:
            while True:
                yield from self._client.fill(feed)

    def compact(self, instructions: str = "") -> str:
        """Summarise the transcript, after what runs now; the summary. Raises `RunFailedError` when that fails."""
        self._client.ensure_attached(self.id)
        params = api.Compact(session=self.id, instructions=instructions)
        seen: list[AnyEvent] = []
        with self._client.feed(self.id) as feed:
            # Answered when it starts, and whatever runs now may take hours.
            run = Run(None, self._client.ask(params, api.Started, timeout_s=None).run, starts_now=True)
            while not run.over:
                seen.extend(select(run, self._client.fill(feed)))
        return summary_of(seen)

    def abort(self) -> None:
        """Cancel what runs now, whoever asked for it; nothing happens when nothing runs."""
        self._client.ask(api.Mutation(session=self.id), api.Nothing, command="abort")

    def set_model(self, model: str, provider: str | None = None) -> api.ModelName:
        """Switch the model from the next run on."""
        return self._client.ask(api.SetModel(session=self.id, model=model, provider=provider), api.ModelName)

    def state(self) -> api.State:
        """Model, figures, and whether it is busy."""
        return self._client.ask(api.OfSession(self.id), api.State, command="get_state")

    def usage(self) -> Tokens:
        """Tokens and money of the session so far."""
        return self.state().usage

    def messages(self, *, full: bool = False) -> list[Message]:
        """The transcript as the model sees it, oldest first; `full` with the data of images."""
        return self._client.ask(api.GetMessages(session=self.id, full=full), api.Messages).messages

    def models(self) -> list[api.ModelInfo]:
        """The models that this session could switch to."""
        return self._client.ask(api.GetModels(session=self.id), api.Models).models

    def close(self) -> None:
        """Unload the session; an ephemeral one is gone, a stored one can be opened again."""
        self._client.ask(api.Mutation(session=self.id), api.Nothing, command="session.close")
