"""Draws the usage of days as bars. Pure."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from zotd.client.humanize import count

MAX_DAYS = 62
"""Most days that are drawn, the newest ones: two months fit on few screens."""

MIN_BAR = 4
"""Columns that a bar needs; a narrower terminal gets the figures only."""

EIGHTHS = " ▏▎▍▌▋▊▉"
"""Ends of bars, in eighths of a column."""


@dataclass(frozen=True, slots=True)
class DayUsage:
    """What was used on a day."""

    day: date
    cost_usd: float
    tokens: int


def drawn(days: Sequence[DayUsage], *, width: int, has_blocks: bool, paint: Callable[[str], str]) -> list[str]:
    """Return a line of at most `width` columns for each day, oldest first; days without usage in between are included.

    Bars stand for the cost, or for the tokens if no cost is known. `has_blocks`: the terminal shows block characters;
    else bars are made of `#`. `paint` adds a colour to a bar.
    """
    shown = list(_gapless(sorted(days, key=lambda one: one.day)))[-MAX_DAYS:]
    has_costs = any(one.cost_usd > 0 for one in shown)
    amounts = [one.cost_usd if has_costs else float(one.tokens) for one in shown]
    figures = [f"{one.cost_usd:.4f} USD  {count(one.tokens)} tokens" for one in shown]
    room = width - len("2026-11-21") - 2 * len("  ") - max(map(len, figures), default=0)
    most = max(amounts, default=0.0)
    lines = []
    for one, amount, figure in zip(shown, amounts, figures, strict=True):
        head = one.day.isoformat()
        if room >= MIN_BAR:
            bar = _bar(amount / most if most else 0.0, room, has_blocks=has_blocks)
            head += f"  {paint(bar)}{' ' * (room - len(bar))}" if bar else " " * (room + 2)
        lines.append(f"{head}  {figure}"[: None if room >= MIN_BAR else width])
    return lines


def _bar(part: float, room: int, *, has_blocks: bool) -> str:
    """Return a bar of that part of the room; something small is still visible."""
    if part <= 0:
        return ""
    if not has_blocks:
        return "#" * max(1, round(part * room))
    eighths = max(1, round(part * room * 8))
    return ("█" * (eighths // 8) + EIGHTHS[eighths % 8]).rstrip()


def _gapless(days: Sequence[DayUsage]) -> Iterator[DayUsage]:
    last: date | None = None
    for one in days:
        # A clock that was wrong once must not add thousands of empty lines.
        missing = min((one.day - last).days - 1, MAX_DAYS) if last is not None else 0
        for back in range(missing, 0, -1):
            yield DayUsage(one.day - timedelta(days=back), 0.0, 0)
        yield one
        last = one.day
