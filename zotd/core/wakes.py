"""Wakes: the model asks to be prompted again later (`docs/timers.md`)."""

from collections.abc import Sequence

from msgspec import Struct

from zotd.wire.content import Message, Text
from zotd.wire.intervals import interval_words

NAME = "wake_later"
"""Name of the tool."""

MIN_WAKE_S = 60
MAX_WAKE_S = 7 * 24 * 3600

NOTE_CHARS = 2_000
"""Longest note."""

MAX_PENDING = 5
"""Most wakes of a session that are to come."""

MAX_CHAIN = 20
"""Wakes one after the other without a word of a person, or of another timer."""

WOKEN = "You are woken"
"""How the prompt of a wake begins."""


class WakeOrder(Struct, frozen=True):
    """What a call of `wake_later` asks for."""

    seconds: int
    note: str


class WakeError(Exception):
    """The model is not woken; the message is one sentence for it."""


def prompt_of(order: WakeOrder) -> str:
    """Return the prompt with which the model is woken."""
    return f"{WOKEN}, as you wanted to be {interval_words(order.seconds)} after this note: {order.note}"


def chained(messages: Sequence[Message]) -> int:
    """Return how many of the last prompts were wakes, one after the other."""
    count = 0
    for message in reversed(messages):
        if message.role == "user":
            if not _is_wake(message):
                break
            count += 1
    return count


def _is_wake(message: Message) -> bool:
    return any(isinstance(block, Text) and block.text.startswith(WOKEN) for block in message.content[:1])
