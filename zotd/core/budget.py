"""Budgets: what a model request counts with, and whether anything is left for another one.

    estimate -> reserved while the request is under way -> settled with what it took

A budget limits money, tokens or both. A request may start while something is left of each, so what is spent passes a
limit by one request at most. Requests that start side by side see each other's reservations: they cannot all spend
the last dollar (`docs/durability.md`, Budgets).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile

from zotd.core.records import UsageRow
from zotd.wire.content import Block, Image, Message, Text, Thinking, Tokens, ToolCall, ToolResult

OUTPUT_TOKENS = 4_096
"""What an estimate takes for a reply: replies of agents have 300 tokens or so, those that write files some thousand."""

CHARS_PER_TOKEN = 3
"""Of text that no model has counted; English and code have about 4, so that the estimate is rather too high."""

IMAGE_TOKENS = 1_600
"""The most that vendors count for an image of the sizes that they do not shrink."""

WARN_FROM = 0.8
"""The part of a budget from which on people are warned."""

MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Rates:
    """USD for a million tokens."""

    input: float
    output: float

    def usd(self, tokens: Tokens) -> float:
        """What these tokens cost, if none of them is cached."""
        read = tokens.total - tokens.output
        return (read * self.input + tokens.output * self.output) / MILLION


FREE = Rates(0.0, 0.0)
"""A model that runs on a machine of one's own."""

GUESSED = Rates(10.0, 50.0)
"""For a model whose price nobody knows; few that agents work with cost more."""


@dataclass(frozen=True, slots=True)
class Floor:
    """The least that a request of unknown cost counts with."""

    usd: float = 0.0
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class BudgetLimits:
    """A budget; None: that is not limited."""

    usd: float | None = None
    tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Shortage:
    """What of a budget is used up."""

    unit: str
    """`usd` or `tokens`."""
    limit: float
    spent: float
    reserved: float
    """Of requests under way; what they do not take comes back."""

    def __str__(self) -> str:
        """`$5.02 of $5.00`, and what is reserved."""
        if self.unit == "usd":
            spent, limit, reserved = map(_dollars, (self.spent, self.limit, self.reserved))
        else:
            spent, limit, reserved = f"{self.spent:,}", f"{self.limit:,} tokens", f"{self.reserved:,}"
        aside = f", and {reserved} are set aside for requests under way" if self.reserved else ""
        return f"{spent} of {limit}{aside}"


def shortage(limits: BudgetLimits, spent: Tokens, reserved: Tokens | None = None) -> Shortage | None:
    """What keeps another request from starting; None: something is left of everything that is limited."""
    aside = reserved or Tokens()
    if limits.usd is not None and spent.cost_usd + aside.cost_usd >= limits.usd:
        return Shortage("usd", limits.usd, spent.cost_usd, aside.cost_usd)
    if limits.tokens is not None and spent.total + aside.total >= limits.tokens:
        return Shortage("tokens", limits.tokens, spent.total, aside.total)
    return None


def closest(limits: BudgetLimits, spent: Tokens) -> Shortage | None:
    """The part of the budget that is used up first; None: nothing is limited."""
    found: list[Shortage] = []
    if limits.usd is not None:
        found.append(Shortage("usd", limits.usd, spent.cost_usd, 0))
    if limits.tokens is not None:
        found.append(Shortage("tokens", limits.tokens, spent.total, 0))
    return max(found, key=lambda one: one.spent / one.limit, default=None)


class Pot:
    """What is taken from one budget by requests that run side by side."""

    def __init__(self) -> None:
        self.spent = Tokens()
        self._reserved: dict[int, Tokens] = {}
        self._made = 0

    def add(self, spent: Tokens) -> None:
        """Count what was spent without a reservation."""
        self.spent += spent

    def empty(self) -> None:
        """Begin a new day; reservations stay."""
        self.spent = Tokens()

    @property
    def reserved(self) -> Tokens:
        """What the requests under way may take, by their estimates."""
        return sum(self._reserved.values(), Tokens())

    def reserve(self, estimate: Tokens) -> int:
        """Set this aside for a request that starts; the result is for `settle`."""
        self._made += 1
        self._reserved[self._made] = estimate
        return self._made

    def settle(self, reservation: int, took: Tokens) -> None:
        """Count what the request took instead of what was set aside for it; once."""
        del self._reserved[reservation]
        self.spent += took


# --- estimates ------------------------------------------------------------------------------------------------


UNKNOWN = Tokens(output=OUTPUT_TOKENS, cost_usd=GUESSED.output * OUTPUT_TOKENS / MILLION)
"""An attempt of which nothing at all is known: its record is damaged, or of a version that made no estimates."""


def context(messages: Sequence[Message], known: int, system: str) -> int:
    """Roughly how many tokens a request with these messages reads.

    `known`: what the last request and its reply took; 0: nobody has counted, and everything is guessed.
    """
    if not known:
        return len(system) // CHARS_PER_TOKEN + sum(size(message.content) for message in messages)
    new = takewhile(lambda message: message.role != "assistant", reversed(messages))
    return known + sum(size(message.content) for message in new)


def size(content: Iterable[Block]) -> int:
    """Roughly how many tokens these blocks are."""
    return sum(map(_tokens, content))


def estimate(reads: int, rates: Rates | None, floor: Floor) -> Tokens:
    """What a request that reads so many tokens counts with, as long as nobody knows better; at least `floor`.

    `rates` are the model's; None: nobody knows its price.
    """
    tokens = Tokens(input=reads, output=max(OUTPUT_TOKENS, floor.tokens - reads))
    return _priced(tokens, rates, floor)


def correction(
    tokens: Tokens | None, *, is_whole: bool, expected: Tokens, rates: Rates | None, floor: Floor
) -> Tokens | None:
    """What budgets count for a request instead of `tokens`, the vendor's figures; None: those are exact.

    `is_whole`: the reply came to its end; the figures of one that was cut are those of its beginning. `expected`: the
    request's estimate.
    """
    if tokens is None:
        return expected
    found = tokens if is_whole else _larger(tokens, expected)
    if rates is None:
        found = _priced(found, rates, floor)
    return None if found == tokens else found


def counted(row: UsageRow) -> Tokens:
    """What budgets count for an attempt."""
    return row.estimate or row.tokens or UNKNOWN


def _dollars(amount: float) -> str:
    """Cents, and what is below them for small amounts."""
    return f"${amount:,.2f}" if amount >= 1 or round(amount, 2) == amount else f"${amount:,.4f}"


def _priced(tokens: Tokens, rates: Rates | None, floor: Floor) -> Tokens:
    usd = 0.0 if rates == FREE else max(floor.usd, (rates or GUESSED).usd(tokens))
    return Tokens(tokens.input, tokens.output, tokens.cache_read, tokens.cache_write, usd)


def _larger(one: Tokens, other: Tokens) -> Tokens:
    """The dearer of two figures of one request, with the longer of the two replies."""
    reads = one if one.total - one.output >= other.total - other.output else other
    return Tokens(
        reads.input,
        max(one.output, other.output),
        reads.cache_read,
        reads.cache_write,
        max(one.cost_usd, other.cost_usd),
    )


def _tokens(block: Block) -> int:
    match block:
        case Text(text) | Thinking(text):
            return len(text) // CHARS_PER_TOKEN + 1
        case Image():
            return IMAGE_TOKENS
        case ToolCall(args=args):
            return len(str(args)) // CHARS_PER_TOKEN + 1
        case ToolResult(content=content):
            return size(content)
