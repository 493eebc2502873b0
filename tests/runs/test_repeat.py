"""Calls that a crash has cut, started again: as often, and in the way, that their tool allows."""

from dataclasses import dataclass, field

import pytest

from tests.sessions.desk import TIME, never_early, new_row, plan
from zotd.core import records
from zotd.core.closings import INTERRUPTED, NOT_RUN
from zotd.core.ports import Replay, StorageError, ToolContext, ToolOutcome, ToolSpec
from zotd.core.transcript import Transcript
from zotd.ledger.ledger import Ledger, Shown
from zotd.runs.context import RunStart
from zotd.runs.queue import Queue
from zotd.runs.repeat import ASKS, repeat
from zotd.runs.runner import Runner
from zotd.store.memory import Memory
from zotd.testing.script_model import ScriptModel, says
from zotd.wire.content import Text, ToolCall


@dataclass
class Tool:
    """Answers what it is told to, and remembers what it was asked."""

    name: str = "send"
    replay: Replay = Replay.RECONCILE
    states: list[str | None] = field(default_factory=list)
    """What it says of the call, one after the other; the last one again and again."""
    asked: list[tuple[bool, str | None, object]] = field(default_factory=list)
    parallel: bool = False
    extension: str | None = None

    @property
    def spec(self):
        return ToolSpec(self.name, "", {})

    async def run(self, args, context):
        self.asked.append((context.reconcile, context.operation_key, args))
        if not context.reconcile:
            return ToolOutcome([Text("sent")])
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        return ToolOutcome([Text(f"it is {state}")], state=state)


def started(replay=Replay.RECONCILE, name="send", key="c_1"):
    return records.CallStarted(
        time=TIME, run="r_1", call_id=key, name=name, args={"to": "you"}, replay=replay, operation_key="o_1"
    )


CONTEXT = ToolContext("s_1", "c_1", "/", {}, "/nowhere", lambda _: None)


def new_ledger(journal=None):
    return Ledger(new_row(), journal or Memory(), Transcript(), addressed=True)


RUNS, ASKED = (False, "o_1", {"to": "you"}), (True, "o_1", {"to": "you"})


@pytest.mark.parametrize(
    ("states", "asked", "outcome"),
    [
        (["completed"], [ASKED], "it is completed"),
        (["not_started"], [ASKED, RUNS], "sent"),
        (["unknown", None, "completed"], [ASKED] * 3, "it is completed"),
        (["unknown", "not_started"], [ASKED, ASKED, RUNS], "sent"),
    ],
)
@pytest.mark.looptime
async def test_a_tool_is_asked_first_and_the_call_made_only_when_it_had_not_started(states, asked, outcome):
    tool = Tool(states=states)
    found = await repeat(tool, started(), CONTEXT, new_ledger())
    assert (tool.asked, found.content, found.is_error) == (asked, [Text(outcome)], False)


@pytest.mark.looptime
async def test_after_five_answers_that_say_nothing_it_is_given_up(looptime):
    tool = Tool(states=["unknown"])
    found = await repeat(tool, started(), CONTEXT, new_ledger())
    assert tool.asked == [ASKED] * ASKS
    assert (found.is_error, found.state) == (True, "unknown")
    assert "possibly applied" in str(found.content)
    assert looptime == 7.5


async def test_a_call_that_may_be_repeated_gets_its_arguments_and_its_key_again():
    tool = Tool(replay=Replay.IDEMPOTENT)
    found = await repeat(tool, started(Replay.IDEMPOTENT), CONTEXT, new_ledger())
    assert (tool.asked, found.content) == ([RUNS], [Text("sent")])


@pytest.mark.parametrize("now", [None, Replay.NEVER, Replay.IDEMPOTENT, Replay.SAFE])
async def test_a_call_is_repeated_only_if_its_tool_still_allows_it(now):
    tool = None if now is None else Tool(replay=now)
    found = await repeat(tool, started(), CONTEXT, new_ledger())
    assert (found.content, found.is_error, found.state) == ([Text(INTERRUPTED)], True, "unknown")
    assert tool is None or tool.asked == []


class LostLease(Memory):
    """A journal whose sessions another process may have from a moment on."""

    def __init__(self, checks):
        super().__init__()
        self.checks = checks
        self.check_lease = self.look

    def look(self):
        if self.checks == 0:
            raise StorageError("the lease has expired")
        self.checks -= 1


@pytest.mark.parametrize(("replay", "asked"), [(Replay.RECONCILE, [ASKED]), (Replay.IDEMPOTENT, [])])
async def test_nothing_is_repeated_when_another_process_may_have_the_session(replay, asked):
    tool, ledger = Tool(replay=replay, states=["not_started"]), new_ledger(LostLease(0))
    with pytest.raises(StorageError, match="the lease has expired"):
        await repeat(tool, started(replay), CONTEXT, ledger)
    assert tool.asked == asked
    assert str(ledger.failure) == "the lease has expired"


# --- all calls of a step --------------------------------------------------------------------------------------


async def gone_on(*tools):
    """A run that was cut in a step that called these tools, of which the first had started, and went on."""
    journal = Memory()
    ledger = Ledger(new_row(), journal, Transcript(), addressed=True)
    prompt = records.Input(time=TIME, id="i", content=[Text("go")])
    attempt = records.Attempt(time=TIME, run="r_1", step=1, number=1, provider="p", model="m", input="i")
    calls = [ToolCall(f"c_{number}", tool.name, {"to": "you"}) for number, tool in enumerate(tools, 1)]
    reply = records.Reply(time=TIME, run="r_1", step=1, content=[*calls], stop="tool_use")
    cut = records.Interrupted(time=TIME, what="run", text="cut")
    history = prompt, attempt, reply, started(tools[0].replay, tools[0].name), cut
    await ledger.write([Shown(record) for record in history], durable=True)
    model = ScriptModel(says("I see."))
    made = plan(ledger, model, {tool.name: tool for tool in tools})
    runner = Runner(
        "r_2", ledger, made, queue=Queue(), start=RunStart(None), early=never_early(ledger), rested=lambda: None
    )
    assert await runner.run() == "end_turn"
    found = [one for one in await journal.records("s_1", 1) if isinstance(one, records.CallResult)]
    assert len(found) == len(tools)
    assert len(model.requests) == 1
    return {one.name: getattr(one.content[0], "text", "") for one in found}


@pytest.mark.looptime
async def test_after_a_call_of_unknown_outcome_only_reading_calls_are_made():
    read, write = Tool("read", Replay.SAFE), Tool("write", Replay.NEVER)
    found = await gone_on(Tool(states=["unknown"]), read, write)
    assert (found["read"], found["write"], write.asked) == ("sent", NOT_RUN, [])


async def test_after_a_call_of_known_outcome_the_next_calls_are_made():
    write = Tool("write", Replay.NEVER)
    found = await gone_on(Tool(states=["completed"]), write)
    assert found == {"send": "it is completed", "write": "sent"}


async def test_a_call_that_is_repeated_is_not_recorded_as_started_again():
    tool = Tool(replay=Replay.IDEMPOTENT)
    assert await gone_on(tool) == {"send": "sent"}
    assert tool.asked == [RUNS]
