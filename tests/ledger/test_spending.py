"""What all sessions may spend together, and each of them."""

from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace

from zotd.config import BudgetSection
from zotd.core.ports import SessionRow
from zotd.core.records import Settings
from zotd.ledger.spending import Spending, check_budget
from zotd.wire.content import Tokens
from zotd.wire.errors import Code, CommandError
from zotd.wire.families import SessionParent

TIME = "2026-11-21T20:11:18.919Z"
NOON = datetime(2026, 11, 21, 12).astimezone()
NOTHING = Tokens()
PLAIN = Settings(provider="p", model="m")


def usd(amount):
    return Tokens(cost_usd=amount)


class Clock:
    """Local time that a test moves."""

    def __init__(self):
        self.time = NOON

    def __call__(self):
        return self.time.timestamp()


@pytest.fixture
def clock():
    return Clock()


def spend(spending, amount):
    spending.settle(spending.reserve(NOTHING), usd(amount))


def own(**budget):
    return Settings(provider="p", model="m", **budget)


def row(spent, name="walrus", **budget):
    return SessionRow("s_1", name, "/", TIME, TIME, own(**budget), "idle", spent=spent)


def test_without_a_budget_nothing_is_refused():
    spending = Spending()
    spend(spending, 1e6)
    assert spending.refusal(row(usd(1e6))) is None
    assert (spending.states([row(usd(9))]), spending.warnings([row(usd(9))])) == ([], [])


def test_all_sessions_spend_from_the_budget_of_the_day():
    spending = Spending(BudgetSection(day_usd=1.0))
    spend(spending, 0.75)
    assert spending.refusal(row(NOTHING)) is None
    spend(spending, 0.5)
    with pytest.raises(CommandError) as refused:
        spending.check(row(NOTHING))
    assert refused.value.code is Code.BUDGET_EXCEEDED
    assert refused.value.sentence == (
        "the budget of today is used up: $1.25 of $1.00; "
        "raise budget.day_usd in config.toml and run zotctl reload, or continue tomorrow"
    )


def test_requests_that_start_at_once_cannot_all_spend_the_last_dollar():
    spending = Spending(BudgetSection(day_usd=1.0))
    reserved = [spending.reserve(usd(0.4)) for _ in range(8) if spending.refusal(row(NOTHING)) is None]
    assert len(reserved) == 3
    assert "$1.20 are set aside for requests under way" in (spending.refusal(row(NOTHING)) or "")
    for reservation in reserved:
        spending.settle(reservation, usd(0.01))
    assert spending.refusal(row(NOTHING)) is None


async def test_recorded_costs_since_midnight_count(clock):
    spending = Spending(BudgetSection(day_usd=1.0), now=clock)
    asked = []

    async def since(time):
        asked.append(datetime.fromisoformat(time))
        return usd(2.0)

    await spending.recall(since)
    assert asked == [NOON.replace(hour=0)]
    assert spending.refusal(row(NOTHING)) is not None


async def test_nothing_is_looked_up_for_a_day_without_a_budget():
    await Spending(BudgetSection(session_usd=1.0)).recall(lambda _: pytest.fail("asked"))


def test_a_new_day_begins_with_nothing_spent(clock):
    spending = Spending(BudgetSection(day_usd=1.0), now=clock)
    spend(spending, 1.0)
    late = spending.reserve(usd(0.5))
    clock.time += timedelta(hours=11)
    assert spending.refusal(row(NOTHING)) is not None
    clock.time += timedelta(hours=2)
    assert spending.refusal(row(NOTHING)) is None
    spending.settle(late, usd(1.0))  # what was under way at midnight counts for the day in which it ends
    assert spending.refusal(row(NOTHING)) is not None


def test_a_clock_that_is_put_back_gives_no_second_budget(clock):
    spending = Spending(BudgetSection(day_usd=1.0), now=clock)
    spend(spending, 1.0)
    clock.time -= timedelta(days=1)
    assert spending.refusal(row(NOTHING)) is not None


@pytest.mark.parametrize(
    ("configured", "settings", "spent", "way"),
    [
        (
            BudgetSection(session_usd=1.0),
            PLAIN,
            usd(1.0),
            "$1.00 of $1.00; raise it with --budget-usd, or begin another",
        ),
        (
            BudgetSection(session_tokens=10),
            PLAIN,
            Tokens(10),
            "10 of 10 tokens; raise it with --budget-tokens, or begin",
        ),
        (BudgetSection(session_usd=1.0), own(budget_usd=2.0), usd(1.0), None),
        (BudgetSection(session_usd=2.0), own(budget_usd=1.0), usd(1.0), "$1.00 of $1.00"),
        (BudgetSection(session_usd=1.0), own(budget_tokens=10), usd(1.0), "$1.00 of $1.00"),
        (BudgetSection(session_usd=1.0), own(budget_tokens=10), Tokens(10), "10 of 10 tokens"),
        (BudgetSection(), own(budget_usd=1.0), usd(0.99), None),
    ],
)
def test_a_session_has_its_own_budget_or_the_configured_one(configured, settings, spent, way):
    sentence = Spending(configured).refusal(replace(row(spent), settings=settings))
    assert (sentence is None) == (way is None)
    assert (way or "") in (sentence or "")


def test_the_rest_of_each_budget_is_shown():
    spending = Spending(BudgetSection(day_usd=10.0))
    spend(spending, 4.0)
    spending.reserve(Tokens(input=5, cost_usd=1.0))
    day, session = spending.states([row(Tokens(3), name="plain"), row(Tokens(3), budget_tokens=10)])
    assert (day.scope, day.limit_usd, day.spent_usd, day.reserved_usd, day.left_usd) == ("day", 10.0, 4.0, 1.0, 5.0)
    assert (day.limit_tokens, day.left_tokens, day.reserved_tokens) == (None, None, 5)
    assert (session.scope, session.session, session.name) == ("session", "s_1", "walrus")
    assert (session.limit_tokens, session.spent_tokens, session.left_tokens) == (10, 3, 7)


def test_one_is_warned_when_four_fifths_are_spent():
    spending = Spending(BudgetSection(day_usd=10.0, session_tokens=100))
    spend(spending, 7.9)
    assert spending.warnings([row(Tokens(79))]) == []
    spend(spending, 0.1)
    assert spending.warnings([row(Tokens(80)), row(Tokens(100), name="")]) == [
        "the budget of today is nearly used up: $8.00 of $10.00",
        "the budget of walrus is nearly used up: 80 of 100 tokens",
        "the budget of s_1 is used up: 100 of 100 tokens",
    ]


@pytest.mark.parametrize(("usd_", "tokens"), [(0, None), (-1.0, None), (float("nan"), None), (None, 0)])
def test_a_budget_with_which_nothing_could_be_asked_is_refused(usd_, tokens):
    with pytest.raises(CommandError, match="must be above 0"):
        check_budget(usd_, tokens)
    check_budget(None, None)
    check_budget(0.01, 1)


def test_a_request_that_is_not_needed_now_leaves_a_fifth_of_each_budget():
    estimate = Tokens(input=100, cost_usd=0.1)
    free = Spending()
    assert not free.is_scarce(row(usd(1e6)), estimate)
    assert not free.is_scarce(row(usd(0.6), budget_usd=1.0), estimate)
    assert free.is_scarce(row(usd(0.75), budget_usd=1.0), estimate)
    assert free.is_scarce(row(Tokens(input=700), budget_tokens=1000), estimate)
    daily = Spending(BudgetSection(day_usd=1.0))
    spend(daily, 0.4)
    assert not daily.is_scarce(row(NOTHING), estimate)
    daily.reserve(usd(0.3))  # a request under way counts
    assert daily.is_scarce(row(NOTHING), estimate)


def test_what_is_spent_below_a_session_counts_for_it():
    spending = Spending(BudgetSection(session_usd=1.0))
    family = replace(row(usd(0.4)), spent_below=usd(0.6))
    assert "the budget of this session is used up: $1.00 of $1.00" in (spending.refusal(family) or "")
    assert len(spending.warnings([family])) == 1


def test_a_subagent_may_not_spend_more_than_is_left_to_those_above_it():
    spending = Spending()
    above = row(usd(1.0), budget_usd=1.0)
    child = replace(row(NOTHING), id="s_2", parent=SessionParent("s_1", "c_1"))
    below = replace(row(NOTHING), id="s_3", parent=SessionParent("s_2", "c_2", 2))
    with spending.below("s_2", lambda: above), spending.below("s_3", lambda: child):
        for one in (child, below):
            assert "the budget of the session that began this subagent is used up" in (spending.refusal(one) or "")
    assert spending.refusal(child) is None
