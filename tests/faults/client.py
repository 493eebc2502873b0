"""Two clients of one session, over all lives of the daemon: one that prompts, one that only follows.

Both keep the events that they got, as they got them, so that they can be held against the database at the end.
"""

import asyncio
from collections.abc import AsyncGenerator, Collection, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field

from tests.faults.workload import Plan
from zotd.client.client import Client
from zotd.client.connection import AsyncFeed
from zotd.client.errors import CallError, ClientError
from zotd.client.follow import Follower, Item
from zotd.wire import api, events
from zotd.wire.errors import Code
from zotd.wire.events import AnyEvent

AHEAD = 2
"""Inputs that are kept under way: one runs and one waits, so that a kill always meets both."""

REFUSALS = ("busy", "conflict")
"""Answers to `continue` that are none of the rig's business: a prompt that was sent again has made it go on already."""

STEER_EVERY = 4
"""Every so many inputs are to join the run that they meet."""

CATCH_UP_S = 30.0
"""Longest wait until a follower has all events: it comes back within 10 s after many failures."""


class Pulse:
    """What clients see happen in one life of a daemon, counted, so that the life may end at one of these beats."""

    def __init__(self) -> None:
        self._left = 0
        self._reached = asyncio.Event()

    def begin(self, beats: int) -> None:
        """A new life; `wait` ends after so many beats."""
        self._left = beats
        self._reached.clear()

    def beat(self) -> None:
        """Something has happened."""
        self._left -= 1
        if self._left <= 0:
            self._reached.set()

    def stop(self) -> None:
        """Nothing more will happen."""
        self._reached.set()

    async def wait(self) -> None:
        """Until it has happened often enough, or nothing more will."""
        await self._reached.wait()


@dataclass
class Sent:
    """A prompt that was sent, perhaps more than once."""

    request: str
    message: str
    when_busy: str
    answer: api.Started | None = None
    """The first answer; None as long as none has come, and it is sent again."""


@dataclass
class Seen:
    """What a client has got of a session."""

    session: str
    cursor: api.Cursor
    events: list[AnyEvent] = field(default_factory=list)
    """Those with a `seq`, in the order of their arrival, nothing left out."""
    problems: list[str] = field(default_factory=list)
    """What a client must never see."""

    def attached(self, snapshot: api.Attached) -> None:
        """A client that says where it was gets what it missed."""
        if snapshot.mode != "resumed":
            self.problems.append(f"{self.session}: the cursor {self.cursor.seq} was refused: {snapshot.reason}")
        self.cursor = api.Cursor(snapshot.epoch, self.cursor.seq)

    def take(self, batch: list[AnyEvent]) -> None:
        """Keep what counts."""
        for event in batch:
            if event.seq is not None and not isinstance(event, events.ReplayComplete):
                self.events.append(event)
                self.cursor = api.Cursor(self.cursor.epoch, event.seq)


class Sender:
    """Keeps a session busy. What it has sent and not heard of it sends again, with the same `request_id`."""

    def __init__(
        self, seen: Seen, plans: Iterator[Plan], resume: str, pulse: Pulse, *, ends_life: Collection[Code] = ()
    ) -> None:
        """`resume`: one of `homes.RESUME`. `pulse` beats at each model call, tool call and result of the session.

        `ends_life`: refusals that mean no more than the death of the daemon. All others are problems.
        """
        self.seen = seen
        self.sent: list[Sent] = []
        self.quota: int | None = None
        """How many prompts it may still send; None: as many as keep it busy. At 0 it leaves a session that rests."""
        self._pulse = pulse
        self._plans = plans
        self._resume = resume
        self._ends_life = ends_life
        self._unfinished: dict[str, str | None] = {}
        """Accepted inputs, and the run of each that has started."""
        self.is_at_rest = False
        """The last life ended because all that was accepted has ended."""
        self._is_active = False
        self._is_held = False
        self._past = 0
        """What happened up to this `seq` is in the snapshot already."""

    async def live(self, path: str, env: Mapping[str, str]) -> None:
        """One life of the daemon: until that is over, or (with the quota 0) the session rests."""
        self.is_at_rest = False
        try:
            async with Client.connect(path=path, env=env, autostart=False, name="sender") as client:
                with client.connection.feed(self.seen.session) as feed:
                    await self._attach(client)
                    await self._work(client, feed)
            self.is_at_rest = True
        except CallError as error:
            if error.code not in self._ends_life:
                self.seen.problems.append(f"{self.seen.session}: {error.code}: {error.sentence}")
        except ClientError:
            return  # it is dead

    async def _attach(self, client: Client) -> None:
        snapshot = await client.attach(self.seen.session, after=self.seen.cursor)
        self.seen.attached(snapshot)
        self._past = snapshot.seq
        self._is_held = snapshot.session.state == "held"
        # What is held goes on by itself in a moment, when that is configured.
        self._is_active = snapshot.session.state == "running" or (self._is_held and self._resume == "auto")
        for sent in self.sent[-AHEAD - 1 :]:  # also what was answered: the client might have forgotten it
            await self._send(client, sent)

    async def _go_on(self, client: Client) -> None:
        """Say that what is held may go on."""
        self._is_held = False
        if self._resume == "prompt":
            await self._prompt(client)
        if self._resume != "continue":
            return
        self._is_active = True
        try:
            await client.ask(api.RunCommand(session=self.seen.session, name="continue"), api.CommandResult)
        except CallError as error:
            if error.code not in REFUSALS:
                raise

    def complain_of_unrest(self) -> None:
        """Note what it still waits for."""
        waiting = sorted(key for key, run in self._unfinished.items() if run is None)
        self.seen.problems.append(f"{self.seen.session} does not come to rest; not started: {waiting}")

    async def _work(self, client: Client, feed: AsyncFeed) -> None:
        while True:
            if self._is_held:
                await self._go_on(client)
            while self.quota != 0 and len(self._unfinished) < AHEAD:
                await self._prompt(client)
            has_all = self.seen.cursor.seq >= self._past  # what was missed comes behind the snapshot
            if self.quota == 0 and has_all and not self._is_active and not self._waiting:
                return
            batch = await feed.batch()
            self.seen.take(batch)
            for event in batch:
                self._follow(event)

    @property
    def _waiting(self) -> bool:
        return any(run is None for run in self._unfinished.values())

    async def _prompt(self, client: Client) -> None:
        if self.quota:
            self.quota -= 1
        plan = next(self._plans)
        when_busy = "queue" if len(self.sent) % STEER_EVERY else "steer"
        self.sent.append(Sent(f"request-{plan.key}", plan.message, when_busy))
        await self._send(client, self.sent[-1])

    async def _send(self, client: Client, sent: Sent) -> None:
        params = api.Prompt(
            session=self.seen.session, message=sent.message, when_busy=sent.when_busy, request_id=sent.request
        )
        answer = await client.ask(params, api.Started)
        if answer.input is None:
            self.seen.problems.append(f"{self.seen.session}: {sent.message} was accepted without an id")
        elif sent.answer is None:
            sent.answer = answer
            if not self._has_started(answer.input):
                self._unfinished.setdefault(answer.input, None)
        elif sent.answer.input != answer.input:
            said = f"{sent.request} was input {sent.answer.input} and then {answer.input}"
            self.seen.problems.append(f"{self.seen.session}: {said}")

    def _has_started(self, key: str) -> bool:
        return any(isinstance(event, events.UserMessage) and event.input == key for event in self.seen.events)

    def _follow(self, event: AnyEvent) -> None:
        is_past = event.seq is None or event.seq <= self._past
        match event:
            case events.UserMessage(input=str(key), run=run):
                self._unfinished[key] = run
            case events.TurnStart() | events.ToolCallEvent() | events.ToolResultEvent() if not is_past:
                self._is_active = True
                self._pulse.beat()
            case events.QueueChanged(held=True) if not is_past:  # the session was still being read when we attached
                self._is_held = True
            case events.Done(run=run):
                self._unfinished = {key: its for key, its in self._unfinished.items() if its != run}
                self._is_active &= is_past


class Watcher:
    """Follows a session with the client's own follower, which comes back by itself."""

    def __init__(self, seen: Seen, path: str, env: Mapping[str, str]) -> None:
        self.seen = seen
        self._follower = Follower(seen.session, after=seen.cursor, path=path, env=env, name="watcher")
        self._moved = asyncio.Condition()

    async def follow(self) -> None:
        """For ever; to be cancelled."""
        items: AsyncGenerator[Item, None]
        try:
            async with aclosing(self._follower.items()) as items:
                async for item in items:
                    await self._take(item)
        except CallError as error:
            self.seen.problems.append(f"{self.seen.session}: the follower was refused: {error}")

    async def _take(self, item: Item) -> None:
        if isinstance(item, api.Attached):
            self.seen.attached(item)
        elif isinstance(item, list):
            self.seen.take(item)
            async with self._moved:
                self._moved.notify_all()

    async def until(self, seq: int) -> None:
        """Wait until it has got this event; whoever asks finds out what is missing."""
        try:
            async with asyncio.timeout(CATCH_UP_S), self._moved:
                await self._moved.wait_for(lambda: self.seen.cursor.seq >= seq)
        except TimeoutError:
            self.seen.problems.append(f"{self.seen.session}: the follower stopped at {self.seen.cursor.seq} of {seq}")
