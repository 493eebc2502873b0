"""Times, tokens and money as people read them at a glance."""

MINUTE_S = 60
HOUR_S = 60 * MINUTE_S
DAY_S = 24 * HOUR_S

EXACT_S = 9.95
"""What took less is told in tenths of a second."""

SMALLEST_USD = 0.005
"""Less than this would be shown as nothing, which it is not."""


def duration(seconds: float) -> str:
    """`12s`, `3m 05s`, `2h 10m`, `5d`."""
    whole = max(int(seconds), 0)
    if whole < MINUTE_S:
        return f"{whole}s"
    if whole < HOUR_S:
        return f"{whole // MINUTE_S}m {whole % MINUTE_S:02}s"
    if whole < DAY_S:
        return f"{whole // HOUR_S}h {whole % HOUR_S // MINUTE_S:02}m"
    return f"{whole // DAY_S}d"


def took(seconds: float) -> str:
    """How long something that is over has taken: as `duration`, with tenths where they say something (`3.2s`)."""
    return f"{seconds:.1f}s" if seconds < EXACT_S else duration(round(seconds))


def age(seconds: float) -> str:
    """How long ago, in its largest unit: `now`, `3m`, `2h`, `5d`."""
    whole = max(int(seconds), 0)
    if whole < MINUTE_S:
        return "now"
    if whole < HOUR_S:
        return f"{whole // MINUTE_S}m"
    return f"{whole // HOUR_S}h" if whole < DAY_S else f"{whole // DAY_S}d"


def count(number: int) -> str:
    """`950`, `84k`, `1.2M`."""
    if number < 1_000:
        return str(number)
    if number < 999_500:
        return f"{number / 1_000:.0f}k"
    return f"{number / 1_000_000:.1f}M".replace(".0M", "M")


def counted(number: int, thing: str) -> str:
    """`1 line`, `1,200 lines`: for words whose plural ends with s."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def money(usd: float) -> str:
    """`$3.10`; a trifle is `<$0.01`."""
    return f"${usd:.2f}" if usd >= SMALLEST_USD or usd <= 0 else "<$0.01"
