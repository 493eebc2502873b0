"""How long prompts are to be cached, and whether a vendor had in its cache what it should have had."""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zotd.clock import rfc3339
from zotd.core.caching import MISSED_FROM, CacheTrace, MissReason
from zotd.core.records import PrefixDigests, UsageRow
from zotd.wire.content import Message, Text, Thinking, Tokens

MINUTE = 60.0
SYSTEM = {"/src/AGENTS.md": "a1", "skills": "b1"}
TOOLS = {"read": "c1", "bash": "d1"}
BIG = 50_000
NOW = 1_000_000.0


def prefix(system=None, tools=None, reasoning="off"):
    return PrefixDigests(system or SYSTEM, tuple((TOOLS if tools is None else tools).items()), reasoning)


def row(at, read=0, write=0, new=100, *, hour=False, took_s=0.0, begins=None, **fields):
    """The usage row of a request that was sent at that second."""
    tokens = Tokens(new, 10, read, write, cache_write_hour=write if hour else 0)
    given = {"run": "r", "step": 2, "provider": "p", "model": "m", "prefix": begins or prefix()} | fields
    return UsageRow(time=rfc3339(NOW + at + took_s), took_s=took_s, tokens=tokens, **given)


def said(tokens):
    """A conversation that is guessed to have that many tokens."""
    return [Message("user", [Text("abc" * (tokens - 1))], "")] if tokens else []


def traced(*rows):
    trace = CacheTrace()
    for one in rows:
        trace.apply(one)
    return trace


def missed(before, now, messages=()):
    return traced(*before).missed(now, messages)


WRITTEN = row(0, write=BIG)


def test_what_was_written_or_read_before_and_is_read_now_is_no_miss():
    assert missed([WRITTEN], row(10, read=BIG, write=500)) is None
    assert missed([row(0, read=BIG - 500, write=500)], row(10, read=BIG)) is None


@pytest.mark.parametrize(("lost", "is_told"), [(MISSED_FROM, True), (MISSED_FROM - 1, False)])
def test_a_miss_has_at_least_ten_thousand_tokens(lost, is_told):
    found = missed([WRITTEN], row(10, read=BIG - lost, write=lost))
    assert (found is not None) == is_told
    if found is not None:
        assert (found.tokens, found.reason) == (lost, MissReason.UNKNOWN)


CAUSES = {
    "six minutes": (row(6 * MINUTE, write=BIG), MissReason.PAUSE, "five minutes, and the pause was 6 minutes"),
    "a night": (row(600 * MINUTE, write=BIG), MissReason.PAUSE, "the pause was 10 hours"),
    "a model": (row(10, write=BIG, model="n"), MissReason.MODEL, "from p/m to p/n"),
    "a vendor": (row(10, write=BIG, provider="q"), MissReason.MODEL, "from p/m to q/m"),
    "a router": (row(10, write=BIG, answered_by="n"), MissReason.MODEL, "from p/m to p/n"),
    "a new tool": (
        row(10, write=BIG, begins=prefix(tools={**TOOLS, "weather": "e"})),
        MissReason.TOOLS,
        "new: weather",
    ),
    "a tool gone": (row(10, write=BIG, begins=prefix(tools={"read": "c1"})), MissReason.TOOLS, "gone: bash"),
    "another tool": (
        row(10, write=BIG, begins=prefix(tools={**TOOLS, "bash": "d2"})),
        MissReason.TOOLS,
        "changed: bash",
    ),
    "tools turned": (
        row(10, write=BIG, begins=prefix(tools=dict(reversed(TOOLS.items())))),
        MissReason.TOOLS,
        "another order",
    ),
    "fifty tools": (
        row(10, write=BIG, begins=prefix(tools=TOOLS | {f"t{n}": "" for n in range(50)})),
        MissReason.TOOLS,
        "new: t0, t1, t2 and 47 more",
    ),
    "instructions": (
        row(10, write=BIG, begins=prefix(system={**SYSTEM, "/src/AGENTS.md": "a2"})),
        MissReason.SYSTEM,
        "the system prompt changed (/src/AGENTS.md)",
    ),
    "no skills": (
        row(10, write=BIG, begins=prefix(system={"/src/AGENTS.md": "a1"})),
        MissReason.SYSTEM,
        "the system prompt changed (skills)",
    ),
    "effort": (row(10, write=BIG, begins=prefix(reasoning="high")), MissReason.REASONING, "from off to high"),
    "the vendor": (row(10, write=BIG), MissReason.UNKNOWN, "unknown reason"),
}


@pytest.mark.parametrize("cause", CAUSES)
def test_a_miss_has_its_reason(cause):
    now, reason, words = CAUSES[cause]
    found = missed([WRITTEN], now)
    assert (found.tokens, found.reason) == (BIG, reason)
    assert words in found.sentence(lambda tokens: tokens, "5m")


def test_a_pause_counts_from_the_start_of_the_request_that_used_the_cache_last():
    slow = row(0, write=BIG, took_s=4 * MINUTE)
    assert missed([slow], row(6 * MINUTE, write=BIG)).reason is MissReason.PAUSE


def test_what_is_kept_for_an_hour_is_expected_for_an_hour():
    written = row(0, write=BIG, hour=True)
    assert missed([written], row(59 * MINUTE, write=BIG)).reason is MissReason.UNKNOWN
    assert missed([written], row(61 * MINUTE, write=BIG)).reason is MissReason.PAUSE
    only_read = row(50 * MINUTE, read=BIG)
    assert missed([written, only_read], row(100 * MINUTE, write=BIG)).reason is MissReason.UNKNOWN


def test_a_vendor_that_does_not_say_what_it_writes_has_no_misses_without_a_cause_of_ours():
    before = [row(0, new=BIG), row(10, read=BIG)]
    assert missed(before, row(20, new=BIG)) is None
    changed = row(20, new=BIG, begins=prefix(tools={}))
    assert missed(before, changed).reason is MissReason.TOOLS
    assert missed(before[:1], changed) is None  # it may not have cached what it read once


def test_thinking_that_a_model_drops_at_a_new_prompt_is_a_reason_of_its_own():
    thought = [Message("assistant", [Thinking("hm", "sig")], "")]
    assert missed([WRITTEN], row(10, write=BIG, step=1), thought).reason is MissReason.THINKING
    assert missed([WRITTEN], row(10, write=BIG, step=2), thought).reason is MissReason.UNKNOWN
    assert (
        missed([WRITTEN], row(10, write=BIG, step=1), [Message("user", [Text("a")], "")]).reason is MissReason.UNKNOWN
    )


@pytest.mark.parametrize("reason", [MissReason.COMPACTION, MissReason.REWIND])
def test_of_a_shortened_conversation_only_what_is_left_is_expected(reason):
    trace = traced(WRITTEN)
    trace.shorten(reason, said(60_000))
    assert trace.missed(row(10, write=BIG), []).reason is reason
    assert trace.missed(row(10, read=30_000, write=20_000), []) is None
    trace.shorten(reason, said(4_000))
    assert trace.missed(row(10, write=BIG), []) is None


@pytest.mark.parametrize(
    "other",
    [
        row(5, write=BIG, purpose="compaction"),
        UsageRow(time=rfc3339(NOW + 5), run="r", step=1, provider="p", model="m", tokens=None),
        row(5, new=0),
    ],
)
def test_requests_that_say_nothing_of_the_cache_change_nothing(other):
    assert missed([WRITTEN, other], row(10, read=BIG)) is None
    assert missed([WRITTEN, other], row(10, write=BIG)).tokens == BIG


def test_a_reason_is_news_once_in_a_run_and_on_record_each_time():
    trace = traced(WRITTEN)
    for at, run, is_news in ((10, "r", True), (20, "r", False), (30, "s", True)):
        now, news = trace.compared(row(at, write=BIG, run=run), [])
        assert (now.missed, now.missed_because, news is not None) == (BIG, "unknown", is_news)
        trace.apply(now)


def test_a_prefix_is_recorded_when_it_changes_and_after_a_compaction():
    trace, kept = CacheTrace(), []
    for at, begins in enumerate([prefix(), prefix(), prefix(tools={}), prefix(tools={})]):
        now, _ = trace.compared(row(at, read=10, begins=begins), [])
        trace.apply(now)
        kept.append(now.prefix is not None)
    assert kept == [True, False, True, False]
    trace.shorten(MissReason.COMPACTION, [])
    assert trace.compared(row(9, read=10, begins=prefix(tools={})), [])[0].prefix is not None


def price(tokens):
    """Of a model for $10 a million tokens."""
    written = tokens.cache_write * 1.25 + tokens.cache_write_hour * 0.75
    usd = (tokens.input + 0.1 * tokens.cache_read + written) * 10 / 1_000_000
    return Tokens(cost_usd=usd)


@pytest.mark.parametrize(("life", "more"), [("5m", "$0.57 more"), ("1h", "$0.95 more")])
def test_the_sentence_says_what_the_miss_cost(life, more):
    found = missed([WRITTEN], row(10, write=BIG))
    assert found.sentence(price, life).startswith(
        f"50,000 tokens were read anew instead of from the vendor's cache ({more})"
    )
    assert "more)" not in found.sentence(lambda tokens: tokens, life)  # no price is known
    cached = missed([row(0, write=BIG, read=0)], row(10, new=BIG, begins=prefix(tools={})))
    assert "$0.45 more" in cached.sentence(price, life)


# --- how long -------------------------------------------------------------------------------------------------------


def life(trace, at):
    now = NOW + at
    return trace.life if now <= trace.fresh_until else trace.life_after_pause(now)


def test_it_is_five_minutes_until_a_pause_has_cost_more_than_an_hour_would_have():
    trace = CacheTrace()
    assert life(trace, 0) == "5m"
    trace.apply(row(0, write=BIG))
    assert [life(trace, minutes * MINUTE) for minutes in (1, 5, 6, 59, 61)] == ["5m", "5m", "1h", "1h", "5m"]


def test_it_stays_an_hour_as_long_as_that_would_have_been_cheaper():
    trace = traced(row(0, write=BIG), row(6 * MINUTE, write=BIG, hour=True))
    assert life(trace, 7 * MINUTE) == "1h"
    trace.apply(row(8 * MINUTE, read=BIG, write=20_000, hour=True))
    assert life(trace, 9 * MINUTE) == "1h"  # saved: 1.15 x 50,000; cost: 0.75 x 70,000
    trace.apply(row(10 * MINUTE, read=BIG, write=20_000, hour=True))
    assert life(trace, 11 * MINUTE) == "5m"  # 0.75 x 90,000
    assert life(trace, 30 * MINUTE) == "1h"  # another pause


def test_a_summary_lets_the_count_begin_anew():
    trace = traced(row(0, write=BIG), row(6 * MINUTE, write=BIG, hour=True))
    trace.shorten(MissReason.COMPACTION, [])
    assert life(trace, 7 * MINUTE) == "5m"


steps = st.lists(st.tuples(st.floats(0, 7200), st.integers(0, 50_000)), max_size=30)
"""Pauses, and how many tokens each request adds."""


def costs(found):
    """What five minutes and an hour would have cost for writes and reads, by the API's price list; and the trace."""
    trace, at, size = CacheTrace(), 0.0, 0
    total = {300.0: 0.0, 3600.0: 0.0}
    for number, (pause, new) in enumerate(found):
        at += pause
        for kept_s, write in ((300.0, 1.25), (3600.0, 2.0)):
            is_hit = number > 0 and pause <= kept_s
            total[kept_s] += (0.1 * size + write * new) if is_hit else write * (size + new)
        is_hit = number > 0 and pause <= 300.0
        trace.apply(row(at, read=size if is_hit else 0, write=new if is_hit else size + new))
        size += new
    return total[300.0], total[3600.0], trace


@given(steps)
def test_an_hour_is_chosen_if_and_only_if_it_would_have_been_cheaper_so_far(found):
    short, long, trace = costs([(round(pause), new) for pause, new in found])
    if abs(short - long) > 1:
        assert trace.life == ("1h" if long < short else "5m")


events = st.lists(
    st.one_of(
        st.builds(partial(row, took_s=1.0), st.integers(0, 9000), st.integers(0, 90_000), st.integers(0, 90_000)),
        st.tuples(st.sampled_from([MissReason.COMPACTION, MissReason.REWIND]), st.integers(0, 90_000).map(said)),
    ),
    max_size=20,
)


@given(events, st.integers(0, 90_000), st.integers(0, 90_000))
def test_no_more_can_be_missed_than_was_cached_and_was_not_read(past, read, write):
    trace = CacheTrace()
    for one in past:
        trace.apply(one) if isinstance(one, UsageRow) else trace.shorten(*one)
    cached = trace.last.tokens if trace.last else 0
    found = trace.missed(row(9001, read, write), [])
    assert found is None or MISSED_FROM <= found.tokens <= min(cached - read, 100 + write)
