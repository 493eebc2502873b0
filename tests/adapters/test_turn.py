"""What an agent reports during a turn, as the steps of a run."""

import asyncio
import json

import pytest

from zotd.adapters.turn import OPEN_CALLS, DrivenTurn
from zotd.adapters.updates import take_update
from zotd.core.reply import CallStart, Counted, Signature, Stopped, TextChunk, ThinkingChunk
from zotd.core.retry import ModelError
from zotd.wire.acp_reports import ReportedCall, ReportedTokens, TurnResult
from zotd.wire.base import BadFrameError


@pytest.fixture
def overruns():
    return []


@pytest.fixture
def turn(overruns):
    return DrivenTurn("Odd", overrun=overruns.append)


async def step(turn):
    return [part async for parts in turn.parts() for part in parts]


def call(key, **fields):
    return ReportedCall(key, **({"title": f"do {key}", "raw_input": {"command": key}} | fields))


async def test_text_alone_is_one_step(turn):
    turn.said("a")
    turn.said("b")
    turn.answered(TurnResult("end_turn", ReportedTokens(3, 2)))
    text, more, counted, stopped = await step(turn)
    assert (text, more, stopped) == (TextChunk("a"), TextChunk("b"), Stopped("end_turn"))
    assert (counted.tokens.input, counted.tokens.output) == (3, 2)


async def test_reasoning_ends_where_the_answer_begins(turn):
    turn.said("hm", thinks=True)
    turn.said("so")
    turn.answered(TurnResult("end_turn"))
    assert (await step(turn))[:3] == [ThinkingChunk("hm"), Signature(), TextChunk("so")]


async def test_a_step_ends_with_the_calls_that_are_announced(turn):
    turn.said("look")
    turn.reported(call("a"))
    turn.reported(call("b"))
    turn.said("later")
    names = [part.item for part in await step(turn) if isinstance(part, CallStart)]
    assert names == ["a", "b"]


async def test_a_call_is_shown_when_its_arguments_are_known(turn):
    assert not turn.reported(call("a", raw_input=None)).is_ready
    turn.reported(call("a"))
    assert (await step(turn))[-1] == Stopped("tool_use")


async def test_what_is_said_while_a_call_runs_is_in_the_next_step(turn):
    turn.reported(call("a", status="in_progress"))
    await step(turn)
    turn.said("after")
    turn.reported(call("a", status="completed", raw_output="done"))
    outcome = await turn.follow("a", "c_1", lambda _: None)
    assert outcome.content[0].text == "done"
    turn.answered(TurnResult("end_turn"))
    assert TextChunk("after") in await step(turn)


async def test_an_update_of_a_call_that_has_a_result_is_skipped(turn):
    turn.reported(call("a", status="completed"))
    await step(turn)
    await turn.follow("a", "c_1", lambda _: None)
    turn.reported(call("a", raw_output="late"))
    turn.answered(TurnResult("end_turn"))
    assert (await step(turn))[-1] == Stopped("end_turn")


async def test_a_question_with_an_id_of_its_own_belongs_to_the_call_that_runs(turn):
    turn.reported(call("a", kind="execute", status="in_progress"))
    assert turn.asked(call("perm-1", kind="execute")).id == "a"
    assert turn.asked(call("perm-2", kind="edit")).id == "perm-2"


async def test_a_question_about_a_call_that_waits_is_put_under_one_that_runs(turn):
    turn.reported(call("a", status="in_progress"))
    await step(turn)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(turn.follow("a", "c_1", lambda _: None))
        assert await turn.key_of(turn.asked(call("b", kind="edit"))) == "c_1"
        turn.failed("over")


async def test_a_question_in_a_turn_that_ends_has_no_call(turn):
    async with asyncio.TaskGroup() as tasks:
        key = tasks.create_task(turn.key_of(turn.asked(call("a"))))
        turn.failed("it died")
    assert key.result() == ""


async def test_a_turn_that_fails_shows_first_what_was_said(turn):
    turn.said("oh")
    turn.failed("it died")
    parts = turn.parts()
    assert await anext(parts) == [TextChunk("oh")]
    with pytest.raises(ModelError, match="it died"):
        await anext(parts)


@pytest.mark.parametrize(
    ("reason", "stop"), [("max_tokens", "length"), ("refusal", "refusal"), ("max_turn_requests", "end_turn")]
)
async def test_the_reason_of_the_end_is_in_our_words(turn, reason, stop):
    turn.answered(TurnResult(reason))
    assert (await step(turn))[-1] == Stopped(stop)


async def test_the_cost_is_counted_once(turn):
    turn.costs(0.25)
    turn.reported(call("a"))
    first = await step(turn)
    turn.answered(TurnResult("end_turn"))
    counted = [part.tokens.cost_usd for part in [*first, *await step(turn)] if isinstance(part, Counted)]
    assert counted == [0.25, 0.0]


async def test_too_many_open_calls_are_told(turn, overruns):
    for number in range(OPEN_CALLS + 1):
        turn.reported(call(str(number)))
    assert overruns == ["Odd has more than 256 tool calls open; it was ended"]


async def test_arguments_that_are_no_object_are_recorded_as_input(turn):
    assert turn.reported(call("a", raw_input=["x"])).args() == {"title": "do a", "input": ["x"]}


async def test_arguments_that_are_too_deep_or_too_long_are_left_out(turn):
    deep: object = "x"
    for _ in range(70):
        deep = {"in": deep}
    assert turn.reported(call("a", raw_input=deep)).args() == {"title": "do a"}
    assert turn.reported(call("b", raw_input={"x": "y" * 300_000})).args() == {"title": "do b"}


class News:
    def __init__(self):
        self.heard = []

    def costs(self, total_usd):
        self.heard.append(total_usd)

    def planned(self, steps):
        self.heard.append([(step.text, step.state) for step in steps])


@pytest.mark.parametrize("update", [b"[]", b'{"sessionUpdate":5}', b'{"sessionUpdate":"tool_call"}'])
def test_an_update_that_makes_no_sense_is_an_error(turn, update):
    with pytest.raises(BadFrameError):
        take_update(update, turn, News())


def test_a_cost_in_another_currency_is_not_counted(turn):
    euros = b'{"sessionUpdate":"usage_update","used":1,"size":2,"cost":{"amount":1.0,"currency":"EUR"}}'
    news = News()
    take_update(euros, turn, news)
    take_update(euros.replace(b"EUR", b"USD"), turn, news)
    assert news.heard == [1.0]


def test_a_plan_is_one_that_ours_can_be(turn):
    entries = [{"content": " look\naround ", "status": "in_progress"}, {"content": ""}, {"content": "x", "status": "?"}]
    news = News()
    take_update(json.dumps({"sessionUpdate": "plan", "entries": entries}).encode(), turn, news)
    assert news.heard == [[("look around", "active"), ("x", "pending")]]
