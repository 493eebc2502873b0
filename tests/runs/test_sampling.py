"""What a tool call asks the model: allowed, paid for and over with the call."""

import asyncio

import msgspec
import pytest

from tests.sessions.desk import clearance, new_row, plan
from zotd.config import BudgetSection
from zotd.core import records
from zotd.core.budget import Rates
from zotd.core.model_questions import PROMPT_CHARS, SAMPLING, ModelQuestion
from zotd.core.reply import Counted, RequestAccepted, Stopped, TextChunk
from zotd.core.retry import Failure, ModelError
from zotd.core.transcript import Transcript
from zotd.ledger.ledger import Ledger, Shown
from zotd.ledger.spending import Spending
from zotd.runs import recovery
from zotd.runs.sampling import RunSampling
from zotd.store.memory import Memory
from zotd.testing.script_model import ScriptModel, says
from zotd.wire.content import Image, Message, Text, Tokens

PRICED = Rates(1.0, 5.0)
ANSWER = [[RequestAccepted()], [TextChunk("42"), Counted(Tokens(input=7, output=2, cost_usd=0.5)), Stopped("end_turn")]]


def asks(text="What is six times seven?", **more):
    return ModelQuestion("mcp-srv", [Message("user", [Text(text)], "")], "Be brief.", **more)


class Asked(ScriptModel):
    """A model that says when it is asked."""

    def __init__(self, *replies, **more):
        super().__init__(*replies, **more)
        self.was_asked = asyncio.Event()

    async def stream(self, request):
        self.was_asked.set()
        async for parts in super().stream(request):
            yield parts


class Bench:
    """A run in which a tool call asks the model."""

    def __init__(self, *replies, mode="yolo", **budget):
        self.ledger = Ledger(new_row(), Memory(keeps=True), Transcript(), addressed=True)
        self.model = Asked(*replies, rates=PRICED)
        made = plan(self.ledger, self.model, {})
        spending = Spending(BudgetSection(**budget))
        self.plan = msgspec.structs.replace(made, spending=spending, authorization=clearance(self.ledger, mode=mode))
        self.sampling = RunSampling("r_1", self.plan, self.ledger)

    async def stored(self):
        await self.ledger.write([], durable=True)  # after what is deferred
        return await self.ledger.journal.records("s_1", 1)


async def test_the_answer_is_counted_for_the_session_and_nothing_of_the_session_is_sent():
    bench = Bench(ANSWER)
    found = await bench.sampling.answer("c_1", asks(max_tokens=100))
    assert (found.action, found.text, found.model, found.stop) == ("accept", "42", "m", "end_turn")
    (request,) = bench.model.requests
    assert (request.system, request.tools, request.max_output) == ("Be brief.", (), 100)
    assert [message.content for message in request.messages] == [[Text("What is six times seven?")]]
    attempt, row = await bench.stored()
    assert (attempt.asked_by, attempt.number, row.purpose) == ("c_1", 0, SAMPLING)
    assert (row.tokens.input, row.failure) == (7, "")
    assert (bench.ledger.row.usage.cost_usd, bench.ledger.row.spent.cost_usd) == (0.5, 0.5)


async def test_nothing_is_sent_when_the_budget_is_used_up():
    bench = Bench(ANSWER, session_usd=0.4)
    assert (await bench.sampling.answer("c_1", asks())).action == "accept"
    found = await bench.sampling.answer("c_1", asks())
    assert found.action == "cancel"
    assert found.reason.startswith("the budget of this session is used up: ")
    assert len(bench.model.requests) == 1


async def test_a_failure_of_the_model_is_the_reason_why_there_is_no_answer_and_is_not_repeated():
    bench = Bench([ModelError(Failure.OVERLOADED, "the model is overloaded")])
    found = await bench.sampling.answer("c_1", asks())
    assert (found.action, found.reason) == ("cancel", "the model is overloaded")
    _, row = await bench.stored()
    assert row.failure == "overloaded"
    assert bench.ledger.transcript.beside == {}


async def test_a_request_ends_with_its_call_and_is_paid_as_far_as_it_came():
    bench = Bench([[RequestAccepted()], [TextChunk("4")], asyncio.Event()])
    async with asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(bench.sampling.answer("c_1", asks()))
        await bench.model.was_asked.wait()
        asking.cancel()
    _, row = await bench.stored()
    assert (row.purpose, row.failure, row.tokens) == (SAMPLING, "aborted", None)
    assert bench.ledger.row.spent.cost_usd > 0
    assert bench.ledger.transcript.beside == {}


async def test_requests_of_parallel_calls_are_sent_one_after_the_other():
    end = asyncio.Event()
    bench = Bench([end, *says("one")], says("two"))
    async with asyncio.TaskGroup() as tasks:
        first = tasks.create_task(bench.sampling.answer("c_1", asks("first")))
        second = tasks.create_task(bench.sampling.answer("c_2", asks("second")))
        await bench.model.was_asked.wait()
        assert len(bench.model.requests) == 1
        end.set()
    assert (first.result().text, second.result().text) == ("one", "two")


async def test_a_session_that_is_read_only_lets_no_tool_ask():
    bench = Bench(ANSWER, mode="read-only")
    found = await bench.sampling.answer("c_1", asks())
    assert (found.action, bench.model.requests) == ("decline", [])


async def test_a_request_that_a_crash_has_cut_is_billed_by_its_estimate_and_is_not_sent_again():
    bench = Bench()
    estimate = Tokens(input=10, cost_usd=0.25)
    attempt = records.Attempt(
        time="2026-11-21T20:11:18.919Z",
        run="r_1",
        step=0,
        number=0,
        provider="p",
        model="m",
        estimate=estimate,
        asked_by="c_1",
    )
    await bench.ledger.write([Shown(attempt)], durable=True)
    (row,) = recovery.beside_unbilled(bench.ledger.transcript, attempt.time)
    assert isinstance(row.record, records.UsageRow)
    assert (row.record.purpose, row.record.estimate, row.record.failure) == (SAMPLING, estimate, "interrupted")
    await bench.ledger.write([row], durable=True)
    assert recovery.beside_unbilled(bench.ledger.transcript, attempt.time) == []


@pytest.mark.parametrize(
    ("question", "fault"),
    [
        (ModelQuestion("x", []), "the messages do not begin with one of the user"),
        (
            ModelQuestion("x", [Message("assistant", [Text("hi")], "")]),
            "the messages do not begin with one of the user",
        ),
        (asks("x" * PROMPT_CHARS), "the prompt has more than 200,000 characters"),
        (
            ModelQuestion("x", [Message("user", [Image("image/png", 1, "AA==")] * 9, "")]),
            "the prompt has more than 8 images",
        ),
        (asks(max_tokens=-1), "the limit of output tokens is below 1"),
        (asks(), ""),
    ],
)
def test_a_question_that_cannot_be_asked_says_why(question, fault):
    assert question.fault == fault


def test_people_see_what_is_sent_and_how_much_is_left_out():
    shown = asks("y" * 10_000, max_tokens=64).shown()
    assert shown.startswith(
        "mcp-srv asks this session's model, for up to 64 tokens of output. It sends this, nothing of the"
    )
    assert "system: Be brief.\n\nuser: yyy" in shown
    assert shown.endswith("… and 2,025 more characters")
