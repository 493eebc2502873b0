"""Budgets: the cost of a model request, and whether another request may start.

    estimate -> reserved while the request is under way -> settled with its actual cost

A budget limits money, tokens or both. A request may start while something is left of each, so a budget is exceeded by
the request that uses it up. Concurrent requests see each other's reservations, so they cannot all spend the last dollar; they
exceed the budget by what they cost beyond their estimates (`docs/durability.md`, Budgets).
"""

from collections.abc import Iterable, Sequence
from decimal import Decimal

from msgspec import Struct

from zotd.core.records import CacheLife, UsageRow
from zotd.wire.content import Block, Image, Message, Text, Thinking, Tokens, ToolCall, ToolResult

OUTPUT_TOKENS = 4_096
"""Output tokens that an estimate assumes. Replies of agents have about 300; those that write files a few thousand."""

CHARS_PER_TOKEN = 3
"""Assumed for text that no model has counted. English and code have about 4, so estimates are rather too high."""

IMAGE_TOKENS = 1_600
"""The most that vendors count for an image of a size that they do not scale down."""

WARN_FROM = 0.8
"""Fraction of a budget at which users are warned."""

MILLION = 1_000_000


class Rates(Struct, frozen=True):
    """Prices in USD per million tokens."""

    input: float
    output: float

    def usd(self, tokens: Tokens) -> float:
        """Return the price of these tokens in USD, as if none of them were cached for less than an hour."""
        # What is written for an hour costs twice as much as what is only read.
        read = tokens.input + tokens.cache_read + tokens.cache_write + tokens.cache_write_hour
        return (read * self.input + tokens.output * self.output) / MILLION


class FlatPrices(Struct, frozen=True):
    """Prices in USD per million tokens that depend neither on the time nor on the length of the request."""

    input: Decimal
    output: Decimal
    cache_read: Decimal
    cache_write: Decimal
    cache_write_hour: Decimal
    """Of a token that is written for an hour instead of five minutes."""
    request: Decimal
    """Price of a million requests, of a vendor that charges for each one."""

    def usd(self, tokens: Tokens) -> float:
        """Return the price of a request with these tokens in USD."""
        read = tokens.input * self.input + tokens.cache_read * self.cache_read + tokens.cache_write * self.cache_write
        if tokens.cache_write_hour:
            read += tokens.cache_write_hour * (self.cache_write_hour - self.cache_write)
        return float((read + tokens.output * self.output + self.request) / MILLION)


FREE = Rates(0.0, 0.0)
"""Prices of a local model."""

GUESSED = Rates(10.0, 50.0)
"""Prices assumed for a model whose price is unknown; few models for agents cost more."""


class Floor(Struct, frozen=True):
    """Minimum charged for a request of unknown cost."""

    usd: float = 0.0
    tokens: int = 0


class BudgetLimits(Struct, frozen=True):
    """Limits of a budget; None means unlimited."""

    usd: float | None = None
    tokens: int | None = None


class Shortage(Struct, frozen=True):
    """How far one limit of a budget is used up."""

    unit: str
    """`usd` or `tokens`."""
    limit: float
    spent: float
    reserved: float
    """Reserved by requests under way; the unused part is returned when they end."""

    def __str__(self) -> str:
        """Format as `$5.02 of $5.00`, followed by the reserved amount if there is one."""
        if self.unit == "usd":
            spent, limit, reserved = map(_dollars, (self.spent, self.limit, self.reserved))
        else:
            spent, limit, reserved = f"{self.spent:,}", f"{self.limit:,} tokens", f"{self.reserved:,}"
        aside = f", and {reserved} are set aside for requests under way" if self.reserved else ""
        return f"{spent} of {limit}{aside}"


def shortage(limits: BudgetLimits, spent: Tokens, reserved: Tokens | None = None) -> Shortage | None:
    """Return the limit that keeps another request from starting, or None if one may start."""
    aside = reserved or Tokens()
    # A limit that is reached counts as used up, so that a budget of 0 permits no request.
    if limits.usd is not None and spent.cost_usd + aside.cost_usd >= limits.usd:
        return Shortage("usd", limits.usd, spent.cost_usd, aside.cost_usd)
    if limits.tokens is not None and spent.total + aside.total >= limits.tokens:
        return Shortage("tokens", limits.tokens, spent.total, aside.total)
    return None


def closest(limits: BudgetLimits, spent: Tokens) -> Shortage | None:
    """Return the limit that is closest to being used up, or None if nothing is limited."""
    found: list[Shortage] = []
    if limits.usd is not None:
        found.append(Shortage("usd", limits.usd, spent.cost_usd, 0))
    if limits.tokens is not None:
        found.append(Shortage("tokens", limits.tokens, spent.total, 0))
    return max(found, key=lambda one: one.spent / one.limit, default=None)


def nearly(limits: BudgetLimits) -> BudgetLimits:
    """Return `WARN_FROM` of these limits."""
    return BudgetLimits(
        None if limits.usd is None else limits.usd * WARN_FROM,
        None if limits.tokens is None else int(limits.tokens * WARN_FROM),
    )


class Pot:
    """Amounts spent from one budget, and reserved by concurrent requests."""

    def __init__(self) -> None:
        self.spent = Tokens()
        self._reserved: dict[int, Tokens] = {}
        self._made = 0  # numbers are not reused, so settling twice is an error and not a wrong sum

    def add(self, spent: Tokens) -> None:
        """Count an amount for which no reservation was made."""
        self.spent += spent

    def empty(self) -> None:
        """Start a new day at zero. Reservations stay: their requests will be settled on the new day."""
        self.spent = Tokens()

    @property
    def reserved(self) -> Tokens:
        """Sum of the reservations of the requests under way."""
        return sum(self._reserved.values(), Tokens())

    def reserve(self, estimate: Tokens) -> int:
        """Reserve an amount for a request that is about to start; returns the reservation for `settle`."""
        self._made += 1
        self._reserved[self._made] = estimate
        return self._made

    def settle(self, reservation: int, took: Tokens) -> None:
        """Replace a reservation with the actual cost of its request. Call it once."""
        del self._reserved[reservation]
        self.spent += took


# --- estimates ------------------------------------------------------------------------------------------------


UNKNOWN = Tokens(output=OUTPUT_TOKENS, cost_usd=GUESSED.output * OUTPUT_TOKENS / MILLION)
"""Charged for an attempt without any figures: its record is damaged, or from a version that made no estimates."""


def context(messages: Sequence[Message], known: int, system: str) -> int:
    """Return roughly how many tokens a request with these messages reads.

    Args:
        messages: the transcript.
        known: tokens of the last request and its reply as counted by the vendor; 0 if there are none, then
            everything is guessed.
        system: the system prompt.
    """
    if not known:
        return len(system) // CHARS_PER_TOKEN + sum(size(message.content) for message in messages)
    tokens = known
    # `known` covers everything up to the last reply; only the messages after it have to be guessed.
    for message in reversed(messages):
        if message.role == "assistant":
            break
        tokens += size(message.content)
    return tokens


def size(content: Iterable[Block]) -> int:
    """Return roughly how many tokens these blocks have."""
    return sum(map(_tokens, content))


def estimate(reads: int, rates: Rates | None, floor: Floor, life: CacheLife = "5m") -> Tokens:
    """Return the estimate of a request that reads this many tokens; at least `floor`.

    `rates` are the model's prices; None if they are unknown. `life`: how long the vendor is asked to keep them; for an
    hour, it may have to write all of them.
    """
    # A floor in tokens is for input and output together.
    output = max(OUTPUT_TOKENS, floor.tokens - reads)
    if life == "1h":
        tokens = Tokens(cache_write=reads, output=output, cache_write_hour=reads)
    else:
        tokens = Tokens(input=reads, output=output)
    return _priced(tokens, rates, floor)


def correction(
    tokens: Tokens | None, *, is_whole: bool, expected: Tokens, rates: Rates | None, floor: Floor
) -> Tokens | None:
    """Return what budgets charge instead of the vendor's figures, or None if those are exact.

    Args:
        tokens: the vendor's figures; None if it sent none.
        is_whole: the reply is complete. Figures of a cut reply cover only its beginning.
        expected: the request's estimate.
        rates: the model's prices; None if they are unknown.
        floor: minimum for a request of unknown cost.
    """
    if tokens is None:
        return expected
    found = tokens if is_whole else _larger(tokens, expected)
    if rates is None:
        found = _priced(found, rates, floor)
    return None if found == tokens else found


def counted(row: UsageRow) -> Tokens:
    """Return what budgets charge for a recorded attempt."""
    return row.estimate or row.tokens or UNKNOWN  # an estimate is recorded only if the figures are not exact


def _dollars(amount: float) -> str:
    """Two digits after the point; four for amounts below a dollar that two would round."""
    return f"${amount:,.2f}" if amount >= 1 or round(amount, 2) == amount else f"${amount:,.4f}"


def _priced(tokens: Tokens, rates: Rates | None, floor: Floor) -> Tokens:
    # No floor for a local model: it exists for requests of unknown cost.
    usd = 0.0 if rates == FREE else max(floor.usd, (rates or GUESSED).usd(tokens))
    return Tokens(tokens.input, tokens.output, tokens.cache_read, tokens.cache_write, usd, tokens.cache_write_hour)


def _larger(one: Tokens, other: Tokens) -> Tokens:
    """The more expensive reading of one request, combined with the longer of the two replies."""
    reads = one if one.total - one.output >= other.total - other.output else other
    return Tokens(
        reads.input,
        max(one.output, other.output),
        reads.cache_read,
        reads.cache_write,
        max(one.cost_usd, other.cost_usd),
        reads.cache_write_hour,
    )


def _tokens(block: Block) -> int:
    match block:
        case Text(text):
            return len(text) // CHARS_PER_TOKEN + 1
        case Thinking(text, encrypted=encrypted):
            return (len(text) + len(encrypted) * 3 // 4) // CHARS_PER_TOKEN + 1  # three bytes are four of base64
        case Image():
            return IMAGE_TOKENS
        case ToolCall(args=args):
            return len(str(args)) // CHARS_PER_TOKEN + 1
        case ToolResult(content=content):
            return size(content)
