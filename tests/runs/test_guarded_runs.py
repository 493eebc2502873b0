"""Runs with a guard in between: what becomes of calls that are refused, changed, or aborted at any moment."""

import asyncio
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace

import pytest

from tests.sessions.desk import TIME, never_early, new_row, plan
from zotd.contributions.guards import Hooks
from zotd.core import records
from zotd.core.life import ExtensionState
from zotd.core.ports import Replay, ToolOutcome, ToolSpec
from zotd.core.reply import CallArgs, CallEnd, CallStart, Part, RequestAccepted, Stopped
from zotd.core.transcript import Transcript
from zotd.exthost.calls import CallTimeoutError
from zotd.exthost.guards import Guards
from zotd.exthost.surroundings import About
from zotd.ledger.ledger import Ledger
from zotd.runs.context import RunStart
from zotd.runs.queue import Queue
from zotd.runs.runner import Runner
from zotd.runs.tool_calls import ABORTED, NOT_STARTED
from zotd.store.memory import Memory
from zotd.testing.script_model import ScriptModel, says
from zotd.wire import events, ext
from zotd.wire.base import convert
from zotd.wire.content import Text, ToolCall


@dataclass
class Guard:
    """An `exthost.extension.SupervisedExtension` that answers what the test puts into `answers`, and is its own `Peer`."""

    name: str = "guard"
    event: str = "tool_call"
    closed: frozenset[str] = frozenset()
    questions: "asyncio.Queue[ext.EventIntercept]" = field(default_factory=asyncio.Queue)
    answers: "asyncio.Queue[dict[str, object] | Exception]" = field(default_factory=asyncio.Queue)
    state = ExtensionState.READY
    condition = "guard is ready"

    @property
    def manifest(self):
        return SimpleNamespace(closed=self.closed, scope="workspace", guard_limit_s=None)

    @property
    def offered(self):
        return SimpleNamespace(intercepts={self.event})

    @property
    def serving(self):
        return SimpleNamespace(calls=SimpleNamespace(guard_timeouts=0))

    async def available(self, within_s):
        del within_s
        return self

    async def call(self, kind, frame, *, limit_s, session):
        del kind, limit_s, session
        self.questions.put_nowait(frame("k"))
        answer = await self.answers.get()
        if isinstance(answer, Exception):
            raise answer
        return convert({"id": "k", **answer}, ext.EventInterceptResponse)


@dataclass
class Tool:
    """Says that it has begun, and waits for the word to end."""

    name: str
    parallel: bool = True
    replay: Replay = Replay.NEVER
    extension: str | None = None
    began: list[dict[str, object]] = field(default_factory=list)
    end: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def spec(self):
        return ToolSpec(self.name, "", {})

    async def run(self, args, context):
        del context
        self.began.append(args)
        await self.end.wait()
        return ToolOutcome([Text(f"{self.name} done")])


@dataclass
class Bench:
    """A run of a model that calls these tools once, all in one step, and then says `done`."""

    guard: Guard
    tools: list[Tool]
    journal: Memory = field(default_factory=Memory)

    def __post_init__(self):
        parts: list[Part] = [RequestAccepted()]
        for number, tool in enumerate(self.tools):
            parts += [CallStart(number, tool.name), CallArgs(number, '{"a": 1}'), CallEnd(number)]
        self.model = ScriptModel([[*parts, Stopped("tool_use")]], says("done"))
        self.ledger = Ledger(new_row(), self.journal, Transcript(), addressed=True)
        hooks = Hooks(Guards(partial(only, self.guard), 5.0), About("s_1", "/"), emit=lambda _: None)
        made = plan(self.ledger, self.model, {tool.name: tool for tool in self.tools}, lambda: hooks)
        first = records.Input(time=TIME, id="i_1", content=[Text("go")], sender="")
        self.runner = Runner(
            "r_1",
            self.ledger,
            made,
            queue=Queue(),
            start=RunStart(first, new=True),
            early=never_early(self.ledger),
            rested=lambda: None,
        )

    async def run(self):
        return await self.runner.run()

    async def records(self):
        return await self.journal.records("s_1", 1)

    async def results(self):
        found = [one for one in await self.records() if isinstance(one, records.CallResult)]
        return [(one.is_error, getattr(one.content[0], "text", "")) for one in found]


def only(guard):
    return [guard]


async def ticks(number):
    for _ in range(number):
        await asyncio.sleep(0)


@pytest.mark.parametrize("number", range(12))
async def test_an_abort_at_any_moment_after_the_guard_s_answer_gives_the_call_one_result(number):
    bench = Bench(Guard(), [tool := Tool("bash")])
    async with asyncio.TaskGroup() as tasks:
        run = tasks.create_task(bench.run())
        await bench.guard.questions.get()
        bench.guard.answers.put_nowait({})
        await ticks(number)
        bench.runner.abort()
    assert run.result() == "aborted"
    ((is_error, text),) = await bench.results()
    assert (is_error, text in ({ABORTED} if tool.began else {ABORTED, NOT_STARTED})) == (True, True)
    started = [one for one in await bench.records() if isinstance(one, records.CallStarted)]
    assert len(started) >= len(tool.began), "a tool ran that no restart would know of"


async def test_an_abort_while_the_guard_thinks_starts_nothing():
    bench = Bench(Guard(), [tool := Tool("bash")])
    async with asyncio.TaskGroup() as tasks:
        run = tasks.create_task(bench.run())
        await bench.guard.questions.get()
        bench.runner.abort()
    assert (run.result(), tool.began, await bench.results()) == ("aborted", [], [(True, NOT_STARTED)])
    assert bench.guard.answers.empty()


async def test_a_call_that_is_refused_does_not_hold_up_the_one_beside_it():
    first, second = Tool("one"), Tool("two")
    bench = Bench(Guard(), [first, second])
    async with asyncio.TaskGroup() as tasks:
        run = tasks.create_task(bench.run())
        asked = [(await bench.guard.questions.get()).tool_name for _ in range(2)]
        bench.guard.answers.put_nowait({"block": True, "reason": "not this one"})
        bench.guard.answers.put_nowait({})
        second.end.set()
    assert (asked, run.result(), first.began) == (["one", "two"], "end_turn", [])
    assert await bench.results() == [(True, "not this one"), (False, "two done")]


async def test_the_recorded_arguments_are_those_the_tool_gets():
    bench = Bench(Guard(), [tool := Tool("bash")])
    bench.guard.answers.put_nowait({"modified_args": {"a": 2}})
    tool.end.set()
    assert await bench.run() == "end_turn"
    assert tool.began == [{"a": 2}]
    found = await bench.records()
    assert [one.args for one in found if isinstance(one, records.CallStarted)] == [{"a": 2}]
    replies = [one for one in found if isinstance(one, records.Reply)]
    assert [block.args for block in replies[0].content if isinstance(block, ToolCall)] == [{"a": 1}]


@pytest.mark.parametrize(("closed", "outcome"), [(False, (False, "bash done")), (True, (True, "refused"))])
async def test_a_guard_that_does_not_answer_is_noted_and_means_what_its_manifest_says(closed, outcome):
    guard = Guard(closed=frozenset({"tool_call"} if closed else ()))
    bench = Bench(guard, [tool := Tool("bash")])
    guard.answers.put_nowait(CallTimeoutError("did not answer within 5 s"))
    tool.end.set()
    await bench.run()
    is_error, text = (await bench.results())[0]
    assert (is_error, text[: len(outcome[1])]) == outcome
    notes = [one for one in await bench.records() if isinstance(one, records.Note) and one.level == "warn"]
    assert [one.text for one in notes] == ["guard did not answer within 5 s (asked about tool_call)"]


async def test_the_step_is_shown_to_its_end_before_the_guard_is_asked():
    bench = Bench(Guard(), [tool := Tool("bash")])
    shown: list[events.Event] = []
    bench.ledger.observers.append(shown.extend)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(bench.run())
        await bench.guard.questions.get()
        kinds = [type(event) for event in shown]
        bench.guard.answers.put_nowait({})
        tool.end.set()
    assert kinds[-3:] == [events.AssistantMessage, events.ToolCallEvent, events.TurnEnd]
