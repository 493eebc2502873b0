"""Bars for days."""

from datetime import date

from zotctl.day_bars import MAX_DAYS, DayUsage, drawn
from zotd.client.columns import width_of


def day(number, cost=0.0, tokens=0):
    return DayUsage(date.fromordinal(date(2026, 11, 1).toordinal() + number - 1), cost, tokens)


def lines(*days, width=60, has_blocks=True):
    return drawn(days, width=width, has_blocks=has_blocks, paint=lambda bar: bar)


def bars(shown):
    return [line.count("█") or line.count("#") for line in shown]


def test_bars_stand_for_the_cost_and_the_longest_fills_the_room():
    shown = lines(day(1, 4.0, 10), day(2, 1.0, 99_000), day(3, 2.0))
    full = bars(shown)[0]
    assert full > 10
    assert bars(shown)[1] * 4 <= full < (bars(shown)[1] + 1) * 4
    assert width_of(shown[0]) <= 60
    assert shown[1].endswith("1.0000 USD  99k tokens")


def test_bars_stand_for_tokens_where_no_cost_is_known():
    assert (
        bars(lines(day(1, tokens=100), day(2, tokens=50)))[0]
        == 2 * bars(lines(day(1, tokens=100), day(2, tokens=50)))[1]
    )


def test_days_without_usage_are_shown_and_days_are_in_order():
    shown = lines(day(4, 1.0), day(1, 1.0))
    assert [line[:10] for line in shown] == ["2026-11-01", "2026-11-02", "2026-11-03", "2026-11-04"]
    assert [bool(one) for one in bars(shown)] == [True, False, False, True]


def test_a_small_amount_is_visible_and_none_is_not():
    small, none = lines(day(1, 1000.0), day(2, 0.0001), day(3, 0.0))[1:]
    assert "▏" in small
    assert none.split() == ["2026-11-03", "0.0000", "USD", "0", "tokens"]


def test_without_block_characters_bars_are_plain():
    shown = lines(day(1, 2.0), day(2, 1.0), has_blocks=False)
    assert all(line.isascii() for line in shown)
    assert bars(shown)[0] > bars(shown)[1] > 0


def test_a_narrow_terminal_gets_the_figures_only():
    for width in (10, 20, 40, 45, 60, 200):
        shown = lines(day(1, 1.0, 1234), width=width)
        assert width_of(shown[0]) <= width
    assert "█" not in lines(day(1, 1.0), width=37)[0]


def test_only_the_newest_days_are_drawn_also_after_a_clock_that_was_wrong():
    shown = lines(DayUsage(date(1970, 1, 1), 1.0, 1), day(1, 1.0))
    assert len(shown) == MAX_DAYS
    assert shown[-1].startswith("2026-11-01")


def test_no_days_are_no_lines():
    assert lines() == []
