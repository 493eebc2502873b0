"""How long a vendor is asked to keep a session's prompts in its cache, and whether it had what it should have had.

    usage rows, in order ──> CacheTrace ──> life: "5m" or "1h", for the next request
                                       └──> missed: tokens that were read anew, and why

Everything follows from the session's records, so a restart changes neither. Times are arguments, in seconds since the
epoch.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from enum import StrEnum
from hashlib import blake2b
from math import inf
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from zotd.core.budget import size
from zotd.core.records import CacheLife, PrefixDigests, UsageRow
from zotd.wire.base import ENCODER
from zotd.wire.content import Message, Thinking, Tokens

FIVE_MINUTES_S: Final = 300.0

HOUR_S: Final = 3600.0

WRITE_5M: Final = 1.25
"""Price of a token that is written for five minutes, in prices of one that is neither written nor read from a cache."""

WRITE_1H: Final = 2.0
"""The same for an hour."""

READ: Final = 0.1
"""The same for a token that is read from the cache."""

MISSED_FROM = 10_000
"""Tokens from which a miss is reported: below, it costs a cent or two."""

KEPT_SHARE = 0.6
"""Part of an estimate that is expected in the cache after a rewind or a compaction. `budget.size` is rather too high, and a
miss that is none must not be reported."""


DIGEST_BYTES = 4
"""Enough to tell a tool from its next version."""


CENT = 0.01
"""Least cost of a miss that users are told."""


class MissReason(StrEnum):
    """Why a request did not find in the cache what the one before it had there."""

    PAUSE = "pause"
    MODEL = "model"
    TOOLS = "tools"
    SYSTEM = "system"
    REASONING = "reasoning"
    COMPACTION = "compaction"
    REWIND = "rewind"
    THINKING = "thinking"
    """Older models drop the thinking of earlier prompts, and with it what was cached behind it."""
    UNKNOWN = "unknown"


class CacheMiss(Struct, frozen=True):
    """Tokens that should have been in the cache, and were read anew."""

    tokens: int
    reason: MissReason
    detail: str = ""
    """What changed, or how long the pause was; part of a sentence."""
    was_written: bool = True
    """They were written to the cache again, which costs more than to read them; else they were only read."""

    def sentence(self, price: Callable[[Tokens], Tokens], life: CacheLife) -> str:
        """Return what happened, and what it cost if that is known.

        `price`: as `core.ports.Model.price`; `life`: for how long the tokens were written, if they were.
        """
        anew = Tokens(input=self.tokens)
        if self.was_written:
            anew = Tokens(cache_write=self.tokens, cache_write_hour=self.tokens if life == "1h" else 0)
        usd = price(anew).cost_usd - price(Tokens(cache_read=self.tokens)).cost_usd
        cost = f" (${usd:.2f} more)" if usd >= CENT else ""
        return f"{self.tokens:,} tokens were read anew instead of from the vendor's cache{cost}: {self._because()}"

    def _because(self) -> str:
        match self.reason:
            case MissReason.PAUSE | MissReason.MODEL | MissReason.TOOLS | MissReason.SYSTEM | MissReason.REASONING:
                return self.detail
            case MissReason.COMPACTION:
                return "the conversation was summarised"
            case MissReason.REWIND:
                return "the conversation was rewound"
            case MissReason.THINKING:
                return "the model drops the thinking of earlier prompts"
            case MissReason.UNKNOWN:
                return "the vendor dropped them for an unknown reason"


class CachedPrompt(Struct, frozen=True):
    """What the vendor has cached of a session, as its last answer lets expect."""

    model: str
    """Vendor and model that answered."""
    started: float
    """When the request was sent: from then on the vendor counts the life of what it used."""
    tokens: int
    """How many of the prompt are in the cache."""
    life_s: float
    reports_writes: bool
    """The vendor says what it has written. The caches of others are a best effort."""


class CacheTrace:
    """Follows the model requests of one session."""

    def __init__(self) -> None:
        self.last: CachedPrompt | None = None
        """None: nothing can be expected."""
        self.prefix: PrefixDigests | None = None
        """What the last request began with; None: not known."""
        self._told: set[tuple[str, MissReason]] = set()
        """Runs, and the reasons that were news in them."""
        self._shortened: MissReason | None = None
        """What has shortened the conversation since."""
        self._left: Sequence[Message] | None = None
        """What that has left of it."""
        self._saved = 0.0
        """What an hour instead of five minutes would have saved so far, in prices of a token."""
        self.life: CacheLife = "5m"
        """The one that would have been the cheaper one so far, for a request that is sent until `fresh_until`.

        An hour costs more for each token that is written, and saves the whole prompt at each pause of between five minutes
        and an hour.
        """
        self.fresh_until = inf
        """In seconds since the epoch; see `life_after_pause`."""

    def apply(self, row: UsageRow) -> None:
        """Take the next usage row of the session."""
        self.prefix = row.prefix or self.prefix
        tokens, last = row.tokens, self.last
        if row.purpose != "reply" or tokens is None:
            return  # a summary has a prompt of its own
        if not tokens.input + tokens.cache_read + tokens.cache_write:
            return  # as far as is known, no model has read it
        started, model = began(row), model_of(row)
        if last is not None and last.model != model:
            last = None  # with it, neither life would have saved anything
        self._weigh(tokens, started, last)
        life_s = FIVE_MINUTES_S if last is None else last.life_s
        if tokens.cache_write:
            life_s = HOUR_S if tokens.cache_write_hour else FIVE_MINUTES_S
        self.last = CachedPrompt(
            model,
            started,
            tokens.cache_read + tokens.cache_write,
            life_s,
            reports_writes=tokens.cache_write > 0 or (last is not None and last.reports_writes),
        )
        self._shortened = self._left = None
        self.fresh_until = started + FIVE_MINUTES_S

    def shorten(self, reason: MissReason, left: Sequence[Message]) -> None:
        """The conversation was compacted or rewound; this is what is left of it, without a new summary."""
        # Not counted now: a session may be loaded with many rewinds.
        self._shortened, self._left = reason, tuple(left)
        if reason is MissReason.COMPACTION:
            # A restart does not read the rows from before, so nothing of them may count.
            self.prefix, self._saved, self.life = None, 0.0, "5m"

    def life_after_pause(self, now: float) -> CacheLife:
        """Return the life for a request that is sent after `fresh_until`."""
        last, saved = self.last, self._saved
        if last is not None and now - last.started <= HOUR_S:
            saved += (WRITE_5M - READ) * last.tokens
        return "1h" if saved > 0 else "5m"

    def _weigh(self, tokens: Tokens, started: float, last: CachedPrompt | None) -> None:
        """Add what an hour would have saved at this request, and take off what it would have cost."""
        written = tokens.cache_write
        if last is not None and FIVE_MINUTES_S < started - last.started <= HOUR_S:
            self._saved += (WRITE_5M - READ) * last.tokens
            written = max(0, tokens.cache_read + written - last.tokens)  # the rest would have been read
        self._saved -= (WRITE_1H - WRITE_5M) * written
        self.life = "1h" if self._saved > 0 else "5m"

    def compared(self, row: UsageRow, messages: Sequence[Message]) -> tuple[UsageRow, CacheMiss | None]:
        """Return the row with what the cache did not have; and that, if it is news. Arguments as for `missed`.

        A reason is news once in a run. A prefix that is known from an earlier row is left out.
        """
        miss = self.missed(row, messages)
        if miss is not None:
            row = replace(row, missed=miss.tokens, missed_because=str(miss.reason))
            news = (row.run, miss.reason)
            self._told = {one for one in self._told if one[0] == row.run}
            if news in self._told or miss.reason is MissReason.THINKING:  # the latter happens at each prompt
                miss = None
            self._told.add(news)
        return (replace(row, prefix=None) if row.prefix == self.prefix else row), miss

    def missed(self, row: UsageRow, messages: Sequence[Message]) -> CacheMiss | None:
        """Return what the request of this row, which is not applied yet, should have found in the cache and did not.

        None if that is less than `MISSED_FROM`, or if it may be chance: a vendor that does not report what it writes
        promises nothing, so its misses only count if something else explains them.

        Args:
            row: with `prefix` set, also if it is the same as that of the row before.
            messages: what the request had.
        """
        last, tokens = self.last, row.tokens
        if last is None or tokens is None:
            return None
        expected = min(last.tokens, tokens.input + tokens.cache_read + tokens.cache_write)
        if self._left is not None:
            expected = min(expected, int(sum(size(message.content) for message in self._left) * KEPT_SHARE))
        lost = expected - tokens.cache_read
        if lost < MISSED_FROM:
            return None
        reason, detail = self._reason(last, row)
        if reason is MissReason.UNKNOWN:
            if not last.reports_writes:
                return None
            if row.step == 1 and _has_thought(messages):
                reason = MissReason.THINKING
        return CacheMiss(lost, reason, detail, was_written=tokens.cache_write > 0)

    def _reason(self, last: CachedPrompt, row: UsageRow) -> tuple[MissReason, str]:
        pause_s, model = began(row) - last.started, model_of(row)
        if pause_s > last.life_s:
            kept = "an hour" if last.life_s == HOUR_S else "five minutes"
            return MissReason.PAUSE, f"it keeps them for {kept}, and the pause was {_minutes(pause_s)}"
        if model != last.model:
            return MissReason.MODEL, f"the model changed from {last.model} to {model}"
        if self.prefix is not None and row.prefix is not None and self.prefix != row.prefix:
            return _difference(self.prefix, row.prefix)
        return (MissReason.UNKNOWN if self._shortened is None else self._shortened), ""


def _difference(before: PrefixDigests, now: PrefixDigests) -> tuple[MissReason, str]:
    """Return what makes the two different, in the order in which a cache looks at them."""
    if before.tools != now.tools:
        return MissReason.TOOLS, f"the tools changed ({_tool_changes(dict(before.tools), dict(now.tools))})"
    if parts := [name for name in {**before.system, **now.system} if before.system.get(name) != now.system.get(name)]:
        return MissReason.SYSTEM, f"the system prompt changed ({_listed(parts)})"
    return MissReason.REASONING, f"the reasoning effort changed from {before.reasoning} to {now.reasoning}"


def _has_thought(messages: Iterable[Message]) -> bool:
    return any(isinstance(block, Thinking) for message in messages for block in message.content)


def digest(value: object) -> str:
    """Return a digest of something that JSON can express, for `PrefixDigests`."""
    return blake2b(ENCODER.encode(value), digest_size=DIGEST_BYTES).hexdigest()


def began(row: UsageRow) -> float:
    """Return when the request of the row was sent."""
    return datetime.fromisoformat(row.time).timestamp() - (row.took_s or 0.0)


def model_of(row: UsageRow) -> str:
    """Return vendor and model that answered; a cache is that of one model."""
    return f"{row.provider}/{row.answered_by or row.model}"


def _tool_changes(before: dict[str, str], now: dict[str, str]) -> str:
    came, went = [name for name in now if name not in before], [name for name in before if name not in now]
    other = [name for name in now if name in before and now[name] != before[name]]
    kinds = ((came, "new"), (went, "gone"), (other, "changed"))
    return "; ".join(f"{word}: {_listed(names)}" for names, word in kinds if names) or "another order"


LISTED = 3
"""Names in a sentence before the rest is counted: a server for MCP may bring fifty tools."""


def _listed(names: Iterable[str]) -> str:
    every = list(names)
    rest = len(every) - LISTED
    return ", ".join(every[:LISTED]) + (f" and {rest} more" if rest > 0 else "")


def _minutes(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 120:
        return f"{minutes} minutes"
    return f"{round(minutes / 60)} hours"
