"""Whether a request may start, and what budgets count for it."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from zotd.core import budget
from zotd.core.budget import FREE, BudgetLimits, Floor, Pot, Rates, Shortage
from zotd.core.records import UsageRow
from zotd.wire.content import Image, Message, Text, Tokens, ToolCall, ToolResult

RATES = Rates(input=2.0, output=10.0)
TIME = "2026-11-21T20:11:18.919Z"


def usd(amount, **tokens):
    return Tokens(cost_usd=amount, **tokens)


@pytest.mark.parametrize(
    ("limits", "spent", "reserved", "lacks"),
    [
        (BudgetLimits(), usd(1e9, input=10**9), Tokens(), None),
        (BudgetLimits(usd=1.0), usd(0.99), Tokens(), None),
        (BudgetLimits(usd=1.0), usd(1.0), Tokens(), "usd"),
        (BudgetLimits(usd=1.0), usd(1.5), Tokens(), "usd"),
        (BudgetLimits(usd=1.0), usd(0.6), usd(0.39), None),
        (BudgetLimits(usd=1.0), usd(0.6), usd(0.4), "usd"),
        (BudgetLimits(tokens=100), Tokens(input=99), Tokens(), None),
        (BudgetLimits(tokens=100), Tokens(input=25, output=25, cache_read=25, cache_write=25), Tokens(), "tokens"),
        (BudgetLimits(tokens=100), Tokens(input=60), Tokens(input=40), "tokens"),
        (BudgetLimits(usd=1.0, tokens=100), usd(0.5, input=100), Tokens(), "tokens"),
        (BudgetLimits(usd=1.0, tokens=100), usd(1.0, input=50), Tokens(), "usd"),
    ],
)
def test_a_request_may_start_while_no_limit_is_reached(limits, spent, reserved, lacks):
    found = budget.shortage(limits, spent, reserved)
    assert (found and found.unit) == lacks


@pytest.mark.parametrize(
    ("limits", "spent", "reserved", "words"),
    [
        (BudgetLimits(usd=5.0), usd(5.02), Tokens(), "$5.02 of $5.00"),
        (BudgetLimits(usd=0.01), usd(0.012345), Tokens(), "$0.0123 of $0.01"),
        (BudgetLimits(tokens=200_000), Tokens(input=200_312), Tokens(), "200,312 of 200,000 tokens"),
        (
            BudgetLimits(tokens=9),
            Tokens(input=5),
            Tokens(input=4),
            "5 of 9 tokens, and 4 are set aside for requests under way",
        ),
        (BudgetLimits(usd=5.0), usd(4.6), usd(0.45), "$4.60 of $5.00, and $0.45 are set aside for requests under way"),
    ],
)
def test_a_shortage_is_formatted_with_spent_limit_and_reserved(limits, spent, reserved, words):
    assert str(budget.shortage(limits, spent, reserved)) == words


def test_closest_is_the_limit_that_is_used_up_first():
    limits = BudgetLimits(usd=10.0, tokens=1000)
    assert budget.closest(limits, usd(9.0, input=100)) == Shortage("usd", 10.0, 9.0, 0)
    assert budget.closest(limits, usd(0.1, input=900)) == Shortage("tokens", 1000, 900, 0)
    assert budget.closest(BudgetLimits(), usd(9.0)) is None


# --- estimates ------------------------------------------------------------------------------------------------


def test_an_estimate_prices_the_input_and_a_long_reply():
    found = budget.estimate(100_000, RATES, Floor())
    assert (found.input, found.output) == (100_000, budget.OUTPUT_TOKENS)
    assert found.cost_usd == pytest.approx(0.2 + 0.04096)


def test_an_estimate_is_never_below_the_configured_floor():
    found = budget.estimate(10, RATES, Floor(usd=0.5, tokens=9000))
    assert (found.total, found.cost_usd) == (9000, 0.5)


def test_what_may_be_written_for_an_hour_is_estimated_at_twice_the_price():
    found = budget.estimate(1000, RATES, Floor(), "1h")
    plain = budget.estimate(1000, RATES, Floor())
    assert (found.total, found.cache_write, found.cache_write_hour) == (plain.total, 1000, 1000)
    assert found.cost_usd == pytest.approx(plain.cost_usd + 1000 * RATES.input / 1_000_000)


def test_an_unknown_price_never_counts_as_free_and_a_local_model_always_does():
    assert budget.estimate(1000, None, Floor()).cost_usd > budget.estimate(1000, RATES, Floor()).cost_usd
    assert budget.estimate(1000, FREE, Floor(usd=0.5)).cost_usd == 0


def message(role, *content):
    return Message(role, list(content), TIME)


def test_uncounted_text_is_estimated_by_its_length():
    messages = [
        message("user", Text("x" * 300), Image("image/png", 9)),
        message("assistant", ToolCall("c", "write", {"text": "x" * 3000})),
        message("tool", ToolResult("c", False, [Text("x" * 30_000)])),
    ]
    found = budget.context(messages, 0, "s" * 600)
    assert 200 + 100 + budget.IMAGE_TOKENS + 1000 + 10_000 < found < 13_200


def test_only_messages_after_the_last_count_are_estimated():
    messages = [message("user", Text("x" * 90_000)), message("assistant", Text("y")), message("tool", Text("x" * 300))]
    assert budget.context(messages, 5000, "s" * 90_000) == 5101


EXPECTED = Tokens(input=1000, output=4096, cost_usd=0.05)


@pytest.mark.parametrize(
    ("tokens", "is_whole", "rates", "counts"),
    [
        (Tokens(900, 50, cost_usd=0.003), True, RATES, None),
        (None, True, RATES, EXPECTED),
        (None, False, None, EXPECTED),
        (Tokens(900, 1, cost_usd=0.002), False, RATES, EXPECTED),
        (Tokens(2000, 9000, cost_usd=0.1), False, RATES, None),
        (Tokens(2000, 1, cost_usd=0.004), False, RATES, Tokens(2000, 4096, cost_usd=0.05)),
        (Tokens(input=100_000, output=1000), True, None, Tokens(100_000, 1000, cost_usd=1.05)),
        (Tokens(input=100_000, output=1000), True, FREE, None),
        (Tokens(input=10, output=10), True, None, Tokens(10, 10, cost_usd=0.02)),
    ],
    ids=["known", "none given", "none given, no price", "cut", "cut, dear", "cut, longer", "no price", "own", "floor"],
)
def test_budgets_count_an_estimate_if_the_figures_are_incomplete(tokens, is_whole, rates, counts):
    found = budget.correction(tokens, is_whole=is_whole, expected=EXPECTED, rates=rates, floor=Floor(usd=0.02))
    assert found == counts


def test_an_attempt_without_any_figures_is_never_free():
    row = UsageRow(time=TIME, run="r", step=1, provider="p", model="m", tokens=None)
    assert budget.counted(row).cost_usd > 0
    assert budget.counted(row).total > 0


figures = st.integers(0, 10**7)
prices = st.builds(Rates, st.floats(0, 1000), st.floats(0, 1000)) | st.none()


@given(tokens=st.builds(Tokens, figures, figures, figures, figures, st.floats(0, 1e3)), reads=figures, rates=prices)
def test_a_cut_request_counts_at_least_its_figures_and_its_estimate(tokens, reads, rates):
    expected = budget.estimate(reads, rates, Floor(0.01, 5000))
    found = budget.correction(tokens, is_whole=False, expected=expected, rates=rates, floor=Floor(0.01, 5000)) or tokens
    assert found.output >= max(tokens.output, expected.output)
    assert found.total - found.output >= max(tokens.total - tokens.output, expected.input)
    assert rates is None or found.cost_usd >= max(tokens.cost_usd, expected.cost_usd)


# --- concurrent requests --------------------------------------------------------------------------------------


class Sharing(RuleBasedStateMachine):
    """Sessions that share a budget: requests start, and end with any cost."""

    LIMIT = 10.0
    under_way = Bundle("under_way")

    def __init__(self):
        super().__init__()
        self.pot = Pot()
        self.took: list[float] = []
        self.aside: dict[int, float] = {}

    @rule(target=under_way, estimate=st.floats(0.01, 4.0))
    def ask(self, estimate):
        before = math.fsum(self.took) + math.fsum(self.aside.values())
        if budget.shortage(BudgetLimits(usd=self.LIMIT), self.pot.spent, self.pot.reserved) is not None:
            assert before >= self.LIMIT - 1e-6, "refused although something was left"
            return None
        assert before < self.LIMIT + 1e-6, "started although nothing was left"
        key = self.pot.reserve(usd(estimate))
        self.aside[key] = estimate
        return key

    @rule(key=consumes(under_way), cost=st.floats(0, 20.0))
    def end(self, key, cost):
        if key is not None:
            del self.aside[key]
            self.took.append(cost)
            self.pot.settle(key, usd(cost))

    @invariant()
    def nothing_is_forgotten(self):
        assert self.pot.spent.cost_usd == pytest.approx(math.fsum(self.took))
        assert self.pot.reserved.cost_usd == pytest.approx(math.fsum(self.aside.values()))


TestSharing = Sharing.TestCase


@given(sessions=st.integers(1, 50), estimate=st.floats(0.01, 5.0), left=st.floats(0.01, 20.0))
def test_concurrent_requests_exceed_a_budget_by_one_request_at_most(sessions, estimate, left):
    pot = Pot()
    for _ in range(sessions):
        if budget.shortage(BudgetLimits(usd=left), pot.spent, pot.reserved) is None:
            pot.reserve(usd(estimate))
    assert pot.reserved.cost_usd < left + estimate + 1e-9
