"""One usage row for each model request, whatever becomes of it."""

import pytest

from zotd.config import BudgetSection
from zotd.core import records
from zotd.core.budget import Rates
from zotd.core.ports import SessionRow
from zotd.core.records import Settings
from zotd.core.reply import AnsweredBy, Assembler, Counted, RequestAccepted, Stopped
from zotd.core.retry import OF_UNKNOWN_COST, Failure, ModelError, RetryPolicy
from zotd.core.transcript import Transcript
from zotd.ledger.ledger import Ledger, Shown
from zotd.ledger.spending import Spending
from zotd.runs.context import RunContext
from zotd.runs.model_ladder import OnlyModel, OpenedModel
from zotd.runs.request_billing import COMPACTION, RequestBilling
from zotd.store.memory import Memory
from zotd.testing.script_model import ScriptModel
from zotd.wire.content import Text, Tokens

TIME = "2026-11-21T20:11:18.919Z"
RATES = Rates(input=2.0, output=10.0)
PRICED = Tokens(input=900, output=50, cost_usd=0.0023)
DAY = 1.0


class Till:
    """A run's purse, and the budget of the day that it pays from."""

    def __init__(self, rates=RATES, **settings):
        wanted = Settings(provider="p", model="m", **settings)
        row = SessionRow("s_1", "", "/", TIME, TIME, wanted, "idle")
        self.ledger = Ledger(row, Memory(), Transcript(), addressed=True)
        self.spending = Spending(BudgetSection(day_usd=DAY))
        plan = RunContext(
            models=OnlyModel(OpenedModel("p", "m", ScriptModel(rates=rates)), RetryPolicy()),
            settings=wanted,
            toolbox=lambda: pytest.fail("no tools"),
            system="",
            compact_at=0.85,
            tool_context=lambda *_: pytest.fail("no tools"),
            authorization=None,  # type: ignore[arg-type]  # no call is made
            spending=self.spending,
        )
        self.billing = RequestBilling(plan, self.ledger, "r_1")

    @property
    def day(self):
        (state,) = self.spending.states([])
        return state

    def answer(self, *parts):
        reply = Assembler(None, lambda: "c")
        reply.feed([RequestAccepted(), *parts])
        self.billing.answered(reply)

    def bill(self, step=1, error=None):
        row = self.billing.bill(step, error)
        assert row is not None
        return row

    async def keep(self, row):
        await self.ledger.write([Shown(row)], durable=False)


async def test_a_request_that_was_answered_counts_with_the_vendor_s_figures():
    till = Till()
    estimate = till.billing.begin()
    till.billing.admit()
    assert till.day.reserved_usd == estimate.cost_usd > 0
    till.answer(Counted(PRICED), Stopped("end_turn"))
    row = till.bill(3)
    assert (row.run, row.step, row.provider, row.model, row.purpose) == ("r_1", 3, "p", "m", "reply")
    assert (row.tokens, row.estimate) == (PRICED, None)
    assert (till.day.spent_usd, till.day.reserved_usd) == (PRICED.cost_usd, 0)
    await till.keep(row)
    assert till.ledger.row.spent == PRICED


@pytest.mark.parametrize("failure", Failure)
def test_a_request_that_failed_before_its_reply_costs_nothing_or_is_unknown(failure):
    till = Till()
    estimate = till.billing.begin()
    till.billing.admit()
    row = till.bill(1, ModelError(failure, "it failed"))
    known = failure not in OF_UNKNOWN_COST
    assert (row.tokens, row.estimate) == ((Tokens(), None) if known else (None, estimate))
    assert till.day.spent_usd == (0 if known else estimate.cost_usd)


def test_a_row_says_how_long_the_request_took_and_when_its_first_token_came():
    till = Till()
    till.billing.begin()
    till.billing.admit()
    till.answer(AnsweredBy("m-2026"), Counted(PRICED), Stopped("end_turn"))
    till.billing.first_token()
    row = till.bill(1)
    assert 0 <= row.first_s <= row.took_s
    assert (row.failure, row.answered_by) == ("", "m-2026")
    till.billing.begin()
    till.billing.admit()
    assert till.bill(1, ModelError(Failure.OVERLOADED, "busy")).first_s is None  # not that of the request before


@pytest.mark.parametrize(
    ("error", "sent", "failure"),
    [
        (ModelError(Failure.AUTH, "no"), True, "auth"),
        (None, True, "aborted"),
        (ModelError(Failure.REFUSED, "no"), False, "refused"),
    ],
)
def test_a_row_says_why_a_request_was_not_answered(error, sent, failure):
    till = Till()
    till.billing.begin()
    if sent:
        till.billing.admit()
    row = till.bill(1, error)
    assert (row.failure, row.took_s is not None, row.first_s) == (failure, sent, None)


async def test_an_aborted_request_of_which_nothing_came_counts_with_its_estimate():
    till = Till()
    estimate = till.billing.begin(COMPACTION)
    till.billing.admit()
    row = till.bill(1)
    assert (row.tokens, row.estimate, row.purpose) == (None, estimate, "compaction")
    await till.keep(row)
    assert till.ledger.row.spent == estimate


def test_one_that_was_aborted_before_it_was_sent_cost_nothing():
    till = Till()
    till.billing.begin()
    row = till.bill(1)
    assert (row.tokens, row.estimate, till.day.spent_usd) == (Tokens(), None, 0)


def test_a_reply_that_was_cut_counts_with_no_less_than_the_estimate():
    till = Till()
    estimate = till.billing.begin()
    till.billing.admit()
    till.answer(Counted(Tokens(input=9, output=1, cost_usd=0.0001)))
    row = till.bill(1, ModelError(Failure.CUT, "it broke"))
    assert row.tokens == Tokens(input=9, output=1, cost_usd=0.0001)
    assert row.estimate is not None
    assert (row.estimate.output, row.estimate.cost_usd) == (estimate.output, estimate.cost_usd)


def test_tokens_without_a_price_are_exact_and_their_cost_is_an_estimate():
    till = Till(rates=None)
    till.billing.begin()
    till.billing.admit()
    till.answer(Counted(Tokens(input=100_000, output=10)), Stopped("end_turn"))
    row = till.bill(1)
    assert row.tokens == Tokens(input=100_000, output=10)
    assert row.estimate is not None
    assert (row.estimate.total, row.estimate.cost_usd > 0.5) == (100_010, True)


def test_a_call_that_a_person_has_chosen_costs_nothing_also_when_no_price_is_known():
    till = Till(rates=None)
    till.billing.begin()
    till.answer(Counted(Tokens()), Stopped("tool_use"))
    row = till.bill(1)
    assert (row.tokens, row.estimate) == (Tokens(), None)


def test_what_joins_the_transcript_with_the_request_is_estimated_once():
    till = Till()
    till.billing.expect([Text("x" * 30_000)])
    assert till.billing.begin().input > 9000
    assert till.billing.begin().input < 100


def test_each_request_has_one_row():
    till = Till()
    assert till.billing.bill(1) is None
    till.billing.begin()
    till.billing.admit()
    assert isinstance(till.billing.bill(1), records.UsageRow)
    assert till.billing.bill(1) is None


async def test_nothing_is_sent_when_the_budget_of_the_day_or_of_the_session_is_used_up():
    till = Till(budget_tokens=5000)
    till.billing.begin()
    till.billing.admit()
    await till.keep(till.bill())  # an estimate of more than 5,000 tokens: nobody knows
    till.billing.begin()
    with pytest.raises(ModelError, match=r"the budget of this session is used up: 5,000 of 5,000 tokens") as refused:
        till.billing.admit()
    row = till.bill(2, refused.value)
    assert (row.tokens, row.estimate, till.day.reserved_usd) == (Tokens(), None, 0)
    till.spending.settle(till.spending.reserve(Tokens()), Tokens(cost_usd=DAY))
    till.billing.begin()
    with pytest.raises(ModelError, match="the budget of today is used up"):
        till.billing.admit()


def test_the_reserve_of_an_unrecorded_request_counts():
    till = Till()
    estimate = till.billing.begin()
    till.billing.admit()
    till.billing.close()
    till.billing.close()
    assert (till.day.spent_usd, till.day.reserved_usd) == (estimate.cost_usd, 0)
