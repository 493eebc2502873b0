"""Durations, ages, counts, sizes and prices, as text for people.

The only place that formats them, so that `zot` and `zotctl` show the same value in the same form. Pure functions; none
reads a clock. Programs get the exact values from `--json`.
"""

MINUTE_S = 60
HOUR_S = 60 * MINUTE_S
DAY_S = 24 * HOUR_S

TENTHS_BELOW_S = 9.95
"""`took` shows tenths of a second below this; 9.95 would be rounded to 10.0."""

SMALLEST_USD = 0.005
"""Prices below this would be rounded to $0.00, which reads as free."""

SIZE_UNITS = (("GB", 10**9), ("MB", 10**6), ("kB", 10**3))


def duration(seconds: float) -> str:
    """Return a time span in its two largest units: `12s`, `3m 05s`, `2h 10m`, `5d`. Negative spans are `0s`."""
    whole = max(int(seconds), 0)
    if whole < MINUTE_S:
        return f"{whole}s"
    if whole < HOUR_S:
        return f"{whole // MINUTE_S}m {whole % MINUTE_S:02}s"
    if whole < DAY_S:
        return f"{whole // HOUR_S}h {whole % HOUR_S // MINUTE_S:02}m"
    return f"{whole // DAY_S}d"


def took(seconds: float) -> str:
    """Return the time that something finished took: like `duration`, but with tenths below ten seconds (`3.2s`)."""
    return f"{seconds:.1f}s" if seconds < TENTHS_BELOW_S else duration(round(seconds))


def age(seconds: float) -> str:
    """Return how long ago something happened, in the largest unit: `now` (under a minute), `3m`, `2h`, `5d`."""
    whole = max(int(seconds), 0)
    if whole < MINUTE_S:
        return "now"
    if whole < HOUR_S:
        return f"{whole // MINUTE_S}m"
    return f"{whole // HOUR_S}h" if whole < DAY_S else f"{whole // DAY_S}d"


def count(number: int) -> str:
    """Return a rounded number of tokens: `950`, `84k`, `1.2M`."""
    if number < 1_000:
        return str(number)
    if number < 999_500:
        return f"{number / 1_000:.0f}k"
    return f"{number / 1_000_000:.1f}M".replace(".0M", "M")


def counted(number: int, thing: str) -> str:
    """Return a number with its noun: `1 line`, `1,200 lines`. The plural of `thing` must end in s."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def size(number: int) -> str:
    """Return a number of bytes in powers of 1,000: `950 B`, `12.3 kB`, `4.5 MB`, `1.2 GB`."""
    for unit, factor in SIZE_UNITS:
        if number >= 0.99995 * factor:  # below, the smaller unit does not round to 1000.0
            return f"{number / factor:.1f} {unit}"
    return f"{number} B"


def money(usd: float) -> str:
    """Return a price in cents: `$3.10`; `<$0.01` for less than half a cent."""
    return f"${usd:.2f}" if usd >= SMALLEST_USD or usd <= 0 else "<$0.01"
