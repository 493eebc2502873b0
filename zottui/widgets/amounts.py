"""Times, tokens and money as people read them at a glance."""

MINUTE_S = 60
HOUR_S = 60 * MINUTE_S
DAY_S = 24 * HOUR_S

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


def money(usd: float) -> str:
    """`$3.10`; a trifle is `<$0.01`."""
    return f"${usd:.2f}" if usd >= SMALLEST_USD or usd <= 0 else "<$0.01"
