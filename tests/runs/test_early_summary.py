"""When a session's early summary is requested, without a daemon."""

import asyncio

import msgspec

from tests.core.test_early_summary import TALK
from tests.sessions.desk import new_row, plan
from zotd.core.budget import FREE, Rates
from zotd.core.transcript import Transcript
from zotd.ledger.ledger import Ledger, Shown
from zotd.runs.early_summary import EarlyRequest
from zotd.store.memory import Memory
from zotd.testing.script_model import ScriptModel, says
from zotd.wire.content import Tokens

PRICED = Rates(1.0, 5.0)


class Bench:
    """A session with some messages, whose early summary may be requested."""

    def __init__(self, tasks, *replies, rates=PRICED):
        self.ledger = Ledger(new_row(), Memory(keeps=True), Transcript(), addressed=True)
        self.ledger.write([Shown(record) for record in TALK], durable=True)
        self.model = ScriptModel(*replies, context_window=1000, rates=rates)
        self.plan = msgspec.structs.replace(plan(self.ledger, self.model, {}), compact_early_at=0.7)
        self.early = EarlyRequest(
            self.ledger, spawn=lambda name, work: tasks.create_task(work, name=name), ended=lambda: None
        )

    def begin(self, step=1):
        self.early.begin(self.plan, "r", step)

    @property
    def state(self):
        return self.ledger.transcript.early


async def test_one_summary_is_requested_at_a_time_and_none_while_one_is_there():
    end = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        bench = Bench(tasks, [end, *says("short")])
        bench.begin()
        bench.begin(2)
        end.set()
        await bench.early.ended.wait()
        bench.begin(3)
    assert len(bench.model.requests) == 1
    assert bench.state.ready is not None
    assert bench.state.ready.text == "short"


async def test_no_summary_is_requested_from_a_model_that_is_free():
    async with asyncio.TaskGroup() as tasks:
        bench = Bench(tasks, rates=FREE)
        bench.begin()
    assert (bench.model.requests, bench.state.sent) == ([], None)


async def test_no_summary_is_requested_once_the_daemon_drains_and_the_one_under_way_ends_by_itself():
    end = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        bench = Bench(tasks, [end, *says("")], says("short"))
        bench.begin()
        bench.early.refuse()
        assert not bench.early.ended.is_set()
        end.set()
        await bench.early.ended.wait()
        bench.begin(2)
    assert len(bench.model.requests) == 1


async def test_a_request_that_is_cancelled_before_it_is_sent_costs_nothing_and_may_be_made_again():
    async with asyncio.TaskGroup() as tasks:
        bench = Bench(tasks, says("short"))
        bench.begin()
        bench.early.cancel()
        await bench.early.ended.wait()
        assert (bench.state.sent, bench.ledger.row.spent, bench.model.requests) == (None, Tokens(), [])
        bench.begin(2)
        await bench.early.ended.wait()
    assert bench.state.ready is not None


async def test_a_vendors_library_that_fails_costs_the_summary_and_nothing_else(caplog):
    async with asyncio.TaskGroup() as tasks:
        bench = Bench(tasks)  # the script is at its end
        bench.begin()
        await bench.early.ended.wait()
    assert (bench.state.sent, bench.state.ready, bench.state.may_begin) == (None, None, False)
    assert "the early summary failed" in caplog.text
