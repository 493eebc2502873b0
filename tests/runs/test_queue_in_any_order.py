"""Whatever people do to a session, and whenever its daemon dies: each input that was accepted is used exactly once."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sessions.desk import TIME, Desk, new_row, session_of
from zotd.core import records
from zotd.core.budget import FREE
from zotd.core.closings import unrepeatable
from zotd.core.ports import Replay, ToolOutcome, ToolSpec
from zotd.core.reply import CallArgs, CallEnd, CallStart, RequestAccepted, Stopped, TextChunk
from zotd.core.retry import Failure, ModelError
from zotd.core.transcript import Transcript
from zotd.runs.queue import SubmitRequest
from zotd.store.memory import Memory
from zotd.tasks import contained
from zotd.testing.histories import assert_legal
from zotd.wire import events
from zotd.wire.api import Started
from zotd.wire.content import Text
from zotd.wire.errors import CommandError

TOOLS = {"bash": Replay.NEVER, "put": Replay.IDEMPOTENT, "read": Replay.SAFE}

MANY_TURNS = 60
"""Of the event loop: more than a step of a run takes when nobody has to wait."""


# --- the neighbours ---------------------------------------------------------------------------------------------


@dataclass
class Books:
    """What the outside knows: it outlives every crash."""

    accepted: dict[str, str] = field(default_factory=dict)
    """Inputs that their senders were told of: the id, and the words."""
    refused: set[str] = field(default_factory=set)
    """Words that a sender was told would not be used."""
    withdrawn: set[str] = field(default_factory=set)
    numbers: Iterator[int] = field(default_factory=count)
    used: list[str] = field(default_factory=list)
    """Inputs that a model was shown, in order."""
    executions: list[tuple[str, str, str | None]] = field(default_factory=list)
    """Of tools: the name, the call, the operation key."""


class Witness(Memory):
    """A journal that reads along, and that a dead daemon cannot write to any more."""

    def __init__(self, books, before=None):
        super().__init__()
        self.books = books
        self.dead = False
        self.seen = Transcript()
        """The fold of what is here."""
        self.shown = events.QueueChanged([], held=False)
        """The queue as clients have seen it last."""
        if before is not None:
            before.dead = True
            self._sessions, self.seen, self.shown = before._sessions, before.seen, before.shown

    def commit(self, row, entries, *, durable, done):
        if self.dead:
            return
        fresh: set[str] = set()
        for entry in entries:
            self._check(entry.record, fresh)
            self.seen.apply(entry.record)
            for line in entry.events.splitlines():
                event = events.DECODER.decode(line)
                if isinstance(event, events.QueueChanged):
                    self.shown = event
        super().commit(row, entries, durable=durable, done=done)

    def _check(self, record, fresh):
        match record:
            case records.Input(id=key):
                fresh.add(key)
            case records.Attempt(input=first, steered=steered):
                waiting = self.seen.waiting
                others = [key for key in waiting if key != first]
                if first is not None:
                    assert first in fresh or first == next(iter(waiting)), "not the first one that waits"
                    self.books.used.append(first)
                if steered:
                    assert steered == [key for key in others if waiting[key].mode == "steer"]
                    self.books.used.extend(steered)
            case _:
                pass


class Model:
    """Answers what the test wants, when it wants."""

    context_window = 0
    rates = FREE

    def __init__(self):
        self.answers: asyncio.Queue[str] = asyncio.Queue()
        self.waiting = 0
        self._calls = 0

    async def stream(self, request):
        assert_legal(request.messages)
        assert request.messages[-1].role != "assistant", "there is nothing to answer"
        self.waiting += 1
        try:
            answer = await self.answers.get()
        finally:
            self.waiting -= 1
        yield [RequestAccepted()]
        match answer:
            case "fails":
                raise ModelError(Failure.REFUSED, "no")
            case "calls":
                self._calls += 1
                parts = []
                for number, name in enumerate(TOOLS):
                    parts += [CallStart(number, name), CallArgs(number, "{}"), CallEnd(number)]
                yield [*parts, Stopped("tool_use")]
            case _:
                yield [TextChunk("well"), Stopped("end_turn")]

    def price(self, tokens):
        return tokens


@dataclass
class Tool:
    """Takes until the test lets it end."""

    name: str
    books: Books
    end: asyncio.Semaphore
    parallel = False
    extension = None

    @property
    def replay(self):
        return TOOLS[self.name]

    @property
    def spec(self):
        return ToolSpec(self.name, "", {})

    async def run(self, args, context):
        del args
        self.books.executions.append((self.name, context.call_id, context.operation_key))
        await self.end.acquire()
        return ToolOutcome([Text("done")])


# --- what happens -----------------------------------------------------------------------------------------------


class Life:
    """One daemon's time with the session, from its start to its death."""

    def __init__(self, tasks, books, journal, row):
        self.books = books
        self.journal = journal
        self.model = Model()
        self.end = asyncio.Semaphore(0)
        tools = {name: Tool(name, books, self.end) for name in TOOLS}
        self.desk = Desk(self.model, tools)
        self.desk.ready.set()
        self.session = session_of(row, journal, self.desk, self.spawn)
        self._tasks = tasks
        self._running = []

    def spawn(self, name, work):
        self._running.append(contained(self._tasks, name, work))

    def meanwhile(self, work):
        self._running.append(self._tasks.create_task(work))

    def die(self):
        for task in self._running:
            task.cancel()

    # --- people ---

    def prompt(self, when_busy):
        self.meanwhile(self._prompt(f"words {next(self.books.numbers)}", when_busy))

    async def _prompt(self, words, when_busy):
        try:
            await self.session.prompt(
                words,
                [],
                sender="",
                when_busy=when_busy,
                accepted=lambda started: self.books.accepted.update({started.input: words}),
                request=SubmitRequest(words, "digest"),
            )
        except CommandError:
            self.books.refused.add(words)

    def send_again(self, number):
        """A sender has not heard the answer."""
        known = list(self.books.accepted.items())
        if known:
            self.meanwhile(self._send_again(*known[number % len(known)]))

    async def _send_again(self, key, words):
        answers: list[Started] = []
        request = SubmitRequest(words, "digest")
        await self.session.prompt(words, [], sender="", when_busy="queue", accepted=answers.append, request=request)
        assert [answer.input for answer in answers] == [key]

    def withdraw(self, number):
        if key := self._one_that_waits(number):
            accepted = lambda: self.books.withdrawn.add(key)  # noqa: E731
            self.meanwhile(self._change(lambda queue: queue.withdraw(key), accepted))

    def move(self, number):
        if key := self._one_that_waits(number):
            self.meanwhile(self._change(lambda queue: queue.move(key, number % 4), lambda: None))

    async def _change(self, change, accepted):
        with suppress(CommandError):  # it has started just now
            await self.session.change_queue(change, accepted=accepted)

    def _one_that_waits(self, number):
        items = self.session.work.queue.items()
        return items[number % len(items)].id if items else None

    def abort(self, _):
        self.session.abort()

    def go_on(self, _):
        self.meanwhile(self._go_on())

    async def _go_on(self):
        with suppress(CommandError):
            await self.session.go_on(accepted=lambda _: None)

    def compact(self, _):
        self.meanwhile(self.session.compact("", accepted=lambda _: None))

    # --- the world ---

    def plans_take(self, number):
        """Runs are prepared at once, or as soon as this comes again."""
        if number % 2:
            self.desk.ready.clear()
        else:
            self.desk.ready.set()

    def answer(self, number):
        if self.model.waiting:
            self.model.answers.put_nowait(("says", "calls", "says", "fails")[number % 4])

    def tool_ends(self, _):
        self.end.release()

    # --- what holds at all times ---

    def check(self):
        waiting, items = self.journal.seen.waiting, self.session.work.queue.items()
        assert [item.id for item in items] == list(waiting)
        assert [item.id for item in self.journal.shown.items] == list(waiting), "clients see another queue"
        assert self.journal.shown.held == self.journal.seen.held
        assert all(words not in self.books.refused for words in self.books.accepted.values())

    async def drain(self):
        """Everybody is patient now: whatever waits gets its turn."""
        self.desk.ready.set()
        await turns(MANY_TURNS)
        while self.session.work.is_active or self.journal.seen.waiting:
            if not self.session.work.is_active:
                self.prompt("queue")
            self.end.release()
            if self.model.waiting:
                self.model.answers.put_nowait("says")
            await turns(5)
            self.check()


STEPS = {
    "prompt": lambda life, _: life.prompt("queue"),
    "steer": lambda life, _: life.prompt("steer"),
    "reject": lambda life, _: life.prompt("reject"),
    **{
        name: getattr(Life, name)
        for name in (
            "send_again",
            "withdraw",
            "move",
            "abort",
            "go_on",
            "compact",
            "plans_take",
            "answer",
            "tool_ends",
        )
    },
}


async def turns(number):
    for _ in range(number):
        await asyncio.sleep(0)


async def live(steps):
    """One daemon after another, until there are no more steps; what they leave is in the books."""
    books = Books()
    journal = Witness(books)
    rest = iter(steps)
    row = new_row()
    while True:
        async with asyncio.TaskGroup() as tasks:
            life = Life(tasks, books, journal, row)
            await life.session.load()
            assert not journal.seen.run_open
            assert unrepeatable(journal.seen, TIME) == []
            life.check()
            crashed = await play(life, rest)
            if not crashed:
                await life.drain()
            life.die()
        if not crashed:
            return books, journal
        journal = Witness(books, journal)
        row = await journal.row("s_1") or new_row()


async def play(life, steps):
    """Whether the daemon died in between."""
    for name, number, patience in steps:
        if name == "crash":
            life.journal.dead = True
            return True
        STEPS[name](life, number)
        await turns(patience)
        life.check()
    return False


often = ["prompt", "steer", "answer", "answer", "tool_ends"]
step = st.tuples(
    st.sampled_from([*often, *STEPS, "crash"]), st.integers(0, 7), st.sampled_from([0, 1, 2, 3, 8, MANY_TURNS])
)
"""What happens, a number for it, and how many turns the event loop gets before the next one."""


@given(st.lists(step, max_size=50))
@settings(deadline=None, max_examples=300)
def test_each_accepted_input_is_used_exactly_once_in_any_order_of_events(steps):
    books, journal = asyncio.run(live(steps))
    assert not journal.seen.waiting
    assert Counter(books.used) == Counter(books.accepted.keys() - books.withdrawn)
    said = [block.text for message in journal.seen.messages if message.role == "user" for block in message.content]
    assert len(said) == len(set(said)), "the model has read something twice"
    assert_once(books.executions)


def assert_once(executions):
    """No call of a tool that must not be repeated was; repetitions of the others are known by their key."""
    for call, times in Counter(call for name, call, _ in executions if name == "bash").items():
        assert times == 1, f"{call} has run {times} times"
    keys = {(call, key) for name, call, key in executions if name == "put"}
    assert len(keys) == len({call for call, _ in keys})
